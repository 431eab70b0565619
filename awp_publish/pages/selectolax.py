"""From HTML to our tree with selectolax (Lexbor): the tree that the HTML Standard describes, scripting enabled.

Of a `<noscript>` nothing is kept, for a reader of the page does not see it.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from awp_publish.pages.bounding import bound_markup
from awp_publish.pages.decoding import read_text
from awp_publish.pages.tree import COMMENT, Comment, Element, Node, Template, Text, Tree, make_element

_TEXT: Final = 2
"""Lexbor's number for text (`LXB_TAG__TEXT`)."""

_Kind: TypeAlias = tuple[str, type[Element], list[Element]]
"""A tag's name, what is made of it, and every element of that name so far."""


def parse(html: str | bytes, charset: str | None = None) -> Tree:
    """The tree of a page, or of a part of one. Whatever is given has a tree: nothing is raised for what it says.

    `charset` is what a `Content-Type` said; a byte order mark wins over it, and it over what the page says of itself.
    Markup nested so deep that its tree would take time out of proportion is flattened (see `bounding`).
    """
    data = read_text(html, charset).encode()
    parser = LexborHTMLParser(bound_markup(data), scripting=True)
    return _Growth(parser).tree(len(data))


class _Growth:
    """The making of one tree: kinds by the parser's numbers for them, elements by their addresses."""

    __slots__ = ("_by_address", "_by_tag", "_kinds", "_parser")

    def __init__(self, parser: LexborHTMLParser) -> None:
        self._parser = parser
        self._kinds: dict[int, _Kind] = {}
        self._by_tag: dict[str, list[Element]] = {}
        self._by_address: dict[int, Element] = {}

    def tree(self, html_bytes: int) -> Tree:
        top = self._parser.root
        root = make_element("html", {} if top is None else _attributes(top), None, 0)
        if top is not None:
            self._by_address[top.mem_id] = root
            root.children = self._children(top, root)
            self._fill_templates()
        return Tree(root, self._by_tag, self._find, html_bytes)

    def _children(self, top: LexborNode, parent: Element) -> Sequence[Node]:
        """Everything below a node of the parser. One loop written out, for it runs for every node of a page."""
        kinds, by_address = self._kinds, self._by_address
        siblings = first = list[Node]()
        waiting: list[tuple[LexborNode | None, Element, list[Node]]] = []
        found = top.first_child
        while True:
            while found is None:
                if not waiting:
                    return first
                found, parent, siblings = waiting.pop()
            number = found.tag_id
            if number == _TEXT:
                piece = Text()
                piece.parent, piece.index, piece.text = parent, len(siblings), found.text_content or ""
                siblings.append(piece)
                found = found.next
                continue
            name, make, alike = kinds.get(number) or self._kind(found)
            if name == COMMENT:
                siblings.append(_comment(parent, len(siblings)))
                found = found.next
                continue
            element = make()
            element.tag, element.attributes, element.children = name, _attributes(found), ()
            element.parent, element.index = parent, len(siblings)
            siblings.append(element)
            alike.append(element)
            by_address[found.mem_id] = element
            child = found.first_child if name != "noscript" else None
            if child is None:
                found = found.next
                continue
            waiting.append((found.next, parent, siblings))
            found, parent, siblings = child, element, list[Node]()
            element.children = siblings

    def _kind(self, found: LexborNode) -> _Kind:
        name = (found.tag or COMMENT).lower() if found.is_element_node else COMMENT
        kind = (name, Template if name == "template" else Element, self._by_tag.setdefault(name, []))
        self._kinds[found.tag_id] = kind
        return kind

    def _fill_templates(self) -> None:
        """What templates hold. Their elements are kept out of `Tree.tagged`, for they are not in the page."""
        if not self._by_tag.get("template"):
            return
        waiting = self._parser.template_fragments()
        self._kinds = {}
        self._by_tag = dict(self._by_tag)
        while waiting:
            fragment = waiting.pop()
            host = self._by_address.get(fragment.parent.mem_id) if fragment.parent is not None else None
            if isinstance(host, Template) and not host.content:
                host.content = self._children(fragment, host)
                waiting += fragment.template_fragments()

    def _find(self, css: str) -> list[Node]:
        try:
            found = self._parser.css(css)
        except SelectolaxError as problem:
            raise ValueError(f"{css!r} is not a CSS selector.") from problem
        return [self._by_address[node.mem_id] for node in found if node.mem_id in self._by_address]


def _attributes(found: LexborNode) -> dict[str, str]:
    """The attributes of an element; lexbor gives None for one that is empty or without a value."""
    given = found.attributes
    if None in given.values():
        return {name: value or "" for name, value in given.items()}
    return given  # type: ignore[return-value]


def _comment(parent: Node, index: int) -> Comment:
    comment = Comment()
    comment.parent, comment.index = parent, index
    return comment
