"""Finding one's way in a JSON document: RFC 6901 pointers, and patterns that select many places at once.

A pattern is a pointer in which `[]` stands for every item of an array and `{}` for every member of an object:
`/actions/[]/inputs/{}`. What does not have the expected form is passed over, because saying so is the task of the
checks on shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TypeGuard

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
        level = [inner for outer in level for inner in _contents(outer)]
        if not level:
            return False
    return any(isinstance(inner, (Mapping, list)) for inner in level)


def _contents(value: object) -> list[object]:
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else []
