"""What was done to the controls of a page: an overlay upon its HTML, so that a page at rest is its bytes and this.

Paths of elements are the keys. A control that is not in the overlay is as its HTML says.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from awp_publish.browsing.markup import Control, Markup, Place, kind_of
from awp_publish.browsing.sanitising import sanitise
from awp_publish.pages.tree import Node


@dataclass(frozen=True, slots=True)
class Changed:
    """The state of one control that was changed; None is "as the HTML says".

    `selected` has the numbers of the chosen options of a select, `open` is for details.
    """

    value: str | None = None
    checked: bool | None = None
    selected: frozenset[int] | None = None
    open: bool | None = None


Overlay: TypeAlias = Mapping[Place, Changed]
PRISTINE: Final[Overlay] = {}


def changed(overlay: Overlay, place: Place, state: Changed) -> Overlay:
    """The overlay with one more change."""
    return {**overlay, place: state}


def value_of(control: Control, overlay: Overlay) -> str:
    """The value of an input or a textarea (HTML 4.10.5.4), sanitised as its type wants."""
    state = overlay.get(control.place)
    if state is not None and state.value is not None:
        return state.value
    kind = kind_of(control.node)
    if kind == "textarea":
        return read_text(control.node).replace("\r\n", "\n").replace("\r", "\n")
    return sanitise(kind, control.node.attributes.get("value", ""), control.node.attributes)


def is_checked(control: Control, overlay: Overlay, markup: Markup) -> bool:
    """Whether a checkbox or radio button is on; of several in a group that the HTML checks, the last one is.

    A choice in a group is noted for all of its members, so an untouched one is in an untouched group.
    """
    state = overlay.get(control.place)
    if state is not None and state.checked is not None:
        return state.checked
    if "checked" not in control.node.attributes:
        return False
    if kind_of(control.node) != "radio":
        return True
    group = reversed(markup.radio_group(control))
    return next(member for member in group if "checked" in member.node.attributes) is control


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a select: its number among them, value, text, label, and whether it can be chosen."""

    number: int
    node: Node
    value: str
    text: str
    label: str
    disabled: bool


def options_of(select: Node) -> list[Option]:
    """The options of a select: its children, and those of its groups (HTML 4.10.7)."""
    found: list[Option] = []
    waiting = [(child, False) for child in reversed(select.children)]
    while waiting:
        node, in_disabled = waiting.pop()
        disabled = in_disabled or "disabled" in node.attributes
        if node.tag == "option":
            text = " ".join(read_text(node).split())
            label = node.attributes.get("label") or text
            found.append(Option(len(found), node, node.attributes.get("value", text), text or label, label, disabled))
        elif node.tag:
            waiting.extend((child, disabled and node.tag == "optgroup") for child in reversed(node.children))
    return found


def selected_options(control: Control, overlay: Overlay) -> list[Option]:
    """The chosen options; a menu of one line shows its first enabled one when nothing is chosen (4.10.7)."""
    options = options_of(control.node)
    state = overlay.get(control.place)
    if state is not None and state.selected is not None:
        return [option for option in options if option.number in state.selected]
    said = [option for option in options if "selected" in option.node.attributes]
    if "multiple" in control.node.attributes:
        return said
    if said or display_size(control.node) > 1:
        return said[-1:]
    return [option for option in options if not option.disabled][:1]


def display_size(select: Node) -> int:
    """How many lines a select shows (4.10.7)."""
    size = select.attributes.get("size", "")
    if size.isascii() and size.isdigit() and int(size[:9]) > 0:
        return int(size[:9])
    return 4 if "multiple" in select.attributes else 1


def is_open(node: Node, place: Place, overlay: Overlay) -> bool:
    """Whether a details is open."""
    state = overlay.get(place)
    return "open" in node.attributes if state is None or state.open is None else state.open


def read_text(node: Node) -> str:
    """The text of an element and all in it, scripts left out, as an option's text is read."""
    parts: list[str] = []
    waiting = [node]
    while waiting:
        inner = waiting.pop()
        if not inner.tag:
            parts.append(inner.text)
        elif inner.tag != "script":
            waiting.extend(reversed(inner.children))
    return "".join(parts)
