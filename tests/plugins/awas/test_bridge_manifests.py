"""AWAS's manifests for MCP and A2A clients."""

from typing import Any

import pytest

from awp_publish.documents.members import AWAS_ALIAS_PATH
from awp_publish.documents.protocol import Document
from awp_publish.model import DoorFacts, OpenApi, Workflow
from awp_publish.plugins.awas import bridge_manifests, schemas
from tests.documents.catalogs import BOOKSHOP, make_action, make_catalog, read

(MCP,) = bridge_manifests.MCP_MANIFEST.documents
(A2A,) = bridge_manifests.A2A_MANIFEST.documents
QUIET = make_catalog(doors=())
BOTH = pytest.mark.parametrize("document", [MCP, A2A])


def test_bridge_manifests_are_served_as_awas_says() -> None:
    assert (MCP.path, A2A.path) == ("/.well-known/mcp-manifest.json", "/.well-known/a2a-manifest.json")
    for document in (MCP, A2A):
        assert document.media_type == "application/json; charset=utf-8"
        assert document.max_age == 3600


@BOTH
def test_bridge_manifests_introduce_the_site(document: Document) -> None:
    manifest = read(document, BOOKSHOP)
    assert (manifest["name"], manifest["version"]) == ("Bookshop", "2.1")
    assert manifest["description"] == "Find and order books."
    assert manifest["metadata"] == {"homepage": "https://books.example", "documentation": "/help", "license": "MIT"}


@BOTH
def test_bridge_manifests_refer_to_no_foreign_schema(document: Document) -> None:
    assert "$schema" not in read(document, BOOKSHOP)


@BOTH
def test_bridge_manifests_list_the_doors_that_are_open(document: Document) -> None:
    endpoints = read(document, BOOKSHOP)["endpoints"]
    doors = {"woa": "/agents/{agent_id}/invoke", "mcp": "/mcp", "a2a": "/a2a", "awp": "/awp"}
    assert endpoints.items() >= (doors | {"openapi": "/openapi.json"}).items()
    assert not read(document, QUIET)["endpoints"].keys() & {*doors, "openapi"}


def test_the_mcp_manifest_refers_to_the_catalogue_and_its_schema() -> None:
    assert read(MCP, QUIET)["endpoints"] == {"actions": AWAS_ALIAS_PATH, "schema": schemas.SCHEMA_PATH}


def test_the_a2a_manifest_refers_to_the_catalogue_and_its_schema() -> None:
    assert read(A2A, QUIET)["endpoints"] == {
        "actions_registry": AWAS_ALIAS_PATH,
        "schema_definition": schemas.SCHEMA_PATH,
        "api_base": "https://books.example",
    }
    assert read(A2A, QUIET)["discovery"] == {"auto_discoverable": True, "discovery_endpoint": A2A.path}


def test_a_site_below_a_path_is_referred_to_from_the_origin() -> None:
    catalog = make_catalog(url="https://example.com/shop", openapi=OpenApi("/openapi.json", "3.1.0"))
    endpoints = read(A2A, catalog)["endpoints"]
    assert endpoints["api_base"] + endpoints["actions_registry"] == "https://example.com/shop/.well-known/awas.json"
    assert endpoints["openapi"] == "/shop/openapi.json"
    assert read(MCP, catalog)["endpoints"]["schema"] == "/shop/schema/awas-schema.json"


@pytest.mark.parametrize(
    ("site", "actions", "capabilities"),
    [
        ({}, (), []),
        ({}, (make_action(),), ["actions"]),
        ({"workflows": (Workflow("w", "W", ("ping",)),)}, (make_action(),), ["actions", "workflows"]),
    ],
)
def test_mcp_capabilities_are_what_is_there(site: Any, actions: Any, capabilities: list[str]) -> None:
    assert read(MCP, make_catalog(*actions, site=site))["capabilities"] == capabilities


def test_a2a_capabilities_are_what_is_there() -> None:
    assert read(A2A, QUIET)["capabilities"] == {"actions": False, "workflows": False, "authentication": False}
    assert read(A2A, BOOKSHOP)["capabilities"] == {"actions": True, "workflows": True, "authentication": True}


def test_the_protocol_itself_is_claimed_while_its_door_is_open() -> None:
    assert read(MCP, BOOKSHOP)["integration"] == {"protocol": "MCP", "version": "2025-11-25"}
    assert read(A2A, BOOKSHOP)["protocol"] == "A2A"
    assert read(A2A, BOOKSHOP)["integration"] == {"a2a_version": "1.0"}
    for manifest in (read(MCP, QUIET), read(A2A, QUIET)):
        assert not {"protocol", "integration"} & manifest.keys()


@pytest.mark.parametrize(
    ("changes", "compatible"),
    [
        ({"doors": ()}, []),
        ({"doors": (DoorFacts("a2a", "1.0", "/a2a"),)}, []),
        ({"doors": (DoorFacts("mcp", "1", "/mcp"),)}, ["MCP"]),
        ({"doors": (), "openapi": OpenApi("/openapi.json", "3.1.0")}, ["OpenAPI"]),
    ],
)
def test_interoperability_is_with_what_is_spoken(changes: Any, compatible: list[str]) -> None:
    assert read(A2A, make_catalog(**changes))["interoperability"] == {
        "cross_protocol": bool(compatible),
        "compatible_with": compatible,
    }
