"""AWAS's MCP manifest: AWAS 1.0, section "MCP and A2A Integration". It is no MCP server card.

It points MCP clients at the catalogue of actions and at its schema, and at the MCP server while that door is open.
Deliberately not emitted: the sample's `$schema` (its address belongs to nobody, and clients MUST validate referenced
schemas), `integration` without an MCP server. It is not published without the catalogue, which it MUST reference.
"""

from typing import Final

from awp_publish.model import Catalog
from awp_publish.protocols import awas
from awp_publish.protocols.members import door_addresses, extension_members, located, metadata, present
from awp_publish.protocols.protocol import Document, Protocol, to_json

PATH: Final = "/.well-known/mcp-manifest.json"


def render(catalog: Catalog) -> dict[str, object]:
    """Return the manifest, in the order of the sample."""
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
        # The catalogue MUST be referenced, the schema SHOULD be; then every door that is open.
        "endpoints": {
            "actions": located(catalog, awas.ALIAS_PATH),
            "schema": located(catalog, awas.SCHEMA_PATH),
            **door_addresses(catalog),
        },
        "metadata": metadata(catalog),
        "integration": {"protocol": "MCP", "version": door.version} if door else None,
    }
    return present(manifest) | extension_members(site.extensions)


PROTOCOL = Protocol(
    "mcp",
    documents=(
        Document(PATH, awas.MEDIA_TYPE, to_json(render), max_age=awas.MAX_AGE, condition=awas.is_published, door="mcp"),
    ),
)
