"""Texts at MCP are texts: an answer that is a string, and a file of text with its name and media type."""

from typing import Any

import pytest
from fastapi import FastAPI, Response
from fastapi.responses import PlainTextResponse

from awp_publish import AgentPublisher, Site
from awp_publish.client import AgentClient
from tests.client import TestClient

VERSIONS = ("2025-03-26", "2025-06-18", "2025-11-25")
PRICES = "title,cents\nEmma,900\n"


@pytest.fixture
def app() -> FastAPI:
    site, app = Site("Shop", "Sells books.", "https://shop.example", plugins=["mcp"]), FastAPI()

    @site.agent("greet", effect="read")
    async def greet(name: str) -> str:
        """Greet somebody."""
        return f'Hello, "{name}".'

    @app.get("/opening", response_class=PlainTextResponse)
    @site.action("show_opening")
    async def show_opening() -> str:
        """Show the first line."""
        return "Call me\nIshmael."

    @app.get("/prices", response_class=Response)
    @site.action("export_prices")
    async def export_prices() -> Response:
        """Export all prices."""
        named = {"content-disposition": 'attachment; filename="prices of today.csv"'}
        return Response(PRICES, media_type="text/csv", headers=named)

    app.add_middleware(AgentPublisher, site=site, check=False)
    return app


def call(app: FastAPI, version: str, tool: str, /, **arguments: str) -> Any:
    params = {"name": tool, "arguments": arguments}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": version}
    with TestClient(app, base_url="https://shop.example") as client:
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return client.post("/mcp", json=message, headers=headers).json()["result"]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_that_is_a_text_is_no_line_of_json(app, version):
    assert call(app, version, "greet", name="Ada")["content"] == [{"type": "text", "text": 'Hello, "Ada".'}]
    assert call(app, version, "show_opening")["content"] == [{"type": "text", "text": "Call me\nIshmael."}]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_of_text_has_its_name_and_its_media_type(app, version):
    (block,) = call(app, version, "export_prices")["content"]
    assert block["type"] == "resource"
    assert block["resource"].pop("uri").endswith("/prices%20of%20today.csv")
    assert block["resource"] == {"mimeType": "text/csv", "text": PRICES}


def test_the_client_reads_both(app):
    with AgentClient(app, door="mcp") as client:
        assert client.call("greet", name="Ada") in ('Hello, "Ada".', {"result": 'Hello, "Ada".'})
        answer = client.send("export_prices")
        assert (answer.output, answer.media_type, answer.filename) == (PRICES, "text/csv", "prices of today.csv")
