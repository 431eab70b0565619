"""Filters of subscriptions: arguments with which an occurrence's data have to match."""

from collections.abc import Mapping

import orjson

from awp_publish.schema import JsonObject
from awp_publish.schema.reading import resolved


def filters_of(schema: JsonObject) -> JsonObject:
    """Return the filters that a subscription may set: the plain members of the payload, each with one value."""
    members, filters = schema.get("properties"), dict[str, object]()
    for name, member in members.items() if isinstance(members, Mapping) else ():
        facts = resolved(member, schema)
        if "enum" in facts or "const" in facts or facts.get("type") in ("string", "integer", "number", "boolean"):
            filters[name] = {key: value for key, value in member.items() if key != "default"}
    inputs: dict[str, object] = {"type": "object", "properties": filters, "additionalProperties": False}
    if "$defs" in schema and b'"$ref"' in orjson.dumps(filters):
        inputs["$defs"] = schema["$defs"]
    return inputs


def is_match(arguments: Mapping[str, object], data: Mapping[str, object]) -> bool:
    """Return True if a payload has all the values that are asked for."""
    return all(
        name in data and data[name] == value and isinstance(data[name], bool) == isinstance(value, bool)
        for name, value in arguments.items()
    )
