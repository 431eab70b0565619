"""The tree of an HTML page, independent of the parser that made it.

The tree has the shape that the HTML Standard defines, including whitespace and comments, because they count in the
paths from which SOM ids are made (SOM 1.0, section 7.1): the body is `0`, its i-th child of any kind `0/i`. The content
of a declarative shadow root is not among its host's children; its path goes through the host: `0/2#shadow/0`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from itertools import count
from typing import Final

from awp_publish.pages.matching import Matcher
from awp_publish.pages.selectors import SelectorError, read_selectors

SHADOW: Final = "#shadow"
COMMENT: Final = "!"

MAX_SELECTOR_LENGTH: Final = 1_000

NO_ATTRIBUTES: Final[Mapping[str, str]] = {}

CONSPICUOUS: Final = frozenset(("aria-hidden", "contenteditable", "hidden", "inert", "popover", "role", "style"))
"""Attributes that can change what an element is, or hide it."""


class Node:
    """One node of a tree, made on demand. `tag` is in lower case, "" for text and "!" for a comment.

    `at` is its number in the tree. `children` and `attributes` are read-only. An attribute without a value has the
    value "".
    """

    __slots__ = ("at", "attributes", "children", "parent", "tag", "text", "tree")

    parent: "Node | None"
    children: Sequence["Node"]

    def __init__(self, tree: "Tree", at: int) -> None:
        self.tree, self.at = tree, at
        self.tag, self.text, self.attributes = tree.tags[at], tree.texts[at], tree.attributes[at]

    def __getattr__(self, name: str) -> object:
        if name == "children":
            numbers = self.tree.children(self.at)
            self.children = [self.tree.node(number) for number in numbers] if numbers else ()
            return self.children
        if name == "parent":
            above = self.tree.parents[self.at]
            self.parent = self.tree.node(above) if above >= 0 else None
            return self.parent
        raise AttributeError(name)

    def path(self) -> str | None:
        """Return the path of the node, or None if it is not in the body. For many nodes see `NodePaths`."""
        return NodePaths(self.tree).of(self.at)


class Element(Node):
    """An element, or a comment. See `Node`."""

    __slots__ = ()


class Template(Element):
    """A `<template>`. Its content is not part of the page, but in `content`."""

    __slots__ = ()

    @property
    def content(self) -> Sequence[Node]:
        """The nodes in the template."""
        return [self.tree.node(number) for number in self.tree.content(self.at)]

    @property
    def shadow_mode(self) -> str | None:
        """`open` or `closed` for a declarative shadow root, also in the old spelling; otherwise None."""
        return shadow_mode_of(self.attributes)


SHADOW_MODES: Final = ("shadowrootmode", "shadowroot")
"""The attribute of a declarative shadow root, and its old spelling."""


def shadow_mode_of(attributes: Mapping[str, str]) -> str | None:
    """Return `open` or `closed` for a template that is a declarative shadow root; otherwise None."""
    mode = next((attributes[name] for name in SHADOW_MODES if name in attributes), "").strip().lower()
    return mode if mode in ("open", "closed") else None


_FEW: Final = 12
"""Up to this many siblings are searched; the positions of more are cached."""


class NodePaths:
    """The paths of nodes of one page. For many nodes, each costs little more than its last step."""

    __slots__ = ("_known", "_places", "_tree")

    def __init__(self, tree: "Tree") -> None:
        self._tree = tree
        self._known = {tree.body_at: "0"}
        self._places: dict[int, int] = {}

    def of(self, node: int) -> str | None:
        """Return the path of a node, or None if it is not in the body."""
        known, tree = self._known, self._tree
        parents, ends = tree.parents, tree.ends
        steps: list[int] = []
        above = node
        while above not in known:
            if above < 0:
                return None
            steps.append(above)
            above = parents[above]
        path = known[above]
        for step in reversed(steps):
            if tree.tags[step] == "template" and shadow_mode_of(tree.attributes[step]) is not None:
                path += SHADOW  # not a step of its own: `0/1`, and `0/1#shadow/0` for its first child
            else:
                if step in self._places:
                    place = self._places[step]
                else:
                    parent = parents[step]
                    start, stop = tree.contents.get(parent, (0, 0))
                    is_held = start <= step < stop
                    sibling, place = start if is_held else parent + 1, 0
                    while sibling != step and place < _FEW:
                        place, sibling = place + 1, ends[sibling]
                    if sibling != step:
                        siblings = tree.content(parent) if is_held else tree.children(parent)
                        self._places.update(zip(siblings, count(), strict=False))
                        place = self._places[step]
                path = f"{path}/{place}"
            if step != node:
                known[step] = path
        return path


class Tree:
    """A page as lists in document order, in which a number identifies a node, so that nodes need no objects.

        tags        in lower case, "" for text and "!" for a comment
        attributes  not to be changed; one without a value has the value ""
        texts       the text of a text node, otherwise ""
        parents     the number of the parent, -1 for the root
        ends        the number after the last descendant: the descendants of n are n + 1 to ends[n] - 1

    The nodes in templates follow the `size` nodes of the page; `contents` has their ranges. `ids` has the first element
    of each id, `selectable` the elements with a class or an id and `conspicuous` those with such an attribute, recorded
    while the tree is built, because searching all attributes again takes long. `html_bytes` is the length of the source
    in UTF-8. A page without a head or a body, such as one with framesets, has empty ones that are not among the
    children of its root.
    """

    __slots__ = (
        *("_by_tag", "_head_at", "_nodes", "attributes", "body_at", "conspicuous", "contents"),
        *("ends", "html_bytes", "ids", "parents", "selectable", "size", "tags", "texts"),
    )

    def __init__(self, html_bytes: int) -> None:
        self.html_bytes = html_bytes
        self.tags: list[str] = []
        self.attributes: list[Mapping[str, str]] = []
        self.texts: list[str] = []
        self.parents: list[int] = []
        self.ends: list[int] = []
        self.contents: dict[int, tuple[int, int]] = {}
        self.size = self.body_at = self._head_at = 0
        self._by_tag: dict[str, list[int]] = {}
        self.ids: dict[str, int] = {}
        self.selectable: list[int] = []
        self.conspicuous = set[int]()
        self._nodes: dict[int, Node] = {}

    def add(self, tag: str, attributes: Mapping[str, str], parent: int) -> int:
        """Append an element without content, and return its number."""
        at = len(self.tags)
        self.tags.append(tag)
        self.attributes.append(attributes)
        self.texts.append("")
        self.parents.append(parent)
        self.ends.append(at + 1)
        return at

    def complete(self, by_tag: dict[str, list[int]]) -> None:
        """Complete the page, except for the contents of templates; `by_tag` has the elements of each tag."""
        self._by_tag, self.size = by_tag, len(self.tags)
        places = {self.tags[child]: child for child in reversed(self.children(0))}
        self._head_at = places["head"] if "head" in places else self.add("head", NO_ATTRIBUTES, 0)
        self.body_at = places["body"] if "body" in places else self.add("body", NO_ATTRIBUTES, 0)

    def without(self, texts: Iterable[int]) -> "Tree":
        """Return the same tree without some texts. It shares everything else but nodes with this one."""
        tree = copy(self)
        tree.texts, tree._nodes = self.texts[:], {}
        for at in texts:
            tree.texts[at] = ""
        return tree

    def children(self, at: int) -> list[int]:
        """Return the children of an element."""
        found: list[int] = []
        ends = self.ends
        child, end = at + 1, ends[at]
        while child < end:
            found.append(child)
            child = ends[child]
        return found

    def first_child(self, at: int, tag: str) -> int | None:
        """Return the first child of an element with this tag."""
        return next((child for child in self.children(at) if self.tags[child] == tag), None)

    def content(self, template: int) -> list[int]:
        """Return the top-level nodes in a template."""
        start, end = self.contents.get(template, (0, 0))
        return [at for at in range(start, end) if self.parents[at] == template]

    def only(self, at: int) -> str | None:
        """Return the text of an element that contains a single text node, as most do; otherwise None."""
        return self.texts[at + 1] if self.ends[at] == at + 2 and not self.tags[at + 1] else None

    def find(self, tag: str) -> Sequence[int]:
        """Return all elements with this tag in document order, except those in templates."""
        return self._by_tag.get(tag) or ()

    def find_id(self, name: str) -> int | None:
        """Return the first element with this id, to which labels and descriptions refer."""
        return self.ids.get(name) if name else None

    def node(self, at: int) -> Node:
        """Return the node with a number, always the same object."""
        found = self._nodes.get(at)
        if found is None:
            tag = self.tags[at]
            make = Element if tag and tag != "template" else Template if tag else Node
            found = self._nodes[at] = make(self, at)
        return found

    @property
    def head(self) -> Node:
        """The `<head>`."""
        return self.node(self._head_at)

    @property
    def body(self) -> Node:
        """The `<body>`."""
        return self.node(self.body_at)

    def tagged(self, tag: str) -> Sequence[Node]:
        """Return all elements with this tag in document order, except those in templates."""
        return [self.node(at) for at in self.find(tag)] or ()

    def select(self, css: str) -> list[str]:
        """Return the paths of the body's elements that a CSS selector matches, in document order, without shadow roots.

        Raises:
            ValueError: the selector is invalid or longer than 1,000 characters, or would take too long.
        """
        paths = NodePaths(self)
        found = (paths.of(at) for at in self.matching(css))
        return [path for path in found if path is not None and not path.endswith(SHADOW)]

    def matching(self, css: str, is_checked: Callable[[int], bool] | None = None, scope: int = 0) -> list[int]:
        """Return the elements that a CSS selector matches, in document order, without shadow roots.

        `is_checked` says which boxes are checked now, if not those of the page; `scope` is the element that `:scope`
        means. Raises ValueError as `select` does.
        """
        if len(css) > MAX_SELECTOR_LENGTH:
            raise ValueError(f"A selector of {len(css)} characters; the longest one taken has {MAX_SELECTOR_LENGTH}.")
        try:
            selectors = read_selectors(css)
        except SelectorError as error:
            raise ValueError(f"{css!r} is not a CSS selector: {error}.") from None
        if unread := next((selector.unread for selector in selectors if selector.unread), ""):
            raise ValueError(f"{css!r} has {unread}, a selector that is not supported.")
        return sorted(Matcher(self, 0, self.size, is_checked, scope).among(selectors))

    def node_at(self, path: str) -> Node | None:
        """Return the node at a path, or None if there is none or the path is malformed."""
        first, *steps = path.split("/")
        node: Node | None = {"0": self.body, "0" + SHADOW: _shadow_of(self.body)}.get(first)
        for step in steps:
            number, mark, rest = step.partition(SHADOW)
            if node is None or rest or not number.isascii() or not number.isdecimal() or len(number) > 11:
                return None
            children = node.content if isinstance(node, Template) and not node.children else node.children
            if str(int(number)) != number or int(number) >= len(children):
                return None
            node = children[int(number)]
            if mark:
                node = _shadow_of(node)
        return None if isinstance(node, Template) and path.endswith(SHADOW) else node

    def walk(self) -> Iterator[Node]:
        """Yield every node of the body in document order."""
        return map(self.node, range(self.body_at, self.ends[self.body_at]))

    def unlink(self) -> None:
        """Free all nodes at once. Otherwise they wait for the garbage collector, because each refers to its tree."""
        for node in self._nodes.values():
            node.children, node.parent = (), None
        self._nodes.clear()


def _shadow_of(host: Node) -> Template | None:
    return next((node for node in host.children if isinstance(node, Template) and node.shadow_mode), None)


def read_title(tree: Tree) -> str:
    """Return the first title with text, unchanged, or "". Titles of drawings do not count."""
    for title in tree.find("title"):
        text, above = written_in(tree, title), tree.parents[title]
        while above >= 0 and tree.tags[above] != "svg":
            above = tree.parents[above]
        if text and above < 0:
            return text
    return ""


def written_in(tree: Tree, at: int) -> str:
    """Return the text directly in an element, unchanged: of a title, a script, an annotation."""
    return "".join([tree.texts[child] for child in tree.children(at)])
