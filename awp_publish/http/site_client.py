"""Lets doors over WebSocket request the site's own pages and call its actions, in this process.

The requests pass the whole application like a visitor's, so that sessions, authentication and all other middleware
apply. Only the client's address and, for calls, its credentials are taken from the connection.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from awp_publish.browsing.addresses import parse_address
from awp_publish.browsing.errors import AwpError
from awp_publish.browsing.page import Fetch, Fetched, Steps
from awp_publish.calls.call import Call, RawHeaders, Result, Signed
from awp_publish.calls.invoke import Invoker
from awp_publish.http.credentials import read_credentials
from awp_publish.http.endpoint import read_admission
from awp_publish.http.exchange import AsgiApp, Pair, Receive, Scope, Send, read_fields, wait_for_disconnect, with_header
from awp_publish.http.in_process import FORWARDED, PageExchange, PageRequest
from awp_publish.http.lifespan import OwnedTasks
from awp_publish.http.signed import SIGNED
from awp_publish.model import Action, JsonObject
from awp_publish.plugin import Context
from awp_publish.problems import HandlerFailed, InvalidEnvelope, Problem

if TYPE_CHECKING:
    from awp_publish.browsing.session import Session

# --- Requests of a session to the site's own pages ---


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


# --- Methods of a session ---

INLINE_LIMIT: Final = 64_000
"""Bytes up to which a page is parsed on the event loop instead of in a thread."""

_READERS: Final = ThreadPoolExecutor(2, "awp_publish browsing")
"""A separate pool of few threads, so that agents' pages do not delay those of visitors."""


def has_large_page(session: "Session") -> bool:
    """Return True if a page of a session is large, so that a step may take long to parse it again."""
    shown = (tab.history.current for tab in session.tabs.values())
    return any(one is not None and one.page is not None and len(one.page.html) > INLINE_LIMIT for one in shown)


async def drive(
    steps: Steps,
    fetch: Callable[[Fetch], Awaitable[Fetched]],
    method: str,
    seconds: float,
    *,
    in_thread: bool = False,
    alone: asyncio.Lock | None = None,
) -> JsonObject:
    """Run the steps of a method and return its result. Raises its AwpError, or TIMEOUT, which leaves its page as is.

    `in_thread` runs all steps in a thread. The lock `alone` is held during each step, but not during fetches.
    """

    def advance(fetched: Fetched | None) -> Fetch | JsonObject:
        try:
            return next(steps) if fetched is None else steps.send(fetched)
        except StopIteration as end:  # cannot be raised out of a thread
            result: JsonObject = end.value
            return result

    fetched, is_large = None, in_thread
    try:
        async with asyncio.timeout(seconds):
            while True:
                async with alone or nullcontext():
                    if is_large:
                        job = _READERS.submit(advance, fetched)
                        advancing = asyncio.wrap_future(job)
                        try:
                            step = await asyncio.shield(advancing)
                        except asyncio.CancelledError:
                            # A thread cannot be interrupted, and `steps` can only be closed after it has ended.
                            if not job.cancel():
                                await asyncio.wait({advancing})
                            raise
                    else:
                        step = advance(fetched)
                if not isinstance(step, Fetch):
                    return step
                fetched = await fetch(step)
                is_large = in_thread or len(fetched.body) > INLINE_LIMIT
    except TimeoutError:
        details = {"timeout_ms": round(seconds * 1000), "method": method}
        raise AwpError("TIMEOUT", f"{method} took longer than {seconds:g} seconds.", details) from None
    finally:
        steps.close()


# --- Calls of actions ---
# A call is sent in a request through the whole application, as at the HTTP doors: with the connection's credentials
# and, if it has a browsing session, with that session's cookies, which are updated by the answer. So a caller that has
# signed in on a page is signed in for actions, and vice versa. The call is in the request's scope, which only this
# process can write.

INNER_CALL: Final = "awp_publish.inner_call"
"""The scope member that contains a call."""

_OF_UPGRADE: Final = (
    b"accept",
    b"connection",
    b"content-",
    b"host",
    b"origin",
    b"sec-",
    b"transfer-",
    b"upgrade",
    b"x-request-id",
)
"""Prefixes of headers that describe the upgrade request and not its caller."""


@dataclass(slots=True)
class InnerCall:
    """A call that is sent through the application, and its result.

    `members` are envelope members other than the input. `invoker` runs the call, the door's own if None. `unknown`
    makes the door's problem for an unknown action; `objection` is a problem that the door has found in the request.
    """

    action: Action
    given: JsonObject
    members: Mapping[str, object]
    trace: str
    signed: Signed | None = None
    conversation: str | None = None
    has_cookie_jar: bool = False
    invoker: Invoker | None = None
    unknown: Callable[[], Problem] | None = None
    objection: Problem | None = None
    call: Call | None = None
    result: Result | None = None


class InnerCalls:
    """Sends the calls of one door through the application, to the door's own path."""

    def __init__(self, door: Context, protocol: str, path: str, places: Mapping[str, str]) -> None:
        self._catalog, self._invoker, self._protocol, self._places = door.catalog, door.invoker, protocol, places
        self._path, self._proxies = path, door.admission.trusted_proxies

    async def send(
        self, inner_call: InnerCall, site: SiteClient, header: Pair | None = None, session: "Session | None" = None
    ) -> tuple[Result, RawHeaders]:
        """Send a call in a request through the whole application. Returns the result and the headers that gates add.

        With a browsing session, its cookies for the action's address are used and the connection's are not.
        """
        action, catalog = inner_call.action, self._catalog
        home = parse_address(catalog.absolute(self._path))
        own = action.target.path if action.target is not None else catalog.invoke_path_of(action)
        goal = parse_address(catalog.absolute(own))  # whose cookies these are
        headers = [("host", home.authority), ("content-type", "application/json"), ("x-request-id", inner_call.trace)]
        for name, value in with_header(site.scope["headers"], header):
            if not name.startswith(_OF_UPGRADE):  # the others may be credentials
                headers.append((name.decode("latin-1"), value.decode("latin-1")))
        if session is not None:
            inner_call.has_cookie_jar = True
            browser = session.browser
            visitor = {"user-agent": browser.user_agent, "cookie": browser.jar.header_for(goal, browser.clock())}
            headers = [*(pair for pair in headers if pair[0] not in visitor), *visitor.items()]
        keys = {one.name for one in action.route_credentials if one.place == "query"}
        pairs = parse_qsl(site.scope.get("query_string", b"").decode("latin-1")) if keys else []
        query = urlencode([pair for pair in pairs if pair[0] in keys])  # API keys of the caller, which are not inputs
        fetch = Fetch(
            "POST",
            f"{home.target}?{query}" if query else home.target,
            tuple(pair for pair in headers if pair[1]),
            b"{}",
            home.origin,
        )
        # What was signed of the upgrade was checked once, for all that is sent through it.
        fetched = await site.fetch(fetch, {INNER_CALL: inner_call, SIGNED: site.scope.setdefault(SIGNED, {})})
        if session is not None:
            session.browser.jar.store_from(fetched.headers, goal, session.browser.clock())
        result, added = inner_call.result, inner_call.call.headers if inner_call.call is not None else ()
        inner_call.call = None  # break the reference cycle
        if result is None and fetched.status >= 500:  # outer middleware has answered, and the call was never made
            result = HandlerFailed("The site failed before the action was called.")
        elif result is None:
            detail = f"The site refused the request before the action was called, with status {fetched.status}."
            result = InvalidEnvelope(detail, status=fetched.status if fetched.status >= 400 else 403)
        return result, added

    async def answer(self, inner_call: InnerCall, scope: Scope, receive: Receive, send: Send) -> None:
        """Run a call that has arrived through the application, and put its result on `inner_call`."""
        action, trace, disconnected = inner_call.action, inner_call.trace, partial(wait_for_disconnect, receive)
        invoker = inner_call.invoker or self._invoker
        call = inner_call.call = Call(action, inner_call.given, trace, self._protocol, scope, disconnected)
        call.places = self._places
        call.unknown, call.objection = inner_call.unknown or call.unknown, inner_call.objection
        call.conversation, call.has_cookie_jar = inner_call.conversation, inner_call.has_cookie_jar

        async def deliver(result: Result) -> None:
            inner_call.result = result
            set_cookies = [pair for pair in result.headers if pair[0] == b"set-cookie"]
            await send({"type": "http.response.start", "status": 204, "headers": set_cookies})
            await send({"type": "http.response.body", "body": b""})

        if action.id in invoker.guarded:
            fields = read_fields(scope["headers"])
            credentials = read_credentials(scope, fields, self._proxies)._replace(signed=inner_call.signed)
            call.credentials = lambda: credentials
            try:
                read_admission(call, inner_call.members, {})
            except Problem as problem:
                if action.is_public:
                    self._invoker.note_refusal(self._protocol, trace, problem)
                    await deliver(problem)
                    return
                call.refuse(problem)
        await invoker.run(call, deliver)
