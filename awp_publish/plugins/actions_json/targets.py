"""Places on declared pages as targets of actions.json, and the addresses and names of what is declared on a page."""

import re

from awp_publish.documents.members import present
from awp_publish.model import Catalog, Locator, Page, Place


def scope_of(catalog: Catalog, page: Page) -> dict[str, object]:
    """Return the predicate for a page's addresses: a part of the address, or a pattern if it has placeholders."""
    if page.is_template:
        parts = [part.partition("}")[2] if index else part for index, part in enumerate(page.path.split("{"))]
        return {"url_matches": catalog.absolute("*".join(parts))}
    if page.path == "/":
        return {"url_matches": catalog.absolute("/")}
    return {"url_contains": catalog.prefix + page.path}


def locator_of(page: Page, place: Place) -> Locator:
    """Return the locator of a place: itself, the page's of that name, or one of that selector."""
    if isinstance(place, Locator):
        return place
    return page.locators.get(place) or Locator(place)


def target_of(catalog: Catalog, page: Page, place: Place, *fallbacks: str, **further: object) -> dict[str, object]:
    """Return a target descriptor (V1, target)."""
    where = locator_of(page, place)
    return present(
        {
            "selector": where.css,
            "role": where.role,
            "name": where.name,
            "text_equals": where.text_equals,
            "text_contains": where.text_contains,
            **scope_of(catalog, page),
            **further,
            "fallback_selectors": [*where.fallbacks, *fallbacks] or None,
            "confidence": "observed",
        }
    )


def qualified(page: Page, name: str) -> str:
    """Return a name of a page's own as it is in the whole map."""
    return f"{page.id}.{name}"


def diagnostic_name(page: Page, place: Place) -> str | None:
    """Return the name of a diagnostic: its locator's name, "message" for a text, otherwise a class, id or tag."""
    if isinstance(place, str) and place in page.locators:
        return place
    where = locator_of(page, place)
    if where.text_contains is not None or where.text_equals is not None:
        return "message"
    plain = re.sub(r"\[[^\]]*\]|\([^()]*\)|::?[\w-]+", "", where.css)  # attributes and pseudo-classes
    names: list[str] = re.findall(r"[A-Za-z][\w-]*", re.split(r"[\s>+~,|]+", plain.strip())[-1], re.ASCII)
    return names[-1] if names else None


def slot(expression: str) -> str:
    """Return a JSONata expression as a slot."""
    return f"{{% {expression} %}}"
