"""Summaries of calls from a template of the site, or in our words.

Callers write the input, and a person must be able to see where it begins and ends: their texts are quoted and cut. What
the schema marks as secret is hidden.
"""

from collections.abc import Callable, Mapping
from string import Formatter
from typing import Final, cast

import orjson

from awp_publish.model import Action, JsonObject
from awp_publish.plugins.confirmation.quoting import cut, quoted
from awp_publish.schema import named_subschemas, parts_of, subschemas
from awp_publish.schema.redaction import HIDDEN, input_redactor

_SECRET: Final = object()
"""A placeholder for a secret. A text could have been written by a caller."""

MISSING: Final = "(not given)"

MAX_VALUE: Final = 200
"""Characters of one input that a summary shows."""

MAX_INPUTS: Final = 20
"""Inputs that our own summary shows."""


def in_order(inputs: JsonObject) -> Callable[[JsonObject], JsonObject]:
    """Return a function that copies an input with its members in the schema's order, followed by unnamed ones.

    Callers may send members in any order, and the same input has to give the same summary.
    """
    ranks: dict[str, int] = {}
    for part in (*parts_of(inputs, (inputs,), named_subschemas(inputs)), *subschemas(inputs)):
        if isinstance(properties := part.get("properties"), Mapping):
            for name in properties:
                ranks.setdefault(name, len(ranks))

    def rank(name: str) -> tuple[int, str]:
        return ranks.get(name, len(ranks)), name

    def order(value: object) -> object:
        if isinstance(value, list):
            return [order(item) for item in value]
        if not isinstance(value, Mapping):
            return value
        return {name: order(value[name]) for name in sorted(value, key=rank)}

    return cast(Callable[[JsonObject], JsonObject], order)


def summarizer(action: Action) -> Callable[[JsonObject], str]:
    """Return a function that summarises an input with the action's template, or with its description."""
    words, values = action.confirmation_summary, _Values(action.inputs)
    pieces = tuple(Formatter().parse(words)) if isinstance(words, str) else ()
    own = f"{action.name}: {action.description.strip().splitlines()[0].rstrip('.')}."

    def summarize(inputs: JsonObject) -> str:
        inputs = values.redact(inputs)
        if pieces:
            fields = (values.show(inputs, name, spec or "") if name else "" for _, name, spec, _ in pieces)
            return "".join(text + field for (text, *_), field in zip(pieces, fields, strict=True))
        lines = [f"{values.label(name)}: {values.show(inputs, name)}" for name in list(inputs)[:MAX_INPUTS]]
        lines += [f"and {len(inputs) - MAX_INPUTS} more inputs"] if len(inputs) > MAX_INPUTS else []
        sentences = [own, *([f"With {', '.join(lines)}."] if lines else [])]
        return " ".join([*sentences, *(["This cannot be undone."] if action.is_irreversible else [])])

    return summarize


class _Values:
    """Renders values of one action's input. No more of an input is rendered than is shown."""

    def __init__(self, inputs: JsonObject) -> None:
        properties = inputs.get("properties")
        self._named = properties if isinstance(properties, Mapping) else {}
        self.redact = input_redactor(inputs, _SECRET) or (lambda inputs: inputs)

    def label(self, name: str) -> str:
        """Return a member's name, quoted if it is not in the schema: it is the caller's own text."""
        return name if name in self._named else cut(quoted, name, MAX_VALUE)

    def show(self, inputs: JsonObject, name: str, spec: str = "") -> str:
        """Return a member of a redacted input, or its default, for a person to read. `spec` formats numbers."""
        if name not in inputs:
            schema = self._named.get(name)
            default = schema.get("default") if isinstance(schema, Mapping) else None
            if default is None:
                return MISSING
            inputs = self.redact({name: default})
        value = inputs[name]
        if spec and isinstance(value, (int, float)) and not isinstance(value, bool):
            try:
                return format(value, spec)
            except (ValueError, OverflowError):
                pass  # 2.0 is an integer in JSON Schema, but not for the format "d"
        return self._show(value, [MAX_VALUE])

    def _show(self, value: object, left: list[int]) -> str:
        """Return JSON text of at most about `left[0]` characters."""
        texts: list[str] = []
        if value is _SECRET:
            left[0] -= len(HIDDEN)
            return HIDDEN
        if isinstance(value, str):
            return self._quote(value, left)
        left[0] -= 2
        if isinstance(value, Mapping):
            for name, inner in value.items():
                if left[0] <= 0:
                    break
                label = self._quote(name, left)
                texts.append(f"{label}: {self._show(inner, left)}")
            return "{" + ", ".join([*texts, *_rest(len(value) - len(texts), "members")]) + "}"
        if isinstance(value, list):
            for inner in value:
                if left[0] <= 0:
                    break
                texts.append(self._show(inner, left))
            return "[" + ", ".join([*texts, *_rest(len(value) - len(texts), "items")]) + "]"
        text = orjson.dumps(value).decode()
        left[0] -= len(text)
        return text

    def _quote(self, text: str, left: list[int]) -> str:
        most = max(left[0], 0)
        left[0] -= min(len(text), most) + 2
        return cut(quoted, text, most)


def _rest(more: int, what: str) -> list[str]:
    return [f"and {more} more {what}"] if more else []
