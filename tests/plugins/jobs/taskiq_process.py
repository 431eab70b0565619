"""A taskiq worker process: `python -m tests.plugins.jobs.taskiq_process STORE QUEUE NAMESPACE LEASE`.

The same can be run by taskiq's own command, which finds what it needs in the environment: `taskiq worker
tests.plugins.jobs.taskiq_process:open_queue`.
"""

import asyncio
import os
import sys

import orjson
from taskiq import AsyncBroker

from awp_publish.calls.progress import report_progress
from awp_publish.plugin import open_store
from awp_publish.plugins.jobs.job import Job, JobResult
from awp_publish.plugins.jobs.jobs import JobStore
from awp_publish.plugins.jobs.runner import Runner
from awp_publish.plugins.jobs.taskiq_queue import TaskiqQueue, serve_worker

REPEATABLE = {"again": True, "once": False}


async def run(job: Job) -> JobResult:
    report_progress(0.5, "halfway")
    seconds = job.input.get("seconds", 0.0)
    assert isinstance(seconds, float)
    if job.attempt == 1:
        await asyncio.sleep(seconds)
    return JobResult(200, (), orjson.dumps(os.getpid()))


def open_all(store_url: str, queue_url: str, namespace: str, lease: float = 60.0) -> tuple[Runner, TaskiqQueue]:
    jobs = JobStore(open_store(store_url, namespace), lease_seconds=lease, beat_seconds=0.1)
    return Runner(jobs, run, REPEATABLE.get), TaskiqQueue(jobs, queue_url, REPEATABLE.get, queue_name=namespace)


def open_queue() -> AsyncBroker:
    runner, queue = open_all(os.environ["STORE"], os.environ["QUEUE"], os.environ["NAMESPACE"])
    queue.attach(runner)
    return queue.broker


async def serve(store_url: str, queue_url: str, namespace: str, lease: str) -> None:
    runner, queue = open_all(store_url, queue_url, namespace, float(lease))
    await serve_worker(queue, runner, grace=0.2)
    await runner.jobs.store.close()


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:5]))
