"""Schemas whose patterns are all in ECMA-262's syntax."""

import re
from collections.abc import Mapping
from typing import Final

from awp_publish.model import JsonObject
from awp_publish.plugins.patterns.ecma import UntranslatablePattern, to_ecma
from awp_publish.schema import UnusableSchema, compile_schema, subschemas
from awp_publish.schema.parts import map_parts

LEFT_OUT: Final = "x-pattern-left-out"
"""A member of a schema that says why a pattern is missing. It is never published: it becomes a finding."""

_REWRITTEN: Final = frozenset({"pattern", "patternProperties", LEFT_OUT})


def portable(schema: JsonObject) -> tuple[JsonObject, tuple[str, ...]]:
    """Return a schema whose patterns are all in ECMA-262's syntax, and why others were left out of it."""
    lost: list[str] = []

    def rewritten(place: str, part: JsonObject) -> dict[str, object]:
        schema = map_parts(part, lambda inner, name: rewritten(f"{place}/{name}" if name else place, inner))
        if LEFT_OUT in schema:
            lost.append(f"{place or '/'}: {schema.pop(LEFT_OUT)}")
        if isinstance(pattern := schema.get("pattern"), str):
            try:
                schema["pattern"] = to_ecma(pattern)
            except UntranslatablePattern as error:
                if _is_expression(pattern):  # else the schema cannot be compiled, which says so
                    lost.append(f"{place or '/'}: {schema.pop('pattern')}: {error}")
        if isinstance(patterns := schema.get("patternProperties"), Mapping):
            kept: dict[str, object] = {}
            for expression, below in patterns.items():
                try:
                    kept[to_ecma(expression)] = below
                except UntranslatablePattern as error:
                    lost.append(f"{place or '/'}: {expression}: {error}")
            schema["patternProperties"] = kept
        return schema

    has_any = any(not _REWRITTEN.isdisjoint(part) for part in subschemas(schema))
    return (rewritten("", schema), tuple(lost)) if has_any else (schema, ())


def _is_expression(text: str) -> bool:
    """Return True for a regular expression of Python, or one that our own engine takes."""
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError):
        try:
            compile_schema({"pattern": text})
        except UnusableSchema:
            return False
    return True
