"""The official clients find by themselves where people sign in, and call in their names."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from mcp_types import CallToolResult, TextContent
from pydantic import AnyUrl

from benchmarks.person import BACK as BACK, allow, answer_in_browser, carry_out_async
from tests.serve.live_server import serve
from tests.sign_in.shop import LOGIN, make_shop


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


class Person:
    """Somebody with a browser, who signs in and allows whatever is asked."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked: list[list[str]] = []
        self._http = httpx2.AsyncClient()

    async def __aenter__(self) -> "Person":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def open(self, address: str) -> None:
        steps = answer_in_browser(address, BACK, self.log_in, self.answer_to)
        self.came_back = dict(parse_qsl(urlsplit(await carry_out_async(steps, self._http)).query))

    def log_in(self, page: str, here: str) -> tuple[str, Mapping[str, Any]] | None:
        return (here, {"name": self.name}) if page == LOGIN else None

    def answer_to(self, page: str) -> Mapping[str, Any]:
        answer = allow(page)
        self.asked.append(answer["scope"])
        return answer

    async def come_back(self) -> AuthorizationCodeResult:
        sent = self.came_back
        return AuthorizationCodeResult(code=sent["code"], state=sent["state"], iss=sent["iss"])


def text_of(result: CallToolResult) -> str:
    content = result.content[0]
    assert isinstance(content, TextContent)
    return content.text


@pytest.mark.slow
async def test_a_client_of_the_sdk_signs_its_person_in_when_a_tool_needs_it():
    async with serve(make_shop) as url, Person("ann") as person:
        storage = Storage()
        provider = OAuthClientProvider(
            f"{url}/mcp",
            OAuthClientMetadata(client_name="A test", redirect_uris=[AnyUrl(BACK)]),
            storage,
            person.open,
            person.come_back,
        )
        async with (
            httpx2.AsyncClient(auth=provider, timeout=30) as http,
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
        assert person.asked
