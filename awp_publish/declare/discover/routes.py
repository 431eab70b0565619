"""Routes of a Starlette application, and the layers of a handler, by which a declaration finds its route.

`@site.action` may stand below the route decorator (it then marks something inside the endpoint) or above it (something
around the endpoint), with decorators that use functools.wraps, partials and methods in between.
"""

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import UnionType
from typing import Annotated, Final, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from starlette.datastructures import URLPath
from starlette.endpoints import HTTPEndpoint
from starlette.responses import Response
from starlette.routing import (
    BaseRoute,
    Host,
    Match,
    Mount,
    NoMatchFound,
    Route as StarletteRoute,
    Router,
    WebSocketRoute,
)
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from awp_publish.model import ROUTE_CALL, Arrival, JsonObject, Parameter, RouteCredential
from awp_publish.schema.handlers import layers_of
from awp_publish.schema.media import is_json
from awp_publish.schema.paths import PLACEHOLDER, pattern_of

MARK: Final = "__awp_action_"
"""The prefix of the attributes that a declaration leaves on a function."""

ROUTES_METHOD: Final = "awp_routes"
"""A method without arguments that returns the `Route`s of an application, in order."""


def wrappings_of(handler: object) -> Iterator[object]:
    """Yield the handler and what it wraps with functools.wraps: layers that mean the same handler.

    A partial, a method or a callable object adds something to the function inside, so it is not the same handler.
    """
    for layer in layers_of(handler):
        yield layer
        if not hasattr(layer, "__wrapped__") or inspect.ismethod(layer) or isinstance(layer, functools.partial):
            return


def identity_of(handler: object) -> object:
    """Return a key that is equal for the same handler, without using its own equality or hash.

    A bound method is a new object each time it is looked up.
    """
    if inspect.ismethod(handler):
        return id(handler.__self__), id(handler.__func__)
    return id(handler)


def mark(function: object, action_id: str) -> None:
    """Mark a function, for decorators that hide what they decorate but copy its attributes.

    Django's `method_decorator` is one: it hands a decorator a function of its own and copies that one's attributes.
    """
    if inspect.isfunction(function):
        setattr(function, MARK + action_id, function)


def marked_functions_of(handler: object) -> Iterator[object]:
    """Yield the functions whose declarations marked this handler."""
    for layer in layers_of(handler):
        attributes = getattr(layer, "__dict__", {})
        yield from (found for name, found in attributes.items() if name.startswith(MARK))


def is_bound_for_a_call(handler: object) -> bool:
    """Return True for a bound method in a partial, which `method_decorator` makes anew for each call."""
    return any(isinstance(layer, functools.partial) and inspect.ismethod(layer.func) for layer in layers_of(handler))


def answers_json(handler: object) -> bool | None:
    """Return True if a handler is annotated to always answer JSON (`-> JSONResponse`); None if nothing is known.

    Starlette's responses are recognised by their `media_type`, Django's by their name.
    """
    function = next((layer for layer in layers_of(handler) if inspect.isfunction(layer)), None)
    try:
        annotation = getattr(function, "__annotations__", {}).get("return")
        if isinstance(annotation, str):
            annotation = get_type_hints(function)["return"]
    except Exception:  # a name that is imported for type checkers only
        return None
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    is_union = get_origin(annotation) in (Union, UnionType)
    kinds = get_args(annotation) if is_union else (annotation,)
    ancestors = [kind.__mro__ for kind in kinds if isinstance(kind, type)]
    responses = [
        one for one in ancestors if any(kind is Response or kind.__name__ == "HttpResponseBase" for kind in one)
    ]
    if not responses:
        return None
    return len(responses) == len(kinds) and all(
        is_json(str(getattr(own, "media_type", None))) or any(kind.__name__ == "JsonResponse" for kind in (own, *rest))
        for own, *rest in responses
    )


_HTML: Final = frozenset({"TemplateResponse", "HTMLResponse"})
_NO_HTML: Final = frozenset(
    {"JSONResponse", "ORJSONResponse", "UJSONResponse", "PlainTextResponse", "StreamingResponse"}
)


def answers_html(handler: object) -> bool:
    """Return True if a handler answers with an HTML page, by its annotation or by the responses named in its body."""
    function = next(
        (layer for layer in layers_of(handler) if inspect.isfunction(layer) and not hasattr(layer, "__wrapped__")), None
    )
    if function is None:
        return False
    try:
        annotation = get_type_hints(function).get("return")
    except Exception:  # a name that is imported for type checkers only
        annotation = None
    if isinstance(annotation, type) and issubclass(annotation, Response) and annotation is not Response:
        media_type = getattr(annotation, "media_type", None)
        return "html" in str(media_type) or any(kind.__name__ == "_TemplateResponse" for kind in annotation.__mro__)
    names = set(function.__code__.co_names)
    return not _HTML.isdisjoint(names) and _NO_HTML.isdisjoint(names)


_SIGN: Final = re.compile(
    r"(?:(?:user|auth|account|accounts|admin|get|do|show|site|oauth|sso|member|customer)_)*"
    r"(?:log|sign)_?(?:in|out|off|on)(?:_(?:page|form|view|user|get|post|redirect|callback|for_access_token))*"
)


def signs_in(route: "Route") -> bool:
    """Return True if a route's name or the end of its path says that it signs callers in or out."""
    end = next((part for part in reversed(route.path.split("/")) if part and "{" not in part), "")
    words = (re.sub(r"(?<=[a-z0-9])(?=[A-Z])|\W+", "_", one).lower().strip("_") for one in (end, route.name))
    return any(_SIGN.fullmatch(word) is not None for word in words)


# --- What discovery finds ---

METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
"""Methods that perform actions; HEAD, OPTIONS and TRACE only ask about a resource."""

NO_BODY_METHODS: Final = frozenset({"GET", "DELETE"})
FORM_TYPES: Final = ("application/x-www-form-urlencoded", "multipart/form-data")


@dataclass(frozen=True, slots=True)
class Operation:
    """The inputs and outputs of one method of a route, as its framework knows them.

    `parameters` say where each input is sent; `content_type` is the body's media type, None without a body.
    `description` was written for the operation, `summary` may only be its name in words. `answers_json` is True only if
    every success is known to be JSON, whatever the request accepts. `answer_headers` are headers of a success that the
    framework's description names.
    """

    inputs: JsonObject
    outputs: JsonObject
    parameters: tuple[Parameter, ...] = ()
    content_type: str | None = None
    success_status: int = 200
    description: str | None = None
    summary: str | None = None
    operation_id: str | None = None
    auth_required: bool = False
    scopes: tuple[str, ...] = ()
    credentials: tuple[RouteCredential, ...] = ()
    answers_json: bool = False
    security: tuple[Mapping[str, tuple[str, ...]], ...] = ()
    schemes: Mapping[str, JsonObject] = field(default_factory=dict)
    answer_headers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Route:
    """One path of the application, and its handlers.

    `path` is the template from the application's root, with the framework's convertors (`/files/{name:path}`).
    `name` is what a person calls it, `aliases` are the framework's other names for it (its operation id).
    `handlers` are what a declaration may decorate: the endpoint, and for a class endpoint the method and the class.
    `describe(method)` reads the framework's own schema; it is None for frameworks that have none. `understand(kind,
    method, mode)` reads declared inputs or outputs of the framework's own kinds, such as a form class; it returns None
    for all others. `arrival` is where the application's own routing ends for requests to this route.

    `rehearse(method)` creates a hidden route that has the security of this one and does nothing, and returns its
    endpoint; None if there is no security to rehearse.

    The rest is for `site.include()`: `mount` is the path of the mounted application that the route belongs to, "" for
    the outermost one. `reads` says whether its GET changes nothing; None if only its methods tell. `is_page` says
    whether its GET answers with HTML; None if only the handler tells. `kept_out` is the reason why it becomes an action
    only if it is named ("it signs in or out", "it is part of the admin panel"), "" for all others. A route that
    `is_deprecated` is left out in the same way, and its description says so. `usual_method` is the one that is meant by
    the name of a handler that takes all methods.
    """

    path: str
    methods: tuple[str, ...]
    handlers: tuple[object, ...]
    name: str
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    listed: bool = True
    describe: Callable[[str], Operation] | None = field(default=None, compare=False)
    understand: "Understand | None" = field(default=None, compare=False)
    arrival: Arrival | None = field(default=None, compare=False)
    mount: str = ""
    reads: bool | None = None
    is_page: bool | None = None
    kept_out: str = ""
    is_deprecated: bool = False
    usual_method: str = ""
    rehearse: Callable[[str], object] | None = field(default=None, compare=False)

    @property
    def is_opaque(self) -> bool:
        """True if it only stands for a mounted application that hides its routes."""
        return not self.handlers

    def takes(self, method: str, path: str) -> bool:
        """Return True if this route takes a request with this method and path, or path template."""
        return method in self.methods and re.fullmatch(pattern_of(self.path), path) is not None

    @property
    def template(self) -> str:
        """The path as OpenAPI and our documents write it: `/files/{name}`."""
        return PLACEHOLDER.sub(r"{\1}", self.path) if "{" in self.path else self.path


Mode: TypeAlias = Literal["validation", "serialization"]
Understand: TypeAlias = Callable[[object, str, Mode], Operation | None]


def opaque(prefix: str) -> Route:
    """Return the route that stands for an application that hides its routes."""
    return Route(prefix + "{anything:path}", METHODS, (), "", listed=False)


def methods_of(given: object) -> tuple[str, ...]:
    """Return the methods of a route that perform actions; a route without methods takes all of them."""
    known = given if isinstance(given, (set, frozenset, list, tuple)) else METHODS
    return tuple(method for method in METHODS if method in known)


def path_parameters(path: str) -> dict[str, str]:
    """Return the names of a template's placeholders with their convertors ("str" by default)."""
    return {name: convertor or "str" for name, convertor in PLACEHOLDER.findall(path)} if "{" in path else {}


# --- Routes of a Starlette application: `Route`, `Mount`, `Host`, class endpoints ---

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
            yield from walk(route.app, prefix)
        elif not isinstance(route, (WebSocketRoute, HiddenRoute)):
            yield opaque(prefix)  # somebody's own kind of route


class HiddenRoute(BaseRoute):
    """A route for calls of one action, which no other request reaches, whatever its path."""

    def __init__(self, inner: StarletteRoute) -> None:
        self.inner = inner

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match only calls that are meant for this very route."""
        if getattr(scope.get(ROUTE_CALL), "hidden", None) is not self.inner.endpoint:
            return Match.NONE, {}
        match, child = self.inner.matches(scope)
        if match is not Match.FULL:  # that of a function has no parameters, so its path does not matter
            _, child = self.inner.matches({**scope, "path": self.inner.path, "root_path": ""})
        return Match.FULL, child

    def url_path_for(self, name: str, /, **path_params: object) -> URLPath:
        raise NoMatchFound(name, path_params)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.inner.handle(scope, receive, send)


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
        for one in getattr(app, "routes", None) or ():
            endpoint = getattr(one, "endpoint", None)
            function = next((layer for layer in layers_of(endpoint) if inspect.isfunction(layer)), endpoint)
            modules.append(str(getattr(function, "__module__", "")))
        packages = (module.partition(".")[0] for module in modules)
        if package := next((one for one in packages if one in ADMINS), ""):
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
