"""Words for what is wrong with a value, and for what a schema allows."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

from awp_publish.model import JsonObject
from awp_publish.problems import nearest
from awp_publish.schema.parts import list_of

MAX_SHOWN: Final = 60
"""Characters of a caller's text that a message repeats; of a longer text only the length is given."""

MAX_LISTED: Final = 20
"""Values of an enumeration that a message lists; of longer enumerations it lists the nearest."""

MAX_LISTING: Final = 800
"""Characters that a list of values may have in a message."""


def values_of(kind: JsonObject) -> list[object]:
    """Return the values of an enumeration or a constant."""
    if "const" in kind:
        return [kind["const"]]
    return list(list_of(kind, "enum"))


def is_among(value: object, allowed: Sequence[object]) -> bool:
    """Return True if a value equals one of a few in JSON, where true is not 1."""
    return any(value == choice and isinstance(value, bool) == isinstance(choice, bool) for choice in allowed)


_TYPE_NOUNS: Final = {
    "object": "an object",
    "array": "an array",
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a boolean",
    "null": "null",
}

FORMAT_NOUNS: Final = {
    "date": "a date such as 2026-01-31",
    "date-time": "a date and time such as 2026-01-31T12:00:00Z",
    "time": "a time such as 12:00:00Z",
    "duration": "a duration such as P1DT12H",
    "email": "an e-mail address",
    "idn-email": "an e-mail address",
    "hostname": "a host name",
    "idn-hostname": "a host name",
    "ipv4": "an IPv4 address",
    "ipv6": "an IPv6 address",
    "uri": "an absolute URI such as https://example.com/",
    "uri-reference": "a URI reference",
    "iri": "an absolute IRI such as https://example.com/",
    "iri-reference": "an IRI reference",
    "uri-template": "a URI template",
    "uuid": "a UUID",
    "json-pointer": "a JSON Pointer",
    "relative-json-pointer": "a relative JSON Pointer",
}


def type_noun(kinds: object) -> str:
    listed = kinds if isinstance(kinds, list) else [kinds]
    named = [kind for kind in listed if kind != "null"] or listed
    return " or ".join(_TYPE_NOUNS.get(str(kind), str(kind)) for kind in named)


def one_of(values: Sequence[object], value: object) -> str:
    if len(values) == 1:
        return shown(values[0])
    if len(values) <= MAX_LISTED and len(text := ", ".join(map(shown, values))) <= MAX_LISTING:
        return f"one of {text}"
    return f"one of {len(values)} values, such as {listing(values, value)}"


def listing(values: Sequence[object], wanted: object = None) -> str:
    """Return values separated by commas: all up to MAX_LISTED, otherwise those nearest to the wanted one."""
    if len(values) <= MAX_LISTED and len(text := ", ".join(map(shown, values))) <= MAX_LISTING:
        return text
    texts = [value for value in values if isinstance(value, str)]
    near: Sequence[object] = nearest(wanted, texts, MAX_NEAREST) if isinstance(wanted, str) else ()
    return ", ".join(shown(value)[: MAX_LISTING // MAX_NEAREST] for value in near or values[:MAX_NEAREST])


MAX_NEAREST: Final = 5


def _counted(limit: object, noun: str) -> str:
    return f"{shown(limit)} {noun}{'' if limit == 1 else 's'}"


def _at_least(noun: str) -> Callable[[object, object], str]:
    return lambda limit, _: "must not be empty" if limit == 1 else f"must have at least {_counted(limit, noun)}"


def _at_most(noun: str) -> Callable[[object, object], str]:
    return lambda limit, _: f"must have at most {_counted(limit, noun)}"


def _must_be(words: str) -> Callable[[object, object], str]:
    return lambda limit, _: f"must be {words}{shown(limit)}"


WORDS: Final[Mapping[str, Callable[[object, object], str]]] = {
    "type": lambda limit, _: f"must be {type_noun(limit)}",
    "enum": lambda limit, value: f"must be {one_of(cast(list[object], limit), value)}",
    "const": _must_be(""),
    "minimum": _must_be("at least "),
    "maximum": _must_be("at most "),
    "exclusiveMinimum": _must_be("greater than "),
    "exclusiveMaximum": _must_be("less than "),
    "multipleOf": _must_be("a multiple of "),
    "minLength": _at_least("character"),
    "maxLength": _at_most("character"),
    "pattern": lambda limit, _: f"must match the pattern {limit}",
    "format": lambda limit, _: f"must be {FORMAT_NOUNS.get(str(limit), f'of the format {limit}')}",
    "contentEncoding": lambda limit, _: f"must be {limit}",
    "minItems": _at_least("item"),
    "maxItems": _at_most("item"),
    "uniqueItems": lambda _, __: "must not contain the same item twice",
    "minProperties": _at_least("member"),
    "maxProperties": _at_most("member"),
}
"""Messages for values that do not conform to a keyword, made from the keyword's value and the value."""

_ECHOING: Final = frozenset({"type", "enum", "const", "format", "pattern"})
"""Keywords whose messages repeat the value."""

UNEXPLAINED: Final = {
    "anyOf": "matches none of the alternatives that the schema allows here",
    "oneOf": "matches none of the alternatives that the schema allows here, or several of them",
    "not": "is excluded by the schema",
    "contains": "does not contain the required number of items",
    "unevaluatedProperties": "has unknown members",
    "unevaluatedItems": "has unknown items",
    "false": "is not allowed here",
}

OTHERWISE: Final = "does not conform to the schema"


def echo(keyword: str, value: object) -> str:
    """Return the value as the end of a message, or "" if repeating it does not help."""
    if keyword not in _ECHOING:
        return ""
    if isinstance(value, str) and len(value) > MAX_SHOWN:
        return f", not a string of {len(value)} characters"
    return f", not {shown(value)}"


def shown(value: object) -> str:
    """Return a value in a few characters: as JSON, but objects and arrays as their type, whole numbers as integers."""
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "an array"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    if isinstance(value, str) and len(value) > MAX_SHOWN:
        return json.dumps(value[:MAX_SHOWN], ensure_ascii=False)[:-1] + '…"'
    return json.dumps(value, ensure_ascii=False, default=str)
