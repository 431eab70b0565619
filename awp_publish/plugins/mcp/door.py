"""The MCP door: Streamable HTTP of the Model Context Protocol, through the official SDK (extra "mcp").

One endpoint serves the stateless revision 2026-07-28 and the revisions with a handshake, up to 2025-11-25. It keeps no
session: each message is a POST that is answered with JSON, or with a stream if the caller requests the progress of a
call or is asked for its consent; the id of a session says only what its client can do. Any worker can therefore answer
any message, GET has nothing to stream and DELETE nothing to end. The Host and
Origin that browsers send are checked against the site's own addresses, as the specification demands.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from itertools import islice
from typing import Any, ClassVar, Final, cast

import mcp_types as types
import orjson
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http import check_accept_headers
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types import PaginatedRequestParams
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, SUPPORTED_PROTOCOL_VERSIONS
from pydantic import ValidationError
from starlette.requests import Request

from awp_publish.calls.call import never_disconnected
from awp_publish.calls.invoke import Invoker
from awp_publish.http.body import read_body
from awp_publish.http.calling import CallEndpoint, Dialect, require_json
from awp_publish.http.credentials import read_credentials
from awp_publish.http.exchange import Reply, Scope, replay, send_reply
from awp_publish.http.origins import is_own_page
from awp_publish.http.request import STATIC_HEADERS, DoorRequest
from awp_publish.http.sdk_logs import keep_contents_out, without_contents
from awp_publish.http.streams import OpenStreams
from awp_publish.http.strict_json import is_rpc_id, parse_json
from awp_publish.model import JsonObject
from awp_publish.plugin import Context, Endpoints
from awp_publish.plugins.mcp import server_card as mcp_server_card
from awp_publish.plugins.mcp.apps import Cards
from awp_publish.plugins.mcp.completion import CompletionHandler
from awp_publish.plugins.mcp.dialect import DIALECT
from awp_publish.plugins.mcp.event_webhooks import EventWebhooks
from awp_publish.plugins.mcp.events import STREAM, EventExtension
from awp_publish.plugins.mcp.exchange import (
    CALL,
    EXCHANGE,
    LATEST_FIELD,
    PROTOCOL,
    McpExchange,
    holds_thread,
)
from awp_publish.plugins.mcp.plain_calls import PlainCalls
from awp_publish.plugins.mcp.prompts import PromptHandlers
from awp_publish.plugins.mcp.resources import Resources
from awp_publish.plugins.mcp.subscriptions import LISTEN, Subscriptions
from awp_publish.plugins.mcp.tasks import TaskExtension
from awp_publish.plugins.mcp.tools import Tools
from awp_publish.problems import NotJson, Problem, shorten

MAX_FAULTS: Final = 3
"""Invalid parameters of a message that its error names."""

MAX_OWN_HEADERS: Final = 200
"""Headers of the protocol itself that are read: Mcp-Method, Mcp-Name, Mcp-Param-..."""

VERSION_FIELD: Final = b"mcp-protocol-version"

STREAMS: Final = frozenset({STREAM, LISTEN})
"""Methods that are answered with a stream, which ends when the client disconnects."""

_READ: Final = frozenset(b"accept authorization baggage content-length last-event-id traceparent tracestate".split())


def open_door(context: Context) -> Endpoints:
    """Open the door of one public address of a site."""
    door = McpDoor(context)
    keep_contents_out()
    return Endpoints(exact={context.catalog.paths.mcp: door}, running=door.running)


def _fault_of(message: object) -> str:
    """Return what is wrong with a body that is no message (JSON-RPC 2.0, sections 4 and 5), "" for a message."""
    if not isinstance(message, dict):
        return "The body must be one message, an object. Batches are not supported."
    if message.get("jsonrpc") != "2.0":
        return 'The member jsonrpc of a message must be "2.0".'
    if "id" in message and not is_rpc_id(message["id"]):  # the SDK would take it for a notification
        return "The id of a message must be a string or an integer."
    if not isinstance(message.get("method", ""), str):
        return "The method of a message must be a string."
    if not isinstance(message.get("params"), dict | None):
        return "The params of a message must be an object."
    return "" if message.keys() & {"method", "result", "error"} else "A message needs a method, a result or an error."


def _refuse_version(version: str) -> JsonObject:
    """Return the error for a revision that is not served (Versioning, Unsupported Versions)."""
    supported = list(reversed(SUPPORTED_PROTOCOL_VERSIONS))
    message = f"MCP-Protocol-Version names no revision that is served here. Supported are {', '.join(supported)}."
    data = {"supported": supported, "requested": version}
    return {"code": types.UNSUPPORTED_PROTOCOL_VERSION, "message": message, "data": data}


class McpDoor(CallEndpoint):
    """Checks requests, and passes valid ones to the SDK."""

    methods = "POST, OPTIONS"
    usage = "Messages are sent with POST"
    request_type = McpExchange
    dialect: ClassVar[Dialect] = DIALECT
    takes_plain_calls: ClassVar[bool] = True
    """Whether plain calls are answered without the SDK, with the same result but in less time."""

    def __init__(self, door: Context) -> None:
        super().__init__(PROTOCOL, door)
        catalog = door.catalog
        self._tools = Tools(door, self._calls)
        self._plain_calls = PlainCalls(self._tools)
        streams = OpenStreams()
        self._subscriptions = Subscriptions(door, self._tools, streams)
        self._events = EventExtension(door, self._tools, streams)
        self._server = make_server(door, self._tools, self._subscriptions, self._events)
        # In quotation marks, as in challenges, because one address is a prefix of the other.
        self._addresses = None
        if (path := catalog.metadata_path) is not None:  # RFC 9728: MCP's ends with the path of the endpoint
            site, own = (catalog.absolute(address) for address in (path, path + catalog.paths.mcp))
            self._addresses = f'"{site}"'.encode(), f'"{own}"'.encode()
        guards, actions = door.guards, catalog.actions
        # If callers may see nothing without credentials, clients get a 401 before they begin: they sign their users in
        # when they connect (specification, Basic/Authorization).
        self._identify = None
        if guards.authenticators and actions and not catalog.pages and not any(action.is_public for action in actions):
            self._identify = guards.identify(required=True)
        self._origins = frozenset(self._admission.allow_origins)
        self._managers: dict[asyncio.AbstractEventLoop, tuple[StreamableHTTPSessionManager, ...]] = {}

    async def handle(self, request: DoorRequest, named: str | None) -> None:
        exchange, fields = cast(McpExchange, request), request.fields
        exchange.addresses = self._addresses
        require_json(fields)
        origin = fields.get(b"origin", b"").decode("latin-1").strip()
        if origin and not self._origins & {"*", origin} and not is_own_page(fields, self._own_origins):
            wrong = f"Pages of {origin[:100]} may not call: their origin is not in allow_origins of this site."
            await self._refuse_message(exchange, {"code": types.INVALID_REQUEST, "message": wrong}, status=403)
            return
        body = await read_body(request.scope, fields, request.receive, self._admission.max_body_bytes)
        exchange.size = len(body)
        message: Any = None
        try:
            message, code = parse_json(body), types.INVALID_REQUEST
            wrong = _fault_of(message)
        except NotJson as problem:
            self.note_refusal(request, problem)
            code, wrong = types.PARSE_ERROR, problem.detail
        if self._identify is not None:
            try:
                await self._identify(read_credentials(request.scope, fields, self._admission.trusted_proxies))
            except Problem as problem:
                await self._refuse_caller(exchange, problem, message)
                return
        is_call = type(message) is dict and message.get("method") == CALL and fields.get(VERSION_FIELD) == LATEST_FIELD
        is_plain = is_call and self.takes_plain_calls and not self._invoker.is_traced()
        if is_plain and await self._plain_calls.answer(exchange, message, fields):
            return
        inner = self._scope_for_sdk(exchange)
        if wrong:
            await self._refuse_message(exchange, {"code": code, "message": wrong})
            return
        if message.get("method") == "initialize":
            self._tools.calls.questions.begin_session(exchange, message)
        elif message.get("method") is None and await self._takes_reply(exchange, message):
            return
        await self._pass_to_sdk(exchange, inner, body, message)

    async def _refuse_caller(self, exchange: McpExchange, problem: Problem, message: object) -> None:
        """Answer a message of a caller who may see nothing."""
        self.note_refusal(exchange, problem)
        exchange.meta_for(problem)
        error = {"code": types.INVALID_REQUEST, "message": problem.detail, "data": exchange.describe(problem)}
        message_id = message.get("id") if isinstance(message, dict) else None
        refused = {"jsonrpc": "2.0", "id": message_id if is_rpc_id(message_id) else None, "error": error}
        await exchange.answer(orjson.dumps(refused), problem.status)

    def _scope_for_sdk(self, exchange: McpExchange) -> Scope:
        """Return the scope of a request with the headers that the SDK reads.

        The SDK reads only one line of each header and compares it with the body verbatim, so lines are joined, and
        white space that some servers leave at the ends is stripped (RFC 9110 sections 5.3 and 5.5). Content-Type is
        checked by us, so the SDK gets a known one. It searches all headers for each name, so it gets only those that
        it reads.
        """
        headers = [(name, value.strip(b" \t")) for name, value in exchange.fields.items() if name in _READ]
        own = ((name, value.strip(b" \t")) for name, value in exchange.fields.items() if name.startswith(b"mcp-"))
        headers = [*headers, STATIC_HEADERS[0], *islice(own, MAX_OWN_HEADERS)]
        return {**exchange.scope, "headers": headers, EXCHANGE: exchange}

    async def _refuse_message(
        self, exchange: McpExchange, error: JsonObject, message_id: object = None, status: int = 400
    ) -> None:
        """Refuse a message, or what is none."""
        answer = orjson.dumps({"jsonrpc": "2.0", "id": message_id, "error": error})
        await send_reply(Reply(status, STATIC_HEADERS[:2], answer), exchange.send)

    async def _pass_to_sdk(self, exchange: McpExchange, inner: Scope, body: bytes, message: dict[str, Any]) -> None:
        """Let the SDK answer a message."""
        method, params = message.get("method"), message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        # A body that names its revision has to repeat it in the header (Streamable HTTP, Protocol Version Header). The
        # SDK reads the header alone, and would answer such a request as one of an older revision.
        version = exchange.fields.get(VERSION_FIELD, b"").strip(b" \t").decode("latin-1")
        names_version = isinstance(meta, dict) and types.PROTOCOL_VERSION_META_KEY in meta and "id" in message
        if version and version not in SUPPORTED_PROTOCOL_VERSIONS and not names_version:
            await self._refuse_message(exchange, _refuse_version(version), message.get("id"))
            return
        if names_version and (not version or version in HANDSHAKE_PROTOCOL_VERSIONS):
            inner["headers"] = [*(pair for pair in inner["headers"] if pair[0] != VERSION_FIELD), (VERSION_FIELD, b"")]
        # A call whose client requests progress and accepts a stream is answered with one.
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        takes_json, takes_events = check_accept_headers(Request(inner))
        if type(token) in (str, int) and method == CALL:
            exchange.is_streamed = takes_json and takes_events
        is_stream = isinstance(method, str) and method in STREAMS
        if not takes_json or (is_stream and not takes_events):  # in the stateless revision the SDK does not say why
            wrong = "The answer may be JSON or a stream: send Accept: application/json, text/event-stream."
            error = {"code": types.INVALID_REQUEST, "message": wrong}
            await self._refuse_message(exchange, error, message.get("id"), 406)
            return

        # The SDK does not learn of a disconnect: it would end a call that has to run to its end (gates).
        receive = replay(body, exchange.disconnected if is_stream else never_disconnected)

        managers, streams = self._managers.get(asyncio.get_running_loop()), is_stream or exchange.is_streamed
        manager = managers[streams] if managers is not None else self._make_manager(streams=streams)
        try:
            # Without a lifespan in this event loop, the manager runs for this request alone.
            with without_contents():
                async with manager.run() if managers is None else nullcontext():
                    await manager.handle_request(inner, receive, exchange.send)
        finally:
            if exchange.ended is not None:  # in older revisions the handler runs in a task of the SDK
                await exchange.ended.wait()

    async def _takes_reply(self, exchange: McpExchange, message: dict[str, Any]) -> bool:
        """Take the reply to a question of ours."""
        if not await self._tools.calls.questions.take(message):
            return False
        await send_reply(Reply(202, (STATIC_HEADERS[1],)), exchange.send)
        return True

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the managers of all requests of this event loop while the application runs."""
        loop = asyncio.get_running_loop()
        plain, streaming = self._make_manager(streams=False), self._make_manager(streams=True)
        async with plain.run(), streaming.run(), self._subscriptions.running(), self._events.running():
            self._managers[loop] = (plain, streaming)
            try:
                yield
            finally:
                del self._managers[loop]

    def _make_manager(self, *, streams: bool) -> StreamableHTTPSessionManager:
        return StreamableHTTPSessionManager(
            self._server,
            json_response=not streams,
            stateless=True,
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # the door has checked
            max_request_body_size=self._admission.max_body_bytes,
        )


def make_server(door: Context, tools: Tools, subscriptions: Subscriptions, events: EventExtension) -> Server[Any]:
    """Make the SDK's server for one public address of a site."""
    catalog, site = door.catalog, door.catalog.site
    resources = Resources(door)
    server: Server[Any] = Server(
        mcp_server_card.name_of(catalog),
        version=site.version,
        title=site.name,
        description=site.description,
        instructions="\n".join([site.description, *(f"{name}: {hint}" for name, hint in site.hints.items())]),
        website_url=catalog.url,
        get_tool_input_schema=tools.mirrored.get,  # without it the SDK lists all tools for every call
    )
    observing = (partial(observe_if_traced, door.invoker, observe) for observe in server.middleware)
    server.middleware[:] = [*observing, name_invalid_params, tools]
    tools.calls.results.set_stamp({types.SERVER_INFO_META_KEY: server.server_info_stamp})
    server.add_request_handler("tools/list", PaginatedRequestParams, tools.list_tools)
    if (background := door.ask("jobs")) is not None:
        tasks = TaskExtension(door, background, tools)
        tasks.register(server)
        tools.calls.tasks = tasks
    webhooks = EventWebhooks(door, events, tools.calls.results) if door.ask("events") is not None else None
    if catalog.events:
        events.register(server)
    if catalog.events and webhooks is not None:
        webhooks.register(server)
    server.middleware.append(partial(describe_capabilities, bool(catalog.events)))
    if resources.skills.all():
        resources.skills.register(server)
    tools.cards = resources.cards = Cards(tools.modern)
    tools.cards.register(server)
    subscriptions.register(server)
    server.add_request_handler("resources/list", PaginatedRequestParams, resources.list_resources)
    server.add_request_handler("resources/read", types.ReadResourceRequestParams, resources.read_resource)
    if door.ask("pages") is not None:
        server.add_request_handler("resources/templates/list", PaginatedRequestParams, resources.list_templates)
    prompts = PromptHandlers(door)
    if catalog.prompts or door.ask("pages") is not None:
        completion = CompletionHandler(prompts, resources, door.settings.limits.timeout)
        server.add_request_handler("completion/complete", types.CompleteRequestParams, completion.complete)
    if catalog.prompts:
        server.add_request_handler("prompts/list", PaginatedRequestParams, prompts.list_prompts)
        server.add_request_handler("prompts/get", types.GetPromptRequestParams, prompts.get_prompt)
    return server


async def describe_capabilities(
    has_events: bool, ctx: ServerRequestContext[Any, Any], call_next: CallNext
) -> HandlerResult:
    """Add to the result of `server/discover` the capabilities that the SDK does not know of.

    Events are also put among the capabilities themselves, where ChatGPT looks for them, as in the SEP's first draft. If
    nobody can listen, no list is announced as changing.
    """
    result = await call_next(ctx)
    capabilities = result.get("capabilities") if ctx.method == "server/discover" and isinstance(result, dict) else None
    if isinstance(capabilities, dict):
        if has_events:
            capabilities["events"] = {}
        if holds_thread(ctx):
            for offered in (capabilities[name] for name in ("tools", "resources", "prompts") if name in capabilities):
                offered |= dict.fromkeys(offered.keys() & {"listChanged", "subscribe"}, False)
    return result


async def name_invalid_params(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Say which parameters of a message are invalid: the SDK says only that some are."""
    try:
        return await call_next(ctx)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_context=False, include_input=False)
        faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in wrong[:MAX_FAULTS])
        raise MCPError(types.INVALID_PARAMS, f"Invalid request parameters: {shorten(faults)}.") from None


async def observe_if_traced(
    invoker: Invoker, observe: ServerMiddleware[Any], ctx: ServerRequestContext[Any, Any], call_next: CallNext
) -> HandlerResult:
    """Skip the SDK's own middleware, which opens a span for each message, unless spans are exported."""
    return await (observe(ctx, call_next) if invoker.is_traced() else call_next(ctx))
