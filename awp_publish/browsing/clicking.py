"""What a click does (activation behaviour, HTML 6.4.4): it goes up from the element to the first that reacts to it."""

from collections.abc import Callable, Mapping
from typing import Final

from awp_publish.browsing.acting import NOTHING, Act, Effect, require_enabled, require_room
from awp_publish.browsing.browser import Visit
from awp_publish.browsing.markup import Control, Place, kind_of
from awp_publish.browsing.sending import send_form
from awp_publish.browsing.state import Changed, Overlay, changed, is_checked, is_open
from awp_publish.pages.tree import Node


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
