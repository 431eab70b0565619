"""What discovery finds: a `Route` of the application, and the `Operation` that says what it takes and gives."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from awp_publish.model import Arrival, JsonObject, Parameter, RouteCredential

METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
"""Methods with which actions are performed; HEAD, OPTIONS and TRACE only ask about a resource."""

NO_BODY_METHODS: Final = frozenset({"GET", "DELETE"})
FORM_TYPES: Final = ("application/x-www-form-urlencoded", "multipart/form-data")
_PLACEHOLDER: Final = re.compile(r"{([A-Za-z_][A-Za-z0-9_]*)(?::([A-Za-z_]\w*))?}")

_CONVERTOR_SCHEMAS: Final[Mapping[str, JsonObject]] = {
    "int": {"type": "integer", "minimum": 0},
    "float": {"type": "number", "minimum": 0},
    "uuid": {"type": "string", "format": "uuid"},
}


@dataclass(frozen=True, slots=True)
class Operation:
    """What one method of a route takes and gives, as its framework already knows it.

    `parameters` say where each input travels; `content_type` is the body's media type, None without a body.
    `description` is what somebody wrote about the operation, `summary` perhaps only its name in words.
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


@dataclass(frozen=True, slots=True)
class Route:
    """One path of the application, with what stands behind it.

    `path` is the template from the application's root, with the framework's convertors (`/files/{name:path}`).
    `name` is what a person calls it, `aliases` what else the framework does (its operation id).
    `handlers` are what a declaration may stand on: the endpoint, and for a class endpoint the method and the class.
    `describe(method)` reads the framework's own schema; it is None for frameworks that have none. `understand(kind,
    method, mode)` reads declared inputs or outputs of the framework's own kinds, such as a form class; it answers None
    for all others. `arrival` is where the application's own routing leads that comes to this route.
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

    @property
    def is_opaque(self) -> bool:
        """Whether it only says that an application is mounted there, which keeps its routes to itself."""
        return not self.handlers

    def takes(self, method: str, path: str) -> bool:
        """Whether a request with this method and (template of a) path is for this route."""
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


def path_parameter_schema(convertor: str) -> dict[str, object]:
    """What a convertor of Starlette's matches, as JSON Schema."""
    return dict(_CONVERTOR_SCHEMAS.get(convertor, {"type": "string", "minLength": 1}))


def pattern_of(path: str) -> str:
    """A regular expression of the paths that a template matches. Its own or another template's placeholders match."""
    pieces = _PLACEHOLDER.split(path)  # text, name, convertor, text, name, convertor, ..., text
    convertors = [".*" if convertor == "path" else "[^/]+" for convertor in pieces[2::3]]
    texts = [re.escape(text) for text in pieces[::3]]
    return texts[0] + "".join(convertor + text for convertor, text in zip(convertors, texts[1:], strict=True))
