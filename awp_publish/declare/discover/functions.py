"""A plain function as an action: its schemas, and a callable for it."""

import base64
import dataclasses
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, cast

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, to_json

from awp_publish.calls.threads import run_in_thread
from awp_publish.declare.discover.arguments import bind_declared, bind_signature
from awp_publish.declare.discover.routes import Operation
from awp_publish.declare.discover.signatures import injected_parameters, read_signature
from awp_publish.model import Arrival, JsonObject
from awp_publish.problems import InvalidInput, InvalidOutput
from awp_publish.schema import adapt, read_errors, schema_of
from awp_publish.schema.media import BINARY


class FunctionCall(Protocol):
    """Calls a function with a validated input and injected parameters, and returns JSON text.

    Raises InvalidInput, InvalidOutput, or what the function raises. A synchronous function runs in a thread.
    """

    def __call__(self, members: JsonObject, injected: JsonObject | None = None, /) -> Awaitable[bytes]: ...


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
        own = {name: parameter for name, parameter in signature.parameters.items() if name not in injected}
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

    async def call(members: JsonObject, injected: JsonObject | None = None) -> bytes:
        try:
            arguments = bind(members)
        except ValidationError as error:
            errors = error.errors(include_url=False, include_input=False)
            violations = read_errors(((entry["loc"], entry["msg"], entry["type"]) for entry in errors), members)
            raise InvalidInput.of(violations) from error
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
