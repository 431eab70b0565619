"""Makes elements of SOM from the candidates of the survey, without ids (SOM 1.0, section 4)."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, TypeAlias
from urllib.parse import urljoin

from awp_publish.pages.attributes import (
    KNOWN_ATTRIBUTES,
    MAX_REFERENCES,
    MAX_VALUE_LENGTH,
    Attrs,
    base_of,
    shorten_address,
)
from awp_publish.pages.distinct import distinct_names
from awp_publish.pages.flags import DISABLED, INERT
from awp_publish.pages.forms import describe_hidden, form_method, is_secret
from awp_publish.pages.hints import MAX_CLASS_LENGTH, hints_of
from awp_publish.pages.items import ItemNames
from awp_publish.pages.name_content import MAX_NODES
from awp_publish.pages.names import AccessibleNames
from awp_publish.pages.role_attributes import RoleAttributes
from awp_publish.pages.roles import ACTIONS, CONTROLS, HIDDEN
from awp_publish.pages.shortening import ElementLimits, Losses
from awp_publish.pages.survey import Survey
from awp_publish.pages.tree import NO_ATTRIBUTES
from awp_publish.pages.visibility import Visibility

SomElement: TypeAlias = dict[str, Any]
"""An element in the form of its JSON."""

_OF_PLAIN_LINKS: Final = frozenset(("class", "href", "id", "title"))
_PLAIN_ROLES: Final = frozenset(("heading", "link", "paragraph"))
_PLAIN_ATTRIBUTES: Final = frozenset(("class", "href", "id", "rel", "style", "target"))
_WITHOUT_TEXT: Final = frozenset(("group", "list", "section", "select", "table"))
"""Roles that never have text: their content follows as elements, or is in their attributes (8.2)."""

SECRET: Final = "A secret of the session: take it from the page's own form."


_MAX_COMPACT_VALUE: Final = 1_000
"""Characters of a hidden value that a compact document may have."""

_HELPFUL: Final = frozenset(("accesskey", "autocapitalize", "draggable", "enterkeyhint", "spellcheck", "tabindex"))
"""Attributes that help who sees a page, and tell nothing of what is sent."""

_COMMON: Final = KNOWN_ATTRIBUTES.keys() | {"inert"}
"""Attributes that mean the same on every element."""

_STATES: Final = frozenset(("checked", "current", "disabled", "expanded", "invalid", "pressed", "selected"))
"""ARIA states that compact documents have. The others describe how a page is made, or repeat other members."""


def _hidden_attrs(attributes: Mapping[str, str], is_compact: bool) -> Attrs:
    name, value = attributes["name"], attributes.get("value", "")
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


class Elements:
    """Makes the elements of one page. `base` is the base of its addresses, "" for the page's own."""

    __slots__ = (
        *("_actions", "_base", "_distinct", "_named", "_of_role", "_sent", "_survey", "_tree", "_url", "_visibility"),
        *("items", "names"),
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
        self._of_role = RoleAttributes(self._tree, survey, names, self.address, has_base=bool(self._base))
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
        return written if len(written) <= MAX_VALUE_LENGTH else shorten_address(written)

    def make(self, candidate: int, limits: ElementLimits, losses: Losses) -> SomElement:
        """Return an element with its members in the order of 4.1, without an id. Counts omissions in `losses`."""
        survey, tree = self._survey, self._tree
        node, role = survey.nodes[candidate], survey.roles[candidate]
        tag, attributes = tree.tags[node], tree.attributes[node]
        if role == HIDDEN:
            return {"id": "", "role": "text_input", "attrs": _hidden_attrs(attributes, limits.compact)}
        whole = "" if role in _WITHOUT_TEXT else survey.text(candidate)
        element: SomElement = {"id": "", "role": role}
        if not tag:  # a text outside of any element, which has no other members
            element["text"] = limits.shorten(whole, losses)
            return element
        is_compact = limits.compact and role not in CONTROLS
        is_formula = role == "paragraph" and tag in ("img", "svg")  # its picture, as text
        if is_formula:
            attributes = NO_ATTRIBUTES
        # A link or a text that has only text in it needs no name, most have no attributes that say more of them.
        is_plain = tree.ends[node] == node + 2 and not tree.tags[node + 1] and node not in self._distinct
        is_plain = is_plain and not self.names.has_generated(node)
        if is_plain and role in _PLAIN_ROLES and _PLAIN_ATTRIBUTES.issuperset(attributes):
            label = ""
        else:
            label = self._label(node, role, whole, is_compact=is_compact)
        text = limits.shorten(whole, losses)
        if not limits.compact and "id" in attributes and (html_id := attributes["id"].strip()):
            element["html_id"] = html_id
        if text:
            element["text"] = text
        if label:
            element["label"] = limits.shorten(label, losses)
        if role in ACTIONS:
            element["actions"] = self._actions[role]
        if role == "link" and (limits.compact or _OF_PLAIN_LINKS.issuperset(attributes)) and "href" in attributes:
            attrs: Attrs = {"href": self.address(attributes["href"])}
        elif limits.compact and role == "link":
            attrs = {}
        else:
            attrs = self._of_role.of(node, role, limits, losses)
        if not is_compact and not is_formula:
            attrs = self._with_common(attrs, candidate, (text, label), limits.compact)
        if attrs:
            element["attrs"] = attrs
        if not limits.compact and "class" in attributes and (hints := hints_of(attributes["class"][:MAX_CLASS_LENGTH])):
            element["hints"] = list(hints)
        return element

    def _label(self, node: int, role: str, text: str, *, is_compact: bool) -> str:
        """Return the name of an element besides its text. If `is_compact`, a link whose text has letters needs none."""
        if node in self._distinct:
            return self._distinct[node]
        if not self._tree.tags[node] or (is_compact and role == "link" and any(map(str.isalnum, text))):
            return ""
        label = self.names.label(node, text)
        if role == "details" and not text and not label:  # its summary is only an image, or a symbol with a name
            summary = self._tree.first_child(node, "summary")
            label = self.names.named(summary) if summary is not None else ""
        return label

    def _with_common(self, attrs: Attrs, candidate: int, names: tuple[str, str], is_compact: bool) -> Attrs:
        """Return attributes with those that mean the same on every element; `names` are its text and its label."""
        node, role = self._survey.nodes[candidate], self._survey.roles[candidate]
        attributes, flags = self._tree.attributes[node], self._survey.states[candidate]
        if role not in CONTROLS and not flags & (INERT | DISABLED) and _COMMON.isdisjoint(attributes):
            return attrs
        common, states = _read_common(attributes, attrs)
        attrs = attrs | common
        if (role == "link" or is_compact) and attrs.get("title") in names:
            attrs.pop("title", None)
        if states.get("label") in names:
            del states["label"]
        ids = attributes.get("aria-describedby", "")
        described = self.names.referred(ids, node) if ids else ""
        if is_compact:
            attrs = {name: value for name, value in attrs.items() if name not in _HELPFUL}
            if attrs.get("button_type") == attrs.get("input_type"):
                attrs.pop("button_type", None)
            if attrs.get("input_type") == role:
                del attrs["input_type"]
            states = {name: value for name, value in states.items() if name in _STATES}
            if described and self._shows(ids):
                described = ""  # compact documents do not repeat a text of the page
        if states:
            attrs["aria"] = states
        if flags & INERT or "inert" in attributes:
            attrs["inert"] = True
        if flags & DISABLED and role in ACTIONS and role not in ("link", "details"):
            attrs["disabled"] = True
        if role == "button" and (form := self._form_of(node)) is not None:
            attrs = {**self.form_facts(form), **attrs, **self._sending(node, form)}
        elif "formaction" in attrs:
            attrs["formaction"] = self.address(attributes["formaction"])
        if described:
            attrs["description"] = f"{described} {attrs.get('description', '')}".strip()
        return attrs

    def _sending(self, button: int, form: int) -> Attrs:
        """Return the description of what a button sends besides the fields of its form."""
        sent, _, first = self._sent_by(form)
        if first is not None and first != button and len(sent) > _MAX_SENT:
            sent = "Sends the same hidden fields as the first button of its form."
        return {"description": sent} if sent else {}

    def _shows(self, ids: str) -> bool:
        """Return True if all elements in a list of ids are visible, so that their texts are in the document anyway."""
        for identifier in ids.split()[:MAX_REFERENCES]:
            named, depth = self._tree.find_id(identifier), 0
            node = -1 if named is None else named
            while node >= 0 and self._tree.tags[node] != "body":
                depth += 1
                if depth > MAX_NODES or self._visibility.hides(node):
                    return False
                node = self._tree.parents[node]
        return True

    def _form_of(self, button: int) -> int | None:
        """Return the form that a button submits, unless it is the form of the button's own region."""
        attributes = self._tree.attributes[button]
        if "form" not in attributes or button in self._survey.forms:
            return self._survey.forms.get(button)
        form = self._tree.find_id(attributes["form"])
        kind = attributes.get("type", "submit").strip().lower()
        is_sent = form is not None and self._tree.tags[form] == "form" and kind not in ("button", "reset")
        return form if is_sent else None

    def _sent_by(self, form: int) -> tuple[str, str, int | None]:
        if form not in self._sent:
            self._sent[form] = describe_hidden(form, self._visibility)
        return self._sent[form]

    def form_facts(self, form: int) -> Attrs:
        """Return method and address of a form that is not a region, as attributes of a button."""
        attributes = self._tree.attributes[form]
        facts: Attrs = {"formaction": self.address(attributes.get("action", "").strip() or self._url)}
        facts["formmethod"] = form_method(attributes)
        if self._named is None:
            everything = (self._tree.attributes[node] for node in self._survey.nodes)
            self._named = {element["form"] for element in everything if "form" in element}
        if attributes.get("id") in self._named:
            facts["form"] = attributes["id"]
        if facts["formmethod"] == "POST" and attributes.get("enctype"):
            facts["formenctype"] = attributes["enctype"]
        return facts


def _read_common(attributes: Mapping[str, str], own: Attrs) -> tuple[Attrs, Attrs]:
    """Return attributes of any element (4.3, global actionability) without those it has, and ARIA states (4.4)."""
    common: Attrs = {}
    states: Attrs = {}
    for name in attributes:
        if name not in KNOWN_ATTRIBUTES:
            continue
        plain, state = KNOWN_ATTRIBUTES[name]
        if plain is not None and plain[0] not in own and (value := plain[1](attributes[name])) is not None:
            common.setdefault(plain[0], value)
        if state is not None and (value := state[1](attributes[name])) is not None:
            states[state[0]] = value
    return common, states
