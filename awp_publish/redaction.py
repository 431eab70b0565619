"""Values without what their schema marks as secret, for whatever is stored, logged, summarised or said again.

`format: password` and `writeOnly: true` mark secrets of an input, `readOnce: true` what an answer gives once and nobody
keeps, a token for instance. A mark counts however deep it stands: behind references, in unions, in items. Where
alternatives differ, one that is marked is enough: to hide too much does no harm.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeAlias

import jsonschema_rs
import orjson

from awp_publish.model import JsonObject
from awp_publish.schema import is_secret, list_of, named_subschemas, parts_of, subschemas, table_of

HIDDEN: Final = "(hidden)"
GIVEN_ONCE: Final = "(given once)"

Redact: TypeAlias = Callable[[Any], Any]
"""Copies a value, decoded JSON, without its secrets. A value without secrets is returned equal to itself."""


def input_redactor(inputs: JsonObject, mark: object = HIDDEN) -> Redact | None:
    """Return what puts `mark` in place of the secrets of an input; None for a schema that marks none."""
    return _redactor(inputs, is_secret, mark, (b"writeOnly", b"password"))


def answer_redactor(outputs: JsonObject) -> Redact | None:
    """Return what takes out of an answer what is given once; None for a schema that marks nothing of the kind."""
    return _redactor(outputs, lambda schema: schema.get("readOnce") is True, GIVEN_ONCE, (b"readOnce",))


def _redactor(
    root: JsonObject, is_marked: Callable[[JsonObject], bool], mark: object, words: Iterable[bytes]
) -> Redact | None:
    """`words` are those of which a mark has one."""
    with suppress(TypeError):  # of numbers that are too large, for instance
        text = orjson.dumps(root)
        if not any(word in text for word in words):
            return None
    if not any(map(is_marked, subschemas(root))):
        return None
    return partial(_Redactor(root, is_marked, mark).copy, (root,))


class _Redactor:
    """One schema, which of its parts are about secrets, and what stands in place of their values."""

    def __init__(self, root: JsonObject, is_marked: Callable[[JsonObject], bool], mark: object) -> None:
        self._root = root
        self._is_marked = is_marked
        self._mark = mark
        self._named = named_subschemas(root)
        self._known: dict[tuple[int, ...], tuple[JsonObject, ...]] = {}
        self._patterns: dict[str, Callable[[object], bool] | None] = {}
        for one in subschemas(root):
            for pattern in table_of(one, "patternProperties"):
                try:  # linear time, or not at all
                    engine = jsonschema_rs.RegexOptions()
                    reader = jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=engine)
                    self._patterns[pattern] = reader.is_valid
                except (jsonschema_rs.ValidationError, ValueError):
                    self._patterns[pattern] = None

    def copy(self, schemas: Sequence[object], value: object) -> object:
        """Return a value that all of `schemas` are about, redacted."""
        key = tuple(id(one) for one in schemas)
        parts = self._known.get(key)
        if parts is None:
            parts = parts_of(self._root, schemas, self._named)
            if len(self._known) < _MAX_KNOWN:
                self._known[key] = parts
        if not parts:
            return value
        if any(map(self._is_marked, parts)):
            return value if value is None else self._mark
        if isinstance(value, dict):
            return {name: self.copy(self._members(parts, name), member) for name, member in value.items()}
        if isinstance(value, list):
            further = [one.get(name) for one in parts for name in ("items", "contains", "unevaluatedItems")]
            first = [list_of(one, "prefixItems") for one in parts]
            return [
                self.copy([*(one[index] for one in first if index < len(one)), *further], item)
                for index, item in enumerate(value)
            ]
        return value

    def _members(self, parts: Iterable[JsonObject], name: str) -> list[object]:
        """Return the schemas of a member. A pattern that cannot be read here may match, and may leave it to others."""
        found: list[object] = []
        for part in parts:
            own = [table_of(part, "properties")[name]] if name in table_of(part, "properties") else []
            for pattern, schema in table_of(part, "patternProperties").items():
                matches = self._patterns[pattern]
                if matches is None:
                    found.append(schema)
                elif matches(name):
                    own.append(schema)
            found += own or [part.get("additionalProperties"), part.get("unevaluatedProperties")]
        return found


_MAX_KNOWN: Final = 10_000
"""Combinations of subschemas that are remembered; there are few, but those of items are made by an input's length."""
