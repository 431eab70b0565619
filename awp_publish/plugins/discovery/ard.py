"""ARD 0.91 and AI Catalog."""

import re
from collections.abc import Iterator
from typing import Final

from awp_publish.documents.members import (
    AGENT_CARD_PATHS,
    AI_CATALOG_PATH,
    ARD_PATH,
    MCP_CARD_SUFFIX,
    MCP_CARD_TYPE,
)
from awp_publish.documents.protocol import Document, Protocol, to_json
from awp_publish.model import Action, Catalog
from awp_publish.plugins.discovery.own_skill import skill_name, skill_path
from awp_publish.plugins.discovery.prose import first_sentence

AI_CATALOG_TYPE: Final = "application/ai-catalog+json"
AGENT_CARD_TYPE: Final = "application/a2a-agent-card+json"

SPEC_VERSION: Final = "1.0"

MAX_QUERIES: Final = 5

SKILL_TYPE: Final = 'text/markdown; profile="urn:air:agent-skills"'


def interfaces_of(catalog: Catalog) -> list[str]:
    """Return the kinds of live interfaces with a published description, which ARD's catalogue lists."""
    answering = {
        "mcp": catalog.door("mcp") is not None and catalog.publishes("mcp_server_card"),
        "a2a": catalog.door("a2a") is not None and catalog.publishes("agent_card"),
        "skill": bool(catalog.exposed_at("woa").actions) and catalog.publishes("agent_skills"),
    }
    return [kind for kind, answers in answering.items() if answers]


def has_interfaces(catalog: Catalog) -> bool:
    """Return True if there is something to list there."""
    return bool(interfaces_of(catalog))


def render_ard(catalog: Catalog) -> dict[str, object]:
    """Return the catalogue of what can be used here."""
    return {
        "specVersion": SPEC_VERSION,
        "host": {"displayName": catalog.site.name},
        "entries": list(_entries(catalog)),
    }


def _entries(catalog: Catalog) -> Iterator[dict[str, object]]:
    site, name = catalog.site, skill_name(catalog)
    # An IPv6 address has colons, which separate the parts of a URN.
    domain = re.sub(r"[^A-Za-z0-9.-]", "-", catalog.domain)
    queries = [query for action in catalog.actions for query in _queries(action)[:1]][:MAX_QUERIES]
    kinds, interfaces = interfaces_of(catalog), []
    if "mcp" in kinds:
        card = catalog.paths.mcp + MCP_CARD_SUFFIX
        interfaces.append(("mcp", f"{site.name} tools (MCP)", MCP_CARD_TYPE, card))
    if "a2a" in kinds:
        interfaces.append(("a2a", f"{site.name} agent (A2A)", AGENT_CARD_TYPE, AGENT_CARD_PATHS[0]))
    if "skill" in kinds:
        interfaces.append(("skill", f"How to use {site.name}", SKILL_TYPE, skill_path(catalog)))
    for kind, title, media_type, path in interfaces:
        yield {
            "identifier": f"urn:air:{domain}:{kind}:{name}",
            "displayName": title,
            "type": media_type,
            "url": catalog.absolute(path),
            "description": site.description,
            "representativeQueries": _filled(queries, site.description),
        }
    for action in catalog.actions:
        offered = [interface for interface in interfaces if action.is_exposed_at(_DOORS[interface[0]])]
        if not offered:
            continue
        _, _, media_type, path = offered[0]
        yield {
            "identifier": f"urn:air:{domain}:action:{action.id}",
            "displayName": action.name,
            "type": media_type,
            "url": catalog.absolute(path),
            "description": first_sentence(action.description),
            "representativeQueries": _filled(_queries(action), action.description),
            **({"tags": list(action.tags)} if action.tags else {}),
        }


_DOORS: Final = {"mcp": "mcp", "a2a": "a2a", "skill": "woa"}
"""The door of each kind of interface."""


def _queries(action: Action) -> list[str]:
    """Return what a person who wants this may say: the action's name, with the texts of its examples."""
    queries = [action.name]
    for example in action.examples:
        values = [str(value) for value in example.values() if isinstance(value, str) and 0 < len(value) <= 60]
        if values:
            queries.append(f"{action.name}: {' '.join(values)}")
    return queries


def _filled(queries: list[str], description: str) -> list[str]:
    texts = list(dict.fromkeys([*queries, first_sentence(description).rstrip(".")]))
    return (texts if len(texts) > 1 else [*texts, f"{texts[0]} online"])[:MAX_QUERIES]


_ARD: Final = to_json(render_ard)

ARD: Final = Protocol(
    "ard",
    documents=(
        Document(ARD_PATH, "application/json", _ARD, rel="ard", title="ARD catalogue", condition=has_interfaces),
        Document(AI_CATALOG_PATH, AI_CATALOG_TYPE, _ARD, rel="ai-catalog", condition=has_interfaces),
    ),
)
