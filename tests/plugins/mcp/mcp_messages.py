"""MCP for tests: messages as bytes on the wire, and the official client, which reaches an application in process."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from awp_publish.http.exchange import AsgiApp, Message
from awp_publish.http.running import running

MODERN: Final = "2026-07-28"
CLASSIC: Final = "2025-11-25"
VERSIONS: Final = (CLASSIC, MODERN)
MODES: Final = ("legacy", MODERN)
"""How the official client names the two generations."""

_RESERVED: Final = "io.modelcontextprotocol/"
_NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def message(
    method: str,
    params: Mapping[str, Any] | None = None,
    *,
    version: str = MODERN,
    meta: Mapping[str, object] | None = None,
    capabilities: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """A request as an official client writes it."""
    own = dict(meta or {})
    if version == MODERN:
        own |= {f"{_RESERVED}protocolVersion": version, f"{_RESERVED}clientCapabilities": dict(capabilities or {})}
    whole = {**(params or {}), **({"_meta": own} if own else {})}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": whole}


def headers_of(sent: Mapping[str, Any], version: str = MODERN) -> dict[str, str]:
    """The headers that go with a request."""
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": version}
    if version == MODERN:
        headers["mcp-method"] = sent["method"]
        if name := sent["params"].get(_NAMED.get(sent["method"], "")):
            headers["mcp-name"] = name
    return headers


def post(client: Any, sent: Mapping[str, Any], version: str = MODERN, headers: Mapping[str, str] | None = None) -> Any:
    """Send one request through a test client."""
    return client.post("/mcp", json=sent, headers=headers_of(sent, version) | dict(headers or {}))


def call(client: Any, name: str, meta: Mapping[str, object] | None = None) -> Any:
    """The result of one call of a tool without arguments."""
    return post(client, message("tools/call", {"name": name}, meta=meta)).json()["result"]


class _NoCookies(httpx2.Cookies):
    def extract_cookies(self, response: httpx2.Response) -> None: ...


def without_cookie_jar(client: Any) -> Any:
    """The same client of httpx2's, which from now on keeps no cookies that it is sent."""
    client._cookies = _NoCookies()  # its property would make a jar of it
    return client


@asynccontextmanager
async def connect(
    app: AsgiApp,
    mode: str,
    *,
    lifespan: bool = True,
    headers: Mapping[str, str] | None = None,
    keeps_cookies: bool = True,
    **options: Any,
) -> AsyncIterator[Any]:
    """The official `Client`, connected to an application at https://shop.example/mcp."""
    if lifespan:
        options |= {"headers": headers, "keeps_cookies": keeps_cookies}
        async with running(app), connect(app, mode, lifespan=False, **options) as client:
            yield client
        return
    transport = httpx2.ASGITransport(app=app)
    async with (
        httpx2.AsyncClient(transport=transport, headers=headers) as http,
        connect_to(
            "https://shop.example/mcp", http if keeps_cookies else without_cookie_jar(http), mode, **options
        ) as client,
    ):
        yield client


@asynccontextmanager
async def connect_to(address: str, http: httpx2.AsyncClient, mode: str, **options: Any) -> AsyncIterator[Any]:
    """The official `Client`, connected to an address."""
    async with Client(streamable_http_client(address, http_client=http), mode=mode, **options) as client:
        yield client


@asynccontextmanager
async def open_stream(
    app: AsgiApp,
    method: str,
    params: Mapping[str, Any],
    headers: Mapping[str, str] | None = None,
    capabilities: Mapping[str, object] | None = None,
) -> AsyncIterator[Callable[[], Awaitable[Any]]]:
    """The messages that answer a request, one after the other as they come; hangs up at the end."""
    sent = message(method, params, capabilities=capabilities)
    body, told = [json.dumps(sent).encode()], asyncio.Queue[Any]()
    hung_up = asyncio.Event()
    fields = {"host": "shop.example", "content-type": "application/json", **headers_of(sent), **(headers or {})}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "https",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
        "server": ("shop.example", 443),
        "client": ("192.0.2.1", 1),
    }

    async def receive() -> Message:
        if body:
            return {"type": "http.request", "body": body.pop(), "more_body": False}
        await hung_up.wait()
        return {"type": "http.disconnect"}

    async def send(item: Message) -> None:
        for line in item.get("body", b"").decode().splitlines():
            if line.startswith(("data: ", "{")):
                told.put_nowait(json.loads(line.removeprefix("data: ")))

    task = asyncio.ensure_future(app(scope, receive, send))

    async def next_message() -> Any:
        async with asyncio.timeout(50):
            return await told.get()

    try:
        yield next_message
    finally:
        hung_up.set()
        async with asyncio.timeout(50):
            await task
