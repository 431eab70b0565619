"""What a message is: it begins or continues a task, and becomes a call of a skill or a subscription to an event."""

import uuid
from functools import partial
from typing import Any, Final

from a2a.types.a2a_pb2 import Message, Part, SendMessageRequest, Task
from a2a.utils.errors import ContentTypeNotSupportedError, InvalidParamsError, UnsupportedOperationError
from a2a.utils.task import validate_history_length

from awp_publish.calls.call import Conversation
from awp_publish.http.calling import Calls
from awp_publish.http.doors import session_ids_of
from awp_publish.model import Action, Event, JsonObject
from awp_publish.plugin import Context
from awp_publish.plugins.a2a.agent_card import INPUT_MODES
from awp_publish.plugins.a2a.callers import Callers
from awp_publish.plugins.a2a.dialect import DIALECT
from awp_publish.plugins.a2a.event_tasks import EventTasks
from awp_publish.plugins.a2a.files import is_file, takes_files, with_files
from awp_publish.plugins.a2a.history import keep, leave_out, replace_parts
from awp_publish.plugins.a2a.pushes import Pushes
from awp_publish.plugins.a2a.record import LEFT_OUT, TaskRecord
from awp_publish.plugins.a2a.records import Tasks
from awp_publish.plugins.a2a.request import DOOR, A2aRequest
from awp_publish.plugins.a2a.running import RunningCalls
from awp_publish.plugins.a2a.selecting import SkillSelector
from awp_publish.plugins.a2a.tasks import INTERRUPTED, make_data_parts
from awp_publish.problems import InvalidInput, Problem, UnknownOperation

MAX_ID: Final = 255
"""Characters of an id that callers choose."""


class Messages:
    """Reads the messages to one address of a site."""

    def __init__(
        self,
        door: Context,
        callers: Callers,
        tasks: Tasks,
        pushes: Pushes,
        event_tasks: EventTasks,
        skills: SkillSelector,
        running: RunningCalls,
    ) -> None:
        self._invoker = door.invoker
        self._calls = Calls(DOOR, door.invoker, door.admission, DIALECT)
        self._callers, self._tasks, self._pushes, self._event_tasks = callers, tasks, pushes, event_tasks
        self._skills, self._running = skills, running
        self._has_jobs = door.ask("jobs") is not None
        self._sessions = session_ids_of(door)
        self._takes_files = any(takes_files(action) for action in door.catalog.actions)
        served = door.ask("events")
        self._events: Any = served.log if served is not None else None
        self._has_events = bool(door.catalog.events)

    async def read(self, params: SendMessageRequest, request: A2aRequest) -> None:
        """Find or begin the task of a message, and make its call. Raises A2AError, StoreUnavailable."""
        message = params.message
        validate_history_length(params.configuration)
        if params.configuration.HasField("task_push_notification_config"):
            self._pushes.check(params.configuration.task_push_notification_config)
        self._check(message)
        request.is_new = not message.task_id
        request.record = record = await self._task_of(message, request)
        added = keep(message, record.task)
        request.sent = Message()
        request.sent.CopyFrom(added)
        try:
            if self._has_events and request.is_new and (event := await self._event_of(request)) is not None:
                request.event = event
            else:
                await self._make_call(message, added, request)
        except Problem as problem:
            self._invoker.note_refusal(DOOR, request.request_id, problem)
            request.problem = problem.without_frames()
            if request.call is None and (self._invoker.input_redactors or isinstance(problem, UnknownOperation)):
                leave_out(request.sent, record.task, has_secrets=bool(self._invoker.input_redactors))

    def _check(self, message: Message) -> None:
        """Raise InvalidParamsError for long ids, ContentTypeNotSupportedError for what no skill takes."""
        if max(len(message.message_id), len(message.context_id)) > MAX_ID:
            raise InvalidParamsError(f"messageId and contextId have at most {MAX_ID} characters.")
        for part in message.parts:  # specification, section 3.1.1
            kind = part.media_type.partition(";")[0].strip().lower()
            is_text = kind in ("", *INPUT_MODES) or kind.startswith("text/") or kind.endswith("+json")
            is_read = self._takes_files if is_file(part) else is_text and part.WhichOneof("content") != "url"
            if not is_read:
                raise ContentTypeNotSupportedError(
                    f"Skills read {' and '.join(INPUT_MODES)}: send what they take as a data part or as text, a file "
                    "as base64 in the member of the input that takes it, or as raw bytes in a part of its own."
                )

    async def _task_of(self, message: Message, request: A2aRequest) -> TaskRecord:
        """Return a new task, or the one that the message continues. Raises A2AError, StoreUnavailable."""
        if request.is_new:
            # A context id of ours is recognisable and unguessable, so that it can also be the id of a session.
            context_id = self._sessions.new_id() if self._sessions is not None else str(uuid.uuid4())
            return TaskRecord(Task(id=str(uuid.uuid4()), context_id=message.context_id or context_id))
        caller = await self._callers.key(request, of_call=True)
        record = await self._tasks.refresh(await self._tasks.find(message.task_id, caller))
        if message.context_id and message.context_id != record.task.context_id:
            raise InvalidParamsError("The task belongs to another context.")
        if record.state not in INTERRUPTED:
            raise UnsupportedOperationError("The task does not expect a message: it has ended or is running.")
        record.task.history.append(record.task.status.message)
        record.task.status.ClearField("message")
        return record

    async def _make_call(self, message: Message, added: Message, request: A2aRequest) -> None:
        """Make the call of a message. Raises the Problem for which it is none.

        The message in the history, `added`, loses what is secret: sessions in texts, and inputs of actions that say so.
        """
        record = request.record
        selected = self._skills.select(request.document, record)
        action, arguments, members, objection = selected.action, selected.input, selected.members, selected.objection
        if files := [part for part in message.parts if is_file(part)]:
            try:
                arguments = with_files(action, arguments, files)
            except Problem as problem:
                objection = objection or problem
        if members.get("session") is not None:  # it is a secret in a text with the call as well
            for part in added.parts:
                if part.text.lstrip().startswith("{"):
                    part.text = LEFT_OUT
        if (redact := self._invoker.input_redactors.get(action.id)) is not None:
            redacted = make_data_parts({"skill": action.id, "input": redact(arguments)})
            replace_parts(added, redacted or [Part(text=LEFT_OUT)])
        unknown = partial(self._skills.unknown, str(members.get("skill") or action.id))
        call = self._calls.make(
            action, arguments, request, members, size=request.size, unknown=unknown, objection=objection
        )
        call.disconnected = partial(self._running.abandoned, request)
        is_visible = await self._callers.may_see(action, request)
        # A caller who knows a task need not know the context whose session it had.
        context_id = message.context_id or (record.task.context_id if request.is_new else "")
        if context_id and action.id in self._invoker.guarded:
            call.conversation = Conversation(context_id, is_shown=bool(message.context_id))
        request.before = record.skill, record.input
        record.skill, record.input, request.call = action.id, arguments, call
        request.is_background = self._has_jobs and is_visible and action.is_background

    async def _event_of(self, request: A2aRequest) -> tuple[Event, JsonObject] | None:
        """Return the event to which a message subscribes, with its filters, or None. Raises InvalidInput."""
        skill, filters = self._skills.named_skill(request.document)
        action: Action | None = self._skills.find(skill)
        visible = action or self._invoker.absent  # a hidden action takes the same steps as none
        if not skill or (visible is not None and visible.is_public):
            return None
        event = self._event_tasks.event_of(skill, await self._callers.principal(request, of_call=True))
        if event is None or action is not None:
            return None
        if wrong := self._events.check_arguments(event, filters):
            raise InvalidInput(f"The input is not what {event.id} takes.", errors=wrong)
        return event, filters
