"""The parts of a page that a browser acts on: controls, their forms and labels, and their state.

The markup is read in one walk over the tree when a page is first acted on. The state of the controls is an overlay, by
place, so that an unchanged page needs no more memory than its bytes: whatever is not in the overlay is as in the HTML.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from typing import Final, TypeAlias

from awp_publish.pages.options import read_options
from awp_publish.pages.tree import SHADOW, Node, Template, Tree
from awp_publish.schema import JsonObject

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


INPUT_KINDS: Final = frozenset(
    {
        *("hidden", "text", "search", "tel", "url", "email", "password"),
        *("date", "month", "week", "time", "datetime-local", "number", "range", "color"),
        *("checkbox", "radio", "file", "submit", "image", "reset", "button"),
    }
)
_BUTTON_KINDS: Final = frozenset({"submit", "reset", "button"})
_NEVER_LABELLED: Final = frozenset({"hidden", "object", "fieldset"})


def kind_of(node: Node) -> str:
    """Return the type of an input or a button, or the tag of another control; unknown types are the default type."""
    kind = node.attributes.get("type", "").lower()
    if node.tag == "input":
        return kind if kind in INPUT_KINDS else "text"
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
        named = control.node.attributes.get("form")
        if named is not None:
            owner = markup.ids.get(named)
            control = markup.controls[place] = replace(control, form=owner if owner in markup.forms else None)
        if control.name and kind_of(control.node) == "radio":
            group = control.form, control.name
            markup.groups.setdefault(group, []).append(control)
            if "checked" in control.node.attributes:
                markup.checked[group] = control
    return markup


BLANKS: Final = "\t\n\f\r "
"""ASCII whitespace, which HTML strips."""

_NUMBER: Final = r"-?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d{1,4})?"
_DATE: Final = r"(?P<year>\d{4,})-(?P<month>\d\d)-(?P<day>\d\d)"
_TIME: Final = r"(?P<hour>[01]\d|2[0-3]):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d)(?:\.(?P<fraction>\d{1,3}))?)?"
_SCALED: Final[Mapping[str, re.Pattern[str]]] = {
    "number": re.compile(_NUMBER, re.ASCII),
    "range": re.compile(_NUMBER, re.ASCII),
    "date": re.compile(_DATE, re.ASCII),
    "month": re.compile(r"(?P<year>\d{4,})-(?P<month>\d\d)", re.ASCII),
    "week": re.compile(r"(?P<year>\d{4,})-W(?P<week>\d\d)", re.ASCII),
    "time": re.compile(_TIME, re.ASCII),
    "datetime-local": re.compile(f"{_DATE}[T ]{_TIME}", re.ASCII),
}
SCALED: Final = frozenset(_SCALED)
"""The types whose values are ordered, and so have a smallest and a largest value."""
FORMATS: Final[Mapping[str, str]] = {
    "number": "a number such as 3 or -1.5",
    "range": "a number such as 3 or -1.5",
    "date": "a date such as 2026-05-31",
    "month": "a month such as 2026-05",
    "week": "a week such as 2026-W22",
    "time": "a time such as 18:30",
    "datetime-local": "a date and time such as 2026-05-31T18:30",
    "color": "a colour such as #ff8800",
}
"""The syntax of a type's values, for messages."""
COLOUR: Final = re.compile(r"#[0-9a-fA-F]{6}")

_LARGEST_DOUBLE: Final = Decimal("1.8e308")
_DAY: Final = 86_400_000
_FIRST_DAY: Final = date(1970, 1, 1).toordinal()


def sanitise(kind: str, value: str, attributes: Mapping[str, str]) -> str:
    """Return the value that an input of a type has after it is set to a text (HTML 4.10.5.1)."""
    if kind in ("text", "search", "tel", "password", "url", "email"):
        value = value.replace("\r", "").replace("\n", "")
        if kind == "email" and "multiple" in attributes:
            return ",".join(part.strip(BLANKS) for part in value.split(","))
        return value.strip(BLANKS) if kind in ("url", "email") else value
    if kind == "color":
        return value.lower() if COLOUR.fullmatch(value) else "#000000"
    if kind == "file":
        return ""
    if kind == "range":
        return _sanitise_slider(value, attributes)
    if kind in SCALED and number_of(kind, value) is None:
        return ""
    if kind == "datetime-local" and (found := _SCALED[kind].fullmatch(value)):
        # With a T as the separator, and the shortest possible time (HTML 2.3.5.5).
        fraction = (found["fraction"] or "").rstrip("0")
        seconds = f":{found['second']}" if fraction or found["second"] not in (None, "00") else ""
        day = value[: found.start("hour") - 1]
        return f"{day}T{found['hour']}:{found['minute']}{seconds}" + (f".{fraction}" if fraction else "")
    return value


def _sanitise_slider(value: str, attributes: Mapping[str, str]) -> str:
    """Return a slider's value: the middle by default, on a step and within its limits (4.10.5.1.13)."""
    declared = {name: number_of("range", attributes.get(name, "")) for name in ("min", "max", "value")}
    smallest = Decimal(0) if declared["min"] is None else declared["min"]
    largest = Decimal(100) if declared["max"] is None else declared["max"]
    given = number_of("range", value)
    number = smallest + max(largest - smallest, Decimal(0)) / 2 if given is None else given
    number = max(smallest, min(number, largest)) if largest >= smallest else smallest
    step_text = attributes.get("step", "").strip()
    if step_text.lower() != "any":
        # Steps are counted from min or else from the initial value (4.10.5.3.8). The value is rounded to the nearest
        # step that is not too large, of two equally near ones the larger.
        step = number_of("number", step_text)
        step = Decimal(1) if step is None or step <= 0 else step
        base = next((one for one in (declared["min"], declared["value"]) if one is not None), Decimal(0))
        rounded = base + ((number - base) / step).to_integral_value(ROUND_HALF_UP) * step
        number = rounded - step if number <= largest < rounded else rounded
    if number == given:
        return value
    return str(int(number)) if number == number.to_integral_value() else str(number.normalize()).lower()


def number_of(kind: str, value: str) -> Decimal | None:
    """Return a value as a number on the scale of its type, or None if it is invalid.

    Numbers are themselves; months are counted since 1970, dates, weeks and times in milliseconds.
    """
    form = _SCALED.get(kind)
    found = form.fullmatch(value) if form is not None and len(value) <= 100 else None
    if found is None:
        return None
    if kind in ("number", "range"):
        number = Decimal(value)
        return number if abs(number) < _LARGEST_DOUBLE else None
    parts = {name: int(digits) for name, digits in found.groupdict("0").items() if name != "fraction"}
    year, month = parts.get("year", 0), parts.get("month", 0)
    if kind == "month":
        return Decimal((year - 1970) * 12 + month - 1) if year > 0 and 1 <= month <= 12 else None
    clock = 0
    if "hour" in parts:
        clock = ((parts["hour"] * 60 + parts["minute"]) * 60 + parts["second"]) * 1000
        clock += int((found["fraction"] or "0").ljust(3, "0"))
    if kind == "time":
        return Decimal(clock)
    try:
        day = date.fromisocalendar(year, parts["week"], 1) if kind == "week" else date(year, month, parts["day"])
    except (ValueError, OverflowError):
        return None
    return Decimal((day.toordinal() - _FIRST_DAY) * _DAY + clock)


@dataclass(frozen=True, slots=True)
class Changed:
    """The changed state of one control; None means as in the HTML.

    `selected` has the numbers of a select's chosen options, `open` is for details.
    """

    value: str | None = None
    checked: bool | None = None
    selected: frozenset[int] | None = None
    open: bool | None = None


Overlay: TypeAlias = Mapping[Place, Changed]
PRISTINE: Final[Overlay] = {}


def value_of(control: Control, overlay: Overlay) -> str:
    """Return the value of an input or a textarea (HTML 4.10.5.4), sanitised according to its type."""
    state = overlay.get(control.place)
    if state is not None and state.value is not None:
        return state.value
    kind = kind_of(control.node)
    if kind == "textarea":
        return read_text(control.node).replace("\r\n", "\n").replace("\r", "\n")
    return sanitise(kind, control.node.attributes.get("value", ""), control.node.attributes)


def is_checked(control: Control, overlay: Overlay, markup: Markup) -> bool:
    """Return True if a checkbox or radio button is checked; of a group in which the HTML checks several, the last one.

    A choice in a group is recorded for all of its members, so the group of an unchanged one is unchanged.
    """
    state = overlay.get(control.place)
    if state is not None and state.checked is not None:
        return state.checked
    if "checked" not in control.node.attributes:
        return False
    is_grouped = kind_of(control.node) == "radio" and control.name
    return not is_grouped or markup.checked[control.form, control.name] is control


def is_open(place: Place, details: Node, overlay: Overlay) -> bool:
    """Return True if details are open."""
    state = overlay.get(place)
    return "open" in details.attributes if state is None or state.open is None else state.open


@dataclass(frozen=True, slots=True)
class SelectOption:
    """One option of a select; `number` is its index."""

    number: int
    node: Node
    value: str
    text: str
    label: str
    disabled: bool


def options_of(select: Node) -> list[SelectOption]:
    """Return the options of a select: its children, and those of its groups (HTML 4.10.7)."""
    found: list[SelectOption] = []
    for number, option in enumerate(read_options(select.tree, select.at)):
        node = select.tree.node(option.node)
        text = " ".join(read_text(node).split())
        label = node.attributes.get("label") or text
        value = node.attributes.get("value", text)
        found.append(SelectOption(number, node, value, text or label, label, option.is_disabled))
    return found


def selected_options(control: Control, overlay: Overlay) -> list[SelectOption]:
    """Return the chosen options. A one-line menu without a choice shows its first enabled option (4.10.7)."""
    options = options_of(control.node)
    state = overlay.get(control.place)
    if state is not None and state.selected is not None:
        return [option for option in options if option.number in state.selected]
    chosen = [option for option in options if "selected" in option.node.attributes]
    if "multiple" in control.node.attributes:
        return chosen
    if chosen or display_size(control.node) > 1:
        return chosen[-1:]
    return [option for option in options if not option.disabled][:1]


def display_size(select: Node) -> int:
    """Return the number of lines that a select shows (4.10.7)."""
    size = select.attributes.get("size", "")
    if size.isascii() and size.isdigit() and int(size[:9]) > 0:
        return int(size[:9])
    return 4 if "multiple" in select.attributes else 1


def read_text(node: Node) -> str:
    """Return the text of an element and its descendants without scripts, as the text of an option is defined."""
    parts: list[str] = []
    waiting = [node]
    while waiting:
        inner = waiting.pop()
        if not inner.tag:
            parts.append(inner.text)
        elif inner.tag != "script":
            waiting.extend(reversed(inner.children))
    return "".join(parts)


# --- The elements of a SOM document, which is made from the same tree ---


def regions_of(document: JsonObject) -> list[JsonObject]:
    """Return the regions of a SOM document."""
    return _objects(document.get("regions"))


def elements_of(document: JsonObject) -> Iterator[JsonObject]:
    """Iterate over the elements of a SOM document in document order, those of shadow roots after their hosts."""
    for region in regions_of(document):
        waiting = list(reversed(_objects(region.get("elements"))))
        while waiting:
            element = waiting.pop()
            yield element
            shadow = element.get("shadow")
            inner = _objects(element.get("children"))
            inner += _objects(shadow.get("elements")) if isinstance(shadow, Mapping) else []
            waiting.extend(reversed(inner))


def _objects(value: object) -> list[JsonObject]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
