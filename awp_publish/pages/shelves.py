"""Sorts the elements of a page that is too large for its document into shelves, the most important first.

1. links to the next pages of a list, and headings; 2. texts of the main content; 3. controls, but only the first few
with the same name; 4. links of the main content, those with informative texts first, and one link for each address
(SOM 1.0, 8.2.1); 5. other headings and texts; 6. other links; 7. further controls with the same name; 8. further links
to the same address.
"""

import re
from collections import Counter
from collections.abc import Sequence
from enum import IntEnum
from typing import Final

from awp_publish.pages.elements import Elements
from awp_publish.pages.flags import IN_FORM
from awp_publish.pages.paging import find_paging
from awp_publish.pages.roles import CONTROLS, HIDDEN
from awp_publish.pages.survey import Survey
from awp_publish.pages.tables import rows_of
from awp_publish.pages.tree import Tree

OVERHEAD: Final = 60
"""Approximate bytes of an element besides its text."""

LINK_OVERHEAD: Final = 85
_UNIT_OVERHEAD: Final = 12
"""Approximate bytes of an item of a list, or of a row of a table, besides its text."""

_CONTROL: Final = 100
"""Approximate bytes of a control besides the overhead of any element."""

MAX_LENGTH: Final = 200
"""Bytes of a heading, a control or a link that are kept."""

MAX_TURNING: Final = 20
"""Links to other pages of a list that are kept before everything else: "Next" and arrows, then numbers."""

_ALIKE: Final = 3
"""Controls with the same name; further ones are on another shelf."""

_TELLING: Final = 16
"""Characters from which the text of a link counts as a title, and a text as more than a caption."""

_GENERIC: Final = re.compile(
    r"(?:(?:read|learn|see|view|show) )?(?:more|here|details|link|permalink|this|continue reading|click here|yesterday)"
    r"|(?:an?|\d+) (?:second|minute|hour|day|week|month|year)s? ago",
    re.IGNORECASE,
)
_OPERATED: Final = CONTROLS | {HIDDEN}


class Shelf(IntEnum):
    """The shelves, in the order of their importance."""

    HEADINGS = 0
    TEXTS = 1
    CONTROLS = 2
    LINKS = 3
    OTHER_TEXTS = 4
    OTHER_LINKS = 5
    MORE_CONTROLS = 6
    MORE_LINKS = 7


class Shelves:
    """The candidates of a page on their shelves, each a list in the order in which elements are made.

    `unit_of` and `units_of` have, for each candidate, the bytes of one unit and the number of units: a list has its
    items, a table its rows, anything else is one. `duplicates` are links to an address to which a better one leads.
    """

    def __init__(
        self,
        tree: Tree,
        survey: Survey,
        elements: Elements,
        pools: Sequence[Sequence[int]],
        main: set[int],
        lengths: Sequence[int],
    ) -> None:
        self._tree, self._survey, self._elements, self._lengths = tree, survey, elements, lengths
        self._paging = find_paging(tree)
        text = "".join(survey.pieces)
        self.width = len(text.encode()) / len(text) if text else 1.0
        """Average bytes of a character."""
        self.lists: list[list[int]] = [[] for _ in Shelf]
        self.unit_of, self.units_of = [0] * len(survey.nodes), [1] * len(survey.nodes)
        self.duplicates = set[int]()
        self._turning = list[int]()
        self._addresses: dict[str, str] = {}
        self._best: dict[str, tuple[int, str]] = {}  # for an address, the link with the most informative text
        self._titles = set[int]()
        self._captions: dict[int, str] = {}  # short texts of links in the main content
        self._scores: dict[str, tuple[int, int]] = {}
        self._alike = Counter[tuple[int, str, str, str]]()
        for number, pool in enumerate(pools):
            for candidate in pool:
                self._add(candidate, number, number in main)
        self._set_duplicates_apart()
        of_region = {candidate: number for number, pool in enumerate(pools) for candidate in pool}
        self.lists[Shelf.HEADINGS].sort(key=lambda heading: of_region[heading] not in main)
        for shelf in (Shelf.CONTROLS, Shelf.MORE_CONTROLS):
            self.lists[shelf].sort(key=self._rank_control)
        self._turning.sort(key=lambda link: self._paging[survey.nodes[link]].isdecimal())
        self.lists[Shelf.LINKS] = self._ranked_links(self._turning[MAX_TURNING:] + self.lists[Shelf.LINKS])
        self.lists[Shelf.HEADINGS][:0] = self._turning[:MAX_TURNING]

    def _add(self, candidate: int, region: int, is_main: bool) -> None:
        survey = self._survey
        role, node = survey.roles[candidate], survey.nodes[candidate]
        attributes = self._tree.attributes[node]
        size = int((self._lengths[survey.ends[candidate]] - self._lengths[survey.starts[candidate]]) * self.width)
        if role == "link" and "href" in attributes:  # most candidates of most large pages
            self.unit_of[candidate] = LINK_OVERHEAD - OVERHEAD + min(size, MAX_LENGTH) + len(attributes["href"])
            if node in self._paging:
                self._turning.append(candidate)
            else:
                self._add_link(candidate, attributes["href"], size, is_main)
        elif role in _OPERATED:
            self.unit_of[candidate] = min(size, MAX_LENGTH) + _CONTROL
            name = region, role, self._elements.name_of(candidate).lower(), attributes.get("name", "").lower()
            self._alike[name] += role != HIDDEN
            self.lists[Shelf.CONTROLS if self._alike[name] <= _ALIKE else Shelf.MORE_CONTROLS].append(candidate)
        elif role == "heading" or candidate in survey.shadows:
            self.unit_of[candidate] = min(size, MAX_LENGTH)
            self.lists[Shelf.HEADINGS].append(candidate)
        else:
            if role in ("list", "table"):
                self.units_of[candidate] = units = max(self._count_units(role, node), 1)
                size = size // units + _UNIT_OVERHEAD
            self.unit_of[candidate] = size
            self.lists[Shelf.TEXTS if is_main and size >= _TELLING else Shelf.OTHER_TEXTS].append(candidate)

    def _count_units(self, role: str, node: int) -> int:
        if role == "table":
            return sum(1 for _ in rows_of(self._tree, node))
        return sum(self._tree.tags[child] == "li" for child in self._tree.children(node))

    def _add_link(self, link: int, href: str, size: int, is_main: bool) -> None:
        address = self._addresses.get(href)
        if address is None:
            address = self._addresses[href] = normalise_address(href)
        survey = self._survey
        text = "".join(survey.pieces[survey.starts[link] : survey.ends[link]])
        if address and address != "#" and not address.startswith("javascript:"):
            best, caption = self._best.setdefault(address, (link, text))
            if best != link:
                if best not in self._titles and text != caption and self._score(text) > self._score(caption):
                    self._best[address] = link, text
                    self.duplicates.add(best)
                else:
                    self.duplicates.add(link)
        if size >= _TELLING and not address.startswith("#"):  # texts such as "12 minutes ago" are shorter
            self._titles.add(link)
        elif is_main:
            self._captions[link] = text.strip()
        self.lists[Shelf.LINKS if is_main else Shelf.OTHER_LINKS].append(link)

    def _score(self, text: str) -> tuple[int, int]:
        """Return how informative the text of a link is."""
        score = self._scores.get(text)
        if score is None:
            words = " ".join(text.split())
            telling = any(map(str.isalpha, words)) + (_GENERIC.fullmatch(words) is None)
            score = self._scores[text] = telling if words else 0, min(len(words), MAX_LENGTH) if telling == 2 else 0
        return score

    def _set_duplicates_apart(self) -> None:
        for shelf in (Shelf.LINKS, Shelf.OTHER_LINKS) if self.duplicates else ():
            self.lists[Shelf.MORE_LINKS] += [link for link in self.lists[shelf] if link in self.duplicates]
            self.lists[shelf] = [link for link in self.lists[shelf] if link not in self.duplicates]

    def _rank_control(self, control: int) -> int:
        """Return 0 for submit buttons, 1 for fields, 2 for other controls, and 3 for controls of scripts."""
        node, role = self._survey.nodes[control], self._survey.roles[control]
        if self._tree.attributes[node].get("type", "").lower() in ("button", "reset"):
            return 3
        return (0 if role in ("button", HIDDEN) else 1) if self._survey.states[control] & IN_FORM else 2

    def _ranked_links(self, links: list[int]) -> list[int]:
        """Return titles, then texts of several words, then single words, and last texts that occur often."""
        times = Counter(text for link, text in self._captions.items() if link not in self.duplicates)

        def rank(link: int) -> int:
            caption = self._captions.get(link)
            if caption is None:
                return 0
            return 3 if times[caption] > _ALIKE else 1 if " " in caption else 2

        return sorted(links, key=rank)


def normalise_address(href: str) -> str:
    """Normalise an address so that links to the same page are equal (8.2.1): no fragment, no last slash, lower case.

    A link within the page is its fragment.
    """
    address = href.strip()
    if "#" in address:
        if address[0] == "#":
            return address
        address = address.partition("#")[0]
    return (address[:-1] if address[-1:] == "/" else address).lower()
