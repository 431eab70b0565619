"""What the MCP door costs before anybody uses it: its SDK is imported with the first request, in one process."""

import subprocess
import sys
from typing import Any

import pytest
from fastapi import FastAPI

from awp_publish import AgentPublisher, Site
from tests.client import TestClient
from tests.guarded import KEYS
from tests.plugins.mcp.mcp_messages import MODERN, connect, headers_of, message

STARTS = """
import asyncio, sys
from starlette.applications import Starlette
from awp_publish import AgentPublisher, Site
from awp_publish.http.running import running

async def start(**options) -> None:
    site = Site("Shop", "Sells.", url="https://shop.example", plugins=["mcp"], **options)

    @site.agent("search")
    async def search(q: str) -> str:
        "Search books."
        return q

    async with running(AgentPublisher(Starlette(), site=site)):
        print("mcp" in sys.modules, "mcp_types" in sys.modules)

asyncio.run(start())
asyncio.run(start(store="sqlite:///agents.db"))
"""


@pytest.mark.slow
def test_a_site_of_one_process_imports_the_sdk_with_the_first_request_and_one_of_several_at_once(tmp_path):
    """Workers of several tell each other of changes, whoever of them has clients."""
    done = subprocess.run([sys.executable, "-c", STARTS], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines() == ["False False", "True True"]


def make_app() -> Any:
    site, app = Site("Shop", "Sells.", url="https://shop.example", plugins=["mcp"], secret_keys=KEYS), FastAPI()

    @app.get("/search")
    @site.action("search")
    async def search(q: str) -> str:
        """Search books."""
        return q

    app.add_middleware(AgentPublisher, site=site)
    return app


@pytest.mark.parametrize("lifespans", [1, 2])
async def test_the_first_request_opens_the_door_in_each_run_of_the_application(lifespans):
    app = make_app()
    for _ in range(lifespans):
        async with connect(app, MODERN) as client:
            answers = [await client.call_tool("search", {"q": "emma"}) for _ in range(2)]
        assert [answer.structured_content for answer in answers] == ["emma", "emma"]


def test_requests_without_a_lifespan_are_answered_too():
    client = TestClient(make_app(), base_url="https://shop.example")
    sent = message("tools/call", {"name": "search", "arguments": {"q": "emma"}})
    for _ in range(2):
        answer = client.post("/mcp", json=sent, headers=headers_of(sent))
        assert answer.json()["result"]["structuredContent"] == "emma"
