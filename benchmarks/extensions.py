"""What MCP offers beside plain calls, in process, each beside a plain call of the same tool at the same door."""

from contextlib import AsyncExitStack
from typing import Final, Literal

import orjson
from fastapi import FastAPI

from awp_publish import AgentPublisher, Site
from awp_publish.serve.lifespan import running
from benchmarks.measure import Series, ask, interleave, on_each_loop
from benchmarks.table import Row, compare
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
}


def extensions(seconds: float) -> list[Row]:
    """Tasks, completion, skills and cards. What a listener is told has no answer that could be timed by itself."""
    found = on_each_loop(lambda: _measure(seconds / 2))
    return [compare(what, found, name, "call", "MCP tools/call of the same tool", None) for name, what in CASES.items()]


async def _measure(seconds: float) -> dict[str, Series]:
    site = Site("Bookshop", "Order books.", "https://books.example", doors=["mcp"])

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
        return await interleave(cases, seconds)
