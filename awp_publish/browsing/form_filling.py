"""`semantic.fill_form`: several fields of a form at once, all of them or none (paper 6.4)."""

from dataclasses import replace
from typing import Final

from awp_publish.browsing.acting import Act, Effect
from awp_publish.browsing.clicking import choose_radio, set_checked
from awp_publish.browsing.entries import BUTTONS, NEVER_SENT
from awp_publish.browsing.errors import AwpError, missing, refuse
from awp_publish.browsing.filling import as_text, choose_among, choose_options, write_value
from awp_publish.browsing.markup import Control, kind_of
from awp_publish.browsing.reading import read_flag, read_object
from awp_publish.browsing.sending import form_of, submit_implicitly
from awp_publish.browsing.targets import CERTAIN, Target

_NOT_FILLED: Final = BUTTONS | NEVER_SENT | {"hidden"}


def fill_form(act: Act) -> Effect:
    """Write `intent.fields` (or `intent.value`): an object from a field's id, name or label to its value.

    True and false are for checkboxes, an array for a list of several choices. `options.submit` sends the form.
    """
    fields = read_object(act.intent, "fields", "intent.") or read_object(act.intent, "value", "intent.")
    if fields is None:
        raise missing("intent.fields")
    if len(fields) > act.browser.limits.fields:
        refuse(f"At most {act.browser.limits.fields} fields can be filled in at once", fields=len(fields))
    known = _known_fields(act)
    overlay = act.overlay
    for name, value in fields.items():
        control = _find(name, known, act)
        overlay = _fill(control, value, _upon(control, act, replace(act, overlay=overlay))).overlay or overlay
    if read_flag(read_object(act.intent, "options", "intent.") or {}, "submit", "intent.options."):
        return submit_implicitly(form_of(act), act, overlay)
    return Effect(overlay)


def _known_fields(act: Act) -> dict[str, Control]:
    """The controls of the target's form: by element id, else by name, else by label in any case."""
    form = form_of(act)
    controls = [c for c in act.markup.controls.values() if c.form == form and kind_of(c.node) not in _NOT_FILLED]
    ids = {act.element_id(control): control for control in reversed(controls)}
    names = {control.name: control for control in reversed(controls)}
    labels = {_fold(act.compiled.label_of(known) or ""): control for known, control in ids.items()}
    every = [*labels.items(), *names.items(), *ids.items()]
    return {name: control for name, control in every if name}


def _find(wanted: str, known: dict[str, Control], act: Act) -> Control:
    found = known.get(wanted) or known.get(_fold(wanted))
    if found is None:
        details = {"field": wanted, "fields": list(known)[:100]}
        raise AwpError("NOT_FOUND", f"The form has no field {wanted[:100]!r}", details)
    return found


def _fold(label: str) -> str:
    return " ".join(label.split()).casefold()


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
    return choose_among(act.markup.radio_group(control), as_text(value, act), act)


def _as_flag(control: Control, value: object, act: Act) -> bool:
    if not isinstance(value, bool):
        refuse(f"The field {control.name!r} takes true or false", **act.target.describe())
    return value
