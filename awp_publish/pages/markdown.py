"""A page as Markdown (CommonMark 0.31.2 with GFM's tables, task lists and strikethrough) that a person would read.

All of the page is there that its reader sees, in its order: what a form asks for, too. Addresses are absolute, so the
text stands alone. Its title is the first heading unless the page has one of that level. Whatever the HTML is, it has a
Markdown, made in time and size proportional to it: nesting is followed as far as it means something to a reader.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final
from urllib.parse import urljoin

from awp_publish.pages.markdown_controls import CONTROLS
from awp_publish.pages.markdown_inline import Inline, write_link
from awp_publish.pages.markdown_kinds import (
    BLOCKS,
    HEADINGS,
    LISTS,
    PREFORMATTED,
    Sight,
    children_of,
    holders_of_blocks,
)
from awp_publish.pages.markdown_lines import Lines
from awp_publish.pages.markdown_lists import gather_terms, is_loose, number_of, starting_number
from awp_publish.pages.markdown_spans import Piece, join_pieces
from awp_publish.pages.markdown_tables import Filler, is_data, read_rows, write_table
from awp_publish.pages.markdown_text import code_span, collapse, escape_line, escape_text, longest_run
from awp_publish.pages.selectolax import parse
from awp_publish.pages.structured import read_title
from awp_publish.pages.tree import Node, Tree

DEEPEST: Final = 80
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
        if depth > DEEPEST:
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
