"""Prompts and pages that are an action's: whoever reads them is asked for what the action asks its callers for."""

from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.responses import HTMLResponse, RedirectResponse

from awp_publish import AgentPublisher, BearerToken, OAuth, Principal, Site
from tests.client import TestClient
from tests.plugins.mcp.mcp_messages import VERSIONS, message, post

LOW, FULL, STAFF = "scope-low", "scope-full", "scope-staff"
CALLERS = {
    LOW: Principal("low", frozenset({"baseline"})),
    FULL: Principal("full", frozenset({"orders:read", "orders:all"})),
    STAFF: Principal("staff", frozenset({"staff"})),
}
METADATA = 'resource_metadata="https://shop.example/.well-known/oauth-protected-resource/mcp"'


@pytest.fixture(scope="module")
def client():
    site = Site(
        "Shop",
        "Sells things.",
        url="https://shop.example",
        plugins=["mcp", "overview"],
        authenticate=BearerToken(CALLERS),
        oauth=OAuth(authorization_servers=("https://login.example",)),
    )
    app = FastAPI()

    @app.get("/orders/{number}", response_class=HTMLResponse)
    @site.action("show_order", scopes=["orders:read", "orders:all"])
    async def show_order(number: int) -> str:
        """Show an order."""
        return f"<h1>Order {number}</h1>"

    @app.get("/stock", response_class=HTMLResponse)
    @site.action("show_stock", audience="staff")
    async def show_stock() -> str:
        """Show what there is."""
        return "<h1>Stock</h1>"

    @app.get("/about", response_class=HTMLResponse)
    @site.action("about")
    async def about() -> str:
        """Say who we are."""
        return "<h1>About</h1>"

    @app.get("/latest")
    async def latest() -> RedirectResponse:
        return RedirectResponse("/orders/7")

    @site.prompt("summarize_orders")
    @site.agent("summarize_orders", scopes=["orders:read", "orders:all"])
    async def summarize_orders(year: int = 2026) -> str:
        """Summarise the orders of a year."""
        return f"Twelve orders in {year}."

    @site.prompt("count_stock", complete={"shelf": lambda value: ["A1", "B2"]})
    @site.agent("count_stock", audience="staff")
    async def count_stock(shelf: str) -> str:
        """Count a shelf."""
        return f"Three on {shelf}."

    @site.prompt("greet")
    def greet() -> str:
        return "Hello."

    with TestClient(AgentPublisher(app, site=site), base_url="https://shop.example") as client:
        yield client


ORDER = ("resources/read", {"uri": "https://shop.example/orders/7"})
ESCAPED = ("resources/read", {"uri": "https://shop.example/%6Frders/7?x=1"})
MOVED = ("resources/read", {"uri": "https://shop.example/latest"})
STOCK = ("resources/read", {"uri": "https://shop.example/stock"})
SUMMARY = ("prompts/get", {"name": "summarize_orders"})
COUNT = ("prompts/get", {"name": "count_stock", "arguments": {"shelf": "A1"}})


def ask(client: Any, asked: Any, token: str | None = None, version: str = VERSIONS[-1]) -> Any:
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    return post(client, message(asked[0], asked[1], version=version), version, headers)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("asked", [ORDER, ESCAPED, MOVED, SUMMARY])
def test_a_reader_without_the_scopes_is_told_all_of_them_in_one_challenge(client, asked, version):
    nobody, low = ask(client, asked, version=version), ask(client, asked, LOW, version)
    assert (nobody.status_code, low.status_code) == (401, 403)
    challenge = low.headers["www-authenticate"]
    assert 'error="insufficient_scope"' in challenge
    assert 'scope="orders:read orders:all"' in challenge
    for answer in (nobody, low):
        assert METADATA in answer.headers["www-authenticate"]
        assert "result" not in answer.json()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("asked", [ORDER, ESCAPED, MOVED, SUMMARY])
def test_the_same_is_read_with_the_scopes(client, asked, version):
    answer = ask(client, asked, FULL, version)
    assert answer.status_code == 200
    assert "rder" in str(answer.json()["result"])


@pytest.mark.parametrize("asked", [STOCK, COUNT])
def test_resources_for_some_callers_are_hidden_from_all_others(client, asked):
    unknown = ("prompts/get", {"name": "other"}) if asked is COUNT else ("resources/read", {"uri": f"{OWN}/other"})
    for token in (None, LOW):
        answer, other = ask(client, asked, token), ask(client, unknown, token)
        assert answer.status_code == other.status_code
        assert answer.json()["error"]["code"] == other.json()["error"]["code"]
        assert "www-authenticate" not in answer.headers
    assert "result" in ask(client, asked, STAFF).json()


OWN = "https://shop.example"


def test_a_list_of_prompts_has_those_that_its_reader_may_know_of(client):
    def named(token: str | None) -> list[str]:
        result = ask(client, ("prompts/list", {}), token).json()["result"]
        assert result["cacheScope"] == "private"
        return [prompt["name"] for prompt in result["prompts"]]

    assert named(None) == named(LOW) == ["summarize_orders", "greet"]
    assert named(STAFF) == ["summarize_orders", "count_stock", "greet"]


def test_the_overview_names_the_prompts_that_its_reader_may_know_of(client):
    assert "count_stock" not in client.get("/agents", headers={"accept": "text/html"}).text
    assert "summarize_orders" in client.get("/agents", headers={"accept": "text/html"}).text


def test_values_of_a_prompt_that_is_for_some_are_suggested_to_them(client):
    asked = {"ref": {"type": "ref/prompt", "name": "count_stock"}, "argument": {"name": "shelf", "value": ""}}
    assert "error" in ask(client, ("completion/complete", asked)).json()
    assert ask(client, ("completion/complete", asked), STAFF).json()["result"]["completion"]["values"] == ["A1", "B2"]


def test_all_others_are_read_by_everybody(client):
    assert "About" in str(ask(client, ("resources/read", {"uri": f"{OWN}/about"})).json()["result"])
    assert "Hello" in str(ask(client, ("prompts/get", {"name": "greet"})).json()["result"])


def test_a_wrong_token_is_refused_where_one_is_asked_for(client):
    assert ask(client, SUMMARY, "wrong").status_code == 401
    assert ask(client, ("prompts/get", {"name": "greet"}), "wrong").status_code == 200
