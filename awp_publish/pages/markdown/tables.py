"""Tables of GitHub Flavored Markdown (GFM 0.29, section 4.10)."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from awp_publish.pages.markdown.visible import BLOCKS, VisibleNodes
from awp_publish.pages.tables import is_layout

MAX_SPANNED: Final = 40
"""Columns that one cell may span; browsers allow up to 1,000."""

MAX_FILLED: Final = 20_000
"""Empty cells that may stand for spans in a page, so that a small page cannot make a large document."""

_IN_CELLS: Final = frozenset({"p", "div", "li", "ul", "ol", "dl", "dd", "dt", "address", "center", "form"})
"""Blocks that may be in a cell of a data table, each on a line of its own."""

_ALIGNED: Final = {"left": ":--", "center": ":-:", "right": "--:"}
_STYLE: Final = re.compile(r"text-align\s*:\s*(left|center|right)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DataTable:
    """The visible rows of a data table, each a list of cells. `has_heading` means that the first one is its heading."""

    caption: int | None
    rows: Sequence[Sequence[int]]
    has_heading: bool


class Tables:
    """Writes the tables of one page. `write_cell` returns the text of a cell on one line."""

    def __init__(self, visible: VisibleNodes, write_cell: Callable[[int], str]) -> None:
        self._visible, self._write_cell = visible, write_cell
        self._tags, self._attributes = visible.tags, visible.attributes
        self._filled = 0

    def read(self, table: int) -> DataTable | None:
        """Return a data table, None for a table that only arranges the page or has other tables in it."""
        seen_in, tags = self._visible.elements_in, self._tags
        caption: int | None = None
        parts: dict[str, list[int]] = {"thead": [], "tbody": [], "tfoot": []}
        for part in seen_in(table):
            tag = tags[part]
            if tag == "caption" and caption is None:
                caption = part
            rows = [part] if tag == "tr" else [row for row in seen_in(part) if tags[row] == "tr"]
            parts[tag if tag in parts else "tbody"] += rows
        cells = [
            [cell for cell in seen_in(row) if tags[cell] in ("td", "th")] for rows in parts.values() for row in rows
        ]
        first = cells[0] if cells else []
        has_heading = bool(parts["thead"]) or (bool(parts["tbody"]) and all(tags[cell] == "th" for cell in first))
        is_named = has_heading or caption is not None or any(tags[cell] == "th" for row in cells for cell in row)
        role = self._attributes[table].get("role", "").strip().lower()
        if role in ("presentation", "none") or not self._has_data(table, cells, is_named):
            return None
        return DataTable(caption, cells, has_heading)

    def _has_data(self, table: int, cells: Sequence[Sequence[int]], is_named: bool) -> bool:
        tags, ends = self._tags, self._visible.tree.ends
        blocks: set[str] = set()  # within the cells, except in nested tables
        for at in (cell for row in cells for cell in row):
            end, at = ends[at], at + 1
            while at < end:
                if tags[at] in BLOCKS:
                    blocks.add(tags[at])
                at = ends[at] if tags[at] == "table" else at + 1
        if "table" in blocks:
            return False
        if is_named:
            return blocks <= _IN_CELLS
        if max(map(len, cells), default=0) <= 1 or not blocks <= {"p", "div", "form"}:
            return False
        return "form" not in blocks or not is_layout(table, self._visible.visibility)

    def write(self, table: DataTable) -> list[str]:
        """Return the lines of a table, none if its cells are empty."""
        written = self._write_rows(table.rows)
        if not any(map(any, written)):
            return []
        width = max(map(len, written))
        heading, aligned = list[str](), list[str]()  # a table has to have a heading, which may be empty
        if table.has_heading:
            heading = written.pop(0)
            aligned = [self._alignment(cell) for cell in table.rows[0][:width]]
        heading += [""] * (width - len(heading))
        aligned += ["---"] * (width - len(aligned))
        return [f"| {' | '.join(line)} |" for line in (heading, aligned, *written)]

    def _write_rows(self, rows: Sequence[Sequence[int]]) -> list[list[str]]:
        """Return the texts of the cells; a cell that spans columns or rows is followed by empty ones."""
        written: list[list[str]] = []
        reaching: dict[int, int] = {}  # for a column, the remaining rows that a cell spans, this one included
        for row in rows:
            line: list[str] = []
            for cell in row:
                column = len(line)
                while column in reaching:
                    column += 1
                line += self._empty_cells(column - len(line))
                columns = _span(self._attributes[cell], "colspan", MAX_SPANNED)
                below = _span(self._attributes[cell], "rowspan", len(rows)) - 1
                if below > 0 and len(reaching) < MAX_SPANNED:
                    reaching |= {len(line) + place: below + 1 for place in range(columns)}
                # A pipe would begin the next cell, even within code (GFM, example 200).
                line.append(self._write_cell(cell).replace("|", "\\|"))
                line += self._empty_cells(columns - 1)
            reaching = {column: left - 1 for column, left in reaching.items() if left > 1}
            if line:
                written.append(line)
        return written

    def _alignment(self, cell: int) -> str:
        attributes = self._attributes[cell]
        alignment = attributes.get("align", "").strip().lower()
        if not alignment and (match := _STYLE.search(attributes.get("style", ""))):
            alignment = match[1].lower()
        return _ALIGNED.get(alignment, "---")

    def _empty_cells(self, wanted: int) -> list[str]:
        count = min(wanted, MAX_FILLED - self._filled)
        self._filled += count
        return [""] * count


def _span(attributes: Mapping[str, str], name: str, most: int) -> int:
    text = attributes.get(name, "1").strip()
    if not text.isascii() or not text.isdigit() or len(text) > 5:
        return 1
    number = int(text)
    return most if number == 0 and name == "rowspan" else max(1, min(number, most))
