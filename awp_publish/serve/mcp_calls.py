"""`tools/call`: from a message to a `Call`, and from its outcome to a result.

What the envelope of other doors carries stands in the request's `_meta`: `awp/idempotencyKey`, `awp/confirmation` and
`awp/receipts`; or in the HTTP headers that all doors take. A problem is a result with `isError`, for the model to read.
Only a challenge of a site with authorization servers is the HTTP status 401 or 403 (specification,
Basic/Authorization), because clients look for it there.
"""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import mcp_types as types
import orjson
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.methods import validate_client_request
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from awp_publish.invoke import Invoker
from awp_publish.model import Action
from awp_publish.policy.call import Call, Result
from awp_publish.problems import Problem, UnknownAgent
from awp_publish.serve.credentials import TrustedProxies, read_credentials
from awp_publish.serve.envelope import read_admission
from awp_publish.serve.mcp_elicitation import ask_person, read_reply
from awp_publish.serve.mcp_exchange import META, McpExchange
from awp_publish.serve.mcp_lists import ToolLists, exchange_of
from awp_publish.serve.mcp_progress import ProgressCalls
from awp_publish.serve.mcp_tools import Tool, tell_answer, tell_problem

PROTOCOL: Final = "mcp"
METHOD: Final = "tools/call"
CANCELLED: Final = -32800
"""What a call is told whose caller has gone: nobody reads it."""

STRUCTURED_SINCE: Final = "2025-06-18"
"""The revision that brought `structuredContent`."""

_PLAIN: Final = frozenset({"name", "arguments", "_meta"})
_CHALLENGES: Final = frozenset({401, 403})

Context: TypeAlias = ServerRequestContext[Any, Any]
WireResult: TypeAlias = dict[str, Any]


class ToolCalls:
    """Carries out calls of tools. `challenges` says whether clients are sent to an authorization server.

    It stands in the SDK's server as a middleware, which may answer in the place of a handler, and sends most answers
    itself: a result goes out as it is made here, without being validated, copied and made JSON once more. For the SDK,
    and whoever traces it, is left to know whether a call has failed.
    """

    stamp: Mapping[str, object] = MappingProxyType({})
    """What every result of the stateless generation says of the server; the SDK would copy it anew for each."""

    def __init__(
        self, lists: ToolLists, progress: ProgressCalls, invoker: Invoker, proxies: TrustedProxies, *, challenges: bool
    ) -> None:
        self._lists = lists
        self._progress = progress
        self._invoker = invoker
        self._proxies = proxies
        self._challenges = challenges
        self._valid: tuple[str, object] = ("", None)

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Answer `tools/call`, and pass on all else. Raises MCPError for a tool that does not exist."""
        if ctx.method != METHOD or ctx.request_id is None:
            return await call_next(ctx)
        params = ctx.params or {}
        self._validate(ctx.protocol_version, params)
        exchange, tool = exchange_of(ctx), self._lists.of(ctx).by_name.get(params["name"])
        if tool is None:
            raise self._unknown(exchange, params["name"])
        given = params.get("arguments") or {}
        call = Call(tool.action, given, exchange.request_id, PROTOCOL, exchange.scope, exchange.gone)
        tell = partial(self._tell, exchange, tool, call, ctx)
        result: Result | None = self._read_guards(exchange, call, ctx, params)
        if result is None:
            carry = partial(exchange.run, self._invoker, call, partial(_message, ctx.request_id, tell))
            is_told = exchange.is_streamed
            result = await (self._progress.carry(ctx, exchange, call, carry) if is_told else carry())
        if result is None:
            raise MCPError(CANCELLED, "The caller has gone.")
        return {"isError": isinstance(result, Problem)} if exchange.is_answered else tell(result)

    def _validate(self, version: str, params: Mapping[str, Any]) -> None:
        """Refuse params that the revision does not know. Raises pydantic's ValidationError, which the SDK tells.

        What a client says of itself is the same in every call, and takes the longest to look at: it is looked at when
        it is not what was there last time.
        """
        is_plain = params.keys() <= _PLAIN and type(params.get("name")) is str
        if is_plain and type(params.get("arguments", {})) is dict and (version, params.get("_meta")) == self._valid:
            return
        validate_client_request(METHOD, version, params)
        self._valid = (version, params.get("_meta"))

    def _unknown(self, exchange: McpExchange, name: str) -> MCPError:
        problem = UnknownAgent(f'This site has no tool "{name[:100]}".')
        self._invoker.note_refusal(PROTOCOL, exchange.request_id, problem)
        return MCPError(types.INVALID_PARAMS, problem.detail)

    def _read_guards(
        self, exchange: McpExchange, call: Call, context: Context, params: Mapping[str, Any]
    ) -> Problem | None:
        """Put on a call what its gates want to know, if it has any; the problem if that cannot be read."""
        if not self._invoker.is_guarded(call.action):
            return None
        call.credentials = partial(read_credentials, exchange.scope, exchange.fields, self._proxies)
        try:
            read_admission(call, _members(call.action, context.meta or {}), exchange.fields)
            read_reply(call, params)
        except Problem as problem:
            self._invoker.note_refusal(PROTOCOL, exchange.request_id, problem)
            return problem
        return None

    # --- Results ---

    def _tell(self, exchange: McpExchange, tool: Tool, call: Call, context: Context, result: Result) -> WireResult:
        """A result as the caller's revision has it. Raises MCPError for a challenge."""
        if isinstance(result, Problem) and (question := ask_person(result, context)) is not None:
            return {**question, "_meta": self.stamp}
        is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        meta = {**(self.stamp if is_modern else {}), **exchange.meta_of(result, call)}
        if isinstance(result, Problem):
            told = self._tell_problem(exchange, result, meta)
        else:
            output = orjson.loads(result.body) if result.output is None else result.output
            told = tell_answer(tool, result.body, output, meta)
        if is_modern:
            told["resultType"] = "complete"
        elif context.protocol_version < STRUCTURED_SINCE:
            told.pop("structuredContent", None)
        return told

    def _tell_problem(self, exchange: McpExchange, problem: Problem, meta: WireResult) -> WireResult:
        body = exchange.describe(problem)
        if self._challenges and _is_challenge(problem):
            exchange.refusal = problem
            raise MCPError(types.INVALID_REQUEST, problem.detail, orjson.loads(body))
        return tell_problem(body, meta)


def _message(request_id: types.RequestId, tell: Callable[[Result], WireResult], result: Result) -> bytes:
    """The whole message (JSON-RPC 2.0 section 5)."""
    try:
        return orjson.dumps({"jsonrpc": "2.0", "id": request_id, "result": tell(result)})
    except MCPError as refused:
        error = refused.error.model_dump(by_alias=True, exclude_none=True)
        return orjson.dumps({"jsonrpc": "2.0", "id": request_id, "error": error})


def _members(action: Action, meta: Mapping[str, Any]) -> Mapping[str, object]:
    """What `_meta` holds of ours, under the names that an envelope has for it."""
    key_field = action.idempotency.key_field if action.idempotency else "idempotency_key"
    names = {key_field: "idempotencyKey", "confirmation": "confirmation", "receipts": "receipts"}
    return {name: meta[META + key] for name, key in names.items() if META + key in meta}


def _is_challenge(problem: Problem) -> bool:
    return problem.status in _CHALLENGES and any(name.lower() == "www-authenticate" for name, _ in problem.headers)
