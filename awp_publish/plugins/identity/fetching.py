"""Our own requests: without redirects, limited in bytes and seconds, only to public addresses if a caller names them.

Connections are made to the very IP addresses that were resolved and checked, so that a name cannot be rebound
meanwhile.
"""

import http.client
import logging
import socket
import ssl
import threading
import time
import urllib.request
from asyncio import wrap_future
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, Generic, Literal, NamedTuple, Protocol, TypeAlias, TypeVar
from urllib.error import HTTPError
from urllib.parse import urlsplit

import orjson

from awp_publish.http.networks import AddressNotPublic, connect_to_first, is_public_address
from awp_publish.problems import TemporarilyUnavailable

logger: Final = logging.getLogger("awp_publish.calls")

FETCH_TIMEOUT: Final = 5.0
"""Seconds within which a server has to answer."""

FRESH_FOR: Final = 600.0
"""Seconds after which keys are fetched again."""

USABLE_FOR: Final = 3600.0
"""Seconds for which keys are used while they cannot be fetched again: a withdrawn key must not live on."""

PAUSE: Final = 10.0
"""Seconds between two fetches for unknown keys, and after a failed fetch."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def fetch_json(
    url: str,
    *,
    most_bytes: int,
    is_public: bool = False,
    seconds: float = FETCH_TIMEOUT,
    accept: str = "application/json",
    media_types: tuple[str, ...] = (),
) -> object:
    """Return the JSON document at an address. Raises OSError, ValueError and what http.client raises.

    With `is_public`, all addresses of the host must be public, and no proxy is used. If `media_types` are given, the
    answer must have one of them.
    """
    handlers: list[Any] = [_NoRedirects]
    if is_public:
        handlers += [urllib.request.ProxyHandler({}), _PublicHttps()]
    request = urllib.request.Request(url, headers={"Accept": accept, "User-Agent": "awp-publish"})
    deadline = time.monotonic() + seconds
    body = bytearray()
    try:
        response: http.client.HTTPResponse = urllib.request.build_opener(*handlers).open(request, timeout=seconds)
    except HTTPError as error:
        error.close()  # it holds the connection
        raise ValueError(f"the answer has the status {error.code}") from None
    with response:
        if response.status != 200:
            raise ValueError(f"the answer has the status {response.status}")
        media_type = response.headers.get_content_type()
        if media_types and media_type not in media_types:
            raise ValueError(f"the answer is {media_type[:100]}, not {media_types[0]}")
        while piece := response.read1(65_536):
            body += piece
            if len(body) > most_bytes or time.monotonic() > deadline:
                raise ValueError("it is too large or too slow")
    return orjson.loads(body)


class _PublicHttps(urllib.request.HTTPSHandler):
    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_PublicConnection, request)


class _TimedConnection(http.client.HTTPConnection):
    """A connection that is cut when its time is up, however slowly the server answers."""

    _timer: threading.Timer | None = None

    def connect(self) -> None:
        super().connect()
        self._cut_in_time()

    def _cut_in_time(self) -> None:
        seconds = self.timeout if isinstance(self.timeout, (int, float)) else FETCH_TIMEOUT
        connected = self.sock

        def cut() -> None:
            with suppress(OSError):  # it is closed already
                connected.shutdown(socket.SHUT_RDWR)

        self._timer = threading.Timer(seconds, cut)
        self._timer.daemon = True
        self._timer.start()


class _TimedHttps(_TimedConnection, http.client.HTTPSConnection):
    _context: ssl.SSLContext

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        # The time limit holds for the handshake, too, of which each byte may be late.
        self.sock = self._context.wrap_socket(self.sock, server_hostname=self.host, do_handshake_on_connect=False)
        self._cut_in_time()
        self.sock.do_handshake()


class _PublicConnection(_TimedHttps):
    """A connection to a public address."""

    def connect(self) -> None:
        self._create_connection = connect_public
        super().connect()


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
    seconds: float = FETCH_TIMEOUT,
    most_bytes: int = 65_536,
    trusted: Collection[str] = (),
) -> Posted | Failure:
    """Send a body to a public https address, once and without redirects. Blocks.

    All addresses of the host must be public. An origin in `trusted` may be anywhere, and without TLS. If the server
    cannot be reached, the kind of failure is returned.
    """
    parts = urlsplit(url)
    is_trusted = f"{parts.scheme}://{parts.netloc}" in trusted
    kind = _PublicConnection if not is_trusted else _TimedHttps if parts.scheme == "https" else _TimedConnection
    connection = kind(parts.hostname or "", parts.port, timeout=seconds)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    began = time.monotonic()
    try:
        connection.request("POST", target, body, {"User-Agent": "awp-publish", **headers})
        response = connection.getresponse()
        return Posted(response.status, response.read(most_bytes))
    except (OSError, ValueError, http.client.HTTPException) as error:
        if isinstance(error, TimeoutError) or time.monotonic() - began >= seconds:
            return "timeout"
        return "tls_error" if isinstance(error, ssl.SSLError) else "connection_refused"
    finally:
        if connection._timer is not None:
            connection._timer.cancel()
        connection.close()


def connect_public(
    address: tuple[str, int], timeout: float | None = None, source_address: tuple[str, int] | None = None
) -> socket.socket:
    """Connect to a host whose addresses are all public. Raises AddressNotPublic, and OSError if none can be reached."""
    host, port = address
    addresses = [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    if not addresses or not all(map(is_public_address, addresses)):
        raise AddressNotPublic(f"{host} has an address that is not public")
    return connect_to_first(addresses, port, timeout, source_address)


# --- JWK sets, and keys that are cached and fetched again ---


def signature_keys(document: object) -> Iterator[Mapping[str, Any]]:
    """Yield the entries of a JWK set (RFC 7517) that are for signatures. Raises ValueError if it is not a JWK set."""
    listed = document.get("keys") if isinstance(document, Mapping) else None
    if not isinstance(listed, (list, tuple)):
        raise ValueError("it is not a JWK set: it has no list of keys")
    for entry in listed:
        if isinstance(entry, Mapping) and entry.get("use", "sig") == "sig":
            yield entry


Key = TypeVar("Key", covariant=True)


class Keys(Protocol[Key]):
    """Keys by name and algorithm."""

    def find(self, key_id: str | None, algorithm: str) -> Key | None: ...


class FetchedKeys(Generic[Key]):
    """Keys that are published at an address. Redirects are not followed.

    They are fetched when the first token arrives, in a thread of their own, one fetch at a time, which all who need it
    share. For unknown keys there is one fetch in PAUSE seconds: tokens with invented keys cost no more than that. Can
    be used by several event loops at once. `load` fetches the keys; `clock` returns monotonic seconds.
    """

    def __init__(self, url: str, load: Callable[[str], Keys[Key]], clock: Callable[[], float] = time.monotonic) -> None:
        self._url = url
        self._load = load
        self._clock = clock
        self._known: Keys[Key] | None = None
        self._known_since = 0.0
        self._next_try = 0.0
        self._failed = False
        self._lock = threading.Lock()
        self._under_way: Future[None] | None = None

    async def find(self, key_id: str | None, algorithm: str) -> Key | None:
        """Return the key, None if there is none. Raises TemporarilyUnavailable while the keys cannot be read."""
        if self._is_stale():
            await self._fetch()
        key = self._usable().find(key_id, algorithm)
        if key is None and await self._fetch(for_unknown=True):
            key = self._usable().find(key_id, algorithm)
        if key is None and self._failed:
            raise _unreadable()
        return key

    def _is_stale(self) -> bool:
        return self._known is None or self._age() >= FRESH_FOR

    def _age(self) -> float:
        return self._clock() - self._known_since

    def _usable(self) -> Keys[Key]:
        if self._known is None or self._age() >= USABLE_FOR:
            raise _unreadable()
        return self._known

    async def _fetch(self, for_unknown: bool = False) -> bool:
        """Wait for a fetch, a new one or the current one. Returns False if it is too soon, or none is needed."""
        with self._lock:
            if self._under_way is None:
                if self._clock() < self._next_try or not (for_unknown or self._is_stale()):
                    return False
                if for_unknown:
                    self._next_try = self._clock() + PAUSE
                self._under_way = future = Future[None]()
                future.set_running_or_notify_cancel()  # so that one waiting task cannot cancel it for the others
                threading.Thread(target=self._run, args=(future,), name="awp-publish-keys", daemon=True).start()
            under_way = self._under_way
        await wrap_future(under_way)
        return True

    def _run(self, future: "Future[None]") -> None:
        try:
            self._known = self._load(self._url)
            self._known_since, self._failed = self._clock(), False
        except Exception as error:
            self._failed = True
            self._next_try = self._clock() + PAUSE
            logger.error("the keys at %s could not be read: %s", self._url, error)
        finally:
            with self._lock:
                self._under_way = None
            future.set_result(None)


def _unreadable() -> TemporarilyUnavailable:
    detail = "The site cannot read the keys of its authorization server at the moment."
    return TemporarilyUnavailable(detail, headers=[("Retry-After", f"{PAUSE:g}")])
