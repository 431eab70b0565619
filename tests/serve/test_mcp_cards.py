"""Cards of MCP Apps: what is offered to whom, and how they look and work in a host of the test's own, in Chromium."""

import json
import os
import re
import shutil
from datetime import date, timedelta
from typing import Any

import pytest
from fastapi import FastAPI
from pydantic import BaseModel, Field

from awp_publish import AgentPublisher, BearerToken, Site
from tests.serve.mcp_messages import CLASSIC, MODERN, message, post

CHROMIUM = shutil.which("chromium")
MEDIA_TYPE = "text/html;profile=mcp-app"
SHOWS_CARDS = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": [MEDIA_TYPE]}}}


class Sale(BaseModel):
    """What was sold on a day."""

    day: date
    tea: str = Field(title="Tea </script><b>")
    total: float
    note: str | None = None


def make_client(open_client, **options):
    app = FastAPI()
    site = Site("Tea", "Sells tea.", url="https://shop.example", doors=["mcp"], **options)

    @site.agent("sales", effect="read")
    async def sales(days: int = Field(3, ge=1, le=100)) -> list[Sale]:
        """List what was sold by day."""
        first = date(2026, 1, 30)
        teas = ["Darjeeling", "assam", "Earl Grey"]
        return [
            Sale(day=first + timedelta(days=one), tea=teas[one % 3], total=[9.5, 100, 20][one % 3])
            for one in range(days)
        ]

    @site.agent("order", confirm="Order {count} of {tea} for {count} x $9", effect="irreversible")
    async def order(tea: str, count: int = Field(1, ge=1, le=9, description="How many.")) -> str:
        """Order a tea."""
        return f"ordered {count} of {tea}"

    @site.agent("count", effect="read")
    async def count() -> int:
        """Count the teas."""
        return 3

    @site.agent("stock", effect="read", audience="known")
    async def stock() -> list[Sale]:
        """List what is there."""
        return []

    app.add_middleware(AgentPublisher, site=site)
    return open_client(app)


def listed(client, version=MODERN, capabilities=None, **headers) -> dict[str, Any]:
    sent = message("tools/list", version=version, capabilities=capabilities)
    return {one["name"]: one for one in post(client, sent, version, headers).json()["result"]["tools"]}


def read(client, uri: str, version=MODERN) -> dict[str, Any]:
    answer: dict[str, Any] = post(client, message("resources/read", {"uri": uri}, version=version), version).json()
    return answer


def test_cards_are_for_clients_that_show_them(open_client):
    client = make_client(open_client)
    discovered = post(client, message("server/discover")).json()["result"]["capabilities"]["extensions"]
    assert discovered["io.modelcontextprotocol/ui"] == {}
    with_cards = listed(client, capabilities=SHOWS_CARDS)
    assert with_cards["sales"]["_meta"]["ui"] == {"resourceUri": "ui://agents/sales.html"}
    assert with_cards["order"]["_meta"]["ui"] == {"resourceUri": "ui://agents/order.html"}
    assert "_meta" not in with_cards["count"]  # a number needs no card
    wanting: list[dict[str, Any]] = [
        {},
        {"extensions": {"io.modelcontextprotocol/ui": {}}},
        {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": "x"}}},
    ]
    for others in wanting:
        assert not any("_meta" in one for one in listed(client, capabilities=others).values())
    # What a client of a revision with a handshake can do is said once, and no session is kept.
    assert listed(client, CLASSIC)["sales"]["_meta"]["ui"] == {"resourceUri": "ui://agents/sales.html"}


@pytest.mark.parametrize("version", [MODERN, CLASSIC])
def test_a_card_holds_the_facts_of_its_action_and_loads_nothing(open_client, version):
    [card] = read(make_client(open_client), "ui://agents/sales.html", version)["result"]["contents"]
    assert card["mimeType"] == MEDIA_TYPE
    assert card["_meta"]["ui"]["csp"] == {}
    assert card["text"].count("</script>") == 2
    facts = json.loads(re.search(r'id="action">(.*?)</script>', card["text"])[1])  # type: ignore[index]
    assert facts["title"] == "Sales"
    assert facts["inputs"]["properties"]["days"]["maximum"] == 100
    assert facts["outputs"]["type"] == "array"
    assert not re.search(r"(src|href)=|@import|url\(|fetch\(", card["text"])


def test_a_card_of_an_action_that_is_not_for_everybody_tells_nothing_of_it(open_client):
    client = make_client(open_client, authenticate=BearerToken({"t": "ann"}))
    assert "stock" not in listed(client, capabilities=SHOWS_CARDS)
    tools = listed(client, capabilities=SHOWS_CARDS, authorization="Bearer t")
    assert tools["stock"]["_meta"]["ui"] == {"resourceUri": "ui://agents/card.html"}
    [card] = read(client, "ui://agents/card.html")["result"]["contents"]
    assert 'id="action">null</script>' in card["text"]
    for unknown in ("stock.html", "count.html", "none.html", "sales", "", "../sales.html", "sales.html?x"):
        assert read(client, f"ui://agents/{unknown}")["error"]["code"] == -32602


# --- In a browser ---

HOST = """<!doctype html><title>Host</title><iframe sandbox="allow-scripts" width="600" height="500"></iframe><script>
const frame = document.querySelector("iframe");
window.seen = [];
window.addEventListener("message", async ({ source, data }) => {
  if (source !== frame.contentWindow) return;
  window.seen.push(data);
  const answer = (result) => frame.contentWindow.postMessage({ jsonrpc: "2.0", id: data.id, result }, "*");
  if (data.method === "ui/initialize") answer(window.greeting);
  if (data.method === "ui/notifications/initialized")
    for (const one of window.told) frame.contentWindow.postMessage(one, "*");
  if (data.method === "ui/notifications/size-changed") frame.height = data.params.height;
  if (data.method === "ui/update-model-context") answer({});
  if (data.method === "tools/call") answer(await window.callTool(data.params));
});
</script>"""


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as engine:
        chromium = engine.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield chromium
        chromium.close()


def open_card(browser, client, tool: str, arguments: dict[str, Any], theme: str = "light", width: int = 640):
    """Show a tool's answer as a host does: its card in a frame that may run scripts and nothing else."""

    def call(params: dict[str, Any]) -> Any:
        return post(client, message("tools/call", params)).json()["result"]

    [card] = read(client, listed(client, capabilities=SHOWS_CARDS)[tool]["_meta"]["ui"]["resourceUri"])["result"][
        "contents"
    ]
    page = browser.new_page(viewport={"width": width, "height": 700}, color_scheme=theme)
    page.expose_function("callTool", call)
    page.set_content(HOST)
    told = [("tool-input", {"arguments": arguments}), ("tool-result", call({"name": tool, "arguments": arguments}))]
    greeting = {
        "protocolVersion": "2026-01-26",
        "hostInfo": {"name": "host", "version": "1"},
        "hostCapabilities": {"updateModelContext": {"text": {}}, "serverTools": {}},
        "hostContext": {"theme": theme, "locale": "en-US"},
    }
    page.evaluate(
        "([greeting, told, html]) => { window.greeting = greeting; window.told = told;"
        " document.querySelector('iframe').srcdoc = html; }",
        [
            greeting,
            [{"jsonrpc": "2.0", "method": f"ui/notifications/{name}", "params": params} for name, params in told],
            card["text"],
        ],
    )
    return page, page.frame_locator("iframe")


def test_a_list_is_a_table_that_can_be_sorted_with_a_line_of_numbers_by_date(browser, open_client):
    page, card = open_card(browser, make_client(open_client), "sales", {"days": 4})
    card.get_by_role("table").wait_for()
    assert card.get_by_role("columnheader").all_inner_texts() == ["Day", "Tea </script><b>", "Total", "Note"]
    by_tea = card.get_by_role("button", name="Tea")
    by_tea.click()
    teas = "tbody td:nth-child(2)"
    assert card.locator(teas).all_inner_texts() == ["assam", "Darjeeling", "Darjeeling", "Earl Grey"]
    card.get_by_role("button", name="Total").click()
    card.get_by_role("button", name="Total").click()
    assert card.locator("tbody td:nth-child(3)").all_inner_texts() == ["100", "20", "9.5", "9.5"]
    assert card.locator("th[aria-sort]").get_attribute("aria-sort") == "descending"
    picture = card.get_by_role("img").get_attribute("aria-label")
    assert picture == "Total by day, from 1/30/2026 to 2/2/2026: between 9.5 and 100"
    page.wait_for_function("window.seen.some((one) => one.method === 'ui/notifications/size-changed')")
    page.close()


def test_a_person_is_asked_before_the_call_is_made(browser, open_client):
    page, card = open_card(browser, make_client(open_client), "order", {"tea": "<b>Assam</b>", "count": 2}, "dark")
    card.get_by_text('Order 2 of "<b>Assam</b>" for 2 x $9').wait_for()
    assert card.get_by_text("This cannot be undone.").is_visible()
    card.get_by_role("button", name="Yes, do it").click()
    card.get_by_text("ordered 2 of <b>Assam</b>").wait_for()
    page.wait_for_function("window.seen.some((one) => one.method === 'ui/update-model-context')")
    told = page.evaluate("window.seen.filter((one) => one.method === 'ui/update-model-context')")
    assert "ordered 2 of" in told[0]["params"]["content"][0]["text"]
    page.close()


def test_nothing_is_done_where_they_do_not_agree(browser, open_client):
    page, card = open_card(browser, make_client(open_client), "order", {"tea": "Assam"})
    card.get_by_role("button", name="No").click()
    card.get_by_text("Nothing was done.").wait_for()
    assert not page.evaluate("window.seen.some((one) => one.method === 'tools/call')")
    page.close()


def test_a_wrong_input_is_mended_in_a_form_of_the_schema(browser, open_client):
    page, card = open_card(browser, make_client(open_client), "sales", {"days": 1000})
    days = card.get_by_label("Days")
    days.wait_for()
    assert (days.input_value(), days.get_attribute("max"), days.get_attribute("aria-invalid")) == (
        "1000",
        "100",
        "true",
    )
    days.fill("2")
    card.get_by_role("button", name="Send").click()
    card.get_by_role("table").wait_for()
    assert card.locator("tbody tr").count() == 2
    page.close()
