"""A process that runs jobs, to be killed: `python -m tests.plugins.jobs.worker_process URL NAMESPACE DIARY [SECONDS]`.

What it begins and ends is in the diary, a line each. Its handler takes `SECONDS`.
"""

import asyncio
import os
import sys
from contextlib import suppress

from awp_publish.plugin import open_store
from awp_publish.plugins.jobs.job import Job, JobResult
from awp_publish.plugins.jobs.jobs import JobStore
from awp_publish.plugins.jobs.runner import Runner
from awp_publish.plugins.jobs.worker import Worker

REPEATABLE = {"again": True, "once": False}


def note(diary: str, line: str) -> None:
    with os.fdopen(os.open(diary, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "w") as file:
        file.write(f"{line}\n")


async def serve(url: str, namespace: str, diary: str, seconds: float = 0.0) -> None:
    async def run(job: Job) -> JobResult:
        note(diary, f"{job.action} {job.id} {job.attempt}")
        await asyncio.sleep(seconds)
        return JobResult(200, (), b"null")

    store = open_store(url, namespace)
    jobs = JobStore(store, lease_seconds=5.0, beat_seconds=0.1)
    worker = Worker(jobs, Runner(jobs, run, REPEATABLE.get), poll=0.02, concurrency=8)
    worker.start()
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()


if __name__ == "__main__":
    url, namespace, diary, *seconds = sys.argv[1:]
    asyncio.run(serve(url, namespace, diary, *map(float, seconds)))
