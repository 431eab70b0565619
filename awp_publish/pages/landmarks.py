"""Which element begins a region, and of which role (SOM 1.0, section 3.3).

By ARIA role, by name, by the words of its class or id, as a list of links, as a legal line: in this order. The words
are compared as words: `domain` is not `main`, `trail` is no `rail`. And a header or footer of a card or of a post is a
part of that, not of the page.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from awp_publish.pages.states import COVERED, IN_FORM, IN_LANDMARK
from awp_publish.pages.tree import Node
from awp_publish.pages.visibility import Visibility, text_of


@dataclass(frozen=True, slots=True)
class Landmark:
    """The role of a region, and what its id is made from: `r_navigation`, or `r_search` for a search."""

    role: str
    base: str


def _landmark(role: str) -> Landmark:
    return Landmark(role, role)


SEARCH: Final = Landmark("navigation", "search")
NAVIGATION: Final = _landmark("navigation")
MAIN: Final = _landmark("main")
ASIDE: Final = _landmark("aside")
HEADER: Final = _landmark("header")
FOOTER: Final = _landmark("footer")
DIALOG: Final = _landmark("dialog")
FORM: Final = _landmark("form")
CONTENT: Final = _landmark("content")

_ARIA: Final[Mapping[str, Landmark]] = {
    "navigation": NAVIGATION,
    "main": MAIN,
    "complementary": ASIDE,
    "banner": HEADER,
    "contentinfo": FOOTER,
    "dialog": DIALOG,
    "alertdialog": DIALOG,
    "search": SEARCH,
}
TAGS: Final[Mapping[str, Landmark]] = {
    "nav": NAVIGATION,
    "main": MAIN,
    "aside": ASIDE,
    "header": HEADER,
    "footer": FOOTER,
    "dialog": DIALOG,
    "form": FORM,
}
HINTED: Final = frozenset(("div", "section", "article", "ul", "ol"))
"""Elements of which the words of class and id are read."""

BEGINNERS: Final = HINTED | TAGS.keys()
"""Elements that may begin a region without a role."""

_PHRASES: Final = (
    (MAIN, re.compile(r"\b(?:main content|maincontent|primary content|article body)\b")),
    (NAVIGATION, re.compile(r"\b(?:(?:top|sub|side|site|main|mega)?(?:nav|menu)(?:bar|s)?|navigation)\b")),
    (MAIN, re.compile(r"\bmain\b(?!.*\b(?:header|footer|sidebar|aside|search)\b)")),
    (ASIDE, re.compile(r"\b(?:sidebar|side bar|aside|rail)\b")),
    (FOOTER, re.compile(r"\b(?:footer|copyright)\b")),
    (HEADER, re.compile(r"\b(?:header|masthead)\b")),
    (SEARCH, re.compile(r"\bsearch\b")),
)
_PART_OF_SOMETHING: Final = re.compile(
    r"\b(?:accordion|alert|card|cell|column|comment|dialog|entry|figure|item|link|list|modal|panel|popover|"
    r"popup|post|product|result|results|row|section|tab|table|title|toast|toggle|tooltip|widget)\b"
)
_BOUNDARY: Final = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z])(?=[A-Z])|(?<=\D)(?=\d)")

_LEGAL: Final = re.compile(r"©|\(c\)\s*\d{4}|\bcopyright\b[^a-z]{0,3}\d{4}|\ball rights reserved\b")
_LEGAL_LINK: Final = re.compile(r"\s*(?:privacy|terms of)\b")
MOST_LEGAL_CHARACTERS: Final = 400
MOST_LOOKS: Final = 2_000
"""Blocks of a page that are looked at as possible legal lines."""

MOST_WORDS: Final = 500
"""Characters of a class or an id that are read."""

_MOST_NODES: Final = 120
LEAST_LINKS: Final = 3


def landmark_by_role(element: Node) -> Landmark | None:
    """By the first ARIA role of the element that is a landmark's."""
    roles = element.attributes["role"].lower().split()
    return next((_ARIA[role] for role in roles if role in _ARIA), None)


@lru_cache(maxsize=1_024)
def landmark_by_words(text: str) -> Landmark | None:
    """By the words of a class or an id. One name at a time: `card nav` is of two names, `card-nav` is one.

    The pages of a site have the same classes, so what was found is kept for the next page.
    """
    for name in text.split():
        words = " ".join(_BOUNDARY.split(name)).lower()
        if _PART_OF_SOMETHING.search(words) and "article body" not in words:
            continue
        for landmark, phrase in _PHRASES:
            if phrase.search(words):
                return landmark
    return None


def is_link_list(element: Node) -> bool:
    """Whether three children or more, and more than half of them, are links, or items with nothing but a link."""
    children = [child for child in element.children if child.tag or not child.text.isspace()]
    links = sum(1 for child in children if _is_link(child))
    return links >= LEAST_LINKS and links * 2 > len(children)


def _is_link(child: Node) -> bool:
    if child.tag == "li":
        held = [inner for inner in child.children if inner.tag or not inner.text.isspace()]
        return len(held) == 1 and _is_link(held[0])
    return child.tag == "a" and "href" in child.attributes


def is_legal_line(element: Node, visibility: Visibility) -> bool:
    """Whether a block is the legal line of a page: short, without headings or controls, with a notice or its links."""
    waiting, legal = list(element.children), False
    for _ in range(_MOST_NODES):
        if not waiting:
            break
        node = waiting.pop()
        if node.tag in _NOT_LEGAL:
            return False
        if node.tag == "a" and "href" in node.attributes:
            legal = legal or any(_LEGAL_LINK.match(piece.text.lower()) for piece in node.children)
        waiting.extend(node.children)
    if waiting:
        return False
    text = text_of(element, visibility, most_nodes=_MOST_NODES)
    return len(text) <= MOST_LEGAL_CHARACTERS and (legal or _LEGAL.search(text.lower()) is not None)


_NOT_LEGAL: Final = frozenset(
    ("article", "button", "form", "h1", "h2", "h3", "input", "main", "nav", "select", "table", "textarea", "footer")
)


class Landmarks:
    """Which elements of one page begin regions."""

    __slots__ = ("_looks", "_visibility")

    def __init__(self, visibility: Visibility) -> None:
        self._visibility = visibility
        self._looks = 0

    def of(self, node: Node, state: int) -> Landmark | None:
        """By the precedence of 3.3; but a `<form>` is a form, and in a form nothing else begins."""
        tag, attributes = node.tag, node.attributes
        if state & IN_FORM:
            return None
        found = TAGS.get(tag)
        if found is not FORM and "role" in attributes:
            found = landmark_by_role(node) or found
        if state & COVERED:
            return found if found in (FORM, DIALOG) else None
        if found is not None or tag not in HINTED:
            return found
        for name in ("class", "id"):
            said = landmark_by_words(attributes[name][:MOST_WORDS]) if name in attributes else None
            if said is not None:
                return said
        return None if state & IN_LANDMARK else self._guess(node)

    def _guess(self, node: Node) -> Landmark | None:
        if node.tag in ("div", "ul", "ol") and is_link_list(node):
            return NAVIGATION
        if node.tag not in ("div", "section") or self._looks >= MOST_LOOKS:
            return None
        self._looks += 1
        return FOOTER if is_legal_line(node, self._visibility) else None
