"""Tasks that go on after their message was answered: how they stand, waiting for their end, cancelling them.

Behind such a task is a background job, of this process or of another, or a call that another request waits for.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Final

from a2a.types.a2a_pb2 import Task
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError

from awp_publish.jobs import Jobs
from awp_publish.problems import JobEnded, UnknownJob
from awp_publish.serve import a2a_states as states
from awp_publish.serve.a2a_exchange import A2aExchange
from awp_publish.serve.a2a_runs import Runs
from awp_publish.serve.a2a_tasks import ANONYMOUS_WINDOW, Kept, Tasks, most_bytes
from awp_publish.serve.live import Surroundings

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
        self._telling = states.telling_of(surroundings.catalog)
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
        states.show_job(task, job, self._telling)
        fresh = replace(kept, task=task)
        if not job.has_ended or task.ByteSize() > most_bytes(kept.owner):
            return fresh  # the job has what would not be kept of the task
        return await self._tasks.put(fresh, self._seconds) or await self._tasks.find(task.id, kept.owner)

    async def changes(self, kept: Kept) -> AsyncGenerator[Kept, None]:
        """The task each time that it tells something new, until it has ended or waits for its caller."""
        pause = FIRST_PAUSE
        while kept.task.status.state not in states.TERMINAL | states.INTERRUPTED:
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
        if kept.task.status.state in states.INTERRUPTED:
            return await self._cancel_waiting(kept)
        run = self._runs.find(kept.task.id)
        if run is not None:
            run.call_off()
            await asyncio.wait((run.settled,), timeout=CANCELLING)
        ended = await self._tasks.find(kept.task.id, kept.owner)
        if ended.task.status.state != states.CANCELED:
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
        states.set_state(task, states.CANCELED)
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
