"""The shop by its map: found, put aside and checked out through `actions.site`, in process and in a visitor's tab."""

import asyncio
from typing import Any

import httpx
import pytest

from awp_publish.http.exchange import AsgiApp
from awp_publish.maps.chromium import open_chromium, why_unavailable
from awp_publish.plugins.actions_json.reading import ActionMap
from demo_site.accounts import DEMO_ACCOUNTS
from demo_site.app import create_app
from tests.limit import OF_BROWSERS
from tests.live_server import BridgeAgent, agent_of, pair, serve

pytestmark = pytest.mark.limit(OF_BROWSERS)


def make_shop(url: str) -> AsgiApp:
    return create_app(url, packing_pause=0, doors=["bridge"])


async def buy(use: BridgeAgent) -> None:
    """Find a book, sign in, put it aside, and check out as far as a person's consent."""

    async def call(action: str, **arguments: Any) -> Any:
        answer = await use("call", action=action, arguments=arguments)
        assert answer.get("ok") is True, answer
        return answer["result"]

    await call("browser.navigate", url="/search")
    found = await call("search_books", q="moby")
    assert found["url"].partition("?")[2].startswith("q=moby")
    read = await use("state_read", projection_name="search.results")
    slug = read["state"]["books"][0]["slug"]
    assert slug == "moby-dick"
    assert [book["title"] for book in read["state"]["books"]] == ["Moby-Dick"]
    refused = await use("call", action="search_books", arguments={"q": "moby", "sort": "year"})
    assert "no field for sort" in refused["message"]
    await call("browser.navigate", url="/sign-in")
    name, password = next(iter(DEMO_ACCOUNTS.items()))
    signed_in = await call("sign_in", name=name, password=password)
    assert signed_in["ok"] is True
    assert (await call("add_to_basket", slug=slug, quantity=2))["lines"][0]["quantity"] == 2
    await call("browser.navigate", url="/basket")
    basket = await use("state_read", projection_name="basket.lines")
    assert basket["state"]["lines"] == [{"title": "Moby-Dick", "copies": 2}]
    total = await use("state_summary", projection_name="basket.lines", summary_name="total")
    assert total["summary"]["copies"] == 2
    address = {"name": "Ann", "address": "1 Harbour Street"}
    refused = await use("call", action="check_out", arguments=address)
    assert refused["code"] == "permission_denied", refused
    asked = refused["evidence"]["confirmation"]
    assert "2 x Moby-Dick" in asked["summary"]
    ordered = await use("call", action="check_out", arguments=address, confirmation=asked["token"])
    assert ordered["result"]["order_id"], ordered


async def test_an_agent_buys_in_a_page_in_process():
    async with serve(make_shop) as url, agent_of(url) as use:
        await buy(use)


async def test_an_agent_buys_in_a_visitors_tab():
    if (reason := why_unavailable()) is not None:
        pytest.skip(reason)
    async with serve(make_shop) as url, open_chromium([url]) as chromium:
        tab = (await chromium.open(f"{url}/")).page
        assert await tab.locator("[data-agents-badge]").count() == 0
        code = await pair(tab)
        async with agent_of(url, code) as use:
            await buy(use)
            assert (
                "signed" in (await tab.inner_text("body")).lower() or await tab.locator(".sign-out-form").count() == 1
            )
            await tab.click("[data-agents-badge] button")
            await tab.locator("[data-agents-badge]").wait_for(state="detached")
            async with asyncio.timeout(30):
                while "code" not in (answer := await use("list")):  # noqa: ASYNC110, the site hears that the tab has left
                    await asyncio.sleep(0.02)
            assert answer["code"] == "runtime_not_found"


async def test_the_map_is_valid_and_tells_of_the_shop():
    transport = httpx.ASGITransport(app=make_shop("https://books.example"))
    async with httpx.AsyncClient(transport=transport, base_url="https://books.example") as client:
        document = (await client.get("/actions.json")).json()
    read = ActionMap.read(document)
    assert read.is_valid, read.findings
    names = {tool["name"]: tool for tool in document["tools"]}
    assert {"search_books", "add_to_basket", "check_out"} <= names.keys()
    assert "workflow" in names["sign_in"]
    assert "workflow" in names["search_books"]
    assert names["check_out"]["x_actions"]["handler"] == "agents.invoke"
    assert "workflow" not in names["check_out"]
    assert {state["name"] for state in document["states"]} >= {"search.results_visible", "basket.filled"}
    assert "basket.lines" in {projection["name"] for projection in document["state_projections"]}
