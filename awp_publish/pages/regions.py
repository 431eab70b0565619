"""The first pass: a walk over what is visible of a tree, which finds what becomes an element, and in which region.

Text is gathered once, in `Survey.pieces`; a candidate says from where to where its own goes, so no text is copied at
every level. Text that stands in no element of its own is a paragraph, inline markup within it included (4.2).
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias

from awp_publish.pages.tree import COMMENT, INLINE, STRIPPED, Node, Template, Tree, Visibility, read_formulas, text_of

# --- Roles of elements: by the ARIA role first, then by the name (SOM 1.0, sections 4.2 and 4.5) ---

ACTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "link": ("click",),
    "button": ("click",),
    "text_input": ("type", "clear"),
    "textarea": ("type", "clear"),
    "select": ("select",),
    "checkbox": ("toggle",),
    "radio": ("select",),
    "details": ("toggle",),
}
"""Actions of each interactive role (4.2). The others have none."""

CONTROLS: Final = frozenset(ACTIONS) - {"link"}

HIDDEN: Final = "hidden"
"""The role of a hidden input, of which a document says that it is a text input without actions."""

_ARIA_ROLES: Final[Mapping[str, str]] = {
    "button": "button",
    "link": "link",
    "checkbox": "checkbox",
    "switch": "checkbox",
    "menuitemcheckbox": "checkbox",
    "radio": "radio",
    "menuitemradio": "radio",
    "textbox": "text_input",
    "searchbox": "text_input",
    "slider": "text_input",
    "spinbutton": "text_input",
    "combobox": "select",
    "listbox": "select",
    "menuitem": "button",
    "tab": "button",
    "option": "button",
    "img": "image",
    "image": "image",
    "heading": "heading",
    "separator": "separator",
    "group": "group",
    "radiogroup": "group",
    "article": "section",
    "region": "section",
    "paragraph": "paragraph",
}

_TAG_ROLES: Final[Mapping[str, str]] = {
    "button": "button",
    "textarea": "textarea",
    "select": "select",
    **{f"h{level}": "heading" for level in range(1, 7)},
    "img": "image",
    "svg": "image",
    "ul": "list",
    "ol": "list",
    "menu": "list",
    "table": "table",
    "p": "paragraph",
    "section": "section",
    "article": "section",
    "fieldset": "group",
    "hr": "separator",
    "details": "details",
    "iframe": "iframe",
}

_INPUT_TYPES: Final[Mapping[str, str | None]] = {
    **dict.fromkeys(("submit", "button", "reset", "image"), "button"),
    "checkbox": "checkbox",
    "radio": "radio",
    "hidden": None,
}

MAPPED_TAGS: Final = frozenset(_TAG_ROLES) | {"a", "area", "input"}
_EDITABLE: Final = ("", "true", "plaintext-only")
"""Values of `contenteditable` with which an element is typed into (HTML Standard, 6.8.1)."""


def role_of(element: Node) -> str | None:
    """Return the SOM role of an element, or None when it has none.

    An ARIA role that SOM does not know leaves the element what it is by its name. One that cannot be operated leaves a
    link a link, and a control a control. A text field that calls itself a combobox stays a text field.
    """
    tag, attributes = element.tag, element.attributes
    if tag in ("a", "area"):
        native = "link" if "href" in attributes else None
    elif tag == "input":
        native = _INPUT_TYPES.get(input_type(element), "text_input")
    else:
        native = _TAG_ROLES.get(tag)
        if native is None and attributes.get("contenteditable", "no").strip().lower() in _EDITABLE:
            native = "text_input"
    claimed = None
    if "role" in attributes:
        claimed = next(
            (_ARIA_ROLES[token] for token in attributes["role"].lower().split() if token in _ARIA_ROLES), None
        )
    if claimed is None or (native in ACTIONS and claimed not in ACTIONS):
        return native
    return native if native in ("text_input", "textarea") and claimed == "select" else claimed


def input_type(element: Node) -> str:
    """Return the `type` of an `<input>` in lower case; a text field when it has none."""
    return element.attributes.get("type", "").strip().lower() or "text"


# --- Forms: what one sends beside what is typed into it ---

_SECRETS: Final = re.compile(
    r"csrf|xsrf|nonce|authenticity_?token|verification_?token|session|^_?(?:form_?)?token$", re.IGNORECASE
)


_FIELDS: Final = frozenset(("input", "select", "textarea", "button"))
_OWN_STRUCTURE: Final = frozenset(("h1", "h2", "h3", "h4", "h5", "h6", "table", "ul", "ol", "dl", "nav"))


def is_secret(name: str) -> bool:
    """Tell whether a hidden field holds a secret of the session: a CSRF token, by the names that frameworks use."""
    return _SECRETS.search(name) is not None


@dataclass(frozen=True, slots=True)
class FormFields:
    """The parts of a form: whether its reader sees anything to fill in, its hidden inputs, and what submits it.

    One that has a heading, a list or a table has more to say than its button; one without names sends nothing.
    """

    fillable: bool
    hidden: Sequence[Node]
    buttons: Sequence[Node]
    has_structure: bool
    has_names: bool

    @property
    def is_button(self) -> bool:
        """Tell whether the form is but a button of what it stands in."""
        return bool(self.buttons) and not self.fillable and not self.has_structure


def read_form(form: Node, visibility: Visibility) -> FormFields:
    """Return the parts of a form."""
    fillable, hidden, buttons, has_structure, has_names = False, list[Node](), list[Node](), False, False
    waiting = list(reversed(form.children))
    while waiting:
        node = waiting.pop()
        tag = node.tag
        if tag == "input" and (kind := input_type(node)) in ("hidden", "submit", "image", "button", "reset"):
            if kind == "hidden" and node.attributes.get("name") and "disabled" not in node.attributes:
                hidden.append(node)
            elif kind in ("submit", "image"):
                buttons.append(node)
        elif tag in ("input", "select", "textarea"):
            fillable = fillable or not visibility.hides(node)
        elif tag == "button" and node.attributes.get("type", "").strip().lower() not in ("button", "reset"):
            buttons.append(node)
        has_structure = has_structure or tag in _OWN_STRUCTURE
        has_names = has_names or (tag in _FIELDS and bool(node.attributes.get("name")))
        waiting.extend(reversed(node.children))
    return FormFields(fillable, hidden, buttons, has_structure, has_names)


# --- Tables: those that hold data and those that only arrange the page (SOM 1.0, 6.3) ---

PartText: TypeAlias = Callable[[Node], str | None]
"""Returns the text of a part of an element, or None when it is not to be seen."""

_ARRANGING: Final = frozenset(("bgcolor", "border", "cellpadding", "cellspacing", "width"))
_PARTS_OF_PAGES: Final = frozenset(("article", "aside", "footer", "header", "main", "nav", "section", "table"))
MAX_LAYOUT_CELLS: Final = 2
MAX_DATA_LINKS: Final = 20
MAX_SPAN: Final = 100
"""A cell over more columns or rows than this is one over this many; browsers stop at 1,000 (HTML, 4.9.11)."""

_REPEATED: Final = 4
"""So many times the length of a table may be said again for cells that span: few bytes can span very much."""

_CELL: Final = 8
"""Length that a cell counts for beside its text."""


def is_layout(table: Node, visibility: Visibility, in_layout: bool = False) -> bool:
    """Tell whether a table only arranges what it holds (6.3). One in such a table does, unless it has headers.

    One form with something to fill in was put there by a layout; several, and forms that are a button, belong to rows.
    """
    if table.tag != "table":
        return False
    roles = table.attributes.get("role", "").lower().split()
    if "presentation" in roles or "none" in roles:
        return True
    cells = links = forms = 0
    arranging = in_layout or not _ARRANGING.isdisjoint(table.attributes)
    waiting = list(table.children)
    while waiting:
        node = waiting.pop()
        if node.tag in ("th", "caption"):
            return False
        cells += node.tag == "td"
        links += node.tag == "a" and "href" in node.attributes
        arranging = arranging or node.tag in _PARTS_OF_PAGES
        if node.tag == "form":
            forms += not read_form(node, visibility).is_button
        if node.tag != "table" and node.only is None:
            waiting.extend(node.children)
    return arranging or forms == 1 or cells <= MAX_LAYOUT_CELLS or links >= MAX_DATA_LINKS


def read_cells(table: Node, text_of: PartText) -> tuple[list[str], list[list[str]]]:
    """Return the texts of a table's headers and of its rows, each in its column.

    The first row with nothing but header cells is the headers. A wide or tall cell says its text again in every column
    and row that it spans (HTML, 4.9.12), as long as that stays in proportion; one does not reach beyond its part of the
    table.
    """
    headers: list[str] = []
    rows: list[list[str]] = []
    given = [
        (row, [(cell, text) for cell in row.children if (text := text_of(cell)) is not None]) for row in rows_of(table)
    ]
    spare = _REPEATED * sum(len(text) + _CELL for _, cells in given for _, text in cells)
    part: Node | None = None
    below: dict[int, tuple[str, int]] = {}  # for a column, what reaches down into it, and over how many rows yet
    for row, cells in given:
        above = below if row.parent is part else {}
        part, below = row.parent, {}
        texts: list[str] = []
        for cell, text in (*cells, (None, "")):
            while len(texts) in above:
                again, left = above[len(texts)]
                spare -= len(again) + _CELL
                if spare < 0:
                    break
                if left > 1:
                    below[len(texts)] = again, left - 1
                texts.append(again)
            if cell is None:
                break
            tall = _span(cell, "rowspan")
            for column in range(_span(cell, "colspan")):
                spare -= len(text) + _CELL if column else 0
                if column and spare < 0:
                    break
                if tall > 1:
                    below[len(texts)] = text, tall - 1
                texts.append(text)
        if not headers and cells and all(cell.tag == "th" for cell, _ in cells):
            headers = texts
        elif any(text for _, text in cells):
            rows.append(texts)
    return headers, rows


def rows_of(table: Node) -> Iterator[Node]:
    """Yield every row of a table, also those of which no cell is to be seen."""
    for part in table.children:
        if part.tag == "tr":
            yield part
        elif part.tag in ("thead", "tbody", "tfoot"):
            yield from (row for row in part.children if row.tag == "tr")


def _span(cell: Node, name: str) -> int:
    given = cell.attributes.get(name, "1").strip()
    return min(max(int(given[:6]), 1), MAX_SPAN) if given.isascii() and given.isdecimal() else 1


# --- Flags of everything within an element: bits of one number ---

COVERED: Final = 1
"""Within an element that has the text: only what can be operated, headings and images are elements of their own."""
DISABLED: Final = 2
INERT: Final = 4
IN_FORM: Final = 8
IN_LANDMARK: Final = 16
IN_LINK: Final = 32
IN_LAYOUT: Final = 64
IN_SECTIONING: Final = 128


# --- Landmarks: elements that begin a region (SOM 1.0, section 3.3) ---
# By ARIA role, by name, by the words of its class or id, as a list of links, as a legal line: in this order. The
# words are compared as words: `domain` is not `main`, `trail` is no `rail`. And a header or footer of a card or of a
# post is a part of that, not of the page.


@dataclass(frozen=True, slots=True)
class Landmark:
    """The role of a region, and what its id is made from: `r_navigation`, or `r_search` for a search."""

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
"""Elements of which the words of class and id are read."""

_SECTIONING: Final = frozenset(("article", "aside", "main", "nav", "section"))
"""Elements of which a header or a footer is their own, and no landmark of the page (HTML-AAM, 3.5)."""

_BEGINNERS: Final = _HINTED | _LANDMARK_TAGS.keys()
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
_NOT_LEGAL: Final = frozenset(
    ("article", "button", "form", "h1", "h2", "h3", "input", "main", "nav", "select", "table", "textarea", "footer")
)
MAX_LEGAL_LENGTH: Final = 400
_MAX_LEGAL_NODES: Final = 120
MAX_LEGAL_CANDIDATES: Final = 2_000
"""Blocks of a page that are read as possible legal lines."""

MAX_WORDS_LENGTH: Final = 500
"""Characters of a class or an id that are read."""

_PERMALINKS: Final = frozenset("#¶§∞🔗")

MIN_LINKS: Final = 3
"""Links of a list that counts as navigation."""


@lru_cache(maxsize=1_024)
def _landmark_by_words(text: str) -> Landmark | None:
    """Return the landmark that the words of a class or an id name.

    One name at a time: `card nav` is of two names, `card-nav` is one. The pages of a site have the same classes, so
    what was found is kept for the next page.
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
    """Elements of one page that begin regions."""

    __slots__ = ("_legal_candidates", "_visibility")

    def __init__(self, visibility: Visibility) -> None:
        self._visibility = visibility
        self._legal_candidates = 0

    def of(self, node: Node, state: int) -> Landmark | None:
        """Return the landmark by the precedence of 3.3; but a `<form>` is a form, and in a form nothing else begins."""
        tag, attributes = node.tag, node.attributes
        if state & IN_FORM:
            return None
        found = None if state & IN_SECTIONING and tag in ("footer", "header") else _LANDMARK_TAGS.get(tag)
        if found is not FORM and "role" in attributes:
            found = next(
                (_ARIA_LANDMARKS[role] for role in attributes["role"].lower().split() if role in _ARIA_LANDMARKS), found
            )
        if state & COVERED:
            return found if found in (FORM, DIALOG) else None
        if found is not None or tag not in _HINTED:
            return found
        for name in ("class", "id"):
            by_words = _landmark_by_words(attributes[name][:MAX_WORDS_LENGTH]) if name in attributes else None
            if by_words is not None:
                return by_words
        if state & IN_LANDMARK:
            return None
        if tag in ("div", "ul", "ol") and node.only is None:
            children = list(filter(_counts, node.children))
            links = sum(map(_is_link, children))
            if links >= MIN_LINKS and links * 2 > len(children):
                return NAVIGATION
        if tag in ("div", "section") and self._legal_candidates < MAX_LEGAL_CANDIDATES:
            self._legal_candidates += 1
            # A legal line is short, has neither headings nor controls, but a notice or the links of one.
            waiting, legal = list(node.children) if node.only is None else [], False
            for _ in range(_MAX_LEGAL_NODES):
                if not waiting:
                    break
                inner = waiting.pop()
                if inner.tag in _NOT_LEGAL:
                    return None
                if inner.tag == "a" and "href" in inner.attributes:
                    legal = legal or any(_LEGAL_LINK.match(piece.text.lower()) for piece in inner.children)
                if inner.only is None:
                    waiting.extend(inner.children)
            if not waiting:
                text = text_of(node, self._visibility, max_nodes=_MAX_LEGAL_NODES)
                if len(text) <= MAX_LEGAL_LENGTH and (legal or _LEGAL.search(text.lower())):
                    return FOOTER
        return None


def is_permalink(link: Node) -> bool:
    """Tell whether a link is the sign beside a heading that leads to this heading."""
    return link.only is not None and link.only.strip() in _PERMALINKS and link.attributes["href"].startswith("#")


def _is_link(child: Node) -> bool:
    """Tell whether a node is a link, or an item with nothing but a link."""
    if child.tag == "li":
        if child.only is not None:
            return False
        inner = list(filter(_counts, child.children))
        return len(inner) == 1 and _is_link(inner[0])
    return child.tag == "a" and "href" in child.attributes


def _counts(node: Node) -> bool:
    return node.tag != COMMENT if node.tag else not node.text.isspace()


# --- The walk ---


@dataclass(slots=True, eq=False)
class Candidate:
    """A node that may become an element, and from where to where its text goes; "" is the role of one that does not."""

    node: Node
    role: str
    state: int
    start: int = 0
    end: int = 0
    shadow: "Region | None" = None


@dataclass(slots=True, eq=False)
class Region:
    """A region, or the content of a shadow root; `hidden` are the hidden inputs of a form."""

    landmark: Landmark
    node: Node
    candidates: list[Candidate] = field(default_factory=list)
    shadows: int = 0
    start: int = 0
    hidden: Sequence[Node] = ()


@dataclass(frozen=True, slots=True)
class Survey:
    """Regions in the order in which they begin, what is in none of them last; all text; and parts of elements.

    `forms` has, for what submits a form that is no region, that form.
    """

    regions: Sequence[Region]
    pieces: Sequence[str]
    parts: Mapping[Node, Candidate]
    forms: Mapping[Node, Node]

    def part_text(self, node: Node) -> str | None:
        """Return the text of an item, a cell, an option or a summary. None when it is not to be seen."""
        part = self.parts.get(node)
        return None if part is None else self.text(part)

    def text(self, candidate: Candidate) -> str:
        """Return the visible text of a candidate, whitespace collapsed (4.6)."""
        return " ".join("".join(self.pieces[candidate.start : candidate.end]).split())


MAX_SHADOWS: Final = 8
"""Shadow roots one in another; what is in deeper ones counts as the content of the last."""

_STRUCTURE: Final = ("h1", "h2", "h3", "h4", "h5", "h6", "table", "form", "details", "fieldset", "section", "article")
"""A list that holds one of these is no list of lines: what it holds is taken as it comes."""

_SEPARATORS: Final = " \t\r\n\f\xa0\u200b.,:;!?|/\\-_()[]{}<>\u2013\u2014\u2022\u00b7\u00ab\u00bb\u2039\u203a"
"""Signs between links and fields for the eye only: text of nothing else is no paragraph."""

_PARTS: Final = frozenset(("caption", "legend", "li", "option", "td", "th"))
"""Elements of which the text is asked for by the list, table, select or group around them."""

_OPAQUE: Final = frozenset(("hr", "iframe", "img", "input", "svg", "textarea"))
"""Elements of which the content is no text of the page."""

_DROPPED_IF_EMPTY: Final = ("list", "paragraph", "section")
_HOLDS_OTHERS: Final = frozenset(("section", "group", "details"))
_CONSPICUOUS: Final = frozenset(("aria-hidden", "contenteditable", "hidden", "inert", "role", "style"))
_NAMING: Final = frozenset(("aria-label", "aria-labelledby", "aria-labeledby", "title"))
_NAMED: Final = frozenset(("aria-label", "aria-labelledby", "aria-labeledby"))
MAX_REFERENCES: Final = 10
_NAMELESS: Final = frozenset(("caption", "dd", "dt", "label", "legend", "li", "menu", "ol", "option", "summary")) | {
    *("table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul"),
}
"""Parts of others, and lists and tables that were taken apart: their names are of no use without them."""

_CLAIMING: Final = frozenset(("contenteditable", "role"))
"""Attributes that give an element a role that its tag has not."""

_LOOKED_AT: Final = STRIPPED | {"img", "svg"}
_PLAIN: Final = INLINE - MAPPED_TAGS - STRIPPED - {"br"}


def references_of(given: Mapping[str, str]) -> str:
    """Return the ids that name an element, in the spelling of the specification or in the other one that pages use."""
    return given.get("aria-labelledby") or given.get("aria-labeledby", "")


def survey(tree: Tree, visibility: Visibility, labels: Set[Node] = frozenset()) -> Survey:
    """Walk over the body of a page. `labels` are those that a control says as its name.

    One loop, for it runs for every node. An element is entered with what holds within it:

        region      where its candidates go        state   the flags of everything in it
        opened      the candidate to end with it   block   whether it parts the text before it from the text after it

    and on the stack lies the same of the element around it, with the iterator over that one's children. An element
    with nothing, or nothing but text, is ended at once. Of inline elements that say nothing but their text, and of
    links, most pages are made, so these two go a shorter way. `run` is text that stands in no element, until any begins
    or a block ends.
    """
    regions, pieces, parts = list[Region](), list[str](), dict[Node, Candidate]()
    landmarks, suspicious = Landmarks(visibility), bool(visibility.hidden)
    plain = _PLAIN - visibility.hidden
    summaries: dict[Node, Candidate] = {}
    forms: dict[Node, Node] = {}
    formulas = read_formulas(tree, visibility) if tree.tagged("math") else {}
    hosts: dict[Node, Candidate] | None = {} if tree.tagged("template") else None
    structured = set[Node]()  # every element around something with a structure: each is come by once
    for tag in _STRUCTURE:
        for around in tree.tagged(tag):
            above = around.parent
            while above is not None and above not in structured:
                structured.add(above)
                above = above.parent
    content = Region(CONTENT, tree.body)
    run: Candidate | None = None
    run_region = content

    def end_run() -> None:
        nonlocal run
        if run is not None:
            run.end = len(pieces)
            if pieces[run.start].strip(_SEPARATORS) or "".join(pieces[run.start : run.end]).strip(_SEPARATORS):
                run_region.candidates.append(run)
            run = None

    def drop_if_empty(candidate: Candidate, region: Region) -> None:
        if candidate.shadow is None:
            if candidate.role == "section":
                empty = region.candidates[-1] is candidate
            elif candidate.role == "list" and all(map(_is_link, filter(_counts, candidate.node.children))):
                empty = True  # the links say it
            else:
                empty = all(piece.isspace() for piece in pieces[candidate.start : candidate.end])
            if empty:
                candidate.role = ""

    stack: list[tuple[Iterator[Node], Region, int, Candidate | None, bool]] = []
    children, region, state, opened, block = iter(tree.body.children), content, 0, None, True
    while True:
        for node in children:
            tag = node.tag
            if not tag:
                text = node.text
                if run is None and not state & COVERED and not text.isspace():
                    run, run_region = Candidate(node, "paragraph", state, len(pieces)), region
                pieces.append(text)
                continue
            attributes, only = node.attributes, node.only
            quiet = not attributes or (not suspicious and _CONSPICUOUS.isdisjoint(attributes))
            if quiet and tag in plain:
                if only is not None and (state & COVERED or run is not None):
                    pieces.append(only)
                elif node.children:
                    stack.append((children, region, state, opened, block))
                    children, opened, block = iter(node.children), None, False
                    break
                continue
            if quiet and tag == "a" and "href" in attributes:
                if attributes["href"][:1] == "#" and is_permalink(node):
                    continue
                if run is not None:
                    end_run()
                link = Candidate(node, "link", state, len(pieces))
                region.candidates.append(link)
                if hosts is not None and _is_host(node):
                    hosts[node] = link
                if only is not None:
                    pieces.append(only)
                elif node.children:
                    stack.append((children, region, state, opened, block))
                    children, state, opened, block = iter(node.children), state | COVERED | IN_LINK, link, False
                    break
                link.end = len(pieces)
                continue
            within, flags, candidate, parted = region, state, None, tag not in INLINE
            inside = node.children if only is None else ()
            if tag == "template":
                # A shadow root goes to its host, or, when there are too many, to where the host itself went. A root of
                # a root has no host: it stays a template, of which nothing is seen.
                if (
                    not isinstance(node, Template)
                    or node.shadow_mode is None
                    or isinstance(node.parent, Template | None)
                ):
                    continue
                end_run()
                inside = node.content
                host = None if hosts is None else hosts.get(node.parent)
                if host is not None and region.shadows < MAX_SHADOWS:
                    if host.shadow is not None:
                        continue
                    within = host.shadow = Region(CONTENT, node, shadows=region.shadows + 1)
                    flags = (state | IN_FORM) & ~COVERED
            elif formulas and node in formulas:
                if run is None and not state & COVERED:
                    run, run_region = Candidate(node, "paragraph", state, len(pieces)), region
                pieces.append(f" {formulas[node]} ")
                continue
            elif ((not quiet or tag in _LOOKED_AT or suspicious) and visibility.hides(node)) or (
                tag == "a" and "href" in attributes and is_permalink(node)
            ):
                continue
            else:
                if "inert" in attributes:
                    flags |= INERT
                landmark = landmarks.of(node, flags) if tag in _BEGINNERS or "role" in attributes else None
                sent: Sequence[Node] = ()
                if tag in _SECTIONING:
                    flags |= IN_SECTIONING
                if landmark is FORM and tag == "form":
                    fields = read_form(node, visibility)
                    sent = fields.hidden
                    if fields.is_button:  # it stays with its item
                        landmark = None
                        forms.update(dict.fromkeys(fields.buttons, node))
                if landmark is not None:
                    end_run()
                    within = Region(landmark, node, start=len(pieces), hidden=sent)
                    regions.append(within)
                    flags = flags & ~COVERED | (IN_FORM if landmark is FORM else 0) | IN_LANDMARK
                elif node in summaries:
                    candidate = parts[node] = summaries.pop(node)
                    end_run()
                    candidate.start = len(pieces)
                    flags |= COVERED
                else:
                    is_host = hosts is not None and _is_host(node)
                    role = None if tag not in MAPPED_TAGS and _CLAIMING.isdisjoint(attributes) else role_of(node)
                    in_layout = bool(state & IN_LAYOUT)
                    if (role == "list" and node in structured) or (
                        role == "table" and is_layout(node, visibility, in_layout)
                    ):
                        role = None
                    if (
                        role is None
                        and parted
                        and not _NAMED.isdisjoint(attributes)
                        and tag not in _NAMELESS
                        and attributes.get("role", "").strip().lower() not in ("none", "presentation")
                        and (
                            attributes.get("aria-label", "").strip()
                            or any(map(tree.with_id, references_of(attributes).split()[:MAX_REFERENCES]))
                        )
                    ):
                        role = "section"
                    if flags & COVERED and role == "image":
                        role = None if flags & IN_LINK or not attributes.get("alt", "").strip() else role
                    elif flags & COVERED and role not in ACTIONS and role != "heading":
                        role = None
                    if role == "section":
                        flags |= IN_LANDMARK if tag == "article" else 0
                        if _NAMING.isdisjoint(attributes):
                            role = None
                    if role is None and is_host:
                        role = "section"
                    if parted or role is not None:
                        end_run()
                    if parted or tag == "br":
                        pieces.append(" ")
                    if role is None:
                        if tag == "table":
                            flags |= IN_LAYOUT
                        elif node in labels:  # its control says it
                            flags |= COVERED
                        if tag in _PARTS:
                            candidate = parts[node] = Candidate(node, "", flags, len(pieces))
                        if tag == "legend" and node.parent is not None and node.parent.tag == "fieldset":
                            flags |= COVERED
                    else:
                        candidate = Candidate(node, role, flags, len(pieces))
                        region.candidates.append(candidate)
                        if tag in _PARTS:
                            parts[node] = candidate
                        if hosts is not None and is_host:
                            hosts[node] = candidate
                        if tag == "fieldset" and "disabled" in attributes:
                            flags |= DISABLED
                        if role in ("link", "button"):
                            flags |= IN_LINK
                        if role not in _HOLDS_OTHERS:
                            flags |= COVERED
                        if role == "details":
                            summary = next((child for child in inside if child.tag == "summary"), None)
                            if summary is not None:
                                summaries[summary] = candidate
                            candidate = None  # its text is that of its summary
            if tag in _OPAQUE:
                inside, only = (), None
            if only is not None and (flags & COVERED or run is not None):
                pieces.append(only)
            elif inside or only is not None:
                inside = inside or node.children
                stack.append((children, region, state, opened, block))
                children, region, state, opened, block = iter(inside), within, flags, candidate, parted
                break
            if parted:
                if run is not None:
                    end_run()
                pieces.append(" ")
            if candidate is not None:
                candidate.end = len(pieces)
                if candidate.role in _DROPPED_IF_EMPTY:
                    drop_if_empty(candidate, within)
        else:
            if block:
                if run is not None:
                    end_run()
                pieces.append(" ")
            if opened is not None:
                opened.end = len(pieces)
                if opened.role in _DROPPED_IF_EMPTY:
                    drop_if_empty(opened, region)
            if not stack:
                break
            children, region, state, opened, block = stack.pop()
    regions.append(content)
    waiting = list(regions)
    while waiting:
        region = waiting.pop()
        region.candidates = [candidate for candidate in region.candidates if candidate.role]
        if region.candidates:
            region.candidates += [Candidate(node, HIDDEN, IN_FORM) for node in region.hidden]
        waiting.extend(candidate.shadow for candidate in region.candidates if candidate.shadow is not None)
    return Survey([region for region in regions if region.candidates], pieces, parts, forms)


def _is_host(node: Node) -> bool:
    return any(isinstance(child, Template) and child.shadow_mode is not None for child in node.children)
