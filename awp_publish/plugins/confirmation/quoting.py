"""Texts that callers write, as a person sees them: quoted as JSON, cut, and with nothing invisible in them."""

import re
import unicodedata
from collections.abc import Callable
from typing import Final

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
