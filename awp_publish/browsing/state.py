"""The state of a page's form controls: an overlay upon its HTML, so that a page at rest is its bytes and this.

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

BLANKS: Final = "\t\n\f\r "
"""ASCII whitespace, as HTML trims it."""

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
"""The types whose values have an order, and so a smallest and a largest one."""
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
"""The form of a type's values, for messages."""
COLOUR: Final = re.compile(r"#[0-9a-fA-F]{6}")

_LARGEST_DOUBLE: Final = Decimal("1.8e308")
_DAY: Final = 86_400_000
_FIRST_DAY: Final = date(1970, 1, 1).toordinal()


def sanitise(kind: str, value: str, attributes: Mapping[str, str]) -> str:
    """Return the value that an input of a type has when it is given this text (HTML 4.10.5.1)."""
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
    if kind == "datetime-local" and (found := _SCALED[kind].fullmatch(value)):
        # With a T between, and the shortest possible time (HTML 2.3.5.5).
        fraction = (found["fraction"] or "").rstrip("0")
        seconds = f":{found['second']}" if fraction or found["second"] not in (None, "00") else ""
        day = value[: found.start("hour") - 1]
        return f"{day}T{found['hour']}:{found['minute']}{seconds}" + (f".{fraction}" if fraction else "")
    return value


def _sanitise_slider(value: str, attributes: Mapping[str, str]) -> str:
    """A slider always has a value: the middle where none is said, on a step and within its bounds (4.10.5.1.13)."""
    said = {name: number_of("range", attributes.get(name, "")) for name in ("min", "max", "value")}
    smallest = Decimal(0) if said["min"] is None else said["min"]
    largest = Decimal(100) if said["max"] is None else said["max"]
    given = number_of("range", value)
    number = smallest + max(largest - smallest, Decimal(0)) / 2 if given is None else given
    number = max(smallest, min(number, largest)) if largest >= smallest else smallest
    step_text = attributes.get("step", "").strip()
    if step_text.lower() != "any":
        # Steps are counted from min, else from the value that the page came with (4.10.5.3.8). The nearest one that is
        # not too large is taken, of two equally near ones the larger.
        step = number_of("number", step_text)
        step = Decimal(1) if step is None or step <= 0 else step
        base = next((one for one in (said["min"], said["value"]) if one is not None), Decimal(0))
        rounded = base + ((number - base) / step).to_integral_value(ROUND_HALF_UP) * step
        number = rounded - step if number <= largest < rounded else rounded
    if number == given:
        return value
    return str(int(number)) if number == number.to_integral_value() else str(number.normalize()).lower()


def number_of(kind: str, value: str) -> Decimal | None:
    """Return a value's place on the scale of its type, None where it has none.

    Numbers are themselves; months are counted since 1970, dates, weeks and times in milliseconds.
    """
    form = _SCALED.get(kind)
    found = form.fullmatch(value) if form is not None and len(value) <= 100 else None
    if found is None:
        return None
    if kind in ("number", "range"):
        number = Decimal(value)
        return number if abs(number) < _LARGEST_DOUBLE else None
    parts = {name: int(digits) for name, digits in found.groupdict("0").items() if name != "fraction"}
    year, month = parts.get("year", 0), parts.get("month", 0)
    if kind == "month":
        return Decimal((year - 1970) * 12 + month - 1) if year > 0 and 1 <= month <= 12 else None
    clock = 0
    if "hour" in parts:
        clock = ((parts["hour"] * 60 + parts["minute"]) * 60 + parts["second"]) * 1000
        clock += int((found["fraction"] or "0").ljust(3, "0"))
    if kind == "time":
        return Decimal(clock)
    try:
        day = date.fromisocalendar(year, parts["week"], 1) if kind == "week" else date(year, month, parts["day"])
    except (ValueError, OverflowError):
        return None
    return Decimal((day.toordinal() - _FIRST_DAY) * _DAY + clock)


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


def value_of(control: Control, overlay: Overlay) -> str:
    """Return the value of an input or a textarea (HTML 4.10.5.4), sanitised as its type wants."""
    state = overlay.get(control.place)
    if state is not None and state.value is not None:
        return state.value
    kind = kind_of(control.node)
    if kind == "textarea":
        return read_text(control.node).replace("\r\n", "\n").replace("\r", "\n")
    return sanitise(kind, control.node.attributes.get("value", ""), control.node.attributes)


def is_checked(control: Control, overlay: Overlay, markup: Markup) -> bool:
    """True for a checkbox or radio button that is on; of several in a group that the HTML checks, the last one is.

    A choice in a group is noted for all of its members, so an untouched one is in an untouched group.
    """
    state = overlay.get(control.place)
    if state is not None and state.checked is not None:
        return state.checked
    if "checked" not in control.node.attributes:
        return False
    is_grouped = kind_of(control.node) == "radio" and control.name
    return not is_grouped or markup.checked[control.form, control.name] is control


@dataclass(frozen=True, slots=True)
class SelectOption:
    """One option of a select; `number` is its place among them."""

    number: int
    node: Node
    value: str
    text: str
    label: str
    disabled: bool


def options_of(select: Node) -> list[SelectOption]:
    """Return the options of a select: its children, and those of its groups (HTML 4.10.7)."""
    found: list[SelectOption] = []
    waiting = [(child, False) for child in reversed(select.children)]
    while waiting:
        node, in_disabled = waiting.pop()
        disabled = in_disabled or "disabled" in node.attributes
        if node.tag == "option":
            text = " ".join(read_text(node).split())
            label = node.attributes.get("label") or text
            found.append(
                SelectOption(len(found), node, node.attributes.get("value", text), text or label, label, disabled)
            )
        elif node.tag:
            waiting.extend((child, disabled and node.tag == "optgroup") for child in reversed(node.children))
    return found


def selected_options(control: Control, overlay: Overlay) -> list[SelectOption]:
    """Return the chosen options; a menu of one line shows its first enabled one when nothing is chosen (4.10.7)."""
    options = options_of(control.node)
    state = overlay.get(control.place)
    if state is not None and state.selected is not None:
        return [option for option in options if option.number in state.selected]
    chosen = [option for option in options if "selected" in option.node.attributes]
    if "multiple" in control.node.attributes:
        return chosen
    if chosen or display_size(control.node) > 1:
        return chosen[-1:]
    return [option for option in options if not option.disabled][:1]


def display_size(select: Node) -> int:
    """Return the number of lines that a select shows (4.10.7)."""
    size = select.attributes.get("size", "")
    if size.isascii() and size.isdigit() and int(size[:9]) > 0:
        return int(size[:9])
    return 4 if "multiple" in select.attributes else 1


def read_text(node: Node) -> str:
    """Return the text of an element and all in it, scripts left out, as an option's text is read."""
    parts: list[str] = []
    waiting = [node]
    while waiting:
        inner = waiting.pop()
        if not inner.tag:
            parts.append(inner.text)
        elif inner.tag != "script":
            waiting.extend(reversed(inner.children))
    return "".join(parts)
