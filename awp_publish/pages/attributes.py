"""The `attrs` that any element may have: what can be done with it, and its ARIA states (SOM 1.0, 4.3 and 4.4).

Each attribute of the page is looked up in one table, so an element costs what it has and not what there could be.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

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
