"""HTTP for the doors: ASGI's types, a neutral `Reply`, header fields, and the exchange of an in-process request."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from starlette.types import ASGIApp, Message as Message, Receive as Receive, Scope as Scope, Send as Send

from awp_publish.calls.call import RawHeaders as RawHeaders

AsgiApp: TypeAlias = ASGIApp
Pair: TypeAlias = tuple[bytes, bytes]
Headers: TypeAlias = Iterable[Pair]
Fields: TypeAlias = Mapping[bytes, bytes]

NO_SNIFFING: Final = (b"x-content-type-options", b"nosniff")

HOLDS_THREAD: Final = "awp_publish.holds_thread"
"""The scope member that a gateway sets if a server thread is blocked until the answer is complete."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Status, headers (lower-case names) and body of an answer."""

    status: int
    headers: RawHeaders
    body: bytes = b""


@lru_cache(maxsize=2048)
def content_length(size: int) -> Pair:
    """Return the Content-Length header of a body of `size` bytes."""
    return (b"content-length", b"%d" % size)


async def send_reply(reply: Reply, send: Send) -> None:
    """Answer an ASGI request. The headers are copied because outer middleware may change them in place."""
    await send({"type": "http.response.start", "status": reply.status, "headers": list(reply.headers)})
    await send({"type": "http.response.body", "body": reply.body})


class Exchange:
    """A request to an application in this process: provides the request's body, and collects the answer.

    The application sees a disconnect when `ended` returns. What it sends once this `is_closed` is dropped. `on_headers`
    is called with the headers of the answer. Each kind of request says what happens when the answer `end`s: with its
    last part, or with that which exceeds `most` bytes. A kind may `take` the parts of a streamed answer as they come;
    what it does not take is in `body`.
    """

    __slots__ = ("_parts", "_request", "_size", "headers", "is_closed", "is_streamed", "on_headers", "status")
    most = sys.maxsize

    def __init__(self, request: bytes) -> None:
        self._request: bytes | None = request
        self._parts: list[bytes] = []
        self._size = 0
        self.status = 0
        self.headers: Headers = ()
        self.on_headers: Callable[[Headers], None] | None = None
        self.is_streamed = False
        self.is_closed = False

    @property
    def body(self) -> bytes:
        """The part of the answer's body that is here."""
        return b"".join(self._parts)

    @property
    def is_cut(self) -> bool:
        """True if the answer is longer than `most`."""
        return self._size > self.most

    async def receive(self) -> Message:
        if self._request is not None:
            body, self._request = self._request, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self.ended()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if self.is_closed:
            await asyncio.sleep(0)  # lets an application that sends endlessly be cancelled
        elif message["type"] == "http.response.start":
            self.status, self.headers = message["status"], message.get("headers", ())
            if (on_headers := self.on_headers) is not None:
                on_headers(self.headers)
        elif message["type"] == "http.response.body":
            part, has_more = message.get("body", b""), message.get("more_body", False)
            if part and (self.is_streamed or (has_more and not self._size)):
                self.is_streamed = await self.take(part)
            if not self.is_streamed:
                self._parts.append(part)
            self._size += len(part)
            if not has_more or self._size > self.most:
                self.end(b"".join(self._parts))

    async def ended(self) -> None:
        """Return when the request has ended."""

    async def take(self, part: bytes) -> bool:
        """Pass a part of the answer on, and return True if it was taken. Asked for the first part, then for all."""
        return False

    def end(self, body: bytes) -> None:
        """Note that the answer is here, and what was not taken of its body."""


def replay(body: bytes, disconnected: Callable[[], Awaitable[object]]) -> Receive:
    """Return a `receive` that yields `body` once, and then waits for the client to disconnect."""
    left = [body]

    async def receive() -> Message:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        await disconnected()
        return {"type": "http.disconnect"}

    return receive


def without_content(send: Send) -> Send:
    """Return a `send` that drops the content, for answers to HEAD (RFC 9110 section 9.3.2)."""

    async def send_head(message: Message) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    return send_head


def read_fields(headers: Headers) -> Fields:
    """Return headers by name. Repeated ones are joined (RFC 9110 section 5.3; cookies: RFC 9113 section 8.2.3).

    This is the only reader of repeated headers. It takes linear time.

    So are headers that may occur only once (Authorization, Content-Type, Host), which makes them invalid: a proxy or
    the application might choose another one of the two than we do.
    """
    pairs = headers if type(headers) is list else list(headers)
    fields = dict(pairs)
    if len(fields) == len(pairs):
        return fields
    listed: dict[bytes, list[bytes]] = {}
    for name, value in pairs:
        listed.setdefault(name, []).append(value)
    return {name: (b"; " if name == b"cookie" else b", ").join(values) for name, values in listed.items()}


def header_members(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return headers of an answer as members, for doors that have no header lines. Names become lower-case.

    Several WWW-Authenticate are one list of challenges (RFC 9110 section 11.6.1). Of any other header the last counts.
    """
    members: dict[str, str] = {}
    for name, value in headers:
        key = name.lower()
        members[key] = f"{members[key]}, {value}" if key == "www-authenticate" and key in members else value
    return members


def route_path(scope: Scope) -> str:
    """Return the path below the application's mount point, without the `root_path` that some servers include."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    if not root or not path.startswith(root):
        return path
    rest = path[len(root) :]
    return rest if rest == "" or rest.startswith("/") else path


def mount_of(scope: Scope) -> str:
    """Return the application's mount point, "" if the request's path does not include it."""
    path: str = scope["path"]
    return path[: len(path) - len(route_path(scope))]


def with_header(headers: list[Pair], header: Pair | None) -> list[Pair]:
    """Return headers in which `header` replaces those of its name; unchanged if it is None."""
    if header is None:
        return headers
    return [*(pair for pair in headers if pair[0] != header[0]), header]
