"""What the elements of a page are to Markdown: blocks, lines of text, or nothing; and which of them a reader meets."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from awp_publish.pages.tree import Node, Template, Tree
from awp_publish.pages.visibility import STRIPPED, Visibility

HEADINGS: Final[Mapping[str, int]] = {f"h{level}": level for level in range(1, 7)}
LISTS: Final = frozenset({"ul", "ol", "menu", "dir"})
SILENT: Final = STRIPPED - {"template"} | {"area"}
"""Elements of which nothing is seen. What a template holds is, if it is a shadow root."""

_BLOCKS: Final = (
    "address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure "
    "footer form frameset h1 h2 h3 h4 h5 h6 header hgroup hr html legend li listing main menu nav ol p "
    "plaintext pre search section summary table tbody td tfoot th thead tr ul xmp dir"
)
BLOCKS: Final = frozenset(_BLOCKS.split())
"""Elements that begin a block of their own (HTML Standard, section 15.3), and what tables are made of."""

PREFORMATTED: Final = frozenset({"pre", "listing", "plaintext", "xmp"})


def children_of(node: Node) -> Iterable[Node]:
    """What is seen inside of an element: of a declarative shadow root, what it holds."""
    if isinstance(node, Template):
        return node.content if node.shadow_mode else ()
    return node.children


def holders_of_blocks(tree: Tree) -> frozenset[int]:
    """Ids of the objects of elements that are no blocks and hold some: a link around a heading, say. In linear time."""
    found: set[int] = set()
    for node in tree.walk():
        if node.tag not in BLOCKS:
            continue
        above = node.parent
        while above is not None and above.tag not in BLOCKS and id(above) not in found:
            found.add(id(above))
            above = above.parent
    return frozenset(found)


class Sight:
    """What a reader of one page meets, as far as the page itself says."""

    __slots__ = ("_visibility",)

    def __init__(self, tree: Tree) -> None:
        self._visibility = Visibility(tree)

    def meets(self, node: Node) -> bool:
        """Whether an element is met where what is around it is."""
        if node.tag in SILENT or (node.tag == "dialog" and "open" not in node.attributes):
            return False
        return not node.attributes or not self._visibility.conceals(node)

    def reaches(self, node: Node) -> bool:
        """Whether an element is met, and all that is around it in the body."""
        above: Node | None = node
        while above is not None and above.tag != "body":
            if not self.meets(above):
                return False
            above = above.parent
        return True

    def elements_in(self, node: Node) -> Iterator[Node]:
        """The elements that are met directly inside of one."""
        return (child for child in children_of(node) if child.tag and self.meets(child))

    def walk(self, top: Node) -> Iterator[Node]:
        """Everything that is met below a node, in document order, however deep it lies."""
        waiting = list(reversed(list(children_of(top))))
        while waiting:
            node = waiting.pop()
            if node.tag == "":
                yield node
            elif self.meets(node):
                yield node
                waiting.extend(reversed(list(children_of(node))))

    def plain_text(self, top: Node) -> str:
        """The text below a node on one line, blocks apart."""
        parts: list[str] = []
        for node in self.walk(top):
            if node.tag == "":
                parts.append(node.text)
            elif node.tag in BLOCKS or node.tag == "br":
                parts.append(" ")
            elif node.tag == "img":
                parts.append(node.attributes.get("alt", ""))
        return " ".join("".join(parts).split())

    def raw_text(self, top: Node) -> str:
        """The text below a node as it is written, for code."""
        return "".join("\n" if node.tag == "br" else node.text for node in self.walk(top))
