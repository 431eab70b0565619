"""A body that does not come, under ASGI: Django would wait for it without end."""

import asyncio
from typing import Any

import orjson
import pytest

from awp_publish.http import body as request_body
from tests.django.shop.asgi import application


async def send_slowly(path: str, pause: float, pieces: int) -> list[dict[str, Any]]:
    """What is answered to a body that comes byte by byte."""
    sent, left = list[dict[str, Any]](), [b" "] * pieces

    async def receive():
        if not left:
            await asyncio.Event().wait()
        await asyncio.sleep(pause)
        return {"type": "http.request", "body": left.pop(), "more_body": bool(left)}

    async def send(message):
        sent.append(message)

    headers = [(b"host", b"shop.example"), (b"content-type", b"application/json")]
    scope = {"type": "http", "http_version": "1.1", "method": "POST", "path": path, "raw_path": path.encode()}
    scope |= {"query_string": b"", "root_path": "", "scheme": "https", "headers": headers, "client": ("192.0.2.1", 1)}
    async with asyncio.timeout(50):
        await application({**scope, "asgi": {"version": "3.0"}, "server": ("shop.example", 443)}, receive, send)
    return sent


@pytest.mark.parametrize("path", ["/agents/search/invoke", "/mcp", "/a2a", "/a2a/message:send"])
async def test_a_body_that_trickles_in_is_not_waited_for_at_any_door(path, monkeypatch):
    monkeypatch.setattr(request_body, "BODY_TIMEOUT", 0.2)
    start, body = await send_slowly(path, 0.05, 1_000)
    assert start["status"] == 408
    assert orjson.loads(body["body"])["code"] == "BODY_TIMEOUT"
    assert dict(start["headers"])[b"connection"] == b"close"


async def test_the_projects_own_views_wait_as_long_as_they_like(monkeypatch):
    monkeypatch.setattr(request_body, "BODY_TIMEOUT", 0.05)
    start, *_ = await send_slowly("/plain", 0.05, 4)
    assert start["status"] != 408
