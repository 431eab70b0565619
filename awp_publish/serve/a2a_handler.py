"""The SDK's request handler on our path of calls: each message becomes a call, each result the state of a task.

The SDK's own default handler keeps running tasks in the memory of one process. Here a task is in the site's store from
one request to the next, and background actions are jobs, so that any worker answers for any task.
"""

import logging
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from typing import Final, TypeAlias

from a2a.server.context import ServerCallContext
from a2a.server.tasks import InMemoryTaskStore
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskArtifactUpdateEvent,
    TaskStatusUpdateEvent,
)
from a2a.utils.errors import (
    A2AError,
    InternalError,
    InvalidRequestError,
    PushNotificationNotSupportedError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from a2a.utils.task import apply_history_length, validate_history_length, validate_page_size

from awp_publish.problems import Problem
from awp_publish.serve import a2a_states as states
from awp_publish.serve.a2a_exchange import EXCHANGE, A2aExchange
from awp_publish.serve.a2a_following import Following
from awp_publish.serve.a2a_required import check_required_fields
from awp_publish.serve.a2a_runs import Runs
from awp_publish.serve.a2a_tasks import Kept, Tasks
from awp_publish.serve.a2a_turns import Callers, Turns
from awp_publish.serve.a2a_unsupported import Unsupported
from awp_publish.serve.live import Surroundings

logger: Final = logging.getLogger("awp_publish.calls")

Event: TypeAlias = Task | Message | TaskStatusUpdateEvent | TaskArtifactUpdateEvent
Request: TypeAlias = SendMessageRequest | GetTaskRequest | ListTasksRequest | CancelTaskRequest | SubscribeToTaskRequest


class A2aHandler(Unsupported):
    """Answers what the SDK's dispatchers have read."""

    def __init__(self, surroundings: Surroundings, runs: Runs) -> None:
        self._telling = states.telling_of(surroundings.catalog)
        self._callers = Callers(surroundings)
        self._tasks = Tasks(surroundings.site.guarding.store)
        self._following = Following(surroundings, self._tasks, runs)
        self._turns = Turns(surroundings, self._tasks, runs, self._following)

    # --- Messages ---

    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Task | Message:
        """SendMessage: the task when it has ended, waits for its caller, or takes too long to be waited for."""
        exchange = _exchange_of(context)
        with self._told_by_a2a(exchange, params):
            _check_configuration(params)
            turn = await self._turns.begin(params.message, exchange)
            if turn.call is not None and self._turns.is_background(turn):
                await self._turns.announce(turn, turn.call)
            kept = await self._turns.carry_out(turn)
            if kept.job and not params.configuration.return_immediately:
                kept = await self._following.wait(kept, exchange)
            return apply_history_length(kept.task, params.configuration)

    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        """SendStreamingMessage: the task as it begins, and then what becomes of it."""
        exchange = _exchange_of(context)
        with self._told_by_a2a(exchange, params):
            _check_configuration(params)
            turn = await self._turns.begin(params.message, exchange)
            if turn.call is not None:
                await self._turns.announce(turn, turn.call)
            if turn.call is None or self._turns.is_background(turn):
                kept = await self._turns.carry_out(turn)
                yield apply_history_length(kept.task, params.configuration)
            else:
                yield apply_history_length(_copy(turn.kept.task), params.configuration)
                kept = await self._turns.carry_out(turn)
                for event in _updates(kept.task):
                    yield event
            async with aclosing(self._following.changes(kept)) as changes:
                async for changed in changes:
                    for event in _updates(changed.task):
                        yield event

    # --- Tasks ---

    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task | None:
        """GetTask."""
        exchange = _exchange_of(context)
        with self._told_by_a2a(exchange, params):
            validate_history_length(params)
            kept = await self._find(params.id, exchange)
            return apply_history_length(kept.task, params)

    async def on_list_tasks(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """ListTasks: those of a known caller, filtered and in pages as the SDK does it."""
        exchange = _exchange_of(context)
        with self._told_by_a2a(exchange, params):
            validate_history_length(params)
            if params.HasField("page_size"):
                validate_page_size(params.page_size)
            page = InMemoryTaskStore()
            for kept in await self._tasks.listed(await self._callers.identify(exchange)):
                await page.save(await self._task_now(kept), context)
            listed = await page.list(params, context)
            tasks = [apply_history_length(task, params) for task in listed.tasks]
            del listed.tasks[:]
            listed.tasks.extend(tasks)
            return listed

    async def on_cancel_task(self, params: CancelTaskRequest, context: ServerCallContext) -> Task | None:
        """CancelTask."""
        exchange = _exchange_of(context)
        with self._told_by_a2a(exchange, params):
            return (await self._following.cancel(await self._find(params.id, exchange))).task

    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        """SubscribeToTask: the task as it stands, and then what becomes of it."""
        exchange = _exchange_of(context)
        with self._told_by_a2a(exchange, params):
            kept = await self._find(params.id, exchange)
            if kept.has_ended:
                raise UnsupportedOperationError("The task has ended: read it with GetTask.")
            yield kept.task
            async with aclosing(self._following.changes(kept)) as changes:
                async for changed in changes:
                    for event in _updates(changed.task):
                        yield event

    async def _find(self, task_id: str, exchange: A2aExchange) -> Kept:
        kept = await self._tasks.find(task_id, await self._callers.identify(exchange))
        return await self._following.refresh(kept)

    async def _task_now(self, kept: Kept) -> Task:
        try:
            return (await self._following.refresh(kept)).task
        except TaskNotFoundError:
            return kept.task

    @contextmanager
    def _told_by_a2a(self, exchange: A2aExchange, params: Request) -> Iterator[None]:
        """A2A has errors of its own for what is no call; what goes wrong with us is told to the log, not the caller."""
        exchange.is_read = True
        try:
            check_required_fields(params)
            yield
        except A2AError as error:
            exchange.error = error
            raise
        except Problem as problem:
            exchange.refused = problem
            kind = InternalError if problem.status >= 500 else InvalidRequestError
            exchange.error = kind(problem.detail, exchange.describe(problem, self._telling))
            raise exchange.error from problem
        except Exception as failure:
            logger.exception("the A2A door failed (request_id=%s)", exchange.request_id)
            exchange.error = InternalError("The site failed. Its log has the cause under this request's id.")
            raise exchange.error from failure


def _exchange_of(context: ServerCallContext) -> A2aExchange:
    exchange: A2aExchange = context.state[EXCHANGE]
    return exchange


def _check_configuration(params: SendMessageRequest) -> None:
    validate_history_length(params.configuration)
    if params.configuration.HasField("task_push_notification_config"):
        raise PushNotificationNotSupportedError


def _copy(task: Task) -> Task:
    """A task as it is now: what is handed to a stream must not change before it is sent."""
    copied = Task()
    copied.CopyFrom(task)
    return copied


def _updates(task: Task) -> Iterator[Event]:
    """What a stream tells of a task that has changed."""
    if task.status.state == states.COMPLETED:
        for artifact in task.artifacts:
            told = TaskArtifactUpdateEvent(task_id=task.id, context_id=task.context_id, last_chunk=True)
            told.artifact.CopyFrom(artifact)
            yield told
    update = TaskStatusUpdateEvent(task_id=task.id, context_id=task.context_id)
    update.status.CopyFrom(task.status)
    update.metadata.CopyFrom(task.metadata)
    yield update
