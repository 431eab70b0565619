"""Requests to pages of this site, in process.

A request is made from scratch, so that middleware treats it as a visitor's; the caller decides on its credentials. No
connection is opened to any host. Calls of actions use `dispatch` instead, which derives them from the client's own
request.
"""

import asyncio
import sys
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, unquote_to_bytes

from awp_publish.http.body import wait_for_disconnect
from awp_publish.http.exchange import AsgiApp, Exchange, RawHeaders, Receive, Scope, mount_of
from awp_publish.schema.origins import DEFAULT_PORTS

FORWARDED: Final = frozenset({b"forwarded", b"x-forwarded-for", b"x-real-ip"})
"""Headers in which proxies name the client. They are also passed on with requests made for that client."""


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request for a page. `path` is percent-encoded, and relative to the application's mount point."""

    origin: SplitResult
    path: bytes
    query: bytes
    headers: RawHeaders
    method: str = "GET"
    body: bytes = field(default=b"", repr=False)
    state: Mapping[str, object] = field(default_factory=dict)

    def scope(self, outer: Scope) -> Scope:
        """Return the ASGI scope, with the mount point and the client's address of the `outer` request."""
        mounted, origin = mount_of(outer), self.origin
        length = ((b"content-length", b"%d" % len(self.body)),) if self.body else ()
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": self.method,
            "scheme": origin.scheme,
            "root_path": outer.get("root_path", ""),
            "path": mounted + unquote_to_bytes(self.path).decode("utf-8", "replace") or "/",
            "raw_path": mounted.encode("utf-8") + self.path or b"/",
            "query_string": self.query,
            "headers": [*self.headers, *length],
            "client": outer.get("client"),
            "server": (origin.hostname or "", origin.port or DEFAULT_PORTS.get(origin.scheme, 80)),
            "state": dict(self.state),
            "extensions": {},  # server extensions for sending files would bypass `PageExchange.send`
        }

    def websocket(self, outer: Scope) -> Scope:
        """Return the scope of a WebSocket, with support for refusals with a body (ASGI, WebSocket Denial Response)."""
        scope = self.scope(outer)
        del scope["method"]
        scheme = "wss" if scope["scheme"] == "https" else "ws"
        extensions: dict[str, object] = {"websocket.http.response": {}}
        return {**scope, "type": "websocket", "scheme": scheme, "subprotocols": [], "extensions": extensions}


@dataclass(frozen=True, slots=True)
class PageAnswer:
    """The application's answer. `is_whole` is False if it was too long and only its beginning is here."""

    status: int
    headers: RawHeaders
    body: bytes = field(repr=False)
    is_whole: bool = True


class PageExchange(Exchange):
    """The exchange of an in-process request of which at most `most` bytes are wanted.

    The application sees a disconnect when the answer is complete or too long, when `hang_up()` is called, or when the
    client of the `outer` request disconnects. The future `answered` is done when the answer is.
    """

    __slots__ = ("_outer", "_over", "answered", "most")

    def __init__(self, request: bytes = b"", most: int = sys.maxsize, outer: Receive | None = None) -> None:
        super().__init__(request)
        self.most = most
        self.answered: asyncio.Future[PageAnswer] = asyncio.get_running_loop().create_future()
        self._outer = outer
        self._over = asyncio.Event()

    async def ended(self) -> None:
        if self._outer is None:
            await self._over.wait()
            return
        async with asyncio.TaskGroup() as group:
            ends: tuple[Coroutine[object, object, object], ...] = (self._over.wait(), wait_for_disconnect(self._outer))
            waiting = {group.create_task(end) for end in ends}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in waiting:
                task.cancel()

    def end(self, body: bytes) -> None:
        self.hang_up()
        if not self.answered.done():  # its reader may have been cancelled
            self.answered.set_result(self.collected())

    def hang_up(self) -> None:
        """Let the application see a disconnect."""
        self.is_closed = True
        self._over.set()

    def collected(self) -> PageAnswer:
        """Return the answer received so far, with status 500 if there is none."""
        return PageAnswer(self.status or 500, tuple(self.headers), self.body, not self.is_cut)

    async def run(self, app: AsgiApp, scope: Scope) -> PageAnswer:
        """Send the request, and return the answer when the application has finished it, background tasks included."""
        await app(scope, self.receive, self.send)
        return self.collected()
