"""The SOM of a page within a budget, with every control: agents must see all that can be done (paper 7.2)."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from awp_publish.browsing.som_elements import elements_of
from awp_publish.pages.som import Som

INTERACTIVE: Final = frozenset({"link", "button", "text_input", "textarea", "select", "checkbox", "radio", "details"})
"""Roles of interactive elements (paper, Table 2; details are the reference server's)."""


def with_controls(small: Som, full: Som) -> Som:
    """Return the SOM of a page in a small budget, with the interactive elements of the full one, each at its place.

    The document may be larger than its budget.
    """
    if small.document["meta"]["interactive_count"] == full.document["meta"]["interactive_count"]:
        return small
    by_id = {region["id"]: region for region in small.document["regions"]}
    regions = []
    for region in full.document["regions"]:
        listed = by_id.get(region["id"], {**region, "elements": []})
        members = list(_merged(listed["elements"], region["elements"], small.places))
        if members:
            regions.append({**listed, "elements": members})
    document = {**small.document, "regions": regions}
    roles = [element["role"] for element in elements_of(document)]
    counts = {"element_count": len(roles), "interactive_count": sum(role in INTERACTIVE for role in roles)}
    document["meta"] = {**small.document["meta"], **counts}
    ids = {str(element["id"]) for element in elements_of(document)}
    return Som(measured(document), {name: place for name, place in full.places.items() if name in ids})


def _merged(
    listed: list[dict[str, Any]], every: list[dict[str, Any]], places: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield a region's listed elements and all interactive ones, in the order of the page; a summary has no place."""
    elements = {element["id"]: element for element in listed if element["id"] in places}
    missing = []
    for element in every:
        if element["id"] in elements or element["role"] in INTERACTIVE:
            yield elements.get(element["id"], element)
        else:
            missing.append(element)
    for summary in listed:
        if summary["id"] not in places and missing:
            length = sum(len(str(element.get("text", ""))) for element in missing)
            yield {**summary, "text": f"[{len(missing)} more elements dropped, ~{length} chars]"}


def measured(document: dict[str, Any]) -> dict[str, Any]:
    """Return a SOM document whose `meta.som_bytes` is its own length as JSON."""
    document = {**document, "meta": {**document["meta"], "som_bytes": 0}}
    length = with_zero = len(orjson.dumps(document))
    while length != with_zero - 1 + len(str(length)):  # the document contains its own length
        length = with_zero - 1 + len(str(length))
    document["meta"]["som_bytes"] = length
    return document
