"""Tables as GitHub Flavored Markdown writes them (GFM 0.29, section 4.10).

A table that only arranges a page is none: what it holds is written as if the table were not there.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from awp_publish.pages.markdown_inline import Inline
from awp_publish.pages.markdown_kinds import BLOCKS, Sight
from awp_publish.pages.tree import Node

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
