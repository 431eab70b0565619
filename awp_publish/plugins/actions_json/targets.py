"""Targets of actions.json at the address of a page."""

from collections.abc import Mapping
from typing import Any

from awp_publish.maps import reading
from awp_publish.model import Catalog, JsonObject, Page


def scope_of(catalog: Catalog, page: Page) -> dict[str, object]:
    """Return the predicate for a page's addresses: a part of the address, or a pattern if it has placeholders."""
    if page.is_template:
        parts = [part.partition("}")[2] if index else part for index, part in enumerate(page.path.split("{"))]
        return {"url_matches": catalog.absolute("*".join(parts))}
    if page.path == "/":
        return {"url_matches": catalog.absolute("/")}
    return {"url_contains": catalog.prefix + page.path}


def at_address(scope: JsonObject, target: Any) -> Any:
    """Return a target (V1, target) with the address and the confidence that it does not have itself."""
    if not isinstance(target, Mapping):
        return target
    address = {} if target.keys() & {"url_contains", "url_matches"} else scope
    return {**target, **address, "confidence": target.get("confidence", "observed")}


def css_of(target: JsonObject) -> str | None:
    """Return the preferred selector of a target, None if it has none."""
    return next((css for name in ("selector", "selectors") for css in reading.texts(target, name)), None)


def slot(expression: str) -> str:
    """Return a JSONata expression as a slot."""
    return f"{{% {expression} %}}"
