"""The layers of a handler, from the outside in: by them a declaration recognises its route.

`@site.action` may stand below the route decorator (it marks something inside of the endpoint), above it (it marks
something around the endpoint), and decorators with functools.wraps, partials and methods may lie in between.
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

MARK: Final = "__awp_action_"
"""The prefix of the attributes that a declaration leaves on a function."""


def layers_of(handler: object) -> Iterator[object]:
    """The handler itself, then what it wraps, down to the plain function."""
    seen: set[int] = set()
    inner: object = handler
    while inner is not None and id(inner) not in seen:
        seen.add(id(inner))
        yield inner
        if isinstance(inner, functools.partial):
            inner = inner.func
        elif inspect.ismethod(inner):
            inner = inner.__func__
        else:
            wrapped = getattr(inner, "__wrapped__", None)
            inner = _method_called(inner) if wrapped is None else wrapped


def wrappings_of(handler: object) -> Iterator[object]:
    """The handler itself and what it wraps with functools.wraps: what may stand for it without meaning another thing.

    A partial, a method and an object add something to the function inside, so they stand for themselves only.
    """
    for layer in layers_of(handler):
        yield layer
        if not hasattr(layer, "__wrapped__") or inspect.ismethod(layer) or isinstance(layer, functools.partial):
            return


def _method_called(handler: object) -> object:
    """The `__call__` of an object whose class somebody wrote."""
    if inspect.isfunction(handler):
        return None
    called = inspect.getattr_static(type(handler), "__call__", None)
    return called if inspect.isfunction(called) else None


def identity_of(handler: object) -> object:
    """Return what makes two mentions of a handler the same one; equality and hashing are the handler's own affair.

    A bound method is made anew each time it is looked up.
    """
    if inspect.ismethod(handler):
        return id(handler.__self__), id(handler.__func__)
    return id(handler)


def mark(function: object, action_id: str) -> None:
    """Leave a trace on a function, which decorators carry along that do not show what they really decorate.

    Django's `method_decorator` is one: it hands a decorator a function of its own, and copies that one's attributes.
    """
    if inspect.isfunction(function):
        setattr(function, MARK + action_id, function)


def marked_functions_of(handler: object) -> Iterator[object]:
    """The functions whose declarations mean this handler by the traces that they have left."""
    for layer in layers_of(handler):
        traces = getattr(layer, "__dict__", {})
        yield from (found for name, found in traces.items() if name.startswith(MARK))


def is_bound_for_a_call(handler: object) -> bool:
    """Return True for a method that is made into a function for one call only, as `method_decorator` does each time."""
    return any(isinstance(layer, functools.partial) and inspect.ismethod(layer.func) for layer in layers_of(handler))


def docstring_of(handler: object) -> str | None:
    """A handler's description: its docstring up to a form feed, where FastAPI ends it too.

    An object has the docstring of its class, which says little about a call, so it comes last. functools.wraps copies
    it from a partial, where it says nothing.
    """
    layers = list(layers_of(handler))
    of_types = {type(layer).__doc__ for layer in layers}
    own = [layer.__doc__ for layer in layers if layer.__doc__ not in of_types]
    of_classes = [type(layer).__doc__ for layer in layers if _method_called(layer)]
    texts = (inspect.cleandoc(text.split("\f")[0]).strip() for text in (*own, *of_classes) if isinstance(text, str))
    return next((text for text in texts if text), None)


def answers_json(handler: object) -> bool | None:
    """Return True if a handler is annotated to answer JSON in every case (`-> JSONResponse`); None if nothing tells.

    Responses are told by their `media_type`, as Starlette's have it, or as Django's by their name.
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
        "json" in str(getattr(own, "media_type", None)) or any(kind.__name__ == "JsonResponse" for kind in (own, *rest))
        for own, *rest in responses
    )


_HTML: Final = frozenset({"TemplateResponse", "HTMLResponse"})
_NO_HTML: Final = frozenset(
    {"JSONResponse", "ORJSONResponse", "UJSONResponse", "PlainTextResponse", "StreamingResponse"}
)


def answers_html(handler: object) -> bool:
    """Return True if a handler answers with a page: it is annotated so, or makes no other answers in its body."""
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
    """Return True if a route signs its caller in or out, as its name or the end of its path says."""
    end = next((part for part in reversed(route.path.split("/")) if part and "{" not in part), "")
    words = (re.sub(r"(?<=[a-z0-9])(?=[A-Z])|\W+", "_", one).lower().strip("_") for one in (end, route.name))
    return any(_SIGN.fullmatch(word) is not None for word in words)


# --- What discovery finds ---

METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
"""Methods with which actions are performed; HEAD, OPTIONS and TRACE only ask about a resource."""

NO_BODY_METHODS: Final = frozenset({"GET", "DELETE"})
FORM_TYPES: Final = ("application/x-www-form-urlencoded", "multipart/form-data")
_PLACEHOLDER: Final = re.compile(r"{([A-Za-z_][A-Za-z0-9_]*)(?::([A-Za-z_]\w*))?}")


@dataclass(frozen=True, slots=True)
class Operation:
    """The inputs and outputs of one method of a route, as its framework already knows it.

    `parameters` say where each input travels; `content_type` is the body's media type, None without a body.
    `description` is what somebody wrote about the operation, `summary` perhaps only its name in words. `answers_json`
    is only said where it is known: of each success, and whatever the request accepts.
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


@dataclass(frozen=True, slots=True)
class Route:
    """One path of the application, with what stands behind it.

    `path` is the template from the application's root, with the framework's convertors (`/files/{name:path}`).
    `name` is what a person calls it, `aliases` what else the framework does (its operation id).
    `handlers` are what a declaration may stand on: the endpoint, and for a class endpoint the method and the class.
    `describe(method)` reads the framework's own schema; it is None for frameworks that have none. `understand(kind,
    method, mode)` reads declared inputs or outputs of the framework's own kinds, such as a form class; it answers None
    for all others. `arrival` is where the application's own routing leads that comes to this route.

    `rehearse(method)` makes a hidden route that has the security of this one and does nothing, and gives its endpoint;
    None where there is nothing to rehearse.

    `site.include()` reads the rest: `mount` is the path of the mounted application in which the route stands, "" for
    the outermost one. `reads` says whether its GET is known to change nothing; None where only its methods tell.
    `is_page` says whether its GET answers with HTML; None where only the handler tells. `kept_out` is why it is no
    action unless it is named ("it signs in or out", "is part of the admin"), "" for all others; what `is_deprecated`
    neither. Its description says so.
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
    rehearse: Callable[[str], object] | None = field(default=None, compare=False)

    @property
    def is_opaque(self) -> bool:
        """True if it only says that an application is mounted there, which keeps its routes to itself."""
        return not self.handlers

    def takes(self, method: str, path: str) -> bool:
        """Return True if a request with this method and (template of a) path is for this route."""
        return method in self.methods and re.fullmatch(pattern_of(self.path), path) is not None

    @property
    def template(self) -> str:
        """The path as OpenAPI and the documents write it: `/files/{name}`."""
        return _PLACEHOLDER.sub(r"{\1}", self.path) if "{" in self.path else self.path


Mode: TypeAlias = Literal["validation", "serialization"]
Understand: TypeAlias = Callable[[object, str, Mode], Operation | None]


def opaque(prefix: str) -> Route:
    """All that is known of an application that keeps its routes to itself."""
    return Route(prefix + "{anything:path}", METHODS, (), "", listed=False)


def methods_of(given: object) -> tuple[str, ...]:
    """The methods of a route that perform actions; a route without methods answers to all of them."""
    known = given if isinstance(given, (set, frozenset, list, tuple)) else METHODS
    return tuple(method for method in METHODS if method in known)


def path_parameters(path: str) -> dict[str, str]:
    """Names of a template's placeholders with their convertors, "str" where none is written."""
    return {name: convertor or "str" for name, convertor in _PLACEHOLDER.findall(path)} if "{" in path else {}


def pattern_of(path: str) -> str:
    """A regular expression of the paths that a template matches. Its own or another template's placeholders match."""
    pieces = _PLACEHOLDER.split(path)  # text, name, convertor, text, name, convertor, ..., text
    convertors = [".*" if convertor == "path" else "[^/]+" for convertor in pieces[2::3]]
    texts = [re.escape(text) for text in pieces[::3]]
    return texts[0] + "".join(convertor + text for convertor, text in zip(convertors, texts[1:], strict=True))


# --- Routes of a Starlette application: `Route`, `Mount`, `Host`, class endpoints ---

Walk = Callable[[object, str], Iterator[Route]]


def walk_routes(routes: Sequence[BaseRoute], prefix: str, walk: Walk) -> Iterator[Route]:
    """Every route below `routes`. `walk(app, prefix)` looks into a mounted application, of whatever kind."""
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
    """A route for the calls of one action, which no request of anybody else reaches, whatever its path is."""

    def __init__(self, inner: StarletteRoute) -> None:
        self.inner = inner

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match what is a call on its way to this very route."""
        if getattr(scope.get(ROUTE_CALL), "hidden", None) is not self.inner.endpoint:
            return Match.NONE, {}
        match, child = self.inner.matches(scope)
        if match is not Match.FULL:  # a function's has no parameters: its path is nobody's affair
            _, child = self.inner.matches({**scope, "path": self.inner.path, "root_path": ""})
        return Match.FULL, child

    def url_path_for(self, name: str, /, **path_params: object) -> URLPath:
        raise NoMatchFound(name, path_params)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.inner.handle(scope, receive, send)


ADMINS: Final = frozenset({"sqladmin", "starlette_admin", "fastapi_admin", "fastapi_amis_admin", "piccolo_admin"})
"""Packages whose applications are admin panels, by the name that is imported."""


def mounted(mount: Mount, prefix: str, walk: Walk) -> Iterator[Route]:
    """The routes below a mount, which say that they stand in it; a group of routes is no application of its own."""
    path, app = prefix + mount.path, unwrapped(mount.app)
    why = ""
    if isinstance(app, StaticFiles):
        why = "these are static files"
    else:  # its packages: its own class's, and those whose functions its routes lead to
        modules = [kind.__module__ for kind in type(app).__mro__]
        for one in getattr(app, "routes", None) or ():
            endpoint = getattr(one, "endpoint", None)
            function = next((layer for layer in layers_of(endpoint) if inspect.isfunction(layer)), endpoint)
            modules.append(str(getattr(function, "__module__", "")))
        packages = (module.partition(".")[0] for module in modules)
        if package := next((one for one in packages if one in ADMINS), ""):
            why = f"it is part of the admin panel ({package})"
    group = isinstance(app, Router) and not why
    for route in walk(mount.app, path):
        within = route.mount if group else route.mount or path or "/"
        yield replace(route, mount=within, kept_out=route.kept_out or why)


def unwrapped(app: object) -> object:
    """The application inside the middleware around it: by convention each keeps it as `app`."""
    seen: set[int] = set()
    while not hasattr(app, "routes") and id(app) not in seen and getattr(app, "app", None) is not None:
        seen.add(id(app))
        app = getattr(app, "app", None)
    return app
