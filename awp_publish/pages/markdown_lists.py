"""What a list looks like: its numbers, and whether its items are apart."""

from collections.abc import Iterator
from typing import Final

from awp_publish.pages.markdown_kinds import HEADINGS, LISTS, Sight, children_of
from awp_publish.pages.tree import Node

_SPACIOUS: Final = frozenset({"p", "blockquote", "pre", "table", "dl", "hr", "figure", *HEADINGS})

_WRAPPERS: Final = frozenset({"article", "div", "section"})


def is_loose(node: Node) -> bool:
    """Whether an item holds more than one block that wants to be apart (CommonMark 0.31.2, section 5.3)."""
    return any(item.tag == "li" and _is_spacious(item) for item in children_of(node))


def _is_spacious(item: Node) -> bool:
    inner = _elements_of(item)
    while len(inner) == 1 and inner[0].tag in _WRAPPERS:
        inner = _elements_of(inner[0])
    blocks = [child.tag for child in inner]
    spacious = sum(tag in _SPACIOUS for tag in blocks)
    return spacious > 1 or (spacious == 1 and any(tag in LISTS for tag in blocks))


def _elements_of(node: Node) -> list[Node]:
    return [child for child in node.children if child.tag]


def starting_number(node: Node) -> int:
    return _number(node.attributes.get("start", ""), 1)


def number_of(item: Node, usual: int) -> int:
    return _number(item.attributes.get("value", ""), usual)


def _number(text: str, usual: int) -> int:
    """A number that Markdown can write: not negative, of at most nine digits."""
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else usual


def gather_terms(node: Node, sight: Sight) -> Iterator[tuple[list[Node], list[Node]]]:
    """The groups of a `dl`: terms, and what is said of them. A `div` may stand around each (HTML, section 4.4.9)."""
    terms, definitions = list[Node](), list[Node]()
    for part in _parts_of(node, sight):
        if part.tag == "dt" and definitions:
            yield terms, definitions
            terms, definitions = [], []
        (terms if part.tag == "dt" else definitions).append(part)
    if terms or definitions:
        yield terms, definitions


def _parts_of(node: Node, sight: Sight) -> Iterator[Node]:
    for child in sight.elements_in(node):
        if child.tag == "div":
            yield from sight.elements_in(child)
        else:
            yield child
