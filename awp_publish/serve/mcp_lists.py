"""`tools/list`: all tools for everybody, or with `Site(list_only_allowed=True)` for each caller what they may call.

A list that differs by caller is private (`cacheScope`). It is a convenience and no guard: a call is refused for what it
is, whether its tool was listed or not.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, cast

import mcp_types as types
import orjson
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request

from awp_publish.model import Action
from awp_publish.policy.authentication import Principal
from awp_publish.problems import Problem
from awp_publish.serve.credentials import read_credentials
from awp_publish.serve.live import Surroundings
from awp_publish.serve.mcp_exchange import EXCHANGE, McpExchange
from awp_publish.serve.mcp_tools import Tools, make_tools

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
