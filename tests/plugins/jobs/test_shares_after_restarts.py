"""The jobs of one caller leave room for those of others after a worker has died or was stopped, too."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from starlette.applications import Starlette

from awp_publish import AgentPublisher
from awp_publish.plugins.jobs.job import Job, JobResult
from awp_publish.plugins.jobs.worker import Worker
from awp_publish.stores.store import Schedule, Step
from tests.direct_client import DirectClient
from tests.guarded import ANN, BEN, KEYS, invoke, known_callers, make_shop


@pytest.fixture
def begun() -> list[str]:
    """The callers whose jobs have begun, in this order."""
    return []


@pytest.fixture
def run(begun):
    never = asyncio.Event()

    async def run(job: Job) -> JobResult:
        begun.append(job.principal)
        if job.principal == "ann":
            await never.wait()
        return JobResult(200, (), b"{}")

    return run


async def test_a_job_that_is_taken_while_its_worker_stops_is_put_back_at_once(house, run, begun, monkeypatch):
    take, is_taking, may_go_on = house.store.take, asyncio.Event(), asyncio.Event()

    async def take_slowly(queue: str, *rest: Any) -> Any:
        taken = await take(queue, *rest)
        if taken:
            is_taking.set()
            await may_go_on.wait()
        return taken

    run_steps = house.store.run

    async def run_slowly(steps: Sequence[Step], **options: Any) -> Any:
        for _ in range(100 if any(isinstance(step, Schedule) for step in steps) else 0):
            await asyncio.sleep(0)  # a turn of the loop: it takes longer to put a job back than to see that all is over
        return await run_steps(steps, **options)

    monkeypatch.setattr(house.store, "take", take_slowly)
    monkeypatch.setattr(house.store, "run", run_slowly)
    job = await house.jobs.accept("again", {}, principal="ben")
    worker = house.start(run)
    await is_taking.wait()
    stopping = asyncio.create_task(worker.stop(grace=0.0))
    for _ in range(10):  # until it waits for what is in hand
        await asyncio.sleep(0)
    may_go_on.set()
    await stopping
    monkeypatch.undo()
    assert begun == []
    house.start(run)
    assert (await house.until(job)).status == "done"


class Shop:
    """A site on a store that outlives it."""

    def __init__(self, store: str) -> None:
        self.begun = 0
        site = make_shop(authenticate=known_callers(), secret_keys=KEYS, store=store)

        @site.agent("wait", execution="async", effect="idempotent", timeout=3600.0)
        async def wait() -> str:
            """Wait for what never happens."""
            self.begun += 1
            await asyncio.sleep(3600)
            return ""

        @site.agent("hurry", execution="async", effect="idempotent")
        async def hurry() -> str:
            """Be quick."""
            return "done"

        self.client: Any = DirectClient(AgentPublisher(Starlette(), site=site))

    def wait_for(self, is_so: Callable[[], bool]) -> None:
        """Until something is so, but not forever."""
        for _ in range(6000):
            if is_so():
                return
            self.client.do(asyncio.sleep(0.01))
        raise TimeoutError

    def is_busy(self) -> bool:
        """Whether three jobs run that do not end."""
        return self.begun >= 3

    def serve_ben(self) -> None:
        """See a job of ben's done."""
        job = invoke(self.client, "hurry", {}, BEN).json()["job_id"]
        self.wait_for(lambda: self.client.get(f"/agents/jobs/{job}", headers=BEN).json()["status"] == "done")


def test_a_site_that_starts_again_serves_a_caller_beside_many_long_jobs_of_another(tmp_path, monkeypatch):
    monkeypatch.setattr(Worker.stop, "__defaults__", (0.0,))
    for is_first in (True, False):
        shop = Shop(f"sqlite:///{tmp_path}/agents.db")
        if is_first:
            assert [invoke(shop.client, "wait", {}, ANN).status_code for _ in range(20)] == [202] * 20
        shop.wait_for(shop.is_busy)
        shop.serve_ben()
        shop.client.close()
