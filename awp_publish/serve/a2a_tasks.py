"""Tasks in the site's store: each under its id, seen by the caller whose it is, gone when its time is over.

What only we have to know of a task (whose it is, which skill it asked for with which input, its job) is a line of JSON
before the task's own bytes. A known caller's tasks are listed, the newest MOST_LISTED; nobody lists those of nobody.
"""

import logging
import re
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Final

import orjson
from a2a.types.a2a_pb2 import Task
from a2a.utils.errors import TaskNotFoundError
from google.protobuf.message import DecodeError

from awp_publish.model import JsonObject
from awp_publish.problems import StoreUnavailable
from awp_publish.serve.a2a_states import TERMINAL
from awp_publish.stores.store import Add, Look, Step, Store, Swap

MOST_LISTED: Final = 200
MOST_TRIES: Final = 5
"""Times that a caller's list is changed against others who change it; a task that is not listed is found by its id."""

logger: Final = logging.getLogger("awp_publish.calls")

_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Kept:
    """A task as it is kept. `owner` is the id of its caller, "" for nobody known; `raw` the bytes in the store."""

    task: Task
    owner: str = ""
    skill: str = ""
    input: JsonObject = field(default_factory=dict)
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

    async def put(self, kept: Kept, seconds: float) -> Kept | None:
        """Keep a task for `seconds`, in place of the bytes that it has; None if these are not there any more."""
        written = replace(kept, raw=_write(kept))
        step: Step
        if kept.raw:
            step = Swap(_key(kept.task.id), kept.raw, written.raw, seconds)
        else:
            step = Add(_key(kept.task.id), written.raw, seconds)
        ran = await self._store.run((step,))
        if ran.failed is not None:
            return None
        if kept.owner and kept.owner != _owner_in(kept.raw):
            await self._enlist(kept.owner, kept.task.id, seconds)
        return written

    async def listed(self, caller: str) -> list[Kept]:
        """The tasks of a known caller."""
        raw = await self._read_list(caller) if caller else None
        if raw is None:
            return []
        ran = await self._store.run([Look(_key(task_id)) for task_id in orjson.loads(raw)])
        found = [_read(value) for value in ran.seen if isinstance(value, bytes)]
        return [kept for kept in found if kept is not None and kept.owner == caller]

    async def _look(self, task_id: str) -> Kept | None:
        raw = (await self._store.run((Look(_key(task_id)),))).seen[0]
        return _read(raw) if isinstance(raw, bytes) else None

    async def _read_list(self, caller: str) -> bytes | None:
        raw = (await self._store.run((Look(_list_key(caller)),))).seen[0]
        return raw if isinstance(raw, bytes) else None

    async def _enlist(self, caller: str, task_id: str, seconds: float) -> None:
        for _ in range(MOST_TRIES):
            raw = await self._read_list(caller)
            listed = [task_id, *(orjson.loads(raw) if raw is not None else ())][:MOST_LISTED]
            key, changed = _list_key(caller), orjson.dumps(listed)
            step = Add(key, changed, seconds) if raw is None else Swap(key, raw, changed, seconds)
            if (await self._store.run((step,))).failed is None:
                return


async def put_if_possible(tasks: Tasks, kept: Kept, seconds: float) -> Kept | None:
    """Keep a task whose call was made: a store that is away must not cost its caller the answer."""
    try:
        return await tasks.put(kept, seconds)
    except StoreUnavailable as problem:
        logger.warning("task %s is not kept: %s", kept.task.id, problem)
        return kept


def _key(task_id: str) -> str:
    return f"a2a:task:{task_id}"


def _list_key(caller: str) -> str:
    """Callers have names of their own choosing, of any length."""
    return f"a2a:tasks:{sha256(caller.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _write(kept: Kept) -> bytes:
    head = {"owner": kept.owner, "skill": kept.skill, "input": kept.input, "job": kept.job}
    return orjson.dumps(head) + b"\n" + kept.task.SerializeToString()


def _owner_in(raw: bytes) -> str:
    """For whom the task of some bytes was listed: a task begins as nobody's where its caller was not known yet."""
    return str(orjson.loads(raw.partition(b"\n")[0])["owner"]) if raw else ""


def _read(raw: bytes) -> Kept | None:
    head, _, body = raw.partition(b"\n")
    try:
        told = orjson.loads(head)
        return Kept(Task.FromString(body), told["owner"], told["skill"], told["input"], told["job"], raw)
    except (ValueError, KeyError, TypeError, DecodeError) as error:
        logger.error("a task's record cannot be read: %s", type(error).__name__)
        return None
