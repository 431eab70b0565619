"""Giving values to controls: type, clear, select, toggle."""

import re
from collections.abc import Sequence
from typing import Final

from awp_publish.browsing.acting import Act, Effect, refuse_action, require_enabled, require_room, require_writable
from awp_publish.browsing.clicking import choose_radio, flip_checkbox, toggle_details
from awp_publish.browsing.errors import AwpError, missing, refuse
from awp_publish.browsing.markup import Control, kind_of
from awp_publish.browsing.reading import read_flag, read_object
from awp_publish.browsing.sanitising import FORMATS, number_of, sanitise
from awp_publish.browsing.sending import submit_implicitly
from awp_publish.browsing.state import Changed, Option, Overlay, changed, options_of
from awp_publish.browsing.validity import length_of, utf16_length

WRITABLE: Final = frozenset(FORMATS) | {"text", "search", "tel", "url", "email", "password", "textarea"}
_LARGEST: Final = 1e300
_COLOUR: Final = re.compile(r"#[0-9a-fA-F]{6}")


def type_text(act: Act) -> Effect:
    """The action `type`: the value replaces what is in the field; `options.submit` presses Enter after it."""
    control = _writable_control(act)
    overlay = write_value(control, read_value(act), act)
    if read_flag(read_object(act.intent, "options", "intent.") or {}, "submit", "intent.options."):
        return submit_implicitly(control.form, act, overlay)
    return Effect(overlay)


def clear(act: Act) -> Effect:
    """The action `clear`: an empty field; in a list of several choices none is left."""
    control = act.own_control()
    if control is not None and kind_of(control.node) == "select" and "multiple" in control.node.attributes:
        require_enabled(control, act)
        return Effect(_remember(control, Changed(selected=frozenset()), act))
    return Effect(write_value(_writable_control(act), "", act))


def select(act: Act) -> Effect:
    """The action `select`: options of a list by value or text, or one of a group of radio buttons."""
    control = act.own_control()
    kind = "" if control is None else kind_of(control.node)
    if control is not None and kind == "select":
        return Effect(choose_options(control, act.intent.get("value"), act))
    if control is not None and kind == "radio":
        return choose_in_group(control, act.intent.get("value"), act)
    radios = [c for c in act.markup.within(act.target.place) if kind_of(c.node) == "radio"]
    if not radios:
        raise refuse_action(act)
    return choose_among(radios, read_value(act), act)


def toggle(act: Act) -> Effect:
    """The action `toggle`: a checkbox or details the other way round; a radio button on."""
    control = act.own_control()
    if act.target.element["role"] == "details":
        around = act.markup.ancestors(act.target.place)
        return toggle_details(next(place for place, node in around if node.tag == "details"), act)
    kind = "" if control is None else kind_of(control.node)
    if control is None or kind not in ("checkbox", "radio"):
        raise refuse_action(act)
    require_enabled(control, act)
    return flip_checkbox(control, act) if kind == "checkbox" else choose_radio(control, act)


def _writable_control(act: Act) -> Control:
    control = act.own_control()
    if control is not None and kind_of(control.node) == "file":
        raise AwpError("UNSUPPORTED", "Files cannot be chosen here", act.target.describe())
    if control is None or kind_of(control.node) not in WRITABLE:
        raise refuse_action(act)
    return control


def read_value(act: Act) -> str:
    """The value of an intent: text, or a number as its text."""
    value = act.intent.get("value")
    if value is None:
        raise missing("intent.value")
    return as_text(value, act)


def as_text(value: object, act: Act) -> str:
    """A value as the text that a control would have, within bounds."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST
    if not isinstance(value, str) and not is_number:
        refuse("Invalid param: intent.value must be a string", param="intent.value")
    text = str(value)
    if len(text) > act.browser.limits.value_length:
        refuse(f"The value is longer than {act.browser.limits.value_length} characters", param="intent.value")
    return text


def write_value(control: Control, value: str, act: Act) -> Overlay:
    """The overlay with a text in a field.

    A browser would keep a letter out of a field of numbers, and a character too many out of any: that is refused.
    """
    require_writable(control, act)
    kind, attributes = kind_of(control.node), control.node.attributes
    if kind in FORMATS and value and not _fits(kind, value.strip()):
        refuse(f"The field takes {FORMATS[kind]}", **act.target.describe(), input_type=kind)
    value = value.strip() if kind in FORMATS else value
    value = value.replace("\r\n", "\n").replace("\r", "\n") if kind == "textarea" else sanitise(kind, value, attributes)
    longest = length_of(attributes.get("maxlength"))
    if longest is not None and kind not in FORMATS and utf16_length(value) > longest:
        refuse(f"The field takes at most {longest} characters", **act.target.describe(), maxlength=longest)
    return _remember(control, Changed(value=value), act)


def _fits(kind: str, value: str) -> bool:
    return bool(_COLOUR.fullmatch(value)) if kind == "color" else number_of(kind, value) is not None


def choose_options(control: Control, wanted: object, act: Act) -> Overlay:
    """The overlay with options of a select chosen: one, or as many as an array says where several may be."""
    require_enabled(control, act)
    if wanted is None:
        raise missing("intent.value")
    several = "multiple" in control.node.attributes
    values = wanted if isinstance(wanted, list) else [wanted]
    if not several and len(values) != 1:
        refuse("The list takes one choice", **act.target.describe())
    options = options_of(control.node)
    chosen = frozenset(_pick(options, as_text(value, act), act).number for value in values)
    return _remember(control, Changed(selected=chosen), act)


def _pick(options: Sequence[Option], wanted: str, act: Act) -> Option:
    """By value, else by text or label, else by text or label in any case."""
    folded = " ".join(wanted.split()).casefold()
    tests = (
        [option for option in options if option.value == wanted],
        [option for option in options if wanted in (option.text, option.label)],
        [option for option in options if folded in (option.text.casefold(), option.label.casefold())],
    )
    found = next((option for found in tests for option in found), None)
    if found is None or found.disabled:
        why = "has no option" if found is None else "has a disabled option"
        choices = [{"value": option.value, "text": option.text} for option in options[:100] if not option.disabled]
        refuse(f"The list {why} {wanted[:100]!r}", **act.target.describe(), value=wanted, choices=choices)
    return found


def choose_in_group(control: Control, wanted: object, act: Act) -> Effect:
    """A radio button, or, where a value says so, another one of its group."""
    if wanted is None or wanted is True:
        require_enabled(control, act)
        return choose_radio(control, act)
    return choose_among(act.markup.radio_group(control), as_text(wanted, act), act)


def choose_among(radios: Sequence[Control], wanted: str, act: Act) -> Effect:
    """The radio button with this value or label."""
    labels = {radio.place: act.compiled.label_of(act.element_id(radio)) or "" for radio in radios}
    by_value = [radio for radio in radios if radio.node.attributes.get("value", "on") == wanted]
    by_label = [radio for radio in radios if labels[radio.place].casefold() == wanted.strip().casefold()]
    found = next(iter(by_value + by_label), None)
    if found is None:
        choices = [{"value": r.node.attributes.get("value", "on"), "text": labels[r.place]} for r in radios[:100]]
        refuse(
            f"No radio button has the value {wanted[:100]!r}", **act.target.describe(), value=wanted, choices=choices
        )
    require_enabled(found, act)
    return choose_radio(found, act)


def _remember(control: Control, state: Changed, act: Act) -> Overlay:
    require_room(act)
    return changed(act.overlay, control.place, state)
