"""Resources (specification, Server/Resources): everything that a model may read of a site besides its tools.

Declared pages are listed, and a template announces that all others can be read too: as at the endpoint for pages, in
the form for unknown visitors, and only pages of this site. Reading a page at the route of an action requires the
credentials that the action requires.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import mcp_types as types
from mcp.shared.exceptions import MCPError

from awp_publish.calls.call import scopes_of
from awp_publish.documents.protocol import Document, published, views_of
from awp_publish.http.body import wait_for_disconnect
from awp_publish.http.doors import identify_caller
from awp_publish.http.exchange import Message, Scope, read_fields, route_path
from awp_publish.model import Action, Catalog, Complete, Page
from awp_publish.plugin import Context, known_protocols
from awp_publish.plugins.mcp import server_card as mcp_server_card
from awp_publish.plugins.mcp.exchange import RequestContext, WireResult, admit_caller, exchange_of, is_modern
from awp_publish.plugins.mcp.servers import MCP_SERVERS
from awp_publish.plugins.mcp.tool_list import LISTED
from awp_publish.problems import PageNotFound, Problem

if TYPE_CHECKING:
    from awp_publish.plugins.mcp.apps import Cards
from awp_publish.plugins.mcp.skills import SKILL_SCHEME, SkillResources

Completion: TypeAlias = tuple[Complete | None, Sequence[str]]
"""How an argument is completed: by the declared function, otherwise with those of the choices that match."""


class Readers:
    """Checks readers of what belongs to an action: they may see it, and have the credentials that it requires."""

    def __init__(self, door: Context) -> None:
        self._door = door
        self._identify = identify_caller(door)

    def find(self, action_id: str | None) -> Action | None:
        """Return the published action with this id, or None."""
        return next((action for action in self._door.published().actions if action.id == action_id), None)

    async def may_see(self, context: RequestContext, action: Action | None) -> bool:
        """Return True if the caller may see an action. Raises MCPError for invalid credentials."""
        if action is None or action.is_public:
            return True
        caller = await admit_caller(context, self._identify)
        return action.is_for(scopes_of(caller))

    async def admit(self, context: RequestContext, action: Action | None) -> bool:
        """Return False if the caller may not see an action. Raises MCPError, with the challenge of a call."""
        if not await self.may_see(context, action):
            return False
        if action is not None and action.asker == "site":
            await admit_caller(context, identify_caller(self._door, action))
        return True


MEDIA_TYPE: Final = "text/markdown"

NOT_FOUND: Final = -32002
"""The error for an unknown resource in revisions up to 2025-11-25; in later ones it is invalid params."""

_MAX_AGE: Final = re.compile(rb"\bmax-age=(\d{1,9})\b")
_NOT_SHARED: Final = re.compile(rb"\b(?:private|no-store|no-cache)\b")


class Resources:
    """Lists and reads the resources of one address of a site, in their present state."""

    def __init__(self, door: Context) -> None:
        self._catalog = door.published
        self._any_page = door.catalog.url + "/{+path}"
        self._pages = door.ask("pages")  # None if pages are HTML only
        self._readers = Readers(door)
        self._guides = door.ask("discovery")
        self._introductions = (*_INTRODUCTIONS, *(self._guides.introductions if self._guides is not None else ()))
        self.skills = SkillResources(door.published, self._guides)
        self.cards: Cards | None = None

    async def list_resources(self, _context: RequestContext, _params: types.PaginatedRequestParams) -> WireResult:
        """Answer `resources/list`: the site's pages, each document once even if it has several paths, and skills."""
        listed: list[WireResult] = []
        if self._pages is not None:
            catalog = self._catalog()
            listed += [_page_entry("uri", catalog, page) for page in catalog.pages if not page.is_template]
        renderers = set[object]()
        for catalog, document in self._documents():
            if document.render in renderers or document in self._introductions:
                continue
            renderers.add(document.render)
            path, title = document.path_in(catalog), {"title": document.title} if document.title else {}
            entry = {"uri": catalog.absolute(path), "name": path, **title, "mimeType": document.media_type}
            if self._is_own_skill(document):  # SEP-2640, Resource Metadata
                own = self._guides.skills_of(views_of(catalog)(document))[-1]
                entry |= {"name": own.name, "description": own.description, "mimeType": MEDIA_TYPE}
            listed.append(entry)
        return {"resources": [*listed, *self.skills.listed()], **LISTED}

    async def list_templates(self, _context: RequestContext, _params: types.PaginatedRequestParams) -> WireResult:
        """Answer `resources/templates/list`: pages with placeholders, then one template for all pages (RFC 6570)."""
        catalog = self._catalog()
        listed = [
            _page_entry("uriTemplate", catalog, page)
            for page in catalog.pages
            if page.is_template and len(page.placeholders) == page.path.count("{")
        ]
        template = {
            "uriTemplate": self._any_page,
            "name": "page",
            "title": "Any page of this site",
            "description": "A page as Markdown, as an anonymous visitor sees it. path may include a query.",
            "mimeType": MEDIA_TYPE,
        }
        return {"resourceTemplates": [*listed, template], **LISTED}

    def completion_of(self, uri: str, argument: str) -> Completion | None:
        """Return how an argument of a template is completed, or None for an unknown template or argument."""
        catalog = self._catalog()
        if self._pages is None:
            return None
        if uri == self._any_page:
            paths = [page.path.removeprefix("/") for page in catalog.pages if not page.is_template]
            return (None, paths) if argument == "path" else None
        for page in catalog.pages:
            if page.is_template and catalog.absolute(page.path) == uri and argument in page.placeholders:
                return page.complete, page.choices.get(argument, ())
        return None

    async def read_resource(self, context: RequestContext, params: types.ReadResourceRequestParams) -> WireResult:
        """Answer `resources/read`. Raises MCPError if it is neither a document nor a page of the site."""
        uri = params.uri
        if self.cards is not None and (card := self.cards.read(uri)) is not None:
            return card
        if uri.startswith(SKILL_SCHEME) and (read := self.skills.read(uri)) is not None:
            return read
        for catalog, document in self._documents():
            if catalog.absolute(document.path_in(catalog)) == uri:
                text, milliseconds = document.render(views_of(catalog)(document)).decode(), document.max_age * 1000
                kind = MEDIA_TYPE if self._is_own_skill(document) else document.media_type
                contents = [{"uri": uri, "mimeType": kind, "text": text}]
                return {"contents": contents, **LISTED, "ttlMs": milliseconds}
        page = await self._read_page(context, uri)
        if page is not None:
            return page
        code = types.INVALID_PARAMS if is_modern(context) else NOT_FOUND
        raise MCPError(code, f"This site has no resource {uri[:200]}.", {"uri": uri[:200]})

    def _is_own_skill(self, document: Document) -> bool:
        return self._guides is not None and self._guides.is_own_skill(document)

    async def _read_page(self, context: RequestContext, uri: str) -> WireResult | None:
        """Read the page at `uri`, with the caching of its response; None if it is not a page that everybody may see.

        Raises MCPError for a page that failed, and for one at the route of an action with further requirements.
        """
        # A resource has an absolute address: relative references, which the endpoint accepts, are not resources.
        if self._pages is None or re.match(r"https?://", uri, re.IGNORECASE) is None:
            return None

        async def receive() -> Message:
            await wait_for_disconnect(exchange.receive)
            return {"type": "http.disconnect"}

        async def admit(inner: Scope) -> None:
            path = route_path(inner)
            for action in self._catalog().actions:
                if action.target is None or action.method != "GET" or (action.is_public and not action.auth_required):
                    continue
                if action.target.pattern().fullmatch(path) and not await self._readers.admit(context, action):
                    raise PageNotFound("There is no such page.")

        exchange = exchange_of(context)
        try:
            reply = await self._pages.read(uri, self._pages.whole_markdown, exchange.scope, receive, {}, admit=admit)
        except PageNotFound as problem:
            if problem.status < 500:
                return None
            raise MCPError(types.INTERNAL_ERROR, problem.detail, {"uri": uri[:200]}) from problem
        except Problem:
            return None
        fields = read_fields(reply.headers)
        caching = fields.get(b"cache-control", b"").lower()
        max_age = _MAX_AGE.search(caching)
        is_shared = not _NOT_SHARED.search(caching) and b"accept-language" not in fields.get(b"vary", b"").lower()
        return {
            "contents": [{"uri": uri, "mimeType": MEDIA_TYPE, "text": reply.body.decode()}],
            "ttlMs": int(max_age[1]) * 1000 if max_age is not None and is_shared else 0,
            "cacheScope": "public" if is_shared else "private",
            "resultType": "complete",
        }

    def _documents(self) -> Iterator[tuple[Catalog, Document]]:
        catalog = self._catalog()
        for document in published(known_protocols(), catalog):
            if document.condition is not None or document.path in catalog.documents:
                yield catalog, document


def _page_entry(address: str, catalog: Catalog, page: Page) -> WireResult:
    described = {"description": page.description} if page.description else {}
    entry = {address: catalog.absolute(page.path), "name": page.path, "title": page.title, **described}
    return entry | {"mimeType": MEDIA_TYPE}


_INTRODUCTIONS: Final = (*mcp_server_card.PROTOCOL.documents, *MCP_SERVERS.documents)
"""Documents for discovering this endpoint, which a client that reads resources has already done."""
