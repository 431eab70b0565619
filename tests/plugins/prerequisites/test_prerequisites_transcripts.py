"""What callers are told of actions that come first, second by second, with what the store has: `transcripts`."""

from pathlib import Path

import pytest
from fastapi import FastAPI, Request

from awp_publish import Refused, Site
from awp_publish.http.exchange import AsgiApp
from tests.timed import compare_timed


def declare(site: Site) -> AsgiApp:
    app = FastAPI()

    @site.agent("look")
    async def look(fail: bool = False) -> str:
        """Look at books."""
        if fail:
            raise Refused("There is nothing to see.", code="NOTHING")
        return "books"

    @app.post("/baskets")
    @site.action("fill")
    async def fill(request: Request) -> str:
        """Fill a basket."""
        return "filled"

    @site.agent("order", requires=["fill", "look", "fill"])
    async def order() -> str:
        """Order."""
        return "ordered"

    @site.agent("pay", requires=["order"], idempotency="1h")
    async def pay() -> str:
        """Pay."""
        return "paid"

    @site.agent("note", depends_on=["look"])
    async def note() -> str:
        """Note."""
        return "noted"

    return app


@pytest.mark.needs("idempotency")
def test_transcripts(request):
    path = Path(__file__).parent / "transcripts" / "receipts.txt"
    compare_timed(path, declare, request)
