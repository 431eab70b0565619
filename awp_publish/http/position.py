"""Where our middleware stands in an application: what it wraps, what runs outside of it, and how calls pass that."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from starlette.applications import Starlette

from awp_publish.declare.discover import find_arrival, unwrap
from awp_publish.declare.discover.starlette import session_cookies
from awp_publish.http.exchange import AsgiApp, Scope, route_path
from awp_publish.model import Arrival
from awp_publish.problems import DeclarationError

ENTRANCE: Final = "awp_publish.entrance"
"""The scope member in which the adapter of another framework gives its outermost application."""

TELLS_ARRIVAL: Final = "awp_arrival"
"""The method by which another framework's application resolves a path to its route: `(path) -> Arrival | None`."""

_OF_SERVER: Final = (
    *("type", "asgi", "http_version", "scheme", "server", "client", "root_path"),
    *("method", "path", "raw_path", "query_string", "headers", "extensions"),
)
"""The members of a scope that the server sets. Middleware adds others."""


@dataclass(frozen=True, slots=True)
class CalledApplication:
    """The application that calls go to: `inside` is what this middleware wraps, `routes` the object with its routes.

    `entrance` is the outermost application if calls have to pass middleware outside of us, otherwise None. `outside` is
    the same, but set even if that middleware is trusted. `state` returns the lifespan state for requests that enter
    there. `session_cookies` are the names of the cookies in which middleware outside of us keeps sessions. `visit`
    returns the outermost application for a caller's request to a page, `inside` if it is None. `carried` are the scope
    members of a caller's request with which the adapter of another framework leads back through its middleware.
    """

    inside: AsgiApp
    routes: object
    entrance: AsgiApp | None = None
    outside: AsgiApp | None = None
    state: Callable[[], Mapping[str, object]] = dict
    session_cookies: frozenset[bytes] = frozenset()
    visit: Callable[[Scope], AsgiApp] | None = None
    carried: tuple[str, ...] = ()

    def arrival_of(self, scope: Scope) -> Arrival | None:
        """Return where the application's own routing leads a request, None if nowhere."""
        tell: Callable[[str], Arrival | None] | None = getattr(unwrap(self.routes), TELLS_ARRIVAL, None)
        if tell is not None:
            return tell(route_path(scope))
        routed = find_arrival(self.routes, dict(scope))
        return None if routed is None else routed.arrival

    def from_outside(self, scope: Scope, request_id: str) -> Scope:
        """Return a scope as the server would have made it, for a request that enters through the outer middleware."""
        fresh: Scope = {name: scope[name] for name in _OF_SERVER if name in scope}
        if all(name != b"x-request-id" for name, _ in scope["headers"]):
            fresh["headers"].append((b"x-request-id", request_id.encode("latin-1")))
        if "state" in scope:
            fresh["state"] = dict(self.state())
        return fresh


@dataclass(frozen=True, slots=True)
class Position:
    """The place of the middleware `publisher` of a site, which wraps `app`.

    `trusts_outer` says that no middleware outside decides by the path of a request.
    """

    publisher: AsgiApp
    app: AsgiApp
    site: object
    trusts_outer: bool

    def whole(self, scope: Scope) -> AsgiApp:
        """Return the outermost application: a request that we send there passes all middleware, as any other does."""
        return self.app if isinstance(unwrap(self.app), Starlette) else scope.get("app") or self.app

    def entrance(self, scope: Scope) -> AsgiApp:
        """Return the outermost application for requests that a door sends itself, so that they reach our pages too."""
        if ENTRANCE in scope:
            return cast(AsgiApp, scope[ENTRANCE])
        app: AsgiApp | None = scope.get("app")
        # Middleware inside of us may not expose what it wraps as `app`. Then the application's own list has to name us.
        is_around = self._place(app) is not None or getattr(app, "router", None) is unwrap(self.app)
        return app if app is not None and is_around else self.publisher

    def called(self, scope: Scope, state: Callable[[], Mapping[str, object]]) -> CalledApplication:
        """Return how calls reach the routes. `state` returns the lifespan state.

        Unless our place is known, all middleware of the application counts as outside. Raises DeclarationError if we
        are mounted below an application with middleware, which a call of an action would not pass.
        """
        app, wrapped, whole = scope.get("app"), unwrap(self.app), self.whole(scope)
        listed = getattr(app, "user_middleware", ())
        is_inside_another = "endpoint" in scope and getattr(app, "router", None) is not wrapped
        if listed and is_inside_another and not self.trusts_outer:
            names = ", ".join(getattr(layer.cls, "__name__", repr(layer.cls)) for layer in listed)
            raise DeclarationError(
                "site",
                f"is published from within another application, whose middleware calls of actions bypass: {names}.",
                "Add AgentPublisher to that application; or, if none of it decides by the path of a request, "
                "write AgentPublisher(..., trust_outer_middleware=True).",
            )
        place = self._place(app)
        outside = whole if app is whole and (len(listed) if place is None else place) > 0 else None
        # Inside Starlette, `app` is a bare router: the scope has the application.
        routes = wrapped if isinstance(wrapped, Starlette) else app or wrapped
        return CalledApplication(
            self.app,
            routes,
            None if self.trusts_outer else outside,
            outside,
            state,
            frozenset(name.encode("latin-1", "replace") for name in session_cookies(routes)),
            self.entrance,
            getattr(self.app, "awp_carried", ()),
        )

    def _place(self, app: Any) -> int | None:
        """Return at which place an application's list of middleware, the outermost first, names us."""
        listed = getattr(app, "user_middleware", ())
        ours = (index for index, layer in enumerate(listed) if getattr(layer, "kwargs", {}).get("site") is self.site)
        return next(ours, None)
