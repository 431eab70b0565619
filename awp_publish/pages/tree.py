"""The tree of an HTML page: what every other file of this room reads, whoever parsed it.

The tree has the shape that the HTML Standard gives, whitespace and comments included, for they count in the paths from
which SOM ids are made (SOM 1.0, section 7.1): the body is `0`, its i-th child of any kind `0/i`. What a declarative
shadow root holds is not among the children of its host; its path goes through the host: `0/2#shadow/0`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Final

SHADOW: Final = "#shadow"
COMMENT: Final = "!"

MOST_SELECTOR_CHARACTERS: Final = 1_000

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
        """The path of the node, or None for what is not in the body. For many nodes see `Paths`."""
        return Paths().of(self)


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


class Paths:
    """The paths of nodes of one page: for many of them, each is found in about the time of its last step."""

    __slots__ = ("_known", "_places")

    def __init__(self) -> None:
        self._known: dict[Node, str] = {}
        self._places: dict[Node, int] = {}

    def of(self, node: Node) -> str | None:
        """The path of a node, or None for what is not in the body."""
        steps: list[Node] = []
        above: Node | None = node
        while above is not None and above.tag != "body" and above not in self._known:
            steps.append(above)
            above = above.parent
        if above is None:
            return None
        path = self._known.get(above, "0")
        for step in reversed(steps):
            path = self._longer(path, step)
            if step.children or isinstance(step, Template):
                self._known[step] = path
        return path

    def _longer(self, path: str, step: Node) -> str:
        """A shadow root is no step of its own: `0/1` and, for what is first in its shadow, `0/1#shadow/0`."""
        if isinstance(step, Template) and step.shadow_mode is not None:
            return f"{path}{SHADOW}"
        if step not in self._places and step.parent is not None:
            parent = step.parent
            siblings = parent.content if isinstance(parent, Template) else parent.children
            self._places.update(zip(siblings, count(), strict=False))
        return f"{path}/{self._places.get(step, 0)}"


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
            self._by_id = self._ids()
        return self._by_id.get(name)

    def _ids(self) -> dict[str, Element]:
        """The elements of one name are in the order of the page; of different names the paths tell which is first."""
        found: dict[str, Element] = {}
        paths = Paths()
        for alike in self._by_tag.values():
            first: dict[str, Element] = {}
            for element in alike:
                if element.attributes.get("id"):
                    first.setdefault(element.attributes["id"], element)
            for name, element in first.items():
                known = found.setdefault(name, element)
                if known is not element and _is_before(paths.of(element), paths.of(known)):
                    found[name] = element
        return found

    def select(self, css: str) -> list[str]:
        """Paths of what a CSS selector matches in the body, in document order.

        Raises:
            ValueError: it is not a selector, or longer than 1,000 characters.
        """
        if len(css) > MOST_SELECTOR_CHARACTERS:
            raise ValueError(
                f"A selector of {len(css)} characters; the longest one taken has {MOST_SELECTOR_CHARACTERS}."
            )
        paths = Paths()
        places = {path for node in self._find(css) if (path := paths.of(node)) is not None}
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

    def take_apart(self) -> None:
        """Lets go of all nodes at once. Else they wait for Python's garbage collector, for each knows its parent."""
        for alike in self._by_tag.values():
            for element in alike:
                element.children = ()
        self.root.children = self.head.children = self.body.children = ()

    def _part(self, tag: str) -> Element:
        found = next((node for node in self.root.children if node.tag == tag), None)
        return found if isinstance(found, Element) else _missing(tag, self.root)


def _numbers(path: str) -> list[int]:
    return [int(step) for step in path.split("/")]


def _is_before(path: str | None, other: str | None) -> bool:
    """What is in no body comes before it: it is in the head."""
    return other is not None and (path is None or _numbers(path) < _numbers(other))


def make_element(tag: str, attributes: Mapping[str, str], parent: Node | None) -> Element:
    """An element that has no children yet."""
    element = Template() if tag == "template" else Element()
    element.tag, element.attributes, element.children = tag, attributes, ()
    element.parent = parent
    return element


def _missing(tag: str, root: Element) -> Element:
    """The empty head or body of a page that has none, as one with framesets."""
    return make_element(tag, _NO_ATTRIBUTES, root)


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
