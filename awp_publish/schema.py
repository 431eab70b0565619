"""Python types to JSON Schema 2020-12, and JSON Schemas to validators whose verdicts carry JSON Pointers.

Two engines, one job each: pydantic writes schemas at start-up, jsonschema-rs checks instances on the request path. No
schema is ever fetched: a `$ref` must resolve inside the schema itself.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from time import thread_time
from typing import Any, Final, Literal, NoReturn, TypeAlias, cast
from urllib.parse import quote, unquote

import jsonschema_rs
from jsonschema_rs import Draft202012Validator as Engine
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import CoreSchema, core_schema

from awp_publish.model import JsonObject
from awp_publish.problems import MAX_VIOLATIONS, Violation

Mode: TypeAlias = Literal["validation", "serialization"]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

DESCRIPTION_TIME: Final = 0.1
"""Seconds of computing that saying what is wrong may take."""

MAX_DESCRIBED_DEPTH: Final = 50
"""Levels of an instance into which it is said what is wrong."""

MAX_READINGS: Final = 20_000
"""Looks at the objects and lists of an instance, for whoever follows every alternative of its unions."""

MAX_SHOWN: Final = 100
"""Characters of a text of the caller's that are repeated."""

_PATTERNS: Final = jsonschema_rs.FancyRegexOptions(backtrack_limit=1000)
"""Patterns with lookaround or back-references take quadratic time in other engines. What needs more is no match."""


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
    # The titles of the root and of `$defs` are class names.
    definitions = schema.get("$defs")
    for part in (schema, *(definitions.values() if isinstance(definitions, dict) else ())):
        part.pop("title", None)
    schema = _inline_root(schema)
    # What a reader looks for first, first; `$defs` last.
    rest = [key for key in schema if key not in _ORDER and key != "$defs"]
    return {key: schema[key] for key in (*_ORDER, *rest, "$defs") if key in schema}


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


def check_schema(schema: JsonObject) -> dict[str, object]:
    """A raw JSON Schema, checked against the 2020-12 meta-schema and for unresolvable references, its root written out.

    Raises UnusableSchema, for another dialect too: documents promise 2020-12 (WoA section 4.2).
    """
    dialect = schema.get("$schema", DIALECT)
    if not isinstance(dialect, str) or dialect.removesuffix("#") != DIALECT:
        raise UnusableSchema(
            f"the schema is written in another dialect ($schema {_shown(dialect)}); schemas are read as {DIALECT}, "
            "so leave $schema out or translate the schema"
        )
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


def compile_schema(schema: JsonObject) -> "Validator":
    """The validator of a schema.

    Raises UnusableSchema if the schema is not valid JSON Schema 2020-12 or refers outside of itself.
    """
    root = dict(schema)
    try:
        return Validator(root, _compile(root))
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError, TypeError) as error:
        raise UnusableSchema(f"not a valid JSON Schema 2020-12: {_first_line(error)}") from error


class Validator:
    """Tells which instances (decoded JSON) conform to a schema, and what is wrong with the others.

    The engine's verdict takes time in proportion to the instance. Its list of errors does not: it copies instances, and
    follows every alternative of every union. So what is wrong is found by a walk of our own, which has a budget.
    """

    def __init__(self, schema: dict[str, object], engine: Engine) -> None:
        self._schema = schema
        self._engine = engine
        self._walker: _Walker | None = None
        self.is_valid: Callable[[object], bool] = engine.is_valid
        self._has_readings = _branches_recursively(schema)
        if self._has_readings:
            readings = _Readings(schema)
            self.is_valid = lambda instance: engine.is_valid(instance) and readings.are_few(instance)

    def __call__(self, instance: object) -> tuple[Violation, ...]:
        """What is wrong with an instance, the first MAX_VIOLATIONS; () if nothing is."""
        return () if self.is_valid(instance) else self.describe(instance)[0]

    def describe(self, instance: object) -> tuple[tuple[Violation, ...], int]:
        """What is wrong with an instance that does not conform: the first MAX_VIOLATIONS, and how many more there are.

        There may be even more where the budget ends first.
        """
        if self._has_readings and self._engine.is_valid(instance):
            return (Violation("", "is nested too deeply: it could be read in too many ways"),), 0
        if self._walker is None:
            self._walker = _Walker(self._schema)
        return self._walker.describe(instance)


def _compile(
    schema: dict[str, object], registry: jsonschema_rs.Registry | None = None
) -> jsonschema_rs.Draft202012Validator:
    try:
        return jsonschema_rs.Draft202012Validator(
            schema, retriever=_refuse_to_fetch, registry=registry, validate_formats=False, pattern_options=_PATTERNS
        )
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # the engine gives up on some schemas with identifiers inside
            raise
        raise ValueError(str(error)) from error


def _refuse_to_fetch(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is outside of the schema; put the definition into $defs")


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]


def pointer_to(path: Iterable[str | int]) -> str:
    """The RFC 6901 JSON Pointer of a path."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def part_at(schema: object, pointer: str) -> object:
    """The part of a schema that a JSON Pointer means, None for what is not there."""
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(schema, list):
            schema = schema[int(name)] if name.isdecimal() and int(name) < len(schema) else None
        else:
            schema = schema.get(name) if isinstance(schema, Mapping) else None
    return schema


def member_names(root: JsonObject) -> list[str]:
    """Return every property that an object schema names: its own, and those of what it is combined of, in order."""
    names, followed, waiting = dict[str, None](), set[str](), list[object]([root])
    for schema in waiting:  # which grows while it is read
        if not isinstance(schema, Mapping):
            continue
        names |= dict.fromkeys(_table(schema, "properties"))
        target = _target(schema)
        if target is not None and target not in followed:
            followed.add(target)
            waiting.append(part_at(root, target))
        for keyword in ("allOf", "anyOf", "oneOf"):
            waiting += _list(schema, keyword)
    return list(names)


def _target(schema: JsonObject) -> str | None:
    """The pointer that a reference within the schema means, None for no reference or one by another name."""
    reference = schema.get("$ref")
    is_pointer = isinstance(reference, str) and (reference == "#" or reference.startswith("#/"))
    return unquote(str(reference)[1:]) if is_pointer else None


def _table(schema: JsonObject, keyword: str) -> JsonObject:
    found = schema.get(keyword)
    return found if isinstance(found, Mapping) else {}


def _list(schema: JsonObject, keyword: str) -> Sequence[Any]:
    found = schema.get(keyword)
    return found if isinstance(found, list) else ()


# --- Unions within themselves ---
# Who reads {"and": [{"and": [...]}]} as And | Or tries both at every level, and twice as much at each further one:
# pydantic does, wherever alternatives are not told apart by a discriminator. What is too much for it is not admitted.


def _branches_recursively(root: JsonObject) -> bool:
    """Return True if a union has itself in two of its alternatives."""
    if "$ref" not in repr(root):
        return False
    unions: list[Mapping[str, object]] = []
    waiting: list[object] = [root]
    while waiting:
        part = waiting.pop()
        waiting += part.values() if isinstance(part, Mapping) else part if isinstance(part, list) else ()
        if isinstance(part, Mapping) and "discriminator" not in part:
            unions += [part] if len(_list(part, "anyOf")) > 1 or len(_list(part, "oneOf")) > 1 else []
    return any(
        sum(_leads_to(union, one, root) for one in _list(union, keyword)) > 1
        for union in unions
        for keyword in ("anyOf", "oneOf")
    )


def _leads_to(sought: object, start: object, root: JsonObject) -> bool:
    waiting, seen = [start], set[int]()
    while waiting:
        part = waiting.pop()
        if part is sought:
            return True
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, Mapping) and id(part) not in seen:
            seen.add(id(part))
            waiting += [inner for name, inner in part.items() if name not in ("$defs", "definitions")]
            target = _target(part)
            waiting += [part_at(root, target)] if target is not None else []
    return False


class _Readings:
    """How often somebody looks at the objects and lists of an instance who follows every alternative of a schema."""

    def __init__(self, schema: JsonObject) -> None:
        self._schema = schema
        self._shapes: dict[int, tuple[list[JsonObject], list[JsonObject]]] = {}

    def are_few(self, instance: object) -> bool:
        """Return True for no more than MAX_READINGS, and ten for each of the objects and lists."""
        counted: dict[tuple[int, int], int] = {}
        count = self._count(self._schema, instance, counted)
        return count <= MAX_READINGS or count <= MAX_READINGS + 10 * len({value for _, value in counted})

    def _count(self, schema: object, value: object, counted: dict[tuple[int, int], int]) -> int:
        key = (id(schema), id(value))
        if key in counted:
            return counted[key]
        objects, arrays = self._shapes_of(schema)
        if isinstance(value, dict):
            total = len(objects)
            inner = [pair for pair in value.items() if isinstance(pair[1], (dict, list))]
            for shape in objects if inner else ():
                named, rest = _table(shape, "properties"), shape.get("additionalProperties")
                for name, member in inner:
                    total += self._count(named.get(name, rest), member, counted)
        else:
            total = len(arrays)
            items = [item for item in value if isinstance(item, (dict, list))] if isinstance(value, list) else []
            for shape in arrays if items else ():
                for one in (*_list(shape, "prefixItems"), shape.get("items")):
                    for item in items:
                        total += self._count(one, item, counted)
        counted[key] = total
        return total

    def _shapes_of(self, schema: object) -> tuple[list[JsonObject], list[JsonObject]]:
        """All that a schema says of objects, and all that it says of lists: its own, its alternatives', ..."""
        if id(schema) in self._shapes:
            return self._shapes[id(schema)]
        waiting, seen, parts = [schema], set[int](), list[JsonObject]()
        while waiting:
            part = waiting.pop()
            if not isinstance(part, Mapping) or id(part) in seen:
                continue
            seen.add(id(part))
            parts.append(part)
            target = _target(part)
            waiting += [part_at(self._schema, target)] if target is not None else []
            waiting += [one for keyword in ("allOf", "anyOf", "oneOf") for one in _list(part, keyword)]
        found = [part for part in parts if "properties" in part or "additionalProperties" in part]
        listed = [part for part in parts if "items" in part or "prefixItems" in part]
        self._shapes[id(schema)] = found, listed
        return found, listed


# --- Saying what is wrong ---

_Path: TypeAlias = tuple[str | int, ...]


class _Walk:
    """The findings of one walk, and its deadline."""

    def __init__(self) -> None:
        self.found: list[Violation] = []
        self.count = 0
        self.seen: set[tuple[str, _Path]] = set()
        self._deadline = thread_time() + DESCRIPTION_TIME

    def note(self, path: _Path, detail: str) -> None:
        """Note one thing that is wrong."""
        self.count += 1
        if len(self.found) < MAX_VIOLATIONS:
            self.found.append(Violation(pointer_to(path), detail))

    def is_over(self) -> bool:
        """Return True when enough was found, or the time is up."""
        return self.count >= MAX_VIOLATIONS or thread_time() > self._deadline


class _Walker:
    """Goes down an instance beside its schema, into whatever does not conform."""

    def __init__(self, schema: dict[str, object]) -> None:
        self._schema = schema
        self._registry = jsonschema_rs.Registry([(_BASE, schema)], retriever=_refuse_to_fetch)
        self._parts: dict[str, Callable[[object], bool]] = {}
        self._keywords: dict[tuple[str, int], Callable[[object], bool]] = {}

    def describe(self, instance: object) -> tuple[tuple[Violation, ...], int]:
        """What is wrong with an instance that does not conform, and how many more were found."""
        walk = _Walk()
        self._describe(walk, "", instance, ())
        return tuple(walk.found), walk.count - len(walk.found)

    def _conforms(self, at: str, value: object) -> bool:
        """Return True if a value conforms to the part of the schema at a pointer."""
        if at not in self._parts:
            try:
                self._parts[at] = _compile({"$ref": f"{_BASE}#{quote(at)}"}, self._registry).is_valid
            except (jsonschema_rs.ReferencingError, ValueError):  # within another $id it has another address
                self._parts[at] = lambda _: True
        return self._parts[at](value)

    def _holds(self, keyword: str, limit: object, value: object) -> bool:
        """Return True if a value conforms to one keyword without schemas inside. `limit` is part of the schema."""
        key = (keyword, id(limit))
        if key not in self._keywords:
            self._keywords[key] = _compile({keyword: limit}).is_valid
        return self._keywords[key](value)

    def _look(self, walk: _Walk, at: str, value: object, path: _Path) -> None:
        """Describe a value if it does not conform to the part of the schema at a pointer."""
        if not walk.is_over() and not self._conforms(at, value):
            self._describe(walk, at, value, path)

    def _describe(self, walk: _Walk, at: str, value: object, path: _Path) -> None:
        before, schema = walk.count, part_at(self._schema, at)
        if (at, path) in walk.seen:
            return
        walk.seen.add((at, path))
        if isinstance(schema, Mapping) and len(path) < MAX_DESCRIBED_DEPTH:
            for keyword, words in _WORDS.items():
                if keyword in schema and not self._holds(keyword, schema[keyword], value):
                    walk.note(path, words.format(_shown(value), _limit(schema[keyword])))
            if isinstance(value, dict):
                self._describe_members(walk, at, schema, value, path)
            elif isinstance(value, list):
                first = len(_list(schema, "prefixItems"))
                for index, item in enumerate(value if "items" in schema else value[:first]):
                    if walk.is_over():
                        break
                    place = f"{at}/prefixItems/{index}" if index < first else f"{at}/items"
                    self._look(walk, place, item, (*path, index))
            for place in self._beside(at, schema, value):
                self._look(walk, place, value, path)
        if walk.count == before:
            keywords = schema if isinstance(schema, Mapping) else ("false",)
            unexplained = next((words for name, words in _UNEXPLAINED.items() if name in keywords), _OTHERWISE)
            walk.note(path, unexplained.format(_shown(value)))

    def _describe_members(
        self, walk: _Walk, at: str, schema: JsonObject, value: dict[str, object], path: _Path
    ) -> None:
        needed = list(_list(schema, "required"))
        depending = _table(schema, "dependentRequired")
        for name in depending:
            needed += _list(depending, name) if name in value else ()
        for name in needed:
            if name not in value:
                walk.note((*path, name), "is required")
        named, patterns = _table(schema, "properties"), _table(schema, "patternProperties")
        rest = schema.get("additionalProperties")
        known: Set[str] = named.keys()
        if rest is None and (rest := schema.get("unevaluatedProperties")) is False:
            known = self._known(schema)
        for name, member in value.items():
            places = [f"{at}/properties{pointer_to([name])}"] if name in named else []
            if patterns:
                matched = [one for one in patterns if self._holds("pattern", one, name)]
                places += [f"{at}/patternProperties{pointer_to([one])}" for one in matched]
            if rest is False and name not in known and not places:
                walk.note((*path, name), "is not a known member")
                continue
            if not places and "additionalProperties" in schema:
                places = [f"{at}/additionalProperties"]
            if walk.is_over():
                continue  # members that are not known are counted all
            if "propertyNames" in schema and not self._conforms(f"{at}/propertyNames", name):
                walk.note((*path, name), "is not a name that is allowed here")
            for place in places:
                self._look(walk, place, member, (*path, name))

    def _beside(self, at: str, schema: JsonObject, value: object) -> Iterable[str]:
        """The further parts of the schema that a value has to conform to.

        Of a union that is the one alternative that can have been meant, so that no two ways are ever followed.
        """
        if (target := _target(schema)) is not None:
            yield target
        for index, _ in enumerate(_list(schema, "allOf")):
            yield f"{at}/allOf/{index}"
        for keyword in ("anyOf", "oneOf"):
            places = [f"{at}/{keyword}/{index}" for index, _ in enumerate(_list(schema, keyword))]
            meant = [place for place in places if self._may_mean(place, value)]
            if len(meant) == 1:
                yield meant[0]
        if "if" in schema:
            place = f"{at}/then" if self._conforms(f"{at}/if", value) else f"{at}/else"
            if part_at(self._schema, place) is not None:
                yield place
        for name in _table(schema, "dependentSchemas"):
            if isinstance(value, dict) and name in value:
                yield f"{at}/dependentSchemas{pointer_to([name])}"

    def _may_mean(self, at: str, value: object) -> bool:
        """Return True if a value has the type of an alternative, and the constants that tell it from others."""
        schema = part_at(self._schema, at)
        for _ in range(MAX_DESCRIBED_DEPTH):  # what it only refers to is what counts
            target = _target(schema) if isinstance(schema, Mapping) else None
            if target is None:
                break
            schema = part_at(self._schema, target)
        if not isinstance(schema, Mapping):
            schema = {}
        if "type" in schema and not self._holds("type", schema["type"], value):
            return False
        if not isinstance(value, dict):
            return True
        members = _table(schema, "properties").items()
        tags = [(name, one["const"]) for name, one in members if isinstance(one, Mapping) and "const" in one]
        return all(name in value and self._holds("const", constant, value[name]) for name, constant in tags)

    def _known(self, schema: JsonObject) -> Set[str]:
        """The names that a schema knows, in all that the same value has to conform to."""
        names, waiting, seen = set[str](), [schema], set[int]()
        while waiting:
            part = waiting.pop()
            if id(part) in seen:
                continue
            seen.add(id(part))
            names |= _table(part, "properties").keys()
            inner = [part_at(self._schema, target)] if (target := _target(part)) is not None else []
            inner += [part.get(keyword) for keyword in ("if", "then", "else")]
            inner += _table(part, "dependentSchemas").values()
            inner += [one for keyword in ("allOf", "anyOf", "oneOf") for one in _list(part, keyword)]
            waiting += [one for one in inner if isinstance(one, Mapping)]
        return names


_BASE: Final = "https://schema.invalid/"
"""The address that a schema has for the engine, which refers to its parts below it. No such host exists (RFC 6761)."""
_WORDS: Final = {
    "type": "{} is not of type {}",
    "enum": "{} is not one of {}",
    "const": "{} is not {}",
    "minimum": "{} is less than the minimum of {}",
    "maximum": "{} is greater than the maximum of {}",
    "exclusiveMinimum": "{} is not greater than {}",
    "exclusiveMaximum": "{} is not less than {}",
    "multipleOf": "{} is not a multiple of {}",
    "minLength": "{} is shorter than {} characters",
    "maxLength": "{} is longer than {} characters",
    "pattern": "{} does not match {}",
    "minItems": "has fewer than {1} items",
    "maxItems": "has more than {1} items",
    "uniqueItems": "has the same item twice",
    "minProperties": "has fewer than {1} members",
    "maxProperties": "has more than {1} members",
}
"""What is wrong with a value ({0}) that does not conform to a keyword, and to what of it ({1})."""

_UNEXPLAINED: Final = {
    "anyOf": "{} is none of the kinds that are allowed here",
    "oneOf": "{} is none of the kinds that are allowed here, or several of them",
    "not": "{} is of a kind that is not allowed here",
    "contains": "does not contain what it has to, or too much of it",
    "unevaluatedProperties": "has members that are not known",
    "unevaluatedItems": "has items that are not known",
    "false": "{} is not allowed here",
}
_OTHERWISE: Final = "does not conform to the schema"


def _shown(value: object) -> str:
    """A value in a few characters: as JSON, but objects and arrays by what they are."""
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "an array"
    if isinstance(value, str) and len(value) > MAX_SHOWN:
        return json.dumps(value[:MAX_SHOWN], ensure_ascii=False)[:-1] + '…"'
    return json.dumps(value, ensure_ascii=False, default=str)


def _limit(limit: object) -> str:
    """What a keyword demands."""
    if not isinstance(limit, (list, tuple)):
        return _shown(limit)
    return ", ".join(map(_shown, limit[:MAX_VIOLATIONS])) + (", …" if len(limit) > MAX_VIOLATIONS else "")
