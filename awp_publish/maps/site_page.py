"""A page of the site for a runtime of actions.json, read and acted upon in process, without a screen and scripts.

The positions of elements are made up from their order in the document, so that workflows that click at coordinates
work. A point is valid only in the page in which it was reported; in a later page it hits nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

from awp_publish.browsing.errors import AwpError
from awp_publish.browsing.markup import Control, Place, kind_of, parent_of
from awp_publish.browsing.overlay import value_of
from awp_publish.browsing.page import LoadedPage, Steps
from awp_publish.browsing.targets import CERTAIN, ResolvedTarget
from awp_publish.maps.element_index import ElementIndex
from awp_publish.maps.extractor import extract_records
from awp_publish.maps.keys import read_chord
from awp_publish.maps.live_page import (
    MAX_FOUND,
    SCREENLESS_PRIMITIVES,
    Box,
    Extraction,
    FoundElement,
    PageEvent,
    PrimitiveError,
)
from awp_publish.maps.page_view import HEIGHT, WIDTH, PageView
from awp_publish.maps.roles import roles_of
from awp_publish.maps.tab_order import next_in_tab_order
from awp_publish.pages.input_types import BUTTONS, WRITTEN
from awp_publish.pages.roles import role_of
from awp_publish.schema import JsonObject

if TYPE_CHECKING:
    from awp_publish.browsing.session import Session

Drive: TypeAlias = Callable[[Steps], Awaitable[JsonObject]]
"""Runs a method of a session, with all the requests that it makes. Raises AwpError."""

BAND: Final = 1_000
"""How far the boxes of a page are from those of the page before."""

_MAX_HTML: Final = 100_000
_TYPED: Final = WRITTEN | {"textarea"}
_CHOOSING_KEYS: Final = frozenset(("ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End"))
_PRESSED_BY_SPACE: Final = BUTTONS | {"checkbox", "radio"}


class SiteElement:
    """One element of a page in process (`FoundElement`). Its text and state are those of the present."""

    def __init__(self, page: SitePage, index: ElementIndex, number: int) -> None:
        self._page, self._index, self.number = page, index, number
        self.node = index.node(number)

    @property
    def ref(self) -> str:
        return self._index.places[self.number]

    @property
    def tag(self) -> str:
        return self.node.tag

    @cached_property
    def roles(self) -> frozenset[str]:
        return roles_of(self.tag, self.node.attributes)

    @cached_property
    def name(self) -> str:
        """Its accessible name: a label, otherwise its text."""
        text = "" if self.control is not None and self.tag != "button" else self.text
        return self._index.names.label(self.node.at, text) or text[:200]

    @cached_property
    def text(self) -> str:
        """Its visible text, or the value of a control."""
        return self._page.view().text_of(self.number)

    @property
    def is_visible(self) -> bool:
        return self._page.view().shows(self.number)

    @property
    def is_enabled(self) -> bool:
        if self.control is not None:
            return not self.control.disabled
        return self.node.attributes.get("aria-disabled", "").lower() != "true"

    @property
    def control(self) -> Control | None:
        """The form control of this element, if it is one."""
        return self._index.compiled.markup.controls.get(self.ref) if self.tag != "fieldset" else None

    @property
    def box(self) -> Box:
        return self._page.view().box_of(self.number)


class SitePage:
    """One page of a session, in process (`LivePage`). `drive` makes its requests to the site."""

    host: Final = "in_process"
    has_scripts: Final = False
    primitives: Final = SCREENLESS_PRIMITIVES

    def __init__(self, session: Session, drive: Drive) -> None:
        self._tab, self._browser = session.tab(), session.browser
        self._drive = drive
        self._state = 0
        self._loaded: LoadedPage | None = None
        self._index: ElementIndex | None = None
        self._view: PageView | None = None
        self._focus: Place | None = None
        self._scroll = [0.0, 0.0]

    @property
    def url(self) -> str:
        """The present address, or "" before the first page."""
        return self._tab.url or ""

    async def title(self) -> str:
        return self._tab.title

    async def html(self) -> str:
        """Return the document as it was received, at most 100,000 characters."""
        page = self._page()
        return page.html.decode(page.charset or "utf-8", "replace")[:_MAX_HTML]

    def _page(self) -> LoadedPage:
        """Return the present page. If it has changed, begin a new state without focus."""
        entry = self._tab.history.current
        if entry is None or entry.page is None:
            raise PrimitiveError("state_document_unavailable", "No page is loaded.")
        if entry.page is not self._loaded:
            self._loaded, self._index, self._focus = entry.page, None, None
            self._state += 1
            self._scroll = [0.0, 0.0]
        return entry.page

    def view(self) -> PageView:
        """Return the present page with its controls as they are now. Raises PrimitiveError if none is loaded."""
        page, entry = self._page(), self._tab.history.current
        assert entry is not None
        if self._index is None:
            self._index = ElementIndex(self._browser.cache.compiled(page))
            focused = self._index.select("[autofocus]") if b"autofocus" in page.html.lower() else []
            self._focus = self._index.places[focused[0]] if focused else None
        if self._view is None or self._view.index is not self._index or self._view.overlay is not entry.overlay:
            self._view = PageView(self._index, entry.overlay, self._state * BAND)
        return self._view

    async def find(
        self,
        css: str | None,
        *,
        within: str | None = None,
        roles: frozenset[str] | None = None,
        text_contains: str | None = None,
    ) -> Sequence[FoundElement]:
        view = self.view()
        index = view.index
        first, last = 0, len(index.places)
        if within is not None:
            number = index.number_at.get(within)
            if number is None:
                raise PrimitiveError("target_not_found", "The element is no longer on the page.")
            first, last = number + 1, index.ends[number]
        elements: list[SiteElement] = []
        if css is not None:
            numbers = view.select(css, max(first - 1, 0))
            for number in numbers[bisect_left(numbers, first) : bisect_left(numbers, last)]:
                at = index.in_tree[number]
                if roles is not None and not roles & roles_of(index.tree.tags[at], index.tree.attributes[at]):
                    continue
                element = SiteElement(self, index, number)
                if text_contains is None or text_contains in element.text:
                    elements.append(element)
                if len(elements) >= MAX_FOUND:
                    break
            return elements
        number = first
        while number < last and len(elements) < MAX_FOUND:
            element = SiteElement(self, index, number)
            if text_contains is not None and element.control is None and text_contains not in element.text:
                # Its descendants do not have the text either, except as values of controls.
                inside = bisect_left(index.controls, number + 1)
                has_controls = inside < len(index.controls) and index.controls[inside] < index.ends[number]
                number = number + 1 if has_controls else index.ends[number]
                continue
            if roles is None or roles & element.roles:
                elements.append(element)
            number += 1
        return elements

    async def closest(self, ref: str, css: str) -> FoundElement | None:
        view = self.view()
        number = view.closest(css, ref)
        return None if number is None else SiteElement(self, view.index, number)

    async def _act(self, action: str, ref: Place, **intent: object) -> bool:
        """Act on an element. Returns True if another page was loaded. Raises PrimitiveError."""
        index = self.view().index
        node = index.node(index.number_at[ref])
        role = role_of(node.tag, node.attributes) or node.tag
        element: JsonObject = {"id": ref, "role": role, "text": None, "actions": []}
        target = ResolvedTarget(element, ref, CERTAIN)

        def steps() -> Steps:
            done = yield from self._tab.perform(action, target, intent)
            if done.failed is not None:
                raise done.failed
            return {"navigated": done.visited is not None and done.visited.page is not None}

        return bool((await self._driven(steps())).get("navigated"))

    async def _driven(self, steps: Steps) -> JsonObject:
        try:
            return await self._drive(steps)
        except AwpError as error:
            codes = {
                "NAVIGATION_FAILED": "navigation_failed",
                "PERMISSION_DENIED": "permission_denied",
                "TIMEOUT": "timeout",
                "UNSUPPORTED": "capability_unavailable",
                "CONFLICT": "target_not_ready",
            }
            code = "form_invalid" if "invalid" in error.details else codes.get(error.code, "insert_failed")
            raise PrimitiveError(code, error.message, **error.details) from error

    async def insert(self, ref: str | None, text: str, mode: str) -> JsonObject:
        index = self.view().index
        if ref is None:
            ref = self._focus
            if ref is None:
                raise PrimitiveError("target_not_editable", "No field that takes text has the focus.")
        number = index.number_at.get(ref)
        control = None if number is None else index.compiled.markup.controls.get(ref)
        if number is not None and control is None and index.node(number).tag == "label":
            control = index.compiled.markup.labelled_by(ref)
        if control is None or kind_of(control.node) not in _TYPED:
            tag = "element" if number is None else index.node(number).tag
            raise PrimitiveError("target_not_editable", f"The {tag} is not a field that takes text.")
        value = value_of(control, self.view().overlay) + text if mode == "append" else text
        await self._act("type", control.place, value=value)
        self._focus = control.place
        return {"inserted": True, "inserted_length": len(text)}

    async def perform(self, primitive: str, arguments: JsonObject) -> JsonObject:
        if primitive == "browser.navigate":
            url = arguments.get("url")
            if arguments.get("tab_id") is not None:
                raise PrimitiveError("capability_unavailable", "There are no other tabs.", capability=primitive)
            if not isinstance(url, str) and arguments.get("reload") is not True:
                raise PrimitiveError("invalid_input", "browser.navigate needs a url, or reload.")
            visited = await self._driven(self._tab.navigate(url) if isinstance(url, str) else self._tab.go(0))
            return {"url": self.url, "title": self._tab.title, "status": visited.get("status")}
        if primitive == "page.fetch":
            self._page()
            return await self._driven(self._tab.fetch(str(arguments.get("url", "")), _MAX_HTML))
        if primitive == "viewport.scroll":
            bottom = float(len(self.view().index.places) * HEIGHT)
            for axis, name in enumerate(("delta_x", "delta_y")):
                value = arguments.get(name, 0)
                step = float(value) if isinstance(value, (int, float)) else 0.0
                self._scroll[axis] = max(0.0, min(self._scroll[axis] + step, bottom if axis else 0.0))
            return {"scroll_x": self._scroll[0], "scroll_y": self._scroll[1]}
        if primitive == "keyboard.press":
            return await self._press(arguments)
        if primitive not in SCREENLESS_PRIMITIVES:
            raise PrimitiveError(
                "capability_unavailable", f"{primitive} needs a screen.", capability=primitive, host=self.host
            )
        x, y = arguments.get("x"), arguments.get("y")
        place = self._place_at(x, y)
        if primitive == "pointer.move":
            return {"x": x, "y": y}
        answer = "double_clicked" if primitive == "pointer.double_click" else "clicked"
        if arguments.get("button", "left") != "left":  # only scripts react to other buttons
            return {answer: True}
        before = self._page()
        navigated = await self._click(place)
        if primitive == "pointer.double_click" and not navigated and self._page() is before:
            await self._click(place)
        return {answer: True}

    def _place_at(self, x: object, y: object) -> Place:
        index = self.view().index
        if isinstance(x, (int, float)) and isinstance(y, (int, float)) and abs(x) < 1e12 and abs(y) < 1e12:
            band, column, number = int(x // BAND), x % BAND, int(y // HEIGHT)
            if band == self._state and column <= WIDTH and 0 <= number < len(index.places):
                if not self.view().shows(number):
                    raise PrimitiveError("target_not_visible", "The element at that point is hidden.")
                return index.places[number]
            if 0 < band < self._state:
                message = "The point belongs to a page that is no longer open. Find the element again."
                raise PrimitiveError("target_not_found", message, stale=True)
        message = (
            "There is no element at that point. Without a screen, use the points that locator.element_info returns."
        )
        raise PrimitiveError("point_out_of_viewport", message)

    async def _click(self, place: Place) -> bool:
        index = self.view().index
        markup, inner = index.compiled.markup, place
        self._focus = None
        while inner:  # focus the nearest focusable ancestor
            control, number = markup.controls.get(inner), index.number_at.get(inner)
            node = None if number is None else index.node(number)
            if control is None and node is not None and node.tag == "label":
                control = markup.labelled_by(inner)
            if control is not None and control.node.tag != "fieldset":
                self._focus = None if control.disabled else control.place
                break
            if node is not None and ("tabindex" in node.attributes or (node.tag == "a" and "href" in node.attributes)):
                self._focus = inner
                break
            inner = parent_of(inner)
        return await self._act("click", place)

    async def _press(self, arguments: JsonObject) -> JsonObject:
        """Press a key, as far as it has an effect without scripts."""
        key = str(arguments.get("key", ""))
        chord = read_chord(key, arguments.get("modifiers"))
        focus, control = self._focus, self._focused_control()
        kind = "" if control is None else kind_of(control.node)
        is_at_end = chord.key == "End" and chord.commands <= {"Control", "Meta"} and kind in _TYPED
        if chord.key == "Tab" and not chord.commands:
            self._focus = next_in_tab_order(self.view(), self._focus, -1 if chord.modifiers else 1)
        elif focus is not None and not is_at_end:  # text is appended at the end anyway
            if chord.commands or (chord.key in _CHOOSING_KEYS and kind in ("select", "radio")):
                message = f"{key[:50]!r} cannot be pressed without a browser."
                raise PrimitiveError("capability_unavailable", message, capability="keyboard.press", host=self.host)
            await self._type(chord.key, focus, control, kind)
        return {"pressed": True, "modifiers": list(chord.modifiers)}

    def _focused_control(self) -> Control | None:
        index = self.view().index
        return None if self._focus is None else index.compiled.markup.controls.get(self._focus)

    async def _type(self, key: str, focus: Place, control: Control | None, kind: str) -> None:
        """Do what a key does to the focused element."""
        if (key == "Enter" and (control is None or kind in BUTTONS)) or (key == "Space" and kind in _PRESSED_BY_SPACE):
            await self._click(focus)
        elif control is None:
            return
        elif key == "Enter" and kind == "textarea":
            await self.insert(focus, "\n", "append")
        elif key == "Enter" and control.form is not None and kind != "select":
            await self._act("submit", focus)
        elif key == "Backspace" and kind in _TYPED:
            await self.insert(focus, value_of(control, self.view().overlay)[:-1], "replace")
        elif kind in _TYPED and (key == "Space" or len(key) == 1):
            await self.insert(focus, " " if key == "Space" else key, "append")

    async def extract(self, extracts: Sequence[JsonObject]) -> Extraction:
        return extract_records(self.view(), extracts)

    async def invoke(self, handler: str, arguments: JsonObject) -> object:
        """Refuse, because there are no scripts."""
        raise PrimitiveError("missing_handler", f"The page has no function {handler[:100]!r} here.", host=self.host)

    async def attach(self, attachment_id: str, ref: str, affordance: JsonObject) -> None:
        """Refuse, because nobody would see it."""
        raise PrimitiveError("capability_unavailable", "Nothing can be attached to a page that is not displayed.")

    async def detach(self, attachment_id: str) -> None:
        """Do nothing: nothing is attached."""

    async def attached(self) -> frozenset[str]:
        """Return nothing."""
        return frozenset()

    async def listen(self, events: frozenset[str]) -> None:
        """Do nothing: without scripts there are no events."""

    async def take_events(self) -> Sequence[PageEvent]:
        """Return nothing."""
        return ()
