"""Roles of elements, which every kind of page derives from tag and attributes (HTML-AAM 1.0)."""

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
    **dict.fromkeys(("address", "hgroup", "optgroup"), "group"),
    **dict.fromkeys(("del", "s"), "deletion"),
    **dict.fromkeys(("dfn", "dt"), "term"),
    **{name: name for name in ("blockquote", "caption", "code", "mark", "math", "strong", "time")},
    "dd": "definition",
    "em": "emphasis",
    "ins": "insertion",
    "sub": "subscript",
    "sup": "superscript",
}
_INPUT_ROLES: Final[Mapping[str, str]] = {
    **dict.fromkeys(BUTTONS, "button"),
    "checkbox": "checkbox",
    "radio": "radio",
    "range": "slider",
    "number": "spinbutton",
    "search": "searchbox",
}
_ALSO: Final[Mapping[str, str]] = {
    "banner": "header",
    "contentinfo": "footer",
    "searchbox": "textbox",
    "img": "image",
    "directory": "list",
}
"""Other names for a role: a SOM's, and "textbox" for a search box."""

_ARIA: Final = (
    "alert alertdialog application article banner blockquote button caption cell checkbox code columnheader combobox "
    "complementary contentinfo definition deletion dialog directory document emphasis feed figure form generic grid "
    "gridcell group heading image img insertion link list listbox listitem log main marquee math menu menubar "
    "menuitem menuitemcheckbox menuitemradio meter navigation none note option paragraph presentation progressbar "
    "radio radiogroup region row rowgroup rowheader scrollbar search searchbox separator slider spinbutton status "
    "strong subscript suggestion superscript switch tab table tablist tabpanel term textbox time timer toolbar "
    "tooltip tree treegrid treeitem"
)
_KNOWN: Final = frozenset(_ARIA.split())
"""Roles that an author can give (WAI-ARIA 1.2, 5.3); others count as not given."""

_PRESENTED: Final = ("none", "presentation")
_FOCUSABLE: Final = frozenset(("a", "button", "iframe", "input", "select", "summary", "textarea"))
"""Elements that keep their role where they are said to have none (7.2, conflict resolution)."""


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
        if tag == "th" and attributes.get("scope", "").lower() in ("row", "rowgroup"):
            aria = "rowheader"
        if tag == "img" and attributes.get("alt") == "":
            aria = "none"
    names = attributes.get("role", "").lower().split()
    explicit = next((role for role in names if role in _KNOWN), None)
    is_presented = explicit in _PRESENTED and tag not in _FOCUSABLE and "tabindex" not in attributes
    if explicit and tag != "form" and (is_presented or explicit not in _PRESENTED):
        aria = explicit  # but a form with the role search is still a form
    roles = {aria, explicit, role_of(tag, attributes)}
    if is_presented:
        roles = {*_PRESENTED}
    return frozenset(role for alias in roles if alias for role in (alias, _ALSO.get(alias)) if role)
