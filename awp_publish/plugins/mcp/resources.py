"""Resources and prompts: everything that a model may read of a site besides its tools, and notifications of changes.

Declared pages are listed, and a template announces that all others can be read too: as at the endpoint for pages, in
the form for unknown visitors, and only pages of this site. Reading a prompt whose function is an action's, or a page at
the route of an action, requires the credentials that the action requires.
"""

import asyncio
import base64
import logging
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote, unquote

import mcp_types as types
import orjson
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import (
    SUBSCRIPTION_ID_META_KEY,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
    event_to_notification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from awp_publish.documents.protocol import Document, published, views_of
from awp_publish.http.doors import identify_caller
from awp_publish.http.exchange import HOLDS_THREAD, Message, Scope, read_fields, route_path, wait_for_disconnect
from awp_publish.http.guarded_routes import pattern_of
from awp_publish.http.lifespan import ended_by_stop
from awp_publish.http.streams import OpenStreams
from awp_publish.model import SKILL_FILE, Action, Catalog, Complete, Prompt, Skill
from awp_publish.plugin import Context, known_protocols
from awp_publish.plugins.mcp import server_card as mcp_server_card
from awp_publish.plugins.mcp.calls import Tools, content_block
from awp_publish.plugins.mcp.exchange import Notice, RequestContext, WireResult, admit_caller, exchange_of, hold_stream
from awp_publish.plugins.mcp.servers import MCP_SERVERS
from awp_publish.plugins.mcp.tool_list import LIST_TTL
from awp_publish.problems import InvalidOutput, PageNotFound, Problem, StoreUnavailable
from awp_publish.schema import media
from awp_publish.stores.store import Add, Look, Store, Swap

if TYPE_CHECKING:
    from awp_publish.plugins.mcp.apps import Cards


class Readers:
    """Checks readers of what belongs to an action: they may see it, and have the credentials that it requires."""

    def __init__(self, door: Context) -> None:
        self._door = door
        self._identify = identify_caller(door)

    def find(self, action_id: str | None) -> Action | None:
        """Return the published action with this id, or None."""
        return next((one for one in self._door.published().actions if one.id == action_id), None)

    async def may_see(self, context: RequestContext, action: Action | None) -> bool:
        """Return True if the caller may see an action. Raises MCPError for invalid credentials."""
        if action is None or action.is_public:
            return True
        caller = await admit_caller(context, self._identify)
        return action.is_for(caller.scopes if caller is not None else None)

    async def admit(self, context: RequestContext, action: Action | None) -> bool:
        """Return False if the caller may not see an action. Raises MCPError, with the challenge of a call."""
        if not await self.may_see(context, action):
            return False
        if action is not None and action.auth_required and not action.route_authenticates:
            await admit_caller(context, identify_caller(self._door, action))
        return True


# --- Resources (specification, Server/Resources) ---

MEDIA_TYPE: Final = "text/markdown"

NOT_FOUND: Final = -32002
"""The error for an unknown resource in revisions up to 2025-11-25; in later ones it is invalid params."""

_MAX_AGE: Final = re.compile(rb"\bmax-age=(\d{1,9})\b")
_NOT_SHARED: Final = re.compile(rb"\b(?:private|no-store|no-cache)\b")
_LISTED: Final = {"ttlMs": LIST_TTL, "cacheScope": "public", "resultType": "complete"}


class Resources:
    """Lists and reads the resources of one address of a site, in their present state."""

    def __init__(self, door: Context) -> None:
        self._catalog = door.published
        self._url = door.catalog.url
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
            for page in (page for page in catalog.pages if not page.is_template):
                described = {"description": page.description} if page.description else {}
                uri = catalog.absolute(page.path)
                known = {"uri": uri, "name": page.path, "title": page.title, **described, "mimeType": MEDIA_TYPE}
                listed.append(known)
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
        return {"resources": [*listed, *self.skills.listed()], **_LISTED}

    async def list_templates(self, _context: RequestContext, _params: types.PaginatedRequestParams) -> WireResult:
        """Answer `resources/templates/list`: pages with placeholders, then one template for all pages (RFC 6570)."""
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
            "description": "A page as Markdown, as an anonymous visitor sees it. path may include a query.",
            "mimeType": MEDIA_TYPE,
        }
        return {"resourceTemplates": [*listed, template], **_LISTED}

    async def complete(self, uri: str, argument: str, value: str, others: Mapping[str, str]) -> Sequence[str] | None:
        """Return values for an argument of a template, or None for an unknown template or argument."""
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
                return {"contents": contents, **_LISTED, "ttlMs": milliseconds}
        page = await self._read_page(context, uri)
        if page is not None:
            return page
        is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        code = types.INVALID_PARAMS if is_modern else NOT_FOUND
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
                if pattern_of(action.target).fullmatch(path) and not await self._readers.admit(context, action):
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


_INTRODUCTIONS: Final = (*mcp_server_card.PROTOCOL.documents, *MCP_SERVERS.documents)
"""Documents for discovering this endpoint, which a client that reads resources has already done."""


# --- Prompts (specification, Server/Prompts) ---
# Arguments are texts in this protocol; numbers for a prompt's function are parsed from them. Writing a prompt is not a
# call of an action: no gate applies to it, and it may take as long as a call.

logger: Final = logging.getLogger("awp_publish.calls")

ROLES: Final = ("user", "assistant")


class PromptHandlers:
    """Lists and writes the prompts of a catalog. `timeout` is in seconds."""

    def __init__(self, door: Context) -> None:
        self._prompts = {prompt.id: prompt for prompt in door.catalog.prompts}
        self._readers = Readers(door)
        self._timeout = door.settings.timeout

    async def list_prompts(self, context: RequestContext, _params: types.PaginatedRequestParams) -> WireResult:
        """Answer `prompts/list`: those that the caller may see."""
        listed, cache_scope = [], "public"
        for prompt in self._prompts.values():
            action = self._readers.find(prompt.action)
            if action is not None and not action.is_public:
                cache_scope = "private"
                if not await self._readers.may_see(context, action):
                    continue
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
        return {"prompts": listed, **_LISTED, "cacheScope": cache_scope}

    async def _find(self, context: RequestContext, name: str) -> Prompt | None:
        """Return a prompt if its caller may read it. Raises MCPError."""
        prompt = self._prompts.get(name)
        admitted = prompt is None or await self._readers.admit(context, self._readers.find(prompt.action))
        return prompt if admitted else None

    async def complete(
        self, context: RequestContext, name: str, argument: str, value: str, others: Mapping[str, str]
    ) -> Sequence[str] | None:
        """Return values for an argument of a prompt, or None for an unknown prompt or argument."""
        prompt = await self._find(context, name)
        found = next((one for one in prompt.arguments if one.name == argument), None) if prompt is not None else None
        if prompt is None or found is None:
            return None
        return await suggest(prompt.complete, found.choices, argument, value, others)

    async def get_prompt(self, context: RequestContext, params: types.GetPromptRequestParams) -> WireResult:
        """Answer `prompts/get`. Raises MCPError."""
        prompt = await self._find(context, params.name)
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
"""Values in one answer at most."""


def matching(choices: Sequence[str], value: str) -> list[str]:
    """Return the choices that begin with the typed text, then those that contain it, ignoring case."""
    typed = value.casefold()
    first = [one for one in choices if one.casefold().startswith(typed)]
    return first + [one for one in choices if typed in one.casefold() and not one.casefold().startswith(typed)]


async def suggest(
    complete: Complete | None, choices: Sequence[str], argument: str, value: str, others: Mapping[str, str]
) -> Sequence[str]:
    """Return suggestions: of the declared function, otherwise the matching choices."""
    suggested = await complete(argument, value, others) if complete is not None else None
    return matching(choices, value) if suggested is None else suggested


class CompletionHandler:
    """Answers `completion/complete`. `timeout` is in seconds."""

    def __init__(self, prompts: PromptHandlers, resources: Resources, timeout: float) -> None:
        self._prompts = prompts
        self._resources = resources
        self._timeout = timeout

    async def complete(self, context: RequestContext, params: types.CompleteRequestParams) -> WireResult:
        """Suggest values for an argument. Raises MCPError."""
        argument, others = params.argument, (params.context.arguments if params.context is not None else None) or {}
        asked = (argument.name, argument.value, others)
        try:
            async with asyncio.timeout(self._timeout):
                if isinstance(params.ref, types.PromptReference):
                    named = params.ref.name
                    values = await self._prompts.complete(context, named, *asked)
                else:
                    named, values = params.ref.uri, await self._resources.complete(params.ref.uri, *asked)
        except MCPError:
            raise
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


# --- Skills: the extension `io.modelcontextprotocol/skills` (SEP-2640) ---
# Each file of a skill is a resource `skill://NAME/PATH`, with the same bytes as in the agent-skills index. An entry
# lists all files with digest and size, so that a client can verify that it reads what its person has agreed to.

SKILLS: Final = "io.modelcontextprotocol/skills"
SKILL_SCHEME: Final = "skill://"
DIRECTORY: Final = "inode/directory"


class SkillParams(types.RequestParams):
    """Params of `skills/get`."""

    uri: str


class DirectoryParams(types.PaginatedRequestParams):
    """Params of `resources/directory/read`."""

    uri: str


class SkillResources:
    """Lists and reads the skills of one public address of a site. `catalog` returns the present catalog."""

    def __init__(self, catalog: Callable[[], Catalog], guides: Any) -> None:
        self._catalog = catalog
        self._guides = guides

    def all(self) -> tuple[Skill, ...]:
        """Return the skills, as far as their documents publish them; none on a site that leaves them out."""
        catalog = self._catalog()
        if self._guides is None or not catalog.publishes("agent_skills"):
            return ()
        skills: tuple[Skill, ...] = self._guides.skills_of(catalog.public.exposed_at("woa"))
        return skills

    def register(self, server: Server[Any]) -> None:
        """Make the SDK's server offer the extension."""
        server.extensions[SKILLS] = {"directoryRead": True}
        server.add_request_handler("skills/list", types.PaginatedRequestParams, self.list_skills)
        server.add_request_handler("skills/get", SkillParams, self.get_skill)
        server.add_request_handler("resources/directory/read", DirectoryParams, self.read_directory)

    async def list_skills(self, _context: RequestContext, _params: types.PaginatedRequestParams) -> WireResult:
        """Answer `skills/list` (Listing Skills)."""
        return {"skills": [self._skill_entry(skill) for skill in self.all()], **_LISTED}

    async def get_skill(self, _context: RequestContext, params: SkillParams) -> WireResult:
        """Answer `skills/get` (Getting a Skill). Raises MCPError."""
        for skill in self.all():
            if _skill_uri(skill, SKILL_FILE) == params.uri:
                return {"skill": self._skill_entry(skill), **_LISTED}
        raise MCPError(types.INVALID_PARAMS, f"No skill is served at {params.uri[:200]}.", {"uri": params.uri[:200]})

    async def read_directory(self, _context: RequestContext, params: DirectoryParams) -> WireResult:
        """Answer `resources/directory/read` (Reading Directories). Raises MCPError."""
        for skill in self.all():
            root = f"{SKILL_SCHEME}{skill.name}"
            if params.uri != root and not params.uri.startswith(f"{root}/"):
                continue
            folder = unquote(params.uri.removeprefix(root).removeprefix("/"))
            inside = f"{folder}/" if folder else ""
            below = [path.removeprefix(inside) for path in skill.files if path.startswith(inside)]
            if not below or params.uri.endswith("/"):
                break
            children = list[WireResult]()
            for name in dict.fromkeys(path.partition("/")[0] for path in below):
                path = inside + name
                listed = {"uri": _skill_uri(skill, path), "name": name, "mimeType": DIRECTORY}
                children.append(self._describe_file(skill, path) if path in skill.files else listed)
            return {"resources": children, "resultType": "complete"}
        told = f"{params.uri[:200]} is not a directory resource."
        raise MCPError(types.INVALID_PARAMS, told, {"uri": params.uri[:200]})

    def listed(self) -> Iterator[WireResult]:
        """Yield the entries of declared skills for `resources/list`: their SKILL.md.

        The site's own skill is among the documents.
        """
        declared = self._catalog().skills
        yield from (self._describe_file(skill, SKILL_FILE) for skill in self.all() if skill in declared)

    def read(self, uri: str) -> WireResult | None:
        """Return the result of `resources/read` for a file of a skill, or None if there is no such file."""
        for skill in self.all():
            for path, body in skill.files.items():
                if _skill_uri(skill, path) == uri:
                    contents: WireResult = {"uri": uri, "mimeType": self._kind(path)}
                    try:
                        contents["text"] = body.decode()
                    except UnicodeDecodeError:
                        contents["blob"] = base64.b64encode(body).decode()
                    return {"contents": [contents], **_LISTED}
        return None

    def _kind(self, path: str) -> str:
        return str(self._guides.media_type_of(path)).partition(";")[0]

    def _describe_file(self, skill: Skill, path: str) -> WireResult:
        """Return a file as a resource (Resource Metadata)."""
        described: WireResult = {
            "uri": _skill_uri(skill, path),
            "name": path.rpartition("/")[2],
            "mimeType": self._kind(path),
        }
        if path == SKILL_FILE:
            described |= {"name": skill.name, "description": skill.description}
        return described | {"size": len(skill.files[path])}

    def _skill_entry(self, skill: Skill) -> WireResult:
        """Return a skill with all its files (Skill Entries)."""
        files = [
            {"uri": _skill_uri(skill, path), "digest": self._guides.digest_of(body), "size": len(body)}
            for path, body in skill.files.items()
        ]
        return {"uri": _skill_uri(skill, SKILL_FILE), "frontmatter": skill.facts, "resources": files}


def _skill_uri(skill: Skill, path: str) -> str:
    return f"{SKILL_SCHEME}{skill.name}/{quote(path)}"


# --- `subscriptions/listen` (revision 2026-07-28) ---
# Listening clients are notified that what they have read may have changed: when the site publishes anew
# (`Site.refresh`), when its status is set (`Site.set_status`), and when the list of tools for this caller has changed,
# because of what it may call. Workers notify each other through the site's store if it is shared. Nothing is replayed:
# clients that were not connected read again.

LISTEN: Final = "subscriptions/listen"

LOOK_SECONDS: Final = 2.0
"""Seconds between two polls for changes that other workers have published."""

VERIFY_SECONDS: Final = 5.0
"""Seconds after which the caller is authenticated again, and its tools are listed again."""

MAX_RESOURCES: Final = 1_000
KEPT_SECONDS: Final = 86_400.0
_CHANGED: Final = "mcp-changed"


class Subscriptions:
    """The listening clients of one public address of a site."""

    def __init__(self, door: Context, tools: Tools, streams: OpenStreams) -> None:
        self._door = door
        self._tools = tools
        self._streams = streams
        self._identify = identify_caller(door)
        self._store: Store = door.guards.store
        self._listening: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._version = 0
        self._digested: tuple[int, dict[str, str]] = (-1, {})
        self._is_elsewhere = False
        self._unwritten: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
        self._is_closing = False
        door.site.change_listeners.append(self.tell)

    def register(self, server: Server[Any]) -> None:
        """Make the SDK's server accept listening clients."""
        server.add_request_handler(LISTEN, types.SubscriptionsListenRequestParams, self.listen)

    def tell(self) -> None:
        """Notify all listening clients, here and at other workers. May be called from any thread."""
        self._note_change(is_elsewhere=False)
        if self._unwritten is not None:
            loop, event = self._unwritten
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(event.set)

    def _note_change(self, *, is_elsewhere: bool) -> None:
        self._version += 1
        self._is_elsewhere = is_elsewhere
        self._wake()

    def _wake(self) -> None:
        for woken, loop in tuple(self._listening.items()):
            with suppress(RuntimeError):  # the listener's loop has ended
                loop.call_soon_threadsafe(woken.set)

    async def listen(self, context: RequestContext, params: types.SubscriptionsListenRequestParams) -> WireResult:
        """Answer `subscriptions/listen` with a stream, until its client disconnects. Raises MCPError."""
        caller = await admit_caller(context, self._identify)
        if HOLDS_THREAD in exchange_of(context).scope:  # the server has few threads
            raise MCPError(types.METHOD_NOT_FOUND, "Method not found: this server cannot keep streams open.")
        proxies = self._door.admission.trusted_proxies
        with hold_stream(context, self._streams, caller, proxies, types.INTERNAL_ERROR):
            return await self._listen(context, params)

    async def _listen(self, context: RequestContext, params: types.SubscriptionsListenRequestParams) -> WireResult:
        meta, honored = {SUBSCRIPTION_ID_META_KEY: context.request_id}, self._honor(params.notifications)
        tasks, wanted_tasks = self._tools.tasks, (params.notifications.model_extra or {}).get("taskIds")
        followed = await tasks.follow(context, wanted_tasks) if tasks is not None else {}
        if followed:
            honored = types.SubscriptionFilter.model_validate({**honored.model_dump(), "taskIds": [*followed]})
        changes: list[ServerEvent] = []
        changes += [ToolsListChanged()] if honored.tools_list_changed else []
        changes += [PromptsListChanged()] if honored.prompts_list_changed else []
        changes += [ResourcesListChanged()] if honored.resources_list_changed else []
        version, digests, woken = self._version, self._digests(), asyncio.Event()
        names = await self._names(context)
        self._listening[woken] = asyncio.get_running_loop()
        is_over = False

        def end() -> None:
            nonlocal is_over
            is_over = True
            woken.set()

        try:
            with ended_by_stop(end):
                told = types.SubscriptionsAcknowledgedNotificationParams(notifications=honored, _meta=meta)
                acknowledged = types.SubscriptionsAcknowledgedNotification(params=told)
                await context.session.send_notification(acknowledged, related_request_id=context.request_id)
                verified = time.monotonic()
                while not (is_over or self._is_closing):
                    due = min((one.due for one in followed.values()), default=float("inf")) - time.monotonic()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(max(min(VERIFY_SECONDS, due), 0.0)):
                            await woken.wait()
                    woken.clear()
                    if followed and tasks is not None:
                        try:
                            news = await tasks.news_of(context, followed)
                        except MCPError:  # nobody knows them any more
                            break
                        for task in news:
                            notice = Notice("notifications/tasks", {**task, "_meta": meta})
                            await context.session.send_notification(
                                cast(Any, notice), related_request_id=context.request_id
                            )
                    events = list[ServerEvent]()
                    if self._version != version:
                        version, before, digests = self._version, digests, self._digests()
                        wanted = honored.resource_subscriptions or ()
                        is_new = self._is_elsewhere
                        events = [
                            *changes,
                            *(ResourceUpdated(one) for one in wanted if is_new or digests.get(one) != before.get(one)),
                        ]
                    elif time.monotonic() - verified >= VERIFY_SECONDS:
                        verified = time.monotonic()
                        now = await self._names(context)
                        if now is None:  # the credentials are no longer valid
                            break
                        if now != names and honored.tools_list_changed:
                            events = [ToolsListChanged()]
                        names = now
                    for event in events:
                        notification = event_to_notification(event, meta)
                        await context.session.send_notification(notification, related_request_id=context.request_id)
        finally:
            del self._listening[woken]
        return {"resultType": "complete", "_meta": {**self._tools.stamp, **meta}}

    def _honor(self, wanted: types.SubscriptionFilter) -> types.SubscriptionFilter:
        """Return the requested notifications that are available here."""
        known, door = self._digests(), self._door
        uris = [one for one in dict.fromkeys(wanted.resource_subscriptions or ()) if one in known]
        return types.SubscriptionFilter(
            tools_list_changed=wanted.tools_list_changed or None,
            prompts_list_changed=(wanted.prompts_list_changed and bool(door.catalog.prompts)) or None,
            resources_list_changed=wanted.resources_list_changed or None,
            resource_subscriptions=uris[:MAX_RESOURCES] or None,
        )

    def _digests(self) -> dict[str, str]:
        """Return the digest of every document by its address, computed once for each change."""
        version, digests = self._digested
        if version != self._version:
            version, digests = (
                self._version,
                {
                    self._door.catalog.absolute(path): one.encodings.digest
                    for documents in self._door.documents()
                    for path, one in documents.items()
                },
            )
            self._digested = version, digests
        return digests

    async def _names(self, context: RequestContext) -> list[object] | None:
        """Return the names of a caller's tools, or None if its credentials are no longer valid."""
        with suppress(MCPError):
            await admit_caller(context, self._identify)
            listed = await self._tools.list_tools(context, types.PaginatedRequestParams())
            return [one["name"] for one in listed["tools"]]
        return None

    # --- Workers ---

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Exchange notifications of changes with other workers while the application runs."""
        self._is_closing = False
        unwritten = asyncio.Event()
        task: asyncio.Task[None] | None = None
        if self._store.is_shared:
            self._unwritten = (asyncio.get_running_loop(), unwritten)
            task = asyncio.create_task(self._exchange(unwritten), name="awp_publish changes")
        try:
            yield
        finally:
            self._unwritten, self._is_closing = None, True
            self._wake()
            if task is not None:
                task.cancel()
                await asyncio.wait({task})

    async def _exchange(self, unwritten: asyncio.Event) -> None:
        seen: bytes | None = None
        has_looked = False
        while True:
            try:
                raw = (await self._store.run((Look(_CHANGED),))).seen[0]
                now = raw if isinstance(raw, bytes) else None
                if has_looked and now != seen and now is not None:
                    self._note_change(is_elsewhere=True)
                seen, has_looked = now, True
                if unwritten.is_set():
                    new = secrets.token_bytes(8)
                    step = Add(_CHANGED, new, KEPT_SECONDS) if now is None else Swap(_CHANGED, now, new, KEPT_SECONDS)
                    if (await self._store.run((step,))).failed is not None:
                        continue
                    seen = new
                    unwritten.clear()
            except StoreUnavailable:  # `unwritten` is still set, so the wait below would return at once
                await asyncio.sleep(LOOK_SECONDS)
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await unwritten.wait()
