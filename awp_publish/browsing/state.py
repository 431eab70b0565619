"""What was done to the controls of a page: an overlay upon its HTML, so that a page at rest is its bytes and this.

Paths of elements are the keys. A control that is not in the overlay is as its HTML says.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from typing import Final, TypeAlias

from awp_publish.browsing.markup import Control, Markup, Place, kind_of
from awp_publish.pages.tree import Node

# --- The value sanitisation algorithm of each type of input (HTML 4.10.5.1) ---
# `sanitise` gives the value that a control really has; `number_of` what it counts as where it has a scale.

_FLOAT: Final = re.compile(r"-?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)
_COLOUR: Final = re.compile(r"#[0-9a-fA-F]{6}")
_TIME: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:\.(\d{1,3}))?)?", re.ASCII)
_DATE: Final = re.compile(r"(\d{4,})-(\d\d)-(\d\d)", re.ASCII)
_MONTH: Final = re.compile(r"(\d{4,})-(\d\d)", re.ASCII)
_WEEK: Final = re.compile(r"(\d{4,})-W(\d\d)", re.ASCII)
_DAY: Final = 86_400_000
_FIRST_MONDAY: Final = -3 * _DAY
_FIRST_DAY: Final = date(1970, 1, 1).toordinal()

SCALED: Final = frozenset({"number", "range", "date", "month", "week", "time", "datetime-local"})
"""The types whose values have an order, and so a smallest and a largest one."""
STEPS: Final[Mapping[str, tuple[int, int]]] = {
    "number": (1, 1),
    "range": (1, 1),
    "date": (1, _DAY),
    "month": (1, 1),
    "week": (1, 7 * _DAY),
    "time": (60, 1000),
    "datetime-local": (60, 1000),
}
"""The default step of each of them, and what one step counts in the unit of `number_of`."""
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
"""What a value of a type looks like, for messages."""


def sanitise(kind: str, value: str, attributes: Mapping[str, str]) -> str:
    """The value that an input of a type has when it is given this text."""
    if kind in ("text", "search", "tel", "password"):
        return _without_breaks(value)
    if kind in ("url", "email"):
        return _sanitise_addresses(kind, value, attributes)
    if kind == "color":
        return value.lower() if _COLOUR.fullmatch(value) else "#000000"
    if kind == "range":
        return _sanitise_range(value, attributes)
    if kind == "file":
        return ""
    if kind in SCALED:
        found = value if number_of(kind, value) is not None else ""
        return _normalise_local_time(found) if kind == "datetime-local" else found
    return value


def _normalise_local_time(value: str) -> str:
    """With a T between, and the shortest possible time (HTML 2.3.5.5)."""
    day, _, time = value.replace(" ", "T", 1).partition("T")
    found = _TIME.fullmatch(time)
    if found is None:
        return value
    fraction = (found[4] or "").rstrip("0")
    seconds = f":{found[3]}" if found[3] not in (None, "00") or fraction else ""
    return f"{day}T{found[1]}:{found[2]}{seconds}" + (f".{fraction}" if fraction else "")


def _without_breaks(value: str) -> str:
    return value.replace("\r", "").replace("\n", "")


def _sanitise_addresses(kind: str, value: str, attributes: Mapping[str, str]) -> str:
    value = _without_breaks(value).strip("\t\n\f\r ")
    if kind == "email" and "multiple" in attributes:
        return ",".join(part.strip("\t\n\f\r ") for part in value.split(","))
    return value


def _sanitise_range(value: str, attributes: Mapping[str, str]) -> str:
    """A slider always has a value: the middle where none is said, and never outside of its bounds (4.10.5.1.13)."""
    smallest, largest = bounds_of("range", attributes)
    assert smallest is not None
    assert largest is not None
    number = number_of("range", value)
    if number is None:
        number = smallest if largest < smallest else smallest + (largest - smallest) / 2
    number = max(smallest, min(number, largest)) if largest >= smallest else smallest
    number = _round_to_step(number, largest, attributes)
    return value if number == number_of("range", value) else _write_number(number)


def _round_to_step(number: Decimal, largest: Decimal, attributes: Mapping[str, str]) -> Decimal:
    """The nearest step that is not too large; of two equally near ones the larger."""
    step, base = step_of("range", attributes)
    if step is None:
        return number
    rounded = base + ((number - base) / step).to_integral_value(ROUND_HALF_UP) * step
    return rounded - step if number <= largest < rounded else rounded


def _write_number(number: Decimal) -> str:
    return str(int(number)) if number == number.to_integral_value() else str(number.normalize()).lower()


def bounds_of(kind: str, attributes: Mapping[str, str]) -> tuple[Decimal | None, Decimal | None]:
    """The smallest and the largest value that min and max allow; sliders have 0 and 100 by default."""
    smallest = number_of(kind, attributes.get("min", ""))
    largest = number_of(kind, attributes.get("max", ""))
    if kind == "range":
        return Decimal(0) if smallest is None else smallest, Decimal(100) if largest is None else largest
    return smallest, largest


def step_of(kind: str, attributes: Mapping[str, str]) -> tuple[Decimal | None, Decimal]:
    """How far apart values are (None: they may be anything), and from where they are counted (4.10.5.3.8).

    The count begins at min, else at the value that the page came with, else at zero (weeks: at a Monday).
    """
    default, unit = STEPS[kind]
    said = attributes.get("step", "").strip()
    step = number_of("number", said)
    step = (Decimal(default) if step is None or step <= 0 else step) * unit
    written = (number_of(kind, attributes.get(name, "")) for name in ("min", "value"))
    base = next((number for number in written if number is not None), None)
    zero = Decimal(_FIRST_MONDAY if kind == "week" else 0)
    return None if said.lower() == "any" else step, zero if base is None else base


def number_of(kind: str, value: str) -> Decimal | None:
    """What a value counts as: itself, milliseconds since 1970 or midnight, months; None for what is not one."""
    reader = _READERS.get(kind)
    if reader is None or len(value) > 100:
        return None
    try:
        return reader(value)
    except (ValueError, OverflowError):
        return None


def _read_number(value: str) -> Decimal | None:
    if _FLOAT.fullmatch(value) is None:
        return None
    number = Decimal(value)
    return number if abs(number) < Decimal("1.8e308") else None


def _read_date(value: str) -> Decimal | None:
    found = _DATE.fullmatch(value)
    return found and Decimal((date(*map(int, found.groups())).toordinal() - _FIRST_DAY) * _DAY)


def _read_month(value: str) -> Decimal | None:
    found = _MONTH.fullmatch(value)
    if found is None or not (1 <= int(found[2]) <= 12 and int(found[1]) > 0):
        return None
    return Decimal((int(found[1]) - 1970) * 12 + int(found[2]) - 1)


def _read_week(value: str) -> Decimal | None:
    found = _WEEK.fullmatch(value)
    return found and Decimal((date.fromisocalendar(int(found[1]), int(found[2]), 1).toordinal() - _FIRST_DAY) * _DAY)


def _read_time(value: str) -> Decimal | None:
    found = _TIME.fullmatch(value)
    if found is None:
        return None
    hours, minutes, seconds = int(found[1]), int(found[2]), int(found[3] or 0)
    return Decimal(((hours * 60 + minutes) * 60 + seconds) * 1000 + int((found[4] or "0").ljust(3, "0")))


def _read_local_time(value: str) -> Decimal | None:
    day, _, time = value.replace(" ", "T", 1).partition("T")
    days, milliseconds = _read_date(day), _read_time(time)
    return None if days is None or milliseconds is None else days + milliseconds


_READERS: Final = {
    "number": _read_number,
    "range": _read_number,
    "date": _read_date,
    "month": _read_month,
    "week": _read_week,
    "time": _read_time,
    "datetime-local": _read_local_time,
}


@dataclass(frozen=True, slots=True)
class Changed:
    """The state of one control that was changed; None is "as the HTML says".

    `selected` has the numbers of the chosen options of a select, `open` is for details.
    """

    value: str | None = None
    checked: bool | None = None
    selected: frozenset[int] | None = None
    open: bool | None = None


Overlay: TypeAlias = Mapping[Place, Changed]
PRISTINE: Final[Overlay] = {}


def changed(overlay: Overlay, place: Place, state: Changed) -> Overlay:
    """The overlay with one more change."""
    return {**overlay, place: state}


def value_of(control: Control, overlay: Overlay) -> str:
    """The value of an input or a textarea (HTML 4.10.5.4), sanitised as its type wants."""
    state = overlay.get(control.place)
    if state is not None and state.value is not None:
        return state.value
    kind = kind_of(control.node)
    if kind == "textarea":
        return read_text(control.node).replace("\r\n", "\n").replace("\r", "\n")
    return sanitise(kind, control.node.attributes.get("value", ""), control.node.attributes)


def is_checked(control: Control, overlay: Overlay, markup: Markup) -> bool:
    """Whether a checkbox or radio button is on; of several in a group that the HTML checks, the last one is.

    A choice in a group is noted for all of its members, so an untouched one is in an untouched group.
    """
    state = overlay.get(control.place)
    if state is not None and state.checked is not None:
        return state.checked
    if "checked" not in control.node.attributes:
        return False
    if kind_of(control.node) != "radio":
        return True
    group = reversed(markup.radio_group(control))
    return next(member for member in group if "checked" in member.node.attributes) is control


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a select: its number among them, value, text, label, and whether it can be chosen."""

    number: int
    node: Node
    value: str
    text: str
    label: str
    disabled: bool


def options_of(select: Node) -> list[Option]:
    """The options of a select: its children, and those of its groups (HTML 4.10.7)."""
    found: list[Option] = []
    waiting = [(child, False) for child in reversed(select.children)]
    while waiting:
        node, in_disabled = waiting.pop()
        disabled = in_disabled or "disabled" in node.attributes
        if node.tag == "option":
            text = " ".join(read_text(node).split())
            label = node.attributes.get("label") or text
            found.append(Option(len(found), node, node.attributes.get("value", text), text or label, label, disabled))
        elif node.tag:
            waiting.extend((child, disabled and node.tag == "optgroup") for child in reversed(node.children))
    return found


def selected_options(control: Control, overlay: Overlay) -> list[Option]:
    """The chosen options; a menu of one line shows its first enabled one when nothing is chosen (4.10.7)."""
    options = options_of(control.node)
    state = overlay.get(control.place)
    if state is not None and state.selected is not None:
        return [option for option in options if option.number in state.selected]
    said = [option for option in options if "selected" in option.node.attributes]
    if "multiple" in control.node.attributes:
        return said
    if said or display_size(control.node) > 1:
        return said[-1:]
    return [option for option in options if not option.disabled][:1]


def display_size(select: Node) -> int:
    """How many lines a select shows (4.10.7)."""
    size = select.attributes.get("size", "")
    if size.isascii() and size.isdigit() and int(size[:9]) > 0:
        return int(size[:9])
    return 4 if "multiple" in select.attributes else 1


def is_open(node: Node, place: Place, overlay: Overlay) -> bool:
    """Whether a details is open."""
    state = overlay.get(place)
    return "open" in node.attributes if state is None or state.open is None else state.open


def read_text(node: Node) -> str:
    """The text of an element and all in it, scripts left out, as an option's text is read."""
    parts: list[str] = []
    waiting = [node]
    while waiting:
        inner = waiting.pop()
        if not inner.tag:
            parts.append(inner.text)
        elif inner.tag != "script":
            waiting.extend(reversed(inner.children))
    return "".join(parts)
