"""The signature of a plain function, and which of its parameters a framework injects."""

import dataclasses
import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints

from starlette.background import BackgroundTasks
from starlette.requests import HTTPConnection
from starlette.responses import Response
from typing_extensions import TypeAliasType

from awp_publish.schema import UnusableSchema, reason_of
from awp_publish.schema.handlers import layers_of

_NAMED: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class UnusableFunction(UnusableSchema):
    """A function that cannot be called with named inputs, whatever its declaration says."""


@dataclasses.dataclass(frozen=True, slots=True)
class Signature:
    """A function's parameters, all of which can be given by name, their types, and its return type."""

    parameters: Mapping[str, inspect.Parameter]
    types: Mapping[str, object]
    returns: object


def read_signature(function: Callable[..., object]) -> Signature:
    """Read a function's signature.

    Raises UnusableSchema if it cannot be called with named inputs for one JSON answer.
    """
    if inspect.isclass(function):
        raise UnusableFunction("it is a class; declare a function")
    for layer in layers_of(function):
        if inspect.isgeneratorfunction(layer) or inspect.isasyncgenfunction(layer):
            raise UnusableFunction("it is a generator; return one answer, a list for instance")
    try:
        parameters = dict(inspect.signature(function).parameters)
    except (ValueError, TypeError) as error:
        raise UnusableFunction("its signature cannot be read; wrap it in a function of your own") from error
    for name, parameter in parameters.items():
        if parameter.kind not in _NAMED:
            raise UnusableFunction(f"its parameter {name} cannot be given by name; agents send named inputs")
    *_, written = layers_of(function)
    try:
        hints = get_type_hints(written, include_extras=True)
    except (NameError, TypeError, AttributeError) as error:
        raise UnusableSchema(f"its annotations cannot be read: {reason_of(error)}") from error
    return Signature(parameters, hints, hints.get("return", Any))


def injected_parameters(signature: Signature) -> Mapping[str, str]:
    """Return the parameters of a function that its framework injects, each with its kind ("Depends").

    FastAPI and Starlette know them by annotation or default (`Depends`, `Security`, `Request`, `Response`,
    `BackgroundTasks`, `SecurityScopes`, `Header`, `Cookie`); Django's request is one as well. Raises UnusableSchema.
    """
    kinds: dict[str, str] = {}
    for name, parameter in signature.parameters.items():
        kind = signature.types.get(name)
        injected = _marker_kind(parameter.default) or _injected_kind(kind)
        if not injected and kind is None and name == "request":
            injected = "the request"
        if not injected and (inner := next(filter(None, map(_injected_kind, get_args(kind))), "")):
            remedy = f"write Annotated[... | None, {inner}(...)], or leave None out"
            raise UnusableFunction(f"its parameter {name} has {inner} inside its annotation; {remedy}")
        if injected:
            kinds[name] = injected
    return kinds


_INJECTED: Final = (HTTPConnection, Response, BackgroundTasks)

_MARKERS: Final = ("Depends", "Header", "Cookie")
"""Classes of `fastapi.params` that say where a value comes from; Security is a subclass of Depends."""


def _marker_kind(value: object) -> str:
    params = sys.modules.get("fastapi.params")
    is_marker = params is not None and any(isinstance(value, getattr(params, marker)) for marker in _MARKERS)
    return type(value).__name__ if is_marker else ""


def _injected_kind(kind: object) -> str:
    while isinstance(kind, TypeAliasType):
        kind = kind.__value__
    if get_origin(kind) is Annotated:
        return next(filter(None, map(_marker_kind, get_args(kind)[1:])), "") or _injected_kind(get_args(kind)[0])
    if not isinstance(kind, type):
        return ""
    security = sys.modules.get("fastapi.security")
    is_scopes = security is not None and issubclass(kind, security.SecurityScopes)
    is_django = any(base.__module__ == "django.http.request" for base in kind.__mro__)
    return kind.__name__ if is_scopes or is_django or issubclass(kind, _INJECTED) else ""
