"""Values without what their schema marks as secret, for whatever is stored, logged, summarised or said again.

`format: password` and `writeOnly: true` mark secrets of an input, `readOnce: true` what an answer gives once and nobody
keeps, a token for instance. A mark counts however deep it stands: behind references, in unions, in items. Where
alternatives differ, one that is marked is enough: to hide too much does no harm.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeAlias

import jsonschema_rs
import orjson

from awp_publish.model import JsonObject
from awp_publish.schema import is_secret, named_subschemas, parts_of, subschemas

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
            for pattern in _table(one, "patternProperties"):
                self._patterns[pattern] = _matcher(pattern)

    def copy(self, schemas: Sequence[object], value: object) -> object:
        """Return a value that all of `schemas` are about, redacted."""
        parts = self._parts_of(schemas)
        if not parts:
            return value
        if any(map(self._is_marked, parts)):
            return value if value is None else self._mark
        if isinstance(value, dict):
            return {name: self.copy(self._members(parts, name), member) for name, member in value.items()}
        if isinstance(value, list):
            further = [one.get(name) for one in parts for name in ("items", "contains", "unevaluatedItems")]
            first = [_list(one, "prefixItems") for one in parts]
            return [
                self.copy([*(listed[index] for listed in first if index < len(listed)), *further], item)
                for index, item in enumerate(value)
            ]
        return value

    def _parts_of(self, schemas: Sequence[object]) -> tuple[JsonObject, ...]:
        """Return the schemas and all that they refer to or are combined of, each once."""
        key = tuple(id(one) for one in schemas)
        if key not in self._known:
            parts = parts_of(self._root, schemas, self._named)
            if len(self._known) >= _MAX_KNOWN:
                return parts
            self._known[key] = parts
        return self._known[key]

    def _members(self, parts: Iterable[JsonObject], name: str) -> list[object]:
        """Return the schemas of a member. A pattern that cannot be read here may match, and may leave it to others."""
        found: list[object] = []
        for part in parts:
            own = [_table(part, "properties")[name]] if name in _table(part, "properties") else []
            for pattern, schema in _table(part, "patternProperties").items():
                matches = self._patterns[pattern]
                if matches is None:
                    found.append(schema)
                elif matches(name):
                    own.append(schema)
            found += own or [part.get("additionalProperties"), part.get("unevaluatedProperties")]
        return found


_MAX_KNOWN: Final = 10_000
"""Combinations of subschemas that are remembered; there are few, but those of items are made by an input's length."""


def _matcher(pattern: str) -> Callable[[object], bool] | None:
    """Return what tells whether a name matches, in linear time; None for a pattern that needs more."""
    try:
        engine = jsonschema_rs.RegexOptions()
        return jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=engine).is_valid
    except (jsonschema_rs.ValidationError, ValueError):
        return None


def _table(schema: JsonObject, keyword: str) -> JsonObject:
    found = schema.get(keyword)
    return found if isinstance(found, Mapping) else {}


def _list(schema: JsonObject, keyword: str) -> Sequence[object]:
    found = schema.get(keyword)
    return found if isinstance(found, (list, tuple)) else ()
