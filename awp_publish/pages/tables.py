"""Lists and tables: whether a table holds data or only arranges the page (SOM 1.0, 6.3), and what their parts say."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from awp_publish.pages.tree import Node
from awp_publish.pages.visibility import Visibility, text_of

Said: TypeAlias = Callable[[Node], str | None]
"""Gives the text of a part of an element, or None when it is not to be seen."""

_ARRANGING: Final = frozenset(("bgcolor", "border", "cellpadding", "cellspacing", "width"))
_PARTS_OF_PAGES: Final = frozenset(("article", "aside", "footer", "form", "header", "main", "nav", "section", "table"))
MOST_LAYOUT_CELLS: Final = 2
MOST_DATA_LINKS: Final = 20
MOST_SPAN: Final = 100
"""A cell over more columns than this is one over this many; browsers stop at 1,000 (HTML, 4.9.11)."""


@dataclass(frozen=True, slots=True)
class Cells:
    """What a table says: the texts of its headers, and of its rows."""

    headers: list[str]
    rows: list[list[str]]


def is_layout(table: Node, in_layout: bool = False) -> bool:
    """Whether a table only arranges what it holds (6.3). One within such a table does, unless it has headers."""
    roles = table.attributes.get("role", "").lower().split()
    if table.tag != "table" or "presentation" in roles or "none" in roles:
        return table.tag == "table"
    cells = links = 0
    arranging = in_layout or not _ARRANGING.isdisjoint(table.attributes)
    for node in _within(table):
        if node.tag in ("th", "caption"):
            return False
        cells += node.tag == "td"
        links += node.tag == "a" and "href" in node.attributes
        arranging = arranging or node.tag in _PARTS_OF_PAGES
    return arranging or cells <= MOST_LAYOUT_CELLS or links >= MOST_DATA_LINKS


def read_cells(table: Node, said: Said) -> Cells:
    """The texts of a table's cells. The first row with nothing but header cells is the headers."""
    headers: list[str] = []
    rows: list[list[str]] = []
    for row in rows_of(table):
        cells = [(cell, text) for cell in row.children if (text := said(cell)) is not None]
        texts = [text for cell, text in cells for _ in range(_span(cell))]
        if not headers and cells and all(cell.tag == "th" for cell, _ in cells):
            headers = texts
        elif any(texts):
            rows.append(texts)
    return Cells(headers, rows)


def rows_of(table: Node) -> Iterator[Node]:
    """Every row of a table, also those of which no cell is to be seen."""
    for part in table.children:
        if part.tag == "tr":
            yield part
        elif part.tag in ("thead", "tbody", "tfoot"):
            yield from (row for row in part.children if row.tag == "tr")


def count_items(node: Node) -> int:
    """How many items a list has."""
    return sum(1 for child in node.children if child.tag == "li")


def count_rows(table: Node) -> int:
    """How many rows a table has, its headers too."""
    return sum(1 for _ in rows_of(table))


def caption_of(table: Node, visibility: Visibility) -> str:
    """The caption of a table, or ""."""
    found = next((node for node in table.children if node.tag == "caption" and not visibility.hides(node)), None)
    return text_of(found, visibility) if found is not None else ""


def _span(cell: Node) -> int:
    given = cell.attributes.get("colspan", "1").strip()
    return min(max(int(given[:6]), 1), MOST_SPAN) if given.isascii() and given.isdecimal() else 1


def _within(table: Node) -> Iterator[Node]:
    """Every element of a table, but not those within a table in it."""
    waiting = list(table.children)
    while waiting:
        node = waiting.pop()
        if node.tag:
            yield node
        if node.tag != "table":
            waiting.extend(node.children)
