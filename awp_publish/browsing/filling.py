"""Values for controls: `type`, `clear`, `select`, `toggle`, and `semantic.fill_form` for a whole form (paper 6.4)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from awp_publish.browsing.act import Act, Effect
from awp_publish.browsing.activation import activate, choose_radio, press_enter, set_checkbox, toggle_details
from awp_publish.browsing.errors import AwpError, missing, refuse
from awp_publish.browsing.forms import NEVER_SENT
from awp_publish.browsing.markup import Control, kind_of
from awp_publish.browsing.overlay import Changed, Overlay, options_of
from awp_publish.browsing.parameters import read_object
from awp_publish.browsing.targets import CERTAIN, ResolvedTarget
from awp_publish.browsing.validity import length_of, utf16_length
from awp_publish.browsing.values import COLOUR, FORMATS, number_of, sanitise
from awp_publish.pages.input_types import UNSEEN

_WRITABLE: Final = frozenset(FORMATS) | {"text", "search", "tel", "url", "email", "password", "textarea"}
_MAX_CHOICES: Final = 100


def type_text(act: Act) -> Effect:
    """The action `type`: the value replaces the field's; with `options.submit`, Enter is pressed afterwards."""
    control = _writable_control(act)
    overlay = _write_value(control, act.value(), act)
    return press_enter(control.form, act, overlay) if act.presses_enter() else Effect(overlay)


def clear(act: Act) -> Effect:
    """The action `clear`: empty a field, or deselect all options of a multiple select."""
    control = act.own_control()
    if control is not None and kind_of(control.node) == "select" and "multiple" in control.node.attributes:
        act.require_enabled(control)
        return Effect(act.with_changes((control.place, Changed(selected=frozenset()))))
    return Effect(_write_value(_writable_control(act), "", act))


def select(act: Act) -> Effect:
    """The action `select`: options of a select by value or text, or one of a group of radio buttons."""
    control, value = act.own_control(), act.intent.get("value")
    kind = "" if control is None else kind_of(control.node)
    if control is not None and kind == "select":
        return Effect(_choose_options(control, value, act))
    if control is not None and kind == "radio":
        if value is None or value is True:
            act.require_enabled(control)
            return choose_radio(control, act)
        return _choose_among(act.markup.radio_group(control), act.text(value), act)
    radios = [c for c in act.markup.within(act.target.place) if kind_of(c.node) == "radio"]
    if not radios:
        raise act.refusal()
    return _choose_among(radios, act.value(), act)


def toggle(act: Act) -> Effect:
    """The action `toggle`: invert a checkbox or details; check a radio button."""
    control = act.own_control()
    if act.target.element["role"] == "details":
        around = act.markup.ancestors(act.target.place)
        return toggle_details(next(place for place, node in around if node.tag == "details"), act)
    if control is None or kind_of(control.node) not in ("checkbox", "radio"):
        raise act.refusal()
    return activate(control, act)


def _writable_control(act: Act) -> Control:
    control = act.own_control()
    if control is not None and kind_of(control.node) == "file":
        raise AwpError("UNSUPPORTED", "Files cannot be uploaded here", act.target.describe())
    if control is None or kind_of(control.node) not in _WRITABLE:
        raise act.refusal()
    return control


def _write_value(control: Control, value: str, act: Act) -> Overlay:
    """Return the overlay with a text in a field.

    A text that a browser would not let in, such as letters in a number field or too many characters, is refused.
    """
    act.require_enabled(control)
    kind, attributes = kind_of(control.node), control.node.attributes
    if "readonly" in attributes:
        raise AwpError("CONFLICT", "The element is read-only", act.target.describe())
    if kind in FORMATS:
        original, value = value, value.strip()
        if original and (COLOUR.fullmatch(value) if kind == "color" else number_of(kind, value)) is None:
            refuse(f"The field takes {FORMATS[kind]}", **act.target.describe(), input_type=kind)
    value = value.replace("\r\n", "\n").replace("\r", "\n") if kind == "textarea" else sanitise(kind, value, attributes)
    longest = length_of(attributes.get("maxlength"))
    if longest is not None and kind not in FORMATS and utf16_length(value) > longest:
        refuse(f"The field takes at most {longest} characters", **act.target.describe(), maxlength=longest)
    return act.with_changes((control.place, Changed(value=value)))


def _choose_options(control: Control, choice: object, act: Act) -> Overlay:
    """Return the overlay with options of a select chosen: one, or for a multiple select all in an array.

    An option is found by its value, then by its text or label, then by these ignoring case.
    """
    act.require_enabled(control)
    if choice is None:
        raise missing("intent.value")
    values = choice if isinstance(choice, list) else [choice]
    if "multiple" not in control.node.attributes and len(values) != 1:
        refuse("The list accepts one choice only", **act.target.describe())
    options = options_of(control.node)
    chosen = set()
    for value in values:
        text = act.text(value)
        folded = _fold(text)
        by_value = (option for option in options if option.value == text)
        by_text = (option for option in options if text in (option.text, option.label))
        by_fold = (option for option in options if folded in (option.text.casefold(), option.label.casefold()))
        chosen_option = next((option for same in (by_value, by_text, by_fold) for option in same), None)
        if chosen_option is None or chosen_option.disabled:
            why = "has no option" if chosen_option is None else "has a disabled option"
            enabled = [{"value": o.value, "text": o.text} for o in options[:_MAX_CHOICES] if not o.disabled]
            refuse(f"The list {why} {text[:100]!r}", **act.target.describe(), value=text, choices=enabled)
        chosen.add(chosen_option.number)
    return act.with_changes((control.place, Changed(selected=frozenset(chosen))))


def _choose_among(radios: Sequence[Control], value: str, act: Act) -> Effect:
    """Choose the radio button with this value or label."""
    choices = [
        {
            "value": radio.node.attributes.get("value", "on"),
            "text": act.compiled.label_of(act.element_id(radio)) or "",
        }
        for radio in radios
    ]
    by_value = (number for number, choice in enumerate(choices) if choice["value"] == value)
    folded = _fold(value)
    by_label = (number for number, choice in enumerate(choices) if folded and _fold(choice["text"]) == folded)
    position = next((number for same in (by_value, by_label) for number in same), None)
    if position is None:
        message = f"No radio button has the value {value[:100]!r}"
        refuse(message, **act.target.describe(), value=value, choices=choices[:_MAX_CHOICES])
    act.require_enabled(radios[position])
    return choose_radio(radios[position], act)


def _fold(label: str) -> str:
    return " ".join(label.split()).casefold()


_NOT_FILLED: Final = UNSEEN | NEVER_SENT


def fill_form(act: Act) -> Effect:
    """Fill in `intent.fields` (or `intent.value`): an object from a field's id, name or label to its value.

    True and false are for checkboxes, an array for a multiple select. `options.submit` submits the form.
    """
    fields = read_object(act.intent, "fields", "intent.") or read_object(act.intent, "value", "intent.")
    if fields is None:
        raise missing("intent.fields")
    if len(fields) > act.browser.limits.fields:
        refuse(f"At most {act.browser.limits.fields} fields can be filled in at once", fields=len(fields))
    form = act.form()
    controls = [c for c in act.markup.controls.values() if c.form == form and kind_of(c.node) not in _NOT_FILLED]
    controls.reverse()  # so that the first control with a name wins
    ids = {act.element_id(control): control for control in controls}
    labels = {_fold(act.compiled.label_of(element_id) or ""): control for element_id, control in ids.items()}
    names = {control.name: control for control in controls}
    by_name = {name: control for name, control in [*labels.items(), *names.items(), *ids.items()] if name}
    overlay = act.overlay
    for name, value in fields.items():
        control = by_name.get(name) or by_name.get(_fold(name))
        if control is None:
            details = {"field": name, "fields": list(by_name)[:100]}
            raise AwpError("NOT_FOUND", f"The form has no field {name[:100]!r}", details)
        # The same action with the control as its target, so that refusals name it.
        kind, element_id = kind_of(control.node), act.element_id(control)
        element = {"id": element_id, "role": kind, "text": act.compiled.label_of(element_id)}
        inner = replace(act, overlay=overlay, target=ResolvedTarget(element, control.place, CERTAIN))
        if kind == "checkbox":
            if not isinstance(value, bool):
                refuse(f"The field {control.name!r} takes true or false", **inner.target.describe())
            effect = set_checkbox(control, inner, checked=value)
        elif kind == "radio" and value is True:
            effect = choose_radio(control, inner)
        elif kind == "radio":
            effect = _choose_among(act.markup.radio_group(control), inner.text(value), inner)
        elif kind == "select":
            effect = Effect(_choose_options(control, value, inner))
        else:
            effect = Effect(_write_value(control, inner.text(value), inner))
        overlay = effect.overlay or overlay
    return press_enter(form, act, overlay) if act.presses_enter() else Effect(overlay)
