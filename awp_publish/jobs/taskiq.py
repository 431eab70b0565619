"""The same jobs carried by taskiq, for sites that outgrow one machine (extra "jobs", https://taskiq-python.github.io).

What travels through taskiq is the id of a job and nothing else. Records, polls, cancellations and results stay in our
store, and a run is ours only after it was begun there: messages that come twice or late do no harm. A message that is
lost, with its worker or in Redis, is sent again when the job is due again.

Web processes run a `Worker` with a `TaskiqQueue` for its carrier, so what is due is sent to worker processes; those run
`serve_worker`, or taskiq's own command with `TaskiqQueue.broker`, once a runner is attached to it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final

from taskiq import AsyncBroker
from taskiq.receiver import Receiver

from awp_publish.jobs.jobs import IsRepeatable, JobStore, is_id
from awp_publish.jobs.worker import SETTLE_SECONDS, Runner, set_on_signal
from awp_publish.problems import StoreUnavailable

logger: Final = logging.getLogger("awp_publish.jobs")

TASK: Final = "awp_publish:carry"
SEND_AGAIN_SECONDS: Final = 120.0
"""After so long a job that was sent and has not been begun is sent again: the `lease` for a worker that sends."""

SENDING_SECONDS: Final = 5.0
"""Seconds that sending one job may take."""

RETRY_SECONDS: Final = 2.0
"""Between two attempts to send a job while the queue is away, and to listen to it."""


def open_broker(url: str, queue_name: str) -> AsyncBroker:
    """A list in Redis: quick, it leaves nothing behind, and what it may lose our store sends again."""
    from taskiq_redis import ListQueueBroker

    # Whoever waits for a message waits as long as there is none.
    return ListQueueBroker(
        url,
        queue_name=queue_name,
        socket_timeout=None,
        socket_connect_timeout=SENDING_SECONDS,
        socket_keepalive=True,
    )


class TaskiqQueue:
    """A taskiq queue of job ids. A worker's carrier: it sends what is due. One for each event loop.

    `url` is that of Redis, or a taskiq broker of the site's own. Sites that share a Redis need queues of different
    names, as they need different namespaces in a store.
    """

    def __init__(self, jobs: JobStore, url: str | AsyncBroker, is_repeatable: IsRepeatable, queue_name: str) -> None:
        self.broker = open_broker(url, queue_name) if isinstance(url, str) else url
        self._jobs = jobs
        self._is_repeatable = is_repeatable
        self._task = self.broker.register_task(_no_runner, task_name=TASK)

    async def open(self) -> None:
        """Connect. Whoever opens a queue closes it."""
        await self.broker.startup()

    async def close(self) -> None:
        """Let go of the connections."""
        await self.broker.shutdown()

    # --- In web processes ---

    async def carry(self, job_id: str) -> None:
        """Send a job that is due to the worker processes, if it is to be run. Raises StoreUnavailable."""
        waiting = await self._jobs.reclaim(job_id, self._is_repeatable)
        if waiting is None:
            return
        try:
            async with asyncio.timeout(SENDING_SECONDS):
                await self._task.kiq(job_id)
        except Exception as error:
            logger.warning("job %s could not be sent to taskiq, and is sent again: %s", job_id, type(error).__name__)
            await self._jobs.postpone(job_id, RETRY_SECONDS)

    def stop(self) -> None:
        """Nothing to do: jobs already taken are still sent, which is quick."""

    def interrupt(self) -> None:
        """Nothing runs here."""

    # --- In worker processes ---

    def attach(self, runner: Runner) -> None:
        """Have jobs that are received run by a runner, in this process."""

        async def carry(job_id: str) -> None:
            try:
                if is_id(job_id):
                    await runner.carry_accepted(job_id)
            except StoreUnavailable:
                logger.warning("job %s was received while the store is away, and is sent again", job_id)

        self._task = self.broker.register_task(carry, task_name=TASK)


async def _no_runner(job_id: str) -> None:
    """The task of a process that only sends."""
    raise RuntimeError("This process was given no runner for the jobs that it receives.")


async def serve_worker(
    queue: TaskiqQueue,
    runner: Runner,
    *,
    concurrency: int = 4,
    grace: float = 10.0,
    ready: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Run jobs that come through the queue, at most `concurrency` at a time, until SIGTERM or SIGINT.

    Then receive no more, wait `grace` seconds for what runs, and cut it short as a worker does that stops. `ready` is
    called when all is set up. For the main thread.
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
    """Receive until we stop, through all outages of the queue. Returns when what was received has been dealt with."""
    while not stopping.is_set():
        try:
            await receiver.listen(stopping)
        except Exception as error:
            logger.warning("taskiq's queue is away, and is listened to again: %s", type(error).__name__)
            with suppress(TimeoutError):
                async with asyncio.timeout(RETRY_SECONDS):
                    await stopping.wait()
