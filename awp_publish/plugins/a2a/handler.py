"""The SDK's request handler, on our path of calls: each message becomes a call, each result the state of a task.

The SDK's `DefaultRequestHandler`, with our executor and store, was measured at 2.6 to 3.1 times the time of a call, and
a CancelTask that reached another worker answered CANCELED while the action took effect. Here a task is in the site's
store between requests, background actions are jobs, and a worker reads from a task's record that it was cancelled, so
that any worker can answer for any task.
"""

import asyncio
import base64
import logging
import secrets
import time
import uuid
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import ExitStack, aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from functools import cache, partial
from hashlib import sha256
from typing import Any, Final, NoReturn, TypeVar

import orjson
from a2a.server.context import ServerCallContext
from a2a.server.events import Event as Update
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.server.tasks import InMemoryTaskStore
from a2a.types.a2a_pb2 import (
    Artifact,
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
    TaskArtifactUpdateEvent,
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
from a2a.utils.proto_utils import to_stream_response, validate_proto_required_fields
from a2a.utils.task import apply_history_length, validate_history_length, validate_page_size
from google.api.field_behavior_pb2 import FieldBehavior, field_behavior
from google.protobuf.descriptor import Descriptor
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message as ProtobufMessage

from awp_publish.calls.call import Call, Principal, Result
from awp_publish.http.calling import Calls
from awp_publish.http.credentials import client_address, read_credentials
from awp_publish.http.doors import session_ids_of
from awp_publish.http.endpoint import ProblemRenderer, read_request_id
from awp_publish.http.exchange import (
    Fields,
    Message as AsgiMessage,
    RawHeaders,
    Receive,
    Scope,
    parse_json,
    wait_for_disconnect,
)
from awp_publish.http.streams import OpenStreams
from awp_publish.model import Action, Catalog, Event, JsonObject
from awp_publish.outgoing import Failure, Posted
from awp_publish.plugin import Context
from awp_publish.plugins.a2a.agent_card import INPUT_MODES
from awp_publish.plugins.a2a.files import is_file, takes_files, with_files
from awp_publish.plugins.a2a.tasks import (
    CANCELED,
    EXACT,
    INPUT_REQUIRED,
    INTERRUPTED,
    JSON,
    LEFT_OUT,
    MAX_HISTORY,
    RECOVERIES,
    REJECTED,
    TERMINAL,
    WHOLE,
    WORKING,
    TaskRecord,
    Tasks,
    complete,
    describe,
    fail,
    make_artifact,
    make_data_parts,
    progress_of,
    say,
    set_state,
    submit,
    updates_of,
)
from awp_publish.problems import (
    InvalidEnvelope,
    InvalidInput,
    JobCancelled,
    NotJson,
    Problem,
    RateLimited,
    StoreUnavailable,
    UnknownOperation,
    Violation,
    did_you_mean,
)
from awp_publish.stores.store import Count

DOOR: Final = "a2a"
REQUEST: Final = "awp_publish.a2a"
"""The key of the scope, and of the SDK's context, for the request."""

MAX_ID: Final = 255
"""Characters of an id that callers choose."""

MAX_WAIT: Final = 30.0
"""Seconds that a response waits for a job to end. Callers and proxies would not wait longer."""

MAX_SUBSCRIPTION: Final = 900.0
"""Seconds for which SubscribeToTask stays open for a task that waits for its caller. The SDK keeps the stream alive."""

VERIFY_SECONDS: Final = 60.0
"""Seconds after which the caller of a stream of events is identified again."""

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
    body: bytes | None = None
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

    async def receive(self) -> AsgiMessage:
        """Give the SDK the body, and later the client's disconnect."""
        if self.body is not None:
            body, self.body = self.body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self.disconnected()
        return {"type": "http.disconnect"}

    async def disconnected(self) -> None:
        """Return when the client has disconnected. Several tasks may wait; only one of them reads."""
        async with self._leaving:
            if not self._is_disconnected:
                await wait_for_disconnect(self._receive)
                self._is_disconnected = True


# --- Fields that A2A requires (`google.api.field_behavior` in a2a.proto) ---
# The SDK checks every field of every message, so the data of a part, in which nothing is required, costs it more than
# the rest of a request. Here we only find out whether anything is missing; then the SDK reports what.

_REQUIRED: Final = FieldBehavior.Value("REQUIRED")
_REPEATED: Final = 3
"""`FieldDescriptor.LABEL_REPEATED`, the equivalent of `is_repeated` before protobuf 6.31."""


def check_required_fields(request: ProtobufMessage) -> None:
    """Refuse a request that lacks required members. Raises InvalidParamsError, with every missing member."""
    waiting = [request]
    for message in waiting:  # nested messages are appended
        for name, is_required, has_messages, is_many, has_presence, default in _fields_of(message.DESCRIPTOR):
            is_missing = not message.HasField(name) if has_presence else getattr(message, name) == default
            if is_required and is_missing:
                validate_proto_required_fields(request)
            elif has_messages and not is_missing:
                value = getattr(message, name)
                waiting.extend(value if is_many else (value,))


@cache
def _fields_of(kind: Descriptor) -> tuple[tuple[str, bool, bool, bool, bool, object], ...]:
    """Return the fields to check: required ones, and messages of A2A's own, which may have required fields."""
    found = []
    for field in kind.fields:
        is_required = _REQUIRED in field.GetOptions().Extensions[field_behavior]
        inner = field.message_type
        has_messages = (
            inner is not None and inner.file.package == kind.file.package and not inner.GetOptions().map_entry
        )
        if is_required or has_messages:
            is_many = bool(getattr(field, "is_repeated", None) or getattr(field, "label", None) == _REPEATED)
            has_presence = field.has_presence and not is_many
            default: object = [] if is_many else None if inner is not None else field.default_value
            found.append((field.name, is_required, has_messages, is_many, has_presence, default))
    return tuple(found)


# --- Selecting a skill ---
# A2A 1.0 has no way to select a skill, so a declared extension defines one (docs/a2a.md): a data part `{"skill",
# "input"}`, or the skill's id in the metadata and its input as the data part. A text with that JSON counts as the part.
# Messages are read from the JSON of the request and not from the SDK's messages, in which every number is a double.

MAX_CHOICES: Final = 50
"""Skills that a refusal lists to a caller who names none; the card lists all of them."""

_PLACES: Final[Mapping[str, str]] = {
    "skill": "it is a member of the data part, beside input",
    "input": "put its members directly into input",
    "idempotency_key": "send it as idempotency_key in the data part, beside input",
    "confirmation": "send it as confirmation in the data part, beside input",
    "receipts": "send them as receipts in the data part, beside input",
}
"""Where members belong that callers put into the input of a data part by mistake."""

_RECOVERY: Final = (
    'Send a data part {"skill": "<id>", "input": {...}} with the id of a skill of the agent card, and the input that '
    "the card's extension describes."
)


class SkillSelector:
    """The skills of one catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self._actions = {action.id: action for action in catalog.actions}
        self._text_inputs: dict[str, str] = {}  # the only required input of an action, if a text can fill it
        for action in catalog.actions:
            properties, required = action.inputs.get("properties"), action.inputs.get("required")
            if isinstance(properties, Mapping) and isinstance(required, (list, tuple)) and len(required) == 1:
                schema = properties.get(required[0])
                is_string = isinstance(schema, Mapping) and schema.get("type") == "string"
                if is_string and not {"enum", "format"} & set(schema or ()):
                    self._text_inputs[action.id] = str(required[0])
        readable = [self._actions[one] for one in self._text_inputs if self._actions[one].is_public]
        self._only = readable[0] if len(readable) == 1 else None

    def find(self, skill: str) -> Action | None:
        """Return the action of a skill, or None."""
        return self._actions.get(skill)

    def named(self, params: object) -> tuple[str, JsonObject]:
        """Return the skill that a message names in a data part, and its input; "" if there is none."""
        message: Any = params.get("message") or params.get("request") if isinstance(params, dict) else None
        parts = (message.get("parts") or message.get("content")) if isinstance(message, dict) else None
        for part in parts if isinstance(parts, list) else ():
            data = part.get("data") if isinstance(part, dict) else None
            data = data.get("data") if isinstance(data, dict) and data.keys() == {"data"} else data
            if not isinstance(data, dict) and isinstance(part, dict) and isinstance(part.get("text"), str):
                data = _read_call(part["text"], None)
            if isinstance(data, dict) and isinstance(data.get("skill"), str):
                given = data.get("input")
                return data["skill"], given if isinstance(given, dict) else {}
        return "", {}

    def unknown(self, skill: str | None) -> Problem:
        """Return the refusal for an unknown skill, or for a message without one (None)."""
        detail = "The message names no skill." if skill is None else f'There is no skill "{skill[:100]}".'
        listed = [one for one in self._actions.values() if one.is_public]
        if skill is not None and (near := did_you_mean(skill, [one.id for one in listed])):
            detail += f" {near}"
        del listed[MAX_CHOICES:]
        return UnknownOperation(
            f"{detail} There are: {', '.join(one.id for one in listed)}.",
            recovery=_RECOVERY,
            members={"skills": [{"skill": one.id, "description": one.description} for one in listed]},
        )

    def select(self, params: object, before: TaskRecord) -> tuple[Action, JsonObject, JsonObject, Problem | None]:
        """Return the action that SendMessage (in 1.0 or 0.3) requests, its input, and the other members.

        `before` is the task, which may have named an action before. Raises a Problem, except that a problem with the
        input of an action that is not public is returned.
        """
        request_params: JsonObject = params if isinstance(params, dict) else {}
        message: Any = request_params.get("message") or request_params.get("request")
        message = message if isinstance(message, dict) else {}
        parts = message.get("parts") or message.get("content")
        metadata: dict[str, object] = {}
        for more in (request_params.get("metadata"), message.get("metadata")):
            metadata |= more if isinstance(more, dict) else {}
        texts: list[str] = []
        found: list[dict[str, object]] = []
        for part in parts if isinstance(parts, list) else ():
            words, data = (part.get("text"), part.get("data")) if isinstance(part, dict) else (None, None)
            if isinstance(words, str):
                texts.append(words)
            if isinstance(data, dict):
                wrapped = data.get("data") if len(data) == 1 else None  # HTTP+JSON of 0.3 wraps data once more
                found.append(wrapped if isinstance(wrapped, dict) else data)
        if not found:
            named = metadata.get("skill")
            meant = self._actions.get(named if isinstance(named, str) else before.skill)
            read = [_read_call(text, meant) for text in texts]
            found = [data for data in read if data is not None]
            texts = [text for text, data in zip(texts, read, strict=True) if data is None]
        if len(found) > 1:
            raise InvalidEnvelope("The message has several data parts, and only one can be the call.")
        for data in found:
            _restore_integers(data)
        given: Any
        members: JsonObject
        if found and "skill" in metadata and not {"skill", "input"} & found[0].keys():
            members, given = metadata, found[0]  # the whole data part is the input
        else:
            members = {**metadata, **(found[0] if found else {})}
            given = members.get("input")

        skill, text, earlier = members.get("skill"), "\n".join(texts).strip(), self._actions.get(before.skill)
        if skill is None:
            action = earlier or (self._only if text else None)
        elif isinstance(skill, str):
            action = self._actions.get(skill)
        else:
            raise InvalidEnvelope("skill: must be the id of a skill, a string.")
        if action is None:
            raise self.unknown(skill)
        try:
            return action, self._read_input(action, given, text, found, before), members, None
        except Problem as problem:
            if action.is_public:
                raise
            return action, {}, members, problem

    def _read_input(
        self, action: Action, given: object, text: str, found: Sequence[JsonObject], before: TaskRecord
    ) -> JsonObject:
        """Return the input of a message: from its data, from its text, or from the task."""
        earlier = self._actions.get(before.skill)
        for name in ("args", "arguments"):
            if given is None and found and name in found[0]:
                raise InvalidEnvelope(f"A data part has the input of a skill as input, not as {name}.")
        # A person's "yes" is not a new input: the message before the last one was a question.
        asked = [part.data.struct_value.fields for one in before.task.history[-2:-1] for part in one.parts]
        is_answer = action is earlier and any("confirmation" in fields for fields in asked)
        if given is None and text and action.id in self._text_inputs and not is_answer:
            given = {self._text_inputs[action.id]: text}
        elif given is None and action is not earlier:
            given = {}
        elif given is None:
            given = before.input
            if given is None:
                detail = "The input of this task is not stored: send it again as the member input of the data part."
                again = "Send a message in the same task with a data part that has input and, if given, confirmation."
                raise InvalidInput(detail, recovery=again)
        if not isinstance(given, dict):
            detail = "must be an object"
            raise InvalidInput(f"The input {detail}.", errors=[Violation("", detail)])
        return given


def _read_call(text: str, action: Action | None) -> dict[str, object] | None:
    """Return the data part that a text consists of, or None for other texts.

    It names its skill, or adds members to the task's; or it is the whole input of the `action` that is already known.
    """
    text = text.strip()
    if not (text.startswith("{") and text.endswith("}")):
        return None
    try:
        data = parse_json(text.encode("utf-8", "replace"))
    except NotJson:
        return None
    if not isinstance(data, dict):
        return None
    if isinstance(data.get("skill"), str) or (action is not None and not _BESIDE.isdisjoint(data)):
        return data
    properties = action.inputs.get("properties") if action is not None else None
    is_input = isinstance(properties, Mapping) and data and data.keys() <= properties.keys()
    return {"input": data} if is_input else None


_BESIDE: Final = frozenset({"input", "confirmation", "receipts"})
"""Members of a data part that add to a task whose skill is known."""


def _restore_integers(data: JsonObject) -> None:
    """Convert whole numbers to integers: protobuf clients can only send 2.0 for 2, and in JSON both are the same."""
    waiting: list[Any] = [data]
    for one in waiting:  # nested objects and lists are appended
        for key, value in one.items() if isinstance(one, dict) else enumerate(one):
            if isinstance(value, (dict, list)):
                waiting.append(value)
            elif isinstance(value, float) and value.is_integer() and abs(value) <= EXACT:
                one[key] = int(value)


# --- Push notifications of tasks (A2A 1.0, section 4.3) ---
# Changes of a task are sent to the addresses that its caller names. A config is a webhook of the site
# (`serve/webhooks.py`), so it is in the store and its address has to be public. Messages are signed according to
# Standard Webhooks with a shared secret: `authentication.credentials` or `token`, which are keys if they begin with
# `whsec_`; if the caller gives neither, with a key that the answer returns. The end of a task is sent once. 410 ends a
# config. An event of the site is a task that does not end: each occurrence is an artifact of it, until its caller
# cancels it.

KIND: Final = "a2a-task"
EVENT: Final = "event:"
"""The prefix of the skill of a task that subscribes to an event."""

MAX_CONFIGS: Final = 10
MAX_TEXT: Final = 1_000
ANONYMOUS_CONFIGS: Final = 30
"""Configs that unknown callers at one address may make in a minute."""

FIRST_PAUSE: Final = 0.5
MAX_PAUSE: Final = 5.0
"""Seconds between two polls of a task."""

LOOK_SECONDS: Final = 1.0
MAX_BODY: Final = 262_144


class Pushes:
    """The push notification configs of one public address of a site, and tasks that subscribe to events."""

    def __init__(self, door: Context, tasks: Tasks) -> None:
        self._webhooks = door.ask("events").webhooks
        self._webhooks.kinds[KIND] = self.carry
        self._events = door.ask("events").log
        self._catalog = door.catalog
        self._tasks = tasks
        self._store = door.guards.store

    # --- Configs ---

    def check(self, config: TaskPushNotificationConfig) -> None:
        """Refuse a config with an unusable address or texts. Raises InvalidParamsError."""
        texts = (config.id, config.token, config.authentication.scheme, config.authentication.credentials)
        if any(len(one) > MAX_TEXT or not (one.isascii() and one.isprintable()) for one in texts):
            raise InvalidParamsError(f"id, token and authentication are ASCII of at most {MAX_TEXT} characters.")
        try:
            self._webhooks.check_address(config.url)
        except self._webhooks.RefusedCallback as refused:
            raise InvalidParamsError(refused.detail) from refused

    async def create(
        self, record: TaskRecord, config: TaskPushNotificationConfig, address: str
    ) -> TaskPushNotificationConfig:
        """Store a config of a task, replacing one with the same id, and return it as it is stored.

        `address` is that of a caller who may be unknown. Raises A2AError, RateLimited, StoreUnavailable.
        """
        self.check(config)
        if not record.owner:
            ran = await self._store.run([Count(f"a2a-push:{address}", ANONYMOUS_CONFIGS, 60.0)])
            if ran.failed is not None:
                raise RateLimited("Too many push notification configs.", headers=[("Retry-After", "60")])
        kept = TaskPushNotificationConfig()
        kept.CopyFrom(config)
        kept.task_id, kept.id = record.task.id, config.id or secrets.token_urlsafe(12)
        if not kept.token and not kept.authentication.credentials:
            kept.authentication.scheme = kept.authentication.scheme or "StandardWebhooks"
            kept.authentication.credentials = f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"
        given = (kept.authentication.credentials, kept.token)
        key = next((one for one in given if one.startswith("whsec_")), kept.token or kept.authentication.credentials)
        known = await self._configs(record)
        before = next((one for one in known if one.about["config"]["id"] == kept.id), None)
        if before is None and len(known) >= MAX_CONFIGS:
            raise UnsupportedOperationError(f"The task has {MAX_CONFIGS} push notification configs already.")
        logs = [_log_of(record.task.id)]
        logs += [f"job:{record.job}"] if record.job else []
        about: dict[str, Any] = {"task": record.task.id, "owner": record.owner, "config": MessageToDict(kept)}
        about |= {"shown": None if record.state in TERMINAL else _digest_of(record), "attempts": 0}
        if (wanted := subscription_of(record)) is not None:
            caller = _subscriber_of(wanted)
            event = self._events.find(wanted["event"], caller)
            logs += self._events.logs_for(event, caller) if event is not None else ()
            about |= {"positions": wanted["positions"], "caller": wanted["caller"]}
        hook = self._webhooks.new(
            id=f"a2a_{sha256(f'{record.task.id} {kept.id}'.encode()).hexdigest()[:32]}",
            kind=KIND,
            principal=record.owner or f"ip:{address}",
            url=kept.url,
            secret=key,
            expires=time.time() + self._tasks.seconds_of(record),
            about=about,
            logs=tuple(logs),
        )
        try:
            if not await self._webhooks.put(hook, before):
                raise StoreUnavailable("The config is being changed.", headers=[("Retry-After", "1")])
        except self._webhooks.TooMany as many:
            raise UnsupportedOperationError(str(many)) from many
        return kept

    async def listed(self, record: TaskRecord) -> list[TaskPushNotificationConfig]:
        """Return the configs of a task."""
        return [ParseDict(one.about["config"], TaskPushNotificationConfig()) for one in await self._configs(record)]

    async def find(self, record: TaskRecord, config_id: str) -> TaskPushNotificationConfig:
        """Return one config of a task, by default the only one. Raises TaskNotFoundError."""
        known = await self.listed(record)
        found = [one for one in known if one.id == config_id or (not config_id and len(known) == 1)]
        if not found:
            raise TaskNotFoundError("The task has no such push notification config.")
        return found[0]

    async def delete(self, record: TaskRecord, config_id: str) -> None:
        """Delete a config of a task, if it exists."""
        for one in await self._configs(record):
            if one.about["config"]["id"] == config_id:
                await self._webhooks.remove(one)

    async def _configs(self, record: TaskRecord) -> list[Any]:
        return [one for one in await self._webhooks.at(_log_of(record.task.id)) if not one.has_expired()]

    # --- Sending ---

    async def carry(self, hook: Any) -> float | None:
        """Send the changes of a task. Returns None if nothing more will ever be sent."""
        about = hook.about
        try:
            record = await self._tasks.refresh(await self._tasks.find(about["task"], about["owner"]))
        except TaskNotFoundError:
            return None
        shown = _digest_of(record)
        if shown != about["shown"] and not (record.state not in TERMINAL and subscription_of(record) is not None):
            answer: Posted | Failure | None = None
            for place, update in enumerate(updates_of(record.task)):
                body = _body_of(update)
                if len(body) > MAX_BODY:  # too large: it can be read with GetTask
                    continue
                answer = await self._webhooks.send(hook, _hook_message(hook, f"{record.task.id}.{shown}.{place}", body))
                if isinstance(answer, Posted) and answer.status == 410:
                    return None
                if isinstance(answer, str) or not 200 <= answer.status < 300:
                    break
            if (pause := await self._settle(hook, answer, {"shown": shown, "pause": FIRST_PAUSE})) is not None:
                return pause
        elif "positions" in about and record.state not in TERMINAL:
            return await self._carry_events(hook, record)
        if record.state in TERMINAL:
            return await self._postpone(
                hook, self._webhooks.QUIET_SECONDS if hook.expires is None else hook.expires - time.time()
            )
        pause = min(about.get("pause", FIRST_PAUSE) * 1.5, MAX_PAUSE)
        await self._webhooks.change(hook, lambda kept: kept.about.update(pause=pause))
        return await self._postpone(hook, pause)

    async def _carry_events(self, hook: Any, record: TaskRecord) -> float | None:
        """Send the occurrences of an event to which a task subscribes, as far as the config's owner may see them."""
        wanted = {**(subscription_of(record) or {}), "caller": hook.about["caller"]}
        caller = _subscriber_of(wanted)
        event = self._events.find(wanted["event"], caller)
        if event is None:
            return None
        current: Any = hook
        while current is not None:
            batch = await self._events.read(
                event, self._events.logs_for(event, caller), _positions(current), most=20, arguments=wanted["arguments"]
            )
            for one, after in batch.steps():
                body = _body_of(artifact_of(record, one))
                answer = await self._webhooks.send(current, _hook_message(current, one.id, body))
                if isinstance(answer, Posted) and answer.status == 410:
                    return None
                if (pause := await self._settle(current, answer, {"positions": dict(after)})) is not None:
                    return pause
                current = await self._webhooks.find(hook.id)
                if current is None:
                    return None
            if _positions(current) != batch.positions:
                current = await self._webhooks.change(current, partial(_put, {"positions": batch.positions}))
            if current is not None and not batch.has_more:
                look_again = hook.due_in(MAX_PAUSE)  # to check whether the task was cancelled
                if not await self._events.has_news(_positions(current), look_again):
                    return MAX_PAUSE
        return None

    async def _settle(self, hook: Any, answer: Posted | Failure | None, done: Mapping[str, object]) -> float | None:
        """Record the result of a message. Returns the seconds until it is sent again, or None if it is done."""
        pause: float | None = None

        def change(kept: Any) -> None:
            nonlocal pause
            attempts, pause, pauses = kept.about["attempts"], None, self._webhooks.PAUSES
            if answer is None or kept.note(answer) or attempts >= len(pauses):
                kept.about = {**kept.about, **done, "attempts": 0}
            else:
                pause = pauses[attempts]
                kept.about = {**kept.about, "attempts": attempts + 1}

        await self._webhooks.change(hook, change)
        return None if pause is None else await self._postpone(hook, pause)

    async def _postpone(self, hook: Any, pause: float) -> float:
        await self._store.run([hook.due_in(pause)])
        return pause

    # --- Events as tasks without an end ---

    def event_of(self, skill: object, caller: Principal | None) -> Event | None:
        """Return the event that a skill stands for, if the caller may see it, or None."""
        known = {one.id for one in self._catalog.events} if isinstance(skill, str) else ()
        return self._events.find(str(skill), caller) if skill in known else None

    async def begin(self, event: Event, arguments: Mapping[str, object], caller: Principal | None) -> dict[str, Any]:
        """Return the data of a task that subscribes to an event from now on. Raises StoreUnavailable."""
        batch = await self._events.read(event, self._events.logs_for(event, caller), None)
        known = None if caller is None else [caller.key, sorted(caller.scopes)]
        return {"event": event.id, "arguments": arguments, "caller": known, "positions": batch.positions}

    async def follow(
        self, record: TaskRecord, seconds: float, identify: Callable[[], Awaitable[Principal | None]]
    ) -> AsyncGenerator[Update, None]:
        """Yield the occurrences of the event to which a task subscribes, until it is cancelled or the time is over.

        The caller is identified again every VERIFY_SECONDS, and when its token has expired. The updates end if it is
        no longer the same.
        """
        wanted = subscription_of(record) or {}
        caller = _subscriber_of(wanted)
        event, end = self._events.find(wanted["event"], caller), time.monotonic() + seconds
        if event is None:
            return
        shown, verified = await identify(), time.monotonic()
        logs, positions = self._events.logs_for(event, caller), _read_positions(wanted["positions"])
        batches = self._events.follow(event, logs, positions, wanted["arguments"], LOOK_SECONDS)
        async with aclosing(batches):
            async for batch in batches:
                if time.monotonic() - verified >= VERIFY_SECONDS or (shown is not None and shown.has_expired()):
                    verified, known = time.monotonic(), None
                    with suppress(Problem):
                        known = await identify()
                    if known != shown:
                        return
                for one in batch.occurrences:
                    yield artifact_of(record, one)
                if time.monotonic() > end:
                    return
                if not batch.has_more:
                    record = await self._tasks.find(record.task.id, record.owner)
                if record.state in TERMINAL:
                    for update in updates_of(record.task):
                        yield update
                    return


def subscription_of(record: TaskRecord) -> dict[str, Any] | None:
    """Return the data of a task that subscribes to an event, or None for other tasks."""
    return dict(record.input or {}) if record.skill.startswith(EVENT) else None


def artifact_of(record: TaskRecord, one: Any) -> TaskArtifactUpdateEvent:
    """Return an occurrence as an artifact of the task that subscribes to its event."""
    parts = make_data_parts(one.data) or [Part(text=orjson.dumps(one.data).decode(), media_type=JSON)]
    artifact = Artifact(artifact_id=one.id, name=one.name, parts=parts)
    artifact.metadata.update({"timestamp": one.timestamp})
    task = record.task
    return TaskArtifactUpdateEvent(task_id=task.id, context_id=task.context_id, artifact=artifact, last_chunk=True)


def _subscriber_of(wanted: Mapping[str, Any]) -> Principal | None:
    known = wanted.get("caller")
    return Principal.of_key(known[0], frozenset(known[1])) if known else None


def _read_positions(stored: Mapping[str, Iterable[Any]]) -> dict[str, tuple[str, int]]:
    return {log: (epoch, number) for log, (epoch, number) in stored.items()}


def _positions(hook: Any) -> dict[str, tuple[str, int]]:
    return _read_positions(hook.about["positions"])


def _put(members: Mapping[str, object], hook: Any) -> None:
    hook.about = {**hook.about, **members}


def _log_of(task_id: str) -> str:
    return f"task:{task_id}"


def _digest_of(record: TaskRecord) -> str:
    return sha256(repr(progress_of(record)).encode("utf-8", "replace")).hexdigest()[:12]


def _body_of(update: Update) -> bytes:
    return WHOLE.sub(rb"\1\2", orjson.dumps(MessageToDict(to_stream_response(update))))


def _hook_message(hook: Any, message_id: str, body: bytes) -> Any:
    config: Mapping[str, Any] = hook.about["config"]
    headers = dict[str, str]()
    if config.get("token"):
        headers["X-A2A-Notification-Token"] = config["token"]
    known: Mapping[str, str] = config.get("authentication", {})
    if known.get("scheme") and known.get("credentials") and not known["credentials"].startswith("whsec_"):
        headers["Authorization"] = f"{known['scheme']} {known['credentials']}"
    return hook.message(message_id, body, headers)


# --- The handler ---


class A2aHandler(RequestHandler):
    """Answers the requests that the SDK has read. It owns the asyncio tasks of the calls of this process."""

    def __init__(self, door: Context) -> None:
        self.renderer = ProblemRenderer(door.catalog, RECOVERIES)
        self._invoker = door.invoker
        self._calls = Calls(DOOR, door.invoker, door.admission, _PLACES)
        self._trusted = door.admission.trusted_proxies
        self._has_jobs = door.ask("jobs") is not None
        self._sessions = session_ids_of(door)
        self._identify = door.guards.identify()
        self._identify_uncounted = replace(self._identify, store=None)
        self._skills = SkillSelector(door.catalog)
        self._takes_files = any(takes_files(action) for action in door.catalog.actions)
        self._tasks = Tasks(door, self.renderer)
        self._pushes = Pushes(door, self._tasks)
        self._events = door.ask("events").log
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

    # --- The methods of the SDK's interface ---

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
                record = await self._carry_out(request)
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

    # --- From a message to the result of its task ---

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
            unknown = partial(self._skills.unknown, action.id)
            call = self._calls.make(
                action, given, request, members, size=request.size, unknown=unknown, objection=objection
            )
            call.disconnected = gone
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
        request.is_background = self._has_jobs and action.is_background

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
        if self._skills.find(skill) is not None or not skill:
            return None
        event = self._pushes.event_of(skill, await self._principal_of(request, of_call=True))
        if event is None:
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
        """Store the config that came with a message, if its task is stored."""
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
    """Replace everything in a caller's message with these parts."""
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
