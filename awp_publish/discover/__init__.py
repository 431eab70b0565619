"""Where a declared handler lives and what it takes.

`find_routes(app)` walks any application that has routes; everything else in this room reads one kind of handler. An
application object of another framework may tell its routes itself, in a method `awp_routes()`.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from starlette.routing import BaseRoute

from awp_publish.discover.route import Operation, Route, opaque
from awp_publish.discover.starlette import walk_routes
from awp_publish.model import OpenApi

__all__ = ["Operation", "Route", "find_openapi", "find_routes", "routed"]

TELLS_ROUTES: Final = "awp_routes"
"""A method without arguments that gives the `Route`s of an application, in order."""


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
    while app is not None and not _has_routes(app) and id(app) not in seen:
        seen.add(id(app))
        app = getattr(app, "app", None)
    return app


def _has_routes(app: object) -> bool:
    return hasattr(app, "routes") or hasattr(app, TELLS_ROUTES)
