"""Forms: their fields, hidden inputs and buttons."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from awp_publish.pages.input_types import input_type
from awp_publish.pages.shortening import shorten_text
from awp_publish.pages.visibility import Visibility

_SECRETS: Final = re.compile(
    r"csrf|xsrf|nonce|authenticity_?token|verification_?token|session|^_?(?:form_?)?token$", re.IGNORECASE
)


MAX_SENT: Final = 4_096
MAX_SHORT: Final = 60
"""Characters of descriptions of hidden fields."""

_FIELDS: Final = frozenset(("input", "select", "textarea", "button"))
_OWN_STRUCTURE: Final = frozenset(("h1", "h2", "h3", "h4", "h5", "h6", "table", "ul", "ol", "dl", "nav"))


def is_secret(name: str) -> bool:
    """Return True if a hidden field's name is that of a session secret, such as a framework's CSRF token."""
    return _SECRETS.search(name) is not None


@dataclass(frozen=True, slots=True)
class FormFields:
    """The parts of a form: whether it has visible fields to fill in, its hidden inputs, and its submit buttons.

    `has_structure` means that it has a heading, a list or a table. A form without `has_names` sends nothing.
    """

    fillable: bool
    hidden: Sequence[int]
    buttons: Sequence[int]
    has_structure: bool
    has_names: bool

    @property
    def is_button(self) -> bool:
        """True if the form is no more than a button of its surroundings."""
        return bool(self.buttons) and not self.fillable and not self.has_structure


def read_form(form: int, visibility: Visibility) -> FormFields:
    """Return the parts of a form."""
    tree = visibility.tree
    fillable = has_structure = has_names = False
    hidden: list[int] = []
    buttons: list[int] = []
    for at in range(form + 1, tree.ends[form]):
        tag = tree.tags[at]
        if tag in _FIELDS:
            attributes = tree.attributes[at]
            has_names = has_names or bool(attributes.get("name"))
            kind = input_type(attributes) if tag in ("input", "button") else ""
            if tag == "button":
                if kind not in ("button", "reset"):
                    buttons.append(at)
            elif kind == "hidden":
                if attributes.get("name") and "disabled" not in attributes:
                    hidden.append(at)
            elif kind in ("submit", "image"):
                buttons.append(at)
            elif kind not in ("button", "reset"):
                fillable = fillable or not visibility.hides(at)
        elif tag in _OWN_STRUCTURE:
            has_structure = True
    return FormFields(fillable, hidden, buttons, has_structure, has_names)


def form_method(attributes: Mapping[str, str]) -> str:
    """Return the method of a form in capitals, GET for missing and unknown ones (HTML, 4.10.19.6)."""
    method = attributes.get("method", "").strip().upper()
    return method if method in ("POST", "DIALOG") else "GET"


def describe_hidden(form: int, visibility: Visibility) -> tuple[str, str, int | None]:
    """Describe the hidden fields of a form in full and, without secrets, in short; also return its first button."""
    fields, full, plain = read_form(form, visibility), list[str](), list[str]()
    for field in fields.hidden:
        attributes = visibility.tree.attributes[field]
        name, value = attributes["name"], attributes.get("value", "")
        full.append(f"{name} (a secret of the session)" if is_secret(name) else f"{name}={value}")
        plain += full[-1:] if not is_secret(name) else ()
    sent = f"Sends {', '.join(full)}"[:MAX_SENT] if full else ""
    short = shorten_text(f"({', '.join(plain)})", MAX_SHORT) if plain else ""
    return sent, short, next(iter(fields.buttons), None)
