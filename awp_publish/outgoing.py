"""Requests that we send: where they may go, how long they may take, and how much of an answer is read.

Every request has one deadline for all of it, however slowly the server sends its handshake, headers, chunks or interim
answers: when it has passed, the connection is cut. Connections are made to the very IP addresses that were resolved and
checked, so that a name cannot be rebound meanwhile.
"""

import base64
import http.client
import socket
import ssl
import threading
import time
import urllib.request
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final, Literal, NamedTuple, TypeAlias
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
PORTS: Final = {"http": 80, "https": 443}
USER_AGENT: Final = "awp-publish"
POST_SECONDS: Final = 5.0
"""Seconds within which the receiver of what we post has to answer."""

_PIECE: Final = 65_536

_NOT_PUBLIC: Final = tuple(
    ip_network(network)
    for network in (
        "192.88.99.0/24",  # relays of 6to4, deprecated (RFC 7526)
        "64:ff9b::/96",  # these embed an IPv4 address, which may be a private one (RFC 6052, RFC 8215,
        "64:ff9b:1::/48",
        "2002::/16",  # RFC 3056,
        "2001::/32",  # RFC 4380)
        "fec0::/10",  # site-local, deprecated (RFC 3879)
        "3fff::/20",  # documentation (RFC 9637)
        "5f00::/16",  # segments of a network's own (RFC 9602)
        "100:0:0:1::/64",  # a dummy prefix (RFC 9780)
    )
)
"""Ranges that not every supported version of Python knows as private."""


class AddressNotPublic(OSError):
    """A host has an address that is not public."""


class BadAnswer(OSError):
    """A server did not answer as a web server does."""


class TooLarge(OSError):
    """An answer has more bytes than are read."""


class RedirectRefused(OSError):
    """An answer leads to where we do not follow."""


class Received(NamedTuple):
    """An answer, and the address that it came from."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes
    url: str
    is_public: bool
    """Whether it came from a public address."""


def is_public_address(text: str) -> bool:
    """Return True if a text is an IP address that is reachable from the whole internet."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return is_public_address(str(address.ipv4_mapped))
    if any(address in network for network in _NOT_PUBLIC if network.version == address.version):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def send(
    method: str,
    url: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    deadline: float,
    most_bytes: int,
    only_public: bool = True,
    by_proxy: bool = False,
    is_cut: bool = False,
) -> Received:
    """Send one request and return its answer, without following redirects. Blocks.

    It ends by `deadline`, in seconds of `time.monotonic`. With `only_public` all addresses of the host must be public;
    `by_proxy` uses the proxies of the environment. An answer of more than `most_bytes` is refused, or cut if `is_cut`.
    Raises ValueError for what is no http(s) address, AddressNotPublic, TimeoutError, ssl.SSLError, BadAnswer, TooLarge
    and other OSErrors.
    """
    parts = urlsplit(url)
    if parts.scheme not in PORTS or not parts.hostname:
        raise ValueError(f"{url[:200]} is not an http(s) address")
    connection = _Connection(parts, deadline, only_public, _proxy_of(parts) if by_proxy and not only_public else None)
    sent = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity", "Connection": "close", **(headers or {})}
    try:
        connection.request(method, connection.target, body, sent)
        with connection.getresponse() as response:
            if response.status < 200:
                raise BadAnswer("only an interim answer came")
            received = bytearray()
            while piece := response.read1(_PIECE):
                received += piece
                if len(received) > most_bytes:
                    if is_cut:
                        break
                    raise TooLarge(f"{url[:200]} has more than {most_bytes} bytes")
            if time.monotonic() >= deadline:
                raise TimeoutError("the answer took too long")
            return Received(response.status, response.headers, bytes(received[:most_bytes]), url, connection.is_public)
    except (http.client.HTTPException, ValueError, OSError) as error:
        if time.monotonic() >= deadline:
            raise TimeoutError("the answer took too long") from error
        if isinstance(error, OSError):
            raise
        raise BadAnswer(f"{type(error).__name__}: {error}") from error
    finally:
        connection.end()


def follow(
    url: str,
    headers: Mapping[str, str] | None = None,
    *,
    deadline: float,
    most_bytes: int,
    only_public: bool = True,
    most: int = 3,
    stay: bool = False,
) -> Received:
    """Return what is at an address, after at most `most` redirects. Blocks.

    A redirect never leads from https to http, nor from a public address to a private one; with `stay`, nor to another
    origin. Raises RedirectRefused and what `send` raises.
    """
    for _ in range(most + 1):
        answer = send("GET", url, headers=headers, deadline=deadline, most_bytes=most_bytes, only_public=only_public)
        location = answer.headers.get("Location")
        if answer.status not in REDIRECTS or not location:
            return answer
        try:
            here, there = urlsplit(url), urlsplit(urljoin(url, location))
            is_near = origin_of(here) == origin_of(there)
        except ValueError as error:
            raise RedirectRefused(f"{url[:200]} leads to what is no address") from error
        if here.scheme == "https" and there.scheme != "https":
            raise RedirectRefused(f"{url[:200]} leads to an address that is not encrypted")
        if stay and not is_near:
            raise RedirectRefused(f"{url[:200]} leads to another site: {there.geturl()[:200]}")
        if there.username is not None or there.password is not None:
            raise RedirectRefused(f"{url[:200]} leads to an address with a user name or a password in it")
        url, only_public = there.geturl(), only_public or answer.is_public
    raise RedirectRefused(f"{url[:200]} leads to more than {most} other addresses")


def origin_of(parts: SplitResult) -> tuple[str, str, int]:
    """Return scheme, host and port of an address, with the default port of the scheme. Raises ValueError."""
    return parts.scheme, (parts.hostname or "").rstrip("."), parts.port or PORTS.get(parts.scheme, 0)


def connect_public(
    address: tuple[str, int], timeout: float | None = None, source_address: tuple[str, int] | None = None
) -> socket.socket:
    """Connect to a host whose addresses are all public. Raises AddressNotPublic, and OSError if none can be reached."""
    host, port = address
    addresses = resolve(host, port, timeout)
    if not addresses or not all(map(is_public_address, addresses)):
        raise AddressNotPublic(f"{host} has an address that is not public")
    return connect_to_first(addresses, port, timeout, source_address)


def resolve(host: str, port: int, timeout: float | None) -> list[str]:
    """Return the addresses of a host. Raises TimeoutError and other OSErrors."""
    found: list[str] = []
    failed: list[Exception] = []

    def ask() -> None:
        try:
            found.extend(str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            failed.append(error)

    if timeout is None:
        ask()
    else:  # a resolver takes as long as it wants, and cannot be interrupted
        asking = threading.Thread(target=ask, name="awp-publish-resolver", daemon=True)
        asking.start()
        asking.join(max(timeout, 0.0))
        if asking.is_alive():
            raise TimeoutError(f"{host} was not resolved in time")
    if failed:
        raise failed[0] if isinstance(failed[0], OSError) else OSError(f"{host[:200]} is not a host")
    return found


def connect_to_first(
    addresses: Iterable[str], port: int, timeout: float | None, source_address: tuple[str, int] | None = None
) -> socket.socket:
    """Connect to the first of several addresses of a host that can be reached. Raises OSError.

    All attempts together take no longer than `timeout`: each has half of what is left, the last one all of it.
    """
    distinct = [*dict.fromkeys(addresses)]
    deadline = None if timeout is None else time.monotonic() + timeout
    for number, address in enumerate(distinct, 1):
        is_last = number == len(distinct)
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            break
        try:
            connected = socket.create_connection(
                (address, port), left if left is None or is_last else left / 2, source_address
            )
        except OSError:
            if is_last:
                raise
        else:
            connected.settimeout(timeout)
            return connected
    raise TimeoutError("None of the addresses answered in time.")


class _Connection(http.client.HTTPConnection):
    """A connection for one request, which is cut when its time is up, however slowly the server answers."""

    def __init__(self, parts: SplitResult, deadline: float, only_public: bool, proxy: SplitResult | None) -> None:
        host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
        self._deadline = deadline
        self._only_public = only_public
        self._is_encrypted = parts.scheme == "https"
        self._server = host
        self._timer: threading.Timer | None = None
        self.is_public = False
        self.target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        if proxy is None:
            super().__init__(host, port)
            return
        super().__init__(proxy.hostname or "", proxy.port or PORTS.get(proxy.scheme, 80))
        allowed = {}
        if proxy.username is not None:
            login = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
            allowed["Proxy-Authorization"] = "Basic " + base64.b64encode(login.encode()).decode()
        self.set_tunnel(host, port, allowed)

    def connect(self) -> None:
        """Connect by the deadline, and encrypt. Raises OSError."""
        left = self._deadline - time.monotonic()
        addresses = resolve(self.host, self.port, left)
        self.is_public = bool(addresses) and all(map(is_public_address, addresses))
        if self._only_public and not self.is_public:
            raise AddressNotPublic(f"{self.host} has an address that is not public")
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"{self.host} was not reached in time")
        self._create_connection = lambda address, *_: connect_to_first(addresses, address[1], left)
        self.timeout = left
        super().connect()
        self._cut_in_time()
        if self._is_encrypted:
            self.sock = ssl.create_default_context().wrap_socket(
                self.sock, server_hostname=self._server, do_handshake_on_connect=False
            )
            self._cut_in_time()
            self.sock.do_handshake()

    def _cut_in_time(self) -> None:
        connected = self.sock

        def cut() -> None:
            with suppress(OSError):  # it is closed already
                # Not the method of an SSLSocket, which goes on unencrypted.
                socket.socket.shutdown(connected, socket.SHUT_RDWR)

        self._stop_timer()
        self._timer = threading.Timer(max(self._deadline - time.monotonic(), 0.0), cut)
        self._timer.daemon = True
        self._timer.start()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def end(self) -> None:
        """Close the connection. Nothing is cut any more.

        `close` is called as soon as the headers of an answer without a length are read, and its body may be late.
        """
        self._stop_timer()
        self.close()


def _proxy_of(parts: SplitResult) -> SplitResult | None:
    """Return the proxy that the environment names for an address."""
    host = parts.hostname or ""
    proxy = urllib.request.getproxies().get(parts.scheme)
    return urlsplit(proxy) if proxy and not urllib.request.proxy_bypass(host) else None


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
    seconds: float = POST_SECONDS,
    most_bytes: int = 65_536,
    trusted: Collection[str] = (),
) -> Posted | Failure:
    """Send a body to a public https address, once and without redirects. Blocks.

    An origin in `trusted` may be anywhere, and without TLS. If the server cannot be reached, the kind of failure is
    returned.
    """
    parts = urlsplit(url)
    is_trusted = f"{parts.scheme}://{parts.netloc}" in trusted
    if parts.scheme != "https" and not is_trusted:
        return "connection_refused"
    deadline, only_public = time.monotonic() + seconds, not is_trusted
    try:
        answer = send(
            "POST", url, body, headers, deadline=deadline, most_bytes=most_bytes, only_public=only_public, is_cut=True
        )
    except TimeoutError:
        return "timeout"
    except ssl.SSLError:
        return "tls_error"
    except (OSError, ValueError):
        return "connection_refused"
    return Posted(answer.status, answer.body)
