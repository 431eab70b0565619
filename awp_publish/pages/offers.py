"""Finds what a page offers: its heading, with a price near it, and what one operates to have it."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from awp_publish.pages.listings import CardList
from awp_publish.pages.masses import Masses, enclose, lineage
from awp_publish.pages.tree import Tree, written_in

_BEFORE: Final = 150
_AFTER: Final = 800
"""Nodes before and after the heading among which the price is."""

_NEAR: Final = 400
"""Nodes after heading and price among which the first control is."""

_MAX_TEXT: Final = 1_500
"""Characters between heading, price and the first control up to which they are about each other."""

_FORM_LEVELS: Final = 12
_CHOOSING: Final = frozenset(("radio", "number", "checkbox", "submit"))
_TYPE: Final = re.compile(r"\"@type\"\s*:\s*\[?\s*\"(\w+)\"")
_ARTICLES: Final = ("Article", "BlogPosting")
_PUBLISHED: Final = re.compile(r"(?i)published|\bpub\w*date|(?<![a-z])date(?!modified)")
_MANUAL: Final = "TechArticle"
"""The article of schema.org that is documentation."""

_SEVERAL: Final = frozenset(("CollectionPage", "ItemList", "OfferCatalog", "SearchResultsPage"))
"""Types of schema.org that a page of several products has."""


@dataclass(frozen=True, slots=True)
class Offer:
    """An offer: the element that has heading, price and controls, and the nodes from the first to the last of them."""

    node: int
    start: int
    end: int


def find_offer(tree: Tree, masses: Masses, whole: int, listing: CardList | None) -> Offer | None:
    """Return the offer of a page, or None if it makes none or several."""
    heading = next((at for at in masses.headings if whole <= at < tree.ends[whole]), None)
    if heading is None:
        return None
    prices = masses.prices[bisect_left(masses.prices, heading - _BEFORE) : bisect_left(masses.prices, heading + _AFTER)]
    price = next((at for at in prices if listing is None or not listing.holds(tree, at)), None)
    if (price is None or says_article(tree)) and not says_product(tree):
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


def says_product(tree: Tree) -> bool:
    """Return True if a page's JSON-LD describes one product: a weak sign, as some shops describe anything."""
    types = _types_of(tree)
    return "ProductGroup" in types or (types.count("Product") == 1 and _SEVERAL.isdisjoint(types))


def says_article(tree: Tree) -> bool:
    """Return True if a page says that it is an article: a weak sign.

    It says so by types of schema.org, or for previews of links. Some say the latter of any page, but not when it was
    published, in its head or in its `<article>`.
    """
    if any(one.endswith(_ARTICLES) and one != _MANUAL for one in _types_of(tree)):
        return True
    metas = [tree.attributes[at] for at in tree.find("meta")]
    is_preview = any(
        one.get("property") == "og:type" and one.get("content", "").strip().lower() == "article" for one in metas
    )
    names = (one.get("property") or one.get("name", "") for one in metas)
    return is_preview and (any(_PUBLISHED.search(name) for name in names) or _is_dated(tree))


def _is_dated(tree: Tree) -> bool:
    """Return True if the only `<article>` with an `h1` has one `<time>`: those of a list or a thread have several."""
    headed = headed_articles(tree, tree.find("h1"))
    return len(headed) == 1 and sum(headed[0] < at < tree.ends[headed[0]] for at in tree.find("time")) == 1


def headed_articles(tree: Tree, headings: Sequence[int]) -> list[int]:
    """Return the `<article>` elements in which there is one of the headings."""
    ends = tree.ends
    return [at for at in tree.find("article") if bisect_left(headings, at) < bisect_left(headings, ends[at])]


def _types_of(tree: Tree) -> list[str]:
    marked = (tree.attributes[at].get("itemtype", "").rstrip("/") for at in (0, tree.body_at, *tree.find("article")))
    return [one.rpartition("/")[2] for one in marked if one] + [
        found
        for at in tree.find("script")
        if tree.attributes[at].get("type", "").strip().lower() == "application/ld+json"
        for found in _TYPE.findall(written_in(tree, at))
    ]
