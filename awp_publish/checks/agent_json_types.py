"""The little type language of agent.json: `string`, `enum[a, b]`, `array[flight]`, `object[flight]`, own names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from awp_publish.checks.agent_json_shape import SPEC
from awp_publish.checks.finding import Check, Flaw, shown
from awp_publish.checks.pointer import child, objects, strings
from awp_publish.checks.shape import is_type

Document = Mapping[str, object]

PRIMITIVES = ("string", "integer", "float", "boolean", "ISO8601", "url")
DEEPEST = 10
PLACES = (
    "/actions/[]/inputs/{}/type",
    "/actions/[]/outputs/{}",
    "/actions/[]/outputs/{}/type",
    "/entities/{}/fields/{}",
)
JSON_TYPES = {"string": "string", "url": "string", "ISO8601": "string", "integer": "integer", "float": "number"}
JSON_TYPES |= {"boolean": "boolean", "enum": "any"}
_CONTAINER = re.compile(r"(enum|array|object)\s*\[(.*)\]", re.DOTALL)
_NAME = re.compile(r"[^\W\d][\w.:-]*")


@dataclass(slots=True)
class Type:
    """What a type text says: why it cannot be read, and the names that occur in it."""

    fault: str | None = None
    options: list[str] = field(default_factory=list)
    entities: list[str] = field(default_factory=list)
    items: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


@lru_cache(maxsize=1024)
def read_type(text: str) -> Type:
    """Read a type; the answer is shared, so it is not to be changed."""
    result = Type()
    _read(text.strip(), result, DEEPEST)
    return result


def _read(text: str, result: Type, depth: int) -> None:
    match = _CONTAINER.fullmatch(text)
    if match is None:
        _read_name(text, result)
    elif depth == 0:
        result.fault = "is nested too deeply"
    elif not match[2].strip():
        result.fault = f"has nothing between the brackets of {match[1]}[]"
    else:
        _read_container(match[1], match[2].strip(), result, depth - 1)


def _read_container(kind: str, inner: str, result: Type, depth: int) -> None:
    if kind == "enum":
        result.options = [option.strip() for option in inner.split(",")]
        if "" in result.options:
            result.fault = "has an empty value between its commas"
    elif kind == "object":
        result.entities.append(inner)
    elif _NAME.fullmatch(inner) and inner not in PRIMITIVES:
        result.items.append(inner)
    else:
        _read(inner, result, depth)


def _read_name(text: str, result: Type) -> None:
    if not _NAME.fullmatch(text):
        result.fault = "is neither the name of a type nor enum[...], array[...] or object[...]" if text else "is empty"
    elif text not in PRIMITIVES and text != "enum":
        result.names.append(text)


def each_type(document: Document) -> Iterator[tuple[str, str, Type]]:
    """Yield every type text with its pointer and its reading."""
    for pointer, text in strings(document, *PLACES):
        yield pointer, text, read_type(text)


def bad_types(document: Document) -> Iterator[Flaw]:
    """Find types that cannot be read."""
    for pointer, text, reading in each_type(document):
        if reading.fault:
            yield Flaw(pointer, f"The type {shown(text)} {reading.fault}.")


def own_types(document: Document) -> Iterator[Flaw]:
    """Name the types that the specification does not define, each once."""
    known: set[str] = set()
    for pointer, _, reading in each_type(document):
        for name in (*reading.names, *(item for item in reading.items if item in ("object", "array"))):
            if name not in known:
                yield Flaw(pointer, f"The type {shown(name)} is not one that the specification defines.")
            known.add(name)


def unknown_entities(document: Document) -> Iterator[Flaw]:
    """Find `object[x]` where x is no entity."""
    entities = _entities(document)
    for pointer, text, reading in each_type(document):
        for name in reading.entities:
            if name not in entities:
                yield Flaw(pointer, f"{shown(text)} refers to an entity {shown(name)}, which is not declared.")


def unknown_items(document: Document) -> Iterator[Flaw]:
    """Find `array[x]` where x is neither a defined type nor an entity. `array[object]` is common and passes."""
    known = {*_entities(document), "object", "array", "enum"}
    for pointer, text, reading in each_type(document):
        for name in reading.items:
            if name not in known:
                yield Flaw(pointer, f"{shown(text)} contains {shown(name)}, which is no type and no declared entity.")


def _entities(document: Document) -> Mapping[str, object]:
    entities = document.get("entities")
    return entities if isinstance(entities, Mapping) else {}


def enumerations_without_options(document: Document) -> Iterator[Flaw]:
    """Find the type `enum` where nothing says what is allowed."""
    for pointer, parameter in objects(document, "/actions/[]/inputs/{}"):
        options = parameter.get("options", [])
        if parameter.get("type") == "enum" and options == []:
            yield Flaw(child(pointer, "options"), "The type is enum and there are no options.")
    for pointer, text, _ in each_type(document):
        if text.strip() == "enum" and "/inputs/" not in pointer:
            yield Flaw(pointer, "The type is enum and nothing says which values it has.", "Write enum[a, b, c].")


def bad_defaults(document: Document) -> Iterator[Flaw]:
    """Find default values that are not of the input's type or not among its options."""
    for pointer, parameter in objects(document, "/actions/[]/inputs/{}"):
        text, default = parameter.get("type"), parameter.get("default")
        if not isinstance(text, str) or default is None:
            continue
        options = parameter.get("options") or read_type(text).options
        if isinstance(options, list) and options and default not in options:
            yield Flaw(child(pointer, "default"), f"The default {shown(default)} is not among the options.")
        elif not is_type(default, JSON_TYPES.get(text.strip(), "any")):
            yield Flaw(child(pointer, "default"), f"The default {shown(default)} is not of type {text}.")


CHECKS = (
    Check(
        "agent-json-type-grammar",
        "error",
        f"{SPEC} section 8, Supported primitive types",
        "Types are names, enum[...], array[...] or object[...].",
        'Write for instance "string", "enum[a, b]" or "array[flight]".',
        bad_types,
    ),
    Check(
        "agent-json-own-type",
        "info",
        f"{SPEC} section 8, Supported primitive types",
        "Types are defined by the specification.",
        "Agents may not know the type; a description helps.",
        own_types,
    ),
    Check(
        "agent-json-entity",
        "error",
        f"{SPEC} section 8",
        "`object[x]` refers to a declared entity.",
        "Declare the entity in entities.",
        unknown_entities,
    ),
    Check(
        "agent-json-array-item",
        "warning",
        f"{SPEC} section 8",
        "`array[x]` contains a defined type or a declared entity.",
        "Declare the entity in entities, or write a defined type.",
        unknown_items,
    ),
    Check(
        "agent-json-enum",
        "error",
        f"{SPEC} sections 8 and 9",
        "A type of enum says which values it has.",
        "List the values in options.",
        enumerations_without_options,
    ),
    Check(
        "agent-json-default",
        "warning",
        f"{SPEC} section 9, Input parameter fields",
        "Default values are of the type and among the options of their input.",
        "Correct the default or the rule.",
        bad_defaults,
    ),
)
