"""Cards of MCP Apps: what is offered to whom, and how they look and work in a host of the test's own, in Chromium."""

import json
import os
import re
from datetime import date, timedelta
from enum import Enum
from typing import Any, Literal

import pytest
from fastapi import FastAPI
from pydantic import BaseModel, Field

from awp_publish import AgentPublisher, Site
from awp_publish.maps.chromium import find_chromium
from tests.limit import OF_BROWSERS
from tests.plugins.mcp.mcp_messages import MODERN, message, post

pytestmark = pytest.mark.limit(OF_BROWSERS)


CHROMIUM = find_chromium()
MEDIA_TYPE = "text/html;profile=mcp-app"
SHOWS_CARDS = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": [MEDIA_TYPE]}}}


class Size(Enum):
    small = "</option><b>small"
    large = "large"


class Parcel(BaseModel):
    """What can be asked of a form."""

    size: Size
    weight: float = Field(1.5, gt=0)
    number: int = 0
    is_fragile: bool = True
    note: str | None = None
    tag: str | int = 3
    kind: Literal["letter", 7] | None = None
    address: dict[str, str] = {}
    anything: Any = None


class Sale(BaseModel):
    """What was sold on a day."""

    day: date
    tea: str = Field(title="Tea </script><b>")
    total: float
    note: str | None = None


def make_client(open_client, **options):
    app = FastAPI()
    site = Site("Tea", "Sells tea.", url="https://shop.example", plugins=["mcp"], **options)

    @site.agent("sales", effect="read")
    async def sales(days: int = Field(3, ge=1, le=100)) -> list[Sale]:
        """List what was sold by day."""
        first = date(2026, 1, 30)
        teas = ["Darjeeling", "assam", "Earl Grey"]
        return [
            Sale(day=first + timedelta(days=number), tea=teas[number % 3], total=[9.5, 100, 20][number % 3])
            for number in range(days)
        ]

    @site.agent("order", confirm="Order {count} of {tea} for {count} x $9", effect="irreversible")
    async def order(tea: str, count: int = Field(1, ge=1, le=9, description="How many.")) -> str:
        """Order a tea."""
        return f"ordered {count} of {tea}"

    @site.agent("send", effect="write", inputs=Parcel)
    async def send(parcel: Parcel) -> dict[str, Any]:
        """Send a parcel."""
        return {"sent": parcel.model_dump(mode="json")}

    @site.agent("pay", confirm="Pay {amount}")
    async def pay(amount: int) -> dict[str, int]:
        """Pay."""
        return {"paid": amount}

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
    return {tool["name"]: tool for tool in post(client, sent, version, headers).json()["result"]["tools"]}


def read(client, uri: str, version=MODERN) -> dict[str, Any]:
    answer: dict[str, Any] = post(client, message("resources/read", {"uri": uri}, version=version), version).json()
    return answer


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
    rows = [("tool-input", {"arguments": arguments}), ("tool-result", call({"name": tool, "arguments": arguments}))]
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
            [{"jsonrpc": "2.0", "method": f"ui/notifications/{name}", "params": params} for name, params in rows],
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
    answer = page.evaluate("window.seen.filter((one) => one.method === 'ui/update-model-context')")
    assert "ordered 2 of" in answer[0]["params"]["content"][0]["text"]
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


def tell(page, method: str, params: Any) -> None:
    """Send the card a notification as its host does."""
    sent = json.dumps({"jsonrpc": "2.0", "method": f"ui/notifications/{method}", "params": params})
    page.evaluate("(sent) => document.querySelector('iframe').contentWindow.postMessage(JSON.parse(sent), '*')", sent)


EVIL = "</script><script>window.top.pwned = 1</script><img src=x onerror='top.pwned = 1'>\u2028\u202e"
HOSTILE: dict[str, tuple[Any, str]] = {
    "markup": ([{EVIL: EVIL, "link": "javascript:alert(1)"}], EVIL.strip()[:40]),
    "names of what every object has": ([{"constructor": "own"}, {"__proto__": 1, "x": 2}], "own"),
    "rows that are none": ([None, {"x": "first"}, None], "first"),
    "more rows than are shown": ([{"x": number} for number in range(10_000)], "9500 more rows are not shown."),
    "more columns than are shown": (
        [{f"c{number}": number for number in range(200)}],
        "170 more columns are not shown.",
    ),
    "more items than are shown": ([*range(3_000)], "2500 more are not shown."),
    "more members than are shown": ({f"m{number}": number for number in range(5_000)}, "4500 more are not shown."),
    "long texts": ([{"x" * 1_000: "y" * 20_000}], "and 19700 more characters"),
    "a long fact": ({"text": "line\n" * 2_000}, "and 6000 more characters"),
    "members of members": ({"a": {"b": {"c": {"d": {"e": {"f": [{"g": 1}]}}}}}}, '{"f":[{"g":1}]}'),
    "large and small numbers": ([{"x": 1.7e308, "y": 1e-9, "z": 10**30}], "1.7e+308"),
    "days that are none": ([{"at": f"2026-13-4{number}", "n": number} for number in range(4)], "2026-13-43"),
    "sums without end": (
        [{"at": f"2026-01-0{number}", "n": (-1) ** number * 1.7e308} for number in range(1, 5)],
        "1.7e+308",
    ),
    "a null": (None, "\u2013"),
    "nothing": ([], "There is nothing to show."),
}


def test_every_answer_becomes_readable_text(browser, open_client):
    page, card = open_card(browser, make_client(open_client), "sales", {"days": 2})
    card.get_by_role("table").wait_for()
    for case, (value, words) in HOSTILE.items():
        tell(page, "tool-result", {"content": [{"type": "text", "text": case}], "structuredContent": {"result": value}})
        card.get_by_text(words, exact=False).first.wait_for()
        shown = card.locator("main").inner_text()
        assert not re.search(r"\bnull\b|undefined|native code|object Object|NaN", shown), case
        page_size = "[document.documentElement.scrollWidth - innerWidth, document.documentElement.scrollHeight]"
        too_wide, height = card.locator("main").evaluate(f"() => {page_size}")
        assert (too_wide <= 0, height < 2_000) == (True, True), case
        assert not card.locator("script:not([id]) ~ script, img, a, b").count(), case
    assert page.evaluate("window.pwned") is None
    page.close()


def test_messages_of_others_and_of_wrong_shapes_change_nothing_and_break_nothing(browser, open_client):
    page, card = open_card(browser, make_client(open_client), "sales", {"days": 2})
    card.get_by_role("table").wait_for()
    failures: list[str] = []
    page.on("pageerror", lambda error: failures.append(str(error)))
    forged = {
        "jsonrpc": "2.0",
        "method": "ui/notifications/tool-result",
        "params": {"structuredContent": {"result": "forged"}},
    }
    page.evaluate(
        """(forged) => new Promise((resolve) => {
          const other = document.createElement("iframe");
          window.addEventListener("message", ({ source }) => source === other.contentWindow && resolve(other.remove()));
          other.srcdoc = `<script>parent.frames[0].postMessage(${forged}, "*"); parent.postMessage(1, "*");<\\/script>`;
          document.body.append(other);
        })""",
        json.dumps(forged),
    )
    text = "ui/notifications/"
    failure = {"isError": True, "content": [{"type": "text", "text": '{"errors": [null, 5]}'}]}
    shapes: dict[str, list[Any]] = {
        f"{text}host-context-changed": [
            {"locale": "en_US", "timeZone": "Nowhere/None"},
            {"locale": {}, "styles": {"variables": None}, "toolInfo": "x"},
        ],
        f"{text}tool-result": [{"content": None}, {"content": [None, 5, {"type": "text"}]}, failure],
        f"{text}tool-input": [{"arguments": None}, {"arguments": [1]}],
    }
    wrong: list[Any] = [5, None, "x", [1], {}, {"jsonrpc": "2.0"}, {"jsonrpc": "2.0", "id": 1, "error": 5}]
    for method in (*shapes, "__proto__", "constructor", "__defineGetter__", 5):
        wrong += [
            {"jsonrpc": "2.0", "method": method, "params": item} for item in (None, 5, *shapes.get(str(method), ()))
        ]
    page.evaluate(
        "(wrong) => JSON.parse(wrong).forEach((one) => window.frames[0].postMessage(one, '*'))", json.dumps(wrong)
    )
    assert "forged" not in card.locator("main").inner_text()
    tell(page, "tool-result", {"structuredContent": {"result": [{"day": "2026-01-02", "total": 12345.5}]}})
    card.get_by_text("12,345.5").wait_for()
    assert failures == []
    page.close()


def test_a_form_sends_what_it_shows_and_chooses_nothing(browser, open_client):
    given = {"size": "none", "number": 2**60}
    page, card = open_card(browser, make_client(open_client), "send", given)
    size, number = card.get_by_label("Size"), card.get_by_label("Number")
    number.wait_for()
    assert (size.input_value(), card.get_by_label("Note").input_value()) == ("", "")
    assert size.locator("option").all_inner_texts() == ["", "</option><b>small", "large"]
    send = card.get_by_role("button", name="Send")
    size.select_option(label="large")
    send.click()
    assert number.evaluate("(field) => field.validationMessage") == "This number is too large to be sent as it is."
    number.fill("7")
    card.get_by_label("Is fragile").uncheck()
    card.get_by_label("Kind").select_option(label="7")
    card.get_by_label("Tag").fill("blue")
    card.get_by_label("Address").fill('{"street": "High')
    send.click()
    card.get_by_label("Address").fill('{"street": "High"}')
    send.click()
    card.get_by_text("Sent").wait_for()
    [called] = page.evaluate("window.seen.filter((one) => one.method === 'tools/call')")
    assert called["params"]["arguments"] == {
        "size": "large",
        "weight": 1.5,
        "number": 7,
        "is_fragile": False,
        "tag": "blue",
        "kind": 7,
        "address": {"street": "High"},
    }
    page.close()


def test_a_question_holds_no_more_than_its_words(browser, open_client):
    page, card = open_card(browser, make_client(open_client), "pay", {"amount": 3})
    card.get_by_text("Pay 3").wait_for()
    said = [line for line in card.locator("main").inner_text().splitlines() if line.strip()]
    assert [item for item in said if not item.startswith("You can answer until")] == [
        "Pay",
        "Pay 3",
        "Yes, do it",
        "No",
    ]
    card.get_by_role("button", name="Yes, do it").click()
    card.get_by_text("Paid").wait_for()
    page.close()
