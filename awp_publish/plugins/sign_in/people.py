"""Who is signed in: asked of the site itself, at consent and at every call with a token.

Middleware inside of us, where most sites keep their sessions, is asked by a request of our own that ends before the
application's routes, or by that of a call on its way to its route.
"""

import inspect
import time
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import replace
from typing import Any, Final, NamedTuple, cast
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Router
from starlette.types import ASGIApp

from awp_publish.browsing.addresses import WebAddress
from awp_publish.browsing.cookies import Cookie, CookieJar
from awp_publish.calls.application_users import ApplicationUser, SessionUser
from awp_publish.calls.call import Call, Credentials, Principal
from awp_publish.calls.threads import run_in_thread
from awp_publish.calls.verifiers import people_of
from awp_publish.http.admission import read_admission_of
from awp_publish.http.credentials import read_credentials
from awp_publish.http.exchange import Message, Receive, Scope, Send, mount_of, read_fields
from awp_publish.http.route_exchange import RouteExchange
from awp_publish.model import ROUTE_CALL
from awp_publish.plugin import Serving
from awp_publish.plugins.sign_in.framework import framework_of
from awp_publish.plugins.sign_in.options import Person, SignIn
from awp_publish.plugins.sign_in.paths import SignInPaths

PEOPLE: Final = "people"
"""Who vouches for people whom a function of the site's knows."""

MAX_COOKIES: Final = 30
MAX_COOKIE_BYTES: Final = 4096
"""Cookies of a grant, and bytes of one."""

_ASKED: Final = "awp_publish.sign_in.asked"
_SCHEMES: Final = ("scheme", "method", "challenge")


class Visitor(NamedTuple):
    """Somebody who is signed in, as a principal, with a name to show."""

    principal: Principal
    name: str


class People:
    """The people of one site."""

    def __init__(self, serving: Serving) -> None:
        """Ask the application that is `serving`."""
        self.options = options = cast(SignIn, serving.state.options)
        self._serving = serving
        self._proxies = read_admission_of(serving.settings).trusted_proxies
        self._path = SignInPaths(serving.site.catalog.paths.root).person
        self.framework = framework_of(serving.site)
        finder = options.user if options.user is not None else self.framework.user()
        self._user: Callable[[Any], Any] = finder if finder is not None else lambda _: None
        self._is_authenticator = all(hasattr(self._user, name) for name in _SCHEMES)
        # What they read, every call asks for; the granted scopes of a request are not those of a token.
        self._is_of_application = isinstance(finder, (SessionUser, ApplicationUser))
        self._is_async = inspect.iscoroutinefunction(self._user)
        self.issuer = people_of(self._user) if self._is_authenticator else PEOPLE
        application = serving.application.called.routes
        router = getattr(application, "router", None)
        listed = list(getattr(application, "user_middleware", ()))
        ours = [
            number
            for number, middleware in enumerate(listed)
            if getattr(middleware, "kwargs", {}).get("site") is serving.site
        ]
        self._is_inside = isinstance(router, Router) and bool(listed[ours[0] + 1 :] if ours else listed)
        self.asks_at_route = self._is_inside or (
            isinstance(router, Router) and serving.application.called.outside is not None
        )
        """Whether a request to a route of the application asks us on its way, after all middleware."""
        if isinstance(router, Router) and self.asks_at_route:
            routes = router.middleware_stack
            router.middleware_stack = _AtRoutes(routes.routes if isinstance(routes, _AtRoutes) else routes, self)

    @property
    def login(self) -> str:
        """The path or address of the site's login page: a site that has none is not published."""
        return self.options.login or self.framework.login() or "/"

    async def find(self, scope: Scope) -> Visitor | None:
        """Return who is signed in at a request with this scope, None for nobody. Raises what the site raises."""
        if not self._is_inside:
            return await self.ask(scope)
        answers: list[Visitor | None] = []
        mounted = mount_of(scope)
        inner: Scope = {
            **scope,
            "method": "GET",
            "path": mounted + self._path,
            "raw_path": (mounted + self._path).encode(),
            "query_string": b"",
            "headers": [pair for pair in scope["headers"] if not pair[0].startswith((b"content-", b"transfer-"))],
            "state": dict(scope.get("state", {})),
            _ASKED: answers,
        }

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            return

        await self._serving.application.called.inside(inner, receive, send)
        return answers[0] if answers else None

    async def ask(self, scope: MutableMapping[str, Any]) -> Visitor | None:
        """Return who sends the request with this scope, which has passed all middleware; None for nobody."""
        signed = await self.recognize(scope)
        if signed is None or signed.name:
            return signed
        return Visitor(signed.principal, await self.framework.name_of(scope) or signed.principal.id)

    async def recognize(self, scope: MutableMapping[str, Any]) -> Visitor | None:
        """Return the same as `ask`, with the name "" for somebody whose name the site's own function leaves out."""
        if self._is_of_application:
            answer: object = await self._user(Credentials({}, "", scope.get("session"), scope.get("user")))
        elif self._is_authenticator:
            credentials = read_credentials(scope, read_fields(scope["headers"]), self._proxies)
            answer = await self._user(credentials)
        elif self._is_async:
            answer = await self._user(Request(scope))
        else:
            answer = await run_in_thread(lambda: self._user(Request(scope)))
            answer = await answer if inspect.isawaitable(answer) else answer
        return self._read(answer)

    def _read(self, answer: object) -> Visitor | None:
        if answer is None or answer is False or answer == "":
            return None
        if isinstance(answer, Principal):
            name = answer.claims.get("name")
            principal = answer if answer.issuer else replace(answer, issuer=self.issuer)
            return Visitor(principal, name if isinstance(name, str) else "")
        if isinstance(answer, Person):
            return Visitor(Principal(str(answer.id), issuer=self.issuer), answer.name) if answer.id else None
        if isinstance(answer, (str, int, UUID)) and not isinstance(answer, bool):
            return Visitor(Principal(str(answer), issuer=self.issuer), "")
        kind = type(answer).__name__
        raise TypeError(f"SignIn: user returned a value of type {kind}, not a Person, an id or None.")

    async def headers_of(self, person: Person) -> Mapping[str, str] | None:
        """Return the headers of a person's own requests, from `as_user`; None for somebody who may not sign in."""
        function = self.options.as_user
        assert function is not None
        if inspect.iscoroutinefunction(function):
            return cast(Mapping[str, str] | None, await function(person))
        answer = await run_in_thread(lambda: function(person))
        return cast(Mapping[str, str] | None, await answer if inspect.isawaitable(answer) else answer)

    async def cookies_for(self, scope: Scope, at: WebAddress, seconds: int, without: str) -> tuple[Cookie, ...]:
        """Return the cookies with which calls are made for the person who sends this request.

        They are those of a session of its own where the framework can begin one, else the request's own, without ours.
        """
        if (begun := await self.framework.begin_session(scope, seconds)) is not None:
            return with_set_cookies((), begun, at, time.time())
        sent = read_fields(scope["headers"]).get(b"cookie", b"").decode("latin-1")
        pairs = (pair.strip().partition("=") for pair in sent.split(";"))
        cookies = [(name, value) for name, _, value in pairs if name and name != without]
        fits = [pair for pair in cookies if sum(map(len, pair)) <= MAX_COOKIE_BYTES]
        return tuple(Cookie(name=name, value=value, domain=at.host) for name, value in fits[:MAX_COOKIES])


def with_set_cookies(
    cookies: tuple[Cookie, ...], set_cookies: list[str], at: WebAddress, now: float
) -> tuple[Cookie, ...]:
    """Return the cookies of a grant after an answer has set some."""
    jar = CookieJar(MAX_COOKIES, MAX_COOKIE_BYTES)
    for cookie in cookies:
        jar.store(cookie, now)
    jar.store_from((("set-cookie", text) for text in set_cookies), at, now)
    return tuple(jar)


class _AtRoutes:
    """Stands before the routes of an application, after all of its middleware, to ask there who is signed in."""

    def __init__(self, routes: ASGIApp, people: People) -> None:
        self.routes = routes
        self._people = people

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answers, exchange = scope.get(_ASKED), scope.get(ROUTE_CALL)
        if answers is not None:
            answers.append(await self._people.ask(scope))
            await Response(status_code=204)(scope, receive, send)
        elif isinstance(exchange, RouteExchange) and not await _may_arrive(exchange.call, scope):
            await Response(status_code=401)(scope, receive, send)
        else:
            await self.routes(scope, receive, send)


async def _may_arrive(call: Call, scope: Scope) -> bool:
    """Return whether a call may go on to its route, with the scope that all middleware has made."""
    if call.carrier is None:
        return True
    on_arrival, call.carrier.on_arrival = call.carrier.on_arrival, None
    return on_arrival is None or await on_arrival(scope)
