"""Runs a call inside a request of its caller's that has other cookies or headers than the caller has sent.

If middleware of the site runs outside of us, the request enters through it again, so that it recognizes agents as it
recognizes visitors.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from awp_publish.calls.call import Call, Deliver, Result
from awp_publish.http.dispatch import NOT_CARRIED, ROUTE_CALL, come_from_outside, read_answer
from awp_publish.http.exchange import Scope
from awp_publish.http.in_process import Outside, SessionPass
from awp_publish.problems import HandlerFailed

logger: Final = logging.getLogger("awp_publish.calls")

FAILED: Final = "a request with the cookies of a session failed (request_id=%s)"

Run: TypeAlias = Callable[[Call, Deliver], Awaitable[None]]
"""Runs a call through its gates and its handler."""

PutScope: TypeAlias = Callable[[Call, Scope], None]
"""Makes a call one of the request with this scope."""


class Reentry:
    """The way of calls back through the application. `outside` is None if nothing runs outside of us."""

    def __init__(self, outside: Outside | None) -> None:
        self.outside = outside

    async def run(self, run: Run, call: Call, deliver: Deliver, scope: Scope, put: PutScope, taken: list[str]) -> None:
        """Run a call inside the request with this scope. `taken` receives the cookies that outer middleware sets."""
        put(call, scope)
        if self.outside is None:
            await run(call, deliver)
            return
        results = list[Result]()

        async def arrive(inner: Scope, answer: Callable[[], Awaitable[None]]) -> None:
            async def deliver_inside(result: Result) -> None:
                results.append(result)
                await answer()  # through the outer middleware, which may set cookies

            put(call, inner)
            await run(call, deliver_inside)

        passing = SessionPass(arrive)
        entering = asyncio.ensure_future(self.enter(passing, scope, call.request_id))
        try:
            await passing.wait(entering)
            taken += passing.set_cookies
            if results:
                await deliver(results[0])
            elif not passing.has_arrived:  # outer middleware has answered or failed
                refused = 300 <= passing.status < 600
                failure = HandlerFailed("The site failed before the action was called.")
                await deliver(read_answer(call, passing.status, (), b"", {}) if refused else failure)
        except asyncio.CancelledError:
            entering.cancel()
            raise
        finally:
            await asyncio.wait({entering})  # the handler may continue after its answer
        if not entering.cancelled() and (error := entering.exception()) is not None:
            logger.error(FAILED, call.request_id, exc_info=error)

    async def see(self, scope: Scope) -> Scope:
        """Return the scope of a request as outer middleware sets it."""
        if self.outside is None:
            return scope
        seen = [scope]

        async def arrive(inner: Scope, answer: Callable[[], Awaitable[None]]) -> None:
            seen.append(inner)

        try:
            await self.enter(SessionPass(arrive), scope, "")
        except Exception:
            logger.exception(FAILED, "")
        return seen[-1]

    async def enter(self, passing: SessionPass, scope: Scope, request_id: str) -> None:
        """Send a request with this scope through the outer middleware."""
        outside = self.outside
        assert outside is not None
        carried = {name: scope[name] for name in outside.carried if name in scope}
        headers = [pair for pair in scope["headers"] if pair[0] not in NOT_CARRIED]
        fresh = {**come_from_outside({**scope, "headers": headers}, outside.state(), request_id), **carried}
        fresh[ROUTE_CALL] = passing
        await outside.app(fresh, passing.receive, passing.send)
