"""The SDK's request handler, on our path of calls: each message becomes a call, each result the state of a task.

The SDK's `DefaultRequestHandler`, with our executor and store, was measured at 2.6 to 3.1 times the time of a call, and
a CancelTask that reached another worker answered CANCELED while the action took effect. Here a task is in the site's
store between requests, background actions are jobs, and a worker reads from a task's record that it was cancelled, so
that any worker can answer for any task.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import ExitStack, aclosing, contextmanager, suppress
from functools import partial
from typing import Final, NoReturn
from urllib.parse import parse_qsl

from a2a.server.context import ServerCallContext
from a2a.server.events import Event as Update
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.server.tasks import InMemoryTaskStore
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    Part,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import (
    A2AError,
    InternalError,
    InvalidParamsError,
    InvalidRequestError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from a2a.utils.task import apply_history_length, validate_history_length, validate_page_size
from google.protobuf.message import Message as ProtobufMessage

from awp_publish.calls.call import Call, Principal, key_of, scopes_of
from awp_publish.calls.progress import ProgressFeed, open_report
from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.http.streams import OpenStreams
from awp_publish.model import Event, JsonObject
from awp_publish.plugin import Context
from awp_publish.plugins.a2a.callers import Callers
from awp_publish.plugins.a2a.dialect import DIALECT
from awp_publish.plugins.a2a.event_tasks import EVENT, EventTasks, subscription_of
from awp_publish.plugins.a2a.fields import require_fields
from awp_publish.plugins.a2a.messages import Messages
from awp_publish.plugins.a2a.pushes import Pushes
from awp_publish.plugins.a2a.record import TaskRecord, progress_update, updates_of
from awp_publish.plugins.a2a.records import Tasks
from awp_publish.plugins.a2a.request import REQUEST, A2aRequest
from awp_publish.plugins.a2a.running import RunningCalls, first
from awp_publish.plugins.a2a.selecting import SkillSelector
from awp_publish.plugins.a2a.tasks import CANCELED, TERMINAL, WORKING, describe, set_state
from awp_publish.plugins.a2a.wire import write_metadata
from awp_publish.problems import Problem

MAX_WAIT: Final = 30.0
"""Seconds that a response waits for a job to end. Callers and proxies would not wait longer."""

MAX_SUBSCRIPTION: Final = 900.0
"""Seconds for which SubscribeToTask stays open for a task that waits for its caller. The SDK keeps the stream alive."""

MAX_CANCEL_WAIT: Final = 5.0
"""Seconds that CancelTask waits for a cancelled task to end before it returns the task's state."""

logger: Final = logging.getLogger("awp_publish.calls")


class A2aHandler(RequestHandler):
    """Answers the requests that the SDK has read."""

    def __init__(self, door: Context) -> None:
        self.renderer = ProblemRenderer(door.catalog, DIALECT.recoveries)
        self._callers = Callers(door)
        self._tasks = Tasks(door, self.renderer)
        self._pushes = Pushes(door, self._tasks)
        self._event_tasks = EventTasks(door, self._tasks)
        self._skills = SkillSelector(door.catalog, door.invoker.absent)
        self._calls = RunningCalls(door, self.renderer, self._callers, self._tasks)
        self._messages = Messages(
            door, self._callers, self._tasks, self._pushes, self._event_tasks, self._skills, self._calls
        )
        self._streams = OpenStreams()
        self.running = self._calls.running

    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Task | Message:
        """SendMessage: return the task when it has ended, waits for its caller, or takes too long."""
        with self._answering(context, params) as request:
            await self._messages.read(params, request)
            if request.event is not None:
                await self._push(params, request, await self._begin_event_task(request, request.event))
                return request.record.task
            if not request.is_new or request.is_background:  # a new task is not claimed for a call that ends here
                await self._claim(request)
            record = await self._calls.carry_out(request)
            await self._push(params, request, record)
            if record.job and not params.configuration.return_immediately:
                record = await first(self._tasks.wait(record, MAX_WAIT), request.disconnected()) or record
            return apply_history_length(record.task, params.configuration)

    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Update, None]:
        """SendStreamingMessage: yield the task as it begins, and then its changes."""
        with self._answering(context, params) as request, ExitStack() as place:
            await self._messages.read(params, request)
            if request.event is not None or request.is_background:  # others end with their call
                caller = await self._callers.principal(request, of_call=True)
                place.enter_context(self._streams.hold(caller, self._callers.address(request)))
            if request.event is not None:
                record = await self._begin_event_task(request, request.event)
                await self._push(params, request, record)
                yield record.task
            elif (call := await self._claim(request)) is None or request.is_background:
                record = await self._calls.carry_out(request)
                await self._push(params, request, record)
                yield apply_history_length(record.task, params.configuration)
            else:
                begun = Task()
                begun.CopyFrom(request.record.task)  # the original may change before the stream has sent it
                yield apply_history_length(begun, params.configuration)
                feed = ProgressFeed()
                open_report(feed.note)
                call.on_part = feed.note_part
                carrying = asyncio.create_task(self._calls.carry_out(request))
                try:
                    async with aclosing(feed.until(carrying)) as reports:
                        async for progress in reports:
                            yield progress_update(begun, progress)
                    record = await carrying
                finally:
                    carrying.cancel()
                    await asyncio.wait({carrying})
                await self._push(params, request, record)
                for change in updates_of(record.task):
                    yield change
            async with aclosing(self._follow(record, request)) as updates:
                async for update in updates:
                    yield update

    async def _follow(
        self, record: TaskRecord, request: A2aRequest, seconds: float = 0.0
    ) -> AsyncGenerator[Update, None]:
        """Yield the changes of a task until it has ended, or the occurrences of the event to which it subscribes."""
        if subscription_of(record) is not None:
            identify = partial(self._callers.principal, request)
            async with aclosing(self._event_tasks.follow(record, MAX_SUBSCRIPTION, identify)) as updates:
                async for update in updates:
                    yield update
            return
        async with aclosing(self._tasks.changes(record, seconds)) as changes:
            async for changed in changes:
                for update in updates_of(changed.task):
                    yield update

    async def _claim(self, request: A2aRequest) -> Call | None:
        """Record that the task of a message is running, and return its call: None if its caller may not know of it.

        A task that has begun must not reveal an action that the caller may not see.
        """
        call = request.call
        is_shown = call is not None and await self._callers.may_see(call.action, request)
        if call is not None and (is_shown or not request.is_new):
            await self._calls.claim(request, call)
        return request.call if is_shown else None

    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Update, None]:
        """SubscribeToTask: yield the task in its present state, and then its changes, until it has ended.

        The task may wait for its caller in the meantime, but not for ever.
        """
        with self._answering(context, params) as request, ExitStack() as place:
            record = await self._find(params.id, request)
            if record.state in TERMINAL:
                raise UnsupportedOperationError("The task has ended: read it with GetTask.")
            caller = await self._callers.principal(request)
            place.enter_context(self._streams.hold(caller, self._callers.address(request)))
            yield record.task
            async with aclosing(self._follow(record, request, MAX_SUBSCRIPTION)) as updates:
                async for update in updates:
                    yield update

    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task | None:
        with self._answering(context, params) as request:
            validate_history_length(params)
            return apply_history_length((await self._find(params.id, request)).task, params)

    async def on_list_tasks(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """ListTasks: return a known caller's tasks, filtered and paged by the SDK's code."""
        with self._answering(context, params) as request:
            validate_history_length(params)
            if not params.status and _asked_state(request) not in (None, "", 0, "0", TaskState.keys()[0]):
                raise InvalidParamsError(f"status must be one of {', '.join(TaskState.keys()[1:])}.")
            if params.HasField("page_size"):
                validate_page_size(params.page_size)
            store = InMemoryTaskStore()
            principal = await self._callers.principal(request)
            for record in await self._tasks.listed(key_of(principal)):
                with suppress(TaskNotFoundError):
                    self._check_visible(record, principal)
                    await store.save(record.task, context)
            page = await store.list(params, context)
            tasks = [apply_history_length(task, params) for task in page.tasks]
            del page.tasks[:]
            page.tasks.extend(tasks)
            return page

    async def on_cancel_task(self, params: CancelTaskRequest, context: ServerCallContext) -> Task | None:
        """CancelTask: return the task once it is cancelled, whichever worker runs it, or the present state of a job."""
        with self._answering(context, params) as request:
            record = await self._find(params.id, request)
            if subscription_of(record) is not None and record.state not in TERMINAL:
                set_state(record.task, CANCELED)
                await self._tasks.put(record)
                return record.task
            await self._tasks.cancel(record)
            self._calls.cancel(record.task.id)
            record = await self._tasks.wait(record, MAX_CANCEL_WAIT)
            if record.state != CANCELED and not record.job:
                raise TaskNotCancelableError("The task can no longer be cancelled.")
            return record.task

    async def on_create_task_push_notification_config(
        self, params: TaskPushNotificationConfig, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """CreateTaskPushNotificationConfig: return the config as it is stored, replacing one with the same id."""
        with self._answering(context, params) as request:
            record = await self._find(params.task_id, request)
            return await self._pushes.create(record, params, self._callers.address(request))

    async def on_get_task_push_notification_config(
        self, params: GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        with self._answering(context, params) as request:
            return await self._pushes.find(await self._find(params.task_id, request), params.id)

    async def on_list_task_push_notification_configs(
        self, params: ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> ListTaskPushNotificationConfigsResponse:
        """ListTaskPushNotificationConfigs: return all of them, since they are few."""
        with self._answering(context, params) as request:
            configs = await self._pushes.listed(await self._find(params.task_id, request))
            return ListTaskPushNotificationConfigsResponse(configs=configs)

    async def on_delete_task_push_notification_config(
        self, params: DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        with self._answering(context, params) as request:
            await self._pushes.delete(await self._find(params.task_id, request), params.id)

    async def on_get_extended_agent_card(self, params: object, context: ServerCallContext) -> NoReturn:
        """Refuse: the agent card has no extended form."""
        raise UnsupportedOperationError("The agent card has no extended form.")

    @contextmanager
    def _answering(self, context: ServerCallContext, params: ProtobufMessage) -> Iterator[A2aRequest]:
        """Return the request, once its params are checked, and convert problems to A2A's errors.

        Unexpected exceptions are logged and not disclosed to the caller.
        """
        request: A2aRequest = context.state[REQUEST]
        request.is_read = True
        try:
            require_fields(params)
            yield request
        except A2AError as error:
            request.error = error
            raise
        except Problem as problem:
            request.refused = problem
            kind = InternalError if problem.status >= 500 else InvalidRequestError
            described = describe(problem, self.renderer, request.request_id)
            request.error = kind(problem.detail, dict[str, object](write_metadata(described)))
            raise request.error from problem
        except Exception as failure:
            logger.exception("the A2A door failed (request_id=%s)", request.request_id)
            request.error = InternalError("The site failed. Its log has the cause under this request's id.")
            raise request.error from failure
        finally:
            request.call = None  # break the reference cycle between request and call

    async def _find(self, task_id: str, request: A2aRequest) -> TaskRecord:
        principal = await self._callers.principal(request)
        record = await self._tasks.find(task_id, key_of(principal))
        self._check_visible(record, principal)
        record = await self._tasks.refresh(record)
        subscription = subscription_of(record)
        if subscription is not None and subscription["caller"] and principal is not None:  # they may see less by now
            caller, scopes = subscription["caller"]
            record.input = {**subscription, "caller": [caller, sorted(principal.scopes.intersection(scopes))]}
        return record

    def _check_visible(self, record: TaskRecord, principal: Principal | None) -> None:
        """Raise TaskNotFoundError for a task of an action that its caller may not see, or not any more.

        A caller known only by a session shows it with each call, but only the unguessable id with requests about the
        task.
        """
        action = self._skills.find(record.skill)
        if action is None or action.is_for(scopes_of(principal)):
            return
        if not (record.is_open and action.is_approved):
            raise TaskNotFoundError("There is no such task, it has expired, or it belongs to another caller.")

    async def _begin_event_task(self, request: A2aRequest, subscription: tuple[Event, JsonObject]) -> TaskRecord:
        """Begin a task that subscribes to an event until it is cancelled. Raises RateLimited, StoreUnavailable."""
        record, (event, filters) = request.record, subscription
        principal = await self._callers.principal(request)
        record.owner = key_of(principal)
        record.skill = f"{EVENT}{event.id}"
        record.input = await self._event_tasks.begin(event, filters, principal)
        set_state(record.task, WORKING, [Part(text=f"Sends each {event.id} when it happens, until you cancel.")])
        await self._tasks.put(record, self._callers.address(request))
        return record

    async def _push(self, params: SendMessageRequest, request: A2aRequest, record: TaskRecord) -> None:
        if params.configuration.HasField("task_push_notification_config") and (record.raw or record.job):
            config = params.configuration.task_push_notification_config
            await self._pushes.create(record, config, self._callers.address(request))


def _asked_state(request: A2aRequest) -> object:
    """Return the state of tasks that a caller wants listed as it was sent: the SDK reads an unknown one as none."""
    sent = request.document or dict(parse_qsl(request.scope["query_string"].decode("latin-1")))
    return sent.get("status") if isinstance(sent, Mapping) else None
