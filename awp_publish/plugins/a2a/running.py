"""The calls of tasks that run in this process, and what becomes of their results."""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeVar

import orjson
from a2a.utils.errors import TaskNotFoundError, UnsupportedOperationError

from awp_publish.calls.call import Call, Result
from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.plugin import Context
from awp_publish.plugins.a2a.callers import Callers
from awp_publish.plugins.a2a.history import leave_out
from awp_publish.plugins.a2a.record import TaskRecord
from awp_publish.plugins.a2a.records import Tasks
from awp_publish.plugins.a2a.request import DOOR, A2aRequest
from awp_publish.plugins.a2a.tasks import (
    INPUT_REQUIRED,
    INTERRUPTED,
    REJECTED,
    WORKING,
    complete,
    fail,
    make_artifact,
    say,
    set_state,
    submit,
)
from awp_publish.problems import InvalidInput, JobCancelled, Problem, RateLimited, StoreUnavailable, UnknownOperation

logger: Final = logging.getLogger("awp_publish.calls")

T = TypeVar("T")


class RunningCalls:
    """Owns the asyncio tasks of the calls of this process."""

    def __init__(self, door: Context, renderer: ProblemRenderer, callers: Callers, tasks: Tasks) -> None:
        self._invoker, self._renderer = door.invoker, renderer
        self._callers, self._tasks = callers, tasks
        self._running: dict[asyncio.Task[None], A2aRequest] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Cancel the running calls when the application ends, after its requests have been answered."""
        try:
            yield
        finally:
            running = tuple(self._running)
            for call in running:
                call.cancel()
            if running:
                await asyncio.wait(running)

    def cancel(self, task_id: str) -> None:
        """Cancel a task's calls in this process, sooner than they would find the mark in its record."""
        for request in self._running.values():
            if request.record.task.id == task_id:
                request.cancelled.set()

    async def claim(self, request: A2aRequest, call: Call) -> None:
        """Record that a task is running, for this message alone, so that others can see and cancel it.

        If an address has too many tasks, that becomes the request's problem. A known caller's new background task needs
        a record only once it has a job. Raises UnsupportedOperationError if the task is running already.
        """
        record = request.record
        owner = await self._callers.key(request, of_call=True) or record.owner
        if owner and request.is_background and request.is_new:
            return
        set_state(record.task, WORKING)
        record.owner, record.input = owner, None
        try:
            if not await self._tasks.put(record, self._callers.address(request)):
                raise UnsupportedOperationError("The task is processing another message.")
        except RateLimited as problem:
            self._invoker.note_refusal(DOOR, request.request_id, problem)
            request.call, request.problem = None, problem
        record.input = call.input

    async def carry_out(self, request: A2aRequest) -> TaskRecord:
        """Make the call of a message, and return its task.

        The call is answered as soon as it has a result, even if its handler continues.
        """
        call = request.call
        if call is None:
            return await self._settle(request, None, request.problem or Problem("The message is not a call."))
        settled = asyncio.get_running_loop().create_future()
        running = asyncio.create_task(self._run(request, call, settled))
        self._running[running] = request
        running.add_done_callback(self._running.pop)
        try:
            return await asyncio.shield(settled)
        except asyncio.CancelledError:
            request.cancelled.set()  # the stream was abandoned
            raise

    async def _run(self, request: A2aRequest, call: Call, settled: "asyncio.Future[TaskRecord]") -> None:
        async def deliver(result: Result) -> None:
            record = await self._settle(request, call, result)
            if not settled.done():
                settled.set_result(record)

        try:
            await self._invoker.run(call, deliver)
            if not settled.done():
                await deliver(JobCancelled("The call was cancelled before it had a result."))
        except Exception as error:
            logger.exception("a task could not be carried out (request_id=%s)", request.request_id)
            if not settled.done():
                settled.set_exception(error)
                settled.exception()  # mark it as retrieved, since nobody may await it any more
        finally:
            settled.cancel()

    async def abandoned(self, request: A2aRequest) -> None:
        """Return when the client has disconnected, abandoned its stream, or cancelled the task at any worker."""
        ends: list[Coroutine[Any, Any, object]] = [request.disconnected(), request.cancelled.wait()]
        if request.record.raw:
            ends.append(self._tasks.cancelled(request.record))
        await first(*ends)

    async def _settle(self, request: A2aRequest, call: Call | None, result: Result) -> TaskRecord:
        """Store the result of a task, unless it began and ended with a refusal: then nothing has happened."""
        record, task = request.record, request.record.task
        if isinstance(result, UnknownOperation):  # for its caller it was not a call
            if call is not None:
                record.skill, record.input = request.before
                leave_out(request.sent, task, has_secrets=bool(self._invoker.input_redactors))
            call = None
        added, record.job = call.headers if call is not None else (), ""
        if isinstance(result, Problem):
            fail(task, result, self._renderer, request.request_id, added)
        else:
            accepted = orjson.loads(result.body) if request.is_background else None
            if isinstance(accepted, dict) and "job_id" in accepted:
                record.job = str(accepted["job_id"])
                submit(task, added)
            else:
                complete(task, result.body, (*result.headers, *added))
                once = self._invoker.answer_redactors.get(record.skill)
                if once is not None:
                    redacted = orjson.dumps(once(orjson.loads(result.body)))
                    record.redacted_artifact = make_artifact(task, redacted, result.headers)
                request.cookies = tuple(pair for pair in result.headers if pair[0] == b"set-cookie")
        record.owner = (call.caller_key if call is not None else "") or record.owner
        record.is_open = bool(record.owner) and not await self._callers.key(request, of_call=True)
        state = task.status.state
        if state not in INTERRUPTED or (call is not None and isinstance(result, InvalidInput)):
            record.input = None  # an invalid input has to be sent again in any case
        elif record.input:
            redact = self._invoker.input_redactors.get(record.skill)
            has_secrets = redact is not None and redact(record.input) != record.input
            if not record.owner or has_secrets or len(orjson.dumps(record.input)) > record.max_bytes // 2:
                record.input = None
                say(task, "The input is not stored until then: send it again in that message, as the member input.")
        try:
            if request.is_new and state == REJECTED:
                if record.raw:
                    await self._tasks.remove(record)
            elif not await self._tasks.put(record, self._callers.address(request)):
                with suppress(TaskNotFoundError):
                    return await self._tasks.find(task.id, record.owner)  # another message was quicker
        except RateLimited as problem:
            if state == INPUT_REQUIRED:  # nobody could continue it
                fail(task, problem, self._renderer, request.request_id)
        except StoreUnavailable as problem:  # must not cost the caller the answer
            logger.warning("task %s is not stored: %s", task.id, problem)
        return record


async def first(*works: Coroutine[Any, Any, T | None]) -> T | None:
    """Return the result of the first coroutine that ends, and cancel the others."""
    futures = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
        return next(future for future in futures if future.done()).result()
    finally:
        for future in futures:
            future.cancel()
        await asyncio.gather(*futures, return_exceptions=True)
