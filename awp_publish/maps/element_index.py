"""An index of one loaded page, independent of the state of its controls."""

from bisect import bisect_left
from collections.abc import Callable
from functools import cached_property
from typing import Final

from awp_publish.browsing.compiled import Compiled
from awp_publish.browsing.markup import Place
from awp_publish.maps.live_page import MAX_FOUND, PrimitiveError
from awp_publish.pages.names import AccessibleNames
from awp_publish.pages.tree import Node
from awp_publish.pages.visibility import STRIPPED, Visibility

SCOPE: Final = ":scope"


class ElementIndex:
    """The elements of a page. Everything beside their numbers is computed on demand.

    They are numbered in document order: `n` is `in_tree[n]` in the tree, at `places[n]`, and its descendants are
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
        key = css, scope if SCOPE in css else -1
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
