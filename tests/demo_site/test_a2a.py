"""A whole visit to the bookshop through its A2A door, by the official client, in every way that the door speaks."""

from typing import Any

import httpx
import pytest
from a2a.types.a2a_pb2 import Task

from awp_publish.http.lifespan import running
from demo_site.app import create_app
from tests.serve.a2a_client import SPOKEN, Caller, open_caller, output, problem, state, told_headers

ORIGIN = "https://shop.example"


async def use(caller: Caller, skill: str, given: dict[str, Any] | None = None, **members: Any) -> Task:
    """The task of a skill that has to succeed."""
    task = await caller.call(skill, given, **members)
    assert state(task) == "completed", problem(task)
    return task


async def order(caller: Caller, receipt: str) -> Any:
    """Order what is in the basket: Jane is asked, and says yes."""
    given = {"name": "Jane", "address": "1 Quiet Lane, Oxford"}
    asked = await caller.call("check_out", given, receipts=[receipt], idempotency_key="k-1")
    assert state(asked) == "input_required"
    question = problem(asked)["confirmation"]
    assert "Jane" in question["summary"]
    members = {"receipts": [receipt], "idempotency_key": "k-1"}
    placed = await caller.send({"confirmation": question["token"], **members}, task=asked)
    assert state(placed) == "completed", problem(placed)
    return output(placed)


@pytest.mark.parametrize("spoken", SPOKEN)
async def test_every_skill_does_what_the_card_says(spoken):
    app = create_app(ORIGIN, packing_pause=0, doors=["a2a"])
    async with running(app), open_caller(app, spoken) as caller:
        assert output(await use(caller, "search_books", {"q": "the"}))["books"]
        assert output(await use(caller, "show_book", {"slug": "emma"}))["title"] == "Emma"
        assert state(await caller.call("show_basket")) == "auth_required"
        await use(caller, "sign_in", {"name": "reader", "password": "lamplight"})
        added = await use(caller, "add_to_basket", {"slug": "emma"})
        await use(caller, "show_basket")
        placed = await order(caller, told_headers(added)["awp-receipt"])
        number = {"order_id": placed["order_id"]}
        assert output(await use(caller, "show_order", number))["order_id"] == placed["order_id"]
        assert output(await use(caller, "ship_order", number))
        await use(caller, "add_to_basket", {"slug": "emma"})
        await use(caller, "remove_from_basket", {"slug": "emma"})
        assert output(await use(caller, "summarizer", {"text": "Call me Ishmael. " * 9}))["summary"]
        await use(caller, "sign_out")
        assert state(await caller.call("show_basket")) == "auth_required"


async def test_the_card_lists_every_skill_and_the_cookie_of_sessions():
    app = create_app(ORIGIN, doors=["a2a"])
    async with running(app), httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ORIGIN) as http:
        card = (await http.get("/.well-known/agent-card.json")).json()
    assert {skill["id"] for skill in card["skills"]} == {
        "search_books",
        "show_book",
        "show_basket",
        "add_to_basket",
        "change_quantity",
        "remove_from_basket",
        "sign_in",
        "sign_out",
        "check_out",
        "show_order",
        "ship_order",
        "summarizer",
    }
    described = "Begin a session with sign_in, which sets this cookie."
    known = {"location": "cookie", "name": "session", "description": described}
    assert card["securitySchemes"] == {"session": {"apiKeySecurityScheme": known}}
