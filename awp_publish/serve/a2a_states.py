"""How A2A tells what became of a call: task states, artifacts, messages of the agent.

A2A 1.0, section "Task": completed with an artifact; failed where the action was tried; rejected where a guard would not
let it be tried; input-required where the same task can go on with more; auth-required where it can with credentials.
"""

import uuid
from collections.abc import Iterable, Mapping
from typing import Final

import orjson
from a2a.types.a2a_pb2 import Artifact, Message, Part, Role, Task, TaskState, TaskStatus
from google.protobuf.struct_pb2 import NullValue, Value

from awp_publish import problems
from awp_publish.jobs import Job
from awp_publish.model import Catalog
from awp_publish.problems import Problem, code_of
from awp_publish.serve.exchange import Telling
from awp_publish.serve.problem_json import render_problem
from awp_publish.serve.reply import RawHeaders

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
