"""The entry list of a form (HTML 4.10.21.4, "constructing the entry list"): what a form would send, in tree order."""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from awp_publish.browsing.markup import Control, Markup, Place, kind_of
from awp_publish.browsing.state import Overlay, is_checked, selected_options, value_of

BUTTONS: Final = frozenset({"submit", "image", "reset", "button"})
NEVER_SENT: Final = frozenset({"object", "output", "fieldset"})
_WITH_DIRECTION: Final = frozenset(
    {"hidden", "text", "search", "tel", "url", "email", "password", "submit", "textarea"}
)
_RIGHT_TO_LEFT: Final = frozenset({"R", "AL"})
_STRONG: Final = _RIGHT_TO_LEFT | {"L"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One name and its value. `is_file`: a file input; nothing can be chosen, so it is empty and nameless."""

    name: str
    value: str
    is_file: bool = False


def construct_entries(
    form: Place, submitter: Control | None, overlay: Overlay, markup: Markup, charset: str
) -> list[Entry]:
    """What the form sends when `submitter` (None: nobody's button) submits it, in this encoding."""
    entries: list[Entry] = []
    for control in markup.controls_of(form):
        if not _takes_part(control, submitter, overlay, markup):
            continue
        entries.extend(_entries_of(control, overlay, charset))
    return entries


def _takes_part(control: Control, submitter: Control | None, overlay: Overlay, markup: Markup) -> bool:
    kind = kind_of(control.node)
    if kind in NEVER_SENT or control.disabled or control.in_datalist:
        return False
    if kind in BUTTONS:
        return submitter is not None and control.place == submitter.place
    return kind not in ("checkbox", "radio") or is_checked(control, overlay, markup)


def _entries_of(control: Control, overlay: Overlay, charset: str) -> Iterator[Entry]:
    node, kind, name = control.node, kind_of(control.node), control.name
    if kind == "image":
        prefix = f"{name}." if name else ""
        yield from (Entry(prefix + axis, "0") for axis in ("x", "y"))
    elif not name:
        return
    elif kind == "select":
        yield from (Entry(name, option.value) for option in selected_options(control, overlay) if not option.disabled)
    elif kind in ("checkbox", "radio"):
        yield Entry(name, node.attributes.get("value", "on"))
    elif kind == "file":
        yield Entry(name, "", is_file=True)
    elif kind == "hidden" and name.lower() == "_charset_":
        yield Entry(name, charset)
    else:
        yield Entry(name, _plain_value(control, kind, overlay))
        yield from _direction_entry(control, kind, overlay)


def _plain_value(control: Control, kind: str, overlay: Overlay) -> str:
    return control.node.attributes.get("value", "") if kind in BUTTONS else value_of(control, overlay)


def _direction_entry(control: Control, kind: str, overlay: Overlay) -> Iterator[Entry]:
    dirname = control.node.attributes.get("dirname", "")
    if dirname and kind in _WITH_DIRECTION and control.node.tag != "button":
        yield Entry(dirname, direction_of(control, kind, overlay))


def direction_of(control: Control, kind: str, overlay: Overlay) -> str:
    """Whether a control's text runs `ltr` or `rtl` (HTML 3.2.6.4): by the nearest `dir` that says so."""
    node = control.node
    while node is not None:
        said = node.attributes.get("dir", "").lower()
        if said in ("ltr", "rtl"):
            return said
        if said == "auto" and node is control.node:
            return _direction_of_text(value_of(control, overlay))
        if kind == "tel" and node is control.node:
            return "ltr"
        if node.parent is None:
            break
        node = node.parent
    return "ltr"


def _direction_of_text(text: str) -> str:
    strong = next((unicodedata.bidirectional(c) for c in text if unicodedata.bidirectional(c) in _STRONG), "L")
    return "rtl" if strong in _RIGHT_TO_LEFT else "ltr"
