"""Tables: data tables, and layout tables that only arrange the page (SOM 1.0, 6.3)."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from awp_publish.pages.forms import read_form
from awp_publish.pages.tree import Tree
from awp_publish.pages.visibility import Visibility

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


def _span(attributes: Mapping[str, str], name: str) -> int:
    number = attributes.get(name, "1").strip()
    return min(max(int(number[:6]), 1), MAX_SPAN) if number.isascii() and number.isdecimal() else 1
