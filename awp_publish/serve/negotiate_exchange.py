"""Negotiation for ASGI: requests go on to the application, and an answer that somebody wants otherwise is kept until it
is whole, then made over. What turns out to be too large or to come without end passes on as it came.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

from awp_publish.serve.negotiate import Asked, Pages
from awp_publish.serve.negotiate_formats import LARGEST
from awp_publish.serve.negotiate_headers import vary_with_accept
from awp_publish.serve.negotiate_wish import read_accept
from awp_publish.serve.reply import AsgiApp, Message, RawHeaders, Receive, Reply, Scope, Send, read_fields, send_reply

Onward: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

ANYTHING: Final = (b"accept", b"*/*")
"""The header of those who take what they get: that is HTML, whatever a further Accept header adds to it."""
THREADS: Final = 2
"""Large pages that are rendered at a time: each needs memory many times its size."""

_rendering: Final[RunVar[CapacityLimiter]] = RunVar("awp_publish_rendering")


# --- Requests that are the application's ---


def go_on(app: AsgiApp, pages: Pages | None, link: bytes | None, patience: float) -> Onward:
    """How requests that are not ours go on to the application.

    Its `pages` can be had in other formats, None if they cannot; its HTML gets a `link` header, None for none.
    `patience` is how many seconds an answer may take from its first to its last byte. What this returns is no coroutine
    itself: all requests of browsers come by there.
    """
    if pages is not None:
        return _Consideration(app, pages, link, patience)
    return app if link is None else lambda scope, receive, send: app(scope, receive, adding(send, link))


@dataclass(frozen=True, slots=True)
class _Consideration:
    """Looks closely at a request that may ask for a format."""

    app: AsgiApp
    pages: Pages
    link: bytes | None
    patience: float

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        accepts = [value for name, value in scope["headers"] if name == b"accept"]
        reading = read_accept(accepts[0] if len(accepts) == 1 else b", ".join(accepts))
        if reading.wish is not None or self.pages.in_query:
            asked = self.pages.asked(scope)
            if asked is not None:
                return Exchange(asked, send, self.patience).run(self.app, receive)
        if self.link is None and not reading.names_html:
            return self.app(scope, receive, send)
        return self.app(scope, receive, adding(send, self.link, varies=True))


def adding(send: Send, link: bytes | None, varies: bool = False) -> Send:
    """`send`, which adds to the headers of HTML pages: a `link`, and whether they are chosen by Accept.

    No coroutine itself: all messages of an answer come by here.
    """

    def send_with_more(message: Message) -> Awaitable[None]:
        if message["type"] == "http.response.start":
            for name, value in message.get("headers", ()):
                if name == b"content-type":
                    if value.startswith((b"text/html", b"application/xhtml+xml")):
                        message = _with_more(message, link, varies)
                    break
            else:
                # A 304 has the Vary of the page that it stands for, and tells no type (RFC 9110 section 15.4.5).
                if varies and message["status"] == 304:
                    message = _with_more(message, None, varies)
        return send(message)

    return send_with_more


def _with_more(message: Message, link: bytes | None, varies: bool) -> Message:
    headers = list(message.get("headers", ()))
    vary = vary_with_accept(read_fields(headers)) if varies else None
    if vary is not None:
        headers = [*(pair for pair in headers if pair[0] != b"vary"), vary]
    if link is not None and message["status"] == 200:
        headers.append((b"link", link))
    return {**message, "headers": headers}


# --- One request that asks for a format ---


class Exchange:
    """Keeps what the application sends until it is whole, then sends what was asked for in its place."""

    __slots__ = ("_asked", "_kept", "_late", "_patience", "_send", "_size", "_start")

    def __init__(self, asked: Asked, send: Send, patience: float) -> None:
        self._asked = asked
        self._send = send
        self._patience = patience
        self._late = 0.0
        self._start: Message | None = None
        self._kept: list[Message] = []
        self._size = 0

    async def run(self, app: AsgiApp, receive: Receive) -> None:
        """Let the application answer. What it leaves unfinished stays unfinished, as its server would see it."""
        await app(self._asked.scope, receive, self.send)
        if self._start is not None:
            await self._pass()

    async def send(self, message: Message) -> None:
        """What the application is given to send with."""
        if message["type"] == "http.response.start":
            await self._begin(message)
        elif self._start is None or message["type"] != "http.response.body":
            await self._forward(message)
        else:
            self._kept.append(message)
            self._size += len(message.get("body", b""))
            if not message.get("more_body", False):
                await self._conclude(self._start)
            elif self._size > LARGEST or time.monotonic() > self._late:
                await self._pass()

    async def _begin(self, start: Message) -> None:
        if self._asked.takes(start["status"], _headers(start)):
            self._start, self._late = start, time.monotonic() + self._patience
        else:
            await self._send_start(start)

    async def _send_start(self, start: Message) -> None:
        await self._send({**start, "headers": list(self._asked.passed(_headers(start)))})

    async def _conclude(self, start: Message) -> None:
        body = b"".join(message.get("body", b"") for message in self._kept)
        reply = await make_reply(self._asked, start["status"], _headers(start), body) if len(body) <= LARGEST else None
        if reply is None:
            await self._pass()
            return
        self._start, self._kept = None, []
        await send_reply(reply, self._send)

    async def _pass(self) -> None:
        """Send the page as it came; what is still to come goes straight on."""
        start, kept = self._start, self._kept
        self._start, self._kept = None, []
        assert start is not None
        await self._send_start(start)
        for message in kept:
            await self._forward(message)

    async def _forward(self, message: Message) -> None:
        """To HEAD no content is sent; the application was asked with GET."""
        is_content = message["type"] == "http.response.body" and self._asked.is_head
        await self._send({**message, "body": b""} if is_content else message)


async def make_reply(asked: Asked, status: int, headers: RawHeaders, body: bytes) -> Reply | None:
    """`asked.answer(...)`, in a thread where that takes longer than an event loop should wait."""
    source = asked.source(headers, body)
    if asked.is_quick(source, body):
        return asked.answer(status, headers, body, source)
    return await to_thread.run_sync(asked.answer, status, headers, body, source, limiter=_limiter())


def _headers(message: Message) -> RawHeaders:
    return tuple(message.get("headers", ()))


def _limiter() -> CapacityLimiter:
    """One for each event loop."""
    try:
        return _rendering.get()
    except LookupError:
        limiter = CapacityLimiter(THREADS)
        _rendering.set(limiter)
        return limiter
