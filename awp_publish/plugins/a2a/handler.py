"""The SDK's request handler, on our path of calls: each message becomes a call, each result the state of a task.

The SDK's `DefaultRequestHandler`, with our executor and store, was measured at 2.6 to 3.1 times the time of a call, and
a CancelTask that reached another worker answered CANCELED while the action took effect. Here a task is in the site's
store between requests, background actions are jobs, and a worker reads from a task's record that it was cancelled, so
that any worker can answer for any task.
"""

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import ExitStack, aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final, NoReturn, TypeVar

import orjson
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
)
from a2a.utils.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    InternalError,
    InvalidParamsError,
    InvalidRequestError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from a2a.utils.task import apply_history_length, validate_history_length, validate_page_size
from google.protobuf.message import Message as ProtobufMessage

from awp_publish.calls.call import Call, Principal, Result
from awp_publish.calls.progress import ProgressFeed, open_report
from awp_publish.http.body import wait_for_disconnect
from awp_publish.http.calling import Calls
from awp_publish.http.client_address import client_address
from awp_publish.http.credentials import read_credentials
from awp_publish.http.doors import session_ids_of
from awp_publish.http.exchange import Fields, RawHeaders, Receive, Scope
from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.http.request import read_request_id
from awp_publish.http.streams import OpenStreams
from awp_publish.model import Action, Event, JsonObject
from awp_publish.plugin import Context
from awp_publish.plugins.a2a.agent_card import INPUT_MODES
from awp_publish.plugins.a2a.fields import check_required_fields
from awp_publish.plugins.a2a.files import is_file, takes_files, with_files
from awp_publish.plugins.a2a.pushes import EVENT, Pushes, subscription_of
from awp_publish.plugins.a2a.records import LEFT_OUT, TaskRecord, Tasks, progress_update, updates_of
from awp_publish.plugins.a2a.selecting import PLACES, SkillSelector
from awp_publish.plugins.a2a.tasks import (
    CANCELED,
    INPUT_REQUIRED,
    INTERRUPTED,
    MAX_HISTORY,
    RECOVERIES,
    REJECTED,
    TERMINAL,
    WORKING,
    complete,
    describe,
    fail,
    make_artifact,
    make_data_parts,
    say,
    set_state,
    submit,
)
from awp_publish.problems import InvalidInput, JobCancelled, Problem, RateLimited, StoreUnavailable, UnknownOperation

DOOR: Final = "a2a"
REQUEST: Final = "awp_publish.a2a"
"""The key of the scope, and of the SDK's context, for the request."""

MAX_ID: Final = 255
"""Characters of an id that callers choose."""

MAX_WAIT: Final = 30.0
"""Seconds that a response waits for a job to end. Callers and proxies would not wait longer."""

MAX_SUBSCRIPTION: Final = 900.0
"""Seconds for which SubscribeToTask stays open for a task that waits for its caller. The SDK keeps the stream alive."""

MAX_CANCEL_WAIT: Final = 5.0
"""Seconds that CancelTask waits for a cancelled task to end before it returns the task's state."""

logger: Final = logging.getLogger("awp_publish.calls")

T = TypeVar("T")


class A2aRequest:
    """One HTTP request, the task to which its message belongs, and the call that the message becomes.

    `document` are its parameters, strictly parsed; `envelope` is the whole JSON-RPC call, None for other requests.
    `is_read` is set once the SDK has understood it, `refused` if a refusal needs its HTTP status, `error` if our
    handler refuses. `headers` are those of every response, `cookies` those that the action has set: agents do not see
    them, but a caller's HTTP client stores them.

    A message has a `call`, or the `problem` because of which it did not become one; `before` are the skill and the
    input that its task had before it. `event` is the event to which it subscribes, instead of a call. `is_new` means
    that its task began with it: then nothing is stored if the call is refused. `said` is the message without a session.
    """

    # Class defaults, because most requests need few of them.
    body: bytes = b""
    size = 0
    document: object = None
    envelope: Mapping[str, object] | None = None
    extensions: set[str]
    is_read = False
    error: A2AError | None = None
    refused: Problem | None = None
    cookies: RawHeaders = ()
    record: TaskRecord
    before: tuple[str, JsonObject | None] = ("", None)
    is_new = True
    call: Call | None = None
    problem: Problem | None = None
    event: tuple[Event, JsonObject] | None = None
    said: Message | None = None
    is_background = False
    _is_disconnected = False

    def __init__(self, scope: Scope, receive: Receive, fields: Fields, headers: RawHeaders) -> None:
        self.scope = scope
        self.fields = fields
        self.headers = headers
        self.request_id = read_request_id(fields)
        self.cancelled = asyncio.Event()
        self._receive = receive
        self._leaving = asyncio.Lock()

    async def disconnected(self) -> None:
        """Return when the client has disconnected. Several tasks may wait; only one of them reads."""
        async with self._leaving:
            if not self._is_disconnected:
                await wait_for_disconnect(self._receive)
                self._is_disconnected = True


class A2aHandler(RequestHandler):
    """Answers the requests that the SDK has read. It owns the asyncio tasks of the calls of this process."""

    def __init__(self, door: Context) -> None:
        self.renderer = ProblemRenderer(door.catalog, RECOVERIES)
        self._invoker = door.invoker
        self._calls = Calls(DOOR, door.invoker, door.admission, PLACES)
        self._trusted = door.admission.trusted_proxies
        self._has_jobs = door.ask("jobs") is not None
        self._sessions = session_ids_of(door)
        self._identify = door.guards.identify()
        self._identify_uncounted = replace(self._identify, store=None)
        self._skills = SkillSelector(door.catalog, door.invoker.absent)
        self._takes_files = any(takes_files(action) for action in door.catalog.actions)
        self._tasks = Tasks(door, self.renderer)
        self._pushes = Pushes(door, self._tasks)
        served = door.ask("events")
        self._events: Any = served.log if served is not None else None
        self._has_events = bool(door.catalog.events)
        self._running: dict[asyncio.Task[None], A2aRequest] = {}
        self._streams = OpenStreams()

    def _address_of(self, request: A2aRequest) -> str:
        return client_address(request.scope, request.fields, self._trusted)

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

    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Task | Message:
        """SendMessage: return the task when it has ended, waits for its caller, or takes too long."""
        request: A2aRequest = context.state[REQUEST]
        with self._as_a2a_errors(request, params):
            await self._begin(params, request)
            if request.event is not None:
                await self._push(params, request, await self._begin_event_task(request, request.event))
                return request.record.task
            call = request.call
            is_claimed = not request.is_new or request.is_background
            if call is not None and is_claimed and (not request.is_new or await self._may_see(call.action, request)):
                await self._claim(request, call)
            record = await self._carry_out(request)
            await self._push(params, request, record)
            if record.job and not params.configuration.return_immediately:
                record = await _first(self._tasks.wait(record, MAX_WAIT), request.disconnected()) or record
            return apply_history_length(record.task, params.configuration)

    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Update, None]:
        """SendStreamingMessage: yield the task as it begins, and then its changes."""
        request: A2aRequest = context.state[REQUEST]
        with self._as_a2a_errors(request, params), ExitStack() as place:
            await self._begin(params, request)
            if request.event is not None or request.is_background:  # others end with their call
                caller = await self._principal_of(request, of_call=True)
                place.enter_context(self._streams.hold(caller, self._address_of(request)))
            if request.event is not None:
                record = await self._begin_event_task(request, request.event)
                await self._push(params, request, record)
                yield record.task
                identify = partial(self._principal_of, request)
                async with aclosing(self._pushes.follow(record, MAX_SUBSCRIPTION, identify)) as updates:
                    async for event in updates:
                        yield event
                return
            # A task that has begun must not reveal an action that the caller may not see.
            is_told = request.call is not None and await self._may_see(request.call.action, request)
            if request.call is not None and (is_told or not request.is_new):
                await self._claim(request, request.call)
            if request.call is None or request.is_background or not is_told:
                record = await self._carry_out(request)
                await self._push(params, request, record)
                yield apply_history_length(record.task, params.configuration)
            else:
                begun = Task()
                begun.CopyFrom(request.record.task)  # the original may change before the stream has sent it
                yield apply_history_length(begun, params.configuration)
                feed = ProgressFeed()
                open_report(feed.note)
                request.call.on_part = feed.note_part
                carrying = asyncio.create_task(self._carry_out(request))
                try:
                    async with aclosing(feed.until(carrying)) as reports:
                        async for progress in reports:
                            yield progress_update(begun, progress)
                    record = await carrying
                finally:
                    carrying.cancel()
                    await asyncio.wait({carrying})
                await self._push(params, request, record)
                for event in updates_of(record.task):
                    yield event
            async with aclosing(self._tasks.changes(record)) as changes:
                async for changed in changes:
                    for event in updates_of(changed.task):
                        yield event

    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Update, None]:
        """SubscribeToTask: yield the task in its present state, and then its changes, until it has ended.

        The task may wait for its caller in the meantime, but not for ever.
        """
        request: A2aRequest = context.state[REQUEST]
        with self._as_a2a_errors(request, params), ExitStack() as place:
            record = await self._find(params.id, request)
            if record.state in TERMINAL:
                raise UnsupportedOperationError("The task has ended: read it with GetTask.")
            place.enter_context(self._streams.hold(await self._principal_of(request), self._address_of(request)))
            yield record.task
            if subscription_of(record) is not None:
                identify = partial(self._principal_of, request)
                async with aclosing(self._pushes.follow(record, MAX_SUBSCRIPTION, identify)) as updates:
                    async for event in updates:
                        yield event
                return
            async with aclosing(self._tasks.changes(record, MAX_SUBSCRIPTION)) as changes:
                async for changed in changes:
                    for event in updates_of(changed.task):
                        yield event

    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task | None:
        """GetTask."""
        request: A2aRequest = context.state[REQUEST]
        with self._as_a2a_errors(request, params):
            validate_history_length(params)
            return apply_history_length((await self._find(params.id, request)).task, params)

    async def on_list_tasks(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """ListTasks: return a known caller's tasks, filtered and paged by the SDK's code."""
        request: A2aRequest = context.state[REQUEST]
        with self._as_a2a_errors(request, params):
            validate_history_length(params)
            if params.HasField("page_size"):
                validate_page_size(params.page_size)
            store = InMemoryTaskStore()
            principal = await self._principal_of(request)
            for record in await self._tasks.listed(principal.key if principal is not None else ""):
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
        request: A2aRequest = context.state[REQUEST]
        with self._as_a2a_errors(request, params):
            record = await self._find(params.id, request)
            if subscription_of(record) is not None and record.state not in TERMINAL:
                set_state(record.task, CANCELED)
                await self._tasks.put(record)
                return record.task
            await self._tasks.cancel(record)
            for other in self._running.values():
                if other.record.task.id == record.task.id:
                    other.cancelled.set()  # sooner than it would find the mark in its record
            record = await self._tasks.wait(record, MAX_CANCEL_WAIT)
            if record.state != CANCELED and not record.job:
                raise TaskNotCancelableError("The task can no longer be cancelled.")
            return record.task

    async def on_create_task_push_notification_config(
        self, params: TaskPushNotificationConfig, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """CreateTaskPushNotificationConfig: return the config as it is stored, replacing one with the same id."""
        request: A2aRequest = context.state[REQUEST]
        with self._as_a2a_errors(request, params):
            record = await self._find(params.task_id, request)
            return await self._pushes.create(record, params, self._address_of(request))

    async def on_get_task_push_notification_config(
        self, params: GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """GetTaskPushNotificationConfig."""
        request: A2aRequest = context.state[REQUEST]
        with self._as_a2a_errors(request, params):
            return await self._pushes.find(await self._find(params.task_id, request), params.id)

    async def on_list_task_push_notification_configs(
        self, params: ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> ListTaskPushNotificationConfigsResponse:
        """ListTaskPushNotificationConfigs: return all of them, since they are few."""
        request: A2aRequest = context.state[REQUEST]
        with self._as_a2a_errors(request, params):
            configs = await self._pushes.listed(await self._find(params.task_id, request))
            return ListTaskPushNotificationConfigsResponse(configs=configs)

    async def on_delete_task_push_notification_config(
        self, params: DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        """DeleteTaskPushNotificationConfig."""
        request: A2aRequest = context.state[REQUEST]
        with self._as_a2a_errors(request, params):
            await self._pushes.delete(await self._find(params.task_id, request), params.id)

    async def on_get_extended_agent_card(self, params: object, context: ServerCallContext) -> NoReturn:
        """Refuse: the agent card has no extended form."""
        raise UnsupportedOperationError("The agent card has no extended form.")

    @contextmanager
    def _as_a2a_errors(self, request: A2aRequest, params: ProtobufMessage) -> Iterator[None]:
        """Convert problems to A2A's errors. Unexpected exceptions are logged and not disclosed to the caller."""
        request.is_read = True
        try:
            check_required_fields(params)
            yield
        except A2AError as error:
            request.error = error
            raise
        except Problem as problem:
            request.refused = problem
            kind = InternalError if problem.status >= 500 else InvalidRequestError
            request.error = kind(problem.detail, describe(problem, self.renderer, request.request_id))
            raise request.error from problem
        except Exception as failure:
            logger.exception("the A2A door failed (request_id=%s)", request.request_id)
            request.error = InternalError("The site failed. Its log has the cause under this request's id.")
            raise request.error from failure
        finally:
            request.call = None  # break the reference cycle between request and call

    async def _find(self, task_id: str, request: A2aRequest) -> TaskRecord:
        principal = await self._principal_of(request)
        record = await self._tasks.find(task_id, principal.key if principal is not None else "")
        self._check_visible(record, principal)
        record = await self._tasks.refresh(record)
        wanted = subscription_of(record)
        if wanted is not None and wanted["caller"] and principal is not None:  # they may see less by now
            caller, scopes = wanted["caller"]
            record.input = {**wanted, "caller": [caller, sorted(principal.scopes.intersection(scopes))]}
        return record

    def _check_visible(self, record: TaskRecord, principal: Principal | None) -> None:
        """Raise TaskNotFoundError for a task of an action that its caller may not see, or not any more.

        A caller known only by a session shows it with each call, but only the unguessable id with requests about the
        task.
        """
        action = self._skills.find(record.skill)
        if action is None or action.is_for(principal.scopes if principal is not None else None):
            return
        if not (record.is_open and action.is_approved):
            raise TaskNotFoundError("There is no such task, it has expired, or it belongs to another caller.")

    async def _may_see(self, action: Action, request: A2aRequest) -> bool:
        if action.is_public:
            return True
        principal = await self._principal_of(request, of_call=True)
        return action.is_for(principal.scopes if principal is not None else None)

    async def _caller_of(self, request: A2aRequest, *, of_call: bool = False) -> str:
        """Return the id of the caller, "" if unknown. Raises a Problem for invalid credentials."""
        principal = await self._principal_of(request, of_call=of_call)
        return principal.key if principal is not None else ""

    async def _principal_of(self, request: A2aRequest, *, of_call: bool = False) -> Principal | None:
        """Return the caller, None if unknown. Raises a Problem for invalid credentials.

        With `of_call` wrong credentials are ignored: the call itself reports and counts them.
        """
        identify = self._identify_uncounted if of_call else self._identify
        try:
            return await identify(read_credentials(request.scope, request.fields, self._trusted))
        except Problem:
            if of_call:
                return None
            raise

    async def _begin(self, params: SendMessageRequest, request: A2aRequest) -> None:
        """Find or begin the task of a message, and make its call. Raises A2AError, StoreUnavailable."""
        message = params.message
        validate_history_length(params.configuration)
        if params.configuration.HasField("task_push_notification_config"):
            self._pushes.check(params.configuration.task_push_notification_config)
        if max(len(message.message_id), len(message.context_id)) > MAX_ID:
            raise InvalidParamsError(f"messageId and contextId have at most {MAX_ID} characters.")
        for part in message.parts:  # specification, section 3.1.1
            kind = part.media_type.partition(";")[0].strip().lower()
            is_read = kind in ("", *INPUT_MODES) or kind.startswith("text/") or kind.endswith("+json")
            is_read |= is_file(part) and self._takes_files
            if part.WhichOneof("content") == "url" or (is_file(part) and not self._takes_files) or not is_read:
                raise ContentTypeNotSupportedError(
                    f"Skills read {' and '.join(INPUT_MODES)}: send what they take as a data part or as text, a file "
                    "as base64 in the member of the input that takes it, or as raw bytes in a part of its own."
                )
        request.is_new = not message.task_id
        if request.is_new:
            # A context id of ours is recognisable and unguessable, so that it can also be the id of a session.
            made = self._sessions.new_id() if self._sessions is not None else str(uuid.uuid4())
            record = TaskRecord(Task(id=str(uuid.uuid4()), context_id=message.context_id or made))
            task = record.task
        else:
            caller = await self._caller_of(request, of_call=True)
            record = await self._tasks.refresh(await self._tasks.find(message.task_id, caller))
            task = record.task
            if message.context_id and message.context_id != task.context_id:
                raise InvalidParamsError("The task belongs to another context.")
            if record.state not in INTERRUPTED:
                raise UnsupportedOperationError("The task does not expect a message: it has ended or is running.")
            task.history.append(task.status.message)
            task.status.ClearField("message")
        kept_message = task.history.add()
        kept_message.CopyFrom(message)
        kept_message.task_id, kept_message.context_id = task.id, task.context_id
        for struct in (
            kept_message.metadata,
            *(part.data.struct_value for part in kept_message.parts if part.HasField("data")),
        ):
            if "session" in struct.fields:
                del struct.fields["session"]  # a secret that no task may contain
        for part in kept_message.parts:
            if is_file(part):  # no task contains what was uploaded; the part keeps its name and its media type
                part.text = LEFT_OUT
        request.said = Message()
        request.said.CopyFrom(kept_message)
        del task.history[:-MAX_HISTORY]
        request.record = record
        try:
            if self._has_events and request.is_new and (event := await self._event_of(request)) is not None:
                request.event = event
                return
            action, given, members, objection = self._skills.select(request.document, record)
            if files := [part for part in message.parts if is_file(part)]:
                try:
                    given = with_files(action, given, files)
                except Problem as problem:
                    objection = objection or problem
            if members.get("session") is not None:  # it is a secret in a text with the call as well
                for part in kept_message.parts:
                    if part.text.lstrip().startswith("{"):
                        part.text = LEFT_OUT
            redact = self._invoker.input_redactors.get(action.id)
            if redact is not None:
                kept = make_data_parts({"skill": action.id, "input": redact(given)})
                _replace_parts(kept_message, kept or [Part(text=LEFT_OUT)])
            gone = partial(self._abandoned, request)
            unknown = partial(self._skills.unknown, str(members.get("skill") or action.id))
            call = self._calls.make(
                action, given, request, members, size=request.size, unknown=unknown, objection=objection
            )
            call.disconnected = gone
            is_visible = await self._may_see(action, request)
            if action.id in self._invoker.guarded:
                # A caller who knows a task need not know the context whose session it had.
                call.conversation = message.context_id or (task.context_id if request.is_new else None)
                call.has_shown_conversation = bool(message.context_id)
        except Problem as problem:
            self._invoker.note_refusal(DOOR, request.request_id, problem)
            request.problem = problem.without_frames()
            if request.call is None and (self._invoker.input_redactors or isinstance(problem, UnknownOperation)):
                self._leave_out(request)
            return
        request.before = record.skill, record.input
        record.skill, record.input, request.call = action.id, given, call
        request.is_background = self._has_jobs and is_visible and action.is_background

    def _leave_out(self, request: A2aRequest) -> None:
        """Leave out of a message what may be a secret: without a known skill nothing can be redacted.

        A skill that the caller may not know of is one of those, so that its messages look like all others.
        """
        said = request.said
        kept = [one for one in request.record.task.history if said is not None and one.message_id == said.message_id]
        if said is None or not kept:
            return
        calls = [part for part in said.parts if part.text.lstrip().startswith(("{", "["))]
        if self._invoker.input_redactors:
            words = [part for part in said.parts if part.text and part not in calls]
            _replace_parts(kept[-1], words or [Part(text=LEFT_OUT)])
            return
        parts = [Part(text=LEFT_OUT) if part in calls else part for part in said.parts]
        del kept[-1].parts[:]
        kept[-1].parts.extend(parts)

    async def _event_of(self, request: A2aRequest) -> tuple[Event, JsonObject] | None:
        """Return the event to which a message subscribes, with its filters, or None. Raises InvalidInput."""
        skill, given = self._skills.named(request.document)
        action = self._skills.find(skill)
        named = action or self._invoker.absent  # a hidden action takes the same steps as none
        if not skill or (named is not None and named.is_public):
            return None
        event = self._pushes.event_of(skill, await self._principal_of(request, of_call=True))
        if event is None or action is not None:
            return None
        wrong = self._events.check_arguments(event, given)
        if wrong:
            raise InvalidInput(f"The input is not what {event.id} takes.", errors=wrong)
        return event, given

    async def _begin_event_task(self, request: A2aRequest, wanted: tuple[Event, JsonObject]) -> TaskRecord:
        """Begin a task that subscribes to an event until it is cancelled. Raises RateLimited, StoreUnavailable."""
        record, (event, given) = request.record, wanted
        principal = await self._principal_of(request)
        record.owner = principal.key if principal is not None else ""
        record.skill = f"{EVENT}{event.id}"
        record.input = await self._pushes.begin(event, given, principal)
        set_state(record.task, WORKING, [Part(text=f"Sends each {event.id} when it happens, until you cancel.")])
        await self._tasks.put(record, self._address_of(request))
        return record

    async def _push(self, params: SendMessageRequest, request: A2aRequest, record: TaskRecord) -> None:
        if params.configuration.HasField("task_push_notification_config") and (record.raw or record.job):
            config = params.configuration.task_push_notification_config
            await self._pushes.create(record, config, self._address_of(request))

    async def _claim(self, request: A2aRequest, call: Call) -> None:
        """Record that a task is running, for this message alone, so that others can see and cancel it.

        If an address has too many tasks, that becomes the request's problem. A known caller's new background task needs
        a record only once it has a job. Raises UnsupportedOperationError if the task is running already.
        """
        record = request.record
        owner = await self._caller_of(request, of_call=True) or record.owner
        if owner and request.is_background and request.is_new:
            return
        set_state(record.task, WORKING)
        record.owner, record.input = owner, None
        try:
            if not await self._tasks.put(record, self._address_of(request)):
                raise UnsupportedOperationError("The task is processing another message.")
        except RateLimited as problem:
            self._invoker.note_refusal(DOOR, request.request_id, problem)
            request.call, request.problem = None, problem
        record.input = call.input

    async def _carry_out(self, request: A2aRequest) -> TaskRecord:
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

    async def _abandoned(self, request: A2aRequest) -> None:
        """Return when the client has disconnected, abandoned its stream, or cancelled the task at any worker."""
        ends: list[Coroutine[Any, Any, object]] = [request.disconnected(), request.cancelled.wait()]
        if request.record.raw:
            ends.append(self._tasks.cancelled(request.record))
        await _first(*ends)

    async def _settle(self, request: A2aRequest, call: Call | None, result: Result) -> TaskRecord:
        """Store the result of a task, unless it began and ended with a refusal: then nothing has happened."""
        record, task = request.record, request.record.task
        if isinstance(result, UnknownOperation):  # for its caller it was not a call
            if call is not None:
                record.skill, record.input = request.before
                self._leave_out(request)
            call = None
        added, record.job = call.headers if call is not None else (), ""
        if isinstance(result, Problem):
            fail(task, result, self.renderer, request.request_id, added)
        else:
            accepted = orjson.loads(result.body) if request.is_background else None
            if isinstance(accepted, dict) and "job_id" in accepted:
                record.job = str(accepted["job_id"])
                submit(task, added)
            else:
                complete(task, result.body, (*result.headers, *added))
                once = self._invoker.answer_redactors.get(record.skill)
                if once is not None:
                    kept = orjson.dumps(once(orjson.loads(result.body)))
                    record.kept = make_artifact(task, kept, result.headers)
                request.cookies = tuple(pair for pair in result.headers if pair[0] == b"set-cookie")
        record.owner = (call.caller_key if call is not None else "") or record.owner
        record.is_open = bool(record.owner) and not await self._caller_of(request, of_call=True)
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
            elif not await self._tasks.put(record, self._address_of(request)):
                with suppress(TaskNotFoundError):
                    return await self._tasks.find(task.id, record.owner)  # another message was quicker
        except RateLimited as problem:
            if state == INPUT_REQUIRED:  # nobody could continue it
                fail(task, problem, self.renderer, request.request_id)
        except StoreUnavailable as problem:  # must not cost the caller the answer
            logger.warning("task %s is not kept: %s", task.id, problem)
        return record


def _replace_parts(message: Message, parts: list[Part]) -> None:
    message.ClearField("metadata")
    del message.parts[:]
    message.parts.extend(parts)


async def _first(*works: Coroutine[Any, Any, T | None]) -> T | None:
    """Return the result of the first coroutine that ends, and cancel the others."""
    futures = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
        return next(future for future in futures if future.done()).result()
    finally:
        for future in futures:
            future.cancel()
        await asyncio.gather(*futures, return_exceptions=True)
