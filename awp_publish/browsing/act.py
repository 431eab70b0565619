"""`Act` and `Effect`: one action on one element of a loaded page, and what comes of it. Neither has side effects."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from awp_publish.browsing.addresses import BadAddress, Visit, WebAddress, parse_address
from awp_publish.browsing.errors import AwpError, missing, refuse
from awp_publish.browsing.markup import Control, Markup, Place
from awp_publish.browsing.overlay import Changed, Overlay
from awp_publish.browsing.parameters import read_flag, read_object
from awp_publish.browsing.targets import ResolvedTarget
from awp_publish.schema import JsonObject

if TYPE_CHECKING:
    from awp_publish.browsing.browser import Browser
    from awp_publish.browsing.compiled import Compiled
    from awp_publish.browsing.page import LoadedPage


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


_MAX_NUMBER: Final = 1e300
