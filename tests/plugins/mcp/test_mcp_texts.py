"""Texts at MCP are texts: an answer that is a string, and a file of text with its name and media type."""

import pytest
from fastapi import FastAPI, Response
from fastapi.responses import PlainTextResponse

from awp_publish import AgentPublisher, Site
from awp_publish.client import AgentClient

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


def test_the_client_reads_both(app):
    with AgentClient(app, door="mcp") as client:
        assert client.call("greet", name="Ada") in ('Hello, "Ada".', {"result": 'Hello, "Ada".'})
        answer = client.send("export_prices")
        assert (answer.output, answer.media_type, answer.filename) == (PRICES, "text/csv", "prices of today.csv")
