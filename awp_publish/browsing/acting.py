"""`page.act`: finding the element that an intent means (paper 6.3), and acting on it: `Act` in, `Effect` out.

Targets are searched in the page's full SOM, so that elements left out of a smaller one can be reached: by id, by role
and text, by a CSS selector, and then by the fallbacks. The draft's spellings are accepted too: `element_ref` for `ref`,
and `query` around text, role and css. Actions have no side effects of their own; they return an `Effect`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from awp_publish.browsing.addresses import BadAddress, Visit, WebAddress, parse_address
from awp_publish.browsing.errors import AwpError, missing, read_flag, read_object, read_text, refuse
from awp_publish.browsing.forms import (
    BUTTONS,
    NEVER_SENT,
    find_faults,
    is_submit_button,
    length_of,
    prepare_submission,
    utf16_length,
)
from awp_publish.browsing.markup import (
    COLOUR,
    FORMATS,
    Changed,
    Control,
    Markup,
    Overlay,
    Place,
    elements_of,
    is_checked,
    is_open,
    kind_of,
    number_of,
    options_of,
    parent_of,
    regions_of,
    sanitise,
)
from awp_publish.pages.selection import Budget
from awp_publish.schema import JsonObject

if TYPE_CHECKING:
    from awp_publish.browsing.page import Browser, Compiled, LoadedPage

CERTAIN: Final = 1.0
_WHOLE_TEXT: Final = 0.95
_SELECTOR: Final = 0.9
_PART_OF_TEXT: Final = 0.8
_ROLE_ONLY: Final = 0.6
_MAX_SHOWN: Final = 200
"""Characters of a target's text that are reported (MVP 5.4)."""


@dataclass(frozen=True, slots=True)
class ResolvedTarget:
    """A resolved target: the SOM element, its place in the page, and the confidence (0 to 1, paper 6.5)."""

    element: JsonObject
    place: Place
    confidence: float

    def describe(self) -> JsonObject:
        """Return the `resolved` member of an answer."""
        text = self.element.get("text")
        shown = f"{text[:_MAX_SHOWN]}..." if isinstance(text, str) and len(text) > _MAX_SHOWN else text
        return {"element_id": self.element["id"], "role": self.element["role"], "text": shown}

    def describe_certainty(self) -> JsonObject:
        """Return the `target_resolved` member of an answer (draft, Result Object)."""
        return {"element_id": self.element["id"], "confidence": self.confidence}


def resolve_target(
    target: JsonObject, compiled: Compiled, max_fallbacks: int, *, action: str = "", forms: bool = False
) -> ResolvedTarget:
    """Return the element that a target means, trying at most so many fallbacks.

    Of several elements with the same text, one that supports the `action` is preferred. With `forms` a form's region
    may be the target too: then the result is the first element in it.

    Raises:
        AwpError: NOT_FOUND with every strategy tried in its details; INVALID_REQUEST for an empty target.
    """
    attempts: list[dict[str, object]] = []
    # The targets still to be tried, the next one last, each with its name for messages. A fallback's own fallbacks come
    # before its siblings.
    waiting: list[tuple[object, str]] = [(target, "intent.target")]
    fallbacks = 0
    while waiting:
        wanted, name = waiting.pop()
        if not isinstance(wanted, Mapping):
            refuse(f"Invalid param: {name} must be an object or an array of objects", param=name)
        if fallbacks > max_fallbacks:
            refuse("intent.target has too many fallbacks", param="intent.target")
        where = f"{name}."
        wanted = {**(read_object(wanted, "query", where) or {}), **wanted}
        ref = read_text(wanted, "ref", where) or read_text(wanted, "element_ref", where)
        text, role, css = (read_text(wanted, member, where) for member in ("text", "role", "css"))
        found = None
        if ref is not None:
            attempts.append({"ref": ref, "strategy": "direct_lookup"})
            soms = (som for som in map(compiled.som, Budget) if ref in som.places)
            known = ((one, som) for som in soms for one in elements_of(som.document) if one["id"] == ref)
            found = next((ResolvedTarget(one, som.places[ref], CERTAIN) for one, som in known), None)
            if found is None and forms:
                found = _in_form(compiled, CERTAIN, ref=ref)
        if found is None and (text is not None or role is not None):
            attempts.append({"strategy": "semantic_query", "text": text, "role": role})
            found = _by_text_and_role(text, role, action, compiled, forms)
        if found is None and css is not None:
            try:
                places = compiled.tree.select(css)
                attempts.append({"strategy": "css", "css": css, "matches": len(places)})
            except ValueError as error:
                places = []
                attempts.append({"strategy": "css", "css": css, "reason": str(error)})
            found = next((near for place in places if (near := _nearest(place, compiled))), None)
        if found is not None:
            return found
        fallback = wanted.get("fallback")
        if fallback is not None:
            several = fallback if isinstance(fallback, list) else [fallback]
            waiting.extend((one, where + "fallback") for one in reversed(several))
        fallbacks += 1
    if not attempts:
        refuse("intent.target is empty: it needs ref, text, role, css or fallback", target=dict(target))
    details = {**attempts[0], "target": dict(target), "attempted": attempts}
    raise AwpError("NOT_FOUND", "Target element not found", details)


def _by_text_and_role(
    text: str | None, role: str | None, action: str, compiled: Compiled, forms: bool
) -> ResolvedTarget | None:
    """Return the best element with the role whose text or label contains the text, ignoring case.

    The best is the first that supports the action and has exactly this text, then one that supports the action, then
    one with exactly this text: of a paragraph and a link in it, the link. Between equals, a text comes before a label.
    """
    som = compiled.som(Budget.FULL)
    wanted = None if text is None else " ".join(text.lower().split())
    candidates = [e for e in elements_of(som.document) if role in (None, e["role"]) and e["id"] in som.places]
    best: tuple[tuple[bool, bool], ResolvedTarget] | None = None
    for member in ("text", "label"):
        for element in candidates:
            found_text = " ".join(str(element.get(member) or "").lower().split())
            if wanted is not None and (not found_text or wanted not in found_text):
                continue
            is_whole = found_text == wanted
            sure = _ROLE_ONLY if wanted is None else _WHOLE_TEXT if is_whole else _PART_OF_TEXT
            known = element.get("actions")
            rank = (isinstance(known, list) and action in known, is_whole)
            if best is None or rank > best[0]:
                best = rank, ResolvedTarget(element, som.places[str(element["id"])], sure)
    if best is not None:
        return best[1]
    if not forms or role not in (None, "form"):
        return None
    return _in_form(compiled, _PART_OF_TEXT, label=wanted or "")


def _in_form(
    compiled: Compiled, confidence: float, *, ref: str | None = None, label: str = ""
) -> ResolvedTarget | None:
    """Return the first element of a form given by its region's id or a part of its label."""
    som = compiled.som(Budget.FULL)
    for region in regions_of(som.document):
        is_meant = region["id"] == ref if ref is not None else label in str(region.get("label") or "").lower()
        if region["role"] == "form" and is_meant:
            inside = (element for element in elements_of({"regions": [region]}) if element["id"] in som.places)
            places = ((element, som.places[str(element["id"])]) for element in inside)
            return next((ResolvedTarget(element, place, confidence) for element, place in places), None)
    return None


def _nearest(place: Place, compiled: Compiled) -> ResolvedTarget | None:
    """Return the element made from a place or its nearest ancestor, or else the last one inside of the place.

    The original place is kept, because a click there bubbles up from it.
    """
    mapped = place
    while mapped and mapped not in compiled.elements:
        mapped = parent_of(mapped)
    if not mapped:
        mapped = place = compiled.last_inside.get(place, "")
    element = compiled.by_id.get(compiled.elements.get(mapped, ""))
    return None if element is None else ResolvedTarget(element, place, _SELECTOR)


@dataclass(frozen=True, slots=True)
class Effect:
    """The result of an action: the new state of the controls (None: unchanged), and the visit that it causes.

    With `is_link`, a visit that fails does not fail the click (reference server); for a form it does.
    """

    overlay: Overlay | None = None
    visit: Visit | None = None
    is_link: bool = False


NOTHING = Effect()


@dataclass(frozen=True, slots=True)
class Act:
    """One action on one element of a loaded page."""

    action: str
    target: ResolvedTarget
    intent: JsonObject
    page: LoadedPage = field(repr=False)
    compiled: Compiled = field(repr=False)
    overlay: Overlay = field(repr=False)
    browser: Browser = field(repr=False)

    @property
    def markup(self) -> Markup:
        """Controls, forms and labels of the page."""
        return self.compiled.markup

    def resolve(self, text: str) -> WebAddress:
        """Resolve an address in the page to one of this site (base: HTML 2.4.3)."""
        base = self.page.address
        with suppress(BadAddress):
            base = parse_address(self.markup.base or "", base)
        return self.browser.resolve(text, base)

    def element_id(self, control: Control) -> str | None:
        """Return the id of a control's SOM element, or None if the SOM does not have it."""
        return self.compiled.elements.get(control.place)

    def own_control(self) -> Control | None:
        """Return the form control that the target is, is inside of, or labels."""
        for place, _ in self.markup.ancestors(self.target.place):
            if place in self.markup.controls:
                return self.markup.controls[place]
            if place in self.markup.labels:
                return self.markup.labelled_by(place)
        return None

    def form(self) -> Place | None:
        """Return the form to which the target belongs, as a control or by being inside of it."""
        control = self.own_control()
        if control is not None:
            return control.form
        places = (place for place, _ in self.markup.ancestors(self.target.place))
        return next((place for place in places if place in self.markup.forms), None)

    def refusal(self) -> AwpError:
        """Return the refusal of an action that the element does not support, with those that it does."""
        element = self.target.element
        details = {"action": self.action, **self.target.describe(), "actions": element.get("actions") or []}
        return AwpError("INVALID_REQUEST", f"A {element['role']} cannot be used with {self.action}", details)

    def require_enabled(self, control: Control) -> None:
        """Refuse a disabled control, which browsers silently ignore. CONFLICT, because the page may change it."""
        if control.disabled:
            raise AwpError("CONFLICT", "The element is disabled", self.target.describe())

    def with_changes(self, *changes: tuple[Place, Changed]) -> Overlay:
        """Return the overlay with more changes. The number of changed controls in a page is limited."""
        limit = self.browser.limits.changed_controls
        if len(self.overlay) + len(changes) > limit:
            refuse(f"More than {limit} controls of the page are changed")
        return {**self.overlay, **dict(changes)}

    def value(self) -> str:
        """Return the value of the intent as text. Raises AwpError if it is missing."""
        value = self.intent.get("value")
        if value is None:
            raise missing("intent.value")
        return self.text(value)

    def text(self, value: object) -> str:
        """Return a text or a number as the text of a control. Raises AwpError if it is too long."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MAX_NUMBER
        if not isinstance(value, str) and not is_number:
            refuse("Invalid param: intent.value must be a string", param="intent.value")
        text, limit = str(value), self.browser.limits.value_length
        if len(text) > limit:
            refuse(f"The value is longer than {limit} characters", param="intent.value")
        return text

    def presses_enter(self) -> bool:
        """Return True if `options.submit` demands that the form is sent after the values are entered."""
        return read_flag(read_object(self.intent, "options", "intent.") or {}, "submit", "intent.options.")


# --- Sending a form, and clicks (activation behaviour, HTML 6.4.4) ---


def _send_form(form: Place, submitter: Control | None, act: Act, overlay: Overlay) -> Effect:
    """Submit a form, by one of its buttons or by none, in the state of `overlay`.

    Raises:
        AwpError: INVALID_REQUEST with every field for which a browser would show a message instead of sending;
            PERMISSION_DENIED if the form goes to another site.
    """
    markup, limit = act.markup, act.browser.limits.form_bytes
    lenient = submitter is not None and "formnovalidate" in submitter.node.attributes
    if not lenient and "novalidate" not in markup.forms[form].attributes:
        faults = []
        for control, reason in find_faults(form, overlay, markup):
            element_id = act.element_id(control)
            label = act.compiled.label_of(element_id)
            faults.append({"element_id": element_id, "name": control.name, "label": label, "reason": reason})
        if faults:
            why = "; ".join(f"{fault['label'] or fault['name'] or 'a field'}: {fault['reason']}" for fault in faults)
            refuse(f"The form is not valid and was not submitted: {why}", invalid=faults)
    submission = prepare_submission(form, submitter, overlay, markup, act.page.charset)
    kept = None if overlay is act.overlay else overlay
    if submission.method == "dialog":
        return Effect(kept) if kept else NOTHING
    page = act.page.address
    address = submission.address(act.resolve(submission.action) if submission.action else page.with_fragment(None))
    if submission.method == "get":
        if len(address.target) > limit:
            refuse(f"The form is larger than {limit} bytes")
        return Effect(kept, Visit(address, referrer=page))
    content_type, body = submission.body()
    if len(body) > limit:
        refuse(f"The form is larger than {limit} bytes", size=len(body))
    return Effect(kept, Visit(address, "POST", content_type, body, page))


def _press_enter(form: Place | None, act: Act, overlay: Overlay) -> Effect:
    """Do what Enter in a field does (HTML 4.10.21.2): press the form's first button, or submit it without one."""
    if form is None:
        refuse("The element does not belong to a form, so there is nothing to submit", **act.target.describe())
    button = next((control for control in act.markup.controls_of(form) if is_submit_button(control)), None)
    if button is not None:
        act.require_enabled(button)
    return _send_form(form, button, act, overlay)


def submit(act: Act) -> Effect:
    """The action `submit`: by the target if it is a submit button, otherwise the form around or of the element."""
    control = act.own_control()
    if control is not None and is_submit_button(control):
        return _activate(control, act)
    return _press_enter(act.form(), act, act.overlay)


def click(act: Act) -> Effect:
    """Follow a link, press a button, toggle a box, open details. A click on anything else has no effect."""
    markup = act.markup
    for place, node in markup.ancestors(act.target.place):
        if place in markup.controls and node.tag != "fieldset":
            return _activate(markup.controls[place], act)
        if node.tag in ("a", "area") and "href" in node.attributes:
            return Effect(visit=Visit(act.resolve(node.attributes["href"]), referrer=act.page.address), is_link=True)
        if node.tag == "summary" and node.parent is not None and node.parent.tag == "details":
            own = next(child for child in node.parent.children if child.tag == "summary")
            if own is node:  # only the first summary child of details is its summary
                return _toggle_details(parent_of(place), act)
        if node.tag == "label":
            labelled = markup.labelled_by(place)
            return NOTHING if labelled is None else _activate(labelled, act)
        if node.tag == "details" and place == act.target.place:
            return _toggle_details(place, act)
    return NOTHING


def _activate(control: Control, act: Act) -> Effect:
    """Do what a click on a control does. Text fields would only be focused."""
    act.require_enabled(control)
    kind = kind_of(control.node)
    if kind == "checkbox":
        return _set_checkbox(control, act, checked=not is_checked(control, act.overlay, act.markup))
    if kind == "radio":
        return _choose_radio(control, act)
    if control.form is None:
        return NOTHING
    if is_submit_button(control):
        return _send_form(control.form, control, act, act.overlay)
    if kind == "reset":  # all controls of the form return to their initial state (HTML 4.10.22)
        own = {member.place for member in act.markup.controls_of(control.form)}
        return Effect({place: state for place, state in act.overlay.items() if place not in own})
    return NOTHING


def _set_checkbox(control: Control, act: Act, *, checked: bool) -> Effect:
    """Check or uncheck a checkbox."""
    return Effect(act.with_changes((control.place, Changed(checked=checked))))


def _choose_radio(control: Control, act: Act) -> Effect:
    """Check a radio button, and uncheck the others of its group."""
    group = act.markup.radio_group(control)
    return Effect(act.with_changes(*((one.place, Changed(checked=one.place == control.place)) for one in group)))


def _toggle_details(place: Place, act: Act) -> Effect:
    node = act.markup.tree.node_at(place)
    was_open = node is not None and is_open(place, node, act.overlay)
    return Effect(act.with_changes((place, Changed(open=not was_open))))


# --- Giving values to controls: type, clear, select, toggle ---

_WRITABLE: Final = frozenset(FORMATS) | {"text", "search", "tel", "url", "email", "password", "textarea"}
_MAX_NUMBER: Final = 1e300
_MAX_CHOICES: Final = 100


def type_text(act: Act) -> Effect:
    """The action `type`: the value replaces the field's; with `options.submit`, Enter is pressed afterwards."""
    control = _writable_control(act)
    overlay = _write_value(control, act.value(), act)
    return _press_enter(control.form, act, overlay) if act.presses_enter() else Effect(overlay)


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
            return _choose_radio(control, act)
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
        return _toggle_details(next(place for place, node in around if node.tag == "details"), act)
    if control is None or kind_of(control.node) not in ("checkbox", "radio"):
        raise act.refusal()
    return _activate(control, act)


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
        given, value = value, value.strip()
        if given and (COLOUR.fullmatch(value) if kind == "color" else number_of(kind, value)) is None:
            refuse(f"The field takes {FORMATS[kind]}", **act.target.describe(), input_type=kind)
    value = value.replace("\r\n", "\n").replace("\r", "\n") if kind == "textarea" else sanitise(kind, value, attributes)
    longest = length_of(attributes.get("maxlength"))
    if longest is not None and kind not in FORMATS and utf16_length(value) > longest:
        refuse(f"The field takes at most {longest} characters", **act.target.describe(), maxlength=longest)
    return act.with_changes((control.place, Changed(value=value)))


def _choose_options(control: Control, wanted: object, act: Act) -> Overlay:
    """Return the overlay with options of a select chosen: one, or for a multiple select all in an array.

    An option is found by its value, then by its text or label, then by these ignoring case.
    """
    act.require_enabled(control)
    if wanted is None:
        raise missing("intent.value")
    values = wanted if isinstance(wanted, list) else [wanted]
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
        found = next((option for same in (by_value, by_text, by_fold) for option in same), None)
        if found is None or found.disabled:
            why = "has no option" if found is None else "has a disabled option"
            enabled = [{"value": o.value, "text": o.text} for o in options[:_MAX_CHOICES] if not o.disabled]
            refuse(f"The list {why} {text[:100]!r}", **act.target.describe(), value=text, choices=enabled)
        chosen.add(found.number)
    return act.with_changes((control.place, Changed(selected=frozenset(chosen))))


def _choose_among(radios: Sequence[Control], wanted: str, act: Act) -> Effect:
    """Choose the radio button with this value or label."""
    choices = [
        {
            "value": radio.node.attributes.get("value", "on"),
            "text": act.compiled.label_of(act.element_id(radio)) or "",
        }
        for radio in radios
    ]
    by_value = (number for number, choice in enumerate(choices) if choice["value"] == wanted)
    folded = wanted.strip().casefold()
    by_label = (number for number, choice in enumerate(choices) if choice["text"].casefold() == folded)
    found = next((number for same in (by_value, by_label) for number in same), None)
    if found is None:
        message = f"No radio button has the value {wanted[:100]!r}"
        refuse(message, **act.target.describe(), value=wanted, choices=choices[:_MAX_CHOICES])
    act.require_enabled(radios[found])
    return _choose_radio(radios[found], act)


def _fold(label: str) -> str:
    return " ".join(label.split()).casefold()


# --- `semantic.fill_form`: several fields of a form at once, all of them or none (paper 6.4) ---

_NOT_FILLED: Final = BUTTONS | NEVER_SENT | {"hidden"}


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
    known = {name: control for name, control in [*labels.items(), *names.items(), *ids.items()] if name}
    overlay = act.overlay
    for name, value in fields.items():
        control = known.get(name) or known.get(_fold(name))
        if control is None:
            details = {"field": name, "fields": list(known)[:100]}
            raise AwpError("NOT_FOUND", f"The form has no field {name[:100]!r}", details)
        # The same action with the control as its target, so that refusals name it.
        kind, element_id = kind_of(control.node), act.element_id(control)
        element = {"id": element_id, "role": kind, "text": act.compiled.label_of(element_id)}
        inner = replace(act, overlay=overlay, target=ResolvedTarget(element, control.place, CERTAIN))
        if kind == "checkbox":
            if not isinstance(value, bool):
                refuse(f"The field {control.name!r} takes true or false", **inner.target.describe())
            effect = _set_checkbox(control, inner, checked=value)
        elif kind == "radio" and value is True:
            effect = _choose_radio(control, inner)
        elif kind == "radio":
            effect = _choose_among(act.markup.radio_group(control), inner.text(value), inner)
        elif kind == "select":
            effect = Effect(_choose_options(control, value, inner))
        else:
            effect = Effect(_write_value(control, inner.text(value), inner))
        overlay = effect.overlay or overlay
    return _press_enter(form, act, overlay) if act.presses_enter() else Effect(overlay)


VERBS: Final[Mapping[str, Callable[[Act], Effect]]] = {
    "click": click,
    "type": type_text,
    "select": select,
    "toggle": toggle,
    "clear": clear,
    "submit": submit,
    "submit_form": submit,
    "fill_form": fill_form,
}
"""The actions of `page.act`, besides `scroll`, which acts on no element."""
SCROLL: Final = "scroll"
ACTIONS: Final = [*VERBS, SCROLL]
RESERVED: Final = ("intent.", "skill.")
"""Namespaces of the draft for more than one action on one page. The site's own actions are called by skills.invoke."""
_NAMESPACES: Final = ("primitive.", "semantic.")
FORM_WIDE: Final = frozenset({"submit", "submit_form", "fill_form"})
"""Actions whose target can be a whole form."""


def plain_name(action: str) -> str:
    """Return an action without its namespace (paper 6.4): `click` for `primitive.click`."""
    for namespace in _NAMESPACES:
        action = action.removeprefix(namespace)
    return action
