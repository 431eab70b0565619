"""The page on which a runtime of actions.json acts: one protocol for pages in process and in a real browser.

A page finds, reads and acts. The runner resolves targets, chooses among matches and runs workflows, so that both kinds
of page give the same results.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from awp_publish.schema import JsonObject

MAX_FOUND: Final = 2_000
"""Elements that one query of a page returns at most."""
MAX_VALUES: Final = 100_000
"""Values that are read for one projection at most, because records may be nested."""
CODES: Final[Mapping[str, str]] = {
    "target_not_found": "no element matches the locator, or the element belongs to an earlier page (`stale`)",
    "multiple_targets": "several elements match, and the step needs exactly one: `candidates`",
    "target_not_visible": "the element at the point is hidden",
    "target_not_editable": "it is not a text field, or nothing has the focus",
    "target_not_ready": "it is disabled or read-only",
    "point_out_of_viewport": "no element is at the point",
    "insert_failed": "the field does not accept the text",
    "form_invalid": "a browser would not submit the form: `invalid`",
    "navigation_failed": "the link or the form leads nowhere, or to an error: `status`",
    "permission_denied": "the address is not one of the site",
    "invalid_selector": "the text is not a CSS selector",
    "invalid_input": "the arguments of the primitive are wrong: `errors`",
    "invalid_key": "there is no such key",
    "invalid_result": "an answer is nested too deeply",
    "timeout": "what was waited for did not appear",
    "assertion_failed": "an assertion of a step or a check does not hold: `assertion`",
    "capability_unavailable": "the page cannot do it: `capability`, `host`",
    "missing_handler": "the page has no function of the name",
    "state_document_unavailable": "no page is loaded",
    "transport_failed": "the tab was closed",
}
"""Codes of primitives, as the `cause` of a failed step."""
SCREENLESS_PRIMITIVES: Final = frozenset(
    (
        "pointer.move",
        "pointer.click",
        "pointer.double_click",
        "viewport.scroll",
        "keyboard.press",
        "browser.navigate",
        "page.fetch",
    )
)
"""Primitives that every page supports, even without a screen, or in a visitor's tab, where our events are not trusted.

Other primitives of the dictionary are `capability_unavailable` there.
"""


class PrimitiveError(Exception):
    """A primitive failed.

    `code` is one of the dictionary's (`target_not_found`, `target_not_editable`, `point_out_of_viewport`, `timeout`,
    ...) or the bridge's (`capability_unavailable`, `missing_handler`).
    """

    def __init__(self, code: str, message: str, **evidence: object) -> None:
        super().__init__(f"{code}: {message}")
        self.code, self.message = code, message
        self.evidence: JsonObject = evidence


@dataclass(frozen=True, slots=True)
class Box:
    """The position of an element, in the coordinates of `pointer.click`."""

    x: float
    y: float
    width: float
    height: float

    def describe(self) -> JsonObject:
        """Return the `bounding_box` of an answer."""
        return {"x": self.x, "y": self.y, "width": self.width, "height": self.height}

    def describe_centre(self) -> JsonObject:
        """Return the `clickable_center` of an answer."""
        return {"x": self.x + self.width / 2, "y": self.y + self.height / 2}


class FoundElement(Protocol):
    """An element as it was when it was found. Members may be computed lazily, but before the next act on the page."""

    @property
    def ref(self) -> str:
        """The path of child node indices from the body, `0/3/1`. The refs of descendants begin with this ref and `/`.

        It is valid until something acts on the page.
        """

    @property
    def tag(self) -> str:
        """The tag name in lower case."""

    @property
    def roles(self) -> frozenset[str]:
        """The ARIA role (explicit or implicit), and the names that a SOM has for it."""

    @property
    def name(self) -> str:
        """The accessible name, with white space collapsed."""

    @property
    def text(self) -> str:
        """The visible text, with white space collapsed."""

    @property
    def is_visible(self) -> bool:
        """True if the element is rendered: neither it nor an ancestor is hidden. Its size does not matter."""

    @property
    def is_enabled(self) -> bool:
        """False for a disabled control."""

    @property
    def box(self) -> Box:
        """The element's position."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """The records of a page for the `extract` of a projection (V1, state_projections).

    `records` has a value for each extract's id, `selector_counts` the number of its matches, `missing` the paths of
    required fields that were missing or empty: `books.2.title`. `innerText` is the visible text with white space
    collapsed.
    """

    records: JsonObject
    selector_counts: Mapping[str, int]
    missing: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class PageEvent:
    """An event of the page, not yet validated."""

    event: str
    detail: object
    url: str
    refs: Sequence[str] = field(default=())
    """The element at which it occurred, and its ancestors, innermost first."""


class LivePage(Protocol):
    """A page under control. Its methods raise only PrimitiveError, whatever the page or the map contains."""

    @property
    def host(self) -> str:
        """The name of its driver, for evidence: `in_process`, `chromium`."""

    @property
    def has_scripts(self) -> bool:
        """True for a page that can change by itself. If it is False, nothing waits or sleeps."""

    @property
    def primitives(self) -> frozenset[str]:
        """The primitives that the page supports besides those implemented with `find` and `insert`."""

    @property
    def url(self) -> str:
        """The present address, with its fragment."""

    async def title(self) -> str:
        """Return the title."""

    async def find(
        self,
        css: str | None,
        *,
        within: str | None = None,
        roles: frozenset[str] | None = None,
        text_contains: str | None = None,
    ) -> Sequence[FoundElement]:
        """Return the elements that a selector matches, or all without one, in document order, hidden ones too.

        `within` is the ref of an ancestor. `roles` and `text_contains` are hints: elements that do not match may be
        left out, since the runner checks again. Raises PrimitiveError `invalid_selector`.
        """

    async def closest(self, ref: str, css: str) -> FoundElement | None:
        """Return the nearest element, among this one and its ancestors, that a selector matches."""

    async def insert(self, ref: str | None, text: str, mode: str) -> JsonObject:
        """Type into an element (None: the focused one) by `append` or `replace`, and focus it.

        Returns `inserted`, `inserted_length`. Raises PrimitiveError `target_not_editable`, `target_not_found`.
        """

    async def perform(self, primitive: str, arguments: JsonObject) -> JsonObject:
        """Run one of `primitives`: pointer, keyboard, scrolling, clipboard, navigation. Returns its output.

        Consequences, such as the page behind a clicked link, are complete when this returns; a link that leads to an
        error, or nowhere, is `navigation_failed`. Raises PrimitiveError `capability_unavailable`, `target_not_found`,
        `point_out_of_viewport`, `navigation_failed`.
        """

    async def extract(self, extracts: Sequence[JsonObject]) -> Extraction:
        """Read the records of a projection."""

    async def invoke(self, handler: str, arguments: JsonObject) -> object:
        """Call a function of the page's own scripts by its dotted name. Raises PrimitiveError `missing_handler`."""

    async def html(self) -> str:
        """Return the present document, for evidence."""

    async def attach(self, attachment_id: str, ref: str, affordance: JsonObject) -> None:
        """Put an affordance beside an element. Raises PrimitiveError `capability_unavailable`."""

    async def detach(self, attachment_id: str) -> None:
        """Remove an affordance, if it exists."""

    async def attached(self) -> frozenset[str]:
        """Return the ids of the affordances that are in the page."""

    async def listen(self, events: frozenset[str]) -> None:
        """Collect events of these names from now on, also in pages that are loaded later."""

    async def take_events(self) -> Sequence[PageEvent]:
        """Return the events since the last call."""
