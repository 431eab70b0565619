"""Background actions through the front door: accepted, polled, cancelled, and guarded like all others."""

import asyncio
from collections.abc import Sequence

import pytest
from fastapi import Depends, FastAPI, Header, HTTPException, Request
from starlette.applications import Starlette
from starlette.middleware.sessions import SessionMiddleware

from awp_publish import AgentPublisher
from awp_publish.calls.gates.gate import Facts
from awp_publish.stores.memory import MemoryStore
from awp_publish.stores.store import JOB, Add, Step, Swap
from tests.client import TestClient
from tests.guarded import ANN, KEYS, Caller, Watched, invoke, known_callers, make_shop, poll, publish

KEY = {"idempotency-key": "k-1"}


def test_a_route_of_a_job_sees_the_session_and_the_credentials_of_its_caller(open_client):
    site, app = make_shop(), FastAPI()

    def need_token(authorization: str = Header("")) -> str:
        if authorization != "Bearer the-routes-own":
            raise HTTPException(403, "Not for you.")
        return authorization

    def need_user(request: Request) -> str:
        return str(request.session["user"])

    @app.get("/login")
    async def log_in(request: Request) -> str:
        request.session["user"] = "ann"
        return "welcome"

    @app.post("/print/{copies}")
    @site.action("print", execution="async")
    async def print_book(copies: int, token=Depends(need_token), user=Depends(need_user)) -> str:  # noqa: B008
        """Print copies of a book."""
        return f"{copies} for {user}"

    app.add_middleware(AgentPublisher, site=site)
    app.add_middleware(SessionMiddleware, secret_key="x" * 32)
    client = open_client(app)
    client.get("/login")
    started = invoke(client, "print", {"copies": 3}, {"authorization": "Bearer the-routes-own"})
    assert poll(client, started.headers["location"]).json()["result"] == "3 for ann"
    refused = invoke(client, "print", {"copies": 3})  # the route's security is rehearsed: nobody gets a job in vain
    assert (refused.status_code, refused.json()["code"]) == (403, "INSUFFICIENT_PERMISSIONS")
    assert "the-routes-own" not in refused.text


def test_a_finished_job_forgets_its_callers_request():
    kept: dict[str, bytes] = {}

    class Noting(MemoryStore):
        async def run(self, steps, *, durable=False):
            ran = await super().run(steps, durable=durable)
            if ran.failed is None:
                kept.update({step.key: step.value for step in steps if isinstance(step, Add)})
                kept.update({step.key: step.new or b"" for step in steps if isinstance(step, Swap)})
            return ran

    site = make_shop(store=Noting(), authenticate=known_callers())

    @site.agent("print", execution="async")
    async def print_book() -> str:
        """Print a book."""
        return "printed"

    with TestClient(AgentPublisher(FastAPI(), site=site), base_url="https://shop.example") as client:
        started = invoke(client, "print", headers=ANN)
        poll(client, started.headers["location"], ANN)
    assert any(b"printed" in value for value in kept.values())
    assert not any(b"ann-secret-token" in value for value in kept.values())


def test_jobs_count_against_the_limits_of_their_action(open_client):
    site = make_shop()

    @site.agent("print", execution="async", rate_limit="2/minute")
    async def print_book() -> str:
        """Print a book."""
        return "printed"

    client = publish(site, open_client)
    assert [invoke(client, "print").status_code for _ in range(3)] == [202, 202, 429]


@pytest.mark.parametrize(("effect", "later"), [("idempotent", ""), ("write", "OUTCOME_UNKNOWN")])
async def test_a_key_is_claimed_no_longer_than_it_takes_to_accept_a_job(effect, later, monkeypatch):
    now = 1_700_000_000.0
    defaults = Facts.__init__.__kwdefaults__ or {}
    monkeypatch.setattr(Facts.__init__, "__kwdefaults__", defaults | {"clock": lambda: now})
    store = MemoryStore(lambda: now)

    def start(store) -> AgentPublisher:
        """Start a process of the site."""
        site = make_shop(store=store, secret_keys=KEYS)

        @site.agent("print", execution="async", effect=effect, idempotency="24h")
        async def print_book() -> str:
            """Print a book."""
            return "printed"

        return AgentPublisher(Starlette(), site=site)

    died = asyncio.Event()

    async def die(steps: Sequence[Step]) -> None:
        if any(isinstance(step, Add) and step.key.startswith(JOB) for step in steps):
            died.set()
            await asyncio.Event().wait()

    dying = Watched(store)
    dying.trouble = die
    first = asyncio.create_task(Caller(start(dying), "print", {}, KEY).call())
    await died.wait()
    app = start(store)
    now += 30.0
    assert (await Caller(app, "print", {}, KEY).call()).code == "IDEMPOTENCY_KEY_IN_FLIGHT"
    now += 11.0
    assert (await Caller(app, "print", {}, KEY).call()).code == later
    first.cancel()
