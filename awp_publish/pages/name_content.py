"""What an element's content says as its name (accname 1.2, steps 2C to 2I)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from awp_publish.pages.attributes import MAX_REFERENCES, references_of
from awp_publish.pages.generated import Generated
from awp_publish.pages.input_types import input_type
from awp_publish.pages.options import read_options
from awp_publish.pages.roles import role_of
from awp_publish.pages.visibility import INLINE, STRIPPED, Visibility, text_of, title_of

MAX_NODES: Final = 500
"""Nodes that are read of an element whose content is another element's name."""

MAX_NAME_LENGTH: Final = 1_000

RANGES: Final = frozenset(("slider", "spinbutton", "progressbar", "scrollbar"))
"""Roles whose value is a number in a range."""

VALUED: Final = RANGES | {"input", "select", "meter", "progress", "listbox"}
"""Elements and roles that contribute their value to a name that contains them."""

BUTTON_NAMES: Final[Mapping[str, str]] = {"submit": "Submit", "reset": "Reset", "image": "Submit", "button": ""}
"""Names that browsers give to buttons without a name (HTML 4.10.5.1.18)."""

_PLAIN: Final = INLINE - STRIPPED - VALUED - {"area", "br", "iframe", "img", "svg", "textarea"}
"""Elements that, without attributes, contribute only their content."""

_PICTURES: Final = frozenset(("area", "iframe", "img", "svg"))
_TELLING: Final = VALUED | _PICTURES
"""Elements that say something else than their content."""

_SAID: Final = _PLAIN | {""}
_SPEAKING: Final = frozenset(("aria-label", "aria-labelledby", "aria-labeledby", "aria-owns", "role", "title"))
"""Attributes with which an element may contribute something else than its content."""


class NamesFromContent:
    """Reads what the content of elements of one page contributes to names.

    `find` returns the element with an id, seen from another element, `refer` the names of the elements with some ids.
    """

    __slots__ = ("after", "before", "blocks", "children", "find", "noted", "refer", "shown_otherwise", "visibility")

    def __init__(
        self,
        visibility: Visibility,
        generated: Generated,
        find: Callable[[str, int], int | None],
        refer: Callable[[str, int], str],
    ) -> None:
        tree = visibility.tree
        self.visibility, self.find, self.refer = visibility, find, refer
        self.before, self.after, self.blocks = generated.before, generated.after, generated.blocks
        self.children: Callable[[int], Sequence[int]] = visibility.flat.children if tree.contents else tree.children
        self.shown_otherwise = {tree.parents[at] for at in visibility.unseen_texts}.union(
            generated.blocks, generated.before, generated.after
        )
        self.noted = tree.conspicuous | visibility.by_rule | self.shown_otherwise

    def of(self, element: int, without: int = -1, *, is_hidden: bool = False, is_referred: bool = False) -> str:
        """Return the name that an element has from its content, leaving out one node.

        A part contributes its `aria-label` if it has one, an image its alternative text, a control its value. If the
        element itself is hidden, hidden parts contribute too (2B, note). What only the eyes do not see contributes to
        all names but those of headings, which are text of the page. In an element that `is_referred` to, references are
        ignored.
        """
        if without < 0 and not is_hidden:
            text = self._plain(element)
            if text is not None and len(text) <= MAX_NAME_LENGTH:
                return text
        return _Reading(self, element, without, is_hidden=is_hidden, is_referred=is_referred).read()

    def _plain(self, element: int) -> str | None:
        """Return the text of an element if that is its name: if nothing in it has a name of its own or is hidden."""
        tree = self.visibility.tree
        if element in self.shown_otherwise or "aria-owns" in tree.attributes[element]:
            return None
        start, end = element + 1, tree.ends[element]
        if end - start >= MAX_NODES or not _SAID.issuperset(tree.tags[start:end]):
            return None
        for at in range(start, end):
            attributes = tree.attributes[at]
            if at in self.noted or (attributes and not _SPEAKING.isdisjoint(attributes)):
                return None
        return " ".join("".join(tree.texts[start:end]).split())

    def is_silent(self, node: int) -> bool:
        """Return True if a part contributes nothing to a name: what only the eyes do not see contributes (2A)."""
        visibility = self.visibility
        if node not in visibility.unseen:
            return visibility.hides(node)
        return visibility.tree.tags[node] in STRIPPED or visibility.is_hidden_by(visibility.tree.attributes[node])

    def value(self, control: int) -> str | None:
        """Return what a control contributes to a name: its value (2C). None if it contributes its content."""
        tree = self.visibility.tree
        tags, attributes = tree.tags, tree.attributes
        tag, given = tags[control], attributes[control]
        role = given.get("role", "")
        if tag == "input":
            kind = input_type(given)
            if kind in ("checkbox", "radio", "hidden", "password", "file"):
                return ""
            if kind == "image":
                return collapse(given.get("alt") or given.get("title"))
            return collapse(given.get("aria-valuetext") or given.get("value")) or BUTTON_NAMES.get(kind, "")
        if tag == "select" or role == "listbox":
            if tag == "select":
                chosen = [option.node for option in read_options(tree, control) if option.is_selected]
            else:
                below = range(control + 1, min(tree.ends[control], control + 1 + MAX_NODES))
                options = (option for option in below if "option" in (tags[option], attributes[option].get("role")))
                chosen = [option for option in options if attributes[option].get("aria-selected") == "true"]
            return " ".join(text_of(self.visibility, option, max_nodes=MAX_NODES) for option in chosen)
        if role in RANGES or tag in ("meter", "progress"):
            return collapse(given.get("aria-valuetext") or given.get("aria-valuenow") or given.get("value"))
        return None


class _Reading:
    """One name, put together from the parts of an element."""

    __slots__ = (
        *("_length", "_owners", "_page", "_pieces", "_references", "_referred", "_waiting", "_without"),
        *("_hides", "_hides_drawing", "_tree", "_unseen_texts"),
    )

    def __init__(
        self, page: NamesFromContent, element: int, without: int, *, is_hidden: bool, is_referred: bool
    ) -> None:
        visibility = page.visibility
        self._page, self._tree, self._without = page, visibility.tree, without
        is_heading = role_of(self._tree.tags[element], self._tree.attributes[element]) == "heading"
        # A drawing within a control is its icon, and may have a title without a role.
        self._hides_drawing = self._is_dropped if is_hidden else visibility.withdraws
        self._hides = self._is_dropped if is_hidden else visibility.hides if is_heading else page.is_silent
        self._unseen_texts: Mapping[int, str] = {} if is_heading else visibility.unseen_texts
        self._length = 0
        self._references = 0 if is_referred else MAX_REFERENCES
        """References that may still be followed."""
        self._referred = set[int | None]()
        """Elements that count once, because they were referred to."""
        self._owners = {element}
        self._pieces = [page.before.get(element, "")]
        self._waiting: list[int | str] = [page.after.get(element, ""), *self._owned(element)]
        self._waiting += reversed(page.children(element))

    def read(self) -> str:
        """Return the name, of the first `MAX_NODES` parts."""
        page, tree, pieces, waiting = self._page, self._tree, self._pieces, self._waiting
        by_rule, shown_otherwise = page.visibility.by_rule, page.shown_otherwise
        for _ in range(MAX_NODES):
            if not waiting or self._length > MAX_NAME_LENGTH * 4:
                break
            node = waiting.pop()
            if isinstance(node, str):
                pieces.append(node)
                continue
            tag, attributes = tree.tags[node], tree.attributes[node]
            if not tag:
                pieces.append(tree.texts[node] or self._unseen_texts.get(node, ""))
                self._length += len(pieces[-1])
            elif tag == "slot":  # it is shown as its content
                waiting.extend(reversed(page.children(node)))
            elif not attributes and tag in _PLAIN and node not in by_rule and node not in shown_otherwise:
                if (only := tree.only(node)) is not None:
                    pieces.append(only)
                else:
                    waiting.extend(reversed(page.children(node)))
            elif node != self._without and node not in self._referred and not self._leaves_out(node, tag):
                self._take(node, tag, attributes)
        return collapse("".join(pieces))

    def _leaves_out(self, node: int, tag: str) -> bool:
        return self._hides_drawing(node) if tag == "svg" else self._hides(node)

    def _is_dropped(self, node: int) -> bool:
        return self._tree.tags[node] in STRIPPED

    def _take(self, node: int, tag: str, attributes: Mapping[str, str]) -> None:
        """Add what an element says itself, or else its content."""
        page, tree, pieces = self._page, self._tree, self._pieces
        own = self._own_name(node, tag, attributes) if attributes or tag in _TELLING else None
        parted = tag not in INLINE or tag in ("br", "textarea") or tag in VALUED or node in page.blocks
        parted = parted or node in page.visibility.unseen  # out of the flow, mostly
        is_changed = "aria-owns" in attributes or node in page.shown_otherwise
        if parted:
            pieces.append(" ")
        if own is not None:
            pieces.append(own and f" {own} ")
        elif not is_changed and (only := tree.only(node)) is not None:
            pieces.append(only)
        elif is_changed or tree.ends[node] > node + 1:
            pieces.append(page.before.get(node, ""))
            self._waiting.append(f"{page.after.get(node, '')}{' ' * parted}")
            self._waiting.extend(self._owned(node))
            self._waiting.extend(reversed(page.children(node)))
        elif "title" in attributes:
            pieces.append(attributes["title"])
        if parted:
            pieces.append(" ")

    def _own_name(self, node: int, tag: str, attributes: Mapping[str, str]) -> str | None:
        """Return what an element says instead of its content: by references, a value or attributes."""
        page, role = self._page, attributes.get("role")
        if self._references and (references := references_of(attributes)):
            self._references -= 1
            name = page.refer(references, node)
            self._referred.update(page.find(each, node) for each in references.split()[:MAX_REFERENCES])
            if name:
                return name
        if role == "menu":
            return ""
        label = collapse(attributes.get("aria-label"))
        if (tag in VALUED or role in VALUED) and (value := page.value(node)) is not None:
            return value or (label if role in RANGES else "")
        if label:
            return label
        if tag not in _PICTURES:
            return None
        name = attributes.get("alt", "") if tag in ("img", "area") else title_of(self._tree, node)
        return collapse(name or (attributes.get("title") if "alt" not in attributes else ""))

    def _owned(self, owner: int) -> list[int | str]:
        """Return the elements named by `aria-owns`, last first, with separators; owners and owned ones count once."""
        owners, found = self._owners, list[int | str]()
        attributes = self._tree.attributes[owner]
        if "aria-owns" in attributes and len(owners) <= MAX_REFERENCES:
            owners.add(owner)
            for name in attributes["aria-owns"].split()[:MAX_REFERENCES]:
                node = self._page.find(name, owner)
                if node is not None and node not in owners:
                    owners.add(node)
                    found = [node, " ", *found]
        return found


def collapse(text: str | None) -> str:
    """Return a text with white space collapsed (4.6), limited to the length of a name."""
    return " ".join(text[: MAX_NAME_LENGTH * 4].split())[:MAX_NAME_LENGTH] if text else ""
