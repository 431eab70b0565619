"""`Worker`: takes jobs that are due out of the store and has them carried, a few at a time. One for each event loop."""

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from typing import Final, Protocol, TypeAlias

from awp_publish.jobs.jobs import (
    MORE,
    QUEUE,
    IsRepeatable,
    Job,
    JobResult,
    JobStore,
    Progress,
    Status,
    Stored,
    UnreadableJob,
    printable,
)
from awp_publish.problems import HandlerFailed, JobCancelled, Problem, StoreUnavailable
from awp_publish.stores.store import Look

# --- `report_progress`: how a handler says how far it is ---
# What is reported is kept in memory; the heartbeat of the run takes it to the store. So reporting costs a handler
# nothing, however often it does it.

MAX_MESSAGE: Final = 500
"""Characters of a message that are kept."""


Listener: TypeAlias = Callable[[Progress], None]


class Report:
    """The last report of one run's handler. Written in the thread of the handler, where `listener` is called."""

    __slots__ = ("_listener", "latest")

    def __init__(self, listener: Listener | None = None) -> None:
        self.latest: Progress | None = None
        self._listener = listener

    def note(self, progress: Progress) -> None:
        self.latest = progress
        if self._listener is not None:
            self._listener(progress)


_REPORT: Final[ContextVar[Report | None]] = ContextVar("awp_publish_job_report", default=None)


def open_report(listener: Listener | None = None) -> Report:
    """From now on, what is reported in this task and what it starts is kept in the report that is returned."""
    report = Report(listener)
    _REPORT.set(report)
    return report


def report_progress(fraction: float, message: str = "") -> None:
    """Say how far the job is that is being run: `fraction` from 0 to 1, and a word for people.

    For use in handlers, `async def` and plain ones. Outside of a background job it is told to callers of the MCP door
    who ask for progress, and else to nobody. Raises ValueError for a fraction that is none.
    """
    if not 0 <= fraction <= 1:
        raise ValueError(f"A fraction lies between 0 and 1, which {fraction!r} does not.")
    report = _REPORT.get()
    if report is not None:
        report.note(Progress(float(fraction), printable(message[:MAX_MESSAGE])))


# --- How a worker process is told to end ---

STOP: Final = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def set_on_signal(stopping: asyncio.Event) -> Iterator[None]:
    """SIGTERM and SIGINT set the event. For the main thread."""
    loop = asyncio.get_running_loop()
    for number in STOP:
        loop.add_signal_handler(number, stopping.set)
    try:
        yield
    finally:
        for number in STOP:
            loop.remove_signal_handler(number)


async def wait_for_signal() -> None:
    """Return when the process is to end."""
    stopping = asyncio.Event()
    with set_on_signal(stopping):
        await stopping.wait()


# --- One run of one job, and `Runner`, which starts them: heartbeat, cancellation, the end in the store ---
# A run is a task of its own beside the one that looks after it. Whoever looks after it wakes up for the heartbeat,
# for a cancellation and for the end; a handler that does not heed its cancellation (a thread cannot be stopped) is
# waited for, until the process has to end.

logger: Final = logging.getLogger("awp_publish.jobs")

SETTLE_SECONDS: Final = 3.0
"""Seconds that a stopping process waits for handlers that it has cancelled."""

FIRST_BEAT: Final = 0.25
"""Seconds until the first heartbeat, so that a short job's progress is seen; each pause is twice the one before."""

Ended: TypeAlias = JobResult | Problem
Run: TypeAlias = Callable[[Job], Awaitable[Ended]]
"""Carries out a job's call and tells what became of it. A problem may also be raised."""


class Runner:
    """Runs jobs in this process. One for each event loop."""

    def __init__(self, jobs: JobStore, run: Run, is_repeatable: IsRepeatable) -> None:
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
        except UnreadableJob:
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

    # --- What others may tell it ---

    def cancel(self) -> None:
        """The caller does not want the job any more. May be called in any thread."""
        with suppress(RuntimeError):  # the loop has ended, and the run with it
            self._loop.call_soon_threadsafe(self._cancel_handler)

    def stop(self) -> None:
        """The process has to end."""
        self._is_stopping = True
        self._wake.set()
        self._handler.cancel()

    def _cancel_handler(self) -> None:
        if not self._is_cancelled:
            self._is_cancelled = True
            self._handler.cancel()

    # --- Looking after it ---

    async def look_after(self) -> None:
        """Run the job to its end in the store, or until the job is somebody else's."""
        self._jobs.enter(self._stored.job.id, self)
        try:
            while not self._handler.done() and not self._is_stopping:
                # Until the next heartbeat, the handler's end, or a word from outside.
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
                    logger.debug("job %s: no heartbeat, the store is away", self._stored.job.id)
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
        """The job with the last words of its handler, over the bytes that the store has."""
        progress = self._report.latest or self._stored.job.progress
        return Stored(replace(self._stored.job, progress=progress), self._stored.raw)

    async def _catch_up(self) -> bool:
        """Read the record again, which somebody changed. Returns False if the job is no longer ours."""
        try:
            stored = await self._jobs.look(self._stored.job.id)
        except UnreadableJob:
            stored = None
        if stored is None or stored.job.worker != self.token:
            logger.warning("job %s is no longer this worker's, what it did is dropped", self._stored.job.id)
            self._is_lost = True
            self._handler.cancel()
            return False
        self._stored = stored
        return True

    # --- Its end ---

    async def _conclude(self) -> None:
        """Write down how it ended. Waits for a store that is away, for as long as the process runs."""
        is_logged = False
        while not self._is_lost:
            try:
                while not await self._write_end() and await self._catch_up():
                    pass
                return
            except StoreUnavailable:
                if not is_logged:
                    logger.warning("job %s has ended, which the store cannot be told yet", self._stored.job.id)
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


MAX_WAIT: Final = 15.0
"""Seconds between two questions to a store that is away."""


class Carrier(Protocol):
    """The fate of a job that is due: it is run here (`Runner`), or handed on to where it is (`TaskiqQueue`)."""

    async def carry(self, job_id: str) -> None:
        """Do with the job what has to be done. Raises StoreUnavailable."""

    def stop(self) -> None:
        """Begin nothing more."""

    def interrupt(self) -> None:
        """Cut short what is being done."""


class Worker:
    """Looks every `poll` seconds, and at once when this process accepts a job, for what is due in the store.

    At most `concurrency` jobs are carried at a time, and no more are taken; of three or more one is never of the caller
    who has all the others. Whoever starts a worker stops it.
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
        """The jobs that are carried, and the queue each was taken from."""
        self._server: asyncio.Task[None] | None = None
        self._is_stopping = False
        self._may_have_more: set[str] = set()
        self._turns = [QUEUE, MORE]
        self._is_away = False

    def start(self) -> None:
        """Begin to work, in the event loop that runs."""
        self._loop = asyncio.get_running_loop()
        self._unlisten = self._jobs.listen(self._wake_up)
        self._server = self._loop.create_task(self._serve(), name="awp_publish worker")

    @property
    def is_working(self) -> bool:
        """True once started and until stopped, or until its event loop ends without having stopped it."""
        return self._server is not None and not self._server.done() and not self._loop.is_closed()

    async def stop(self, grace: float = 10.0) -> None:
        """Take no more, wait `grace` seconds for what runs, then cut it short. Returns when all has ended."""
        server, self._server = self._server, None
        if server is None:
            return
        self._unlisten()
        self._is_stopping = True
        self._carrier.stop()
        self._wake.set()
        try:
            await asyncio.wait({server, *self._carried}, timeout=grace)
            self._carrier.interrupt()
            await asyncio.wait({server, *self._carried}, timeout=2 * SETTLE_SECONDS)
        finally:
            tasks = {server, *self._carried}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    # --- Taking ---

    def _wake_up(self) -> None:
        """A job was accepted, in whichever thread."""
        try:
            self._loop.call_soon_threadsafe(self._wake.set)
        except RuntimeError:  # the loop has ended without having stopped its worker
            self._unlisten()

    async def _serve(self) -> None:
        while not self._is_stopping:
            self._wake.clear()
            try:
                # Each queue comes first every other time, so that neither waits until the other is empty.
                self._turns.reverse()
                for queue in self._turns:
                    free = self._free(queue)
                    if queue == MORE == self._turns[0]:
                        free = min(free, 1)  # the first job of the same caller may still wait
                    if free <= 0:
                        continue
                    taken = await self._jobs.store.take(queue, self._lease, free)
                    self._is_away = False
                    self._may_have_more.discard(queue)
                    if len(taken) >= free:
                        self._may_have_more.add(queue)
                    for job_id in taken:
                        task = self._loop.create_task(self._carry(job_id))
                        self._carried[task] = queue
                        task.add_done_callback(self._release)
            except StoreUnavailable:
                await self._wait_for_store()
            except Exception:
                logger.exception("looking for jobs failed, and is tried again")
                await self._pause(self._poll)
            else:
                if not any(self._free(queue) > 0 for queue in self._may_have_more):
                    await self._pause(self._poll)

    def _free(self, queue: str) -> int:
        """The number of jobs of a queue that may be taken. Those in MORE leave a slot, but for the first of them."""
        free = self._most - len(self._carried)
        return min(free, max(free - 1, MORE not in self._carried.values())) if queue == MORE else free

    def _release(self, task: asyncio.Task[None]) -> None:
        del self._carried[task]
        if self._may_have_more:
            self._wake.set()

    async def _carry(self, job_id: str) -> None:
        try:
            await self._carrier.carry(job_id)
        except StoreUnavailable:
            self._note_outage()  # the job is due again when its lease ends
        except Exception:
            logger.exception("job %s could not be carried, and is tried again", job_id)

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    # --- A store that is away ---

    def _note_outage(self) -> None:
        if not self._is_away:
            logger.warning("the store is away: background jobs wait for it")
        self._is_away = True

    async def _wait_for_store(self) -> None:
        """Ask now and then, and when it is back leave time for the heartbeats of whoever lived through it."""
        self._note_outage()
        seconds = min(self._poll, MAX_WAIT)
        while not self._is_stopping:
            try:
                await self._jobs.store.run((Look("job:"),))
                break
            except StoreUnavailable:
                await self._sleep(seconds)
                seconds = min(seconds * 2, MAX_WAIT)
        if not self._is_stopping:
            logger.warning("the store is back: background jobs go on")
            await self._sleep(2 * self._jobs.beat_seconds)

    async def _sleep(self, seconds: float) -> None:
        """Like a pause, which jobs that are accepted in the meantime do not cut short."""
        end = self._loop.time() + seconds
        while not self._is_stopping and (left := end - self._loop.time()) > 0:
            self._wake.clear()
            await self._pause(left)
