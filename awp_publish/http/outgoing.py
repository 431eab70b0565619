"""Requests to other servers: the one client of the package.

A request has a deadline for all of it (the lookup of the host, the connection, the handshake, each redirect and the
answer to its last byte), which a server cannot stretch by answering slowly, and a limit of bytes. Connections are made
to the very IP addresses that were resolved and checked, so that a name cannot be rebound meanwhile. Requests block:
asynchronous code makes them in a thread of its own.
"""

import io
import socket
import ssl
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from email.message import Message as Fields
from http.client import HTTPConnection, HTTPException
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any, Final, Literal, NamedTuple, TypeAlias
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

from awp_publish.browsing.addresses import REDIRECTS
from awp_publish.http.client_address import read_address
from awp_publish.schema.origins import DEFAULT_PORTS

USER_AGENT: Final = "awp-publish"

MAX_HEAD_BYTES: Final = 256 * 1024
"""Bytes of status lines and headers of one answer, those of 100 (Continue) included."""

MAX_LOOKUPS: Final = 64
"""Concurrent lookups of hosts, those included that nobody waits for any more: the resolver cannot be interrupted."""

_CHUNKED: Final = 6
"""Bytes that a byte of a body has on the wire at most, in chunks of one byte (RFC 9112, section 7.1)."""

_PIECE: Final = 65_536
_GRAPHIC: Final = "".join(map(chr, range(0x21, 0x7F)))

_SPECIAL_IPV4: Final = tuple(
    ip_network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
_GLOBAL_UNICAST: Final = ip_network("2000::/3")
_SPECIAL_IPV6: Final = tuple(
    ip_network(network) for network in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)
"""The special-purpose addresses (IANA registries, RFC 6890), the same with every version of Python.

Of IPv6 only 2000::/3 is assigned for use in the whole internet; Teredo (2001::/32), 6to4 (2002::/16) and NAT64, which
is outside of it, embed an IPv4 address that may be a private one.
"""


def is_public_address(text: str) -> bool:
    """Return True if a text is an IP address that is reachable from the whole internet."""
    address = read_address(text)
    if isinstance(address, IPv6Address):
        return address in _GLOBAL_UNICAST and not any(address in network for network in _SPECIAL_IPV6)
    return address is not None and not any(address in network for network in _SPECIAL_IPV4)


class RequestFailed(OSError):
    """A request that was not made, or had no answer that can be used. The message says why."""


class AddressNotPublic(RequestFailed):
    """A host has an address that is not public."""


class OutOfTime(RequestFailed, TimeoutError):
    """A request was not answered before its deadline."""


class AnswerTooLarge(RequestFailed):
    """An answer has more bytes than its reader takes."""


class TooManyRedirects(RequestFailed):
    """A request was redirected more often than its maker allows."""


class Deadline:
    """The moment at which everything that shares it has to be done."""

    __slots__ = ("_end", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds that are left. Raises OutOfTime if there are none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise OutOfTime(f"it took longer than {self.seconds:g} seconds")
        return left


@dataclass(frozen=True, slots=True)
class RemoteAnswer:
    """The answer of another server, and the address that it came from, which differs after redirects."""

    status: int
    headers: Fields
    body: bytes = field(repr=False)
    url: str


def request(
    method: str,
    url: str,
    *,
    deadline: Deadline,
    max_bytes: int,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    is_public: bool = True,
    has_proxy: bool = False,
    max_redirects: int = 0,
    check: Callable[[str, str, int], None] | None = None,
    cuts: bool = False,
) -> RemoteAnswer:
    """Send a request and return the answer. Raises OSError (RequestFailed, ssl.SSLError and others) and ValueError.

    With `is_public`, all addresses of the host must be public; a request that has reached a public address is never
    redirected to another one, and never from https to http. `check` is called with the address, the target and the
    status of each redirect, and raises to refuse it. With `cuts`, only the first `max_bytes` of the body are returned
    instead of AnswerTooLarge. `has_proxy` uses the proxy of the environment.
    """
    for _ in range(max_redirects + 1):
        parts = urlsplit(url)
        if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
            raise RequestFailed(f"{url[:200]} is not an http(s) address")
        if parts.username is not None or parts.password is not None:
            raise RequestFailed("an address with a user name or a password in it is not requested")
        try:
            exchange = _Exchange(parts, deadline, is_public, has_proxy)
            try:
                status, fields, received = exchange.run(method, headers or {}, body, max_bytes, cuts)
            finally:
                exchange.disconnect()
        except HTTPException as error:
            name = type(error).__name__
            raise RequestFailed(f"it did not answer as a web server does: {str(error) or name}") from error
        except TimeoutError as error:
            raise OutOfTime(f"it took longer than {deadline.seconds:g} seconds") from error
        location = fields.get("Location")
        if not max_redirects or status not in REDIRECTS or location is None:
            return RemoteAnswer(status, fields, received, url)
        target = urljoin(url, location)
        if check is not None:
            check(url, target, status)
        if parts.scheme == "https" and urlsplit(target).scheme != "https":
            raise RequestFailed(f"{url} leads to an address that is not encrypted")
        if status not in (307, 308) and method not in ("GET", "HEAD"):
            raise RequestFailed(f"{url} redirects to {target[:200]}, which would change the request to a GET")
        url, is_public = target, is_public or exchange.is_public
    raise TooManyRedirects("too many redirects")


def resolve(host: str, port: int, deadline: Deadline) -> list[str]:
    """Return the IP addresses of a host. Raises OSError."""
    with suppress(ValueError):
        return [str(ip_address(host))]
    if not _lookups.acquire(timeout=deadline.left()):
        raise OutOfTime("too many hosts are looked up")
    future = Future[list[Any]]()

    def look_up() -> None:
        try:
            future.set_result(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except UnicodeError as error:
            future.set_exception(OSError(f"{host[:200]} is not the name of a host: {error}"))
        except BaseException as error:
            future.set_exception(error)
        finally:
            _lookups.release()

    threading.Thread(target=look_up, name="awp-publish-lookup", daemon=True).start()
    return [*dict.fromkeys(str(entry[4][0]) for entry in future.result(deadline.left()))]


_lookups: Final = threading.BoundedSemaphore(MAX_LOOKUPS)


def connect(host: str, port: int, deadline: Deadline, *, is_public: bool = True) -> socket.socket:
    """Connect to the first address of a host that can be reached. Raises OSError.

    Each attempt has half of the time that is left, the last one all of it. With `is_public`, AddressNotPublic is raised
    unless all addresses are public.
    """
    addresses = resolve(host, port, deadline)
    if is_public and not (addresses and all(map(is_public_address, addresses))):
        raise AddressNotPublic(f"{host} has an address that is not public")
    for number, address in enumerate(addresses, 1):
        is_last = number == len(addresses)
        left = deadline.left()
        try:
            return socket.create_connection((address, port), left if is_last else left / 2)
        except OSError:
            if is_last:
                raise
    raise RequestFailed(f"{host} has no address")


class _Exchange:
    """One request and its answer, on a connection of its own.

    It is the socket that http.client is given, and sets the time that is left before each operation.
    """

    def __init__(self, parts: SplitResult, deadline: Deadline, is_public: bool, has_proxy: bool) -> None:
        self._parts = parts
        self._deadline = deadline
        self._budget = MAX_HEAD_BYTES
        host, port = parts.hostname or "", parts.port or DEFAULT_PORTS[parts.scheme]
        proxy = _proxy_of(parts) if has_proxy and not is_public else None
        if proxy is None:
            self._socket = connect(host, port, deadline, is_public=is_public)
        else:
            self._socket = connect(proxy.hostname or "", proxy.port or 80, deadline, is_public=False)
        try:
            self.is_public = proxy is None and is_public_address(str(self._socket.getpeername()[0]))
            self._of_proxy = _authorization_at(proxy) if proxy is not None else {}
            self._has_proxy = proxy is not None
            if parts.scheme == "https":
                if proxy is not None:
                    self._tunnel(f"[{host}]:{port}" if ":" in host else f"{host}:{port}", proxy)
                self._socket.settimeout(deadline.left())  # for the whole handshake, not for each of its bytes
                self._socket = ssl.create_default_context().wrap_socket(self._socket, server_hostname=host)
        except BaseException:
            self._socket.close()
            raise

    def run(
        self, method: str, headers: Mapping[str, str], body: bytes, max_bytes: int, cuts: bool
    ) -> tuple[int, Fields, bytes]:
        parts = self._parts
        connection = HTTPConnection(parts.hostname or "", parts.port or DEFAULT_PORTS[parts.scheme])
        connection.default_port = DEFAULT_PORTS[parts.scheme]
        connection.sock = self
        target = quote((parts.path or "/") + (f"?{parts.query}" if parts.query else ""), _GRAPHIC, errors="replace")
        fields = {"User-Agent": USER_AGENT, "Connection": "close", **headers}
        if self._has_proxy and parts.scheme == "http":
            target, fields = f"http://{parts.netloc}{target}", fields | self._of_proxy
        connection.request(method, target, body or None, fields)
        with connection.getresponse() as response:
            self._budget += _CHUNKED * max_bytes + _PIECE
            received = bytearray()
            while piece := response.read1(_PIECE):
                received += piece
                if len(received) > max_bytes:
                    if cuts:
                        break
                    raise AnswerTooLarge(f"it has more than {max_bytes} bytes")
            else:
                if response.length:
                    raise RequestFailed("the answer ends before its end")
            return response.status, response.headers, bytes(received[:max_bytes])

    def _tunnel(self, authority: str, proxy: SplitResult) -> None:
        connection = HTTPConnection(proxy.hostname or "", proxy.port or 80)
        connection.sock = self
        connection.request("CONNECT", authority, headers={"Host": authority, **self._of_proxy})
        with connection.getresponse() as response:
            if response.status != 200:
                raise RequestFailed(f"the proxy answers with the status {response.status}")

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Reader(self), _PIECE)

    def receive_into(self, buffer: bytearray | memoryview) -> int:
        self._socket.settimeout(self._deadline.left())
        count = self._socket.recv_into(buffer)
        self._budget -= count
        if self._budget < 0:
            raise AnswerTooLarge("the head of the answer, or what frames its body, is too large")
        return count

    def sendall(self, data: bytes) -> None:
        view = memoryview(data)
        for start in range(0, len(view), _PIECE):
            self._socket.settimeout(self._deadline.left())
            self._socket.sendall(view[start : start + _PIECE])

    def close(self) -> None:
        """Do nothing: http.client closes its socket while the body is still to be read."""

    def disconnect(self) -> None:
        self._socket.close()


class _Reader(io.RawIOBase):
    def __init__(self, exchange: _Exchange) -> None:
        self._exchange = exchange

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._exchange.receive_into(buffer)


def _proxy_of(parts: SplitResult) -> SplitResult | None:
    """Return the address of the proxy that the environment names for an address (HTTPS_PROXY, NO_PROXY)."""
    named = getproxies().get(parts.scheme)
    if not named or proxy_bypass(parts.hostname or ""):
        return None
    return urlsplit(named if "://" in named else f"http://{named}")


def _authorization_at(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    credentials = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}".encode()
    return {"Proxy-Authorization": f"Basic {b64encode(credentials).decode()}"}


class Posted(NamedTuple):
    """A server's answer: its status, and the beginning of its body."""

    status: int
    body: bytes


Failure: TypeAlias = Literal["connection_refused", "timeout", "tls_error"]


def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    seconds: float,
    max_bytes: int = 65_536,
    trusted: Collection[str] = (),
) -> Posted | Failure:
    """Send a body to a public https address, once and without redirects. Blocks.

    All addresses of the host must be public. An origin in `trusted` may be anywhere, and without TLS. If the server
    cannot be reached, the kind of failure is returned.
    """
    parts = urlsplit(url)
    is_trusted = f"{parts.scheme}://{parts.netloc}" in trusted
    if parts.scheme != "https" and not is_trusted:
        return "connection_refused"
    try:
        answer = request(
            "POST",
            url,
            body=body,
            headers=headers,
            deadline=Deadline(seconds),
            max_bytes=max_bytes,
            is_public=not is_trusted,
            cuts=True,
        )
    except TimeoutError:
        return "timeout"
    except ssl.SSLError:
        return "tls_error"
    except (OSError, ValueError):
        return "connection_refused"
    return Posted(answer.status, answer.body)
