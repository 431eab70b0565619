"""Clients of others find by themselves where people sign in, and call in their names."""

import asyncio
import webbrowser
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from tests.limit import OF_BROWSERS
from tests.live_server import serve
from tests.plugins.sign_in.people import CHROMIUM, Person, Storage, click_through, open_chromium
from tests.plugins.sign_in.shop import make_shop, make_starlette_shop

pytestmark = pytest.mark.slow


def text_of(result: CallToolResult) -> str:
    content = result.content[0]
    assert isinstance(content, TextContent)
    return content.text


SHOPS = pytest.mark.parametrize("make", [make_shop, make_starlette_shop], ids=["fastapi", "starlette"])


@SHOPS
async def test_a_client_of_the_sdk_signs_its_person_in_when_a_tool_needs_it(make):
    storage = Storage()
    async with (
        serve(make) as url,
        Person("ann") as person,
        person.agent(url, storage) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
    ):
        listed = await client.call_tool("list_books", {})
        assert text_of(listed) == '["Emma"]'
        assert storage.tokens is None  # nobody was asked for what is open to everybody
        profile = await client.call_tool("read_profile", {})
        assert text_of(profile) == "ann"
        ordered = await client.call_tool("order_book", {"title": "Emma"})
        assert text_of(ordered) == "Emma for ann"
    assert storage.client is not None
    assert storage.client.client_secret is None
    assert person.pages


@SHOPS
@pytest.mark.limit(OF_BROWSERS)
@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here")
@pytest.mark.filterwarnings("ignore")  # of the packages that fastmcp brings
async def test_fastmcp_opens_the_persons_browser_and_calls_in_their_name(make):
    fastmcp = pytest.importorskip("fastmcp", reason="fastmcp is not installed")
    clicks = list[asyncio.Task[Any]]()
    async with serve(make) as url, open_chromium() as chromium:

        class Browser(webbrowser.BaseBrowser):
            """The browser of this machine, with somebody in front of it."""

            def open(self, url: str, new: int = 0, autoraise: bool = True) -> bool:
                clicks.append(asyncio.get_running_loop().create_task(self._click(url)))
                return True

            async def _click(self, url: str) -> None:
                page = await chromium.new_page()
                await page.goto(url)
                await click_through(page, "ann")
                await page.wait_for_url("http://localhost:*/callback*")

        webbrowser.register("somebody", None, Browser(), preferred=True)
        try:
            async with fastmcp.Client(f"{url}/mcp", auth="oauth") as client:
                assert {tool.name for tool in await client.list_tools()} >= {"list_books", "order_book"}
                ordered = await client.call_tool("order_book", {"title": "Emma"})
                assert ordered.content[0].text == "Emma for ann"
                assert (await client.call_tool("read_profile", {})).content[0].text == "ann"
        finally:
            webbrowser.register("somebody", None, webbrowser.GenericBrowser("true"))
            await asyncio.gather(*clicks)
        assert len(clicks) == 1
