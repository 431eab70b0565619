"""An approval takes effect in all processes of a site without a restart."""

import re
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.http.test_real_server import free_port, wait_until
from tests.plugins.approval.test_approval import open_shop
from tests.processes import Process

ROOT = Path(__file__).parents[3]
SHOP = """
from fastapi import FastAPI
from awp_publish import AgentPublisher, Approval, BearerToken, Overview, Principal, Site

site = Site("Shop", "Sells.", url="https://shop.example", store="sqlite:///agents.db",
            secret_keys=["k" * 32], plugins=["mcp", "a2a", "awp", Overview("operator"), Approval("approved.json")],
            authenticate=BearerToken(lambda token: Principal("ann", frozenset({"operator"}))))
app = FastAPI()

@app.get("/search")
@site.action("search", rate_limit="1000/minute")
async def search(q: str = "") -> list[str]:
    "Search books."
    return [q]

@app.post("/order")
@site.action("order")
async def order(title: str = "") -> str:
    "Order a book."
    return title

app.add_middleware(AgentPublisher, site=site)
"""
ANN = {"authorization": "Bearer ann"}


def is_open(port: int) -> bool:
    with socket.socket() as trying:
        return trying.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def worker(folder: Path) -> Iterator[httpx2.Client]:
    port = free_port()
    run = ("uvicorn", "shop:app", "--port", str(port), "--log-level", "warning")
    process = Process(*run, cwd=folder, env={"PYTHONPATH": f"{ROOT}:{folder}", "PATH": "/usr/bin:/bin"})
    try:
        wait_until(lambda: is_open(port))
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", headers={"host": "shop.example"}) as client:
            yield client
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


def agents(client: httpx2.Client) -> set[str]:
    return {agent["id"] for agent in client.get("/.well-known/woa.json").json()["agents"]}


def tools(client: httpx2.Client) -> set[str]:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    answer = client.post("/mcp", json=asked, headers={"accept": "application/json, text/event-stream"})
    return set(re.findall(r'"name":\s*"(search|order)"', answer.text))


@pytest.mark.slow
def test_an_approval_by_one_worker_is_published_by_all(tmp_path: Path):
    (tmp_path / "shop.py").write_text(SHOP)
    with ExitStack() as stack:
        one, other = (stack.enter_context(worker(tmp_path)) for _ in range(2))
        assert agents(one) == agents(other) == tools(other) == set()
        refused = other.post("/agents/search/invoke", json={"input": {"q": "Emma"}})
        assert refused.status_code == 404
        page = one.get("/agents", headers=ANN).text
        found = re.search(r'name="awp-approve" value="([^"]+)"><button class="button">Approve search<', page)
        assert found, page
        answer = one.post("/agents", data={"awp-approve": found[1]}, headers=ANN)
        assert "Approved: search." in answer.text
        assert agents(one) == tools(one) == {"search"}, "at once where it was approved"
        wait_until(lambda: agents(other) == {"search"})
        assert tools(other) == {"search"}
        for client in (one, other):
            called = client.post("/agents/search/invoke", json={"input": {"q": "Emma"}})
            assert (called.status_code, called.json()) == (200, ["Emma"])
            assert client.get("/agents/actions/search", params={"q": "Emma"}).json() == ["Emma"]
            assert client.post("/agents/order/invoke", json={"input": {}}).status_code == 404


def test_a_door_that_is_opened_later_runs_until_the_application_stops(tmp_path: Path):
    client, site = open_shop(str(tmp_path / "approved.json"))
    with client:
        site.approve("search")
        assert client.portal is not None
        client.portal.call(site.ask("approval").publish_approved)
        headers = {"accept": "application/json, text/event-stream"}
        asked = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "search", "arguments": {"q": "x"}},
        }
        assert "x" in client.post("/mcp", json=asked, headers=headers).text
