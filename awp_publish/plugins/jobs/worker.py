"""`Worker`: takes due jobs from the store and hands them to a carrier, a few at a time. One per event loop."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from typing import Final, Protocol

from awp_publish.plugins.jobs.jobs import FORGET_SECONDS, LEASED, MAX_FORGOTTEN, MORE, QUEUE, JobStore
from awp_publish.plugins.jobs.runner import SETTLE_SECONDS
from awp_publish.problems import StoreUnavailable
from awp_publish.stores.store import JOB, Look

logger: Final = logging.getLogger("awp_publish.plugins.jobs")

MAX_RECLAIMED: Final = 32
"""Jobs whose lease has ended that are looked at together."""

MAX_WAIT: Final = 15.0
"""Maximum seconds between two attempts to reach an unavailable store."""


class Carrier(Protocol):
    """Handles a job that was taken: runs it here (`Runner`) or sends it to another process (`TaskiqQueue`)."""

    async def carry(self, job_id: str) -> None:
        """Handle a job that was taken. Raises StoreUnavailable."""

    async def reclaim(self, job_id: str, taken_at: datetime) -> None:
        """Decide about a job whose lease was found at `taken_at` to have ended. Raises StoreUnavailable."""

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
                    job_ids = await self._jobs.store.take(queue, self._lease, free)
                    self._is_away = False
                    self._may_have_more.discard(queue)
                    if len(job_ids) >= free:
                        self._may_have_more.add(queue)
                    for job_id in job_ids:
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
        while not self._is_stopping and (remaining := end - self._loop.time()) > 0:
            self._wake.clear()
            await self._pause(remaining)
