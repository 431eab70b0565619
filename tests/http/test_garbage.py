"""What calls leave behind: nothing of ours that only the garbage collector could free."""

import gc
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import FrameType

import pytest
from fastapi import FastAPI
from starlette.testclient import WebSocketDenialResponse

from awp_publish import AgentPublisher
from awp_publish.problems import Refused
from tests.client import TestClient
from tests.guarded import known_callers, make_shop
from tests.installed import installed, is_installed
from tests.plugins.awp.awp_client import AwpClient
from tests.plugins.mcp.mcp_messages import CLASSIC, MODERN, message, post

CALLS = 5
GUARDED = all(map(is_installed, ("confirmation", "idempotency", "limits")))


def make_app():
    site = make_shop(plugins=installed("mcp", "a2a", "awp"), authenticate=known_callers(), secret_keys=["k" * 40])
    app = FastAPI()

    @app.post("/shout")
    @site.action("shout")
    async def shout(text: str) -> dict[str, str]:
        """Say it louder."""
        return {"said": text.upper()}

    @site.agent("refuse")
    async def refuse() -> str:
        """Say no."""
        raise Refused("No.")

    @site.agent("crash")
    async def crash() -> str:
        """Fail."""
        raise RuntimeError("secret")

    @site.agent("buy", scopes=["buy"])
    async def buy() -> str:
        """Buy."""
        return "bought"

    if GUARDED:

        @site.agent("burn", confirm="Burn {title}?", idempotency="24h", rate_limit="1000/minute")
        async def burn(title: str) -> str:
            """Burn a book."""
            return title

    return AgentPublisher(app, site=site)


def by_woa(client, agent, given, headers):
    return client.post(f"/agents/{agent}/invoke", json={"input": given}, headers=headers)


def by_plain(client, agent, given, headers):
    return client.post(f"/agents/actions/{agent}", json=given, headers=headers)


def by_mcp(client, agent, given, headers, version=MODERN):
    return post(client, message("tools/call", {"name": agent, "arguments": given}, version=version), version, headers)


def by_a2a(client, agent, given, headers):
    sent = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"data": {"skill": agent, "input": given}}]}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": sent}}
    return client.post("/a2a", json=body, headers={"a2a-version": "1.0", **headers})


def by_awp(client, agent, given, headers):
    with suppress(WebSocketDenialResponse), AwpClient.open(client, headers) as caller:
        caller.ask("awp.hello")
        caller.ask("skills.invoke", {"skill": agent, "args": given})


DOORS: dict[str, Callable[..., object]] = {
    "plain": by_plain,
    **{
        name: by
        for name, by in (("woa", by_woa), ("mcp", by_mcp), ("a2a", by_a2a), ("awp", by_awp))
        if is_installed(name)
    },
    **({"mcp 2025-11-25": partial(by_mcp, version=CLASSIC)} if is_installed("mcp") else {}),
}

CALLED: dict[str, tuple[str, dict[str, object], dict[str, str]]] = {
    "an answer": ("shout", {"text": "a"}, {}),
    "an input that is wrong": ("shout", {"text": 1, "x": 2}, {}),
    "a refusal": ("refuse", {}, {}),
    "a failure": ("crash", {}, {}),
    "a challenge": ("buy", {}, {}),
    **({"a question": ("burn", {"title": "Emma"}, {})} if GUARDED else {}),
    "no such agent": ("unknown", {}, {}),
}


@pytest.fixture(scope="module")
def client():
    with TestClient(make_app(), base_url="https://shop.example") as client:
        yield client


def name_of(one: object) -> str:
    """The name of an object that is ours: a frame of our code, or of a class of ours; "" for any other."""
    if isinstance(one, FrameType):
        return one.f_code.co_qualname if f"{os.sep}awp_publish{os.sep}" in one.f_code.co_filename else ""
    return type(one).__qualname__ if type(one).__module__.startswith("awp_publish") else ""


def left_by(call: Callable[[], object]) -> list[str]:
    """The names of our objects that calls leave to the garbage collector."""
    for _ in range(2):  # what is made once is made
        call()
    gc.collect()
    gc.freeze()  # else each look is at all that other tests keep
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for _ in range(CALLS):
            call()
        gc.collect()
        return sorted({name_of(item) for item in gc.garbage if name_of(item)})
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.fixture(autouse=True)
def _silent():
    logging.disable()  # a record of a failure holds its frames
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("called", CALLED)
@pytest.mark.parametrize("door", DOORS)
def test_nothing_of_a_call_is_left_to_the_garbage_collector(client, door, called):
    agent, given, headers = CALLED[called]
    assert left_by(lambda: DOORS[door](client, agent, given, headers)) == []


@pytest.mark.parametrize("before", [0, 20])
@pytest.mark.parametrize("door", DOORS)
def test_nothing_of_a_wrong_token_is_left_to_the_garbage_collector_however_many_came_before(door, before):
    wrong = {"authorization": "Bearer wrong"}
    with TestClient(make_app(), base_url="https://shop.example") as client:
        for _ in range(before):  # so many that the next is refused for their number
            by_plain(client, "buy", {}, wrong)
        assert left_by(lambda: DOORS[door](client, "buy", {}, wrong)) == []


@pytest.mark.needs("a2a")
def test_nothing_is_left_of_a_look_at_a_task_that_there_is_not(client):
    body = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "unknown"}}
    assert left_by(lambda: client.post("/a2a", json=body, headers={"a2a-version": "1.0"})) == []
