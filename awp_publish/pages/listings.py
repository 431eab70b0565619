"""Finds the list that a page is made of: blocks of one shape, each with a link and something that shows what it is.

Cards of a shop, results of a search, teasers of a blog, rows of a table. The shape of a block is its tag with the first
word of its class, and those of the two elements around it: what the words mean says nothing, only that they recur.
"""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from awp_publish.pages.masses import MAX_CARD, Masses
from awp_publish.pages.tree import Tree

MIN_CARDS: Final = 4
"""Cards that a list has at least."""

_MAX_NODES: Final = 500
"""Nodes of a card that are examined."""

_PICTURE: Final = 50
"""Characters to which a picture or a price is worth as much."""

_FACTS: Final = 3
"""Blocks with a text of their own that a card without picture, heading or price has at least."""

_SHORT: Final = 200
"""Characters that a card whose link is a picture says on an average at most."""

_NUMBER: Final = re.compile(r"\d|^(?:first|last|odd|even)$")
"""In a word of a class that differs from card to card."""

_LINKED: Final = 0.33
_TITLED: Final = 0.1
"""The part of what cards say that is links at least, and that of cards whose headings are links."""

_NAMED: Final = ("h1", "h2", "h3", "h4", "h5", "h6")
_PICTURES: Final = ("img", "picture")


@dataclass(frozen=True, slots=True)
class CardList:
    """A list: its cards in document order, and the element around them.

    `said` and `links` are the characters of its cards and those of them in links; in `chars` pictures and prices count
    as some. `priced`, `shown` and `titled` cards have a price, a picture, a heading that is a link.
    """

    node: int
    cards: Sequence[int]
    chars: int
    said: int
    links: int
    priced: int
    shown: int
    titled: int

    def holds(self, tree: Tree, node: int) -> bool:
        """Return True if a node is in a card."""
        place = bisect_right(self.cards, node) - 1
        return place >= 0 and node < tree.ends[self.cards[place]]

    @property
    def leads_away(self) -> bool:
        """True if its cards are about what their links lead to. The posts of a thread say more, and link to authors."""
        share = _LINKED if self.titled * 2 < len(self.cards) else _TITLED
        return self.links >= share * self.said or self.said <= _SHORT * len(self.cards)


def find_listing(tree: Tree, masses: Masses, whole: int) -> CardList | None:
    """Return the largest list in an element, beside its landmarks, or None if it has none."""
    tags, parents, ends, attributes, chars = tree.tags, tree.parents, tree.ends, tree.attributes, masses.chars
    with_links = set[int]()
    for at in tree.find("a"):
        while at >= whole and at not in with_links:
            with_links.add(at)
            at = parents[at]
    words: dict[str, str] = {}
    shapes: dict[int, str] = {}
    places: dict[int, str] = {}

    def shape_of(at: int) -> str:
        shape = shapes.get(at)
        if shape is None:
            given = attributes[at].get("class", "")
            word = words.get(given)
            if word is None:
                word = words[given] = next((part for part in given.split() if not _NUMBER.search(part)), "")
            shape = shapes[at] = f"{tags[at]}.{word}"
        return shape

    groups = defaultdict[tuple[str, str], list[int]](list)
    skip, end = -1, ends[whole]
    for at in masses.blocks:
        if at < skip or chars[at] > MAX_CARD or at not in with_links or not whole < at < end:
            continue
        if at in masses.beside:
            skip = ends[at]
            continue
        around = parents[at]
        place = places.get(around)
        if place is None:
            place = places[around] = f"{shape_of(around)} {shape_of(parents[around])}"
        groups[shape_of(at), place].append(at)
    heading = masses.headings[0] if len(masses.headings) == 1 else -1
    most = {
        group: sum(chars[at] for at in blocks) + 2 * _PICTURE * len(blocks)
        for group, blocks in groups.items()
        if len(blocks) >= MIN_CARDS
    }
    found, judge = None, _Judge(tree, masses)
    for group in sorted(most, key=most.__getitem__, reverse=True):
        if found is not None and most[group] <= found.chars:
            break
        if any(at < heading < ends[at] for at in groups[group]):  # parts of the page
            continue
        listing = judge.list_of(groups[group])
        if listing is not None and (found is None or listing.chars > found.chars):
            found = listing
    return found


class _Judge:
    """Tells which blocks are cards."""

    def __init__(self, tree: Tree, masses: Masses) -> None:
        self._tree, self._masses = tree, masses
        self._pictures = sorted(at for tag in _PICTURES for at in tree.find(tag))
        self._headings = sorted(at for tag in _NAMED for at in tree.find(tag))

    def list_of(self, group: Sequence[int]) -> CardList | None:
        """Return the list that blocks of one shape are, or None if they show nothing but links."""
        masses, ends = self._masses, self._tree.ends
        cards, chars, said, links, priced, shown, titled = list[int](), 0, 0, 0, 0, 0, 0
        for at in group:
            end = min(ends[at], at + _MAX_NODES)
            has_picture, has_price = bool(_in(self._pictures, at, end)), bool(_in(masses.prices, at, end))
            headings = _in(self._headings, at, end)
            if not (has_picture or has_price or headings or sum(map(bool, masses.own[at:end])) >= _FACTS):
                continue
            titled += any(masses.links[heading] * 2 > masses.chars[heading] for heading in headings)
            cards.append(at)
            chars += masses.chars[at] + _PICTURE * (has_picture + has_price)
            links += masses.links[at]
            said += masses.chars[at]
            priced += has_price
            shown += has_picture
        if len(cards) < MIN_CARDS:
            return None
        node, last = self._tree.parents[cards[0]], cards[-1]
        while last >= ends[node]:
            node = self._tree.parents[node]
        return CardList(node, cards, chars, said, links, priced, shown, titled)


def _in(places: Sequence[int], at: int, end: int) -> Sequence[int]:
    return places[bisect_left(places, at) : bisect_left(places, end)]
