"""The role of an element: by its ARIA role first, then by its name (SOM 1.0, sections 4.2 and 4.5)."""

from collections.abc import Mapping
from typing import Final

from awp_publish.pages.input_types import input_type

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
"""Actions of each interactive role (4.2). Other roles have none."""

CONTROLS: Final = frozenset(ACTIONS) - {"link"}

HIDDEN: Final = "hidden"
"""The role of a hidden input, which documents describe as a text input without actions."""

_ARIA_ROLES: Final[Mapping[str, str]] = {
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
    "article": "section",
    "region": "section",
    "paragraph": "paragraph",
}

_TAG_ROLES: Final[Mapping[str, str]] = {
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

MAPPED_TAGS: Final = frozenset(_TAG_ROLES) | {"a", "area", "input"}
_EDITABLE: Final = ("", "true", "plaintext-only")
"""Values of `contenteditable` that make an element editable (HTML Standard, 6.8.1)."""


def role_of(tag: str, attributes: Mapping[str, str]) -> str | None:
    """Return the SOM role of an element, or None if it has none.

    An ARIA role that SOM does not know does not change the role of the tag. A role that cannot be operated does not
    change a link or a control. A text field with the role combobox is still a text field.
    """
    if tag in ("a", "area"):
        native = "link" if "href" in attributes else None
    elif tag == "input":
        native = _INPUT_TYPES.get(input_type(attributes), "text_input")
    else:
        native = _TAG_ROLES.get(tag)
        if native is None and attributes.get("contenteditable", "no").strip().lower() in _EDITABLE:
            native = "text_input"
    claimed = None
    if "role" in attributes:
        claimed = next(
            (_ARIA_ROLES[token] for token in attributes["role"].lower().split() if token in _ARIA_ROLES), None
        )
    if claimed is None or (native in ACTIONS and claimed not in ACTIONS):
        return native
    return native if native in ("text_input", "textarea") and claimed == "select" else claimed
