"""`Runner`: runs jobs in this process. One per event loop.

A handler runs in a task of its own, supervised by another one, which wakes up for the heartbeat, for a cancellation and
for the end. A handler that ignores its cancellation (a thread cannot be stopped) is waited for until the process has to
end.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Final, TypeAlias

from awp_publish.calls.progress import Report, open_report
from awp_publish.plugins.jobs.job import Job, JobResult, Status, Stored, UnreadableJob
from awp_publish.plugins.jobs.jobs import IsRepeatable, JobStore
from awp_publish.problems import HandlerFailed, JobCancelled, Problem, StoreUnavailable

logger: Final = logging.getLogger("awp_publish.plugins.jobs")

SETTLE_SECONDS: Final = 3.0
"""Seconds that a stopping process waits for handlers that it has cancelled."""

FIRST_BEAT: Final = 0.25
"""Seconds until the first heartbeat, early enough to show a short job's progress; the interval then doubles."""

Ended: TypeAlias = JobResult | Problem

Run: TypeAlias = Callable[[Job], Awaitable[Ended]]
"""Carries out a job's call and returns its result or problem. A problem may also be raised."""


class Runner:
    """Runs jobs in this process. One per event loop."""

    def __init__(self, jobs: JobStore, run: Run, is_repeatable: IsRepeatable) -> None:
        self.jobs = jobs
        self._run = run
        self._is_repeatable = is_repeatable
        self._runs: set[JobRun] = set()
        self._is_stopping = False

    async def carry(self, job_id: str) -> None:
        """Run a job that was taken if it still has to be run. Returns when it has ended. Raises StoreUnavailable."""
        if self._is_stopping:
            await self.jobs.postpone(job_id, 0.0)
            return
        await self._carry(await self.jobs.pick(job_id, self._is_repeatable))

    async def reclaim(self, job_id: str, taken_at: datetime) -> None:
        """Decide about a job whose lease has ended. Raises StoreUnavailable."""
        await self.jobs.reclaim(job_id, self._is_repeatable, taken_at)

    async def carry_accepted(self, job_id: str) -> None:
        """Run a job that another process found to be due, if it still waits."""
        try:
            stored = await self.jobs.look(job_id)
        except UnreadableJob:
            return
        if stored is None or stored.job.status != "accepted" or self._is_repeatable(stored.job.action) is None:
            return  # of an action that this version of the site has not got, it waits to be sent again
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
        """Start no more runs."""
        self._is_stopping = True

    def interrupt(self) -> None:
        """Stop the current runs. Repeatable jobs go back to the queue, others end as JobInterrupted."""
        self._is_stopping = True
        for run in tuple(self._runs):
            run.stop()


class JobRun:
    """One run of a job in this process."""

    def __init__(self, jobs: JobStore, stored: Stored, run: Run, is_repeatable: bool) -> None:
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

    def cancel(self) -> None:
        """Cancel the handler, because the caller asked for it. May be called from any thread."""
        with suppress(RuntimeError):  # the loop has ended, and the run with it
            self._loop.call_soon_threadsafe(self._cancel_handler)

    def stop(self) -> None:
        """Cancel the handler, because the process has to end."""
        self._is_stopping = True
        self._wake.set()
        self._handler.cancel()

    def _cancel_handler(self) -> None:
        if not self._is_cancelled:
            self._is_cancelled = True
            self._handler.cancel()

    async def look_after(self) -> None:
        """Run the job until its end is in the store, or until another worker has it."""
        self._jobs.enter(self._stored.job.id, self)
        try:
            while not self._handler.done() and not self._is_stopping:
                # Until the next heartbeat, the handler's end, or a call of `stop`.
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._until_beat):
                        await self._wake.wait()
                self._wake.clear()
                self._until_beat = min(2 * self._until_beat, self._jobs.beat_seconds)
                if self._handler.done() or self._is_stopping or self._is_lost:
                    continue
                try:
                    beaten = await self._jobs.beat(self._as_reported())
                    if beaten is not None:
                        self._stored = beaten
                    elif await self._catch_up() and self._stored.job.cancel_requested:
                        self._cancel_handler()
                except StoreUnavailable:
                    logger.debug("job %s: no heartbeat, the store is unavailable", self._stored.job.id)
            if not self._handler.done():
                await asyncio.wait({self._handler}, timeout=SETTLE_SECONDS)
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

    def _as_reported(self) -> Stored:
        """Return the job with its handler's latest progress, beside the bytes that the store has."""
        progress = self._report.latest or self._stored.job.progress
        return Stored(replace(self._stored.job, progress=progress), self._stored.raw)

    async def _catch_up(self) -> bool:
        """Read the record again after somebody changed it. Returns False if another run owns the job now."""
        try:
            stored = await self._jobs.look(self._stored.job.id)
        except UnreadableJob:
            stored = None
        if stored is None or stored.job.worker != self.token:
            logger.warning("job %s now belongs to another worker; its result here is dropped", self._stored.job.id)
            self._is_lost = True
            self._handler.cancel()
            return False
        self._stored = stored
        return True

    async def _conclude(self) -> None:
        """Record how the run ended. Waits for an unavailable store as long as the process runs."""
        is_logged = False
        while not self._is_lost:
            try:
                while not await self._write_end() and await self._catch_up():
                    pass
                return
            except StoreUnavailable:
                if not is_logged:
                    logger.warning(
                        "job %s has ended, but the store is unavailable; recording is retried", self._stored.job.id
                    )
                is_logged = True
            if self._is_stopping:
                return
            await asyncio.sleep(self._jobs.beat_seconds)

    async def _write_end(self) -> bool:
        """Write the end. Returns False if somebody else changed the record meanwhile."""
        status: Status = "failed"
        if self._handler.done() and not self._handler.cancelled():
            ended = self._handler.result()
            status = "failed" if isinstance(ended, Problem) else "done"
        elif self._is_cancelled or self._stored.job.cancel_requested:
            status, ended = "cancelled", JobCancelled("The job was cancelled at its caller's request.")
        elif self._is_stopping:
            await self._jobs.give_up(self._stored, self._is_repeatable, on_purpose=True)
            return True
        else:
            ended = HandlerFailed(f"Action {self._stored.job.action} was cancelled from within.")
        return await self._jobs.end(self._as_reported(), status, ended) is not None
