"""A body that does not come: every door waits for it only so long."""

import asyncio
from collections.abc import Mapping
from typing import Any

import orjson
import pytest
from starlette.applications import Starlette

from awp_publish import AgentPublisher
from awp_publish.http import body as request_body
from awp_publish.http.exchange import AsgiApp, Message
from awp_publish.http.running import running
from tests.guarded import make_shop
from tests.installed import installed, is_installed
from tests.plugins.mcp.mcp_messages import headers_of, message

TOOL = message("tools/call", {"name": "look"})
PARTS = {"message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"data": {"skill": "look", "input": {}}}]}}
RPC = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": PARTS}
DOORS: Mapping[str, tuple[str, Mapping[str, str], Any]] = {
    **({"WoA": ("/agents/look/invoke", {}, {"input": {}})} if is_installed("woa") else {}),
    "MCP": ("/mcp", headers_of(TOOL), TOOL),
    "A2A over JSON-RPC": ("/a2a", {"a2a-version": "1.0"}, RPC),
    "A2A over HTTP+JSON": ("/a2a/message:send", {"a2a-version": "1.0"}, PARTS),
}


def make_app(**options: Any) -> AsgiApp:
    site = make_shop(plugins=installed("mcp", "a2a"), **options)

    @site.agent("look")
    async def look() -> str:
        """Look at books."""
        return "books"

    return AgentPublisher(Starlette(), site=site, check=False)


async def send_slowly(app: AsgiApp, door: str, pause: float, piece: int, version: str = "1.1") -> list[Message]:
    """What a door answers to a body that comes in pieces, with a pause before each but the first."""
    path, headers, body = DOORS[door]
    whole, sent = orjson.dumps(body) + b" " * 20_000, list[Message]()
    left = whole
    fields = {"host": "shop.example", "content-type": "application/json", **headers}

    async def receive() -> Message:
        nonlocal left
        if left:
            await asyncio.sleep(pause if left != whole else 0)
        elif not sent:
            return {"type": "http.request", "body": b"", "more_body": False}
        else:
            await asyncio.Event().wait()
        given, left = left[:piece], left[piece:]
        return {"type": "http.request", "body": given, "more_body": bool(left)}

    async def send(told: Message) -> None:
        sent.append(told)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": version,
        "method": "POST",
        "scheme": "https",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
        "client": ("192.0.2.1", 1),
        "server": ("shop.example", 443),
    }
    async with running(app), asyncio.timeout(50):
        await app(scope, receive, send)
    return sent


@pytest.mark.needs("mcp", "a2a")
@pytest.mark.parametrize("door", DOORS)
async def test_a_body_that_trickles_in_is_not_waited_for(door, monkeypatch):
    monkeypatch.setattr(request_body, "BODY_TIMEOUT", 0.2)
    start, body = await send_slowly(make_app(), door, pause=0.05, piece=1)
    assert start["status"] == 408
    assert b"BODY_TIMEOUT" in body["body"]
    assert b"too little for too long" in body["body"]
    assert dict(start["headers"])[b"connection"] == b"close"


@pytest.mark.needs("mcp", "a2a")
@pytest.mark.parametrize("door", DOORS)
async def test_a_large_body_has_the_time_that_a_slow_line_takes(door, monkeypatch):
    monkeypatch.setattr(request_body, "BODY_TIMEOUT", 0.1)
    monkeypatch.setattr(request_body, "MIN_BYTES_PER_SECOND", 100)  # 20 seconds for each piece
    start, *_ = await send_slowly(make_app(), door, pause=0.02, piece=2_000)
    assert start["status"] == 200
