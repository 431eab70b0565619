"""JSON Schemas of Python types, and validators of JSON Schema 2020-12 whose violations carry JSON Pointers.

Two engines have one job each: pydantic writes schemas at start-up, jsonschema-rs validates instances on the request
path. No schema is ever fetched: a `$ref` has to resolve inside the schema itself.
"""

import base64
import binascii
import contextlib
import copy
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from datetime import date, datetime, time, timedelta
from functools import partial
from ipaddress import IPv4Address, IPv6Address
from itertools import islice
from time import thread_time
from typing import Any, Final, Literal, NoReturn, TypeAlias, cast
from urllib.parse import quote, unquote
from uuid import UUID

import jsonschema_rs
import orjson
from jsonschema_rs import Draft202012Validator as Engine
from pydantic import AnyUrl, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, JsonSchemaWarningKind
from pydantic.networks import validate_email
from pydantic_core import CoreSchema, core_schema

from awp_publish.model import JsonObject as JsonObject, utc_text as utc_text
from awp_publish.problems import (
    MAX_VIOLATIONS,
    Violation as Violation,
    did_you_mean as did_you_mean,
    nearest,
)
from awp_publish.schema.reading import DIALECT, depth_exceeds as depth_exceeds, part_at
from awp_publish.schema.unique import UniqueItems

Mode: TypeAlias = Literal["validation", "serialization"]


DESCRIPTION_TIME: Final = 0.1
"""Seconds of CPU time that describing violations may take."""

MAX_DESCRIBED_DEPTH: Final = 50
"""Levels of an instance down to which violations are described."""

MAX_READINGS: Final = 20_000
"""Visits to the objects and lists of an instance, if every alternative of its unions is followed."""

MAX_SHOWN: Final = 60
"""Characters of a caller's text that a message repeats; of a longer text only the length is given."""

MAX_LISTED: Final = 20
"""Values of an enumeration that a message lists; of longer enumerations it lists the nearest."""

MAX_LISTING: Final = 800
"""Characters that a list of values may have in a message."""

_PATTERNS: Final = jsonschema_rs.FancyRegexOptions(backtrack_limit=1000)
"""Patterns with lookaround or back-references backtrack. One that exceeds the limit does not match."""


NOTHING: Final[Mapping[str, str]] = {}


class UnusableSchema(ValueError):
    """A type has no JSON Schema, or a schema is not a valid, self-contained JSON Schema 2020-12."""


# --- Writing schemas ---


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
        aliases = [one["validation_alias"] for one in fields if "validation_alias" in one]
        config = outer.get("config", {})
        has_one_name = not (aliases and config.get("validate_by_name")) and all(isinstance(one, str) for one in aliases)
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
    schema = _inline_root(schema)
    # The keywords that readers look for first come first, `$defs` last.
    rest = [key for key in schema if key not in _ORDER and key != "$defs"]
    return {key: schema[key] for key in (*_ORDER, *rest, "$defs") if key in schema}


def _settle_closed(root: JsonObject) -> None:
    """Close the marked parts of a new schema, except within values that a function receives as sent."""
    seen, waiting, known = list[object](), list[object]([root]), set[int]()
    for part in waiting:  # grows during iteration
        if isinstance(part, dict):
            waiting += part.values()
            seen += [part] if part.pop(_SEEN, None) else []
        elif isinstance(part, list):
            waiting += part
    for part in seen:
        if isinstance(part, list):
            seen += part
        if not isinstance(part, dict) or id(part) in known:
            continue
        known.add(id(part))
        if part.get("additionalProperties") == _CLOSED:
            del part["additionalProperties"]
        target = _target(part)
        seen += [inner for name, inner in part.items() if name not in ("$defs", "default", "examples")]
        seen += [part_at(root, target)] if target is not None else []
    for part in waiting:
        if isinstance(part, dict) and part.get("additionalProperties") == _CLOSED:
            part["additionalProperties"] = False


def write_readable(*kinds: object) -> tuple[JsonObject, ...]:
    """Return the JSON Schemas of those types that have one, as detailed as `drops_unknown` and `close_like` need."""
    written = list[JsonObject]()
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
                waiting += [one[0] if isinstance(one, tuple) else one for one in parts]
        if metadata := node.get("metadata"):
            writers = metadata.get("pydantic_js_functions", ())
            is_own = all(getattr(one, "__module__", "") in _OWN_WRITERS for one in writers)
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
        names = [one.get("validation_alias", name) for name, one in inner["fields"].items()]
        if not all(isinstance(one, str) for one in names) or "validate_by_name" in config:
            return None
        extra = config.get("extra_fields_behavior", "ignore")
        is_closed = extra == "forbid" or (extra == "ignore" and not node.get("custom_init"))
        found = {"properties": dict.fromkeys(names, True)}
        # A model that is used in only one place may have no name.
        name = node.get("ref", str(len(objects)))
        objects[name] = {**found, "additionalProperties": False} if is_closed else found
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
    return bool(written) and all(one.get("additionalProperties") is False for one in written)


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
        found = (part for part in subschemas(root) if part is not root and "properties" in part)
        return [part for part in found if "additionalProperties" not in part and closed.get(_names(part))]

    if not open_parts(schema):
        return schema
    copied = copy.deepcopy(schema)
    for part in open_parts(copied):
        part["additionalProperties"] = False  # type: ignore[index]
    return copied


def _names(schema: JsonObject) -> frozenset[str]:
    return frozenset(table_of(schema, "properties"))


_UNDESCRIBABLE: Final = (PydanticUserError, PydanticSchemaGenerationError, NameError, TypeError, AttributeError)
_REASONS: Final = (
    (re.compile(r"pydantic-core schema for (.+?)\. Set `arbitrary"), "{} has no JSON Schema"),
    (re.compile(r"JsonSchema for core_schema\.\w+ \((.+)\)"), "{} has no JSON Schema"),
    (re.compile(r"JsonSchema for core_schema\.(\w+?)Schema"), "a value of the kind {} has no JSON Schema"),
    (re.compile(r"[`'](\w+)[`'] is not fully defined"), "{} is not fully defined; define its types at module level"),
    (re.compile(r"name '(\w+)' is not defined"), "the type {} is not defined; define it at module level"),
)
"""pydantic's messages for its own users, and ours."""


def reason_of(error: Exception) -> str:
    """Return why a type has no JSON Schema, in one line."""
    if isinstance(error, ValidationError):  # FastAPI validates its OpenAPI document with pydantic
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    text = str(error)
    for pattern, words in _REASONS:
        found = pattern.search(text)
        if found is not None:
            return words.format(re.sub(r"<class '([^']+)'>", r"\1", found[1]))
    return _first_line(error).rstrip(".")


def adapt(kind: object) -> TypeAdapter[object]:
    """Return pydantic's adapter of an annotation that is only known at run time."""
    return TypeAdapter(cast(type[object], kind))


def _inline_root(schema: dict[str, object]) -> dict[str, object]:
    """Replace a root that is only a reference (of a recursive model): readers expect `type` there (WoA section 4.2)."""
    reference, definitions = schema.get("$ref"), schema.get("$defs")
    if not isinstance(reference, str) or not isinstance(definitions, dict) or schema.keys() - _ANNOTATING:
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
        if counts[part["$ref"]] > 1 or part.keys() - _ANNOTATING or not isinstance(definition, dict):
            continue
        if part["$ref"] == f"#/$defs/{name}" and not any(inner is part for inner in subschemas(definition)):
            written = cast(dict[str, object], part)
            beside = {key: value for key, value in written.items() if key != "$ref"}
            written.clear()
            written |= definitions.pop(name) | beside
    if not definitions:
        del whole["$defs"]
    return whole


_ANNOTATING: Final = {"$ref", "$defs", "$schema", "$comment", "title", "description", "examples", "default"}
"""Keywords beside a root's reference that constrain nothing, so that the reference may be replaced."""

_ORDER: Final = ("type", "description", "properties", "required", "additionalProperties")


def check_schema(schema: JsonObject) -> dict[str, object]:
    """Check a raw JSON Schema against the 2020-12 meta-schema and for unresolvable references; return it, root inlined.

    Raises UnusableSchema, also for another dialect: documents promise 2020-12 (WoA section 4.2).
    """
    check_dialect(schema)
    compile_schema(schema)
    return _inline_root(dict(schema))


def check_dialect(schema: JsonObject) -> None:
    """Raise UnusableSchema for a schema that declares another dialect than 2020-12."""
    dialect = schema.get("$schema", DIALECT)
    if not isinstance(dialect, str) or dialect.removesuffix("#") != DIALECT:
        raise UnusableSchema(
            f"the schema is written in another dialect ($schema {_shown(dialect)}); schemas are read as {DIALECT}, "
            "so leave $schema out or translate the schema"
        )


_OLDER: Final = re.compile(r"https?://json-schema\.org/(?:draft-0([467])|draft/2019-09)/schema#?")


def translate(schema: JsonObject) -> JsonObject:
    """Translate a schema that declares an older dialect (draft-04 to 2019-09) to 2020-12. Return others unchanged."""
    declared = schema.get("$schema")
    dialect = _OLDER.fullmatch(declared) if isinstance(declared, str) else None
    if dialect is None:
        return schema
    hides_siblings = dialect[1] is not None  # older dialects ignore the siblings of a reference

    def each(value: object) -> object:
        return {name: one(inner) for name, inner in value.items()} if isinstance(value, Mapping) else value

    def one(value: object) -> object:
        if isinstance(value, list):
            return [one(inner) for inner in value]
        if not isinstance(value, Mapping):
            return value
        given = dict(value)
        if "$ref" in given and hides_siblings:
            given = {name: given[name] for name in ("$ref", "definitions", "$defs") if name in given}
        given.pop("$schema", None)
        if isinstance(given.get("id"), str):
            given["$id"] = given.pop("id")
        if "$recursiveRef" in given:
            given["$ref"] = given.pop("$recursiveRef")
        for name, plain in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if isinstance(given.get(name), bool) and given.pop(name) and plain in given:
                given[name] = given.pop(plain)
        further = given.pop("additionalItems", True)
        if isinstance(given.get("items"), list):
            given["prefixItems"], given["items"] = given["items"], further
        depending = given.pop("dependencies", {})
        if isinstance(depending, Mapping) and depending:
            given["dependentRequired"] = {
                name: needed for name, needed in depending.items() if isinstance(needed, list)
            }
            given["dependentSchemas"] = {
                name: needed for name, needed in depending.items() if not isinstance(needed, list)
            }
        named = ("properties", "patternProperties", "definitions", "$defs", "dependentSchemas")
        plain_values = ("const", "enum", "default", "examples", "required", "dependentRequired", "$ref", "$id")
        return {
            name: each(inner) if name in named else inner if name in plain_values else one(inner)
            for name, inner in given.items()
        }

    return cast(JsonObject, one(schema))


def schema_of(given: object, mode: Mode) -> dict[str, object]:
    """Return the JSON Schema of a declaration: a raw schema (a mapping) or a type. Raises UnusableSchema."""
    return check_schema(given) if isinstance(given, Mapping) else write_schema(given, mode)


def object_schema_of(given: object) -> dict[str, object]:
    """Return the JSON Schema of declared inputs, which have to be an object. Raises UnusableSchema.

    A raw schema is used as it is written.
    """
    schema = schema_of(given, "validation")
    kind = schema.get("type", "object" if "properties" in schema else None)
    if kind != "object":
        raise UnusableSchema("inputs are named, so they must be described by a model or a schema of type object")
    return {"type": "object", **schema}


# --- Checking instances ---


def compile_schema(schema: JsonObject, asserts_formats: bool = False) -> "Validator":
    """Return a schema's validator. With `asserts_formats`, texts have to conform to `format` and `contentEncoding`.

    Raises UnusableSchema if the schema is not valid JSON Schema 2020-12 or refers to something outside of itself.
    """
    root = dict(schema)
    with contextlib.suppress(TypeError):  # numbers that are too large for orjson, for instance
        text = orjson.dumps(root)
        # Checks of our own make the engine a fifth slower, even for schemas that do not use them.
        asserts_formats = asserts_formats and any(word in text for word in _MENTIONS_FORMATS)
        # Validating against the meta-schema is enough for these, and most schemas of a site are never compiled.
        if b'"$' not in text and b'"pattern' not in text and jsonschema_rs.meta.is_valid(root):
            return Validator(root, None, asserts_formats)
    try:
        return Validator(root, _compile(root, asserts_formats=asserts_formats), asserts_formats)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError, TypeError) as error:
        raise UnusableSchema(f"not a valid JSON Schema 2020-12: {_first_line(error)}") from error


_MENTIONS_FORMATS: Final = (b'"format"', b'"contentEncoding"', b"json-schema.org")
"""Texts of a schema that may use formats. The meta-schema, to which a schema may refer, uses them."""


class Validator:
    """Validates instances (decoded JSON) against a schema, and describes what is wrong with invalid ones.

    The engine's verdict takes time in proportion to the instance. Its list of errors does not: it copies instances, and
    follows every alternative of every union. Violations are therefore found by a walk of our own, which has a time
    limit.
    """

    def __init__(self, schema: dict[str, object], engine: Engine | None, asserts_formats: bool = False) -> None:
        """`engine` is None for a schema without references, which is compiled when the first instance is validated."""
        self._schema = schema
        self._engine = engine
        self._asserts_formats = asserts_formats
        self._walker: _Walker | None = None

        self.is_valid: Callable[[object], bool]

        def compile_and_check(instance: object) -> bool:
            self.is_valid = _compile(schema, asserts_formats=asserts_formats).is_valid
            return self.is_valid(instance)

        self.is_valid = compile_and_check if engine is None else engine.is_valid
        self._has_readings = engine is not None and _branches_recursively(schema)
        if engine is not None and self._has_readings:
            readings = _Readings(schema)
            self.is_valid = lambda instance: engine.is_valid(instance) and readings.are_few(instance)

    def __call__(self, instance: object) -> tuple[Violation, ...]:
        """Return the first MAX_VIOLATIONS of an instance, or () if it is valid."""
        return () if self.is_valid(instance) else self.describe(instance)[0]

    def describe(self, instance: object, elsewhere: Mapping[str, str] = NOTHING) -> tuple[tuple[Violation, ...], int]:
        """Return the first MAX_VIOLATIONS of an invalid instance, and the number of further ones.

        The number is too small if the time limit is reached. `elsewhere` says where members belong that are often put
        into an instance by mistake.
        """
        if self._engine is not None and self._has_readings and self._engine.is_valid(instance):
            return (Violation("", "is too deeply nested to be read unambiguously"),), 0
        if self._walker is None:
            self._walker = _Walker(self._schema, self._asserts_formats)
        return self._walker.describe(instance, elsewhere)


def _compile(
    schema: dict[str, object], registry: jsonschema_rs.Registry | None = None, asserts_formats: bool = False
) -> jsonschema_rs.Draft202012Validator:
    try:
        return jsonschema_rs.Draft202012Validator(
            schema,
            retriever=_refuse_to_fetch,
            registry=registry,
            validate_formats=asserts_formats,
            formats=_FORMATS if asserts_formats else None,
            keywords=_KEYWORDS if asserts_formats else _UNIQUE,
            pattern_options=_PATTERNS,
        )
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # the engine panics on some schemas with nested $id
            raise
        raise ValueError(str(error)) from error


def _refuse_to_fetch(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is outside of the schema; put the definition into $defs")


# --- Formats ---
# A text conforms to a format if it conforms to the format's specification, or if pydantic accepts it: handlers take a
# `datetime` without an offset and a `UUID` without hyphens, and nothing that a handler takes may be refused before it.
# Formats that the engine does not know (`binary`, `password`, `json-string`, `path`, ...) are annotations.

MAX_LENIENT: Final = 2_000
"""Characters of a text that pydantic is given to read."""


def _is_in(strict: Callable[[object], bool], read: Callable[[str], object], text: str) -> bool:
    if strict(text):
        return True
    try:
        if len(text) <= MAX_LENIENT:
            read(text)
            return True
    except (ValueError, ImportError):  # pydantic raises ValueError; its e-mail addresses need a package
        pass
    return False


_READERS: Final[Mapping[str, Callable[[str], object]]] = {
    **{
        name: TypeAdapter(cast(Any, kind)).validate_python
        for name, kind in (
            ("date", date),
            ("date-time", datetime),
            ("time", time),
            ("duration", timedelta),
            ("uuid", UUID),
            ("uri", AnyUrl),
            ("ipv4", IPv4Address),
            ("ipv6", IPv6Address),
        )
    },
    "email": validate_email,
    "regex": str,  # a handler expects Python's syntax; a caller's pattern is never compiled here
}
_FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    name: partial(_is_in, Engine({"format": name}, validate_formats=True).is_valid, read)
    for name, read in _READERS.items()
}


class _ContentEncoding:
    """The keyword `contentEncoding`, an annotation in JSON Schema. We assert it for base64, in which files are sent."""

    def __init__(self, schema: object, encoding: object, path: object) -> None:
        self._is_base64 = encoding == "base64"

    def validate(self, instance: object) -> None:
        """Raise ValueError for a text that is not base64 although the keyword says so."""
        if self._is_base64 and isinstance(instance, str) and not is_base64(instance):
            raise ValueError("not base64")


_UNIQUE: Final[dict[str, Any]] = {"uniqueItems": UniqueItems}
_KEYWORDS: Final[dict[str, Any]] = {"contentEncoding": _ContentEncoding, **_UNIQUE}


def is_base64(text: str) -> bool:
    """Return True for a text in the base64 of RFC 4648 section 4."""
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]


def pointer_to(path: Iterable[str | int]) -> str:
    """Return the RFC 6901 JSON Pointer of a path."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def member_names(root: JsonObject) -> list[str]:
    """Return the names of all properties of an object schema, including those of combined schemas, in order."""
    names, followed, waiting = dict[str, None](), set[str](), list[object]([root])
    for schema in waiting:  # grows during iteration
        if not isinstance(schema, Mapping):
            continue
        names |= dict.fromkeys(table_of(schema, "properties"))
        target = _target(schema)
        if target is not None and target not in followed:
            followed.add(target)
            waiting.append(part_at(root, target))
        for keyword in ("allOf", "anyOf", "oneOf"):
            waiting += list_of(schema, keyword)
    return list(names)


def subschemas(root: object) -> Iterable[JsonObject]:
    """Yield every object within a schema."""
    waiting = [root]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):  # nearly all are dicts, and isinstance with an abstract class is slow
            yield part
            waiting += [one for one in part.values() if type(one) not in _PLAIN]
        elif isinstance(part, (list, tuple)):
            waiting += part
        elif type(part) not in _PLAIN and isinstance(part, Mapping):
            yield part
            waiting += part.values()


_PLAIN: Final = frozenset((str, int, float, bool, type(None)))


def named_subschemas(root: object) -> Mapping[str, JsonObject]:
    """Return the subschemas by the references that name them by an anchor or an id instead of a pointer."""
    return {
        prefix + name: one
        for one in subschemas(root)
        for keyword, prefix in (("$anchor", "#"), ("$dynamicAnchor", "#"), ("$id", ""))
        if isinstance(name := one.get(keyword), str)
    }


def parts_of(root: JsonObject, schemas: Iterable[object], named: Mapping[str, JsonObject]) -> tuple[JsonObject, ...]:
    """Return schemas within `root` with everything that they refer to or combine, each once."""
    found: dict[int, JsonObject] = {}
    waiting = list(schemas)
    while waiting:
        schema = waiting.pop()
        if not isinstance(schema, Mapping) or id(schema) in found:
            continue
        found[id(schema)] = schema
        for keyword in ("$ref", "$dynamicRef"):
            if isinstance(reference := schema.get(keyword), str):
                is_pointer = reference == "#" or reference.startswith("#/")
                waiting.append(part_at(root, unquote(reference[1:])) if is_pointer else named.get(reference))
        waiting += [schema.get(name) for name in ("if", "then", "else")]
        waiting += [one for name in ("allOf", "anyOf", "oneOf") for one in list_of(schema, name)]
        waiting += table_of(schema, "dependentSchemas").values()
    return tuple(found.values())


def is_secret(schema: JsonObject) -> bool:
    """Return True if a schema marks a value as never to be disclosed: a password, or `writeOnly`."""
    return schema.get("writeOnly") is True or schema.get("format") == "password"


def _target(schema: JsonObject) -> str | None:
    """Return the pointer of a reference within the schema; None if there is no reference or it is not a pointer."""
    reference = schema.get("$ref")
    is_pointer = isinstance(reference, str) and (reference == "#" or reference.startswith("#/"))
    return unquote(str(reference)[1:]) if is_pointer else None


def table_of(schema: JsonObject, keyword: str) -> JsonObject:
    """Return the value of a keyword if it is an object, otherwise {}."""
    found = schema.get(keyword)
    return found if isinstance(found, Mapping) else {}


def list_of(schema: JsonObject, keyword: str) -> Sequence[Any]:
    """Return the value of a keyword if it is a list, otherwise ()."""
    found = schema.get(keyword)
    return found if isinstance(found, (list, tuple)) else ()


# --- Recursive unions ---
# A reader of {"and": [{"and": [...]}]} as And | Or that tries both alternatives at every level takes exponential time.
# pydantic does so unless a discriminator selects the alternative. Instances that would take too long are refused.


def _branches_recursively(root: JsonObject) -> bool:
    """Return True if at least two alternatives of a union contain the union itself."""
    with contextlib.suppress(TypeError):  # numbers that are too large for orjson, for instance
        if b'"$ref"' not in orjson.dumps(root):
            return False
    unions: list[Mapping[str, object]] = []
    waiting: list[object] = [root]
    while waiting:
        part = waiting.pop()
        waiting += part.values() if isinstance(part, Mapping) else part if isinstance(part, list) else ()
        if isinstance(part, Mapping) and "discriminator" not in part:
            unions += [part] if len(list_of(part, "anyOf")) > 1 or len(list_of(part, "oneOf")) > 1 else []

    def leads_to(union: object, start: object) -> bool:
        waiting, seen = [start], set[int]()
        while waiting:
            part = waiting.pop()
            if part is union:
                return True
            if isinstance(part, list):
                waiting += part
            elif isinstance(part, Mapping) and id(part) not in seen:
                seen.add(id(part))
                waiting += [inner for name, inner in part.items() if name not in ("$defs", "definitions")]
                target = _target(part)
                waiting += [part_at(root, target)] if target is not None else []
        return False

    return any(
        sum(leads_to(union, one) for one in list_of(union, keyword)) > 1
        for union in unions
        for keyword in ("anyOf", "oneOf")
    )


class _Readings:
    """Counts the visits to objects and lists of an instance if every alternative of a schema is followed."""

    def __init__(self, schema: JsonObject) -> None:
        self._schema = schema
        self._shapes: dict[int, tuple[list[JsonObject], list[JsonObject]]] = {}

    def are_few(self, instance: object) -> bool:
        """Return True for at most MAX_READINGS visits, plus ten for each object and list."""
        counted: dict[tuple[int, int], int] = {}
        count = self._count(self._schema, instance, counted)
        return count <= MAX_READINGS or count <= MAX_READINGS + 10 * len({value for _, value in counted})

    def _count(self, schema: object, value: object, counted: dict[tuple[int, int], int]) -> int:
        key = (id(schema), id(value))
        if key in counted:
            return counted[key]
        if id(schema) not in self._shapes:  # its parts about objects, and its parts about lists
            parts = parts_of(self._schema, [schema], {})
            objects = [part for part in parts if "properties" in part or "additionalProperties" in part]
            self._shapes[id(schema)] = objects, [part for part in parts if "items" in part or "prefixItems" in part]
        objects, arrays = self._shapes[id(schema)]
        if isinstance(value, dict):
            total = len(objects)
            inner = [pair for pair in value.items() if isinstance(pair[1], (dict, list))]
            for shape in objects if inner else ():
                named, rest = table_of(shape, "properties"), shape.get("additionalProperties")
                for name, member in inner:
                    total += self._count(named.get(name, rest), member, counted)
        else:
            total = len(arrays)
            items = [item for item in value if isinstance(item, (dict, list))] if isinstance(value, list) else []
            for shape in arrays if items else ():
                for one in (*list_of(shape, "prefixItems"), shape.get("items")):
                    for item in items:
                        total += self._count(one, item, counted)
        counted[key] = total
        return total


# --- Describing violations ---

_Path: TypeAlias = tuple[str | int, ...]


class _Walk:
    """The violations found by one walk, and its deadline."""

    def __init__(self, elsewhere: Mapping[str, str]) -> None:
        self.found: list[Violation] = []
        self.count = 0
        self.seen: set[tuple[str, _Path]] = set()
        self.elsewhere = elsewhere
        self._deadline = thread_time() + DESCRIPTION_TIME

    def note(self, path: _Path, detail: str) -> None:
        """Record a violation."""
        self.count += 1
        if len(self.found) < MAX_VIOLATIONS:
            self.found.append(Violation(pointer_to(path), detail))

    def is_over(self) -> bool:
        """Return True if enough violations were found or the deadline has passed."""
        return self.count >= MAX_VIOLATIONS or thread_time() > self._deadline


class _Walker:
    """Walks an instance alongside its schema, into the parts that do not conform."""

    def __init__(self, schema: dict[str, object], asserts_formats: bool) -> None:
        self._schema = schema
        self._asserts_formats = asserts_formats
        self._named = named_subschemas(schema)
        self._registry = jsonschema_rs.Registry([(_BASE, schema)], retriever=_refuse_to_fetch)
        self._parts: dict[str, Callable[[object], bool]] = {}
        self._keywords: dict[tuple[str, int], Callable[[object], bool]] = {}
        self._secrets: dict[tuple[str, bool], bool] = {}

    def describe(self, instance: object, elsewhere: Mapping[str, str]) -> tuple[tuple[Violation, ...], int]:
        """Return the violations of an invalid instance, and the number of further ones that were found."""
        walk = _Walk(elsewhere)
        self._describe(walk, "", instance, (), False)
        return tuple(walk.found), walk.count - len(walk.found)

    def _conforms(self, at: str, value: object) -> bool:
        """Return True if a value conforms to the part of the schema at a pointer."""
        if at not in self._parts:
            try:
                reference: dict[str, object] = {"$ref": f"{_BASE}#{quote(at)}"}
                self._parts[at] = _compile(reference, self._registry, self._asserts_formats).is_valid
            except (jsonschema_rs.ReferencingError, ValueError):  # a part within another $id has another address
                self._parts[at] = lambda _: True
        return self._parts[at](value)

    def _holds(self, keyword: str, limit: object, value: object) -> bool:
        """Return True if a value conforms to a keyword that has no subschemas. `limit` is the keyword's value."""
        key = (keyword, id(limit))
        if key not in self._keywords:
            self._keywords[key] = _compile({keyword: limit}, asserts_formats=self._asserts_formats).is_valid
        return self._keywords[key](value)

    def _look(self, walk: _Walk, at: str, value: object, path: _Path, is_secret: bool) -> None:
        """Describe a value if it does not conform to the part of the schema at a pointer."""
        if not walk.is_over() and not self._conforms(at, value):
            self._describe(walk, at, value, path, is_secret)

    def _describe(self, walk: _Walk, at: str, value: object, path: _Path, is_secret: bool) -> None:
        before, schema = walk.count, part_at(self._schema, at)
        if (at, path) in walk.seen:
            return
        walk.seen.add((at, path))
        is_secret = is_secret or self._is_secret(at)
        echoes = not (is_secret or self._is_secret(at, within=True))
        if isinstance(schema, Mapping) and len(path) < MAX_DESCRIBED_DEPTH:
            for keyword, words in _WORDS.items():
                if keyword in schema and not self._holds(keyword, schema[keyword], value):
                    walk.note(path, words(schema[keyword], value) + (_echo(keyword, value) if echoes else ""))
            if isinstance(value, dict):
                self._describe_members(walk, at, schema, value, path, is_secret)
            elif isinstance(value, list):
                first = len(list_of(schema, "prefixItems"))
                for index, item in enumerate(value if "items" in schema else value[:first]):
                    if walk.is_over():
                        break
                    place = f"{at}/prefixItems/{index}" if index < first else f"{at}/items"
                    self._look(walk, place, item, (*path, index), is_secret)
            # Further parts of the schema that apply to the same value.
            beside = [target] if (target := _target(schema)) is not None else []
            beside += [f"{at}/allOf/{index}" for index, _ in enumerate(list_of(schema, "allOf"))]
            if "if" in schema:
                place = f"{at}/then" if self._conforms(f"{at}/if", value) else f"{at}/else"
                beside += [place] if part_at(self._schema, place) is not None else []
            for name in table_of(schema, "dependentSchemas"):
                if isinstance(value, dict) and name in value:
                    beside.append(f"{at}/dependentSchemas{pointer_to([name])}")
            for place in beside:
                self._look(walk, place, value, path, is_secret)
            for keyword in ("anyOf", "oneOf"):
                if keyword in schema and not walk.is_over():
                    self._describe_union(walk, f"{at}/{keyword}", schema, value, path, is_secret, echoes)
        if walk.count == before:
            keywords = schema if isinstance(schema, Mapping) else ("false",)
            walk.note(path, next((words for name, words in _UNEXPLAINED.items() if name in keywords), _OTHERWISE))

    def _describe_members(
        self, walk: _Walk, at: str, schema: JsonObject, value: dict[str, object], path: _Path, is_secret: bool
    ) -> None:
        needed = list(list_of(schema, "required"))
        depending = table_of(schema, "dependentRequired")
        for name in depending:
            needed += list_of(depending, name) if name in value else ()
        for name in needed:
            if name not in value:
                walk.note((*path, name), "is required")
        named, patterns = table_of(schema, "properties"), table_of(schema, "patternProperties")
        rest = schema.get("additionalProperties")
        known: Set[str] = named.keys()
        if rest is None and (rest := schema.get("unevaluatedProperties")) is False:
            parts = parts_of(self._schema, [schema], self._named)
            known = {name for part in parts for name in table_of(part, "properties")}
        has_listed = False
        for name, member in value.items():
            places = [f"{at}/properties{pointer_to([name])}"] if name in named else []
            if patterns:
                matched = [one for one in patterns if self._holds("pattern", one, name)]
                places += [f"{at}/patternProperties{pointer_to([one])}" for one in matched]
            if rest is False and name not in known and not places:
                detail = "is not a known member"
                if walk.is_over():
                    pass  # all unknown members are counted
                elif not path and name in walk.elsewhere:
                    detail = f"is not an input: {walk.elsewhere[name]}"
                elif meant := did_you_mean(name, known):
                    detail += f". {meant}"
                elif not has_listed and known:
                    has_listed = True
                    detail += f". Known members: {_listing(list(known), name)}"
                walk.note((*path, name), detail)
                continue
            if not places and "additionalProperties" in schema:
                places = [f"{at}/additionalProperties"]
            if walk.is_over():
                continue
            if "propertyNames" in schema and not self._conforms(f"{at}/propertyNames", name):
                names = self._resolved(f"{at}/propertyNames")
                allowed = f": it must be {self._noun(names, name)}" if _values(names) else ""
                walk.note((*path, name), f"is not an allowed name{allowed}")
            for place in places:
                self._look(walk, place, member, (*path, name), is_secret)

    # A union is described by the one alternative that was most likely meant, so that the walk never branches.

    def _describe_union(
        self,
        walk: _Walk,
        at: str,
        schema: JsonObject,
        value: object,
        path: _Path,
        is_secret: bool,
        echoes: bool,
    ) -> None:
        """Describe a value that fits none of the alternatives at a pointer, or more than one of oneOf."""
        places = [f"{at}/{index}" for index, _ in enumerate(cast(list[object], part_at(self._schema, at)))]
        fitting = sum(self._conforms(place, value) for place in places)
        if fitting == 1 or (fitting and at.endswith("anyOf")):
            return
        if fitting:
            walk.note(path, "matches several of the alternatives and must match exactly one")
            return
        kinds = {place: self._resolved(place) for place in places}
        kinds = {place: kind for place, kind in kinds.items() if kind.get("type") != "null"} or kinds

        # A tag selects the alternative, or is itself what is wrong.
        tag, tags = self._tags(schema, kinds)
        is_needed = "discriminator" in schema or all(tag in list_of(kinds[place], "required") for place in tags)
        if tag and isinstance(value, dict) and (tag in value or is_needed):
            if tag not in value or not any(_is_among(value[tag], allowed) for allowed in tags.values()):
                allowed = [one for listed in tags.values() for one in listed]
                choices = _one_of(allowed, value.get(tag))
                expected = f"must be {choices}{_echo('enum', value[tag]) if echoes else ''}" if tag in value else ""
                walk.note((*path, tag), expected or f"is required: {choices}")
                return
            kinds = {
                place: kind for place, kind in kinds.items() if place not in tags or _is_among(value[tag], tags[place])
            }

        typed = [
            place for place, kind in kinds.items() if "type" not in kind or self._holds("type", kind["type"], value)
        ]
        chosen = typed[0] if len(typed) == 1 else None
        if len(typed) > 1 and isinstance(value, (dict, list)):
            scores = {place: self._closeness(place, value) for place in typed}
            best = max(typed, key=scores.__getitem__)
            chosen = best if scores[best] > (0, 1) or isinstance(value, list) else None
        if chosen is not None:
            self._look(walk, chosen, value, path, is_secret)
            return
        nouns, values = list[str](), list[object]()
        for kind in kinds.values():
            if listed := _values(kind):
                values += listed
            else:
                nouns.append(self._noun(kind, value))
        nouns += [_one_of(values, value)] if values else []
        expected = " or ".join(dict.fromkeys(nouns))
        if typed and isinstance(value, (dict, list)):
            echoes = False  # that it is an object would not help
        walk.note(path, f"must be {expected}{_echo('type', value) if echoes else ''}")

    def _tags(self, schema: JsonObject, kinds: Mapping[str, JsonObject]) -> tuple[str, dict[str, list[object]]]:
        """Return the member that distinguishes the objects of a union, with its values in each; "" if there is none."""
        discriminator = table_of(schema, "discriminator")
        named, mapping = discriminator.get("propertyName"), table_of(discriminator, "mapping")
        objects = {place: kind for place, kind in kinds.items() if "properties" in kind}
        found: dict[str, dict[str, list[object]]] = {}
        for place, kind in objects.items():
            for name in table_of(kind, "properties"):
                if values := _values(self._resolved_part(table_of(kind, "properties")[name])):
                    found.setdefault(name, {})[place] = values
            reference = (part_at(self._schema, place) or {}).get("$ref")  # type: ignore[attr-defined]
            mapped: list[object] = [value for value, target in mapping.items() if target == reference]
            if isinstance(named, str) and mapped:
                found.setdefault(named, {}).setdefault(place, mapped)
        if isinstance(named, str):
            return (named, found[named]) if named in found else ("", {})
        # Without a discriminator: a member that has values in each of the objects, all of them different.
        for name, tags in found.items():
            listed = [json.dumps(one) for values in tags.values() for one in values]
            if len(tags) == len(objects) and len(objects) > 1 and len(set(listed)) == len(listed):
                return name, tags
        return "", {}

    def _closeness(self, at: str, value: dict[str, object] | list[object]) -> tuple[int, int, int, int]:
        """Return how well an object or list fits an alternative; the best fit compares largest."""
        kind = self._resolved(at)
        if isinstance(value, list):
            items = f"{self._address(at)}/items"
            fitting = sum(self._conforms(items, item) for item in value[:MAX_LISTED]) if "items" in kind else 0
            return fitting, 0, 0, 0
        named = table_of(kind, "properties")
        present = [name for name in islice(named, MAX_MEMBERS) if name in value]
        properties = f"{self._address(at)}/properties"
        fitting = sum(self._conforms(properties + pointer_to([name]), value[name]) for name in present)
        missing = sum(name not in value for name in list_of(kind, "required"))
        return fitting, len(present), -missing, len(present) - len(value)

    def _address(self, at: str) -> str:
        """Follow the references at a pointer and return the final pointer."""
        for _ in range(MAX_DESCRIBED_DEPTH):
            schema = part_at(self._schema, at)
            target = _target(schema) if isinstance(schema, Mapping) else None
            if target is None:
                break
            at = target
        return at

    def _resolved(self, at: str) -> JsonObject:
        """Return the part of the schema at a pointer, with references followed; {} for true, false or nothing."""
        found = part_at(self._schema, self._address(at))
        return found if isinstance(found, Mapping) else {}

    def _resolved_part(self, part: object) -> JsonObject:
        target = _target(part) if isinstance(part, Mapping) else None
        return self._resolved(target) if target is not None else part if isinstance(part, Mapping) else {}

    def _noun(self, kind: JsonObject, value: object, depth: int = 0) -> str:
        """Return a noun phrase for what a schema allows."""
        if values := _values(kind):
            return _one_of(values, value)
        if (name := kind.get("format")) and self._asserts_formats and str(name) in _FORMAT_NOUNS:
            return _FORMAT_NOUNS[str(name)]
        if "type" in kind:
            needed = list_of(kind, "required")
            members = f" with {_listing(needed)}" if kind["type"] == "object" and needed else ""
            return _type_noun(kind["type"]) + members
        inner = [*list_of(kind, "anyOf"), *list_of(kind, "oneOf")]
        if inner and depth < 3:
            parts = [self._resolved_part(one) for one in inner]
            nouns = [self._noun(one, value, depth + 1) for one in parts if one.get("type") != "null"]
            return " or ".join(dict.fromkeys(nouns)) or "null"
        return "an object" if "properties" in kind else "what the schema allows"

    def _is_secret(self, at: str, within: bool = False) -> bool:
        """Return True if the value at a pointer is a password, or must not be disclosed (`writeOnly`).

        With `within`, also if it may contain such a value: a password sent in place of a list of passwords is still
        secret.
        """
        if (at, within) not in self._secrets:
            parts = list(parts_of(self._schema, [part_at(self._schema, at)], self._named))
            known = set(map(id, parts))
            for part in parts if within else ():  # grows during iteration
                inner = [part.get("items"), part.get("additionalProperties"), *list_of(part, "prefixItems")]
                inner += [*table_of(part, "properties").values(), *table_of(part, "patternProperties").values()]
                further = [one for one in parts_of(self._schema, inner, self._named) if id(one) not in known]
                known |= set(map(id, further))
                parts += further
            self._secrets[at, within] = any(map(is_secret, parts))
        return self._secrets[at, within]


_BASE: Final = "https://schema.invalid/"
"""The base address of a schema in the engine, to which pointers are appended. No such host exists (RFC 6761)."""

MAX_MEMBERS: Final = 50
"""Members of an alternative that are compared with those of an object."""


def _values(kind: JsonObject) -> list[object]:
    """Return the values of an enumeration or a constant."""
    if "const" in kind:
        return [kind["const"]]
    return list(list_of(kind, "enum"))


def _is_among(value: object, allowed: Sequence[object]) -> bool:
    """Return True if a value equals one of a few in JSON, where true is not 1."""
    return any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in allowed)


_TYPE_NOUNS: Final = {
    "object": "an object",
    "array": "an array",
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a boolean",
    "null": "null",
}
_FORMAT_NOUNS: Final = {
    "date": "a date such as 2026-01-31",
    "date-time": "a date and time such as 2026-01-31T12:00:00Z",
    "time": "a time such as 12:00:00Z",
    "duration": "a duration such as P1DT12H",
    "email": "an e-mail address",
    "idn-email": "an e-mail address",
    "hostname": "a host name",
    "idn-hostname": "a host name",
    "ipv4": "an IPv4 address",
    "ipv6": "an IPv6 address",
    "uri": "an absolute URI such as https://example.com/",
    "uri-reference": "a URI reference",
    "iri": "an absolute IRI such as https://example.com/",
    "iri-reference": "an IRI reference",
    "uri-template": "a URI template",
    "uuid": "a UUID",
    "json-pointer": "a JSON Pointer",
    "relative-json-pointer": "a relative JSON Pointer",
}


def _type_noun(kinds: object) -> str:
    listed = kinds if isinstance(kinds, list) else [kinds]
    named = [one for one in listed if one != "null"] or listed
    return " or ".join(_TYPE_NOUNS.get(str(one), str(one)) for one in named)


def _one_of(values: Sequence[object], value: object) -> str:
    if len(values) == 1:
        return _shown(values[0])
    if len(values) <= MAX_LISTED and len(listing := ", ".join(map(_shown, values))) <= MAX_LISTING:
        return f"one of {listing}"
    return f"one of {len(values)} values, such as {_listing(values, value)}"


def _listing(values: Sequence[object], wanted: object = None) -> str:
    """Return values separated by commas: all up to MAX_LISTED, otherwise those nearest to the wanted one."""
    if len(values) <= MAX_LISTED and len(listing := ", ".join(map(_shown, values))) <= MAX_LISTING:
        return listing
    texts = [one for one in values if isinstance(one, str)]
    near: Sequence[object] = nearest(wanted, texts, MAX_NEAREST) if isinstance(wanted, str) else ()
    return ", ".join(_shown(one)[: MAX_LISTING // MAX_NEAREST] for one in near or values[:MAX_NEAREST])


MAX_NEAREST: Final = 5


def _counted(limit: object, noun: str) -> str:
    return f"{_shown(limit)} {noun}{'' if limit == 1 else 's'}"


def _at_least(noun: str) -> Callable[[object, object], str]:
    return lambda limit, _: "must not be empty" if limit == 1 else f"must have at least {_counted(limit, noun)}"


def _at_most(noun: str) -> Callable[[object, object], str]:
    return lambda limit, _: f"must have at most {_counted(limit, noun)}"


def _must_be(words: str) -> Callable[[object, object], str]:
    return lambda limit, _: f"must be {words}{_shown(limit)}"


_WORDS: Final[Mapping[str, Callable[[object, object], str]]] = {
    "type": lambda limit, _: f"must be {_type_noun(limit)}",
    "enum": lambda limit, value: f"must be {_one_of(cast(list[object], limit), value)}",
    "const": _must_be(""),
    "minimum": _must_be("at least "),
    "maximum": _must_be("at most "),
    "exclusiveMinimum": _must_be("greater than "),
    "exclusiveMaximum": _must_be("less than "),
    "multipleOf": _must_be("a multiple of "),
    "minLength": _at_least("character"),
    "maxLength": _at_most("character"),
    "pattern": lambda limit, _: f"must match the pattern {limit}",
    "format": lambda limit, _: f"must be {_FORMAT_NOUNS.get(str(limit), f'of the format {limit}')}",
    "contentEncoding": lambda limit, _: f"must be {limit}",
    "minItems": _at_least("item"),
    "maxItems": _at_most("item"),
    "uniqueItems": lambda _, __: "must not contain the same item twice",
    "minProperties": _at_least("member"),
    "maxProperties": _at_most("member"),
}
"""Messages for values that do not conform to a keyword, made from the keyword's value and the value."""

_ECHOING: Final = frozenset({"type", "enum", "const", "format", "pattern"})
"""Keywords whose messages repeat the value."""

_UNEXPLAINED: Final = {
    "anyOf": "matches none of the alternatives that the schema allows here",
    "oneOf": "matches none of the alternatives that the schema allows here, or several of them",
    "not": "is excluded by the schema",
    "contains": "does not contain the required number of items",
    "unevaluatedProperties": "has unknown members",
    "unevaluatedItems": "has unknown items",
    "false": "is not allowed here",
}
_OTHERWISE: Final = "does not conform to the schema"


def _echo(keyword: str, value: object) -> str:
    """Return the value as the end of a message, or "" if repeating it does not help."""
    if keyword not in _ECHOING:
        return ""
    if isinstance(value, str) and len(value) > MAX_SHOWN:
        return f", not a string of {len(value)} characters"
    return f", not {_shown(value)}"


def _shown(value: object) -> str:
    """Return a value in a few characters: as JSON, but objects and arrays as their type, whole numbers as integers."""
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "an array"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    if isinstance(value, str) and len(value) > MAX_SHOWN:
        return json.dumps(value[:MAX_SHOWN], ensure_ascii=False)[:-1] + '…"'
    return json.dumps(value, ensure_ascii=False, default=str)


# --- Errors of pydantic ---

_OWN_CHECKS: Final = ("value_error", "assertion_error")
"""The types of errors that validators of the application raise."""


def read_errors(listed: Iterable[tuple[Sequence[str | int], str, str]], given: object) -> tuple[Violation, ...]:
    """Convert pydantic's errors (location, message, type) to violations of an input.

    A location contains alternatives of unions and functions, which are not members of the input. For a union only the
    errors of the most likely alternative are returned: the one that a validator of the application refuses, or else the
    one with the fewest errors.
    """
    found: list[tuple[tuple[str | int, ...], list[tuple[tuple[str | int, ...], object]], str, bool]] = []
    for location, words, kind in listed:
        path, labels, value = list[str | int](), list[tuple[tuple[str | int, ...], object]](), given
        for index, part in enumerate(location):
            is_last = index == len(location) - 1
            is_item = isinstance(value, list) and isinstance(part, int) and part < len(value)
            is_member = isinstance(value, Mapping) and part in value
            if is_item or is_member:
                value = cast(Any, value)[part]
            elif not (is_last and kind == "missing"):
                labels.append((tuple(path), part))
                continue
            path.append(part)
        detail = words.removeprefix("Value error, ").removeprefix("Assertion failed, ")
        found.append((tuple(path), labels, detail, kind in _OWN_CHECKS))
    level = 0
    while any(len(labels) > level for _, labels, _, _ in found):
        unions: dict[tuple[str | int, ...], dict[object, list[bool]]] = {}
        for _, labels, _, is_own in found:
            if len(labels) > level:
                place, label = labels[level]
                unions.setdefault(place, {}).setdefault(label, []).append(is_own)
        meant = {
            place: min(errors, key=lambda label, errors=errors: (not any(errors[label]), len(errors[label])))  # type: ignore[misc]
            for place, errors in unions.items()
        }
        found = [one for one in found if len(one[1]) <= level or meant[one[1][level][0]] == one[1][level][1]]
        level += 1
    return tuple(dict.fromkeys(Violation(pointer_to(path), words) for path, _, words, _ in found))
