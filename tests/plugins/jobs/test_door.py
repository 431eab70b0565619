"""Polling and cancelling over HTTP."""

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from starlette.applications import Starlette

from awp_publish import AgentPublisher, Principal
from awp_publish.http.cors import Cors
from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.model import Catalog, SiteFacts
from awp_publish.plugins.jobs.door import JobsDoor
from awp_publish.problems import InvalidCredentials, StoreUnavailable
from awp_publish.stores import Look, Swap
from awp_publish.stores.store import JOB
from tests.guarded import invoke, make_shop
from tests.plugins.jobs.conftest import Clock

ADDRESS = "https://shop.example/agents/jobs"
FACTS = SiteFacts(name="Shop", description="Sells.", errors={"SOLD_OUT": "Wait for the reprint."})
CATALOG = Catalog(url="https://shop.example", site=FACTS, actions=(), agents=())


async def identify(scope, fields):
    given = fields.get(b"authorization", b"").decode()
    if given == "bad":
        raise InvalidCredentials("The token is not known.", headers=[("WWW-Authenticate", "Bearer")])
    return Principal(given) if given else None


def open_door(jobs, origins=()):
    return JobsDoor(jobs, ADDRESS, ProblemRenderer(CATALOG), Cors(origins), identify)


async def ask(door, job_id: str, method: str = "GET", headers: dict[str, str] | None = None) -> Any:
    sent: list[Any] = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "http.disconnect"}

    raw = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    scope = {"type": "http", "method": method, "path": f"/agents/jobs/{job_id}", "headers": raw}
    await door(scope, receive, send, job_id)
    start, body = sent
    values = {name.decode(): value.decode() for name, value in start["headers"]}
    parsed = orjson.loads(body["body"]) if body["body"] else None
    return SimpleNamespace(status=start["status"], headers=values, body=body["body"], json=parsed)


async def test_pauses_between_polls_grow_with_the_age_of_a_job(house):
    clock = Clock()
    jobs = house.open_jobs(clock=clock.day)
    job = await jobs.accept("again", {})
    pauses = []
    for seconds in (0, 14, 1, 30, 6000):
        clock.seconds += seconds
        pauses.append((await ask(open_door(jobs), job.id)).headers["retry-after"])
    assert pauses == ["1", "1", "2", "4", "5"]


@pytest.mark.parametrize("job_id", ["", "x", "A" * 22, "A" * 22 + "/..", "é\x00", "%2e" * 1000, "A" * 100_000])
@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
async def test_every_invalid_job_id_is_unknown(house, job_id, method):
    assert (await ask(open_door(house.jobs), job_id, method)).status == 404


async def test_pages_of_listed_origins_may_poll(house):
    job = await house.jobs.accept("again", {})
    door = open_door(house.jobs, ["https://agent.example"])
    polled = await ask(door, job.id, headers={"origin": "https://agent.example"})
    assert polled.headers["access-control-allow-origin"] == "https://agent.example"
    asked = await ask(door, job.id, "OPTIONS", {"origin": "https://agent.example"})
    assert (asked.status, asked.headers["access-control-allow-methods"]) == (204, "GET, HEAD, DELETE, OPTIONS")
    assert (
        "access-control-allow-origin" not in (await ask(door, job.id, headers={"origin": "https://x.example"})).headers
    )


async def test_a_store_that_is_away_is_told(house, monkeypatch):
    async def run(steps, durable=False):
        raise StoreUnavailable("The store is away.", headers=[("Retry-After", "1")])

    monkeypatch.setattr(house.store, "run", run)
    polled = await ask(open_door(house.jobs), "A" * 22)
    assert (polled.status, polled.headers["retry-after"]) == (503, "1")


@pytest.mark.slow
async def test_two_thousand_polls_at_once_are_answered(house):
    house.start()
    jobs = [await house.jobs.accept("again", {"n": number}) for number in range(20)]
    door = open_door(house.jobs)
    polls = [ask(door, jobs[number % 20].id) for number in range(2_000)]
    assert {polled.status for polled in await asyncio.gather(*polls)} == {200}
    for job in jobs:
        await house.until(job)


# --- Records that cannot be read ---


@pytest.mark.parametrize("door", ["woa", "a2a"])
def test_a_damaged_record_is_an_unavailable_store_at_the_doors_that_tell_of_jobs(open_client, caplog, door):
    go = threading.Event()
    site = make_shop(plugins=["a2a"])

    @site.agent("report", execution="async")
    def report() -> str:
        """Write a report."""
        go.wait(30)
        return "written"

    client = open_client(AgentPublisher(Starlette(), site=site))
    try:
        if door == "woa":
            address = invoke(client, "report").headers["location"]
            damage(site.store)
            for answer in (client.get(address), client.delete(address)):
                assert answer.status_code == 503
                assert answer.json()["code"] == "STORE_UNAVAILABLE"
                assert int(answer.headers["retry-after"]) > 0
        else:
            part = {"data": {"skill": "report", "input": {}}}
            message = {"messageId": "m", "role": "ROLE_USER", "parts": [part]}
            sent = send(client, "SendMessage", {"message": message, "configuration": {"returnImmediately": True}})
            damage(site.store)
            error = send(client, "GetTask", {"id": sent["result"]["task"]["id"]})["error"]
            assert "cannot be read" in str(error)
        assert "Traceback" not in caplog.text
    finally:
        go.set()


def send(client, method, params):
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return client.post("/a2a", json=body, headers={"a2a-version": "1.0"}).json()


def damage(store) -> None:
    """As a disk does that forgets."""

    async def swap() -> None:
        [key] = [key for key in store._values.entries if key.startswith(JOB)]
        for _ in range(20):  # a run may renew its lease meanwhile
            raw = (await store.run([Look(key)])).seen[0]
            if (await store.run([Swap(key, raw, raw[: len(raw) // 2], 600)])).failed is None:
                return

    asyncio.run(swap())
