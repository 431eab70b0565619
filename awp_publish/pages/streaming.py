"""Shows what a server has streamed late in its place, as React's scripts do when a browser loads the page.

React sends a page with placeholders, beside each something to look at meanwhile. Later it sends the contents in hidden
`<div>` elements at the end of the body, each with a call that names both: `$RC("B:0","S:0")`, or `$RR` where styles
come first, for a boundary of Suspense, and `$RS("S:1","P:1")` for a part of a content. A boundary ends with the comment
`/$`; what is before that gives way. Only what such a call names is moved, so nothing else that is hidden is shown. A
page that was saved without its scripts has no calls; there the numbers say what belongs together, as they usually do.
"""

import re
from typing import TYPE_CHECKING, Final, TypeAlias

from awp_publish.pages.copying import ParserNode

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

STREAMED: Final = b'id="S:'
"""What a page has that was streamed late."""

_BOUNDARY: Final = re.compile(rb'\$R[CR]\("(B:[0-9a-f]+)","(S:[0-9a-f]+)"')
_PART: Final = re.compile(rb'\$RS\("(S:[0-9a-f]+)","(P:[0-9a-f]+)"')
_BEGINNINGS: Final = frozenset(("$", "$?", "$~", "$!"))
_END: Final = "/$"
"""The comments with which a boundary begins, by its state, and ends."""

_Rest: TypeAlias = "tuple[LexborNode | None, _Rest] | None"
"""The node with which a page continues after a content, and the same for the content around that."""


class Streams:
    """The contents of a page that are still hidden elements at its end, by their placeholders' ids."""

    def __init__(self, parser: "LexborHTMLParser", markup: bytes) -> None:
        named = {place.decode(): content.decode() for place, content in _BOUNDARY.findall(markup)}
        named |= {place.decode(): content.decode() for content, place in _PART.findall(markup)}
        if b"<script" not in markup:
            places = [template.id or "" for template in parser.css("template")]
            named = {place: f"S:{place[2:]}" for place in places if place.startswith(("B:", "P:"))}
        body = parser.body
        elements = [] if body is None else [child for child in body.iter() if child.tag == "div"]
        hidden = {child.id: child for child in elements if "hidden" in child.attributes}
        self._contents = {place: hidden.pop(name) for place, name in named.items() if name in hidden}
        self._unended = set[int]()
        self._moved = {content.mem_id for content in self._contents.values()}

    def at(self, node: "LexborNode | None", rest: _Rest = None) -> ParserNode | None:
        """Return the node that is shown at a place: this one, the first one of a content, or what is after it."""
        while node is None or node.mem_id in self._moved or node.tag == "template":
            if node is None:
                if rest is None:
                    return None
                node, rest = rest
            elif node.tag != "template":
                node = node.next
            elif (content := self._contents.pop(node.id or "", None)) is not None:
                after = self._after_boundary(node) if str(node.id).startswith("B") else node.next
                node, rest = content.first_child, (after, rest)
            else:
                break
        return StreamedNode(node, self, rest)

    def _after_boundary(self, placeholder: "LexborNode") -> "LexborNode | None":
        """Return the comment that ends the boundary of a placeholder, or without one the node after the placeholder."""
        around = placeholder.parent.mem_id if placeholder.parent is not None else 0
        if around not in self._unended:  # else each placeholder would search all that is beside it
            inner, node = 0, placeholder.next
            while node is not None:
                sign = node.comment_content if node.is_comment_node else ""
                if sign == _END and not inner:
                    return node
                inner += (sign in _BEGINNINGS) - (sign == _END)
                node = node.next
            self._unended.add(around)
        return placeholder.next


class StreamedNode:
    """A node of the parser in a page with contents that were streamed late. Each way from it is taken once."""

    __slots__ = ("_node", "_rest", "_streams", "attributes", "is_element_node", "tag", "tag_id", "text_content")

    def __init__(self, node: "LexborNode", streams: Streams, rest: _Rest = None) -> None:
        self._node, self._streams, self._rest = node, streams, rest
        self.tag, self.tag_id, self.is_element_node = node.tag, node.tag_id, node.is_element_node
        self.text_content, self.attributes = node.text_content, node.attributes

    @property
    def first_child(self) -> ParserNode | None:
        """The first node in this one, as the page is shown."""
        return self._streams.at(self._node.first_child)

    @property
    def next(self) -> ParserNode | None:
        """The node beside this one, as the page is shown."""
        return self._streams.at(self._node.next, self._rest)
