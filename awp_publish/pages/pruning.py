"""Tells what of a page leads elsewhere: menus, footers, other products.

A page with a list, a product, a form or a thread is read to act on it. What belongs to it says so by its structure:
boxes to tick, fields, links to the same page with another query. A block of links without any of that is about the rest
of the site, unless it is like what is beside it: an item of a list.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import Final
from urllib.parse import urljoin, urlsplit

from awp_publish.pages.masses import MAX_CARD, SECTIONING, Masses
from awp_publish.pages.tree import Tree

_MIN_CHOICES: Final = 3
"""Boxes that make a block a filter."""

_MIN_LINKS: Final = 4
"""Links from which a block is a menu."""

_MIN_ITEMS: Final = 4
_SHAPELESS: Final = ("div", None)
"""Blocks beside each other with the same tag and class that are items of a list, and a shape that says nothing."""

_MIN_NODES: Final = 2 * _MIN_LINKS
"""Nodes in which there is no menu: each of its links has a text."""

_LINKED: Final = 0.5
"""The part of a menu's text that is links at least."""

_MAX_TRAIL: Final = 8
_MAX_CHARS: Final = 200
"""Links, and characters, of a way to the page at most."""

_SHOWN: Final = 3
"""Links for each picture or price up to which they are cards."""

_CHROME: Final = frozenset(("footer", "header", "nav"))
_LANDMARKS: Final = _CHROME | {"aside"}
_LANDMARK_ROLES: Final = frozenset(("alertdialog", "banner", "complementary", "contentinfo", "dialog", "navigation"))
_CHOOSING: Final = frozenset(("checkbox", "radio", "range"))


class Pruning:
    """Prunes one page, which is at an address."""

    def __init__(self, tree: Tree, masses: Masses, address: str) -> None:
        self._tree, self._masses = tree, masses
        self._links = [at for at in tree.find("a") if "href" in tree.attributes[at]]
        inputs = tree.find("input")
        self._boxes = [at for at in inputs if tree.attributes[at].get("type", "").strip().lower() in _CHOOSING]
        self._shown = sorted((*tree.find("img"), *masses.prices))
        self._address = address.partition("#")[0].partition("?")[0]
        self._path = urlsplit(self._address).path

    def landmarks(self, top: int, start: int = -1, end: int = -1) -> set[int]:
        """Return the landmarks in an element that lead elsewhere and have nothing from `start` to `end`."""
        return self.leading_elsewhere(top, start, end, 0)

    def leading_elsewhere(self, top: int, start: int, end: int, max_menu: int) -> set[int]:
        """Return the largest blocks in an element that lead elsewhere and have nothing from `start` to `end`.

        `max_menu` are the characters that a menu has at most; if there are none, only landmarks lead elsewhere.
        """
        tree, found, waiting = self._tree, set[int](), [top]
        while waiting:
            children = [at for at in tree.children(waiting.pop()) if tree.tags[at]]
            shapes = [(tree.tags[at], tree.attributes[at].get("class")) for at in children]
            alike = Counter(shapes) if len(shapes) >= _MIN_ITEMS else {}
            for at, shape in zip(children, shapes, strict=True):
                is_beside = at > end or tree.ends[at] <= start
                if self._is_landmark(at):
                    if is_beside and not self._changes_page(at):
                        found.add(at)
                        continue
                elif max_menu and alike.get(shape, 0) >= _MIN_ITEMS and shape != _SHAPELESS and self._is_item(at):
                    continue
                elif max_menu and is_beside and self._is_menu(at):
                    if self._masses.chars[at] <= max_menu:
                        found.add(at)
                    continue
                if not start <= at <= end and tree.ends[at] - at > _MIN_NODES:
                    waiting.append(at)
        return found

    def with_filters(self, node: int) -> int:
        """Return the element around a list that has what filters it, too."""
        tree, inner = self._tree, node
        while inner != tree.body_at:
            above = tree.parents[inner]
            beside = (at for at in tree.children(above) if at != inner and tree.tags[at] not in _CHROME)
            node = above if any(map(self._changes_page, beside)) else node
            inner = above
        return node

    def leads_here(self, at: int) -> bool:
        """Return True for a few links, the first of which leads to the first page or to one above this page."""
        links = self._links[bisect_left(self._links, at) : bisect_left(self._links, self._tree.ends[at])]
        if not 1 < len(links) <= _MAX_TRAIL or self._masses.chars[at] > _MAX_CHARS:
            return False
        try:
            path = urlsplit(urljoin(self._address, self._tree.attributes[links[0]]["href"].strip())).path
        except ValueError:
            return False
        return path in ("", "/") or (path != self._path and self._path.startswith(path))

    def _is_item(self, at: int) -> bool:
        """Return True if one of several alike blocks is a card of a list."""
        return self._masses.chars[at] <= MAX_CARD

    def _is_landmark(self, at: int) -> bool:
        """Return True for a landmark beside the main one; that of a part of the page is none, unless it is a menu."""
        tag, role = self._tree.tags[at], self._tree.attributes[at].get("role", "").strip().lower()
        if role or tag not in _LANDMARKS:
            return role in _LANDMARK_ROLES
        if tag == "nav":
            return True
        while (at := self._tree.parents[at]) >= 0:
            if self._tree.tags[at] in SECTIONING:
                return False
        return True

    def _is_menu(self, at: int) -> bool:
        masses, end = self._masses, self._tree.ends[at]
        links = _count(self._links, at, end)
        if links < _MIN_LINKS or masses.links[at] <= _LINKED * masses.chars[at] or _count(masses.fields, at, end):
            return False
        return not (_SHOWN * _count(self._shown, at, end) >= links) and not self._changes_page(at)

    def _changes_page(self, at: int) -> bool:
        """Return True if what is in an element changes what the page shows: choices, or links to the page itself."""
        end = self._tree.ends[at]
        links = self._links[bisect_left(self._links, at) : bisect_left(self._links, end)]
        if _count(self._boxes, at, end) >= max(_MIN_CHOICES, len(links) / _MIN_LINKS):
            return True
        return sum(map(self._is_own, links)) * 2 > len(links)

    def _is_own(self, link: int) -> bool:
        """Return True if a link leads to the page with another query, or to a part of the page at its address."""
        path, query, _ = self._tree.attributes[link]["href"].strip().partition("?")
        own = self._path if path.startswith("/") else self._address
        is_deep = own.count("/") > own.count("//") * 2 + 1
        return (bool(query) and path in ("", own)) or (is_deep and path.startswith(own.rstrip("/") + "/"))


def _count(places: Sequence[int], start: int, end: int) -> int:
    return bisect_left(places, end) - bisect_left(places, start)
