"""The same calls through the MCP and A2A doors, through Django's own test clients."""

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from tests.django.shop.models import Book
from tests.django.test_calls import Agent, Asgi, Wsgi
from tests.plugins.mcp.mcp_messages import headers_of, message


@pytest.fixture(params=[Wsgi, Asgi])
def agent(request: pytest.FixtureRequest) -> Agent:
    made: Agent = request.param()
    return made


@pytest.fixture
async def user() -> User:
    return await User.objects.acreate(username="ann")


async def call_tool(agent, name, given, **headers):
    """One call through the MCP door."""
    sent = message("tools/call", {"name": name, "arguments": given})
    answer = await agent.tell("/mcp", sent, **headers_of(sent), **headers)
    assert answer.status_code == 200, answer.content
    return answer.json()["result"]


async def send_message(agent, name, given, method="SendMessage"):
    """One call through the A2A door."""
    parts = [{"data": {"skill": name, "input": given}}]
    params = {"message": {"messageId": "m-1", "role": "ROLE_USER", "parts": parts}}
    sent = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return await agent.post("/a2a", sent, **{"a2a-version": "1.0"})


async def test_the_logged_in_user_calls_through_every_door(agent, user):
    await agent.login(user)
    answer = await call_tool(agent, "whoami", {})
    assert (answer["structuredContent"]["user"], answer["structuredContent"]["caller"]) == ("ann", str(user.pk))
    assert (await call_tool(agent, "guarded", {}))["structuredContent"] == {"user": "ann"}
    task = (await send_message(agent, "whoami", {})).json()["result"]["task"]
    assert task["artifacts"][0]["parts"][0]["data"]["seen"] == 3 - 1


async def test_a_page_of_another_site_calls_nothing_through_any_door(agent, user):
    await agent.login(user)
    foreign = {"origin": "https://evil.example"}
    sent = message("tools/call", {"name": "whoami", "arguments": {}})
    assert (await agent.tell("/mcp", sent, **headers_of(sent), **foreign)).json()["code"] == "CROSS_SITE_COOKIES"
    assert b"CROSS_SITE_COOKIES" in (await agent.tell("/a2a", {}, **foreign)).content


async def test_a_page_whose_name_leads_here_calls_nothing_through_any_door(agent):
    rebound = {"host": "evil.example", "origin": "http://evil.example", "x-forwarded-host": "shop.example"}
    sent = message("tools/call", {"name": "add_book", "arguments": {"title": "Emma"}})
    for path, body, headers in (
        ("/agents/add_book/invoke", {"input": {"title": "Emma"}}, {}),
        ("/mcp", sent, headers_of(sent)),
        ("/a2a", {}, {}),
    ):
        answer = await agent.tell(path, body, **headers, **rebound)
        assert answer.status_code == 403
        assert b"FOREIGN_HOST" in answer.content
        assert (await agent.tell(path, body, **headers, host="shop.internal")).status_code != 403
    assert await Book.objects.acount() == 2


async def test_a_call_through_any_door_runs_in_a_transaction(agent):
    assert (await call_tool(agent, "add_book", {"title": "Emma"}))["structuredContent"]["atomic"] is True
    assert (await call_tool(agent, "add_book", {"title": "cursed"}))["isError"] is True
    await send_message(agent, "add_book", {"title": "cursed"})
    assert [book.title async for book in Book.objects.all()] == ["Emma"]


async def test_a_stream_reaches_a_view(agent):
    await Book.objects.acreate(title="Emma")
    answer = await send_message(agent, "search", {"q": "mm"}, "SendStreamingMessage")
    assert answer["content-type"].startswith("text/event-stream")
    whole = b"".join([part async for part in answer]) if answer.is_async else await sync_to_async(answer.getvalue)()
    assert b'"titles":["Emma"]' in whole.replace(b": ", b":")
