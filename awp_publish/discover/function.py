"""A plain function as an action: inputs and outputs from its signature, and how to call it with decoded JSON."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from awp_publish.discover.signature import Bind, Given, bind_declared, bind_signature, read_signature
from awp_publish.model import Function, JsonObject
from awp_publish.problems import InvalidInput, InvalidOutput, Violation
from awp_publish.schema import adapt, pointer_to, schema_of
from awp_publish.threads import run_in_thread

Write: TypeAlias = Callable[[object], bytes]
"""From what a function returned to JSON text. Raises InvalidOutput."""


@dataclass(frozen=True, slots=True)
class Described:
    """A function's schemas and the way to call it."""

    inputs: JsonObject
    outputs: JsonObject
    call: Function


def describe_function(
    function: Callable[..., object], declared_inputs: object = None, declared_outputs: object = Any
) -> Described:
    """Read a function's signature; declared inputs and outputs (a type or a raw schema) take precedence.

    Raises UnusableSchema when an annotation cannot be read, has no JSON Schema, or a parameter cannot be given by name.
    """
    signature = read_signature(function)
    returned = signature.returns if declared_outputs is Any else declared_outputs
    bind, inputs = bind_signature(signature) if declared_inputs is None else bind_declared(declared_inputs, signature)
    write, outputs = _read_outputs(returned)
    return Described(inputs, outputs, partial(_call, function, bind, write))


async def _call(function: Callable[..., object], bind: Bind, write: Write, given: Given) -> bytes:
    """Bind, call (a synchronous function in a thread), write. Raises InvalidInput, InvalidOutput, or what it raises."""
    try:
        arguments = bind(given)
    except ValidationError as error:
        raise _refusal(error) from error
    if inspect.iscoroutinefunction(function):
        answer = await function(**arguments)
    else:
        answer = await run_in_thread(partial(function, **arguments))
        if inspect.isawaitable(answer):
            answer = await answer
    return write(answer)


def _refusal(error: ValidationError) -> InvalidInput:
    """pydantic's errors as pointers into the input."""
    found = [
        Violation(pointer_to(one["loc"]), one["msg"].removeprefix("Value error, "))
        for one in error.errors(include_url=False, include_input=False)
    ]
    return InvalidInput.of(found)


def _read_outputs(declared: object) -> tuple[Write, JsonObject]:
    if declared is Any:
        return _write_anything, {}
    schema = schema_of(declared, "serialization")
    return (_write_anything if isinstance(declared, Mapping) else partial(_write_as, adapt(declared))), schema


def _write_anything(answer: object) -> bytes:
    """JSON has no NaN and no infinity; they become null, as they do in a field of type float."""
    try:
        return to_json(answer, inf_nan_mode="null")
    except PydanticSerializationError as error:
        raise InvalidOutput("The function returned something that is not JSON.") from error


def _write_as(adapter: TypeAdapter[object], answer: object) -> bytes:
    try:
        checked = adapter.validate_python(answer, from_attributes=True)
        return adapter.dump_json(checked, by_alias=True, warnings="error")
    except (ValidationError, PydanticSerializationError) as error:
        raise InvalidOutput("The function returned something else than it declares.") from error
