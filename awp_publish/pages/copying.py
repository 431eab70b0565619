"""Copies the tree of a parser (Lexbor) to ours."""

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from awp_publish.pages.nesting import MAX_TREE_DEPTH
from awp_publish.pages.tree import COMMENT, CONSPICUOUS, NO_ATTRIBUTES, Tree

_TEXT: Final = 2
"""Lexbor's number for text (`LXB_TAG__TEXT`)."""

_LEAST_NODES: Final = 256
"""Nodes for which space is reserved at the beginning."""


class ParserNode(Protocol):
    """A node of the parser's tree."""

    @property
    def tag(self) -> str | None: ...
    @property
    def tag_id(self) -> int: ...
    @property
    def is_element_node(self) -> bool: ...
    @property
    def text_content(self) -> str | None: ...
    @property
    def attributes(self) -> dict[str, str | None]: ...
    @property
    def first_child(self) -> "ParserNode | None": ...
    @property
    def next(self) -> "ParserNode | None": ...


class TooDeepError(Exception):
    """A tree goes beyond `MAX_TREE_DEPTH`."""


class TooLargeError(Exception):
    """A tree has more nodes than its page can say: formatting elements are reopened in very many blocks."""


class Copying:
    """Appends what is below nodes of a parser to a tree, and indexes elements by tags and ids.

    A tree that is too deep is truncated, or `TooDeepError` is raised if `strict`, and `TooLargeError` for one that is
    too large.
    """

    __slots__ = ("_by_tag", "_ids", "_strict", "_tree")

    def __init__(self, tree: Tree, by_tag: dict[str, list[int]], ids: dict[str, int], *, strict: bool) -> None:
        self._tree, self._by_tag, self._ids, self._strict = tree, by_tag, ids, strict

    def copy(self, top: ParserNode, parent: int) -> None:
        """Append everything below a parser's node to the tree, inside of `parent`.

        This is one loop because it runs for every node of a page. The stack has, for each open element, the parser's
        node after it and the parent there. A kind has, for the parser's number of a tag, its name and the list of
        elements with that name.

        The lists are extended beyond `at` with "" and no attributes, so that little has to be written for a text.
        Elements that have the same class and no other attribute share one mapping.
        """
        tree, strict = self._tree, self._strict
        tags, attributes, texts, parents, ends = tree.tags, tree.attributes, tree.texts, tree.parents, tree.ends
        room = self._room_in(parent)
        if room <= 0:
            return
        waiting = list[tuple[ParserNode | None, int]]()
        kinds: dict[int, tuple[str, Callable[[int], None]]] = {}
        classes: dict[str, dict[str, str | None]] = {}
        note_selectable = tree.selectable.append
        start = at = last = len(tags)
        node = top.first_child
        while True:
            while node is None:
                if not waiting:
                    del tags[at:], attributes[at:], texts[at:], parents[at:], ends[at:]
                    return
                ends[parent] = at
                node, parent = waiting.pop()
            if at >= last:  # with space for two more: an element and its text
                last = self._extend(at, at - start)
            number = node.tag_id
            parents[at] = parent
            if number == _TEXT:
                texts[at] = node.text_content or ""
                ends[at] = at = at + 1
                node = node.next
                continue
            try:
                name, note = kinds[number]
            except KeyError:
                name, note = kinds[number] = self._kind_of(node)
            tags[at] = name
            note(at)
            given = node.attributes
            if given:
                if len(given) == 1 and (only := given.get("class")):
                    attributes[at] = classes.setdefault(only, given)  # type: ignore[assignment]
                    note_selectable(at)
                else:
                    attributes[at] = self._note(at, given)
            child = node.first_child if name != "noscript" else None
            if child is None or len(waiting) >= room:
                if child is not None and strict:
                    raise TooDeepError
                ends[at] = at = at + 1
                node = node.next
                continue
            element = at
            at += 1
            text = child.text_content
            if text is not None:  # usually the only child, which needs no stack entry
                texts[at] = text
                parents[at] = element
                ends[at] = at = at + 1
                child = child.next
                if child is None:
                    ends[element] = at
                    node = node.next
                    continue
            waiting.append((node.next, parent))
            node, parent = child, element

    def _room_in(self, parent: int) -> int:
        """Return how deep the tree may be inside of `parent`; enclosing templates count too."""
        room, above = MAX_TREE_DEPTH, self._tree.parents[parent]
        while above >= 0:
            room, above = room - 1, self._tree.parents[above]
        if room <= 0 and self._strict:
            raise TooDeepError
        return room

    def _extend(self, at: int, copied: int) -> int:
        """Extend the lists in proportion to what was copied. Return where there is space for one more node."""
        tree = self._tree
        if self._strict and at > tree.html_bytes // 2 + _LEAST_NODES:
            raise TooLargeError
        more = copied // 2 + _LEAST_NODES
        tree.tags += [""] * more
        tree.attributes += [NO_ATTRIBUTES] * more
        tree.texts += [""] * more
        tree.parents += [0] * more
        tree.ends += [0] * more
        return len(tree.tags) - 1

    def _kind_of(self, node: ParserNode) -> tuple[str, Callable[[int], None]]:
        name = (node.tag or COMMENT).lower() if node.is_element_node else COMMENT
        return name, self._by_tag.setdefault(name, []).append

    def _note(self, at: int, attributes: dict[str, str | None]) -> Mapping[str, str]:
        """Index an element by its attributes. Return them."""
        if not all(attributes.values()):
            attributes = {name: value or "" for name, value in attributes.items()}
        if "id" in attributes:
            self._ids.setdefault(attributes["id"], at)  # type: ignore[arg-type]
            self._tree.selectable.append(at)
        elif "class" in attributes:
            self._tree.selectable.append(at)
        if not CONSPICUOUS.isdisjoint(attributes):
            self._tree.conspicuous.add(at)
        return attributes  # type: ignore[return-value]
