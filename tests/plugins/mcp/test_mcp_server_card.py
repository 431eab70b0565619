"""The MCP server card, and the hybrid that scanners read."""

import re

import pytest

from awp_publish.model import Authentication, DoorFacts, Paths
from awp_publish.plugins.mcp.server_card import MAX_DESCRIPTION, PROTOCOL, is_published, name_of
from tests.documents.catalogs import BOOKSHOP, make_action, make_catalog, read

CARD, ALIAS, OTHER_ALIAS = PROTOCOL.documents
OPEN = (DoorFacts("mcp", "2026-07-28", "/mcp"),)
NAME = re.compile(r"^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$")
"""Of the published schema."""


def test_the_card_says_where_the_server_is_and_lists_no_tools() -> None:
    card = read(CARD, make_catalog(make_action(), doors=OPEN))
    assert card == {
        "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
        "name": "example.books/bookshop",
        "version": "1.0",
        "description": "Find and order books.",
        "title": "Bookshop",
        "websiteUrl": "https://books.example",
        "remotes": [
            {
                "type": "streamable-http",
                "url": "https://books.example/mcp",
                "supportedProtocolVersions": ["2025-11-25", "2026-07-28"],
            }
        ],
    }


def test_the_hybrid_has_the_members_that_scanners_look_for() -> None:
    catalog = make_catalog(make_action(), doors=OPEN)
    hybrid = read(ALIAS, catalog)
    assert read(OTHER_ALIAS, catalog) == hybrid
    assert hybrid.items() >= read(CARD, catalog).items()
    assert hybrid["serverInfo"] == {"name": "example.books/bookshop", "title": "Bookshop", "version": "1.0"}
    assert hybrid["transport"] == {"type": "streamable-http", "endpoint": hybrid["url"]}
    assert hybrid["url"] == "https://books.example/mcp"
    assert hybrid["protocolVersion"] == "2026-07-28"
    assert hybrid["capabilities"]["tools"] == {}
    assert hybrid["tools"] == [{"name": "ping", "description": "Say hello."}]


def test_the_server_card_is_published_while_the_door_is_open() -> None:
    assert is_published(BOOKSHOP)
    assert not is_published(make_catalog(make_action()))
    assert all(document.condition is is_published for document in PROTOCOL.documents)


def test_the_server_card_is_below_the_endpoint_wherever_that_is() -> None:
    catalog = make_catalog(
        make_action(), paths=Paths(mcp="/ai/mcp"), doors=(DoorFacts("mcp", "2026-07-28", "/ai/mcp"),)
    )
    assert CARD.path_in(catalog) == "/ai/mcp/server-card"
    assert read(CARD, catalog)["remotes"][0]["url"] == "https://books.example/ai/mcp"
    assert [ALIAS.path_in(catalog), OTHER_ALIAS.path_in(catalog)] == [ALIAS.path, OTHER_ALIAS.path]


@pytest.mark.parametrize(
    ("description", "shown"),
    [
        ("x" * 300, "x" * (MAX_DESCRIPTION - 1) + "…"),
        ("word; " * 60, "word; " * 15 + "word…"),
        ("a\n b", "a b"),
        ("ü" * MAX_DESCRIPTION, "ü" * MAX_DESCRIPTION),
    ],
)
def test_a_description_is_short_enough_for_the_schema(description: str, shown: str) -> None:
    assert read(CARD, make_catalog(site={"description": description}, doors=OPEN))["description"] == shown


@pytest.mark.parametrize(
    ("url", "name", "expected"),
    [
        ("https://shop.example.com", "Bücher & mehr", "com.example.shop/bucher-mehr"),
        ("http://localhost:8000", "図書", "localhost/site"),
        ("http://127.0.0.1:8000/shop", "My Shop!", "1.0.0.127/my-shop"),
        ("http://[::1]:8000", "Shop", "1/shop"),
    ],
)
def test_the_name_is_one_that_registries_take(url: str, name: str, expected: str) -> None:
    found = name_of(make_catalog(url=url, site={"name": name}))
    assert found == expected
    assert NAME.fullmatch(found)


def test_credentials_are_asked_for_as_the_actions_ask() -> None:
    login = {"authentication": Authentication("bearer")}
    private, public = make_action("mine", asker="site"), make_action()
    for actions, is_required in (((private, public), False), ((private,), True)):
        remote = read(CARD, make_catalog(*actions, site=login, doors=OPEN))["remotes"][0]
        assert remote["headers"] == [{"name": "Authorization", "isRequired": is_required, "isSecret": True}]
    assert "headers" not in read(CARD, make_catalog(public, site=login, doors=OPEN))["remotes"][0]
    key = {"authentication": Authentication("api_key")}
    assert "headers" not in read(CARD, make_catalog(private, site=key, doors=OPEN))["remotes"][0]
    named = {"authentication": Authentication("api_key", ("api_key", "bearer"), api_key_header="X-Key")}
    remote = read(CARD, make_catalog(private, site=named, doors=OPEN))["remotes"][0]
    assert [(header["name"], header["isRequired"]) for header in remote["headers"]] == [
        ("Authorization", False),
        ("X-Key", False),
    ]
