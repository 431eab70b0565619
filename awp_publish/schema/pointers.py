"""JSON Pointers (RFC 6901), and references that are one."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from urllib.parse import unquote


def child(pointer: str, token: object) -> str:
    """Extend a pointer by a member name or an index."""
    text = str(token)
    if "~" in text or "/" in text:
        text = text.replace("~", "~0").replace("/", "~1")
    return f"{pointer}/{text}"


def pointer_to(path: Iterable[str | int]) -> str:
    """Return the pointer of a path."""
    return "".join(child("", part) for part in path)


@lru_cache(maxsize=512)
def tokens(pointer: str) -> tuple[str, ...]:
    """Return the names and indexes of a pointer."""
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:])


def part_at(document: object, pointer: str) -> object:
    """Return the part of a document at a pointer, or None if there is none."""
    for name in tokens(pointer):
        if isinstance(document, list):
            document = document[int(name)] if name.isdecimal() and int(name) < len(document) else None
        else:
            document = document.get(name) if isinstance(document, Mapping) else None
    return document


def local_pointer(reference: object) -> str | None:
    """Return the pointer in a reference within the same document; None for any other reference."""
    is_local = isinstance(reference, str) and (reference == "#" or reference.startswith("#/"))
    return unquote(str(reference)[1:]) if is_local else None
