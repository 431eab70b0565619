"""The interface of frameworks that are built on Starlette, and know more of a route than Starlette does.

A package announces one as an entry point of the group `awp_publish.frameworks`, under the import name of the framework.
Frameworks of another kind list their routes themselves (`awp_routes()`).
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from starlette.routing import BaseRoute

from awp_publish.announced import announced
from awp_publish.declare.discover.functions import Injector
from awp_publish.declare.discover.routes import Route
from awp_publish.declare.discover.starlette import Walk
from awp_publish.model import OpenApi

ENTRY_POINTS: Final = "awp_publish.frameworks"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebFramework:
    """What is known of the applications of a framework.

    `walk` yields the routes of an application below a prefix; the last argument tells whether it is the outermost.
    `in_order` pairs what matches a request with its route, in the order of trying them. `openapi` tells where the
    application serves its OpenAPI document, `injector` makes what injects dependencies of functions without a route.
    """

    application: type
    walk: Callable[[Any, str, Walk, bool], Iterator[Route]]
    in_order: Callable[[Any], Iterable[tuple[Any, BaseRoute]]]
    openapi: Callable[[Any], OpenApi | None]
    injector: Callable[[Any], Injector]


_BY_CLASS: Final[dict[type, WebFramework | None]] = {}


def framework_of(app: object) -> WebFramework | None:
    """Return the framework of an application, None if no package knows it."""
    kind = type(app)
    if kind not in _BY_CLASS:
        # An application can only be of a framework that was imported.
        loaded = (point.load() for point in announced(ENTRY_POINTS) if point.name in sys.modules)
        _BY_CLASS[kind] = next((framework for framework in loaded if issubclass(kind, framework.application)), None)
    return _BY_CLASS[kind]
