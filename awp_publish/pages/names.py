"""Accessible names (accname 1.2, HTML-AAM; SOM 1.0, section 4.5, label resolution)."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Final

from awp_publish.pages.attributes import MAX_REFERENCES, references_of
from awp_publish.pages.generated import read_generated
from awp_publish.pages.input_types import UNSEEN, input_type
from awp_publish.pages.items import ancestors
from awp_publish.pages.options import read_options
from awp_publish.pages.roles import ACTIONS, role_of
from awp_publish.pages.surroundings import Surroundings
from awp_publish.pages.tree import Tree
from awp_publish.pages.visibility import INLINE, STRIPPED, Visibility, text_of, title_of

MAX_NODES: Final = 500
"""Nodes that are read of an element whose content is another element's name."""

MAX_NAME_LENGTH: Final = 1_000

_NAMING: Final = frozenset(("aria-label", "aria-labelledby", "aria-labeledby", "role", "title"))
_MIXED: Final = frozenset(("a", "button", "h1", "h2", "h3", "h4", "h5", "h6"))
"""Elements whose name may differ from their text, because they may contain an image."""

_VALUED: Final = frozenset(
    ("input", "select", "meter", "progress", "listbox", "slider", "spinbutton", "progressbar", "scrollbar")
)
"""Elements and roles that contribute their value to a name that contains them."""

_BUTTON_NAMES: Final[Mapping[str, str]] = {"submit": "Submit", "reset": "Reset", "image": "Submit", "button": ""}
"""Names that browsers give to buttons without a name (HTML 4.10.5.1.18)."""

_NAMED_WITH_PARTS: Final = frozenset(("button", "checkbox", "heading", "link", "radio"))
_NAMED_BY_CONTENT: Final = frozenset(("a", "area", "fieldset", "svg", "table"))
_PLAIN: Final = INLINE - STRIPPED - _VALUED - {"area", "br", "iframe", "img", "svg", "textarea"}
"""Elements that, without attributes, contribute only their content."""

_SAID: Final = _PLAIN | {""}
_SPEAKING: Final = _NAMING | {"aria-owns"}
"""Attributes with which an element may contribute something else than its content."""

_OVERRIDING: Final = ("aria-label", "aria-labelledby", "aria-labeledby")
_LABELABLE: Final = frozenset(("button", "input", "meter", "output", "progress", "select", "textarea"))
_FILLED: Final = frozenset(("input", "select", "textarea"))
"""Types of inputs that are no fields."""


class AccessibleNames:
    """Computes accessible names within one page. Referenced elements are looked up once."""

    __slots__ = (
        *(
            "_children",
            "_is_referred",
            "_known",
            "_labels",
            "_noted",
            "_roots",
            "_surroundings",
            "_texts",
            "_texts_of_labels",
        ),
        *("_generated", "_shown_otherwise", "_tree", "_visibility", "blocks", "told"),
    )

    def __init__(self, visibility: Visibility) -> None:
        tree = visibility.tree
        self._tree, self._visibility = tree, visibility
        self._children: Callable[[int], Sequence[int]] = visibility.flat.children if tree.contents else tree.children
        self._generated = read_generated(visibility)
        self.blocks: Set[int] = self._generated.blocks
        """Inline elements that are laid out as blocks, so that their text stands apart."""
        unseen = visibility.unseen_texts
        self._shown_otherwise = self.blocks.union(self._generated.before, self._generated.after)
        self._shown_otherwise |= {tree.parents[at] for at in unseen}
        self._noted = tree.conspicuous | visibility.by_rule | self._shown_otherwise
        self._surroundings = Surroundings(visibility)
        self._roots = [(start, end, _ids_in(tree, start, end)) for start, end in tree.contents.values()]
        """Of each template, the range of its nodes and its ids, to which nothing outside of it refers."""
        self._is_referred = False
        """True while the name of a referenced element is computed: references in it are ignored (accname 1.2, 2B)."""
        self._known: dict[tuple[int, str], str] = {}
        self._texts: dict[int, str] = {}
        self._texts_of_labels: dict[int, str] = {}
        self._labels: dict[int, list[int]] = {}
        self.told: set[int] = set()
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
                given = tree.attributes[target]
                if role_of(tree.tags[target], given) in ACTIONS and not any(
                    given.get(name, "").strip() for name in _OVERRIDING
                ):
                    self.told.add(label)

    def label(self, element: int, text: str) -> str:
        """Return the name of an element, or "" if it has none or only its `text`."""
        tag, given = self._tree.tags[element], self._tree.attributes[element]
        if (
            tag not in _LABELABLE
            and (text or tag not in _NAMED_BY_CONTENT)
            and (not given or _NAMING.isdisjoint(given))
            and not (tag in _MIXED and self._holds_more(element))
        ):
            return ""
        label = self._known.get((element, text))
        if label is None:
            label = self._known[element, text] = self._label(element, text.lower())
        return label

    def _label(self, element: int, known: str) -> str:
        tag, given = self._tree.tags[element], self._tree.attributes[element]
        # In the order of 4.5 and of HTML-AAM, section 4.1: a title comes last.
        if references := references_of(given):
            name = self.referred(references, element)
            if name and name.lower() != known:
                return name
        if "aria-label" in given:
            name = collapse(given["aria-label"])
            if name and name.lower() != known:
                return name
        for name in self._native(element):
            if name and name.lower() != known:
                return name
        if tag in _FILLED and not (tag == "input" and input_type(given) in UNSEEN):
            return self._surroundings.name_of(element)
        return ""

    def name(self, element: int, text: str) -> str:
        """Return the name of an element with a text. A title only describes it, though SOM has it as the label."""
        name = self.label(element, text)
        is_title = name != "" and name == collapse(self._tree.attributes[element].get("title"))
        return text if not name or (is_title and any(map(str.isalnum, text))) else name

    def unwritten(self, field: int) -> str:
        """Return the name of a field if it is not written beside it: it is in attributes, or in a label unseen."""
        given = self._tree.attributes[field]
        references = references_of(given)
        named = [self.referred(references, field) if references else "", collapse(given.get("aria-label"))]
        if labels := self._labels.get(field):
            shown = (label for label in labels if not self._is_hidden(label))
            written = "".join(text_of(self._visibility, label, field, MAX_NODES, shows=True) for label in shown)
            name = next(self._native(field), "")
            named += [] if _letters(name) in _letters(written) else [name]
        titles = ("placeholder",) if labels else ("title", "placeholder", "aria-placeholder")
        return next(filter(None, (*named, *(collapse(given.get(name)) for name in titles))), "")

    def has_generated(self, element: int) -> bool:
        """Return True if style rules add to the text of an element."""
        return element in self._generated.before or element in self._generated.after

    def _holds_more(self, element: int) -> bool:
        """Return True if there is more in an element than text."""
        return element in self._shown_otherwise or any(self._tree.tags[element + 1 : self._tree.ends[element]])

    def _plain_content(self, element: int) -> str | None:
        """Return the text of an element if that is its name: if nothing in it has a name of its own or is hidden."""
        tree = self._tree
        start, end = element + 1, tree.ends[element]
        if end - start >= MAX_NODES or not _SAID.issuperset(tree.tags[start:end]):
            return None
        for at in range(start, end):
            given = tree.attributes[at]
            if at in self._noted or (given and not _SPEAKING.isdisjoint(given)):
                return None
        return " ".join("".join(tree.texts[start:end]).split())

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
            if kind in _BUTTON_NAMES:
                yield collapse(attributes.get("value"))
                yield _BUTTON_NAMES[kind]
        elif tag in ("fieldset", "table"):
            wanted = "legend" if tag == "fieldset" else "caption"
            first = tree.first_child(element, wanted)
            if first is not None and not self._is_silent(first):
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
        """Return the name that an element has from its content (accname 1.2, steps 2C to 2I), leaving out one node.

        A part contributes its `aria-label` if it has one, an image its alternative text, a control its value. If the
        element itself is hidden, hidden parts contribute too (2B, note). What only the eyes do not see contributes to
        all names but those of headings, which are text of the page.
        """
        shown_otherwise, before, after = self._shown_otherwise, self._generated.before, self._generated.after
        if (
            without < 0
            and not is_hidden
            and element not in shown_otherwise
            and "aria-owns" not in self._tree.attributes[element]
        ):
            text = self._plain_content(element)
            if text is not None and len(text) <= MAX_NAME_LENGTH:
                return text
        is_heading = role_of(self._tree.tags[element], self._tree.attributes[element]) == "heading"
        hides = self._visibility.hides if is_heading else self._is_silent
        unseen_texts = {} if is_heading else self._visibility.unseen_texts
        pieces: list[str] = []
        referring = length = 0
        referred: set[int | None] = set()
        owners = {element}
        tree, visibility = self._tree, self._visibility
        waiting: list[int | str] = [after.get(element, ""), *self._owned(element, owners)]
        waiting += reversed(self._children(element))
        pieces.append(before.get(element, ""))
        for _ in range(MAX_NODES):
            if not waiting or length > MAX_NAME_LENGTH * 4:
                break
            node = waiting.pop()
            if isinstance(node, str):
                pieces.append(node)
                continue
            tag, given, only = tree.tags[node], tree.attributes[node], tree.only(node)
            if not tag:
                pieces.append(tree.texts[node] or unseen_texts.get(node, ""))
                length += len(pieces[-1])
                continue
            if tag == "slot":  # it is shown as its content
                waiting.extend(reversed(self._children(node)))
                continue
            if not given and tag in _PLAIN and node not in visibility.by_rule and node not in shown_otherwise:
                if only is not None:
                    pieces.append(only)
                else:
                    waiting.extend(reversed(self._children(node)))
                continue
            if node in referred:  # it counts once
                continue
            # A drawing within a control is its icon, and may have a title without a role.
            if node == without or (
                tag in STRIPPED if is_hidden else visibility.withdraws(node) if tag == "svg" else hides(node)
            ):
                continue
            said = None
            if (references := references_of(given)) and not self._is_referred and referring < MAX_REFERENCES:
                referring += 1
                said = self.referred(references, node) or None
                referred.update(self.find(name, node) for name in references.split()[:MAX_REFERENCES])
            if said is None and given.get("role") == "menu":
                said = ""
            if said is None and (tag in _VALUED or given.get("role") in _VALUED):
                said = self.value(node)
            if said is None:
                said = collapse(given.get("aria-label")) or None
            if said is None and tag in ("img", "area", "svg", "iframe"):
                said = given.get("alt") if tag in ("img", "area") else title_of(tree, node)
                said = collapse(said or (given.get("title") if "alt" not in given else ""))
            parted = tag not in INLINE or tag in ("br", "textarea") or tag in _VALUED or node in self.blocks
            parted = parted or node in visibility.unseen  # out of the flow, mostly
            if parted:
                pieces.append(" ")
            if said is not None:
                pieces.append(f" {said} " if tag == "svg" else said)
            elif only is not None and "aria-owns" not in given and node not in shown_otherwise:
                pieces.append(only)
            elif tree.ends[node] > node + 1 or "aria-owns" in given or node in shown_otherwise:
                pieces.append(before.get(node, ""))
                waiting.append(f"{after.get(node, '')}{' ' * parted}")
                waiting.extend(self._owned(node, owners))
                waiting.extend(reversed(self._children(node)))
            elif "title" in given:
                pieces.append(given["title"])
            if parted:
                pieces.append(" ")
        return collapse("".join(pieces))

    def _owned(self, owner: int, owners: set[int]) -> list[int | str]:
        """Return the elements named by `aria-owns`, last first, with separators; owners and owned ones count once."""
        found: list[int | str] = []
        given = self._tree.attributes[owner]
        if "aria-owns" in given and len(owners) <= MAX_REFERENCES:
            owners.add(owner)
            for name in given["aria-owns"].split()[:MAX_REFERENCES]:
                node = self.find(name, owner)
                if node is not None and node not in owners:
                    owners.add(node)
                    found = [node, " ", *found]
        return found

    def _is_silent(self, node: int) -> bool:
        """Return True if a part contributes nothing to a name: what only the eyes do not see contributes (2A)."""
        visibility = self._visibility
        if node not in visibility.unseen:
            return visibility.hides(node)
        return self._tree.tags[node] in STRIPPED or visibility.is_hidden_by(self._tree.attributes[node])

    def _is_hidden(self, node: int) -> bool:
        return any(map(self._visibility.withdraws, (node, *ancestors(self._tree, node))))

    def value(self, control: int) -> str | None:
        """Return what a control contributes to a name: its value (2C). None if it contributes its content."""
        tags, attributes = self._tree.tags, self._tree.attributes
        tag, given = tags[control], attributes[control]
        role = given.get("role", "")
        if tag == "input":
            kind = input_type(given)
            if kind in ("checkbox", "radio", "hidden", "password", "file"):
                return ""
            if kind == "image":
                return collapse(given.get("alt") or given.get("title"))
            return collapse(given.get("aria-valuetext") or given.get("value")) or _BUTTON_NAMES.get(kind, "")
        if tag == "select" or role == "listbox":
            if tag == "select":
                chosen = [option.node for option in read_options(self._tree, control) if option.is_selected]
            else:
                below = range(control + 1, min(self._tree.ends[control], control + 1 + MAX_NODES))
                options = (one for one in below if "option" in (tags[one], attributes[one].get("role")))
                chosen = [one for one in options if attributes[one].get("aria-selected") == "true"]
            return " ".join(text_of(self._visibility, one, max_nodes=MAX_NODES) for one in chosen)
        if role in ("slider", "spinbutton", "progressbar", "scrollbar") or tag in ("meter", "progress"):
            return collapse(given.get("aria-valuetext") or given.get("aria-valuenow") or given.get("value"))
        return None

    def named(self, node: int) -> str:
        """Return the text that an element contributes as the name of another one, whether it is hidden or not."""
        if node not in self._texts:
            tag, given = self._tree.tags[node], self._tree.attributes[node]
            said = collapse(given.get("aria-label")) or collapse(given.get("alt") if tag == "img" else None)
            if not said and (tag in _VALUED or given.get("role") in _VALUED):
                said = self.value(node) or ""
            if not said and (tag in _LABELABLE or tag in _NAMED_BY_CONTENT):
                said = next(filter(None, self._native(node)), "")
            said = said or self.content(node, is_hidden=self._is_hidden(node))
            self._texts[node] = said or collapse(given.get("title"))
        return self._texts[node]


def _ids_in(tree: Tree, start: int, end: int) -> dict[str, int]:
    """Return the first element with each id in a range."""
    return {name: at for at in range(end - 1, start - 1, -1) if (name := tree.attributes[at].get("id"))}


def _letters(text: str) -> str:
    """Return a text without what differs where it is written and where it is a name: case and white space."""
    return "".join(text.casefold().split())


def collapse(text: str | None) -> str:
    """Return a text with white space collapsed (4.6), limited to the length of a name."""
    return " ".join(text[: MAX_NAME_LENGTH * 4].split())[:MAX_NAME_LENGTH] if text else ""
