"""Tables: those that hold data and those that only arrange the page (SOM 1.0, 6.3), and the texts of their cells."""

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from awp_publish.pages.tree import Node

PartText: TypeAlias = Callable[[Node], str | None]
"""Returns the text of a part of an element, or None when it is not to be seen."""

_ARRANGING: Final = frozenset(("bgcolor", "border", "cellpadding", "cellspacing", "width"))
_PARTS_OF_PAGES: Final = frozenset(("article", "aside", "footer", "form", "header", "main", "nav", "section", "table"))
MAX_LAYOUT_CELLS: Final = 2
MAX_DATA_LINKS: Final = 20
MAX_SPAN: Final = 100
"""A cell over more columns or rows than this is one over this many; browsers stop at 1,000 (HTML, 4.9.11)."""

_REPEATED: Final = 4
"""So many times the length of a table may be said again for cells that span: few bytes can span very much."""

_CELL: Final = 8
"""Length that a cell counts for beside its text."""


def is_layout(table: Node, in_layout: bool = False) -> bool:
    """Tell whether a table only arranges what it holds (6.3). One in such a table does, unless it has headers."""
    if table.tag != "table":
        return False
    roles = table.attributes.get("role", "").lower().split()
    if "presentation" in roles or "none" in roles:
        return True
    cells = links = 0
    arranging = in_layout or not _ARRANGING.isdisjoint(table.attributes)
    waiting = list(table.children)
    while waiting:
        node = waiting.pop()
        if node.tag in ("th", "caption"):
            return False
        cells += node.tag == "td"
        links += node.tag == "a" and "href" in node.attributes
        arranging = arranging or node.tag in _PARTS_OF_PAGES
        if node.tag != "table":
            waiting.extend(node.children)
    return arranging or cells <= MAX_LAYOUT_CELLS or links >= MAX_DATA_LINKS


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
