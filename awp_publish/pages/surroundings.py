"""What stands around a field that has no label: the headers of its row and column, the cell before, the text before."""

import re
from collections.abc import Sequence
from typing import Final

from awp_publish.pages.input_types import BOXES, input_type
from awp_publish.pages.tables import rows_of
from awp_publish.pages.visibility import INLINE, STRIPPED, Visibility, text_of

MAX_LENGTH: Final = 80
"""Characters up to which a text can be the name of a field."""

MAX_CLIMB: Final = 5
"""Elements around a field in which its name is searched."""

MAX_SIBLINGS: Final = 20
"""Nodes beside a field, or beside an element around it, in which its name is searched."""

_LETTER: Final = re.compile(r"[^\W\d_]")
_OTHERS: Final = frozenset(("button", "form", "input", "select", "table", "textarea"))
"""Elements beyond which a text belongs to something else."""

_HEADINGS: Final = ("h1", "h2", "h3", "h4", "h5", "h6")
_BOUNDARIES: Final = frozenset(
    ("aside", "body", "dialog", "fieldset", "footer", "form", "header", "main", "nav", "table")
)


class Surroundings:
    """Names fields of one page after what stands around them."""

    __slots__ = ("_headers", "_places", "_tree", "_visibility")

    def __init__(self, visibility: Visibility) -> None:
        self._visibility, self._tree = visibility, visibility.tree
        self._places: dict[int, tuple[Sequence[int], dict[int, int]]] = {}
        self._headers: dict[int, list[str]] = {}

    def name_of(self, field: int) -> str:
        """Return the name that a field has from its surroundings, or ""."""
        kind = input_type(self._tree.attributes[field]) if self._tree.tags[field] == "input" else ""
        if kind in BOXES and (name := self._beside(field, forwards=True)[0]):
            return name
        return self._in_table(field) or self.before(field)

    def _in_table(self, field: int) -> str:
        """Return the headers of the field's row and column, or the text of the cell before."""
        tree, cell = self._tree, field
        for _ in range(MAX_CLIMB):
            cell = tree.parents[cell]
            if cell < 0 or tree.tags[cell] in ("td", "th", "form", "body"):
                break
        row = tree.parents[cell] if cell >= 0 else -1
        if row < 0 or tree.tags[row] != "tr" or tree.tags[cell] not in ("td", "th"):
            return ""
        cells = [other for other in self._around(row)[0] if tree.tags[other] in ("td", "th")]
        place = cells.index(cell)
        headers = self._headers_of(tree.parents[row])
        column = headers[place] if place < len(headers) and tree.tags[cell] == "td" else ""
        named = [other for other in cells[:place] if column or tree.tags[other] == "th"]
        own = next(filter(None, map(self._text, sorted(named, key=lambda other: tree.tags[other] != "th"))), "")
        if own or column:
            return " ".join(filter(None, (own, column)))
        return self._text(cells[place - 1]) if place else ""

    def _headers_of(self, part: int) -> list[str]:
        """Return the texts of the first row of a table, if these are headers."""
        tree = self._tree
        table = part if tree.tags[part] == "table" else tree.parents[part]
        if table not in self._headers:
            row = next(rows_of(tree, table), None) if tree.tags[table] == "table" else None
            cells = [cell for cell in tree.children(row) if tree.tags[cell] in ("td", "th")] if row is not None else []
            is_headed = bool(cells) and all(tree.tags[cell] == "th" for cell in cells)
            self._headers[table] = list(map(self._text, cells)) if is_headed else []
        return self._headers[table]

    def before(self, field: int) -> str:
        """Return the text before a field, or before an element around it that begins with the field."""
        node = field
        for _ in range(MAX_CLIMB):
            name, goes_on = self._beside(node, forwards=False)
            node = self._tree.parents[node]
            if name or not goes_on or node < 0 or self._tree.tags[node] in _BOUNDARIES:
                return name
        return ""

    def _beside(self, node: int, *, forwards: bool) -> tuple[str, bool]:
        """Return the nearest text before or after a node, and whether there is nothing else on that side."""
        tags, texts = self._tree.tags, self._tree.texts
        siblings, places = self._around(self._tree.parents[node])
        place = places[node]
        beside = siblings[place + 1 :][:MAX_SIBLINGS] if forwards else siblings[:place][::-1][:MAX_SIBLINGS]
        parts: list[str] = []
        for sibling in beside:
            tag = tags[sibling]
            if not tag:
                parts.append(texts[sibling])
            elif tag in STRIPPED or self._visibility.hides(sibling):
                continue
            elif tag in _HEADINGS or self._is_others(sibling):
                is_of_box = not forwards and tag == "input" and input_type(self._tree.attributes[sibling]) in BOXES
                return "" if is_of_box else _join(parts, forwards), False
            elif tag in INLINE and tag != "br":
                parts.append(self._text(sibling))
            else:  # a block or a break ends a text
                if not _LETTER.search("".join(parts)):
                    if forwards:
                        return "", False
                    parts.append(self._text(sibling))
                if _LETTER.search("".join(parts)):
                    break
        name = _join(parts, forwards)
        return name, not name

    def _is_others(self, node: int) -> bool:
        """Return True if an element is a control, a form or a table, has one, or is the label of another control."""
        tree = self._tree
        if tree.tags[node] == "label" and "for" in tree.attributes[node]:
            return tree.find_id(tree.attributes[node]["for"]) is not None
        return any(tree.tags[at] in _OTHERS for at in range(node, min(tree.ends[node], node + MAX_SIBLINGS)))

    def _text(self, node: int) -> str:
        text = text_of(self._visibility, node, max_nodes=MAX_SIBLINGS, shows=True)
        return text if len(text) <= MAX_LENGTH and _LETTER.search(text) else ""

    def _around(self, parent: int) -> tuple[Sequence[int], dict[int, int]]:
        if parent not in self._places:
            tree = self._tree
            children = tree.content(parent) if parent in tree.contents else tree.children(parent)
            self._places[parent] = children, {child: place for place, child in enumerate(children)}
        return self._places[parent]


def _join(parts: list[str], forwards: bool) -> str:
    text = " ".join("".join(parts if forwards else reversed(parts)).split()).strip(" :*")
    return text if len(text) <= MAX_LENGTH and _LETTER.search(text) else ""
