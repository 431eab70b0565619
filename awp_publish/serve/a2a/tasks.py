"""Tasks in the site's store: each under its id, seen by the caller whose it is, gone when its time is over.

What only we have to know of a task (whose it is, which skill it asked for, its job, and its input while it waits for
its caller) is a line of JSON before the task's own bytes. A known caller's tasks are listed, the newest MOST_LISTED;
nobody lists those of nobody.

A record has a most of bytes, and is made to fit: of a caller's messages their data and files are left out, then what
is oldest of the history; an output that is too large is given once and not kept. Tasks of nobody known have less room
and time, and are counted for each address.
"""

import logging
import math
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Final

import orjson
from google.protobuf.message import DecodeError
from google.protobuf.struct_pb2 import NullValue, Value

from a2a.types.a2a_pb2 import Artifact, Message, Part, Role, Task, TaskState, TaskStatus
from a2a.utils.errors import TaskNotFoundError
from awp_publish import problems
from awp_publish.jobs import Job
from awp_publish.model import Catalog, JsonObject
from awp_publish.problems import Problem, RateLimited, StoreUnavailable, code_of
from awp_publish.serve.endpoint import Telling, render_problem
from awp_publish.serve.http import RawHeaders
from awp_publish.stores.store import Add, Count, Counted, Look, Step, Store, Swap, unavailable

# --- How A2A tells what became of a call: task states, artifacts, messages of the agent ---
# A2A 1.0, section "Task": completed with an artifact; failed where the action was tried; rejected where a guard would
# not let it be tried; input-required where the same task can go on with more; auth-required where it can with
# credentials.

SUBMITTED: Final = TaskState.TASK_STATE_SUBMITTED
WORKING: Final = TaskState.TASK_STATE_WORKING
COMPLETED: Final = TaskState.TASK_STATE_COMPLETED
CANCELED: Final = TaskState.TASK_STATE_CANCELED
REJECTED: Final = TaskState.TASK_STATE_REJECTED
INPUT_REQUIRED: Final = TaskState.TASK_STATE_INPUT_REQUIRED

TERMINAL: Final = frozenset({COMPLETED, CANCELED, TaskState.TASK_STATE_FAILED, REJECTED})
INTERRUPTED: Final = frozenset({INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED})

DEEPEST: Final = 20
"""Levels of JSON that a data part takes: protobuf reads a hundred of its own, of which each of ours makes three."""

MOST_HISTORY: Final = 50
"""Messages of a task that are kept."""

_UNTOLD: Final = frozenset({"set-cookie", "content-type", "content-length"})
"""Headers that are no business of an agent's user, or that speak about another body."""

_ASKING: Final = (
    problems.InvalidEnvelope,
    problems.UnknownOperation,
    problems.InvalidInput,
    problems.InvalidIdempotencyKey,
    problems.ConfirmationRequired,
    problems.ConfirmationExpired,
    problems.ConfirmationTampered,
    problems.ConfirmationForeign,
    problems.ConfirmationSpent,
    problems.ConfirmationMismatch,
    problems.PrerequisiteRequired,
)
_REFUSING: Final = (
    problems.InsufficientScope,
    problems.ForeignHost,
    problems.CrossSiteCookies,
    problems.RateLimited,
    problems.IdempotencyKeyReused,
    problems.IdempotencyKeyInFlight,
    problems.OutcomeUnknown,
    problems.AnswerNotKept,
    problems.TemporarilyUnavailable,
    problems.StoreUnavailable,
    problems.TooManyJobs,
    problems.JobQueueFull,
)
_KNOWING: Final = (problems.AuthenticationRequired, problems.InvalidCredentials, problems.AuthExpired)

_STATES: Final[Mapping[type[Problem], TaskState]] = {
    **dict.fromkeys(_ASKING, INPUT_REQUIRED),
    **dict.fromkeys(_KNOWING, TaskState.TASK_STATE_AUTH_REQUIRED),
    **dict.fromkeys(_REFUSING, REJECTED),
    problems.JobCancelled: CANCELED,
}


RECOVERIES: Final[Mapping[str, str]] = {
    code_of(problems.ConfirmationRequired.slug): (
        "Show confirmation.summary to your user. Only if they agree, send a message in the same task with the data "
        'part {"confirmation": "<confirmation.token>"}.'
    ),
    code_of(problems.PrerequisiteRequired.slug): (
        "Send messages for the skills that missing names, then one in the same task with the data part "
        '{"receipts": [...]}: the awp-receipt that metadata.headers of each of their tasks has.'
    ),
    code_of(problems.InvalidEnvelope.slug): (
        'Send one data part {"skill": "<id>", "input": {...}}; beside input may stand confirmation and the idempotency '
        "key as strings, receipts as a list of strings."
    ),
}
"""What callers of this door are told to do, where the way to do it is its own."""


def telling_of(catalog: Catalog) -> Telling:
    """How this door tells problems."""
    return Telling(catalog, RECOVERIES)


def state_of(problem: Problem) -> TaskState:
    """The state of a task whose call met a problem."""
    return _STATES.get(type(problem), TaskState.TASK_STATE_FAILED)


def set_state(task: Task, state: TaskState, parts: Iterable[Part] = ()) -> None:
    """Give a task a new state, now. The agent's last word goes into the history before it is replaced."""
    if task.status.HasField("message"):
        task.history.append(task.status.message)
        keep_recent(task)
    status = TaskStatus(state=state)
    status.timestamp.GetCurrentTime()
    listed = list(parts)
    if listed:
        message = Message(message_id=str(uuid.uuid4()), role=Role.ROLE_AGENT, parts=listed)
        message.task_id, message.context_id = task.id, task.context_id
        status.message.CopyFrom(message)
    task.status.CopyFrom(status)


def say(task: Task, words: str) -> None:
    """Add words to what the agent says of how a task stands."""
    message = task.status.message
    if not message.message_id:
        message.message_id, message.role = str(uuid.uuid4()), Role.ROLE_AGENT
        message.task_id, message.context_id = task.id, task.context_id
    message.parts.append(Part(text=words))


def keep_recent(task: Task) -> None:
    """Forget the oldest messages of a task that has too many."""
    del task.history[:-MOST_HISTORY]


def submit(task: Task, headers: RawHeaders) -> None:
    """A task whose action is done in the background."""
    _add_headers(task, headers)
    set_state(task, SUBMITTED)


def complete(task: Task, body: bytes, headers: RawHeaders) -> None:
    """End a task with what its action answered: as data, and the same as the text that it was."""
    name = "output"
    del task.artifacts[:]
    task.artifacts.append(Artifact(artifact_id=f"{task.id}.{name}", name=name, parts=_parts_of(body)))
    _add_headers(task, headers)
    set_state(task, COMPLETED)


def fail(task: Task, problem: Problem, telling: Telling, request_id: str, headers: RawHeaders = ()) -> None:
    """Give a task the state that a problem means, and say what it is: in words, and with all its members."""
    body = render_problem(problem, telling.types, telling.recoveries, "", request_id).body
    own = tuple((name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in problem.headers)
    _add_headers(task, (*headers, *own))
    set_state(task, state_of(problem), [Part(text=_words(orjson.loads(body))), *_data_parts(body)])


def _words(described: Mapping[str, object]) -> str:
    question = described.get("confirmation")
    summary = question.get("summary") if isinstance(question, Mapping) else None
    said = (described["detail"], summary, described["recovery"])
    return "\n".join(str(one) for one in said if one)


def _add_headers(task: Task, headers: RawHeaders) -> None:
    """What gates add to an HTTP answer stands in the task's metadata, under the same names."""
    told = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
    kept = {name: value for name, value in told.items() if name not in _UNTOLD}
    task.ClearField("metadata")
    if kept:
        task.metadata.update({"headers": kept})


# --- Parts ---


def _parts_of(body: bytes) -> list[Part]:
    text = Part(text=body.decode("utf-8", "replace"), media_type="application/json")
    return [*_data_parts(body), text]


def _data_parts(body: bytes) -> list[Part]:
    """The one part that holds a JSON value; none for a value that is too deep for protobuf."""
    value: object = orjson.loads(body)
    if body.count(b"{") + body.count(b"[") > DEEPEST and not _is_flat(value, DEEPEST):
        return []
    part = Part(media_type="application/json")
    _fill(part.data, value)
    return [part]


def _is_flat(value: object, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(_is_flat(one, levels - 1) for one in inner)


def _fill(into: Value, value: object) -> None:
    """Put a JSON value into one of protobuf. Its own `ParseDict` does so in twice the time."""
    if isinstance(value, str):
        into.string_value = value
    elif isinstance(value, bool):
        into.bool_value = value
    elif isinstance(value, (int, float)):
        into.number_value = value
    elif isinstance(value, dict):
        into.struct_value.SetInParent()
        fields = into.struct_value.fields
        for name, member in value.items():
            _fill(fields[name], member)
    elif isinstance(value, list):
        into.list_value.SetInParent()
        for member in value:
            _fill(into.list_value.values.add(), member)
    else:
        into.null_value = NullValue.NULL_VALUE


# --- Jobs ---

_OF_JOBS: Final[Mapping[str, TaskState]] = {"accepted": SUBMITTED, "running": WORKING}


def show_job(task: Task, job: Job, telling: Telling) -> None:
    """Make a task tell how its job stands."""
    if job.result is not None:
        complete(task, job.result.body, job.result.headers)
    elif job.problem is not None:
        fail(task, job.problem, telling, job.request_id)
    else:
        task.status.ClearField("message")
        set_state(task, _OF_JOBS[job.status], _progress_of(job))
    task.status.timestamp.FromDatetime(job.updated)


def _progress_of(job: Job) -> list[Part]:
    if job.progress is None:
        return []
    told = {"progress": {"fraction": job.progress.fraction, "message": job.progress.message}}
    return [Part(text=job.progress.message or f"{job.progress.fraction:.0%}"), *_data_parts(orjson.dumps(told))]


MOST_LISTED: Final = 200
MOST_TRIES: Final = 5
"""Times that a caller's list is changed against others who change it; a task that is not listed is found by its id."""

MAX_BYTES: Final = 262_144
"""Bytes of a known caller's task, as it is kept."""

MAX_ANONYMOUS_BYTES: Final = 32_768
"""Bytes of a task of nobody known, as it is kept."""

MAX_ANONYMOUS_TASKS: Final = 1000
"""Tasks of nobody known that are kept for one address, in ANONYMOUS_WINDOW seconds."""

ANONYMOUS_WINDOW: Final = 3600.0
"""Seconds for which a task of nobody known is kept, but for one that has a job."""

MAX_MESSAGE_BYTES: Final = 4096
"""Bytes of a message, as it is kept in a history."""

LEFT_OUT: Final = "[What this message brought is not kept.]"

logger: Final = logging.getLogger("awp_publish.calls")

_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Kept:
    """A task as it is kept. `owner` is the id of its caller, "" for nobody known; `raw` the bytes in the store.

    `input` is what a task that waits goes on with; None where its caller has to say it again.
    """

    task: Task
    owner: str = ""
    skill: str = ""
    input: JsonObject | None = None
    job: str = ""
    raw: bytes = field(default=b"", repr=False)

    @property
    def has_ended(self) -> bool:
        return self.task.status.state in TERMINAL


class Tasks:
    """The tasks of one store. Every verb raises StoreUnavailable."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def find(self, task_id: str, caller: str) -> Kept:
        """A task, to the caller whose it is; one of nobody known to whoever knows its id. Raises TaskNotFoundError."""
        kept = await self._look(task_id) if _ID.fullmatch(task_id) else None
        if kept is None or kept.owner not in ("", caller):
            raise TaskNotFoundError("There is no such task, its time is over, or it is somebody else's.")
        return kept

    async def put(self, kept: Kept, seconds: float, address: str | None = None) -> Kept | None:
        """Keep a task for `seconds`, in place of the bytes that it has; None if these are not there any more.

        With an `address`, a new task of nobody known counts for it. Raises RateLimited if that has too many.
        """
        written = replace(kept, raw=_write(kept))
        steps: list[Step] = []
        if kept.raw:
            steps.append(Swap(_key(kept.task.id), kept.raw, written.raw, seconds))
        else:
            if address is not None and not kept.owner:
                steps.append(Count(f"a2a:kept:{address}", MAX_ANONYMOUS_TASKS, ANONYMOUS_WINDOW))
            steps.append(Add(_key(kept.task.id), written.raw, seconds))
        ran = await self._store.run(steps)
        if ran.failed is not None:
            if isinstance(seen := ran.seen[-1], Counted):
                raise _too_many(seen)
            return None
        if kept.owner and kept.owner != _owner_in(kept.raw):
            await self._enlist(kept.owner, kept.task.id, seconds)
        return written

    async def remove(self, kept: Kept) -> None:
        """Forget a task, if it has not changed since."""
        await self._store.run((Swap(_key(kept.task.id), kept.raw, None),))

    async def listed(self, caller: str) -> list[Kept]:
        """The tasks of a known caller."""
        raw = await self._read_list(caller) if caller else None
        if raw is None:
            return []
        ran = await self._store.run([Look(_key(task_id)) for task_id in _ids_in(raw)])
        return [kept for kept in _readable(ran.seen) if kept.owner == caller]

    async def _look(self, task_id: str) -> Kept | None:
        raw = (await self._store.run((Look(_key(task_id)),))).seen[0]
        return _read(raw) if isinstance(raw, bytes) else None

    async def _read_list(self, caller: str) -> bytes | None:
        raw = (await self._store.run((Look(_list_key(caller)),))).seen[0]
        return raw if isinstance(raw, bytes) else None

    async def _enlist(self, caller: str, task_id: str, seconds: float) -> None:
        for _ in range(MOST_TRIES):
            raw = await self._read_list(caller)
            listed = [task_id, *(_ids_in(raw) if raw is not None else ())][:MOST_LISTED]
            key, changed = _list_key(caller), orjson.dumps(listed)
            step = Add(key, changed, seconds) if raw is None else Swap(key, raw, changed, seconds)
            if (await self._store.run((step,))).failed is None:
                return


async def put_if_possible(tasks: Tasks, kept: Kept, seconds: float, address: str | None = None) -> Kept | None:
    """Keep a task whose call was made: a store that is away must not cost its caller the answer. Raises RateLimited."""
    try:
        return await tasks.put(kept, seconds, address)
    except StoreUnavailable as problem:
        logger.warning("task %s is not kept: %s", kept.task.id, problem)
        return kept


def most_bytes(owner: str) -> int:
    """Bytes that are kept of a task, of its input, and of its output."""
    return MAX_BYTES if owner else MAX_ANONYMOUS_BYTES


def _too_many(seen: Counted) -> RateLimited:
    seconds = max(1, math.ceil(seen.seconds_left))
    return RateLimited(
        f"The site keeps {MAX_ANONYMOUS_TASKS} tasks an hour for callers of one address whom it does not know; "
        f"the next is possible in {seconds} seconds, or with credentials.",
        headers=[("Retry-After", str(seconds))],
        members={"retry_after": seconds},
    )


def _key(task_id: str) -> str:
    return f"a2a:task:{task_id}"


def _list_key(caller: str) -> str:
    """Callers have names of their own choosing, of any length."""
    return f"a2a:tasks:{sha256(caller.encode('utf-8', 'surrogatepass')).hexdigest()}"


# --- What is kept of a task ---


def _write(kept: Kept) -> bytes:
    head = orjson.dumps({"owner": kept.owner, "skill": kept.skill, "input": kept.input, "job": kept.job})
    return head + b"\n" + _compact(kept.task, most_bytes(kept.owner) - len(head), bool(kept.owner)).SerializeToString()


def _compact(task: Task, room: int, is_known: bool) -> Task:
    """A task as it is kept, in some bytes: how it stands, its output, and the newest of its history that fits."""
    compact = Task(id=task.id, context_id=task.context_id)
    compact.status.CopyFrom(task.status)
    if task.status.HasField("message"):
        compact.status.message.CopyFrom(_compact_message(task.status.message, is_known))
    if task.metadata.ByteSize() <= MAX_MESSAGE_BYTES:
        compact.metadata.CopyFrom(task.metadata)
    output = sum(artifact.ByteSize() for artifact in task.artifacts)
    if not output or output <= room - 3 * MAX_MESSAGE_BYTES:
        compact.artifacts.extend(task.artifacts)
    else:
        say(compact, f"The output was given when the task completed; its {output} bytes are too many to be kept.")
    room -= compact.ByteSize()
    history: list[Message] = []
    for message in reversed(task.history):
        history.append(_compact_message(message, is_known))
        room -= history[-1].ByteSize() + 8
        if room < 0:
            history.pop()
            break
    compact.history.extend(reversed(history))
    return compact


def _compact_message(message: Message, is_known: bool) -> Message:
    """A message as it is kept: of the agent as it is if it is short, of its caller the words if we know who that is."""
    of_agent = message.role == Role.ROLE_AGENT
    compact = Message(message_id=message.message_id, role=message.role)
    compact.task_id, compact.context_id = message.task_id, message.context_id
    if of_agent and message.ByteSize() <= MAX_MESSAGE_BYTES:
        compact.parts.extend(message.parts)
        return compact
    words = "\n".join(part.text for part in message.parts if part.text) if of_agent or is_known else ""
    if len(words) > MAX_MESSAGE_BYTES // 4:  # a character may have four bytes
        words = f"{words[: MAX_MESSAGE_BYTES // 4 - 1]}…"
    compact.parts.append(Part(text=words or LEFT_OUT))
    return compact


def _read(raw: bytes) -> Kept:
    """The task of some bytes. Raises StoreUnavailable for a record that is damaged."""
    head, _, body = raw.partition(b"\n")
    try:
        told = orjson.loads(head)
        owner, skill, given, job = (told[name] for name in ("owner", "skill", "input", "job"))
        if not all(isinstance(one, str) for one in (owner, skill, job)) or not isinstance(given, dict | None):
            raise TypeError
        return Kept(Task.FromString(body), owner, skill, given, job, raw)
    except (ValueError, KeyError, TypeError, DecodeError) as error:
        logger.error("a task's record cannot be read: %s", type(error).__name__)
        raise unavailable("The record of this task is damaged.") from error


def _readable(seen: Iterable[object]) -> Iterator[Kept]:
    """The tasks that can be read. One that is damaged hides no other."""
    for value in seen:
        if isinstance(value, bytes):
            with suppress(StoreUnavailable):
                yield _read(value)


def _ids_in(raw: bytes) -> list[str]:
    """The ids of a caller's list. One that is damaged begins anew."""
    try:
        listed = orjson.loads(raw)
    except ValueError:
        listed = None
    if isinstance(listed, list) and all(isinstance(one, str) for one in listed):
        return listed
    logger.error("a caller's list of tasks cannot be read")
    return []


def _owner_in(raw: bytes) -> str:
    """For whom the task of some bytes was listed: a task begins as nobody's where its caller was not known yet."""
    return str(orjson.loads(raw.partition(b"\n")[0])["owner"]) if raw else ""
