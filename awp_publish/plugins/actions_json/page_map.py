"""What pages declare of the site's actions.json (`site.page(map={...})`), and how it is published.

Names are local to a page. In the map they have the page's id as a prefix, and so have references to them; a name with a
dot may be another page's or an import's.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from awp_publish.checks.places import strings
from awp_publish.documents.members import present
from awp_publish.maps import reading
from awp_publish.maps.namespaces import REFERENCES, change, name_of, rename
from awp_publish.maps.primitives import PRIMITIVES
from awp_publish.maps.rules import TARGETS
from awp_publish.model import Catalog, JsonObject, Page
from awp_publish.plugins.actions_json.targets import at_address, scope_of
from awp_publish.schema.pointers import tokens

OWN_PARTS: Final = ("context", "states", "transitions", "signals", "attachments", "checks", "state_projections")
"""The sections that pages declare, in the order of the map."""


def map_of(page: Page) -> JsonObject:
    """Return what a page declares of the map, {} for nothing."""
    declared: JsonObject = page.options.get("map", {})
    return declared


def targets_of(page: Page) -> Mapping[str, JsonObject]:
    return reading.part(map_of(page), "targets")  # type: ignore[return-value]


def imports_of(catalog: Catalog) -> list[JsonObject]:
    """Return the maps that the pages of a site import."""
    return [entry for page in catalog.pages for entry in reading.objects(map_of(page), "imports")]


def names_of(document: JsonObject) -> dict[str, set[str]]:
    """Return the names that a page declares, by section."""
    names = {section: {name_of(item, section) for item in reading.objects(document, section)} for section in OWN_PARTS}
    return {**names, "tools": set()}


def offered_by(catalog: Catalog) -> Callable[[Any], Any]:
    """Return a function that keeps those of several named tools that there are for a reader of this catalog."""
    tools = PRIMITIVES.keys() | {action.id for action in catalog.actions}
    spaces = tuple(f"{entry['namespace']}." for entry in imports_of(catalog))

    def offered(names: Any) -> Any:
        remaining = [name for name in names if name in tools or str(name).startswith(spaces)]
        return {name: names[name] for name in remaining} if isinstance(names, dict) else remaining

    return offered


def parts_of(catalog: Catalog, page: Page, offered: Callable[[Any], Any]) -> dict[str, list[JsonObject]]:
    """Return the parts of a page as they are published: with its id before their names, at its address, and without
    what names a tool that is not offered.
    """
    scope, declared, names = scope_of(catalog, page), map_of(page), names_of(map_of(page))
    parts: Any = {section: rename(declared, section, f"{page.id}.", names) for section in OWN_PARTS}
    for place in TARGETS:
        parts = change(parts, tokens(place), partial(at_address, scope))
    for path in (("context", "[]", "available_tools"), ("state_projections", "[]", "postconditions")):
        parts = change(parts, path, offered)
    for section in ("transitions", "attachments", "checks"):  # without their tools these mean nothing
        places = [f"/{path.replace('.', '/')}" for path, kind in REFERENCES[section].items() if kind == "tools"]
        tool_names = [[name for _, name in strings(item, *places)] for item in parts[section]]
        parts[section] = [
            item for item, tools in zip(parts[section], tool_names, strict=True) if tools == offered(tools)
        ]
    parts["context"] = [{"load_when": scope, **block} for block in parts["context"]]
    # A check that does not navigate by itself is about the page at this address.
    parts["checks"] = [check if "setup" in check else {"target": scope, **check} for check in parts["checks"]]
    # A projection only has patterns, and a query may follow the address.
    pattern = scope if "url_matches" in scope else {"url_matches": f"{catalog.absolute(page.path)}*"}
    parts["state_projections"] = [
        present({"name": item["name"], "description": item.get("description"), "scope": pattern, **item})
        for item in parts["state_projections"]
    ]
    if page.guide or page.actions:
        block = {
            "id": page.id,
            "title": page.title,
            "body": page.guide or page.description,
            "load_when": scope,
            "available_tools": list(page.actions) or None,
            "next_states": [state["name"] for state in parts["states"]] or None,
        }
        parts["context"].insert(0, present(block))
    return parts  # type: ignore[no-any-return]
