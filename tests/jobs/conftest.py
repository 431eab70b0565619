"""Stores to keep jobs in, workers that are stopped when a test ends, and a clock that tests move."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from awp_publish.jobs import Job, JobResult, Jobs, Run, Runner, Worker
from awp_publish.stores.store import Store
from tests.jobs.tiny_store import TinyStore

REPEATABLE = {"again": True, "once": False}


class Clock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds

    def day(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)


async def answer(job: Job) -> JobResult:
    return JobResult(200, (), b'{"ok": true}')


class House:
    """A store with jobs in it, and the workers of a test."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.jobs = self.open_jobs()
        self.workers: list[Worker] = []

    def open_jobs(self, **options: Any) -> Jobs:
        """Jobs as another process sees them."""
        return Jobs(self.store, **{"lease_seconds": 0.5, "beat_seconds": 0.05, **options})

    def start(self, run: Run = answer, jobs: Jobs | None = None, **options: Any) -> Worker:
        jobs = jobs or self.jobs
        worker = Worker(jobs, Runner(jobs, run, REPEATABLE.get), **{"poll": 0.02, **options})
        worker.start()
        self.workers.append(worker)
        return worker

    async def until(self, job: Job, wanted: Callable[[Job], bool] = lambda job: job.has_ended) -> Job:
        """The job as soon as it is as wanted."""
        return await until(lambda: self.jobs.show(job.id, job.principal), wanted)


async def until(look: Callable[[], Awaitable[Any]], wanted: Callable[[Any], bool], seconds: float = 10.0) -> Any:
    end = time.monotonic() + seconds
    while not wanted(seen := await look()):
        assert time.monotonic() < end, f"still {seen}"
        await asyncio.sleep(0.01)
    return seen


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    store = TinyStore(time.monotonic)
    yield store
    await store.close()


@pytest.fixture
async def house(store: Store) -> AsyncIterator[House]:
    house = House(store)
    yield house
    for worker in house.workers:
        await worker.stop(grace=0.0)
    assert asyncio.all_tasks() == {asyncio.current_task()}
