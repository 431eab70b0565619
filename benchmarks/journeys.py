"""What an agent pays to buy two copies of a book in the demo shop: requests and tokens (four bytes) through each door.

It knows the shop's address, the title, a token and where the parcel goes; for pages a name and a password. All else
(addresses, fields, the token of the confirmation) it takes from documents and answers. It keeps no cookies, except for
pages. How it got its token is not counted: it registers once, and a person signs in and allows it in their browser.
Bodies are counted, of requests and of answers, from the first document to the order; each client is the protocol's
official one where there is one. The shop runs behind a real server.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

import httpx
import uvicorn

from benchmarks.journeys_by_documents import by_agent_json, by_awas, by_llms_txt, by_woa
from benchmarks.journeys_by_pages import by_html, by_markdown
from benchmarks.journeys_by_protocols import (
    NotMeasured,
    _keep_no_cookies,
    _shown,
    by_a2a,
    by_awp,
    by_mcp,
    by_typescript,
)
from benchmarks.person import carry_out_async, token_steps
from benchmarks.purchase import Meter, Purchase
from benchmarks.table import Row, at_most
from demo_site.app import create_app

_PLAIN: Final[Mapping[str, Callable[[str, httpx.AsyncClient], Awaitable[Purchase]]]] = {
    "Markdown pages": by_markdown,
    "HTML pages": by_html,
    "llms.txt": by_llms_txt,
    "WoA": by_woa,
    "plain HTTP, agent.json": by_agent_json,
    "plain HTTP, AWAS": by_awas,
    "A2A": by_a2a,
}
_LIVE: Final[Mapping[str, Callable[[str, Meter, str], Awaitable[Purchase]]]] = {
    "MCP 2025-11-25": lambda origin, meter, token: by_mcp(origin, meter, token, "legacy"),
    "MCP 2026-07-28": lambda origin, meter, token: by_mcp(origin, meter, token, "2026-07-28"),
    "MCP, TypeScript SDK 1": lambda origin, meter, token: by_typescript(origin, meter, token, "sdk"),
    "MCP, TypeScript SDK 2": lambda origin, meter, token: by_typescript(origin, meter, token, "client"),
    "MCP 2026-07-28, TypeScript SDK 2": lambda origin, meter, token: by_typescript(
        origin, meter, token, "client", "2026-07-28"
    ),
    "AWP": by_awp,
}
WAYS: Final = (*_PLAIN, *_LIVE)
"""Every way in which an agent can buy."""

CHEAPEST: Final = 2500
LIMITS: Final = {
    "llms.txt": CHEAPEST,
    "WoA": 5000,
    "MCP 2025-11-25": 7000,
    "MCP 2026-07-28": 7000,
    "MCP, TypeScript SDK 1": 7000,
    "MCP, TypeScript SDK 2": 7000,
    "MCP 2026-07-28, TypeScript SDK 2": 7000,
}
"""The most tokens of a way."""


async def go(way: str, origin: str) -> tuple[Purchase, Meter]:
    """Buy in one way, in the shop at an address. Raises NotMeasured."""
    meter = Meter()
    if "pages" in way:
        async with httpx.AsyncClient(event_hooks=meter.hooks) as http:
            return await _PLAIN[way](origin, http), meter
    async with httpx.AsyncClient() as browser:
        token = await carry_out_async(token_steps(origin), browser)
    if way in _LIVE:
        return await _LIVE[way](origin, meter, token), meter
    async with httpx.AsyncClient(event_hooks=meter.hooks, headers=_shown(token)) as http:
        _keep_no_cookies(http)
        return await _PLAIN[way](origin, http), meter


@asynccontextmanager
async def open_shop() -> AsyncIterator[str]:
    """Serve the demo shop with every door open, and give its address."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        origin = f"http://127.0.0.1:{listening.getsockname()[1]}"
        app = create_app(origin, packing_pause=0, doors=["mcp", "a2a", "awp"])
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        task = asyncio.create_task(server.serve([listening]))
        while not server.started:
            assert not task.done()
            await asyncio.sleep(0.01)
        try:
            yield origin
        finally:
            server.should_exit = True
            await task


def journeys(seconds: float) -> list[Row]:
    """Count each way once: how long it takes is not measured, so the seconds do not matter."""
    del seconds
    logging.disable(logging.WARNING)
    return asyncio.run(_count())


async def _count() -> list[Row]:
    rows, cheapest = list[Row](), list[int]()
    for way in WAYS:
        what = f"two copies by {way}"
        limit = at_most(LIMITS[way], "tokens") if way in LIMITS else None
        try:
            async with open_shop() as origin:
                _, meter = await go(way, origin)
        except NotMeasured as missing:
            rows.append(Row(what, "", None, None, str(missing)))
            continue
        cheapest.append(meter.tokens)
        details = f"{meter.requests} requests, {meter.sent} bytes sent, {meter.received} received"
        rows.append(Row(what, "", meter.tokens, limit, details, "tokens"))
    return [Row("two copies, the cheapest way", "", min(cheapest), at_most(CHEAPEST, "tokens"), "", "tokens"), *rows]
