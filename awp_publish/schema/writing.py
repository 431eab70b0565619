"""JSON Schemas of Python types."""

import copy
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, cast

from pydantic import TypeAdapter
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, JsonSchemaWarningKind
from pydantic_core import CoreSchema, core_schema

from awp_publish.model import JsonObject
from awp_publish.schema.dialects import check_dialect
from awp_publish.schema.parts import subschemas, target_of
from awp_publish.schema.pointers import part_at
from awp_publish.schema.unusable import UnusableSchema, reason_of
from awp_publish.schema.validation import compile_schema

Mode: TypeAlias = Literal["validation", "serialization"]

_SEEN: Final = "x-awp-publish-seen"
"""Marks a subschema whose values a function of the application receives as sent. Removed from the finished schema."""

_CLOSED: Final = "x-awp-publish-closed"
"""Marks a subschema to be closed with `additionalProperties: false` unless a function receives its values as sent."""


class _Generator(GenerateJsonSchema):
    """pydantic's generator without the titles that it makes from names: agents pay for every byte they read."""

    # A default that JSON cannot express is left out; there is nothing to warn about.
    ignored_warning_kinds: set[JsonSchemaWarningKind] = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    # Input schemas are closed: a type that reads only the members it knows silently drops all others, and the caller
    # should learn that. If a function receives the value as sent, it may read more members than the schema has, so it
    # stays open.

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        return self._close(super().model_schema(schema), schema, schema["schema"])

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        return self._close(super().dataclass_schema(schema), schema, schema["schema"])

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        return self._close(super().typed_dict_schema(schema), schema, schema)

    def function_before_schema(self, schema: core_schema.BeforeValidatorFunctionSchema) -> JsonSchemaValue:
        return {**super().function_before_schema(schema), _SEEN: True}

    def function_wrap_schema(self, schema: core_schema.WrapValidatorFunctionSchema) -> JsonSchemaValue:
        return {**super().function_wrap_schema(schema), _SEEN: True}

    def function_plain_schema(self, schema: core_schema.PlainValidatorFunctionSchema) -> JsonSchemaValue:
        return {**super().function_plain_schema(schema), _SEEN: True}

    def _close(self, written: JsonSchemaValue, outer: Any, inner: Any) -> JsonSchemaValue:
        while inner["type"] == "function-after":
            inner = inner["schema"]
        if "fields" not in inner or self.mode != "validation":
            return written
        fields = inner["fields"] if isinstance(inner["fields"], list) else list(inner["fields"].values())
        aliases = [field["validation_alias"] for field in fields if "validation_alias" in field]
        config = outer.get("config", {})
        has_one_name = not (aliases and config.get("validate_by_name")) and all(
            isinstance(alias, str) for alias in aliases
        )
        says = "additionalProperties" in written or config.get("extra_fields_behavior", "ignore") != "ignore"
        if "properties" in written and has_one_name and not says and not outer.get("custom_init"):
            written["additionalProperties"] = _CLOSED
        return written

    def field_title_should_be_set(
        self, schema: CoreSchema | core_schema.ModelField | core_schema.DataclassField | core_schema.TypedDictField
    ) -> bool:
        return False


def write_schema(kind: object, mode: Mode = "validation", by_alias: bool = True) -> dict[str, object]:
    """Return the JSON Schema of a type (a pydantic model, a dataclass, any annotation), with its `$defs`.

    `mode` "validation" describes what is read, "serialization" what is written. Raises UnusableSchema.
    """
    try:
        schema = adapt(kind).json_schema(mode=mode, by_alias=by_alias, schema_generator=_Generator)
    except _UNDESCRIBABLE as error:
        raise UnusableSchema(reason_of(error)) from error
    _settle_closed(schema)
    # The titles of the root and of `$defs` are class names.
    definitions = schema.get("$defs")
    for part in (schema, *(definitions.values() if isinstance(definitions, dict) else ())):
        part.pop("title", None)
    schema = inline_root(schema)
    # The keywords that readers look for first come first, `$defs` last.
    rest = [key for key in schema if key not in _ORDER and key != "$defs"]
    return {key: schema[key] for key in (*_ORDER, *rest, "$defs") if key in schema}


def _settle_closed(root: JsonObject) -> None:
    """Close the marked parts of a new schema, except within values that a function receives as sent."""
    seen, waiting, seen_ids = list[object](), list[object]([root]), set[int]()
    for part in waiting:  # grows during iteration
        if isinstance(part, dict):
            waiting += part.values()
            seen += [part] if part.pop(_SEEN, None) else []
        elif isinstance(part, list):
            waiting += part
    for part in seen:
        if isinstance(part, list):
            seen += part
        if not isinstance(part, dict) or id(part) in seen_ids:
            continue
        seen_ids.add(id(part))
        if part.get("additionalProperties") == _CLOSED:
            del part["additionalProperties"]
        target = target_of(part)
        seen += [inner for name, inner in part.items() if name not in ("$defs", "default", "examples")]
        seen += [part_at(root, target)] if target is not None else []
    for part in waiting:
        if isinstance(part, dict) and part.get("additionalProperties") == _CLOSED:
            part["additionalProperties"] = False


_UNDESCRIBABLE: Final = (PydanticUserError, PydanticSchemaGenerationError, NameError, TypeError, AttributeError)


def adapt(kind: object) -> TypeAdapter[object]:
    """Return pydantic's adapter of an annotation that is only known at run time."""
    return TypeAdapter(cast(type[object], kind))


def inline_root(schema: dict[str, object]) -> dict[str, object]:
    """Replace a root that is only a reference (of a recursive model): readers expect `type` there (WoA section 4.2)."""
    reference, definitions = schema.get("$ref"), schema.get("$defs")
    if not isinstance(reference, str) or not isinstance(definitions, dict) or schema.keys() - ANNOTATING:
        return schema
    named = definitions.get(reference.removeprefix("#/$defs/"))
    if not isinstance(named, dict):
        return schema
    return {**named, **{key: value for key, value in schema.items() if key != "$ref"}}


def inline_definitions(schema: JsonObject) -> dict[str, object]:
    """Return a schema in which each definition with a single reference is put in place of the reference.

    Definitions with several references stay, so that the schema does not grow, and so do recursive ones.
    """
    whole = copy.deepcopy(dict(schema))
    definitions = whole.get("$defs")
    if not isinstance(definitions, dict):
        return whole
    referring = [part for part in subschemas(whole) if isinstance(part.get("$ref"), str)]
    counts = Counter(part["$ref"] for part in referring)
    for part in referring:
        name = str(part["$ref"]).removeprefix("#/$defs/")
        definition = definitions.get(name)
        if counts[part["$ref"]] > 1 or part.keys() - ANNOTATING or not isinstance(definition, dict):
            continue
        if part["$ref"] == f"#/$defs/{name}" and not any(inner is part for inner in subschemas(definition)):
            written = cast(dict[str, object], part)
            beside = {key: value for key, value in written.items() if key != "$ref"}
            written.clear()
            written |= definitions.pop(name) | beside
    if not definitions:
        del whole["$defs"]
    return whole


ANNOTATING: Final = {"$ref", "$defs", "$schema", "$comment", "title", "description", "examples", "default"}
"""Keywords beside a root's reference that constrain nothing, so that the reference may be replaced."""

_ORDER: Final = ("type", "description", "properties", "required", "additionalProperties")


def check_schema(schema: JsonObject) -> dict[str, object]:
    """Check a raw JSON Schema against the 2020-12 meta-schema and for unresolvable references; return it, root inlined.

    Raises UnusableSchema, also for another dialect: documents promise 2020-12 (WoA section 4.2).
    """
    check_dialect(schema)
    compile_schema(schema)
    return inline_root(dict(schema))


def schema_of(declared: object, mode: Mode) -> dict[str, object]:
    """Return the JSON Schema of a declaration: a raw schema (a mapping) or a type. Raises UnusableSchema."""
    return check_schema(declared) if isinstance(declared, Mapping) else write_schema(declared, mode)


def object_schema_of(declared: object) -> dict[str, object]:
    """Return the JSON Schema of declared inputs, which have to be an object. Raises UnusableSchema.

    A raw schema is used as it is written.
    """
    schema = schema_of(declared, "validation")
    kind = schema.get("type", "object" if "properties" in schema else None)
    if kind != "object":
        raise UnusableSchema("inputs are named, so they must be described by a model or a schema of type object")
    return {"type": "object", **schema}
