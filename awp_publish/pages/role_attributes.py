"""The `attrs` of an element that depend on its tag and role (SOM 1.0, section 4.3)."""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from awp_publish.pages.attributes import MAX_VALUE_LENGTH, Attrs, Value, shorten_address
from awp_publish.pages.input_types import BUTTONS, input_type
from awp_publish.pages.name_content import collapse
from awp_publish.pages.names import AccessibleNames
from awp_publish.pages.options import read_options
from awp_publish.pages.roles import ACTIONS
from awp_publish.pages.shortening import CHARACTERS, SHORTENED, ElementLimits, Losses
from awp_publish.pages.survey import Survey
from awp_publish.pages.tables import read_cells
from awp_publish.pages.tree import Tree, written_in

_LINK: Final = ("href", "target", "rel", "hreflang", "type", "referrerpolicy")
_FRAME: Final = ("name", "sandbox", "allow", "width", "height")
_MAX_SRCDOC: Final = 200
_MIN_CELL: Final = 20
_MIN_COLUMN: Final = 8
"""The characters that each cell and each column of a row need at least."""

_MAX_OPTIONS: Final = 100
"""Options of a select that is not written in full."""

_LEVELS: Final = ("1", "2", "3", "4", "5", "6")

_Reading: TypeAlias = "Callable[[RoleAttributes, int, ElementLimits, Losses], Attrs]"


class RoleAttributes:
    """Reads such attributes in one page. `address` resolves an address, `has_base` means that it changes some."""

    __slots__ = ("_address", "_has_base", "_names", "_survey", "_tree")

    def __init__(
        self, tree: Tree, survey: Survey, names: AccessibleNames, address: Callable[[str], str], has_base: bool
    ) -> None:
        self._tree, self._survey, self._names = tree, survey, names
        self._address, self._has_base = address, has_base

    def of(self, node: int, role: str, limits: ElementLimits, losses: Losses) -> Attrs:
        """Return the attributes of an element. A link with the role of a button keeps its address."""
        tag = self._tree.tags[node]
        if role == "select":
            read: _Reading | None = RoleAttributes._select if tag == "select" else RoleAttributes._choice
        elif role in ACTIONS and tag in ("a", "area") and "href" in self._tree.attributes[node]:
            read = RoleAttributes._link
        else:
            read = _BY_TAG.get(tag) or _BY_ROLE.get(role)
        return read(self, node, limits, losses) if read is not None else {}

    def _select(self, node: int, limits: ElementLimits, losses: Losses) -> Attrs:
        attrs: Attrs = {}
        options: list[Attrs] = []
        attributes = self._tree.attributes[node]
        for item in read_options(self._tree, node):
            own = self._tree.attributes[item.node]
            text = self._survey.part_text(item.node) or own.get("label", "")
            option: Attrs = {"value": own.get("value", text)[:MAX_VALUE_LENGTH], "text": text}
            facts: Attrs = {"group": item.group, "selected": item.is_selected, "disabled": item.is_disabled}
            options.append({**option, **{name: value for name, value in facts.items() if value}})
        kept = [option for place, option in enumerate(options) if place < _MAX_OPTIONS or "selected" in option]
        if limits.characters is None:
            kept = options
        if len(kept) < len(options):
            losses["more options"] += len(options) - len(kept)
        if kept:
            attrs["options"] = [*kept]
        if selected := [option["value"] for option in options if "selected" in option]:
            attrs["value"] = selected[0] if "multiple" in attributes else selected[-1]
            attrs.update({"selected_values": selected} if "multiple" in attributes else {})
        if size := attributes.get("size", "").strip():
            is_number = size.isascii() and size.isdecimal() and len(size) < 16
            attrs["size"] = int(size) if is_number else size[:MAX_VALUE_LENGTH]
        return attrs | _flags(attributes, "required", "disabled", "multiple")

    def _input(self, node: int, limits: ElementLimits, losses: Losses) -> Attrs:
        attributes = self._tree.attributes[node]
        kind = input_type(attributes)
        attrs: Attrs = {"input_type": kind}
        if kind in BUTTONS:
            attrs["button_type"] = "submit" if kind == "image" else kind
        attrs |= _texts(attributes, "placeholder") if kind == "password" else _texts(attributes, "value", "placeholder")
        if kind == "image":
            attrs |= _texts(attributes, "alt")
            attrs |= {"src": self._address(attributes["src"])} if attributes.get("src") else {}
        if kind == "radio" and attributes.get("name"):
            attrs["group"] = attributes["name"]
        return attrs | _flags(attributes, "required", "disabled", "checked", "multiple")

    def _button(self, node: int, limits: ElementLimits, losses: Losses) -> Attrs:
        attributes = self._tree.attributes[node]
        kind = attributes.get("type", "").strip().lower()
        attrs: Attrs = {"button_type": kind if kind in ("button", "reset") else "submit"}
        return attrs | _texts(attributes, "value") | _flags(attributes, "required", "disabled")

    def _textarea(self, node: int, limits: ElementLimits, losses: Losses) -> Attrs:
        attributes, value = self._tree.attributes[node], written_in(self._tree, node)
        attrs: Attrs = {"value": value[:MAX_VALUE_LENGTH]} if value else {}
        return attrs | _texts(attributes, "placeholder") | _flags(attributes, "required", "disabled")

    def _choice(self, node: int, limits: ElementLimits, losses: Losses) -> Attrs:
        """Return the value of a select that is made of other elements."""
        value = limits.shorten(self._names.value(node) or self._names.content(node), losses)
        return {"value": value} if value else {}

    def _link(self, node: int, limits: ElementLimits, losses: Losses) -> Attrs:
        attributes = self._tree.attributes[node]
        attrs: Attrs = {name: shorten_address(attributes[name]) for name in _LINK if name in attributes}
        if self._has_base and "href" in attributes:
            attrs["href"] = self._address(attributes["href"])
        if attrs.get("rel") == "nofollow":  # meant for search engines, not for readers
            del attrs["rel"]
        if "download" in attributes:
            attrs["download"] = attributes["download"] or True
        return attrs

    def _heading(self, node: int, limits: ElementLimits, losses: Losses) -> Attrs:
        tag, claimed = self._tree.tags[node], self._tree.attributes[node].get("aria-level", "").strip()
        native = tag[1:] if tag[:1] == "h" and tag[1:] in _LEVELS else "2"
        return {"level": int(claimed if claimed in _LEVELS else native)}

    def _image(self, node: int, limits: ElementLimits, losses: Losses) -> Attrs:
        attributes = self._tree.attributes[node]
        attrs: Attrs = {"alt": collapse(attributes["alt"])} if "alt" in attributes else {}
        return attrs | ({"src": self._address(attributes["src"])} if "src" in attributes else {})

    def _list(self, node: int, limits: ElementLimits, losses: Losses) -> Attrs:
        tree = self._tree
        texts = (self._survey.part_text(item) for item in tree.children(node) if tree.tags[item] == "li")
        items = [text for text in texts if text]
        shown: list[Value] = [{"text": limits.shorten(text, losses)} for text in items[: limits.units]]
        if more := items[len(shown) :]:
            losses["more list items"] += len(more)
            losses[CHARACTERS] += sum(map(len, more))
            shown.append({"text": f"[{len(more)} more items]"})
        attrs: Attrs = {"ordered": tree.tags[node] == "ol"}
        return attrs | ({"items": shown} if shown else {})

    def _table(self, node: int, limits: ElementLimits, losses: Losses) -> Attrs:
        """Return headers and rows. The schema has no member for the caption of 4.3: it is the label of the table."""
        headers, rows = read_cells(self._tree, node, self._survey.part_text)
        shown = rows[: limits.units]
        if more := rows[len(shown) :]:
            losses["more table rows"] += len(more)
            losses[CHARACTERS] += sum(len(cell) for row in more for cell in row)
        if limits.characters is not None:
            headers, shown = _narrow(headers, shown, limits.characters, losses)
        attrs: Attrs = {"headers": [*headers]} if headers else {}
        return attrs | ({"rows": [[*row] for row in shown]} if shown else {})

    def _section(self, node: int, limits: ElementLimits, losses: Losses) -> Attrs:
        name = collapse(self._tree.attributes[node].get("aria-label"))
        return {"section_label": name} if name else {}

    def _group(self, node: int, limits: ElementLimits, losses: Losses) -> Attrs:
        if self._tree.tags[node] != "fieldset":
            return {}
        attrs: Attrs = {}
        if (legend := self._tree.first_child(node, "legend")) is not None:
            attrs["legend"] = self._survey.part_text(legend) or ""
        return attrs | _flags(self._tree.attributes[node], "disabled")

    def _details(self, node: int, limits: ElementLimits, losses: Losses) -> Attrs:
        attrs: Attrs = {"open": "open" in self._tree.attributes[node]}
        if (summary := self._tree.first_child(node, "summary")) is not None:
            attrs["summary"] = limits.shorten(self._survey.part_text(summary) or "", losses)
        return attrs

    def _iframe(self, node: int, limits: ElementLimits, losses: Losses) -> Attrs:
        attributes = self._tree.attributes[node]
        attrs: Attrs = {"src": self._address(attributes["src"])} if attributes.get("src") else {}
        if "srcdoc" in attributes:
            attrs["has_srcdoc"] = True
            attrs["srcdoc_preview"] = collapse(attributes["srcdoc"])[:_MAX_SRCDOC]
        return attrs | {name: attributes[name] for name in _FRAME if attributes.get(name)}


_BY_TAG: Final[Mapping[str, _Reading]] = {
    "select": RoleAttributes._select,
    "input": RoleAttributes._input,
    "button": RoleAttributes._button,
    "textarea": RoleAttributes._textarea,
}
_BY_ROLE: Final[Mapping[str, _Reading]] = {
    "link": RoleAttributes._link,
    "heading": RoleAttributes._heading,
    "image": RoleAttributes._image,
    "list": RoleAttributes._list,
    "table": RoleAttributes._table,
    "section": RoleAttributes._section,
    "group": RoleAttributes._group,
    "details": RoleAttributes._details,
    "iframe": RoleAttributes._iframe,
}


def _texts(attributes: Mapping[str, str], *names: str) -> Attrs:
    return {name: attributes[name][:MAX_VALUE_LENGTH] for name in names if attributes.get(name)}


def _flags(attributes: Mapping[str, str], *names: str) -> Attrs:
    return {name: True for name in names if name in attributes}


def _narrow(headers: list[str], rows: list[list[str]], most: int, losses: Losses) -> tuple[list[str], list[list[str]]]:
    """Shorten rows to so many characters. All columns stay, unless they would become too narrow."""
    columns = max(most // _MIN_COLUMN, 1)
    for row in (*rows, headers):
        if len(row) > columns:
            losses[SHORTENED] += 1
            losses[CHARACTERS] += sum(map(len, row[columns:]))
    narrow = [row[:columns] for row in rows]
    for place, row in enumerate(narrow):
        if sum(map(len, row)) > most:
            limits = ElementLimits(max(most // len(row), _MIN_CELL))
            narrow[place] = [limits.shorten(cell, losses) for cell in row]
    limits = ElementLimits(most)
    return [limits.shorten(cell, losses) for cell in headers[:columns]], narrow
