"""The SDK's request handler on our path of calls: each message becomes a call, each result the state of a task.

The SDK's own default handler keeps running tasks in the memory of one process. Here a task is in the site's store from
one request to the next, and background actions are jobs, so that any worker answers for any task.
"""

import asyncio
import logging
import re
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Final, NamedTuple, TypeAlias

import orjson
from google.api.field_behavior_pb2 import FieldBehavior, field_behavior
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message as ProtobufMessage

from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.server.tasks import InMemoryTaskStore
from a2a.types.a2a_pb2 import (
    AgentCard,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskArtifactUpdateEvent,
    TaskPushNotificationConfig,
    TaskStatusUpdateEvent,
)
from a2a.utils.error_handlers import build_rest_error_payload
from a2a.utils.errors import (
    A2AError,
    InternalError,
    InvalidParamsError,
    InvalidRequestError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from a2a.utils.proto_utils import validate_proto_required_fields
from a2a.utils.task import apply_history_length, validate_history_length, validate_page_size
from awp_publish import problems
from awp_publish.invoke import Invoker
from awp_publish.jobs import Jobs
from awp_publish.model import Action, Catalog, JsonObject
from awp_publish.policy.call import Call, Result
from awp_publish.problems import (
    InvalidEnvelope,
    InvalidInput,
    JobCancelled,
    JobEnded,
    Problem,
    RateLimited,
    StoreUnavailable,
    UnknownJob,
    UnknownOperation,
    Violation,
)
from awp_publish.serve.a2a import tasks as states
from awp_publish.serve.a2a.tasks import (
    ANONYMOUS_WINDOW,
    CANCELED,
    INTERRUPTED,
    TERMINAL,
    Kept,
    Tasks,
    most_bytes,
    put_if_possible,
    set_state,
    show_job,
    telling_of,
)
from awp_publish.serve.credentials import read_credentials
from awp_publish.serve.doors import Surroundings
from awp_publish.serve.endpoint import Telling, read_request_id, render_problem
from awp_publish.serve.http import (
    NO_SNIFFING,
    AsgiApp,
    Fields,
    Message as AsgiMessage,
    RawHeaders,
    Receive,
    Reply,
    Scope,
    Send,
    accepts,
    send_reply,
    wait_for_hang_up,
)
from awp_publish.serve.woa import read_admission

# --- What of A2A is declared unsupported, and refused with the errors that the protocol has for it ---
# Push notifications make a server send requests to addresses that strangers name. Callers stream, or poll.


class Unsupported(RequestHandler):
    """The part of a request handler that refuses."""

    async def on_create_task_push_notification_config(
        self, params: TaskPushNotificationConfig, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """Refused."""
        raise PushNotificationNotSupportedError

    async def on_get_task_push_notification_config(
        self, params: GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """Refused."""
        raise PushNotificationNotSupportedError

    async def on_list_task_push_notification_configs(
        self, params: ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> ListTaskPushNotificationConfigsResponse:
        """Refused."""
        raise PushNotificationNotSupportedError

    async def on_delete_task_push_notification_config(
        self, params: DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        """Refused."""
        raise PushNotificationNotSupportedError

    async def on_get_extended_agent_card(
        self, params: GetExtendedAgentCardRequest, context: ServerCallContext
    ) -> AgentCard:
        """Refused: the card says all there is to say."""
        raise UnsupportedOperationError("The agent card has no extended form.")


# --- Fields that A2A requires of a request (`google.api.field_behavior` in a2a.proto) ---
# The SDK looks at every field of every message, so the data of a part, in which nothing can be required, costs it
# more than all the rest of a request. Here is only found out whether anything is missing; what is missing, the SDK
# says.

_REQUIRED: Final = FieldBehavior.Value("REQUIRED")
_REPEATED: Final = 3
"""`FieldDescriptor.LABEL_REPEATED`, by which protobuf before 6.31 tells what `is_repeated` does."""


class _Field(NamedTuple):
    """A field that is worth a look: `is_required` itself, or with messages inside (`leads_on`) that require some."""

    name: str
    is_required: bool
    leads_on: bool
    is_many: bool
    has_presence: bool
    default: object


def check_required_fields(request: ProtobufMessage) -> None:
    """Refuse a request that lacks what is required. Raises InvalidParamsError, with every member that is missing."""
    if _lacks_any(request):
        validate_proto_required_fields(request)


def _lacks_any(message: ProtobufMessage) -> bool:
    for member in _fields_of(message.DESCRIPTOR):
        if member.is_required and _is_missing(message, member):
            return True
        if member.leads_on and any(map(_lacks_any, _messages_in(message, member))):
            return True
    return False


def _is_missing(message: ProtobufMessage, member: _Field) -> bool:
    if member.has_presence:
        return not message.HasField(member.name)
    value = getattr(message, member.name)
    return not value if member.is_many else bool(value == member.default)


def _messages_in(message: ProtobufMessage, member: _Field) -> Iterable[ProtobufMessage]:
    if member.is_many:
        values: Iterable[ProtobufMessage] = getattr(message, member.name)
        return values
    return (getattr(message, member.name),) if message.HasField(member.name) else ()


# --- What the descriptors say, once for each kind of message ---


@cache
def _fields_of(kind: Descriptor) -> tuple[_Field, ...]:
    fields = (_read(field) for field in kind.fields)
    return tuple(field for field in fields if field.is_required or field.leads_on)


def _read(field: FieldDescriptor) -> _Field:
    is_many = bool(getattr(field, "is_repeated", None) or getattr(field, "label", None) == _REPEATED)
    inner = field.message_type
    leads_on = inner is not None and not _is_map(inner) and any(map(_is_required, _reached(inner)))
    default = None if inner is not None or is_many else field.default_value
    return _Field(field.name, _is_required(field), leads_on, is_many, field.has_presence and not is_many, default)


def _is_required(field: FieldDescriptor) -> bool:
    return _REQUIRED in field.GetOptions().Extensions[field_behavior]


def _is_map(kind: Descriptor) -> bool:
    """A request has no map but those of JSON values, in which nothing is required."""
    return bool(kind.GetOptions().map_entry)


def _reached(kind: Descriptor) -> Iterator[FieldDescriptor]:
    """Every field of a kind of message, and of those inside of it; JSON values hold each other."""
    waiting, seen = [kind], set()
    while waiting:
        one = waiting.pop()
        if one.full_name not in seen:
            seen.add(one.full_name)
            yield from one.fields
            waiting += [field.message_type for field in one.fields if field.message_type is not None]


# --- One HTTP request to the A2A door: what the SDK is given of it, and how the SDK's answer goes out ---
# What is wrong with the request itself is told in the dialect of its binding: JSON-RPC 2.0 errors at the address of
# the door, `google.rpc.Status` (AIP-193) of HTTP+JSON below it. So is what the SDK cannot read: it calls that an
# error of its own, or a bad envelope, or begins a stream in which nothing comes.

JSON: Final = b"application/json"
A2A_JSON: Final = b"application/a2a+json"
EXCHANGE: Final = "awp_publish.a2a"
"""Where an exchange stands in the scope that the SDK is given."""

_NO_STORE: Final = (b"cache-control", b"no-store")
_OTHER_VERSION: Final = re.compile("A2A version .* is not supported")
_ERROR_INFO: Final = "type.googleapis.com/google.rpc.ErrorInfo"
_ASKING: Final = (401, 403)
_INVALID_REQUEST: Final = -32600
_INTERNAL_ERROR: Final = -32603
_VERSION_NOT_SUPPORTED: Final = -32009
_CODES: Final[Mapping[type[Problem], int]] = {
    problems.NotJson: -32700,
    problems.InvalidEnvelope: -32602,
    problems.UnsupportedMediaType: -32005,
}
_STATUSES: Final = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}

Dialect: TypeAlias = Callable[[Problem, dict[str, object]], dict[str, object]]
"""The body of an answer to a request that could not be taken: of a problem, and of its members."""


def say_in_json_rpc(problem: Problem, described: dict[str, object]) -> dict[str, object]:
    """JSON-RPC 2.0 section 5.1. Whose request it was is not known."""
    code = _CODES.get(type(problem), _INVALID_REQUEST)
    error = {"code": code, "message": described["detail"], "data": [_error_info(problem, described)]}
    return {"jsonrpc": "2.0", "id": None, "error": error}


def say_in_http_json(problem: Problem, described: dict[str, object]) -> dict[str, object]:
    """AIP-193, as the HTTP+JSON binding asks."""
    fallback = "INTERNAL" if problem.status >= 500 else "INVALID_ARGUMENT"
    error = {"code": problem.status, "status": _STATUSES.get(problem.status, fallback), "message": described["detail"]}
    return {"error": {**error, "details": [_error_info(problem, described)]}}


def _error_info(problem: Problem, described: dict[str, object]) -> dict[str, object]:
    return {"@type": _ERROR_INFO, "reason": problem.code, "domain": "a2a-protocol.org", "metadata": described}


class A2aExchange:
    """One request.

    `document` is what it says, read strictly: its parameters; `call` is all of it if it is a call of JSON-RPC.
    `is_read` is set once the SDK has understood it, `refused` where HTTP itself has to tell a refusal, `error` when our
    handler refuses. `cookies` are those that the action has set: no agent is told of them, but a caller's HTTP client
    keeps them.
    """

    __slots__ = (
        "_body",
        "_cors",
        "_leaving",
        "_receive",
        "call",
        "cookies",
        "document",
        "error",
        "fields",
        "has_left",
        "is_read",
        "refused",
        "request_id",
        "scope",
    )

    def __init__(self, scope: Scope, receive: Receive, fields: Fields, cors: RawHeaders) -> None:
        self.scope = scope
        self.fields = fields
        self.request_id = read_request_id(fields)
        self.document: object = None
        self.call: Mapping[str, object] | None = None
        self.is_read = False
        self.error: A2AError | None = None
        self.refused: Problem | None = None
        self.has_left = False
        self.cookies: RawHeaders = ()
        self._receive = receive
        self._cors = cors
        self._body: bytes | None = None
        self._leaving = asyncio.Lock()

    def take(self, body: bytes, document: object, *, is_rpc: bool) -> None:
        """Keep the body, to hand it on."""
        self._body, self.document = body, document
        if is_rpc and isinstance(document, Mapping):
            self.call, self.document = document, document.get("params")

    def describe(self, problem: Problem, telling: Telling) -> dict[str, object]:
        """The members of a problem of this request."""
        rendered = render_problem(problem, telling.types, telling.recoveries, "", self.request_id)
        described: dict[str, object] = orjson.loads(rendered.body)
        return described

    def render(self, problem: Problem, telling: Telling, dialect: Dialect) -> Reply:
        """The answer to a request that could not be taken."""
        return self._reply(problem.status, dialect(problem, self.describe(problem, telling)), problem)

    async def receive(self) -> AsgiMessage:
        """What the SDK receives: the body, and later that the caller has left."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self.hang_up()
        return {"type": "http.disconnect"}

    async def hang_up(self) -> None:
        """Returns when the caller has left. Several may wait: only one of them reads."""
        async with self._leaving:
            if not self.has_left:
                await wait_for_hang_up(self._receive)
                self.has_left = True

    async def run(self, sdk: AsgiApp, scope: Scope, send: Send, telling: Telling) -> None:
        """Have the SDK answer. Our headers are added, the status is that of a refusal, its mistakes are put right."""
        start: AsgiMessage | None = None
        is_corrected = False

        async def begin(body: bytes) -> None:
            nonlocal start, is_corrected
            if start is None:
                return
            held, start = start, None
            reply = self._correction(held, body, telling)
            is_corrected = reply is not None
            if reply is not None:
                await send_reply(reply, send)
            else:
                await send({**held, **self._start(held)})

        async def send_checked(message: AsgiMessage) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                start = message  # until it is seen of what
                return
            await begin(message.get("body", b""))
            if not is_corrected:
                await send(message)

        try:
            await sdk(scope, self.receive, send_checked)
        except Exception:  # HTTP+JSON of 0.3 lets through what is wrong with a stream
            if self.is_read and self.error is None:
                raise
            await begin(b"")
            if not is_corrected:
                await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _correction(self, start: AsgiMessage, body: bytes, telling: Telling) -> Reply | None:
        """What is answered in place of an answer of the SDK that begins with `body`; None if that is right."""
        is_stream = any(pair[0] == b"content-type" and pair[1].startswith(b"text/event") for pair in start["headers"])
        if self.call is not None:
            return None if self.is_read else self._correct_call(self.call, body, telling)
        if self.error is not None and is_stream and not body:
            told = build_rest_error_payload(self.error)
            return self._reply(told["error"]["code"], told, self.refused)
        if not self.is_read and (is_stream or start["status"] == 500):
            return self.render(InvalidEnvelope("The request cannot be read."), telling, say_in_http_json)
        return None

    def _correct_call(self, call: Mapping[str, object], body: bytes, telling: Telling) -> Reply | None:
        """A call of JSON-RPC that is one has invalid params, if it has an error and our handler never saw it."""
        if call.get("jsonrpc") != "2.0" or not isinstance(call.get("method"), str) or b'"error"' not in body:
            return None
        error = orjson.loads(body.removeprefix(b"data:"))["error"]
        if error["code"] not in (_INTERNAL_ERROR, _INVALID_REQUEST):
            return None
        found = error["data"] if isinstance(error.get("data"), str) else error["message"]
        problem = InvalidEnvelope(f"The params of {str(call['method'])[:100]} cannot be read: {found[:500]}")
        answer = say_in_json_rpc(problem, self.describe(problem, telling))
        if _OTHER_VERSION.match(found):
            answer["error"] = {"code": _VERSION_NOT_SUPPORTED, "message": found}
        answer["id"] = given if isinstance(given := call.get("id"), str | int) else None
        return self._reply(200, answer, None)

    def _reply(self, status: int, answer: dict[str, object], problem: Problem | None) -> Reply:
        body = orjson.dumps(answer)
        length = (b"content-length", b"%d" % len(body))
        return Reply(status, ((b"content-type", JSON), length, *self._own_headers(problem)), body)

    def _start(self, message: AsgiMessage) -> dict[str, object]:
        own = self._own_headers(self.refused)
        names = {name for name, _ in own}
        headers = [self._accepted(pair) for pair in message.get("headers", ()) if pair[0] not in names]
        return {"status": self._status(message["status"]), "headers": [*headers, *own]}

    def _status(self, status: int) -> int:
        """JSON-RPC tells its errors with 200, but HTTP has to tell when it asks for credentials."""
        if self.refused is None or (status == 200 and self.refused.status not in _ASKING):
            return status
        return self.refused.status

    def _accepted(self, pair: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
        """1.0.0 calls the media type application/json, 1.0.1 application/a2a+json; a caller may know one of them."""
        accept = self.fields.get(b"accept", b"")
        if pair != (b"content-type", A2A_JSON) or accepts(accept, A2A_JSON.decode()):
            return pair
        return (b"content-type", JSON)

    def _own_headers(self, problem: Problem | None) -> RawHeaders:
        told = problem.headers if problem is not None else ()
        pairs = tuple((name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in told)
        request_id = (b"x-request-id", self.request_id.encode())
        return (*pairs, _NO_STORE, NO_SNIFFING, request_id, *self.cookies, *self._cors)


# --- What an A2A message asks for: a skill, its input, and what the gates want to know ---
# A2A 1.0 has no selector of skills, so a declared extension says (docs/a2a.md): a data part `{"skill", "input"}`, or
# the skill's id in the metadata and its input as the data part. Messages are read from the JSON that came in and not
# from the SDK's messages, in which every number is a double.

MOST_CHOICES: Final = 50
"""Skills that are named to a caller who has named none; the card names them all."""

EXACT: Final = 2.0**53
"""Doubles are exact up to here: below it a whole one is the integer that its caller meant."""

_RECOVERY: Final = (
    'Send a data part {"skill": "<id>", "input": {...}} with the id of a skill of the agent card, and the input that '
    "the card's extension describes."
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a message says. `members` stand beside the input: in the data part, or else in the metadata."""

    skill: str | None = None
    input: object = None
    text: str = ""
    members: JsonObject = field(default_factory=dict)


def read_message(params: object) -> Asked:
    """What the parameters of SendMessage ask for, in 1.0 and in 0.3. Raises InvalidEnvelope."""
    told = _object(params)
    message = _object(told.get("message") or told.get("request"))
    parts = [_object(part) for part in _list(message.get("parts") or message.get("content"))]
    metadata = {**_object(told.get("metadata")), **_object(message.get("metadata"))}
    data = [data for part in parts if (data := _data_of(part)) is not None]
    if len(data) > 1:
        raise InvalidEnvelope("The message has several data parts, and only one can be the call.")
    text = "\n".join(text for part in parts if isinstance(text := part.get("text"), str)).strip()
    return _read_data(data[0] if data else None, metadata, text)


def _read_data(data: JsonObject | None, metadata: JsonObject, text: str) -> Asked:
    """Metadata that names a skill leaves the whole data part to the input, unless that is a whole call itself."""
    if data is not None and "skill" in metadata and not {"skill", "input"} & data.keys():
        return Asked(_skill_of(metadata), data, text, metadata)
    members = {**metadata, **(data or {})}
    return Asked(_skill_of(members), members.get("input"), text, members)


def _skill_of(members: JsonObject) -> str | None:
    skill = members.get("skill")
    if skill is not None and not isinstance(skill, str):
        raise InvalidEnvelope("skill: must be the id of a skill, a string.")
    return skill


def _data_of(part: Mapping[str, object]) -> JsonObject | None:
    """The data of a part; HTTP+JSON of 0.3 wraps it once more."""
    data = part.get("data")
    if isinstance(data, dict) and data.keys() == {"data"} and isinstance(data["data"], dict):
        data = data["data"]
    return {str(name): _with_integers(member) for name, member in data.items()} if isinstance(data, dict) else None


def _with_integers(value: object) -> object:
    """A client of protobuf can only say 2.0 where it means 2; to JSON both are one number."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= EXACT else value
    if isinstance(value, dict):
        return {name: _with_integers(member) for name, member in value.items()}
    return [_with_integers(member) for member in value] if isinstance(value, list) else value


def _object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


# --- Which action that is ---


@dataclass(frozen=True, slots=True)
class Chosen:
    """An action and its input."""

    action: Action
    input: JsonObject


@dataclass(frozen=True, slots=True)
class Before:
    """What a task asked for so far. `input` is None where it was not kept."""

    action: Action
    input: JsonObject | None


class Skills:
    """The skills of one catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self._actions = {action.id: action for action in catalog.actions}
        speaking = [action for action in catalog.actions if only_text_of(action.inputs) is not None]
        self._speaking = speaking[0] if len(speaking) == 1 else None

    def choose(self, asked: Asked, before: Before | None) -> Chosen:
        """The action that is asked for; `before` is what the task asked for so far. Raises a Problem."""
        action = self._find(asked, before)
        if asked.input is not None:
            return Chosen(action, _checked(asked.input))
        goes_on = before is not None and before.action is action
        name = only_text_of(action.inputs)
        if asked.text and name is not None:
            return Chosen(action, {name: asked.text})
        if before is None or not goes_on:
            return Chosen(action, {})
        if before.input is None:
            raise InvalidInput(
                "The input of this task is not kept: send it again, as the member input of the data part."
            )
        return Chosen(action, before.input)

    def find(self, skill: str) -> Action | None:
        """The action with this id."""
        return self._actions.get(skill)

    def _find(self, asked: Asked, before: Before | None) -> Action:
        if asked.skill is not None:
            action = self._actions.get(asked.skill)
            if action is None:
                raise self._unknown(f'There is no skill "{asked.skill[:100]}".')
            return action
        if before is not None:
            return before.action
        if asked.text and self._speaking is not None:
            return self._speaking
        raise self._unknown("The message names no skill.")

    def _unknown(self, detail: str) -> Problem:
        choices = list(self._choices())
        named = ", ".join(str(choice["skill"]) for choice in choices)
        return UnknownOperation(f"{detail} There are: {named}.", recovery=_RECOVERY, members={"skills": choices})

    def _choices(self) -> Iterator[dict[str, object]]:
        for action in list(self._actions.values())[:MOST_CHOICES]:
            yield {"skill": action.id, "description": action.description}


def only_text_of(inputs: JsonObject) -> str | None:
    """The name of the one required input, if it is a string: what a message of text alone can fill."""
    properties, required = inputs.get("properties"), inputs.get("required")
    if not isinstance(properties, Mapping) or not isinstance(required, (list, tuple)) or len(required) != 1:
        return None
    name = str(required[0])
    schema = properties.get(name)
    is_text = isinstance(schema, Mapping) and schema.get("type") == "string" and not {"enum", "format"} & schema.keys()
    return name if is_text else None


def _checked(given: object) -> JsonObject:
    if isinstance(given, dict):
        return given
    detail = "must be an object"
    raise InvalidInput(f"The input {detail}.", errors=[Violation("", detail)])


# --- Calls on their way through the A2A door, each in a task of its own ---
# A call is answered when it has a result, though its handler may work on. It is told that its caller has left when
# the connection is closed, the stream is given up, or CancelTask asks for it. What must come to its end, does
# (guards).

logger: Final = logging.getLogger("awp_publish.calls")

Settle: TypeAlias = Callable[[Result], Awaitable[Kept]]
"""Writes down what became of a call."""


class Run:
    """One call. `settled` is what became of its task."""

    def __init__(self, call: Call, exchange: A2aExchange, settle: Settle) -> None:
        self.settled: asyncio.Future[Kept] = asyncio.get_running_loop().create_future()
        self._call = call
        self._exchange = exchange
        self._settle = settle
        self._called_off = asyncio.Event()

    async def go(self, invoker: Invoker) -> None:
        """Make the call."""
        self._call.gone = self._gone
        try:
            await invoker.run(self._call, self._deliver)
            if not self.settled.done():
                await self._deliver(JobCancelled("The call was cancelled before it had a result."))
        except Exception as error:
            logger.exception("a task could not be carried out (request_id=%s)", self._call.request_id)
            if not self.settled.done():
                self.settled.set_exception(error)
                self.settled.exception()  # there may be nobody left to look at it
        finally:
            self.settled.cancel()

    async def wait(self) -> Kept:
        """What became of the task. Whoever gives up waiting calls the run off."""
        try:
            return await asyncio.shield(self.settled)
        except asyncio.CancelledError:
            self.call_off()
            raise

    def call_off(self) -> None:
        """Nobody wants the result any more."""
        self._called_off.set()

    async def _deliver(self, result: Result) -> None:
        kept = await self._settle(result)
        if not self.settled.done():
            self.settled.set_result(kept)

    async def _gone(self) -> None:
        ends = [asyncio.ensure_future(self._exchange.hang_up()), asyncio.ensure_future(self._called_off.wait())]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
            await asyncio.gather(*ends, return_exceptions=True)


class Runs:
    """The calls that this process makes at the moment. It owns their tasks."""

    def __init__(self, invoker: Invoker) -> None:
        self._invoker = invoker
        self._runs: dict[str, Run] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, task_id: str, run: Run) -> Run:
        """Make a call."""
        self._runs[task_id] = run
        task = asyncio.create_task(run.go(self._invoker))
        self._tasks.add(task)
        task.add_done_callback(lambda ended: self._end(task_id, run, ended))
        return run

    def find(self, task_id: str) -> Run | None:
        """The call that is being made for a task, by this process."""
        return self._runs.get(task_id)

    def _end(self, task_id: str, run: Run, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if self._runs.get(task_id) is run:
            del self._runs[task_id]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """While the application runs. Requests have been answered when it ends; what still runs, nobody waits for."""
        try:
            yield
        finally:
            for task in tuple(self._tasks):
                task.cancel()
            if self._tasks:
                await asyncio.wait(tuple(self._tasks))


# --- Tasks that go on after their message was answered ---
# Behind such a task is a background job, of this process or of another, or a call that another request waits for.

FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 2.0
"""Seconds between two looks at a task: jobs write down how far they are as seldom as that."""

LONGEST_WAIT: Final = 30.0
"""Seconds for which a message is not answered because its job may end: beyond that, callers and proxies give up."""

CANCELLING: Final = 5.0
"""Seconds that a cancelled task has to end, before CancelTask tells how it stands."""

PENDING: Final = 604_800.0
"""Seconds for which a job may wait to be run (`Jobs`)."""


class Following:
    """Looks after tasks that have not ended."""

    def __init__(self, surroundings: Surroundings, tasks: Tasks, runs: Runs) -> None:
        background = surroundings.background
        self._jobs: Jobs | None = background.jobs if background is not None else None
        self._seconds = surroundings.site.guarding.job_results
        self._telling = telling_of(surroundings.catalog)
        self._tasks = tasks
        self._runs = runs

    def seconds_of(self, kept: Kept) -> float:
        """How long a task is kept: its record must not be gone before its job is."""
        if kept.job:
            return self._seconds + (0.0 if kept.has_ended else PENDING)
        return self._seconds if kept.owner else min(self._seconds, ANONYMOUS_WINDOW)

    async def refresh(self, kept: Kept) -> Kept:
        """A task as its job stands now. Raises TaskNotFoundError if that is gone."""
        if not kept.job or kept.has_ended or self._jobs is None:
            return kept
        try:
            job = await self._jobs.show(kept.job, kept.owner)
        except UnknownJob as problem:
            raise TaskNotFoundError(problem.detail) from problem
        task = Task()
        task.CopyFrom(kept.task)
        show_job(task, job, self._telling)
        fresh = replace(kept, task=task)
        if not job.has_ended or task.ByteSize() > most_bytes(kept.owner):
            return fresh  # the job has what would not be kept of the task
        return await self._tasks.put(fresh, self._seconds) or await self._tasks.find(task.id, kept.owner)

    async def changes(self, kept: Kept) -> AsyncGenerator[Kept, None]:
        """The task each time that it tells something new, until it has ended or waits for its caller."""
        pause = FIRST_PAUSE
        while kept.task.status.state not in TERMINAL | INTERRUPTED:
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, LONGEST_PAUSE)
            seen = await self._look(kept)
            if _told(seen.task) != _told(kept.task):
                yield seen
            kept = seen

    async def wait(self, kept: Kept, exchange: A2aExchange) -> Kept:
        """The task when it has ended; as it stands if that takes too long, or its caller leaves."""
        ended, left = asyncio.ensure_future(self._end_of(kept)), asyncio.ensure_future(exchange.hang_up())
        try:
            await asyncio.wait((ended, left), timeout=LONGEST_WAIT, return_when=asyncio.FIRST_COMPLETED)
            return ended.result() if ended.done() else await self._look(kept)
        finally:
            await _drop(ended, left)

    async def cancel(self, kept: Kept) -> Kept:
        """End a task at its caller's request. Raises TaskNotCancelableError."""
        if kept.has_ended:
            raise TaskNotCancelableError("The task has ended.")
        if kept.job and self._jobs is not None:
            return await self._cancel_job(kept, self._jobs)
        if kept.task.status.state in INTERRUPTED:
            return await self._cancel_waiting(kept)
        run = self._runs.find(kept.task.id)
        if run is not None:
            run.call_off()
            await asyncio.wait((run.settled,), timeout=CANCELLING)
        ended = await self._tasks.find(kept.task.id, kept.owner)
        if ended.task.status.state != CANCELED:
            raise TaskNotCancelableError("The task cannot be cancelled any more.")
        return ended

    async def _cancel_job(self, kept: Kept, jobs: Jobs) -> Kept:
        try:
            await jobs.cancel(kept.job, kept.owner)
        except JobEnded as problem:
            raise TaskNotCancelableError(problem.detail) from problem
        try:
            return await asyncio.wait_for(self._end_of(kept), CANCELLING)
        except TimeoutError:
            return await self.refresh(kept)

    async def _cancel_waiting(self, kept: Kept) -> Kept:
        task = Task()
        task.CopyFrom(kept.task)
        set_state(task, CANCELED)
        cancelled = await self._tasks.put(replace(kept, task=task, input=None), self.seconds_of(kept))
        if cancelled is None:
            raise TaskNotCancelableError("The task is being worked on for another message.")
        return cancelled

    async def _end_of(self, kept: Kept) -> Kept:
        async with aclosing(self.changes(kept)) as changes:
            async for changed in changes:
                kept = changed
        return kept

    async def _look(self, kept: Kept) -> Kept:
        return await (self.refresh(kept) if kept.job else self._tasks.find(kept.task.id, kept.owner))


def _told(task: Task) -> tuple[object, ...]:
    """What of a task its caller can see changing."""
    return (task.status.state, [part.text for part in task.status.message.parts])


async def _drop(*futures: "asyncio.Future[Kept] | asyncio.Future[None]") -> None:
    for future in futures:
        future.cancel()
    await asyncio.gather(*futures, return_exceptions=True)


# --- One turn of a task ---

DOOR: Final = "a2a"
LATEST_RECORD: Final = 60.0
"""Seconds beyond an action's own deadline for which its task is kept as one that is being worked on."""

LONGEST_ID: Final = 255
"""Characters of an id that callers choose."""


@dataclass(slots=True)
class Turn:
    """A message, the task that it belongs to, and the call that it became; or the problem why it became none.

    `is_new` says that the task began with this message: then nothing has to be kept of it if its call is refused.
    """

    kept: Kept
    exchange: A2aExchange
    is_new: bool
    call: Call | None = None
    problem: Problem | None = None


class Callers:
    """Who makes a request, for what is no call of an action."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._gate = surroundings.enforcement.identify()
        self._uncounted = replace(self._gate, store=None)
        self._trusted = surroundings.admission.trusted_proxies

    async def identify(self, exchange: A2aExchange, *, counted: bool = True) -> str:
        """The id of the caller, "" for nobody known. Raises a Problem for credentials that are not valid.

        Wrong ones are `counted` once for each request.
        """
        gate = self._gate if counted else self._uncounted
        principal = await gate(read_credentials(exchange.scope, exchange.fields, self._trusted))
        return principal.id if principal is not None else ""


class Turns:
    """Begins and ends turns of tasks."""

    def __init__(self, surroundings: Surroundings, tasks: Tasks, runs: Runs, following: Following) -> None:
        self._invoker = surroundings.invoker
        self._trusted = surroundings.admission.trusted_proxies
        self._seconds = surroundings.site.guarding.job_results
        self._has_jobs = surroundings.background is not None
        self._skills = Skills(surroundings.catalog)
        self._telling = states.telling_of(surroundings.catalog)
        self._callers = Callers(surroundings)
        self._tasks = tasks
        self._runs = runs
        self._following = following

    async def begin(self, message: Message, exchange: A2aExchange) -> Turn:
        """Read a message. Raises TaskNotFoundError, InvalidParamsError, UnsupportedOperationError, StoreUnavailable."""
        if max(len(message.message_id), len(message.context_id)) > LONGEST_ID:
            raise InvalidParamsError(f"messageId and contextId have at most {LONGEST_ID} characters.")
        before = await self._task_of(message, exchange)
        kept, is_new = _next_turn(before, message), before is None
        try:
            asked = read_message(exchange.document)
            chosen = self._skills.choose(asked, self._before(kept))
            call = self._call(chosen, asked, exchange)
        except Problem as problem:
            self._invoker.note_refusal(DOOR, exchange.request_id, problem)
            return Turn(kept, exchange, is_new, problem=problem)
        return Turn(replace(kept, skill=chosen.action.id, input=chosen.input), exchange, is_new, call)

    async def _task_of(self, message: Message, exchange: A2aExchange) -> Kept | None:
        if not message.task_id:
            return None
        kept = await self._tasks.find(message.task_id, await self._caller_of(exchange))
        kept = await self._following.refresh(kept)
        if message.context_id and message.context_id != kept.task.context_id:
            raise InvalidParamsError("The task belongs to another context.")
        if kept.task.status.state not in states.INTERRUPTED:
            raise UnsupportedOperationError("The task waits for no message: it has ended, or is being worked on.")
        return kept

    async def _caller_of(self, exchange: A2aExchange) -> str:
        try:
            return await self._callers.identify(exchange, counted=False)
        except Problem:
            return ""  # the call itself will say what is wrong with the credentials

    def _before(self, kept: Kept) -> Before | None:
        action = self._skills.find(kept.skill)
        return Before(action, kept.input) if action is not None else None

    def _call(self, chosen: Chosen, asked: Asked, exchange: A2aExchange) -> Call:
        call = Call(chosen.action, chosen.input, exchange.request_id, DOOR, exchange.scope, exchange.hang_up)
        if self._invoker.is_guarded(chosen.action):
            call.credentials = partial(read_credentials, exchange.scope, exchange.fields, self._trusted)
            read_admission(call, asked.members, exchange.fields)
        return call

    # --- The end of a turn ---

    def is_background(self, turn: Turn) -> bool:
        """Whether the turn's call becomes a job."""
        return self._has_jobs and turn.call is not None and turn.call.action.is_background

    async def carry_out(self, turn: Turn) -> Kept:
        """Make the turn's call, and say what became of the task."""
        if turn.call is None:
            return await self._settle(turn, turn.problem or Problem("The message is no call."))
        run = Run(turn.call, turn.exchange, partial(self._settle, turn))
        return await self._runs.start(turn.kept.task.id, run).wait()

    async def announce(self, turn: Turn, call: Call) -> None:
        """Write down that the task is being worked on, unless it has one too many, which is the turn's problem then.

        A known caller's job needs that only once there is a job. Raises UnsupportedOperationError if the task is being
        worked on already.
        """
        owner = await self._caller_of(turn.exchange) or turn.kept.owner
        if owner and self.is_background(turn):
            return
        states.set_state(turn.kept.task, states.WORKING)
        begun = replace(turn.kept, owner=owner, input=None)
        seconds = call.action.timeout + LATEST_RECORD
        try:
            kept = await self._tasks.put(begun, seconds, self._address_of(turn.exchange))
        except RateLimited as problem:
            self._invoker.note_refusal(DOOR, turn.exchange.request_id, problem)
            turn.call, turn.problem = None, problem
            return
        if kept is None:
            raise UnsupportedOperationError("The task is being worked on for another message.")
        turn.kept = replace(kept, input=turn.kept.input)

    async def _settle(self, turn: Turn, result: Result) -> Kept:
        task, call = turn.kept.task, turn.call
        job = "" if isinstance(result, Problem) or not self.is_background(turn) else _job_in(result.body)
        added = call.headers if call is not None else ()
        if isinstance(result, Problem):
            states.fail(task, result, self._telling, turn.exchange.request_id, added)
        elif job:
            states.submit(task, added)
        else:
            states.complete(task, result.body, (*result.headers, *added))
            turn.exchange.cookies = tuple(pair for pair in result.headers if pair[0] == b"set-cookie")
        owner = (call.caller_id if call is not None else "") or turn.kept.owner
        given = turn.kept.input if task.status.state in states.INTERRUPTED else None
        if call is not None and isinstance(result, InvalidInput):
            given = None  # it has to be said again in any case
        elif given is not None and len(orjson.dumps(given)) > most_bytes(owner) // 2:
            given = None
            states.say(task, "The input is too large to be kept until then: send it again in that message.")
        return await self._keep(turn, replace(turn.kept, owner=owner, input=given, job=job))

    async def _keep(self, turn: Turn, kept: Kept) -> Kept:
        """Keep what a turn made of its task, unless that began and ended with a refusal: then nothing was done."""
        if turn.is_new and kept.task.status.state == states.REJECTED:
            if kept.raw:
                with suppress(StoreUnavailable):
                    await self._tasks.remove(kept)
            return kept
        try:
            seconds, address = self._following.seconds_of(kept), self._address_of(turn.exchange)
            stored = await put_if_possible(self._tasks, kept, seconds, address)
        except RateLimited as problem:
            if kept.task.status.state == states.INPUT_REQUIRED:  # nobody could go on with it
                states.fail(kept.task, problem, self._telling, turn.exchange.request_id)
            return kept
        if stored is not None:
            return stored
        try:
            return await self._tasks.find(kept.task.id, kept.owner)  # another message was quicker
        except TaskNotFoundError:
            return kept

    def _address_of(self, exchange: A2aExchange) -> str:
        return read_credentials(exchange.scope, exchange.fields, self._trusted).address


def _next_turn(before: Kept | None, message: Message) -> Kept:
    """The task with one more message in its history; a new task if there was none."""
    task = Task()
    if before is not None:
        task.CopyFrom(before.task)
        task.history.append(task.status.message)
        task.status.ClearField("message")
    else:
        task.id, task.context_id = str(uuid.uuid4()), message.context_id or str(uuid.uuid4())
    said = task.history.add()
    said.CopyFrom(message)
    said.task_id, said.context_id = task.id, task.context_id
    states.keep_recent(task)
    return Kept(task) if before is None else replace(before, task=task)


def _job_in(body: bytes) -> str:
    accepted = orjson.loads(body)
    return str(accepted["job_id"]) if isinstance(accepted, dict) and "job_id" in accepted else ""


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
