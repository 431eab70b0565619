"""The visible elements of a page, from the point of view of Markdown."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from awp_publish.pages.tree import Tree
from awp_publish.pages.visibility import STRIPPED, Visibility

HEADINGS: Final[Mapping[str, int]] = {f"h{level}": level for level in range(1, 7)}
LISTS: Final = frozenset({"ul", "ol", "menu", "dir"})
SILENT: Final = STRIPPED | {"area"}
"""Elements without visible content."""

_BLOCKS: Final = (
    "address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure "
    "footer form frameset h1 h2 h3 h4 h5 h6 header hgroup hr html legend li listing main menu nav ol p "
    "plaintext pre search section summary table tbody td tfoot th thead tr ul xmp dir"
)
BLOCKS: Final = frozenset(_BLOCKS.split())
"""Elements that begin a block of their own (HTML Standard, section 15.3), and the parts of tables."""

PREFORMATTED: Final = frozenset({"pre", "listing", "plaintext", "xmp"})


class VisibleNodes:
    """The visible nodes of one page, as far as the page itself determines that, by their numbers in the tree."""

    __slots__ = ("attributes", "children", "tags", "tree", "visibility")

    def __init__(self, tree: Tree) -> None:
        self.visibility = Visibility(tree)
        tree = self.tree = self.visibility.tree
        self.tags, self.attributes = tree.tags, tree.attributes
        self.children: Callable[[int], Sequence[int]] = (
            self.visibility.flat.children if tree.contents else tree.children
        )
        """Returns the children of an element, with content in its slots."""

    def only(self, node: int) -> str | None:
        """Return the text of an element that has nothing else; otherwise None."""
        return None if node in self.visibility.flat.assigned else self.tree.only(node)

    def shows(self, node: int) -> bool:
        """Return True if an element is visible, provided that its parent is."""
        tag = self.tags[node]
        if tag in SILENT or (node in self.visibility.withdrawn and node not in self.visibility.flat.assigned):
            return False
        return tag != "dialog" or "open" in self.attributes[node]

    def elements_in(self, node: int) -> Iterator[int]:
        """Yield the visible elements directly inside of one."""
        return (child for child in self.children(node) if self.tags[child] and self.shows(child))

    def walk(self, top: int) -> Iterator[int]:
        """Yield everything visible below a node in document order, at any depth."""
        if not self.tree.contents:
            tags, ends, withdrawn = self.tags, self.tree.ends, self.visibility.withdrawn
            at, end = top + 1, ends[top]
            while at < end:
                tag = tags[at]
                if tag and (tag in SILENT or at in withdrawn or (tag == "dialog" and not self.shows(at))):
                    at = ends[at]
                    continue
                yield at
                at += 1
            return
        waiting = list(reversed(self.children(top)))
        while waiting:
            node = waiting.pop()
            if not self.tags[node]:
                yield node
            elif self.shows(node):
                yield node
                waiting.extend(reversed(self.children(node)))

    def plain_text(self, top: int) -> str:
        """Return the text below a node on one line, with blocks separated."""
        if (only := self.only(top)) is not None:
            return " ".join(only.split())
        parts: list[str] = []
        for node in self.walk(top):
            tag = self.tags[node]
            if not tag:
                parts.append(self.tree.texts[node])
            elif tag in BLOCKS or tag == "br":
                parts.append(" ")
            elif tag == "img":
                parts.append(self.attributes[node].get("alt", ""))
        return " ".join("".join(parts).split())

    def raw_text(self, top: int) -> str:
        """Return the text below a node unchanged, for code."""
        return "".join("\n" if self.tags[node] == "br" else self.tree.texts[node] for node in self.walk(top))

    def around(self, node: int) -> Iterator[int]:
        """Yield the ancestors of a node, innermost first."""
        above = self.tree.parents[node]
        while above >= 0:
            yield above
            above = self.tree.parents[above]
