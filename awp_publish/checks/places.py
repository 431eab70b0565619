"""Places in a document, named by patterns.

A pattern is an RFC 6901 pointer in which `[]` stands for every item of an array, `{}` for every member of an object,
and `a|b` for either of two members: `/actions/[]/inputs/{}`, `/actions/[]/path|endpoint`. Parts of an unexpected type
are skipped: the schemas report them. Documents are plain dicts and lists, as returned by `text.read`.
"""

from collections.abc import Iterator, Mapping

from awp_publish.schema.pointers import child, part_at, tokens

_NOWHERE = object()


def members(value: object) -> dict[str, object]:
    """Return an object, and an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def select(document: object, pattern: str) -> list[tuple[str, object]]:
    """Return pointer and value of every place that the pattern names, in document order."""
    places = [("", document)]
    for token in tokens(pattern):
        if token == "[]":
            places = [
                (f"{at}/{i}", item) for at, value in places if isinstance(value, list) for i, item in enumerate(value)
            ]
        elif token == "{}":
            places = [
                (child(at, name), item)
                for at, value in places
                if isinstance(value, dict)
                for name, item in value.items()
            ]
        elif "|" in token:
            names = token.split("|")
            inside = [(at, value) for at, value in places if isinstance(value, dict)]
            places = [(f"{at}/{name}", value[name]) for at, value in inside for name in names if name in value]
        else:
            step = child("", token)
            places = [(at + step, value[token]) for at, value in places if isinstance(value, dict) and token in value]
    return places


def objects(document: object, *patterns: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Select the places that hold an object."""
    for pattern in patterns:
        for pointer, value in select(document, pattern):
            if isinstance(value, dict):
                yield pointer, value


def arrays(document: object, *patterns: str) -> Iterator[tuple[str, list[object]]]:
    """Select the places that hold an array."""
    for pattern in patterns:
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
    """Return True if a pointer resolves."""
    return part_at(document, pointer, _NOWHERE) is not _NOWHERE


def position(document: object, pointer: str, cached: dict[int, dict[str, int]] | None = None) -> tuple[int, ...]:
    """Return a sort key for document order; a missing member comes after the existing ones.

    `cached` keeps the order of members between calls for the same document.
    """
    orders = {} if cached is None else cached
    value, key = document, []
    for token in tokens(pointer):
        if isinstance(value, dict):
            if (order := orders.get(id(value))) is None:
                order = orders[id(value)] = {name: index for index, name in enumerate(value)}
            if token not in order:
                key.append(len(order))
                break
            key.append(order[token])
            value = value[token]
        elif isinstance(value, list) and token.isdecimal():
            key.append(int(token))
            value = value[int(token)] if int(token) < len(value) else None
        else:
            key.append(0)
            break
    return tuple(key)
