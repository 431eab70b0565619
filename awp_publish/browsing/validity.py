"""Constraint validation of forms (HTML 4.10.20).

Required values, lengths, ranges and patterns are checked, so that an agent learns of mistakes at once; the site checks
the rest. The engine does not backtrack, so neither a page nor an agent can make it slow. A pattern that needs
backtracking counts as satisfied, as an invalid one does in a browser.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from awp_publish.browsing.forms import NEVER_SENT
from awp_publish.browsing.markup import Control, Markup, Place, kind_of
from awp_publish.browsing.overlay import Overlay, display_size, is_checked, options_of, selected_options, value_of
from awp_publish.browsing.patterns import compile_constraint
from awp_publish.browsing.values import SCALED, number_of
from awp_publish.pages.input_types import UNSEEN

_ONE_LINE: Final = frozenset({"text", "search", "tel", "url", "email", "password"})
_WITH_LENGTH: Final = _ONE_LINE | {"textarea"}
_REQUIRABLE: Final = _WITH_LENGTH | SCALED - {"range"}
_CHOICES: Final = frozenset({"select", "checkbox", "radio", "file"})
_NEVER_READONLY: Final = _CHOICES | {"color", "range"}


def find_faults(form: Place, overlay: Overlay, markup: Markup) -> Iterator[tuple[Control, str]]:
    """Find the controls of a form about which a browser would complain, with the first reason; a radio group once."""
    groups: set[str] = set()
    for control in markup.controls_of(form):
        kind, attributes = kind_of(control.node), control.node.attributes
        readonly = "readonly" in attributes and kind not in _NEVER_READONLY
        barred = kind in UNSEEN or kind in NEVER_SENT  # 4.10.20.1
        if barred or control.disabled or control.in_datalist or readonly:
            continue
        if kind == "radio" and control.name:  # without a name it is a group of its own
            if control.name in groups:
                continue
            groups.add(control.name)
        if kind in _CHOICES:
            reason = _missing_choice(control, kind, overlay, markup)
        elif value := value_of(control, overlay):
            written = control.place in overlay
            reason = _fault_of(kind, value, attributes, written=written)
        else:
            reason = "a value is required" if "required" in attributes and kind in _REQUIRABLE else None
        if reason is not None:
            yield control, reason


def _missing_choice(control: Control, kind: str, overlay: Overlay, markup: Markup) -> str | None:
    if kind == "radio":
        group = markup.radio_group(control)
        required = any("required" in member.node.attributes for member in group)
        answered = any(is_checked(member, overlay, markup) for member in group)
        return "one of the group must be selected" if required and not answered else None
    if "required" not in control.node.attributes:
        return None
    if kind == "file":
        return "a file is required, and files cannot be uploaded here"
    if kind == "checkbox":
        return None if is_checked(control, overlay, markup) else "it must be checked"
    # An empty first option of a one-line menu is a placeholder ("please choose") and not a choice (4.10.7).
    options, placeholder = options_of(control.node), None
    if options and "multiple" not in control.node.attributes and display_size(control.node) == 1:
        is_child = any(child is options[0].node for child in control.node.children)
        placeholder = 0 if options[0].value == "" and is_child else None
    chosen = [option for option in selected_options(control, overlay) if option.number != placeholder]
    return None if chosen else "an option must be selected"


def _fault_of(kind: str, value: str, attributes: Mapping[str, str], *, written: bool) -> str | None:
    """Return the first of length, pattern and range that a value violates."""
    # Length limits apply to what a user has written, not to the initial value (4.10.18.3).
    if written and kind in _WITH_LENGTH:
        length = utf16_length(value)
        shortest, longest = (length_of(attributes.get(name)) for name in ("minlength", "maxlength"))
        if shortest is not None and length < shortest:
            return f"it is shorter than {shortest} characters"
        if longest is not None and length > longest:
            return f"it is longer than {longest} characters"
    if "pattern" in attributes and kind in _ONE_LINE:
        matches = compile_constraint(attributes["pattern"])
        parts = value.split(",") if kind == "email" and "multiple" in attributes else [value]
        if matches is not None and not all(map(matches, parts)):
            return attributes.get("title") or f"it does not match the pattern {attributes['pattern']}"
    number = number_of(kind, value)
    if number is None or kind == "range":  # a slider is always within its bounds
        return None
    smallest, largest = (number_of(kind, attributes.get(name, "")) for name in ("min", "max"))
    if kind == "time" and smallest is not None and largest is not None and largest < smallest:  # across midnight
        outside = largest < number < smallest
        return f"it is not between {attributes['min']} and {attributes['max']}" if outside else None
    if smallest is not None and number < smallest:
        return f"it is less than {attributes['min']}"
    return f"it is more than {attributes['max']}" if largest is not None and number > largest else None


def utf16_length(value: str) -> int:
    """Return the length of a text in UTF-16 units, as browsers count it."""
    return len(value.encode("utf-16-le", "surrogatepass")) // 2


def length_of(attribute: str | None) -> int | None:
    """Return a minlength or maxlength, or None if there is none."""
    digits = (attribute or "").strip()
    return int(digits[:12]) if digits.isascii() and digits.isdigit() else None
