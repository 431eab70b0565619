"""A process that works through jobs on an SQLite file, to be killed: `python -m benchmarks.jobs_process FILE LOG`.

Every run is one line in the log, written before anything else is done. The process ends when no job is left, and then
prints by how many MiB it has grown.
"""

import asyncio
import os
import sys
from pathlib import Path

from awp_publish.plugin import open_store
from awp_publish.plugins.jobs.job import Job, JobResult
from awp_publish.plugins.jobs.jobs import JobStore
from awp_publish.plugins.jobs.runner import Runner
from awp_publish.plugins.jobs.worker import Worker

LEASE = 2.0
"""Seconds, so that nobody waits long for what a killed process had in its hands."""


def open_jobs(path: str) -> JobStore:
    """The jobs in an SQLite file."""
    return JobStore(open_store(f"sqlite:///{path}", "benchmark"), lease_seconds=LEASE, beat_seconds=LEASE / 4)


def is_repeatable(action: str) -> bool | None:
    return action == "again"


async def work(path: str, log_path: str) -> None:
    """Work until every job has ended."""
    jobs, log = open_jobs(path), os.open(log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    async def run(job: Job) -> JobResult:
        os.write(log, f"{job.action} {job.id}\n".encode())
        return JobResult(200, (), b"null")

    worker = Worker(jobs, Runner(jobs, run, is_repeatable), concurrency=32, poll=0.2)
    worker.start()
    await asyncio.sleep(0.5)
    before = _resident()
    while not await _is_done(jobs, path):  # noqa: ASYNC110, others end them too
        await asyncio.sleep(0.2)
    print(f"{_resident() - before:.1f}")
    await worker.stop()
    await jobs.store.close()
    os.close(log)


async def _is_done(jobs: JobStore, path: str) -> bool:
    lines = Path(path).with_suffix(".ids").read_text().splitlines()
    for job_id, caller in map(str.split, reversed(lines)):
        if not (await jobs.show(job_id, caller)).has_ended:
            return False
    return True


def _resident() -> float:
    """MiB of this process that are in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], sys.argv[2]))
