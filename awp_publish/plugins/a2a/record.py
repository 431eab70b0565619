"""The record of a task: one line of JSON with our own data, followed by the task's own bytes.

It is limited in size: data and files in a caller's messages are left out, then the oldest history; an output that is
too large is returned once and not stored. Whoever has the id of an unknown caller's task can read it, so nothing of its
input is stored.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Self

import orjson
from a2a.types.a2a_pb2 import (
    Artifact,
    Message,
    Part,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatusUpdateEvent,
)
from google.protobuf.message import DecodeError

from awp_publish.calls.progress import Progress
from awp_publish.model import JsonObject
from awp_publish.plugins.a2a.tasks import COMPLETED, WORKING, progress_parts, say, set_state
from awp_publish.stores.store import unavailable

MAX_BYTES: Final = 262_144
"""Bytes of a known caller's record."""

MAX_ANONYMOUS_BYTES: Final = 32_768
"""Bytes of an unknown caller's record."""

MAX_MESSAGE_BYTES: Final = 4096
"""Bytes of a message in a history."""

LEFT_OUT: Final = "[The content of this message is not stored.]"

logger: Final = logging.getLogger("awp_publish.calls")


@dataclass(slots=True)
class TaskRecord:
    """A task and our own data about it. `owner` is the id of its caller, "" for an unknown one.

    `input` is the input with which a waiting task continues, or None if its caller has to send it again. `raw` are the
    bytes in the store, `listed` is the caller whose list has the task, `is_cancelled` the mark of a CancelTask. `kept`
    is the output as it is stored, if that differs from the returned one. `is_open` means that the owner is known only
    by a session, which requests about the task do not contain: its id is sufficient.
    """

    task: Task
    owner: str = ""
    skill: str = ""
    input: JsonObject | None = None
    job: str = ""
    is_cancelled: bool = False
    is_open: bool = False
    listed: str = ""
    raw: bytes = field(default=b"", repr=False)
    redacted_artifact: Artifact | None = None

    @property
    def state(self) -> TaskState:
        return self.task.status.state

    @property
    def max_bytes(self) -> int:
        """Bytes that are stored of a task, of its input, and of its output."""
        return MAX_BYTES if self.owner else MAX_ANONYMOUS_BYTES

    @property
    def marked(self) -> bytes:
        """The record as it is in the store, with the mark of a CancelTask, which the next write removes."""
        head, _, body = self.raw.partition(b"\n")
        return head[:-1] + b',"cancelled":true}\n' + body

    @classmethod
    def read(cls, raw: bytes) -> Self:
        """Decode a record. Raises StoreUnavailable for a damaged one."""
        head, _, body = raw.partition(b"\n")
        try:
            facts = orjson.loads(head)
            owner, skill, arguments, job = (facts[name] for name in ("owner", "skill", "input", "job"))
            if not all(isinstance(text, str) for text in (owner, skill, job)) or not isinstance(arguments, dict | None):
                raise TypeError
            task = Task.FromString(body)
            return cls(task, owner, skill, arguments, job, "cancelled" in facts, "open" in facts, owner, raw)
        except (ValueError, KeyError, TypeError, DecodeError) as error:
            logger.error("a task's record cannot be read: %s", type(error).__name__)
            raise unavailable("The record of this task is damaged.") from error

    def write(self) -> bytes:
        """Encode a record in at most `max_bytes`: state, output, and as much of the newest history as fits."""
        task, is_known = self.task, bool(self.owner)
        facts = {"owner": self.owner, "skill": self.skill, "input": self.input, "job": self.job}
        head = orjson.dumps(facts | ({"open": True} if self.is_open else {}))
        room = self.max_bytes - len(head)
        compact = Task(id=task.id, context_id=task.context_id)
        compact.status.CopyFrom(task.status)
        if task.status.HasField("message"):
            compact.status.message.CopyFrom(_compact_message(task.status.message, is_known))
        if task.metadata.ByteSize() <= MAX_MESSAGE_BYTES:
            compact.metadata.CopyFrom(task.metadata)
            headers = (
                compact.metadata.fields["headers"].struct_value.fields if "headers" in compact.metadata.fields else {}
            )
            if "awp-session" in headers:  # issued only once
                del headers["awp-session"]
        artifacts = task.artifacts if self.redacted_artifact is None else [self.redacted_artifact]
        output = sum(artifact.ByteSize() for artifact in artifacts)
        if not output or output <= room - 3 * MAX_MESSAGE_BYTES:
            compact.artifacts.extend(artifacts)
        else:
            say(compact, f"The output was given when the task completed; its {output} bytes are too many to be kept.")
        room -= compact.ByteSize()
        history: list[Message] = []
        for message in reversed(task.history):
            shorter = _compact_message(message, is_known)
            room -= shorter.ByteSize() + 8
            if room < 0:
                break
            history.append(shorter)
        compact.history.extend(reversed(history))
        return head + b"\n" + compact.SerializeToString()


def _compact_message(message: Message, is_known: bool) -> Message:
    """Return a message as it is stored: an agent's whole if it is short, a known caller's texts.

    A text that is JSON is left out: it is the call, with its input and tokens.
    """
    of_agent = message.role == Role.ROLE_AGENT
    compact = Message(message_id=message.message_id, role=message.role)
    compact.task_id, compact.context_id = message.task_id, message.context_id
    if of_agent and message.ByteSize() <= MAX_MESSAGE_BYTES:
        compact.parts.extend(message.parts)
        return compact
    texts = [part.text for part in message.parts if part.text] if of_agent or is_known else []
    words = "\n".join(text for text in texts if of_agent or not text.lstrip().startswith("{"))
    if len(words) > MAX_MESSAGE_BYTES // 4:  # a character may have four bytes
        words = f"{words[: MAX_MESSAGE_BYTES // 4 - 1]}…"
    compact.parts.append(Part(text=words or LEFT_OUT))
    return compact


def progress_of(record: TaskRecord) -> tuple[object, ...]:
    """Return what a caller can see changing in a task. The messages of a job are made anew at each poll."""
    status = record.task.status
    return (status.state, [part.text for part in status.message.parts], record.job or status.message.message_id)


def progress_update(task: Task, progress: Progress) -> TaskStatusUpdateEvent:
    """Return the event of a stream for the progress of a running call."""
    snapshot = Task(id=task.id, context_id=task.context_id)
    set_state(snapshot, WORKING, progress_parts(progress))
    return TaskStatusUpdateEvent(task_id=task.id, context_id=task.context_id, status=snapshot.status)


def updates_of(task: Task) -> Iterator[TaskArtifactUpdateEvent | TaskStatusUpdateEvent]:
    """Yield the events of a stream for a task that has changed."""
    if task.status.state == COMPLETED:
        for artifact in task.artifacts:
            artifact_update = TaskArtifactUpdateEvent(task_id=task.id, context_id=task.context_id, last_chunk=True)
            artifact_update.artifact.CopyFrom(artifact)
            yield artifact_update
    update = TaskStatusUpdateEvent(task_id=task.id, context_id=task.context_id)
    update.status.CopyFrom(task.status)
    update.metadata.CopyFrom(task.metadata)
    yield update
