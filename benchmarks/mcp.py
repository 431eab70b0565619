"""Calls through the MCP door, in process and as raw bodies, beside a direct POST to the same FastAPI route.

Two thirds of a call of the official client are the client, so no client is measured here. What the SDK costs by itself
is a server of its that answers with the same result and does nothing for it.
"""

from contextlib import AsyncExitStack
from typing import Any

import mcp_types as types
import orjson
from fastapi import FastAPI
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from awp_publish import AgentPublisher, Site
from awp_publish.http.exchange import AsgiApp
from awp_publish.http.running import running
from benchmarks.measure import Answer, Case, Series, ask, interleave, on_each_loop
from benchmarks.shop import INVOCATION, ORDER, ORDER_INVOKE, ORDERS, json_headers, order_books, shop
from benchmarks.table import Row, at_most, compare
from benchmarks.tool_calls import CLASSIC, MODERN, PATH, TOOL, tool_call


def mcp(seconds: float) -> list[Row]:
    """The same order as a tool call, in both generations of the protocol; one tool listed, and a thousand."""
    found = on_each_loop(lambda: _measure(seconds / 2))
    post, invoke = "direct POST without awp_publish", "WoA invoke of the same route"
    return [
        compare(f"MCP tools/call, {MODERN}", found, "modern", "post", post, at_most(2.5)),
        compare(f"MCP tools/call, {CLASSIC}", found, "classic", "post", post, at_most(8.5)),
        compare("MCP tools/call, 1,000 tools", found, "many", "modern", "three tools", at_most(1.25)),
        compare(f"MCP tools/call, {MODERN}, beside WoA", found, "modern", "invoke", invoke, at_most(1.25)),
        compare(f"the SDK alone, {MODERN}", found, "sdk", "post", post, None),
        compare(f"the SDK alone, {CLASSIC}", found, "sdk classic", "post", post, None),
    ]


async def _measure(seconds: float) -> dict[str, Series]:
    direct = Case("post", shop("nowhere"), ORDERS, "POST", json_headers(ORDER), ORDER)
    async with AsyncExitStack() as stack:
        app, many = shop("outermost", ["mcp"]), _many_tools()
        for item in (app, many):
            await stack.enter_async_context(running(item))
        modern = _call("modern", app, MODERN)
        answer = await ask(modern)
        assert orjson.loads(answer.body)["result"]["structuredContent"]["total"] == 22.5
        manager = _idle_server(answer)
        await stack.enter_async_context(manager.run())
        cases = [
            direct,
            Case("invoke", app, ORDER_INVOKE, "POST", json_headers(INVOCATION), INVOCATION),
            modern,
            _call("classic", app, CLASSIC),
            _call("many", many, MODERN),
            _call("sdk", manager.handle_request, MODERN),
            _call("sdk classic", manager.handle_request, CLASSIC),
        ]
        for case in cases:
            assert (await ask(case)).status == 200, case.name
        return await interleave(cases, seconds)


def _many_tools() -> AsgiApp:
    """A thousand tools, of which the one that is called is the last."""
    app, site = FastAPI(), Site("Bookshop", "Order books.", "https://books.example", plugins=["mcp"])
    for number in range(999):
        _add_tool(site, number)
    app.post(ORDERS)(site.action(TOOL, effect="write")(order_books))
    return AgentPublisher(app, site, check=False)


def _add_tool(site: Site, number: int) -> None:
    @site.agent(f"look_{number}")
    async def look(slug: str) -> str:
        """Look at a book."""
        return slug


def _call(name: str, app: AsgiApp, version: str) -> Case:
    body, headers = tool_call(version)
    return Case(name, app, PATH, "POST", (*headers, (b"content-length", b"%d" % len(body))), body)


def _idle_server(answer: Answer) -> StreamableHTTPSessionManager:
    """A server of the SDK's own with one tool, which gives the same result and does nothing for it."""
    result = orjson.loads(answer.body)["result"]
    del result["_meta"]

    async def call_tool(_context: object, _params: types.CallToolRequestParams) -> dict[str, Any]:
        return {**result}

    server: Server[Any] = Server("idle", get_tool_input_schema=lambda _: None)
    server.add_request_handler("tools/call", types.CallToolRequestParams, call_tool)
    settings = TransportSecuritySettings(allowed_hosts=["books.example"])
    return StreamableHTTPSessionManager(server, json_response=True, stateless=True, security_settings=settings)
