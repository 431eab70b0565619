"""Finds the row, card or section to which a button or a form belongs."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final

from awp_publish.pages.shortening import shorten_text
from awp_publish.pages.surroundings import Surroundings
from awp_publish.pages.survey import Survey
from awp_publish.pages.tree import Tree
from awp_publish.pages.visibility import Visibility, text_of

_MAX_CLIMB: Final = 12
"""Ancestors of a button or a form that are searched for a name."""

_MAX_CELL_DEPTH: Final = 5
"""Ancestors of a link among which its row, item or card is searched."""

_MAX_ITEM: Final = 200
_LISTS: Final = frozenset(("ol", "ul"))
"""Nodes that an item or a card has at most, and what is not in it."""

_MAX_RECORD: Final = 80
"""Characters of an item up to which it is a record with actions, and not a text with links."""

_MAX_HEADINGS: Final = 5
"""Headings before a button or a form that are considered."""

MAX_ITEM_NAME: Final = 60
_LETTER: Final = re.compile(r"[^\W\d_]")
_WORD: Final = re.compile(r"[^\W\d_]{2}")
_BOUNDARIES: Final = frozenset(("aside", "body", "dialog", "footer", "header", "main", "nav"))
"""Elements beyond which no name is searched."""


class ItemNames:
    """Names of the items of one page, from its headings and rows."""

    __slots__ = (
        *("_cells", "_forms", "_headings", "_heads", "_reach", "_rows", "_starts", "_surroundings", "_survey", "_tree"),
        "_visibility",
    )

    def __init__(self, survey: Survey, visibility: Visibility) -> None:
        self._survey, self._visibility, self._tree = survey, visibility, visibility.tree
        self._surroundings = Surroundings(visibility)
        self._forms = self._tree.find("form")
        self._cells = self._tree.find("td")
        self._reach = list(accumulate(map(self._tree.ends.__getitem__, self._cells), max))
        """For each cell, where it and all cells before it have ended."""
        starts, roles = survey.starts, survey.roles
        regions = [*survey.regions, *survey.shadows.values()]
        everything = (element for region in regions for element in region.candidates if roles[element] == "heading")
        headings = [element for element in everything if survey.text(element)]
        self._headings = sorted(headings, key=starts.__getitem__)
        self._starts = [starts[element] for element in self._headings]
        self._heads: dict[int, int] = {}
        """The first heading in each ancestor of a heading."""
        for heading in self._headings:
            for around in ancestors(self._tree, survey.nodes[heading]):
                self._heads.setdefault(around, heading)
        self._rows: dict[int, list[tuple[int, str]]] = {}
        """For each row, the cells that may name it, with their texts: two of a kind, as one may be the item's own."""

    def of_form(self, form: int, start: int) -> str:
        """Return the heading in a form, the nearest one before it, or the name of its row."""
        for around in (form, *ancestors(self._tree, form)):
            name = self._named(around, form, start, or_later=around == form)
            if name or self._tree.tags[around] in _BOUNDARIES:
                return name
        return ""

    def of_row(self, node: int) -> str:
        """Return the name of the row in which a node is."""
        rows = (around for around in ancestors(self._tree, node) if self._tree.tags[around] == "tr")
        return next((self._named(row, node, 0) for row in rows), "")

    def is_in_row(self, node: int) -> bool:
        """Return True if a node is in a cell of a table, a few levels deep at most."""
        tags, parents = self._tree.tags, self._tree.parents
        if node < self._tree.size:
            place = bisect_right(self._cells, node)
            if not place or node >= self._reach[place - 1]:
                return False
        for _ in range(_MAX_CELL_DEPTH):
            node = parents[node]
            if tags[node] == "td":
                return True
            if node < 0 or tags[node] in _BOUNDARIES:
                return False
        return False

    def of_item(self, item: int, node: int) -> str:
        """Return the name of an item of a list or a card: its heading, or else its first words, if it begins with some.

        The text of a node in it is none.
        """
        tree, survey = self._tree, self._survey
        if item in self._heads:
            return shorten_text(survey.text(self._heads[item]), MAX_ITEM_NAME)
        if len(text_of(self._visibility, item)) > _MAX_RECORD:
            return ""
        for at in range(item + 1, min(tree.ends[item], node)):
            if _WORD.search(tree.texts[at]) and not self._visibility.hides(tree.parents[at]):
                name = text_of(self._visibility, tree.parents[at]) if tree.parents[at] != item else tree.texts[at]
                name = " ".join(name.split()).rstrip(" :,(-\u2013\u2014")
                return name if len(name) <= MAX_ITEM_NAME else ""
        return ""

    def of_each(self, alike: Sequence[tuple[int, int, int]]) -> dict[int, str]:
        """Return the item of each of several nodes, given in order with the start and end of their texts."""
        names: dict[int, str] = {}
        owners: dict[int, int | None] = {}  # ancestors of exactly one of them; None for those of several
        for node, _, _ in alike:
            for around in ancestors(self._tree, node):
                owners[around] = node if owners.get(around, node) == node else None
        # If there is no heading between the first two, a heading before the first one belongs to all of them.
        place = bisect_right(self._starts, alike[1][1])
        has_headings, before = place > 0 and self._starts[place - 1] >= alike[0][2], 0
        for node, start, end in alike:
            names[node] = shorten_text(self._of_one(node, start, owners, before, has_headings), MAX_ITEM_NAME)
            before = end
        return names

    def _of_one(self, node: int, start: int, owners: Mapping[int, int | None], after: int, has_headings: bool) -> str:
        survey, text = self._survey, ""
        for around in ancestors(self._tree, node):
            if owners[around] is None:  # a common ancestor: only a heading between them can help
                before = self._preceding(start, around, node)
                if before is not None and survey.starts[before] >= after and (has_headings or not text):
                    return survey.text(before)
                break
            if self._tree.tags[around] in _BOUNDARIES:
                break
            if name := self._named(around, node, start):
                return name
            if not text:
                text = text_of(self._visibility, around, node, 50, shows=True)
                text = text if _LETTER.search(text) else ""
        return text or self._surroundings.before(node)

    def _named(self, around: int, node: int, start: int, or_later: bool = True) -> str:
        tree, survey = self._tree, self._survey
        if tree.tags[around] == "tr" or tree.attributes[around].get("role") == "row":
            if around not in self._rows:
                cells = [cell for cell in tree.children(around) if tree.tags[cell] in ("td", "th")]
                texts = [(cell, text) for cell in cells if (text := survey.part_text(cell))]
                headers = [(cell, text) for cell, text in texts if tree.tags[cell] == "th"]
                self._rows[around] = headers[:2] + [pair for pair in texts if _LETTER.search(pair[1])][:2]
            own = set(ancestors(tree, node))
            return next((shorten_text(text, MAX_ITEM_NAME) for cell, text in self._rows[around] if cell not in own), "")
        if around not in self._heads:
            return ""
        heading = self._preceding(start, around, node)
        if heading is None and or_later and self._is_own(self._heads[around], node):
            heading = self._heads[around]
        return shorten_text(survey.text(heading), MAX_ITEM_NAME) if heading is not None else ""

    def _preceding(self, start: int, around: int, node: int) -> int | None:
        """Return the last heading that begins before a position, if it is inside of this element."""
        place = bisect_right(self._starts, start)
        for heading in reversed(self._headings[max(place - _MAX_HEADINGS, 0) : place]):
            if around not in ancestors(self._tree, self._survey.nodes[heading]):
                return None
            if self._is_own(heading, node):
                return heading
        return None

    def _is_own(self, heading: int, node: int) -> bool:
        """Return True unless a heading is in a form in which the node is not."""
        at = self._survey.nodes[heading]
        place = bisect_right(self._forms, at) - 1
        form = self._forms[place] if place >= 0 else -1
        return form < 0 or at >= self._tree.ends[form] or form <= node < self._tree.ends[form]


def item_of(tree: Tree, node: int) -> int | None:
    """Return the item of a list or the card in which a node is, a few levels deep at most."""
    for _ in range(_MAX_CELL_DEPTH):
        node = tree.parents[node]
        if node < 0 or tree.tags[node] in _BOUNDARIES:
            return None
        if tree.tags[node] in ("article", "li"):
            inner = tree.tags[node : tree.ends[node]]
            return node if len(inner) <= _MAX_ITEM and _LISTS.isdisjoint(inner) else None
    return None


def ancestors(tree: Tree, node: int) -> Iterator[int]:
    """Yield the nearest ancestors of a node, innermost first."""
    above = tree.parents[node]
    for _ in range(_MAX_CLIMB):
        if above < 0:
            return
        yield above
        above = tree.parents[above]
