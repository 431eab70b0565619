"""Clicks, and the sending of forms (activation behaviour, HTML 6.4.4)."""

from awp_publish.browsing.act import NOTHING, Act, Effect
from awp_publish.browsing.addresses import Visit
from awp_publish.browsing.errors import refuse
from awp_publish.browsing.forms import is_submit_button, prepare_submission
from awp_publish.browsing.markup import Control, Place, kind_of, parent_of
from awp_publish.browsing.overlay import Changed, Overlay, is_checked, is_open
from awp_publish.browsing.validity import find_faults


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
    new_overlay = None if overlay is act.overlay else overlay
    if submission.method == "dialog":
        return Effect(new_overlay) if new_overlay else NOTHING
    page = act.page.address
    address = submission.address(act.resolve(submission.action) if submission.action else page.with_fragment(None))
    if submission.method == "get":
        if len(address.target) > limit:
            refuse(f"The form is larger than {limit} bytes")
        return Effect(new_overlay, Visit(address, referrer=page))
    content_type, body = submission.body()
    if len(body) > limit:
        refuse(f"The form is larger than {limit} bytes", size=len(body))
    return Effect(new_overlay, Visit(address, "POST", content_type, body, page))


def press_enter(form: Place | None, act: Act, overlay: Overlay) -> Effect:
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
        return activate(control, act)
    return press_enter(act.form(), act, act.overlay)


def click(act: Act) -> Effect:
    """Follow a link, press a button, toggle a box, open details. A click on anything else has no effect."""
    markup = act.markup
    for place, node in markup.ancestors(act.target.place):
        if place in markup.controls and node.tag != "fieldset":
            return activate(markup.controls[place], act)
        if node.tag in ("a", "area") and "href" in node.attributes:
            return Effect(visit=Visit(act.resolve(node.attributes["href"]), referrer=act.page.address), is_link=True)
        if node.tag == "summary" and node.parent is not None and node.parent.tag == "details":
            own = next(child for child in node.parent.children if child.tag == "summary")
            if own is node:  # only the first summary child of details is its summary
                return toggle_details(parent_of(place), act)
        if node.tag == "label":
            labelled = markup.labelled_by(place)
            return NOTHING if labelled is None else activate(labelled, act)
        if node.tag == "details" and place == act.target.place:
            return toggle_details(place, act)
    return NOTHING


def activate(control: Control, act: Act) -> Effect:
    """Do what a click on a control does. Text fields would only be focused."""
    act.require_enabled(control)
    kind = kind_of(control.node)
    if kind == "checkbox":
        return set_checkbox(control, act, checked=not is_checked(control, act.overlay, act.markup))
    if kind == "radio":
        return choose_radio(control, act)
    if control.form is None:
        return NOTHING
    if is_submit_button(control):
        return _send_form(control.form, control, act, act.overlay)
    if kind == "reset":  # all controls of the form return to their initial state (HTML 4.10.22)
        own = {member.place for member in act.markup.controls_of(control.form)}
        return Effect({place: state for place, state in act.overlay.items() if place not in own})
    return NOTHING


def set_checkbox(control: Control, act: Act, *, checked: bool) -> Effect:
    """Check or uncheck a checkbox."""
    return Effect(act.with_changes((control.place, Changed(checked=checked))))


def choose_radio(control: Control, act: Act) -> Effect:
    """Check a radio button, and uncheck the others of its group."""
    group = act.markup.radio_group(control)
    return Effect(act.with_changes(*((radio.place, Changed(checked=radio.place == control.place)) for radio in group)))


def toggle_details(place: Place, act: Act) -> Effect:
    node = act.markup.tree.node_at(place)
    was_open = node is not None and is_open(place, node, act.overlay)
    return Effect(act.with_changes((place, Changed(open=not was_open))))
