"""Roles of elements, which every kind of page derives from tag and attributes (HTML-AAM 1.0)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from awp_publish.pages.input_types import BUTTONS, INPUT_TYPES
from awp_publish.pages.roles import role_of

_ROLES: Final[Mapping[str, str]] = {
    **{f"h{level}": "heading" for level in range(1, 7)},
    **dict.fromkeys(("ul", "ol", "menu"), "list"),
    **dict.fromkeys(("thead", "tbody", "tfoot"), "rowgroup"),
    "a": "link",
    "area": "link",
    "button": "button",
    "textarea": "textbox",
    "option": "option",
    "img": "img",
    "svg": "img",
    "form": "form",
    "nav": "navigation",
    "main": "main",
    "header": "banner",
    "footer": "contentinfo",
    "aside": "complementary",
    "section": "region",
    "article": "article",
    "li": "listitem",
    "table": "table",
    "tr": "row",
    "td": "cell",
    "th": "columnheader",
    "dialog": "dialog",
    "details": "group",
    "summary": "button",
    "fieldset": "group",
    "hr": "separator",
    "p": "paragraph",
    "output": "status",
    "progress": "progressbar",
    "meter": "meter",
    "figure": "figure",
    "search": "search",
    "dt": "term",
    "dd": "definition",
    "blockquote": "blockquote",
}
_INPUT_ROLES: Final[Mapping[str, str]] = {
    **dict.fromkeys(BUTTONS, "button"),
    "checkbox": "checkbox",
    "radio": "radio",
    "range": "slider",
    "number": "spinbutton",
    "search": "searchbox",
}
_ALSO: Final[Mapping[str, str]] = {"banner": "header", "contentinfo": "footer", "searchbox": "textbox", "img": "image"}
"""Other names for a role: a SOM's, and "textbox" for a search box."""


def roles_of(tag: str, attributes: Mapping[str, str]) -> frozenset[str]:
    """Return an element's ARIA role, explicit or implicit (HTML-AAM 1.0), and the names that a SOM has for it."""
    if tag == "input":
        kind = attributes.get("type", "").lower()
        kind = kind if kind in INPUT_TYPES else "text"
        aria = None if kind == "hidden" else _INPUT_ROLES.get(kind, "combobox" if "list" in attributes else "textbox")
    elif tag == "select":
        aria = (
            "listbox" if "multiple" in attributes or attributes.get("size", "1") not in ("", "0", "1") else "combobox"
        )
    elif tag in ("a", "area") and "href" not in attributes:
        aria = None
    else:
        aria = _ROLES.get(tag)
    explicit = attributes.get("role", "").lower().split()
    if explicit and tag != "form":  # a form with the role search is still a form
        aria = explicit[0]
    roles = {aria, *explicit[:1], role_of(tag, attributes)}
    return frozenset(role for alias in roles if alias for role in (alias, _ALSO.get(alias)) if role)
