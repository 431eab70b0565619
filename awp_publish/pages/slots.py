"""The children of elements as they are shown: a shadow root instead of its host's content, and content in its slots.

See the flat tree of CSS Scoping, section 3.3. Of several slots with one name the first one has the content.
"""

from collections.abc import Sequence

from awp_publish.pages.tree import COMMENT, Tree, shadow_mode_of


class FlatTree:
    """The flat tree of one page.

    `assigned` has the content of each slot that has some, and `unassigned` are children of hosts without a slot.
    """

    __slots__ = ("_roots", "_tree", "assigned", "unassigned")

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._roots: dict[int, list[int]] = {}
        self.assigned: dict[int, list[int]] = {}
        self.unassigned = set[int]()
        for template, (start, end) in tree.contents.items():
            if shadow_mode_of(tree.attributes[template]) is None:
                continue
            host = tree.parents[template]
            self._roots[host] = tree.content(template)
            slots: dict[str, int] = {}
            for at in range(start, end):
                if tree.tags[at] == "slot":
                    slots.setdefault(tree.attributes[at].get("name", ""), at)
            for child in tree.children(host):
                tag = tree.tags[child]
                if tag in (COMMENT, "template") or (not tag and tree.texts[child].isspace()):
                    continue
                slot = slots.get(tree.attributes[child].get("slot", ""))
                if slot is None:
                    self.unassigned.add(child)
                else:
                    self.assigned.setdefault(slot, []).append(child)

    def children(self, at: int) -> Sequence[int]:
        """Return the children of an element in the flat tree."""
        return self._roots.get(at) or self.assigned.get(at) or self._tree.children(at)
