"""Tasks: A2A's form of the result of a call."""

import base64
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

import orjson
from a2a.types.a2a_pb2 import Artifact, Message, Part, Role, Task, TaskState, TaskStatus
from google.protobuf.struct_pb2 import NullValue, Value

from awp_publish import problems
from awp_publish.calls.progress import Progress
from awp_publish.http.exchange import RawHeaders, header_members
from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.problems import Problem
from awp_publish.schema import media
from awp_publish.schema.large_numbers import EXACT

# Completed with an artifact; failed if the action was tried; rejected if a guard did not admit it; input-required if
# the same task can continue with more input; auth-required if it can continue with credentials.

SUBMITTED: Final = TaskState.TASK_STATE_SUBMITTED
WORKING: Final = TaskState.TASK_STATE_WORKING
COMPLETED: Final = TaskState.TASK_STATE_COMPLETED
CANCELED: Final = TaskState.TASK_STATE_CANCELED
REJECTED: Final = TaskState.TASK_STATE_REJECTED
INPUT_REQUIRED: Final = TaskState.TASK_STATE_INPUT_REQUIRED

TERMINAL: Final = frozenset({COMPLETED, CANCELED, TaskState.TASK_STATE_FAILED, REJECTED})
INTERRUPTED: Final = frozenset({INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED})

MAX_DEPTH: Final = 20
"""Levels of JSON in a data part: protobuf reads a hundred of its own levels, three for each of ours."""

MAX_HISTORY: Final = 50
"""Messages of a task that are kept."""

JSON: Final = "application/json"

_HIDDEN: Final = frozenset({"set-cookie", "content-type", "content-length", "awp-content-type"})
"""Headers that do not concern an agent's user, or that describe another body."""

_WAITING: Final[Mapping[str, TaskState]] = {
    "input": INPUT_REQUIRED,
    "credentials": TaskState.TASK_STATE_AUTH_REQUIRED,
}
"""The states of a task that waits for what its call lacks."""


def set_state(task: Task, state: TaskState, parts: Iterable[Part] = ()) -> None:
    """Set the state of a task, as of now. The agent's last message is moved to the history first."""
    if task.status.HasField("message"):
        task.history.append(task.status.message)
        del task.history[:-MAX_HISTORY]
    status = TaskStatus(state=state)
    status.timestamp.GetCurrentTime()
    task.status.CopyFrom(status)
    for part in parts:
        _status_message(task).parts.append(part)


def progress_parts(progress: Progress) -> list[Part]:
    """Return progress in words, and as data: a `fraction`, or the `bytes` of a stream so far."""
    unit = "fraction" if progress.total is not None else "bytes"
    described = {"progress": {unit: progress.fraction, "message": progress.message}}
    return [Part(text=progress.message or f"{progress.fraction:.0%}"), *make_data_parts(described)]


def say(task: Task, words: str) -> None:
    """Add a text to the agent's message."""
    _status_message(task).parts.append(Part(text=words))


def _status_message(task: Task) -> Message:
    message = task.status.message
    if not message.message_id:
        message.message_id, message.role = str(uuid.uuid4()), Role.ROLE_AGENT
        message.task_id, message.context_id = task.id, task.context_id
    return message


def submit(task: Task, headers: RawHeaders) -> None:
    """Mark a task as running in the background."""
    _set_headers(task, headers)
    set_state(task, SUBMITTED)


def complete(task: Task, body: bytes, headers: RawHeaders) -> None:
    """Complete a task with the answer of its action."""
    del task.artifacts[:]
    task.artifacts.append(make_artifact(task, body, headers))
    _set_headers(task, headers)
    set_state(task, COMPLETED)


def make_artifact(task: Task, body: bytes, headers: RawHeaders) -> Artifact:
    """Return an action's answer as one part: a file, a text for a string, and data for everything else.

    JSON that a data part cannot represent exactly (`make_data_parts`) is a text.
    """
    output, parts = orjson.loads(body), list[Part]()
    content = next((value for name, value in headers if name == media.HEADER), None)
    if isinstance(output, str):
        kind, name = media.read_header(content) if content is not None else (media.TEXT, "")
        parts = [Part(text=output, media_type=kind, filename=name)]
        if not media.is_text(kind):
            with suppress(ValueError):
                parts = [Part(raw=base64.b64decode(output, validate=True), media_type=kind, filename=name)]
    else:
        parts = make_data_parts(output) or [Part(text=body.decode("utf-8", "replace"), media_type=JSON)]
    return Artifact(artifact_id=f"{task.id}.output", name="output", parts=parts)


def fail(task: Task, problem: Problem, renderer: ProblemRenderer, request_id: str, headers: RawHeaders = ()) -> None:
    """Set the state for a problem, and describe it: as text, and as data with all of its members."""
    described = describe(problem, renderer, request_id)
    question = described.get("confirmation")
    summary = question.get("summary") if isinstance(question, Mapping) else None
    words = "\n".join(str(text) for text in (described["detail"], summary, described["recovery"]) if text)
    own = tuple((name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in problem.headers)
    _set_headers(task, (*headers, *own))
    data = make_data_parts(described) or [Part(text=orjson.dumps(described).decode(), media_type=JSON)]
    set_state(task, _state_of(problem), [Part(text=words), *data])


def _state_of(problem: Problem) -> TaskState:
    if isinstance(problem, problems.JobCancelled):
        return CANCELED
    if problem.lacks:
        return _WAITING[problem.lacks]
    return REJECTED if problem.is_refusal else TaskState.TASK_STATE_FAILED


def describe(problem: Problem, renderer: ProblemRenderer, request_id: str) -> dict[str, object]:
    """Return the members of a problem as JSON values."""
    described: dict[str, object] = orjson.loads(renderer.reply(problem, "", request_id).body)
    return described


def make_data_parts(value: object) -> list[Part]:
    """Return one part with a JSON value, or none if the value is too deep or not exact in protobuf.

    The SDK's `new_data_part` takes twice the time, in protobuf's `ParseDict`.
    """
    part = Part(media_type=JSON)
    waiting: list[tuple[Value, object, int]] = [(part.data, value, 0)]  # destination, value, depth
    while waiting:
        into, value, depth = waiting.pop()
        if isinstance(value, str):
            into.string_value = value
        elif isinstance(value, bool):
            into.bool_value = value
        elif isinstance(value, (int, float)):
            if isinstance(value, int) and abs(value) > EXACT:
                return []
            into.number_value = value
        elif value is None:
            into.null_value = NullValue.NULL_VALUE
        elif depth == MAX_DEPTH:
            return []
        elif isinstance(value, dict):
            into.struct_value.SetInParent()
            fields = into.struct_value.fields
            waiting += [(fields[name], member, depth + 1) for name, member in value.items()]
        elif isinstance(value, list):
            into.list_value.SetInParent()
            waiting += [(into.list_value.values.add(), member, depth + 1) for member in value]
    return [part]


def _set_headers(task: Task, headers: RawHeaders) -> None:
    """Put the headers of the HTTP answer into the task's metadata, under the same names."""
    task.ClearField("metadata")
    if not headers:
        return
    texts = header_members((name.decode("latin-1"), value.decode("latin-1")) for name, value in headers)
    if visible := {name: value for name, value in texts.items() if name not in _HIDDEN}:
        task.metadata.update({"headers": visible})
