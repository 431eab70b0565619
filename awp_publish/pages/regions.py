"""The first pass: a walk over the visible part of a tree that finds the future elements and their regions.

Text is collected once, in `Survey.pieces`; a candidate has the range of its own text, so that no text is copied at
every level. Text outside of any element of the model becomes a paragraph, including inline markup in it (4.2).
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias

from awp_publish.pages.content import MainContent
from awp_publish.pages.tree import COMMENT, INLINE, STRIPPED, Tree, Visibility, read_formulas, shadow_mode_of, text_of

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
"""Actions of each interactive role (4.2). Other roles have none."""

CONTROLS: Final = frozenset(ACTIONS) - {"link"}

HIDDEN: Final = "hidden"
"""The role of a hidden input, which documents describe as a text input without actions."""

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
"""Values of `contenteditable` that make an element editable (HTML Standard, 6.8.1)."""


def role_of(tag: str, attributes: Mapping[str, str]) -> str | None:
    """Return the SOM role of an element, or None if it has none.

    An ARIA role that SOM does not know does not change the role of the tag. A role that cannot be operated does not
    change a link or a control. A text field with the role combobox is still a text field.
    """
    if tag in ("a", "area"):
        native = "link" if "href" in attributes else None
    elif tag == "input":
        native = _INPUT_TYPES.get(input_type(attributes), "text_input")
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


def input_type(attributes: Mapping[str, str]) -> str:
    """Return the `type` of an `<input>` in lower case; the default is "text"."""
    return attributes.get("type", "").strip().lower() or "text"


# --- Forms: their fields, hidden inputs and buttons ---

_SECRETS: Final = re.compile(
    r"csrf|xsrf|nonce|authenticity_?token|verification_?token|session|^_?(?:form_?)?token$", re.IGNORECASE
)


_FIELDS: Final = frozenset(("input", "select", "textarea", "button"))
_OWN_STRUCTURE: Final = frozenset(("h1", "h2", "h3", "h4", "h5", "h6", "table", "ul", "ol", "dl", "nav"))


def is_secret(name: str) -> bool:
    """Return True if a hidden field's name is that of a session secret, such as a framework's CSRF token."""
    return _SECRETS.search(name) is not None


@dataclass(frozen=True, slots=True)
class FormFields:
    """The parts of a form: whether it has visible fields to fill in, its hidden inputs, and its submit buttons.

    `has_structure` means that it has a heading, a list or a table. A form without `has_names` sends nothing.
    """

    fillable: bool
    hidden: Sequence[int]
    buttons: Sequence[int]
    has_structure: bool
    has_names: bool

    @property
    def is_button(self) -> bool:
        """True if the form is no more than a button of its surroundings."""
        return bool(self.buttons) and not self.fillable and not self.has_structure


def read_form(form: int, visibility: Visibility) -> FormFields:
    """Return the parts of a form."""
    tree = visibility.tree
    fillable, hidden, buttons, has_structure, has_names = False, list[int](), list[int](), False, False
    for at in range(form + 1, tree.ends[form]):
        tag = tree.tags[at]
        if tag in _FIELDS:
            given = tree.attributes[at]
            has_names = has_names or bool(given.get("name"))
            kind = input_type(given) if tag in ("input", "button") else ""
            if tag == "button":
                if kind not in ("button", "reset"):
                    buttons.append(at)
            elif kind == "hidden":
                if given.get("name") and "disabled" not in given:
                    hidden.append(at)
            elif kind in ("submit", "image"):
                buttons.append(at)
            elif kind not in ("button", "reset"):
                fillable = fillable or not visibility.hides(at)
        elif tag in _OWN_STRUCTURE:
            has_structure = True
    return FormFields(fillable, hidden, buttons, has_structure, has_names)


# --- Tables: data tables, and layout tables that only arrange the page (SOM 1.0, 6.3) ---

PartText: TypeAlias = Callable[[int], str | None]
"""Returns the text of a part of an element, or None if it is not visible."""

_ARRANGING: Final = frozenset(("bgcolor", "border", "cellpadding", "cellspacing", "width"))
_PARTS_OF_PAGES: Final = frozenset(("article", "aside", "footer", "header", "main", "nav", "section", "table"))
_TELLING: Final = _PARTS_OF_PAGES | {"a", "caption", "form", "td", "th"}
MAX_LAYOUT_CELLS: Final = 2
MAX_DATA_LINKS: Final = 20
MAX_SPAN: Final = 100
"""The largest number of columns or rows that a cell may span; browsers stop at 1,000 (HTML, 4.9.11)."""

_REPEATED: Final = 4
"""Repeated text of spanning cells may have this many times the length of the table: few bytes can span very much."""

_CELL: Final = 8
"""Length that a cell counts besides its text."""


def is_layout(table: int, visibility: Visibility, in_layout: bool = False) -> bool:
    """Return True if a table only arranges its content (6.3). A nested table in such a one does, unless it has headers.

    A single form with fields indicates a layout; several forms, and forms that are only a button, belong to rows.
    """
    tree = visibility.tree
    tags, attributes = tree.tags, tree.attributes
    if tags[table] != "table":
        return False
    roles = attributes[table].get("role", "").lower().split()
    if "presentation" in roles or "none" in roles:
        return True
    cells = links = forms = 0
    arranging = in_layout or not _ARRANGING.isdisjoint(attributes[table])
    at, end = table + 1, tree.ends[table]
    while at < end:
        tag = tags[at]
        if tag in _TELLING:
            if tag == "td":
                cells += 1
            elif tag == "a":
                links += "href" in attributes[at]
            elif tag == "form":
                forms += not read_form(at, visibility).is_button
            elif tag in ("th", "caption"):
                return False
            else:
                arranging = True
        at = tree.ends[at] if tag == "table" else at + 1
    return arranging or forms == 1 or cells <= MAX_LAYOUT_CELLS or links >= MAX_DATA_LINKS


def read_cells(tree: Tree, table: int, text_of: PartText) -> tuple[list[str], list[list[str]]]:
    """Return the texts of a table's headers and of its rows, each in its column.

    The first row that has only header cells is the headers. The text of a cell that spans columns or rows is repeated
    in each of them (HTML, 4.9.12), within a limit; a cell does not span beyond its part of the table.
    """
    headers: list[str] = []
    rows: list[list[str]] = []
    given = [
        (row, [(cell, text) for cell in tree.children(row) if (text := text_of(cell)) is not None])
        for row in rows_of(tree, table)
    ]
    spare = _REPEATED * sum(len(text) + _CELL for _, cells in given for _, text in cells)
    part = -1
    below: dict[int, tuple[str, int]] = {}  # for a column, the text that spans down into it, and the remaining rows
    for row, cells in given:
        above = below if tree.parents[row] == part else {}
        part, below = tree.parents[row], {}
        texts: list[str] = []
        for cell, text in (*cells, (-1, "")):
            while len(texts) in above:
                again, left = above[len(texts)]
                spare -= len(again) + _CELL
                if spare < 0:
                    break
                if left > 1:
                    below[len(texts)] = again, left - 1
                texts.append(again)
            if cell < 0:
                break
            tall = _span(tree.attributes[cell], "rowspan")
            for column in range(_span(tree.attributes[cell], "colspan")):
                spare -= len(text) + _CELL if column else 0
                if column and spare < 0:
                    break
                if tall > 1:
                    below[len(texts)] = text, tall - 1
                texts.append(text)
        if not headers and cells and all(tree.tags[cell] == "th" for cell, _ in cells):
            headers = texts
        elif any(text for _, text in cells):
            rows.append(texts)
    return headers, rows


def rows_of(tree: Tree, table: int) -> Iterator[int]:
    """Yield every row of a table, including rows without visible cells."""
    for part in tree.children(table):
        if tree.tags[part] == "tr":
            yield part
        elif tree.tags[part] in ("thead", "tbody", "tfoot"):
            yield from (row for row in tree.children(part) if tree.tags[row] == "tr")


def _span(given: Mapping[str, str], name: str) -> int:
    number = given.get(name, "1").strip()
    return min(max(int(number[:6]), 1), MAX_SPAN) if number.isascii() and number.isdecimal() else 1


# --- Flags that apply to everything within an element: bits of one number ---

COVERED: Final = 1
"""Within an element that has the text: only controls, headings and images become elements of their own."""
DISABLED: Final = 2
INERT: Final = 4
IN_FORM: Final = 8
IN_LANDMARK: Final = 16
IN_LINK: Final = 32
IN_LAYOUT: Final = 64
IN_SECTIONING: Final = 128
NESTED: Final = 256
"""What is above the other bits counts elements that have the text of others within them."""

MAX_NESTED: Final = 8
"""Buttons, fields or headings one in another, each with the text of all within: few bytes could say very much."""


# --- Landmarks: elements that begin a region (SOM 1.0, section 3.3) ---
# In this order: the main content of a page that is an article, the ARIA role, the tag, the words of class or id, a list
# of links, a legal line. Words are compared as whole words: `domain` is not `main`, `trail` is not `rail`. They say
# nothing within the main content, nor of what is around it. A header or footer of a card or a post is a
# part of that, not of the page.


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

_SECTIONING: Final = frozenset(("article", "aside", "main", "nav", "section"))
"""Tags of elements whose headers and footers are not landmarks of the page (HTML-AAM, 3.5)."""

_BEGINNERS: Final = _HINTED | _LANDMARK_TAGS.keys()
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

    __slots__ = ("_content", "_legal_candidates", "_visibility", "article", "asides")

    def __init__(self, visibility: Visibility, content: MainContent) -> None:
        self._visibility, self._content = visibility, content
        self._legal_candidates = 0
        self.article = content.node if content.is_article else -1
        """The element that has the article of the page; -1 if there is no article."""
        self.asides = content.left_out if content.is_article else frozenset[int]()
        """Elements within the article that are no part of it."""

    def of(self, node: int, state: int) -> Landmark | None:
        """Return the landmark by the precedence of 3.3. A `<form>` is always a form; nothing else begins in a form."""
        tree = self._visibility.tree
        tags, ends = tree.tags, tree.ends
        tag, attributes = tags[node], tree.attributes[node]
        if state & IN_FORM:
            return None
        found = None if state & IN_SECTIONING and tag in ("footer", "header") else _LANDMARK_TAGS.get(tag)
        if found is not FORM and "role" in attributes:
            found = next(
                (_ARIA_LANDMARKS[role] for role in attributes["role"].lower().split() if role in _ARIA_LANDMARKS), found
            )
        if state & COVERED:
            return found if found in (FORM, DIALOG) else None
        if node == self.article:
            return MAIN
        if node in self.asides:
            return found or ASIDE
        content = self._content
        is_around = node in content.around
        if is_around and self.article >= 0 and found is not DIALOG:
            return None  # also a form: some frameworks have the whole page in one
        if found is not None or tag not in _HINTED:
            return found
        is_inside = content.node < node < ends[content.node] and content.node != tree.body_at
        if is_inside or is_around:
            return None
        for name in ("class", "id"):
            by_words = _landmark_by_words(attributes[name][:MAX_WORDS_LENGTH]) if name in attributes else None
            if by_words is not None and (by_words is not MAIN or self.article < 0):
                return by_words
        if state & IN_LANDMARK:
            return None
        end = ends[node]
        if tag in ("div", "ul", "ol"):
            children = links = 0
            child = node + 1
            while child < end:
                if _counts(tree, child):
                    children += 1
                    links += _is_link(tree, child)
                child = ends[child]
            if links >= MIN_LINKS and links * 2 > children:
                return NAVIGATION
        if tag not in ("div", "section") or self._legal_candidates >= MAX_LEGAL_CANDIDATES:
            return None
        self._legal_candidates += 1
        if end - node <= 2 * _MAX_LEGAL_NODES + 1:
            # A legal line is short and has neither headings nor controls, but a legal notice or links to one. A text
            # node that is the only content of an element is not counted by itself.
            legal, nodes = False, 0
            for at in range(node + 1, end):
                inner = tags[at]
                if inner in _NOT_LEGAL:
                    return None
                nodes += bool(inner) or tree.parents[at] != at - 1 or ends[at - 1] != at + 1
                if inner == "a" and not legal and "href" in tree.attributes[at]:
                    legal = any(_LEGAL_LINK.match(tree.texts[piece].lower()) for piece in tree.children(at))
            if nodes <= _MAX_LEGAL_NODES:
                text = text_of(self._visibility, node, max_nodes=_MAX_LEGAL_NODES)
                if len(text) <= MAX_LEGAL_LENGTH and (legal or _LEGAL.search(text.lower())):
                    return FOOTER
        return None


def is_permalink(tree: Tree, link: int) -> bool:
    """Return True if a link is the sign beside a heading that leads to the heading itself."""
    text = tree.only(link)
    return text is not None and text.strip() in _PERMALINKS and tree.attributes[link]["href"].startswith("#")


def _is_link(tree: Tree, child: int) -> bool:
    """Return True if a node is a link, or an item that contains only a link."""
    while tree.tags[child] == "li":
        inner = [one for one in tree.children(child) if _counts(tree, one)]
        if len(inner) != 1:
            return False
        child = inner[0]
    return tree.tags[child] == "a" and "href" in tree.attributes[child]


def _counts(tree: Tree, node: int) -> bool:
    tag = tree.tags[node]
    return tag != COMMENT if tag else not tree.texts[node].isspace()


# --- The walk ---


@dataclass(slots=True, eq=False)
class Region:
    """A region, or the content of a shadow root: its element, and the numbers of its candidates.

    `hidden` are the hidden inputs of a form.
    """

    landmark: Landmark
    node: int
    candidates: list[int] = field(default_factory=list)
    shadows: int = 0
    start: int = 0
    hidden: Sequence[int] = ()


class Survey:
    """The regions in order, with a last one for everything outside of them; all text; and parts of elements.

    A candidate is a node that may become an element. It is identified by a number, the index in these lists:

        nodes         the node itself
        roles         its role, "" if it turned out to have none
        states        the flags that apply to it
        starts, ends  the range of its text in `pieces`

    `shadows` has the content of a candidate's shadow root, `parts` the candidate of an item, a cell, an option or a
    summary; `forms` has the form for each submit button of a form that is not a region.
    """

    __slots__ = ("ends", "forms", "nodes", "parts", "pieces", "regions", "roles", "shadows", "starts", "states")

    def __init__(self) -> None:
        self.regions: list[Region] = []
        self.pieces: list[str] = []
        self.nodes: list[int] = []
        self.roles: list[str] = []
        self.states: list[int] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.shadows: dict[int, Region] = {}
        self.parts: dict[int, int] = {}
        self.forms: dict[int, int] = {}

    def add(self, node: int, role: str, state: int) -> int:
        """Add a candidate that begins here, and return its number."""
        number, start = len(self.nodes), len(self.pieces)
        self.nodes.append(node)
        self.roles.append(role)
        self.states.append(state)
        self.starts.append(start)
        self.ends.append(start)
        return number

    def end_run(self, run: int, region: Region) -> None:
        """End a run of text here: it becomes a paragraph of its region unless it consists of separators only."""
        start = self.starts[run]
        self.ends[run] = len(self.pieces)
        if self.pieces[start].strip(_SEPARATORS) or "".join(self.pieces[start:]).strip(_SEPARATORS):
            region.candidates.append(run)

    def part_text(self, node: int) -> str | None:
        """Return the text of an item, a cell, an option or a summary, or None if it is not visible."""
        part = self.parts.get(node)
        return None if part is None else self.text(part)

    def text(self, candidate: int) -> str:
        """Return the visible text of a candidate, with white space collapsed (4.6)."""
        start, end = self.starts[candidate], self.ends[candidate]
        return " ".join((self.pieces[start] if end == start + 1 else "".join(self.pieces[start:end])).split())


MAX_SHADOWS: Final = 8
"""Levels of nested shadow roots; the content of deeper ones is added to the last."""

_STRUCTURE: Final = ("h1", "h2", "h3", "h4", "h5", "h6", "table", "form", "details", "fieldset", "section", "article")
"""A list that contains one of these is not a list of lines; its content is read like other content."""

_SEPARATORS: Final = " \t\r\n\f\xa0\u200b.,:;!?|/\\-_()[]{}<>\u2013\u2014\u2022\u00b7\u00ab\u00bb\u2039\u203a"
"""Characters that only separate links and fields visually. A text of nothing else is not a paragraph."""

_PARTS: Final = frozenset(("caption", "legend", "li", "option", "td", "th"))
"""Elements whose text is read by the list, table, select or group around them."""

_OPAQUE: Final = frozenset(("audio", "hr", "iframe", "img", "input", "svg", "textarea", "video"))
"""Elements whose content is not text of the page."""

_DROPPED_IF_EMPTY: Final = ("list", "paragraph", "section")
_HOLDS_OTHERS: Final = frozenset(("section", "group", "details"))
_NAMING: Final = frozenset(("aria-label", "aria-labelledby", "aria-labeledby", "title"))
_NAMED: Final = frozenset(("aria-label", "aria-labelledby", "aria-labeledby"))
MAX_REFERENCES: Final = 10
_NAMELESS: Final = frozenset(("caption", "dd", "dt", "label", "legend", "li", "menu", "ol", "option", "summary")) | {
    *("table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul"),
}
"""Parts of other elements, and lists and tables that were split up, whose names are meaningless by themselves."""

_CLAIMING: Final = frozenset(("contenteditable", "role"))
"""Attributes that give an element a role that its tag does not have."""

_LOOKED_AT: Final = STRIPPED | {"img", "svg"}
_SIMPLE: Final = frozenset(("blockquote", "dd", "dl", "dt", "li", "pre", "tbody", "td", "tfoot", "th", "thead", "tr"))
"""Blocks that, without certain attributes, only contain other elements."""

_PLAIN: Final = INLINE - MAPPED_TAGS - STRIPPED - {"audio", "br", "video"}


def references_of(given: Mapping[str, str]) -> str:
    """Return the ids that name an element, also from the common misspelling of the attribute."""
    return given.get("aria-labelledby") or given.get("aria-labeledby", "")


def survey(tree: Tree, visibility: Visibility, content: MainContent, labels: Set[int] = frozenset()) -> Survey:
    """Walk over the body of a page. `labels` are label elements whose text is the name of a control.

    This is one loop because it runs for every node, over the tree's numbers from `at` to `end`. An element is entered
    if its inside or its end matters. While it is open, these hold:

        region      where its candidates go        state   the flags of everything in it
        opened      the candidate to end with it   block   whether it separates its text from the text around

    The stack has the same values for the enclosing element, and where to continue in it. Most of a page is inline
    elements without meaning and links: the former are not entered at all, the latter take a shorter path. `run` is text
    outside of any element, until one begins or a block ends.
    """
    found = Survey()
    add, pieces, parts, forms = found.add, found.pieces, found.parts, found.forms
    regions, roles = found.regions, found.roles
    nodes, states, text_starts, text_ends = found.nodes, found.states, found.starts, found.ends
    tags, all_attributes, texts, ends = tree.tags, tree.attributes, tree.texts, tree.ends
    conspicuous = tree.conspicuous
    landmarks = Landmarks(visibility, content)
    marked_out = landmarks.asides | {landmarks.article}
    plain = _PLAIN
    noted = conspicuous | marked_out | visibility.by_rule
    summaries: dict[int, int] = {}
    formulas = read_formulas(visibility) if tree.find("math") else {}
    with_shadow = {tree.parents[one] for one in tree.contents if shadow_mode_of(all_attributes[one]) is not None}
    simple = frozenset[str]() if with_shadow else _SIMPLE
    hosts: dict[int, int] = {}
    structured = set[int]()  # all ancestors of structural elements, each visited once
    for tag in _STRUCTURE:
        for around in tree.find(tag):
            above = tree.parents[around]
            while above >= 0 and above not in structured:
                structured.add(above)
                above = tree.parents[above]
    outside = Region(MAIN if landmarks.article == tree.body_at else CONTENT, tree.body_at)
    run, run_region = -1, outside

    stack: list[tuple[int, int, Region, int, int, bool]] = []
    at, end, region, state, opened, block = tree.body_at + 1, ends[tree.body_at], outside, 0, -1, True
    while True:
        if at >= end:
            if block:
                if run >= 0:
                    found.end_run(run, run_region)
                    run = -1
                pieces.append(" ")
            if opened >= 0:
                text_ends[opened] = len(pieces)
                if roles[opened] in _DROPPED_IF_EMPTY and _is_empty(tree, found, opened, region):
                    roles[opened] = ""
            if not stack:
                break
            at, end, region, state, opened, block = stack.pop()
            continue
        tag = tags[at]
        if not tag:
            text = texts[at]
            if run < 0 and not state & COVERED and not text.isspace():
                run, run_region = add(at, "paragraph", state), region
            pieces.append(text)
            at += 1
            continue
        if tag in plain and at not in noted:
            at += 1
            continue
        node, quiet, attributes = at, at not in noted, all_attributes[at]
        at = after = ends[node]
        if quiet and tag == "a" and "href" in attributes:
            is_text = after == node + 2 and not tags[node + 1]
            if is_text and attributes["href"][:1] == "#" and is_permalink(tree, node):
                continue
            if run >= 0:
                found.end_run(run, run_region)
                run = -1
            link = len(roles)
            nodes.append(node)
            roles.append("link")
            states.append(state)
            text_starts.append(len(pieces))
            region.candidates.append(link)
            if node in with_shadow:
                hosts[node] = link
            if is_text:
                pieces.append(texts[node + 1])
            elif after > node + 1:
                inner = node + 1
                while inner < after and ((tag := tags[inner]) in plain or not tag) and inner not in noted:
                    if not tag:
                        pieces.append(texts[inner])
                    inner += 1
                if inner < after:  # it contains more than text and plain inline elements
                    text_ends.append(0)
                    stack.append((after, end, region, state, opened, block))
                    at, end, state, opened, block = inner, after, state | COVERED | IN_LINK, link, False
                    continue
            text_ends.append(len(pieces))
            continue
        within, flags, candidate, parted = region, state, -1, tag not in INLINE
        start, stop = node + 1, after
        if quiet and tag in simple and _NAMED.isdisjoint(attributes):
            if run >= 0:
                found.end_run(run, run_region)
                run = -1
            pieces.append(" ")
            if tag in _PARTS:
                candidate = parts[node] = add(node, "", state)
        elif tag == "template":
            # The content of a shadow root goes to its host or, if they are nested too deeply, to where the host itself
            # went. A root inside of a root has no host: it stays a template, which is not visible.
            parent = tree.parents[node]
            if shadow_mode_of(attributes) is None or tags[parent] == "template":
                continue
            if run >= 0:
                found.end_run(run, run_region)
                run = -1
            start, stop = tree.contents[node]
            host = hosts.get(parent)
            if host is not None and region.shadows < MAX_SHADOWS:
                if host in found.shadows:
                    continue
                within = found.shadows[host] = Region(CONTENT, node, shadows=region.shadows + 1)
                flags = (state | IN_FORM) & ~COVERED
        elif formulas and node in formulas:
            if run < 0 and not state & COVERED:
                run, run_region = add(node, "paragraph", state), region
            pieces.append(f" {formulas[node]} ")
            continue
        elif ((not quiet or tag in _LOOKED_AT) and visibility.hides(node)) or (
            tag == "a" and "href" in attributes and is_permalink(tree, node)
        ):
            continue
        else:
            marked = node in conspicuous
            if marked and "inert" in attributes:
                flags |= INERT
            begins = tag in _BEGINNERS or (marked and "role" in attributes) or node in marked_out
            landmark = landmarks.of(node, flags) if begins else None
            if landmark is NAVIGATION is region.landmark and tag != "nav" and "role" not in attributes:
                landmark = None  # the list that a navigation is about
            sent: Sequence[int] = ()
            if tag in _SECTIONING:
                flags |= IN_SECTIONING
            if tag == "form" and (landmark is FORM or flags & IN_FORM or node in content.around):
                fields = read_form(node, visibility)
                sent = fields.hidden
                if fields.is_button or landmark is None:  # it stays with its item; in a shadow root it is no region
                    landmark = None
                    forms.update(dict.fromkeys(fields.buttons, node))
            if landmark is not None:
                if run >= 0:
                    found.end_run(run, run_region)
                    run = -1
                within = Region(landmark, node, start=len(pieces), hidden=sent)
                regions.append(within)
                flags = flags & ~COVERED | (IN_FORM if landmark is FORM else 0) | IN_LANDMARK
            elif node in summaries:
                candidate = parts[node] = summaries.pop(node)
                if run >= 0:
                    found.end_run(run, run_region)
                    run = -1
                text_starts[candidate] = len(pieces)
                flags |= COVERED
            else:
                has_role = tag in MAPPED_TAGS or (marked and not _CLAIMING.isdisjoint(attributes))
                role = role_of(tag, attributes) if has_role else None
                if (role == "list" and node in structured) or (
                    role == "table" and is_layout(node, visibility, bool(state & IN_LAYOUT))
                ):
                    role = None
                if (
                    role is None
                    and parted
                    and attributes
                    and not _NAMED.isdisjoint(attributes)
                    and tag not in _NAMELESS
                    and attributes.get("role", "").strip().lower() not in ("none", "presentation")
                    and (
                        attributes.get("aria-label", "").strip()
                        or any(
                            tree.find_id(name) is not None
                            for name in references_of(attributes).split()[:MAX_REFERENCES]
                        )
                    )
                ):
                    role = "section"
                if role is not None:
                    if flags & COVERED:
                        if role == "image":
                            role = None if flags & IN_LINK or not attributes.get("alt", "").strip() else role
                        elif (role not in ACTIONS and role != "heading") or flags >= MAX_NESTED * NESTED:
                            role = None
                    elif role == "section":
                        flags |= IN_LANDMARK if tag == "article" else 0
                        if _NAMING.isdisjoint(attributes):
                            role = None
                if role is None and node in with_shadow:
                    role = "section"
                if run >= 0 and (parted or role is not None):
                    found.end_run(run, run_region)
                    run = -1
                if parted or tag == "br":
                    pieces.append(" ")
                if role is None:
                    if tag == "table":
                        flags |= IN_LAYOUT
                    elif node in labels:  # it is the name of its control
                        flags |= COVERED
                    if tag in _PARTS:
                        candidate = parts[node] = add(node, "", flags)
                    if tag == "legend" and tags[tree.parents[node]] == "fieldset":
                        flags |= COVERED
                else:
                    candidate = add(node, role, flags)
                    region.candidates.append(candidate)
                    if tag in _PARTS:
                        parts[node] = candidate
                    if node in with_shadow:
                        hosts[node] = candidate
                    if tag == "fieldset" and "disabled" in attributes:
                        flags |= DISABLED
                    if role in ("link", "button"):
                        flags |= IN_LINK
                    if role not in _HOLDS_OTHERS:
                        flags = flags + NESTED if flags & COVERED else flags | COVERED
                    if role == "details":
                        summary = next((child for child in tree.children(node) if tags[child] == "summary"), None)
                        if summary is not None:
                            summaries[summary] = candidate
                        candidate = -1  # its text is that of its summary
        if tag in _OPAQUE:
            stop = start
        if stop == start + 1 and not tags[start] and (flags & COVERED or run >= 0):
            pieces.append(texts[start])
        elif start < stop:
            stack.append((after, end, region, state, opened, block))
            at, end, region, state, opened, block = start, stop, within, flags, candidate, parted
            continue
        if parted:
            if run >= 0:
                found.end_run(run, run_region)
                run = -1
            pieces.append(" ")
        if candidate >= 0:
            text_ends[candidate] = len(pieces)
            if roles[candidate] in _DROPPED_IF_EMPTY and _is_empty(tree, found, candidate, within):
                roles[candidate] = ""
    regions.append(outside)
    waiting = list(regions)
    while waiting:
        region = waiting.pop()
        region.candidates = [candidate for candidate in region.candidates if roles[candidate]]
        if region.candidates:
            region.candidates += [add(node, HIDDEN, IN_FORM) for node in region.hidden]
        if found.shadows:
            waiting += [found.shadows[one] for one in region.candidates if one in found.shadows]
    found.regions = [region for region in regions if region.candidates]
    return found


def _is_empty(tree: Tree, survey: Survey, candidate: int, region: Region) -> bool:
    """Return True if a list, a paragraph or a section has no content of its own."""
    if candidate in survey.shadows:
        return False
    if survey.roles[candidate] == "section":
        return region.candidates[-1] == candidate
    if survey.roles[candidate] == "list" and all(
        _is_link(tree, child) for child in tree.children(survey.nodes[candidate]) if _counts(tree, child)
    ):
        return True  # the links are elements themselves
    return all(map(str.isspace, survey.pieces[survey.starts[candidate] : survey.ends[candidate]]))
