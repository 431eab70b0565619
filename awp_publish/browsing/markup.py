"""`Markup`: what a browser knows of a page beside its content: controls, their forms, labels, links, the base address.

Made in one walk over the tree, when a page is acted upon for the first time.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from awp_publish.pages.tree import SHADOW, Node, Template, Tree

Place: TypeAlias = str
"""The path of an element in the tree, as `Tree.select` gives it and `Tree.node_at` takes it."""

CONTROL_TAGS: Final = frozenset({"button", "input", "select", "textarea", "object", "output", "fieldset"})
"""The listed elements (HTML 4.10.2): what has a form owner."""
_TABLE_PARTS: Final = frozenset({"table", "thead", "tbody", "tfoot", "tr"})


@dataclass(frozen=True, slots=True)
class Control:
    """A listed element: where it is, the form that owns it, and whether something around it disables or bars it."""

    node: Node = field(repr=False)
    place: Place
    form: Place | None
    disabled: bool
    in_datalist: bool

    @property
    def name(self) -> str:
        """The name attribute, "" for none."""
        return self.node.attributes.get("name", "")


@dataclass(slots=True)
class Markup:
    """The walked page. Everything is in document order."""

    tree: Tree
    base: str | None = None
    charset: str | None = None
    refresh: str | None = None
    forms: dict[Place, Node] = field(default_factory=dict)
    controls: dict[Place, Control] = field(default_factory=dict)
    ids: dict[str, Place] = field(default_factory=dict)
    labels: dict[Place, Node] = field(default_factory=dict)
    _groups: dict[tuple[Place | None, str], list[Control]] = field(default_factory=dict)

    def node_at(self, place: Place) -> Node | None:
        """The element at a place."""
        return self.tree.node_at(place)

    def controls_of(self, form: Place) -> Iterator[Control]:
        """The controls that a form owns, in tree order."""
        return (control for control in self.controls.values() if control.form == form)

    def ancestors(self, place: Place) -> Iterator[tuple[Place, Node]]:
        """An element and then what it is in, up to the body."""
        while place:
            node = self.node_at(place)
            if node is not None:
                yield place, node
            place = place.removesuffix(SHADOW) if place.endswith(SHADOW) else place.rpartition("/")[0]

    def within(self, place: Place) -> Iterator[Control]:
        """The controls inside an element."""
        return (control for control in self.controls.values() if control.place.startswith(place + "/"))

    def radio_group(self, control: Control) -> list[Control]:
        """The radio buttons of one group (HTML 4.10.5.1.16): one form, one name; a nameless one is alone."""
        return self._groups[control.form, control.name] if control.name else [control]

    def group_radios(self) -> None:
        """Note the groups, once the owners of all controls are known."""
        for control in self.controls.values():
            if control.name and kind_of(control.node) == "radio":
                self._groups.setdefault((control.form, control.name), []).append(control)

    def labelled_by(self, label: Place) -> Control | None:
        """The control that a label belongs to (HTML 4.10.4): by `for`, else the first one inside."""
        target = self.labels[label].attributes.get("for")
        if target is not None:
            return self.controls.get(self.ids.get(target, ""))
        inside = (control for control in self.within(label) if is_labelable(control.node))
        return next(inside, None)


def is_labelable(node: Node) -> bool:
    """Whether a label may be for it (HTML 4.10.2, the listed ones)."""
    return node.tag in ("button", "output", "select", "textarea") or (node.tag == "input" and kind_of(node) != "hidden")


INPUT_KINDS: Final = frozenset(
    {
        *("hidden", "text", "search", "tel", "url", "email", "password"),
        *("date", "month", "week", "time", "datetime-local", "number", "range", "color"),
        *("checkbox", "radio", "file", "submit", "image", "reset", "button"),
    }
)
_BUTTON_KINDS: Final = frozenset({"submit", "reset", "button"})


def kind_of(node: Node) -> str:
    """The type of an input or a button, other tags by their name; an unknown type is as good as none."""
    said = node.attributes.get("type", "").lower()
    if node.tag == "input":
        return said if said in INPUT_KINDS else "text"
    if node.tag == "button":
        return said if said in _BUTTON_KINDS else "submit"
    return node.tag


@dataclass(frozen=True, slots=True)
class _Around:
    """What the walk knows of the elements around the one it is at."""

    form: Place | None = None
    disabled: bool = False
    in_datalist: bool = False


def read_markup(tree: Tree) -> Markup:
    """Walk a page once."""
    markup = Markup(tree)
    for told in (*tree.tagged("base"), *tree.tagged("meta")):
        _read_metadata(told, markup)
    loose: list[tuple[Place, Place]] = []
    waiting: list[tuple[Place, Node, _Around]] = [("0", tree.body, _Around())]
    while waiting:
        place, node, around = waiting.pop()
        inner = _visit(place, node, around, markup, loose)
        waiting.extend(reversed(list(_children(place, node, inner))))
    _assign_by_attribute(markup)
    markup.group_radios()
    return markup


def _children(place: Place, node: Node, around: _Around) -> Iterator[tuple[Place, Node, _Around]]:
    legend_is_next = node.tag == "fieldset" and "disabled" in node.attributes
    inner = _Around(around.form, around.disabled or legend_is_next, around.in_datalist)
    for number, child in enumerate(node.children):
        if isinstance(child, Template) and child.shadow_mode:
            yield from ((f"{place}{SHADOW}/{n}", shadowed, _Around()) for n, shadowed in enumerate(child.content))
        elif child.tag == "legend" and legend_is_next:
            legend_is_next = False
            yield f"{place}/{number}", child, around
        elif child.tag:
            yield f"{place}/{number}", child, inner


def _visit(place: Place, node: Node, around: _Around, markup: Markup, loose: list[tuple[Place, Place]]) -> _Around:
    attributes = node.attributes
    if attributes.get("id"):
        markup.ids.setdefault(attributes["id"], place)
    if node.tag == "form":
        markup.forms[place] = node
        _note_misplaced(place, node, loose)
        return _Around(place, around.disabled, around.in_datalist)
    if node.tag in CONTROL_TAGS:
        markup.controls[place] = _read_control(place, node, around, loose)
    elif node.tag == "label":
        markup.labels[place] = node
    return _Around(around.form, around.disabled, around.in_datalist or node.tag == "datalist")


def _read_control(place: Place, node: Node, around: _Around, loose: list[tuple[Place, Place]]) -> Control:
    form = around.form or next((form for table, form in reversed(loose) if place.startswith(table + "/")), None)
    disabled = (around.disabled or "disabled" in node.attributes) and node.tag not in ("object", "output")
    return Control(node, place, form, disabled, around.in_datalist)


def _note_misplaced(place: Place, node: Node, loose: list[tuple[Place, Place]]) -> None:
    """A form written between the parts of a table ends up empty, and yet owns the controls after it in that table
    (HTML 13.2.6.4.9: the form element pointer outlives the element)."""
    if node.parent is not None and node.parent.tag in _TABLE_PARTS and not node.children:
        loose.append((place.rpartition("/")[0], place))


def _assign_by_attribute(markup: Markup) -> None:
    """The `form` attribute names the owner, also outside of it; a name of nothing leaves no owner (4.10.18.3)."""
    for place, control in list(markup.controls.items()):
        named = control.node.attributes.get("form")
        if named is not None:
            owner = markup.ids.get(named)
            form = owner if owner in markup.forms else None
            markup.controls[place] = Control(control.node, place, form, control.disabled, control.in_datalist)


def _read_metadata(node: Node, markup: Markup) -> None:
    """The first base with an address counts (HTML 4.2.3), the first charset and the first refresh (4.2.5.3)."""
    attributes = node.attributes
    if node.tag == "base" and markup.base is None:
        markup.base = attributes.get("href")
    if node.tag != "meta":
        return
    if markup.charset is None:
        markup.charset = attributes.get("charset")
    if attributes.get("http-equiv", "").lower() == "refresh" and markup.refresh is None:
        markup.refresh = attributes.get("content")
