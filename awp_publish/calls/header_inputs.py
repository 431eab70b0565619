"""Inputs that an action's route reads from headers: the caller's own request may have them."""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NamedTuple

import orjson

from awp_publish.calls.call import Call
from awp_publish.model import Action, JsonObject
from awp_publish.schema.parts import list_of, table_of

_ABOUT_THE_CALL: Final = re.compile(
    r"accept(-.*)?|content-.*|if-.*|range|te|trailer|transfer-encoding|connection|expect"
)
"""Headers that describe the request itself, not the call inside it."""


class HeaderInput(NamedTuple):
    """An input that may be taken from a header."""

    name: str
    header: bytes
    schema: JsonObject


def header_inputs(action: Action) -> tuple[HeaderInput, ...]:
    """Return the required inputs that the route reads from headers."""
    properties, required = table_of(action.inputs, "properties"), list_of(action.inputs, "required")
    inputs: list[HeaderInput] = []
    for parameter in action.way.parameters if action.way is not None else ():
        header = parameter.wire_name.lower()
        if parameter.location == "header" and parameter.name in required and not _ABOUT_THE_CALL.fullmatch(header):
            schema = table_of(properties, parameter.name)
            inputs.append(HeaderInput(parameter.name, header.encode("latin-1", "replace"), schema))
    return tuple(inputs)


def add_header_inputs(call: Call, headers: tuple[HeaderInput, ...]) -> None:
    """Take missing inputs from the headers of the caller's own request, as the route itself would."""
    scope = call.context
    if not isinstance(scope, Mapping) or not isinstance(call.input, Mapping):
        return
    carried: dict[bytes, bytes] = dict(reversed(scope.get("headers", ())))
    for name, header, schema in headers:
        if name in call.input or header not in carried:
            continue
        value: object = carried[header].decode("latin-1")
        if schema.get("type") in ("integer", "number", "boolean"):
            with suppress(orjson.JSONDecodeError):
                value = orjson.loads(carried[header])
        call.input = {**call.input, name: value}
