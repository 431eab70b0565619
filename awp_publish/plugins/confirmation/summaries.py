"""Summaries: what a person reads before they confirm a call.

They are in the site's own words, or in ours. Callers write the input, and a person must be able to see where it begins
and ends: their texts are quoted as JSON, cut, and contain nothing invisible. What the schema marks as secret is hidden,
also from the site's own function. In the text that such a function returns, invisible characters are made visible, but
only the function knows which parts are values."""

import inspect
import re
import unicodedata
from collections.abc import Callable, Mapping
from string import Formatter
from typing import Final, cast

import orjson

from awp_publish.model import Action, JsonObject
from awp_publish.schema import named_subschemas, parts_of, subschemas
from awp_publish.schema.redaction import HIDDEN, input_redactor

MAX_SUMMARY: Final = 2000
"""Characters of a summary by a function of the site."""


def takes_call(summary: Callable[..., object]) -> bool:
    """Return True if a summary function takes the input and the call, not the input alone."""
    try:
        parameters = inspect.signature(summary).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return (
        sum(parameter.kind in positional and parameter.default is inspect.Parameter.empty for parameter in parameters)
        > 1
    )


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


_QUOTES: Final = re.compile(r'["\\]')

_UNSEEN: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0d\uffa0\U000e0100-\U000e01ef]"
)
"""Letters and marks that are invisible although Unicode counts them as visible."""

_LIKE_QUOTES: Final = re.compile("[\u02ba\u02ee\u05f4\u201c-\u201f\u2033\u2036\u275d\u275e\u3003\u301d-\u301f\uff02]")
"""Characters that a person may take for a quotation mark."""


def quoted(text: str) -> str:
    """Return a text quoted as JSON, with look-alikes of quotation marks and everything invisible escaped."""
    escaped = visible(_QUOTES.sub(r"\\\g<0>", text))
    return f'"{_LIKE_QUOTES.sub(_escape, escaped)}"'


def visible(text: str) -> str:
    """Return a text with its control, format, private and unassigned characters written as JSON escapes."""
    if text.isascii() and text.isprintable():
        return text
    parts = (
        character if character.isprintable() or unicodedata.category(character) == "Zs" else _escaped(character)
        for character in text
    )
    return _UNSEEN.sub(_escape, "".join(parts))


def _escape(match: re.Match[str]) -> str:
    return _escaped(match[0])


def _escaped(character: str) -> str:
    """Return JSON escapes: two beyond the Basic Multilingual Plane (RFC 8259 section 7)."""
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def cut(show: Callable[[str], str], text: str, most: int) -> str:
    """Return the beginning of a text, rendered by `show`, and how much more there is."""
    more = len(text) - most
    return show(text) if more <= 0 else f"{show(text[:most])} and {more} more characters"


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
