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
"""A cell over more columns or rows than this is one over this many; browsers stop at 1,000 (HTML, 4.9.11)."""

_REPEATED: Final = 4
_CELL: Final = 8
"""What a cell counts for beside its text."""


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
    given = [
        (row, [(cell, text) for cell in row.children if (text := said(cell)) is not None]) for row in rows_of(table)
    ]
    grid = _Grid(_REPEATED * sum(len(text) + _CELL for _, cells in given for _, text in cells))
    for row, cells in given:
        texts = grid.write(row, cells)
        if not headers and cells and all(cell.tag == "th" for cell, _ in cells):
            headers = texts
        elif any(text for _, text in cells):
            rows.append(texts)
    return Cells(headers, rows)


class _Grid:
    """Rows with their texts in the columns where they stand (HTML, 4.9.12): a wide or tall cell says its own again.

    What is said again may cost so many times as much as what is said once, and no more: few bytes can span very much.
    """

    __slots__ = ("_below", "_part", "_spare")

    def __init__(self, spare: int) -> None:
        self._spare = spare
        self._part: Node | None = None
        self._below: dict[int, tuple[str, int]] = {}
        """For a column, what reaches down into it, and over how many rows yet."""

    def write(self, row: Node, cells: list[tuple[Node, str]]) -> list[str]:
        """The texts of a row. What reaches down ends with its part of the table."""
        above = self._below if row.parent is self._part else {}
        self._part, self._below = row.parent, {}
        texts: list[str] = []
        for cell, text in cells:
            self._reach_down(texts, above)
            tall = _span(cell, "rowspan")
            self._place(texts, text, tall)
            for _ in range(_span(cell, "colspan") - 1):
                if not self._affords(text):
                    break
                self._place(texts, text, tall)
        self._reach_down(texts, above)
        return texts

    def _reach_down(self, texts: list[str], above: dict[int, tuple[str, int]]) -> None:
        while len(texts) in above and self._affords(above[len(texts)][0]):
            self._place(texts, *above[len(texts)])

    def _place(self, texts: list[str], text: str, tall: int) -> None:
        if tall > 1:
            self._below[len(texts)] = text, tall - 1
        texts.append(text)

    def _affords(self, text: str) -> bool:
        self._spare -= len(text) + _CELL
        return self._spare >= 0


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


def _span(cell: Node, name: str) -> int:
    given = cell.attributes.get(name, "1").strip()
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
