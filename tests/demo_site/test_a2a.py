"""A whole visit to the bookshop through its A2A door, by the official client, in every way that the door speaks."""

from typing import Any

import httpx
import pytest
from a2a.types.a2a_pb2 import Task

from awp_publish.http.running import running
from benchmarks.person import carry_out_async, token_steps
from demo_site.app import create_app
from tests.plugins.a2a.a2a_client import SPOKEN, Caller, open_caller, output, problem, state, told_headers

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


async def use_every_skill(caller: Caller) -> None:
    assert output(await use(caller, "search_books", {"q": "the"}))["books"]
    assert output(await use(caller, "show_book", {"slug": "emma"}))["title"] == "Emma"
    added = await use(caller, "add_to_basket", {"slug": "emma"})
    await use(caller, "show_basket")
    placed = await order(caller, told_headers(added)["awp-receipt"])
    number = {"order_id": placed["order_id"]}
    assert output(await use(caller, "show_order", number))["order_id"] == placed["order_id"]
    assert output(await use(caller, "ship_order", number))
    await use(caller, "add_to_basket", {"slug": "emma"})
    await use(caller, "remove_from_basket", {"slug": "emma"})
    assert output(await use(caller, "summarizer", {"text": "Call me Ishmael. " * 9}))["summary"]


@pytest.mark.parametrize("spoken", SPOKEN)
async def test_every_skill_does_what_the_card_says(spoken):
    app = create_app(ORIGIN, packing_pause=0, doors=["a2a"])
    async with running(app), open_caller(app, spoken) as stranger:
        assert state(await stranger.call("show_basket")) == "auth_required"
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as browser:
            token = await carry_out_async(token_steps(ORIGIN), browser)
        async with open_caller(app, spoken, headers={"authorization": f"Bearer {token}"}) as caller:
            await use_every_skill(caller)


async def test_the_card_lists_every_skill_and_where_people_sign_in():
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
        "check_out",
        "show_order",
        "ship_order",
        "summarizer",
    }
    schemes = card["securitySchemes"]
    flow = schemes["oauth2"]["oauth2SecurityScheme"]["flows"]["authorizationCode"]
    assert flow["authorizationUrl"] == f"{ORIGIN}/agents/sign-in/authorize"
    known = {
        "location": "cookie",
        "name": "session",
        "description": "Begin a session with /sign-in, which sets this cookie.",
    }
    assert schemes["session"] == {"apiKeySecurityScheme": known}
