"""A whole visit to the bookshop through its MCP door, by the official client, in both generations of the protocol."""

from typing import Any

import httpx
import pytest
from mcp.types import ElicitResult, PromptReference

from awp_publish.http.running import running
from benchmarks.person import carry_out_async, token_steps
from demo_site.app import create_app
from tests.plugins.mcp.mcp_messages import MODERN, MODES, connect

ORIGIN = "https://shop.example"


@pytest.mark.parametrize("mode", MODES)
async def test_the_main_pages_are_listed_and_every_page_can_be_read(mode):
    async with connect(create_app(ORIGIN, doors=["mcp"]), mode) as client:
        listed = {resource.uri: resource.title for resource in (await client.list_resources()).resources}
        read = (await client.read_resource(f"{ORIGIN}/books/emma")).contents[0]
    assert listed[f"{ORIGIN}/"] == "The shop window"
    assert listed[f"{ORIGIN}/search"] == "All our books"
    assert listed[f"{ORIGIN}/about"] == "About the shop"
    assert "Jane Austen" in read.text
    assert f"{ORIGIN}/.well-known/actions.json" in listed
    assert f"{ORIGIN}/actions.json" not in listed, "a document that has two addresses is listed once"


async def test_a_prompt_is_completed_from_the_shelves_and_answers_have_cards():
    async with connect(create_app(ORIGIN, doors=["mcp"]), MODERN) as client:
        [prompt] = (await client.list_prompts()).prompts
        answer = await client.complete(PromptReference(name=prompt.name), {"name": "title", "value": "moby"})
        written = (await client.get_prompt("discuss_book", {"title": "Emma"})).messages[0]
        card = (await client.read_resource("ui://agents/check_out.html")).contents[0]
    assert answer.completion.values == ["Moby-Dick"]
    assert written.content.text.startswith("Let us discuss Emma.")
    assert card.mime_type == "text/html;profile=mcp-app"


async def agree(_context: object, params: Any) -> ElicitResult:
    assert "Jane" in params.message
    return ElicitResult(action="accept", content={})


async def use(client: Any, name: str, given: dict[str, Any] | None = None, **meta: Any) -> Any:
    """The answer of a tool that has to succeed."""
    answer = await client.call_tool(name, given or {}, meta={f"awp/{key}": value for key, value in meta.items()})
    assert answer.is_error is False, answer.content[0].text
    return answer


async def order(client: Any, receipt: str) -> Any:
    """Order what is in the basket; where the client cannot ask its user it is given a token."""
    given = {"name": "Jane", "address": "1 Quiet Lane, Oxford"}
    meta = {"awp/receipts": [receipt], "awp/idempotencyKey": "k-1"}
    answer = await client.call_tool("check_out", given, meta=meta)
    if answer.is_error:
        token = answer.meta["awp/problem"]["confirmation"]["token"]
        answer = await client.call_tool("check_out", given, meta=meta | {"awp/confirmation": token})
    assert answer.is_error is False, answer.content[0].text
    return answer


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("keeps_cookies", [True, False])
async def test_every_tool_is_listed_and_does_what_it_says(mode, keeps_cookies):
    app = create_app(ORIGIN, packing_pause=0, doors=["mcp"])
    options: dict[str, Any] = {"elicitation_callback": agree} if mode == MODERN else {}
    async with running(app):
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as browser:
            token = await carry_out_async(token_steps(ORIGIN), browser)
        options |= {"lifespan": False, "headers": {"authorization": f"Bearer {token}"}, "keeps_cookies": keeps_cookies}
        async with connect(app, mode, **options) as client:
            listed = await use_every_tool(client)
    assert listed == {
        "search_books",
        "show_book",
        "show_basket",
        "add_to_basket",
        "change_quantity",
        "remove_from_basket",
        "check_out",
        "show_order",
        "ship_order",
        "summarizer",
        "get_job",
    }


async def use_every_tool(client: Any) -> set[str]:
    """Call all tools, and return the names of those that are listed."""
    listed = {tool.name for tool in (await client.list_tools()).tools}
    found = await use(client, "search_books", {"q": "the"})
    assert found.structured_content["books"]
    assert (await use(client, "show_book", {"slug": "emma"})).structured_content["title"] == "Emma"
    added = await use(client, "add_to_basket", {"slug": "emma"})
    await use(client, "change_quantity", {"slug": "emma", "quantity": 2})
    await use(client, "show_basket")
    placed = (await order(client, added.meta["awp/headers"]["awp-receipt"])).structured_content
    number = {"order_id": placed["order_id"]}
    assert (await use(client, "show_order", number)).structured_content["order_id"] == placed["order_id"]
    shipping = (await use(client, "ship_order", number)).structured_content
    assert shipping["status"] == "accepted"
    looked_at = await use(client, "get_job", {"job_id": shipping["job_id"]})
    assert looked_at.structured_content["action"] == "ship_order"
    await use(client, "add_to_basket", {"slug": "emma"})
    await use(client, "remove_from_basket", {"slug": "emma"})
    assert (await use(client, "summarizer", {"text": "Call me Ishmael. " * 9})).structured_content["summary"]
    return listed
