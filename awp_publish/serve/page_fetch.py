"""One request to a page of this site in process: what every room that fetches pages makes of it.

The request is made anew, so that all middleware sees a visitor; who that visitor is, the rooms say themselves. No other
host is ever asked: an address is only a path here, never connected to. Calls of actions go another way (`dispatch`):
they carry their caller's own request on.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, unquote_to_bytes

from awp_publish.serve.reply import Message, RawHeaders, Receive, Scope, mount_of
from awp_publish.serve.request_body import wait_for_hang_up

FORWARDED: Final = frozenset({b"forwarded", b"x-forwarded-for", b"x-real-ip"})
"""What proxies have said of the client's address holds for the pages that are fetched for that client."""

_DEFAULT_PORTS: Final = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class PageRequest:
    """What is asked for. `path` is percent-encoded, without the path under which the application is mounted."""

    origin: SplitResult
    path: bytes
    query: bytes
    headers: RawHeaders
    method: str = "GET"
    body: bytes = field(default=b"", repr=False)
    state: Mapping[str, object] = field(default_factory=dict)

    def scope(self, outer: Scope) -> Scope:
        """The ASGI scope. Of the request that caused it stay the mount point and the address of the client."""
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
            "server": (origin.hostname or "", origin.port or _DEFAULT_PORTS.get(origin.scheme, 80)),
            "state": dict(self.state),
            "extensions": {},  # the server's shortcuts for sending files would go round us
        }


@dataclass(frozen=True, slots=True)
class PageAnswer:
    """What the application answered; of more than was allowed only the beginning, and then it is not `is_whole`."""

    status: int
    headers: RawHeaders
    body: bytes = field(repr=False)
    is_whole: bool = True


class PageExchange:
    """The two ends of one request in process: hands out its body, collects at most `most` bytes of its answer.

    The application is told that its reader has gone when the answer is complete or too long, when `hang_up()` is
    called, and when `outer`, the request behind this one, ends. `answered` is done as soon as the answer is.
    """

    __slots__ = ("_body", "_headers", "_left", "_most", "_outer", "_over", "_status", "answered")

    def __init__(self, body: bytes, most: int, outer: Receive | None = None) -> None:
        self.answered: asyncio.Future[PageAnswer] = asyncio.get_running_loop().create_future()
        self._left: bytes | None = body
        self._most = most
        self._outer = outer
        self._over = asyncio.Event()
        self._status = 500
        self._headers: RawHeaders = ()
        self._body = bytearray()

    async def receive(self) -> Message:
        if self._left is not None:
            body, self._left = self._left, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._until_over()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if self._over.is_set():
            await asyncio.sleep(0)  # one that sends without end and never waits can be stopped here
        elif message["type"] == "http.response.start":
            self._status, self._headers = message["status"], tuple(message.get("headers", ()))
        elif message["type"] == "http.response.body":
            self._body += message.get("body", b"")
            if self.is_cut or not message.get("more_body", False):
                self._conclude()

    @property
    def is_cut(self) -> bool:
        """Whether the answer is longer than was allowed."""
        return len(self._body) > self._most

    def hang_up(self) -> None:
        """Nobody waits for the answer any more."""
        self._over.set()

    def collected(self) -> PageAnswer:
        """What has come so far; status 500 if nothing has."""
        return PageAnswer(self._status, self._headers, bytes(self._body), not self.is_cut)

    def _conclude(self) -> None:
        self._over.set()
        if not self.answered.done():  # who waited for it may have been cancelled
            self.answered.set_result(self.collected())

    async def _until_over(self) -> None:
        if self._outer is None:
            await self._over.wait()
            return
        async with asyncio.TaskGroup() as group:
            waiting = {group.create_task(self._over_here()), group.create_task(wait_for_hang_up(self._outer))}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in waiting:
                task.cancel()

    async def _over_here(self) -> None:
        await self._over.wait()
