"""Tells elements that stand apart without white space between them from parts of a word."""

from typing import Final

from awp_publish.pages.tree import Tree

JOINED: Final = frozenset(("a", "b", "del", "em", "i", "ins", "label", "s", "small", "span", "strong", "time"))
"""Elements between which there may be no white space though style rules of another file put them apart."""

_SIGNS: Final = frozenset("$\u00a3\u00a5\u20ac\u20b9")
"""Signs of currencies before an amount."""


def stands_apart(tree: Tree, node: int) -> bool:
    """Return True if an element follows another one without white space, and begins something else than its word.

    A name and a time, two prices, two links. What may be a part of a word does not: `<b>T</b><i>he</i>`, `$<b>4</b>`.
    """
    before, first = node - 1, node + 1
    if tree.tags[before] or tree.parents[before] == tree.parents[node]:
        return False
    if first == len(tree.tags) or tree.tags[first]:
        return False
    if tree.tags[node] == "a" == tree.tags[tree.parents[before]]:
        return True
    left, right = tree.texts[before][-1:], tree.texts[first][:1]
    if right.isupper():
        return left.islower() or left.isdigit()
    return left.isalnum() and (right in _SIGNS or (right.isdigit() and left.isalpha()))
