"""The WoA REST door: draft-gaikwad-woa-00, sections 4.3.1, 5.1 and 5.2."""

import gc
import logging
import os
import subprocess
import sys
from typing import Annotated

import pytest
from fastapi import Body, Depends, FastAPI, Header, HTTPException, Request, Response
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel, Field, field_validator
from starlette.applications import Starlette
from starlette.middleware.sessions import SessionMiddleware
from starlette.responses import JSONResponse
from starlette.routing import Route

from awp_publish import AgentPublisher, DeclarationError, Paths, Refused, Site
from tests.client import TestClient
from tests.installed import installed

PROBLEM = "application/problem+json"


class Summary(BaseModel):
    summary: str


def shorten(site: Site) -> None:
    @site.agent("shortener", version="1.0.0")
    async def shorten(text: str, words: Annotated[int, Field(ge=1)] = 3) -> Summary:
        """Keep the first words of a text."""
        return Summary(summary=" ".join(text.split()[:words]))


def publish(site: Site, open_client, app=None) -> TestClient:
    return open_client(AgentPublisher(app or Starlette(), site=site))


def invoke(client: TestClient, called: str, given: object, **more: object):
    return client.post(f"/agents/{called}/invoke", json={"input": given, **more})


# --- The envelope ---


def test_the_url_is_the_base_and_the_invoke_path_put_together_literally(site, open_client):
    shorten(site)
    client = publish(site, open_client)
    rest = client.get("/.well-known/woa.json").json()["transports"]["rest"]
    url = (rest["base"] + rest["invoke_path"]).replace("{agent_id}", "shortener")
    assert client.post(url, json={"input": {"text": "a"}}).json() == {"summary": "a"}


@pytest.mark.parametrize(
    ("template", "url"),
    [
        ("/call/{agent_id}", "/call/shortener"),
        ("/call?agent={agent_id}", "/call?agent=shortener"),
        ("/call?v=1&agent=id-{agent_id}&x=", "/call?v=1&agent=id-shortener&x="),
        ("/call?v=1&agent=id-{agent_id}&x=", "/call?v=1&agent=other&agent=id-shortener&x="),
        ("/{agent_id}?mode=agent", "/shortener?mode=agent"),
    ],
)
def test_the_invoke_path_may_be_anywhere_and_hold_a_query(open_client, template, url):
    site = Site("Shop", "Sells.", url="https://shop.example", paths=Paths(invoke=template))
    shorten(site)
    client = publish(site, open_client)
    rest = client.get("/.well-known/woa.json").json()["transports"]["rest"]
    assert rest["invoke_path"] == template
    assert client.post(url, json={"input": {"text": "a"}}).json() == {"summary": "a"}
    wrong = client.post(url, json={"agent": "other", "input": {"text": "a"}})
    assert (wrong.status_code, wrong.json()["code"]) == (400, "AGENT_MISMATCH")


def test_an_invoke_path_without_the_agent_takes_it_from_the_envelope(open_client):
    site = Site("Shop", "Sells.", url="https://shop.example", paths=Paths(invoke="/call"))
    shorten(site)
    client = publish(site, open_client)
    assert client.post("/call", json={"agent": "shortener", "input": {"text": "a"}}).status_code == 200
    nameless = client.post("/call", json={"input": {"text": "a"}})
    assert (nameless.status_code, nameless.json()["code"]) == (400, "INVALID_ENVELOPE")


@pytest.mark.parametrize("envelope", [{}, {"input": {}}, {"input": 3}, {"text": "a"}])
def test_an_agent_that_is_unknown_is_told_before_what_its_envelope_lacks(site, open_client, envelope):
    shorten(site)
    answer = publish(site, open_client).post("/agents/shortner/invoke", json=envelope)
    assert (answer.status_code, answer.json()["code"]) == (404, "UNKNOWN_AGENT")


def test_invalid_input_is_told_by_pointers_into_the_input(site, open_client):
    class Line(BaseModel):
        sku: str
        copies: int = Field(ge=1)

    @site.agent("orders")
    async def order(lines: list[Line], note: str = "") -> str:
        """Order things."""
        return "ordered"

    given = {"lines": [{"sku": "a", "copies": 0}, {"copies": 1}], "note": 5, "a/b~c": 1}
    problem = invoke(publish(site, open_client), "orders", given).json()
    assert {error["pointer"] for error in problem["errors"]} == {
        "/lines/0/copies",
        "/lines/1/sku",
        "/note",
        "/a~1b~0c",
    }
    assert all(error["detail"] for error in problem["errors"])


def test_an_input_in_a_wrong_format_is_refused(site, open_client):
    @site.agent("plan", inputs={"type": "object", "properties": {"day": {"type": "string", "format": "date"}}})
    async def plan(day: str = "") -> str:
        """Plan a day."""
        return day

    client = publish(site, open_client)
    assert invoke(client, "plan", {"day": "2026-01-31"}).json() == "2026-01-31"
    answer = invoke(client, "plan", {"day": "soon"})
    assert (answer.status_code, [error["pointer"] for error in answer.json()["errors"]]) == (422, ["/day"])


# --- The request around it ---


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


def test_other_sites_may_not_call_unless_they_are_listed(open_client):
    asked = {"origin": "https://app.example", "access-control-request-method": "POST"}
    results = {}
    for allowed in ((), ("https://app.example",), ("*",)):
        site = Site("Shop", "Sells.", url="https://shop.example", allow_origins=allowed)
        shorten(site)
        client = publish(site, open_client)
        preflight = client.options("/agents/shortener/invoke", headers=asked)
        call = client.post(
            "/agents/shortener/invoke", json={"input": {"text": "a"}}, headers={"origin": asked["origin"]}
        )
        assert preflight.status_code == 204
        assert "access-control-allow-credentials" not in [*preflight.headers, *call.headers]
        name = "access-control-allow-origin"
        results[allowed] = (preflight.headers.get(name), call.headers.get(name))
    assert results == {
        (): (None, None),
        ("https://app.example",): ("https://app.example", "https://app.example"),
        ("*",): ("*", "*"),
    }


# --- The route behind it ---


def test_the_routes_own_dependencies_and_middleware_stay_in_force(site, open_client):
    app = FastAPI()

    def need_token(authorization: Annotated[str, Header()] = "") -> str:
        if authorization != "Bearer good":
            raise HTTPException(401, "Not signed in.", {"WWW-Authenticate": "Bearer"})
        return "Ada"

    @app.get("/me")
    @site.action("me")
    async def me(request: Request, user: Annotated[str, Depends(need_token)]) -> dict[str, str]:
        """Say who is asking."""
        request.session["seen"] = "yes"
        return {"user": user}

    app.add_middleware(SessionMiddleware, secret_key="secret")
    app.add_middleware(AgentPublisher, site=site)
    client = open_client(app)
    refused = invoke(client, "me", {})
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
    assert (refused.json()["code"], refused.json()["detail"]) == ("AUTHENTICATION_REQUIRED", "Not signed in.")
    client.headers["authorization"] = "Bearer good"
    answer = invoke(client, "me", {})
    assert answer.json() == {"user": "Ada"}
    assert "session=" in answer.headers["set-cookie"]


def test_what_outer_middleware_put_into_the_scope_reaches_the_route(site, open_client):
    app = FastAPI()

    @app.get("/count")
    @site.action("count")
    async def count(request: Request) -> int:
        """Count the visits."""
        request.session["visits"] = request.session.get("visits", 0) + 1
        return request.session["visits"]

    app.add_middleware(AgentPublisher, site=site)
    app.add_middleware(SessionMiddleware, secret_key="secret")
    client = open_client(app)
    assert [invoke(client, "count", {}).json() for _ in range(3)] == [1, 2, 3]


@pytest.mark.parametrize("value", ["1/delete", "../admin", "..", ".", "", "a\0b"])
def test_a_path_value_cannot_reach_another_route(site, open_client, value):
    app = FastAPI()

    @app.get("/books/{title}")
    @site.action("show")
    async def show(title: str) -> str:
        """Show a book."""
        return title

    @app.get("/books/{title}/delete")
    async def delete(title: str) -> str:
        raise AssertionError("reached")

    answer = invoke(publish(site, open_client, app), "show", {"title": value})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/title")


def test_a_placeholder_inside_a_value_is_only_text(site, open_client):
    app = FastAPI()

    @app.get("/{one}/{two}")
    @site.action("pair")
    async def pair(one: str, two: str) -> list[str]:
        """Give both back."""
        return [one, two]

    assert invoke(publish(site, open_client, app), "pair", {"one": "{two}", "two": "{one}"}).json() == [
        "{two}",
        "{one}",
    ]


# --- What comes back ---


def test_an_invoke_path_that_differs_by_its_query_leaves_the_path_to_the_application(open_client):
    async def page(request: Request) -> Response:
        return PlainTextResponse("a page")

    site = Site("Shop", "Sells.", url="https://shop.example", paths=Paths(invoke="/{agent_id}?mode=agent"))
    shorten(site)
    client = publish(site, open_client, Starlette(routes=[Route("/shortener", page, methods=["GET", "POST"])]))
    assert client.get("/shortener").text == "a page"
    assert client.post("/shortener?mode=person").text == "a page"
    assert client.post("/shortener?mode=agent", json={"input": {"text": "a"}}).json() == {"summary": "a"}


def test_what_the_routes_framework_refuses_points_into_the_input(site, open_client):
    class Order(BaseModel):
        sku: str
        copies: int

        @field_validator("sku")
        @classmethod
        def check(cls, value: str) -> str:
            if value != "good":
                raise ValueError("is not sold here")
            return value

    app = FastAPI()

    @app.post("/orders/{shop}")
    @site.action("order")
    async def order(shop: str, order: Order) -> str:
        """Order."""
        return order.sku

    problem = invoke(publish(site, open_client, app), "order", {"shop": "a", "sku": "bad", "copies": 1}).json()
    assert (problem["status"], problem["code"]) == (422, "INVALID_INPUT")
    assert problem["errors"] == [{"pointer": "/sku", "detail": "is not sold here"}]


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


def test_a_handler_may_refuse_in_its_own_words(site, open_client):
    @site.agent("picky")
    async def picky(name: str) -> str:
        """Refuse."""
        raise Refused(f"{name} is not on the list.", status=403, code="NOT_LISTED", recovery="call enlist first")

    problem = invoke(publish(site, open_client), "picky", {"name": "Ada"}).json()
    assert (problem["status"], problem["code"], problem["detail"]) == (403, "NOT_LISTED", "Ada is not on the list.")
    assert problem["recovery"] == "call enlist first"


def test_an_answer_against_its_schema_is_never_sent(site, open_client, caplog):
    async def lie(request: Request) -> Response:
        return JSONResponse({"number": "five"})

    site.declare(
        "lie",
        method="GET",
        path="/lie",
        description="Lie.",
        outputs={"type": "object", "properties": {"number": {"type": "integer"}}},
    )

    @site.agent("fib")
    async def fib() -> int:
        """Lie too."""
        return "five"  # type: ignore[return-value]

    client = publish(site, open_client, Starlette(routes=[Route("/lie", lie)]))
    for agent in ("lie", "fib"):
        answer = invoke(client, agent, {})
        assert (answer.status_code, answer.json()["code"]) == (500, "INVALID_OUTPUT")
        assert "five" not in answer.text


def test_what_a_refusal_cannot_say_in_json_is_replaced_and_not_a_failure(site, open_client):
    @site.agent("odd")
    async def odd() -> str:
        """Refuse oddly."""
        raise Refused("half \ud800 a pair", members={"seen": ["\udfff", {"n": 1}, object, None]})

    answer = invoke(publish(site, open_client), "odd", {})
    assert (answer.status_code, answer.json()["detail"]) == (409, "half ? a pair")
    assert answer.json()["seen"][:2] == ["?", {"n": 1}]
    assert answer.json()["seen"][3] is None


def test_a_schema_that_cannot_be_checked_is_told_by_action_at_the_start(site, open_client):
    class Odd(BaseModel):
        code: str = Field(json_schema_extra={"pattern": "("})

    @site.agent("odd")
    async def odd(given: Odd) -> str:
        """Take something odd."""
        return given.code

    with pytest.raises(DeclarationError, match='action "odd": not a valid JSON Schema'):
        publish(site, open_client)


# --- What a call leaves behind ---


MCP_CALL = b"""{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "shorten", "arguments":
{"text": "abcdef"}, "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
"io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
"io.modelcontextprotocol/clientCapabilities": {}}}}"""


@pytest.mark.needs("mcp")
@pytest.mark.parametrize("options", [{}, {"rate_limit": "1000/hour", "idempotency": True}])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/agents/shorten/invoke", b'{"input": {"text": "abcdef"}}'),
        ("/agents/actions/shorten", b'{"text": "abcdef"}'),
        ("/shorten", b'{"text": "abcdef"}'),
        ("/mcp", MCP_CALL),
    ],
)
async def test_a_call_leaves_no_circles_for_the_garbage_collector(path, body, options):
    site = Site("Shop", "Shortens.", "https://shop.example", plugins=installed("mcp"), guard_routes=True)
    app = FastAPI()

    @app.post("/shorten")
    @site.action("shorten", **options)
    async def shorten(text: Annotated[str, Body(embed=True)]) -> Summary:
        """Shorten a text."""
        return Summary(summary=text[:3])

    app.add_middleware(AgentPublisher, site=site)
    sent: list[int] = []

    async def call(number: int) -> None:
        headers = [
            (b"content-type", b"application/json"),
            (b"idempotency-key", b"key %d" % number),
            (b"accept", b"application/json, text/event-stream"),
            (b"mcp-protocol-version", b"2026-07-28"),
            (b"mcp-method", b"tools/call"),
            (b"mcp-name", b"shorten"),
        ]
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "POST",
            "scheme": "https",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": headers,
            "client": ("192.0.2.1", 1),
            "server": ("shop.example", 443),
        }

        async def receive():
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message):
            if message["type"] == "http.response.start":
                sent.append(message["status"])

        await app(scope, receive, send)

    await call(0)
    gc.collect()
    gc.freeze()  # else each look is at all that other tests keep
    left = []
    for first in range(1, 101, 20):  # what an earlier test has left is freed in one of the rounds, when its timers end
        gc.collect()
        gc.disable()
        try:
            for number in range(first, first + 20):
                await call(number)
            left.append(gc.collect())
        finally:
            gc.enable()
    assert sent == [200] * 101
    assert min(left) < 20
