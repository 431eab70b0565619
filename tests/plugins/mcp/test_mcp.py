"""The MCP door, as the official client sees it in both generations of the protocol."""

import asyncio
from datetime import datetime, time
from typing import Any

import orjson
import pytest
from fastapi import FastAPI, Response
from mcp import MCPError
from mcp_types.methods import serialize_server_result
from mcp_types.version import SUPPORTED_PROTOCOL_VERSIONS
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.routing import Mount

from awp_publish import AgentPublisher, current_caller
from awp_publish.plugins.mcp.server_card import VERSIONS as PUBLISHED_VERSIONS
from tests.documents.known import ALL
from tests.guarded import known_callers, make_shop
from tests.plugins.mcp.mcp_messages import CLASSIC, MODERN, MODES, VERSIONS, connect, message, post


class Author(BaseModel):
    name: str


class Book(BaseModel):
    title: str
    authors: list[Author] = []
    blurb: str | None = None


@pytest.fixture
def site():
    return make_shop(
        plugins=["mcp"], about={"hints": {"prices": "Prices change at midnight."}}, authenticate=known_callers()
    )


@pytest.fixture
def app(site) -> FastAPI:
    """Actions of every kind: routes and functions, answers that are objects, lists, numbers and nothing."""
    app = FastAPI()

    @app.get("/books/{title}")
    @site.action("find_book", name="Find a book")
    async def find(title: str, by: str = "anybody") -> Book:
        """Find a book by its title."""
        return Book(title=title, authors=[Author(name=by)])

    @app.put("/books/{title}")
    @site.action("keep_book")
    async def keep(title: str, book: Book) -> Book:
        """Keep a book."""
        return book

    @app.delete("/books/{title}", status_code=204)
    @site.action("drop_book")
    async def drop(title: str) -> None:
        """Drop a book."""

    @site.agent("list_titles")
    async def list_titles(copies: int = 1) -> list[str]:
        """List titles."""
        return ["Emma"] * copies

    @site.agent("count")
    async def count() -> int:
        """Count books."""
        return 3

    @site.agent("who")
    async def who() -> str:
        """Say who calls."""
        caller = current_caller()
        return caller.id if caller else "nobody"

    @site.agent("burn", effect="delete")
    async def burn() -> dict[str, Any]:
        """Burn books."""
        raise RuntimeError("secret of the site")

    app.add_middleware(AgentPublisher, site=site)
    return app


@pytest.mark.parametrize("mode", MODES)
async def test_the_catalog_is_the_list_of_tools(app, site, mode):
    async with connect(app, mode) as client:
        listed = (await client.list_tools()).tools
        again = (await client.list_tools()).tools
    assert [tool.name for tool in listed] == [action.id for action in site.catalog.actions]
    assert listed == again
    find = listed[0]
    assert (find.title, find.description) == ("Find a book", "Find a book by its title.")
    assert find.input_schema == site.catalog.action("find_book").inputs
    assert find.output_schema == site.catalog.action("find_book").outputs
    keep = listed[1]
    assert keep.input_schema["$defs"] == site.catalog.action("keep_book").inputs["$defs"]


async def test_answers_are_listed_without_formats_for_which_clients_would_refuse_times_without_a_zone(site):
    class Loan(BaseModel):
        due: datetime
        opens: list[time] = []
        format: str = "epub"

    app = FastAPI()

    @app.post("/loans")
    @site.action("lend")
    async def lend(loan: Loan) -> Loan:
        """Lend a book."""
        return loan

    app.add_middleware(AgentPublisher, site=site)
    async with connect(app, MODERN) as client:
        [tool] = (await client.list_tools()).tools
        answer = await client.call_tool("lend", {"due": "2026-01-02T03:04:05"})
    of_input, of_output = tool.input_schema["properties"], tool.output_schema["properties"]
    assert of_input["due"]["format"] == "date-time"
    assert (of_output["due"], of_output["opens"]["items"]) == ({"type": "string"}, {"type": "string"})
    assert of_output["format"]["type"] == "string"
    assert answer.structured_content["due"] == "2026-01-02T03:04:05"


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_learns_who_serves_it(app, mode):
    async with connect(app, "auto" if mode == MODERN else mode) as client:
        assert client.server_info.title == "Shop"
        assert client.server_info.name == "example.shop/shop"
        assert client.instructions == "Sells things.\nprices: Prices change at midnight."
        assert client.server_capabilities.tools is not None
        assert client.server_capabilities.prompts is None
        assert client.protocol_version in PUBLISHED_VERSIONS


def test_the_published_versions_are_the_newest_that_the_sdk_speaks():
    from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

    assert PUBLISHED_VERSIONS == (LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION)


@pytest.mark.parametrize("mode", MODES)
async def test_an_answer_is_structured_and_the_same_as_text(app, mode):
    async with connect(app, mode) as client:
        answer = await client.call_tool("find_book", {"title": "Emma", "by": "Jane Austen"})
    assert answer.is_error is False
    assert answer.structured_content == {"title": "Emma", "authors": [{"name": "Jane Austen"}], "blurb": None}
    assert orjson.loads(answer.content[0].text) == answer.structured_content


@pytest.mark.parametrize(("name", "answer"), [("list_titles", ["Emma"]), ("count", 3), ("who", "nobody")])
async def test_answers_that_are_no_objects_are_wrapped_where_the_revision_asks_for_it(app, name, answer):
    for mode, expected in ((MODES[0], {"result": answer}), (MODERN, answer)):
        async with connect(app, mode) as client:
            response = await client.call_tool(name, {})
        assert response.structured_content == expected
        text = response.content[0].text
        assert (text if isinstance(answer, str) else orjson.loads(text)) == (answer if name == "who" else expected)


@pytest.mark.parametrize("mode", MODES)
async def test_a_problem_is_a_result_that_the_model_can_read(app, mode):
    async with connect(app, mode) as client:
        answer = await client.call_tool("list_titles", {"copies": "many"})
    assert answer.is_error is True
    problem = orjson.loads(answer.content[0].text)
    assert problem == answer.meta["awp/problem"]
    assert answer.structured_content is None  # which some clients would hold to the outputSchema
    assert (problem["status"], problem["code"]) == (422, "INVALID_INPUT")
    assert problem["type"] == "https://shop.example/agents/problems/invalid-input"
    assert problem["errors"][0]["pointer"] == "/copies"
    assert problem["recovery"]
    assert problem["request_id"] == answer.meta["awp/requestId"]


@pytest.mark.parametrize("mode", MODES)
async def test_documents_are_resources(app, site, mode):
    async with connect(app, mode) as client:
        listed = (await client.list_resources()).resources
        there: dict[object, str] = {}
        for protocol in ALL:
            for document in protocol.documents:
                is_there = not document.condition or document.condition(site.catalog)
                if is_there and protocol.name not in ("mcp_server_card", "mcp_servers", "ard", "robots", "sitemap"):
                    path = document.path_in(site.catalog)
                    there.setdefault(document.render, f"https://shop.example{path}")  # once, whatever its other places
        assert [resource.uri for resource in listed] == list(there.values())
        await client.read_resource("https://shop.example/.well-known/mcp.json")  # not listed, and still there
        read = (await client.read_resource("https://shop.example/agent.json")).contents[0]
        with pytest.raises(MCPError):
            await client.read_resource("https://shop.example/etc/passwd")
    assert read.mime_type == "application/json"
    assert orjson.loads(read.text)["domain"] == "shop.example"


async def test_a_resource_is_as_fresh_as_the_document(app, site):
    async with connect(app, MODERN) as client:
        await client.list_tools()
        site.set_status(degraded_actions=["count"])
        site.refresh()
        read = (await client.read_resource("https://shop.example/agent.json")).contents[0]
    assert orjson.loads(read.text)["agent_status"]["degraded_actions"] == ["count"]


# --- Where it works ---


@pytest.mark.parametrize("mode", MODES)
async def test_the_door_works_where_no_lifespan_runs(app, mode):
    async with connect(app, mode, lifespan=False) as client:
        assert (await client.call_tool("count", {})).is_error is False


@pytest.mark.parametrize("mode", MODES)
async def test_the_door_works_through_several_starts(app, mode):
    for _ in range(3):
        async with connect(app, mode) as client:
            assert (await client.call_tool("count", {})).is_error is False


@pytest.mark.parametrize("version", VERSIONS)
def test_the_door_works_in_another_event_loop_than_that_of_the_lifespan(app, open_client, version):
    open_client(app)

    async def call_once() -> bool:
        async with connect(app, "legacy" if version == CLASSIC else MODERN, lifespan=False) as client:
            return bool((await client.call_tool("count", {})).is_error)

    assert asyncio.run(call_once()) is False


@pytest.mark.parametrize("version", VERSIONS)
def test_the_door_works_below_a_prefix(app, open_client, version):
    client = open_client(Starlette(routes=[Mount("/shop", app)]))
    sent = message("tools/call", {"name": "find_book", "arguments": {"title": "Emma"}}, version=version)
    headers = {"accept": "application/json", "mcp-protocol-version": version}
    headers |= {"mcp-method": "tools/call", "mcp-name": "find_book"} if version == MODERN else {}
    answer = client.post("/shop/mcp", json=sent, headers=headers).json()["result"]
    assert answer["structuredContent"]["title"] == "Emma"


def test_the_door_is_where_the_site_puts_it(open_client):
    site = make_shop(plugins=["mcp"], paths={"mcp": "/ai/mcp"})
    client = open_client(AgentPublisher(Starlette(), site=site))
    assert client.get("/ai/mcp/server-card").json()["remotes"][0]["url"] == "https://shop.example/ai/mcp"
    assert client.get("/mcp/server-card").status_code == 404
    assert client.post("/mcp", json={}).status_code == 404
    assert client.post("/ai/mcp", json={}).status_code == 400


def test_headers_that_a_route_answers_with_reach_the_caller_but_cookies_never_reach_the_model(app, site, open_client):
    @app.get("/session")
    @site.action("sign_in")
    async def sign_in(response: Response) -> str:
        """Sign in."""
        response.headers["location"] = "/home"
        response.set_cookie("session", "secret")
        return "done"

    answer = post(open_client(app), message("tools/call", {"name": "sign_in"}))
    assert answer.headers["location"] == "/home"
    assert "secret" in answer.headers["set-cookie"]
    assert answer.json()["result"]["_meta"]["awp/headers"] == {"location": "/home"}
    assert "secret" not in answer.text


# --- Results that no SDK has looked at ---


@pytest.mark.parametrize("version", SUPPORTED_PROTOCOL_VERSIONS)
@pytest.mark.parametrize(
    ("name", "given", "is_answer"),
    [
        ("find_book", {"title": "Emma"}, True),
        ("count", {}, True),
        ("find_book", {}, False),
        ("burn", {}, False),
    ],
)
def test_a_result_is_what_its_revision_knows_and_no_more(app, open_client, version, name, given, is_answer):
    sent = message("tools/call", {"name": name, "arguments": given}, version=version)
    result = post(open_client(app), sent, version).json()["result"]
    assert serialize_server_result("tools/call", version, result) == result
    assert ("structuredContent" in result) is (version >= "2025-06-18" and is_answer)
    assert ("resultType" in result) is (version == MODERN)
