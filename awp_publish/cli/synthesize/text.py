"""Elements of a page and their text, as far as a form or a link is described by it."""

from collections.abc import Iterator
from typing import Final

from awp_publish.cli.synthesize.observed import short
from awp_publish.pages.tree import Node

MAX_NODES: Final = 300
"""Nodes that are visited for a text."""


def text_of(node: Node) -> str:
    """Return the text below a node, as far as it is among the first of its nodes."""
    pieces: list[str] = []
    waiting, visited = [node], 0
    while waiting and visited < MAX_NODES:
        inside, visited = waiting.pop(), visited + 1
        if inside.tag not in ("script", "style", "template"):
            pieces += [inside.text] if inside.text else []
            waiting.extend(reversed(inside.children))
    return short(" ".join(pieces))


def below(node: Node) -> Iterator[Node]:
    """Return the nodes below a node, in the order of the document."""
    return map(node.tree.node, range(node.at + 1, node.tree.ends[node.at]))
