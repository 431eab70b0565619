"""A shop with accounts of allauth behind gunicorn and uvicorn: official clients sign people in, and buy."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from benchmarks.person import hidden_fields
from tests.django.servers import ACCOUNTS, serve_accounts
from tests.django.signing_in import PASSWORD
from tests.plugins.sign_in.people import Person, Storage

pytest.importorskip("allauth", reason="allauth is not installed")


@pytest.fixture(params=list(ACCOUNTS), scope="module")
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the shop, behind one of the servers."""
    with serve_accounts(request.param, tmp_path_factory.mktemp("accounts")) as url:
        yield url


def log_in_by_allauth(name: str, page: str, here: str) -> tuple[str, Mapping[str, Any]] | None:
    """Return what allauth's form asks for."""
    if 'type="password"' not in page:
        return None
    return here, {**hidden_fields(page), "login": name, "password": PASSWORD}


@pytest.mark.slow
async def test_the_official_client_signs_its_person_in_and_buys(address):
    async with Person("ann", log_in=log_in_by_allauth) as person:
        storage = Storage()
        async with (
            person.agent(address, storage) as http,
            Client(streamable_http_client(f"{address}/mcp", http_client=http)) as client,
        ):
            listed: Any = await client.call_tool("list_books", {})
            assert "Emma" in listed.content[0].text
            assert not person.pages
            ordered: Any = await client.call_tool("order_book", {"title": "Emma"})
            assert ordered.structured_content["messages"] == ["Emma for ann"]
            assert len(person.pages) == 1
            again: Any = await client.call_tool("order_book", {"title": "Persuasion"})
            assert again.structured_content["messages"] == ["Persuasion for ann"]
        assert storage.tokens is not None
        assert storage.tokens.refresh_token is not None


@pytest.mark.slow
async def test_allauth_lets_somebody_else_sign_in_than_who_is_shown(address):
    async with Person("ann", "other", log_in=log_in_by_allauth) as person:
        person.browser.event_hooks = {"response": [change_to("ben", person)]}
        storage = Storage()
        async with (
            person.agent(address, storage) as http,
            Client(streamable_http_client(f"{address}/mcp", http_client=http)) as client,
        ):
            ordered: Any = await client.call_tool("order_book", {"title": "Emma"})
            assert ordered.structured_content["messages"] == ["Emma for ben"]
        assert [re.findall(r"<dd>(\w+)</dd>", page)[0] for page in person.pages] == ["ann", "ben"]


def change_to(name: str, person: Person) -> Any:
    """Return a hook after which a person signs in by another name, once the first consent page was shown."""

    async def change(answer: httpx2.Response) -> None:
        if person.pages:
            person.name = name

    return change
