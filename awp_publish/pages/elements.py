"""Makes elements of SOM from the candidates of the survey, without ids (SOM 1.0, section 4)."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, TypeAlias
from urllib.parse import urljoin

from awp_publish.pages.attributes import KNOWN_ATTRIBUTES, MAX_VALUE_LENGTH, Attrs, Value, base_of, shorten_address
from awp_publish.pages.distinct import distinct_names
from awp_publish.pages.flags import DISABLED, INERT
from awp_publish.pages.forms import describe_hidden, form_method, is_secret
from awp_publish.pages.hints import MAX_CLASS_LENGTH, hints_of
from awp_publish.pages.items import ItemNames
from awp_publish.pages.names import MAX_NODES, AccessibleNames, collapse
from awp_publish.pages.roles import ACTIONS, CONTROLS, HIDDEN, input_type
from awp_publish.pages.shortening import CHARACTERS, SHORTENED, ElementLimits, Losses
from awp_publish.pages.survey import MAX_REFERENCES, Survey
from awp_publish.pages.tables import read_cells
from awp_publish.pages.tree import written_in
from awp_publish.pages.visibility import Visibility

SomElement: TypeAlias = dict[str, Any]
"""An element in the form of its JSON."""

_LINK: Final = ("href", "target", "rel", "hreflang", "type", "referrerpolicy")
_FRAME: Final = ("name", "sandbox", "allow", "width", "height")
_MAX_SRCDOC: Final = 200
_WITHOUT_TEXT: Final = frozenset(("group", "list", "section", "select", "table"))
"""Roles that never have text: their content follows as elements, or is in their attributes (8.2)."""

SECRET: Final = "A secret of the session: take it from the page's own form."


_MAX_COMPACT_VALUE: Final = 1_000
"""Characters of a hidden value that a compact document may have."""

_HELPFUL: Final = frozenset(("accesskey", "autocapitalize", "draggable", "enterkeyhint", "spellcheck", "tabindex"))
"""Attributes that help who sees a page, and tell nothing of what is sent."""

_STATES: Final = frozenset(("checked", "current", "disabled", "expanded", "invalid", "pressed", "selected"))
"""ARIA states that compact documents have. The others describe how a page is made, or repeat other members."""


def _hidden_attrs(given: Mapping[str, str], is_compact: bool) -> Attrs:
    name, value = given["name"], given.get("value", "")
    attrs: Attrs = {"input_type": "hidden", "name": name[:MAX_VALUE_LENGTH]}
    if is_secret(name):
        attrs["description"] = SECRET
    elif len(value) > (_MAX_COMPACT_VALUE if is_compact else MAX_VALUE_LENGTH):
        attrs["description"] = f"{len(value)} characters: take them from the page's own form."
    else:
        attrs["value"] = value
    return attrs


_MAX_SENT: Final = 200
"""Characters of hidden fields that are described for each button of a form."""

_MIN_CELL: Final = 20
_MIN_COLUMN: Final = 8
"""The characters that each cell and each column of a row need at least."""

_MAX_OPTIONS: Final = 100
"""Options of a select that is not written in full."""

_BUTTON_TYPES: Final = ("submit", "button", "reset", "image")


class Elements:
    """Makes the elements of one page. `base` is the base of its addresses, "" for the page's own."""

    __slots__ = (
        *("_actions", "_base", "_distinct", "_named", "_sent", "_survey", "_tree", "_url", "_visibility", "items"),
        "names",
    )

    def __init__(self, survey: Survey, names: AccessibleNames, visibility: Visibility, url: str) -> None:
        self._tree, self._survey, self.names = visibility.tree, survey, names
        self._url, self._base = url, base_of(self._tree, url)
        self._actions = {role: list(actions) for role, actions in ACTIONS.items()}  # shared lists
        self._named: set[str] | None = None
        """Forms named by controls outside of them."""
        self._sent: dict[int, tuple[str, str, int | None]] = {}
        self._visibility = visibility
        self.items = ItemNames(survey, visibility)
        self._distinct = distinct_names(survey, names, self.items, visibility)

    def name_of(self, candidate: int) -> str:
        """Return the name of an element, with a suffix if another has the same name."""
        text, node = self._survey.text(candidate), self._survey.nodes[candidate]
        return self._distinct.get(node) or self.names.name(node, text)

    def address(self, written: str) -> str:
        """Return an address, resolved if the page has a `<base href>` (HTML, 4.2.3)."""
        if self._base and not written.startswith("#"):
            with suppress(ValueError):
                written = urljoin(self._base, written.strip())
        return shorten_address(written)

    def make(self, candidate: int, limits: ElementLimits, losses: Losses) -> SomElement:
        """Return an element with its members in the order of 4.1, without an id. Counts omissions in `losses`."""
        survey = self._survey
        node, role, flags = survey.nodes[candidate], survey.roles[candidate], survey.states[candidate]
        tag, attributes = self._tree.tags[node], self._tree.attributes[node]
        if role == HIDDEN:
            return {"id": "", "role": "text_input", "attrs": _hidden_attrs(attributes, limits.compact)}
        if role == "paragraph" and tag in ("img", "svg"):  # the picture of a formula, as text
            attributes = {}
        whole = "" if role in _WITHOUT_TEXT else self._survey.text(candidate)
        text = limits.shorten(whole, losses)
        compact = limits.compact and role not in CONTROLS
        label = ""
        # In compact documents the text of a link is enough, unless it is only a symbol.
        if node in self._distinct:
            label = self._distinct[node]
        elif tag and not (compact and role == "link" and any(map(str.isalnum, text))):
            label = self.names.label(node, whole)
            if role == "details" and not whole and not label:  # its summary is only an image, or a symbol with a name
                summary = next(
                    (child for child in self._tree.children(node) if self._tree.tags[child] == "summary"), -1
                )
                label = self.names.named(summary) if summary >= 0 else ""
        element: SomElement = {"id": "", "role": role}
        if "id" in attributes and not limits.compact and (html_id := attributes["id"].strip()):
            element["html_id"] = html_id
        if text:
            element["text"] = text
        if label:
            element["label"] = limits.shorten(label, losses)
        if role in ACTIONS:
            element["actions"] = self._actions[role]
        if role == "link" and compact:
            attrs: Attrs = {"href": self.address(attributes["href"])} if "href" in attributes else {}
        elif compact:
            attrs = self._own_attrs(node, role, limits, losses) if tag else {}
        elif tag:
            attrs = self._own_attrs(node, role, limits, losses)
            states: Attrs = {}
            common: Attrs = {}
            # Attributes that mean the same on every element (4.3, global actionability; 4.4, ARIA states).
            for name, given in attributes.items():
                if name in KNOWN_ATTRIBUTES:
                    plain, state = KNOWN_ATTRIBUTES[name]
                    if plain is not None and plain[0] not in attrs and (value := plain[1](given)) is not None:
                        common.setdefault(plain[0], value)
                    if state is not None and (value := state[1](given)) is not None:
                        states[state[0]] = value
            attrs.update(common)
            if (role == "link" or limits.compact) and attrs.get("title") in (text, label):
                attrs.pop("title", None)
            if limits.compact:
                attrs = {name: value for name, value in attrs.items() if name not in _HELPFUL}
                if attrs.get("button_type") == attrs.get("input_type"):
                    attrs.pop("button_type", None)
                if attrs.get("input_type") == role:
                    del attrs["input_type"]
                states = {name: value for name, value in states.items() if name in _STATES}
            ids = attributes.get("aria-describedby", "")
            described = self.names.referred(ids, node) if ids else ""
            if described and limits.compact and self._shows(ids):
                described = ""  # compact documents do not repeat a text of the page
                states.pop("describedby", None)
            if states.get("label") in (text, label):  # it is the text or the name already
                del states["label"]
            if states:
                attrs["aria"] = states
            # Properties that depend on other elements: an inert part of the page, a fieldset, a description.
            if flags & INERT or "inert" in attributes:
                attrs["inert"] = True
            if flags & DISABLED and role in ACTIONS and role not in ("link", "details"):
                attrs["disabled"] = True
            if role == "button" and (form := self._form_of(node)) is not None:
                sent, _, first = self._sent_by(form)
                if first is not None and first != node and len(sent) > _MAX_SENT:
                    sent = "Sends the same hidden fields as the first button of its form."
                attrs = {**self.form_facts(form), **attrs}
                if sent:
                    attrs["description"] = sent
            elif "formaction" in attrs:
                attrs["formaction"] = self.address(attributes["formaction"])
            if described:
                attrs["description"] = f"{described} {attrs.get('description', '')}".strip()
        else:
            attrs = {}
        if attrs:
            element["attrs"] = attrs
        if "class" in attributes and not limits.compact:
            hints = hints_of(attributes["class"][:MAX_CLASS_LENGTH])
            if hints:
                element["hints"] = list(hints)
        return element

    def _shows(self, ids: str) -> bool:
        """Return True if all elements in a list of ids are visible, so that their texts are in the document anyway."""
        for one in ids.split()[:MAX_REFERENCES]:
            named, depth = self._tree.find_id(one), 0
            node = -1 if named is None else named
            while node >= 0 and self._tree.tags[node] != "body":
                depth += 1
                if depth > MAX_NODES or self._visibility.hides(node):
                    return False
                node = self._tree.parents[node]
        return True

    def _form_of(self, button: int) -> int | None:
        """Return the form that a button submits, unless it is the form of the button's own region."""
        given = self._tree.attributes[button]
        if "form" not in given or button in self._survey.forms:
            return self._survey.forms.get(button)
        form = self._tree.find_id(given["form"])
        kind = given.get("type", "submit").strip().lower()
        is_sent = form is not None and self._tree.tags[form] == "form" and kind not in ("button", "reset")
        return form if is_sent else None

    def _sent_by(self, form: int) -> tuple[str, str, int | None]:
        if form not in self._sent:
            self._sent[form] = describe_hidden(form, self._visibility)
        return self._sent[form]

    def form_facts(self, form: int) -> Attrs:
        """Return method and address of a form that is not a region, as attributes of a button."""
        given = self._tree.attributes[form]
        facts: Attrs = {"formaction": self.address(given.get("action", "").strip() or self._url)}
        facts["formmethod"] = form_method(given)
        if self._named is None:
            everything = (self._tree.attributes[node] for node in self._survey.nodes)
            self._named = {one["form"] for one in everything if "form" in one}
        if given.get("id") in self._named:
            facts["form"] = given["id"]
        if facts["formmethod"] == "POST" and given.get("enctype"):
            facts["formenctype"] = given["enctype"]
        return facts

    def _own_attrs(self, node: int, role: str, limits: ElementLimits, losses: Losses) -> Attrs:
        """Return the attributes for a tag and role (4.3). A link with the role of a button keeps its address."""
        tree = self._tree
        tag, given = tree.tags[node], tree.attributes[node]
        attrs: Attrs = {}
        if tag == "select":
            return self._select_attrs(node, limits, losses)
        if role == "select":  # a select made of other elements
            value = limits.shorten(self.names.value(node) or self.names.content(node), losses)
            return {"value": value} if value else attrs
        if tag in ("input", "textarea", "button"):
            kept: tuple[str, ...] = ("value", "placeholder")
            flags: tuple[str, ...] = ("required", "disabled")
            if tag == "input":
                kind = input_type(given)
                attrs["input_type"] = kind
                if kind in _BUTTON_TYPES:
                    attrs["button_type"] = "submit" if kind == "image" else kind
                flags = ("required", "disabled", "checked", "multiple")
            elif tag == "button":
                kind = given.get("type", "").strip().lower()
                attrs["button_type"] = kind if kind in ("button", "reset") else "submit"
                kept = ("value",)
            else:
                kind = ""
                value = written_in(tree, node)
                if value:
                    attrs["value"] = value[:MAX_VALUE_LENGTH]
                kept = ("placeholder",)
            attrs.update({name: given[name][:MAX_VALUE_LENGTH] for name in kept if given.get(name)})
            if tag == "input" and kind == "image":
                if given.get("alt"):
                    attrs["alt"] = given["alt"][:MAX_VALUE_LENGTH]
                if given.get("src"):
                    attrs["src"] = self.address(given["src"])
            if tag == "input" and kind == "radio" and given.get("name"):
                attrs["group"] = given["name"]
            attrs.update({flag: True for flag in flags if flag in given})
        elif role == "link" or (role in ACTIONS and tag in ("a", "area") and "href" in given):
            attrs = {name: shorten_address(given[name]) for name in _LINK if name in given}
            if self._base and "href" in given:
                attrs["href"] = self.address(given["href"])
            if attrs.get("rel") == "nofollow":  # meant for search engines, not for readers
                del attrs["rel"]
            if "download" in given:
                attrs["download"] = given["download"] or True
        elif role == "heading":
            native = tag[1:] if tag in ("h1", "h2", "h3", "h4", "h5", "h6") else ""
            level = given.get("aria-level", "").strip() or native or "2"
            attrs["level"] = int(level) if level in ("1", "2", "3", "4", "5", "6") else int(native or 2)
        elif role == "image":
            if "alt" in given:
                attrs["alt"] = collapse(given["alt"])
            if "src" in given:
                attrs["src"] = self.address(given["src"])
        elif role == "list":
            texts = (self._survey.part_text(item) for item in tree.children(node) if tree.tags[item] == "li")
            items = [text for text in texts if text]
            shown: list[Value] = [{"text": limits.shorten(text, losses)} for text in items[: limits.units]]
            if more := items[len(shown) :]:
                losses["more list items"] += len(more)
                losses[CHARACTERS] += sum(map(len, more))
                shown.append({"text": f"[{len(more)} more items]"})
            attrs["ordered"] = tag == "ol"
            if shown:
                attrs["items"] = shown
        elif role == "table":
            # The schema has no member for the caption of 4.3: it is the label of the table.
            headers, rows = read_cells(tree, node, self._survey.part_text)
            shown_rows = rows[: limits.units]
            if more_rows := rows[len(shown_rows) :]:
                losses["more table rows"] += len(more_rows)
                losses[CHARACTERS] += sum(len(cell) for row in more_rows for cell in row)
            most = limits.characters
            if most is not None:
                # All columns stay, unless they would become too narrow; then their texts share the room.
                columns = max(most // _MIN_COLUMN, 1)
                for row in (*shown_rows, headers):
                    if len(row) > columns:
                        losses[SHORTENED] += 1
                        losses[CHARACTERS] += sum(map(len, row[columns:]))
                shown_rows = [row[:columns] for row in shown_rows]
                for number, row in enumerate(shown_rows):
                    if sum(map(len, row)) > most:
                        cell_limits = ElementLimits(max(most // len(row), _MIN_CELL))
                        shown_rows[number] = [cell_limits.shorten(cell, losses) for cell in row]
                headers = [limits.shorten(cell, losses) for cell in headers[:columns]]
            if headers:
                attrs["headers"] = list[Value](headers)
            if shown_rows:
                attrs["rows"] = [list[Value](row) for row in shown_rows]
        elif role == "section":
            name = collapse(given.get("aria-label"))
            if name:
                attrs["section_label"] = name
        elif role == "group" and tag == "fieldset":
            legend = next((child for child in tree.children(node) if tree.tags[child] == "legend"), None)
            if legend is not None:
                attrs["legend"] = self._survey.part_text(legend) or ""
            if "disabled" in given:
                attrs["disabled"] = True
        elif role == "details":
            summary = next((child for child in tree.children(node) if tree.tags[child] == "summary"), None)
            attrs["open"] = "open" in given
            if summary is not None:
                attrs["summary"] = limits.shorten(self._survey.part_text(summary) or "", losses)
        elif role == "iframe":
            if given.get("src"):
                attrs["src"] = self.address(given["src"])
            if "srcdoc" in given:
                attrs["has_srcdoc"] = True
                attrs["srcdoc_preview"] = collapse(given["srcdoc"])[:_MAX_SRCDOC]
            attrs.update({name: given[name] for name in _FRAME if given.get(name)})
        return attrs

    def _select_attrs(self, node: int, limits: ElementLimits, losses: Losses) -> Attrs:
        tree = self._tree
        given, options = tree.attributes[node], list[Attrs]()
        waiting: list[tuple[int, str, bool]] = [(node, "", False)]  # with the label and the state of the group
        while waiting:
            below, group, disabled = waiting.pop()
            own = tree.attributes[below]
            if tree.tags[below] == "option":
                text = self._survey.part_text(below) or own.get("label", "")
                option: Attrs = {"value": own.get("value", text)[:MAX_VALUE_LENGTH], "text": text}
                if group:
                    option["group"] = group
                if "selected" in own:
                    option["selected"] = True
                if disabled or "disabled" in own:
                    option["disabled"] = True
                options.append(option)
                continue
            if tree.tags[below] == "optgroup":
                group, disabled = own.get("label", ""), "disabled" in own
            waiting.extend((child, group, disabled) for child in reversed(tree.children(below)) if tree.tags[child])
        multiple = "multiple" in given
        if not multiple and not any("selected" in option for option in options):
            chosen = next((option for option in options if "disabled" not in option), None)
            if chosen is not None:
                chosen["selected"] = True
        selected = [option["value"] for option in options if "selected" in option]
        kept = list[Value](options)
        if limits.characters is not None:
            kept = [option for place, option in enumerate(options) if place < _MAX_OPTIONS or "selected" in option]
            if len(kept) < len(options):
                losses["more options"] += len(options) - len(kept)
        attrs: Attrs = {}
        if kept:
            attrs["options"] = kept
        if selected:
            attrs["value"] = selected[0] if multiple else selected[-1]
        if multiple and selected:
            attrs["selected_values"] = selected
        size = given.get("size", "").strip()
        if size:
            is_number = size.isascii() and size.isdecimal() and len(size) < 16
            attrs["size"] = int(size) if is_number else size[:MAX_VALUE_LENGTH]
        attrs.update({flag: True for flag in ("required", "disabled", "multiple") if flag in given})
        return attrs
