"""How the AWP door reaches the site's own pages: one in-process ASGI request through the whole application.

The request is made anew and comes in from outside, as a visitor's does, so that sessions, authentication and all other
middleware hold. Of the WebSocket's own request it has the client's address and the state of the lifespan, no
credentials. No other host is ever asked: the address is only split here, never connected to.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote_to_bytes, urlsplit

from awp_publish.browsing.errors import AwpError
from awp_publish.browsing.fetching import Fetch, Fetched
from awp_publish.serve.reply import AsgiApp, Message, RawHeaders, Scope, route_path

logger: Final = logging.getLogger("awp_publish.calls")

_FORWARDED: Final = (b"x-forwarded-for", b"forwarded", b"x-real-ip")
"""What proxies have said of the client's address holds for its pages too."""

_DEFAULT_PORTS: Final = {"https": 443, "http": 80}


class Tails:
    """Requests that go on after their answer, as background tasks of an application do: they have an owner."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, task: "asyncio.Task[None]") -> None:
        """Look after a task from now on."""
        self._tasks.add(task)
        task.add_done_callback(self._forget)

    async def end(self) -> None:
        """Cancel those that still run, and wait for them."""
        running = tuple(self._tasks)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)

    def _forget(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a page that was browsed failed", exc_info=error)


@dataclass(frozen=True, slots=True)
class Surface:
    """Where one connection's requests come in: the application, and what its own request said of the client.

    `prefix` is the path of the site's public address, `mounted` the path under which the application itself stands.
    """

    app: AsgiApp
    scope: Scope
    prefix: str
    most_bytes: int
    tails: Tails

    async def fetch(self, fetch: Fetch, members: Mapping[str, object] | None = None) -> Fetched:
        """Ask the site. `members` are further members of the scope. Raises AwpError NAVIGATION_FAILED.

        Returns as soon as the answer is complete, or longer than any page may be; then its beginning is returned.
        """
        exchange = _Exchange(fetch.body, self.most_bytes)
        scope = {**self._scope_of(fetch), **(members or {})}
        task = asyncio.create_task(_run(self.app, scope, exchange), name="awp_publish browsing")
        self.tails.add(task)
        try:
            return await exchange.answered
        except asyncio.CancelledError:
            exchange.hang_up()
            task.cancel()
            raise
        finally:
            if exchange.is_cut:
                task.cancel()

    def _scope_of(self, fetch: Fetch) -> Scope:
        outer, origin = self.scope, urlsplit(fetch.origin)
        path, _, query = fetch.path.partition("?")
        inside = self._inside(path.encode("latin-1", "replace"))
        headers = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in fetch.headers]
        if fetch.body:
            headers.append((b"content-length", b"%d" % len(fetch.body)))
        headers += [pair for pair in outer["headers"] if pair[0] in _FORWARDED]
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": fetch.method,
            "scheme": origin.scheme,
            "path": unquote_to_bytes(inside).decode("utf-8", "replace"),
            "raw_path": inside,
            "query_string": query.encode("latin-1", "replace"),
            "root_path": outer.get("root_path", ""),
            "headers": headers,
            "server": (origin.hostname or "", origin.port or _DEFAULT_PORTS.get(origin.scheme, 80)),
            "client": outer.get("client"),
            "state": dict(outer.get("state", {})),
            "extensions": {},
        }

    def _inside(self, path: bytes) -> bytes:
        """A public path as the application knows it: a proxy may have taken the site's prefix off, or a server not."""
        prefix, whole = self.prefix.encode("latin-1", "replace"), self.scope["path"]
        mounted = whole[: len(whole) - len(route_path(self.scope))].encode("utf-8")
        if path != prefix and not path.startswith(prefix + b"/"):
            raise AwpError("NAVIGATION_FAILED", "The address is not one of this site.", {"reason": "foreign_address"})
        return mounted + path.removeprefix(prefix) or b"/"


async def _run(app: AsgiApp, scope: Scope, exchange: "_Exchange") -> None:
    try:
        await app(scope, exchange.receive, exchange.send)
    finally:
        exchange.end()


class _Exchange:
    """The two ends of one in-process request: hands out its body, collects its answer."""

    __slots__ = ("_body", "_gone", "_headers", "_left", "_most", "_status", "answered", "is_cut")

    def __init__(self, body: bytes, most: int) -> None:
        self.answered: asyncio.Future[Fetched] = asyncio.get_running_loop().create_future()
        self.is_cut = False
        self._left: bytes | None = body
        self._most = most
        self._gone = asyncio.Event()
        self._status = 0
        self._headers: RawHeaders = ()
        self._body = bytearray()

    async def receive(self) -> Message:
        if self._left is not None:
            body, self._left = self._left, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if self.answered.done():
            return
        if message["type"] == "http.response.start":
            self._status, self._headers = message["status"], tuple(message.get("headers", ()))
        elif message["type"] == "http.response.body":
            self._body += message.get("body", b"")
            self.is_cut = len(self._body) > self._most
            if self.is_cut or not message.get("more_body", False):
                self._conclude()

    def hang_up(self) -> None:
        """Nobody waits for the answer any more."""
        self._gone.set()

    def end(self) -> None:
        """The application has returned, or raised; a server would answer for it if it has not done so itself."""
        if not self.answered.done():
            details = {"status": 500, "reason": "no_answer"}
            self.answered.set_exception(AwpError("NAVIGATION_FAILED", "The site failed to answer.", details))

    def _conclude(self) -> None:
        self._gone.set()
        headers = tuple((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in self._headers)
        self.answered.set_result(Fetched(self._status, headers, bytes(self._body)))
