"""The ASGI exchange of a call with its route."""

from collections.abc import Iterable, Mapping, MutableMapping
from typing import Final

from awp_publish.calls.call import Call, Outcome, Result
from awp_publish.http.exchange import AsgiApp, Message, Receive, Scope, Send
from awp_publish.http.route_answers import read_answer
from awp_publish.model import Action, JsonObject, Target
from awp_publish.problems import HandlerRedirected

CONNECTION_MEMBERS: Final = ("asgi", "http_version", "scheme", "server", "client", "root_path")


class RouteCall:
    """The ASGI exchange of a call with its route: provides the request's body and collects the answer.

    `parts` are the chunks of a streamed answer; `is_streamed` is set if the caller gets them as they come.
    `is_misrouted` is set if the routing has chosen another route.
    """

    __slots__ = (
        "_call",
        "_codes",
        "_head",
        "_request",
        "_session",
        "body",
        "headers",
        "is_misrouted",
        "is_streamed",
        "outer_session",
        "parts",
        "session_cookies",
        "status",
    )
    session_cookies: frozenset[bytes]

    def __init__(self, call: Call, request: bytes, codes: Mapping[str, str]) -> None:
        self._call = call
        self._request: bytes | None = request
        self._codes = codes
        self._head: Result | None = None
        self.is_streamed = False
        self.parts: list[bytes] | None = None
        self.status = 0
        self.headers: Iterable[tuple[bytes, bytes]] = ()
        self.body = b""
        self.outer_session: object = None
        self.is_misrouted = False
        self._session: object = None

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
        """Note that the routing has chosen another route than the action's own. The call is then refused."""
        self.is_misrouted = True

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

    async def receive(self) -> Message:
        if self._request is not None:
            body, self._request = self._request, None
            return {"type": "http.request", "body": body, "more_body": False}
        if self._call.disconnected is not None:
            await self._call.disconnected()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if self.is_misrouted:
            return
        kind = message["type"]
        if kind == "http.response.start":
            self.status = message["status"]
            self.headers = message.get("headers", ())
            if (on_cookies := self._call.on_cookies) is not None:
                on_cookies([value for name, value in self.headers if name.lower() == b"set-cookie"])
        elif kind == "http.response.body":
            body = message.get("body", b"")
            is_last = not message.get("more_body")
            if self._call.on_part is not None and (self.parts is not None or not is_last or self.is_streamed):
                self.is_streamed = await self._give_part(body)
            if self.is_streamed:
                if is_last and isinstance(head := self._head, Outcome):
                    self._call.answer = Outcome(b"", None, head.status, is_streamed=True)
                return
            if not is_last:
                self.parts = self.parts or []
                self.parts.append(body)
                return
            if self.parts is not None:
                body = b"".join((*self.parts, body))
            self.body = body
            if self.outer_session is not None:
                self._copy_session_out()
            answer = read_answer(self._call, self.status, self.headers, body, self._codes)
            if not isinstance(answer, HandlerRedirected):  # a read is answered by what is at that address
                self._call.answer = answer

    async def _give_part(self, body: bytes) -> bool:
        """Give a part of the answer to whoever takes it as it comes. Returns True if the caller has got it."""
        on_part = self._call.on_part
        if on_part is None or not body:
            return self.is_streamed
        if self._head is None:
            if self.outer_session is not None:
                self._copy_session_out()
            self._head = read_answer(self._call, self.status, self.headers, body, self._codes)
        head = self._head
        if not isinstance(head, Outcome) or head.content is None or head.redirect:
            return False
        return await on_part(head, body)

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

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], message.get("headers", ())
        elif message["type"] == "http.response.body":
            self.body += message.get("body", b"")


def come_from_outside(scope: Scope, state: Mapping[str, object], request_id: str) -> Scope:
    """Return the scope as the server would have made it, without the members that outer middleware has added."""
    kept = ("type", "method", "path", "raw_path", "query_string", "headers", "extensions", *CONNECTION_MEMBERS)
    fresh: Scope = {name: scope[name] for name in kept if name in scope}
    if all(name != b"x-request-id" for name, _ in scope["headers"]):
        fresh["headers"].append((b"x-request-id", request_id.encode("latin-1")))
    if "state" in scope:
        fresh["state"] = dict(state)
    return fresh
