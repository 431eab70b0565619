"""What works at the moment (agent.json section 13): said by the site, found out by probes, heeded by calls."""

import asyncio
import threading

import httpx2
import pytest
from starlette.applications import Starlette

from awp_publish import AgentPublisher
from tests.guarded import invoke, make_shop, poll, publish, status_and_code


@pytest.fixture
def shop():
    site = make_shop()

    @site.agent("order")
    async def order() -> str:
        """Order a book."""
        return "ordered"

    @site.agent("look")
    async def look() -> str:
        """Look at books."""
        return "books"

    @site.agent("print", execution="async")
    async def print_book() -> str:
        """Print a book."""
        return "printed"

    return site


async def ask(site, app):
    """Probe, and read what is published then."""
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="https://shop.example") as client:
        await client.get("/agent.json")
        await site.probe()
        status, manifest = await client.get("/agents/status"), await client.get("/agent.json")
        call = await client.post("/agents/order/invoke", json={"input": {}})
    return status.json(), manifest.json()["agent_status"], call.status_code


# --- Said by the site ---


def test_a_job_is_done_though_its_action_was_degraded_when_the_site_started(shop, open_client):
    shop.set_status(degraded_actions=["print"])
    client = publish(shop, open_client)
    assert status_and_code(invoke(client, "print")) == (503, "TEMPORARILY_UNAVAILABLE")
    shop.set_status(degraded_actions=[])
    shop.refresh()
    assert poll(client, invoke(client, "print").headers["location"]).json()["status"] == "done"


# --- Found out by probes ---


class Weather:
    """What the probes find; None for a probe that never answers."""

    def __init__(self) -> None:
        self.answer: object = True
        self.released = threading.Event()

    def look(self) -> object:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def probe_of(kind: str, weather: Weather):
    def sync_probe():
        return weather.look() if weather.answer is not None else weather.released.wait(30)

    async def async_probe():
        if weather.answer is None:
            await asyncio.sleep(20)
        return weather.look()

    def awaitable_probe():
        return async_probe()

    return {"sync": sync_probe, "async": async_probe, "awaitable": awaitable_probe}[kind]


@pytest.mark.parametrize("kind", ["sync", "async", "awaitable"])
@pytest.mark.parametrize("answer", [False, RuntimeError("down"), asyncio.CancelledError(), None])
async def test_a_failed_probe_is_published_and_enforced_until_it_succeeds(shop, monkeypatch, kind, answer):
    weather = Weather()
    shop.status("order", every="1h")(probe_of(kind, weather))
    app = AgentPublisher(Starlette(), site=shop)
    assert (await ask(shop, app))[2] == 200
    weather.answer = answer
    if answer is None:
        monkeypatch.setattr("awp_publish.plugins.status.liveness.PROBE_TIMEOUT", 0.05)
    status, manifest, called = await ask(shop, app)
    assert (status["degraded_actions"], manifest["degraded_actions"], called) == (["order"], ["order"], 503)
    assert status["operational"]
    assert manifest["operational"]
    monkeypatch.undo()
    weather.answer = True
    weather.released.set()
    status, manifest, called = await ask(shop, app)
    assert (status["degraded_actions"], manifest["degraded_actions"], called) == ([], [], 200)


async def test_a_probe_that_hangs_in_its_thread_is_not_asked_again_meanwhile(shop, monkeypatch):
    monkeypatch.setattr("awp_publish.plugins.status.liveness.PROBE_TIMEOUT", 0.02)
    begun, release = [], threading.Event()

    @shop.status("order", every="1h")
    def hang() -> None:
        begun.append(1)
        release.wait(30)

    app = AgentPublisher(Starlette(), site=shop)
    try:
        while not begun:  # a thread may need longer to begin than it is waited for
            assert (await ask(shop, app))[2] == 503
        assert [(await ask(shop, app))[2] for _ in range(3)] == [503, 503, 503]
        assert len(begun) == 1
    finally:
        release.set()
    monkeypatch.undo()
    assert (await ask(shop, app))[2] == 200
