"""The site's pages as MCP resources (specification, Server/Resources), in Markdown.

Declared pages are listed; a template says that all others can be read too. They are read as at the endpoint for pages:
as somebody who is not known would see them, and nothing else than pages of this site.
"""

import re
from typing import Any, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError

from awp_publish.model import Catalog, Page
from awp_publish.problems import PageNotFound, Problem
from awp_publish.serve.mcp_lists import Context, exchange_of
from awp_publish.serve.negotiate_wish import Wish
from awp_publish.serve.page_reading import PageReader
from awp_publish.serve.reply import Message, RawHeaders, read_fields

MEDIA_TYPE: Final = "text/markdown"
_MARKDOWN: Final = Wish("md", "full", by_query=True)
_MAX_AGE: Final = re.compile(rb"\bmax-age=(\d{1,9})\b")
_NOT_SHARED: Final = re.compile(rb"\b(?:private|no-store|no-cache)\b")


class PageResources:
    """Tells of the pages of one address of a site, and reads them."""

    def __init__(self, reader: PageReader) -> None:
        self._reader = reader

    def listed(self, catalog: Catalog) -> list[dict[str, object]]:
        """The declared pages, as `resources/list` has them."""
        return [_describe(catalog, page) for page in catalog.pages]

    async def list_templates(self, _context: Context, _params: types.PaginatedRequestParams) -> dict[str, Any]:
        """Answer `resources/templates/list`: one template of all pages (RFC 6570, section 3.2.3)."""
        template = {
            "uriTemplate": self._reader.catalog.url + "/{+path}",
            "name": "page",
            "title": "Any page of this site",
            "description": "A page as Markdown, as somebody sees it who is not signed in. A query may be part of path.",
            "mimeType": MEDIA_TYPE,
        }
        return {"resourceTemplates": [template], "ttlMs": 300_000, "cacheScope": "public", "resultType": "complete"}

    async def read(self, context: Context, uri: str) -> dict[str, Any] | None:
        """What `resources/read` answers for the page at `uri`, None for what is no page that everybody may see.

        Raises MCPError for a page that failed.
        """
        if not _is_absolute(uri):
            return None
        exchange = exchange_of(context)

        async def receive() -> Message:
            await exchange.gone()
            return {"type": "http.disconnect"}

        try:
            reply = await self._reader.read(uri, _MARKDOWN, exchange.scope, receive, {})
        except PageNotFound as problem:
            if problem.status < 500:
                return None
            raise MCPError(types.INTERNAL_ERROR, problem.detail, {"uri": uri[:200]}) from problem
        except Problem:
            return None
        contents = [{"uri": uri, "mimeType": MEDIA_TYPE, "text": reply.body.decode()}]
        return {"contents": contents, **_freshness(reply.headers), "resultType": "complete"}


def _is_absolute(uri: str) -> bool:
    """A resource has an address of its own: the endpoint's references within the site are none."""
    return re.match(r"https?://", uri, re.IGNORECASE) is not None


def _describe(catalog: Catalog, page: Page) -> dict[str, object]:
    described = {"description": page.description} if page.description else {}
    uri = catalog.absolute(page.path)
    return {"uri": uri, "name": page.path, "title": page.title, **described, "mimeType": MEDIA_TYPE}


def _freshness(headers: RawHeaders) -> dict[str, object]:
    """How long a page may be kept and by whom, as its own answer says."""
    fields = read_fields(headers)
    said = fields.get(b"cache-control", b"").lower()
    found = _MAX_AGE.search(said)
    is_shared = not _NOT_SHARED.search(said) and b"accept-language" not in fields.get(b"vary", b"").lower()
    milliseconds = int(found[1]) * 1000 if found is not None and is_shared else 0
    return {"ttlMs": milliseconds, "cacheScope": "public" if is_shared else "private"}
