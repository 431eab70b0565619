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
    waiting = [node]
    for _ in range(MAX_NODES):
        if not waiting:
            break
        one = waiting.pop()
        if one.tag in ("script", "style", "template"):
            continue
        if one.text:
            pieces.append(one.text)
        waiting.extend(reversed(one.children))
    return short(" ".join(pieces))


def below(node: Node) -> Iterator[Node]:
    """Yield the nodes below a node, in the order of the document."""
    waiting = list(reversed(node.children))
    while waiting:
        one = waiting.pop()
        yield one
        waiting.extend(reversed(one.children))
