"""`tools/list`: all tools for everybody, or with `Site(list_only_allowed=True)` for each caller what they may call.

A list that differs by caller is private (`cacheScope`). It is a convenience and no guard: a call is refused for what it
is, whether its tool was listed or not.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

import mcp_types as types
import orjson
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request

from awp_publish.model import Action, Catalog, JsonObject, Page, Prompt
from awp_publish.policy.authentication import Principal
from awp_publish.problems import InvalidOutput, PageNotFound, Problem
from awp_publish.protocols import ALL
from awp_publish.protocols.protocol import Document
from awp_publish.protocols.schema_reading import answer_schema, embedded
from awp_publish.schema import DIALECT, compile_schema
from awp_publish.serve.credentials import read_credentials
from awp_publish.serve.doors import Surroundings
from awp_publish.serve.http import Message, RawHeaders, read_fields
from awp_publish.serve.mcp.calls import EXCHANGE, McpExchange
from awp_publish.serve.negotiation import RequestedFormat
from awp_publish.serve.pages import PageReader
from awp_publish.site import Site
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

# --- Actions as MCP tools ---
# Model Context Protocol, revisions 2024-11-05 to 2026-07-28. Up to 2025-11-25 a structured result is an object, so an
# action that answers with anything else is listed with an `outputSchema` whose one member is `result`. From
# 2026-07-28 on any JSON value will do but null, which the SDK takes for an absent result: what may be null is wrapped
# there too.

RESULT: Final = "result"
"""The member that holds an answer which is no object."""

PROBLEM: Final = "awp/problem"
"""Where a result's `_meta` has the problem."""

MIRRORED: Final = b'"x-mcp-header"'
"""What marks an input that a header of the request repeats (Streamable HTTP of 2026-07-28)."""

LIST_TTL: Final = 300_000
"""Milliseconds for which a client may keep the list: tools change when the site is started anew."""

ANY_OBJECT: Final[JsonObject] = {"type": "object"}


@dataclass(frozen=True, slots=True)
class Tool:
    """One action as one generation of the protocol knows it: the entry of the list, and whether answers are wrapped."""

    action: Action
    entry: Mapping[str, object]
    is_wrapped: bool

    def shape(self, output: object) -> object:
        """An answer as structured content."""
        return {RESULT: output} if self.is_wrapped else output


@dataclass(frozen=True, slots=True)
class Tools:
    """All tools, by name, in the order of the catalog. `mirrored` are schemas with inputs that headers repeat."""

    by_name: Mapping[str, Tool]
    mirrored: Mapping[str, JsonObject]

    def mirrored_schema(self, name: str) -> JsonObject | None:
        """The schema of a tool whose arguments are compared with headers, which takes a while; None for any other."""
        return self.mirrored.get(name)

    def listed(self, is_shown: Callable[[Action], bool] | None = None) -> dict[str, object]:
        """The result of `tools/list`. What only some are shown is theirs alone."""
        scope = "public" if is_shown is None else "private"
        entries = [tool.entry for tool in self.by_name.values() if is_shown is None or is_shown(tool.action)]
        return {"tools": entries, "ttlMs": LIST_TTL, "cacheScope": scope, "resultType": "complete"}


def make_tools(catalog: Catalog, *, only_objects: bool) -> Tools:
    """The tools of a catalog. `only_objects` is for the revisions up to 2025-11-25."""
    tools = {action.id: _make_tool(action, only_objects) for action in catalog.actions}
    mirrored = {action.id: action.inputs for action in catalog.actions if MIRRORED in orjson.dumps(action.inputs)}
    return Tools(tools, mirrored)


def _make_tool(action: Action, only_objects: bool) -> Tool:
    answered = answer_schema(action)
    is_wrapped = not _is_object(answered) if only_objects else bool(answered) and _may_be_null(answered)
    entry: dict[str, object] = {
        "name": action.id,
        "title": action.name,
        "description": action.description,
        "inputSchema": {**ANY_OBJECT, **action.inputs},
        "annotations": _annotations(action),
    }
    if answered:
        entry["outputSchema"] = _wrapped(action, answered) if is_wrapped else answered
    return Tool(action, entry, is_wrapped)


def _is_object(schema: JsonObject) -> bool:
    return schema.get("type") == "object"


def _may_be_null(schema: JsonObject) -> bool:
    return not compile_schema(schema)(None)


def _wrapped(action: Action, schema: JsonObject) -> JsonObject:
    result, definitions = embedded(schema, f"{action.id}_result")
    wrapped: dict[str, object] = {"type": "object", "properties": {RESULT: result}, "required": [RESULT]}
    dialect = {"$schema": schema["$schema"]} if schema.get("$schema", DIALECT) != DIALECT else {}
    return dialect | wrapped | ({"$defs": definitions} if definitions else {})


def _annotations(action: Action) -> dict[str, object]:
    """All of them, always: what is left out counts as destructive and open to the world."""
    return {
        "title": action.name,
        "readOnlyHint": action.intent == "read",
        "destructiveHint": action.side_effect == "destructive",
        "idempotentHint": action.repeatable,
        "openWorldHint": False,
    }


# --- Results ---


def tell_answer(tool: Tool, body: bytes, output: object, meta: Mapping[str, object]) -> dict[str, object]:
    """The result of a call that succeeded: structured, and the same JSON as text (specification, Server/Tools)."""
    shaped = tool.shape(output)
    text = orjson.dumps(shaped).decode() if tool.is_wrapped else body.decode()
    told = _tell(text, meta, is_error=False)
    if isinstance(shaped, dict) or "outputSchema" in tool.entry:
        told["structuredContent"] = shaped
    return told


def tell_problem(body: bytes, meta: Mapping[str, object]) -> dict[str, object]:
    """The result of a call that was refused or failed: the problem as text for the model, in `_meta` for programs.

    It is no structured content: some clients hold that to the tool's outputSchema in any case.
    """
    return _tell(body.decode(), {**meta, PROBLEM: orjson.loads(body)}, is_error=True)


def _tell(text: str, meta: Mapping[str, object], *, is_error: bool) -> dict[str, object]:
    return {
        "content": [{"type": "text", "text": text}],
        "isError": is_error,
        "_meta": meta,
    }


Context: TypeAlias = ServerRequestContext[Any, Any]
Identify: TypeAlias = Callable[[McpExchange], Awaitable[Principal | None]]
"""Who makes a request, None for nobody known. Raises a Problem for credentials that are not valid."""


class ToolLists:
    """The tools of a site in both generations of the protocol. Without `identify` everybody is shown all of them."""

    def __init__(self, classic: Tools, modern: Tools, identify: Identify | None = None) -> None:
        self.classic = classic
        self.modern = modern
        self._identify = identify

    def of(self, context: Context) -> Tools:
        """The tools as a request's revision knows them."""
        return self.modern if context.protocol_version in MODERN_PROTOCOL_VERSIONS else self.classic

    async def list_tools(self, context: Context, _: types.PaginatedRequestParams) -> dict[str, Any]:
        """Answer `tools/list`. Raises MCPError for credentials that are not valid, and makes it an HTTP refusal."""
        tools = self.of(context)
        if self._identify is None:
            return tools.listed()
        exchange = exchange_of(context)
        try:
            principal = await self._identify(exchange)
        except Problem as problem:
            exchange.refusal = problem
            exchange.meta_of(problem)
            described = orjson.loads(exchange.describe(problem))
            raise MCPError(types.INVALID_REQUEST, problem.detail, described) from problem
        return tools.listed(lambda action: _may_call(principal, action))


def make_lists(surroundings: Surroundings) -> ToolLists:
    """The tools of a catalog, and who is shown which of them."""
    catalog, enforcement = surroundings.catalog, surroundings.enforcement
    classic, modern = make_tools(catalog, only_objects=True), make_tools(catalog, only_objects=False)
    if not surroundings.site.limits.list_only_allowed or not enforcement.authenticators:
        return ToolLists(classic, modern)
    gate = enforcement.identify()
    proxies = surroundings.admission.trusted_proxies

    async def identify(exchange: McpExchange) -> Principal | None:
        return await gate(read_credentials(exchange.scope, exchange.fields, proxies))

    return ToolLists(classic, modern, identify)


def exchange_of(context: Context) -> McpExchange:
    """The HTTP request that a message came in."""
    exchange: McpExchange = cast(Request, context.request).scope[EXCHANGE]
    return exchange


def _may_call(principal: Principal | None, action: Action) -> bool:
    """What a route with credentials of its own allows is known to the route alone."""
    if action.route_authenticates or not (action.auth_required or action.scopes):
        return True
    return principal is not None and principal.scopes.issuperset(action.scopes)


# --- The site's pages as MCP resources (specification, Server/Resources), in Markdown ---
# Declared pages are listed; a template says that all others can be read too. They are read as at the endpoint for
# pages: as somebody who is not known would see them, and nothing else than pages of this site.

MEDIA_TYPE: Final = "text/markdown"
_MARKDOWN: Final = RequestedFormat("md", "full", by_query=True)
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


# --- The site's documents and pages as MCP resources (specification ---

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
        listed = [_describe_resource(catalog, document) for document in _documents(catalog)]
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


def _describe_resource(catalog: Catalog, document: Document) -> dict[str, object]:
    path = document.path_in(catalog)
    title = {"title": document.title} if document.title else {}
    return {"uri": catalog.absolute(path), "name": path, **title, "mimeType": document.media_type}


def _contents(catalog: Catalog, document: Document, uri: str) -> dict[str, Any]:
    text = document.render(catalog).decode()
    contents = [{"uri": uri, "mimeType": document.media_type, "text": text}]
    milliseconds = document.max_age * 1000
    return {"contents": contents, "ttlMs": milliseconds, "cacheScope": "public", "resultType": "complete"}


# --- The site's prompts as MCP prompts (specification ---
# Arguments are texts in this protocol; what a prompt's function takes as a number is read from one. Writing a prompt
# is no call of an action: no gate stands before it, and it is given as long as a call would be.

logger: Final = logging.getLogger("awp_publish.calls")

ROLES: Final = ("user", "assistant")

WireResult: TypeAlias = dict[str, Any]


class PromptLists:
    """Lists and writes the prompts of a catalog. `timeout` in seconds."""

    def __init__(self, catalog: Catalog, timeout: float) -> None:
        self._prompts = {prompt.id: prompt for prompt in catalog.prompts}
        self._timeout = timeout

    async def list_prompts(self, _context: Context, _params: types.PaginatedRequestParams) -> WireResult:
        """Answer `prompts/list`."""
        listed = [_describe_prompt(prompt) for prompt in self._prompts.values()]
        return {"prompts": listed, "ttlMs": LIST_TTL, "cacheScope": "public", "resultType": "complete"}

    async def get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> WireResult:
        """Answer `prompts/get`. Raises MCPError."""
        prompt = self._prompts.get(params.name)
        if prompt is None:
            raise MCPError(types.INVALID_PARAMS, f'This site has no prompt "{params.name[:100]}".')
        given: dict[str, object] = {**(params.arguments or {})}
        missing = [one.name for one in prompt.arguments if one.required and one.name not in given]
        if missing:
            raise MCPError(types.INVALID_PARAMS, f"The prompt needs {', '.join(missing)}.")
        described = {"description": prompt.description} if prompt.description else {}
        return {**described, "messages": await self._write(prompt, given, context), "resultType": "complete"}

    async def _write(self, prompt: Prompt, given: dict[str, object], context: Context) -> list[WireResult]:
        exchange = exchange_of(context)
        try:
            async with asyncio.timeout(self._timeout):
                return _messages(orjson.loads(await prompt.write(given)))
        except Problem as problem:
            code = types.INTERNAL_ERROR if problem.status >= 500 else types.INVALID_PARAMS
            raise MCPError(code, problem.detail, orjson.loads(exchange.describe(problem))) from problem
        except Exception as error:
            logger.exception("prompt %s failed (request_id=%s)", prompt.id, exchange.request_id)
            words = "did not answer in time" if isinstance(error, TimeoutError) else "failed"
            raise MCPError(types.INTERNAL_ERROR, f"The prompt {prompt.id} {words}.") from error


def _describe_prompt(prompt: Prompt) -> WireResult:
    described: WireResult = {"name": prompt.id, "title": prompt.name}
    if prompt.description:
        described["description"] = prompt.description
    if prompt.arguments:
        described["arguments"] = [
            {"name": one.name, "required": one.required} | ({"description": one.description} if one.description else {})
            for one in prompt.arguments
        ]
    return described


def _messages(written: object) -> list[WireResult]:
    pairs = [["user", written]] if isinstance(written, str) else written
    if not isinstance(pairs, list) or not all(map(_is_pair, pairs)):
        raise InvalidOutput("A prompt is a text, or a list of pairs of a role and a text.")
    return [{"role": role, "content": {"type": "text", "text": text}} for role, text in pairs]


def _is_pair(pair: object) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and pair[0] in ROLES and isinstance(pair[1], str)
