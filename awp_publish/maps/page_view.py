"""A loaded page with its controls as they are at one moment: what is shown, and what it says."""

from bisect import bisect_left
from typing import Final

from awp_publish.browsing.markup import Place, kind_of, parent_of
from awp_publish.browsing.overlay import Overlay, is_checked, is_open, selected_options, value_of
from awp_publish.maps.element_index import ElementIndex
from awp_publish.maps.live_page import Box
from awp_publish.pages.tree import Node
from awp_publish.pages.visibility import INLINE

WIDTH: Final = 100
HEIGHT: Final = 20
"""Of the boxes, which are made up: each element has a row of its own."""

MAX_TEXT: Final = 100_000


class PageView:
    """A page at one moment. `left` is where its boxes begin."""

    def __init__(self, index: ElementIndex, overlay: Overlay, left: int) -> None:
        self.index, self.overlay, self._left = index, overlay, left
        self._texts: dict[int, str] = {}

    def shows(self, number: int) -> bool:
        """Return True if an element is rendered: nothing hides it, and it is not inside closed details."""
        index, overlay = self.index, self.overlay
        place, inner = index.places[number], -1
        while place:
            at = index.number_at.get(place)
            if at is not None:
                if index.is_withdrawn(at):
                    return False
                node = index.node(at)
                if node.tag == "details" and inner >= 0:
                    own = next((child for child in node.children if child.tag == "summary"), None)
                    if not is_open(place, node, overlay) and index.node(inner) is not own:
                        return False
                inner = at
            place = parent_of(place)
        return True

    def text_of(self, number: int) -> str:
        """Return the visible text of an element, or the value of a control, with white space collapsed."""
        if number not in self._texts:
            self._texts[number] = self._text(number)
        return self._texts[number]

    def _text(self, number: int) -> str:
        index, overlay = self.index, self.overlay
        control = index.compiled.markup.controls.get(index.places[number])
        node = index.node(number)
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
        waiting: list[tuple[Place, Node] | str] = [(index.places[number], node)]
        while waiting and length < MAX_TEXT:
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
            at = index.number_at.get(place)
            if at is None or index.is_withdrawn(at) or inner.tag in ("select", "textarea"):
                continue
            children = [(f"{place}/{count}", child) for count, child in enumerate(inner.children)]
            if inner.tag == "details" and at != number and not is_open(place, inner, overlay):
                children = [pair for pair in children if pair[1].tag == "summary"][:1]
            if inner.tag not in INLINE or inner.tag == "br":
                pieces.append(" ")
                waiting.append(" ")
            waiting.extend(reversed(children))
        return " ".join("".join(pieces).split())[:MAX_TEXT]

    def box_of(self, number: int) -> Box:
        """Return the position of an element: each has a row, in a band of the loaded page."""
        return Box(self._left, number * HEIGHT, WIDTH, HEIGHT)

    def select(self, css: str, scope: int = -1) -> list[int]:
        """Return the numbers of the elements that a selector matches; `scope` is the number of what `:scope` means.

        Boxes are `:checked` as they are now. Raises PrimitiveError `invalid_selector`.
        """
        index, overlay = self.index, self.overlay
        markup = index.compiled.markup

        def is_checked_now(at: int) -> bool:
            control = markup.controls.get(index.places[bisect_left(index.in_tree, at)])
            return control is not None and is_checked(control, overlay, markup)

        if overlay and ":checked" in css:
            return index.matching(css, scope, is_checked_now)
        return index.select(css, scope)

    def below(self, css: str, number: int) -> list[int]:
        """Return the numbers of what a selector matches below an element, which `:scope` means."""
        matches = self.select(css, number)
        return matches[bisect_left(matches, number + 1) : bisect_left(matches, self.index.ends[number])]

    def closest(self, css: str, place: Place) -> int | None:
        """Return the number of the nearest element that a selector matches, from `place` upwards."""
        matches, numbers = set(self.select(css)), self.index.number_at
        while place and numbers.get(place) not in matches:
            place = parent_of(place)
        return numbers.get(place)

    def property_of(self, name: str, number: int) -> object:
        """Return a property of the element's object in scripts: `value` or `checked`, None for any other."""
        index, overlay = self.index, self.overlay
        control = index.compiled.markup.controls.get(index.places[number])
        if control is None:
            value = index.node(number).attributes.get("value") if name == "value" else None
            return value if index.node(number).tag in ("data", "option", "li", "button", "meter", "progress") else None
        kind = kind_of(control.node)
        if name == "checked":
            return is_checked(control, overlay, index.compiled.markup) if kind in ("checkbox", "radio") else None
        if name != "value":
            return None
        if kind == "select":
            return next((option.value for option in selected_options(control, overlay)), "")
        if kind in ("checkbox", "radio"):
            return control.node.attributes.get("value", "on")
        return value_of(control, overlay) if control.node.tag in ("input", "textarea") else None
