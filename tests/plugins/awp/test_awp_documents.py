"""The messages of the descriptions, sent as they stand there, and every code that an answer can have."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from awp_publish import Awp, Site
from tests.client import TestClient
from tests.plugins.awp.awp_client import AwpClient
from tests.plugins.awp.awp_site import make_site, publish

DOCUMENTS = Path(__file__).parents[4] / "shared" / "fixtures" / "awp-websocket"
PAGE = """<!doctype html><html lang=en><title>Widget Pro</title>
<nav><a href="/">Home</a><a href="/products">Products</a></nav>
<main><h1>Widget Pro</h1><p>$49.99</p><form action="/cart"><button>Add to Cart</button></form></main></html>"""
SESSIONS = re.compile(r"s_a1b2c3d4|s_1|s:1")
IDS = ("e_8f3a1b", "e_story1", "e:9f2c")


async def show(request: Request) -> Response:
    return HTMLResponse(PAGE)


@pytest.fixture
def client(open_client, monkeypatch) -> TestClient:
    routes = [Route(path, show) for path in ("/", "/products", "/cart")]
    monkeypatch.setattr("tests.plugins.awp.awp_site.ROUTES", routes)
    return open_client(publish(make_checkout()))


def make_checkout() -> Site:
    site = make_site()
    stripe = site.agent("stripe_checkout")

    @stripe.operation("stripe_pay")
    async def stripe_pay(card_number: str, expiry: str, cvc: str) -> dict[str, bool]:
        """Pay."""
        return {"paid": True}

    return site


def examples(name: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The requests of a document, each with the response after it, or with none."""
    text = (DOCUMENTS / name).read_text()
    blocks = [
        json.loads(block) for block in re.findall(r"```json\n(\{.*?\n\})\n```", text, re.DOTALL) if "..." not in block
    ]
    blocks += [json.loads(line) for line in re.findall(r"^(?:->|<-) (\{.*\})$", text, re.MULTILINE)]
    pairs = zip(blocks, [*blocks[1:], {}], strict=True)
    return [
        (asked, told if told.get("type") == "response" and told["id"] == asked["id"] else {})
        for asked, told in pairs
        if asked.get("type") == "request"
    ]


def members(value: object, path: str = "") -> Iterator[str]:
    """The names of all members of an answer, except for those of a page."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield f"{path}.{name}"
            if name not in ("som", "data", "provenance"):
                yield from members(inner, f"{path}.{name}")


def fit(asked: dict[str, Any], session: str, element: str) -> Any:
    """The request with ids and addresses of this site in place of the document's own."""
    text = SESSIONS.sub(session, json.dumps(asked)).replace("p:1", "p_1").replace("stripe-checkout", "stripe_checkout")
    text = re.sub(r"https://(?:news\.ycombinator\.com|example\.com)", "https://shop.example/", text)
    for known in IDS:
        text = text.replace(known, element)
    return json.loads(text)


@pytest.mark.parametrize("name", ["awp-mvp.md", "awp.md"])
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_message_of_the_descriptions_is_answered_with_the_members_that_they_show(client, name, is_packed):
    if not DOCUMENTS.is_dir():
        pytest.skip("the descriptions are not beside the project")
    with AwpClient.open(client, is_packed=is_packed) as caller:
        caller.do("awp.hello")
        session = caller.create()
        caller.do("page.navigate", session_id=session, url="/")
        found = caller.do("page.extract", session_id=session, fields={"x": {"role": "link"}})["provenance"]["x"]
        asked_methods, compared = set(), 0
        for asked, told in examples(name):
            sent = fit(asked, session, found)
            if sent["method"] == "session.close":
                sent["params"]["session_id"] = caller.create()
            answer = caller.ask(sent["method"], sent["params"])
            asked_methods.add(sent["method"])
            if sent["method"] == "session.set_network" or "impersonation" in str(sent):
                assert answer["error"]["code"] == "UNSUPPORTED"
                continue
            compared += bool(told)
            missing = set(members(told.get("result", {}))) - set(members(answer["result"]))
            assert not missing - {".server.build"}, answer
        assert len(asked_methods) >= 7
        assert compared >= 1


# --- Codes ---


def page_of(caller: AwpClient, url: str = "/enter") -> dict[str, Any]:
    session = caller.create()
    caller.do("page.navigate", session_id=session, url=url)
    return {"session_id": session}


def provoke(caller: AwpClient, code: str) -> Any:
    """An answer with this code."""
    if code == "CONFLICT":
        caller.ask("session.create", key="once")
        return caller.ask("session.create", {"locale": "de"}, key="once")
    if code == "RATE_LIMITED":
        session = page_of(caller)
        return [caller.ask("page.create", session) for _ in range(16)][-1]
    asked: dict[str, tuple[str, dict[str, Any]]] = {
        "INVALID_REQUEST": ("page.act", {**page_of(caller), "intent": {"action": "fly", "target": {"css": "input"}}}),
        "UNSUPPORTED": ("page.evaluate_js", {"script": "1"}),
        "NOT_FOUND": ("page.act", {**page_of(caller), "intent": {"action": "click", "target": {"ref": "e_8f3a1b"}}}),
        "TIMEOUT": ("page.navigate", {"session_id": caller.create(), "url": "/sleep", "timeout_ms": 50}),
        "PERMISSION_DENIED": ("page.navigate", {"session_id": caller.create(), "url": "https://evil.example/"}),
        "NAVIGATION_FAILED": ("page.navigate", {"session_id": caller.create(), "url": "/fail"}),
        "SKILL_ERROR": ("skills.invoke", {"skill": "fail"}),
        "INTERNAL": ("session.create", {}),
    }
    method, params = asked[code]
    if code == "INTERNAL":
        return [caller.ask(method) for _ in range(21)][-1]
    return caller.ask(method, params)


@pytest.mark.parametrize(
    ("code", "details"),
    [
        ("INVALID_REQUEST", {"actions"}),
        ("UNSUPPORTED", {"method"}),
        ("NOT_FOUND", {"ref", "strategy", "target", "attempted"}),
        ("TIMEOUT", {"timeout_ms", "method"}),
        ("CONFLICT", {"idempotency_key"}),
        ("RATE_LIMITED", {"max_pages_per_session"}),
        ("PERMISSION_DENIED", {"url", "reason", "allowed"}),
        ("NAVIGATION_FAILED", {"status"}),
        ("SKILL_ERROR", {"code", "status", "recovery", "request_id"}),
        ("INTERNAL", {"max_sessions"}),
    ],
)
def test_every_code_but_that_of_scripts_can_occur_and_says_why(open_client, code, details):
    site = make_site(plugins=[Awp(sessions=100)])

    @site.agent("fail")
    async def fail() -> str:
        """Fail."""
        await asyncio.sleep(0)
        raise RuntimeError("a secret")

    with AwpClient.greeted(open_client(publish(site))) as caller:
        error = provoke(caller, code)["error"]
    assert error["code"] == code
    assert error["message"]
    assert details <= set(error["details"])
