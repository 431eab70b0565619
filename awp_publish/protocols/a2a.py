"""AWAS's A2A manifest: AWAS 1.0, section "MCP and A2A Integration". It is no A2A agent card.

It points A2A agents at the catalogue of actions and at its schema, and tells with what else the site can be spoken to.
Deliberately not emitted: the sample's `$schema` (its address belongs to nobody, and clients MUST validate referenced
schemas), "state_management" and "100% interoperability" (nothing here measures them), `supported_agents`, `protocol`
and `integration` without an A2A server. It is not published without the catalogue, which it MUST reference.
"""

from typing import Final

from awp_publish.model import Catalog
from awp_publish.protocols import agent_card, awas
from awp_publish.protocols.members import door_addresses, extension_members, located, metadata, origin, present
from awp_publish.protocols.protocol import Document, Protocol, to_json

PATH: Final = "/.well-known/a2a-manifest.json"

PARTNERS: Final = {"mcp": "MCP", "woa": "WoA", "awp": "AWP"}
"""Doors to the names under which the sample lists other protocols. A2A is compatible with itself."""


def render(catalog: Catalog) -> dict[str, object]:
    """Return the manifest, in the order of the sample."""
    site, actions, door = catalog.site, catalog.actions, catalog.door("a2a")
    compatible = [name for partner, name in PARTNERS.items() if catalog.door(partner)]
    compatible += ["OpenAPI"] if catalog.openapi else []
    card = {"agent_card": located(catalog, agent_card.PATH)} if agent_card.is_published(catalog) else {}
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
        # The catalogue MUST be referenced, the schema SHOULD be; then every door that is open.
        "endpoints": {
            "actions_registry": located(catalog, awas.ALIAS_PATH),
            "schema_definition": located(catalog, awas.SCHEMA_PATH),
            "api_base": origin(catalog),
            **door_addresses(catalog),
            **card,
        },
        "discovery": {"auto_discoverable": True, "discovery_endpoint": located(catalog, PATH)},
        "integration": {"a2a_version": door.version} if door else None,
        "metadata": metadata(catalog),
        "interoperability": {"cross_protocol": bool(compatible), "compatible_with": compatible},
    }
    return present(manifest) | extension_members(site.extensions)


PROTOCOL = Protocol(
    "a2a",
    documents=(
        Document(PATH, awas.MEDIA_TYPE, to_json(render), max_age=awas.MAX_AGE, condition=awas.is_published, door="a2a"),
    ),
)
