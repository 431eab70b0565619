"""The records of tasks in the store of the site.

A known caller's tasks are listed, the newest MAX_LISTED. Those of unknown callers are not; they have less room and less
time, and are counted for each address.
"""

import asyncio
import logging
import math
import re
from collections.abc import AsyncGenerator
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final

import orjson
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError

from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.plugin import Context
from awp_publish.plugins.a2a.record import TaskRecord, progress_of
from awp_publish.plugins.a2a.tasks import (
    CANCELED,
    INTERRUPTED,
    SUBMITTED,
    TERMINAL,
    WORKING,
    complete,
    fail,
    progress_parts,
    set_state,
)
from awp_publish.problems import RateLimited, StoreUnavailable, in_seconds
from awp_publish.stores.store import Count, Counted, Look, Step, Swap
from awp_publish.stores.values import change_value, read_value, replacement

MAX_LISTED: Final = 200

MAX_ANONYMOUS_TASKS: Final = 1000
"""Tasks of unknown callers that are stored for one address, in ANONYMOUS_WINDOW seconds."""

ANONYMOUS_WINDOW: Final = 3600.0
"""Seconds for which a task of an unknown caller is stored, unless it has a job."""

TASK_SECONDS: Final = 86_400.0
"""Seconds for which a task can be read after its last change."""

MAX_PENDING: Final = 604_800.0
"""Seconds for which a job may wait to be run (`JobStore`)."""

LATE: Final = 60.0
"""Seconds after an action's deadline for which its running task is stored."""

FIRST_PAUSE: Final = 0.05

MAX_PAUSE: Final = 2.0
"""Seconds between two polls of a task. Jobs write their progress no more often."""

CANCEL_INTERVAL: Final = 1.0
"""Seconds between a worker's checks whether its task was cancelled at another worker."""

logger: Final = logging.getLogger("awp_publish.calls")

_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Tasks:
    """The tasks of one site. Every method raises StoreUnavailable."""

    def __init__(self, door: Context, renderer: ProblemRenderer) -> None:
        background = door.ask("jobs")
        self._jobs: Any = background.jobs if background is not None else None
        self._store = door.guards.store
        self._seconds = TASK_SECONDS
        self._timeouts = {action.id: action.timeout for action in door.catalog.actions}
        self._renderer = renderer

    async def find(self, task_id: str, caller: str) -> TaskRecord:
        """Return a task to its caller; an unknown caller's task needs only its id. Raises TaskNotFoundError."""
        raw = (await self._store.run((Look(_key(task_id)),))).seen[0] if _ID.fullmatch(task_id) else None
        record = TaskRecord.read(raw) if isinstance(raw, bytes) else None
        if record is None or not (record.is_open or record.owner in ("", caller)):
            raise TaskNotFoundError("There is no such task, it has expired, or it belongs to another caller.")
        return record

    async def refresh(self, record: TaskRecord) -> TaskRecord:
        """Return a task with the present state of its job. Raises TaskNotFoundError if that is gone."""
        if not record.job or record.state in TERMINAL or self._jobs is None:
            return record
        try:
            job = await self._jobs.show(record.job, record.owner)
        except self._jobs.Unknown as problem:
            raise TaskNotFoundError(problem.detail) from problem
        task = record.task
        if job.result is not None:
            complete(task, job.result.body, job.result.headers)
        elif job.problem is not None:
            fail(task, job.problem, self._renderer, job.request_id)
        else:
            parts = progress_parts(job.progress) if job.progress is not None else []
            task.status.ClearField("message")
            set_state(task, SUBMITTED if job.status == "accepted" else WORKING, parts)
        task.status.timestamp.FromDatetime(job.updated)
        # What is too large to be stored in the task can be read from the job.
        if job.has_ended and task.ByteSize() <= record.max_bytes and not await self.put(record):
            return await self.find(task.id, record.owner)
        return record

    async def listed(self, caller: str) -> list[TaskRecord]:
        """Return the tasks of a known caller, without damaged ones."""
        task_ids = _read_list(await read_value(self._store, _list_key(caller))) if caller else []
        records = []
        for raw in (await self._store.run([Look(_key(task_id)) for task_id in task_ids])).seen:
            with suppress(StoreUnavailable):
                records += [TaskRecord.read(raw)] if isinstance(raw, bytes) else []
        tasks = list[TaskRecord]()
        for record in records:
            if record.owner == caller:
                with suppress(TaskNotFoundError):
                    record = await self.refresh(record)
                tasks.append(record)
        return tasks

    async def put(self, record: TaskRecord, address: str | None = None) -> bool:
        """Store a task in place of the version that was read. Returns False if others have changed it, except by a
        cancel mark.

        With an `address`, a new task of an unknown caller is counted for it. Raises RateLimited if there are too many.
        """
        key, raw, seconds = _key(record.task.id), record.write(), self.seconds_of(record)
        while True:
            steps: list[Step] = [replacement(key, record.raw or None, raw, seconds)]
            if address is not None and not record.owner and not record.raw:
                steps.insert(0, Count(f"a2a:kept:{address}", MAX_ANONYMOUS_TASKS, ANONYMOUS_WINDOW))
            ran = await self._store.run(steps)
            if ran.failed is None:
                break
            seen = ran.seen[-1]
            if isinstance(seen, Counted):
                wait = max(1, math.ceil(seen.seconds_left))
                raise RateLimited(
                    f"The site keeps {MAX_ANONYMOUS_TASKS} tasks an hour for anonymous callers from one address. The "
                    f"next is possible in {in_seconds(wait)}, or with credentials.",
                    headers=[("Retry-After", str(wait))],
                    members={"retry_after": wait},
                )
            if not record.raw or seen != record.marked:
                return False
            record.raw = record.marked
        record.raw = raw
        if record.owner != record.listed:
            await self._enlist(record)
        return True

    async def remove(self, record: TaskRecord) -> None:
        """Delete a task, if it has not changed since."""
        await self._store.run((Swap(_key(record.task.id), record.raw, None),))

    async def changes(self, record: TaskRecord, patience: float = 0.0) -> AsyncGenerator[TaskRecord, None]:
        """Yield a task after each change, until it has ended or waits for its caller.

        The task is a background job, of this process or another, or a call that another request waits for. A task that
        waits for its caller is followed too, for at most `patience` seconds.
        """
        pause, previous, waited = FIRST_PAUSE, progress_of(record), 0.0
        while record.state not in TERMINAL and (record.state not in INTERRUPTED or waited < patience):
            await asyncio.sleep(pause)
            waited = waited + pause if record.state in INTERRUPTED else 0.0
            pause = min(pause * 1.5, MAX_PAUSE)
            record = await (self.refresh(record) if record.job else self.find(record.task.id, record.owner))
            now = progress_of(record)
            if now != previous:
                pause, waited = FIRST_PAUSE, 0.0
                yield record
            previous = now

    async def wait(self, record: TaskRecord, seconds: float) -> TaskRecord:
        """Return a task when it has ended or waits for its caller, or its present state if that takes too long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                async for changed in self.changes(record):
                    record = changed
        return await self.refresh(record)

    async def cancel(self, record: TaskRecord) -> None:
        """End a waiting task, and request the end of a running one. Raises TaskNotCancelableError.

        The worker that runs it finds the mark in the record (`cancelled`), or the job's.
        """
        if record.state in TERMINAL:
            raise TaskNotCancelableError("The task has ended.")
        if record.job and self._jobs is not None:
            try:
                await self._jobs.cancel(record.job, record.owner)
            except self._jobs.Ended as problem:
                raise TaskNotCancelableError(problem.detail) from problem
        elif record.state in INTERRUPTED:
            set_state(record.task, CANCELED)
            record.input = None
            if not await self.put(record):
                raise TaskNotCancelableError("The task is processing another message.")
        elif not record.is_cancelled:
            marked = Swap(_key(record.task.id), record.raw, record.marked, self.seconds_of(record))
            await self._store.run((marked,))  # `changes` reports a change in the meantime

    async def cancelled(self, record: TaskRecord) -> None:
        """Return once a task that this worker runs has the mark of a CancelTask."""
        while True:
            await asyncio.sleep(CANCEL_INTERVAL)
            with suppress(StoreUnavailable, TaskNotFoundError):
                if (await self.find(record.task.id, record.owner)).is_cancelled:
                    return

    def seconds_of(self, record: TaskRecord) -> float:
        """Return how long a task is stored: its record has to outlive its job or its call."""
        if record.job:
            return self._seconds + (0.0 if record.state in TERMINAL else MAX_PENDING)
        if record.state == WORKING and record.skill in self._timeouts:
            return self._timeouts.get(record.skill, 0.0) + LATE
        return self._seconds if record.owner else min(self._seconds, ANONYMOUS_WINDOW)

    async def _enlist(self, record: TaskRecord) -> None:
        """Put a task into its caller's list, which is stored for as long as any of its tasks may be."""
        key, seconds = _list_key(record.owner), self._seconds + (MAX_PENDING if self._jobs is not None else 0.0)

        async def with_task(value: bytes | None) -> bytes:
            return orjson.dumps([record.task.id, *_read_list(value)][:MAX_LISTED])

        await change_value(self._store, key, with_task, seconds)
        record.listed = record.owner


def _read_list(raw: bytes | None) -> list[str]:
    """Return a caller's list of task ids; a damaged list is empty."""
    if raw is None:
        return []
    with suppress(ValueError):
        listed = orjson.loads(raw)
        if isinstance(listed, list) and all(isinstance(task_id, str) for task_id in listed):
            return listed
    logger.error("a caller's list of tasks cannot be read")
    return []


def _key(task_id: str) -> str:
    return f"a2a:task:{task_id}"


def _list_key(caller: str) -> str:
    """Return the key of a caller's list, hashed because callers' ids can have any length."""
    return f"a2a:tasks:{sha256(caller.encode('utf-8', 'surrogatepass')).hexdigest()}"
