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
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Final

import orjson
from a2a.types.a2a_pb2 import Message, Part, Role, Task
from a2a.utils.errors import TaskNotFoundError
from google.protobuf.message import DecodeError

from awp_publish.model import JsonObject
from awp_publish.problems import RateLimited, StoreUnavailable
from awp_publish.serve.a2a_states import TERMINAL, say
from awp_publish.stores.store import Add, Count, Counted, Look, Step, Store, Swap, unavailable

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
