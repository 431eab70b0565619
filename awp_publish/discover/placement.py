"""Where inputs travel when only their schema is known: path parameters first, then the query or the body."""

from collections.abc import Mapping
from dataclasses import replace

from awp_publish.discover.route import (
    NO_BODY_METHODS,
    Operation,
    path_parameter_schema,
    path_parameters,
)
from awp_publish.model import JsonObject, Location, Parameter

FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data")


def describe_by_path(path: str) -> Operation:
    """A route of which nothing is known but its path: it takes the path's parameters and may answer anything."""
    found = path_parameters(path)
    inputs: dict[str, object] = {"type": "object", "properties": {}, "additionalProperties": False}
    if found:
        inputs["properties"] = {name: path_parameter_schema(convertor) for name, convertor in found.items()}
        inputs["required"] = list(found)
    return Operation(inputs, {}, _path_parameters(path))


def take_inputs(
    operation: Operation, inputs: JsonObject, method: str, path: str, content_type: str | None
) -> Operation:
    """Replace what an operation takes by a declared schema.

    What the framework already placed stays in its place, the path's parameters go into the path, everything else into
    the query for methods without a body and into the body otherwise.
    """
    body_type = (
        content_type or operation.content_type or ("application/json" if method not in NO_BODY_METHODS else None)
    )
    location: Location = "query" if body_type is None else "form" if body_type in FORM_TYPES else "json"
    known = {parameter.name: parameter for parameter in operation.parameters} | {
        parameter.name: parameter for parameter in _path_parameters(path)
    }
    names = [*known_path_names(path), *(name for name in property_names(inputs) if name not in path_parameters(path))]
    parameters = tuple(known.get(name) or Parameter(name, location, name) for name in names)
    return replace(
        operation,
        inputs=_with_path_parameters(inputs, path),
        parameters=parameters,
        content_type=body_type,
    )


def known_path_names(path: str) -> list[str]:
    return list(path_parameters(path))


def property_names(schema: JsonObject) -> list[str]:
    properties = schema.get("properties")
    return list(properties) if isinstance(properties, Mapping) else []


def _path_parameters(path: str) -> tuple[Parameter, ...]:
    found = path_parameters(path).items()
    return tuple(Parameter(name, "path", name, spans_segments=convertor == "path") for name, convertor in found)


def _with_path_parameters(inputs: JsonObject, path: str) -> JsonObject:
    """A declared model often leaves the path's parameters out: add them, required, as the path describes them."""
    properties, required = inputs.get("properties"), inputs.get("required")
    known = dict(properties) if isinstance(properties, Mapping) else {}
    wanted = list(required) if isinstance(required, list) else []
    for name, convertor in path_parameters(path).items():
        known.setdefault(name, path_parameter_schema(convertor))
        wanted += [name] if name not in wanted else []
    added: dict[str, object] = {"properties": known} | ({"required": wanted} if wanted else {})
    return {"type": "object", **inputs, **added}
