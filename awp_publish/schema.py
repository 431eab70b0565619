"""Python types to JSON Schema 2020-12, and JSON Schemas to validators whose verdicts carry JSON Pointers.

Two engines, one job each: pydantic writes schemas at start-up, jsonschema-rs checks instances on the request path. No
schema is ever fetched: a `$ref` must resolve inside the schema itself.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Final, Literal, NoReturn, TypeAlias, cast

import jsonschema_rs
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import CoreSchema, core_schema

from awp_publish.model import JsonObject
from awp_publish.problems import Violation

Mode: TypeAlias = Literal["validation", "serialization"]
Validate: TypeAlias = Callable[[object], tuple[Violation, ...]]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
MOST_VIOLATIONS: Final = 20
LONGEST_DETAIL: Final = 300


class UnusableSchema(ValueError):
    """A type has no JSON Schema, or a schema is not a valid, self-contained JSON Schema 2020-12."""


# --- Writing schemas ---


class _Generator(GenerateJsonSchema):
    """pydantic's generator without the titles it makes up from names: agents pay for every byte they read."""

    # A default that JSON has no word for is left out, which is all there is to do about it.
    ignored_warning_kinds: set[JsonSchemaWarningKind] = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def field_title_should_be_set(
        self, schema: CoreSchema | core_schema.ModelField | core_schema.DataclassField | core_schema.TypedDictField
    ) -> bool:
        return False


def write_schema(kind: object, mode: Mode = "validation", by_alias: bool = True) -> dict[str, object]:
    """The JSON Schema of a type (a pydantic model, a dataclass, any annotation), with its `$defs`.

    `mode` "validation" describes what is read, "serialization" what is written. Raises UnusableSchema.
    """
    try:
        schema = adapt(kind).json_schema(mode=mode, by_alias=by_alias, schema_generator=_Generator)
    except _UNDESCRIBABLE as error:
        raise UnusableSchema(reason_of(error)) from error
    return _in_order(_inline_root(_without_titles(schema)))


_UNDESCRIBABLE: Final = (PydanticUserError, PydanticSchemaGenerationError, NameError, TypeError, AttributeError)
_REASONS: Final = (
    (re.compile(r"pydantic-core schema for (.+?)\. Set `arbitrary"), "{} has no JSON Schema"),
    (re.compile(r"JsonSchema for core_schema\.\w+ \((.+)\)"), "{} has no JSON Schema"),
    (re.compile(r"JsonSchema for core_schema\.(\w+?)Schema"), "a value of the kind {} has no JSON Schema"),
    (re.compile(r"[`'](\w+)[`'] is not fully defined"), "{} is not fully defined; define its types at module level"),
    (re.compile(r"name '(\w+)' is not defined"), "the type {} is not defined; define it at module level"),
)
"""What pydantic says to its own users, in words for ours."""


def reason_of(error: Exception) -> str:
    """Why a type has no JSON Schema, in one line."""
    if isinstance(error, ValidationError):  # FastAPI checks with pydantic what it writes
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    text = str(error)
    for pattern, words in _REASONS:
        found = pattern.search(text)
        if found is not None:
            return words.format(re.sub(r"<class '([^']+)'>", r"\1", found[1]))
    return _first_line(error).rstrip(".")


def adapt(kind: object) -> TypeAdapter[object]:
    """pydantic's adapter of an annotation that is only known at run time."""
    return TypeAdapter(cast(type[object], kind))


def _without_titles(schema: dict[str, object]) -> dict[str, object]:
    """Drop the class names that pydantic writes as titles of the root and of `$defs`."""
    schema.pop("title", None)
    definitions = schema.get("$defs")
    if isinstance(definitions, dict):
        for definition in definitions.values():
            definition.pop("title", None)
    return schema


def _inline_root(schema: dict[str, object]) -> dict[str, object]:
    """A recursive model's root is only a reference; readers look for `type` and `properties` there (WoA, 4.2)."""
    reference, definitions = schema.get("$ref"), schema.get("$defs")
    if not isinstance(reference, str) or not isinstance(definitions, dict) or schema.keys() - _ANNOTATING:
        return schema
    named = definitions.get(reference.removeprefix("#/$defs/"))
    if not isinstance(named, dict):
        return schema
    return {**named, **{key: value for key, value in schema.items() if key != "$ref"}}


_ANNOTATING: Final = {"$ref", "$defs", "$schema", "$comment", "title", "description", "examples", "default"}
"""Keywords beside a root's reference that constrain nothing, so that the root may be written out."""

_ORDER: Final = ("type", "description", "properties", "required", "additionalProperties")


def _in_order(schema: dict[str, object]) -> dict[str, object]:
    """What a reader looks for first, first; `$defs` last."""
    last = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    first: dict[str, object] = {key: schema[key] for key in _ORDER if key in schema}
    return {**first, **{key: value for key, value in schema.items() if key not in (*first, "$defs")}, **last}


def check_schema(schema: JsonObject) -> dict[str, object]:
    """A raw JSON Schema, checked against the 2020-12 meta-schema and for unresolvable references, its root written out.

    Raises UnusableSchema.
    """
    compile_schema(schema)
    return _inline_root(dict(schema))


def schema_of(given: object, mode: Mode) -> dict[str, object]:
    """The JSON Schema of what a declaration gave: a raw schema (a mapping) or a type. Raises UnusableSchema."""
    return check_schema(given) if isinstance(given, Mapping) else write_schema(given, mode)


def object_schema_of(given: object) -> dict[str, object]:
    """The JSON Schema of declared inputs, which are named: an object. Raises UnusableSchema."""
    schema = schema_of(given, "validation")
    kind = schema.get("type", "object" if "properties" in schema else None)
    if kind != "object":
        raise UnusableSchema("inputs are named, so they must be described by a model or a schema of type object")
    return {"type": "object", **schema}


# --- Checking instances ---


def compile_schema(schema: JsonObject) -> Validate:
    """A function from an instance (decoded JSON) to what is wrong with it, `()` if nothing is.

    Raises UnusableSchema if the schema is not valid JSON Schema 2020-12 or refers outside of itself.
    """
    try:
        validator = jsonschema_rs.Draft202012Validator(dict(schema), retriever=_refuse_to_fetch, validate_formats=False)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError, TypeError) as error:
        raise UnusableSchema(f"not a valid JSON Schema 2020-12: {_first_line(error)}") from error
    is_valid = validator.is_valid

    def validate(instance: object) -> tuple[Violation, ...]:
        if is_valid(instance):
            return ()
        return tuple(_violations(islice(validator.iter_errors(instance), MOST_VIOLATIONS)))

    return validate


def _refuse_to_fetch(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is outside of the schema; put the definition into $defs")


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]


def _violations(errors: Iterable[jsonschema_rs.ValidationError]) -> Iterable[Violation]:
    for error in errors:
        yield from _violations_of(error)


def _violations_of(error: jsonschema_rs.ValidationError) -> Iterable[Violation]:
    """One error of the engine; those about members point at the members, which is what a caller has to correct."""
    path = list(error.instance_path)
    missing = getattr(error.kind, "property", None)
    if isinstance(missing, str):
        return (Violation(pointer_to([*path, missing]), "is required"),)
    unexpected = getattr(error.kind, "unexpected", None)
    if isinstance(unexpected, list):
        return tuple(Violation(pointer_to([*path, name]), "is not a known member") for name in unexpected)
    return (Violation(pointer_to(path), shorten(error.message)),)


def pointer_to(path: Iterable[str | int]) -> str:
    """The RFC 6901 JSON Pointer of a path."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def shorten(text: str) -> str:
    return text if len(text) <= LONGEST_DETAIL else text[: LONGEST_DETAIL - 1] + "…"
