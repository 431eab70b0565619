"""The MCP server card: SEP-2127, schema version 1 (experimental-ext-server-card of 24 July 2026).

Its place is below the MCP endpoint, and it lists no tools: clients ask the server. Programs that discover servers still
read the format of SEP-1649 below /.well-known, so a hybrid with the members of both is served there. Deliberately not
emitted: `repository`, `icons` and `packages` (they are not declared).
"""

import re
from typing import Final

from awp_publish.documents.members import MCP_CARD_SUFFIX, MCP_CARD_TYPE, credentials_of, extension_members, present
from awp_publish.documents.protocol import Document, Protocol, to_json
from awp_publish.model import Catalog, Paths, without_accents

ALIASES: Final = ("/.well-known/mcp/server-card.json", "/.well-known/mcp.json")
ALIAS_MEDIA_TYPE: Final = "application/json"
SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
MAX_AGE: Final = 3600
"""Seconds, as the extension recommends."""

VERSIONS: Final = ("2025-11-25", "2026-07-28")
"""The newest supported revisions: with a handshake, and without."""

TRANSPORT: Final = "streamable-http"
MAX_DESCRIPTION: Final = 100


def is_published(catalog: Catalog) -> bool:
    """Return True while the MCP door is open."""
    return catalog.door("mcp") is not None


def address_of(catalog: Catalog) -> str:
    """Return the path of the card, below the site's MCP endpoint."""
    return catalog.paths.mcp + MCP_CARD_SUFFIX


def render(catalog: Catalog) -> dict[str, object]:
    """Return the card, in the order of its schema."""
    site, needing = catalog.site, [action.auth_required for action in catalog.actions]
    headers = None
    ways = credentials_of(catalog) or []
    if ways and any(needing):
        kinds = {way["method"] for way in ways} | {way["in"] for way in ways if way.get("in") != "header"}
        names = list(dict.fromkeys(str(way["name"]) for way in ways if way.get("in") == "header"))
        names.sort(key=lambda name: name != "Authorization")
        # If one of several is sufficient, none of them is required.
        is_required = all(needing) and len(names) == 1 and kinds.isdisjoint(("session", "cookie", "query"))
        headers = [{"name": name, "isRequired": is_required, "isSecret": True} for name in names] or None
    remote = {
        "type": TRANSPORT,
        "url": catalog.absolute(catalog.paths.mcp),
        "headers": headers,
        "supportedProtocolVersions": list(VERSIONS),
    }
    description = " ".join(site.description.split())
    if len(description) > MAX_DESCRIPTION:
        cut = description[: MAX_DESCRIPTION - 1]
        description = (cut.rpartition(" ")[0].rstrip(",;:") or cut) + "…"
    card = {
        "$schema": SCHEMA,
        "name": name_of(catalog),
        "version": site.version,
        "description": description,
        "title": site.name,
        "websiteUrl": catalog.url,
        "remotes": [present(remote)],
    }
    return card | extension_members(site.extensions)


def render_hybrid(catalog: Catalog) -> dict[str, object]:
    """Return the card with the members of SEP-1649, which lists tools."""
    address = catalog.absolute(catalog.paths.mcp)
    older = {
        "url": address,
        "serverInfo": {"name": name_of(catalog), "title": catalog.site.name, "version": catalog.site.version},
        "protocolVersion": VERSIONS[-1],
        "transport": {"type": TRANSPORT, "endpoint": address},
        "capabilities": {"tools": {}, "resources": {}} | ({"prompts": {}} if catalog.prompts else {}),
        "tools": [{"name": action.id, "description": action.description} for action in catalog.actions],
    }
    return render(catalog) | older


def name_of(catalog: Catalog) -> str:
    """Return the server's name: the site's reversed domain, and the site's name."""
    texts = catalog.domain, without_accents(catalog.site.name)
    domain, name = (re.sub(r"[^a-zA-Z0-9.]+", "-", text).strip("-.") for text in texts)
    return f"{'.'.join(reversed(domain.split('.'))) or 'localhost'}/{name or 'site'}"


_HYBRID: Final = to_json(render_hybrid)

PROTOCOL = Protocol(
    "mcp_server_card",
    documents=(
        Document(
            Paths().mcp + MCP_CARD_SUFFIX,
            MCP_CARD_TYPE,
            to_json(render),
            max_age=MAX_AGE,
            condition=is_published,
            moved=address_of,
            door="mcp",
        ),
        *(
            Document(alias, ALIAS_MEDIA_TYPE, _HYBRID, max_age=MAX_AGE, condition=is_published, door="mcp")
            for alias in ALIASES
        ),
    ),
)
