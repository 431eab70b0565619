"""`semantic.fill_form`: several fields of a form at once, all of them or none (paper 6.4)."""

from dataclasses import replace

from awp_publish.browsing.acting import Act, Effect
from awp_publish.browsing.clicking import choose_radio, set_checked
from awp_publish.browsing.errors import AwpError, missing, refuse
from awp_publish.browsing.filling import as_text, choose_among, choose_options, write_value
from awp_publish.browsing.markup import Control, kind_of
from awp_publish.browsing.reading import read_flag, read_object
from awp_publish.browsing.sending import form_of, submit_implicitly
from awp_publish.browsing.state import radio_group
from awp_publish.browsing.targets import CERTAIN, Target


def fill_form(act: Act) -> Effect:
    """Write `intent.fields` (or `intent.value`): an object from a field's id, name or label to its value.

    True and false are for checkboxes, an array for a list of several choices. `options.submit` sends the form.
    """
    fields = read_object(act.intent, "fields", "intent.") or read_object(act.intent, "value", "intent.")
    if fields is None:
        raise missing("intent.fields")
    if len(fields) > act.browser.limits.changed_controls:
        refuse("There are too many fields", param="intent.fields")
    overlay = act.overlay
    for name, value in fields.items():
        control = _find(name, act)
        overlay = _fill(control, value, _upon(control, act, replace(act, overlay=overlay))).overlay or overlay
    if read_flag(read_object(act.intent, "options", "intent.") or {}, "submit", "intent.options."):
        return submit_implicitly(form_of(act), act, overlay)
    return Effect(overlay)


def _find(wanted: str, act: Act) -> Control:
    """The control with this element id, else this name, else this label, in the form of the target."""
    form = form_of(act)
    controls = [c for c in act.markup.controls.values() if c.form == form and kind_of(c.node) != "hidden"]
    folded = " ".join(wanted.split()).casefold()
    ids = {control.place: act.element_id(control) for control in controls}
    labels = {place: (act.compiled.label_of(known) or "").casefold() for place, known in ids.items()}
    by_id = (control for control in controls if ids[control.place] == wanted)
    by_name = (control for control in controls if control.name == wanted)
    by_label = (control for control in controls if labels[control.place] == folded)
    found = next((control for found in (by_id, by_name, by_label) for control in found), None)
    if found is None:
        known = [{"element_id": ids[c.place], "name": c.name, "label": labels[c.place]} for c in controls[:100]]
        raise AwpError("NOT_FOUND", f"The form has no field {wanted[:100]!r}", {"field": wanted, "fields": known})
    return found


def _upon(control: Control, act: Act, later: Act) -> Act:
    """The same action with the control as its target, so that refusals name it."""
    element_id = act.element_id(control)
    element = {"id": element_id, "role": kind_of(control.node), "text": act.compiled.label_of(element_id)}
    return replace(later, target=Target(element, control.place, CERTAIN))


def _fill(control: Control, value: object, act: Act) -> Effect:
    kind = kind_of(control.node)
    if kind == "checkbox":
        return Effect(set_checked(control, _as_flag(control, value, act), act))
    if kind == "radio":
        return choose_radio(control, act) if value is True else _choose(control, value, act)
    if kind == "select":
        return Effect(choose_options(control, value, act))
    return Effect(write_value(control, as_text(value, act), act))


def _choose(control: Control, value: object, act: Act) -> Effect:
    return choose_among(radio_group(control, act.markup), as_text(value, act), act)


def _as_flag(control: Control, value: object, act: Act) -> bool:
    if not isinstance(value, bool):
        refuse(f"The field {control.name!r} takes true or false", **act.target.describe())
    return value
