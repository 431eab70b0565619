"""What an element is called (SOM 1.0, section 4.5, label resolution)."""

from collections.abc import Iterator
from typing import Final

from awp_publish.pages.roles import input_type, role_of
from awp_publish.pages.tables import caption_of
from awp_publish.pages.tree import Node, Tree
from awp_publish.pages.visibility import Visibility, text_of, title_of

MOST_NODES: Final = 500
"""Of an element that is another's name, so many nodes are read."""

MOST_REFERENCES: Final = 10
MOST_NAME: Final = 1_000
"""Characters of a name."""

_NAMING: Final = frozenset(("aria-label", "aria-labelledby", "role", "title"))
_SAID_BY_CONTENT: Final = frozenset(("a", "area", "fieldset", "svg", "table"))
_LABELABLE: Final = frozenset(("button", "input", "meter", "output", "progress", "select", "textarea"))
_PROMPTED: Final = frozenset(("input", "textarea"))


class Names:
    """Names within one page. What names refer to is looked up once."""

    __slots__ = ("_known", "_labels", "_said_by_label", "_tree", "_visibility")

    def __init__(self, tree: Tree, visibility: Visibility) -> None:
        self._tree, self._visibility = tree, visibility
        self._known: dict[Node, str] = {}
        self._labels: dict[Node | str, tuple[Node, Node | None]] | None = None
        self._said_by_label: dict[Node, str] = {}

    def label(self, element: Node, text: str) -> str:
        """The accessible name of an element, or "" when there is none, or none but its text."""
        tag = element.tag
        if tag not in _LABELABLE and (text or tag not in _SAID_BY_CONTENT) and _NAMING.isdisjoint(element.attributes):
            return ""
        said = text.lower()
        return next((name for name in self._candidates(element, text) if name and name.lower() != said), "")

    def _candidates(self, element: Node, text: str) -> Iterator[str]:
        """What may be the name, in the order of 4.5."""
        attributes = element.attributes
        yield self.referred(attributes.get("aria-labelledby"))
        yield collapse(attributes.get("aria-label"))
        yield self._labelled(element)
        yield collapse(attributes.get("title"))
        if element.tag in _PROMPTED:
            yield collapse(attributes.get("placeholder"))
        if not text:
            yield self._content(element)

    def referred(self, ids: str | None) -> str:
        """The texts of the elements that a list of ids names, as `aria-labelledby` does."""
        if not ids:
            return ""
        nodes = [self._tree.with_id(name) for name in ids.split()[:MOST_REFERENCES]]
        return " ".join(text for node in nodes if node is not None and (text := self._text(node)))[:MOST_NAME]

    def _labelled(self, element: Node) -> str:
        """By a `<label>`: one that names the element's id, else one that is around it."""
        if element.tag not in _LABELABLE:
            return ""
        labels = self._all_labels()
        found = labels.get(element.attributes.get("id") or element) or labels.get(element)
        if found is None:
            return ""
        label, held = found
        if label not in self._said_by_label:  # many elements may have the id that a label names
            said = text_of(label, self._visibility, held, MOST_NODES)[:MOST_NAME]
            self._said_by_label[label] = said or self._images(label)
        return self._said_by_label[label]

    def _content(self, element: Node) -> str:
        """By what the element itself holds, where that is not its text."""
        tag, attributes = element.tag, element.attributes
        if tag == "input":
            kind = input_type(element)
            alt = collapse(attributes.get("alt")) if kind == "image" else ""
            return alt or (collapse(attributes.get("value")) if kind in ("submit", "button", "reset") else "")
        if tag == "fieldset":
            legend = next((child for child in element.children if child.tag == "legend"), None)
            return self._text(legend) if legend is not None else ""
        if tag == "svg":
            return title_of(element)
        if tag == "table":
            return caption_of(element, self._visibility)
        if tag == "area":
            return collapse(attributes.get("alt"))
        return self._images(element) if role_of(element) in ("button", "link") else ""

    def _images(self, element: Node) -> str:
        """What the images of a link, a button or a label say."""
        found: list[str] = []
        waiting = list(reversed(element.children))
        for _ in range(MOST_NODES):
            if not waiting:
                break
            node = waiting.pop()
            if node.tag and not self._is_silent(node):
                alt = node.attributes.get("aria-label") or node.attributes.get("alt" if node.tag == "img" else "title")
                found.append(alt or (title_of(node) if node.tag == "svg" else ""))
                waiting.extend(reversed(node.children))
        return collapse(" ".join(found))

    def _is_silent(self, node: Node) -> bool:
        """Whether a node says nothing. A drawing within a control is its icon, and may have a title without a role."""
        hidden = self._visibility.withdraws if node.tag == "svg" else self._visibility.hides
        return hidden(node)

    def _text(self, node: Node) -> str:
        if node not in self._known:
            said = text_of(node, self._visibility, most_nodes=MOST_NODES)[:MOST_NAME]
            self._known[node] = said or self._images(node)
        return self._known[node]

    def _all_labels(self) -> dict[Node | str, tuple[Node, Node | None]]:
        """For an id, and for an element without one in `for`, its label and what in it is the element itself."""
        if self._labels is None:
            self._labels = {}
            for label in self._tree.tagged("label"):
                target = label.attributes.get("for")
                held = _first_labelable(label)
                key = target or held
                if key is not None:
                    self._labels.setdefault(key, (label, held))
        return self._labels


def collapse(text: str | None) -> str:
    """Whitespace collapsed (4.6); at most so much as a name may have."""
    return " ".join(text[: MOST_NAME * 4].split())[:MOST_NAME] if text else ""


def _first_labelable(label: Node) -> Node | None:
    waiting = list(reversed(label.children))
    for _ in range(MOST_NODES):
        if not waiting:
            return None
        node = waiting.pop()
        if node.tag in _LABELABLE and input_type(node) != "hidden":
            return node
        waiting.extend(reversed(node.children))
    return None
