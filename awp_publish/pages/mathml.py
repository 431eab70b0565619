"""Formulas that are made of elements (MathML Core), on one line: `x^2`, `(a+b)/2`, `√(c)`."""

from collections.abc import Sequence
from typing import Final

from awp_publish.pages.visibility import Visibility

_SCRIPTS: Final = {
    "msup": "^",
    "mover": "^",
    "msub": "_",
    "munder": "_",
    "msubsup": "_^",
    "munderover": "_^",
}
"""What stands before each further part of an element, by its tag."""

STRUCTURE: Final = frozenset(_SCRIPTS) | {"mfrac", "mroot", "msqrt", "mtable"}
"""Elements whose text alone says something else: `x2` for `x^2`."""

_ACCENTS: Final = frozenset("^~\u00a8\u00af\u00b4\u00b7\u02c6\u02c7\u02d8\u02d9\u02dc\u203e\u2192")
_DROPPED: Final = frozenset(("annotation", "annotation-xml", "mphantom", "maligngroup", "malignmark"))

MAX_DEPTH: Final = 40
"""Levels of elements in a formula; what is deeper is left out."""


def on_one_line(visibility: Visibility, math: int) -> str:
    """Return a formula as a line of text."""
    return " ".join(_row(visibility, math, 0).split())


def _row(visibility: Visibility, node: int, depth: int) -> str:
    return "".join(_part(visibility, child, depth + 1) for child in visibility.tree.children(node))


def _part(visibility: Visibility, node: int, depth: int) -> str:
    tree = visibility.tree
    tag = tree.tags[node]
    if not tag:
        return tree.texts[node].strip()
    if tag in _DROPPED or depth > MAX_DEPTH or visibility.hides(node):
        return ""
    if tag == "mspace":
        return " "
    if tag == "msqrt":
        return f"\u221a({_row(visibility, node, depth)})"
    if tag == "mtable":
        rows = [_cells(visibility, row, depth) for row in tree.children(node) if tree.tags[row]]
        return f"[{'; '.join(rows)}]"
    if tag not in STRUCTURE:
        return _row(visibility, node, depth)
    parts = [_part(visibility, child, depth + 1) for child in tree.children(node) if tree.tags[child]]
    return _joined(tag, parts)


def _joined(tag: str, parts: Sequence[str]) -> str:
    """Return the parts of a fraction, a root or an element with scripts."""
    if len(parts) < 2:
        return "".join(parts)
    if tag == "mfrac":
        return f"{_grouped(parts[0])}/{_grouped(parts[1])}"
    if tag == "mroot":
        return f"({parts[1]})\u221a({parts[0]})"
    base, *scripts = parts
    if tag == "mover" and scripts[0] in _ACCENTS:
        return f"{base}{scripts[0]}"
    signs = zip(_SCRIPTS[tag], scripts, strict=False)
    return _grouped(base) + "".join(f"{sign}{_grouped(script)}" for sign, script in signs if script)


def _cells(visibility: Visibility, row: int, depth: int) -> str:
    tree = visibility.tree
    return ", ".join(_row(visibility, cell, depth) for cell in tree.children(row) if tree.tags[cell])


def _grouped(text: str) -> str:
    """Return a part in parentheses, unless it is a single word or number."""
    return text if text.isalnum() or len(text) < 2 else f"({text})"
