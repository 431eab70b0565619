"""Names of hidden actions cannot be told from names that do not exist: not by the answer, nor by the work behind it."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from awp_publish import AgentPublisher
from tests.serve.mcp_messages import VERSIONS, message, post
from tests.serve.test_audience import make_site
from tests.steps import counting

HIDDEN = {"quokka": "of an agent", "quagga": "of a route that is read", "quolls": "that is for known callers"}
UNKNOWN = "quetza"
"""A name of nothing, as long as those of hidden actions."""


@pytest.fixture(scope="module")
def client() -> TestClient:
    app, site = FastAPI(), make_site()

    @site.agent("look")
    async def look() -> str:
        """Look."""
        return "books"

    @site.agent("quokka", audience="operator", rate_limit="5/minute", idempotency="24h", confirm=True)
    async def quokka(copies: int = 1) -> str:
        """Be seen by operators."""
        return "seen"

    @app.get("/quagga")
    @site.action("quagga", audience="operator")
    async def quagga(copies: int = 1) -> str:
        """Be read by operators."""
        return "read"

    @site.agent("quolls", audience="operator", execution="async")
    async def quolls() -> str:
        """Be slow for operators."""
        return "slow"

    # Each request starts a thread, whose steps are counted: the client is not opened.
    return TestClient(AgentPublisher(app, site=site, check=False), base_url="https://shop.example")


def call_tool(version: str, client: TestClient, name: str, headers: dict[str, str]) -> Any:
    return post(client, message("tools/call", {"name": name, "arguments": {"a": 1}}, version=version), version, headers)


CALLS: dict[str, Callable[[TestClient, str, dict[str, str]], Any]] = {
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
}


@pytest.mark.parametrize("token", ["", "ann", "nobody's"])
@pytest.mark.parametrize("way", CALLS)
def test_a_hidden_name_takes_the_same_steps_as_an_unknown_one(client, way, token):
    headers = {"authorization": f"Bearer {token}"} if token else {}

    def seen(name: str) -> tuple[Any, ...]:
        with counting("awp_publish") as steps:
            answer = CALLS[way](client, name, headers)
        text = re.sub(r'[0-9a-f]{32}|"id":\d+', "ID", answer.text.replace(name, "NAME"))
        kept = {key: value for key, value in answer.headers.items() if key != "x-request-id"}
        return answer.status_code, text, kept, steps.count

    for name in (*HIDDEN, UNKNOWN):
        seen(name)  # what is prepared at the first call
    unknown = seen(UNKNOWN)
    assert unknown[-1] > 50
    assert {name: seen(name) for name in HIDDEN} == dict.fromkeys(HIDDEN, unknown)


@pytest.mark.parametrize("door", ["woa", "plain"])
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
