"""The official MCP and A2A clients in front of Django, behind real servers: gunicorn (WSGI) and uvicorn (ASGI)."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import django
import httpx
import httpx2
import pytest

from tests.django.servers import DJANGO
from tests.plugins.a2a.a2a_client import SPOKEN, make_caller, make_request, output, problem, state, stream
from tests.plugins.mcp.mcp_messages import MODERN, MODES, connect_to

HOST = {"host": "shop.example"}
SHELF = {"shelf": "a b", "q": "ä&c"}


@pytest.fixture(params=DJANGO)
def address(request, servers) -> str:
    found: str = servers[request.param]
    return found


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(timeout=30) as client:
        yield client


# --- MCP ---


@pytest.mark.parametrize("mode", MODES)
async def test_the_official_mcp_client_lists_and_calls(address, mode):
    async with httpx2.AsyncClient(headers=HOST) as http, connect_to(f"{address}/mcp", http, mode) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        assert {"search", "order", "add", "later"} <= set(listed)
        found = await client.call_tool("search", SHELF)
        assert not found.is_error
        assert json.loads(found.content[0].text) in (SHELF, {"result": SHELF})
        assert (await client.call_tool("add", {"first": 1, "second": 2})).structured_content in (3, {"result": 3})
        refused = await client.call_tool("order", {"title": "Emma"})
        assert refused.is_error
        wrong = await client.call_tool("search", {"shelf": 3})
        assert wrong.is_error
        documents = await client.list_resources()
        assert "https://shop.example/agent.json" in [str(resource.uri) for resource in documents.resources]


async def test_a_client_that_finds_out_the_version_is_served(address):
    async with httpx2.AsyncClient(headers=HOST) as http, connect_to(f"{address}/mcp", http, "auto") as client:
        assert client.protocol_version == MODERN
        assert client.server_info.title == "Shop"


# --- A2A ---


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("spoken", SPOKEN)
async def test_the_official_a2a_client_is_answered(address, http, spoken, streaming):
    caller = make_caller(http, f"{address}/a2a", spoken, streaming=streaming)
    if streaming:
        results = [answer.WhichOneof("payload") for answer in await stream(caller, {"skill": "search", "input": SHELF})]
        assert results == ["task", "artifact_update", "status_update"]
        return
    done = await caller.call("search", SHELF)
    assert (state(done), output(done)) == ("completed", SHELF)
    assert output(await caller.call("later", {"text": "soon"})) == "SOON"
    refused = await caller.call("order", {"title": "Emma"})
    assert (state(refused), problem(refused)["status"]) == ("failed", 409)


@pytest.mark.parametrize("spoken", ["1.0 JSON-RPC", "1.0 HTTP+JSON"])
async def test_a_stream_is_passed_on_as_it_comes(address, http, spoken, tmp_path):
    caller = make_caller(http, f"{address}/a2a", spoken, streaming=True)
    mark, told = tmp_path / "mark", []
    async for answer in caller.client.send_message(make_request(asking("wait_for", mark))):
        mark.touch()  # the job ends only if its caller was told before its end
        told.append(answer)
    [artifact] = [answer.artifact_update.artifact for answer in told if answer.HasField("artifact_update")]
    assert artifact.parts[0].data.bool_value is True
    assert state(told[-1].status_update) == "completed"


def asking(skill: str, mark: Path) -> dict[str, Any]:
    return {"skill": skill, "input": {"mark": str(mark)}}


async def leave(http: httpx.AsyncClient, address: str, data: Mapping[str, Any], mark: Path) -> None:
    """Begin to read a stream, and hang up after its first event, when the handler has begun."""
    message = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"data": data}]}
    sent = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": message}}
    headers = {"a2a-version": "1.0"}
    async with http.stream("POST", f"{address}/a2a", json=sent, headers=headers) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        async for line in answer.aiter_lines():
            assert "result" in line
            async with asyncio.timeout(30):
                while not await asyncio.to_thread(mark.with_suffix(".begun").exists):  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            return


@pytest.mark.skipif(django.VERSION < (5, 0), reason="Django 4.2 does not tell that a caller has left")
async def test_leaving_a_stream_ends_its_call_under_asgi(servers, http, tmp_path):
    mark = tmp_path / "mark"
    await leave(http, servers["asgi"], asking("be_patient", mark), mark)
    assert read_when_there(mark) == "called off"


async def test_a_call_with_a_key_is_carried_out_though_its_caller_leaves(address, http, tmp_path):
    mark = tmp_path / "mark"
    await leave(http, address, {**asking("carry_out", mark), "idempotency_key": mark.name}, mark)
    mark.with_suffix(".go").touch()
    assert read_when_there(mark) == "carried out"


def read_when_there(path: Path) -> str:
    until = time.monotonic() + 30
    while not path.exists() or not path.read_text():
        assert time.monotonic() < until, path
        time.sleep(0.05)
    return path.read_text()
