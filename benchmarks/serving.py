"""`python -m benchmarks.serving NAME PORT`: one measured application under uvicorn, on a processor core of its own."""

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final

import uvicorn

from awp_publish.http.exchange import AsgiApp
from benchmarks.applications import bare
from benchmarks.documents import document_cases
from benchmarks.measure import ask
from benchmarks.shop import shop
from benchmarks.tool_calls import PATH as MCP, TOOL

SERVER_CORE: Final = 0
LOAD_CORE: Final = 1


def _bare(kind: str) -> AsgiApp:
    """A bare application that gives the very answer, headers and all, that awp_publish gives."""

    async def prepare() -> AsgiApp:
        answer = await ask((await document_cases(shop("outermost")))[kind])
        return bare(answer.body, tuple(answer.headers), answer.status)

    return asyncio.run(prepare())


def _fastmcp() -> AsgiApp:
    """The same routes through FastMCP, told to do as we do: no sessions, JSON answers, the tool's name."""
    server = import_module("fastmcp").FastMCP.from_fastapi(shop("nowhere"), mcp_names={"order_books_orders_post": TOOL})
    app: AsgiApp = server.http_app(path=MCP, json_response=True, stateless_http=True, allowed_hosts=["books.example"])
    return app


APPLICATIONS: Final[Mapping[str, Callable[[], AsgiApp]]] = {
    "bare 200": lambda: _bare("200"),
    "bare 304": lambda: _bare("304"),
    "bare gzip": lambda: _bare("gzip"),
    "nowhere": lambda: shop("nowhere"),
    "inside": lambda: shop("inside"),
    "outermost": lambda: shop("outermost"),
    "mcp": lambda: shop("outermost", ["mcp"]),
    "fastmcp": _fastmcp,
}


def main(name: str, port: str) -> None:
    """Serve until terminated."""
    os.sched_setaffinity(0, {SERVER_CORE})
    options = {"log_level": "warning", "access_log": False, "loop": "uvloop", "http": "httptools"}
    uvicorn.run(APPLICATIONS[name](), port=int(port), **options)  # type: ignore[arg-type]


if __name__ == "__main__":
    main(*sys.argv[1:])
