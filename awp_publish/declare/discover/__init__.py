"""Find the route of a declared handler, and read its inputs and outputs.

`find_routes(app)` walks any application that has routes; the other modules each read one kind of handler. Packages
announce what they know of further frameworks (`framework.py`), or an application object lists its routes itself, in a
method `awp_routes()`.
"""

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from dataclasses import replace
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from starlette.routing import BaseRoute, Host, Match, Mount, Route as StarletteRoute

from awp_publish.declare.discover.framework import framework_of
from awp_publish.declare.discover.functions import Injector
from awp_publish.declare.discover.routes import ROUTES_METHOD, Route as Route, opaque, path_parameters
from awp_publish.declare.discover.starlette import is_hidden, unwrap as unwrap, walk_routes
from awp_publish.model import Arrival, OpenApi

Scope: TypeAlias = MutableMapping[str, Any]

COMPARES_ROUTES: Final = "awp_compares_routes"
"""An attribute that is True if such an application checks, before it runs a view, that a call reached its own route."""


def find_routes(app: object) -> list[Route]:
    """Return every route of an application, in order; an application that hides its routes is one opaque route."""
    return list(_walk(app, "", is_outermost=True))


def find_openapi(app: object) -> OpenApi | None:
    """Return where the application itself serves its OpenAPI document, None if it serves none."""
    target = unwrap(app)
    framework = framework_of(target)
    return None if framework is None else framework.openapi(target)


def find_injector(app: object) -> Injector | None:
    """Return what injects the dependencies of functions without a route; None if the framework cannot."""
    target = unwrap(app)
    framework = framework_of(target)
    return None if framework is None else framework.injector(target)


ITSELF: Final = object()
"""The endpoint of an arrival at an application that checks routes itself."""


class Routed(NamedTuple):
    """The arrival of a request, and every endpoint that the application's routing passes on the way there."""

    arrival: Arrival
    endpoints: tuple[object, ...]


def find_arrival(app: object, scope: Scope, prefix: str = "") -> Routed | None:
    """Return where the application's own routing leads a request, trying its routes in order; None if nowhere.

    A route that matches only the path, with another method, does not count. An application that hides its routes, or
    checks them itself, is one place.
    """
    listed = _in_order(app)
    if listed is None:
        return Routed(Arrival(prefix, ITSELF if compares_routes(app) else None), ())
    return _first_of(listed, scope, prefix)


def fixed_arrivals(app: object) -> Callable[[Scope], Routed | None]:
    """Return a `find_arrival` for many requests to the same applications, which indexes the routes of each once.

    Routes are indexed by their fixed segments, so that checking thousands of paths does not take quadratic time.
    """
    shapes_by_id: dict[int, tuple[object, _Shapes | None]] = {}

    def find(app: object, scope: Scope, prefix: str) -> Routed | None:
        if id(app) not in shapes_by_id:
            listed = _in_order(app)
            made = _Shapes({}, {}, [])
            shapes_by_id[id(app)] = app, None if listed is None else made
            for order, (candidate, route) in enumerate(listed or ()):
                if is_hidden(route):  # matches calls only
                    continue
                is_ordinary = getattr(type(route).matches, "__module__", "") in ("starlette.routing", "fastapi.routing")
                if is_ordinary and isinstance(route, StarletteRoute):
                    segments, convertors = candidate.path.split("/"), path_parameters(candidate.path).values()
                    if {"str", "int", "float", "uuid"}.issuperset(convertors):  # they match no slash
                        key = tuple(None if "{" in segment else segment for segment in segments)
                        made.routes.setdefault(key, []).append((order, candidate, route))
                        made.by_length.setdefault(len(key), set()).add(tuple(segment is None for segment in key))
                        continue
                made.others.append((order, candidate, route))
        shapes = shapes_by_id[id(app)][1]
        if shapes is None:
            return find_arrival(app, scope, prefix)
        segments = scope["path"].removeprefix(scope.get("root_path", "")).split("/")
        tried = [*shapes.others]
        for shape in shapes.by_length.get(len(segments), ()):
            key = tuple(
                None if is_placeholder else segment for is_placeholder, segment in zip(shape, segments, strict=True)
            )
            tried += shapes.routes.get(key, ())
        tried.sort(key=itemgetter(0))
        return _first_of(((candidate, route) for _, candidate, route in tried), scope, prefix, find)

    return lambda scope: find(app, scope, "")


class _Shapes(NamedTuple):
    """Routes with their positions: by segments (None for a placeholder), and all others; shapes by length."""

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
        route_below = find_below(route.app, {**scope, **child}, below)
        return None if route_below is None else Routed(route_below.arrival, (endpoint, *route_below.endpoints))
    return None


def asks_for_host(app: object) -> bool:
    """Return True if the application's routing depends on the header Host."""
    routes = [route for _, route in _in_order(app) or ()]
    return any(isinstance(route, Host) or (isinstance(route, Mount) and asks_for_host(route.app)) for route in routes)


def _in_order(app: object) -> Iterable[tuple[Any, BaseRoute]] | None:
    """Return pairs of a route's matcher and the route, in the order of trying them; None if they are hidden."""
    target: Any = unwrap(app)
    if callable(getattr(target, ROUTES_METHOD, None)):
        return None
    if (framework := framework_of(target)) is not None:
        return framework.in_order(target)
    routes = _routes_of(target)
    return None if routes is None else ((route, route) for route in routes)


def _routes_of(app: object) -> list[BaseRoute] | None:
    """Return the routes that an application lists, None if they are not Starlette's."""
    routes = getattr(app, "routes", None)
    is_known = isinstance(routes, list) and (not routes or isinstance(routes[0], BaseRoute))
    return routes if is_known else None


def compares_routes(app: object) -> bool:
    """Return True if an application of another framework itself checks that a call reached its own route."""
    return bool(getattr(unwrap(app), COMPARES_ROUTES, False))


def _walk(app: object, prefix: str, is_outermost: bool = False) -> Iterator[Route]:
    target: Any = unwrap(app)
    list_routes = getattr(target, ROUTES_METHOD, None)
    if callable(list_routes):
        yield from (replace(route, path=prefix + route.path) for route in list_routes())
        return
    if (framework := framework_of(target)) is not None:
        yield from framework.walk(target, prefix, _walk, is_outermost)
        return
    if (routes := _routes_of(target)) is not None:
        yield from walk_routes(routes, prefix, _walk)
    elif app is not None:
        yield opaque(prefix)
