"""Tells what within the main content is no part of it.

In an article these are blocks that are mostly links, what is beside its parts and unlike them, and links of symbols; in
any content the headings and labels of which nothing else is left.
"""

import re
from bisect import bisect_left
from collections.abc import Set
from typing import Final

from awp_publish.pages.masses import HEADINGS, Masses
from awp_publish.pages.texts import MIN_ARTICLE, Text
from awp_publish.pages.tree import Tree

_KEPT: Final = frozenset(
    (
        *("blockquote", "caption", "dd", "dl", "dt", "figcaption", "figure", "p", "pre"),
        *("table", "tbody", "td", "tfoot", "th", "thead", "tr"),
    )
)
"""Blocks and parts of blocks that stay with what they are beside of."""

_LINKED: Final = frozenset(("article", "div", "dl", "ol", "p", "section", "ul"))
"""Blocks that are left out of an article if they are mostly links."""

_MAX_LINKS: Final = 0.3
"""The part of a text beside an article's best part that may be links."""

_MIN_FIELDS: Final = 4
"""Fields that make a form a part of what it is in."""

_SMALL: Final = 0.12
"""The part of the text before it up to which a block unlike it is no part of an article."""

_APPENDED: Final = frozenset(("aside", "div", "section"))
_MAX_LABEL: Final = 30
"""Characters of a text that is no more than the label of what is beside it: "Share"."""

_LABEL_LEVELS: Final = 3
"""Levels of elements around what is left out that may be labels of it."""

_MAX_HEADINGS: Final = 3
"""Headings whose sections are left out; more of them are what an article is made of."""

_ELSEWHERE: Final = re.compile(r"\s*(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)
_SAYS: Final = HEADINGS | {
    *("audio", "button", "canvas", "iframe", "img", "input", "math", "object", "picture", "select"),
    *("table", "textarea", "video"),
}
"""Elements that say something without text."""

_MOSTLY_LINKS: Final = 0.33
_MOSTLY_LINKS_P: Final = 0.6
_HELD: Final = 0.5
"""The part of an article's sentences with which a block is the article, however many links are in it."""

_MARKED: Final = 40
"""Characters for each mark up to which a text is sentences."""


def trim_article(tree: Tree, masses: Masses, text: Text, article: int) -> set[int]:
    """Return what is no part of an article, in it or beside it; `text` is what of it was found first."""
    left_out = _mostly_links(tree, masses, article)
    left_out |= {at for at in masses.beside if tree.tags[at] != "form" or _is_small(tree, masses, at)}
    return left_out | _siblings(tree, masses, text.best, article)


def _is_small(tree: Tree, masses: Masses, form: int) -> bool:
    """Return True for a form with little text and few fields, such as one for a newsletter."""
    fields = bisect_left(masses.fields, tree.ends[form]) - bisect_left(masses.fields, form)
    return masses.chars[form] < MIN_ARTICLE and fields < _MIN_FIELDS


def _siblings(tree: Tree, masses: Masses, found: int, article: int) -> set[int]:
    """Return what is beside the way from an article to its best part, and is none of it.

    These are comments, other articles, and after the text small blocks unlike it: about the author, an offer.
    """
    tags, parents, ends = tree.tags, tree.parents, tree.ends
    others = set[int]()
    while found != article:
        parent = parents[found]
        posts = _posts(tree, masses, found)
        for child in tree.children(parent):
            if child == found or not tags[child] or not masses.chars[child] or child in masses.beside or child in posts:
                continue
            tag, inner = tags[child], set(tags[child : ends[child]])
            if tag in HEADINGS or tag in _KEPT or "h1" in inner:
                continue
            if (
                "article" in inner
                or "textarea" in inner
                or (tag in ("ul", "ol") and not inner.isdisjoint(("article", "div", "p")))
                or masses.links[child] > _MAX_LINKS * masses.chars[child]
                or masses.marks[child] < masses.chars[child] / 200
                or (child > found and _is_appended(tree, masses, found, child))
            ):
                others.add(child)
        found = parent
    return others


def _is_appended(tree: Tree, masses: Masses, text: int, block: int) -> bool:
    """Return True if a block is small beside the text before it, and unlike it."""
    if tree.tags[block] not in _APPENDED:
        return False
    words, others = (set(tree.attributes[at].get("class", "").split()) for at in (text, block))
    is_alike = tree.tags[text] == tree.tags[block] and (not words.isdisjoint(others) or not (words or others))
    return not is_alike and masses.chars[block] < _SMALL * masses.chars[text]


def _posts(tree: Tree, masses: Masses, branch: int) -> set[int]:
    """Return what is beside a part of an article and is alike, if all that says as much: the posts of a thread."""
    tag, words = tree.tags[branch], set(tree.attributes[branch].get("class", "").split())
    alike = {
        child
        for child in tree.children(tree.parents[branch])
        if child != branch
        and tree.tags[child] == tag
        and (not words or not words.isdisjoint(tree.attributes[child].get("class", "").split()))
        and masses.marks[child]
    }
    said = sum(masses.chars[child] - masses.links[child] for child in alike)
    return alike if said >= masses.chars[branch] - masses.links[branch] else set()


def _mostly_links(tree: Tree, masses: Masses, article: int) -> set[int]:
    """Return the blocks in an article that are mostly links, and not sentences."""
    tags, ends, chars, links, marks = tree.tags, tree.ends, masses.chars, masses.links, masses.marks
    most = chars[article] - links[article]
    found = set[int]()
    skip = -1
    for at in masses.blocks:
        if at >= skip and article < at < ends[article] and chars[at] and tags[at] in _LINKED:
            share = _MOSTLY_LINKS_P if tags[at] == "p" else _MOSTLY_LINKS
            is_text = chars[at] - links[at] > _HELD * most
            if links[at] > share * chars[at] and marks[at] < chars[at] / _MARKED and not is_text:
                found.add(at)
                skip = ends[at]
    return found


def symbols_in(tree: Tree, masses: Masses, article: int) -> set[int]:
    """Return the blocks in an article that are links without any text or picture, such as those that share a page."""
    tags, ends, found, skip = tree.tags, tree.ends, set[int](), -1
    for at in masses.blocks:
        if at < skip or masses.chars[at] or tags[at] not in _LINKED or not article < at < ends[article]:
            continue
        skip = ends[at]
        leads_away = (
            tree.attributes[link].get("href", "")[:1] not in ("", "#") for link in range(at, skip) if tags[link] == "a"
        )
        if at not in masses.beside and any(leads_away) and not _acts(tree, at) and _SAYS.isdisjoint(tags[at:skip]):
            found.add(at)
    return found


def _acts(tree: Tree, block: int) -> bool:
    """Return True if all links of a block have names and lead to places of the site: to quote, to reply, to edit."""
    links = [tree.attributes[at] for at in range(block, tree.ends[block]) if tree.tags[at] == "a"]
    return all(
        (given.get("aria-label") or given.get("title")) and not _ELSEWHERE.match(given.get("href", ""))
        for given in links
    )


def with_labels(tree: Tree, masses: Masses, node: int, parts: Set[int]) -> frozenset[int]:
    """Return parts that are left out, with the blocks and the headings that have nothing else."""
    parts |= _wrappers(tree, masses, node, parts)
    return frozenset(parts | _headings_of(tree, masses, parts))


def _wrappers(tree: Tree, masses: Masses, article: int, parts: Set[int]) -> set[int]:
    """Return the blocks that have nothing but a label besides parts of an article that are left out."""
    found, rest = set[int](), dict[int, int]()
    waiting = [(at, 0) for at in sorted(parts, reverse=True)]
    for at, level in waiting:
        block = tree.parents[at]
        rest.setdefault(block, masses.chars[block])
        rest[block] -= 0 if at in masses.beside else masses.chars[at]
        if (
            rest[block] <= _MAX_LABEL
            and level < _LABEL_LEVELS
            and block != article
            and block not in parts
            and block not in found
            and tree.tags[block] in _LINKED
            and _SAYS.isdisjoint(tree.tags[block : tree.ends[block]])
        ):
            found.add(block)
            waiting.append((block, level + 1))
    return found


def _headings_of(tree: Tree, masses: Masses, parts: Set[int]) -> set[int]:
    """Return the headings of sections of which nothing is left."""
    found = set[int]()
    for parent in {tree.parents[at] for at in parts}:
        siblings = [at for at in tree.children(parent) if tree.tags[at] and (masses.chars[at] or at in parts)]
        for before, at, after in zip(siblings, siblings[1:], [*siblings[2:], -1], strict=False):
            heading = tree.tags[before]
            if at in parts and heading in HEADINGS and heading != "h1":
                ends = after < 0 or (tree.tags[after] in HEADINGS and tree.tags[after] <= heading)
                found |= {before} if ends else set()
    return found if len(found) <= _MAX_HEADINGS else set()
