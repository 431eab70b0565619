"""Runs a call inside a request of its caller's that has other cookies or headers than the caller has sent.

If middleware of the site runs outside of us, the request enters through it again, so that it recognizes agents as it
recognizes visitors.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from awp_publish.calls.call import Call, Deliver, Result
from awp_publish.http.encoding import NOT_CARRIED
from awp_publish.http.exchange import AsgiApp, Exchange, Receive, Scope, Send
from awp_publish.http.position import CalledApplication
from awp_publish.http.route_answers import read_answer
from awp_publish.model import ROUTE_CALL
from awp_publish.problems import HandlerFailed

logger: Final = logging.getLogger("awp_publish.calls")

FAILED: Final = "a request with the cookies of a session failed (request_id=%s)"

Run: TypeAlias = Callable[[Call, Deliver], Awaitable[None]]
"""Runs a call through its gates and its handler."""

PutScope: TypeAlias = Callable[[Call, Scope], None]
"""Makes a call one of the request with this scope."""


class SessionPass(Exchange):
    """A request through the middleware outside of us. `arrived` is called with its scope when it reaches us."""

    target = None

    def __init__(self, arrived: Callable[[Scope, Callable[[], Awaitable[None]]], Awaitable[None]]) -> None:
        super().__init__(b"")
        self._arrived = arrived
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.has_arrived = False

    async def arrive(self, app: AsgiApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Call `arrived`, and answer the request: when `arrived` asks for that, at the latest when it returns."""
        self.has_arrived, is_answered = True, False
        scope.pop(ROUTE_CALL)

        async def answer() -> None:
            nonlocal is_answered
            is_answered = True
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body", "body": b""})

        await self._arrived(scope, answer)
        if not is_answered:
            await answer()

    @property
    def set_cookies(self) -> list[str]:
        """The cookies that the middleware outside of us sets."""
        return [value.decode("latin-1") for name, value in self.headers if name.lower() == b"set-cookie"]

    async def wait(self, entering: "asyncio.Future[None]") -> None:
        """Return when the request is answered or its task has ended."""
        entering.add_done_callback(lambda _: self.end())
        await self._ended

    async def ended(self) -> None:
        await asyncio.wait({self._ended})

    def end(self, body: bytes = b"") -> None:
        if not self._ended.done():
            self._ended.set_result(None)


class Reentry:
    """The way of calls back through the application. `outside` is None if nothing runs outside of us."""

    def __init__(self, called: CalledApplication) -> None:
        self._called = called
        self.outside = called.outside or (called.inside if called.carried else None)

    async def run(self, run: Run, call: Call, deliver: Deliver, scope: Scope, put: PutScope, taken: list[str]) -> None:
        """Run a call inside the request with this scope. `taken` receives the cookies that outer middleware sets."""
        put(call, scope)
        if self.outside is None:
            await run(call, deliver)
            return
        results: list[Result] = []

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
        scopes = [scope]

        async def arrive(inner: Scope, answer: Callable[[], Awaitable[None]]) -> None:
            scopes.append(inner)

        try:
            await self.enter(SessionPass(arrive), scope, "")
        except Exception:
            logger.exception(FAILED, "")
        return scopes[-1]

    async def enter(self, passing: SessionPass, scope: Scope, request_id: str) -> None:
        """Send a request with this scope through the outer middleware."""
        assert self.outside is not None
        called = self._called
        carried = {name: scope[name] for name in called.carried if name in scope}
        headers = [pair for pair in scope["headers"] if pair[0] not in NOT_CARRIED]
        fresh = {**called.from_outside({**scope, "headers": headers}, request_id), **carried}
        fresh[ROUTE_CALL] = passing
        await self.outside(fresh, passing.receive, passing.send)
