"""JSON Schemas of the values that a path's placeholders accept."""

from collections.abc import Mapping
from typing import Final

from starlette.convertors import CONVERTOR_TYPES, UUIDConvertor

from awp_publish.model import SEGMENT_PATTERN, SEGMENTS_PATTERN, JsonObject
from awp_publish.schema import UnusableSchema, compile_schema

_CONVERTOR_SCHEMAS: Final[Mapping[str, JsonObject]] = {
    "int": {"type": "integer", "minimum": 0},
    "float": {"type": "number", "minimum": 0},
    "uuid": {"type": "string", "format": "uuid", "pattern": f"^(?:{UUIDConvertor.regex})$"},
    "path": {"type": "string", "minLength": 1, "pattern": SEGMENTS_PATTERN},
    "str": {"type": "string", "minLength": 1, "pattern": SEGMENT_PATTERN},
}


def path_parameter_schema(convertor: str) -> dict[str, object]:
    """Return the JSON Schema of what a Starlette convertor matches, also of one that the site has registered."""
    schema = _CONVERTOR_SCHEMAS.get(convertor)
    if schema is None and convertor in CONVERTOR_TYPES:
        schema = {"type": "string", "minLength": 1, "pattern": f"^(?:{CONVERTOR_TYPES[convertor].regex})$"}
        try:
            compile_schema(schema)
        except UnusableSchema:  # not every Python regular expression is valid in JSON Schema
            schema = None
    return dict(schema or _CONVERTOR_SCHEMAS["path"])


_SINGLE_SEGMENTS: Final = frozenset({"uuid", "date", "date-time", "time", "duration", "ipv4", "ipv6"})
"""Formats whose values are never empty and contain no slash."""


def narrow_to_path(schema: object, convertor: str) -> object:
    """Add what a path parameter's convertor demands: other values would lead to another route."""
    if not isinstance(schema, Mapping) or not {"enum", "const", "$ref"}.isdisjoint(schema):
        return schema
    if convertor == "str" and schema.get("format") in _SINGLE_SEGMENTS:
        return schema
    demanded = path_parameter_schema(convertor)
    if schema.get("type", "string") != demanded["type"]:
        demanded = path_parameter_schema("str") if schema.get("type") == "string" else {}
    bounds: dict[str, object] = {key: value for key, value in demanded.items() if key not in ("type", *schema)}
    if isinstance(least := schema.get("minLength"), int) and "minLength" in demanded:
        bounds["minLength"] = max(1, least)
    if "exclusiveMinimum" in schema:
        bounds.pop("minimum", None)
    return {**schema, **bounds}
