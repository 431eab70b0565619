"""Actions as tools: `tools/list`, and `tools/call` from a message to a `Call` and from its outcome to a result.

Model Context Protocol, revisions 2024-11-05 to 2026-07-28. The members of other doors' envelopes are in the request's
`_meta`: `awp/idempotencyKey`, `awp/confirmation`, `awp/receipts` and `awp/session`; or in the HTTP headers that all
doors accept. Models can write neither, so what they have to send are optional arguments, beside those of the action. A
problem is a result with `isError`, for the model to read. Only a challenge of a site with authorization servers is the
HTTP status 401 or 403 (specification, Basic/Authorization), because clients look for it there.
"""

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

import mcp_types as types
import orjson
from mcp.server.context import CallNext, HandlerResult
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS
from mcp_types.methods import validate_client_request

from awp_publish.calls.call import Call, Outcome, Result
from awp_publish.http.body import ClientDisconnect
from awp_publish.http.calling import Calls
from awp_publish.http.credentials import read_credentials
from awp_publish.http.exchange import Fields
from awp_publish.model import Action, listing_of
from awp_publish.plugin import Context
from awp_publish.plugins.mcp.elicitation import MAX_QUESTIONS, Questions, read_reply
from awp_publish.plugins.mcp.exchange import (
    CALL,
    CONFIRMATION,
    LATEST,
    LISTS,
    META,
    PROTOCOL,
    RECEIPTS,
    SESSION,
    McpExchange,
    PlainContext,
    RequestContext,
    WireResult,
    exchange_of,
    is_modern,
)
from awp_publish.plugins.mcp.progress import follow_job, notify_progress
from awp_publish.plugins.mcp.results import Results
from awp_publish.plugins.mcp.stopping import wait_for
from awp_publish.plugins.mcp.tool_list import LIST_TTL, Tool, make_tools
from awp_publish.problems import Problem, UnknownAgent, did_you_mean

if TYPE_CHECKING:
    from awp_publish.plugins.mcp.apps import Cards


CANCELLED: Final = -32800
"""The error of a call whose client has disconnected. Nobody reads it."""

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_PLAIN: Final = frozenset({"name", "arguments", "_meta"})
_CALL_MEMBERS: Final = ("jsonrpc", "id", "method", "params")
_PLAIN_FIELDS: Final = frozenset(
    (CALL.encode(), content_type, accept)
    for content_type in (b"application/json", b"application/json; charset=utf-8")
    for accept in (b"application/json, text/event-stream", b"application/json,text/event-stream", b"application/json")
)
"""Method, Content-Type and Accept of a plain call."""
MAX_ID: Final = 2**53
MAX_KNOWN_META: Final = 64
"""Descriptions of clients that are cached, so that they are not validated at each call."""

_MISNAMED: Final = ("input", "inputs", "args", "parameters")
"""Names that other doors and protocols have for a tool's arguments, which would be silently dropped."""

_PLACES: Final[Mapping[str, str]] = {
    "input": "put its members directly into arguments",
    "arguments": "put its members directly into arguments",
    "idempotency_key": f"send it in the request's _meta, as {META}idempotencyKey",
    "confirmation": f"send it in the request's _meta, as {META}confirmation",
    "receipts": f"send them in the request's _meta, as {META}receipts",
}


class Tools:
    """The tools of a site: lists them and admits calls.

    It is a middleware of the SDK's server, which may answer instead of a handler.
    """

    def __init__(self, door: Context) -> None:
        self.invoker = door.invoker
        self._proxies = door.admission.trusted_proxies
        self.calls = Calls(PROTOCOL, door.invoker, door.admission, _PLACES)
        self.jobs: Any = jobs.jobs if (jobs := door.ask("jobs")) is not None else None
        self.tasks: Any = None  # the extension for tasks, if the site has background actions
        self.cards: Cards | None = None
        self.questions = Questions(door)
        self.results = Results(challenges=door.catalog.metadata_path is not None)
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
        self._known_meta: set[bytes] = set()
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
        tools = self.named(context)
        scopes: frozenset[str] | None = None
        if self._identify is not None:
            exchange = exchange_of(context)
            try:
                caller = await self._identify(read_credentials(exchange.scope, exchange.fields, self._proxies))
            except Problem as problem:
                raise exchange.refuse(problem) from problem
            scopes = caller.scopes if caller is not None else None
        has_jobs = any(tool.action.is_background for tool in tools.values() if tool.action.is_for(scopes))
        visible = [tool for tool in tools.values() if self._listing.shows(tool.action, scopes)]
        cache_scope = "public" if self._identify is None else "private"
        entries = [tool.entry if self.cards is None else self.cards.refer(tool, context) for tool in visible]
        if self.tasks is not None and has_jobs:
            entries += self.tasks.own_tools.values()
        return {"tools": entries, "ttlMs": LIST_TTL, "cacheScope": cache_scope, "resultType": "complete"}

    async def call_directly(self, exchange: McpExchange, message: Mapping[str, Any], fields: Fields) -> bool:
        """Answer a plain call of the latest revision without the SDK. Returns False for calls that need it.

        A call is plain if it is valid in the revision's own types, its headers agree with its body, and it neither
        requests progress nor brings a reply to a question. All others, and every mistake, are left to the SDK.
        """
        params, request_id = message.get("params"), message.get("id")
        if type(params) is not dict or len(message) != len(_CALL_MEMBERS) or message.get("jsonrpc") != "2.0":
            return False
        if type(request_id) is not str and not (type(request_id) is int and abs(request_id) < MAX_ID):
            return False
        name, meta, arguments = params.get("name"), params.get("_meta"), params.get("arguments")
        if type(name) is not str or type(meta) is not dict or "progressToken" in meta:
            return False
        if len(params) != (2 if arguments is None else 3) or (arguments is not None and type(arguments) is not dict):
            return False
        tool = self._find(self.modern, name)
        if tool is None or name in self.mirrored:
            return False
        form = fields.get(b"mcp-method"), fields.get(b"content-type"), fields.get(b"accept")
        if form not in _PLAIN_FIELDS or fields.get(b"mcp-name") != name.encode():
            return False
        # The client's description of itself is the same in every call, and takes longest to validate.
        if self._valid != (LATEST, meta):
            if meta.get(types.PROTOCOL_VERSION_META_KEY) != LATEST:
                return False
            written = orjson.dumps(meta)
            if written not in self._known_meta:
                try:
                    validate_client_request(CALL, LATEST, {"name": name, "_meta": meta})
                except (ValueError, MCPError):  # pydantic's ValidationError is a ValueError
                    return False
                if len(self._known_meta) >= MAX_KNOWN_META:
                    self._known_meta.clear()
                self._known_meta.add(written)
            self._valid = (LATEST, meta)
        answer: WireResult = {"jsonrpc": "2.0", "id": request_id}
        try:
            exchange.is_plain, context = True, cast(RequestContext, PlainContext(exchange, params, meta, request_id))
            answer["result"] = await ToolCall(self, exchange, tool, params, context).carry_out()
        except MCPError as refused:
            answer["error"] = refused.error.model_dump(by_alias=True, exclude_none=True)
        if not exchange.is_answered:
            code = answer["error"]["code"] if "error" in answer else 0
            body = json.dumps(answer, separators=(",", ":")).encode()  # as the SDK serialises it
            await exchange.answer(body, ERROR_CODE_HTTP_STATUS.get(code, 200))
        return True

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
            if misnamed := next((name for name in _MISNAMED if name in params), None):
                detail = f"tools/call takes the input of a tool as params.arguments, not as params.{misnamed}."
                raise MCPError(types.INVALID_PARAMS, detail)
            validate_client_request(CALL, ctx.protocol_version, params)
            self._valid = seen
        exchange, name = exchange_of(ctx), params["name"]
        tool = self._find(self.named(ctx), name)
        if tool is None:
            if self.tasks is not None and name in self.tasks.own_tools:
                answered: HandlerResult = await self.tasks.call_get_job(ctx, params)
                return answered
            unknown = self.unknown(ctx, name)
            self.invoker.note_refusal(PROTOCOL, exchange.request_id, unknown)
            raise MCPError(types.INVALID_PARAMS, unknown.detail)
        exchange.task, exchange.ended = asyncio.current_task(), asyncio.Event()
        try:
            return await ToolCall(self, exchange, tool, params, ctx).carry_out()
        finally:
            exchange.task = None
            exchange.ended.set()

    def _find(self, tools: Mapping[str, Tool], name: str) -> Tool | None:
        is_own = self.tasks is not None and name in self.tasks.own_tools
        return tools.get(name, None if is_own else self._absent)

    def named(self, context: RequestContext) -> Mapping[str, Tool]:
        """Return the tools by name, in the client's generation of the protocol."""
        return self.modern if is_modern(context) else self._classic

    def tool_of(self, action_id: str, context: RequestContext) -> Tool:
        """Return the tool of an action in the client's generation of the protocol."""
        return self.named(context)[action_id]

    def unknown(self, context: RequestContext, name: str) -> Problem:
        """Return the problem for an unknown tool, and for one that the caller may not know of."""
        public = [public for public, tool in self.named(context).items() if tool.action.is_public]
        return UnknownAgent(f'This site has no tool "{name[:100]}". {did_you_mean(name, public)}'.rstrip())


class ToolCall:
    """A call of a tool.

    It sends most responses itself: a result is sent as it is made here, without being validated, copied and serialised
    again. The SDK, and its tracing, only learn whether a call has failed.
    """

    __slots__ = ("_call", "_context", "_exchange", "_inputs", "_is_guarded", "_members", "_params", "_tool", "_tools")

    def __init__(
        self, tools: Tools, exchange: McpExchange, tool: Tool, params: Mapping[str, Any], context: RequestContext
    ) -> None:
        self._tools, self._exchange, self._tool, self._context = tools, exchange, tool, context
        self._params = params
        inputs, arguments = params.get("arguments") or {}, _NOTHING
        if tool.own and not tool.own.isdisjoint(inputs):
            arguments = {name: inputs[name] for name in tool.own & inputs.keys()}
            inputs = {name: value for name, value in inputs.items() if name not in tool.own}
        self._inputs = inputs
        self._is_guarded = tool.action.id in tools.invoker.guarded
        self._members = {**_members_of(tool.action, context), **arguments} if self._is_guarded else arguments
        self._call: Call

    async def carry_out(self) -> WireResult:
        """Return the result for the SDK, which is dropped if the response was already sent. Raises MCPError."""
        tools, exchange, context = self._tools, self._exchange, self._context
        try:
            self._make()
            if self._is_guarded:
                try:
                    read_reply(self._call, self._params)
                except Problem as problem:
                    self._call.refuse(problem)
        except Problem as problem:
            tools.invoker.note_refusal(PROTOCOL, exchange.request_id, problem)
            action, scope = self._tool.action, exchange.scope
            self._call = Call(action, self._inputs, exchange.request_id, PROTOCOL, scope, exchange.disconnected)
            return self._render(problem)
        outcome = await self._run()
        while (question := tools.questions.question_for(exchange, context, outcome)) is not None:
            try:
                agreed = await tools.questions.ask(exchange, self._call, question)
            except ClientDisconnect:
                outcome = None
                break
            except Problem as problem:
                outcome, agreed = problem, False
            if not agreed:
                exchange.questions = MAX_QUESTIONS
                await self._deliver(cast(Problem, outcome))
                break
            self._make()
            self._call.confirmation = question["token"]
            outcome = await self._run()
        if outcome is None:
            raise MCPError(CANCELLED, "The client has disconnected.")
        if exchange.is_answered:
            return {"isError": isinstance(outcome, Problem)}
        return await self._answer(outcome)

    def _make(self) -> None:
        unknown = partial(self._tools.unknown, self._context, self._params["name"])
        exchange = self._exchange
        self._call = self._tools.calls.make(
            self._tool.action, self._inputs, exchange, self._members, size=exchange.size, unknown=unknown
        )

    async def _run(self) -> Result | None:
        """Run the call. Returns its result, or None if its client has disconnected."""
        if self._exchange.is_streamed:
            return await self._run_with_progress()
        await self._tools.invoker.run(self._call, self._deliver)
        return self._exchange.result

    async def _deliver(self, result: Result) -> None:
        """Send the message of a result while the SDK still waits for the handler.

        A handler that continues after its answer, or past its deadline, must not keep its caller waiting. In a stream,
        the SDK writes the results that it gets.
        """
        exchange, tool, context = self._exchange, self._tool, self._context
        exchange.result = result
        if isinstance(result, Problem) and self._tools.questions.question_for(exchange, context, result) is not None:
            return
        is_plain = exchange.is_plain and tool.is_plain and not self._call.headers
        if is_plain and type(result) is Outcome and tool.is_object(result.output) and not result.headers:
            body = self._tools.results.write_plain(context.request_id, exchange.request_id, result.body)
            await exchange.answer(body)
            return
        if isinstance(result, UnknownAgent) or (exchange.is_streamed and asyncio.current_task() is exchange.task):
            return
        message: WireResult = {"jsonrpc": "2.0", "id": context.request_id}
        try:
            message["result"] = rendered = await self._answer(result)
            if "structuredContent" in rendered and not tool.is_wrapped and not exchange.is_streamed:
                assert isinstance(result, Outcome)
                rendered["structuredContent"] = orjson.Fragment(result.body)  # JSON already, on one line
        except MCPError as refused:
            message["error"] = refused.error.model_dump(by_alias=True, exclude_none=True)
        await exchange.answer(orjson.dumps(message))

    async def _answer(self, result: Result) -> WireResult:
        tasks = self._tools.tasks
        if tasks is not None and not isinstance(result, UnknownAgent) and self._tool.action.is_background:
            task: WireResult | None = await tasks.answer(self._context, self._call, result)
            if task is not None:
                self._exchange.meta_for(result, self._call.headers)
                return task
        return self._render(result)

    def _render(self, result: Result) -> WireResult:
        return self._tools.results.render(self._exchange, self._tool, self._call, self._context, result)

    async def _run_with_progress(self) -> Result | None:
        """Run the call and stream its progress. Returns None if its client has disconnected.

        A background action's job is followed to its end, for as long as the action may take. A job that has not ended
        by then is answered as usual, with the address to poll.
        """
        tools, exchange, context, call = self._tools, self._exchange, self._context, self._call
        async with notify_progress(context.session) as feed:
            call.on_part = feed.note_part
            await tools.invoker.run(call, self._deliver)
            accepted = exchange.result
            if exchange.is_answered or tools.jobs is None or not call.action.is_background:
                return accepted
            if not isinstance(accepted, Outcome) or (tools.tasks is not None and tools.tasks.is_declared(context)):
                return accepted
            answer = orjson.loads(accepted.body)
            job_id, caller = answer["job_id"], call.caller_key
            following = follow_job(tools.jobs, job_id, caller, feed.note)
            try:
                job = await wait_for(following, exchange.receive, call.action.timeout)
            except TimeoutError:
                return accepted
            except ClientDisconnect:
                # Closing the stream cancels the call since 2026-07-28, but not before. A key means that the client will
                # come back.
                if is_modern(context) and call.idempotency_key is None:
                    with suppress(Problem):
                        await tools.jobs.cancel(job_id, caller)
                return None
            if job is None:
                return accepted
            if job.problem is not None:
                problem: Problem = job.problem
                return problem
            described = orjson.dumps(job.describe(answer["poll_endpoint"]))
            return Outcome(described, None, 200, accepted.headers)


def _members_of(action: Action, context: RequestContext) -> dict[str, object]:
    key_field = action.idempotency.key_field if action.idempotency else "idempotency_key"
    places = {key_field: "idempotencyKey", **{name: name for name in (CONFIRMATION, RECEIPTS, SESSION)}}
    meta = cast(Mapping[str, Any], context.meta or {})
    return {name: meta[META + key] for name, key in places.items() if META + key in meta}
