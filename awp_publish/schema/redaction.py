"""Removes from values what their schema marks as secret, before they are stored, logged, summarised or repeated.

`format: password` and `writeOnly: true` mark secrets of an input; `readOnce: true` marks what an answer returns once
and nobody stores, such as a token. A mark counts at any depth: behind references, in unions, in items. If only some of
several alternatives are marked, the value is hidden, because hiding too much does no harm. For the same reason, nothing
is shown of an input with secrets that is of a type which its place does not take, or in a member that the schema does
not allow: a secret may have been sent there by mistake.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
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
"""Copies a value of decoded JSON without its secrets. A value without secrets is returned equal to itself."""


def input_redactor(inputs: JsonObject, mark: object = HIDDEN) -> Redact | None:
    """Return a function that replaces the secrets of an input with `mark`, or None if the schema marks none."""
    return _redactor(inputs, is_secret, mark, (b"writeOnly", b"password"), hides_misplaced=True)


def answer_redactor(outputs: JsonObject) -> Redact | None:
    """Return a function that removes values that are returned only once, or None if the schema marks none."""
    return _redactor(outputs, lambda schema: schema.get("readOnce") is True, GIVEN_ONCE, (b"readOnce",))


def _redactor(
    root: JsonObject,
    is_marked: Callable[[JsonObject], bool],
    mark: object,
    words: Iterable[bytes],
    *,
    hides_misplaced: bool = False,
) -> Redact | None:
    """Make a redactor, or return None if nothing is marked. A schema with a mark contains one of `words` in its
    JSON.
    """
    with suppress(TypeError):  # numbers that are too large for orjson, for instance
        text = orjson.dumps(root)
        if not any(word in text for word in words):
            return None
    if not any(map(is_marked, subschemas(root))):
        return None
    return partial(_Redactor(root, is_marked, mark, hides_misplaced).copy, (root,))


class _Redactor:
    """Redacts values by one schema."""

    def __init__(
        self, root: JsonObject, is_marked: Callable[[JsonObject], bool], mark: object, hides_misplaced: bool
    ) -> None:
        self._root = root
        self._is_marked = is_marked
        self._mark = mark
        self._hides_misplaced = hides_misplaced
        self._named = named_subschemas(root)
        self._known: dict[tuple[int, ...], tuple[JsonObject, ...]] = {}
        self._patterns: dict[str, Callable[[object], bool] | None] = {}
        for subschema in subschemas(root):
            for pattern in table_of(subschema, "patternProperties"):
                try:  # an engine of linear time; a pattern that it does not support is None
                    engine = jsonschema_rs.RegexOptions()
                    reader = jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=engine)
                    self._patterns[pattern] = reader.is_valid
                except (jsonschema_rs.ValidationError, ValueError):
                    self._patterns[pattern] = None

    def copy(self, schemas: Sequence[object], value: object) -> object:
        """Return a redacted copy of a value to which all of `schemas` apply."""
        key = tuple(id(schema) for schema in schemas)
        parts = self._known.get(key)
        if parts is None:
            parts = parts_of(self._root, schemas, self._named)
            if len(self._known) < _MAX_KNOWN:
                self._known[key] = parts
        if not parts:
            return self._mark if self._hides_misplaced and False in schemas else value
        if any(map(self._is_marked, parts)):
            return value if value is None else self._mark
        if self._hides_misplaced and not _takes(parts, value):
            return self._mark
        if isinstance(value, dict):
            if any(
                map(self._is_marked, parts_of(self._root, [part.get("propertyNames") for part in parts], self._named))
            ):
                return self._mark
            return {name: self.copy(self._members(parts, name), member) for name, member in value.items()}
        if isinstance(value, list):
            further = [part.get(name) for part in parts for name in ("items", "contains", "unevaluatedItems")]
            first = [list_of(part, "prefixItems") for part in parts]
            return [
                self.copy([*(prefix[index] for prefix in first if index < len(prefix)), *further], item)
                for index, item in enumerate(value)
            ]
        return value

    def _members(self, parts: Iterable[JsonObject], name: str) -> list[object]:
        """Return the schemas of a member. For an unsupported pattern, assume both that it matches and that it does
        not.
        """
        parts_inside: list[object] = []
        for part in parts:
            own = [table_of(part, "properties")[name]] if name in table_of(part, "properties") else []
            for pattern, schema in table_of(part, "patternProperties").items():
                matches = self._patterns[pattern]
                if matches is None:
                    parts_inside.append(schema)
                elif matches(name):
                    own.append(schema)
            parts_inside += own or [part.get("additionalProperties"), part.get("unevaluatedProperties")]
        return parts_inside


def _takes(parts: Iterable[JsonObject], value: object) -> bool:
    """Return True unless the types of all parts of a schema, or of all its alternatives, exclude a value."""
    types: list[Any] = [part["type"] for part in parts if "type" in part]
    names = {name for kind in types for name in ([kind] if isinstance(kind, str) else kind)}
    return value is None or not names or any(isinstance(value, _TYPES.get(name, object)) for name in names)


_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "string": str,
    "number": (int, float),
    "integer": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": (),
}

_MAX_KNOWN: Final = 10_000
"""Combinations of subschemas that are cached. There are few, unless a long input multiplies those of array items."""
