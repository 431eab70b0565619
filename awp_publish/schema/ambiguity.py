"""Recursive unions that take too long to read.

A reader of {"and": [{"and": [...]}]} as And | Or that tries both alternatives at every level takes exponential time.
pydantic does so unless a discriminator selects the alternative. Instances that would take too long are refused.
"""

import contextlib
from collections.abc import Mapping
from typing import Final

import orjson

from awp_publish.model import JsonObject
from awp_publish.schema.parts import list_of, parts_of, subschemas, table_of, target_of
from awp_publish.schema.pointers import part_at

MAX_READINGS: Final = 20_000
"""Visits to the objects and lists of an instance, if every alternative of its unions is followed."""


def branches_recursively(root: JsonObject) -> bool:
    """Return True if at least two alternatives of a union contain the union itself."""
    with contextlib.suppress(TypeError):  # numbers that are too large for orjson, for instance
        if b'"$ref"' not in orjson.dumps(root):
            return False
    unions = [part for part in subschemas(root) if "discriminator" not in part]

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
                target = target_of(part)
                waiting += [part_at(root, target)] if target is not None else []
        return False

    return any(
        sum(leads_to(union, branch) for branch in list_of(union, keyword)) > 1
        for union in unions
        for keyword in ("anyOf", "oneOf")
    )


class Readings:
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
                for part in (*list_of(shape, "prefixItems"), shape.get("items")):
                    for item in items:
                        total += self._count(part, item, counted)
        counted[key] = total
        return total
