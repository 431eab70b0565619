"""The signature of a plain function, and how an input (decoded JSON) becomes its arguments."""

import base64
import dataclasses
import inspect
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Final, Protocol, TypeAlias, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, RootModel, TypeAdapter, ValidationError, create_model
from pydantic_core import PydanticSerializationError, to_json
from starlette.background import BackgroundTasks
from starlette.requests import HTTPConnection
from starlette.responses import Response
from typing_extensions import TypeAliasType, is_typeddict

from awp_publish.calls.threads import run_in_thread
from awp_publish.declare.discover.routes import Operation
from awp_publish.model import Arrival, JsonObject
from awp_publish.problems import InvalidInput, InvalidOutput
from awp_publish.schema import UnusableSchema, adapt, object_schema_of, read_errors, reason_of, schema_of
from awp_publish.schema.handlers import layers_of
from awp_publish.schema.media import BINARY

Given: TypeAlias = Mapping[str, object]
Bind: TypeAlias = Callable[[Given], dict[str, object]]
"""Turns an input into arguments by name. Raises pydantic's ValidationError."""

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


# --- Parameters that the framework injects, never a caller ---


def injected_parameters(signature: Signature) -> Mapping[str, str]:
    """Return the parameters of a function that its framework injects, each with its kind ("Depends").

    FastAPI and Starlette know them by annotation or default (`Depends`, `Security`, `Request`, `Response`,
    `BackgroundTasks`, `SecurityScopes`, `Header`, `Cookie`); Django's request is one as well. Raises UnusableSchema.
    """
    found: dict[str, str] = {}
    for name, parameter in signature.parameters.items():
        kind = signature.types.get(name)
        injected = _marker_kind(parameter.default) or _injected_kind(kind)
        if not injected and kind is None and name == "request":
            injected = "the request"
        if not injected and (inner := next(filter(None, map(_injected_kind, get_args(kind))), "")):
            remedy = f"write Annotated[... | None, {inner}(...)], or leave None out"
            raise UnusableFunction(f"its parameter {name} has {inner} inside its annotation; {remedy}")
        if injected:
            found[name] = injected
    return found


_INJECTED: Final = (HTTPConnection, Response, BackgroundTasks)
_MARKERS: Final = ("Depends", "Header", "Cookie")
"""Classes of `fastapi.params` that say where a value comes from; Security is a subclass of Depends."""


def _marker_kind(value: object) -> str:
    """Return the kind of marker that a default or an annotation's metadata is; "" if it is none."""
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


# --- Inputs from the signature ---


def bind_signature(signature: Signature) -> tuple[Bind, JsonObject]:
    """Bind inputs to a signature: a single model is the whole input, as in FastAPI; else each parameter is a member."""
    names = list(signature.parameters)
    whole = signature.types.get(names[0]) if len(names) == 1 else None
    is_required = len(names) == 1 and signature.parameters[names[0]].default is inspect.Parameter.empty
    if is_required and isinstance(whole, type) and (_fields_of(whole) or is_typeddict(whole)):
        return partial(_bind_whole, names[0], adapt(whole)), object_schema_of(whole)
    # The fields get names of our own, because pydantic restricts names (`_x`, `copy`, `model_config`) and functions do
    # not; the parameter's name becomes the alias, unless its annotation has one.
    fields: dict[str, Any] = {}
    renamed = {f"input_{number}": name for number, name in enumerate(signature.parameters)}
    for renaming, name in renamed.items():
        if name not in signature.types:
            raise UnusableSchema(f"its parameter {name} has no annotation")
        default = signature.parameters[name].default
        fields[renaming] = (signature.types[name], ... if default is inspect.Parameter.empty else default)
    try:
        config = ConfigDict(extra="forbid", alias_generator=renamed.__getitem__)
        model = create_model("Input", __config__=config, **fields)
    except Exception as error:  # pydantic, or a type of the site, may raise anything
        raise UnusableSchema(reason_of(error)) from error
    adapter = adapt(model)

    def bind(given: Given) -> dict[str, object]:
        members = _validated(adapter, given)
        return {name: getattr(members, field) for field, name in renamed.items()}

    return bind, object_schema_of(model)


def _fields_of(kind: object) -> frozenset[str]:
    """Return the fields of a model or dataclass, which its values always have; none for a RootModel."""
    if isinstance(kind, type) and issubclass(kind, BaseModel) and not issubclass(kind, RootModel):
        return frozenset(kind.model_fields)
    is_dataclass = isinstance(kind, type) and dataclasses.is_dataclass(kind)
    return frozenset(field.name for field in dataclasses.fields(cast(Any, kind))) if is_dataclass else frozenset()


def _bind_whole(name: str, adapter: TypeAdapter[object], given: Given) -> dict[str, object]:
    return {name: _validated(adapter, given)}


def _validated(adapter: TypeAdapter[object], given: Given) -> object:
    """Validate as Python, then as JSON: from JSON, strict types accept more, such as a date written as text."""
    try:
        return adapter.validate_python(given)
    except ValidationError:
        return adapter.validate_json(to_json(given))


# --- Inputs declared separately from the signature ---


def bind_declared(inputs: object, signature: Signature) -> tuple[Bind, JsonObject]:
    """Bind declared inputs: as a whole to a single parameter, or their members by name."""
    schema = object_schema_of(inputs)
    # All members, and those that are always present: from the model's fields, else from the schema.
    members = certain = _fields_of(inputs)
    if not members:
        properties, listed = schema.get("properties"), schema.get("required")
        members = frozenset(properties) if isinstance(properties, Mapping) else frozenset()
        certain = members & frozenset(listed if isinstance(listed, list) else ())
    names = list(signature.parameters)
    adapter = adapt(dict[str, object] if isinstance(inputs, Mapping) else inputs)
    if len(names) == 1 and names[0] not in members:
        return partial(_bind_whole, names[0], adapter), schema
    for name, parameter in signature.parameters.items():
        if name not in certain and parameter.default is parameter.empty:
            raise UnusableSchema(f"its parameter {name} has no default, and the declared inputs do not require it")
    for name in members:
        if name not in names:
            raise UnusableSchema(f"the declared inputs have {name}, which is none of its parameters")

    def bind(given: Given) -> dict[str, object]:
        validated = _validated(adapter, given)
        if isinstance(validated, Mapping):
            return {name: validated[name] for name in names if name in validated}
        return {name: getattr(validated, name) for name in names if hasattr(validated, name)}

    return bind, schema


# --- A plain function as an action ---


class FunctionCall(Protocol):
    """Calls a function with a validated input and injected parameters, and returns JSON text.

    Raises InvalidInput, InvalidOutput, or what the function raises. A synchronous function runs in a thread.
    """

    def __call__(self, given: JsonObject, injected: Given | None = None, /) -> Awaitable[bytes]: ...


@dataclass(frozen=True, slots=True)
class Described:
    """A function's schemas, and a callable for it.

    `injected` are the parameters that are not inputs and that `call` takes separately, each with its kind ("Depends").
    """

    inputs: JsonObject
    outputs: JsonObject
    call: "FunctionCall"
    injected: Mapping[str, str] = field(default_factory=dict)


class Injector(Protocol):
    """Injects parameters of functions that have no route, as a framework does."""

    @property
    def is_general(self) -> bool:
        """Return True if the application has dependencies that apply to everything in it."""

    def register(self, function: Callable[..., object], described: Described, path: str) -> tuple[Operation, Arrival]:
        """Create a hidden route for a function, which takes its own inputs and those of its dependencies.

        Raises UnusableFunction.
        """

    def rehearse(self, function: Callable[..., object], described: Described, path: str) -> object:
        """Create a hidden route that only has the function's security. Returns its endpoint, None without security."""


def describe_function(
    function: Callable[..., object], declared_inputs: object = None, declared_outputs: object = Any
) -> Described:
    """Read a function's signature; declared inputs and outputs (a type or a raw schema) take precedence.

    Raises UnusableSchema when an annotation cannot be read, has no JSON Schema, or a parameter cannot be given by name.
    """
    signature = read_signature(function)
    injected = injected_parameters(signature)
    if injected:
        own = {name: one for name, one in signature.parameters.items() if name not in injected}
        signature = dataclasses.replace(signature, parameters=own)
    returned = signature.returns if declared_outputs is Any else declared_outputs
    bind, inputs = bind_signature(signature) if declared_inputs is None else bind_declared(declared_inputs, signature)
    outputs = {} if returned is Any else schema_of(returned, "serialization")
    is_free = returned is Any or isinstance(returned, Mapping)
    is_binary = outputs.get("format") == "binary" and not is_free
    if is_binary:  # bytes are base64 in JSON
        facts = {name: value for name, value in outputs.items() if name != "format"}
        outputs = {"contentMediaType": BINARY, **facts, "contentEncoding": "base64"}
    adapter = None if is_free or is_binary else adapt(returned)
    is_async = inspect.iscoroutinefunction(function)

    async def call(given: Given, injected: Given | None = None) -> bytes:
        try:
            arguments = bind(given)
        except ValidationError as error:
            errors = error.errors(include_url=False, include_input=False)
            found = read_errors(((one["loc"], one["msg"], one["type"]) for one in errors), given)
            raise InvalidInput.of(found) from error
        if injected:
            arguments |= injected
        if is_async:
            answer = await cast("Callable[..., Awaitable[object]]", function)(**arguments)
        else:
            answer = await run_in_thread(partial(function, **arguments))
            if inspect.isawaitable(answer):
                answer = await answer
        try:
            if adapter is not None:
                checked = adapter.validate_python(answer, from_attributes=True)
                return adapter.dump_json(checked, by_alias=True, warnings="error")
            if not is_binary:  # JSON has no NaN and no infinity; they become null, as they do in a field of type float
                return to_json(answer, inf_nan_mode="null")
        except (ValidationError, PydanticSerializationError) as error:
            wrong = "cannot be written as JSON" if adapter is None else "does not match its declared output"
            raise InvalidOutput(f"What the function returned {wrong}.") from error
        if not isinstance(answer, (bytes, bytearray, memoryview)):
            raise InvalidOutput("What the function returned does not match its declared output.")
        return to_json(base64.b64encode(answer).decode("ascii"))

    return Described(inputs, outputs, call, injected)
