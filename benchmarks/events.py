"""Events, in process: a route that emits beside the same that does not, and polls beside a call at the same door."""

from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import orjson
from fastapi import FastAPI
from pydantic import BaseModel

from awp_publish import AgentPublisher, Site
from awp_publish.http.exchange import AsgiApp
from awp_publish.http.running import running
from benchmarks.measure import Case, Series, ask, interleave, on_each_loop
from benchmarks.shop import JSON
from benchmarks.table import Row, compare
from benchmarks.tool_calls import mcp_message

EMIT: Final = "/emit"
SHIPPED: Final = orjson.dumps({"order_id": "A-1", "carrier": "post"})


class Shipped(BaseModel):
    order_id: str
    carrier: str


def events(seconds: float) -> list[Row]:
    """Emitting into memory and into SQLite; a poll of a quiet event, and of fifty occurrences."""
    found = on_each_loop(lambda: _measure(seconds / 2))
    bare, call = "the same route without emitting", "MCP tools/call of a function"
    return [
        compare("a route that emits, store in memory", found, "memory", "bare", bare, None),
        compare("a route that emits, SQLite, durable", found, "sqlite", "bare", bare, None),
        compare("events/poll, nothing has happened", found, "quiet", "call", call, None),
        compare("events/poll, 50 events", found, "fifty", "call", call, None),
    ]


async def _measure(seconds: float) -> dict[str, Series]:
    with TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            memory, sqlite = _shop("memory:"), _shop(f"sqlite:///{Path(folder) / 'agents.db'}")
            for item in (memory, sqlite):
                await stack.enter_async_context(running(item))
            start = await _poll(memory, None)
            for _ in range(50):
                await ask(_emit("warm", memory))
            now = await _poll(memory, None)
            assert len((await _poll(memory, start["cursor"]))["events"]) == 50
            # The cursor of the quiet poll is of an application in which nothing happens meanwhile.
            quiet = _shop("memory:")
            await stack.enter_async_context(running(quiet))
            assert now["events"] == []
            cases = [
                Case("bare", memory, "/plain", "POST", _length(SHIPPED, JSON), SHIPPED),
                _emit("memory", memory),
                _emit("sqlite", sqlite),
                mcp_message("quiet", quiet, "events/poll", {**_NAME, "cursor": (await _poll(quiet, None))["cursor"]}),
                mcp_message("fifty", memory, "events/poll", {**_NAME, "cursor": start["cursor"]}),
                mcp_message("call", quiet, "tools/call", {"name": "look", "arguments": {}}),
            ]
            for case in cases:
                assert (await ask(case)).status == 200, case.name
            return await interleave(cases, seconds)


_NAME: Final = {"name": "order_shipped"}


def _shop(store: str) -> AsgiApp:
    app = FastAPI()
    site = Site("Bookshop", "Order books.", "https://books.example", plugins=["mcp"], store=store)
    site.event("order_shipped", payload=Shipped)

    @site.agent("look")
    async def look() -> str:
        """Look."""
        return "seen"

    @app.post(EMIT)
    async def emit(shipped: Shipped) -> str:
        return await site.emit("order_shipped", shipped, audience="public")

    @app.post("/plain")
    async def plain(shipped: Shipped) -> str:
        return shipped.order_id

    return AgentPublisher(app, site, check=False)


def _emit(name: str, app: AsgiApp) -> Case:
    return Case(name, app, EMIT, "POST", _length(SHIPPED, JSON), SHIPPED)


async def _poll(app: AsgiApp, cursor: str | None) -> dict[str, Any]:
    answer = await ask(mcp_message("poll", app, "events/poll", {**_NAME, "cursor": cursor}))
    response: dict[str, Any] = orjson.loads(answer.body)["result"]
    return response


def _length(body: bytes, headers: Any) -> Any:
    return (*headers, (b"content-length", b"%d" % len(body)))
