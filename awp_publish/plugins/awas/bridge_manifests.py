"""AWAS's manifests for MCP and A2A clients: AWAS 1.0, section "MCP and A2A Integration".

They lead those clients to the catalogue of actions, which they MUST reference, and to the open doors; they are
neither an MCP server card nor an A2A agent card. Deliberately not emitted: the samples' `$schema` (its address
belongs to nobody, and clients MUST validate referenced schemas), "state_management" and "100% interoperability"
(nothing measures them), `supported_agents`, and `protocol` and `integration` without such a door.
"""

from typing import Final

from awp_publish.documents.members import (
    AGENT_CARD_PATHS,
    AWAS_ALIAS_PATH,
    extension_members,
    located,
    located_if,
    present,
)
from awp_publish.documents.protocol import Document, Protocol, to_json
from awp_publish.model import Catalog
from awp_publish.plugins.awas.schemas import MAX_AGE, MEDIA_TYPE, SCHEMA_PATH


def is_published(catalog: Catalog) -> bool:
    """Return True if the catalogue of actions is among a site's documents."""
    return AWAS_ALIAS_PATH in catalog.documents


MCP_PATH: Final = "/.well-known/mcp-manifest.json"

A2A_PATH: Final = "/.well-known/a2a-manifest.json"

PARTNERS: Final = {"mcp": "MCP", "woa": "WoA", "awp": "AWP"}
"""Doors to the A2A sample's names for other protocols. A2A is compatible with itself."""


def render_mcp_manifest(catalog: Catalog) -> dict[str, object]:
    """Return the manifest for MCP clients, in the order of the sample."""
    site, door = catalog.site, catalog.door("mcp")
    capabilities = {
        "actions": bool(catalog.actions),
        "workflows": bool(site.workflows),
        "resources": door is not None,  # documents and pages
        "prompts": bool(catalog.prompts) and door is not None,
    }
    manifest = {
        "name": site.name,
        "version": site.version,
        "description": site.description,
        "capabilities": [name for name, is_on in capabilities.items() if is_on],
        # The catalogue MUST be referenced, the schema SHOULD be; then come all open doors.
        "endpoints": {
            "actions": located(catalog, AWAS_ALIAS_PATH),
            "schema": located(catalog, SCHEMA_PATH),
            **_door_addresses(catalog),
        },
        "metadata": _metadata(catalog),
        "integration": {"protocol": "MCP", "version": door.version} if door else None,
    }
    return present(manifest) | extension_members(site.extensions)


def render_a2a_manifest(catalog: Catalog) -> dict[str, object]:
    """Return the manifest for A2A clients, in the order of the sample."""
    site, actions, door = catalog.site, catalog.actions, catalog.door("a2a")
    compatible = [name for partner, name in PARTNERS.items() if catalog.door(partner)]
    compatible += ["OpenAPI"] if catalog.openapi else []
    has_card = catalog.door("a2a") is not None and catalog.publishes("agent_card")
    card = {"agent_card": located(catalog, AGENT_CARD_PATHS[0])} if has_card else {}
    manifest = {
        "name": site.name,
        "version": site.version,
        "description": site.description,
        "protocol": "A2A" if door else None,
        "capabilities": {
            "actions": bool(actions),
            "workflows": bool(site.workflows),
            "authentication": any(action.auth_required for action in actions),
        },
        # The catalogue MUST be referenced, the schema SHOULD be; then come all open doors.
        "endpoints": {
            "actions_registry": located(catalog, AWAS_ALIAS_PATH),
            "schema_definition": located(catalog, SCHEMA_PATH),
            "api_base": catalog.url.removesuffix(catalog.prefix),
            **_door_addresses(catalog),
            **card,
        },
        "discovery": {"auto_discoverable": True, "discovery_endpoint": located(catalog, A2A_PATH)},
        "integration": {"a2a_version": door.version} if door else None,
        "metadata": _metadata(catalog),
        "interoperability": {"cross_protocol": bool(compatible), "compatible_with": compatible},
    }
    return present(manifest) | extension_members(site.extensions)


def _metadata(catalog: Catalog) -> dict[str, object]:
    """Return the `metadata` object of both manifests, with what the site declares."""
    site = catalog.site
    return present(
        {
            "homepage": catalog.url,
            "documentation": located_if(catalog, site.documentation),
            "license": site.license,
        }
    )


def _door_addresses(catalog: Catalog) -> dict[str, object]:
    addresses: dict[str, object] = {door.protocol: located(catalog, door.path) for door in catalog.doors}
    if catalog.openapi:
        addresses["openapi"] = located(catalog, catalog.openapi.path)
    return addresses


MCP_MANIFEST = Protocol(
    "mcp",
    documents=(
        Document(
            MCP_PATH, MEDIA_TYPE, to_json(render_mcp_manifest), max_age=MAX_AGE, condition=is_published, door="mcp"
        ),
    ),
)

A2A_MANIFEST = Protocol(
    "a2a",
    documents=(
        Document(
            A2A_PATH, MEDIA_TYPE, to_json(render_a2a_manifest), max_age=MAX_AGE, condition=is_published, door="a2a"
        ),
    ),
)
