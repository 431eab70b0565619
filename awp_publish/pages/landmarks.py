"""Landmarks: elements that begin a region (SOM 1.0, section 3.3).

In this order: the main content of a page that is an article, the ARIA role, the tag, the words of class or id, a list
of links, a legal line. Words are compared as whole words: `domain` is not `main`, `trail` is not `rail`. They say
nothing within the main content, nor of what is around it. A header or footer of a card or a post is a part of that, not
of the page.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from awp_publish.pages.content import MainContent
from awp_publish.pages.flags import COVERED, IN_FORM, IN_LANDMARK, IN_SECTIONING
from awp_publish.pages.roles import ACTIONS, role_of
from awp_publish.pages.tree import COMMENT, Tree
from awp_publish.pages.visibility import Visibility, text_of


@dataclass(frozen=True, slots=True)
class Landmark:
    """The role of a region, and the base of its id: `r_navigation`, or `r_search` for a search."""

    role: str
    base: str


SEARCH: Final = Landmark("navigation", "search")
NAVIGATION: Final = Landmark("navigation", "navigation")
MAIN: Final = Landmark("main", "main")
ASIDE: Final = Landmark("aside", "aside")
HEADER: Final = Landmark("header", "header")
FOOTER: Final = Landmark("footer", "footer")
DIALOG: Final = Landmark("dialog", "dialog")
FORM: Final = Landmark("form", "form")
CONTENT: Final = Landmark("content", "content")

_ARIA_LANDMARKS: Final[Mapping[str, Landmark]] = {
    "navigation": NAVIGATION,
    "main": MAIN,
    "complementary": ASIDE,
    "banner": HEADER,
    "contentinfo": FOOTER,
    "dialog": DIALOG,
    "alertdialog": DIALOG,
    "search": SEARCH,
    "form": FORM,
}
_LANDMARK_TAGS: Final[Mapping[str, Landmark]] = {
    "nav": NAVIGATION,
    "main": MAIN,
    "aside": ASIDE,
    "header": HEADER,
    "footer": FOOTER,
    "dialog": DIALOG,
    "search": SEARCH,
    "form": FORM,
}
_HINTED: Final = frozenset(("div", "section", "article", "ul", "ol"))
"""Tags of elements whose class and id are examined."""

BEGINNERS: Final = _HINTED | _LANDMARK_TAGS.keys()
"""Tags of elements that may begin a region without a role."""

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
_LEGAL_WORDS: Final = ("\u00a9", "(c)", "copyright", "reserved")
"""Parts of such lines, for a quick test."""

_LEGAL_LINK: Final = re.compile(r"\s*(?:privacy|terms of)\b")
_NOT_LEGAL: Final = frozenset(
    ("article", "button", "form", "h1", "h2", "h3", "input", "main", "nav", "select", "table", "textarea", "footer")
)
MAX_LEGAL_LENGTH: Final = 400
_MAX_LEGAL_NODES: Final = 120
MAX_LEGAL_CANDIDATES: Final = 2_000
"""Blocks of a page that are examined as possible legal lines."""

MAX_WORDS_LENGTH: Final = 500
"""Characters of a class or an id that are examined."""

_PERMALINKS: Final = frozenset("#¶§∞🔗")

_ALONE: Final = frozenset(ACTIONS) - {"details"} | {"heading", "image"}
MIN_LINKS: Final = 3
"""Links that a list needs to count as navigation."""


@lru_cache(maxsize=1_024)
def _landmark_by_words(text: str) -> Landmark | None:
    """Return the landmark that the words of a class or an id name.

    Names are examined one at a time: `card nav` has two names, `card-nav` is one. The pages of a site share their
    classes, so the results are cached.
    """
    for name in text.split():
        words = " ".join(_BOUNDARY.split(name)).lower()
        if _PART_OF_SOMETHING.search(words) and "article body" not in words:
            continue
        for landmark, phrase in _PHRASES:
            if phrase.search(words):
                return landmark
    return None


class Landmarks:
    """Finds the elements of one page that begin regions."""

    __slots__ = (
        *("_around", "_attributes", "_end", "_legal_candidates", "_start", "_tree", "_visibility"),
        *("article", "asides", "begun"),
    )

    def __init__(self, visibility: Visibility, content: MainContent) -> None:
        tree = self._tree = visibility.tree
        self._visibility, self._attributes, self._around = visibility, tree.attributes, content.around
        is_part = content.node != tree.body_at
        self._start, self._end = (content.node, tree.ends[content.node]) if is_part else (0, 0)
        """The range of the main content, if that is not the whole page."""
        self._legal_candidates = 0
        self.article = content.node if content.is_chosen else -1
        """The element that has the article, the product or the list of the page; -1 if there is none."""
        left_out = content.left_out if content.is_chosen else ()
        self.asides = frozenset(at for at in left_out if self._holds_elements(at))
        """Blocks within the article that are no part of it."""
        self.begun = set[int]()
        """Those of them that are elements of the region that they began: lists, tables."""

    def _holds_elements(self, node: int) -> bool:
        """Return False for a heading, a control or an image: it is an element by itself, wherever it is left out."""
        return role_of(self._tree.tags[node], self._attributes[node]) not in _ALONE

    def of(self, node: int, state: int) -> Landmark | None:
        """Return the landmark by the precedence of 3.3. A `<form>` is always a form; nothing else begins in a form."""
        if state & IN_FORM or node in self.begun:
            return None
        tag, attributes = self._tree.tags[node], self._attributes[node]
        landmark = None if state & IN_SECTIONING and tag in ("footer", "header") else _LANDMARK_TAGS.get(tag)
        if "role" in attributes and landmark is not FORM:
            roles = attributes["role"].lower().split()
            landmark = next((_ARIA_LANDMARKS[role] for role in roles if role in _ARIA_LANDMARKS), landmark)
        if state & COVERED:
            return landmark if landmark in (FORM, DIALOG) else None
        if node == self.article:
            return MAIN
        if node in self.asides:
            return landmark or ASIDE
        if node in self._around:  # also a form: some frameworks have the whole page in one
            return landmark if self.article < 0 or landmark is DIALOG else None
        if landmark is not None or tag not in _HINTED or self._start < node < self._end:
            return landmark
        landmark = self._by_words(attributes)
        if landmark is not None or state & IN_LANDMARK:
            return landmark
        if tag in ("div", "ul", "ol") and self._is_menu(node):
            return NAVIGATION
        return FOOTER if tag in ("div", "section") and self._is_legal_line(node) else None

    def _by_words(self, attributes: Mapping[str, str]) -> Landmark | None:
        for name in ("class", "id"):
            if name in attributes:
                landmark = _landmark_by_words(attributes[name][:MAX_WORDS_LENGTH])
                if landmark is not None and (landmark is not MAIN or self.article < 0):
                    return landmark
        return None

    def _is_menu(self, node: int) -> bool:
        """Return True if a block has several links and little else."""
        tree, children, links = self._tree, 0, 0
        child, end = node + 1, tree.ends[node]
        while child < end:
            if is_content(tree, child):
                children += 1
                links += is_link(tree, child)
            child = tree.ends[child]
        return links >= MIN_LINKS and links * 2 > children

    def _is_legal_line(self, node: int) -> bool:
        """Return True for a short block without headings and controls that has a legal notice or a link to one.

        A text node that is the only content of an element is not counted by itself.
        """
        if self._legal_candidates >= MAX_LEGAL_CANDIDATES:
            return False
        self._legal_candidates += 1
        tree = self._tree
        tags, ends, end = tree.tags, tree.ends, tree.ends[node]
        if end - node > 2 * _MAX_LEGAL_NODES + 1:
            return False
        is_linked, nodes = False, 0
        for at in range(node + 1, end):
            tag = tags[at]
            if tag in _NOT_LEGAL:
                return False
            nodes += bool(tag) or tree.parents[at] != at - 1 or ends[at - 1] != at + 1
            if tag == "a" and not is_linked and "href" in self._attributes[at]:
                is_linked = any(_LEGAL_LINK.match(tree.texts[piece].lower()) for piece in tree.children(at))
        text = "".join(tree.texts[node:end]).lower()
        if nodes > _MAX_LEGAL_NODES or not (is_linked or any(word in text for word in _LEGAL_WORDS)):
            return False
        text = text_of(self._visibility, node, max_nodes=_MAX_LEGAL_NODES)
        return len(text) <= MAX_LEGAL_LENGTH and (is_linked or _LEGAL.search(text.lower()) is not None)


def is_permalink(tree: Tree, link: int) -> bool:
    """Return True if a link is the sign beside a heading that leads to the heading itself."""
    text = tree.only(link)
    return text is not None and text.strip() in _PERMALINKS and tree.attributes[link]["href"].startswith("#")


def is_link(tree: Tree, child: int) -> bool:
    """Return True if a node is a link, or an item that contains only a link."""
    while tree.tags[child] == "li":
        inner = [part for part in tree.children(child) if is_content(tree, part)]
        if len(inner) != 1:
            return False
        child = inner[0]
    return tree.tags[child] == "a" and "href" in tree.attributes[child]


def is_content(tree: Tree, node: int) -> bool:
    tag = tree.tags[node]
    return tag != COMMENT if tag else not tree.texts[node].isspace()
