"""Values of inputs by type: which are valid, as what numbers they count, what becomes of others (HTML 4.10.5.1)."""

import re
from collections.abc import Mapping
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

BLANKS: Final = "\t\n\f\r "
"""ASCII whitespace, which HTML strips."""
_NUMBER: Final = r"-?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d{1,4})?"
_DATE: Final = r"(?P<year>\d{4,})-(?P<month>\d\d)-(?P<day>\d\d)"
_TIME: Final = r"(?P<hour>[01]\d|2[0-3]):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d)(?:\.(?P<fraction>\d{1,3}))?)?"
_SCALED: Final[Mapping[str, re.Pattern[str]]] = {
    "number": re.compile(_NUMBER, re.ASCII),
    "range": re.compile(_NUMBER, re.ASCII),
    "date": re.compile(_DATE, re.ASCII),
    "month": re.compile(r"(?P<year>\d{4,})-(?P<month>\d\d)", re.ASCII),
    "week": re.compile(r"(?P<year>\d{4,})-W(?P<week>\d\d)", re.ASCII),
    "time": re.compile(_TIME, re.ASCII),
    "datetime-local": re.compile(f"{_DATE}[T ]{_TIME}", re.ASCII),
}
SCALED: Final = frozenset(_SCALED)
"""The types whose values are ordered, and so have a smallest and a largest value."""
FORMATS: Final[Mapping[str, str]] = {
    "number": "a number such as 3 or -1.5",
    "range": "a number such as 3 or -1.5",
    "date": "a date such as 2026-05-31",
    "month": "a month such as 2026-05",
    "week": "a week such as 2026-W22",
    "time": "a time such as 18:30",
    "datetime-local": "a date and time such as 2026-05-31T18:30",
    "color": "a colour such as #ff8800",
}
"""The syntax of a type's values, for messages."""
COLOUR: Final = re.compile(r"#[0-9a-fA-F]{6}")
_LARGEST_DOUBLE: Final = Decimal("1.8e308")
_DAY: Final = 86_400_000
_FIRST_DAY: Final = date(1970, 1, 1).toordinal()


def sanitise(kind: str, value: str, attributes: Mapping[str, str]) -> str:
    """Return the value that an input of a type has after it is set to a text (HTML 4.10.5.1)."""
    if kind in ("text", "search", "tel", "password", "url", "email"):
        value = value.replace("\r", "").replace("\n", "")
        if kind == "email" and "multiple" in attributes:
            return ",".join(part.strip(BLANKS) for part in value.split(","))
        return value.strip(BLANKS) if kind in ("url", "email") else value
    if kind == "color":
        return value.lower() if COLOUR.fullmatch(value) else "#000000"
    if kind == "file":
        return ""
    if kind == "range":
        return _sanitise_slider(value, attributes)
    if kind in SCALED and number_of(kind, value) is None:
        return ""
    if kind == "datetime-local" and (match := _SCALED[kind].fullmatch(value)):
        # With a T as the separator, and the shortest possible time (HTML 2.3.5.5).
        fraction = (match["fraction"] or "").rstrip("0")
        seconds = f":{match['second']}" if fraction or match["second"] not in (None, "00") else ""
        day = value[: match.start("hour") - 1]
        return f"{day}T{match['hour']}:{match['minute']}{seconds}" + (f".{fraction}" if fraction else "")
    return value


def _sanitise_slider(value: str, attributes: Mapping[str, str]) -> str:
    """Return a slider's value: the middle by default, on a step and within its limits (4.10.5.1.13)."""
    declared = {name: number_of("range", attributes.get(name, "")) for name in ("min", "max", "value")}
    smallest = Decimal(0) if declared["min"] is None else declared["min"]
    largest = Decimal(100) if declared["max"] is None else declared["max"]
    parsed = number_of("range", value)
    number = smallest + max(largest - smallest, Decimal(0)) / 2 if parsed is None else parsed
    number = max(smallest, min(number, largest)) if largest >= smallest else smallest
    step_text = attributes.get("step", "").strip()
    if step_text.lower() != "any":
        # Steps are counted from min or else from the initial value (4.10.5.3.8). The value is rounded to the nearest
        # step that is not too large, of two equally near ones the larger.
        step = number_of("number", step_text)
        step = Decimal(1) if step is None or step <= 0 else step
        base = next((limit for limit in (declared["min"], declared["value"]) if limit is not None), Decimal(0))
        rounded = base + ((number - base) / step).to_integral_value(ROUND_HALF_UP) * step
        number = rounded - step if number <= largest < rounded else rounded
    if number == parsed:
        return value
    return str(int(number)) if number == number.to_integral_value() else str(number.normalize()).lower()


def number_of(kind: str, value: str) -> Decimal | None:
    """Return a value as a number on the scale of its type, or None if it is invalid.

    Numbers are themselves; months are counted since 1970, dates, weeks and times in milliseconds.
    """
    form = _SCALED.get(kind)
    match = form.fullmatch(value) if form is not None and len(value) <= 100 else None
    if match is None:
        return None
    if kind in ("number", "range"):
        number = Decimal(value)
        return number if abs(number) < _LARGEST_DOUBLE else None
    parts = {name: int(digits) for name, digits in match.groupdict("0").items() if name != "fraction"}
    year, month = parts.get("year", 0), parts.get("month", 0)
    if kind == "month":
        return Decimal((year - 1970) * 12 + month - 1) if year > 0 and 1 <= month <= 12 else None
    clock = 0
    if "hour" in parts:
        clock = ((parts["hour"] * 60 + parts["minute"]) * 60 + parts["second"]) * 1000
        clock += int((match["fraction"] or "0").ljust(3, "0"))
    if kind == "time":
        return Decimal(clock)
    try:
        day = date.fromisocalendar(year, parts["week"], 1) if kind == "week" else date(year, month, parts["day"])
    except (ValueError, OverflowError):
        return None
    return Decimal((day.toordinal() - _FIRST_DAY) * _DAY + clock)
