"""Labels of checkboxes and radio buttons with blocks in them: a box would stand apart from its text."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from awp_publish.pages.input_types import BOXES, input_type
from awp_publish.pages.tree import Tree
from awp_publish.pages.visibility import INLINE

_TEXTS: Final = frozenset(("b", "bdi", "br", "div", "em", "i", "input", "label", "p", "small", "span", "strong", "svg"))
"""What a label has in it whose text is all that it says."""


def find_torn(tree: Tree, labels: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """Return the box of each label that has blocks in it. `labels` are those of each control."""
    return {
        label: box
        for box, own in labels.items()
        if tree.tags[box] == "input" and input_type(tree.attributes[box]) in BOXES
        for label in own
        if not INLINE.issuperset(_tags_in(tree, label))
    }


def find_merged(tree: Tree, torn: Mapping[int, int]) -> dict[int, int]:
    """Return the labels that have nothing but text and their box, and that box, or -1 if it is elsewhere."""
    merged = dict[int, int]()
    for label, box in torn.items():
        is_within = label < box < tree.ends[label]
        tags = list(_tags_in(tree, label))
        if _TEXTS.issuperset(tags) and tags.count("input") == is_within:
            merged[label] = box if is_within else -1
    return merged


def _tags_in(tree: Tree, label: int) -> Iterator[str]:
    """Yield the tags of the elements in a label, but for the parts of drawings."""
    at, end = label + 1, tree.ends[label]
    while at < end:
        tag = tree.tags[at]
        if tag:
            yield tag
        at = tree.ends[at] if tag == "svg" else at + 1
