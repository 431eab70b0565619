"""Controls of forms in Markdown: the kind of a control, its name, its value, and what a button sends."""

from bisect import bisect_right
from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import accumulate, islice
from typing import Final

from awp_publish.pages.box_labels import find_merged
from awp_publish.pages.forms import FormFields, form_method, is_secret, read_form
from awp_publish.pages.input_types import BOXES, BUTTONS, input_type
from awp_publish.pages.markdown.escaping import code_span, collapse, escape_text
from awp_publish.pages.markdown.joining import Mark, Piece
from awp_publish.pages.markdown.visible import VisibleNodes
from awp_publish.pages.names import AccessibleNames
from awp_publish.pages.options import read_options
from awp_publish.pages.roles import CONTROLS as ROLES, role_of
from awp_publish.pages.tree import NO_ATTRIBUTES
from awp_publish.pages.visibility import INLINE

MAX_OPTIONS: Final = 40
"""Options of a choice that are listed."""

MAX_VALUE: Final = 1_000
"""Characters of a value that is shown."""

CONTROLS: Final = frozenset({"input", "button", "textarea", "select"})
_STATES: Final = {"aria-pressed": "pressed", "aria-selected": "selected", "aria-expanded": "expanded"}
_NOT_CURRENT: Final = ("", "false")
_CARRIERS: Final = (INLINE - CONTROLS) | {"div", "li", "p", "section"}
_DRAWN: Final = frozenset(("b", "div", "i", "p", "span"))
_OPERATED: Final = CONTROLS | {"details", "table"}
_WHOLES: Final = _OPERATED | {"h1", "h2", "h3", "h4", "h5", "h6", "li"}
"""Elements that an ARIA role makes a control, and those that are more than the name of one."""

MAX_WIDGET: Final = 60
"""Nodes in an element with the role of a control; what has more is around other things."""

_LIMITS: Final = ("min", "max", "step", "minlength", "maxlength", "pattern", "accept")
_OVERRIDING: Final = frozenset(("formaction", "formenctype", "formmethod"))
"""Attributes of a button that say something else than those of its form."""

_MAX_REPEATED: Final = 3
"""Hidden fields that are repeated for each button of a form."""

_MAX_CLIMB: Final = 60
"""Ancestors of a button among which its form is searched."""

_ENCTYPES: Final = ("multipart/form-data", "text/plain")


class Controls:
    """Writes the controls and forms of one page at `url`. `address` returns an absolute address, if there is one."""

    def __init__(
        self,
        url: str,
        visible: VisibleNodes,
        names: AccessibleNames,
        address: Callable[[str], str | None],
    ) -> None:
        self._url, self._visible, self._address = url, visible, address
        self._names = names
        self.distinct: Mapping[int, str] = {}
        """Names that tell controls and links apart."""
        self.is_apart = False
        """True while controls are written without the labels around them."""
        self._forms: dict[int, FormFields] = {}
        self._submits: dict[int, int] = {}
        """For a button that is the only visible part of its form, that form."""
        roles = {
            at: role
            for at in visible.tree.conspicuous
            if (role := role_of(visible.tags[at], visible.attributes[at])) in ROLES and self._may_be_widget(at)
        }
        self.widgets = {at: role for at, role in roles.items() if self._holds_none(at, _WHOLES)}
        """The roles of elements that only an ARIA role or `contenteditable` makes a control."""
        self.cards = {
            at
            for at, role in roles.items()
            if role == "button" and at not in self.widgets and self._holds_none(at, _OPERATED)
        }
        """Such buttons that have headings and lists in them."""
        self.merged = find_merged(visible.tree, names.torn)
        """Labels that are written as their box, which is named after them."""
        self.pictures = {
            at: name
            for at in visible.tree.conspicuous
            if visible.attributes[at].get("role", "").strip().lower() == "img"
            and visible.tags[at] in _DRAWN
            and (name := names.label(at, ""))
        }
        """The names of elements whose content draws a picture: stars, an emoji."""

    def _may_be_widget(self, node: int) -> bool:
        tree = self._visible.tree
        tag = tree.tags[node]
        is_small = tree.ends[node] - node <= MAX_WIDGET
        return (tag in _CARRIERS or "-" in tag) and is_small and "href" not in tree.attributes[node]

    def _holds_none(self, node: int, tags: frozenset[str]) -> bool:
        """Return True if there is no link in an element, and nothing with one of some tags."""
        tree = self._visible.tree
        return not any(
            tree.tags[at] in tags or (tree.tags[at] == "a" and "href" in tree.attributes[at])
            for at in range(node + 1, tree.ends[node])
        )

    def write_widget(self, widget: int) -> list[Piece]:
        """Return the description of an element that has the role of a control."""
        role = self.widgets[widget]
        name = escape_text(self.name(widget), in_brackets=True)
        if role in BOXES:
            return self._drawn_box(widget, role, name)
        if role == "button":
            return [Mark("control", self.as_button(widget, name))]
        off = ", disabled" if self._is_disabled(widget) else ""
        kind = "choice" if role == "select" else "text field"
        text = self._visible.plain_text(widget) or self._names.value(widget)
        label, content = self._label(widget), self._quoted(text or "")
        said = f"{kind} “{escape_text(label, in_brackets=True)}”{off}" if label else f"{kind}{off}"
        return [Mark("control", f"[{said}: {content}]" if content else f"[{said}]")]

    def as_button(self, node: int, name: str) -> str:
        """Return an element with a name as a button."""
        states = self.states(node)
        return f"[button: {name}{states}]" if name else f"[button{states}]"

    def write(self, control: int) -> list[Piece]:
        """Return the description of a control, nothing for a hidden one."""
        tag = self._visible.tags[control]
        kind = input_type(self._visible.attributes[control]) if tag == "input" else tag
        if kind == "hidden":
            return []
        if kind in BUTTONS:
            role = role_of(tag, self._visible.attributes[control])
            if role in BOXES:
                return self._drawn_box(control, role, escape_text(self.name(control), in_brackets=True))
            return [Mark("control", f"[{', '.join(self._button(control, kind))}]")]
        if kind in BOXES:
            return self._box(control, kind)
        if tag == "select":
            return self._field(control, self._kind_of_select(control), self._options(control))
        if tag == "textarea":
            return self._field(control, "text area", self._quoted(self._visible.plain_text(control)))
        value = self._visible.attributes[control].get("value", "") if kind != "password" else ""
        return self._field(control, kind if kind == "file" else f"{kind} field", self._quoted(value))

    def name(self, node: int) -> str:
        """Return the name of an element, which tells it apart from others."""
        text = "" if self._visible.tags[node] == "input" else self._visible.plain_text(node)
        return self.distinct.get(node) or self._names.name(node, text) or self._names.named(node)

    def _label(self, control: int) -> str:
        return self.name(control) if self.is_apart else self._names.unwritten(control)

    def _button(self, button: int, kind: str) -> list[str]:
        """Return what a button is and what it sends."""
        tags, attributes = self._visible.tags, self._visible.attributes[button]
        text = escape_text(self.name(button), in_brackets=True)
        states = self.states(button)
        own = f" {self._pair(attributes, '')}" if attributes.get("name") and kind != "reset" else ""
        what = f"button{own}: {text}{states}" if text or own else f"button{states}"
        if (form := self._submits.get(button)) is not None:
            if not (target := self.target(form, attributes)):
                return [what]
            fields = self.read_form(form)  # if there are many hidden fields, only the first button lists them
            is_listed = fields.buttons[0] == button or len(fields.hidden) <= _MAX_REPEATED
            return [what, target, *(self.hidden(form) if is_listed else ["the same hidden fields"])]
        is_scripted = input_type(attributes) == "button"  # which only scripts operate
        form = None if is_scripted else self._named_form(attributes)
        if not _OVERRIDING.isdisjoint(attributes):
            if form is None:
                around = islice(self._visible.around(button), _MAX_CLIMB)
                form = next((ancestor for ancestor in around if tags[ancestor] == "form"), button)
            type_of_form = {"formenctype": attributes.get("formenctype", "")}  # the form says its own
            return [what, self.target(form, {**attributes, **type_of_form}) or "sends nothing"]
        return [what] if form is None else [what, f"of the form {self.target(form)}"]

    def _box(self, box: int, kind: str) -> list[Piece]:
        attributes = self._visible.attributes[box]
        sign = "x" if "checked" in attributes else " "
        is_task = kind == "checkbox"
        pieces: list[Piece] = [" ", Mark("control", f"[{sign}]") if is_task else Mark("markdown", f"({sign})"), " "]
        if attributes.get("name"):
            pieces += [Mark("markdown", self._pair(attributes, "on")), " "]
        if (form := self._named_form(attributes)) is not None:
            pieces += [Mark("control", f"[of the form {self.target(form)}]"), " "]
        if notes := ", ".join([*["required"] * ("required" in attributes), *["disabled"] * self._is_disabled(box)]):
            pieces.append(f"({notes}) ")
        label = self._label(box)
        return [*pieces, f"{escape_text(label)} " if label else ""]

    def _drawn_box(self, box: int, role: str, name: str) -> list[Piece]:
        """Return the description of a checkbox or a radio button that the page draws itself."""
        attributes = self._visible.attributes[box]
        sign = "x" if attributes.get("aria-checked", "").strip().lower() == "true" else " "
        off = "(disabled) " if self._is_disabled(box) else ""
        drawn = Mark("control", f"[{sign}]") if role == "checkbox" else Mark("markdown", f"({sign})")
        return [" ", drawn, " ", f"{name} {off}"]

    def states(self, button: int) -> str:
        """Return what is said after the name of a button or a link: whether it is pressed, chosen, open or disabled."""
        attributes = self._visible.attributes[button]
        states = [word for name, word in _STATES.items() if attributes.get(name, "").strip().lower() == "true"]
        states += ["current"] * (attributes.get("aria-current", "").strip().lower() not in _NOT_CURRENT)
        states += ["disabled"] * self._is_disabled(button)
        return f" ({', '.join(states)})" if states else ""

    def _is_disabled(self, control: int) -> bool:
        attributes = self._visible.attributes[control]
        if "disabled" in attributes or attributes.get("aria-disabled", "").strip().lower() == "true":
            return True
        places, levels = self._barred
        return levels[bisect_right(places, control) - 1] > 0

    @cached_property
    def _barred(self) -> tuple[list[int], list[int]]:
        """Nodes from which on other controls can be operated, and how many elements around each of them forbid it.

        These are disabled groups, but for their first legend, and what is inert.
        """
        tree, changes = self._visible.tree, {-1: 0}
        barred = [(at, 1) for at in tree.conspicuous if "inert" in tree.attributes[at]]
        for at in tree.find("fieldset"):
            if "disabled" in tree.attributes[at]:
                legend = tree.first_child(at, "legend")
                barred += [(at, 1)] if legend is None else [(at, 1), (legend, -1)]
        for at, change in barred:
            changes[at] = changes.get(at, 0) + change
            changes[tree.ends[at]] = changes.get(tree.ends[at], 0) - change
        places = sorted(changes)
        return places, list(accumulate(changes[at] for at in places))

    def _field(self, field: int, kind: str, content: str) -> list[Piece]:
        attributes = self._visible.attributes[field]
        label, form = self._label(field), self._named_form(attributes)
        facts = (
            f"{escape_text(kind, in_brackets=True)} {code_span(attributes.get('name', ''))}".strip(),
            f"“{escape_text(label, in_brackets=True)}”" if label else "",
            "required" if "required" in attributes else "",
            "disabled" if self._is_disabled(field) else "",
            "read-only" if "readonly" in attributes else "",
            f"of the form {self.target(form)}" if form is not None else "",
            *(f"{limit} {code_span(attributes[limit])}" for limit in _LIMITS if attributes.get(limit)),
            self._suggested(attributes),
        )
        described = ", ".join(filter(None, facts))
        return [Mark("control", f"[{described}: {content}]" if content else f"[{described}]")]

    def _suggested(self, attributes: Mapping[str, str]) -> str:
        """Return the values that the `<datalist>` of a field suggests."""
        tree = self._visible.tree
        listed = tree.find_id(attributes["list"]) if attributes.get("list") else None
        if listed is None or tree.tags[listed] != "datalist":
            return ""
        options = islice((at for at in range(listed + 1, tree.ends[listed]) if tree.tags[at] == "option"), MAX_OPTIONS)
        values = (tree.attributes[at].get("value") or tree.only(at) or "" for at in options)
        codes = [code_span(collapse(value).strip()) for value in values if value.strip() and len(value) <= MAX_VALUE]
        return f"suggested {' '.join(codes)}" if codes else ""

    def _quoted(self, value: str) -> str:
        text = escape_text(collapse(value).strip(), in_brackets=True)
        return f"“{text}”" if text else ""

    def _kind_of_select(self, select: int) -> str:
        return "choice of several" if "multiple" in self._visible.attributes[select] else "choice"

    def _options(self, select: int) -> str:
        listed, attributes = list[str](), self._visible.attributes
        options = [option for option in read_options(self._visible.tree, select) if self._visible.shows(option.node)]
        for option in options[:MAX_OPTIONS]:
            given = attributes[option.node]
            name = collapse(given.get("label") or self._visible.plain_text(option.node)).strip()
            value = given.get("value", name)
            notes = [code_span(value) or "“”"] if value != name else []
            notes += ["selected"] * option.is_selected + ["disabled"] * option.is_disabled
            if name or value:
                listed.append(escape_text(name, in_brackets=True) + (f" ({', '.join(notes)})" if notes else ""))
        if len(options) > MAX_OPTIONS:
            listed.append(f"and {len(options) - MAX_OPTIONS} more")
        return ", ".join(listed)

    def read_form(self, form: int) -> FormFields:
        """Return the parts of a form. If it is no more than a button, the button will describe it."""
        found = self._forms.get(form)
        if found is None:
            found = self._forms[form] = read_form(form, self._visible.visibility)
            if found.is_button:
                self._submits.update(dict.fromkeys(found.buttons, form))
        return found

    def target(self, form: int, over: Mapping[str, str] = NO_ATTRIBUTES) -> str:
        """Return method and address of a form as code, with its content type if that matters; "" if it sends nothing.

        `over` are the attributes of the button that sends it.
        """
        attributes = self._visible.attributes[form]
        method = form_method({"method": over.get("formmethod", attributes.get("method", ""))})
        if method == "DIALOG":
            return ""
        address = self._address(over.get("formaction", attributes.get("action", "")).strip() or self._url) or self._url
        code = code_span(f"{method} {address}")
        kind = over.get("formenctype", attributes.get("enctype", "")).strip().lower()
        return f"{code} as {code_span(kind)}" if method == "POST" and kind in _ENCTYPES else code

    def hidden(self, form: int) -> list[str]:
        """Return the hidden fields of a form: names and values, but only the names of session secrets."""
        listed = []
        for hidden in self.read_form(form).hidden:
            attributes = self._visible.attributes[hidden]
            name, value = attributes["name"], attributes.get("value", "")
            shown = "a secret of the session" if is_secret(name) else self._value(value)
            listed.append(f"{code_span(name)}: {shown}")
        return listed

    def _value(self, value: str) -> str:
        if len(value) > MAX_VALUE:
            return f"{len(value)} characters"
        return code_span(value) or "“”"

    def _named_form(self, attributes: Mapping[str, str]) -> int | None:
        """Return the form that a control names in its attribute `form`."""
        form = self._visible.tree.find_id(attributes["form"]) if attributes.get("form") else None
        return form if form is not None and self._visible.tags[form] == "form" else None

    def _pair(self, attributes: Mapping[str, str], usual: str) -> str:
        """Return the name of a control, and the value that it sends unless it is the usual one."""
        value = attributes.get("value", usual)
        name = code_span(attributes["name"])
        return name if value == usual else f"{name}={self._value(value)}"
