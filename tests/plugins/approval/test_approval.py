"""The plug-in approval: what the owner has not approved is there for nobody."""

import json
from typing import Any

import pytest
from fastapi import FastAPI

from awp_publish import AgentPublisher, Approval, DeclarationError, Site
from tests.calls.test_audience import raw
from tests.client import TestClient
from tests.conftest import run_command
from tests.doors.adapters import DOORS
from tests.guarded import KEYS


def open_shop(approval: Any, words: str = "Order a book.", **options: Any) -> tuple[TestClient, Site]:
    site = Site(
        "Shop",
        "Sells.",
        url="https://shop.example",
        plugins=["mcp", "a2a", "awp", "bridge", Approval(approval)],
        secret_keys=KEYS,
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
    agents = {one["id"] for one in client.get("/.well-known/woa.json").json()["agents"]}
    assert {one["id"] for one in client.get("/agent.json").json()["actions"]} == agents
    return sorted(agents - {"actions_site"})


def test_actions_start_hidden_and_show_once_they_are_approved(tmp_path):
    file = tmp_path / "approved.json"
    client, site = open_shop(str(file))
    assert published(client) == []
    assert not file.exists()
    assert [(one.action, one.state) for one in site.approvals()] == [("search", "new"), ("order", "new")]
    assert site.approve("search") == file
    assert [(one.action, one.state) for one in site.approvals()] == [("search", "approved"), ("order", "new")]
    client, _ = open_shop(file)
    assert published(client) == ["search"]


@pytest.mark.parametrize("door", DOORS)
def test_what_is_not_approved_is_called_at_no_door(tmp_path, door):
    file = tmp_path / "approved.json"
    open_shop(str(file))[1].approve("search")
    client, _ = open_shop(str(file))
    with client:
        assert raw(client, door, "order") == raw(client, door, "nothing")
        assert DOORS[door](client).call("search").code is None
    assert client.post("/order?title=Emma").json() == "Emma"  # the route is the application's own


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"words": "Order a book at once."}, ("words",)),
        ({"tags": ["books"]}, ("words",)),
        ({"effect": "idempotent"}, ("effect",)),
        ({"confirm": True}, ("policy",)),
        ({"rate_limit": "3/minute"}, ("policy",)),
        ({"expose": ["mcp"]}, ("policy",)),
        ({"inputs": {"type": "object", "properties": {"title": {"type": "integer"}}}}, ("inputs",)),
        ({"outputs": {"type": "string", "maxLength": 9}, "effect": "delete"}, ("outputs", "effect")),
    ],
)
def test_a_change_hides_an_action_until_it_is_approved_again(tmp_path, change, parts):
    file = tmp_path / "approved.json"
    open_shop(str(file))[1].approve("search", "order")
    assert published(open_shop(str(file))[0]) == ["order", "search"]
    client, site = open_shop(str(file), **change)
    assert published(client) == ["search"]
    changed = site.approvals()[1]
    assert (changed.action, changed.state, changed.changed) == ("order", "changed", parts)
    site.approve("order")
    assert site.approvals()[1].state == "approved"


def test_an_action_that_requires_what_is_not_approved_waits_with_it(tmp_path):
    file = tmp_path / "approved.json"
    open_shop(str(file), requires=["search"])[1].approve("order")
    client, _ = open_shop(str(file), requires=["search"])
    assert published(client) == []


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
    assert [(one.action, one.changed) for one in site.approvals()][:1] == [("order", ("policy",))]


def test_the_file_is_for_version_control(tmp_path):
    file = tmp_path / "approved.json"
    file.write_text(json.dumps({"version": 1, "actions": {"former": {"digest": "0"}}}))
    _, site = open_shop(str(file))
    assert site.approvals()[-1].state == "gone"
    site.approve("order")
    site.approve("search")
    first = file.read_bytes()
    site.approve("search", "order")
    assert file.read_bytes() == first
    assert list(json.loads(first)["actions"]) == ["order", "search"]
    assert len(first.splitlines()) > 12
    assert [one.name for one in tmp_path.iterdir()] == ["approved.json"]


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"version": 2, "actions": {}}', b'{"version": 1}', b"\xff"])
def test_a_damaged_file_stops_the_start(tmp_path, content):
    file = tmp_path / "approved.json"
    file.write_bytes(content)
    with pytest.raises(DeclarationError, match=r"^site: approval: .*approved.json cannot be read"):
        open_shop(str(file))


def test_a_site_without_approval_has_nothing_to_approve():
    site = Site("Shop", "Sells.", url="https://shop.example")
    with pytest.raises(AttributeError, match=r"is a method of the plug-in approval: add it to plugins="):
        site.approvals()


@pytest.mark.parametrize("wrong", [1, "", None, ["a"]])
def test_a_wrong_approval_is_refused(wrong):
    with pytest.raises(DeclarationError, match=r"approval\.file: must "):
        Site("Shop", "Sells.", url="https://shop.example", plugins=[Approval(wrong)])


SHOP = '''
from starlette.applications import Starlette
from awp_publish import AgentPublisher, Site

site = Site("Shop", "Sells.", url="https://shop.example", plugins=["approval"])

@site.agent("search")
async def search(q: str) -> str:
    """Search."""
    return q

@site.agent("order")
async def order(title: str) -> str:
    """Order."""
    return title

app = AgentPublisher(Starlette(), site=site)
'''


def test_the_command_approves_what_it_is_told_and_otherwise_only_lists(tmp_path):
    (tmp_path / "shop.py").write_text(SHOP)

    def run(*arguments: str) -> tuple[int, str]:
        done = run_command("approve", "shop:app", *arguments, cwd=tmp_path)
        return done.returncode, done.stdout or done.stderr

    assert run() == (1, "new      search\nnew      order\n0 approved, 2 hidden until approved\n")
    status, told = run("search")
    assert (status, told.splitlines()[0]) == (1, "agents-approved.json: 1 approved (search)")
    assert run() == (1, "new      order\n1 approved, 1 hidden until approved\n")
    (tmp_path / "shop.py").write_text(SHOP.replace('"""Search."""', '"""Search books."""'))
    assert run()[1].splitlines()[:2] == ["changed  search (words)", "new      order"]
    assert run("--all")[0] == 0
    assert run() == (0, "2 approved, 0 hidden until approved\n")
    assert "nothing was new or changed" in run("--all")[1]
    status, told = run("sell")
    assert status == 2
    assert told.startswith('awp-publish: action "sell": is not declared. There are:')
