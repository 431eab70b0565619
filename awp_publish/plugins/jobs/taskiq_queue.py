"""Background jobs distributed by taskiq, for sites that outgrow one machine (extra "jobs").

Only a job's id travels through taskiq (https://taskiq-python.github.io). Records, polls, cancellations and results stay
in our store, where a run has to claim its job first: duplicate or late messages do no harm. A message that is lost,
with its worker or in Redis, is sent again when the job is due again.

Web processes run a `Worker` with a `TaskiqQueue` as its carrier, which sends due jobs to worker processes. Those run
`serve_worker`, or taskiq's own command with `TaskiqQueue.broker`, once a runner is attached to it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from typing import Final

from taskiq import AsyncBroker
from taskiq.receiver import Receiver

from awp_publish.plugins.jobs.job import is_id
from awp_publish.plugins.jobs.jobs import IsRepeatable, JobStore
from awp_publish.plugins.jobs.runner import SETTLE_SECONDS, Runner
from awp_publish.plugins.jobs.stopping import set_on_signal
from awp_publish.problems import StoreUnavailable

logger: Final = logging.getLogger("awp_publish.plugins.jobs")

TASK: Final = "awp_publish:carry"
SEND_AGAIN_SECONDS: Final = 120.0
"""Seconds after which a job that was sent but not begun is sent again: the `lease` of a worker that sends."""

SENDING_SECONDS: Final = 5.0
"""Seconds that sending one job may take."""

RETRY_SECONDS: Final = 2.0
"""Seconds between attempts to send to, or listen to, a queue that is unavailable."""


def open_broker(url: str, queue_name: str) -> AsyncBroker:
    """Return a broker on a Redis list: fast, leaving nothing behind; our store sends again what it may lose."""
    from taskiq_redis import ListQueueBroker

    # No socket_timeout: a receiver waits for as long as there is no message.
    return ListQueueBroker(
        url,
        queue_name=queue_name,
        socket_timeout=None,
        socket_connect_timeout=SENDING_SECONDS,
        socket_keepalive=True,
    )


class TaskiqQueue:
    """A taskiq queue of job ids. As a worker's carrier it sends due jobs. One per event loop.

    `url` is a Redis URL, or the site's own taskiq broker. Sites that share a Redis need different queue names, as they
    need different namespaces in a store.
    """

    def __init__(self, jobs: JobStore, url: str | AsyncBroker, is_repeatable: IsRepeatable, queue_name: str) -> None:
        self.broker = open_broker(url, queue_name) if isinstance(url, str) else url
        self._jobs = jobs
        self._is_repeatable = is_repeatable
        self._task = self.broker.register_task(_no_runner, task_name=TASK)

    async def open(self) -> None:
        """Connect. Whoever opens a queue must close it."""
        await self.broker.startup()

    async def close(self) -> None:
        await self.broker.shutdown()

    async def carry(self, job_id: str) -> None:
        """Send a job to the worker processes, if it still has to be run. Raises StoreUnavailable."""
        waiting = await self._jobs.pick(job_id, self._is_repeatable, SEND_AGAIN_SECONDS)
        if waiting is None:
            return
        try:
            async with asyncio.timeout(SENDING_SECONDS):
                await self._task.kiq(job_id)
        except Exception as error:
            logger.warning(
                "job %s could not be sent to taskiq and will be sent again: %s", job_id, type(error).__name__
            )
            await self._jobs.put_back(waiting, RETRY_SECONDS)

    async def reclaim(self, job_id: str, taken_at: datetime) -> None:
        """Decide about a job whose lease has ended. Raises StoreUnavailable."""
        await self._jobs.reclaim(job_id, self._is_repeatable, taken_at)

    def stop(self) -> None:
        """Do nothing: jobs already taken are still sent, which is quick."""

    def interrupt(self) -> None:
        """Do nothing: no job runs here."""

    def attach(self, runner: Runner) -> None:
        """Let a runner of this process run the jobs that are received."""

        async def carry(job_id: str) -> None:
            try:
                if is_id(job_id):
                    await runner.carry_accepted(job_id)
            except StoreUnavailable:
                logger.warning("job %s was received while the store is unavailable and will be sent again", job_id)

        self._task = self.broker.register_task(carry, task_name=TASK)


async def _no_runner(job_id: str) -> None:
    """Stand in for the task in a process that only sends."""
    raise RuntimeError("This process has no runner for the jobs that it receives: call TaskiqQueue.attach() first.")


async def serve_worker(
    queue: TaskiqQueue,
    runner: Runner,
    *,
    concurrency: int = 4,
    grace: float = 10.0,
    ready: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Run jobs from the queue, at most `concurrency` at a time, until SIGTERM or SIGINT.

    Then receive no more, wait `grace` seconds for those that run, and stop them. `ready` is called when everything is
    set up. For the main thread.
    """
    queue.attach(runner)
    queue.broker.is_worker_process = True
    stopping = asyncio.Event()
    with set_on_signal(stopping), ThreadPoolExecutor(1) as executor:
        receiver = Receiver(queue.broker, executor, max_async_tasks=concurrency, run_startup=False)
        await queue.open()
        listening = asyncio.create_task(_listen(receiver, stopping))
        try:
            if ready is not None:
                await ready()
            await stopping.wait()
            runner.stop()
            await asyncio.wait({listening}, timeout=grace)
            runner.interrupt()
            await asyncio.wait({listening}, timeout=2 * SETTLE_SECONDS)
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
            await queue.close()


async def _listen(receiver: Receiver, stopping: asyncio.Event) -> None:
    """Receive until told to stop, through all outages of the queue.

    Returns when every received job has been handled.
    """
    while not stopping.is_set():
        try:
            await receiver.listen(stopping)
        except Exception as error:
            logger.warning("taskiq's queue is unavailable, listening again soon: %s", type(error).__name__)
            with suppress(TimeoutError):
                async with asyncio.timeout(RETRY_SECONDS):
                    await stopping.wait()
