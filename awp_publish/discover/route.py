"""What discovery finds: a `Route` of the application, and the `Operation` that says what it takes and gives."""

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from awp_publish.model import JsonObject, Parameter

NO_BODY_METHODS: Final = frozenset({"GET", "HEAD", "DELETE"})
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
    """

    inputs: JsonObject
    outputs: JsonObject
    parameters: tuple[Parameter, ...] = ()
    content_type: str | None = None
    success_status: int = 200
    description: str | None = None
    operation_id: str | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """One path of the application, with the functions behind it.

    `path` is the template from the application's root, with the framework's convertors (`/files/{name:path}`).
    `handlers` are the functions (and the class) a declaration may stand on. `describe(method)` reads the framework's
    own schema; it is None for frameworks that have none.
    """

    path: str
    methods: tuple[str, ...]
    handlers: tuple[object, ...]
    name: str
    tags: tuple[str, ...] = ()
    listed: bool = True
    describe: Callable[[str], Operation] | None = field(default=None, compare=False)

    @property
    def template(self) -> str:
        """The path as OpenAPI and the documents write it: `/files/{name}`."""
        return _PLACEHOLDER.sub(r"{\1}", self.path)


def path_parameters(path: str) -> dict[str, str]:
    """Names of a template's placeholders with their convertors, "str" where none is written."""
    return {name: convertor or "str" for name, convertor in _PLACEHOLDER.findall(path)}


def path_parameter_schema(convertor: str) -> dict[str, object]:
    """What a convertor of Starlette's matches, as JSON Schema."""
    return dict(_CONVERTOR_SCHEMAS.get(convertor, {"type": "string", "minLength": 1}))


def innermost(handler: object) -> object:
    """The function inside `functools.partial` and `functools.wraps`: by it a declaration recognises its route."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    return inspect.unwrap(handler) if callable(handler) else handler
