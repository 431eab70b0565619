"""The `attrs` that any element may have (SOM 1.0, sections 4.3 and 4.4).

Each attribute in the page is looked up in one table, so that the time depends on the attributes that an element has.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias
from urllib.parse import urljoin

from awp_publish.pages.tree import Tree

Value: TypeAlias = "str | int | bool | list[Value] | dict[str, Value] | None"
Attrs: TypeAlias = dict[str, Value]
_Reading: TypeAlias = Callable[[str], Value]

MAX_VALUE_LENGTH: Final = 4_096
"""Characters of an attribute's value; a longer address is an embedded file."""

MAX_REFERENCES: Final = 10
"""Ids of one attribute that are looked up."""

_INTEGER: Final = re.compile(r"\s*-?\d{1,15}\s*\Z", re.ASCII)


def base_of(tree: Tree, url: str) -> str:
    """Return the base of relative addresses that a page declares, or "" (HTML, 4.2.3)."""
    for base in tree.find("base"):
        if "href" in tree.attributes[base]:
            try:
                return urljoin(url, tree.attributes[base]["href"].strip())
            except ValueError:
                return ""
    return ""


def references_of(attributes: Mapping[str, str]) -> str:
    """Return the ids that name an element, also from the common misspelling of the attribute."""
    return attributes.get("aria-labelledby") or attributes.get("aria-labeledby", "")


def shorten_address(address: str) -> str:
    """Return an address, truncated if it is a file embedded in the page."""
    return address if len(address) <= MAX_VALUE_LENGTH else f"{address[:100]}..."


def _text(value: str) -> Value:
    return value[:MAX_VALUE_LENGTH] or None


def _stripped(value: str) -> Value:
    return value.strip()[:MAX_VALUE_LENGTH] or None


def _flag(value: str) -> Value:
    return True


def _only_true(value: str) -> Value:
    return True if value.strip().lower() == "true" else None


_TRUTH: Final = {"true": True, "false": False}
_TEXTS: Final = (
    *("accept", "accesskey", "autocapitalize", "autocomplete", "command", "commandfor", "dirname", "enterkeyhint"),
    *("form", "formaction", "formenctype", "formmethod", "formtarget", "inputmode", "list", "name", "pattern"),
    *("popovertarget", "popovertargetaction", "step", "title"),
)
_READINGS: Final[Mapping[str, tuple[str, _Reading]]] = {
    **{name: (name, _text) for name in _TEXTS},
    **{
        name: (name, lambda value: int(value) if _INTEGER.match(value) else _text(value))
        for name in ("max", "maxlength", "min", "minlength", "tabindex")
    },
    **{  # true without a value
        name: (name, lambda value: {"": True, **_TRUTH}.get(value.strip().lower(), value[:MAX_VALUE_LENGTH]))
        for name in ("capture", "contenteditable", "draggable", "spellcheck")
    },
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
    **{f"aria-{name}": (name, lambda value: _TRUTH.get(value.strip().lower())) for name in _ARIA_TRUTHS},
    **{
        f"aria-{name}": (name, lambda value: _TRUTH.get(value.strip().lower(), _stripped(value)))
        for name in _ARIA_STATES
    },
    **{f"aria-{name}": (name, _stripped) for name in _ARIA_TEXTS},
    "aria-activedescendant": ("active_descendant", _stripped),
}
"""ARIA states: those that are true or false, those that are true, false or a word, and texts."""

KNOWN_ATTRIBUTES: Final = {name: (_READINGS.get(name), _ARIA.get(name)) for name in (*_READINGS, *_ARIA)}
"""For each attribute, how it is read on any element, and how as an ARIA state."""
