"""Routes of a Starlette application: `Route`, `Mount`, `Host`, class endpoints."""

from collections.abc import Callable, Iterator, Sequence

from starlette.endpoints import HTTPEndpoint
from starlette.routing import BaseRoute, Host, Mount, Route as StarletteRoute, WebSocketRoute

from awp_publish.discover.route import METHODS, Route, methods_of, opaque
from awp_publish.model import Arrival

Walk = Callable[[object, str], Iterator[Route]]


def walk_routes(routes: Sequence[BaseRoute], prefix: str, walk: Walk) -> Iterator[Route]:
    """Every route below `routes`. `walk(app, prefix)` looks into a mounted application, of whatever kind."""
    for route in routes:
        if isinstance(route, StarletteRoute):
            yield from _read_route(route, prefix)
        elif isinstance(route, Mount):
            yield from walk(route.app, prefix + route.path)
        elif isinstance(route, Host):
            yield from walk(route.app, prefix)
        elif not isinstance(route, WebSocketRoute):
            yield opaque(prefix)  # somebody's own kind of route


def _read_route(route: StarletteRoute, prefix: str) -> Iterator[Route]:
    """The routes of one Starlette route: one, or one for each method of a class endpoint."""
    path, endpoint = prefix + route.path, route.endpoint
    if isinstance(endpoint, type) and issubclass(endpoint, HTTPEndpoint):
        yield from _class_routes(endpoint, path, route)
        return
    yield Route(
        path,
        methods_of(route.methods),
        (endpoint,),
        route.name,
        listed=route.include_in_schema,
        arrival=Arrival(path, endpoint),
    )


def _class_routes(endpoint: type[HTTPEndpoint], path: str, route: StarletteRoute) -> Iterator[Route]:
    for method in METHODS:
        function = getattr(endpoint, method.lower(), None)
        if function is not None and method in (route.methods or METHODS):
            name = f"{route.name}_{method.lower()}"
            yield Route(
                path,
                (method,),
                (function, endpoint),
                name,
                listed=route.include_in_schema,
                arrival=Arrival(path, endpoint),
            )
