"""A page as Markdown (CommonMark 0.31.2 with GFM's tables, task lists and strikethrough) that a person would read.

All of the page is there that its reader sees, in its order: what a form asks for, too. Addresses are absolute, so the
text stands alone. Its title is the first heading unless the page has one of that level. Whatever the HTML is, it has a
Markdown, made in time and size proportional to it: nesting is followed as far as it means something to a reader.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final
from urllib.parse import urljoin

from awp_publish.pages.markdown_inline import (
    BLOCKS,
    CONTROLS,
    HEADINGS,
    LISTS,
    PREFORMATTED,
    Inline,
    Piece,
    Sight,
    children_of,
    code_span,
    collapse,
    escape_line,
    escape_text,
    holders_of_blocks,
    join_pieces,
    longest_run,
    write_link,
)
from awp_publish.pages.selectolax import parse
from awp_publish.pages.structured import read_title
from awp_publish.pages.tree import Node, Tree

# --- Lines of Markdown inside of quotations and lists: each with the prefixes of all that it stands in ---

MAX_PREFIXES: Final = 8
"""Quotations and lists inside one another; what is nested deeper is written as if it were at this depth."""


@dataclass(slots=True)
class Item:
    """An item of a list while it is written."""

    is_written: bool = False


class Lines:
    """Collects lines. Blocks are separated by an empty line, the items of a tight list are not.

    `last_list` is the marker of the list that was the block before, "" if it was none.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._prefix = ""
        self._around = ""
        """The prefix of all in which both the block before and the next one stand."""
        self._depth = 0
        self._marker: str | None = None
        self._is_tight = False
        self.last_list = ""

    def block(self, lines: list[str], tight: bool = False) -> None:
        """Write a block. A `tight` one follows the line before directly."""
        if self._lines and not (tight or self._is_tight):
            self._lines.append(self._around.rstrip())
        self._is_tight = False
        for line in lines:
            prefix = self._prefix if self._marker is None else self._marker
            self._marker = None
            self._lines.append(prefix + line if line else prefix.rstrip())
        self._around = self._prefix
        self.last_list = ""

    @contextmanager
    def within(self, prefix: str) -> Iterator[None]:
        """Write all lines behind a prefix."""
        outer = self._prefix, self._depth
        if self._depth < MAX_PREFIXES:
            self._prefix += prefix
            self._depth += 1
            if self._marker is not None:
                self._marker += prefix
        self.last_list = ""
        try:
            yield
        finally:
            self._prefix, self._depth = outer
            self._around = self._common(self._prefix)
            self.last_list = ""

    @contextmanager
    def item(self, sign: str, tight: bool) -> Iterator[Item]:
        """Write all lines as an item of a list: the first behind its sign, the others below that."""
        item, count = Item(), len(self._lines)
        outer = self._prefix, self._depth, self._marker
        if self._depth < MAX_PREFIXES:
            self._marker = (self._prefix if self._marker is None else self._marker) + sign
            self._prefix += " " * len(sign)
            self._depth += 1
        self._is_tight = tight or (self._is_tight and count > 0) or outer[2] is not None
        self.last_list = ""
        try:
            yield item
        finally:
            item.is_written = len(self._lines) > count
            self._prefix, self._depth = outer[:2]
            self._marker = None if item.is_written else outer[2]
            self._around = self._common(self._prefix)
            self.last_list = ""

    def _common(self, prefix: str) -> str:
        """Nothing may have been written since the shorter of the two was left."""
        return min(prefix, self._around, key=len)

    @property
    def is_empty(self) -> bool:
        return not self._lines

    def text(self) -> str:
        """The document, ended by a line end; the empty text without lines."""
        return "\n".join(self._lines).rstrip("\n") + "\n" if self._lines else ""


# --- What a list looks like: its numbers, and whether its items are apart ---

_SPACIOUS: Final = frozenset({"p", "blockquote", "pre", "table", "dl", "hr", "figure", *HEADINGS})

_WRAPPERS: Final = frozenset({"article", "div", "section"})


def is_loose(node: Node) -> bool:
    """Whether an item holds more than one block that wants to be apart (CommonMark 0.31.2, section 5.3)."""
    return any(item.tag == "li" and _is_spacious(item) for item in children_of(node))


def _is_spacious(item: Node) -> bool:
    inner = _elements_of(item)
    while len(inner) == 1 and inner[0].tag in _WRAPPERS:
        inner = _elements_of(inner[0])
    blocks = [child.tag for child in inner]
    spacious = sum(tag in _SPACIOUS for tag in blocks)
    return spacious > 1 or (spacious == 1 and any(tag in LISTS for tag in blocks))


def _elements_of(node: Node) -> list[Node]:
    return [child for child in node.children if child.tag]


def starting_number(node: Node) -> int:
    return _number(node.attributes.get("start", ""), 1)


def number_of(item: Node, usual: int) -> int:
    return _number(item.attributes.get("value", ""), usual)


def _number(text: str, usual: int) -> int:
    """A number that Markdown can write: not negative, of at most nine digits."""
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else usual


def gather_terms(node: Node, sight: Sight) -> Iterator[tuple[list[Node], list[Node]]]:
    """The groups of a `dl`: terms, and what is said of them. A `div` may stand around each (HTML, section 4.4.9)."""
    terms, definitions = list[Node](), list[Node]()
    for part in _parts_of(node, sight):
        if part.tag == "dt" and definitions:
            yield terms, definitions
            terms, definitions = [], []
        (terms if part.tag == "dt" else definitions).append(part)
    if terms or definitions:
        yield terms, definitions


def _parts_of(node: Node, sight: Sight) -> Iterator[Node]:
    for child in sight.elements_in(node):
        if child.tag == "div":
            yield from sight.elements_in(child)
        else:
            yield child


# --- Tables as GitHub Flavored Markdown writes them (GFM 0.29, section 4.10) ---
# A table that only arranges a page is none: what it holds is written as if the table were not there.

MOST_SPANNED: Final = 40
"""Columns that one cell may take; browsers take up to 1,000."""

MOST_FILLED: Final = 20_000
"""Empty cells of a page that stand for spans, so that a small page cannot make a large document."""

_IN_CELLS: Final = frozenset({"p", "div", "li", "ul", "ol", "dl", "dd", "dt", "address", "center"})
"""Blocks that may stand in a cell of a real table, each on a line of its own."""

_TABLE_PARTS: Final = frozenset({"thead", "tbody", "tfoot", "tr", "td", "th", "caption"})
_ALIGNED: Final = {"left": ":--", "center": ":-:", "right": "--:"}
_STYLE: Final = re.compile(r"text-align\s*:\s*(left|center|right)", re.IGNORECASE)


@dataclass(slots=True)
class Filler:
    """How many empty cells there may still be."""

    left: int = MOST_FILLED

    def cells(self, wanted: int) -> list[str]:
        given = min(wanted, self.left)
        self.left -= given
        return [""] * given


@dataclass(frozen=True, slots=True)
class Rows:
    """A table's cells, row by row as they are shown; whether the first row is of headings; the table's caption."""

    rows: Sequence[Sequence[Node]]
    has_heading: bool
    caption: Node | None


def read_rows(table: Node, sight: Sight) -> Rows:
    """The rows of a table without those of tables within it."""
    head, body, foot, caption = list[Node](), list[Node](), list[Node](), None
    for part in sight.elements_in(table):
        if part.tag == "caption":
            caption = caption or part
        rows = [part] if part.tag == "tr" else [row for row in sight.elements_in(part) if row.tag == "tr"]
        {"thead": head, "tfoot": foot}.get(part.tag, body).extend(rows)
    shown = [[cell for cell in sight.elements_in(row) if cell.tag in ("td", "th")] for row in (*head, *body, *foot)]
    first = shown[0] if body else []
    return Rows(shown, bool(head) or (bool(first) and all(cell.tag == "th" for cell in first)), caption)


def is_data(table: Node, rows: Rows) -> bool:
    """Whether a table shows data and does not arrange a page."""
    if table.attributes.get("role", "").strip().lower() in ("presentation", "none"):
        return False
    held = set(_blocks_of(rows))
    if "table" in held:
        return False
    is_marked = rows.has_heading or rows.caption is not None or _has_headings(rows)
    widest = max(map(len, rows.rows), default=0)
    return held <= _IN_CELLS if is_marked else widest > 1 and not held - {"p", "div"}


def _has_headings(rows: Rows) -> bool:
    return any(cell.tag == "th" for row in rows.rows for cell in row)


def _blocks_of(rows: Rows) -> Iterator[str]:
    """Names of the blocks within the cells; nobody looks into a table within."""
    waiting = [child for row in rows.rows for cell in row for child in cell.children]
    while waiting:
        node = waiting.pop()
        if node.tag in BLOCKS:
            yield node.tag
        if node.tag != "table":
            waiting.extend(node.children)


def write_table(rows: Rows, inline: Inline, filler: Filler) -> list[str]:
    """The lines of a table. Without headings of its own it gets empty ones, for there is no table without."""
    written = list(_write_rows(rows.rows, inline, filler))
    width = max((len(cells) for cells in written), default=0)
    if not width or not any(any(cells) for cells in written):
        return []
    heading = written.pop(0) if rows.has_heading else [""] * width
    aligned = [_alignment(cell) for cell in rows.rows[0]] if rows.has_heading else []
    heading += [""] * (width - len(heading))
    aligned += ["---"] * (width - len(aligned))
    return [_line(heading), _line(aligned[:width]), *(_line(cells) for cells in written)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _write_rows(rows: Sequence[Sequence[Node]], inline: Inline, filler: Filler) -> Iterator[list[str]]:
    """Cells that span rows leave empty cells below themselves, so that every column stays one."""
    reaching: dict[int, int] = {}
    for row in rows:
        written: list[str] = []
        for cell in row:
            written += _skip(len(written), reaching, filler)
            columns = _span(cell, "colspan", MOST_SPANNED)
            if (below := _span(cell, "rowspan", len(rows)) - 1) > 0 and len(reaching) < MOST_SPANNED:
                reaching |= {len(written) + column: below + 1 for column in range(columns)}
            written += [_write_cell(cell, inline), *filler.cells(columns - 1)]
        reaching = {column: rows_left - 1 for column, rows_left in reaching.items() if rows_left > 1}
        if written:
            yield written


def _skip(column: int, reaching: Mapping[int, int], filler: Filler) -> list[str]:
    """Empty cells for as long as cells of earlier rows reach into this one."""
    width = 0
    while column + width in reaching:
        width += 1
    return filler.cells(width)


def _span(cell: Node, name: str, most: int) -> int:
    given = cell.attributes.get(name, "1").strip()
    if not given.isascii() or not given.isdigit() or len(given) > 5:
        return 1
    number = int(given)
    return most if number == 0 and name == "rowspan" else max(1, min(number, most))


def _write_cell(cell: Node, inline: Inline) -> str:
    """One line; a pipe would begin the next cell, also within code (GFM, example 200)."""
    return inline.line([cell], break_with="<br>").replace("|", "\\|")


def _alignment(cell: Node) -> str:
    said = cell.attributes.get("align", "").strip().lower()
    if not said and (found := _STYLE.search(cell.attributes.get("style", ""))):
        said = found[1].lower()
    return _ALIGNED.get(said, "---")


MAX_BLOCK_DEPTH: Final = 80
"""Blocks inside one another; what lies deeper is given as its text alone."""

_LANGUAGE: Final = re.compile(
    r"(?:^|\s)(?:(?:\S*-)?lang(?:uage)?-|highlight-source-|brush:\s*|sourceCode\s+)([\w+#.-]+)"
)


def write_markdown(source: Tree | str | bytes, url: str, charset: str | None = None) -> str:
    """The page at `url` as Markdown. Nothing is raised for what a page says.

    `charset` is what a `Content-Type` said of `source`, if that is bytes.
    """
    tree = source if isinstance(source, Tree) else parse(source, charset)
    page = _Page(tree, url)
    return page.write()


class _Page:
    """The writing of one page."""

    def __init__(self, tree: Tree, url: str) -> None:
        self._tree = tree
        self._sight = Sight(tree)
        self._inline = Inline(_base_of(tree, url), self._sight)
        self._holders = holders_of_blocks(tree)
        self._lines = Lines()
        self._filler = Filler()
        self._is_tight = False
        """Whether what is written stands in a list whose items are not apart."""
        self._link: str | None = None
        """The address of a link that holds blocks, until the first of them has become the link."""
        self._writers: Mapping[str, Callable[[Node, int], None]] = {
            "a": self._linked_blocks,
            "blockquote": self._quote,
            "dl": self._terms,
            "form": self._form,
            "hr": self._rule,
            "legend": self._strong,
            "summary": self._strong,
            "table": self._table,
            **dict.fromkeys(HEADINGS, self._heading),
            **dict.fromkeys(LISTS, self._list),
            **dict.fromkeys(PREFORMATTED, self._code),
        }

    def write(self) -> str:
        title = self._title()
        if title:
            self._lines.block([f"# {title}"])
        self._blocks(self._tree.body, 0)
        return self._lines.text()

    def _title(self) -> str:
        """The page's title, where no heading says what the page is."""
        if any(self._sight.reaches(one) and self._sight.plain_text(one) for one in self._tree.tagged("h1")):
            return ""
        return escape_text(collapse(read_title(self._tree)).strip())

    # --- Blocks ---

    def _blocks(self, node: Node, depth: int) -> None:
        """All that stands in an element: blocks, and between them text."""
        self._run(children_of(node), depth)

    def _run(self, children: Iterable[Node], depth: int, tight: bool = False) -> None:
        pieces: list[Piece] = []
        for child in children:
            if child.tag and self._is_block(child) and self._sight.meets(child):
                self._text(pieces, tight)
                pieces = []
                self._block(child, depth + 1)
            else:
                pieces += self._inline.pieces(child, linked=self._link is not None)
        self._text(pieces, tight)

    def _is_block(self, node: Node) -> bool:
        """Whether an element is one, or holds some; a control is told in its line, whatever it holds."""
        return node.tag in BLOCKS or (id(node) in self._holders and node.tag not in CONTROLS)

    def _block(self, node: Node, depth: int) -> None:
        if depth > MAX_BLOCK_DEPTH:
            self._text([escape_text(self._sight.plain_text(node))])
        else:
            self._writers.get(node.tag, self._blocks)(node, depth)

    def _text(self, pieces: Iterable[Piece], tight: bool = False) -> None:
        """Running text, as one paragraph or several."""
        for lines in join_pieces(pieces):
            if self._link is not None:
                lines, self._link = [write_link(" ".join(lines), self._link)], None
            escaped = [escape_line(line) for line in lines]
            self._lines.block([f"{line}  " for line in escaped[:-1]] + escaped[-1:], tight)

    def _heading(self, node: Node, depth: int) -> None:
        text = self._line(node)
        if text:
            escaped = re.sub(r"(#+)$", r"\\\1", text)  # a closing sequence (section 4.2)
            self._lines.block([f"{'#' * HEADINGS[node.tag]} {escaped}"])

    def _strong(self, node: Node, depth: int) -> None:
        """The name of what follows: the legend of a group of controls, the summary of details."""
        if self._holds_blocks(node):
            self._blocks(node, depth)
            return
        text = self._line(node)
        if text:
            self._lines.block([text if text.startswith("**") else f"**{text}**"])

    def _line(self, node: Node) -> str:
        """The text of a block on one line, which is a link if the block is the first within one."""
        text = self._inline.line(list(children_of(node)), linked=self._link is not None)
        if text and self._link is not None:
            text, self._link = write_link(text, self._link), None
        return text

    def _linked_blocks(self, node: Node, depth: int) -> None:
        href = node.attributes.get("href")
        address = self._inline.address(href) if href is not None else None
        outer, self._link = self._link, self._link or address
        self._blocks(node, depth)
        self._link = outer if outer is not None and self._link is not None else None

    def _rule(self, node: Node, depth: int) -> None:
        if not self._lines.is_empty:  # at the beginning it would announce front matter
            self._lines.block(["---"])

    def _quote(self, node: Node, depth: int) -> None:
        around, self._is_tight = self._is_tight, False
        with self._lines.within("> "):
            self._blocks(node, depth)
        self._is_tight = around

    def _code(self, node: Node, depth: int) -> None:
        text = self._sight.raw_text(node).replace("\r\n", "\n").rstrip().strip("\n")
        if text:
            fence = "`" * max(3, longest_run(text) + 1)
            self._lines.block([fence + _language_of(node), *text.split("\n"), fence])

    # --- Lists ---

    def _list(self, node: Node, depth: int) -> None:
        is_ordered = node.tag == "ol"
        marker = self._marker(is_ordered)
        number, is_first = starting_number(node), True
        around, is_tight = self._is_tight, not is_loose(node)
        # Directly after the text of an item only a list that starts with 1 is one (section 5.3).
        begins_tight = around and is_tight and number == 1
        self._is_tight = is_tight
        for child in self._sight.elements_in(node):
            if child.tag == "li":
                number = number_of(child, number)
            sign = f"{number}{marker} " if is_ordered else f"{marker} "
            is_written = self._item(child, sign, depth, tight=begins_tight if is_first else is_tight)
            is_first = is_first and not is_written
            number += int(is_written)
        self._is_tight = around
        if not is_first:
            self._lines.last_list = marker

    def _marker(self, is_ordered: bool) -> str:
        """A list directly after another has other markers, or the two would be one (section 5.3)."""
        usual, other = (".", ")") if is_ordered else ("-", "*")
        return other if self._lines.last_list == usual else usual

    def _item(self, node: Node, sign: str, depth: int, tight: bool) -> bool:
        """One item; whether there was anything in it. What is no `li` stands in a list by mistake."""
        with self._lines.item(sign, tight) as item:
            if node.tag == "li":
                self._run(children_of(node), depth)
            else:
                self._run([node], depth)
        return item.is_written

    def _terms(self, node: Node, depth: int) -> None:
        """Terms and what is said of them, as a list: Markdown has no other way."""
        is_first = True
        for terms, definitions in gather_terms(node, self._sight):
            names = [f"**{line}**" for line in map(self._line, terms) if line]
            simple = all(not self._holds_blocks(one) for one in definitions)
            with self._lines.item("- ", tight=not is_first) as item:
                if names and simple:
                    said = "; ".join(line for line in map(self._line, definitions) if line)
                    self._lines.block([f"{', '.join(names)}: {said}" if said else ", ".join(names)])
                else:
                    if names:
                        self._lines.block([", ".join(names)])
                    for one in definitions:
                        self._blocks(one, depth)
            is_first = is_first and not item.is_written

    def _holds_blocks(self, node: Node) -> bool:
        return any(self._is_block(child) for child in node.children)

    # --- Tables and forms ---

    def _table(self, node: Node, depth: int) -> None:
        rows = read_rows(node, self._sight)
        if not is_data(node, rows):
            self._arranged(node, depth)
            return
        if rows.caption is not None:
            self._strong(rows.caption, depth)
        lines = write_table(rows, self._inline, self._filler)
        if lines:
            self._lines.block(lines)

    def _arranged(self, node: Node, depth: int) -> None:
        """A table that arranges the page: its cells one after the other."""
        self._blocks(node, depth)

    def _form(self, node: Node, depth: int) -> None:
        """What a form does, where it does more than to come back to its page; then what it asks for."""
        given = node.attributes
        address = self._inline.address(given["action"]) if given.get("action") else None
        name = collapse(given.get("aria-label") or "").strip()
        told = f"Form “{escape_text(name)}”" if name else "Form"
        if address is not None:
            method = given.get("method", "").strip().upper()
            told += ": " + code_span(f"{method if method in ('POST', 'DIALOG') else 'GET'} {address}")
        if name or address is not None:
            self._lines.block([told])
        self._blocks(node, depth)


def _base_of(tree: Tree, url: str) -> str:
    """What relative addresses are relative to (HTML Standard, section 4.2.3)."""
    for node in tree.tagged("base"):
        if "href" in node.attributes:
            try:
                return urljoin(url, node.attributes["href"].strip())
            except ValueError:
                return url
    return url


def _language_of(node: Node) -> str:
    """The language of code, as highlighters write it into classes: on the code, around it, or within."""
    inner = [child for child in node.children if child.tag == "code"][:1]
    around = [node.parent] if node.parent is not None else []
    for one in (*inner, node, *around):
        given = one.attributes
        if found := _LANGUAGE.search(given.get("class", "")):
            return found[1]
        if said := given.get("data-lang", given.get("data-language", "")).strip():
            return re.sub(r"[^\w+#.-]", "", said)
    return ""
