"""The parts of a page that a browser acts on: controls, their forms and labels, read in one walk over the tree."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from awp_publish.pages.input_types import BUTTONS, INPUT_TYPES
from awp_publish.pages.tree import SHADOW, Node, Template, Tree

Place: TypeAlias = str
"""The path of an element in the tree, as `Tree.select` returns it and `Tree.node_at` takes it."""
CONTROL_TAGS: Final = frozenset({"button", "input", "select", "textarea", "object", "output", "fieldset"})
"""The listed elements (HTML 4.10.2), which have a form owner."""
_TABLE_PARTS: Final = frozenset({"table", "thead", "tbody", "tfoot", "tr"})


def parent_of(place: Place) -> Place:
    """Return the parent of a place, or "" for the body."""
    return place.removesuffix(SHADOW) if place.endswith(SHADOW) else place.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class Control:
    """A listed element: its place, the form that owns it, and whether an ancestor disables or bars it."""

    node: Node = field(repr=False)
    place: Place
    form: Place | None
    disabled: bool
    in_datalist: bool

    @property
    def name(self) -> str:
        """The name attribute, or ""."""
        return self.node.attributes.get("name", "")


@dataclass(slots=True)
class Markup:
    """The controls, forms and labels of a page, in document order.

    `groups` are radio buttons by form and name, `checked` the last one of each group that the HTML checks.
    """

    tree: Tree
    base: str | None = None
    charset: str | None = None
    refresh: str | None = None
    forms: dict[Place, Node] = field(default_factory=dict)
    controls: dict[Place, Control] = field(default_factory=dict)
    ids: dict[str, Place] = field(default_factory=dict)
    labels: dict[Place, Node] = field(default_factory=dict)
    groups: dict[tuple[Place | None, str], list[Control]] = field(default_factory=dict)
    checked: dict[tuple[Place | None, str], Control] = field(default_factory=dict)

    def controls_of(self, form: Place) -> Iterator[Control]:
        """Iterate over the controls that a form owns, in tree order."""
        return (control for control in self.controls.values() if control.form == form)

    def ancestors(self, place: Place) -> Iterator[tuple[Place, Node]]:
        """Iterate over an element and its ancestors, up to the body."""
        while place:
            node = self.tree.node_at(place)
            if node is not None:
                yield place, node
            place = parent_of(place)

    def within(self, place: Place) -> Iterator[Control]:
        """Iterate over the controls inside of an element."""
        return (control for control in self.controls.values() if control.place.startswith(place + "/"))

    def radio_group(self, control: Control) -> list[Control]:
        """Return the radio buttons of a group (HTML 4.10.5.1.16): same form and name; one without a name is alone."""
        return self.groups[control.form, control.name] if control.name else [control]

    def labelled_by(self, label: Place) -> Control | None:
        """Return the control of a label (HTML 4.10.4): by `for`, otherwise the first labelable one inside."""
        target = self.labels[label].attributes.get("for")
        if target is not None:
            return self.controls.get(self.ids.get(target, ""))
        return next((c for c in self.within(label) if kind_of(c.node) not in _NEVER_LABELLED), None)


_BUTTON_KINDS: Final = BUTTONS - {"image"}
_NEVER_LABELLED: Final = frozenset({"hidden", "object", "fieldset"})


def kind_of(node: Node) -> str:
    """Return the type of an input or a button, or the tag of another control; unknown types are the default type."""
    kind = node.attributes.get("type", "").lower()
    if node.tag == "input":
        return kind if kind in INPUT_TYPES else "text"
    if node.tag == "button":
        return kind if kind in _BUTTON_KINDS else "submit"
    return node.tag


def read_markup(tree: Tree) -> Markup:
    """Read the markup in one walk over the page."""
    # The first base with an address counts (HTML 4.2.3), the first charset and the first refresh (4.2.5.3).
    metas = [meta.attributes for meta in tree.tagged("meta")]
    refreshes = (meta for meta in metas if meta.get("http-equiv", "").lower() == "refresh")
    markup = Markup(
        tree,
        base=next((base.attributes["href"] for base in tree.tagged("base") if "href" in base.attributes), None),
        charset=next((meta["charset"] for meta in metas if "charset" in meta), None),
        refresh=next((meta["content"] for meta in refreshes if "content" in meta), None),
    )
    # A form between the parts of a table ends up empty, and yet owns the controls after it in that table (HTML
    # 13.2.6.4.9: the form element pointer outlives the element). These are such parts with their forms.
    tables: dict[Place, Place] = {}
    # Elements still to be visited, the next one last: place, node, and the enclosing form, disabling fieldset and
    # datalist. A shadow root is a tree of its own, without any of them.
    waiting: list[tuple[Place, Node, Place | None, bool, bool]] = [("0", tree.body, None, False, False)]
    while waiting:
        place, node, form, disabled, in_datalist = waiting.pop()
        tag, attributes = node.tag, node.attributes
        if attributes.get("id"):
            markup.ids.setdefault(attributes["id"], place)
        disables_inside = False
        if tag == "form":
            form = place
            markup.forms[place] = node
            if node.parent is not None and node.parent.tag in _TABLE_PARTS and not node.children:
                tables[parent_of(place)] = place
        elif tag in CONTROL_TAGS:
            owner, outer = form, parent_of(place)
            while tables and owner is None and outer:
                owner, outer = tables.get(outer), parent_of(outer)
            is_off = (disabled or "disabled" in attributes) and tag not in ("object", "output")
            markup.controls[place] = Control(node, place, owner, is_off, in_datalist)
            disables_inside = tag == "fieldset" and "disabled" in attributes
        elif tag == "label":
            markup.labels[place] = node
        elif tag == "datalist":
            in_datalist = True
        inside: list[tuple[Place, Node, Place | None, bool, bool]] = []
        legend_is_next = disables_inside
        for number, child in enumerate(node.children):
            if isinstance(child, Template) and child.shadow_mode:
                roots = enumerate(child.content)
                inside.extend((f"{place}{SHADOW}/{n}", root, None, False, False) for n, root in roots)
            elif child.tag == "legend" and legend_is_next:  # the first legend of a disabled fieldset is not disabled
                legend_is_next = False
                inside.append((f"{place}/{number}", child, form, disabled, in_datalist))
            elif child.tag:
                inside.append((f"{place}/{number}", child, form, disabled or disables_inside, in_datalist))
        inside.reverse()
        waiting += inside
    for place, control in markup.controls.items():
        # The `form` attribute names the owner, even outside of the form; an unknown id leaves no owner (4.10.18.3).
        form_id = control.node.attributes.get("form")
        if form_id is not None:
            owner = markup.ids.get(form_id)
            control = markup.controls[place] = replace(control, form=owner if owner in markup.forms else None)
        if control.name and kind_of(control.node) == "radio":
            group = control.form, control.name
            markup.groups.setdefault(group, []).append(control)
            if "checked" in control.node.attributes:
                markup.checked[group] = control
    return markup
