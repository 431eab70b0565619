"""Applies the gates of calls to direct requests of the actions' routes (`guard_routes=True`).

A request that arrives at a guarded action's route is treated as a call of it. Its input is read from where the route
reads it; idempotency key, confirmation and receipts are read from headers. If a gate refuses, the answer is
problem+json. Otherwise the request reaches the route unchanged, and the route's own answer (a page, a redirect) is sent
with the gates' headers. What the route streams is passed on as it comes, unless a gate records the answer: then it is
buffered, and recorded before it is sent. Calls from our own doors have passed the gates already and are not checked
again.
"""

import base64
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import replace
from http.cookies import CookieError, SimpleCookie
from typing import ClassVar, Final, cast

from awp_publish.calls.call import Call, Outcome, Result
from awp_publish.calls.hooks import Routes
from awp_publish.calls.invoke import Invoker
from awp_publish.http.body import read_body
from awp_publish.http.calling import CallEndpoint, Dialect
from awp_publish.http.cors import Cors
from awp_publish.http.dispatch import ARRIVED, PASSED
from awp_publish.http.exchange import AsgiApp, Exchange, Fields, Receive, Scope, Send, route_path
from awp_publish.http.field_reader import FieldReader
from awp_publish.http.forms import Fields as Pairs, is_form, read_form, read_query
from awp_publish.http.origins import refuse_foreign_pages
from awp_publish.http.position import CalledApplication
from awp_publish.http.problem_details import PLAIN_RECOVERIES
from awp_publish.http.request import DoorRequest, PlainRequest
from awp_publish.http.route_answers import read_answer
from awp_publish.http.strict_json import parse_json
from awp_publish.model import Action, Arrival, Parameter, Target
from awp_publish.plugin import Context
from awp_publish.problems import HandlerFailed
from awp_publish.schema.files import file_inputs
from awp_publish.schema.media import JSON
from awp_publish.schema.reading import required_members, resolved

DOOR: Final = "route"
SAFE: Final = frozenset({"GET", "HEAD"})
"""Methods of requests that pages of other sites may cause, by links."""


class GuardedRoutes:
    """The routes of `actions` at one address of a site, as far as gates guard them."""

    def __init__(self, context: Context, actions: Iterable[Action]) -> None:
        self._called: CalledApplication = context.application.called
        # The route's output is not validated, and it never runs as a job. People may use actions not yet approved.
        direct = tuple(replace(action, outputs={}, function=None, is_approved=True) for action in actions)
        catalog = replace(context.catalog, actions=direct, agents=())
        invoker = Invoker(catalog, Routes(_pass_on), context.guards, context.application.observers)
        routes = [_GuardedRoute(action, action.target) for action in direct if action.target is not None]
        self._guarded = [route for route in routes if route.action.id in invoker.guarded]
        self._door = _DirectDoor(context, invoker, {route.action.id: route for route in self._guarded})

    @property
    def is_needed(self) -> bool:
        """Return True if any of the routes has a gate."""
        return bool(self._guarded)

    def find(self, scope: Scope) -> Action | None:
        """Return the action whose route a request arrives at, None if the route is not guarded."""
        if ARRIVED in scope:
            return cast(Action, scope[ARRIVED])
        method, path = scope["method"], route_path(scope)
        method = "GET" if method == "HEAD" else method
        own = [route for route in self._guarded if route.action.method == method and route.pattern.fullmatch(path)]
        arrival = self._called.arrival_of(scope) if own else None
        return next((route.action for route in own if arrival is not None and route.is_reached(arrival)), None)

    def around(self, app: AsgiApp) -> AsgiApp:
        """Wrap an application, so that requests pass the gates before they arrive at its guarded routes."""
        self._door.app = app

        async def guard(scope: Scope, receive: Receive, send: Send) -> None:
            action = self.find(scope)
            if action is None or scope.get(PASSED) == action.id:
                await app(scope, receive, send)
            else:
                await self._door(scope, receive, send, action.id)

        return guard


class _GuardedRoute:
    """The route of an action: matches requests and reads their inputs."""

    def __init__(self, action: Action, target: Target) -> None:
        self.action = action
        self._target = target
        self.pattern = target.pattern()
        self._by_place: dict[str, dict[str, Parameter]] = {}
        for parameter in target.parameters:
            self._by_place.setdefault(parameter.location, {})[parameter.wire_name] = parameter
        self._reader = FieldReader(action.inputs)
        self._files = {name for name, *_ in file_inputs(action.inputs)}
        facts = resolved(action.inputs, action.inputs)
        self._required = required_members(facts)
        self._is_open = facts.get("additionalProperties", True) is not False

    def is_reached(self, arrival: Arrival) -> bool:
        """Return True if `arrival` is this route. An arrival without an endpoint is one that the framework hides."""
        own = self._target.arrival
        if own is None or arrival.endpoint is None:
            return own is None or own.endpoint is None
        return own.path == arrival.path and (own.endpoint is None or own.endpoint is arrival.endpoint)

    def read(self, scope: Scope, fields: Fields, body: bytes) -> dict[str, object]:
        """Return the input of a request. Fields that the action does not declare are left to its route.

        Raises a Problem.
        """
        matched = self.pattern.fullmatch(route_path(scope))
        pairs: Pairs = self._known_pairs("path", list(matched.groupdict().items()) if matched is not None else [])
        pairs += self._known_pairs("query", read_query(scope["query_string"])) if scope["query_string"] else []
        for name, parameter in self._by_place.get("header", {}).items():
            if (field := fields.get(name.lower().encode("latin-1"))) is not None:
                pairs.append((parameter.name, field.decode("latin-1")))
        if "cookie" in self._by_place and b"cookie" in fields:
            with suppress(CookieError):
                cookies = SimpleCookie(fields[b"cookie"].decode("latin-1"))
                pairs += self._known_pairs("cookie", [(name, morsel.value) for name, morsel in cookies.items()])
        content_type = fields.get(b"content-type", b"")
        if body and is_form(content_type):
            pairs += self._read_form(content_type, body)
            return dict(self._reader.read(pairs))
        return (self._read_content(content_type, body) if body else {}) | self._reader.read(pairs)

    def _read_form(self, content_type: bytes, body: bytes) -> Iterator[tuple[str, str | bytes]]:
        """Yield the fields of a form. Empty optional ones are absent."""
        places = {**self._by_place.get("form", {}), **self._by_place.get("file", {})}
        for name, value in read_form(content_type, body):
            parameter = places.get(name)
            if parameter is None:
                if self._is_open and self._target.content_type != JSON:
                    yield name, value
            elif value or getattr(value, "filename", "") or parameter.name in self._required:
                yield parameter.name, value

    def _read_content(self, content_type: bytes, body: bytes) -> dict[str, object]:
        """Return the members of a JSON body, or a body that is an input as a whole."""
        media_type = content_type.split(b";", 1)[0].strip().lower()
        is_json = not media_type or media_type == b"application/json" or media_type.endswith(b"+json")
        if (whole := next(iter(self._by_place.get("body", {}).values()), None)) is not None:
            if whole.name in self._files:
                return {whole.name: base64.b64encode(body).decode()}
            return {whole.name: parse_json(body) if is_json else body.decode("utf-8", "replace")}
        sent = parse_json(body) if is_json and self._target.content_type == JSON else None
        if not isinstance(sent, dict):
            return {}
        names = {name: parameter.name for name, parameter in self._by_place.get("json", {}).items()}
        return {names.get(name) or name: value for name, value in sent.items() if name in names or self._is_open}

    def _known_pairs(self, place: str, pairs: Iterable[tuple[str, str | bytes]]) -> Pairs:
        parameters = self._by_place.get(place, {})
        return [(parameters[name].name, value) for name, value in pairs if name in parameters]


class _DirectExchange(Exchange):
    """The exchange of a direct request with its route. It buffers what is not passed on as it comes."""

    def __init__(self, app: AsgiApp, request: DoorRequest, body: bytes, codes: Mapping[str, str]) -> None:
        super().__init__(body)
        self.app = app
        self.scope = request.scope
        self.ended = request.disconnected  # type: ignore[method-assign]
        self.call: Call | None = None
        self.result: Result | None = None
        self._codes = codes

    async def take(self, part: bytes) -> bool:
        """Pass a part of a success on."""
        on_part = self.call.on_part if self.call is not None and 200 <= self.status < 300 else None
        return on_part is not None and await on_part(Outcome(b"", None, self.status), part)

    def end(self, body: bytes) -> None:
        if self.call is None:
            return
        headers = [(name.lower(), value) for name, value in self.headers]
        if self.is_streamed:
            self.result = Outcome(b"", None, self.status, is_streamed=True)
        elif 300 <= self.status < 400:  # a success: it is the usual answer to a form
            location = tuple(pair for pair in headers if pair[0] == b"location")
            self.result = Outcome(b"null", None, self.status, location)
        else:
            self.result = read_answer(self.call, self.status, headers, body, self._codes)
        self.call.answer = self.result


async def _pass_on(call: Call) -> Result:
    """Send a direct request to its route. `Invoker` calls this, after the gates."""
    exchange = cast(_DirectExchange, call.context)
    await exchange.app(exchange.scope, exchange.receive, exchange.send)
    exchange.call = None  # break the reference cycle
    return exchange.result or HandlerFailed(f"The route of action {call.action.id} gave no answer.")


class _DirectRequest(PlainRequest):
    """A request that is answered with the unchanged answer of its route, if there is one."""

    __slots__ = ()

    async def deliver(self, result: Result) -> None:
        exchange = self.call.context if self.call is not None else None
        if (
            self._streams
            or not isinstance(exchange, _DirectExchange)
            or result is not exchange.result
            or self.call is None
        ):
            await super().deliver(result)
            return
        call, self.call = self.call, None
        await self._start(call)
        await self._send({"type": "http.response.body", "body": exchange.body})

    async def _begin(self, head: Outcome, call: Call) -> None:
        await self._start(call)

    async def _start(self, call: Call) -> None:
        exchange = cast(_DirectExchange, call.context)
        replaced = {name for name, _ in call.headers}
        own = [pair for pair in exchange.headers if pair[0].lower() not in replaced]
        head = {"type": "http.response.start", "status": exchange.status, "headers": [*own, *call.headers]}
        await self._send(head)


class _DirectDoor(CallEndpoint):
    """Answers the requests that arrive at guarded routes."""

    methods = "GET, HEAD, POST, PUT, PATCH, DELETE"
    usage = "Actions are called with their own methods"
    request_type = _DirectRequest
    dialect: ClassVar[Dialect] = Dialect(recoveries=PLAIN_RECOVERIES)

    def __init__(self, context: Context, invoker: Invoker, guarded: Mapping[str, _GuardedRoute]) -> None:
        direct = copy(context)
        direct.invoker = invoker
        super().__init__(DOOR, direct)
        self._cors = Cors(())  # the headers of an answer are the route's
        self.app: AsgiApp = context.application.called.inside
        self._context = context
        self._guarded = guarded

    @staticmethod
    def refuse_foreign(fields: Fields, own_origins: frozenset[str]) -> None:
        """Do nothing: links from other sites are allowed, and `handle` refuses the rest."""

    async def handle(self, request: _DirectRequest, named: str | None) -> None:  # type: ignore[override]
        fields, scope, receive, route = request.fields, request.scope, request.receive, self._guarded[named or ""]
        if scope["method"] not in SAFE:
            refuse_foreign_pages(fields, self._own_origins)
        body = await read_body(scope, fields, receive, self._admission.max_body_bytes)
        inputs = route.read(scope, fields, body)
        scope["extensions"] = {}  # server extensions for sending files would bypass the buffer
        codes = self._context.catalog.site.errors
        exchange = _DirectExchange(self.app, request, body, codes)
        call = exchange.call = request.call = self._calls.make(route.action, inputs, request, size=len(body))
        call.context, call.on_part = exchange, request.take_part
        self._invoker.set_status(self._context.published().status)
        await self._invoker.run(call, request.deliver)
