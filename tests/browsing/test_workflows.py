"""The reference implementation's own workflow suite, as far as it is about the protocol, and a visit to a shop."""

import json
from pathlib import Path
from typing import Any

import pytest

from awp_publish.browsing.errors import AwpError
from tests.browsing.driving import Agent, page, redirect

SUITE = Path(__file__).parents[3] / "shared" / "fixtures" / "awp-websocket" / "agent-workflow-v1"
OF_ANOTHER_TOOL = {"trace-action-export", "replay-cross-session-refusal"}
"""They are about the recording of upstream's MCP server, for which the protocol has no method."""


def navigate_between_pages(agent: Agent) -> None:
    assert agent.click({"text": "Open destination", "role": "link"})["effects"]["navigated"] is True
    assert agent.som()["title"] == "Workflow destination"


def type_and_observe_value(agent: Agent) -> None:
    agent.act("type", {"text": "Email address", "role": "text_input"}, value="ada@shop.example")
    query = {"role": "text_input", "props": ["value"]}
    answer = agent.call("page.extract", fields={"email": query})
    assert answer["data"] == {"email": {"value": "ada@shop.example"}}


def go_on_after_an_expected_error(agent: Agent) -> None:
    with pytest.raises(AwpError) as missed:
        agent.click({"ref": "e_nothing"})
    assert missed.value.code == "NOT_FOUND"
    navigate_between_pages(agent)


def contain_an_unexpected_error(agent: Agent) -> None:
    with pytest.raises(AwpError):
        agent.call("page.act", intent={"action": "vanish", "target": {"role": "heading"}})
    assert agent.som()["title"] == "Workflow start"


SCENARIOS = {
    "navigate-between-pages": navigate_between_pages,
    "type-and-observe-value": type_and_observe_value,
    "expected-tool-error-continues": go_on_after_an_expected_error,
    "unexpected-tool-error-is-contained": contain_an_unexpected_error,
}


@pytest.fixture
def suite() -> dict[str, Any]:
    if not SUITE.is_dir():
        pytest.skip("the workflow suite of the reference implementation is not beside the project")
    return json.loads((SUITE / "suite.json").read_text())


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_of_the_reference_suite_succeeds(suite, name):
    (scenario,) = [scenario for scenario in suite["scenarios"] if scenario["id"] == name]
    pages = {f"/{path.stem}": path.read_text() for path in SUITE.glob("*.html")}
    SCENARIOS[name](Agent(pages, start=scenario["fixture"]))


def test_no_scenario_of_the_reference_suite_is_forgotten(suite):
    assert {scenario["id"] for scenario in suite["scenarios"]} == set(SCENARIOS) | OF_ANOTHER_TOOL


def test_a_book_is_searched_for_signed_in_for_and_ordered():
    """A shop as shops are: a search, a sign-in with a cookie and a token, a cart, an order and its receipt."""

    def login(fetch):
        right = fetch.body == b"token=t1&user=ada&password=pw"
        return redirect("/book/7", 303, ("Set-Cookie", "sid=9; Path=/; HttpOnly")) if right else page("<h1>No", 403)

    def order(fetch):
        if ("cookie", "sid=9") not in fetch.headers:
            return redirect("/login")
        return redirect("/orders/1", 303) if b"copies=2" in fetch.body else page("<h1>Bad", 400)

    pages = {
        "/": "<main><form action=/search><input type=search name=q aria-label=Search required></form></main>",
        "/search": lambda fetch: f"<main><a href=/book/7>{fetch.path.partition('=')[2]} found</a></main>",
        "/book/7": "<main><h1>Emma</h1><form method=post action=/order><label>Copies <input type=number name=copies "
        "min=1 max=5 value=1></label><button>Order</button></form></main>",
        "/order": order,
        "/login": "<main><form method=post><input type=hidden name=token value=t1><label>User <input name=user></label>"
        "<label>Password <input type=password name=password></label><button>Sign in</button></form></main>",
        "/orders/1": "<title>Order 1</title><main><h1>Thank you</h1></main>",
    }
    agent = Agent(pages)
    agent.act("type", {"text": "search", "role": "text_input"}, value="Emma", options={"submit": True})
    agent.click({"text": "Emma found"})
    agent.act("type", {"css": "[name=copies]"}, value=2)
    assert agent.click({"text": "Order", "role": "button"})["effects"]["url"].endswith("/login")
    agent.web.pages = {**pages, "/login": lambda fetch: login(fetch) if fetch.method == "POST" else pages["/login"]}
    fields = {"user": "ada", "password": "pw"}
    agent.act("fill_form", {"css": "[name=user]"}, fields=fields, options={"submit": True})
    agent.act("type", {"css": "[name=copies]"}, value=2)
    effects = agent.click({"text": "Order", "role": "button"})["effects"]
    assert (effects["url"], effects["title"]) == ("https://shop.example/orders/1", "Order 1")
