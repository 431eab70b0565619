"""What a model may read of a site besides its tools: documents and pages as resources, and prompts.

Declared pages are listed, and a template says that all others can be read too: as at the endpoint for pages, as
somebody sees them who is not known, and nothing else than pages of this site.
"""

import asyncio
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import mcp_types as types
import orjson
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from awp_publish import media
from awp_publish.model import Catalog, Complete
from awp_publish.problems import InvalidOutput, PageNotFound, Problem
from awp_publish.protocols import ALL, catalogues, crawling, mcp_server_card
from awp_publish.protocols.agent_skills import render_skill, skills_of
from awp_publish.protocols.protocol import Document, published, views_of
from awp_publish.serve.doors import DoorContext
from awp_publish.serve.http import Message, read_fields, wait_for_disconnect
from awp_publish.serve.mcp.apps import SCHEME as CARDS, Cards
from awp_publish.serve.mcp.calls import LIST_TTL, Context, McpExchange, WireResult, content_block, exchange_of
from awp_publish.serve.mcp.skills import SCHEME, SkillResources
from awp_publish.serve.negotiation import RequestedFormat
from mcp.shared.exceptions import MCPError

# --- Resources (specification, Server/Resources) ---

MEDIA_TYPE: Final = "text/markdown"

NOT_FOUND: Final = -32002
"""What revisions up to 2025-11-25 answer for an unknown resource; later ones say that the params are invalid."""

_MARKDOWN: Final = RequestedFormat("md", "full", by_query=True)
_MAX_AGE: Final = re.compile(rb"\bmax-age=(\d{1,9})\b")
_NOT_SHARED: Final = re.compile(rb"\b(?:private|no-store|no-cache)\b")
_LISTED: Final = {"ttlMs": LIST_TTL, "cacheScope": "public", "resultType": "complete"}


class Resources:
    """Lists and reads what one address of a site has, as it is at the moment."""

    def __init__(self, door: DoorContext) -> None:
        self._catalog = door.published
        self._url = door.catalog.url
        self._pages = door.pages  # None where pages are HTML only
        self.skills = SkillResources(door.published)
        self.cards: Cards | None = None

    async def list_resources(self, _context: Context, _params: types.PaginatedRequestParams) -> WireResult:
        """Answer `resources/list`: the site's pages, each document once, whatever other places it has, and skills."""
        listed: list[WireResult] = []
        if self._pages is not None:
            catalog = self._catalog()
            for page in (page for page in catalog.pages if not page.is_template):
                described = {"description": page.description} if page.description else {}
                uri = catalog.absolute(page.path)
                known = {"uri": uri, "name": page.path, "title": page.title, **described, "mimeType": MEDIA_TYPE}
                listed.append(known)
        renderers = set[object]()
        for catalog, document in self._documents():
            if document.render in renderers or document in _OF_THE_UNCONNECTED:
                continue
            renderers.add(document.render)
            path, title = document.path_in(catalog), {"title": document.title} if document.title else {}
            entry = {"uri": catalog.absolute(path), "name": path, **title, "mimeType": document.media_type}
            if document.render is render_skill:  # SEP-2640, Resource Metadata
                own = skills_of(views_of(catalog)(document))[-1]
                entry |= {"name": own.name, "description": own.description, "mimeType": MEDIA_TYPE}
            listed.append(entry)
        return {"resources": [*listed, *self.skills.listed()], **_LISTED}

    async def list_templates(self, _context: Context, _params: types.PaginatedRequestParams) -> WireResult:
        """Answer `resources/templates/list`: the pages of several addresses, then one template of all (RFC 6570)."""
        catalog, listed = self._catalog(), list[WireResult]()
        for page in (
            page for page in catalog.pages if page.is_template and len(page.placeholders) == page.path.count("{")
        ):
            described = {"description": page.description} if page.description else {}
            known = {"uriTemplate": catalog.absolute(page.path), "name": page.path, "title": page.title}
            listed.append({**known, **described, "mimeType": MEDIA_TYPE})
        template = {
            "uriTemplate": self._url + "/{+path}",
            "name": "page",
            "title": "Any page of this site",
            "description": "A page as Markdown, as somebody sees it who is not signed in. A query may be part of path.",
            "mimeType": MEDIA_TYPE,
        }
        return {"resourceTemplates": [*listed, template], **_LISTED}

    async def complete(self, uri: str, argument: str, value: str, others: Mapping[str, str]) -> Sequence[str] | None:
        """Return what fits into an argument of a template; None for a template or an argument that there is not."""
        catalog = self._catalog()
        if self._pages is None:
            return None
        if uri == self._url + "/{+path}":
            paths = [page.path.removeprefix("/") for page in catalog.pages if not page.is_template]
            return matching(paths, value) if argument == "path" else None
        page = next((page for page in catalog.pages if page.is_template and catalog.absolute(page.path) == uri), None)
        if page is None or argument not in page.placeholders:
            return None
        return await suggest(page.complete, page.choices.get(argument, ()), argument, value, others)

    async def read_resource(self, context: Context, params: types.ReadResourceRequestParams) -> WireResult:
        """Answer `resources/read`. Raises MCPError for what is no document and no page of the site."""
        uri = params.uri
        if uri.startswith(CARDS) and self.cards is not None and (card := self.cards.read(uri)) is not None:
            return card
        if uri.startswith(SCHEME) and (read := self.skills.read(uri)) is not None:
            return read
        for catalog, document in self._documents():
            if catalog.absolute(document.path_in(catalog)) == uri:
                text, milliseconds = document.render(views_of(catalog)(document)).decode(), document.max_age * 1000
                contents = [{"uri": uri, "mimeType": document.media_type, "text": text}]
                return {"contents": contents, **_LISTED, "ttlMs": milliseconds}
        page = await self._read_page(exchange_of(context), uri)
        if page is not None:
            return page
        is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        code = types.INVALID_PARAMS if is_modern else NOT_FOUND
        raise MCPError(code, f"This site has no resource {uri[:200]}.", {"uri": uri[:200]})

    async def _read_page(self, exchange: McpExchange, uri: str) -> WireResult | None:
        """Read the page at `uri`, to be kept as its own answer says; None for what is no page that everybody may see.

        Raises MCPError for a page that failed.
        """
        # A resource has an address of its own: the references within the site that the endpoint takes are none.
        if self._pages is None or re.match(r"https?://", uri, re.IGNORECASE) is None:
            return None

        async def receive() -> Message:
            await wait_for_disconnect(exchange.receive)
            return {"type": "http.disconnect"}

        try:
            reply = await self._pages.read(uri, _MARKDOWN, exchange.scope, receive, {})
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
        for document in published(ALL, catalog):
            if document.condition is not None or document.path in catalog.documents:
                yield catalog, document


_OF_THE_UNCONNECTED: Final = tuple(
    document
    for protocol in (
        mcp_server_card.PROTOCOL,
        catalogues.ARD,
        catalogues.MCP_SERVERS,
        crawling.ROBOTS,
        crawling.SITEMAP,
    )
    for document in protocol.documents
)
"""Documents by which a site is found: who reads resources is connected already."""


# --- Prompts (specification, Server/Prompts) ---
# Arguments are texts in this protocol; what a prompt's function takes as a number is read from one. Writing a prompt
# is no call of an action: no gate stands before it, and it may take as long as a call.

logger: Final = logging.getLogger("awp_publish.calls")

ROLES: Final = ("user", "assistant")


class PromptHandlers:
    """Lists and writes the prompts of a catalog. `timeout` in seconds."""

    def __init__(self, catalog: Catalog, timeout: float) -> None:
        self._prompts = {prompt.id: prompt for prompt in catalog.prompts}
        self._timeout = timeout

    async def list_prompts(self, _context: Context, _params: types.PaginatedRequestParams) -> WireResult:
        """Answer `prompts/list`."""
        listed = []
        for prompt in self._prompts.values():
            entry: WireResult = {"name": prompt.id, "title": prompt.name}
            if prompt.description:
                entry["description"] = prompt.description
            if prompt.arguments:
                entry["arguments"] = [
                    {"name": one.name, "required": one.required}
                    | ({"description": one.description} if one.description else {})
                    for one in prompt.arguments
                ]
            listed.append(entry)
        return {"prompts": listed, **_LISTED}

    async def complete(self, name: str, argument: str, value: str, others: Mapping[str, str]) -> Sequence[str] | None:
        """Return what fits into an argument of a prompt; None for a prompt or an argument that there is not."""
        prompt = self._prompts.get(name)
        found = next((one for one in prompt.arguments if one.name == argument), None) if prompt is not None else None
        if prompt is None or found is None:
            return None
        return await suggest(prompt.complete, found.choices, argument, value, others)

    async def get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> WireResult:
        """Answer `prompts/get`. Raises MCPError."""
        prompt = self._prompts.get(params.name)
        if prompt is None:
            raise MCPError(types.INVALID_PARAMS, f'This site has no prompt "{params.name[:100]}".')
        given: dict[str, object] = {**(params.arguments or {})}
        missing = [one.name for one in prompt.arguments if one.required and one.name not in given]
        if missing:
            raise MCPError(types.INVALID_PARAMS, f"The prompt needs {', '.join(missing)}.")
        exchange = exchange_of(context)
        try:
            async with asyncio.timeout(self._timeout):
                written = orjson.loads(await prompt.write(given))
            said = [["user", written]] if isinstance(written, str) else written
            if not isinstance(said, list) or not all(
                isinstance(one, list)
                and all(isinstance(part, str) for part in one)
                and (len(one) == 2 or (len(one) == 3 and media.media_type_of(one[2].encode("utf-8", "replace"))))
                and one[0] in ROLES
                for one in said
            ):
                raise InvalidOutput(
                    "A prompt is a text, or a list of pairs of a role and a text; base64 has its media type as a third."
                )
        except Problem as problem:
            code = types.INTERNAL_ERROR if problem.status >= 500 else types.INVALID_PARAMS
            raise MCPError(code, problem.detail, orjson.loads(exchange.render(problem))) from problem
        except Exception as error:
            logger.exception("prompt %s failed (request_id=%s)", prompt.id, exchange.request_id)
            words = "did not answer in time" if isinstance(error, TimeoutError) else "failed"
            raise MCPError(types.INTERNAL_ERROR, f"The prompt {prompt.id} {words}.") from error
        described = {"description": prompt.description} if prompt.description else {}
        messages = list[WireResult]()
        for role, data, *kind in said:
            place = f"{prompt.id}/{len(messages)}"
            block = content_block(data, kind[0].encode("ascii"), place) if kind else None
            messages.append({"role": role, "content": {"type": "text", "text": data} if block is None else block})
        return {**described, "messages": messages, "resultType": "complete"}


# --- Completion (specification, Server/Utilities/Completion) ---

MAX_VALUES: Final = 100
"""Values of one answer, at most."""


def matching(choices: Sequence[str], value: str) -> list[str]:
    """Return the choices that begin with what is typed, then those that hold it; letters count alike in both cases."""
    typed = value.casefold()
    first = [one for one in choices if one.casefold().startswith(typed)]
    return first + [one for one in choices if typed in one.casefold() and not one.casefold().startswith(typed)]


async def suggest(
    complete: Complete | None, choices: Sequence[str], argument: str, value: str, others: Mapping[str, str]
) -> Sequence[str]:
    """Return what fits: by the declared function, or of all values where they are known."""
    suggested = await complete(argument, value, others) if complete is not None else None
    return matching(choices, value) if suggested is None else suggested


class CompletionHandler:
    """Answers `completion/complete`. `timeout` in seconds."""

    def __init__(self, prompts: PromptHandlers, resources: Resources, timeout: float) -> None:
        self._prompts = prompts
        self._resources = resources
        self._timeout = timeout

    async def complete(self, context: Context, params: types.CompleteRequestParams) -> WireResult:
        """Suggest values for what a person fills in. Raises MCPError."""
        argument, others = params.argument, (params.context.arguments if params.context is not None else None) or {}
        asked = (argument.name, argument.value, others)
        try:
            async with asyncio.timeout(self._timeout):
                if isinstance(params.ref, types.PromptReference):
                    named, values = params.ref.name, await self._prompts.complete(params.ref.name, *asked)
                else:
                    named, values = params.ref.uri, await self._resources.complete(params.ref.uri, *asked)
        except Exception as error:
            request_id = exchange_of(context).request_id
            logger.exception("complete= of %s failed (request_id=%s)", argument.name, request_id)
            words = "did not answer in time" if isinstance(error, TimeoutError) else "failed"
            raise MCPError(types.INTERNAL_ERROR, f"The completion of {argument.name[:100]} {words}.") from error
        if values is None:
            told = f'This site has no prompt or template "{named[:200]}" with an argument "{argument.name[:100]}".'
            raise MCPError(types.INVALID_PARAMS, told)
        shown = {"values": list(values[:MAX_VALUES]), "total": len(values), "hasMore": len(values) > MAX_VALUES}
        return {"completion": shown, "resultType": "complete"}
