"""What an action is given and what it asks for: `Act` in, `Effect` out. Actions change nothing by themselves."""

from dataclasses import dataclass, field

from awp_publish.browsing.addresses import Address, BadAddress, parse_address
from awp_publish.browsing.browser import Browser, Visit
from awp_publish.browsing.errors import AwpError, refuse
from awp_publish.browsing.markup import Control, Markup
from awp_publish.browsing.page import Page
from awp_publish.browsing.shelf import Compiled
from awp_publish.browsing.state import Overlay
from awp_publish.browsing.targets import Target
from awp_publish.model import JsonObject


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
