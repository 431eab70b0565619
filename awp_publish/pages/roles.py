"""SOM roles of elements: by the ARIA role first, then by the name (SOM 1.0, sections 4.2 and 4.5)."""

from collections.abc import Mapping
from typing import Final

from awp_publish.pages.tree import Node

ACTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "link": ("click",),
    "button": ("click",),
    "text_input": ("type", "clear"),
    "textarea": ("type", "clear"),
    "select": ("select",),
    "checkbox": ("toggle",),
    "radio": ("select",),
    "details": ("toggle",),
}
"""Actions of each interactive role (4.2). The others have none."""

CONTROLS: Final = frozenset(ACTIONS) - {"link"}

_ARIA: Final[Mapping[str, str]] = {
    "button": "button",
    "link": "link",
    "checkbox": "checkbox",
    "switch": "checkbox",
    "menuitemcheckbox": "checkbox",
    "radio": "radio",
    "menuitemradio": "radio",
    "textbox": "text_input",
    "searchbox": "text_input",
    "slider": "text_input",
    "spinbutton": "text_input",
    "combobox": "select",
    "listbox": "select",
    "menuitem": "button",
    "tab": "button",
    "option": "button",
    "img": "image",
    "image": "image",
    "heading": "heading",
    "separator": "separator",
    "group": "group",
    "radiogroup": "group",
}

_TAGS: Final[Mapping[str, str]] = {
    "button": "button",
    "textarea": "textarea",
    "select": "select",
    **{f"h{level}": "heading" for level in range(1, 7)},
    "img": "image",
    "svg": "image",
    "ul": "list",
    "ol": "list",
    "menu": "list",
    "table": "table",
    "p": "paragraph",
    "section": "section",
    "article": "section",
    "fieldset": "group",
    "hr": "separator",
    "details": "details",
    "iframe": "iframe",
}

_INPUT_TYPES: Final[Mapping[str, str | None]] = {
    **dict.fromkeys(("submit", "button", "reset", "image"), "button"),
    "checkbox": "checkbox",
    "radio": "radio",
    "hidden": None,
}

MAPPED_TAGS: Final = frozenset(_TAGS) | {"a", "area", "input"}
_EDITABLE: Final = ("", "true", "plaintext-only")
"""Values of `contenteditable` with which an element is typed into (HTML Standard, 6.8.1)."""


def role_of(element: Node) -> str | None:
    """Return the SOM role of an element, or None when it has none.

    An ARIA role that SOM does not know leaves the element what it is by its name: a link stays a link. A `<select>` or
    a text field that calls itself a combobox stays what can be operated.
    """
    tag, attributes = element.tag, element.attributes
    if tag in ("a", "area"):
        native = "link" if "href" in attributes else None
    elif tag == "input":
        native = _INPUT_TYPES.get(input_type(element), "text_input")
    else:
        native = _TAGS.get(tag)
        if native is None and attributes.get("contenteditable", "no").strip().lower() in _EDITABLE:
            native = "text_input"
    claimed = None
    if "role" in attributes:
        claimed = next((_ARIA[token] for token in attributes["role"].lower().split() if token in _ARIA), None)
    if claimed is None or (native in ("text_input", "textarea") and claimed == "select"):
        return native
    return claimed


def input_type(element: Node) -> str:
    """Return the `type` of an `<input>` in lower case; a text field when it has none."""
    return element.attributes.get("type", "").strip().lower() or "text"
