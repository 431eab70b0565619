"""The WoA REST door: draft-gaikwad-woa-00, sections 4.3.1, 5.1 and 5.2. Whole answers are in `tests/doors`."""

import logging
import os
import subprocess
import sys

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from awp_publish import AgentPublisher, Paths, Refused, Site
from tests.client import TestClient


def shorten(site: Site) -> None:
    @site.agent("shortener", version="1.0.0")
    async def shorten(text: str) -> str:
        """Keep the first word of a text."""
        return text.split()[0]


def publish(site: Site, open_client, app=None) -> TestClient:
    return open_client(AgentPublisher(app or Starlette(), site=site))


def invoke(client: TestClient, called: str, given: object):
    return client.post(f"/agents/{called}/invoke", json={"input": given})


def test_an_invoke_path_that_differs_by_its_query_leaves_the_path_to_the_application(open_client):
    async def page(request: Request) -> Response:
        return PlainTextResponse("a page")

    site = Site("Shop", "Sells.", url="https://shop.example", paths=Paths(invoke="/{agent_id}?mode=agent&v=1"))
    shorten(site)
    client = publish(site, open_client, Starlette(routes=[Route("/shortener", page, methods=["GET", "POST"])]))
    assert client.get("/shortener").text == "a page"
    for query in ("mode=person&v=1", "mode=agent&v=2", "mode=agent", ""):
        assert client.post(f"/shortener?{query}").text == "a page"
    assert client.post("/shortener?v=1&mode=agent", json={"input": {"text": "a b"}}).json() == "a"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_processes_that_were_forked_of_one_give_different_request_ids():
    script = (
        "import os\n"
        "from awp_publish.http.request import read_request_id\n"
        "child = os.fork()\n"
        "child and os.waitpid(child, 0)\n"
        "print(read_request_id({}), flush=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=180, check=True)
    first, second = done.stdout.split()
    assert first != second


@pytest.mark.parametrize(("allowed", "named"), [((), None), (("*",), "*")])
def test_other_sites_may_not_call_unless_all_are_listed(open_client, allowed, named):
    asked = {"origin": "https://app.example", "access-control-request-method": "POST"}
    site = Site("Shop", "Sells.", url="https://shop.example", allow_origins=allowed)
    shorten(site)
    client = publish(site, open_client)
    preflight = client.options("/agents/shortener/invoke", headers=asked)
    call = client.post("/agents/shortener/invoke", json={"input": {"text": "a"}}, headers={"origin": asked["origin"]})
    for answer in (preflight, call):
        assert answer.headers.get("access-control-allow-origin") == named
        assert "access-control-allow-credentials" not in answer.headers


def test_a_failing_handler_is_opaque_and_its_log_has_the_same_id(site, open_client, caplog):
    app = FastAPI()

    @app.get("/boom")
    @site.action("boom")
    async def boom() -> str:
        """Fail."""
        raise RuntimeError("the secret is 42")

    @site.agent("bang")
    def bang() -> str:
        """Fail too."""
        raise RuntimeError("the secret is 42")

    client = publish(site, open_client, app)
    for agent in ("boom", "bang"):
        caplog.clear()
        with caplog.at_level(logging.ERROR):
            answer = invoke(client, agent, {})
        assert (answer.status_code, answer.json()["code"]) == (500, "HANDLER_FAILED")
        assert "secret" not in answer.text
        assert "Traceback" not in answer.text
        assert answer.json()["request_id"] in caplog.text
        assert "the secret is 42" in caplog.text


def test_a_refusal_that_json_cannot_represent_is_replaced(site, open_client):
    @site.agent("odd")
    async def odd() -> str:
        """Refuse oddly."""
        raise Refused("half \ud800 a pair", members={"seen": ["\udfff", {"n": 1}, object, None]})

    answer = invoke(publish(site, open_client), "odd", {})
    assert (answer.status_code, answer.json()["detail"]) == (409, "half ? a pair")
    assert answer.json()["seen"][:2] == ["?", {"n": 1}]
    assert answer.json()["seen"][3] is None
