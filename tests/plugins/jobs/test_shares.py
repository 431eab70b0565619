"""How many jobs a caller may have, and that one caller's many do not keep others waiting."""

import asyncio
import threading
import time
from contextlib import suppress

import pytest
from starlette.applications import Starlette

from awp_publish import AgentPublisher, BearerToken
from awp_publish.plugins.jobs.job import Job
from awp_publish.plugins.jobs.jobs import (
    MAX_JOBS_OF_CALLER,
    ByteLimits,
    JobStore,
)
from awp_publish.plugins.jobs.problems import JobEnded
from tests.client import TestClient
from tests.doors.adapters import DOORS
from tests.guarded import ANN, BEN, KEYS, invoke, known_callers, make_shop

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
    assert {poll_until_ended(client, item, ANN) for item in of_ann} == {"done"}


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
    assert {item.status_code for item in of_one} == {202}
    other = TestClient(client.app, client=("203.0.113.9", 1))  # the application runs already
    assert poll_until_ended(client, invoke(other, "report", {"wait": False}), {}) == "done"


# --- How many bytes of jobs and of their results are kept ---

LARGE = "x" * 900_000
"""Room for two jobs of 8,000 bytes, and their overhead, of one caller."""


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
    assert {answer.status_code for answer in answers[:-1]} == {202}
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
