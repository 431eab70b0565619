"""`tools/call`: from a message to a `Call`, and from its outcome to a result.

What the envelope of other doors carries stands in the request's `_meta`: `awp/idempotencyKey`, `awp/confirmation` and
`awp/receipts`; or in the HTTP headers that all doors take. A problem is a result with `isError`, for the model to read.
Only a challenge of a site with authorization servers is the HTTP status 401 or 403 (specification,
Basic/Authorization), because clients look for it there.
"""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import mcp_types as types
import orjson
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from awp_publish.invoke import Call, Invoker, Outcome, Result
from awp_publish.model import Action
from awp_publish.problems import Problem, UnknownAgent
from awp_publish.serve.credentials import TrustedProxies, read_credentials
from awp_publish.serve.envelope import read_admission
from awp_publish.serve.mcp_elicitation import ask_person, read_reply
from awp_publish.serve.mcp_exchange import META, McpExchange
from awp_publish.serve.mcp_lists import ToolLists, exchange_of
from awp_publish.serve.mcp_tools import tell_answer, tell_problem

PROTOCOL: Final = "mcp"
CANCELLED: Final = -32800
"""What a call is told whose caller has gone: nobody reads it."""

_CHALLENGES: Final = frozenset({401, 403})

Context: TypeAlias = ServerRequestContext[Any, Any]
WireResult: TypeAlias = dict[str, Any]


class ToolCalls:
    """Carries out calls of tools. `challenges` says whether clients are sent to an authorization server."""

    stamp: Mapping[str, object] = MappingProxyType({})
    """What every result of the stateless generation says of the server; the SDK would copy it anew for each."""

    def __init__(self, lists: ToolLists, invoker: Invoker, proxies: TrustedProxies, *, challenges: bool) -> None:
        self._lists = lists
        self._invoker = invoker
        self._proxies = proxies
        self._challenges = challenges

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> WireResult:
        """Answer `tools/call`. Raises MCPError for a tool that does not exist."""
        exchange, tool = exchange_of(context), self._lists.of(context).by_name.get(params.name)
        if tool is None:
            raise self._unknown(exchange, params.name)
        call = Call(tool.action, params.arguments or {}, exchange.request_id, PROTOCOL, exchange.scope, exchange.gone)
        result = await self._run(exchange, call, context, params)
        if isinstance(result, Outcome):
            output = orjson.loads(result.body) if result.output is None else result.output
            return tell_answer(tool, result.body, output, self._meta_of(exchange, call, result, context))
        return self._tell(exchange, call, result, context)

    def _unknown(self, exchange: McpExchange, name: str) -> MCPError:
        problem = UnknownAgent(f'This site has no tool "{name[:100]}".')
        self._invoker.note_refusal(PROTOCOL, exchange.request_id, problem)
        return MCPError(types.INVALID_PARAMS, problem.detail)

    def _meta_of(self, exchange: McpExchange, call: Call, result: Result, context: Context) -> WireResult:
        stamp = self.stamp if context.protocol_version in MODERN_PROTOCOL_VERSIONS else {}
        return {**stamp, **exchange.meta_of(result, call)}

    async def _run(
        self, exchange: McpExchange, call: Call, context: Context, params: types.CallToolRequestParams
    ) -> Result:
        if self._invoker.is_guarded(call.action):
            call.credentials = partial(read_credentials, exchange.scope, exchange.fields, self._proxies)
            try:
                read_admission(call, _members(call.action, context.meta or {}), exchange.fields)
                read_reply(call, params)
            except Problem as problem:
                self._invoker.note_refusal(PROTOCOL, exchange.request_id, problem)
                return problem
        result = await exchange.run(self._invoker, call)
        if result is None:
            raise MCPError(CANCELLED, "The caller has gone.")
        return result

    def _tell(self, exchange: McpExchange, call: Call, problem: Problem, context: Context) -> WireResult:
        if (question := ask_person(problem, context)) is not None:
            return question
        body, meta = exchange.describe(problem), self._meta_of(exchange, call, problem, context)
        if self._challenges and _is_challenge(problem):
            exchange.refusal = problem
            raise MCPError(types.INVALID_REQUEST, problem.detail, orjson.loads(body))
        return tell_problem(body, meta)


def _members(action: Action, meta: Mapping[str, Any]) -> Mapping[str, object]:
    """What `_meta` holds of ours, under the names that an envelope has for it."""
    key_field = action.idempotency.key_field if action.idempotency else "idempotency_key"
    names = {key_field: "idempotencyKey", "confirmation": "confirmation", "receipts": "receipts"}
    return {name: meta[META + key] for name, key in names.items() if META + key in meta}


def _is_challenge(problem: Problem) -> bool:
    return problem.status in _CHALLENGES and any(name.lower() == "www-authenticate" for name, _ in problem.headers)
