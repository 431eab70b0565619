"""Where inputs travel when only their schema is known: path parameters first, then the query or the body."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from awp_publish.discover.route import (
    FORM_TYPES,
    NO_BODY_METHODS,
    Operation,
    path_parameter_schema,
    path_parameters,
)
from awp_publish.model import JsonObject, Location, Parameter

_OUTSIDE_BODY: Final = ("path", "query", "header", "cookie")


def describe_by_path(path: str, description: str | None = None) -> Operation:
    """A route of which nothing is known but its path: it takes the path's parameters and may answer anything."""
    nothing: dict[str, object] = {"type": "object", "properties": {}, "additionalProperties": False}
    return Operation(
        _with_path_parameters(nothing, path, {}), {}, tuple(_path_parameters(path).values()), description=description
    )


def take_inputs(
    operation: Operation, inputs: JsonObject, method: str, path: str, content_type: str | None
) -> Operation:
    """Replace what an operation takes by a declared schema.

    What the framework already placed outside of the body stays in its place, the path's parameters go into the path,
    everything else into the query for methods without a body and into the body otherwise.
    """
    by_method = None if method in NO_BODY_METHODS else "application/json"
    body_type = content_type or operation.content_type or by_method
    location: Location = "query" if body_type is None else "form" if body_type in FORM_TYPES else "json"
    known = _kept(operation, body_type) | _path_parameters(path)
    taken = _with_path_parameters(inputs, path, operation.inputs)
    names = [*path_parameters(path), *(name for name in property_names(taken) if name not in path_parameters(path))]
    parameters = tuple(known.get(name) or Parameter(name, location, name) for name in names)
    return replace(operation, inputs=taken, parameters=parameters, content_type=body_type)


def property_names(schema: JsonObject) -> list[str]:
    properties = schema.get("properties")
    return list(properties) if isinstance(properties, Mapping) else []


def _kept(operation: Operation, body_type: str | None) -> dict[str, Parameter]:
    """The framework's places, those in the body only as long as the body is what the framework knows it to be."""
    same_body = body_type == operation.content_type
    return {one.name: one for one in operation.parameters if same_body or one.location in _OUTSIDE_BODY}


def _path_parameters(path: str) -> dict[str, Parameter]:
    found = path_parameters(path).items()
    return {name: Parameter(name, "path", name, spans_segments=convertor == "path") for name, convertor in found}


def _with_path_parameters(inputs: JsonObject, path: str, described: JsonObject) -> JsonObject:
    """A declared model often leaves the path's parameters out: add them, required, as they are `described`."""
    properties, required = inputs.get("properties"), inputs.get("required")
    known = dict(properties) if isinstance(properties, Mapping) else {}
    wanted = list(required) if isinstance(required, list) else []
    for name, convertor in path_parameters(path).items():
        known.setdefault(name, _described(name, described) or path_parameter_schema(convertor))
        wanted += [name] if name not in wanted else []
    added: dict[str, object] = {"properties": known} | ({"required": wanted} if wanted else {})
    return {**inputs, **added}


def _described(name: str, inputs: JsonObject) -> JsonObject | None:
    """What a framework knows of a parameter, unless that refers to definitions that the declared inputs have not."""
    properties = inputs.get("properties")
    schema = properties.get(name) if isinstance(properties, Mapping) else None
    return schema if isinstance(schema, Mapping) and "$ref" not in schema else None
