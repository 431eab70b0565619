"""Schemas of maps that are written in a dialect of JSON Schema older than 2020-12."""

import re
from collections.abc import Mapping
from typing import Any, Final

from awp_publish.schema import JsonObject
from awp_publish.schema.parts import map_parts

_OLDER: Final = re.compile(r"https?://json-schema\.org/(?:draft-0([467])|draft/2019-09)/schema#?")


def translate(schema: JsonObject) -> JsonObject:
    """Translate a schema that declares an older dialect (draft-04 to 2019-09) to 2020-12. Return others unchanged."""
    declared = schema.get("$schema")
    dialect = _OLDER.fullmatch(declared) if isinstance(declared, str) else None
    if dialect is None:
        return schema
    hides_siblings = dialect[1] is not None  # older dialects ignore the siblings of a reference

    def translated(part: JsonObject, _: str = "") -> JsonObject:
        schema: dict[str, Any] = dict(part)
        if "$ref" in schema and hides_siblings:
            schema = {name: schema[name] for name in ("$ref", "definitions", "$defs") if name in schema}
        schema.pop("$schema", None)
        if isinstance(schema.get("id"), str):
            schema["$id"] = schema.pop("id")
        if "$recursiveRef" in schema:
            schema["$ref"] = schema.pop("$recursiveRef")
        for name, plain in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if isinstance(schema.get(name), bool) and schema.pop(name) and plain in schema:
                schema[name] = schema.pop(plain)
        further = schema.pop("additionalItems", True)
        if isinstance(schema.get("items"), list):
            schema["prefixItems"], schema["items"] = schema["items"], further
        depending = schema.pop("dependencies", {})
        if isinstance(depending, Mapping) and depending:
            lists = {name: needed for name, needed in depending.items() if isinstance(needed, list)}
            schema["dependentRequired"] = lists
            schema["dependentSchemas"] = {name: needed for name, needed in depending.items() if name not in lists}
        return map_parts(schema, translated)

    return translated(schema)
