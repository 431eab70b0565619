"""Find the route of a declared handler, and read what it takes.

`find_routes(app)` walks any application that has routes; everything else in this room reads one kind of handler. An
application object of another framework may tell its routes itself, in a method `awp_routes()`.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from starlette.routing import BaseRoute, Host, Match, Mount, Route as StarletteRoute

from awp_publish.discover.routes import HiddenRoute, Operation, Route, opaque, path_parameters, walk_routes
from awp_publish.model import Arrival, OpenApi

if TYPE_CHECKING:
    from awp_publish.discover.functions import Injector

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


def find_injector(app: object) -> "Injector | None":
    """Return what fills in the dependencies of functions without a route; None where the framework cannot."""
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
    """Return where the application's own routing leads a request, asked of its routes in their order; None for nowhere.

    What takes the request with another method only is nowhere. An application that keeps its routes to itself, or
    compares them itself, is one place.
    """
    listed = _in_order(app)
    if listed is None:
        return Routed(Arrival(prefix, ITSELF if compares_routes(app) else None), ())
    return _first_of(listed, scope, prefix)


def fixed_arrivals(app: object) -> Callable[[Scope], Routed | None]:
    """Return `find_arrival` for paths without parameters, which lists the routes of each application once.

    Only routes of the shape of a path are asked, those without placeholders and those whose placeholders are whole
    segments: thousands of them take no square of the time.
    """
    known: dict[int, tuple[object, _Shapes | None]] = {}

    def find(app: object, scope: Scope, prefix: str) -> Routed | None:
        if id(app) not in known:
            listed = _in_order(app)
            made = _Shapes({}, {}, [])
            known[id(app)] = app, None if listed is None else made
            for order, (candidate, route) in enumerate(listed or ()):
                if isinstance(route, HiddenRoute):  # of calls alone
                    continue
                is_ordinary = getattr(type(route).matches, "__module__", "") in ("starlette.routing", "fastapi.routing")
                if is_ordinary and isinstance(route, StarletteRoute):
                    segments, convertors = candidate.path.split("/"), path_parameters(candidate.path).values()
                    if {"str", "int", "float", "uuid"}.issuperset(convertors):  # which take no slash
                        key = tuple(None if "{" in one else one for one in segments)
                        made.routes.setdefault(key, []).append((order, candidate, route))
                        made.by_length.setdefault(len(key), set()).add(tuple(one is None for one in key))
                        continue
                made.others.append((order, candidate, route))
        shapes = known[id(app)][1]
        if shapes is None:
            return find_arrival(app, scope, prefix)
        segments = scope["path"].removeprefix(scope.get("root_path", "")).split("/")
        tried = [*shapes.others]
        for shape in shapes.by_length.get(len(segments), ()):
            key = tuple(None if is_placeholder else one for is_placeholder, one in zip(shape, segments, strict=True))
            tried += shapes.routes.get(key, ())
        tried.sort(key=itemgetter(0))
        return _first_of(((candidate, route) for _, candidate, route in tried), scope, prefix, find)

    return lambda scope: find(app, scope, "")


class _Shapes(NamedTuple):
    """Routes with their order: by segments, None for a placeholder, and those of another kind. Shapes by length."""

    routes: dict[tuple[str | None, ...], list[tuple[int, Any, BaseRoute]]]
    by_length: dict[int, set[tuple[bool, ...]]]
    others: list[tuple[int, Any, BaseRoute]]


def _first_of(
    listed: Iterable[tuple[Any, BaseRoute]],
    scope: Scope,
    prefix: str,
    find_below: Callable[[object, Scope, str], Routed | None] = find_arrival,
) -> Routed | None:
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
        found = find_below(route.app, {**scope, **child}, below)
        return None if found is None else Routed(found.arrival, (endpoint, *found.endpoints))
    return None


def asks_for_host(app: object) -> bool:
    """Return True if the application's routing depends on the header Host."""
    routes = [route for _, route in _in_order(app) or ()]
    return any(isinstance(one, Host) or (isinstance(one, Mount) and asks_for_host(one.app)) for one in routes)


def _in_order(app: object) -> Iterable[tuple[Any, BaseRoute]] | None:
    """Pairs of what decides whether a route matches, and the route, in the order of trying them; None if not shown."""
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
