"""Negotiation for ASGI: requests go on to the application, and an answer that somebody wants otherwise is kept until it
is whole, then made over. What turns out to be too large or to come without end passes on as it came.
"""

import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

from awp_publish.serve.http import AsgiApp, Message, RawHeaders, Receive, Reply, Scope, Send, send_reply
from awp_publish.serve.negotiation import (
    HTML_TYPES,
    LARGEST,
    VARY_BY_ACCEPT,
    Asked,
    Pages,
    Reading,
    read_accept,
    vary_with_accept,
)

Onward: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

_HTML: Final = tuple(sorted(HTML_TYPES))
_ANYTHING: Final = Reading(None, names_html=False)
"""What programs say that take what they get."""

THREADS: Final = 2
"""Large pages that are rendered at a time: each needs memory many times its size."""

_rendering: Final[RunVar[CapacityLimiter]] = RunVar("awp_publish_rendering")


# --- Requests that are the application's ---


def go_on(app: AsgiApp, pages: Pages | None, link: bytes | None, patience: float) -> Onward:
    """How requests that are not ours go on to the application.

    Its `pages` can be had in other formats, None if they cannot: then all of its HTML says that it is chosen by Accept.
    Its HTML gets a `link` header, None for none. `patience` is how many seconds an answer may take from its first to
    its last byte. What this returns is no coroutine itself: every request of the application comes by there.
    """
    if pages is None:
        return app if link is None else lambda scope, receive, send: app(scope, receive, linking(send, link))
    in_query = pages.in_query

    def negotiate(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        accept = b""
        for name, value in scope["headers"]:
            if name == b"accept":
                accept = accept + b", " + value if accept else value
        wish, names_html = _ANYTHING if accept == b"*/*" else read_accept(accept)
        if wish is not None or in_query:
            asked = pages.asked(scope)
            if asked is not None:
                return Exchange(asked, send, patience).run(app, receive)
        if link is not None:
            send = linking(send, link)

        def send_varying(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                for name, value in message.get("headers", ()):
                    if name == b"content-type":
                        if value.startswith(_HTML):
                            message = _vary(message)
                        break
                else:
                    # A 304 tells no type, and has the Vary of what it stands for (RFC 9110 section 15.4.5).
                    if names_html and message["status"] == 304:
                        message = _vary(message)
            return send(message)

        return app(scope, receive, send_varying)

    return negotiate


def _vary(message: Message) -> Message:
    """The start of an answer, which says that it was chosen by Accept: no cache gives it to who wants Markdown."""
    headers = message.get("headers", ())
    given = [value for name, value in headers if name == b"vary"]
    if not given:
        return {**message, "headers": [*headers, VARY_BY_ACCEPT]}
    vary = vary_with_accept({b"vary": b", ".join(given)})
    if vary is None:
        return message
    return {**message, "headers": [*(pair for pair in headers if pair[0] != b"vary"), vary]}


def linking(send: Send, link: bytes) -> Send:
    """Return `send`, which adds a `link` to pages. No coroutine itself: all messages of an answer come by here."""

    def send_linking(message: Message) -> Awaitable[None]:
        if message["type"] == "http.response.start" and message["status"] == 200:
            headers = message.get("headers", ())
            if any(name == b"content-type" and value.startswith(_HTML) for name, value in headers):
                message = {**message, "headers": [*headers, (b"link", link)]}
        return send(message)

    return send_linking


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
