"""The tree of an HTML page: what every other file of this room reads, whoever parsed it.

The tree has the shape that the HTML Standard gives, whitespace and comments included, for they count in the paths from
which SOM ids are made (SOM 1.0, section 7.1): the body is `0`, its i-th child of any kind `0/i`. What a declarative
shadow root holds is not among the children of its host; its path goes through the host: `0/2#shadow/0`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

SHADOW: Final = "#shadow"
COMMENT: Final = "!"

MOST_SELECTOR_CHARACTERS: Final = 1_000

_NO_ATTRIBUTES: Final[Mapping[str, str]] = {}


class Node:
    """One node. `tag` is in lower case, "" for text and "!" for a comment; `index` is its place among its siblings.

    `children` and `attributes` are to be read only. An attribute without a value has the value "".
    """

    __slots__ = ("index", "parent")

    index: int
    parent: "Node | None"
    tag: str = ""
    text: str = ""
    attributes: Mapping[str, str] = _NO_ATTRIBUTES
    children: Sequence["Node"] = ()

    def path(self) -> str | None:
        """The path of the node, or None for what is not in the body."""
        steps: list[str] = []
        node: Node | None = self
        while node is not None and node.tag != "body":
            above = node.parent
            held = isinstance(above, Template)
            steps.append(f"{SHADOW}/{node.index}" if held else f"/{node.index}")
            node = above.parent if held and above is not None else above
        return None if node is None else "0" + "".join(reversed(steps))


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


class Text(Node):
    """A piece of text. See `Node`."""

    __slots__ = ("text",)

    text: str


class Tree:
    """A page. `html_bytes` is the length of its source in UTF-8."""

    __slots__ = ("_by_id", "_by_tag", "_find", "body", "head", "html_bytes", "root")

    def __init__(
        self, root: Element, by_tag: Mapping[str, Sequence[Element]], find: Callable[[str], list[Node]], html_bytes: int
    ) -> None:
        self.root = root
        self._by_tag = by_tag
        self._by_id: dict[str, Element] | None = None
        self._find = find
        self.html_bytes = html_bytes
        self.head = self._part("head")
        self.body = self._part("body")

    def tagged(self, tag: str) -> Sequence[Element]:
        """Every element of this name in document order, without those inside of templates."""
        return self._by_tag.get(tag, ())

    def with_id(self, name: str) -> Element | None:
        """The first element of this id, as a label or a description refers to it."""
        if self._by_id is None:
            self._by_id = {}
            waiting: list[Node] = [self.root]
            while waiting:
                node = waiting.pop()
                found = node.attributes.get("id")
                if found and isinstance(node, Element):
                    self._by_id.setdefault(found, node)
                waiting.extend(reversed(node.children))
        return self._by_id.get(name)

    def select(self, css: str) -> list[str]:
        """Paths of what a CSS selector matches in the body, in document order.

        Raises:
            ValueError: it is not a selector, or longer than 1,000 characters.
        """
        if len(css) > MOST_SELECTOR_CHARACTERS:
            raise ValueError(
                f"A selector of {len(css)} characters; the longest one taken has {MOST_SELECTOR_CHARACTERS}."
            )
        places = {path for node in self._find(css) if (path := node.path()) is not None}
        return sorted(places, key=_numbers)

    def node_at(self, path: str) -> Node | None:
        """The node at a path, or None when there is none, or when this is no path."""
        first, *steps = path.split("/")
        node: Node | None = {"0": self.body, "0" + SHADOW: _shadow_of(self.body)}.get(first)
        for step in steps:
            node = _step(node, step) if node is not None else None
        return None if isinstance(node, Template) and path.endswith(SHADOW) else node

    def walk(self) -> Iterator[Node]:
        """Every node of the body in document order."""
        waiting: list[Node] = [self.body]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))

    def _part(self, tag: str) -> Element:
        found = next((node for node in self.root.children if node.tag == tag), None)
        return found if isinstance(found, Element) else _missing(tag, self.root)


def _numbers(path: str) -> list[int]:
    return [int(step) for step in path.split("/")]


def make_element(tag: str, attributes: Mapping[str, str], parent: Node | None, index: int) -> Element:
    """An element that has no children yet."""
    element = Template() if tag == "template" else Element()
    element.tag, element.attributes, element.children = tag, attributes, ()
    element.parent, element.index = parent, index
    return element


def _missing(tag: str, root: Element) -> Element:
    """The empty head or body of a page that has none, as one with framesets."""
    return make_element(tag, _NO_ATTRIBUTES, root, len(root.children))


def _step(node: Node, step: str) -> Node | None:
    """A child, or, for a step that ends in `#shadow`, the template that holds the child's shadow root."""
    number, mark, rest = step.partition(SHADOW)
    if rest or not number.isascii() or not number.isdecimal() or (len(number) > 1 and number[0] == "0"):
        return None
    within = node.content if isinstance(node, Template) else node.children
    child = within[int(number)] if len(number) < 12 and int(number) < len(within) else None
    return _shadow_of(child) if mark and child is not None else child


def _shadow_of(host: Node) -> Template | None:
    return next((node for node in host.children if isinstance(node, Template) and node.shadow_mode), None)
