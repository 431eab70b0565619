"""One run of one job, and `Runner`, which starts them: heartbeat, cancellation, the end in the store.

A run is a task of its own beside the one that looks after it. Whoever looks after it wakes up for the heartbeat, for a
cancellation and for the end; a handler that does not heed its cancellation (a thread cannot be stopped) is waited for,
until the process has to end.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Final, TypeAlias

from awp_publish.jobs.jobs import IsRepeatable, Jobs
from awp_publish.jobs.progress import Report, open_report
from awp_publish.jobs.record import Job, JobResult, Status, Stored, Unreadable
from awp_publish.problems import HandlerFailed, JobCancelled, Problem, StoreUnavailable

logger: Final = logging.getLogger("awp_publish.jobs")

SETTLE_SECONDS: Final = 3.0
"""How long a stopping process waits for handlers that it has cancelled."""

FIRST_BEAT: Final = 0.25
"""Seconds until the first heartbeat, so that a short job's progress is seen; each pause is twice the one before."""

Ended: TypeAlias = JobResult | Problem
Run: TypeAlias = Callable[[Job], Awaitable[Ended]]
"""Carries out a job's call and tells what became of it. A problem may also be raised."""


class Runner:
    """Runs jobs in this process. One for each event loop."""

    def __init__(self, jobs: Jobs, run: Run, is_repeatable: IsRepeatable) -> None:
        self.jobs = jobs
        self._run = run
        self._is_repeatable = is_repeatable
        self._runs: set[JobRun] = set()
        self._is_stopping = False

    async def carry(self, job_id: str) -> None:
        """Run a job that is due, if it is to be run; returns when it has ended. Raises StoreUnavailable."""
        if self._is_stopping:
            await self.jobs.postpone(job_id, 0.0)
            return
        await self._carry(await self.jobs.reclaim(job_id, self._is_repeatable))

    async def carry_accepted(self, job_id: str) -> None:
        """Run a job that somebody else judged to be due, if it still waits."""
        try:
            stored = await self.jobs.look(job_id)
        except Unreadable:
            return
        if stored is None or stored.job.status != "accepted":
            return
        await self._carry(stored)

    async def _carry(self, waiting: Stored | None) -> None:
        if waiting is None:
            return
        repeatable = bool(self._is_repeatable(waiting.job.action))
        begun = await self.jobs.begin(waiting, repeatable)
        if begun is None:
            return
        if self._is_stopping:
            await self.jobs.give_up(begun, repeatable=True, on_purpose=True)  # nothing of it was done yet
            return
        run = JobRun(self.jobs, begun, self._run, repeatable)
        self._runs.add(run)
        try:
            await run.look_after()
        finally:
            self._runs.discard(run)

    def stop(self) -> None:
        """Begin no more runs."""
        self._is_stopping = True

    def interrupt(self) -> None:
        """Cut short what runs. Repeatable jobs go back to the queue, others end as JobInterrupted."""
        self._is_stopping = True
        for run in tuple(self._runs):
            run.stop()


class JobRun:
    """A job that this process runs."""

    def __init__(self, jobs: Jobs, stored: Stored, run: Run, is_repeatable: bool) -> None:
        self.token = stored.job.worker
        self._jobs = jobs
        self._stored = stored
        self._run = run
        self._is_repeatable = is_repeatable
        self._loop = asyncio.get_running_loop()
        self._report = Report()
        self._wake = asyncio.Event()
        self._is_cancelled = False
        self._is_stopping = False
        self._is_lost = False
        self._until_beat = min(FIRST_BEAT, jobs.beat_seconds)
        self._handler = self._loop.create_task(self._handle())
        self._handler.add_done_callback(lambda _: self._wake.set())

    # --- What others may tell it ---

    def cancel(self) -> None:
        """The caller does not want the job any more. May be called in any thread."""
        with suppress(RuntimeError):  # the loop has ended, and the run with it
            self._loop.call_soon_threadsafe(self._heed_caller)

    def stop(self) -> None:
        """The process has to end."""
        self._is_stopping = True
        self._wake.set()
        self._cut_short()

    def _heed_caller(self) -> None:
        if not self._is_cancelled:
            self._is_cancelled = True
            self._cut_short()

    def _cut_short(self) -> None:
        self._handler.cancel()

    # --- Looking after it ---

    async def look_after(self) -> None:
        """Run the job to its end in the store, or until the job is somebody else's."""
        self._jobs.enter(self._stored.job.id, self)
        try:
            await self._wait_for_handler()
            await self._conclude()
        except BaseException:
            self._handler.cancel()
            await asyncio.wait({self._handler}, timeout=SETTLE_SECONDS)
            raise
        finally:
            self._jobs.leave(self._stored.job.id, self)

    async def _handle(self) -> Ended:
        self._report = open_report()
        try:
            return await self._run(self._stored.job)
        except Problem as problem:
            return problem
        except Exception:
            job = self._stored.job
            logger.exception("job %s: action %s failed (request_id=%s)", job.id, job.action, job.request_id)
            return HandlerFailed(f"Action {job.action} failed. The site's log has the cause under this request_id.")

    async def _wait_for_handler(self) -> None:
        while not self._handler.done():
            if self._is_stopping:
                await asyncio.wait({self._handler}, timeout=SETTLE_SECONDS)
                return
            await self._pause()
            if not (self._handler.done() or self._is_stopping or self._is_lost):
                await self._beat()

    async def _pause(self) -> None:
        """Until the next heartbeat, the handler's end, or a word from outside."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._until_beat):
                await self._wake.wait()
        self._wake.clear()
        self._until_beat = min(2 * self._until_beat, self._jobs.beat_seconds)

    async def _beat(self) -> None:
        try:
            beaten = await self._jobs.beat(self._as_reported())
            if beaten is not None:
                self._stored = beaten
            elif await self._catch_up() and self._stored.job.cancel_requested:
                self._heed_caller()
        except StoreUnavailable:
            logger.debug("job %s: no heartbeat, the store is away", self._stored.job.id)

    def _as_reported(self) -> Stored:
        """The job with the last words of its handler, over the bytes that the store has."""
        progress = self._report.latest or self._stored.job.progress
        return Stored(replace(self._stored.job, progress=progress), self._stored.raw)

    async def _catch_up(self) -> bool:
        """Read the record again, which somebody changed. Whether the job is still ours."""
        try:
            stored = await self._jobs.look(self._stored.job.id)
        except Unreadable:
            stored = None
        if stored is None or stored.job.worker != self.token:
            logger.warning("job %s is no longer this worker's, what it did is dropped", self._stored.job.id)
            self._is_lost = True
            self._cut_short()
            return False
        self._stored = stored
        return True

    # --- Its end ---

    async def _conclude(self) -> None:
        """Write down how it ended. Waits for a store that is away, for as long as the process runs."""
        is_told = False
        while not self._is_lost:
            try:
                while not await self._write_end() and await self._catch_up():
                    pass
                return
            except StoreUnavailable:
                if not is_told:
                    logger.warning("job %s has ended, which the store cannot be told yet", self._stored.job.id)
                is_told = True
            if self._is_stopping:
                return
            await asyncio.sleep(self._jobs.beat_seconds)

    async def _write_end(self) -> bool:
        """Whether the record was as we knew it, so that the end is written."""
        if self._handler.done() and not self._handler.cancelled():
            ended = self._handler.result()
            return await self._end("failed" if isinstance(ended, Problem) else "done", ended)
        if self._is_cancelled or self._stored.job.cancel_requested:
            return await self._end("cancelled", JobCancelled("The job was cancelled at its caller's request."))
        if self._is_stopping:
            await self._jobs.give_up(self._stored, self._is_repeatable, on_purpose=True)
            return True
        return await self._end("failed", HandlerFailed(f"Action {self._stored.job.action} was cancelled from within."))

    async def _end(self, status: Status, ended: Ended) -> bool:
        return await self._jobs.end(self._as_reported(), status, ended) is not None
