"""The second pass: a walk over what is visible of a tree, which says what becomes an element, in which region.

Text is gathered once, in `Survey.pieces`; an entry says from where to where its own goes, so no text is copied at every
level. Text that stands in no element of its own is a paragraph of its own, inline markup within it included (4.2).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import Final, TypeAlias

from awp_publish.pages.roles import ACTIONS, MAPPED_TAGS, role_of
from awp_publish.pages.tables import is_layout
from awp_publish.pages.tree import Node, Template, Tree
from awp_publish.pages.visibility import INLINE, STRIPPED, Visibility, text_of

# --- What holds for everything within an element, while a page is walked: bits of one number ---

COVERED: Final = 1
"""Within an element that has the text: only what can be operated, headings and images are elements of their own."""
DISABLED: Final = 2
INERT: Final = 4
IN_FORM: Final = 8
IN_LANDMARK: Final = 16
IN_LINK: Final = 32
IN_LAYOUT: Final = 64


# --- Which element begins a region, and of which role (SOM 1.0, section 3.3) ---
# By ARIA role, by name, by the words of its class or id, as a list of links, as a legal line: in this order. The
# words are compared as words: `domain` is not `main`, `trail` is no `rail`. And a header or footer of a card or of a
# post is a part of that, not of the page.


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


# --- What the second pass finds ---


@dataclass(slots=True, eq=False)
class Entry:
    """What becomes an element: its node, and from where to where its text goes."""

    node: Node
    role: str
    state: int
    start: int = 0
    end: int = 0
    shadow: "Region | None" = None


@dataclass(slots=True, eq=False)
class Region:
    """A region, or what a shadow root holds."""

    landmark: Landmark
    node: Node
    entries: list[Entry] = field(default_factory=list)
    shadows: int = 0


@dataclass(frozen=True, slots=True)
class Survey:
    """The outcome: regions in the order in which they begin, what is in none of them last."""

    regions: Sequence[Region]
    pieces: Sequence[str]
    parts: Mapping[Node, Entry]

    def said(self, node: Node) -> str | None:
        """The text of a part of an element: an item, a cell, an option, a summary. None when it is not to be seen."""
        part = self.parts.get(node)
        return None if part is None else self.text(part)

    def lengths(self) -> list[int]:
        """How many characters there are before each piece, and in all."""
        return list(accumulate(map(len, self.pieces), initial=0))

    def width(self) -> float:
        """How many bytes of UTF-8 a character of this page takes, on average."""
        text = "".join(self.pieces)
        return len(text.encode()) / len(text) if text else 1.0

    def text(self, entry: Entry) -> str:
        """The visible text of an entry, whitespace collapsed (4.6)."""
        return " ".join("".join(self.pieces[entry.start : entry.end]).split())


MOST_SHADOWS: Final = 8
"""Shadow roots one in another; what is in deeper ones counts as the content of the last."""

_STRUCTURE: Final = ("h1", "h2", "h3", "h4", "h5", "h6", "table", "form", "details", "fieldset", "section", "article")
"""A list that holds one of these is no list of lines: what it holds is taken as it comes."""

_SEPARATORS: Final = " \t\r\n\f\xa0\u200b.,:;!?|/\\-_()[]{}<>\u2013\u2014\u2022\u00b7\u00ab\u00bb\u2039\u203a"
"""What stands between links and fields for the eye only: text of nothing else is no paragraph."""

_PARTS: Final = frozenset(("caption", "legend", "li", "option", "td", "th"))
_OPAQUE: Final = frozenset(("hr", "iframe", "img", "input", "svg", "textarea"))
"""Elements of which the content is no text of the page."""

_NOTHING_WITHOUT_CONTENT: Final = ("list", "paragraph", "section")
_HOLDS_OTHERS: Final = frozenset(("section", "group", "details"))
_CONSPICUOUS: Final = frozenset(("aria-hidden", "contenteditable", "hidden", "inert", "role", "style"))
_CLAIMING: Final = frozenset(("contenteditable", "role"))
"""Attributes that give an element a role that its tag has not."""

_LOOKED_AT: Final = STRIPPED | {"img", "svg"}
_PLAIN: Final = INLINE - MAPPED_TAGS - STRIPPED - {"br"}


_Opened: TypeAlias = tuple[Region, int, Entry | None]
_Frame: TypeAlias = tuple[Iterator[Node], Region, int, Entry | None, bool]


def survey(tree: Tree, visibility: Visibility) -> Survey:
    """What the body of a page holds."""
    return _Walk(tree, visibility).survey()


class _Walk:
    __slots__ = (
        "_hosts",
        "_landmarks",
        "_parts",
        "_pieces",
        "_regions",
        "_run",
        "_structured",
        "_summaries",
        "_tree",
        "_visibility",
    )

    def __init__(self, tree: Tree, visibility: Visibility) -> None:
        self._tree, self._visibility = tree, visibility
        self._landmarks = Landmarks(visibility)
        self._parts: dict[Node, Entry] = {}
        self._pieces: list[str] = []
        self._regions: list[Region] = []
        self._run: tuple[Region, Entry] | None = None
        self._structured = _structured_lists(tree)
        self._summaries: dict[Node, Entry] = {}
        self._hosts: dict[Node, Entry] | None = {} if tree.tagged("template") else None

    def survey(self) -> Survey:
        content = Region(CONTENT, self._tree.body)
        self._walk(content)
        regions = [*self._regions, content]
        waiting = list(regions)
        while waiting:
            region = waiting.pop()
            region.entries = [entry for entry in region.entries if entry.role]
            if self._hosts:
                waiting.extend(entry.shadow for entry in region.entries if entry.shadow is not None)
        return Survey([region for region in regions if region.entries], self._pieces, self._parts)

    def _walk(self, region: Region) -> None:
        """One loop, for it runs for every node of a page. What is rare in it is asked of the methods below."""
        pieces, suspects = self._pieces, self._visibility.reads_classes
        frames, plain = list[_Frame](), _PLAIN - self._visibility.hidden
        children, state, closing, block = iter(region.node.children), 0, None, True
        while True:
            for node in children:
                tag = node.tag
                if not tag:
                    if not state & COVERED and self._run is None and not node.text.isspace():
                        self._run = region, Entry(node, "paragraph", state, len(pieces))
                    pieces.append(node.text)
                    continue
                inside, attributes = node.content if isinstance(node, Template) else node.children, node.attributes
                quiet = not attributes or (not suspects and _CONSPICUOUS.isdisjoint(attributes))
                if quiet and tag in plain:
                    if len(inside) != 1 or inside[0].tag or (not state & COVERED and self._run is None):
                        frames.append((children, region, state, closing, block))
                        children, closing, block = iter(inside), None, False
                        break
                    pieces.append(inside[0].text)
                    continue
                opened = self._enter(node, quiet, region, state)
                if opened is None:
                    continue
                single = len(inside) == 1 and not inside[0].tag and (opened[1] & COVERED or self._run is not None)
                if single or not inside or tag in _OPAQUE:
                    if single and tag not in _OPAQUE:
                        pieces.append(inside[0].text)
                    self._close(opened[0], opened[2], tag not in INLINE)
                    continue
                frames.append((children, region, state, closing, block))
                children, (region, state, closing), block = iter(inside), opened, tag not in INLINE
                break
            else:
                if block or closing is not None:
                    self._close(region, closing, block)
                if not frames:
                    return
                children, region, state, closing, block = frames.pop()

    def _enter(self, node: Node, quiet: bool, region: Region, state: int) -> _Opened | None:
        """What begins with an element, or None when nothing of it is to be seen."""
        tag = node.tag
        if quiet and tag == "a" and "href" in node.attributes:
            return self._link(node, region, state)
        if tag == "template":
            return self._shadow(node, region, state)
        if (not quiet or tag in _LOOKED_AT or self._visibility.reads_classes) and self._visibility.hides(node):
            return None
        return self._open(node, region, state)

    def _link(self, node: Node, region: Region, state: int) -> _Opened:
        """What `_open` would do for a link that says nothing but where it leads: most elements of most pages."""
        if self._run is not None:
            self._flush()
        entry = Entry(node, "link", state, len(self._pieces))
        region.entries.append(entry)
        if self._hosts is not None and _is_host(node):
            self._hosts[node] = entry
        return region, state | COVERED | IN_LINK, entry

    def _close(self, region: Region, entry: Entry | None, block: bool) -> None:
        if block:
            if self._run is not None:
                self._flush()
            self._pieces.append(" ")
        if entry is None:
            return
        entry.end = len(self._pieces)
        if entry.role in _NOTHING_WITHOUT_CONTENT and entry.shadow is None and not self._holds_anything(entry, region):
            entry.role = ""

    def _holds_anything(self, entry: Entry, region: Region) -> bool:
        if entry.role == "section":
            return region.entries[-1] is not entry
        return any(not piece.isspace() for piece in self._pieces[entry.start : entry.end])

    def _flush(self) -> None:
        """Ends the text that stands in no element."""
        if self._run is None:
            return
        region, entry = self._run
        entry.end = len(self._pieces)
        if "".join(self._pieces[entry.start : entry.end]).strip(_SEPARATORS):
            region.entries.append(entry)
        self._run = None

    def _open(self, node: Node, region: Region, state: int) -> _Opened:
        if "inert" in node.attributes:
            state |= INERT
        if node.tag in BEGINNERS or "role" in node.attributes:
            landmark = self._landmarks.of(node, state)
            if landmark is not None:
                return self._begin(landmark, node, state)
        if node in self._summaries:
            entry = self._summaries.pop(node)
            self._flush()
            entry.start = len(self._pieces)
            self._parts[node] = entry
            return region, state | COVERED, entry
        role = self._role(node, state)
        if node.tag not in INLINE or role is not None:
            self._flush()
        if node.tag not in INLINE or node.tag == "br":
            self._pieces.append(" ")
        if role is None:
            state |= IN_LAYOUT if node.tag == "table" else 0
            held = node.tag == "legend" and node.parent is not None and node.parent.tag == "fieldset"
            return region, state | COVERED if held else state, self._part(node, state)
        entry = Entry(node, role, state, len(self._pieces))
        region.entries.append(entry)
        if node.tag in _PARTS:
            self._parts[node] = entry
        return region, self._inside(entry, state), None if role == "details" else entry

    def _part(self, node: Node, state: int) -> Entry | None:
        """Where the text of an item, a cell or an option goes, which its list, table or select will ask for."""
        if node.tag not in _PARTS:
            return None
        part = self._parts[node] = Entry(node, "", state, len(self._pieces))
        return part

    def _begin(self, landmark: Landmark, node: Node, state: int) -> _Opened:
        self._flush()
        region = Region(landmark, node)
        self._regions.append(region)
        return region, state & ~COVERED | (IN_FORM if landmark is FORM else 0) | IN_LANDMARK, None

    def _role(self, node: Node, state: int) -> str | None:
        is_plain = node.tag not in MAPPED_TAGS and _CLAIMING.isdisjoint(node.attributes)
        role = None if is_plain and self._hosts is None else role_of(node)
        if (role == "list" and node in self._structured) or (
            role == "table" and is_layout(node, bool(state & IN_LAYOUT))
        ):
            role = None
        if state & COVERED and role not in ACTIONS and role != "heading":
            named = role == "image" and not state & IN_LINK and bool(node.attributes.get("alt", "").strip())
            role = role if named else None
        if self._hosts is not None and role is None and _is_host(node):
            return "section"
        return role

    def _inside(self, entry: Entry, state: int) -> int:
        """The state within an element."""
        node, role = entry.node, entry.role
        if self._hosts is not None and _is_host(node):
            self._hosts[node] = entry
        if role == "details":
            summary = next((child for child in node.children if child.tag == "summary"), None)
            if summary is not None:
                self._summaries[summary] = entry
        if node.tag == "fieldset" and "disabled" in node.attributes:
            state |= DISABLED
        if node.tag == "article":
            state |= IN_LANDMARK
        if role in ("link", "button"):
            state |= IN_LINK
        return state if role in _HOLDS_OTHERS else state | COVERED

    def _shadow(self, node: Node, region: Region, state: int) -> _Opened | None:
        """What a shadow root holds goes to its host, or, when there are too many, to where the host itself went."""
        if not isinstance(node, Template) or node.shadow_mode is None or isinstance(node.parent, Template | None):
            return None  # a root of a root has no host: it stays a template
        self._flush()
        host = None if self._hosts is None else self._hosts.get(node.parent)
        if host is None or region.shadows >= MOST_SHADOWS:
            return region, state, None
        if host.shadow is not None:
            return None
        host.shadow = Region(CONTENT, node, shadows=region.shadows + 1)
        return host.shadow, (state | IN_FORM) & ~COVERED, None


def _is_host(node: Node) -> bool:
    return any(isinstance(child, Template) and child.shadow_mode is not None for child in node.children)


def _structured_lists(tree: Tree) -> set[Node]:
    """Every element around something with a structure. Each is come by once, however many it holds."""
    around: set[Node] = set()
    for tag in _STRUCTURE:
        for node in tree.tagged(tag):
            above = node.parent
            while above is not None and above not in around:
                around.add(above)
                above = above.parent
    return around
