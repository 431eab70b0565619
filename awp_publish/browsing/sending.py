"""Sending a form from a page: is it valid, where does it go, what is asked for."""

from awp_publish.browsing.acting import NOTHING, Act, Effect, require_enabled
from awp_publish.browsing.browser import Visit
from awp_publish.browsing.errors import refuse
from awp_publish.browsing.markup import Control, Place
from awp_publish.browsing.state import Overlay
from awp_publish.browsing.submission import default_button, is_submit_button, prepare_submission
from awp_publish.browsing.validity import find_faults
from awp_publish.model import JsonObject


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
