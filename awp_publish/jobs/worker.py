"""`Worker`: takes jobs that are due out of the store and has them carried, a few at a time. One for each event loop."""

import asyncio
import logging
from contextlib import suppress
from typing import Final, Protocol

from awp_publish.jobs.jobs import MORE, QUEUE, Jobs
from awp_publish.jobs.run import SETTLE_SECONDS
from awp_publish.problems import StoreUnavailable
from awp_publish.stores.store import Look

logger: Final = logging.getLogger("awp_publish.jobs")

LONGEST_WAIT: Final = 15.0
"""Seconds between two questions to a store that is away."""


class Carrier(Protocol):
    """What becomes of a job that is due: it is run here (`Runner`), or handed on to where it is (`TaskiqQueue`)."""

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
        self, jobs: Jobs, carrier: Carrier, *, concurrency: int = 4, poll: float = 1.0, lease: float | None = None
    ) -> None:
        self._jobs = jobs
        self._carrier = carrier
        self._most = concurrency
        self._poll = poll
        self._lease = jobs.lease_seconds if lease is None else lease
        self._wake = asyncio.Event()
        self._carried: dict[asyncio.Task[None], str] = {}
        """What is carried, and from which queue it was taken."""
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
        """Whether it was started, was not stopped, and its event loop has not ended without having stopped it."""
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
            await _cancel({server, *self._carried})

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
                await self._take_what_is_free()
            except StoreUnavailable:
                await self._wait_for_store()
            except Exception:
                logger.exception("looking for jobs failed, and is tried again")
                await self._pause(self._poll)
            else:
                if not any(self._free(queue) > 0 for queue in self._may_have_more):
                    await self._pause(self._poll)

    def _free(self, queue: str) -> int:
        """How many jobs of a queue may be taken. Those in MORE leave a slot, but for the first of them."""
        free = self._most - len(self._carried)
        return min(free, max(free - 1, MORE not in self._carried.values())) if queue == MORE else free

    async def _take_what_is_free(self) -> None:
        """Each queue comes first every other time, so that neither waits until the other is empty."""
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
                task.add_done_callback(self._let_go)

    def _let_go(self, task: asyncio.Task[None]) -> None:
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
        seconds = min(self._poll, LONGEST_WAIT)
        while not self._is_stopping and not await self._is_back():
            await self._sleep(seconds)
            seconds = min(seconds * 2, LONGEST_WAIT)
        if not self._is_stopping:
            logger.warning("the store is back: background jobs go on")
            await self._sleep(2 * self._jobs.beat_seconds)

    async def _is_back(self) -> bool:
        try:
            await self._jobs.store.run((Look("job:"),))
        except StoreUnavailable:
            return False
        return True

    async def _sleep(self, seconds: float) -> None:
        """Like a pause, which jobs that are accepted in the meantime do not cut short."""
        end = self._loop.time() + seconds
        while not self._is_stopping and (left := end - self._loop.time()) > 0:
            self._wake.clear()
            await self._pause(left)


async def _cancel(tasks: set[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
