"""A page's SOM as it is now: what its HTML says, and what was done to its controls since.

Element ids are made of the HTML alone, so they stay as they are whatever is typed. What is untouched is shared with
every session that looks at the same page: documents are not to be changed.
"""

from collections.abc import Iterable, Mapping

import orjson

from awp_publish.browsing.markup import Markup, Place, kind_of
from awp_publish.browsing.shelf import Compiled
from awp_publish.browsing.state import Changed, Option, Overlay, options_of
from awp_publish.model import JsonObject
from awp_publish.pages.som import Budget
from awp_publish.pages.tree import Node


def show(compiled: Compiled, budget: Budget, overlay: Overlay) -> JsonObject:
    """The SOM document with the changed values, states and choices in its attributes."""
    som = compiled.som(budget)
    if not overlay:
        return som.document
    changes = {id: overlay[place] for id, place in som.places.items() if place in overlay}
    nodes = {id: node for id in changes if (node := compiled.tree.node_at(som.places[id])) is not None}
    document = dict(som.document)
    document["regions"] = [
        {**region, "elements": _show_elements(region["elements"], changes, nodes)} for region in document["regions"]
    ]
    document["meta"] = {**document["meta"], "som_bytes": 0}
    document["meta"]["som_bytes"] = len(orjson.dumps(document))
    return document


def _show_elements(
    elements: Iterable[JsonObject], changes: Mapping[str, Changed], nodes: Mapping[str, Node]
) -> list[JsonObject]:
    return [
        _show_element(element, changes[element["id"]], nodes[element["id"]]) if element["id"] in nodes else element
        for element in elements
    ]


def _show_element(element: JsonObject, state: Changed, node: Node) -> JsonObject:
    attributes = dict(element.get("attrs", {}))
    if state.value is not None:
        attributes["value"] = state.value
    if state.checked is not None:
        attributes["checked"] = state.checked
    if state.open is not None:
        attributes["open"] = state.open
    if state.selected is not None:
        _show_choice(attributes, state.selected, node)
    return {**element, "attrs": attributes}


def _show_choice(attributes: dict[str, object], chosen: frozenset[int], node: Node) -> None:
    """What a select shows of its choice: marks at its options, `value` for the first, `selected_values` for several."""
    values = [option.value for option in options_of(node) if option.number in chosen]
    options = attributes.get("options")
    if isinstance(options, list):
        attributes["options"] = [_mark(option, number in chosen) for number, option in enumerate(options)]
    several = "multiple" in node.attributes
    shown = {"value": values[:1], "selected_values": values if several else []}
    for name, values in shown.items():
        attributes.pop(name, None)
    if shown["value"]:
        attributes["value"] = shown["value"][0]
    if shown["selected_values"]:
        attributes["selected_values"] = shown["selected_values"]


def _mark(option: JsonObject, selected: bool) -> JsonObject:
    plain = {name: value for name, value in option.items() if name != "selected"}
    return {**plain, "selected": True} if selected else plain
