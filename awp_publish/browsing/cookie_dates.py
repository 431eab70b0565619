"""The date of a cookie's Expires (RFC 6265, 5.1.1): forgiving by rule, not by luck."""

import re
from datetime import UTC, datetime
from typing import Final

_TOKENS: Final = re.compile(r"[0-9A-Za-z:\x7f-\uffff]+")
_TIME: Final = re.compile(r"(\d{1,2}):(\d{1,2}):(\d{1,2})(?:\D.*)?", re.ASCII)
_DAY: Final = re.compile(r"(\d{1,2})(?:\D.*)?", re.ASCII)
_YEAR: Final = re.compile(r"(\d{2,4})(?:\D.*)?", re.ASCII)
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def parse_cookie_date(text: str) -> float | None:
    """Unix seconds, or None for what is not a date."""
    found: dict[str, tuple[int, ...]] = {}
    for token in _TOKENS.findall(text):
        _read_token(token, found)
    if found.keys() < {"time", "day", "month", "year"}:
        return None
    (year,), (month,), (day,) = found["year"], found["month"], found["day"]
    hours, minutes, seconds = found["time"]
    year += 1900 if 70 <= year <= 99 else 2000 if year <= 69 else 0
    try:
        return datetime(year, month, day, hours, minutes, seconds, tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        return None


def _read_token(token: str, found: dict[str, tuple[int, ...]]) -> None:
    """What a token is: the first of time, day, month and year that it can be and that is still missing."""
    for name, pattern in (("time", _TIME), ("day", _DAY)):
        match = pattern.fullmatch(token)
        if match and name not in found:
            found[name] = tuple(map(int, match.groups()))
            return
    if "month" not in found and token[:3].lower() in _MONTHS:
        found["month"] = (_MONTHS.index(token[:3].lower()) + 1,)
        return
    match = _YEAR.fullmatch(token)
    if match and "year" not in found:
        found["year"] = (int(match[1]),)
