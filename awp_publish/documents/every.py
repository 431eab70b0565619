"""The protocols a site speaks: pure renderers, catalog in, bytes out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from awp_publish.documents.agent_json import PROTOCOL as AGENT_JSON
from awp_publish.documents.awas import (
    A2A_MANIFEST as A2A,
    MCP_MANIFEST as MCP,
    PROTOCOL as AWAS,
    SCHEMAS_PROTOCOL as SCHEMAS,
)
from awp_publish.documents.members import located
from awp_publish.documents.protocol import Protocol, published
from awp_publish.documents.woa import PROTOCOL as WOA
from awp_publish.model import Catalog
from awp_publish.plugins.a2a.agent_card import PROTOCOL as AGENT_CARD
from awp_publish.plugins.actions_json.document import PROTOCOL as ACTIONS_JSON
from awp_publish.plugins.discovery.agent_skills import PROTOCOL as AGENT_SKILLS
from awp_publish.plugins.discovery.catalogues import API_CATALOG, ARD, MCP_SERVERS
from awp_publish.plugins.discovery.crawling import AUTH_MD, ROBOTS, SECURITY, SITEMAP
from awp_publish.plugins.discovery.llms_txt import PROTOCOL as LLMS_TXT
from awp_publish.plugins.discovery.webmcp import PROTOCOL as WEBMCP
from awp_publish.plugins.identity.protected_resource import PROTOCOL as PROTECTED_RESOURCE
from awp_publish.plugins.mcp.server_card import PROTOCOL as MCP_SERVER_CARD
from awp_publish.plugins.pages.som import PROTOCOL as SOM

ALL: tuple[Protocol, ...] = (
    AWAS,
    SCHEMAS,
    AGENT_JSON,
    WOA,
    MCP,
    MCP_SERVER_CARD,
    A2A,
    AGENT_CARD,
    PROTECTED_RESOURCE,
    ACTIONS_JSON,
    SOM,
    LLMS_TXT,
    AGENT_SKILLS,
    API_CATALOG,
    ARD,
    MCP_SERVERS,
    ROBOTS,
    SITEMAP,
    SECURITY,
    AUTH_MD,
    WEBMCP,
)

# --- Links to the documents ---

ALTERNATE: Final = "alternate"
"""The relation of documents that can be read instead of a page."""

OPENAPI_TYPE: Final = "application/json"
"""The type with which frameworks serve their OpenAPI document."""


@dataclass(frozen=True, slots=True)
class Link:
    """A link to a document, for a header or a page's head."""

    href: str
    rel: str
    type: str
    title: str | None


def links_of(catalog: Catalog, protocols: Sequence[Protocol]) -> Iterator[Link]:
    """Yield links to the site's documents."""
    for document in published(protocols, catalog):
        if document.rel is not None:
            media_type = document.media_type.split(";", 1)[0]
            yield Link(catalog.prefix + document.path, document.rel, media_type, document.title)
    if catalog.openapi is not None:
        yield Link(located(catalog, catalog.openapi.path), "service-desc", OPENAPI_TYPE, "OpenAPI")


def link_header(catalog: Catalog, protocols: Sequence[Protocol] = ALL, *, of_pages: bool = True) -> str:
    """Return the value of a `Link` header (RFC 8288) that points at the site's documents.

    Alternates of pages are left out unless `of_pages`.
    """
    written: list[str] = []
    for link in links_of(catalog, protocols):
        if of_pages or link.rel != ALTERNATE:
            written.append(f'<{link.href}>; rel="{link.rel}"; type="{link.type}"')
    return ", ".join(written)
