"""`DjangoProject`: the Django project as the application that the core wraps: it tells its routes and answers calls.

A call that comes through our middleware goes on from where that stands, in the same thread and the same request's
context. Anything else, a background job for instance, goes through the whole of Django's own handler, as from outside.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import IO, Any, Final, TypeVar, cast

from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.core.handlers.base import BaseHandler
from django.db import close_old_connections
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import Resolver404, get_resolver
from starlette.concurrency import run_in_threadpool

from awp_publish.calls.threads import RUNNER
from awp_publish.declare.discover import Route
from awp_publish.http.exchange import AsgiApp, Message, Receive, Scope, Send
from awp_publish.http.reentry import SessionPass
from awp_publish.http.route_exchange import RouteExchange
from awp_publish.model import ROUTE_CALL, Arrival
from awp_publish.stores.threads import is_gevent
from awp_publish_django.answering import response_of
from awp_publish_django.conf import place_of_middleware
from awp_publish_django.filling import NEXT_FORM, call_with_form
from awp_publish_django.inner import InnerASGIRequest, exempt_from_csrf, give_back, make_inner_request
from awp_publish_django.languages import in_language_of_caller, speaking
from awp_publish_django.responses import read_response_async
from awp_publish_django.routes import find_django_routes

T = TypeVar("T")

SESSIONS: Final = "django.contrib.sessions.middleware.SessionMiddleware"

BRIDGE: Final = "awp_publish_django"
"""The place of a request's Bridge in its scope."""


@dataclass(slots=True)
class Bridge:
    """The way from a door of ours to the view: the caller's request, and what stands inside of our middleware.

    A fresh request passes all middleware: where ours is not in the list (`is_from_outside`), and where cookies have to
    be seen that the middleware above ours sets, or known to it. `respond` is told.
    """

    request: HttpRequest
    respond: Callable[[HttpRequest, bool, Send], Awaitable[None]]
    is_from_outside: bool = False
    was_fresh: bool = False
    given_back: set[str] = field(default_factory=set)
    """Attributes of the caller's request that an earlier pass has set."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        message, exchange = await receive(), scope.get(ROUTE_CALL)
        # The page after the redirect of a call sees the cookies that the call has set as the call itself did.
        if isinstance(exchange, RouteExchange):
            self.was_fresh = exchange.call.carrier is not None and exchange.call.carrier.is_fresh
        is_fresh = self.is_from_outside or isinstance(exchange, SessionPass) or self.was_fresh
        body = message.get("body", b"")
        inner = make_inner_request(self.request, scope, body, is_fresh=is_fresh, without=self.given_back)

        async def note_and_send(message: Message) -> None:
            # The caller's own pass ends later, and would write the older session.
            if message["type"] == "http.response.start" and not isinstance(exchange, SessionPass):
                give_back(inner, self.request, self.given_back)
            await send(message)

        try:
            await self.respond(inner, is_fresh, note_and_send)
        finally:
            inner.close()


@dataclass(frozen=True, slots=True)
class OwnWay:
    """The way of a direct request of a guarded route, from the gates back to where it stands: as if they were not."""

    respond: Callable[[Send], Awaitable[None]]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.respond(send)


class DjangoProject:
    """An ASGI application. `urlconf` is a module, its name, or a tuple of patterns; settings.ROOT_URLCONF without."""

    def __init__(self, urlconf: object = None) -> None:
        self._urlconf = urlconf
        self.is_running = False

    awp_compares_routes = True
    """By its requests: see RouteRequest."""

    awp_carried = (BRIDGE,)
    """The way of a request of ours back through the whole project."""

    @property
    def awp_has_sessions(self) -> bool:
        """Return True if visitors have sessions, which Django keeps by a cookie."""
        return place_of_middleware(SESSIONS) is not None

    def awp_routes(self) -> list[Route]:
        """The routes of the URLconf, in order."""
        return find_django_routes(self._urlconf)

    def awp_arrival(self, path: str) -> Arrival | None:
        """Return where a path arrives, None for nowhere."""
        try:
            match = get_resolver(self._urlconf).resolve(path)  # type: ignore[arg-type]
        except Resolver404:
            return None
        return Arrival(match.route, match.func)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        bridge: AsgiApp | None = scope.get(BRIDGE)
        await call_with_form(bridge or cast(AsgiApp, self._whole), scope, receive, send)

    @cached_property
    def _whole(self) -> "_InProcessHandler":
        return _InProcessHandler()

    @cached_property
    def _whole_sync(self) -> BaseHandler:
        handler = BaseHandler()
        handler.load_middleware()
        return handler

    def answer(self, request: HttpRequest) -> HttpResponseBase:
        """Return the project's answer, with all its middleware."""
        return self._whole_sync.get_response(request)

    async def answer_async(self, request: HttpRequest) -> HttpResponseBase:
        """The same on an event loop."""
        return await self._whole.answer(request)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Django has nothing to start or stop."""
        RUNNER.set(run_beside_requests)  # for what runs beside requests: jobs, probes
        await receive()
        self.is_running = True
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self.is_running = False
        await send({"type": "lifespan.shutdown.complete"})


async def run_beside_requests(function: Callable[[], T]) -> T:
    """Run a function in a thread pool. Old database connections are closed before and after, as around a request."""

    def run() -> T:
        close_old_connections()
        try:
            return function()
        finally:
            close_old_connections()

    return await (asyncio.to_thread(run) if is_gevent() else run_in_threadpool(run))


class _InProcessHandler(ASGIHandler):
    """Django's handler for requests that nobody sent over the network."""

    request_class = InnerASGIRequest

    def create_request(
        self, scope: Mapping[str, Any], body_file: IO[bytes]
    ) -> tuple[ASGIRequest, None] | tuple[None, HttpResponseBase]:
        prefixes = None
        if isinstance(scope.get(ROUTE_CALL), RouteExchange):
            scope, prefixes = in_language_of_caller(dict(scope))
        result = super().create_request(scope, body_file)
        if isinstance(result[0], InnerASGIRequest):
            result[0].prefixes = prefixes
            result[0].route_call, result[0].next_form = scope.get(ROUTE_CALL), scope.get(NEXT_FORM)
            exempt_from_csrf(result[0])
        return result

    async def answer(self, request: HttpRequest) -> HttpResponseBase:
        """Return the project's answer to a request that exists already."""
        return await super().get_response_async(request)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        with speaking(request):
            response = await super().get_response_async(request)
            return response_of(await read_response_async(request, response))

    async def send_response(self, response: HttpResponseBase, send: Send) -> None:
        await super().send_response(response, _with_lowercase_names(send))  # type: ignore[arg-type]


def _with_lowercase_names(send: Send) -> Send:
    """ASGI requires header names in lower case, which Django does not ensure."""

    async def send_lowercase(message: Message) -> None:
        if "headers" in message:
            message = {**message, "headers": [(name.lower(), value) for name, value in message["headers"]]}
        await send(message)

    return send_lowercase
