"""People with browsers, who sign in and answer what agents ask for, and what a client of the SDK keeps of that."""

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self, TypeAlias
from urllib.parse import parse_qsl, urlsplit

import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from awp_publish.maps.chromium import find_chromium
from benchmarks.person import BACK, allow, answer_in_browser, carry_out_async
from tests.plugins.sign_in.shop import LOGIN

CHROMIUM = find_chromium()

LogIn: TypeAlias = Callable[[str, str, str], tuple[str, Mapping[str, Any]] | None]
"""Returns where a name signs in by which form, if a page, at this address, asks who it is."""


def log_in_at_shop(name: str, page: str, here: str) -> tuple[str, Mapping[str, Any]] | None:
    return (here, {"name": name}) if page == LOGIN else None


class Person:
    """Somebody with a browser, who signs in and allows whatever is asked, unless they have other `answers` first."""

    def __init__(self, name: str, *answers: str, log_in: LogIn = log_in_at_shop) -> None:
        self.name = name
        self.pages: list[str] = []
        """The consent pages that were shown."""
        self.browser = httpx2.AsyncClient()
        self._answers = list(answers)
        self._log_in = log_in

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.browser.aclose()

    def agent(self, url: str, storage: "Storage") -> httpx2.AsyncClient:
        """Return the HTTP client of an agent, the SDK's, that asks this person when a site wants it to."""
        metadata = OAuthClientMetadata(client_name="A test", redirect_uris=[AnyUrl(BACK)])
        provider = OAuthClientProvider(f"{url}/mcp", metadata, storage, self._open, self._come_back)
        return httpx2.AsyncClient(auth=provider, timeout=60)

    async def _open(self, address: str) -> None:
        steps = answer_in_browser(
            address, BACK, lambda page, here: self._log_in(self.name, page, here), self._answer_to
        )
        self._came_back = dict(parse_qsl(urlsplit(await carry_out_async(steps, self.browser)).query))

    def _answer_to(self, page: str) -> Mapping[str, Any]:
        self.pages.append(page)
        return {"answer": self._answers.pop(0)} if self._answers else allow(page)

    async def _come_back(self) -> AuthorizationCodeResult:
        sent = self._came_back
        return AuthorizationCodeResult(code=sent["code"], state=sent["state"], iss=sent["iss"])


class Storage:
    """What a client of the SDK keeps."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@asynccontextmanager
async def open_chromium() -> AsyncIterator[Any]:
    """Run Chromium."""
    from playwright.async_api import async_playwright

    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=CHROMIUM, args=sandbox)
        yield browser
        await browser.close()


async def click_through(page: Any, name: str) -> None:
    """Sign in at the shop and allow what is asked, in a page of Chromium that was sent to sign-in."""
    await page.fill("input[name=name]", name)
    await page.click("button")
    await page.click("button.allow")
