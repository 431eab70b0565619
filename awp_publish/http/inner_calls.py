"""Calls of actions by doors over WebSocket, each sent in a request through the whole application.

As at the HTTP doors, a call has the connection's credentials and, if there is a browsing session, that session's
cookies, which are updated by the answer. So a caller that has signed in on a page is signed in for actions, and vice
versa. The call is in the request's scope, which only this process can write.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlencode

from awp_publish.browsing.addresses import parse_address
from awp_publish.browsing.page import Fetch
from awp_publish.calls.call import Call, Conversation, RawHeaders, Result, Signed
from awp_publish.calls.invoke import Invoker
from awp_publish.http.body import wait_for_disconnect
from awp_publish.http.calling import Calls, Dialect
from awp_publish.http.exchange import Fields, Pair, Receive, Scope, Send, read_fields, with_header
from awp_publish.http.signed import SIGNED
from awp_publish.http.site_client import SiteClient
from awp_publish.model import Action, JsonObject
from awp_publish.plugin import Context
from awp_publish.problems import HandlerFailed, InvalidEnvelope, Problem

if TYPE_CHECKING:
    from awp_publish.browsing.session import Session

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
    b"idempotency-key",
    b"awp-",
)
"""Prefixes of headers that describe the upgrade request, not its caller. Messages say what accompanies a call."""


@dataclass(slots=True)
class InnerCall:
    """A call that is sent through the application, and its result.

    `members` are envelope members other than the input. `invoker` runs the call, the door's own if None. `unknown`
    makes the door's problem for an unknown action; `size` is that of the caller's message, in bytes.
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
    size: int = 0
    call: Call | None = None
    result: Result | None = None


class InnerCalls:
    """Sends the calls of one door through the application, to the door's own path."""

    def __init__(self, door: Context, protocol: str, path: str, dialect: Dialect) -> None:
        self._catalog, self._invoker, self._path = door.catalog, door.invoker, path
        self._calls_of = partial(Calls, protocol, admission=door.admission, dialect=dialect)
        self._calls: dict[Invoker, Calls] = {}

    async def send(
        self, inner_call: InnerCall, site: SiteClient, header: Pair | None = None, session: "Session | None" = None
    ) -> tuple[Result, RawHeaders]:
        """Send a call in a request through the whole application. Returns the result and the headers that gates add.

        With a browsing session, its cookies for the action's address are used and the connection's are not.
        """
        action, catalog = inner_call.action, self._catalog
        home = parse_address(catalog.absolute(self._path))
        headers = [("host", home.authority), ("content-type", "application/json"), ("x-request-id", inner_call.trace)]
        for name, value in with_header(site.scope["headers"], header):
            if not name.startswith(_OF_UPGRADE):  # the others may be credentials
                headers.append((name.decode("latin-1"), value.decode("latin-1")))
        if session is not None:
            inner_call.has_cookie_jar = True
            browser = session.browser
            own = action.target.path if action.target is not None else catalog.invoke_path_of(action)
            goal = parse_address(catalog.absolute(own))  # whose cookies these are
            visitor = {"user-agent": browser.user_agent, "cookie": browser.jar.header_for(goal, browser.clock())}
            headers = [*(pair for pair in headers if pair[0] not in visitor), *visitor.items()]
        keys = {credential.name for credential in action.route_credentials if credential.place == "query"}
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
        invoker = inner_call.invoker or self._invoker
        calls = self._calls.get(invoker)
        if calls is None:
            calls = self._calls[invoker] = self._calls_of(invoker)

        async def deliver(result: Result) -> None:
            inner_call.result = result
            set_cookies = [pair for pair in result.headers if pair[0] == b"set-cookie"]
            await send({"type": "http.response.start", "status": 204, "headers": set_cookies})
            await send({"type": "http.response.body", "body": b""})

        source = _InnerRequest(scope, inner_call.trace, receive)
        try:
            call = inner_call.call = calls.make(
                inner_call.action,
                inner_call.given,
                source,
                inner_call.members,
                size=inner_call.size,
                unknown=inner_call.unknown,
            )
        except Problem as problem:
            self._invoker.note_refusal(calls.door, inner_call.trace, problem)
            await deliver(problem)
            return
        if inner_call.signed is not None and call.has_credentials:
            read, signed = call.credentials, inner_call.signed
            call.credentials = lambda: read()._replace(signed=signed)
        if inner_call.conversation is not None:
            call.conversation = Conversation(inner_call.conversation)
        call.has_cookie_jar = inner_call.has_cookie_jar
        await invoker.run(call, deliver)


@dataclass
class _InnerRequest:
    scope: Scope
    request_id: str
    receive: Receive

    @cached_property
    def fields(self) -> Fields:
        """The headers of the request, which only calls with gates need."""
        return read_fields(self.scope["headers"])

    async def disconnected(self) -> None:
        await wait_for_disconnect(self.receive)
