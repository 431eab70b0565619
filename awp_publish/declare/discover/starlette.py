"""Routes of a Starlette application: `Route`, `Mount`, `Host`, class endpoints."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from starlette.endpoints import HTTPEndpoint
from starlette.middleware.sessions import SessionMiddleware
from starlette.routing import (
    BaseRoute,
    Host,
    Mount,
    Route as StarletteRoute,
    Router,
    WebSocketRoute,
)
from starlette.staticfiles import StaticFiles

from awp_publish.declare.discover.routes import METHODS, ROUTES_METHOD, Route, methods_of, opaque
from awp_publish.model import Arrival
from awp_publish.schema.handlers import layers_of

Walk = Callable[[object, str], Iterator[Route]]


def walk_routes(routes: Sequence[BaseRoute], prefix: str, walk: Walk) -> Iterator[Route]:
    """Yield every route below `routes`. `walk(app, prefix)` walks a mounted application of any kind."""
    for route in routes:
        if isinstance(route, StarletteRoute):
            path, endpoint = prefix + route.path, route.endpoint
            methods, arrival = methods_of(route.methods), Arrival(path, endpoint)
            if not (isinstance(endpoint, type) and issubclass(endpoint, HTTPEndpoint)):
                yield Route(path, methods, (endpoint,), route.name, listed=route.include_in_schema, arrival=arrival)
                continue
            for method in METHODS:  # a class endpoint is one route for each of its methods
                function = getattr(endpoint, method.lower(), None)
                if function is not None and method in (route.methods or METHODS):
                    name, handlers = f"{route.name}_{method.lower()}", (function, endpoint)
                    listed = route.include_in_schema
                    yield Route(path, (method,), handlers, name, listed=listed, arrival=arrival, reads=method == "GET")
        elif isinstance(route, Mount):
            yield from mounted(route, prefix, walk)
        elif isinstance(route, Host):
            yield from (replace(inner, host=inner.host or route.host) for inner in walk(route.app, prefix))
        elif not (isinstance(route, WebSocketRoute) or is_hidden(route)):
            yield opaque(prefix)  # somebody's own kind of route


def is_hidden(route: BaseRoute) -> bool:
    """Return True for a route that an adapter has added for calls of one action; no other request reaches it."""
    return getattr(route, "awp_is_hidden", False)


ADMINS: Final = frozenset({"sqladmin", "starlette_admin", "fastapi_admin", "fastapi_amis_admin", "piccolo_admin"})
"""Import names of packages whose applications are admin panels."""


def mounted(mount: Mount, prefix: str, walk: Walk) -> Iterator[Route]:
    """Yield the routes below a mount, with the mount's path unless it is only a group of routes."""
    path, app = prefix + mount.path, unwrap(mount.app)
    reason = ""
    if isinstance(app, StaticFiles):
        reason = "these are static files"
    else:  # the packages of its class, and of its routes' endpoints
        modules = [kind.__module__ for kind in type(app).__mro__]
        for route in getattr(app, "routes", None) or ():
            endpoint = getattr(route, "endpoint", None)
            function = next((layer for layer in layers_of(endpoint) if inspect.isfunction(layer)), endpoint)
            modules.append(str(getattr(function, "__module__", "")))
        packages = (module.partition(".")[0] for module in modules)
        if package := next((package for package in packages if package in ADMINS), ""):
            reason = f"it is part of the admin panel ({package})"
    group = isinstance(app, Router) and not reason
    for route in walk(mount.app, path):
        within = route.mount if group else route.mount or path or "/"
        yield replace(route, mount=within, kept_out=route.kept_out or reason)


def unwrap(app: object) -> object:
    """Return the application inside middleware, which by convention keeps it as `app`: the first that has routes."""
    seen: set[int] = set()
    while not (hasattr(app, "routes") or hasattr(app, ROUTES_METHOD) or id(app) in seen):
        seen.add(id(app))
        inner = getattr(app, "app", None)
        app = app if inner is None else inner
    return app


def session_cookies(app: object) -> tuple[str, ...]:
    """Return the cookie names of Starlette's session middleware, as far as the application lists its middleware."""
    listed = [layer for layer in getattr(app, "user_middleware", ()) if isinstance(layer.cls, type)]
    sessions = (layer for layer in listed if issubclass(layer.cls, SessionMiddleware))
    return tuple(str(layer.kwargs.get("session_cookie", "session")) for layer in sessions)
