"""What an action is given and what it asks for: `Act` in, `Effect` out. Actions change nothing by themselves."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from awp_publish.browsing.addresses import Address, BadAddress, parse_address
from awp_publish.browsing.browser import Browser, Visit
from awp_publish.browsing.errors import AwpError, missing, read_flag, read_object, refuse
from awp_publish.browsing.forms import (
    BUTTONS,
    NEVER_SENT,
    default_button,
    find_faults,
    is_submit_button,
    length_of,
    prepare_submission,
    utf16_length,
)
from awp_publish.browsing.markup import Control, Markup, Place, kind_of
from awp_publish.browsing.page import Compiled, Page
from awp_publish.browsing.state import (
    FORMATS,
    Changed,
    Option,
    Overlay,
    changed,
    is_checked,
    is_open,
    number_of,
    options_of,
    sanitise,
)
from awp_publish.browsing.targets import CERTAIN, Target
from awp_publish.model import JsonObject
from awp_publish.pages.tree import Node


@dataclass(frozen=True, slots=True)
class Effect:
    """What an action does: the state of the controls after it (None: as before), and where it leads.

    `is_link`: a link that leads nowhere is no failure of the click (reference server); a form that fails is one.
    """

    overlay: Overlay | None = None
    visit: Visit | None = None
    is_link: bool = False


NOTHING = Effect()


@dataclass(frozen=True, slots=True)
class Act:
    """One action upon one element of a loaded page."""

    action: str
    target: Target
    intent: JsonObject
    page: Page = field(repr=False)
    compiled: Compiled = field(repr=False)
    overlay: Overlay = field(repr=False)
    browser: Browser = field(repr=False)

    @property
    def markup(self) -> Markup:
        """Controls, forms and labels of the page."""
        return self.compiled.markup

    def base_address(self) -> Address:
        """What relative addresses on the page are relative to (HTML 2.4.3)."""
        try:
            return parse_address(self.markup.base or "", self.page.address)
        except BadAddress:
            return self.page.address

    def element_id(self, control: Control) -> str | None:
        """The id under which the SOM shows a control, None where it does not."""
        return self.compiled.elements.get(control.place)

    def own_control(self) -> Control | None:
        """The form control that the target is or is in, or that the label is for which it is or is in."""
        for place, _ in self.markup.ancestors(self.target.place):
            if place in self.markup.controls:
                return self.markup.controls[place]
            if place in self.markup.labels:
                return self.markup.labelled_by(place)
        return None


def refuse_action(act: Act) -> AwpError:
    """The refusal of an action that the element does not know, saying which it does."""
    element = act.target.element
    return AwpError(
        "INVALID_REQUEST",
        f"A {element['role']} cannot be used with {act.action}",
        {"action": act.action, **act.target.describe(), "actions": element.get("actions") or []},
    )


def require_enabled(control: Control, act: Act) -> None:
    """A disabled control does nothing, and browsers say nothing; here it is said. CONFLICT: the page may change it."""
    if control.disabled:
        raise AwpError("CONFLICT", "The element is disabled", act.target.describe())


def require_writable(control: Control, act: Act) -> None:
    """A control that is disabled or read-only takes no input."""
    require_enabled(control, act)
    if "readonly" in control.node.attributes:
        raise AwpError("CONFLICT", "The element is read-only", act.target.describe())


def require_room(act: Act, more: int = 1) -> None:
    """One page remembers only so many changed controls."""
    if len(act.overlay) + more > act.browser.limits.changed_controls:
        refuse(f"More than {act.browser.limits.changed_controls} controls of the page are changed")


# --- Sending a form from a page: is it valid, where does it go, what is asked for ---


def send_form(form: Place, submitter: Control | None, act: Act, overlay: Overlay) -> Effect:
    """Submit a form, by one of its buttons or by none, in the state that `overlay` says.

    Raises:
        AwpError: INVALID_REQUEST naming every field for which a browser would show a message and send nothing;
            PERMISSION_DENIED where the form goes to another site.
    """
    _require_valid(form, submitter, act, overlay)
    submission = prepare_submission(form, submitter, overlay, act.markup, act.page.charset)
    kept = None if overlay is act.overlay else overlay
    if submission.method == "dialog":
        return Effect(kept) if kept else NOTHING
    page = act.page.address.with_fragment(None)
    action = act.browser.resolve(submission.action, act.base_address()) if submission.action else page
    address = submission.address(action)
    limits = act.browser.limits
    if submission.method == "get":
        if len(address.target) > limits.form_bytes:
            refuse(f"The form is larger than {limits.form_bytes} bytes")
        return Effect(kept, Visit(address, referrer=act.page.address))
    content_type, body = submission.body()
    if len(body) > limits.form_bytes:
        refuse(f"The form is larger than {limits.form_bytes} bytes", size=len(body))
    return Effect(kept, Visit(address, "POST", content_type, body, act.page.address))


def submit_implicitly(form: Place | None, act: Act, overlay: Overlay) -> Effect:
    """What Enter in a field does (HTML 4.10.21.2): the form's first button is pressed, or the form is sent without."""
    if form is None:
        refuse("The element is in no form, so there is nothing to submit", **act.target.describe())
    button = default_button(form, act.markup)
    if button is not None:
        require_enabled(button, act)
    return send_form(form, button, act, overlay)


def submit(act: Act) -> Effect:
    """The action `submit`: by the button that is meant, else the form around or of the element."""
    control = act.own_control()
    if control is not None and is_submit_button(control):
        require_enabled(control, act)
        return NOTHING if control.form is None else send_form(control.form, control, act, act.overlay)
    return submit_implicitly(form_of(act), act, act.overlay)


def form_of(act: Act) -> Place | None:
    """The form that the target belongs to: as a control, or by being in it."""
    control = act.own_control()
    if control is not None:
        return control.form
    places = (place for place, _ in act.markup.ancestors(act.target.place))
    return next((place for place in places if place in act.markup.forms), None)


def _require_valid(form: Place, submitter: Control | None, act: Act, overlay: Overlay) -> None:
    lenient = "novalidate" in act.markup.forms[form].attributes
    if lenient or (submitter is not None and "formnovalidate" in submitter.node.attributes):
        return
    faults = [_describe(control, reason, act) for control, reason in find_faults(form, overlay, act.markup)]
    if faults:
        said = "; ".join(f"{fault['label'] or fault['name'] or 'a field'}: {fault['reason']}" for fault in faults)
        refuse(f"The form is not valid and was not submitted: {said}", invalid=faults)


def _describe(control: Control, reason: str, act: Act) -> JsonObject:
    element_id = act.element_id(control)
    label = act.compiled.label_of(element_id)
    return {"element_id": element_id, "name": control.name, "label": label, "reason": reason}


# --- What a click does (activation behaviour, HTML 6.4.4) ---


def click(act: Act) -> Effect:
    """Follow a link, press a button, flip a box, open details; what reacts to nothing is clicked without effect."""
    for place, node in act.markup.ancestors(act.target.place):
        if place in act.markup.controls and node.tag != "fieldset":
            return activate(act.markup.controls[place], act)
        if node.tag in ("a", "area") and "href" in node.attributes:
            return _follow(node, act)
        if node.tag == "summary" and _is_own_summary(node):
            return toggle_details(place.rpartition("/")[0], act)
        if node.tag == "label":
            labelled = act.markup.labelled_by(place)
            return NOTHING if labelled is None else activate(labelled, act)
        if node.tag == "details" and place == act.target.place:
            return toggle_details(place, act)
    return NOTHING


def _is_own_summary(node: Node) -> bool:
    """Whether a summary is the one of its details: the first of its children of that name."""
    parent = node.parent
    if parent is None or parent.tag != "details":
        return False
    return next((child for child in parent.children if child.tag == "summary"), None) is node


def _follow(link: Node, act: Act) -> Effect:
    address = act.browser.resolve(link.attributes["href"], act.base_address())
    return Effect(visit=Visit(address, referrer=act.page.address), is_link=True)


def activate(control: Control, act: Act) -> Effect:
    """What a control does when it is clicked; fields of text are only given the focus."""
    require_enabled(control, act)
    behave = _BEHAVIOURS.get(kind_of(control.node))
    return NOTHING if behave is None else behave(control, act)


def _submit(control: Control, act: Act) -> Effect:
    return NOTHING if control.form is None else send_form(control.form, control, act, act.overlay)


def _reset(control: Control, act: Act) -> Effect:
    """Everything in the form is as the page said it (HTML 4.10.22)."""
    if control.form is None:
        return NOTHING
    own = {member.place for member in act.markup.controls_of(control.form)}
    return Effect({place: state for place, state in act.overlay.items() if place not in own})


def flip_checkbox(control: Control, act: Act) -> Effect:
    """A checkbox the other way round."""
    return Effect(set_checked(control, not is_checked(control, act.overlay, act.markup), act))


def set_checked(control: Control, checked: bool, act: Act) -> Overlay:
    """The overlay with a checkbox on or off."""
    require_room(act)
    return changed(act.overlay, control.place, Changed(checked=checked))


def choose_radio(control: Control, act: Act) -> Effect:
    """A radio button on, and the others of its group off."""
    group = act.markup.radio_group(control)
    require_room(act, len(group))
    chosen = {member.place: Changed(checked=member.place == control.place) for member in group}
    return Effect({**act.overlay, **chosen})


def toggle_details(place: Place, act: Act) -> Effect:
    """A details open or closed, the other way round."""
    node = act.markup.node_at(place)
    require_room(act)
    now_open = node is not None and is_open(node, place, act.overlay)
    return Effect(changed(act.overlay, place, Changed(open=not now_open)))


_BEHAVIOURS: Final[Mapping[str, Callable[[Control, Act], Effect]]] = {
    "submit": _submit,
    "image": _submit,
    "reset": _reset,
    "checkbox": flip_checkbox,
    "radio": choose_radio,
}


# --- Giving values to controls: type, clear, select, toggle ---

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


# --- `semantic.fill_form`: several fields of a form at once, all of them or none (paper 6.4) ---

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


# --- The actions of `page.act`, as one table ---

Verb: TypeAlias = Callable[[Act], Effect]

VERBS: Final[Mapping[str, Verb]] = {
    "click": click,
    "type": type_text,
    "select": select,
    "toggle": toggle,
    "clear": clear,
    "submit": submit,
    "submit_form": submit,
    "fill_form": fill_form,
}
"""Beside these there is `scroll`, which acts upon no element."""
SCROLL: Final = "scroll"
ACTIONS: Final = [*VERBS, SCROLL]
RESERVED: Final = ("intent.", "skill.")
"""Namespaces of the draft for what is more than one action upon one page; the site's actions are in skills.invoke."""
NAMESPACES: Final = ("primitive.", "semantic.")
FORM_WIDE: Final = frozenset({"submit", "submit_form", "fill_form"})
"""The actions that a whole form can be the target of."""


def plain_name(action: str) -> str:
    """The action without its namespace (paper 6.4): `primitive.click` is `click`."""
    for namespace in NAMESPACES:
        action = action.removeprefix(namespace)
    return action
