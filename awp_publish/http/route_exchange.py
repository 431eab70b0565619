"""The ASGI exchange of a call with its route."""

from collections.abc import Mapping, MutableMapping
from typing import cast

from awp_publish.calls.call import Call, Outcome, Result
from awp_publish.http.exchange import AsgiApp, Exchange, Headers, Receive, Scope, Send
from awp_publish.http.route_answers import read_answer
from awp_publish.problems import HandlerRedirected


class RouteExchange(Exchange):
    """The ASGI exchange of a call with its route. The scope of its request has it, as `ROUTE_CALL`.

    The answer becomes that of the call. A streamed one goes to the caller as it comes, if it takes that. `hidden` is
    the endpoint of the hidden route for which the request is, None if it is for the action's own route. `outer_session`
    is the session of the caller's own request, and `session_cookies` are the cookies in which it is kept. `kept` are
    the headers of the answer that set these, and do not go to the caller.
    """

    __slots__ = ("_codes", "_head", "_session", "call", "hidden", "kept", "outer_session", "session_cookies")
    session_cookies: frozenset[bytes]

    def __init__(self, call: Call, request: bytes, codes: Mapping[str, str], hidden: object = None) -> None:
        super().__init__(request)
        self.call = call
        self.hidden = hidden
        self._codes = codes
        self._head: Result | None = None
        self._session: object = None
        self.outer_session: object = None
        self.kept: Headers = ()

    def mark_misrouted(self) -> None:
        """Note that the routing has chosen another route than the action's own: the call is refused."""
        self.is_closed = True

    async def arrive(self, app: AsgiApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Continue to the route after the request has passed the middleware outside of us."""
        self._session = scope.get("session")
        await app(scope, receive, send)

    async def ended(self) -> None:
        if self.call.disconnected is not None:
            await self.call.disconnected()

    async def take(self, part: bytes) -> bool:
        if (on_part := self.call.on_part) is None:
            return False
        if self._head is None:
            if self.outer_session is not None:
                self._copy_session_out()
            self._head = read_answer(self.call, self.status, self.headers, part, self._codes)
        head = self._head
        is_text = isinstance(head, Outcome) and head.content is not None and not head.redirect
        return is_text and await on_part(cast(Outcome, head), part)

    def end(self, body: bytes) -> None:
        if self.is_streamed:
            self.call.answer = Outcome(b"", None, cast(Outcome, self._head).status, is_streamed=True)
            return
        if self.outer_session is not None:
            self._copy_session_out()
        answer = read_answer(self.call, self.status, self.headers, body, self._codes)
        if not isinstance(answer, HandlerRedirected):  # a read is answered by what is at that address
            self.call.answer = answer

    def _copy_session_out(self) -> None:
        """Copy the route's session into that of the caller's own request, whose middleware saves its session later."""
        outer, inner = self.outer_session, self._session
        if outer is inner or not isinstance(outer, MutableMapping) or not isinstance(inner, Mapping):
            return
        if dict(outer) != dict(inner):
            outer.clear()
            outer.update(inner)
        # That middleware also sets the cookie, and a response sets each cookie once (RFC 6265 section 4.1.1).
        set_cookies = [pair for pair in self.headers if pair[0].lower() == b"set-cookie"]
        self.kept = [pair for pair in set_cookies if pair[1].partition(b"=")[0].strip() in self.session_cookies]
        self.headers = [pair for pair in self.headers if pair not in self.kept]


class Rehearsal(RouteExchange):
    """An exchange that only runs the route's security checks. Its answer does not become the call's answer."""

    __slots__ = ()

    def end(self, body: bytes) -> None:
        """Do nothing: this is not the answer of the call."""
