"""Stores to keep jobs in, workers that are stopped when a test ends, and a clock that tests move."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from awp_publish.plugin import open_store
from awp_publish.plugins.jobs.job import Job, JobResult
from awp_publish.plugins.jobs.jobs import JobStore
from awp_publish.plugins.jobs.runner import Run, Runner
from awp_publish.plugins.jobs.worker import Worker
from awp_publish.stores.store import Store
from tests.redis_server import redis_url as redis_url

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

    def open_jobs(self, **options: Any) -> JobStore:
        """JobStore as another process sees them. A short lease is for tests that let one run out."""
        return JobStore(self.store, **{"lease_seconds": 60.0, "beat_seconds": 0.05, "absent_seconds": 0.0, **options})

    def start(self, run: Run = answer, jobs: JobStore | None = None, **options: Any) -> Worker:
        jobs = jobs or self.jobs
        worker = Worker(jobs, Runner(jobs, run, REPEATABLE.get), **{"poll": 0.02, **options})
        worker.start()
        self.workers.append(worker)
        return worker

    async def until(self, job: Job, wanted: Callable[[Job], bool] = lambda job: job.has_ended) -> Job:
        """The job as soon as it is as wanted."""
        return await until(lambda: self.jobs.show(job.id, job.principal), wanted)


async def until(look: Callable[[], Awaitable[Any]], wanted: Callable[[Any], bool], seconds: float = 60.0) -> Any:
    end = time.monotonic() + seconds
    while not wanted(seen := await look()):
        assert time.monotonic() < end, f"still {seen}"
        await asyncio.sleep(0.01)
    return seen


@pytest.fixture(params=["memory", "sqlite", "redis", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store of each kind, with nothing in it."""
    if request.param == "memory":
        return "memory:"
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'agents.db'}"
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    store = open_store(store_url, new_namespace())
    yield store
    await store.close()


def new_namespace() -> str:
    return secrets.token_hex(8)


@pytest.fixture
async def house(store: Store) -> AsyncIterator[House]:
    house = House(store)
    yield house
    for worker in house.workers:
        await worker.stop(grace=0.0)
    assert asyncio.all_tasks() == {asyncio.current_task()}
