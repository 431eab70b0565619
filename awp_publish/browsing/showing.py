"""A page's SOM as it is now: what its HTML says, and what was done to its controls since.

Element ids are made of the HTML alone, so they stay as they are whatever is typed. What is untouched is shared with
every session that looks at the same page: documents are not to be changed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson

from awp_publish.browsing.shelf import Compiled
from awp_publish.browsing.state import Changed, Overlay, options_of
from awp_publish.model import JsonObject
from awp_publish.pages.som import Budget
from awp_publish.pages.tree import Node


@dataclass(frozen=True, slots=True)
class _Change:
    """What was done to one element, the node it is made of, and its options where it is a select."""

    state: Changed
    node: Node
    options: list[dict[str, Any]]


Changes: TypeAlias = Mapping[str, _Change]


def show(compiled: Compiled, budget: Budget, overlay: Overlay) -> JsonObject:
    """The SOM document with the changed values, states and choices in its attributes."""
    som = compiled.som(budget)
    if not overlay:
        return som.document
    touched = {element_id: place for element_id, place in som.places.items() if place in overlay}
    changes = {
        element_id: _Change(overlay[place], node, _all_options(compiled, element_id))
        for element_id, place in touched.items()
        if (node := compiled.tree.node_at(place)) is not None
    }
    regions = [{**region, "elements": _show_all(region["elements"], changes)} for region in som.document["regions"]]
    meta = {**som.document["meta"], "som_bytes": 0}
    document = {**som.document, "regions": regions, "meta": meta}
    meta["som_bytes"] = _own_length(len(orjson.dumps(document)))
    return document


def _own_length(length_with_zero: int) -> int:
    """The length of a document that says its own length."""
    length = length_with_zero
    while length != length_with_zero - 1 + len(str(length)):
        length = length_with_zero - 1 + len(str(length))
    return length


def _show_all(elements: Iterable[dict[str, Any]], changes: Changes) -> list[dict[str, Any]]:
    return [_show_inside(_show_one(element, changes), changes) for element in elements]


def _show_inside(element: dict[str, Any], changes: Changes) -> dict[str, Any]:
    shadow = element.get("shadow")
    if shadow is None:
        return element
    return {**element, "shadow": {**shadow, "elements": _show_all(shadow["elements"], changes)}}


def _show_one(element: dict[str, Any], changes: Changes) -> dict[str, Any]:
    if element["id"] not in changes:
        return element
    change = changes[element["id"]]
    state = change.state
    attributes = dict(element.get("attrs", {}))
    said = {"value": state.value, "checked": state.checked, "open": state.open}
    attributes.update((name, value) for name, value in said.items() if value is not None)
    if state.selected is not None:
        _show_choice(attributes, state.selected, change)
    return {**element, "attrs": attributes}


def _show_choice(attributes: dict[str, Any], chosen: frozenset[int], change: _Change) -> None:
    """What a select shows of its choice: marks at its options, `value` for the first, `selected_values` for several.

    Of a long list a small budget shows a part: what it showed stays, and what is chosen is shown.
    """
    values = [option.value for option in options_of(change.node) if option.number in chosen]
    shown = {_key(option) for option in attributes.get("options", ())}
    attributes["options"] = [
        _mark(option, number in chosen)
        for number, option in enumerate(change.options)
        if number in chosen or _key(option) in shown
    ]
    for name in ("value", "selected_values"):
        attributes.pop(name, None)
    if values:
        attributes["value"] = values[0]
    if values and "multiple" in change.node.attributes:
        attributes["selected_values"] = values


def _all_options(compiled: Compiled, element_id: str) -> list[dict[str, Any]]:
    """The options of a select in the full budget, one for each option of the page."""
    whole: Mapping[str, Any] = compiled.element(element_id) or {}
    options: list[dict[str, Any]] = whole.get("attrs", {}).get("options", [])
    return options


def _key(option: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((name, value) for name, value in option.items() if name != "selected"))


def _mark(option: dict[str, Any], selected: bool) -> dict[str, Any]:
    plain = {name: value for name, value in option.items() if name != "selected"}
    return {**plain, "selected": True} if selected else plain
