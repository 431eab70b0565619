"""Controls of forms as a reader is told of them: what kind, under which name, and what is in them."""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Final

from awp_publish.pages.markdown_kinds import Sight
from awp_publish.pages.markdown_spans import Piece, Verbatim
from awp_publish.pages.markdown_text import code_span, collapse, escape_text
from awp_publish.pages.tree import Node

MOST_OPTIONS: Final = 40
"""Options of a choice that are listed."""

MOST_LOOKS: Final = 100
"""Within a link or a button without text, so many nodes are asked for a name."""

_BUTTONS: Final = frozenset({"submit", "button", "reset", "image"})
_DEFAULTS: Final = {"submit": "Submit", "reset": "Reset"}
"""What browsers write on buttons that say nothing (HTML Standard, section 4.10.5.1.18)."""


def write_control(node: Node, sight: Sight) -> Sequence[Piece]:
    """The pieces for a control, none for a hidden one."""
    pieces = CONTROLS[node.tag](node, sight)
    return (" ", *pieces, " ") if pieces else ()


def _input(node: Node, sight: Sight) -> Sequence[Piece]:
    kind = (node.attributes.get("type") or "text").strip().lower()
    if kind == "hidden":
        return ()
    if kind in _BUTTONS:
        return _input_button(node, kind)
    if kind in ("checkbox", "radio"):
        return _tick(node, kind)
    return [_told(f"{kind} field" if kind != "file" else "file", node, _quoted(node.attributes.get("value", "")))]


def _input_button(node: Node, kind: str) -> Sequence[Piece]:
    given = node.attributes
    said = given.get("alt") if kind == "image" else given.get("value")
    said = said or given.get("aria-label") or given.get("title") or _DEFAULTS.get(kind, "")
    return _button_called(said, node)


def _tick(node: Node, kind: str) -> Sequence[Piece]:
    is_on = "checked" in node.attributes
    sign = ("[x]" if is_on else "[ ]") if kind == "checkbox" else ("(x)" if is_on else "( )")
    label = collapse(node.attributes.get("aria-label", "")).strip()
    return [" ", Verbatim(sign, is_control=kind == "checkbox"), f" {escape_text(label)} " if label else " "]


def _button(node: Node, sight: Sight) -> Sequence[Piece]:
    return _button_called(sight.plain_text(node) or describe(node, sight), node)


def _button_called(said: str, node: Node) -> Sequence[Piece]:
    off = " (disabled)" if "disabled" in node.attributes else ""
    text = escape_text(collapse(said).strip(), in_brackets=True)
    return [Verbatim(f"[button: {text}{off}]" if text else f"[button{off}]", is_control=True)]


def _textarea(node: Node, sight: Sight) -> Sequence[Piece]:
    return [_told("text area", node, _quoted(sight.plain_text(node)))]


def _select(node: Node, sight: Sight) -> Sequence[Piece]:
    options = [one for one in sight.walk(node) if one.tag == "option"]
    chosen = {id(one) for one in options if "selected" in one.attributes}
    if not chosen and options and "multiple" not in node.attributes:
        chosen = {id(options[0])}
    listed = [_option(one, sight, id(one) in chosen) for one in options[:MOST_OPTIONS]]
    if len(options) > MOST_OPTIONS:
        listed.append(f"and {len(options) - MOST_OPTIONS} more")
    kind = "choice of several" if "multiple" in node.attributes else "choice"
    return [_told(kind, node, ", ".join(one for one in listed if one))]


def _option(node: Node, sight: Sight, is_chosen: bool) -> str:
    text = escape_text(collapse(node.attributes.get("label") or sight.plain_text(node)).strip(), in_brackets=True)
    return f"{text} (selected)" if text and is_chosen else text


def _told(kind: str, node: Node, content: str) -> Verbatim:
    given = node.attributes
    name = code_span(given.get("name", ""))
    label = collapse(given.get("aria-label") or given.get("placeholder") or "").strip()
    facts = (
        f"{escape_text(kind, in_brackets=True)} {name}".strip(),
        f"“{escape_text(label, in_brackets=True)}”" if label else "",
        "required" if "required" in given else "",
        "disabled" if "disabled" in given else "",
    )
    told = ", ".join(fact for fact in facts if fact)
    return Verbatim(f"[{told}: {content}]" if content else f"[{told}]", is_control=True)


def _quoted(value: str) -> str:
    text = escape_text(collapse(value).strip(), in_brackets=True)
    return f"“{text}”" if text else ""


def describe(node: Node, sight: Sight) -> str:
    """The name of a button or a link that shows a picture only: its own, or the first one within."""
    names = (_name_of(one, sight) for one in (node, *islice(sight.walk(node), MOST_LOOKS)) if one.tag)
    return next((name for name in names if name), "")


def _name_of(node: Node, sight: Sight) -> str:
    given = node.attributes
    if said := collapse(given.get("aria-label") or given.get("title") or "").strip():
        return said
    is_picture = node.tag == "svg"
    titles = (sight.plain_text(child) for child in node.children if child.tag == "title") if is_picture else ()
    return next(iter(titles), "")


CONTROLS: Final[Mapping[str, Callable[[Node, Sight], Sequence[Piece]]]] = {
    "input": _input,
    "button": _button,
    "textarea": _textarea,
    "select": _select,
}
