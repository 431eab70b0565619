"""Accessible names of elements (SOM 1.0, section 4.5, label resolution)."""

from collections.abc import Iterator
from typing import Final

from awp_publish.pages.roles import input_type, role_of
from awp_publish.pages.tree import Node, Tree
from awp_publish.pages.visibility import Visibility, text_of, title_of

MAX_NODES: Final = 500
"""Nodes that are read of an element that is another's name."""

MAX_REFERENCES: Final = 10
MAX_NAME_LENGTH: Final = 1_000

_NAMING: Final = frozenset(("aria-label", "aria-labelledby", "role", "title"))
_NAMED_BY_CONTENT: Final = frozenset(("a", "area", "fieldset", "svg", "table"))
_LABELABLE: Final = frozenset(("button", "input", "meter", "output", "progress", "select", "textarea"))


class AccessibleNames:
    """Names within one page. What names refer to is looked up once."""

    __slots__ = ("_labels", "_texts", "_texts_of_labels", "_tree", "_visibility")

    def __init__(self, tree: Tree, visibility: Visibility) -> None:
        self._tree, self._visibility = tree, visibility
        self._texts: dict[Node, str] = {}
        self._texts_of_labels: dict[Node, str] = {}
        self._labels: dict[Node | str, tuple[Node, Node | None]] = {}
        """For an id, and for an element without one in `for`, its label and what in it is the element itself."""
        for label in tree.tagged("label"):
            control = None
            waiting = list(reversed(label.children))
            for _ in range(MAX_NODES):
                if not waiting:
                    break
                node = waiting.pop()
                if node.tag in _LABELABLE and input_type(node) != "hidden":
                    control = node
                    break
                waiting.extend(reversed(node.children))
            target = label.attributes.get("for") or control
            if target is not None:
                self._labels.setdefault(target, (label, control))

    def label(self, element: Node, text: str) -> str:
        """Return the name of an element, or "" when there is none, or none but its `text`."""
        tag = element.tag
        if tag not in _LABELABLE and (text or tag not in _NAMED_BY_CONTENT) and _NAMING.isdisjoint(element.attributes):
            return ""
        known = text.lower()
        return next((name for name in self._candidates(element, text) if name and name.lower() != known), "")

    def referred(self, ids: str | None) -> str:
        """Return the texts of the elements that a list of ids names, as `aria-labelledby` does."""
        if not ids:
            return ""
        nodes = [self._tree.with_id(name) for name in ids.split()[:MAX_REFERENCES]]
        return " ".join(text for node in nodes if node is not None and (text := self._text(node)))[:MAX_NAME_LENGTH]

    def _candidates(self, element: Node, text: str) -> Iterator[str]:
        """Yield what may be the name, in the order of 4.5."""
        tag, attributes = element.tag, element.attributes
        yield self.referred(attributes.get("aria-labelledby"))
        yield collapse(attributes.get("aria-label"))
        if tag in _LABELABLE:
            found = self._labels.get(attributes.get("id") or element) or self._labels.get(element)
            if found is not None:
                label, control = found
                if label not in self._texts_of_labels:  # many elements may have the id that a label names
                    said = text_of(label, self._visibility, control, MAX_NODES)[:MAX_NAME_LENGTH]
                    self._texts_of_labels[label] = said or self._text_of_images(label)
                yield self._texts_of_labels[label]
        yield collapse(attributes.get("title"))
        if tag in ("input", "textarea"):
            yield collapse(attributes.get("placeholder"))
        if text:
            return
        if tag == "input":
            kind = input_type(element)
            if kind == "image":
                yield collapse(attributes.get("alt"))
            elif kind in ("submit", "button", "reset"):
                yield collapse(attributes.get("value"))
        elif tag == "fieldset":
            legend = next((child for child in element.children if child.tag == "legend"), None)
            yield self._text(legend) if legend is not None else ""
        elif tag == "svg":
            yield title_of(element)
        elif tag == "table":
            captions = (child for child in element.children if child.tag == "caption")
            caption = next((child for child in captions if not self._visibility.hides(child)), None)
            yield text_of(caption, self._visibility) if caption is not None else ""
        elif tag == "area":
            yield collapse(attributes.get("alt"))
        elif role_of(element) in ("button", "link"):
            yield self._text_of_images(element)

    def _text(self, node: Node) -> str:
        if node not in self._texts:
            said = text_of(node, self._visibility, max_nodes=MAX_NODES)[:MAX_NAME_LENGTH]
            self._texts[node] = said or self._text_of_images(node)
        return self._texts[node]

    def _text_of_images(self, element: Node) -> str:
        """Return what the images of a link, a button or a label say."""
        found: list[str] = []
        waiting = list(reversed(element.children))
        for _ in range(MAX_NODES):
            if not waiting:
                break
            node = waiting.pop()
            if not node.tag:
                continue
            # A drawing within a control is its icon, and may have a title without a role.
            if self._visibility.withdraws(node) if node.tag == "svg" else self._visibility.hides(node):
                continue
            said = node.attributes.get("aria-label") or node.attributes.get("alt" if node.tag == "img" else "title")
            found.append(said or (title_of(node) if node.tag == "svg" else ""))
            waiting.extend(reversed(node.children))
        return collapse(" ".join(found))


def collapse(text: str | None) -> str:
    """Return a text with its whitespace collapsed (4.6); at most so much as a name may have."""
    return " ".join(text[: MAX_NAME_LENGTH * 4].split())[:MAX_NAME_LENGTH] if text else ""
