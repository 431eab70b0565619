"""The plug-in approval: what the owner has not approved is there for nobody."""

from typing import Any

import pytest
from fastapi import FastAPI

from awp_publish import AgentPublisher, Approval, Site, WebBotAuth
from tests.calls.test_audience import raw
from tests.client import TestClient
from tests.doors.adapters import DOORS
from tests.guarded import KEYS


def open_shop(approval: Any, words: str = "Order a book.", **options: Any) -> tuple[TestClient, Site]:
    site = Site(
        "Shop",
        "Sells.",
        url="https://shop.example",
        plugins=["mcp", "a2a", "awp", "bridge", Approval(approval)],
        secret_keys=KEYS,
        authenticate=WebBotAuth(signers=["https://signer.example"]),
    )
    app = FastAPI()

    @app.get("/search")
    @site.action("search")
    async def search(q: str = "") -> list[str]:
        """Search books."""
        return [q]

    @app.post("/order")
    @site.action("order", description=words, **options)
    async def order(title: str = "") -> str:
        return title

    app.add_middleware(AgentPublisher, site=site)
    client = TestClient(app, base_url="https://shop.example")
    client.get("/agent.json")
    return client, site


def published(client: TestClient) -> list[str]:
    agents = {agent["id"] for agent in client.get("/.well-known/woa.json").json()["agents"]}
    assert {action["id"] for action in client.get("/agent.json").json()["actions"]} == agents
    return sorted(agents - {"actions_site"})


@pytest.mark.parametrize("door", DOORS)
def test_an_unapproved_action_is_called_at_no_door(tmp_path, door):
    file = tmp_path / "approved.json"
    open_shop(str(file))[1].approve("search")
    client, _ = open_shop(str(file))
    with client:
        assert raw(client, door, "order") == raw(client, door, "nothing")
        assert DOORS[door](client).call("search").code is None
    assert client.post("/order?title=Emma").json() == "Emma"  # the route is the application's own


def test_an_action_is_approved_as_it_is_whatever_plug_ins_are_named_after_approval(tmp_path):
    file = tmp_path / "approved.json"
    open_shop(str(file), confirm=True)[1].approve("search", "order")
    site = Site("Shop", "Sells.", "https://shop.example", plugins=[Approval(str(file)), "confirmation"])
    app = FastAPI()

    @app.post("/order")
    @site.action("order", description="Order a book.")
    async def order(title: str = "") -> str:
        return title

    site.freeze(app)
    assert [(approval.action, approval.changed) for approval in site.approvals()][:1] == [("order", ("policy",))]


def test_a_site_without_approval_has_nothing_to_approve():
    site = Site("Shop", "Sells.", url="https://shop.example")
    with pytest.raises(AttributeError, match=r"is a method of the plug-in approval: add it to plugins="):
        site.approvals()


def test_a_limit_that_exempts_some_callers_is_approved_anew(tmp_path):
    file = tmp_path / "approved.json"
    open_shop(str(file), rate_limit="60/hour")[1].approve("search", "order")
    client, site = open_shop(str(file), rate_limit="60/hour for unknown")
    assert published(client) == ["search"]
    site.approve("order")
    assert published(open_shop(str(file), rate_limit="60/hour for unknown")[0]) == ["order", "search"]
    assert published(open_shop(str(file), rate_limit="60/hour for verified")[0]) == ["search"]
