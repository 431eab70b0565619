"""What a check reports, and what a check is.

A check function looks at a document and yields `Flaw`s: a place and a sentence. The `Check` around it is a row of
data that adds what is the same for all of them (id, level, source, hint) and turns them into `Finding`s.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from typing import Literal, NamedTuple, TypeGuard

Level = Literal["error", "warning", "info"]

LEVELS: tuple[Level, ...] = ("error", "warning", "info")
SHOWN_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Finding:
    """One remark about one place of one document.

    An `error` breaks a requirement of the specification named in `source`, a `warning` a recommendation of it or
    plain good sense, and an `info` is worth knowing and needs no repair. `pointer` is an RFC 6901 JSON Pointer; where
    a member is missing it points to the place at which the member should stand.
    """

    level: Level
    check: str
    pointer: str
    message: str
    hint: str
    source: str
    document: str = ""

    def __str__(self) -> str:
        place = f"{self.document}#{self.pointer}" if self.document else self.pointer or "(root)"
        sentence = f"{self.level}: {place}: {self.message} {self.hint} [{self.check}; {self.source}]"
        return sentence.encode("utf-8", "backslashreplace").decode("utf-8")


class Flaw(NamedTuple):
    """A place and what is wrong there. Empty `hint` and `source` mean those of the check."""

    pointer: str
    message: str
    hint: str = ""
    source: str = ""
    document: str = ""


Find = Callable[[Mapping[str, object]], Iterable[Flaw]]


def nothing(document: Mapping[str, object]) -> Iterable[Flaw]:
    """Stand in for the function of a check whose flaws are found while the text is read."""
    return ()


@dataclass(frozen=True, slots=True)
class Check:
    """One row of a table of checks; call it with a document to get its findings.

    When a `decisive` check finds something, the document is not what it was taken for and no other check is run.
    """

    id: str
    level: Level
    source: str
    about: str
    hint: str
    find: Find = nothing
    decisive: bool = False

    def __call__(self, document: Mapping[str, object]) -> Iterator[Finding]:
        return map(self.finding, self.find(document))

    def finding(self, flaw: Flaw) -> Finding:
        """Complete a flaw with what is the same for every flaw of this check."""
        hint, source = flaw.hint or self.hint, flaw.source or self.source
        return Finding(self.level, self.id, flaw.pointer, flaw.message, hint, source, flaw.document)


def shown(value: object) -> str:
    """Write a value into a message: as JSON, on one line, shortened."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=repr)
    except (ValueError, TypeError, RecursionError):
        text = repr(type(value))
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 3] + "..."


def listed(names: Iterable[str]) -> str:
    """Write a set of allowed words into a message."""
    return ", ".join(names)


ITEMS = "[]"
MEMBERS = "{}"


def child(pointer: str, token: object) -> str:
    """Extend a pointer by a member name or an index."""
    text = str(token)
    if "~" in text or "/" in text:
        text = text.replace("~", "~0").replace("/", "~1")
    return f"{pointer}/{text}"


@lru_cache(maxsize=512)
def tokens(pointer: str) -> tuple[str, ...]:
    """Take a pointer or a pattern apart."""
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:])


def select(document: object, pattern: str) -> list[tuple[str, object]]:
    """Give the pointer and the value of every place that the pattern names, in document order."""
    places = [("", document)]
    for token in tokens(pattern):
        if token == ITEMS:
            places = [(f"{at}/{index}", item) for at, value in places for index, item in _items(value)]
        elif token == MEMBERS:
            places = [(child(at, name), item) for at, value in places for name, item in members(value)]
        else:
            step = child("", token)
            places = [(at + step, value[token]) for at, value in places if is_object(value) and token in value]
    return places


def is_object(value: object) -> TypeGuard[Mapping[str, object]]:
    """Say whether a value is an object. Asking for dict first is several times as fast as asking for Mapping."""
    return isinstance(value, (dict, Mapping))


def members(value: object) -> Iterable[tuple[str, object]]:
    """Give the members of an object; anything else has none."""
    return value.items() if is_object(value) else ()


def _items(value: object) -> Iterable[tuple[int, object]]:
    return enumerate(value) if isinstance(value, list) else ()


def objects(document: object, pattern: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Select the places that hold an object."""
    for pointer, value in select(document, pattern):
        if is_object(value):
            yield pointer, value


def arrays(document: object, pattern: str) -> Iterator[tuple[str, list[object]]]:
    """Select the places that hold an array."""
    for pointer, value in select(document, pattern):
        if isinstance(value, list):
            yield pointer, value


def strings(document: object, *patterns: str) -> Iterator[tuple[str, str]]:
    """Select the places that hold a string."""
    for pattern in patterns:
        for pointer, value in select(document, pattern):
            if isinstance(value, str):
                yield pointer, value


def exists(document: object, pointer: str) -> bool:
    """Say whether a pointer leads anywhere."""
    value = document
    for token in tokens(pointer):
        if isinstance(value, list) and token.isdecimal() and int(token) < len(value):
            value = value[int(token)]
        elif isinstance(value, Mapping) and token in value:
            value = value[token]
        else:
            return False
    return True


def position(document: object, pointer: str) -> tuple[int, ...]:
    """Give a sort key for document order; a missing member comes after those that are there."""
    value, key = document, []
    for token in tokens(pointer):
        names = list(value) if isinstance(value, Mapping) else []
        if token in names:
            key.append(names.index(token))
            value = value[token] if isinstance(value, Mapping) else None
        elif isinstance(value, list) and token.isdecimal():
            key.append(int(token))
            value = value[int(token)] if int(token) < len(value) else None
        else:
            key.append(len(names))
            break
    return tuple(key)


def depth_exceeds(value: object, limit: int) -> bool:
    """Say whether arrays and objects are nested more than `limit` deep, without recursion."""
    level: list[object] = [value]
    for _ in range(limit):
        level = [inner for outer in level for inner in _values(outer)]
        if not level:
            return False
    return any(isinstance(inner, (Mapping, list)) for inner in level)


def _values(value: object) -> list[object]:
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else []


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
