"""The shop's reader connects the official MCP client, which asks them to sign in, and buys a book for them."""

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata
from mcp.types import ElicitResult
from pydantic import AnyUrl

from awp_publish.http.exchange import AsgiApp
from benchmarks.person import ACCOUNT, BACK, answer_in_browser, carry_out_async, log_in_at_shop
from demo_site.app import create_app
from tests.limit import OF_BROWSERS
from tests.live_server import serve
from tests.plugins.mcp.mcp_messages import MODERN, MODES
from tests.plugins.sign_in.people import CHROMIUM, Storage, open_chromium

PARCEL = {"name": "Ada", "address": "1 Quiet Lane, Oxford"}


def make_shop(url: str) -> AsgiApp:
    return create_app(url, packing_pause=0, doors=["mcp"])


class Reader:
    """The person, who signs in on the shop's page, allows what is asked there, and agrees to an order."""

    def __init__(self) -> None:
        self.opened = 0
        self.questions: list[str] = []
        self.came_back = ""

    async def open(self, address: str) -> None:
        """Go where the client sends the person."""
        self.opened += 1
        async with httpx.AsyncClient() as browser:
            self.came_back = await carry_out_async(answer_in_browser(address, BACK, log_in_at_shop(ACCOUNT)), browser)

    async def come_back(self) -> AuthorizationCodeResult:
        answer = dict(parse_qsl(urlsplit(self.came_back).query))
        return AuthorizationCodeResult(code=answer["code"], state=answer["state"], iss=answer["iss"])

    async def agree(self, _context: object, params: Any) -> ElicitResult:
        self.questions.append(params.message)
        return ElicitResult(action="accept", content={})


class ReaderInChromium(Reader):
    """The same person with a real browser, in which they read the pages at the size of a telephone."""

    def __init__(self, browser: Any) -> None:
        super().__init__()
        self._browser = browser
        self.complaints: list[str] = []
        self.titles: list[str] = []

    async def open(self, address: str) -> None:
        self.opened += 1
        page = await self._browser.new_page(viewport={"width": 390, "height": 844}, color_scheme="dark")
        page.on("console", lambda message: self.complaints.append(message.text))
        await page.goto(address)
        self.titles.append(await page.title())
        for name, value in ACCOUNT.items():
            await page.fill(f".sign-in-form input[name={name}]", value)
        await page.click(".sign-in-form button")
        await page.wait_for_selector("button.allow")
        self.titles.append(await page.title())
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing is cut off"
        async with page.expect_request(f"{BACK}**") as sent_back:
            await page.click("button.allow")
        self.came_back = (await sent_back.value).url
        await page.close()


async def buy(url: str, reader: Reader, mode: str) -> Any:
    """Buy two copies of a book with the tools, and return the order."""
    metadata = OAuthClientMetadata(client_name="A reading agent", redirect_uris=[AnyUrl(BACK)])
    provider = OAuthClientProvider(f"{url}/mcp", metadata, Storage(), reader.open, reader.come_back)
    options: dict[str, Any] = {"elicitation_callback": reader.agree} if mode == MODERN else {}
    async with (
        httpx2.AsyncClient(auth=provider, timeout=30) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode, **options) as client,
    ):
        listed = {tool.name for tool in (await client.list_tools()).tools}
        assert {"search_books", "check_out"} <= listed
        assert not {"sign_in", "sign_out"} & listed
        found: Any = (await client.call_tool("search_books", {"q": "emma"})).structured_content
        assert reader.opened == 0  # nobody is asked before it is needed
        slug = next(book["slug"] for book in found["books"] if book["title"] == "Emma")
        await client.call_tool("add_to_basket", {"slug": slug, "quantity": 2})
        assert reader.opened == 1
        placed: Any = await client.call_tool("check_out", PARCEL)
        if placed.is_error:  # the client cannot ask its user, and is given a token for their answer
            asked = placed.meta["awp/problem"]["confirmation"]
            reader.questions.append(asked["summary"])
            placed = await client.call_tool("check_out", {**PARCEL, "confirmation": asked["token"]})
        assert placed.is_error is False, placed.content
        shown = await client.call_tool("show_order", {"order_id": placed.structured_content["order_id"]})
        assert shown.structured_content == placed.structured_content
    assert reader.opened == 1
    return placed.structured_content


@pytest.mark.parametrize("mode", MODES)
async def test_the_official_client_signs_the_reader_in_and_buys_a_book_that_they_have_confirmed(mode):
    reader = Reader()
    async with serve(make_shop) as url:
        order = await buy(url, reader, mode)
    assert (order["name"], order["total_cents"]) == ("Ada", 1900)
    [question] = reader.questions
    assert question.startswith("Order 2 x Emma for $19.00 in all")


@pytest.mark.slow
@pytest.mark.limit(OF_BROWSERS)
@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here")
async def test_the_reader_signs_in_and_allows_the_client_in_a_real_browser():
    async with serve(make_shop) as url, open_chromium() as browser:
        reader = ReaderInChromium(browser)
        order = await buy(url, reader, MODERN)
    assert order["total_cents"] == 1900
    first, question = reader.titles
    assert first.startswith("Sign in")
    assert question.startswith("Let A reading agent act for you?")
    assert reader.complaints == [], "no policy of either page is broken"


async def test_the_reader_finds_the_agent_among_those_that_are_connected():
    async with serve(make_shop) as url, httpx.AsyncClient(follow_redirects=True) as browser:
        await buy(url, Reader(), MODERN)
        signed_in = await browser.post(f"{url}/sign-in", data=ACCOUNT, headers={"accept": "text/html"})
        assert signed_in.status_code == 200
        page = (await browser.get(f"{url}/agents/connections")).text
    assert "<strong>A reading agent</strong>" in page
    assert "These programs may act for you, reader, at First Lines." in page
