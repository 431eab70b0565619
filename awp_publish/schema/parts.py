"""The parts of a schema: keywords, subschemas, and references within it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from awp_publish.model import JsonObject
from awp_publish.schema.pointers import local_pointer, part_at


def member_names(root: JsonObject) -> list[str]:
    """Return the names of all properties of an object schema, including those of combined schemas, in order."""
    names, followed, waiting = dict[str, None](), set[str](), list[object]([root])
    for schema in waiting:  # grows during iteration
        if not isinstance(schema, Mapping):
            continue
        names |= dict.fromkeys(table_of(schema, "properties"))
        target = target_of(schema)
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
            waiting += [value for value in part.values() if type(value) not in _PLAIN]
        elif isinstance(part, (list, tuple)):
            waiting += part
        elif type(part) not in _PLAIN and isinstance(part, Mapping):
            yield part
            waiting += part.values()


_PLAIN: Final = frozenset((str, int, float, bool, type(None)))


def named_subschemas(root: object) -> Mapping[str, JsonObject]:
    """Return the subschemas by the references that name them by an anchor or an id instead of a pointer."""
    return {
        prefix + name: subschema
        for subschema in subschemas(root)
        for keyword, prefix in (("$anchor", "#"), ("$dynamicAnchor", "#"), ("$id", ""))
        if isinstance(name := subschema.get(keyword), str)
    }


def parts_of(root: JsonObject, schemas: Iterable[object], named: Mapping[str, JsonObject]) -> tuple[JsonObject, ...]:
    """Return schemas within `root` with everything that they refer to or combine, each once."""
    parts: dict[int, JsonObject] = {}
    waiting = list(schemas)
    while waiting:
        schema = waiting.pop()
        if not isinstance(schema, Mapping) or id(schema) in parts:
            continue
        parts[id(schema)] = schema
        for keyword in ("$ref", "$dynamicRef"):
            if isinstance(reference := schema.get(keyword), str):
                pointer = local_pointer(reference)
                waiting.append(part_at(root, pointer) if pointer is not None else named.get(reference))
        waiting += [schema.get(name) for name in ("if", "then", "else")]
        waiting += [branch for name in ("allOf", "anyOf", "oneOf") for branch in list_of(schema, name)]
        waiting += table_of(schema, "dependentSchemas").values()
    return tuple(parts.values())


NAMED: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords that have schemas under arbitrary names."""

DATA: Final = frozenset(
    {"const", "enum", "default", "example", "examples", "required", "dependentRequired", "$ref", "$id"}
)
"""Keywords that have data, in which the words of a schema mean nothing."""


def map_parts(schema: JsonObject, change: Callable[[JsonObject, str], object]) -> dict[str, object]:
    """Return a schema with `change` made to its direct subschemas; it gets the name of one that has a name, or ""."""

    def change_within(value: object, name: str = "") -> object:
        if isinstance(value, (list, tuple)):
            return [change_within(item, name) for item in value]
        return change(value, name) if isinstance(value, Mapping) else value

    return {
        keyword: {name: change_within(inner, name) for name, inner in value.items()}
        if keyword in NAMED and isinstance(value, Mapping)
        else value
        if keyword in DATA
        else change_within(value)
        for keyword, value in schema.items()
    }


def is_secret(schema: JsonObject) -> bool:
    """Return True if a schema marks a value as never to be disclosed: a password, or `writeOnly`."""
    return schema.get("writeOnly") is True or schema.get("format") == "password"


def target_of(schema: JsonObject) -> str | None:
    """Return the pointer of a reference within the schema; None if there is no reference or it is not a pointer."""
    return local_pointer(schema.get("$ref"))


def as_object(value: object) -> JsonObject:
    """Return a value if it is an object, otherwise {}."""
    return value if isinstance(value, Mapping) else {}


def as_objects(value: object) -> list[JsonObject]:
    """Return the objects in a list, [] for any other value."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def table_of(schema: JsonObject, keyword: str) -> JsonObject:
    """Return the value of a keyword if it is an object, otherwise {}."""
    return as_object(schema.get(keyword))


def list_of(schema: JsonObject, keyword: str) -> Sequence[Any]:
    """Return the value of a keyword if it is a list, otherwise ()."""
    items = schema.get(keyword)
    return items if isinstance(items, (list, tuple)) else ()
