"""A page of the site for a runtime of actions.json, read and acted upon in process, without a screen and scripts.

The positions of elements are made up from their order in the document, so that workflows that click at coordinates
work. A point is valid only in the page in which it was reported; in a later page it hits nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

from awp_publish.browsing.compiled import Compiled
from awp_publish.browsing.errors import AwpError
from awp_publish.browsing.markup import Control, Place, kind_of, parent_of
from awp_publish.browsing.overlay import Overlay, is_checked, is_open, selected_options, value_of
from awp_publish.browsing.page import LoadedPage, Steps
from awp_publish.browsing.targets import CERTAIN, ResolvedTarget
from awp_publish.maps.keys import read_chord
from awp_publish.maps.live_page import (
    MAX_FOUND,
    MAX_VALUES,
    SCREENLESS_PRIMITIVES,
    Box,
    Extraction,
    FoundElement,
    PageEvent,
    PrimitiveError,
)
from awp_publish.maps.roles import roles_of
from awp_publish.pages.input_types import BUTTONS, WRITTEN
from awp_publish.pages.names import AccessibleNames
from awp_publish.pages.roles import role_of
from awp_publish.pages.tree import Node
from awp_publish.pages.visibility import INLINE, STRIPPED, Visibility
from awp_publish.schema import JsonObject

if TYPE_CHECKING:
    from awp_publish.browsing.session import Session

Drive: TypeAlias = Callable[[Steps], Awaitable[JsonObject]]
"""Runs a method of a session, with all the requests that it makes. Raises AwpError."""

_BAND: Final = 1_000
_WIDTH: Final = 100
_HEIGHT: Final = 20
_MAX_TEXT: Final = 100_000
_MAX_HTML: Final = 100_000
_TYPED: Final = WRITTEN | {"textarea"}
_CHOOSING_KEYS: Final = frozenset(("ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End"))
_PRESSED_BY_SPACE: Final = BUTTONS | {"checkbox", "radio"}
_SCOPE: Final = ":scope"


class _Look:
    """An index of one loaded page, independent of the state of its controls. Everything is computed on demand.

    Elements are numbered in document order: `n` is `in_tree[n]` in the tree, at `places[n]`, and its descendants are
    before `ends[n]`.
    """

    def __init__(self, compiled: Compiled) -> None:
        self.compiled = compiled
        self.tree = tree = compiled.tree
        self.visibility = Visibility(tree)
        self.names = AccessibleNames(self.visibility)
        self.in_tree: list[int] = []
        self.places: list[Place] = []
        self.number_at: dict[Place, int] = {}
        tags, parents, body = tree.tags, tree.parents, tree.body_at
        # By an element's number in the tree: its place, and how many of its children have been visited.
        paths, passed = {parents[body]: ""}, {parents[body]: 0}
        at, end = body, tree.ends[body]
        while at < end:
            above = parents[at]
            count = passed[above]
            passed[above] = count + 1
            if tags[at] in ("", "!", "template"):
                at = tree.ends[at]
                continue
            place = paths[at] = f"{paths[above]}/{count}" if at != body else "0"
            passed[at] = 0
            self.number_at[place] = len(self.places)
            self.places.append(place)
            self.in_tree.append(at)
            at += 1
        self.ends = [bisect_left(self.in_tree, tree.ends[at]) for at in self.in_tree]
        self._matches: dict[tuple[str, int], list[int]] = {}
        self._withdrawn: dict[int, bool] = {}

    def node(self, number: int) -> Node:
        """Return an element."""
        return self.tree.node(self.in_tree[number])

    @cached_property
    def controls(self) -> list[int]:
        """The numbers of the form controls."""
        places = self.compiled.markup.controls
        return sorted(self.number_at[place] for place in places if place in self.number_at)

    def matching(self, css: str, scope: int = -1, is_checked: Callable[[int], bool] | None = None) -> list[int]:
        """Return the numbers of the elements that a selector matches. Raises PrimitiveError `invalid_selector`."""
        try:
            matches = self.tree.matching(css, is_checked, self.in_tree[scope] if scope >= 0 else 0)
        except ValueError as error:
            message = f"{css[:200]!r} cannot be used: {error}"
            raise PrimitiveError("invalid_selector", message, selector=css) from None
        numbers = ((bisect_left(self.in_tree, at), at) for at in matches)
        return [number for number, at in numbers if number < len(self.in_tree) and self.in_tree[number] == at]

    def select(self, css: str, scope: int = -1) -> list[int]:
        """Return the same for the boxes of the HTML, from a cache."""
        key = css, scope if _SCOPE in css else -1
        if key not in self._matches:
            if len(self._matches) > MAX_FOUND:  # a workflow may use any number of selectors
                self._matches.clear()
            self._matches[key] = self.matching(css, scope)
        return self._matches[key]

    def is_withdrawn(self, number: int) -> bool:
        """Return True if the page itself hides an element, whatever its ancestors. `aria-hidden` is not considered."""
        if number not in self._withdrawn:
            at = self.in_tree[number]
            tag, attributes = self.tree.tags[at], self.tree.attributes[at]
            hidden = tag in STRIPPED or "popover" in attributes
            hidden = hidden or (tag == "input" and attributes.get("type", "").lower() == "hidden")
            hidden = hidden or (tag == "dialog" and "open" not in attributes)
            if not hidden and "aria-hidden" in attributes:
                attributes = {name: value for name, value in attributes.items() if name != "aria-hidden"}
            hidden = hidden or at in self.visibility.by_rule
            self._withdrawn[number] = hidden or self.visibility.is_hidden_by(attributes)
        return self._withdrawn[number]


class _SiteElement:
    """One element of a page in process (`FoundElement`)."""

    def __init__(self, page: SitePage, look: _Look, number: int) -> None:
        self._page, self._look, self.number = page, look, number
        self.node = look.node(number)

    @property
    def ref(self) -> str:
        return self._look.places[self.number]

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
        return self._look.names.label(self.node.at, text) or text[:200]

    @cached_property
    def text(self) -> str:
        """Its visible text, or the value of a control."""
        return self._page.text_of(self.number)

    @property
    def is_visible(self) -> bool:
        return self._page.shows(self.number)

    @property
    def is_enabled(self) -> bool:
        if self.control is not None:
            return not self.control.disabled
        return self.node.attributes.get("aria-disabled", "").lower() != "true"

    @property
    def control(self) -> Control | None:
        """The form control of this element, if it is one."""
        return self._look.compiled.markup.controls.get(self.ref) if self.tag != "fieldset" else None

    @property
    def box(self) -> Box:
        return self._page.box_of(self.number)


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
        self._read: _Look | None = None
        self._texts: tuple[object, object, dict[int, str]] = (None, None, {})
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
            self._loaded, self._read, self._focus = entry.page, None, None
            self._state += 1
            self._scroll = [0.0, 0.0]
        return entry.page

    def _look(self) -> _Look:
        page = self._page()
        if self._read is None:
            self._read = _Look(self._browser.cache.compiled(page))
            focused = self._read.select("[autofocus]") if b"autofocus" in page.html.lower() else []
            self._focus = self._read.places[focused[0]] if focused else None
        return self._read

    def _overlay(self) -> Overlay:
        entry = self._tab.history.current
        assert entry is not None
        return entry.overlay

    def shows(self, number: int) -> bool:
        """Return True if an element is rendered: nothing hides it, and it is not inside closed details."""
        look, overlay = self._look(), self._overlay()
        place, inner = look.places[number], -1
        while place:
            at = look.number_at.get(place)
            if at is not None:
                if look.is_withdrawn(at):
                    return False
                node = look.node(at)
                if node.tag == "details" and inner >= 0:
                    own = next((child for child in node.children if child.tag == "summary"), None)
                    if not is_open(place, node, overlay) and look.node(inner) is not own:
                        return False
                inner = at
            place = parent_of(place)
        return True

    def text_of(self, number: int) -> str:
        """Return the visible text of an element, or the value of a control, with white space collapsed."""
        look, overlay = self._look(), self._overlay()
        if self._texts[0] is not look or self._texts[1] is not overlay:
            self._texts = (look, overlay, {})
        names = self._texts[2]
        if number not in names:
            names[number] = self._text(look, overlay, number)
        return names[number]

    def _text(self, look: _Look, overlay: Overlay, number: int) -> str:
        control = look.compiled.markup.controls.get(look.places[number])
        node = look.node(number)
        if control is not None and node.tag in ("input", "textarea", "select"):
            kind, value = kind_of(node), ""
            if kind == "select":
                value = " ".join(option.text for option in selected_options(control, overlay))
            elif kind not in ("checkbox", "radio", "hidden", "file"):
                value = value_of(control, overlay) or {"submit": "Submit", "reset": "Reset"}.get(kind, "")
            return " ".join(value.split())
        if not self.shows(number):
            return ""
        pieces: list[str] = []
        length = 0
        waiting: list[tuple[Place, Node] | str] = [(look.places[number], node)]
        while waiting and length < _MAX_TEXT:
            entry = waiting.pop()
            if isinstance(entry, str):
                pieces.append(entry)
                length += len(entry)
                continue
            place, inner = entry
            if not inner.tag:
                pieces.append(inner.text)
                length += len(inner.text)
                continue
            at = look.number_at.get(place)
            if at is None or look.is_withdrawn(at) or inner.tag in ("select", "textarea"):
                continue
            children = [(f"{place}/{count}", child) for count, child in enumerate(inner.children)]
            if inner.tag == "details" and at != number and not is_open(place, inner, overlay):
                children = [pair for pair in children if pair[1].tag == "summary"][:1]
            if inner.tag not in INLINE or inner.tag == "br":
                pieces.append(" ")
                waiting.append(" ")
            waiting.extend(reversed(children))
        return " ".join("".join(pieces).split())[:_MAX_TEXT]

    def box_of(self, number: int) -> Box:
        """Return the position of an element: each has a row, in a band of the loaded page."""
        return Box(self._state * _BAND, number * _HEIGHT, _WIDTH, _HEIGHT)

    async def find(
        self,
        css: str | None,
        *,
        within: str | None = None,
        roles: frozenset[str] | None = None,
        text_contains: str | None = None,
    ) -> Sequence[FoundElement]:
        look = self._look()
        first, last = 0, len(look.places)
        if within is not None:
            number = look.number_at.get(within)
            if number is None:
                raise PrimitiveError("target_not_found", "The element is no longer on the page.")
            first, last = number + 1, look.ends[number]
        elements: list[_SiteElement] = []
        if css is not None:
            numbers = self._select(css, max(first - 1, 0))
            for number in numbers[bisect_left(numbers, first) : bisect_left(numbers, last)]:
                at = look.in_tree[number]
                if roles is not None and not roles & roles_of(look.tree.tags[at], look.tree.attributes[at]):
                    continue
                element = _SiteElement(self, look, number)
                if text_contains is None or text_contains in element.text:
                    elements.append(element)
                if len(elements) >= MAX_FOUND:
                    break
            return elements
        number = first
        while number < last and len(elements) < MAX_FOUND:
            element = _SiteElement(self, look, number)
            if text_contains is not None and element.control is None and text_contains not in element.text:
                # Its descendants do not have the text either, except as values of controls.
                inside = bisect_left(look.controls, number + 1)
                has_controls = inside < len(look.controls) and look.controls[inside] < look.ends[number]
                number = number + 1 if has_controls else look.ends[number]
                continue
            if roles is None or roles & element.roles:
                elements.append(element)
            number += 1
        return elements

    def _select(self, css: str, scope: int = -1) -> list[int]:
        """Return the numbers of the elements that a selector matches; `scope` is the number of what `:scope` means.

        Boxes are `:checked` as they are now. Raises PrimitiveError `invalid_selector`.
        """
        look, overlay = self._look(), self._overlay()
        markup = look.compiled.markup

        def is_checked_now(at: int) -> bool:
            control = markup.controls.get(look.places[bisect_left(look.in_tree, at)])
            return control is not None and is_checked(control, overlay, markup)

        if overlay and ":checked" in css:
            return look.matching(css, scope, is_checked_now)
        return look.select(css, scope)

    def _below(self, css: str, number: int) -> list[int]:
        """Return the numbers of what a selector matches below an element, which `:scope` means."""
        look = self._look()
        matches = self._select(css, number)
        return matches[bisect_left(matches, number + 1) : bisect_left(matches, look.ends[number])]

    async def closest(self, ref: str, css: str) -> FoundElement | None:
        look = self._look()
        matched = set(self._select(css))
        while ref:
            if (number := look.number_at.get(ref)) in matched and number is not None:
                return _SiteElement(self, look, number)
            ref = parent_of(ref)
        return None

    async def _act(self, action: str, ref: Place, **intent: object) -> bool:
        """Act on an element. Returns True if another page was loaded. Raises PrimitiveError."""
        look = self._look()
        node = look.node(look.number_at[ref])
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
        look = self._look()
        if ref is None:
            ref = self._focus
            if ref is None:
                raise PrimitiveError("target_not_editable", "No field that takes text has the focus.")
        number = look.number_at.get(ref)
        control = None if number is None else look.compiled.markup.controls.get(ref)
        if number is not None and control is None and look.node(number).tag == "label":
            control = look.compiled.markup.labelled_by(ref)
        if control is None or kind_of(control.node) not in _TYPED:
            tag = "element" if number is None else look.node(number).tag
            raise PrimitiveError("target_not_editable", f"The {tag} is not a field that takes text.")
        value = value_of(control, self._overlay()) + text if mode == "append" else text
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
            shown = await self._driven(self._tab.navigate(url) if isinstance(url, str) else self._tab.go(0))
            return {"url": self.url, "title": self._tab.title, "status": shown.get("status")}
        if primitive == "page.fetch":
            self._page()
            return await self._driven(self._tab.fetch(str(arguments.get("url", "")), _MAX_HTML))
        if primitive == "viewport.scroll":
            bottom = float(len(self._look().places) * _HEIGHT)
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
        look = self._look()
        if isinstance(x, (int, float)) and isinstance(y, (int, float)) and abs(x) < 1e12 and abs(y) < 1e12:
            band, column, number = int(x // _BAND), x % _BAND, int(y // _HEIGHT)
            if band == self._state and column <= _WIDTH and 0 <= number < len(look.places):
                if not self.shows(number):
                    raise PrimitiveError("target_not_visible", "The element at that point is hidden.")
                return look.places[number]
            if 0 < band < self._state:
                message = "The point belongs to a page that is no longer open. Find the element again."
                raise PrimitiveError("target_not_found", message, stale=True)
        message = (
            "There is no element at that point. Without a screen, use the points that locator.element_info returns."
        )
        raise PrimitiveError("point_out_of_viewport", message)

    async def _click(self, place: Place) -> bool:
        look = self._look()
        markup, inner = look.compiled.markup, place
        self._focus = None
        while inner:  # focus the nearest focusable ancestor
            control, number = markup.controls.get(inner), look.number_at.get(inner)
            node = None if number is None else look.node(number)
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
            self._focus = self._next_focus(-1 if chord.held else 1)
        elif focus is not None and not is_at_end:  # text is appended at the end anyway
            if chord.commands or (chord.key in _CHOOSING_KEYS and kind in ("select", "radio")):
                message = f"{key[:50]!r} cannot be pressed without a browser."
                raise PrimitiveError("capability_unavailable", message, capability="keyboard.press", host=self.host)
            await self._type(chord.key, focus, control, kind)
        return {"pressed": True, "modifiers": list(chord.held)}

    def _focused_control(self) -> Control | None:
        look = self._look()
        return None if self._focus is None else look.compiled.markup.controls.get(self._focus)

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
            await self.insert(focus, value_of(control, self._overlay())[:-1], "replace")
        elif kind in _TYPED and (key == "Space" or len(key) == 1):
            await self.insert(focus, " " if key == "Space" else key, "append")

    def _next_focus(self, step: int) -> Place | None:
        """Return the next element in Tab order: the next control or link that is visible and enabled."""
        look = self._look()
        reachable = []
        for number, node in enumerate(map(look.tree.node, look.in_tree)):
            control = look.compiled.markup.controls.get(look.places[number])
            is_control = (
                control is not None and node.tag not in ("fieldset", "object", "output") and not control.disabled
            )
            is_link = node.tag in ("a", "area") and "href" in node.attributes
            if (is_control or is_link or "tabindex" in node.attributes) and self.shows(number):
                reachable.append(number)
        if not reachable:
            return None
        current = None if self._focus is None else look.number_at.get(self._focus)
        if current is None:
            return look.places[reachable[0 if step > 0 else -1]]
        at = bisect_left(reachable, current)
        if step > 0 and at < len(reachable) and reachable[at] == current:
            at += 1
        elif step < 0:
            at -= 1
        return look.places[reachable[at]] if 0 <= at < len(reachable) else None

    async def extract(self, extracts: Sequence[JsonObject]) -> Extraction:
        look = self._look()
        counts: dict[str, int] = {}
        missing: list[str] = []
        left = MAX_VALUES

        def matches(css: object, xpath: object, number: int) -> list[int]:
            """Return what a selector matches below an element, or the element itself without one."""
            if isinstance(css, str) and css:
                return self._below(css, number)
            if isinstance(xpath, str) and xpath:
                message = "XPath needs a browser; write a selector."
                raise PrimitiveError("capability_unavailable", message, capability="xpath", host=self.host)
            return [number]

        def read_fields(fields: object, number: int, path: str) -> JsonObject:
            members = fields if isinstance(fields, Mapping) else {}
            return {name: read(field, number, f"{path}.{name}") for name, field in members.items()}

        def read(field: object, number: int, path: str) -> object:
            field = field if isinstance(field, Mapping) else {}
            nonlocal left
            css, xpath = field.get("selector"), field.get("xpath")
            numbers = matches(css, xpath, number)
            left -= 1 + len(numbers)
            if left < 0:
                message = f"The records have more than {MAX_VALUES} values. Narrow the selectors."
                raise PrimitiveError("invalid_result", message)
            if field.get("many") is True:
                counts[path] = len(numbers)
                if isinstance(field.get("fields"), Mapping):
                    return [read_fields(field["fields"], match, f"{path}.{at}") for at, match in enumerate(numbers)]
                values = [value for match in numbers if (value := value_at(field, match)) is not None]
                if not values and field.get("required") is True:
                    missing.append(path)
                return values
            target: int | None = numbers[0] if numbers else None
            closest = field.get("closest")
            if target is not None and isinstance(closest, str) and closest:
                matched, place = set(self._select(closest)), look.places[target]
                while place and look.number_at.get(place) not in matched:
                    place = parent_of(place)
                target = look.number_at.get(place)
            if target is None:
                value = None
            elif isinstance(field.get("fields"), Mapping):
                counts[path] = len(numbers)
                return read_fields(field["fields"], target, f"{path}.0")
            else:
                value = value_at(field, target)
            if value in (None, "") and field.get("required") is True:
                missing.append(path)
            return field.get("default") if value is None else value

        def value_at(field: JsonObject, number: int) -> object:
            node, attribute, name = look.node(number), field.get("attribute"), field.get("property")
            value: object
            if isinstance(attribute, str):
                value = node.attributes.get(attribute.lower())
            elif name in (None, "innerText"):
                value = self.text_of(number)
            elif name == "textContent":
                value = _raw_text(node)
            elif name == "boundingClientRect":
                box = self.box_of(number)
                edges = {"top": box.y, "left": box.x, "right": box.x + box.width, "bottom": box.y + box.height}
                value = {**box.describe(), **edges}
            elif name == "ariaLabel":
                value = node.attributes.get("aria-label")
            else:
                value = self._property(str(name), number)
            return value.strip() if isinstance(value, str) and field.get("trim") is True else value

        records: dict[str, object] = {}
        for extract in extracts:
            record_id, fields = str(extract.get("id")), extract.get("fields")
            css = extract.get("selector")
            if isinstance(css, str) and css and _SCOPE not in css:
                numbers = self._select(css)[:MAX_FOUND]  # may match the body too
            else:
                numbers = matches(css, extract.get("xpath"), 0)[:MAX_FOUND]
            counts[record_id] = len(numbers)
            values: list[object]
            if isinstance(fields, Mapping):
                values = [read_fields(fields, match, f"{record_id}.{at}") for at, match in enumerate(numbers)]
            else:
                values = [self.text_of(match) for match in numbers]
            records[record_id] = values if extract.get("many") is not False else values[0] if values else None
        return Extraction(records, counts, missing)

    def _property(self, name: str, number: int) -> object:
        look, overlay = self._look(), self._overlay()
        control = look.compiled.markup.controls.get(look.places[number])
        if control is None:
            value = look.node(number).attributes.get("value") if name == "value" else None
            return value if look.node(number).tag in ("data", "option", "li", "button", "meter", "progress") else None
        kind = kind_of(control.node)
        if name == "checked":
            return is_checked(control, overlay, look.compiled.markup) if kind in ("checkbox", "radio") else None
        if name != "value":
            return None
        if kind == "select":
            return next((option.value for option in selected_options(control, overlay)), "")
        if kind in ("checkbox", "radio"):
            return control.node.attributes.get("value", "on")
        return value_of(control, overlay) if control.node.tag in ("input", "textarea") else None

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


def _raw_text(node: Node) -> str:
    """Return the `textContent` of an element."""
    pieces: list[str] = []
    waiting = [node]
    while waiting:
        inner = waiting.pop()
        pieces.append(inner.text if not inner.tag else "")
        if inner.tag != "!":
            waiting.extend(reversed(inner.children))
    return "".join(pieces)[:_MAX_TEXT]
