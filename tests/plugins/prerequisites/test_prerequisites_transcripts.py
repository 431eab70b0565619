"""What callers are told of actions that come first, second by second, with what the store has: `transcripts`."""

from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI, Request
from starlette.applications import Starlette

from awp_publish import AgentPublisher, Refused, Site
from awp_publish.http.exchange import AsgiApp
from tests.client import TestClient
from tests.function_transcripts import compare
from tests.guarded import KEYS, known_callers, make_shop
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
def test_prerequisites_are_enforced_as_in_the_transcripts(request):
    path = Path(__file__).parent / "transcripts" / "receipts.txt"
    compare_timed(path, declare, request)


def _declared(needed: dict[str, Any], action: dict[str, Any], keys: bool = True) -> Any:
    """Return what is required of an action, or why it cannot be declared."""
    site = make_shop(authenticate=known_callers(), **({"secret_keys": KEYS} if keys else {}))
    for name, options in (("look", needed), ("order", {"requires": ["look"], **action})):

        @site.agent(name, **options)
        async def act() -> str:
            """Act."""
            return "done"

    with TestClient(AgentPublisher(Starlette(), site=site, check=False)):
        pass
    return [[action.id, action.is_required, action.requires, action.depends_on] for action in site.catalog.actions]


def test_declarations_are_read_as_reviewed(request):
    compare(Path(__file__).parent / "transcripts" / "declared.txt", {"declared": _declared}, request)
