"""From HTML to our tree with selectolax (Lexbor): the tree that the HTML Standard describes, scripting enabled.

Of a `<noscript>` nothing is kept, for a reader of the page does not see it.
"""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode, SelectolaxError

from awp_publish.pages.bounding import bound_markup, has_many_roots, samples_of
from awp_publish.pages.collector import collector_waits
from awp_publish.pages.decoding import read_utf8
from awp_publish.pages.selectors import select
from awp_publish.pages.tree import COMMENT, Comment, Element, Node, Template, Text, Tree, make_element

_TEXT: Final = 2
"""Lexbor's number for text (`LXB_TAG__TEXT`)."""

_NO_EVENTS: Final = int(LexborDocumentOptions.WO_EVENTS)
"""Else each option is compared with all others of its select, so as to fill a `<selectedcontent>`."""

_MOST_OPEN: Final = 48

_MADE: Final[Mapping[str, type[Element]]] = {"template": Template, COMMENT: Comment}

_Kind: TypeAlias = tuple[str, type[Element], list[Element]]
"""A tag's name, what is made of it, and every element of that name so far."""


def parse(html: str | bytes, charset: str | None = None) -> Tree:
    """The tree of a page, or of a part of one. Whatever is given has a tree: nothing is raised for what it says.

    `charset` is what a `Content-Type` said; a byte order mark wins over it, and it over what the page says of itself.
    Markup nested so deep that its tree would take time out of proportion is flattened (see `bounding`).
    """
    data = read_utf8(html, charset)
    suspect = any(has_many_roots(sample) or _nests_deeply(sample) for sample in samples_of(data))
    parser = LexborHTMLParser(bound_markup(data, suspect), scripting=True, options=_NO_EVENTS)
    with collector_waits():
        return _Growth(parser).tree(len(data))


def _nests_deeply(sample: bytes) -> bool:
    """Whether more elements are open at the end of a sample of a page than so short a part of an ordinary one opens."""
    node = LexborHTMLParser(sample, is_fragment=True, scripting=True, options=_NO_EVENTS).root
    depth = 0
    while node is not None and depth <= _MOST_OPEN:
        while node.next is not None:
            node = node.next
        node, depth = node.last_child, depth + 1
    return depth > _MOST_OPEN


class _Growth:
    """The making of one tree. Kinds are known by the parser's numbers for them."""

    __slots__ = ("_by_address", "_by_tag", "_kinds", "_parser", "_root")

    def __init__(self, parser: LexborHTMLParser) -> None:
        self._parser = parser
        self._kinds: dict[int, _Kind] = {}
        self._by_tag: dict[str, list[Element]] = {}
        self._by_address: dict[int, Node] = {}
        self._root = make_element("html", {}, None)

    def tree(self, html_bytes: int) -> Tree:
        top, root = self._parser.root, self._root
        if top is not None:
            root.attributes = {name: value or "" for name, value in top.attributes.items()}
            root.children = self._children(top, root)
        by_tag = self._by_tag
        self._fill_templates(self._parser.template_fragments() if "template" in by_tag else [])
        return Tree(root, by_tag, self._find, html_bytes)

    def _children(self, top: LexborNode, parent: Element) -> Sequence[Node]:
        """Everything below a node of the parser. One loop written out, for it runs for every node of a page."""
        kinds, text, siblings = self._kinds, Text, list[Node]()
        first, waiting = siblings, list[tuple[LexborNode | None, Element, list[Node]]]()
        found = top.first_child
        while True:
            while found is None:
                if not waiting:
                    return first
                found, parent, siblings = waiting.pop()
            number = found.tag_id
            if number == _TEXT:
                piece = text()
                piece.text = found.text_content or ""
                piece.parent = parent
                siblings.append(piece)
                found = found.next
                continue
            name, make, alike = kinds.get(number) or self._kind(found)
            element = make()
            element.tag = name
            element.children = ()
            element.parent = parent
            siblings.append(element)
            alike.append(element)
            given = found.attributes
            if given and None in given.values():
                given = {key: value or "" for key, value in given.items()}
            element.attributes = given  # type: ignore[assignment]
            child = found.first_child if name != "noscript" else None
            if child is None:
                found = found.next
                continue
            waiting.append((found.next, parent, siblings))
            element.children = siblings = []
            found, parent = child, element

    def _kind(self, found: LexborNode) -> _Kind:
        name = (found.tag or COMMENT).lower() if found.is_element_node else COMMENT
        kind = (name, _MADE.get(name, Element), self._by_tag.setdefault(name, []))
        self._kinds[found.tag_id] = kind
        return kind

    def _fill_templates(self, fragments: list[LexborNode]) -> None:
        """What templates hold, one in another too. It is not in the page, so `Tree.tagged` gives none of it."""
        waiting = list(zip(fragments, self._by_tag.get("template", ()), strict=False))
        while waiting:
            fragment, host = waiting.pop()
            self._kinds, self._by_tag = {}, {}
            assert isinstance(host, Template)
            host.content = self._children(fragment, host)
            inner = self._by_tag.get("template")
            waiting += zip(fragment.template_fragments(), inner, strict=False) if inner else ()

    def _find(self, css: str) -> list[Node]:
        return select(css, self._find_compound)

    def _find_compound(self, css: str) -> list[Node]:
        try:
            found = self._parser.css(css)
        except SelectolaxError as problem:
            raise ValueError(f"{css!r} is not a CSS selector.") from problem
        by_address = self._by_address or self._addresses()
        return [by_address[node.mem_id] for node in found if node.mem_id in by_address]

    def _addresses(self) -> dict[int, Node]:
        """Our node for each of the parser's, by its address: both trees are walked in step."""
        waiting: list[Node] = [self._root]
        for found in self._parser.root.traverse() if self._parser.root is not None else ():
            node = waiting.pop()
            self._by_address[found.mem_id] = node
            waiting.extend(child for child in reversed(node.children) if child.tag)
        return self._by_address
