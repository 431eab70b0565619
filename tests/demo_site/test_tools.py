"""The shop's actions as tools of its pages: each is called in a real browser, and a person is asked before an order."""

import asyncio
import os
from typing import Any

import pytest

from awp_publish.maps.chromium import find_chromium
from demo_site.accounts import DEMO_ACCOUNTS
from demo_site.app import create_app
from tests.limit import OF_BROWSERS
from tests.live_server import serve

CHROMIUM = find_chromium()


@pytest.mark.slow
@pytest.mark.limit(OF_BROWSERS)
@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here")
async def test_every_action_is_called_from_the_page_and_the_person_is_asked():
    from playwright.async_api import Dialog, async_playwright

    asked, complaints = list[str](), list[str]()

    async def agree(dialog: Dialog) -> None:
        asked.append(dialog.message)
        await dialog.accept()

    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    async with serve(lambda url: create_app(url, packing_pause=0)) as url, async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=CHROMIUM, args=[*sandbox, "--enable-features=WebMCP"])
        page = await browser.new_page()
        page.on("dialog", agree)
        page.on("console", lambda message: complaints.append(message.text))
        await page.goto(f"{url}/sign-in")  # which no tool does: a person signs in by themselves
        name, password = next(iter(DEMO_ACCOUNTS.items()))
        await page.fill("form.sign-in-form input[name=name]", name)
        await page.fill("form.sign-in-form input[name=password]", password)
        await page.click("form.sign-in-form button")
        await page.wait_for_url(f"{url}/basket")
        tools: dict[str, Any] = {}
        async with asyncio.timeout(30):
            while not {"search_books", "ship_order"} <= tools.keys():  # the page's script tells of them
                tools = {tool["name"]: tool.get("annotations") or {} for tool in await page.webmcp.tools()}
        called = set[str]()

        async def call(name: str, /, **given: object):
            called.add(name)
            return await page.webmcp.call_tool(name, given)  # which parses the text that it gets

        found = await call("search_books", q="moby")
        slug = found["books"][0]["slug"]
        assert (await call("show_book", slug=slug))["slug"] == slug
        assert "summary" in await call("summarizer", text="Tea is hot. It is made of leaves.", max_words=10)
        await call("add_to_basket", slug=slug, quantity=2)
        await call("add_to_basket", slug="emma")
        await call("change_quantity", slug=slug, quantity=1)
        await call("remove_from_basket", slug="emma")
        basket = await call("show_basket")
        assert len(basket["lines"]) == 1
        order = await call("check_out", name="Ada", address="1 Quiet Lane")
        assert len(asked) == 1
        assert "Ada" in asked[0]
        assert (await call("show_order", order_id=order["order_id"]))["order_id"] == order["order_id"]
        await call("ship_order", order_id=order["order_id"])
        await browser.close()
    assert called == set(tools)
    assert all(tools[name].get("readOnly") for name in ("search_books", "show_book", "show_basket"))
    assert tools["check_out"].get("consequential")
    assert [complaint for complaint in complaints if "428" not in complaint] == [], (
        "neither the policy nor WebMCP complains"
    )
