"""What every protocol promises, whatever it is."""

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import orjson
import pytest

import awp_publish
from awp_publish.documents.members import AI_CATALOG_PATH, ARD_PATH
from awp_publish.documents.protocol import Document, Protocol
from awp_publish.model import Catalog, JsonObject
from awp_publish.plugins.a2a import agent_card
from awp_publish.plugins.discovery import agent_skills, api_catalog
from awp_publish.plugins.mcp import servers
from tests.documents.known import ALL

from .catalogs import BOOKSHOP, make_action, make_catalog, make_function_action, read

SCHEMAS = {"input_schema", "result_schema", "inputSchema", "outputSchema", "example", "examples", "default", "$defs"}
"""Members whose values are somebody else's JSON."""

EVERY = [document for protocol in ALL for document in protocol.documents]
DOCUMENTS = [pytest.param(document, id=document.path) for document in EVERY if "json" in document.media_type]
OF_CLOSED_SHAPE = {
    "/schema/awas-schema.json",
    "/agents/schemas.json",
    agent_card.OLDER_PATH,
    agent_skills.PATH,
    agent_skills.ALIAS_PATH,
    api_catalog.API_CATALOG_PATH,
    ARD_PATH,
    AI_CATALOG_PATH,
    servers.SERVERS_PATH,
}
"""Documents whose schema leaves no room for members of a site's own."""
MANIFESTS = [parameter for parameter in DOCUMENTS if parameter.id not in OF_CLOSED_SHAPE]
CATALOGS = [pytest.param(make_catalog(), id="empty"), pytest.param(BOOKSHOP, id="bookshop")]


def test_every_protocol_file_is_registered() -> None:
    package = Path(awp_publish.__file__).parent
    files = [path for room in ("documents", "plugins") for path in (package / room).rglob("*.py")]
    with_protocols = [
        path for path in files if re.search(r"^\w+(: Final)? = Protocol\(", path.read_text(), re.MULTILINE)
    ]
    names = (".".join(path.relative_to(package.parent).with_suffix("").parts) for path in with_protocols)
    modules = [import_module(name) for name in names]
    made = {value.name for module in modules for value in vars(module).values() if isinstance(value, Protocol)}
    assert made == {protocol.name for protocol in ALL}


def test_no_path_is_served_by_two_documents() -> None:
    paths = [document.path for protocol in ALL for document in protocol.documents]
    assert len(paths) == len(set(paths))


@pytest.mark.parametrize("catalog", CATALOGS)
@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_bytes_are_stable_compact_json(document: Document, catalog: Catalog) -> None:
    body = document.render(catalog)
    assert document.render(catalog) == body
    assert orjson.dumps(orjson.loads(body)) == body


@pytest.mark.parametrize("document", MANIFESTS)
def test_an_absent_fact_is_an_absent_member(document: Document) -> None:
    for catalog in (make_catalog(make_action()), BOOKSHOP):
        assert list(_null_members(_described(document, catalog))) == []


@pytest.mark.parametrize("document", MANIFESTS)
def test_the_extensions_of_a_site_are_in_every_manifest(document: Document) -> None:
    manifest = read(document, BOOKSHOP)
    if document.path == agent_card.PATH:  # whose members are fixed: a declared extension has room for others
        manifest = manifest["capabilities"]["extensions"][0]["params"]
    assert manifest["x-region"] == "EU"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_nothing_private_of_an_action_leaks(document: Document) -> None:
    async def private_handler(_: JsonObject) -> bytes:
        return b""

    action = make_function_action("secret", {"type": "object"}, function=private_handler, timeout=12.25)
    body = document.render(make_catalog(action)).decode()
    for private in ("private_handler", "<function", __file__, "12.25", "0x"):
        assert private not in body


@pytest.mark.parametrize("document", MANIFESTS)
def test_no_manifest_names_a_door_that_is_shut(document: Document) -> None:
    catalog = make_catalog(make_action(), doors=())
    if document.condition is not None and not document.condition(catalog):
        return  # then there is no such document
    body = document.render(catalog).decode()
    for door in ("/mcp", "/a2a", "/awp", "/agents/{agent_id}/invoke", "openapi"):
        assert f'{door}"' not in body


def _described(document: Document, catalog: Catalog) -> object:
    """A manifest without the schemas in it: null is a value there."""
    manifest = read(document, catalog)
    for agent in manifest.get("agents", []):
        for schema in ("inputs", "outputs"):
            del agent[schema]
    return manifest


def _null_members(value: object, where: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, member in value.items():
            if member is None:
                yield f"{where}/{name}"
            elif name not in SCHEMAS:
                yield from _null_members(member, f"{where}/{name}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _null_members(item, f"{where}/{index}")
