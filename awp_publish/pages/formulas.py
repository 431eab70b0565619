"""Formulas: `<math>` made of elements, or hidden for assistive technology with a visible picture beside it."""

from collections.abc import Mapping
from itertools import count
from typing import Final

from awp_publish.pages.mathml import STRUCTURE, on_one_line
from awp_publish.pages.tree import Tree, written_in
from awp_publish.pages.visibility import Visibility, text_of

_PICTURES: Final = ("img", "svg")
_MAX_WRAPPERS: Final = 3
"""Elements from a formula upwards, including itself, of which one may hide it."""
_MAX_FORMULA_NODES: Final = 500


def formula_of(tree: Tree, math: int) -> str:
    """Return a formula in words or in TeX: its `alttext`, or its annotation in TeX (MathML Core, 2.1)."""
    formula = tree.attributes[math].get("alttext", "")
    if not formula.strip():
        for at in range(math + 1, min(tree.ends[math], math + 1 + _MAX_FORMULA_NODES)):
            if tree.tags[at] == "annotation" and "tex" in tree.attributes[at].get("encoding", "").lower():
                formula = written_in(tree, at)
                break
    return " ".join(formula.split())


def read_formulas(visibility: Visibility) -> Mapping[int, str]:
    """Return the texts of formulas: of those that are made of elements, and of pictures without a text of their own.

    Encyclopedias hide the `<math>` beside its picture, and the picture from assistive technology.
    """
    tree = visibility.tree
    tags, attributes = tree.tags, tree.attributes
    found: dict[int, str] = {}
    beside_of: dict[int, list[int]] = {}  # children of formulas' parents, so that a long row is read once
    places: dict[int, int] = {}
    for math in tree.find("math"):
        parts = tags[math : min(tree.ends[math], math + _MAX_FORMULA_NODES)]
        if not STRUCTURE.isdisjoint(parts) and not attributes[math].get("alttext", "").strip():
            found[math] = on_one_line(visibility, math)
        node, hidden = math, -1
        for _ in range(_MAX_WRAPPERS):
            if node < 0 or tags[node] == "body":
                break
            if visibility.withdraws(node):
                hidden = node
            node = tree.parents[node]
        parent = tree.parents[hidden] if hidden >= 0 else -1
        if parent < 0:
            continue
        if parent not in beside_of:
            beside_of[parent] = tree.children(parent)
            places.update(zip(beside_of[parent], count(), strict=False))
        siblings, place = beside_of[parent], places[hidden]
        for beside in (siblings[place + 1 : place + 3], siblings[max(place - 2, 0) : place][::-1]):
            picture = next((sibling for sibling in beside if tags[sibling] or tree.texts[sibling].strip()), -1)
            while picture >= 0 and tags[picture] not in _PICTURES and len(inner := tree.children(picture)) == 1:
                picture = -1 if visibility.withdraws(picture) else inner[0]
            if picture < 0 or tags[picture] not in _PICTURES:
                continue
            given = attributes[picture]
            alternative = " ".join(given.get("alt", "").split())
            seen = {name: value for name, value in given.items() if name != "aria-hidden"}
            if picture in visibility.by_rule or visibility.is_hidden_by(seen):
                continue
            if visibility.hides(picture) or not alternative:
                words = alternative or formula_of(tree, math) or text_of(visibility, math, max_nodes=_MAX_FORMULA_NODES)
                if words:
                    found[picture] = words
            break
    return found
