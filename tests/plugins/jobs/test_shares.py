"""How many jobs a caller may have, and that one caller's many do not keep others waiting."""

import asyncio
import threading
import time
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any

import pytest
from starlette.applications import Starlette

from awp_publish import AgentPublisher, BearerToken
from awp_publish.plugins.jobs import worker
from awp_publish.plugins.jobs.job import Job, JobResult
from awp_publish.plugins.jobs.jobs import (
    BYTES_OF_UNKNOWN,
    FORGOTTEN,
    LEASED,
    MAX_JOBS_OF_CALLER,
    MORE,
    QUEUE,
    ByteLimits,
    JobStore,
)
from awp_publish.problems import JobEnded, JobQueueFull
from awp_publish.stores.store import Reserve
from tests.client import TestClient
from tests.doors.adapters import DOORS
from tests.guarded import ANN, BEN, KEYS, invoke, known_callers, make_shop
from tests.plugins.jobs.conftest import REPEATABLE, until

# --- Through the doors ---


@pytest.fixture
def shop(open_client):
    """A site whose jobs that wait end when `go` is set, the others at once."""
    site = make_shop(authenticate=known_callers(), plugins=["mcp", "a2a", "awp"])
    go = threading.Event()

    @site.agent("report", execution="async")
    def report(wait: bool = True) -> str:
        """Write a report."""
        if wait:
            go.wait(30)
        return "written"

    yield open_client(AgentPublisher(Starlette(), site=site)), go, JobStore(site.store)
    go.set()


def poll_until_ended(client: TestClient, accepted, headers) -> str:
    until = time.monotonic() + 30
    while True:
        status = client.get(accepted.headers["location"], headers=headers).json()["status"]
        if status not in ("accepted", "running"):
            return str(status)
        assert time.monotonic() < until
        time.sleep(0.02)


def test_many_jobs_of_one_caller_do_not_keep_the_job_of_another_waiting(shop):
    client, go, _ = shop
    of_ann = [invoke(client, "report", {}, ANN) for _ in range(20)]
    of_ben = invoke(client, "report", {"wait": False}, BEN)
    assert poll_until_ended(client, of_ben, BEN) == "done"
    go.set()
    assert {poll_until_ended(client, one, ANN) for one in of_ann} == {"done"}


def test_too_many_jobs_of_a_caller_are_refused_at_every_door_and_those_of_others_are_not(shop):
    client, _, jobs = shop

    async def fill() -> None:
        for _ in range(MAX_JOBS_OF_CALLER - 1):
            await jobs.accept("report", {}, principal="bearer-token ann")

    asyncio.run(fill())
    accepted = invoke(client, "report", {}, ANN)
    assert accepted.status_code == 202
    refused = invoke(client, "report", {}, ANN)
    assert (refused.status_code, refused.json()["code"]) == (429, "TOO_MANY_JOBS")
    assert int(refused.headers["retry-after"]) > 0
    for door in DOORS.values():
        assert door(client).call("report", token="ann-secret-token").code == "TOO_MANY_JOBS"
    assert invoke(client, "report", {"wait": False}, BEN).status_code == 202
    assert invoke(client, "report", {"wait": False}).status_code == 202  # nobody known, from some address
    assert client.delete(accepted.headers["location"], headers=ANN).status_code == 200
    assert invoke(client, "report", {}, ANN).status_code == 202


def test_a_confirmation_is_not_lost_with_a_call_that_is_put_off(open_client):
    tokens = {f"{name}-secret-token": name for name in DOORS}
    site = make_shop(authenticate=BearerToken(tokens), plugins=["mcp", "a2a", "awp"], secret_keys=KEYS)
    go = {name: threading.Event() for name in DOORS}

    @site.agent("pay", execution="async", confirm=True)
    def pay(behind: str = "") -> str:
        """Pay."""
        if behind:
            go[behind].wait(30)
        return "paid"

    client, jobs = open_client(AgentPublisher(Starlette(), site=site)), JobStore(site.store)

    async def fill(name: str) -> list[Job]:
        return [
            await jobs.accept("pay", {"behind": name}, principal=f"bearer-token {name}")
            for _ in range(MAX_JOBS_OF_CALLER)
        ]

    async def empty(accepted: list[Job], name: str) -> None:
        for job in accepted:
            with suppress(JobEnded):  # the worker was quicker
                await jobs.cancel(job.id, f"bearer-token {name}")

    for token, name in tokens.items():
        caller = DOORS[name](client)
        confirmation = caller.call("pay", token=token).question["token"]
        accepted = asyncio.run(fill(name))
        refused = caller.call("pay", token=token, confirmation=confirmation)
        assert refused.code == "TOO_MANY_JOBS"
        go[name].set()
        asyncio.run(empty(accepted, name))
        assert caller.call("pay", token=token, confirmation=confirmation).code is None
        assert caller.call("pay", token=token, confirmation=confirmation).code == "CONFIRMATION_SPENT"


def test_unknown_callers_have_their_shares_by_address(shop):
    client, _, _ = shop
    of_one = [invoke(client, "report", {}) for _ in range(20)]
    assert {one.status_code for one in of_one} == {202}
    other = TestClient(client.app, client=("203.0.113.9", 1))  # the application runs already
    assert poll_until_ended(client, invoke(other, "report", {"wait": False}), {}) == "done"


# --- In the store ---


@pytest.mark.parametrize("concurrency", [1, 2, 4])
async def test_callers_take_turns_whoever_came_first(house, concurrency):
    ran = []

    async def run(job: Job) -> JobResult:
        ran.append(job.principal)
        await asyncio.sleep(0.001)
        return JobResult(200, (), b"1")

    of = {name: [await house.jobs.accept("again", {}, principal=name) for _ in range(16)] for name in ("ann", "ben")}
    one = await house.jobs.accept("again", {}, principal="joe")
    house.start(run, concurrency=concurrency)
    for job in (*of["ann"], *of["ben"], one):
        await house.until(job)
    assert "joe" in ran[:10]
    assert 6 <= ran[:20].count("ann") <= 14
    assert 6 <= ran[:20].count("ben") <= 14


async def test_one_caller_leaves_a_slot_to_others_and_has_all_the_rest(house):
    running, most, three = 0, 0, asyncio.Event()

    async def run(job: Job) -> JobResult:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 3:
            three.set()
        await three.wait()
        await asyncio.sleep(0.005)
        running -= 1
        return JobResult(200, (), b"1")

    house.start(run, concurrency=4)
    jobs = [await house.jobs.accept("again", {}, principal="ann") for _ in range(20)]
    for job in jobs:
        await house.until(job)
    assert most == 3


async def test_a_worker_with_two_slots_and_nothing_to_do_takes_a_job_without_the_turn(house):
    in_turn, more = [await house.jobs.accept("again", {}, principal="ann") for _ in range(2)]
    assert await house.store.take(QUEUE, 60.0, 1) == (in_turn.id,)  # by a worker that is slow
    house.start(concurrency=2)
    assert (await house.until(more)).status == "done"


async def test_endless_jobs_of_one_stranger_leave_others_a_slot_for_all_of_theirs(house):
    ran = []

    async def run(job: Job) -> JobResult:
        ran.append(job.share)
        if job.share == "ip:1":
            await asyncio.Event().wait()
        return JobResult(200, (), b"1")

    for _ in range(20):
        await house.jobs.accept("again", {}, share="ip:1")
    house.start(run)
    await until(lambda: asyncio.sleep(0, len(ran)), lambda count: count == 3)
    jobs = [await house.jobs.accept("again", {}, principal="ben") for _ in range(3)]
    jobs += [await house.jobs.accept("again", {}, share="ip:2") for _ in range(3)]
    for job in jobs:
        await house.until(job)
    assert ran.count("ip:1") == 3


async def test_a_job_whose_worker_died_before_it_began_waits_again_where_it_was(house):
    dead = house.open_jobs(lease_seconds=0.0)
    in_turn, more, last = [await house.jobs.accept("again", {}, principal="ann") for _ in range(3)]
    of_ben = await house.jobs.accept("again", {}, principal="ben")
    for queue, first, second in ((QUEUE, in_turn, of_ben), (MORE, more, last)):
        assert await house.store.take(queue, 60.0, 1) == (first.id,)
        picked = await dead.pick(first.id, REPEATABLE.get)
        assert picked is not None
        assert await house.store.take(LEASED, 60.0, 10) == (first.id,)
        await house.jobs.reclaim(first.id, REPEATABLE.get)
        assert await house.store.take(queue, 60.0, 2) == (first.id, second.id)


# --- How many bytes of jobs and of their results are kept ---

LARGE = "x" * 900_000
SMALL = ByteLimits(of_caller=24_000, of_address=24_000, of_unknown=50_000)
"""Room for two jobs of 8,000 bytes, and their overhead, of one caller."""


def give(jobs: JobStore, size: int = 8_000, **whose: Any) -> Awaitable[Job]:
    return jobs.accept("again", {"text": "x" * size}, **whose)


def test_large_inputs_from_one_address_take_its_share_and_nobody_elses(open_client, request):
    site = make_shop(authenticate=known_callers(), plugins=["mcp", "a2a", "awp"])
    go = threading.Event()

    @site.agent("report", execution="async")
    def report(text: str) -> str:
        """Write a report."""
        go.wait(30)
        return "written"

    client = open_client(AgentPublisher(Starlette(), site=site))
    request.addfinalizer(go.set)
    answers = [invoke(client, "report", {"text": LARGE}) for _ in range(ByteLimits().of_address // len(LARGE) + 1)]
    assert {one.status_code for one in answers[:-1]} == {202}
    assert (answers[-1].status_code, answers[-1].json()["code"]) == (429, "TOO_MANY_JOBS")
    assert int(answers[-1].headers["retry-after"]) > 0
    assert str(ByteLimits().of_address) in answers[-1].json()["detail"]
    assert "from your address" in answers[-1].json()["detail"]
    for door in DOORS.values():
        assert door(client).call("report", {"text": LARGE}).code == "TOO_MANY_JOBS"
    assert invoke(client, "report", {"text": LARGE}, ANN).status_code == 202
    other = TestClient(client.app, client=("203.0.113.9", 1))  # the application runs already
    assert invoke(other, "report", {"text": LARGE}).status_code == 202
    assert client.delete(answers[-2].headers["location"]).status_code == 200  # it waits, and is given back at once
    assert invoke(client, "report", {"text": LARGE}).status_code == 202


async def test_unknown_callers_together_leave_known_ones_their_bytes_and_their_jobs(store):
    jobs = JobStore(store, most=6, most_bytes=SMALL)
    for number in range(3):
        await give(jobs, share=f"ip:192.0.2.{number}")
    await jobs.cancel((await give(jobs, 10, principal="ben")).id, "ben")
    with pytest.raises(JobQueueFull, match="3 jobs of anonymous callers") as caught:
        await give(jobs, share="ip:192.0.2.9")
    assert dict(caught.value.headers)["Retry-After"]
    more = JobStore(store, most=60, most_bytes=SMALL._replace(of_unknown=30_000))
    with pytest.raises(JobQueueFull, match="30000 bytes of jobs of anonymous callers") as caught:
        await give(more, share="ip:192.0.2.9")
    assert dict(caught.value.headers)["Retry-After"]
    for name in ("ann", "ben", "cleo"):
        await give(jobs, principal=name)
        await give(jobs, principal=name)


async def test_a_worker_gives_back_what_is_forgotten_so_that_nothing_of_a_job_stays(house, monkeypatch):
    monkeypatch.setattr(worker, "FORGET_SECONDS", 0.05)
    jobs = house.open_jobs(result_seconds=0.1)
    for number in range(20):
        await jobs.accept("again", {}, share=f"ip:{number}")
    total = Reserve(BYTES_OF_UNKNOWN, 0, 0, 60)
    assert (await house.store.run([total])).seen[0].events > 20_000
    house.start(jobs=jobs)
    await until(lambda: house.store.run([total]), lambda ran: not ran.seen[0].events)
    assert await house.store.take(FORGOTTEN, 1.0, 100) == ()
