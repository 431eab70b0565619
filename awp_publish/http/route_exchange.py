"""The ASGI exchange of a call with its route."""

from collections.abc import Mapping, MutableMapping
from typing import Final, cast

from awp_publish.calls.call import Call, Outcome, Result
from awp_publish.http.exchange import AsgiApp, Exchange, Receive, Scope, Send
from awp_publish.http.route_answers import read_answer
from awp_publish.model import Action, JsonObject, Target
from awp_publish.problems import HandlerRedirected

CONNECTION_MEMBERS: Final = ("asgi", "http_version", "scheme", "server", "client", "root_path")


class RouteCall(Exchange):
    """The ASGI exchange of a call with its route, and what the scope of the request says of the call.

    The answer becomes that of the call. A streamed one goes to the caller as it comes, if it takes that.
    """

    __slots__ = ("_call", "_codes", "_head", "_session", "outer_session", "session_cookies")
    session_cookies: frozenset[bytes]

    def __init__(self, call: Call, request: bytes, codes: Mapping[str, str]) -> None:
        super().__init__(request)
        self._call = call
        self._codes = codes
        self._head: Result | None = None
        self._session: object = None
        self.outer_session: object = None

    @property
    def request_id(self) -> str:
        """The request id that problems contain."""
        return self._call.request_id

    @property
    def target(self) -> Target | None:
        """The action's own route."""
        return self._call.action.target

    @property
    def action(self) -> Action:
        """The action that is called."""
        return self._call.action

    @property
    def input(self) -> JsonObject:
        """The call's input."""
        return self._call.input

    @property
    def hidden(self) -> object:
        """The endpoint of a hidden route if the request is for one, None if it is for the action's own route."""
        entry = self._call.action.entry
        return entry.arrival.endpoint if entry is not None and entry.arrival is not None else None

    def mark_misrouted(self) -> None:
        """Note that the routing has chosen another route than the action's own: the call is refused."""
        self.is_closed = True

    @property
    def is_fresh(self) -> bool:
        """True if the request has to enter through all middleware, even if that is trusted."""
        return self._call.is_fresh

    async def ask(self, scope: Scope) -> bool:
        """Return whether the call may go on to its route, with the scope that all middleware has made."""
        on_arrival, self._call.on_arrival = self._call.on_arrival, None
        return on_arrival is None or await on_arrival(scope)

    async def arrive(self, app: AsgiApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Continue to the route after the request has passed the middleware outside of us."""
        self._session = scope.get("session")
        await app(scope, receive, send)

    async def ended(self) -> None:
        if self._call.disconnected is not None:
            await self._call.disconnected()

    async def take(self, part: bytes) -> bool:
        if (on_part := self._call.on_part) is None:
            return False
        if self._head is None:
            if self.outer_session is not None:
                self._copy_session_out()
            self._head = read_answer(self._call, self.status, self.headers, part, self._codes)
        head = self._head
        is_text = isinstance(head, Outcome) and head.content is not None and not head.redirect
        return is_text and await on_part(cast(Outcome, head), part)

    def end(self, body: bytes) -> None:
        if self.is_streamed:
            self._call.answer = Outcome(b"", None, cast(Outcome, self._head).status, is_streamed=True)
            return
        if self.outer_session is not None:
            self._copy_session_out()
        answer = read_answer(self._call, self.status, self.headers, body, self._codes)
        if not isinstance(answer, HandlerRedirected):  # a read is answered by what is at that address
            self._call.answer = answer

    def _copy_session_out(self) -> None:
        """Copy the route's session into that of the caller's own request, whose middleware saves its session later."""
        outer, inner = self.outer_session, self._session
        if outer is inner or not isinstance(outer, MutableMapping) or not isinstance(inner, Mapping):
            return
        if dict(outer) != dict(inner):
            outer.clear()
            outer.update(inner)
        # That middleware also sets the cookie, and a response sets each cookie once (RFC 6265 section 4.1.1).
        written = self.session_cookies
        self.headers = [
            (name, value)
            for name, value in self.headers
            if name.lower() != b"set-cookie" or value.partition(b"=")[0].strip() not in written
        ]


class Rehearsal(RouteCall):
    """An exchange that only runs the route's security checks. Its answer does not become the call's answer."""

    __slots__ = ()

    @property
    def hidden(self) -> object:
        return self._call.action.rehearsal

    def end(self, body: bytes) -> None:
        """Do nothing: this is not the answer of the call."""


def come_from_outside(scope: Scope, state: Mapping[str, object], request_id: str) -> Scope:
    """Return the scope as the server would have made it, without the members that outer middleware has added."""
    names = ("type", "method", "path", "raw_path", "query_string", "headers", "extensions", *CONNECTION_MEMBERS)
    fresh: Scope = {name: scope[name] for name in names if name in scope}
    if all(name != b"x-request-id" for name, _ in scope["headers"]):
        fresh["headers"].append((b"x-request-id", request_id.encode("latin-1")))
    if "state" in scope:
        fresh["state"] = dict(state)
    return fresh
