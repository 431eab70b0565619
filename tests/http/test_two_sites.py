"""Two sites of one host share a store and keys: what one of them has given out is nothing at the other."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from awp_publish import AgentPublisher, Site
from tests.client import TestClient
from tests.doors.adapters import DOORS
from tests.guarded import ANN, KEYS, known_callers
from tests.installed import installed

TOKEN = ANN["authorization"].partition(" ")[2]


class House:
    """One of the sites, and a client of it."""

    def __init__(self, name: str, path: str, store: str) -> None:
        self.runs: list[str] = []
        site = Site(
            name,
            "Sells books.",
            url=f"https://shop.example{path}",
            plugins=installed("mcp", "a2a", "awp"),
            store=store,
            secret_keys=KEYS,
            authenticate=known_callers(),
        )

        def run(action: str) -> str:
            self.runs.append(action)
            return f"{action} at the {name}"

        @site.agent("order", idempotency="24h", auth_required=True)
        async def order() -> str:
            """Order."""
            return run("order")

        @site.agent("pay", confirm=True, auth_required=True)
        async def pay() -> str:
            """Pay."""
            return run("pay")

        @site.agent("look")
        async def look() -> str:
            """Look."""
            return "books"

        @site.agent("send", requires=["look"])
        async def send() -> str:
            """Send."""
            return run("send")

        @site.agent("later", execution="async", auth_required=True)
        async def later() -> str:
            """Later."""
            return run("later")

        app = AgentPublisher(Starlette(), site=site)
        self.client = TestClient(_Below(app, path), base_url="https://shop.example")

    def call(self, door: str, action: str, **beside: Any) -> Any:
        return DOORS[door](self.client).call(action, token=TOKEN, **beside)


class _Below:
    """An application below a path, as a server mounts it: the adapters of doors write addresses from the root on."""

    def __init__(self, app: Any, path: str) -> None:
        self._app, self._path = app, path

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            scope = {**scope, "root_path": self._path, "path": self._path + scope["path"]}
        await self._app(scope, receive, send)


@pytest.fixture
def houses() -> Iterator[tuple[House, House]]:
    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:///{Path(folder)}/agents.db"
        shop, club = House("Shop", "/shop", store), House("Club", "/club", store)
        with shop.client, club.client:
            yield shop, club


@pytest.mark.needs("sqlite", "jobs")
@pytest.mark.parametrize("door", DOORS)
def test_a_key_a_confirmation_and_a_receipt_are_those_of_one_site(houses, door):
    shop, club = houses
    for house, name in ((shop, "Shop"), (club, "Club")):
        answer = house.call(door, "order", key="k-1")
        assert (answer.output, answer.is_replayed) == (f"order at the {name}", False)
    agreed = shop.call(door, "pay").question["token"]
    assert club.call(door, "pay", confirmation=agreed).code == "CONFIRMATION_TAMPERED"
    receipt = shop.call(door, "look").receipt
    assert club.call(door, "send", receipts=[receipt]).code == "PREREQUISITE_REQUIRED"
    assert club.runs == ["order"]
    assert shop.call(door, "pay", confirmation=agreed).output == "pay at the Shop"
    assert shop.call(door, "send", receipts=[receipt]).output == "send at the Shop"


@pytest.mark.needs("sqlite", "jobs")
def test_a_job_is_that_of_one_site(houses):
    shop, club = houses
    accepted = shop.client.post("/agents/later/invoke", json={"input": {}}, headers=ANN).json()
    for method in ("GET", "DELETE"):
        refused = club.client.request(method, f"/agents/jobs/{accepted['job_id']}", headers=ANN)
        assert (refused.status_code, refused.json()["code"]) == (404, "UNKNOWN_JOB")
    assert shop.client.get(f"/agents/jobs/{accepted['job_id']}", headers=ANN).status_code == 200
