"""RFC 9728 metadata: where tokens for the site come from."""

import pytest

from awp_publish.model import Authentication, DoorFacts, Paths
from awp_publish.plugins.identity.protected_resource import (
    PATH,
    PROTOCOL,
    is_published,
    is_published_of_mcp,
    metadata_url,
)
from tests.documents.catalogs import BOOKSHOP, make_action, make_catalog, read

DOCUMENT, OF_MCP = PROTOCOL.documents
SERVERS = Authentication("oauth2", authorization_servers=("https://login.example", "https://sso.example/tenant"))


def test_everything_that_is_known_is_told_in_the_order_of_the_specification() -> None:
    actions = (make_action(scopes=("orders:write", "books:read")), make_action("pong", scopes=("books:read",)))
    catalog = make_catalog(*actions, site={"authentication": SERVERS, "documentation": "/help"})
    document = read(DOCUMENT, catalog)
    assert document == {
        "resource": "https://books.example",
        "authorization_servers": ["https://login.example", "https://sso.example/tenant"],
        "scopes_supported": ["books:read", "orders:write"],
        "bearer_methods_supported": ["header"],
        "resource_name": "Bookshop",
        "resource_documentation": "https://books.example/help",
    }
    assert list(document)[:2] == ["resource", "authorization_servers"]


def test_what_is_not_known_is_not_told() -> None:
    document = read(DOCUMENT, make_catalog(make_action(), site={"authentication": SERVERS}))
    assert set(document) == {"resource", "authorization_servers", "bearer_methods_supported", "resource_name"}


def test_documentation_may_stand_elsewhere() -> None:
    catalog = make_catalog(site={"authentication": SERVERS, "documentation": "https://docs.example/"})
    assert read(DOCUMENT, catalog)["resource_documentation"] == "https://docs.example/"


@pytest.mark.parametrize("authentication", [None, Authentication("bearer")])
def test_a_site_without_authorization_servers_has_no_such_document(authentication: Authentication | None) -> None:
    catalog = make_catalog(site={"authentication": authentication})
    assert not is_published(catalog)
    assert metadata_url(catalog) is None


def test_challenges_name_the_whole_address_also_below_a_path() -> None:
    below = make_catalog(site={"authentication": SERVERS}, url="https://example.org/shop")
    assert is_published(below)
    assert metadata_url(below) == f"https://example.org/shop{PATH}"
    assert read(DOCUMENT, below)["resource"] == "https://example.org/shop"


def test_it_is_json_at_its_well_known_path() -> None:
    assert (DOCUMENT.path, DOCUMENT.media_type) == ("/.well-known/oauth-protected-resource", "application/json")
    assert read(DOCUMENT, BOOKSHOP)["x-region"] == "EU"


@pytest.mark.parametrize(
    ("url", "path", "resource"),
    [
        ("https://books.example", "/mcp", "https://books.example/mcp"),
        ("https://books.example", "/ai/mcp", "https://books.example/ai/mcp"),
        ("https://example.org/shop", "/mcp", "https://example.org/shop/mcp"),
    ],
)
def test_the_mcp_endpoint_is_a_resource_of_its_own(url: str, path: str, resource: str) -> None:
    door = DoorFacts("mcp", "2026-07-28", path)
    catalog = make_catalog(site={"authentication": SERVERS}, url=url, paths=Paths(mcp=path), doors=(door,))
    assert is_published_of_mcp(catalog)
    assert OF_MCP.path_in(catalog) == PATH + path
    assert read(OF_MCP, catalog) == {**read(DOCUMENT, catalog), "resource": resource}


def test_where_no_mcp_door_is_open_there_is_no_resource_of_that_name() -> None:
    assert not is_published_of_mcp(make_catalog(site={"authentication": SERVERS}))
