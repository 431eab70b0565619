"""Objects of a schema that take no other members than those it names."""

import contextlib
import copy
from collections.abc import Mapping
from typing import Any, Final

import orjson

from awp_publish.model import JsonObject
from awp_publish.schema.parts import subschemas, table_of
from awp_publish.schema.unusable import UnusableSchema
from awp_publish.schema.writing import write_schema


def write_readable(*kinds: object) -> tuple[JsonObject, ...]:
    """Return the JSON Schemas of those types that have one, as detailed as `drops_unknown` and `close_like` need."""
    written: list[JsonObject] = []
    for kind in kinds:
        with contextlib.suppress(UnusableSchema):
            written.append(_sketch(kind) or write_schema(kind))
    return tuple(written)


_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("any", "none", "bool", "int", "float", "decimal", "str", "bytes", "date", "time", "datetime"), ()),
    **dict.fromkeys(("timedelta", "uuid", "url", "multi-host-url", "literal", "enum", "definition-ref"), ()),
    **dict.fromkeys(("list", "set", "frozenset", "tuple"), ("items_schema",)),
    **dict.fromkeys(("nullable", "default", "function-after", "model", "model-field"), ("schema",)),
    **dict.fromkeys(("union", "tagged-union"), ("choices",)),
    "dict": ("keys_schema", "values_schema"),
    "model-fields": ("fields",),
    "definitions": ("schema", "definitions"),
}
"""The parts of pydantic's core schemas in which no function receives the raw value or writes a schema of its own."""

_OWN_WRITERS: Final = ("pydantic.main", "pydantic._internal._generate_schema")
"""Modules whose functions write a type's JSON Schema just as pydantic does."""


def _sketch(kind: object) -> JsonObject | None:
    """Return the objects in a model's schema as names of members, closed or not; None for a model that is not plain.

    Every model is examined at start-up. pydantic has this information in its core schema; writing the full JSON Schema
    takes ten times as long.
    """
    core: Any = vars(kind).get("__pydantic_core_schema__") if isinstance(kind, type) else None
    if not isinstance(core, dict):  # not a model, or an incomplete one
        return None
    objects, waiting = dict[str, JsonObject](), [core]
    for node in waiting:  # grows during iteration
        type_ = node["type"] if isinstance(node, dict) else None
        if type_ not in _PARTS or "extras_schema" in node:
            return None
        for name in _PARTS[type_]:
            part = node.get(name, [])
            if isinstance(part, dict) and name not in ("fields", "choices"):
                waiting.append(part)
            else:
                parts = part.values() if isinstance(part, dict) else part
                waiting += [part[0] if isinstance(part, tuple) else part for part in parts]
        if metadata := node.get("metadata"):
            writers = metadata.get("pydantic_js_functions", ())
            is_own = all(getattr(writer, "__module__", "") in _OWN_WRITERS for writer in writers)
            if not is_own or "pydantic_js_annotation_functions" in metadata:
                return None
            if _describes_parts(metadata.get("pydantic_js_extra")):
                return None
        if type_ != "model":
            continue
        inner, config = node["schema"], node.get("config", {})
        while inner["type"] == "function-after":
            inner = inner["schema"]
        if inner["type"] != "model-fields" or _describes_parts(node["cls"].model_config.get("json_schema_extra")):
            return None
        names = [field.get("validation_alias", name) for name, field in inner["fields"].items()]
        if not all(isinstance(name, str) for name in names) or "validate_by_name" in config:
            return None
        extra = config.get("extra_fields_behavior", "ignore")
        is_closed = extra == "forbid" or (extra == "ignore" and not node.get("custom_init"))
        schema = {"properties": dict.fromkeys(names, True)}
        # A model that is used in only one place may have no name.
        name = node.get("ref", str(len(objects)))
        objects[name] = {**schema, "additionalProperties": False} if is_closed else schema
    while core["type"] in ("definitions", "function-after"):
        core = core["schema"]
    return {**objects.get(core.get("schema_ref", core.get("ref", "0")), {}), "$defs": objects}


def _describes_parts(extra: object) -> bool:
    """Return True for a `json_schema_extra` that may describe members."""
    if not isinstance(extra, dict):
        return extra is not None
    described = {name: value for name, value in extra.items() if name not in ("example", "examples")}
    return "additionalProperties" in described or any(isinstance(value, (dict, list)) for value in described.values())


def drops_unknown(*written: JsonObject) -> bool:
    """Return True if these types read only the members in their schemas and silently drop all others."""
    return bool(written) and all(part.get("additionalProperties") is False for part in written)


def close_like(schema: JsonObject, *written: JsonObject) -> JsonObject:
    """Return a schema written by somebody else of some types, with the inner objects closed that `write_schema` closed.

    Objects are identified by the names of their members. The root stays as it is, because it may combine several types.
    """
    with contextlib.suppress(TypeError):  # numbers that are too large for orjson, for instance
        if orjson.dumps(schema).count(b'"properties"') < 2:  # only the root has it
            return schema
    closed: dict[frozenset[str], bool] = {}
    for part in subschemas(written):
        if "properties" in part:
            names = _names(part)
            closed[names] = closed.get(names, True) and part.get("additionalProperties") is False
    if not any(closed.values()):
        return schema

    def open_parts(root: JsonObject) -> list[JsonObject]:
        nested = (part for part in subschemas(root) if part is not root and "properties" in part)
        return [part for part in nested if "additionalProperties" not in part and closed.get(_names(part))]

    if not open_parts(schema):
        return schema
    copied = copy.deepcopy(schema)
    for part in open_parts(copied):
        part["additionalProperties"] = False  # type: ignore[index]
    return copied


def _names(schema: JsonObject) -> frozenset[str]:
    return frozenset(table_of(schema, "properties"))
