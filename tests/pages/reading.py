"""A SOM document read by a test."""

from collections.abc import Iterator
from typing import Any

from awp_publish.pages import Budget, compile_som

URL = "https://shop.example/page"

Document = dict[str, Any]
Element = dict[str, Any]


def compiled(html: str | bytes, budget: Budget = Budget.DEFAULT, url: str = URL) -> Document:
    return compile_som(html, url, budget).document


def elements_of(document: Document) -> list[Element]:
    """Every element, those in shadow roots too, in the order of the document."""
    return [element for region in document["regions"] for element in _each(region["elements"])]


def _each(elements: list[Element]) -> Iterator[Element]:
    for element in elements:
        yield element
        yield from _each(element.get("shadow", {}).get("elements", []))


def elements_in(html: str, budget: Budget = Budget.DEFAULT) -> list[Element]:
    return elements_of(compiled(html, budget))


def only(html: str) -> Element:
    """The one element of a page."""
    (found,) = elements_in(html)
    return found


def said(html: str) -> list[tuple[str, str]]:
    """Role, and text or else label, of each element."""
    return [(element["role"], element.get("text") or element.get("label", "")) for element in elements_in(html)]


def regions_of(html: str) -> dict[str, list[str]]:
    """By the id of each region the texts, or else labels, of its elements."""
    return {
        region["id"]: [element.get("text") or element.get("label", "") for element in region["elements"]]
        for region in compiled(html)["regions"]
    }
