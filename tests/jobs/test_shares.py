"""How many jobs a caller may have, and that one caller's many do not keep others waiting."""

import asyncio
import threading
import time
from contextlib import suppress

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from awp_publish import AgentPublisher, BearerToken
from awp_publish.plugins.jobs.jobs import MAX_JOBS_OF_CALLER, Job, JobResult, JobStore
from awp_publish.problems import JobEnded, JobQueueFull, TooManyJobs
from awp_publish.stores.memory import MemoryStore
from tests.jobs.conftest import Clock
from tests.serve.doors import DOORS
from tests.serve.guarded import ANN, BEN, KEYS, invoke, known_callers, make_shop

# --- Through the doors ---


@pytest.fixture
def shop(open_client):
    """A site whose jobs that wait end when `go` is set, the others at once."""
    site = make_shop(authenticate=known_callers(), doors=["mcp", "a2a", "awp"])
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
    site = make_shop(authenticate=BearerToken(tokens), doors=["mcp", "a2a", "awp"], secret_keys=KEYS)
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


async def test_a_site_takes_on_only_so_many_jobs_of_all_callers(store):
    jobs = JobStore(store, most=3)
    accepted = [await jobs.accept("again", {}, principal=name) for name in ("ann", "ben", "eve")]
    with pytest.raises(JobQueueFull) as caught:
        await jobs.accept("again", {}, principal="joe")
    assert (caught.value.status, dict(caught.value.headers)["Retry-After"]) == (503, "10")
    await jobs.cancel(accepted[0].id, "ann")
    await jobs.accept("again", {}, principal="joe")


async def test_jobs_that_expired_without_an_end_take_no_room():
    clock = Clock()
    jobs = JobStore(MemoryStore(clock), pending_seconds=100, most=3, most_of_caller=2, clock=clock.day)
    for _ in range(2):
        await jobs.accept("again", {}, principal="ann")
    with pytest.raises(TooManyJobs):
        await jobs.accept("again", {}, principal="ann")
    clock.seconds += 101
    for _ in range(2):
        await jobs.accept("again", {}, principal="ann")


@pytest.mark.parametrize("concurrency", [1, 2, 4])
async def test_callers_take_turns_whoever_came_first(house, concurrency):
    ran = []

    async def run(job: Job) -> JobResult:
        ran.append(job.principal)
        await asyncio.sleep(0.001)
        return JobResult(200, (), b"1")

    of = {name: [await house.jobs.accept("again", {}, principal=name) for _ in range(30)] for name in ("ann", "ben")}
    one = await house.jobs.accept("again", {}, principal="joe")
    house.start(run, concurrency=concurrency)
    for job in (*of["ann"], *of["ben"], one):
        await house.until(job)
    assert "joe" in ran[:10]
    assert 20 <= ran[:50].count("ann") <= 30
    assert 20 <= ran[:50].count("ben") <= 30


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
    jobs = [await house.jobs.accept("again", {}, principal="ann") for _ in range(40)]
    for job in jobs:
        await house.until(job)
    assert most == 3
