"""The second pass: a walk over what is visible of a tree, which says what becomes an element, in which region.

Text is gathered once, in `Survey.pieces`; an entry says from where to where its own goes, so no text is copied at every
level. Text that stands in no element of its own is a paragraph of its own, inline markup within it included (4.2).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, TypeAlias

from awp_publish.pages import landmarks
from awp_publish.pages.landmarks import (
    HINTED,
    Landmark,
    is_legal_line,
    is_link_list,
    landmark_by_role,
    landmark_by_words,
)
from awp_publish.pages.roles import ACTIONS, MAPPED_TAGS, role_of
from awp_publish.pages.tables import is_layout
from awp_publish.pages.tree import Node, Template, Tree
from awp_publish.pages.visibility import INLINE, STRIPPED, Visibility

COVERED: Final = 1
"""Within an element that has the text: only what can be operated, headings and images are elements of their own."""
DISABLED: Final = 2
INERT: Final = 4
IN_FORM: Final = 8
IN_LANDMARK: Final = 16
IN_LINK: Final = 32
IN_LAYOUT: Final = 64

MOST_SHADOWS: Final = 8
"""Shadow roots one in another; what is in deeper ones counts as the content of the last."""

MOST_LOOKS: Final = 2_000
"""Blocks of a page that are looked at as possible legal lines."""

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

    def text(self, entry: Entry) -> str:
        """The visible text of an entry, whitespace collapsed (4.6)."""
        return " ".join("".join(self.pieces[entry.start : entry.end]).split())


_Opened: TypeAlias = tuple[Region, int, Entry | None]
_Frame: TypeAlias = tuple[Iterator[Node], Region, int, Entry | None, bool]


def survey(tree: Tree, visibility: Visibility) -> Survey:
    """What the body of a page holds."""
    return _Walk(tree, visibility).survey()


class _Walk:
    __slots__ = (
        "_hosts",
        "_looks",
        "_parts",
        "_pieces",
        "_regions",
        "_run",
        "_structured",
        "_summaries",
        "_tree",
        "_visibility",
        "_words",
    )

    def __init__(self, tree: Tree, visibility: Visibility) -> None:
        self._tree, self._visibility = tree, visibility
        self._looks = 0
        self._parts: dict[Node, Entry] = {}
        self._pieces: list[str] = []
        self._regions: list[Region] = []
        self._run: tuple[Region, Entry] | None = None
        self._structured = _structured_lists(tree)
        self._summaries: dict[Node, Entry] = {}
        self._hosts: dict[Node, Entry] | None = {} if tree.tagged("template") else None
        self._words: dict[str, Landmark | None] = {}

    def survey(self) -> Survey:
        content = Region(landmarks.CONTENT, self._tree.body)
        self._walk(content)
        regions = [*self._regions, content]
        for region in regions:
            region.entries = [entry for entry in region.entries if entry.role]
        return Survey([region for region in regions if region.entries], self._pieces, self._parts)

    def _walk(self, region: Region) -> None:
        """One loop, for it runs for every node of a page. What is rare in it is asked of the methods below."""
        pieces, hides, suspects = self._pieces, self._visibility.hides, self._visibility.reads_classes
        plain = _PLAIN - self._visibility.hidden
        frames: list[_Frame] = []
        children, state, closing, block = iter(region.node.children), 0, None, True
        while True:
            for node in children:
                tag = node.tag
                if not tag:
                    if self._run is None and not state & COVERED and not node.text.isspace():
                        self._run = region, Entry(node, "paragraph", state, len(pieces))
                    pieces.append(node.text)
                    continue
                inside, attributes = node.children, node.attributes
                if tag in plain and (not attributes or (not suspects and _CONSPICUOUS.isdisjoint(attributes))):
                    if len(inside) == 1 and not inside[0].tag and (state & COVERED or self._run is not None):
                        pieces.append(inside[0].text)
                        continue
                    opened: _Opened | None = (region, state, None)
                elif tag == "template":
                    opened, inside = self._shadow(node, region, state), _content_of(node)
                elif (suspects or tag in _LOOKED_AT or not _CONSPICUOUS.isdisjoint(attributes)) and hides(node):
                    continue
                else:
                    opened = self._open(node, region, state)
                if opened is None:
                    continue
                if not inside or tag in _OPAQUE:
                    self._close(region, opened[2], tag not in INLINE)
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
        landmark = self._landmark(node, state)
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
        return region, state & ~COVERED | (IN_FORM if landmark is landmarks.FORM else 0) | IN_LANDMARK, None

    def _role(self, node: Node, state: int) -> str | None:
        role = role_of(node) if node.tag in MAPPED_TAGS or not _CLAIMING.isdisjoint(node.attributes) else None
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
        host.shadow = Region(landmarks.CONTENT, node, shadows=region.shadows + 1)
        return host.shadow, (state | IN_FORM) & ~COVERED, None

    def _landmark(self, node: Node, state: int) -> Landmark | None:
        """By the precedence of 3.3; but a `<form>` is a form, and in a form nothing else begins."""
        tag, attributes = node.tag, node.attributes
        if state & IN_FORM:
            return None
        found = landmarks.TAGS.get(tag)
        if found is not landmarks.FORM and "role" in attributes:
            found = landmark_by_role(node) or found
        if state & COVERED:
            return found if found in (landmarks.FORM, landmarks.DIALOG) else None
        if found is not None or tag not in HINTED:
            return found
        return (
            self._by_words(attributes.get("class")) or self._by_words(attributes.get("id")) or self._guess(node, state)
        )

    def _by_words(self, text: str | None) -> Landmark | None:
        if not text:
            return None
        if text not in self._words:
            self._words[text] = landmark_by_words(text)
        return self._words[text]

    def _guess(self, node: Node, state: int) -> Landmark | None:
        if state & IN_LANDMARK:
            return None
        if node.tag in ("div", "ul", "ol") and is_link_list(node):
            return landmarks.NAVIGATION
        if node.tag in ("div", "section") and self._looks < MOST_LOOKS:
            self._looks += 1
            return landmarks.FOOTER if is_legal_line(node, self._visibility) else None
        return None


def _content_of(node: Node) -> Sequence[Node]:
    return node.content if isinstance(node, Template) else ()


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
