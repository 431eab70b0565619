"""Names of hidden actions cannot be told from names that do not exist: not by the answer, nor by the work behind it."""

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from fastapi import FastAPI
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from awp_publish import AgentPublisher
from awp_publish.calls import invoke
from tests.calls.test_audience import make_site, only
from tests.client import TestClient
from tests.installed import installed
from tests.plugins.awp.awp_client import AwpClient
from tests.plugins.mcp.mcp_messages import VERSIONS, message, post
from tests.steps import counting

HIDDEN = {"quokka": "of an agent", "quagga": "of a route that is read", "quolls": "that is for known callers"}
UNKNOWN = "quetza"
"""A name of nothing, as long as those of hidden actions."""

MADE = r'[0-9a-f]{8}-[0-9a-f-]{27}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[^"]*|[0-9a-f]{32}|"[0-9a-f]{16}"|"id":\d+'
"""Ids and times, which differ from answer to answer."""

LEFT_OUT = {"x-request-id", "content-length"}
"""Headers that differ from answer to answer: a time of A2A has no zeros at its end."""


@pytest.fixture(scope="module")
def client() -> TestClient:
    app, site = FastAPI(), make_site()

    @site.agent("look")
    async def look() -> str:
        """Look."""
        return "books"

    guards = only("limits", rate_limit="5/minute") | only("idempotency", idempotency="24h")

    @site.agent("quokka", audience="operator", **guards, **only("confirmation", confirm=True))
    async def quokka(copies: int = 1) -> str:
        """Be seen by operators."""
        return "seen"

    @app.get("/quagga")
    @site.action("quagga", audience="operator")
    async def quagga(copies: int = 1) -> str:
        """Be read by operators."""
        return "read"

    @site.agent("quolls", audience="operator", **only("jobs", execution="async"))
    async def quolls() -> str:
        """Be slow for operators."""
        return "slow"

    # Each request starts a thread, whose steps are counted: the client is not opened.
    return TestClient(AgentPublisher(app, site=site, check=False), base_url="https://shop.example")


def call_tool(version: str, client: TestClient, name: str, headers: dict[str, str]) -> Any:
    return post(client, message("tools/call", {"name": name, "arguments": {"a": 1}}, version=version), version, headers)


SAID: dict[str, Callable[[str], list[dict[str, Any]]]] = {
    "as data": lambda name: [{"data": {"skill": name, "input": {"pin": "1", "session": "s"}}}],
    "as data with a text": lambda name: [{"text": "please"}, {"data": {"skill": name, "input": {}}}],
    "as a text": lambda name: [{"text": json.dumps({"skill": name, "input": {"pin": "1"}})}],
    "as a text with a session": lambda name: [{"text": json.dumps({"skill": name, "session": "s", "input": {}})}],
}


def send_task(way: str, client: TestClient, name: str, headers: dict[str, str]) -> Any:
    params = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": SAID[way](name)}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
    return client.post("/a2a", json=body, headers={"a2a-version": "1.0"} | headers)


_CALLS: dict[str, Callable[[TestClient, str, dict[str, str]], Any]] = {
    "woa": lambda client, name, headers: client.post(
        f"/agents/{name}/invoke", json={"input": {"a": 1}, "idempotency_key": "k"}, headers=headers
    ),
    "woa, an operation": lambda client, name, headers: client.post(
        f"/agents/{name}/invoke", json={"input": {}, "operation": "default"}, headers=headers
    ),
    "plain": lambda client, name, headers: client.post(f"/agents/actions/{name}", json={"a": 1}, headers=headers),
    "plain, read": lambda client, name, headers: client.get(f"/agents/actions/{name}", headers=headers),
    "plain, deleted": lambda client, name, headers: client.delete(f"/agents/actions/{name}", headers=headers),
    "plain, a head": lambda client, name, headers: client.head(f"/agents/actions/{name}", headers=headers),
    "plain, options": lambda client, name, headers: client.options(f"/agents/actions/{name}", headers=headers),
    **{f"mcp {version}": partial(call_tool, version) for version in VERSIONS},
    **{f"a2a, {way}": partial(send_task, way) for way in SAID},
}
"""Ways to call, by the name of the door and how it is called."""
CALLS = {way: _CALLS[way] for way in _CALLS if way.startswith(("plain", *installed("woa", "mcp", "a2a")))}


@pytest.mark.parametrize("token", ["", "ann", "nobody's"])
@pytest.mark.parametrize("way", CALLS)
def test_a_hidden_name_takes_the_same_steps_as_an_unknown_one(client, way, token, monkeypatch):
    monkeypatch.setattr(invoke, "perf_counter", lambda: 0.0)  # once a second a call looks for observers
    headers = {"authorization": f"Bearer {token}"} if token else {}

    def seen(name: str) -> tuple[Any, ...]:
        with counting("awp_publish") as steps:
            answer = CALLS[way](client, name, headers)
        text = re.sub(MADE, "ID", answer.text.replace(name, "NAME"))
        kept = {key: value for key, value in answer.headers.items() if key not in LEFT_OUT}
        return answer.status_code, text, kept, steps.count

    for name in (*HIDDEN, UNKNOWN) * 2:
        CALLS[way](client, name, headers)  # what is prepared at the first call is not counted
    unknown = seen(UNKNOWN)
    assert unknown[-1] > 50
    assert {name: seen(name) for name in HIDDEN} == dict.fromkeys(HIDDEN, unknown)


@pytest.mark.needs("awp")
@pytest.mark.parametrize("token", ["", "ann"])
def test_a_hidden_skill_takes_the_same_steps_as_an_unknown_one(client, token, monkeypatch):
    monkeypatch.setattr(invoke, "perf_counter", lambda: 0.0)
    headers = {"authorization": f"Bearer {token}"} if token else {}

    def seen(name: str) -> tuple[str, int]:
        with counting("awp_publish") as steps, AwpClient.greeted(client, headers) as caller:
            answer = caller.ask("skills.invoke", {"skill": name, "args": {"a": 1}})
        return re.sub(MADE, "ID", json.dumps(answer).replace(name, "NAME")), steps.count

    def seen_often(name: str) -> tuple[set[str], set[int]]:
        """What a connection does besides, while it waits or is closed, depends on which thread is first."""
        answers, counts = zip(*(seen(name) for _ in range(6)), strict=True)
        return set(answers), set(counts)

    for name in (*HIDDEN, UNKNOWN):
        seen(name)
    answers, counts = seen_often(UNKNOWN)
    assert min(counts) > 50
    for name in HIDDEN:
        hidden_answers, hidden_counts = seen_often(name)
        assert hidden_answers == answers
        assert hidden_counts & counts, (name, hidden_counts, counts)


@pytest.mark.parametrize("door", installed("woa", "plain"))
def test_a_session_that_does_not_exist_tells_no_hidden_name_from_an_unknown_one(open_client, door):
    async def sign_in(request: Request) -> JSONResponse:
        """Sign in."""
        request.session["user"] = "7"
        return JSONResponse("in")

    site = make_site()
    site.action("sign_in")(sign_in)

    @site.agent("quokka", audience="operator")
    async def quokka() -> str:
        """Be seen by operators."""
        return "seen"

    app = Starlette(
        routes=[Route("/sign-in", sign_in, methods=["POST"])],
        middleware=[Middleware(SessionMiddleware, secret_key="s" * 32)],
    )
    client = open_client(AgentPublisher(app, site=site, check=False))
    answers = []
    for name in ("quokka", UNKNOWN):
        path = f"/agents/{name}/invoke" if door == "woa" else f"/agents/actions/{name}"
        answer = client.post(path, json={"input": {}} if door == "woa" else {}, headers={"awp-session": "s" * 43})
        answers.append((answer.status_code, answer.json()["code"]))
    assert answers[0] == answers[1]


@pytest.mark.needs("a2a")
@pytest.mark.parametrize("has_secrets", [False, True])
@pytest.mark.parametrize("token", ["", "ann"])
@pytest.mark.parametrize("way", SAID)
def test_a_task_that_names_a_hidden_skill_looks_like_that_of_an_unknown_one(open_client, way, token, has_secrets):
    site = make_site()

    @site.agent("quokka", audience="operator")
    async def quokka(copies: int = 1) -> str:
        """Be seen by operators."""
        return "seen"

    @site.agent("look")
    async def look() -> str:
        """Look."""
        return "books"

    if has_secrets:

        @site.agent("quagga", audience="operator")
        async def quagga(pin: SecretStr, note: str = "") -> str:
            """Be told a secret by operators."""
            return "told"

    client = open_client(AgentPublisher(Starlette(), site=site, check=False))
    headers = {"authorization": f"Bearer {token}"} if token else {}

    def seen(name: str) -> tuple[int, str]:
        answer = send_task(way, client, name, headers)
        return answer.status_code, re.sub(MADE, "ID", answer.text.replace(name, "NAME"))

    hidden = ["quokka", "quagga"] if has_secrets else ["quokka"]
    assert {name: seen(name) for name in hidden} == dict.fromkeys(hidden, seen(UNKNOWN))
