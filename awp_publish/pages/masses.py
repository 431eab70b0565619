"""Weighs a page: how much text, how much of it in links and how many marks of sentences each element has."""

import re
from dataclasses import dataclass
from typing import Final

from awp_publish.pages.input_types import UNSEEN
from awp_publish.pages.tree import Tree
from awp_publish.pages.visibility import INLINE, STRIPPED, Visibility

MAX_CARD: Final = 1_200
"""Characters that a card has at most; longer blocks are texts."""

HEADINGS: Final = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
SECTIONING: Final = frozenset(("article", "aside", "main", "nav", "section"))
"""Elements whose headers and footers are not those of the page (HTML-AAM)."""

_LANDMARKS: Final = frozenset(("aside", "footer", "form", "header", "nav", "search"))
_LANDMARK_ROLES: Final = frozenset(
    ("alertdialog", "banner", "complementary", "contentinfo", "dialog", "form", "navigation", "search")
)
_OPAQUE: Final = STRIPPED | frozenset(
    (
        *("audio", "button", "canvas", "dialog", "iframe", "input", "label", "noembed", "object", "option"),
        *("select", "svg", "textarea", "video"),
    )
)
"""Elements whose text is not sentences of the page."""

_PHRASES: Final = INLINE - _OPAQUE
"""Elements whose text is that of the block around them."""

_FIELDS: Final = frozenset(("select", "textarea"))
_MARK: Final = re.compile("[.,;:!?\u2026\u060c\u061b\u061f\u0964\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f]")
"""What sentences have and captions lack, in Latin, Arabic, Indian and East Asian scripts."""

_SIGN: Final = "[$\u00a3\u00a5\u20a0-\u20bf\u0e3f]"
_CODE: Final = "(?:AUD|BRL|CAD|CHF|EUR|GBP|INR|NOK|SEK|USD)"
_PRICE: Final = re.compile(
    rf"{_SIGN}\s?\d|\d\s?{_SIGN}|^\s*{_SIGN}\s*$|\b(?:{_CODE}|R[ps]\.?)\s?\d|\d\s?{_CODE}\b"
    r"|\d\s?(?:kr|z\u0142|K\u010d|Ft|lei|TL|\u5186|\u5143|\uc6d0)(?!\w)"
)
"""An amount of money, or the sign of a currency alone, beside which the amount is an element of its own."""

_MAY_PRICE: Final = re.compile(rf"\d|{_SIGN}")

_CODES: Final = frozenset(("code", "kbd", "pre", "samp"))
_CODE_LEVELS: Final = 4
"""Elements in which the sign of a currency says something else, and levels around a text that are searched for them."""

_MAX_PRICE: Final = 40
"""Characters of a text that is a price and little more."""

_MAX_FORM: Final = 600
"""Characters beside labels and controls up to which a form with links is one; a larger one is around a list."""

_MAX_LANDMARK: Final = 0.5
"""The part of a page's sentences above which a landmark is not beside the content but around it."""


@dataclass(frozen=True, slots=True)
class Masses:
    """By element: characters of text, those of them in links, and marks of sentences; for a block, its own text alone.

    `seen` are the visible elements in document order, `blocks` those of them that separate their text; `beside` are
    landmarks other than the main one, whose text counts for themselves only; `main` is the first `<main>` or -1.
    `headings` are the `h1` with a text, those outside of such landmarks if there are any, `fields` what can be filled
    in, `prices` short texts with an amount of money.
    """

    seen: list[int]
    blocks: list[int]
    chars: list[int]
    links: list[int]
    marks: list[int]
    own: list[int]
    own_marks: list[int]
    beside: set[int]
    main: int
    headings: list[int]
    fields: list[int]
    prices: list[int]


def weigh(tree: Tree, visibility: Visibility) -> Masses:
    """Return the masses of a page."""
    tags, texts, parents, ends, attributes = tree.tags, tree.texts, tree.parents, tree.ends, tree.attributes
    size, body = len(tree.tags), tree.body_at
    chars, links, marks, own, own_marks = [0] * size, [0] * size, [0] * size, [0] * size, [0] * size
    block_of, is_linked = [0] * size, [False] * size
    block_of[body] = body
    seen, blocks, landmarks, headings, fields = [body], [body], set[int](), list[int](), list[int]()
    prices = list[int]()
    main, sentences = -1, 0
    noted, marks_in = tree.conspicuous | visibility.by_rule, _MARK.findall
    prices_in, may_price = _PRICE.search, _MAY_PRICE.search
    at, end = body + 1, ends[body]
    while at < end:
        tag, parent = tags[at], parents[at]
        if not tag:
            if text := texts[at].strip():
                length = len(text)
                chars[parent] += length
                if length <= _MAX_PRICE and may_price(text) and prices_in(text) and not _is_code(tree, parent):
                    prices.append(at)
                if is_linked[parent]:
                    links[parent] += length
                else:
                    count = len(marks_in(text))
                    marks[parent] += count
                    sentences += count
                    block = block_of[parent]
                    own[block] += length
                    own_marks[block] += count
            at += 1
            continue
        given = attributes[at]
        if tag in _PHRASES and at not in noted:
            block_of[at] = block_of[parent]
            is_linked[at] = is_linked[parent] or (tag == "a" and "href" in given)
            seen.append(at)
            at += 1
            continue
        if tag in _OPAQUE or (at in noted and visibility.hides(at)):
            if (tag in _FIELDS or (tag == "input" and given.get("type", "").lower() not in UNSEEN)) and not (
                visibility.hides(at)
            ):
                fields.append(at)
            at = ends[at]
            continue
        role = given.get("role", "").strip().lower() if "role" in given else ""
        if tag in _LANDMARKS or role in _LANDMARK_ROLES:
            landmarks.add(at)
        elif tag == "h1":
            headings.append(at)
        elif (tag == "main" or role == "main") and main < 0:
            main = at
        if tag in INLINE:
            block_of[at] = block_of[parent]
        else:
            block_of[at] = at
            blocks.append(at)
        is_linked[at] = is_linked[parent] or (tag == "a" and "href" in given)
        seen.append(at)
        at += 1
    beside = set[int]()
    most = _MAX_LANDMARK * max(sentences, 1)
    for at in seen[:0:-1]:
        if (
            at in landmarks
            and (tags[at] == "nav" or marks[at] <= most)
            and not at < main < ends[at]
            and not (tags[at] == "form" and links[at] and chars[at] > _MAX_FORM)
        ):
            beside.add(at)
            continue
        if chars[at]:
            parent = parents[at]
            chars[parent] += chars[at]
            links[parent] += links[at]
            marks[parent] += marks[at]
    headings = [at for at in headings if chars[at]]
    inside = [at for at in headings if not any(landmark <= at < tree.ends[landmark] for landmark in beside)]
    headings = inside or headings  # the name of a site above its menu is no heading of the page
    return Masses(seen, blocks, chars, links, marks, own, own_marks, beside, main, headings, fields, prices)


def _is_code(tree: Tree, at: int) -> bool:
    return any(tree.tags[ancestor] in _CODES for ancestor in lineage(tree, at, _CODE_LEVELS))


def lineage(tree: Tree, at: int, levels: int) -> list[int]:
    """Return an element and those around it, within the body."""
    found: list[int] = []
    while at > tree.body_at and len(found) <= levels:
        found.append(at)
        at = tree.parents[at]
    return found


def enclose(tree: Tree, at: int, other: int) -> int:
    """Return the innermost element that is or contains both nodes."""
    while not at <= other < tree.ends[at]:
        at = tree.parents[at]
    return at
