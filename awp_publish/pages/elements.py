"""The third pass: from an entry of the survey to an element of SOM, without its id (SOM 1.0, section 4)."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias, TypeVar

from awp_publish.pages.names import Names, collapse
from awp_publish.pages.regions import DISABLED, INERT, Entry, Survey
from awp_publish.pages.roles import ACTIONS, input_type
from awp_publish.pages.tables import Said, read_cells
from awp_publish.pages.tree import Node

# --- The `attrs` that any element may have ---
# Each attribute of the page is looked up in one table, so an element costs what it has and not what there could be.

Value: TypeAlias = "str | int | bool | list[Value] | dict[str, Value] | None"
Attrs: TypeAlias = dict[str, Value]
_Reading: TypeAlias = Callable[[str], Value]

MOST_VALUE: Final = 4_096
"""Characters of an attribute's value; an address that is longer is an embedded file."""

_INTEGER: Final = re.compile(r"\s*-?\d{1,15}\s*\Z", re.ASCII)


def shorten_address(address: str) -> str:
    """An address, or the beginning of one that is a file embedded in the page."""
    return address if len(address) <= MOST_VALUE else f"{address[:100]}..."


def _text(value: str) -> Value:
    return value[:MOST_VALUE] or None


def _flag(value: str) -> Value:
    return True


def _flag_or_text(value: str) -> Value:
    """`true`, `false`, or what else it says; without a value it is true."""
    return {"": True, "true": True, "false": False}.get(value.strip().lower(), value[:MOST_VALUE])


def _number(value: str) -> Value:
    return int(value) if _INTEGER.match(value) else _text(value)


def _only_true(value: str) -> Value:
    return True if value.strip().lower() == "true" else None


def _state(value: str) -> Value:
    """A state of ARIA that is true, false, or a word."""
    return {"true": True, "false": False}.get(value.strip().lower(), value.strip()[:MOST_VALUE] or None)


def _truth(value: str) -> Value:
    """A state of ARIA that is true or false; what else it says is left out."""
    return {"true": True, "false": False}.get(value.strip().lower())


_TEXTS: Final = (
    *("accept", "accesskey", "autocapitalize", "autocomplete", "command", "commandfor", "dirname", "enterkeyhint"),
    *("form", "formaction", "formenctype", "formmethod", "formtarget", "inputmode", "list", "name", "pattern"),
    *("popovertarget", "popovertargetaction", "step", "title"),
)
_READINGS: Final[Mapping[str, tuple[str, _Reading]]] = {
    **{name: (name, _text) for name in _TEXTS},
    **{name: (name, _number) for name in ("max", "maxlength", "min", "minlength", "tabindex")},
    **{name: (name, _flag_or_text) for name in ("capture", "contenteditable", "draggable", "spellcheck")},
    "popover": ("popover", lambda value: value or "auto"),
    "formnovalidate": ("formnovalidate", _flag),
    "readonly": ("readonly", _flag),
    "aria-readonly": ("readonly", _only_true),
    "aria-required": ("required", _only_true),
    "aria-disabled": ("disabled", _only_true),
    "role": ("source_role", _text),
    "data-testid": ("test_id", _text),
    "data-test": ("test_id", _text),
    "data-qa": ("test_id", _text),
    "aria-description": ("description", _text),
}
_ARIA_TRUTHS: Final = (
    *("atomic", "busy", "disabled", "expanded", "grabbed", "hidden", "multiline", "multiselectable", "pressed"),
    *("readonly", "selected"),
)
_ARIA_STATES: Final = ("checked", "current", "haspopup", "invalid")
_ARIA_TEXTS: Final = (
    *("autocomplete", "controls", "describedby", "details", "dropeffect", "errormessage", "flowto", "keyshortcuts"),
    *("label", "labelledby", "level", "live", "orientation", "owns", "placeholder", "posinset", "relevant"),
    *("roledescription", "setsize", "sort", "valuemax", "valuemin", "valuenow", "valuetext"),
)
_ARIA: Final[Mapping[str, tuple[str, _Reading]]] = {
    **{f"aria-{name}": (name, _truth) for name in _ARIA_TRUTHS},
    **{f"aria-{name}": (name, _state) for name in _ARIA_STATES},
    **{f"aria-{name}": (name, lambda value: value.strip()[:MOST_VALUE] or None) for name in _ARIA_TEXTS},
    "aria-activedescendant": ("active_descendant", lambda value: value.strip()[:MOST_VALUE] or None),
}


def read_common(attributes: Mapping[str, str]) -> Attrs:
    """The attributes that mean the same on every element (4.3, global actionability; 4.4, ARIA states)."""
    read: Attrs = {}
    states: Attrs = {}
    for name, given in attributes.items():
        if name in _READINGS:
            key, reading = _READINGS[name]
            value = reading(given)
            if value is not None:
                read.setdefault(key, value)
        if name in _ARIA:
            key, reading = _ARIA[name]
            value = reading(given)
            if value is not None:
                states[key] = value
    if states:
        read["aria"] = states
    return read


# --- Hints from the classes of an element ---

_TRIGGERS: Final = {
    "primary": "primary|cta",
    "secondary": "secondary",
    "danger": "danger|destructive|delete",
    "warning": "warning|caution",
    "success": "success",
    "error": "error|invalid",
    "disabled": "disabled",
    "active": "active|current",
    "selected": "selected|checked",
    "hidden": "hidden|sr-only",
    "loading": "loading|spinner|skeleton",
    "collapsed": "collapsed|is-closed",
    "expanded": "expanded|is-open|show",
    "large": "lg|large|xl",
    "small": "sm|small|xs|mini",
    "card": "(?<!dis)card",
    "hero": "hero|jumbotron|banner",
    "modal": "modal|dialog|popup|overlay",
    "notification": "toast|snackbar|notification|alert",
    "badge": "badge|chip|tag|pill",
    "sticky": "sticky|fixed|pinned",
    "required": "required|mandatory",
}
_PATTERNS: Final = tuple(sorted((hint, re.compile(words)) for hint, words in _TRIGGERS.items()))
MOST_CHARACTERS: Final = 500
"""Characters of a `class` attribute that are read."""


@lru_cache(maxsize=1_024)
def hints_of(classes: str) -> tuple[str, ...]:
    """The hints of a `class` attribute, sorted. The pages of a site have the same classes, so they are kept."""
    text = classes.lower()
    return tuple(hint for hint, pattern in _PATTERNS if pattern.search(text))


# --- Texts, items and rows cut to size, and a record of what was cut (SOM 1.0, sections 4.6 and 8.2) ---

_LEAST_SENTENCE: Final = 0.4
"""A text is cut after a sentence when that keeps so much of what it may have (4.6)."""

_LEAST_CELL: Final = 20
_LEAST_COLUMN: Final = 8
"""A row has so many times fewer cells than it may have characters."""

_OPTIONS: Final = 100
"""Options of a select that is not said whole."""

_OptionT = TypeVar("_OptionT", bound=Mapping[str, object])


@dataclass(slots=True)
class Shortened:
    """How many texts were cut, how many items, rows and options of an element left out, and of how many characters."""

    texts: int = 0
    items: int = 0
    rows: int = 0
    options: int = 0
    characters: int = 0

    def add(self, other: "Shortened") -> None:
        """Counts what was left out of another element too."""
        self.texts += other.texts
        self.items += other.items
        self.rows += other.rows
        self.options += other.options
        self.characters += other.characters


@dataclass(frozen=True, slots=True)
class Limits:
    """How large one element may be: characters of a text, an item or a row, and how many items or rows.

    None is no limit. `compact` leaves of a link only its text, or else its label, and where it leads.
    """

    characters: int | None = None
    units: int | None = None
    compact: bool = False

    def shorten(self, text: str, shortened: Shortened) -> str:
        """The text, or the beginning of it."""
        if self.characters is None or len(text) <= self.characters:
            return text
        kept = shorten_text(text, self.characters)
        shortened.texts += 1
        shortened.characters += max(len(text) - len(kept), 0)
        return kept

    def shorten_all(self, texts: Sequence[str], shortened: Shortened) -> list[str]:
        """Each text, or the beginning of it."""
        return [self.shorten(text, shortened) for text in texts]

    def take(self, items: Sequence[str], shortened: Shortened) -> list[str]:
        """As many items of a list as there is room for, and in words how many more there are (8.2)."""
        kept, more = self.shorten_all(items[: self.units], shortened), items[len(items[: self.units]) :]
        shortened.items += len(more)
        shortened.characters += sum(map(len, more))
        return [*kept, f"[{len(more)} more items]"] if more else kept

    def take_rows(self, rows: Sequence[list[str]], shortened: Shortened) -> list[list[str]]:
        """As many rows of a table as there is room for."""
        kept = [self._cells(self.take_columns(row, shortened), shortened) for row in rows[: self.units]]
        more = rows[len(kept) :]
        shortened.rows += len(more)
        shortened.characters += sum(len(cell) for row in more for cell in row)
        return kept

    def take_columns(self, cells: list[str], shortened: Shortened) -> list[str]:
        """As many cells of a row as there is room for: all, unless nearly nothing could be said in each."""
        if self.characters is None:
            return cells
        most = max(self.characters // _LEAST_COLUMN, 1)
        more = cells[most:]
        shortened.texts += bool(more)
        shortened.characters += sum(map(len, more))
        return cells[:most] if more else cells

    def _cells(self, row: list[str], shortened: Shortened) -> list[str]:
        if self.characters is None or sum(map(len, row)) <= self.characters:
            return row
        return Limits(max(self.characters // len(row), _LEAST_CELL)).shorten_all(row, shortened)

    def take_options(self, options: Sequence[_OptionT], shortened: Shortened) -> list[_OptionT]:
        """As many options of a select as there is room for, and those that are selected."""
        if self.characters is None:
            return list(options)
        kept = [option for place, option in enumerate(options) if place < _OPTIONS or "selected" in option]
        shortened.options += len(options) - len(kept)
        return kept


def shorten_text(text: str, most: int) -> str:
    """At most so many characters of a text: whole sentences when they are enough of it, else whole words and "..."."""
    if len(text) <= most:
        return text
    window = text[:most]
    sentence = max(window.rfind(mark) for mark in ".!?") + 1
    if sentence >= most * _LEAST_SENTENCE:
        return window[:sentence]
    room = window[: max(most - 3, 0)]
    word = room.rfind(" ")
    return (room[:word] if word > 0 else room) + "..."


# --- The `attrs` of form controls (SOM 1.0, section 4.3) ---

_BUTTONS: Final = ("submit", "button", "reset", "image")
_FLAGS: Final = ("required", "disabled", "multiple")
_FLAGS_OF_INPUTS: Final = ("required", "disabled", "checked", "multiple")


def read_control(node: Node, said: Said, limits: Limits, shortened: Shortened) -> Attrs:
    """What a native control is, holds, and asks for."""
    if node.tag == "input":
        return _input(node)
    if node.tag == "select":
        return _select(node, said, limits, shortened)
    attrs: Attrs = {}
    if node.tag == "button":
        given = node.attributes.get("type", "").strip().lower()
        attrs["button_type"] = given if given in ("button", "reset") else "submit"
        _keep(node, attrs, ("value",))
    else:
        value = "".join(child.text for child in node.children)
        if value:
            attrs["value"] = value[:MOST_VALUE]
        _keep(node, attrs, ("placeholder",))
    return _flagged(node, attrs, _FLAGS[:2])


def _input(node: Node) -> Attrs:
    kind, attributes = input_type(node), node.attributes
    attrs: Attrs = {"input_type": kind}
    if kind in _BUTTONS:
        attrs["button_type"] = "submit" if kind == "image" else kind
    _keep(node, attrs, ("value", "placeholder"))
    if kind == "image":
        _keep(node, attrs, ("alt",))
        if attributes.get("src"):
            attrs["src"] = shorten_address(attributes["src"])
    if kind == "radio" and attributes.get("name"):
        attrs["group"] = attributes["name"]
    return _flagged(node, attrs, _FLAGS_OF_INPUTS)


def _keep(node: Node, attrs: Attrs, names: tuple[str, ...]) -> None:
    attrs.update({name: node.attributes[name][:MOST_VALUE] for name in names if node.attributes.get(name)})


def _flagged(node: Node, attrs: Attrs, flags: tuple[str, ...]) -> Attrs:
    attrs.update({flag: True for flag in flags if flag in node.attributes})
    return attrs


def _select(node: Node, said: Said, limits: Limits, shortened: Shortened) -> Attrs:
    multiple = "multiple" in node.attributes
    options = list(_options(node, said))
    if not multiple and not any(option.get("selected") for option in options):
        chosen = next((option for option in options if "disabled" not in option), None)
        if chosen is not None:
            chosen["selected"] = True
    selected = [option["value"] for option in options if option.get("selected")]
    attrs: Attrs = {}
    kept = limits.take_options(options, shortened)
    if kept:
        attrs["options"] = [{**option} for option in kept]
    if selected:
        attrs["value"] = selected[0] if multiple else selected[-1]
    if multiple and selected:
        attrs["selected_values"] = selected
    size = node.attributes.get("size", "").strip()
    if size:
        attrs["size"] = int(size) if size.isascii() and size.isdecimal() and len(size) < 16 else size[:MOST_VALUE]
    return _flagged(node, attrs, _FLAGS)


def _options(select: Node, said: Said) -> Iterator[Attrs]:
    """Every option, in order, with what its group says of it."""
    waiting: list[tuple[Node, str, bool]] = [(select, "", False)]
    while waiting:
        node, group, disabled = waiting.pop()
        if node.tag == "option":
            yield _option(node, said, group, disabled)
            continue
        if node.tag == "optgroup":
            group, disabled = node.attributes.get("label", ""), "disabled" in node.attributes
        waiting.extend((child, group, disabled) for child in reversed(node.children) if child.tag)


def _option(node: Node, said: Said, group: str, disabled: bool) -> Attrs:
    text = said(node) or node.attributes.get("label", "")
    option: Attrs = {"value": node.attributes.get("value", text)[:MOST_VALUE], "text": text}
    if group:
        option["group"] = group
    if "selected" in node.attributes:
        option["selected"] = True
    if disabled or "disabled" in node.attributes:
        option["disabled"] = True
    return option


SomElement = dict[str, Any]
"""An element as its JSON will be."""

_LINK: Final = ("href", "target", "rel", "hreflang", "type", "referrerpolicy")
_FRAME: Final = ("name", "sandbox", "allow", "width", "height")
_SRCDOC_PREVIEW: Final = 200
_WITHOUT_TEXT: Final = frozenset(("group", "list", "section", "table"))
"""Roles that never carry text: what they hold follows, or is in their attributes (8.2)."""


@dataclass(slots=True)
class Made:
    """An element, and what of it was left out."""

    element: SomElement
    shortened: Shortened


class Elements:
    """The making of elements of one page."""

    __slots__ = ("_names", "_survey")

    def __init__(self, survey: Survey, names: Names) -> None:
        self._survey, self._names = survey, names

    def make(self, entry: Entry, limits: Limits) -> Made:
        """The element of an entry, in the order of members of 4.1. The id is the caller's to give."""
        shortened = Shortened()
        node, role, attributes = entry.node, entry.role, entry.node.attributes
        whole = "" if role in _WITHOUT_TEXT else self._survey.text(entry)
        text = limits.shorten(whole, shortened)
        label = self._names.label(node, whole) if node.tag else ""
        element: SomElement = {"id": "", "role": role}
        if attributes.get("id", "").strip():
            element["html_id"] = attributes["id"].strip()
        if text:
            element["text"] = text
        if label and not (limits.compact and role == "link" and text):
            element["label"] = limits.shorten(label, shortened)
        if role in ACTIONS:
            element["actions"] = list(ACTIONS[role])
        attrs = self._attrs(entry, text, label, limits, shortened)
        if attrs:
            element["attrs"] = attrs
        hints = hints_of(attributes.get("class", "")[:MOST_CHARACTERS])
        if hints:
            element["hints"] = list(hints)
        return Made(element, shortened)

    def _attrs(self, entry: Entry, text: str, label: str, limits: Limits, shortened: Shortened) -> Attrs:
        node, role = entry.node, entry.role
        if not node.tag:
            return {}
        if role == "link" and limits.compact:
            return {"href": shorten_address(node.attributes["href"])} if "href" in node.attributes else {}
        attrs = self._own(node, role, limits, shortened)
        if node.attributes:
            attrs.update((key, value) for key, value in read_common(node.attributes).items() if key not in attrs)
        if role == "link" and attrs.get("title") in (text, label):
            attrs.pop("title", None)
        self._inherit(entry, attrs)
        return attrs

    def _inherit(self, entry: Entry, attrs: Attrs) -> None:
        """What holds for an element because of others: an inert part of the page, a fieldset, a description."""
        attributes = entry.node.attributes
        if entry.state & INERT or "inert" in attributes:
            attrs["inert"] = True
        if entry.state & DISABLED and entry.role in ACTIONS and entry.role not in ("link", "details"):
            attrs["disabled"] = True
        described = self._names.referred(attributes.get("aria-describedby"))
        if described:
            attrs["description"] = described

    def _own(self, node: Node, role: str, limits: Limits, shortened: Shortened) -> Attrs:
        """What tag and role bring along. A link that is called a button still leads somewhere."""
        if node.tag in ("input", "textarea", "select", "button"):
            return read_control(node, self._survey.said, limits, shortened)
        leads = role in ACTIONS and node.tag in ("a", "area") and "href" in node.attributes
        reading = _BY_ROLE.get("link" if leads else role)
        return reading(node, self._survey.said, limits, shortened) if reading is not None else {}


def _link(node: Node, said: Said, limits: Limits, shortened: Shortened) -> Attrs:
    attributes = node.attributes
    attrs: Attrs = {name: shorten_address(attributes[name]) for name in _LINK if name in attributes}
    if attrs.get("rel") == "nofollow":  # meant for search engines; it says nothing of the link
        del attrs["rel"]
    if "download" in attributes:
        attrs["download"] = attributes["download"] or True
    return attrs


def _heading(node: Node, said: Said, limits: Limits, shortened: Shortened) -> Attrs:
    native = node.tag[1:] if node.tag in ("h1", "h2", "h3", "h4", "h5", "h6") else ""
    level = node.attributes.get("aria-level", "").strip() or native or "2"
    return {"level": int(level) if level in ("1", "2", "3", "4", "5", "6") else int(native or 2)}


def _image(node: Node, said: Said, limits: Limits, shortened: Shortened) -> Attrs:
    attributes = node.attributes
    attrs: Attrs = {"alt": collapse(attributes["alt"])} if "alt" in attributes else {}
    if "src" in attributes:
        attrs["src"] = shorten_address(attributes["src"])
    return attrs


def _list(node: Node, said: Said, limits: Limits, shortened: Shortened) -> Attrs:
    items = (said(item) for item in node.children if item.tag == "li")
    kept = limits.take([text for text in items if text], shortened)
    attrs: Attrs = {"ordered": node.tag == "ol"}
    if kept:
        attrs["items"] = [{"text": text} for text in kept]
    return attrs


def _table(node: Node, said: Said, limits: Limits, shortened: Shortened) -> Attrs:
    """Headers and rows. The schema has no place for the caption of 4.3: it is the table's label."""
    cells = read_cells(node, said)
    rows = limits.take_rows(cells.rows, shortened)
    attrs: Attrs = {}
    if cells.headers:
        attrs["headers"] = list[Value](limits.shorten_all(limits.take_columns(cells.headers, shortened), shortened))
    if rows:
        attrs["rows"] = [list[Value](row) for row in rows]
    return attrs


def _section(node: Node, said: Said, limits: Limits, shortened: Shortened) -> Attrs:
    name = collapse(node.attributes.get("aria-label"))
    return {"section_label": name} if name else {}


def _group(node: Node, said: Said, limits: Limits, shortened: Shortened) -> Attrs:
    if node.tag != "fieldset":
        return {}
    legend = next((child for child in node.children if child.tag == "legend"), None)
    attrs: Attrs = {"legend": said(legend) or ""} if legend is not None else {}
    if "disabled" in node.attributes:
        attrs["disabled"] = True
    return attrs


def _details(node: Node, said: Said, limits: Limits, shortened: Shortened) -> Attrs:
    summary = next((child for child in node.children if child.tag == "summary"), None)
    attrs: Attrs = {"open": "open" in node.attributes}
    if summary is not None:
        attrs["summary"] = limits.shorten(said(summary) or "", shortened)
    return attrs


def _iframe(node: Node, said: Said, limits: Limits, shortened: Shortened) -> Attrs:
    attributes = node.attributes
    attrs: Attrs = {"src": shorten_address(attributes["src"])} if attributes.get("src") else {}
    if "srcdoc" in attributes:
        attrs["has_srcdoc"] = True
        attrs["srcdoc_preview"] = collapse(attributes["srcdoc"])[:_SRCDOC_PREVIEW]
    attrs.update({name: attributes[name] for name in _FRAME if attributes.get(name)})
    return attrs


_BY_ROLE: Final[Mapping[str, Callable[[Node, Said, Limits, Shortened], Attrs]]] = {
    "link": _link,
    "heading": _heading,
    "image": _image,
    "list": _list,
    "table": _table,
    "section": _section,
    "group": _group,
    "details": _details,
    "iframe": _iframe,
}
