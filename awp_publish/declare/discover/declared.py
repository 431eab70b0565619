"""Operations of which only the path, or a declared schema of the inputs, is known: the locations follow from these."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from awp_publish.declare.discover.placeholders import narrow_to_path, path_parameter_schema
from awp_publish.declare.discover.routes import FORM_TYPES, NO_BODY_METHODS, Operation, path_parameters
from awp_publish.model import JsonObject, Location, Parameter
from awp_publish.schema import member_names
from awp_publish.schema.files import file_inputs, with_named_files
from awp_publish.schema.handlers import layers_of
from awp_publish.schema.parts import list_of, table_of

_OUTSIDE_BODY: Final = ("path", "query", "header", "cookie")


def reads_query(handler: object) -> bool:
    """Return True if a handler, or what it wraps, reads `request.query_params` itself."""
    codes = (getattr(layer, "__code__", None) for layer in layers_of(handler))
    return any("query_params" in code.co_names for code in codes if code is not None)


def describe_by_path(path: str, description: str | None = None, *, is_open: bool = False) -> Operation:
    """Describe a route of which only the path is known: it takes the path's parameters and may answer anything.

    With `is_open` it takes any member of the query too.
    """
    nothing: dict[str, object] = {"type": "object", "properties": {}}
    if not is_open:
        nothing["additionalProperties"] = False
    return Operation(
        _with_path_parameters(nothing, path, {}), {}, tuple(_path_parameters(path).values()), description=description
    )


def take_inputs(
    operation: Operation, inputs: JsonObject, method: str, path: str, content_type: str | None
) -> Operation:
    """Replace an operation's inputs by a declared schema.

    Inputs that the framework has outside the body stay where they are, the path's parameters go into the path, and all
    others into the query for methods without a body, otherwise into the body.
    """
    by_method = None if method in NO_BODY_METHODS else "application/json"
    body_type = content_type or operation.content_type or by_method
    location: Location = "query" if body_type is None else "form" if body_type in FORM_TYPES else "json"
    # Locations in the body are kept only if the body has the same media type.
    same_body = body_type == operation.content_type
    fixed = (parameter for parameter in operation.parameters if same_body or parameter.location in _OUTSIDE_BODY)
    located = {parameter.name: parameter for parameter in fixed} | _path_parameters(path)
    taken = _with_path_parameters(inputs, path, operation.inputs)
    if body_type == "multipart/form-data":
        taken = with_named_files(taken)
    names = [*path_parameters(path), *(name for name in member_names(taken) if name not in path_parameters(path))]
    files = {name for name, *_ in file_inputs(taken)} if body_type == "multipart/form-data" else set()
    parameters = tuple(
        located.get(name) or Parameter(name, "file" if name in files else location, name) for name in names
    )
    return replace(operation, inputs=taken, parameters=parameters, content_type=body_type)


def _path_parameters(path: str) -> dict[str, Parameter]:
    convertors = path_parameters(path).items()
    return {name: Parameter(name, "path", name, spans_segments=convertor == "path") for name, convertor in convertors}


def _with_path_parameters(inputs: JsonObject, path: str, described: JsonObject) -> JsonObject:
    """Add the path's parameters, which a declared model often leaves out: required, as they are `described`."""
    members, wanted = dict(table_of(inputs, "properties")), [*list_of(inputs, "required")]
    for name, convertor in path_parameters(path).items():
        schema = table_of(described, "properties").get(name)
        # A schema with a reference cannot be used: the declared inputs lack its definitions.
        is_usable = isinstance(schema, Mapping) and bool(schema) and "$ref" not in schema
        members.setdefault(name, schema if is_usable else path_parameter_schema(convertor))
        members[name] = narrow_to_path(members[name], convertor)
        wanted += [name] if name not in wanted else []
    added: dict[str, object] = {"properties": members} | ({"required": wanted} if wanted else {})
    return {**inputs, **added}
