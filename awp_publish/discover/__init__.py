"""Find the route of a declared handler, and read what it takes.

`find_routes(app)` walks any application that has routes; everything else in this room reads one kind of handler. An
application object of another framework may tell its routes itself, in a method `awp_routes()`.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from starlette.routing import BaseRoute, Host, Match, Mount, Route as StarletteRoute

from awp_publish.discover.functions import Injector
from awp_publish.discover.routes import Operation, Route, opaque, walk_routes
from awp_publish.model import Arrival, OpenApi

__all__ = [
    "ITSELF",
    "Operation",
    "Route",
    "Routed",
    "asks_for_host",
    "compares_routes",
    "find_arrival",
    "find_injector",
    "find_openapi",
    "find_routes",
    "fixed_arrivals",
    "routed",
]

Scope: TypeAlias = MutableMapping[str, Any]

TELLS_ROUTES: Final = "awp_routes"
"""A method without arguments that gives the `Route`s of an application, in order."""

COMPARES_ROUTES: Final = "awp_compares_routes"
"""True where such an application compares the route that it has chosen with the action's own, before it runs a view."""


def find_routes(app: object) -> list[Route]:
    """Every route of an application, in order; an application that keeps its routes to itself is one opaque route."""
    return list(_walk(app, "", is_outermost=True))


def find_openapi(app: object) -> OpenApi | None:
    """The OpenAPI document that the application serves itself."""
    fastapi_module = sys.modules.get("fastapi")
    target = routed(app)
    if fastapi_module is None or not isinstance(target, fastapi_module.FastAPI):
        return None
    from awp_publish.discover.fastapi import openapi_of

    return openapi_of(target)


def find_injector(app: object) -> Injector | None:
    """What fills in the dependencies of functions without a route; None where the application's framework cannot."""
    fastapi_module = sys.modules.get("fastapi")
    target = routed(app)
    if fastapi_module is None or not isinstance(target, fastapi_module.FastAPI):
        return None
    from awp_publish.discover.fastapi import FastApiInjector

    return FastApiInjector(target)


ITSELF: Final = object()
"""The endpoint of an arrival at an application that compares routes itself."""


class Routed(NamedTuple):
    """The arrival of a request, and every endpoint that the application's routing names on the way there."""

    arrival: Arrival
    endpoints: tuple[object, ...]


def find_arrival(app: object, scope: Scope, prefix: str = "") -> Routed | None:
    """Where the application's own routing leads a request, asked of its routes in their order; None for nowhere.

    What takes the request with another method only is nowhere. An application that keeps its routes to itself, or
    compares them itself, is one place.
    """
    listed = _in_order(app)
    if listed is None:
        return Routed(Arrival(prefix, ITSELF if compares_routes(app) else None), ())
    return _first_of(listed, scope, prefix)


def fixed_arrivals(app: object) -> Callable[[Scope], Routed | None]:
    """Return `find_arrival` for paths without parameters, which lists the application's routes once.

    Of routes that are as fixed, only those of the same path are asked: thousands of them take no square of the time.
    """
    listed = _in_order(app)
    if listed is None:
        return partial(find_arrival, app)
    fixed, others = dict[str, list[tuple[int, Any, BaseRoute]]](), list[tuple[int, Any, BaseRoute]]()
    for order, (candidate, route) in enumerate(listed):
        is_ordinary = getattr(type(route).matches, "__module__", "") in ("starlette.routing", "fastapi.routing")
        if is_ordinary and isinstance(route, StarletteRoute) and "{" not in candidate.path:
            fixed.setdefault(candidate.path, []).append((order, candidate, route))
        else:
            others.append((order, candidate, route))

    def find(scope: Scope) -> Routed | None:
        tried = sorted([*fixed.get(scope["path"], ()), *others], key=itemgetter(0))
        return _first_of(((candidate, route) for _, candidate, route in tried), scope, "")

    return find


def _first_of(listed: Iterable[tuple[Any, BaseRoute]], scope: Scope, prefix: str) -> Routed | None:
    for candidate, route in listed:
        match, child = candidate.matches(scope)
        if match is not Match.FULL:
            continue
        endpoint = child.get("endpoint")
        if isinstance(route, StarletteRoute):
            return Routed(Arrival(prefix + candidate.path, endpoint), (endpoint,))
        if not isinstance(route, (Mount, Host)):
            return Routed(Arrival(prefix, None), (endpoint,))
        below = prefix + route.path if isinstance(route, Mount) else prefix
        found = find_arrival(route.app, {**scope, **child}, below)
        return None if found is None else Routed(found.arrival, (endpoint, *found.endpoints))
    return None


def asks_for_host(app: object) -> bool:
    """Return True if the application's routing depends on the header Host."""
    routes = [route for _, route in _in_order(app) or ()]
    return any(isinstance(one, Host) or (isinstance(one, Mount) and asks_for_host(one.app)) for one in routes)


def _in_order(app: object) -> Iterable[tuple[Any, BaseRoute]] | None:
    """What decides whether a route matches, and the route, in the order in which they are tried; None if not shown."""
    target = routed(app)
    routes = getattr(target, "routes", None)
    if callable(getattr(target, TELLS_ROUTES, None)) or not isinstance(routes, list):
        return None
    fastapi_module = sys.modules.get("fastapi")
    if fastapi_module is None or not isinstance(target, fastapi_module.FastAPI):
        return ((route, route) for route in routes)
    from awp_publish.discover.fastapi import contexts_of, plain

    return ((context, plain(context)) for context in contexts_of(routes))


def compares_routes(app: object) -> bool:
    """Return True if an application of another framework sees to it itself that a call arrives at its own route."""
    return bool(getattr(routed(app), COMPARES_ROUTES, False))


def _walk(app: object, prefix: str, is_outermost: bool = False) -> Iterator[Route]:
    target = routed(app)
    tell = getattr(target, TELLS_ROUTES, None)
    if callable(tell):
        yield from (replace(route, path=prefix + route.path) for route in tell())
        return
    fastapi_module = sys.modules.get("fastapi")
    if fastapi_module is not None and isinstance(target, fastapi_module.FastAPI):
        from awp_publish.discover.fastapi import walk_fastapi

        yield from walk_fastapi(target, prefix, _walk, is_outermost)
        return
    routes = getattr(target, "routes", None)
    if isinstance(routes, list) and all(isinstance(route, BaseRoute) for route in routes):
        yield from walk_routes(routes, prefix, _walk)
    elif app is not None:
        yield opaque(prefix)


def routed(app: object) -> object:
    """The first thing with routes inside the middleware around an application: by convention each keeps it as `app`."""
    seen: set[int] = set()
    while not (app is None or hasattr(app, "routes") or hasattr(app, TELLS_ROUTES) or id(app) in seen):
        seen.add(id(app))
        app = getattr(app, "app", None)
    return app
