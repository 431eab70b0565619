"""The site's documents and pages as MCP resources (specification, Server/Resources), under their own addresses."""

from collections.abc import Iterable
from typing import Any, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from awp_publish.model import Catalog
from awp_publish.protocols import ALL
from awp_publish.protocols.protocol import Document
from awp_publish.serve.mcp_lists import Context
from awp_publish.serve.mcp_pages import PageResources
from awp_publish.site import Site

NOT_FOUND: Final = -32002
"""What revisions up to 2025-11-25 answer for an unknown resource; later ones say that the params are invalid."""


class Resources:
    """Lists and reads what one address of a site has, as it is at the moment; `pages` is None where it is HTML only."""

    def __init__(self, site: Site, url: str, pages: PageResources | None = None) -> None:
        self._site = site
        self._url = url
        self._pages = pages

    async def list_resources(self, _context: Context, _params: types.PaginatedRequestParams) -> dict[str, Any]:
        """Answer `resources/list`."""
        catalog = self._catalog()
        listed = [_describe(catalog, document) for document in _documents(catalog)]
        if self._pages is not None:
            listed += self._pages.listed(catalog)
        return {"resources": listed, "ttlMs": 300_000, "cacheScope": "public", "resultType": "complete"}

    async def read_resource(self, context: Context, params: types.ReadResourceRequestParams) -> dict[str, Any]:
        """Answer `resources/read`. Raises MCPError for what is no document and no page of the site."""
        catalog = self._catalog()
        for document in _documents(catalog):
            if catalog.absolute(document.path_in(catalog)) == params.uri:
                return _contents(catalog, document, params.uri)
        page = await self._pages.read(context, params.uri) if self._pages is not None else None
        if page is not None:
            return page
        is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        code = types.INVALID_PARAMS if is_modern else NOT_FOUND
        raise MCPError(code, f"This site has no resource {params.uri[:200]}.", {"uri": params.uri[:200]})

    def _catalog(self) -> Catalog:
        return next(catalog for catalog in self._site.catalogs if catalog.url == self._url)


def _documents(catalog: Catalog) -> Iterable[Document]:
    for protocol in ALL:
        for document in protocol.documents:
            is_there = document.condition(catalog) if document.condition else document.path in catalog.documents
            if is_there:
                yield document


def _describe(catalog: Catalog, document: Document) -> dict[str, object]:
    path = document.path_in(catalog)
    title = {"title": document.title} if document.title else {}
    return {"uri": catalog.absolute(path), "name": path, **title, "mimeType": document.media_type}


def _contents(catalog: Catalog, document: Document, uri: str) -> dict[str, Any]:
    text = document.render(catalog).decode()
    contents = [{"uri": uri, "mimeType": document.media_type, "text": text}]
    milliseconds = document.max_age * 1000
    return {"contents": contents, "ttlMs": milliseconds, "cacheScope": "public", "resultType": "complete"}
