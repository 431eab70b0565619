"""`Worker`: takes due jobs from the store and hands them to a carrier, a few at a time. One per event loop."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Final, Protocol, TypeAlias

from awp_publish.calls.progress import Report, open_report
from awp_publish.plugins.jobs.job import Job, JobResult, Status, Stored, UnreadableJob
from awp_publish.plugins.jobs.jobs import FORGET_SECONDS, LEASED, MAX_FORGOTTEN, MORE, QUEUE, IsRepeatable, JobStore
from awp_publish.problems import HandlerFailed, JobCancelled, Problem, StoreUnavailable
from awp_publish.stores.store import JOB, Look

# The handler runs in a task of its own, supervised by another one, which wakes up for the heartbeat, for a cancellation
# and for the end. A handler that ignores its cancellation (a thread cannot be stopped) is waited for until the process
# has to end.
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

    async def reclaim(self, job_id: str, taken: datetime) -> None:
        """Decide about a job whose lease has ended. Raises StoreUnavailable."""
        await self.jobs.reclaim(job_id, self._is_repeatable, taken)

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


MAX_RECLAIMED: Final = 32
"""Jobs whose lease has ended that are looked at together."""

MAX_WAIT: Final = 15.0
"""Maximum seconds between two attempts to reach an unavailable store."""


class Carrier(Protocol):
    """Handles a job that was taken: runs it here (`Runner`) or sends it to another process (`TaskiqQueue`)."""

    async def carry(self, job_id: str) -> None:
        """Handle a job that was taken. Raises StoreUnavailable."""

    async def reclaim(self, job_id: str, taken: datetime) -> None:
        """Decide about a job whose lease was found at `taken` to have ended. Raises StoreUnavailable."""

    def stop(self) -> None:
        """Accept no more jobs."""

    def interrupt(self) -> None:
        """Stop what is running."""


class Worker:
    """Looks for due jobs in the store every `poll` seconds, and at once when this process accepts a job.

    At most `concurrency` jobs are carried at a time; with two or more slots, one caller's jobs leave one to others.
    Whoever starts a worker must stop it.
    """

    def __init__(
        self, jobs: JobStore, carrier: Carrier, *, concurrency: int = 4, poll: float = 1.0, lease: float | None = None
    ) -> None:
        self._jobs = jobs
        self._carrier = carrier
        self._most = concurrency
        self._poll = poll
        self._lease = jobs.lease_seconds if lease is None else lease
        self._wake = asyncio.Event()
        self._carried: dict[asyncio.Task[None], str] = {}
        """The tasks that carry jobs, and the queue from which each job was taken."""
        self._server: asyncio.Task[None] | None = None
        self._is_stopping = False
        self._may_have_more: set[str] = set()
        self._is_away = False
        self._forget_at = 0.0

    def start(self) -> None:
        """Start working in the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._unlisten = self._jobs.listen(self._wake_up)
        self._server = self._loop.create_task(self._serve(), name="awp_publish worker")

    @property
    def is_working(self) -> bool:
        """True between start and stop, unless the event loop ended without stopping the worker."""
        return self._server is not None and not self._server.done() and not self._loop.is_closed()

    async def stop(self, grace: float = 10.0) -> None:
        """Take no more jobs, wait `grace` seconds for those that run, then stop them. Returns when all have ended."""
        server, self._server = self._server, None
        if server is None:
            return
        self._unlisten()
        self._is_stopping = True
        self._carrier.stop()
        self._wake.set()
        try:
            await self._wait_for(server, grace)
            self._carrier.interrupt()
            await self._wait_for(server, 2 * SETTLE_SECONDS)
        finally:
            tasks = {server, *self._carried}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _wait_for(self, server: asyncio.Task[None], seconds: float) -> None:
        """Wait for the server and all jobs in hand, those included that it is just taking: they have to be put back."""
        end = self._loop.time() + seconds
        while tasks := {task for task in (server, *self._carried) if not task.done()}:
            await asyncio.wait(tasks, timeout=max(0.0, end - self._loop.time()))
            if self._loop.time() >= end:
                return

    def _wake_up(self) -> None:
        """Look for jobs at once. May be called from any thread."""
        try:
            self._loop.call_soon_threadsafe(self._wake.set)
        except RuntimeError:  # the loop has ended without stopping its worker
            self._unlisten()

    async def _serve(self) -> None:
        while not self._is_stopping:
            self._wake.clear()
            try:
                now = self._jobs.clock()
                ended = await self._jobs.store.take(LEASED, self._lease, MAX_RECLAIMED)
                await asyncio.gather(*(self._handle(self._carrier.reclaim, job_id, now) for job_id in ended))
                for queue in (QUEUE, MORE):
                    free = self._free(queue)
                    if free <= 0:
                        continue
                    taken = await self._jobs.store.take(queue, self._lease, free)
                    self._is_away = False
                    self._may_have_more.discard(queue)
                    if len(taken) >= free:
                        self._may_have_more.add(queue)
                    for job_id in taken:
                        task = self._loop.create_task(self._handle(self._carrier.carry, job_id))
                        self._carried[task] = queue
                        task.add_done_callback(self._release)
                if self._loop.time() >= self._forget_at:
                    is_all = await self._jobs.forget() < MAX_FORGOTTEN
                    self._forget_at = self._loop.time() + FORGET_SECONDS * is_all
            except StoreUnavailable:
                await self._wait_for_store()
            except Exception:
                logger.exception("looking for jobs failed and will be retried")
                await self._pause(self._poll)
            else:
                if len(ended) < MAX_RECLAIMED and not any(self._free(queue) > 0 for queue in self._may_have_more):
                    await self._pause(self._poll)

    def _free(self, queue: str) -> int:
        """Return how many jobs of a queue may be taken.

        Those in MORE leave two slots free: one for the turn of their own caller, one for the turns of others. A worker
        with fewer slots takes them only if there is nothing else to do.
        """
        free = self._most - len(self._carried)
        if queue != MORE:
            return free
        more = sum(taken_from == MORE for taken_from in self._carried.values())
        return min(free, max(self._most - 2 - more, 0 if self._carried else 1))

    def _release(self, task: asyncio.Task[None]) -> None:
        del self._carried[task]
        if self._may_have_more:
            self._wake.set()

    async def _handle(self, handle: Callable[..., Awaitable[None]], job_id: str, *also: datetime) -> None:
        try:
            await handle(job_id, *also)
        except StoreUnavailable:
            self._note_outage()  # the job is due again when its lease ends
        except Exception:
            logger.exception("job %s could not be handled and will be retried", job_id)

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    def _note_outage(self) -> None:
        if not self._is_away:
            logger.warning("the store is unavailable: background jobs wait for it")
        self._is_away = True

    async def _wait_for_store(self) -> None:
        """Poll until the store is back, then leave time for heartbeats of runs that survived the outage."""
        self._note_outage()
        seconds = min(self._poll, MAX_WAIT)
        while not self._is_stopping:
            try:
                await self._jobs.store.run((Look(JOB),))
                break
            except StoreUnavailable:
                await self._sleep(seconds)
                seconds = min(seconds * 2, MAX_WAIT)
        if not self._is_stopping:
            logger.warning("the store is available again: background jobs resume")
            await self._sleep(2 * self._jobs.beat_seconds)

    async def _sleep(self, seconds: float) -> None:
        end = self._loop.time() + seconds
        while not self._is_stopping and (left := end - self._loop.time()) > 0:
            self._wake.clear()
            await self._pause(left)
