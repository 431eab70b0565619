"""MCP's list of a site's servers: one."""

from typing import Final

from awp_publish.documents.protocol import Document, Protocol, to_json
from awp_publish.model import Catalog
from awp_publish.plugins.mcp import server_card

SERVERS_PATH: Final = "/.well-known/mcp/servers.json"


def render_servers(catalog: Catalog) -> dict[str, object]:
    server: dict[str, object] = {
        "name": server_card.name_of(catalog),
        "title": catalog.site.name,
        "description": catalog.site.description,
        "url": catalog.absolute(catalog.paths.mcp),
        "transport": server_card.TRANSPORT,
        "capabilities": {"tools": {}, "resources": {}} | ({"prompts": {}} if catalog.prompts else {}),
    }
    if catalog.publishes("mcp_server_card"):
        server["serverCard"] = catalog.absolute(server_card.address_of(catalog))
    return {"servers": [server]}


MCP_SERVERS: Final = Protocol(
    "mcp_servers",
    documents=(
        Document(SERVERS_PATH, "application/json", to_json(render_servers), condition=server_card.is_published),
    ),
)
