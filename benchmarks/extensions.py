"""What MCP offers beside plain calls, in process, each beside a plain call of the same tool at the same door."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, Literal

import orjson
from fastapi import FastAPI

from awp_publish import AgentPublisher, Site
from awp_publish.http.exchange import AsgiApp, Message, Receive, Scope, Send
from awp_publish.http.running import running
from benchmarks.measure import Case, Series, ask, interleave, on_each_loop
from benchmarks.table import Row, at_most, compare
from benchmarks.tool_calls import mcp_message

TASKS: Final[dict[str, object]] = {"io.modelcontextprotocol/tasks": {}}
CARDS: Final = {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}

CASES: Final = {
    "task": "tools/call that becomes a task",
    "get": "tasks/get of one that has ended",
    "completion": "completion/complete from a Literal",
    "skill": "resources/read of a skill",
    "shown": "tools/call of a client that shows cards",
    "card": "resources/read of a card",
    "told": "set_status() tells 100 who listen, each",
}

LISTENERS: Final = 100
"""Streams of `subscriptions/listen` that are open at once."""

LIMITS: Final = {"told": at_most(8.0)}


def extensions(seconds: float) -> list[Row]:
    """Tasks, completion, skills and cards, and what it takes until a listener is told that something has changed."""
    found = on_each_loop(lambda: _measure(seconds / 2))
    beside = "MCP tools/call of the same tool"
    return [compare(what, found, name, "call", beside, LIMITS.get(name)) for name, what in CASES.items()]


async def _measure(seconds: float) -> dict[str, Series]:
    site = Site("Bookshop", "Order books.", "https://books.example", plugins=["mcp"])

    @site.agent("look")
    async def look() -> list[str]:
        """Look at the shelves."""
        return ["emma", "persuasion"]

    @site.agent("count", execution="async")
    async def count() -> int:
        """Count the books."""
        return 2

    @site.prompt("discuss")
    async def discuss(title: Literal["emma", "persuasion"]) -> str:
        """Discuss a book."""
        return f"Discuss {title}."

    async with AsyncExitStack() as stack:
        app = AgentPublisher(FastAPI(), site, check=False)
        await stack.enter_async_context(running(app))

        task = mcp_message("task", app, "tools/call", {"name": "count", "arguments": {}}, TASKS)
        begun = orjson.loads((await ask(task)).body)["result"]["taskId"]
        plain = {"name": "look", "arguments": {}}
        typed = {"ref": {"type": "ref/prompt", "name": "discuss"}, "argument": {"name": "title", "value": "em"}}
        cases = [
            mcp_message("call", app, "tools/call", plain),
            task,
            mcp_message("get", app, "tasks/get", {"taskId": begun}, TASKS),
            mcp_message("completion", app, "completion/complete", typed),
            mcp_message("skill", app, "resources/read", {"uri": "skill://bookshop/SKILL.md"}),
            mcp_message("shown", app, "tools/call", plain, CARDS),
            mcp_message("card", app, "resources/read", {"uri": "ui://agents/look.html"}, CARDS),
        ]
        for case in cases:
            answer = await ask(case)
            assert answer.status == 200, (case.name, answer.body)
            assert "result" in orjson.loads(answer.body), (case.name, answer.body)
        tell = await stack.enter_async_context(listening(app, site))
        found = await interleave([*cases, Case("told", tell, "/")], seconds)
        return found | {"told": [microseconds / LISTENERS for microseconds in found["told"]]}


@asynccontextmanager
async def listening(app: AsgiApp, site: Site) -> AsyncIterator[AsgiApp]:
    """Have many listen, and give what tells all of them of a change and returns when each has been told."""
    case = mcp_message("listen", app, "subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    heard, all_heard, hung_up = 0, asyncio.Event(), asyncio.Event()

    async def hear(message: Message) -> None:
        nonlocal heard
        heard += message.get("body", b"").count(b'"method"')
        if heard == LISTENERS:
            all_heard.set()

    async def listen() -> None:
        scope, begin, _ = case.exchange(hear)
        bodies = [await begin()]

        async def receive() -> Message:
            if bodies:
                return bodies.pop()
            await hung_up.wait()
            return {"type": "http.disconnect"}

        await app(scope, receive, hear)

    async def tell(_scope: Scope, _receive: Receive, _send: Send) -> None:
        nonlocal heard
        heard = 0
        all_heard.clear()
        site.set_status(operational=True)
        await all_heard.wait()

    async with asyncio.TaskGroup() as group:
        for _ in range(LISTENERS):
            group.create_task(listen())
        await all_heard.wait()  # that they are listened to
        yield tell
        hung_up.set()
