"""What the elements of a page are to Markdown: blocks, lines of text, or nothing."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from awp_publish.pages.tree import COMMENT, Node, Template, Tree

HEADINGS: Final[Mapping[str, int]] = {f"h{level}": level for level in range(1, 7)}
LISTS: Final = frozenset({"ul", "ol", "menu", "dir"})
SILENT: Final = frozenset(
    {
        COMMENT,
        "area",
        "base",
        "datalist",
        "head",
        "link",
        "meta",
        "noscript",
        "param",
        "rp",
        "script",
        "source",
        "style",
        "title",
        "track",
    }
)
"""Elements of which nothing is seen."""

_BLOCKS: Final = (
    "address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure "
    "footer form frameset h1 h2 h3 h4 h5 h6 header hgroup hr html legend li listing main menu nav ol p "
    "plaintext pre search section summary table tbody td tfoot th thead tr ul xmp dir"
)
BLOCKS: Final = frozenset(_BLOCKS.split())
"""Elements that begin a block of their own (HTML Standard, section 15.3), and what tables are made of."""

PREFORMATTED: Final = frozenset({"pre", "listing", "plaintext", "xmp"})
_HIDDEN_STYLE: Final = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)\b", re.IGNORECASE)


def is_seen(node: Node) -> bool:
    """Whether a reader of the page meets an element, as far as the page itself says."""
    if node.tag in SILENT:
        return False
    given = node.attributes
    if not given:
        return node.tag != "dialog"
    if "hidden" in given or given.get("aria-hidden", "").strip().lower() == "true":
        return False
    if node.tag == "dialog" and "open" not in given:
        return False
    return "style" not in given or _HIDDEN_STYLE.search(given["style"]) is None


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


def walk_seen(top: Node) -> Iterator[Node]:
    """Everything that is seen below a node, in document order, however deep it lies."""
    waiting = list(reversed(list(children_of(top))))
    while waiting:
        node = waiting.pop()
        if node.tag == "":
            yield node
        elif is_seen(node):
            yield node
            waiting.extend(reversed(list(children_of(node))))


def plain_text(top: Node) -> str:
    """The text below a node on one line, blocks apart."""
    parts: list[str] = []
    for node in walk_seen(top):
        if node.tag == "":
            parts.append(node.text)
        elif node.tag in BLOCKS or node.tag == "br":
            parts.append(" ")
        elif node.tag == "img":
            parts.append(node.attributes.get("alt", ""))
    return " ".join("".join(parts).split())


def raw_text(top: Node) -> str:
    """The text below a node as it is written, for code."""
    parts = []
    for node in walk_seen(top):
        parts.append("\n" if node.tag == "br" else node.text)
    return "".join(parts)
