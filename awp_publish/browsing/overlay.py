"""The present state of a page's controls: that of the HTML, and over it what an agent has changed.

The state is an overlay, by place, so that an unchanged page needs no more memory than its bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from awp_publish.browsing.markup import Control, Markup, Place, kind_of
from awp_publish.browsing.values import sanitise
from awp_publish.pages.options import read_options
from awp_publish.pages.tree import Node


@dataclass(frozen=True, slots=True)
class Changed:
    """The changed state of one control; None means as in the HTML.

    `selected` has the numbers of a select's chosen options, `open` is for details.
    """

    value: str | None = None
    checked: bool | None = None
    selected: frozenset[int] | None = None
    open: bool | None = None


Overlay: TypeAlias = Mapping[Place, Changed]
PRISTINE: Final[Overlay] = {}


def value_of(control: Control, overlay: Overlay) -> str:
    """Return the value of an input or a textarea (HTML 4.10.5.4), sanitised according to its type."""
    state = overlay.get(control.place)
    if state is not None and state.value is not None:
        return state.value
    kind = kind_of(control.node)
    if kind == "textarea":
        return read_text(control.node).replace("\r\n", "\n").replace("\r", "\n")
    return sanitise(kind, control.node.attributes.get("value", ""), control.node.attributes)


def is_checked(control: Control, overlay: Overlay, markup: Markup) -> bool:
    """Return True if a checkbox or radio button is checked; of a group in which the HTML checks several, the last one.

    A choice in a group is recorded for all of its members, so the group of an unchanged one is unchanged.
    """
    state = overlay.get(control.place)
    if state is not None and state.checked is not None:
        return state.checked
    if "checked" not in control.node.attributes:
        return False
    is_grouped = kind_of(control.node) == "radio" and control.name
    return not is_grouped or markup.checked[control.form, control.name] is control


def is_open(place: Place, details: Node, overlay: Overlay) -> bool:
    """Return True if details are open."""
    state = overlay.get(place)
    return "open" in details.attributes if state is None or state.open is None else state.open


@dataclass(frozen=True, slots=True)
class SelectOption:
    """One option of a select; `number` is its index."""

    number: int
    node: Node
    value: str
    text: str
    label: str
    disabled: bool


def options_of(select: Node) -> list[SelectOption]:
    """Return the options of a select: its children, and those of its groups (HTML 4.10.7)."""
    options: list[SelectOption] = []
    for number, option in enumerate(read_options(select.tree, select.at)):
        node = select.tree.node(option.node)
        text = " ".join(read_text(node).split())
        label = node.attributes.get("label") or text
        value = node.attributes.get("value", text)
        options.append(SelectOption(number, node, value, text or label, label, option.is_disabled))
    return options


def selected_options(control: Control, overlay: Overlay) -> list[SelectOption]:
    """Return the chosen options. A one-line menu without a choice shows its first enabled option (4.10.7)."""
    options = options_of(control.node)
    state = overlay.get(control.place)
    if state is not None and state.selected is not None:
        return [option for option in options if option.number in state.selected]
    chosen = [option for option in options if "selected" in option.node.attributes]
    if "multiple" in control.node.attributes:
        return chosen
    if chosen or display_size(control.node) > 1:
        return chosen[-1:]
    return [option for option in options if not option.disabled][:1]


def display_size(select: Node) -> int:
    """Return the number of lines that a select shows (4.10.7)."""
    size = select.attributes.get("size", "")
    if size.isascii() and size.isdigit() and int(size[:9]) > 0:
        return int(size[:9])
    return 4 if "multiple" in select.attributes else 1


def read_text(node: Node) -> str:
    """Return the text of an element and its descendants without scripts, as the text of an option is defined."""
    parts: list[str] = []
    waiting = [node]
    while waiting:
        inner = waiting.pop()
        if not inner.tag:
            parts.append(inner.text)
        elif inner.tag != "script":
            waiting.extend(reversed(inner.children))
    return "".join(parts)
