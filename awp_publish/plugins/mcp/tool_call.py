"""A call of a tool: from `tools/call` to a `Call`, and from its outcome to a result (specification, Server/Tools).

A problem is a result with `isError`, for the model to read. Only a challenge of a site with authorization servers is
the HTTP status 401 or 403 (specification, Basic/Authorization), because clients look for it there.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, cast

import orjson
from mcp.shared.exceptions import MCPError

from awp_publish.calls.call import Call, Outcome, Result
from awp_publish.http.body import ClientDisconnect
from awp_publish.http.calling import Calls
from awp_publish.plugin import Context
from awp_publish.plugins.mcp.dialect import members_of
from awp_publish.plugins.mcp.elicitation import MAX_QUESTIONS, Questions, agreed_token
from awp_publish.plugins.mcp.exchange import PROTOCOL, McpExchange, RequestContext, WireResult, is_modern
from awp_publish.plugins.mcp.progress import follow_job, notify_progress
from awp_publish.plugins.mcp.results import Results
from awp_publish.plugins.mcp.stopping import wait_for
from awp_publish.plugins.mcp.tool_list import Tool
from awp_publish.problems import Problem, UnknownAgent

CANCELLED: Final = -32800
"""The error of a call whose client has disconnected. Nobody reads it."""


class ToolCalls:
    """The services that all calls at one address share. `tasks` is the extension, for sites with background actions."""

    def __init__(self, door: Context, calls: Calls) -> None:
        self.invoker = door.invoker
        self.make = calls.make
        self.jobs: Any = jobs.jobs if (jobs := door.ask("jobs")) is not None else None
        self.tasks: Any = None
        self.questions = Questions(door)
        self.results = Results(challenges=door.catalog.metadata_path is not None)


class ToolCall:
    """A call of a tool. `unknown` makes the problem for a tool that its caller may not know of.

    It sends most responses itself: a result is sent as it is made here, without being validated, copied and serialised
    again. The SDK, and its tracing, only learn whether a call has failed.
    """

    __slots__ = ("_call", "_context", "_exchange", "_inputs", "_members", "_params", "_tool", "_tools", "_unknown")

    def __init__(
        self,
        tools: ToolCalls,
        exchange: McpExchange,
        tool: Tool,
        params: Mapping[str, Any],
        context: RequestContext,
        unknown: Callable[[], Problem],
    ) -> None:
        self._tools, self._exchange, self._tool, self._context = tools, exchange, tool, context
        self._params, self._unknown = params, unknown
        inputs, members = params.get("arguments") or {}, dict[str, object]()
        if tool.action.id in tools.invoker.guarded:
            members = members_of(tool.action, context.meta)
        if tool.own and not tool.own.isdisjoint(inputs):
            members |= {name: inputs[name] for name in tool.own & inputs.keys()}
            inputs = {name: value for name, value in inputs.items() if name not in tool.own}
        self._inputs, self._members = inputs, members
        self._call: Call | None = None

    async def carry_out(self) -> WireResult:
        """Return the result for the SDK, which is dropped if the response was already sent. Raises MCPError."""
        tools, exchange = self._tools, self._exchange
        try:
            self._call = call = self._make()
        except Problem as problem:
            tools.invoker.note_refusal(PROTOCOL, exchange.request_id, problem)
            return self._render(problem)
        outcome = await self._run(call)
        while (question := tools.questions.question_for(exchange, self._context, outcome)) is not None:
            try:
                agreed = await tools.questions.ask(exchange, call, question)
            except ClientDisconnect:
                outcome = None
                break
            except Problem as problem:
                outcome, agreed = problem, False
            if not agreed:
                exchange.questions = MAX_QUESTIONS
                await self._deliver(cast(Problem, outcome))
                break
            self._call = call = self._make()
            call.members = call.members._replace(confirmation=question["token"])
            outcome = await self._run(call)
        if outcome is None:
            raise MCPError(CANCELLED, "The client has disconnected.")
        if exchange.is_answered:
            return {"isError": isinstance(outcome, Problem)}
        return await self._answer(outcome)

    def _make(self) -> Call:
        token, refusal = None, None
        try:
            token = agreed_token(self._params)
        except Problem as problem:
            refusal = problem
        call = self._tools.make(
            self._tool.action,
            self._inputs,
            self._exchange,
            self._members,
            size=self._exchange.size,
            unknown=self._unknown,
            objection=refusal,
        )
        if token:
            call.members = call.members._replace(confirmation=token)
        return call

    async def _run(self, call: Call) -> Result | None:
        """Run the call. Returns its result, or None if its client has disconnected."""
        if self._exchange.is_streamed:
            return await self._run_with_progress(call)
        await self._tools.invoker.run(call, self._deliver)
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
        is_plain = exchange.is_plain and tool.is_plain and self._call is not None and not self._call.headers
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
        tasks, call = self._tools.tasks, self._call
        is_known = not isinstance(result, UnknownAgent)  # to whoever may not know of it, no step tells it from others
        if tasks is not None and is_known and call is not None and call.action.is_background:
            task: WireResult | None = await tasks.answer(self._context, call, result)
            if task is not None:
                self._exchange.meta_for(result, call.headers)
                return task
        return self._render(result)

    def _render(self, result: Result) -> WireResult:
        return self._tools.results.render(self._exchange, self._tool, self._context, result, self._call)

    async def _run_with_progress(self, call: Call) -> Result | None:
        """Run the call and stream its progress. Returns None if its client has disconnected.

        A background action's job is followed to its end, for as long as the action may take. A job that has not ended
        by then is answered as usual, with the address to poll.
        """
        tools, exchange, context = self._tools, self._exchange, self._context
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
                if is_modern(context) and call.members.idempotency_key is None:
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
