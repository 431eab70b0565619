"""Jobs that taskiq carries to real worker processes, which are killed, stopped, and told everything twice."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import orjson
import pytest

from awp_publish.calls.progress import Progress
from awp_publish.plugin import open_store
from awp_publish.plugins.jobs.job import Job
from awp_publish.plugins.jobs.problems import JobInterrupted
from awp_publish.plugins.jobs.taskiq_queue import TASK, TaskiqQueue
from awp_publish.plugins.jobs.worker import Worker
from awp_publish.stores.store import Store
from tests.plugins.jobs.conftest import REPEATABLE, House, new_namespace
from tests.processes import Process
from tests.redis_server import start_redis as start_redis

pytestmark = [pytest.mark.slow, pytest.mark.limit(180)]  # many processes, on a machine that may be busy

ROOT = Path(__file__).parents[3]


@pytest.fixture
def namespace() -> str:
    return new_namespace()


@pytest.fixture
async def store(redis_url: str, namespace: str) -> AsyncIterator[Store]:
    store = open_store(redis_url, namespace)
    yield store
    await store.close()


@pytest.fixture
def queue_url(redis_url: str) -> str:
    return redis_url


@pytest.fixture
async def queue(house: House, queue_url: str, namespace: str) -> AsyncIterator[TaskiqQueue]:
    """What a web process has: it accepts jobs and sends them."""
    house.jobs = house.open_jobs(lease_seconds=1.0, beat_seconds=0.1)
    queue = TaskiqQueue(house.jobs, queue_url, REPEATABLE.get, queue_name=namespace)
    await queue.open()
    worker = Worker(house.jobs, queue, poll=0.05, lease=1.0)
    worker.start()
    yield queue
    await worker.stop(0)
    await queue.close()


@pytest.fixture
def start(redis_url: str, queue_url: str, namespace: str) -> Iterator[Callable[..., Process]]:
    with ExitStack() as stack:

        def start_one(lease: float = 60.0) -> Process:
            arguments = [redis_url, queue_url, namespace, str(lease)]
            process = Process("tests.plugins.jobs.taskiq_process", *arguments, cwd=ROOT, is_strict=True)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        yield start_one


def pid_of(job: Job) -> int:
    assert job.result is not None, job
    return int(orjson.loads(job.result.body))


async def test_jobs_are_run_in_the_worker_process(house, queue, start):
    process = start()
    jobs = [await house.jobs.accept("once", {}) for _ in range(50)]
    ended = [await house.until(job) for job in jobs]
    assert {(pid_of(job), job.attempt, job.progress) for job in ended} == {(process.pid, 1, Progress(0.5, "halfway"))}


async def test_jobs_of_a_killed_worker_are_run_again_or_end_as_interrupted(house, queue, start):
    victim = start(lease=5.0)
    again = await house.jobs.accept("again", {"seconds": 60.0})
    once = await house.jobs.accept("once", {"seconds": 60.0})
    for job in (again, once):
        await house.until(job, lambda job: job.progress is not None)  # its handler was called: not only taken
    victim.kill()
    victim.wait()
    survivor = start()
    done, interrupted = await house.until(again), await house.until(once)
    assert (pid_of(done), done.attempt) == (survivor.pid, 2)
    assert isinstance(interrupted.problem, JobInterrupted)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_worker_that_is_told_to_stop_stops_cleanly_and_gives_its_jobs_back(house, queue, start, number):
    process = start()
    again = await house.jobs.accept("again", {"seconds": 60.0})
    once = await house.jobs.accept("once", {"seconds": 60.0})
    for job in (again, once):
        await house.until(job, lambda job: job.progress is not None)  # its handler was called: not only taken
    process.send_signal(number)
    assert await asyncio.to_thread(process.wait, 30) == 0
    assert isinstance((await house.jobs.show(once.id, "")).problem, JobInterrupted)
    waiting = await house.jobs.show(again.id, "")
    assert (waiting.status, waiting.attempt) == ("accepted", 0)


async def test_taskiqs_own_command_runs_the_same_jobs(house, queue, redis_url, namespace):
    """`taskiq worker`, with what it logs."""
    words = [sys.executable, "-m", "taskiq", "worker", "tests.plugins.jobs.taskiq_process:open_queue", "--workers", "1"]
    environment = {**os.environ, "STORE": redis_url, "QUEUE": redis_url, "NAMESPACE": namespace}
    process = await asyncio.create_subprocess_exec(
        *words, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        job = await house.jobs.accept("once", {})
        assert (await house.until(job)).status == "done"
    finally:
        process.terminate()
        with suppress(TimeoutError):  # how it ends is taskiq's own affair
            await asyncio.wait_for(process.wait(), 20)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def test_a_process_without_a_runner_runs_nothing(house, queue, caplog):
    job = await house.jobs.accept("once", {})
    task = queue.broker.find_task(TASK)
    with pytest.raises(RuntimeError):
        await task.original_func(job.id)
    assert (await house.jobs.show(job.id, "")).status == "accepted"
