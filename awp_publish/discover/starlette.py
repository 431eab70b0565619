"""Routes of a Starlette application: `Route`, `Mount`, `Host`, class endpoints."""

from collections.abc import Callable, Iterator, Sequence

from starlette.endpoints import HTTPEndpoint
from starlette.routing import BaseRoute, Host, Mount
from starlette.routing import Route as StarletteRoute

from awp_publish.discover.route import Route, innermost

Walk = Callable[[object, str], Iterator[Route]]

_IMPLIED_METHODS = {"HEAD", "OPTIONS"}
_CLASS_METHODS = ("get", "post", "put", "patch", "delete")


def walk_routes(routes: Sequence[BaseRoute], prefix: str, walk: Walk) -> Iterator[Route]:
    """Every route below `routes`. `walk(app, prefix)` looks into a mounted application, of whatever kind."""
    for route in routes:
        if isinstance(route, StarletteRoute):
            yield from read_route(route, prefix)
        elif isinstance(route, Mount):
            yield from walk(route.app, prefix + route.path)
        elif isinstance(route, Host):
            yield from walk(route.app, prefix)


def read_route(route: StarletteRoute, prefix: str) -> Iterator[Route]:
    """The routes of one Starlette route: one, or one for each method of a class endpoint."""
    path = prefix + route.path
    endpoint = route.endpoint
    if isinstance(endpoint, type) and issubclass(endpoint, HTTPEndpoint):
        yield from _class_routes(endpoint, path, route.include_in_schema)
        return
    methods = tuple(sorted(set(route.methods or ()) - _IMPLIED_METHODS))
    yield Route(path, methods, (innermost(endpoint),), route.name, listed=route.include_in_schema)


def _class_routes(endpoint: type[HTTPEndpoint], path: str, listed: bool) -> Iterator[Route]:
    for name in _CLASS_METHODS:
        function = getattr(endpoint, name, None)
        if function is not None:
            handlers = (innermost(function), endpoint)
            yield Route(path, (name.upper(),), handlers, f"{endpoint.__name__}_{name}", listed=listed)
