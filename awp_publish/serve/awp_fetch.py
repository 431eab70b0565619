"""How the AWP door reaches the site's own pages: as a visitor does who has the session's cookies.

Requests come in from outside, so that sessions, authentication and all other middleware hold. Of the WebSocket's own
request they have the client's address and the state of the lifespan, no credentials. An answer is given on as soon as
it is complete; what a page does after it is done to its end.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from awp_publish.browsing.errors import AwpError
from awp_publish.browsing.page import Fetch, Fetched
from awp_publish.serve.page_fetch import FORWARDED, PageAnswer, PageExchange, PageRequest
from awp_publish.serve.reply import AsgiApp, Scope

logger: Final = logging.getLogger("awp_publish.calls")


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

    `prefix` is the path of the site's public address, `most_bytes` how much of an answer is read, `address` that of the
    client, "" where it is not known.
    """

    app: AsgiApp
    scope: Scope
    prefix: str
    most_bytes: int
    tails: Tails
    address: str = ""

    async def fetch(self, fetch: Fetch, members: Mapping[str, object] | None = None) -> Fetched:
        """Ask the site. `members` are further members of the scope. Raises AwpError NAVIGATION_FAILED.

        Returns as soon as the answer is complete, or longer than any page may be; then its beginning is returned.
        """
        exchange = PageExchange(fetch.body, self.most_bytes)
        scope = {**self._request_of(fetch).scope(self.scope), **(members or {})}
        task = asyncio.create_task(_run(self.app, scope, exchange), name="awp_publish browsing")
        self.tails.add(task)
        try:
            return _told(await exchange.answered)
        except asyncio.CancelledError:
            exchange.hang_up()
            task.cancel()
            raise
        finally:
            if exchange.is_cut:
                task.cancel()

    def _request_of(self, fetch: Fetch) -> PageRequest:
        """The session's own request, with its cookies; of the WebSocket's what proxies say, and its state."""
        path, _, query = fetch.path.partition("?")
        own = ((name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in fetch.headers)
        return PageRequest(
            urlsplit(fetch.origin),
            self._inside(path.encode("latin-1", "replace")),
            query.encode("latin-1", "replace"),
            (*own, *(pair for pair in self.scope["headers"] if pair[0] in FORWARDED)),
            fetch.method,
            fetch.body,
            self.scope.get("state", {}),
        )

    def _inside(self, path: bytes) -> bytes:
        """A public path as the application knows it: a proxy may have taken the site's prefix off, or a server not."""
        prefix = self.prefix.encode("latin-1", "replace")
        if path != prefix and not path.startswith(prefix + b"/"):
            raise AwpError("NAVIGATION_FAILED", "The address is not one of this site.", {"reason": "foreign_address"})
        return path.removeprefix(prefix)


async def _run(app: AsgiApp, scope: Scope, exchange: PageExchange) -> None:
    """The application has returned, or raised; a server would answer for it if it has not done so itself."""
    try:
        await app(scope, exchange.receive, exchange.send)
    finally:
        if not exchange.answered.done():
            details = {"status": 500, "reason": "no_answer"}
            exchange.answered.set_exception(AwpError("NAVIGATION_FAILED", "The site failed to answer.", details))


def _told(answer: PageAnswer) -> Fetched:
    headers = tuple((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in answer.headers)
    return Fetched(answer.status, headers, answer.body)
