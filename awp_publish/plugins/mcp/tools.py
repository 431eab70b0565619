"""Actions as tools: `tools/list`, and which tool a `tools/call` means (revisions 2024-11-05 to 2026-07-28)."""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
import orjson
from mcp.server.context import CallNext, HandlerResult
from mcp.shared.exceptions import MCPError
from mcp_types.methods import validate_client_request

from awp_publish.calls.call import scopes_of
from awp_publish.http.calling import Calls
from awp_publish.http.credentials import read_credentials
from awp_publish.model import listing_of
from awp_publish.plugin import Context
from awp_publish.plugins.mcp.dialect import DIALECT, SESSION
from awp_publish.plugins.mcp.exchange import (
    CALL,
    LISTS,
    PROTOCOL,
    McpExchange,
    RequestContext,
    WireResult,
    exchange_of,
    is_modern,
)
from awp_publish.plugins.mcp.tool_call import ToolCall, ToolCalls
from awp_publish.plugins.mcp.tool_list import LIST_TTL, Tool, make_tools
from awp_publish.problems import Problem, UnknownAgent, did_you_mean

if TYPE_CHECKING:
    from awp_publish.plugins.mcp.apps import Cards


_PLAIN: Final = frozenset({"name", "arguments", "_meta"})


class Tools:
    """The tools of a site: lists them and admits calls.

    It is a middleware of the SDK's server, which may answer instead of a handler.
    """

    def __init__(self, door: Context, calls: Calls) -> None:
        self.calls = ToolCalls(door, calls)
        self._proxies = door.admission.trusted_proxies
        self.cards: Cards | None = None
        self._listing = listing_of(door.catalog, door.options.list_only_allowed)
        differs = self._listing.only_allowed or not all(action.is_public for action in door.catalog.actions)
        self._identify = door.guards.identify() if differs and door.guards.authenticators else None
        has_sessions = door.ask("sessions") is not None
        self._classic = make_tools(door.catalog, only_objects=True, has_sessions=has_sessions)
        self.modern = make_tools(door.catalog, only_objects=False, has_sessions=has_sessions)
        own = frozenset({SESSION}) if has_sessions else frozenset[str]()
        absent = door.invoker.absent
        self._absent = Tool(absent, {}, is_wrapped=False, is_plain=True, own=own) if absent is not None else None
        """The tool as which unknown names are called, so that they cannot be told from those of hidden tools."""
        self._valid: tuple[str, object] = ("", None)
        actions = door.catalog.actions
        # Streamable HTTP of 2026-07-28: inputs that a header of the request repeats
        self.mirrored = {
            action.id: action.inputs for action in actions if b'"x-mcp-header"' in orjson.dumps(action.inputs)
        }
        """Schemas of the tools whose arguments have to be compared with headers, which is slow."""

    async def list_tools(self, context: RequestContext, _: types.PaginatedRequestParams) -> WireResult:
        """Answer `tools/list`: tools that the caller may see, or call (`Mcp(list_only_allowed=)`).

        A list that depends on the caller is private. Raises MCPError for invalid credentials, with their HTTP status.
        """
        tools = self.tools_for(context)
        scopes: frozenset[str] | None = None
        if self._identify is not None:
            exchange = exchange_of(context)
            try:
                caller = await self._identify(read_credentials(exchange.scope, exchange.fields, self._proxies))
            except Problem as problem:
                raise exchange.refuse(problem) from problem
            scopes = scopes_of(caller)
        has_jobs = any(tool.action.is_background for tool in tools.values() if tool.action.is_for(scopes))
        visible = [tool for tool in tools.values() if self._listing.shows(tool.action, scopes)]
        cache_scope = "public" if self._identify is None else "private"
        entries = [tool.entry if self.cards is None else self.cards.refer(tool, context) for tool in visible]
        if self.calls.tasks is not None and has_jobs:
            entries += self.calls.tasks.own_tools.values()
        return {"tools": entries, "ttlMs": LIST_TTL, "cacheScope": cache_scope, "resultType": "complete"}

    async def __call__(self, ctx: RequestContext, call_next: CallNext) -> HandlerResult:
        """Answer `tools/call`, and pass on everything else.

        Raises MCPError for an unknown tool or cursor, and for invalid params pydantic's ValidationError, which the SDK
        answers.
        """
        if ctx.method != CALL or ctx.request_id is None:
            if ctx.params and ctx.params.get("cursor") and ctx.method in LISTS:  # Pagination, Error Handling
                raise MCPError(types.INVALID_PARAMS, "Unknown cursor. Lists are returned whole, without cursors.")
            return await call_next(ctx)
        params: Mapping[str, Any] = ctx.params or {}
        is_plain = params.keys() <= _PLAIN and type(params.get("name")) is str
        seen = (ctx.protocol_version, params.get("_meta"))
        if not is_plain or type(params.get("arguments", {})) is not dict or seen != self._valid:
            if misnamed := DIALECT.misnamed(params):
                detail = f"tools/call takes the input of a tool as params.arguments, not as params.{misnamed}."
                raise MCPError(types.INVALID_PARAMS, detail)
            validate_client_request(CALL, ctx.protocol_version, params)
            self._valid = seen
        exchange, name = exchange_of(ctx), params["name"]
        tool = self.find(self.tools_for(ctx), name)
        if tool is None:
            if self.calls.tasks is not None and name in self.calls.tasks.own_tools:
                answered: HandlerResult = await self.calls.tasks.call_get_job(ctx, params)
                return answered
            unknown = self.unknown(ctx, name)
            self.calls.invoker.note_refusal(PROTOCOL, exchange.request_id, unknown)
            raise MCPError(types.INVALID_PARAMS, unknown.detail)
        exchange.task, exchange.ended = asyncio.current_task(), asyncio.Event()
        try:
            return await self.call(exchange, tool, params, ctx)
        finally:
            exchange.task = None
            exchange.ended.set()

    async def call(
        self, exchange: McpExchange, tool: Tool, params: Mapping[str, Any], context: RequestContext
    ) -> WireResult:
        """Call a tool and return the result. Raises MCPError."""
        unknown = partial(self.unknown, context, params["name"])
        return await ToolCall(self.calls, exchange, tool, params, context, unknown).carry_out()

    def find(self, tools: Mapping[str, Tool], name: str) -> Tool | None:
        is_own = self.calls.tasks is not None and name in self.calls.tasks.own_tools
        return tools.get(name, None if is_own else self._absent)

    def tools_for(self, context: RequestContext) -> Mapping[str, Tool]:
        """Return the tools by name, in the client's generation of the protocol."""
        return self.modern if is_modern(context) else self._classic

    def unknown(self, context: RequestContext, name: str) -> Problem:
        """Return the problem for an unknown tool, and for one that the caller may not know of."""
        public = [public for public, tool in self.tools_for(context).items() if tool.action.is_public]
        return UnknownAgent(f'This site has no tool "{name[:100]}". {did_you_mean(name, public)}'.rstrip())
