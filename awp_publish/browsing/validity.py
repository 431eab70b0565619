"""Constraint validation (HTML 4.10.20): why a browser would show a message instead of sending a form.

Patterns are judged by an engine without backtracking, so neither a page nor an agent can make them slow; one that needs
backtracking counts as satisfied, as a broken one does in a browser. The server judges for itself anyway.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Final, TypeAlias

from awp_publish.browsing.addresses import is_absolute_url
from awp_publish.browsing.entries import BUTTONS, NEVER_SENT
from awp_publish.browsing.markup import Control, Markup, Place, kind_of
from awp_publish.browsing.patterns import compile_constraint
from awp_publish.browsing.sanitising import SCALED, bounds_of, number_of, step_of
from awp_publish.browsing.state import (
    Overlay,
    display_size,
    is_checked,
    options_of,
    selected_options,
    value_of,
)

_EMAIL: Final = re.compile(
    r"[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]{1,1000}"
    r"@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*"
)
_ONE_LINE: Final = frozenset({"text", "search", "tel", "url", "email", "password"})
_WITH_LENGTH: Final = _ONE_LINE | {"textarea"}
_REQUIRABLE: Final = _WITH_LENGTH | SCALED - {"range"}
_NEVER_READONLY: Final = frozenset({"checkbox", "radio", "file", "color", "range", "select"})

Check: TypeAlias = Callable[[Control, str, Mapping[str, str], str, Overlay, Markup], str | None]


def find_faults(form: Place, overlay: Overlay, markup: Markup) -> Iterator[tuple[Control, str]]:
    """The controls of a form that a browser would complain of, each with the first reason; a radio group once."""
    asked: set[str] = set()
    for control in markup.controls_of(form):
        is_radio = kind_of(control.node) == "radio"
        if _is_barred(control) or (is_radio and control.name in asked):
            continue
        if is_radio and control.name:  # a nameless one is a group of its own
            asked.add(control.name)
        reason = fault_of(control, overlay, markup)
        if reason is not None:
            yield control, reason


def _is_barred(control: Control) -> bool:
    """4.10.20.1: what is not looked at."""
    kind = kind_of(control.node)
    readonly = "readonly" in control.node.attributes and kind not in _NEVER_READONLY
    return kind in BUTTONS | NEVER_SENT | {"hidden"} or control.disabled or control.in_datalist or readonly


def fault_of(control: Control, overlay: Overlay, markup: Markup) -> str | None:
    """The first reason why a control's value is not valid."""
    kind, attributes = kind_of(control.node), control.node.attributes
    if kind in ("select", "checkbox", "radio", "file"):
        missing = "required" in attributes or kind == "radio"
        return _missing_choice(kind, control, overlay, markup) if missing else None
    value = value_of(control, overlay)
    if not value:
        return "a value is required" if "required" in attributes and kind in _REQUIRABLE else None
    reasons = (
        _type_fault(kind, value, attributes),
        _length_fault(control, kind, value, overlay),
        _pattern_fault(kind, value, attributes),
        _range_fault(kind, value, attributes),
    )
    return next((reason for reason in reasons if reason), None)


def _missing_choice(kind: str, control: Control, overlay: Overlay, markup: Markup) -> str | None:
    if kind == "file":
        return "a file is required, and files cannot be chosen here"
    if kind == "checkbox":
        return None if is_checked(control, overlay, markup) else "it must be checked"
    if kind == "radio":
        group = markup.radio_group(control)
        required = any("required" in member.node.attributes for member in group)
        answered = any(is_checked(member, overlay, markup) for member in group)
        return "one of the group must be selected" if required and not answered else None
    placeholder = _placeholder_option(control)
    chosen = [option for option in selected_options(control, overlay) if option.number != placeholder]
    return None if chosen else "an option must be selected"


def _placeholder_option(control: Control) -> int | None:
    """The first option of a one-line menu, when it is empty, says "please choose" (4.10.7)."""
    options = options_of(control.node)
    if "multiple" in control.node.attributes or display_size(control.node) != 1 or not options:
        return None
    is_child = any(child is options[0].node for child in control.node.children)
    return 0 if options[0].value == "" and is_child else None


def _type_fault(kind: str, value: str, attributes: Mapping[str, str]) -> str | None:
    if kind == "email":
        parts = value.split(",") if "multiple" in attributes else [value]
        return None if all(_EMAIL.fullmatch(part) for part in parts) else "it is not an email address"
    if kind == "url":
        return None if is_absolute_url(value) else "it is not an absolute URL"
    return None


def _length_fault(control: Control, kind: str, value: str, overlay: Overlay) -> str | None:
    """Lengths bind what a user wrote, not what the page came with (4.10.18.3); they count UTF-16 units."""
    if kind not in _WITH_LENGTH or control.place not in overlay:
        return None
    length = utf16_length(value)
    shortest, longest = (length_of(control.node.attributes.get(name)) for name in ("minlength", "maxlength"))
    if shortest is not None and length < shortest:
        return f"it is shorter than {shortest} characters"
    return f"it is longer than {longest} characters" if longest is not None and length > longest else None


def utf16_length(value: str) -> int:
    """The length as browsers count it."""
    return len(value.encode("utf-16-le", "surrogatepass")) // 2


def length_of(said: str | None) -> int | None:
    """A minlength or maxlength, None where there is none."""
    digits = (said or "").strip()
    return int(digits[:12]) if digits.isascii() and digits.isdigit() else None


def _pattern_fault(kind: str, value: str, attributes: Mapping[str, str]) -> str | None:
    said = attributes.get("pattern")
    if said is None or kind not in _ONE_LINE:
        return None
    matches = compile_constraint(said)
    parts = value.split(",") if kind == "email" and "multiple" in attributes else [value]
    if matches is None or all(matches(part) for part in parts):
        return None
    return attributes.get("title") or f"it does not match the pattern {said}"


def _range_fault(kind: str, value: str, attributes: Mapping[str, str]) -> str | None:
    number = number_of(kind, value)
    if number is None or kind == "range":
        return None
    smallest, largest = bounds_of(kind, attributes)
    if kind == "time" and smallest is not None and largest is not None and largest < smallest:
        outside = largest < number < smallest
        return f"it is not between {attributes['min']} and {attributes['max']}" if outside else None
    if smallest is not None and number < smallest:
        return f"it is less than {attributes.get('min', 0)}"
    if largest is not None and number > largest:
        return f"it is more than {attributes.get('max', 100)}"
    return None if _is_on_a_step(kind, number, attributes) else "it is not one of the allowed steps"


def _is_on_a_step(kind: str, number: Decimal, attributes: Mapping[str, str]) -> bool:
    """Beyond the precision of numbers there is nothing to complain of, as in browsers."""
    step, base = step_of(kind, attributes)
    try:
        return step is None or abs(number - base) % step == 0
    except InvalidOperation:  # so many steps cannot be counted
        return True
