"""JSON Pointers (RFC 6901), and references that are one."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,8}")
"""An index of an array, as section 4 has it: without leading zeros, and none that no array reaches."""


def child(pointer: str, token: object) -> str:
    """Extend a pointer by a member name or an index."""
    text = str(token)
    if "~" in text or "/" in text:
        text = text.replace("~", "~0").replace("/", "~1")
    return f"{pointer}/{text}"


def pointer_to(path: Iterable[str | int]) -> str:
    return "".join(child("", part) for part in path)


@lru_cache(maxsize=512)
def tokens(pointer: str) -> tuple[str, ...]:
    """Return the names and indexes of a pointer."""
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:])


def part_at(document: object, pointer: str, otherwise: object = None) -> object:
    """Return the part of a document at a pointer, or `otherwise` if there is none."""
    for name in tokens(pointer):
        if isinstance(document, list) and _INDEX.fullmatch(name) and int(name) < len(document):
            document = document[int(name)]
        elif isinstance(document, Mapping) and name in document:
            document = document[name]
        else:
            return otherwise
    return document


def local_pointer(reference: object) -> str | None:
    """Return the pointer in a reference within the same document; None for any other reference."""
    is_local = isinstance(reference, str) and (reference == "#" or reference.startswith("#/"))
    return unquote(str(reference)[1:]) if is_local else None
