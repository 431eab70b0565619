"""The tree of an HTML page, independent of the parser that made it.

The tree has the shape that the HTML Standard gives, whitespace and comments included, for they count in the paths from
which SOM ids are made (SOM 1.0, section 7.1): the body is `0`, its i-th child of any kind `0/i`. What a declarative
shadow root holds is not among the children of its host; its path goes through the host: `0/2#shadow/0`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Final

SHADOW: Final = "#shadow"
COMMENT: Final = "!"

MAX_SELECTOR_LENGTH: Final = 1_000

_NO_ATTRIBUTES: Final[Mapping[str, str]] = {}


class Node:
    """One node. `tag` is in lower case, "" for text and "!" for a comment.

    `children` and `attributes` are to be read only. An attribute without a value has the value "".
    """

    __slots__ = ("parent",)

    parent: "Node | None"
    tag: str = ""
    text: str = ""
    attributes: Mapping[str, str] = _NO_ATTRIBUTES
    children: Sequence["Node"] = ()

    def path(self) -> str | None:
        """The path of the node, or None for what is not in the body. For many nodes see `NodePaths`."""
        return NodePaths().of(self)


class Element(Node):
    """An element. See `Node`."""

    __slots__ = ("attributes", "children", "tag")

    tag: str
    attributes: Mapping[str, str]
    children: Sequence[Node]

    def __repr__(self) -> str:
        return f"<{self.tag} {dict(self.attributes)} at {self.path()}>"


class Template(Element):
    """A `<template>`: what it holds is not in the page, but in `content`."""

    __slots__ = ("content",)

    content: Sequence[Node]

    def __init__(self) -> None:
        self.content = ()

    @property
    def shadow_mode(self) -> str | None:
        """`open` or `closed` for a declarative shadow root, in the old spelling too; else None."""
        given = self.attributes.get("shadowrootmode", self.attributes.get("shadowroot", "")).strip().lower()
        return given if given in ("open", "closed") else None


class Comment(Element):
    """A comment, or whatever else takes a place among the children and says nothing."""

    __slots__ = ()


class TextNode(Node):
    """A piece of text. See `Node`."""

    __slots__ = ("text",)

    text: str


class NodePaths:
    """The paths of nodes of one page: for many of them, each is found in about the time of its last step."""

    __slots__ = ("_known", "_places")

    def __init__(self) -> None:
        self._known: dict[Node, str] = {}
        self._places: dict[Node, int] = {}

    def of(self, node: Node) -> str | None:
        """Return the path of a node, or None for what is not in the body."""
        steps: list[Node] = []
        above: Node | None = node
        while above is not None and above.tag != "body" and above not in self._known:
            steps.append(above)
            above = above.parent
        if above is None:
            return None
        path = self._known.get(above, "0")
        for step in reversed(steps):
            if isinstance(step, Template) and step.shadow_mode is not None:
                path += SHADOW  # no step of its own: `0/1` and, for what is first in its shadow, `0/1#shadow/0`
            else:
                if step not in self._places and step.parent is not None:
                    parent = step.parent
                    siblings = parent.content if isinstance(parent, Template) else parent.children
                    self._places.update(zip(siblings, count(), strict=False))
                path = f"{path}/{self._places.get(step, 0)}"
            if step.children or isinstance(step, Template):
                self._known[step] = path
        return path


class Tree:
    """A page. `html_bytes` is the length of its source in UTF-8.

    A page without a head or a body, as one with framesets, has empty ones that are not among the children of its root.
    """

    __slots__ = ("_by_id", "_by_tag", "_find", "body", "head", "html_bytes", "root")

    def __init__(
        self, root: Element, by_tag: Mapping[str, Sequence[Element]], find: Callable[[str], list[Node]], html_bytes: int
    ) -> None:
        self.root = root
        self._by_tag = by_tag
        self._by_id: dict[str, Element] | None = None
        self._find = find
        self.html_bytes = html_bytes
        children = {child.tag: child for child in reversed(root.children) if isinstance(child, Element)}
        self.head = children.get("head") or make_element("head", _NO_ATTRIBUTES, root)
        self.body = children.get("body") or make_element("body", _NO_ATTRIBUTES, root)

    def tagged(self, tag: str) -> Sequence[Element]:
        """Return every element of this name in document order, without those inside of templates."""
        return self._by_tag.get(tag, ())

    def with_id(self, name: str) -> Element | None:
        """Return the first element of this id, as a label or a description refers to it."""
        if self._by_id is None:
            found: dict[str, Element] = {}
            paths = NodePaths()
            for alike in self._by_tag.values():
                first: dict[str, Element] = {}  # those of one name are in the order of the page
                for element in alike:
                    if "id" in element.attributes:
                        first.setdefault(element.attributes["id"], element)
                for given, element in first.items():
                    known = found.setdefault(given, element)
                    if known is not element and _position(paths.of(element)) < _position(paths.of(known)):
                        found[given] = element
            self._by_id = found
        return self._by_id.get(name) if name else None

    def select(self, css: str) -> list[str]:
        """Return the paths of what a CSS selector matches in the body, in document order; a shadow root is no element.

        Raises:
            ValueError: it is not a selector, or longer than 1,000 characters.
        """
        if len(css) > MAX_SELECTOR_LENGTH:
            raise ValueError(f"A selector of {len(css)} characters; the longest one taken has {MAX_SELECTOR_LENGTH}.")
        paths = NodePaths()
        found = {path for node in self._find(css) if (path := paths.of(node)) is not None}
        return sorted((path for path in found if not path.endswith(SHADOW)), key=_position)

    def node_at(self, path: str) -> Node | None:
        """Return the node at a path, or None when there is none, or when this is no path."""
        first, *steps = path.split("/")
        node: Node | None = {"0": self.body, "0" + SHADOW: _shadow_of(self.body)}.get(first)
        for step in steps:
            number, mark, rest = step.partition(SHADOW)
            if node is None or rest or not number.isascii() or not number.isdecimal() or len(number) > 11:
                return None
            children = node.content if isinstance(node, Template) else node.children
            if str(int(number)) != number or int(number) >= len(children):
                return None
            node = children[int(number)]
            if mark:
                node = _shadow_of(node)
        return None if isinstance(node, Template) and path.endswith(SHADOW) else node

    def walk(self) -> Iterator[Node]:
        """Yield every node of the body in document order."""
        waiting: list[Node] = [self.body]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))

    def unlink(self) -> None:
        """Free all nodes at once. Else they wait for Python's garbage collector, for each knows its parent."""
        for alike in self._by_tag.values():
            for element in alike:
                element.children = ()
        self.root.children = self.head.children = self.body.children = ()


def make_element(tag: str, attributes: Mapping[str, str], parent: Node | None) -> Element:
    """Return an element that has no children yet."""
    element = Template() if tag == "template" else Element()
    element.tag, element.attributes, element.children = tag, attributes, ()
    element.parent = parent
    return element


def _position(path: str | None) -> list[int]:
    """Return what sorts paths in document order. What is in no body is in the head, before all others."""
    return [int(step) for step in path.replace(SHADOW, "/-1").split("/")] if path is not None else []


def _shadow_of(host: Node) -> Template | None:
    return next((node for node in host.children if isinstance(node, Template) and node.shadow_mode), None)
