"""Whether a text is a point in time, as ISO 8601 and RFC 3339 write it."""

from __future__ import annotations

import re

_DATE = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
_TIME = r"(?:[01]\d|2[0-3]):[0-5]\d(?::(?:[0-5]\d|60)(?:[.,]\d+)?)?"
_ZONE = r"(?:[Zz]|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)"
_TIMESTAMP = re.compile(rf"{_DATE}(?:[Tt ]{_TIME}{_ZONE}?)?", re.ASCII)


def is_timestamp(text: str) -> bool:
    """Say whether a text is a date, or a date and a time of day."""
    return _TIMESTAMP.fullmatch(text) is not None
