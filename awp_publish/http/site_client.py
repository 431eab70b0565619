"""Lets doors over WebSocket request the site's own pages, in this process.

The requests pass the whole application like a visitor's, so that sessions, authentication and all other middleware
apply. Only the client's address is taken from the connection.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from awp_publish.browsing.errors import AwpError
from awp_publish.browsing.page import Fetch, Fetched
from awp_publish.http.exchange import AsgiApp, Scope
from awp_publish.http.page_request import FORWARDED, PageExchange, PageRequest
from awp_publish.http.tasks import OwnedTasks


@dataclass(frozen=True, slots=True)
class SiteClient:
    """Sends one connection's requests to the site's pages, as a visitor with the session's cookies.

    They pass the whole application. From the WebSocket's own request, `scope`, they take the client's address and the
    lifespan state, but no credentials. `prefix` is the path of the site's public address, `max_bytes` the maximum that
    is read of an answer, `address` the client's address, "" if unknown. `tasks` owns requests that continue after their
    answer, as with an application's background tasks.
    """

    app: AsgiApp
    scope: Scope
    prefix: str
    max_bytes: int
    tasks: OwnedTasks
    address: str = ""

    async def fetch(self, fetch: Fetch, members: Mapping[str, object] | None = None) -> Fetched:
        """Send a request. `members` are additional members of its scope. Raises AwpError NAVIGATION_FAILED.

        Returns when the answer is complete or exceeds `max_bytes`; in the latter case, only its beginning is returned.
        """
        target, _, query = fetch.path.partition("?")
        # The scope's own mount point is added below: proxies may have removed the prefix, and servers may not.
        path, prefix = target.encode("latin-1", "replace"), self.prefix.encode("latin-1", "replace")
        if path != prefix and not path.startswith(prefix + b"/"):
            raise AwpError("NAVIGATION_FAILED", "The address is not one of this site.", {"reason": "foreign_address"})
        own = ((name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in fetch.headers)
        request = PageRequest(
            urlsplit(fetch.origin),
            path.removeprefix(prefix),
            query.encode("latin-1", "replace"),
            (*own, *(pair for pair in self.scope["headers"] if pair[0] in FORWARDED)),
            fetch.method,
            fetch.body,
            self.scope.get("state", {}),
        )
        scope = {**request.scope(self.scope), **(members or {})}
        exchange = PageExchange(fetch.body, self.max_bytes)

        async def run() -> None:
            try:
                await self.app(scope, exchange.receive, exchange.send)
            finally:
                if not exchange.answered.done():  # returned or raised without an answer: a server would send a 500
                    details = {"status": 500, "reason": "no_answer"}
                    failure = AwpError("NAVIGATION_FAILED", "The site failed to answer.", details)
                    exchange.answered.set_exception(failure)

        task = self.tasks.start(run(), "a page that was browsed")
        try:
            answer = await exchange.answered
        finally:
            if exchange.is_cut or exchange.answered.cancelled():  # nobody waits for more
                exchange.hang_up()
                task.cancel()
            elif not task.done():
                self.tasks.let_finish(task)
        headers = tuple((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in answer.headers)
        return Fetched(answer.status, headers, answer.body)
