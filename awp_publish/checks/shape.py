"""The part of every specification that is a table of members: which there are, of which type, and which must be there.

A specification's file states its tables as `Shape`s; the five functions here read them. They yield flaws for missing
members, wrong types, values outside an enumeration, empty texts, and names that are probably misspelt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from awp_publish.checks.finding import Flaw, listed, shown
from awp_publish.checks.pointer import child, is_object, objects, select

When = Callable[[Mapping[str, object]], bool]


def always(document: Mapping[str, object]) -> bool:
    """Apply to every document."""
    return True


def _is_integer(value: object) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer())


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


ARTICLES = {"integer": "an integer", "array": "an array", "object": "an object"}
TYPES: dict[str, Callable[[object], bool]] = {
    "any": lambda value: True,
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_integer,
    "number": _is_number,
    "object": is_object,
    "array": lambda value: isinstance(value, list),
    "null": lambda value: value is None,
}


@dataclass(frozen=True, slots=True)
class Shape:
    """The members of one kind of object, as a specification's table states them.

    `members` gives each member's type: a name of `TYPES`, alternatives as `string|object`, or a container and what it
    contains as `array of string` and `object of string`. `required` binds only where `when` holds, so that two
    versions of a specification can share the types and differ in what must be there.
    """

    at: str
    what: str
    source: str
    members: Mapping[str, str] = field(default_factory=dict)
    required: Sequence[str] = ()
    when: When = always


@dataclass(frozen=True, slots=True)
class Enumeration:
    """The values that a specification allows at one place."""

    at: str
    values: Sequence[str]
    source: str
    when: When = always


def is_type(value: object, name: str) -> bool:
    """Say whether a value has a type, or one of the types separated by `|`."""
    if name in TYPES:
        return TYPES[name](value)
    return any(TYPES[alternative](value) for alternative in name.split("|"))


def missing(shapes: Iterable[Shape], document: Mapping[str, object]) -> Iterator[Flaw]:
    """Find required members that are not there."""
    for shape in shapes:
        if not shape.required or not shape.when(document):
            continue
        for pointer, value in objects(document, shape.at):
            for name in shape.required:
                if name not in value:
                    yield Flaw(child(pointer, name), f'{shape.what} has no "{name}".', source=shape.source)


def mistyped(shapes: Iterable[Shape], document: Mapping[str, object]) -> Iterator[Flaw]:
    """Find members that have the wrong type."""
    for shape in shapes:
        for pointer, value in objects(document, shape.at):
            for name, wanted in shape.members.items():
                if name in value:
                    said = f'"{name}" is'
                    yield from _mistyped(child(pointer, name), said, value[name], wanted, shape.source)


def _mistyped(pointer: str, said: str, value: object, wanted: str, source: str) -> Iterator[Flaw]:
    outer, _, inner = wanted.partition(" of ")
    if not is_type(value, outer):
        yield Flaw(pointer, f"{said} {shown(value)} and not {_in_words(outer)}.", source=source)
    elif inner and inner != "any":
        for token, item in _contents(value):
            place = f"Item {token} is" if isinstance(token, int) else f"{shown(token)} is"
            yield from _mistyped(child(pointer, token), place, item, inner, source)


def _contents(value: object) -> Iterable[tuple[object, object]]:
    if isinstance(value, Mapping):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def _in_words(types: str) -> str:
    return " or ".join(ARTICLES.get(name, f"a {name}") for name in types.split("|"))


def unlisted(enumerations: Iterable[Enumeration], document: Mapping[str, object]) -> Iterator[Flaw]:
    """Find texts outside their enumeration; what is not a text is a matter of type."""
    for enumeration in enumerations:
        if not enumeration.when(document):
            continue
        for pointer, value in select(document, enumeration.at):
            if isinstance(value, str) and value not in enumeration.values:
                allowed = listed(enumeration.values)
                yield Flaw(pointer, f"{shown(value)} is not one of {allowed}.", source=enumeration.source)


def empty(shapes: Iterable[Shape], document: Mapping[str, object]) -> Iterator[Flaw]:
    """Find texts that some version requires, are there and say nothing; each once, though two versions require it."""
    known: set[str] = set()
    for shape in shapes:
        for pointer, value in objects(document, shape.at):
            for name in shape.required:
                text, place = value.get(name), child(pointer, name)
                if isinstance(text, str) and not text.strip() and place not in known:
                    known.add(place)
                    yield Flaw(place, f'"{name}" of {shape.what.lower()} is empty.', source=shape.source)


def misspelt(shapes: Iterable[Shape], document: Mapping[str, object]) -> Iterator[Flaw]:
    """Find unknown members whose names resemble a known one that is not there."""
    for pointer, name, near, shape in _unknown(shapes, document):
        if near:
            message = f"{shape.what} has a member {shown(name)}, which the specification does not know."
            yield Flaw(pointer, message, f'Was "{near}" meant?', shape.source)


def unprefixed(shapes: Iterable[Shape], document: Mapping[str, object]) -> Iterator[Flaw]:
    """Find the other unknown members, those that are probably extensions, where they lack the prefix `x-`."""
    for pointer, name, near, shape in _unknown(shapes, document):
        if not near:
            yield Flaw(pointer, f"{shape.what} has a member of its own, {shown(name)}.")


def _unknown(shapes: Iterable[Shape], document: Mapping[str, object]) -> Iterator[tuple[str, str, str | None, Shape]]:
    for shape in shapes:
        if not shape.members:
            continue
        for pointer, value in objects(document, shape.at):
            for name in value:
                if name not in shape.members and not name.startswith(("x-", "$", "_")):
                    absent = [known for known in shape.members if known not in value]
                    near = get_close_matches(name, absent, 1, 0.8)
                    yield child(pointer, name), name, near[0] if near else None, shape
