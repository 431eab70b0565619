"""Accessible names (accname 1.2, HTML-AAM; SOM 1.0, section 4.5, label resolution)."""

from collections.abc import Iterator, Mapping, Set
from functools import cached_property
from typing import Final

from awp_publish.pages.attributes import MAX_REFERENCES, references_of
from awp_publish.pages.box_labels import find_torn
from awp_publish.pages.generated import read_generated
from awp_publish.pages.input_types import UNSEEN, input_type
from awp_publish.pages.items import ancestors
from awp_publish.pages.name_content import BUTTON_NAMES, MAX_NAME_LENGTH, MAX_NODES, VALUED, NamesFromContent, collapse
from awp_publish.pages.roles import ACTIONS, role_of
from awp_publish.pages.surroundings import Surroundings
from awp_publish.pages.tree import Tree
from awp_publish.pages.visibility import Visibility, text_of, title_of

_NAMING: Final = frozenset(("aria-label", "aria-labelledby", "aria-labeledby", "role", "title"))
_MIXED: Final = frozenset(("a", "button", "h1", "h2", "h3", "h4", "h5", "h6"))
"""Elements whose name may differ from their text, because they may contain an image."""

_NAMED_WITH_PARTS: Final = frozenset(("button", "checkbox", "heading", "link", "radio"))
_NAMED_BY_CONTENT: Final = frozenset(("a", "area", "fieldset", "svg", "table"))
_OVERRIDING: Final = ("aria-label", "aria-labelledby", "aria-labeledby")
_LABELABLE: Final = frozenset(("button", "input", "meter", "output", "progress", "select", "textarea"))
_FILLED: Final = frozenset(("input", "select", "textarea"))
"""Types of inputs that are no fields."""


class AccessibleNames:
    """Computes accessible names within one page. Referenced elements are looked up once."""

    __slots__ = (
        *("__dict__", "_contents", "_is_referred", "_known", "_labels", "_roots", "_surroundings", "_texts"),
        *("_texts_of_labels", "_tree", "_visibility", "blocks", "naming_labels"),
    )

    def __init__(self, visibility: Visibility) -> None:
        tree = visibility.tree
        self._tree, self._visibility = tree, visibility
        generated = read_generated(visibility)
        self._contents = NamesFromContent(visibility, generated, self.find, self.referred)
        self.blocks: Set[int] = generated.blocks
        """Inline elements that are laid out as blocks, so that their text stands apart."""
        self._surroundings = Surroundings(visibility)
        self._roots = [(start, end, _ids_in(tree, start, end)) for start, end in tree.contents.values()]
        """Of each template, the range of its nodes and its ids, to which nothing outside of it refers."""
        self._is_referred = False
        """True while the name of a referenced element is computed: references in it are ignored (accname 1.2, 2B)."""
        self._known: dict[tuple[int, str], str] = {}
        self._texts: dict[int, str] = {}
        self._texts_of_labels: dict[int, str] = {}
        self._labels: dict[int, list[int]] = {}
        self.naming_labels: set[int] = set()
        """Labels that are the name of a visible control, and therefore not elements of their own."""
        inner = (at for start, end, _ in self._roots for at in range(start, end) if tree.tags[at] == "label")
        for label in (*tree.find("label"), *inner):
            control = next(
                (
                    at
                    for at in range(label + 1, min(tree.ends[label], label + 1 + MAX_NODES))
                    if tree.tags[at] in _LABELABLE and input_type(tree.attributes[at]) != "hidden"
                ),
                None,
            )
            target = self.find(named, label) if (named := tree.attributes[label].get("for")) else control
            if target is None:
                continue
            known = self._labels.setdefault(target, [])
            if len(known) < MAX_REFERENCES:
                known.append(label)
                if tree.tags[target] not in _LABELABLE or visibility.hides(target):
                    continue
                attributes = tree.attributes[target]
                if role_of(tree.tags[target], attributes) in ACTIONS and not _is_named(attributes):
                    self.naming_labels.add(label)

    def label(self, element: int, text: str) -> str:
        """Return the name of an element, or "" if it has none or only its `text`."""
        tag, attributes = self._tree.tags[element], self._tree.attributes[element]
        if (
            tag not in _LABELABLE
            and (text or tag not in _NAMED_BY_CONTENT)
            and (not attributes or _NAMING.isdisjoint(attributes))
            and not (tag in _MIXED and self._holds_more(element))
        ):
            return ""
        label = self._known.get((element, text))
        if label is None:
            label = self._known[element, text] = self._label(element, text.lower())
        return label

    def _label(self, element: int, known: str) -> str:
        tag, attributes = self._tree.tags[element], self._tree.attributes[element]
        # In the order of 4.5 and of HTML-AAM, section 4.1: a title comes last.
        if (references := references_of(attributes)) and (name := self.referred(references, element)):
            return name if name.lower() != known else ""
        if "aria-label" in attributes and (name := collapse(attributes["aria-label"])):
            return name if name.lower() != known else ""
        for name in self._native(element):
            if name and name.lower() != known:
                return name
        if tag in _FILLED and not (tag == "input" and input_type(attributes) in UNSEEN):
            return self._surroundings.name_of(element)
        return ""

    def name(self, element: int, text: str) -> str:
        """Return the name of an element with a text. A title only describes it, though SOM has it as the label."""
        name, attributes = self.label(element, text), self._tree.attributes[element]
        is_title = name != "" and name == collapse(attributes.get("title")) and not _is_named(attributes)
        return text if not name or (is_title and any(map(str.isalnum, text))) else name

    def unwritten(self, field: int) -> str:
        """Return the name of a field if it is not written beside it: it is in attributes, or in a label unseen."""
        attributes = self._tree.attributes[field]
        references = references_of(attributes)
        named = [self.referred(references, field) if references else "", collapse(attributes.get("aria-label"))]
        if labels := self._labels.get(field):
            shown = (label for label in labels if not self._is_hidden(label))
            written = "".join(text_of(self._visibility, label, field, MAX_NODES, shows=True) for label in shown)
            name = next(self._native(field), "")
            is_beside = _letters(name) in _letters(written) and not any(label in self.torn for label in labels)
            named += [] if is_beside else [name]
        titles = ("placeholder",) if labels else ("title", "placeholder", "aria-placeholder")
        return next(filter(None, (*named, *(collapse(attributes.get(name)) for name in titles))), "")

    @cached_property
    def torn(self) -> dict[int, int]:
        """The box of each label that has blocks in it."""
        return find_torn(self._tree, self._labels)

    def has_generated(self, element: int) -> bool:
        """Return True if style rules add to the text of an element."""
        return element in self._contents.before or element in self._contents.after

    def _holds_more(self, element: int) -> bool:
        """Return True if there is more in an element than text."""
        return element in self._contents.shown_otherwise or any(self._tree.tags[element + 1 : self._tree.ends[element]])

    def find(self, name: str, near: int) -> int | None:
        """Return the first element with an id in the shadow root of a node, or in the page if it is in none."""
        if near < self._tree.size:
            return self._tree.find_id(name)
        return next((ids.get(name) for start, end, ids in self._roots if start <= near < end), None)

    def referred(self, ids: str, near: int) -> str:
        """Return the names of the elements in a list of ids, as in `aria-labelledby` of an element."""
        nodes = [self.find(name, near) for name in ids.split()[:MAX_REFERENCES]]
        before, self._is_referred = self._is_referred, True
        texts = [self.named(node) for node in nodes if node is not None]
        self._is_referred = before
        return " ".join(filter(None, texts))[:MAX_NAME_LENGTH]

    def _native(self, element: int) -> Iterator[str]:
        """Yield possible names according to HTML alone."""
        tree = self._tree
        tag, attributes = tree.tags[element], tree.attributes[element]
        if tag in _LABELABLE:
            found = self._labels.get(element, ())
            for label in found:
                if label not in self._texts_of_labels:
                    given = tree.attributes[label]
                    said = collapse(given.get("aria-label")) or self.content(label, element, self._is_hidden(label))
                    self._texts_of_labels[label] = said or collapse(given.get("title"))
            yield " ".join(filter(None, (self._texts_of_labels[label] for label in found)))
        if tag == "input":
            kind = input_type(attributes)
            if kind == "image":
                yield collapse(attributes.get("alt"))
                yield collapse(attributes.get("title"))
            if kind in BUTTON_NAMES:
                yield collapse(attributes.get("value"))
                yield BUTTON_NAMES[kind]
        elif tag in ("fieldset", "table"):
            wanted = "legend" if tag == "fieldset" else "caption"
            first = tree.first_child(element, wanted)
            if first is not None and not self._contents.is_silent(first):
                yield self.content(first)
        elif tag == "svg":
            yield title_of(tree, element)
        elif tag == "area":
            yield collapse(attributes.get("alt"))
        elif tag == "img" and collapse(attributes.get("alt")):
            return  # `alt` is an attribute of its own
        elif (
            tag in _MIXED or ("role" in attributes and role_of(tag, attributes) in _NAMED_WITH_PARTS)
        ) and self._holds_more(element):
            yield self.content(element)
        if "title" in attributes:
            yield collapse(attributes["title"])
        if tag in ("input", "textarea"):
            yield collapse(attributes.get("placeholder"))
        if "aria-placeholder" in attributes:
            yield collapse(attributes["aria-placeholder"])

    def content(self, element: int, without: int = -1, is_hidden: bool = False) -> str:
        """Return the name that an element has from its content, leaving out one node (see `NamesFromContent`)."""
        return self._contents.of(element, without, is_hidden=is_hidden, is_referred=self._is_referred)

    def value(self, control: int) -> str | None:
        """Return what a control contributes to a name: its value. None if it contributes its content."""
        return self._contents.value(control)

    def _is_hidden(self, node: int) -> bool:
        return any(map(self._visibility.withdraws, (node, *ancestors(self._tree, node))))

    def named(self, node: int) -> str:
        """Return the text that an element contributes as the name of another one, whether it is hidden or not."""
        if node not in self._texts:
            tag, attributes = self._tree.tags[node], self._tree.attributes[node]
            said = collapse(attributes.get("aria-label")) or collapse(attributes.get("alt") if tag == "img" else None)
            if not said and (tag in VALUED or attributes.get("role") in VALUED):
                said = self._contents.value(node) or ""
            if not said and (tag in _LABELABLE or tag in _NAMED_BY_CONTENT):
                said = next(filter(None, self._native(node)), "")
            said = said or self.content(node, is_hidden=self._is_hidden(node))
            self._texts[node] = said or collapse(attributes.get("title"))
        return self._texts[node]


def _ids_in(tree: Tree, start: int, end: int) -> dict[str, int]:
    """Return the first element with each id in a range."""
    return {name: at for at in range(end - 1, start - 1, -1) if (name := tree.attributes[at].get("id"))}


def _is_named(attributes: Mapping[str, str]) -> bool:
    """Return True if attributes name their element, whatever its content and its labels say."""
    return any(attributes.get(name, "").strip() for name in _OVERRIDING)


def _letters(text: str) -> str:
    """Return a text without what differs where it is written and where it is a name: case and white space."""
    return "".join(text.casefold().split())
