"""A plain function as an action: inputs and outputs from its signature, and how to call it with decoded JSON."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, get_type_hints

from pydantic import BaseModel, ConfigDict, PydanticUserError, TypeAdapter, ValidationError, create_model
from pydantic_core import PydanticSerializationError, to_json
from starlette.concurrency import run_in_threadpool

from awp_publish.model import Function, JsonObject
from awp_publish.problems import InvalidInput, InvalidOutput, Violation
from awp_publish.schema import UnusableSchema, adapt, pointer_to, schema_of, shorten

_PLAIN: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)

Bind = Callable[[Mapping[str, object]], dict[str, object]]
Write = Callable[[object], bytes]


@dataclass(frozen=True, slots=True)
class Described:
    """A function's schemas and the way to call it."""

    inputs: JsonObject
    outputs: JsonObject
    call: Function


def describe_function(function: Callable[..., object], inputs: object = None, outputs: object = None) -> Described:
    """Read a function's signature; `inputs` and `outputs` (a type or a raw schema) take precedence.

    Raises UnusableSchema when an annotation cannot be read, has no JSON Schema, or a parameter cannot be given by name.
    """
    hints = _read_hints(function)
    parameters = _read_parameters(function)
    bind, taken = _bind_declared(inputs, parameters) if inputs is not None else _bind_signature(parameters, hints)
    write, given = _read_outputs(hints.get("return", Any) if outputs is None else outputs)
    return Described(taken, given, partial(_call, function, bind, write))


def _read_hints(function: Callable[..., object]) -> dict[str, object]:
    target = function if inspect.isroutine(function) else type(function).__call__
    try:
        return get_type_hints(inspect.unwrap(target), include_extras=True)
    except (NameError, TypeError, AttributeError) as error:
        raise UnusableSchema(f"its annotations cannot be read: {error}; define the types at module level") from error


def _read_parameters(function: Callable[..., object]) -> dict[str, inspect.Parameter]:
    parameters = dict(inspect.signature(function).parameters)
    for name, parameter in parameters.items():
        if parameter.kind not in _PLAIN:
            raise UnusableSchema(f"its parameter {name} cannot be given by name; agents send named inputs")
    return parameters


# --- Binding inputs to parameters ---


def _bind_signature(parameters: dict[str, inspect.Parameter], hints: dict[str, object]) -> tuple[Bind, JsonObject]:
    """One model parameter is the whole input, as in FastAPI; otherwise each parameter is a member of it."""
    only = next(iter(parameters), "")
    if len(parameters) == 1 and _is_model(hints.get(only)):
        return partial(_bind_whole, only, adapt(hints[only])), schema_of(hints[only], "validation")
    model = _model_of(parameters, hints)
    return partial(_bind_members, model), schema_of(model, "validation")


def _model_of(parameters: dict[str, inspect.Parameter], hints: dict[str, object]) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for name, parameter in parameters.items():
        if name not in hints:
            raise UnusableSchema(f"its parameter {name} has no annotation")
        fields[name] = (hints[name], ... if parameter.default is parameter.empty else parameter.default)
    try:
        return create_model("Input", __config__=ConfigDict(extra="forbid", arbitrary_types_allowed=False), **fields)
    except (PydanticUserError, NameError) as error:
        raise UnusableSchema(str(error).splitlines()[0]) from error


def _bind_declared(inputs: object, parameters: dict[str, inspect.Parameter]) -> tuple[Bind, JsonObject]:
    """Inputs declared beside the signature: a model for a single parameter, or members given by name."""
    schema = schema_of(inputs, "validation")
    properties = schema.get("properties")
    names = set(properties) if isinstance(properties, Mapping) else set()
    if len(parameters) == 1 and not set(parameters) <= names:
        adapter = adapt(dict[str, object] if isinstance(inputs, Mapping) else inputs)
        return partial(_bind_whole, next(iter(parameters)), adapter), schema
    missing = [name for name, found in parameters.items() if found.default is found.empty and name not in names]
    if missing:
        raise UnusableSchema(f"its parameter {missing[0]} is not among the declared inputs")
    if isinstance(inputs, type) and issubclass(inputs, BaseModel):
        return partial(_bind_members, inputs), schema
    return partial(_bind_named, frozenset(parameters)), schema


def _is_model(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _bind_whole(name: str, adapter: TypeAdapter[object], given: Mapping[str, object]) -> dict[str, object]:
    return {name: adapter.validate_python(given)}


def _bind_members(model: type[BaseModel], given: Mapping[str, object]) -> dict[str, object]:
    return dict(model.model_validate(given))


def _bind_named(names: frozenset[str], given: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in given.items() if name in names}


# --- Calling ---


async def _call(function: Callable[..., object], bind: Bind, write: Write, given: Mapping[str, object]) -> bytes:
    """Bind, call (a synchronous function in a thread), write. Raises InvalidInput, InvalidOutput, or what it raises."""
    try:
        arguments = bind(given)
    except ValidationError as error:
        raise InvalidInput("The input does not match the action's parameters.", errors=violations_of(error)) from error
    if inspect.iscoroutinefunction(function):
        answer = await function(**arguments)
    else:
        answer = await run_in_threadpool(function, **arguments)
        if inspect.isawaitable(answer):
            answer = await answer
    return write(answer)


def violations_of(error: ValidationError) -> tuple[Violation, ...]:
    """pydantic's errors as pointers into the input."""
    return tuple(
        Violation(pointer_to(found["loc"]), shorten(found["msg"])) for found in error.errors(include_url=False)
    )


def _read_outputs(declared: object) -> tuple[Write, JsonObject]:
    if declared is Any:
        return _write_anything, {}
    schema = schema_of(declared, "serialization")
    return (_write_anything if isinstance(declared, Mapping) else partial(_write_as, adapt(declared))), schema


def _write_anything(answer: object) -> bytes:
    try:
        return to_json(answer)
    except PydanticSerializationError as error:
        raise InvalidOutput("The function returned something that is not JSON.") from error


def _write_as(adapter: TypeAdapter[object], answer: object) -> bytes:
    try:
        return adapter.dump_json(adapter.validate_python(answer, from_attributes=True), by_alias=True)
    except (ValidationError, PydanticSerializationError) as error:
        raise InvalidOutput("The function returned something else than it declares.") from error
