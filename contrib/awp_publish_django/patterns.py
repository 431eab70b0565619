"""One piece of a URLconf as a path template, and what its placeholders take.

`path()` routes are read by their converters, `re_path()` expressions through Django's own `normalize`, by which it
reverses them. A placeholder that may contain slashes is written `{name:path}`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from django.urls import converters
from django.urls.resolvers import LocalePrefixPattern, RegexPattern, RoutePattern
from django.utils.regex_helper import normalize

from awp_publish.model import SEGMENT_PATTERN, SEGMENTS_PATTERN, JsonObject
from awp_publish_django.form_fields import python_pattern

_COMPONENT: Final = re.compile(r"<(?:(?P<converter>[^>:]+):)?(?P<name>[^>]+)>")
_PLACED: Final = re.compile(r"%\((\w+)\)s")
_NEGATED: Final = re.compile(r"\[\^(?:\\.|[^\]\\])*\]")
_KNOWN: Final[Mapping[type, JsonObject]] = {
    converters.IntConverter: {"type": "integer", "minimum": 0},
    converters.StringConverter: {"type": "string", "minLength": 1, "pattern": SEGMENT_PATTERN},
    converters.PathConverter: {"type": "string", "minLength": 1, "pattern": SEGMENTS_PATTERN},
    converters.SlugConverter: {"type": "string", "minLength": 1, "pattern": "^[-a-zA-Z0-9_]+$"},
    converters.UUIDConverter: {
        "type": "string",
        "format": "uuid",
        "pattern": f"^(?:{converters.UUIDConverter.regex})$",
    },
}
_ANY: Final[JsonObject] = {"type": "string", "minLength": 1, "pattern": SEGMENTS_PATTERN}


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a path: its template, and a JSON Schema for each placeholder. None is not to be reached by anybody."""

    template: str
    schemas: Mapping[str, JsonObject] = field(default_factory=dict)


def read_pattern(pattern: object, unnamed: int = 0) -> Piece:
    """A piece of somebody's own kind is taken by its text. `unnamed` groups stand before it."""
    if isinstance(pattern, RoutePattern):
        return _read_route(str(pattern))
    if isinstance(pattern, RegexPattern):
        return _read_regex(pattern.regex.pattern, unnamed)
    if isinstance(pattern, LocalePrefixPattern):
        return Piece(pattern.language_prefix)
    return Piece(str(pattern))


def _read_route(route: str) -> Piece:
    schemas: dict[str, JsonObject] = {}

    def place(match: re.Match[str]) -> str:
        converter, name = converters.get_converters()[match.group("converter") or "str"], match.group("name")
        expression = converter.regex
        schemas[name] = _KNOWN.get(type(converter)) or _schema_of(expression)
        return _placeholder(name, expression)

    return Piece(_COMPONENT.sub(place, route), schemas)


def _placeholder(name: str, expression: str) -> str:
    """Return a placeholder, which spans slashes if its expression names one, or takes any text."""
    spans = "/" in _NEGATED.sub("", expression) or any(re.fullmatch(expression, path) for path in ("a/b", "1/1", "/"))
    return f"{{{name}:path}}" if spans else f"{{{name}}}"


def _schema_of(expression: str) -> JsonObject:
    """The values that an expression matches whole, as far as JSON Schema has the same words for it."""
    if expression == "[^/]+":
        return _KNOWN[converters.StringConverter]
    pattern = python_pattern(f"^(?:{expression})$")
    return {"type": "string", **pattern} if "pattern" in pattern else {**_ANY, **pattern}


def _read_regex(expression: str, unnamed: int) -> Piece:
    candidate, names = normalize(expression)[0]
    groups = _groups_of(expression)
    new_names = {name: f"_{int(name[1:]) + unnamed}" if re.fullmatch(r"_\d+", name) else name for name in names}
    schemas = {new_names[name]: _schema_of(groups[name]) if name in groups else _ANY for name in names}

    def place(match: re.Match[str]) -> str:
        return _placeholder(new_names.get(match[1], match[1]), groups.get(match[1], "[^/]+"))

    return Piece(_PLACED.sub(place, candidate), schemas)


def _groups_of(expression: str) -> dict[str, str]:
    """The insides of named groups; where there are none, of unnamed ones, which Django calls _0, _1 and so on."""
    groups = {match[1]: _inside(expression, match.end()) for match in re.finditer(r"\(\?P<(\w+)>", expression)}
    if groups:
        return groups
    insides: list[str] = []
    end = 0
    for match in re.finditer(r"(?<!\\)\((?!\?)", expression):
        if match.start() >= end:  # Django leaves out a group within another
            insides.append(_inside(expression, match.end()))
            end = match.end() + len(insides[-1])
    return {f"_{number}": inside for number, inside in enumerate(insides)}


def _inside(expression: str, start: int) -> str:
    """The text up to the parenthesis that closes."""
    depth, position, in_class = 1, start, False
    while position < len(expression):
        character = expression[position]
        if character == "\\":
            position += 1
        elif in_class:
            in_class = character != "]"
        elif character == "[":
            in_class = True
        elif character in "()":
            depth += 1 if character == "(" else -1
            if depth == 0:
                break
        position += 1
    return expression[start:position]
