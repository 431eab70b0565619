"""Finds what a page offers: its heading, with a price near it, and what one operates to have it."""

from bisect import bisect_left
from dataclasses import dataclass
from typing import Final

from awp_publish.pages.listings import CardList
from awp_publish.pages.masses import Masses, enclose, lineage
from awp_publish.pages.statements import Statements
from awp_publish.pages.tree import Tree

_BEFORE: Final = 150
_AFTER: Final = 800
"""Nodes before and after the heading among which the price is."""

_NEAR: Final = 400
"""Nodes after heading and price among which the first control is."""

_MAX_TEXT: Final = 1_500
"""Characters between heading, price and the first control up to which they are about each other."""

_FORM_LEVELS: Final = 12
_CHOOSING: Final = frozenset(("radio", "number", "checkbox", "submit"))


@dataclass(frozen=True, slots=True)
class Offer:
    """An offer: the element that has heading, price and controls, and the nodes from the first to the last of them."""

    node: int
    start: int
    end: int


def find_offer(
    tree: Tree, masses: Masses, statements: Statements, whole: int, listing: CardList | None
) -> Offer | None:
    """Return the offer of a page, or None if it makes none or several."""
    heading = next((at for at in masses.headings if whole <= at < tree.ends[whole]), None)
    if heading is None:
        return None
    prices = masses.prices[bisect_left(masses.prices, heading - _BEFORE) : bisect_left(masses.prices, heading + _AFTER)]
    price = next((at for at in prices if listing is None or not listing.holds(tree, at)), None)
    if (price is None or statements.is_article) and not statements.is_product:
        return None
    start, last = (heading, heading) if price is None else (min(heading, price), max(heading, price))
    node = enclose(tree, start, last)
    end = -1
    for at in sorted((*tree.find("button"), *tree.find("select"), *tree.find("input"))):
        if at < start or not _operates(tree, at, is_sure=price is None and end < 0):
            continue
        if listing is not None and listing.holds(tree, at):
            continue
        if at >= (tree.ends[node] if end >= 0 else min(last + _NEAR, tree.ends[whole])):
            break
        if end < 0 and sum(masses.own[block] for block in masses.blocks if start <= block < at) > _MAX_TEXT:
            break
        node, end = enclose(tree, node, at), at
    return Offer(node, start, max(last, end)) if end >= 0 else None


def _operates(tree: Tree, control: int, is_sure: bool) -> bool:
    """Return True if a control chooses or orders something; `is_sure` excludes buttons outside of forms."""
    if tree.tags[control] == "input":
        return tree.attributes[control].get("type", "").strip().lower() in _CHOOSING
    return (
        tree.tags[control] == "select"
        or not is_sure
        or any(tree.tags[at] == "form" for at in lineage(tree, control, _FORM_LEVELS))
    )
