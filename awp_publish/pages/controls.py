"""The `attrs` of form controls (SOM 1.0, section 4.3)."""

from collections.abc import Iterator
from typing import Final

from awp_publish.pages.attributes import MOST_VALUE, Attrs, shorten_address
from awp_publish.pages.roles import input_type
from awp_publish.pages.shortening import Limits, Shortened
from awp_publish.pages.tables import Said
from awp_publish.pages.tree import Node

_BUTTONS: Final = ("submit", "button", "reset", "image")
_FLAGS: Final = ("required", "disabled", "multiple")
_FLAGS_OF_INPUTS: Final = ("required", "disabled", "checked", "multiple")


def read_control(node: Node, said: Said, limits: Limits, shortened: Shortened) -> Attrs:
    """What a native control is, holds, and asks for."""
    if node.tag == "input":
        return _input(node)
    if node.tag == "select":
        return _select(node, said, limits, shortened)
    attrs: Attrs = {}
    if node.tag == "button":
        given = node.attributes.get("type", "").strip().lower()
        attrs["button_type"] = given if given in ("button", "reset") else "submit"
        _keep(node, attrs, ("value",))
    else:
        value = "".join(child.text for child in node.children)
        if value:
            attrs["value"] = value[:MOST_VALUE]
        _keep(node, attrs, ("placeholder",))
    return _flagged(node, attrs, _FLAGS[:2])


def _input(node: Node) -> Attrs:
    kind, attributes = input_type(node), node.attributes
    attrs: Attrs = {"input_type": kind}
    if kind in _BUTTONS:
        attrs["button_type"] = "submit" if kind == "image" else kind
    _keep(node, attrs, ("value", "placeholder"))
    if kind == "image":
        _keep(node, attrs, ("alt",))
        if attributes.get("src"):
            attrs["src"] = shorten_address(attributes["src"])
    if kind == "radio" and attributes.get("name"):
        attrs["group"] = attributes["name"]
    return _flagged(node, attrs, _FLAGS_OF_INPUTS)


def _keep(node: Node, attrs: Attrs, names: tuple[str, ...]) -> None:
    attrs.update({name: node.attributes[name][:MOST_VALUE] for name in names if node.attributes.get(name)})


def _flagged(node: Node, attrs: Attrs, flags: tuple[str, ...]) -> Attrs:
    attrs.update({flag: True for flag in flags if flag in node.attributes})
    return attrs


def _select(node: Node, said: Said, limits: Limits, shortened: Shortened) -> Attrs:
    multiple = "multiple" in node.attributes
    options = list(_options(node, said))
    if not multiple and not any(option.get("selected") for option in options):
        chosen = next((option for option in options if "disabled" not in option), None)
        if chosen is not None:
            chosen["selected"] = True
    selected = [option["value"] for option in options if option.get("selected")]
    attrs: Attrs = {}
    kept = limits.take_options(options, shortened)
    if kept:
        attrs["options"] = [{**option} for option in kept]
    if selected:
        attrs["value"] = selected[0] if multiple else selected[-1]
    if multiple and selected:
        attrs["selected_values"] = selected
    size = node.attributes.get("size", "").strip()
    if size:
        attrs["size"] = int(size) if size.isascii() and size.isdecimal() and len(size) < 16 else size[:MOST_VALUE]
    return _flagged(node, attrs, _FLAGS)


def _options(select: Node, said: Said) -> Iterator[Attrs]:
    """Every option, in order, with what its group says of it."""
    waiting: list[tuple[Node, str, bool]] = [(select, "", False)]
    while waiting:
        node, group, disabled = waiting.pop()
        if node.tag == "option":
            yield _option(node, said, group, disabled)
            continue
        if node.tag == "optgroup":
            group, disabled = node.attributes.get("label", ""), "disabled" in node.attributes
        waiting.extend((child, group, disabled) for child in reversed(node.children) if child.tag)


def _option(node: Node, said: Said, group: str, disabled: bool) -> Attrs:
    text = said(node) or node.attributes.get("label", "")
    option: Attrs = {"value": node.attributes.get("value", text)[:MOST_VALUE], "text": text}
    if group:
        option["group"] = group
    if "selected" in node.attributes:
        option["selected"] = True
    if disabled or "disabled" in node.attributes:
        option["disabled"] = True
    return option
