"""Background actions as tasks: the extension `io.modelcontextprotocol/tasks` (SEP-2663) of revision 2026-07-28.

A task is a job with the job's id, so it is stored, run and deleted like any job, and only its caller sees it. A call
that still needs a person's confirmation is a task without a job: `input_required`, until `tasks/update` brings the
reply. Then the call is made with that confirmation, through every gate. `tasks/result` and `tasks/list` are not part of
the extension. `notifications/tasks` go to who listens for their tasks, as soon as they might have looked themselves.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, Final, cast

import mcp_types as types
import orjson
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value

from awp_publish.calls.call import Call, Outcome, Principal, Result, key_of, never_disconnected
from awp_publish.calls.invoke import Invoker
from awp_publish.http.doors import identify_caller
from awp_publish.plugin import Context
from awp_publish.plugins.mcp.dialect import SESSION
from awp_publish.plugins.mcp.elicitation import input_request, not_agreed, question_for
from awp_publish.plugins.mcp.exchange import (
    PROTOCOL,
    McpExchange,
    RequestContext,
    WireResult,
    admit_caller,
    exchange_of,
    find_caller,
    is_modern,
)
from awp_publish.plugins.mcp.get_job import GET_JOB, get_job_entry
from awp_publish.plugins.mcp.pending import Pending, PendingCalls
from awp_publish.plugins.mcp.results import text_block
from awp_publish.plugins.mcp.tool_list import session_argument, takes_session
from awp_publish.plugins.mcp.tools import Tools
from awp_publish.problems import (
    HandlerFailed,
    HandlerTimeout,
    InvalidInput,
    InvalidOutput,
    Problem,
    StoreUnavailable,
    Violation,
)
from awp_publish.schema import compile_schema

EXTENSION: Final = "io.modelcontextprotocol/tasks"

MAX_POLL_MS: Final = 5_000
YOUNG_SECONDS: Final = 15
"""For every so many seconds of a task's life, its client is asked to wait a second longer between two polls."""

MAX_FOLLOWED: Final = 100
"""Tasks of which one stream tells."""

_CRASHES: Final = (HandlerFailed, HandlerTimeout, InvalidOutput, StoreUnavailable)
"""Problems of calls that end without any result. Every other problem is a result with `isError`."""


class TaskParams(types.RequestParams):
    """Params of `tasks/get` and `tasks/cancel`."""

    task_id: str


class UpdateTaskParams(TaskParams):
    """Params of `tasks/update`."""

    input_responses: dict[str, Any]


class TaskUpdate:
    """A `tasks/update` as the request of the call that it confirms: what accompanies that call is kept with the task.

    The call has its caller's credentials, and is made although the client may leave.
    """

    def __init__(self, exchange: McpExchange) -> None:
        self.scope, self.request_id, self.disconnected = exchange.scope, exchange.request_id, never_disconnected
        own = (b"awp-", b"idempotency-key")
        self.fields = {name: text for name, text in exchange.fields.items() if not name.startswith(own)}


@dataclass(frozen=True, slots=True)
class Followed:
    """The state in which a task was last sent, and when it is looked at next, in seconds of the monotonic clock."""

    state: Mapping[str, object] = field(default_factory=dict)
    due: float = 0.0


ENDED: Final = ("completed", "failed", "cancelled")


class TaskExtension:
    """The tasks of one public address of a site that has background actions."""

    def __init__(self, door: Context, background: Any, tools: Tools) -> None:
        self._invoker: Invoker = door.invoker
        self._jobs = background.jobs
        self._identify = identify_caller(door)
        self._proxies = door.admission.trusted_proxies
        self._address = door.catalog.absolute(door.catalog.paths.jobs)
        self._seconds: float = background.jobs.result_seconds
        self._pending = PendingCalls(background.jobs)
        self._check_visible = background.check_visible
        self._tools, self._results = tools, tools.calls.results
        self._actions = {action.id: action for action in door.catalog.actions if action.is_background}
        self._restricted = {name: action for name, action in self._actions.items() if not action.is_public}
        is_declared = any(action.id == GET_JOB for action in door.catalog.actions)
        of_sessions = (takes_session(door.catalog, action) for action in self._actions.values())
        has_sessions = door.ask("sessions") is not None and any(of_sessions)
        entry = get_job_entry(session_argument(door.catalog) if has_sessions else None)
        self.own_tools: Mapping[str, Mapping[str, object]] = {} if is_declared else {GET_JOB: entry}
        self._takes_job = compile_schema(entry["inputSchema"]).is_valid

    def register(self, server: Server[Any]) -> None:
        server.extensions[EXTENSION] = {}
        server.add_request_handler("tasks/get", TaskParams, self.get_task)
        server.add_request_handler("tasks/update", UpdateTaskParams, self.update_task)
        server.add_request_handler("tasks/cancel", TaskParams, self.cancel_task)

    def is_declared(self, context: RequestContext) -> bool:
        """Return True if this request declares that its client accepts tasks."""
        if not is_modern(context):
            return False
        capabilities = context.session.client_capabilities
        return capabilities is not None and EXTENSION in (capabilities.extensions or {})

    async def answer(self, context: RequestContext, call: Call, result: Result) -> WireResult | None:
        """Return the task for a call of a background action, or None if the call is answered like any other."""
        if not self.is_declared(context):
            return None
        if isinstance(result, Problem) and question_for(result, context) is None:
            return None
        is_open = False
        if call.caller_key and call.members.session is not None:
            with suppress(Problem):
                is_open = key_of(await find_caller(context, self._identify)) != call.caller_key
        principal, owner = ("", call.caller_key) if is_open else (call.caller_key, "")
        if isinstance(result, Outcome):
            described = orjson.loads(result.body)
            task_id = described["job_id"]
            if is_open:
                times = {"created": described["created"], "updated": described["updated"], "job": task_id}
                opened = Pending(action=call.action.id, given={}, principal=principal, owner=owner, **times)
                task_id = await self._pending.add(opened) or task_id
            task = self._task(task_id, "working", described["created"], described["updated"])
            return {"resultType": "task", **task, "_meta": self._results.stamp}
        confirmation, now = cast(dict[str, str], result.members["confirmation"]), self._pending.now()
        pending = Pending(
            action=call.action.id,
            given=call.input,
            principal=principal,
            owner=owner,
            receipts=call.members.receipts,
            session=call.members.session,
            key=call.members.idempotency_key,
            created=now,
            updated=now,
            question=(confirmation["token"], confirmation["summary"]),
        )
        if (new_id := await self._pending.add(pending, call)) is None:
            return None
        task = self._task(new_id, "input_required", now, now)
        return {"resultType": "task", **task, "_meta": self._results.stamp}

    async def get_task(self, context: RequestContext, params: TaskParams) -> WireResult:
        """Answer `tasks/get` (Task Polling). Raises MCPError."""
        caller = await self._admit(context, params.task_id)
        with self._as_errors(context):
            task = await self._describe(context, params.task_id, caller)
        return {"resultType": "complete", **task, "_meta": self._results.stamp}

    async def update_task(self, context: RequestContext, params: UpdateTaskParams) -> WireResult:
        """Answer `tasks/update` (Task Update Requests); unsolicited replies are ignored."""
        caller = await self._admit(context, params.task_id)
        with self._as_errors(context):
            pending = await self._find(params.task_id, caller)
            if pending is None:
                await self._show(params.task_id, None, caller)
            elif self._pending.is_waiting(pending) and pending.name in params.input_responses:
                reply = params.input_responses[pending.name]
                action = reply.get("action") if isinstance(reply, dict) else None
                if action not in ("accept", "decline", "cancel"):
                    detail = f'inputResponses.{pending.name}: "action" must be "accept", "decline" or "cancel".'
                    raise MCPError(types.INVALID_PARAMS, detail)
                await self._resume(context, params.task_id, pending, action)
        return {"resultType": "complete", "_meta": self._results.stamp}

    async def cancel_task(self, context: RequestContext, params: TaskParams) -> WireResult:
        """Answer `tasks/cancel` (Task Cancellation), also for a task that has ended. Raises MCPError."""
        caller = await self._admit(context, params.task_id)
        with self._as_errors(context), suppress(self._jobs.Ended):
            pending = await self._find(params.task_id, caller)
            if pending is None or pending.job:
                if self._restricted:
                    await self._show(params.task_id, pending, caller)
                job_id, owner = (pending.job, pending.owner) if pending is not None else (params.task_id, "")
                await self._jobs.cancel(job_id, owner or key_of(caller))
            elif self._pending.is_waiting(pending):
                cancelled = replace(pending, question=None, is_cancelled=True, updated=self._pending.now())
                await self._pending.replace(params.task_id, pending, cancelled)
        return {"resultType": "complete", "_meta": self._results.stamp}

    async def follow(self, context: RequestContext, task_ids: object) -> dict[str, "Followed"]:
        """Return the tasks with these ids that their caller may see. Raises MCPError."""
        if task_ids is None:
            return {}
        if not isinstance(task_ids, list) or not all(isinstance(text, str) for text in task_ids):
            raise MCPError(types.INVALID_PARAMS, "notifications.taskIds must be a list of the ids of tasks.")
        self._need(context)
        caller, followed = await admit_caller(context, self._identify), dict[str, Followed]()
        for task_id in [*dict.fromkeys(task_ids)][:MAX_FOLLOWED]:
            with suppress(Problem):
                await self._describe(context, task_id, caller)
                followed[task_id] = Followed()
        return followed

    async def news_of(self, context: RequestContext, followed: dict[str, "Followed"]) -> list[WireResult]:
        """Return what each task is by now that is not as it was last told; whatever has ended is followed no more.

        Each is looked at as often as its client is asked to. Raises MCPError for credentials that are not good.
        """
        now, news = time.monotonic(), list[WireResult]()
        due = [task_id for task_id, task in followed.items() if task.due <= now]
        caller = await admit_caller(context, self._identify) if due else None
        for task_id in due:
            try:
                task = await self._describe(context, task_id, caller)
            except StoreUnavailable:
                followed[task_id] = replace(followed[task_id], due=now + MAX_POLL_MS / 1000)
                continue
            except Problem:  # it is forgotten, or not theirs any more
                del followed[task_id]
                continue
            state = {name: value for name, value in task.items() if name not in ("ttlMs", "pollIntervalMs")}
            if state != followed[task_id].state:
                news.append(task)
            if task["status"] in ENDED:
                del followed[task_id]
            else:
                followed[task_id] = Followed(state, now + cast(int, task["pollIntervalMs"]) / 1000)
        return news

    async def call_get_job(self, context: RequestContext, params: Mapping[str, Any]) -> WireResult:
        exchange, arguments = exchange_of(context), params.get("arguments") or {}
        try:
            if not self._takes_job(arguments):
                violation = Violation("/job_id", "must be the job_id that the tool returned.")
                raise InvalidInput("get_job takes one input: job_id, a string.", errors=[violation])
            caller = await find_caller(context, self._identify, arguments.get(SESSION))
            job = await self._show(arguments["job_id"], None, caller)
        except Problem as problem:
            self._invoker.note_refusal(PROTOCOL, exchange.request_id, problem)
            tool = self._tools.tools_for(context)[next(iter(self._actions))]
            return self._results.render(exchange, tool, context, problem)
        described: dict[str, object] = job.describe(f"{self._address}/{job.id}")
        if job.problem is not None:
            described["problem"] = exchange.describe(job.problem)
        text = orjson.dumps(described).decode()
        stamp = self._results.stamp if is_modern(context) else {}
        meta = {**stamp, **exchange.meta_for(Outcome(b"", None))}
        rendered = {"content": [text_block(text)], "isError": False, "_meta": meta}
        rendered["structuredContent"] = orjson.loads(text)
        return {**rendered, "resultType": "complete"} if is_modern(context) else rendered

    async def _describe(self, context: RequestContext, task_id: str, caller: Principal | None) -> WireResult:
        """Return a task as its caller may see it. Raises jobs.Unknown, StoreUnavailable."""
        pending = await self._find(task_id, caller)
        if pending is not None and not pending.job:
            return self._describe_pending(task_id, pending)
        task = self._describe_job(context, await self._show(task_id, pending, caller))
        return task if pending is None else task | {"taskId": task_id, "createdAt": pending.created}

    async def _find(self, task_id: str, caller: Principal | None) -> Pending | None:
        """Return the call of a task that did not begin as a job, or None for others. Raises jobs.Unknown."""
        pending = await self._pending.find(task_id)
        if pending is not None and pending.principal not in ("", key_of(caller)):
            raise self._jobs.Unknown("There is no such task.")
        if pending is not None and not pending.owner:
            self._check_visible(self._restricted, pending.action, caller)
        return pending

    async def _show(self, task_id: str, pending: Pending | None, caller: Principal | None) -> Any:
        """Return a task's job to its caller, who still has to be allowed to see its action. Raises jobs.Unknown."""
        if pending is not None and pending.owner:
            return await self._jobs.show(pending.job, pending.owner)
        job = await self._jobs.show(pending.job if pending is not None else task_id, key_of(caller))
        self._check_visible(self._restricted, job.action, caller)
        return job

    async def _admit(self, context: RequestContext, task_id: str) -> Principal | None:
        """Return the caller, None if unknown. Raises MCPError for a request that the extension does not allow."""
        if not is_modern(context):
            raise MCPError(types.METHOD_NOT_FOUND, "Method not found")
        exchange = exchange_of(context)
        # Streamable HTTP: Routing Headers. The official clients do not send it for methods of extensions yet.
        header = exchange.fields.get(MCP_NAME_HEADER.encode())
        if header is not None and decode_header_value(header.decode("latin-1").strip(" \t")) != task_id:
            detail = f"{MCP_NAME_HEADER} header does not match the request body's 'taskId' parameter"
            raise MCPError(types.HEADER_MISMATCH, detail)
        self._need(context)
        return await admit_caller(context, self._identify)

    def _need(self, context: RequestContext) -> None:
        if not self.is_declared(context):
            required: WireResult = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
            raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "Missing required client capability", required)

    async def _resume(self, context: RequestContext, task_id: str, pending: Pending, reply: str) -> None:
        """Make the call that a person was asked about, or end it. The first reply decides."""
        assert pending.question is not None
        exchange, tool, now = exchange_of(context), self._tools.tools_for(context)[pending.action], self._pending.now()
        claimed = replace(pending, taken=now, updated=now)
        if not await self._pending.replace(task_id, pending, claimed):
            return
        call = self._tools.calls.make(
            tool.action,
            dict(pending.given),
            TaskUpdate(exchange),
            pending.members(tool.action),
            unknown=partial(self._tools.unknown, context, tool.action.id),
        )
        agrees = reply == "accept"
        results: list[Result] = []

        async def keep(result: Result) -> None:
            results.append(result)

        try:
            if agrees:
                await self._invoker.run(call, keep)
            else:
                results.append(not_agreed(reply))
            result = results[0]
            if isinstance(result, Outcome):
                done = replace(claimed, question=None, job=orjson.loads(result.body)["job_id"])
            elif agrees and question_for(result, context) is not None:  # the summary has changed since they agreed
                confirmation = cast(dict[str, str], result.members["confirmation"])
                done = replace(
                    claimed,
                    question=(confirmation["token"], confirmation["summary"]),
                    taken="",
                    round=pending.round + 1,
                )
            else:
                rendered = self._results.render(exchange, tool, context, result, call)
                done = replace(claimed, question=None, result=orjson.loads(orjson.dumps(rendered)))
        except BaseException:
            await self._pending.replace(task_id, claimed, pending)
            raise
        if done.question is None:  # drop what only the call needed
            done = replace(done, given={}, receipts=(), session=None, key=None)
        await self._pending.replace(task_id, claimed, done)

    def _describe_pending(self, task_id: str, pending: Pending) -> WireResult:
        age = (self._jobs.clock() - datetime.fromisoformat(pending.created)).total_seconds()
        task = self._task(task_id, "working", pending.created, pending.updated, age)
        if pending.question is not None and self._pending.is_waiting(pending):
            requests = {pending.name: input_request(pending.question[1])}
            return task | {"status": "input_required", "inputRequests": requests}
        if pending.is_cancelled:
            return task | {"status": "cancelled"}
        return task | ({"status": "completed", "result": pending.result} if pending.result is not None else {})

    def _describe_job(self, context: RequestContext, job: Any) -> WireResult:
        """Describe a job as a task with its result (Task Status)."""
        exchange, described = exchange_of(context), job.describe(f"{self._address}/{job.id}")
        age = (self._jobs.clock() - job.created).total_seconds()
        ran = (job.updated - job.created).total_seconds() if job.has_ended else 0.0
        task = self._task(job.id, "working", described["created"], described["updated"], age, ran)
        if not job.has_ended:
            if job.progress is not None and job.progress.message:
                task["statusMessage"] = job.progress.message
            return task
        if job.status == "cancelled":
            return task | {"status": "cancelled"}
        tool = self._tools.tools_for(context)[job.action]
        if job.problem is None:
            result: Result = Outcome(orjson.dumps(described), None, 200, job.result.headers if job.result else ())
        else:
            result = job.problem
        try:
            if not isinstance(result, (*_CRASHES, self._jobs.Interrupted)):
                rendered = self._results.render(exchange, tool, context, result)
                return task | {"status": "completed", "result": rendered}
            error = {"code": types.INTERNAL_ERROR, "message": result.detail}
            error["data"] = exchange.describe(result)
        except MCPError as refused:
            exchange.refusal = None
            error = refused.error.model_dump(by_alias=True, exclude_none=True)
        return task | {"status": "failed", "statusMessage": error["message"], "error": error}

    def _task(
        self, task_id: str, status: str, created: str, updated: str, age: float = 0.0, ran: float = 0.0
    ) -> WireResult:
        """Return the members of every task. `age` and `ran` are the seconds since it began, and until it ended."""
        pause = min(MAX_POLL_MS, 1_000 * (1 + max(0, int(age // YOUNG_SECONDS))))
        times = {"createdAt": created, "lastUpdatedAt": updated, "ttlMs": int((self._seconds + ran) * 1000)}
        return {"taskId": task_id, "status": status, **times, "pollIntervalMs": pause}

    @contextmanager
    def _as_errors(self, context: RequestContext) -> Iterator[None]:
        exchange = exchange_of(context)
        try:
            yield
        except self._jobs.Unknown as problem:
            self._invoker.note_refusal(PROTOCOL, exchange.request_id, problem)
            detail = "Unknown task: it does not exist, has expired, or belongs to another caller."
            raise MCPError(types.INVALID_PARAMS, detail) from problem
        except Problem as problem:
            self._invoker.note_refusal(PROTOCOL, exchange.request_id, problem)
            raise MCPError(types.INTERNAL_ERROR, problem.detail, exchange.describe(problem)) from problem
