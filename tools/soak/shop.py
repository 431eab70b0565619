"""The shop that is soaked. Every run of a handler is a line in a file, which stays whatever becomes of the process."""

import asyncio
import os
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from fastapi import FastAPI

from awp_publish import AgentPublisher, BearerToken, Idempotency, Limits, Site
from awp_publish.plugins.idempotency import gate as idempotency
from awp_publish.plugins.jobs.jobs import JobStore
from awp_publish.plugins.redis.store import RedisStore
from awp_publish.plugins.sqlite.store import SqliteStore
from tools.soak import PEEKS, TOKEN

TIMEOUT: Final = 2.0

idempotency.MARGIN = 0.5  # type: ignore[misc]
idempotency.ACCEPTING_SECONDS = 10.0  # type: ignore[misc]  # a key whose call was killed is free before callers give up
(JobStore.__init__.__kwdefaults__ or {}).update(lease_seconds=4.0, beat_seconds=1.0)  # what a dead process held, soon
for _kind in (SqliteStore, RedisStore):  # the two seconds of a site are too few for a busy machine
    (_kind.__init__.__kwdefaults__ or {})["timeout"] = 10.0


def note(action: str, number: str, phase: str) -> None:
    """Write one line. A file that is opened to append takes it whole, from any number of processes."""
    ledger = os.open(os.environ["SOAK_LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(ledger, f"{action} {number} {phase} {os.getpid()}\n".encode())
    finally:
        os.close(ledger)


async def work(action: str, number: str, seconds: float = 0.2) -> str:
    """Do what an action does."""
    note(action, number, "begun")
    await asyncio.sleep(random.random() * seconds)
    note(action, number, "done")
    return number


@asynccontextmanager
async def note_start(app: FastAPI) -> AsyncIterator[None]:
    """Write down that this process serves, so that no more than one is killed at a time."""
    note("worker", str(os.getpid()), "begun")
    yield


def make_app() -> FastAPI:
    """Make the shop; where it is and what it remembers calls in is in the environment."""
    site = Site(
        name="Shop",
        description="Sells things.",
        url=os.environ["SOAK_URL"],
        plugins=["mcp", "a2a", "awp"],
        store=os.environ["SOAK_STORE"],
        secret_keys=["a-secret-key-that-outlives-the-process"],
        authenticate=BearerToken({TOKEN: "soak"}),
        limits=Limits(timeout=TIMEOUT),
    )
    app = FastAPI(lifespan=note_start)
    keys = Idempotency(window="1h")

    @app.get("/stock/{number}")
    @site.action("read_stock")
    async def read_stock(number: str) -> str:
        """Read what is there."""
        return number

    @app.post("/orders")
    @site.action("order", idempotency=keys)
    async def order(number: str) -> str:
        """Order: once under one key."""
        return await work("order", number)

    @app.put("/labels/{number}")
    @site.action("label", idempotency=keys)
    async def label(number: str) -> str:
        """Write a label, which may be written twice."""
        return await work("label", number)

    @site.agent("pay", effect="irreversible", idempotency=keys, auth_required=True)
    async def pay(number: str) -> str:
        """Pay: once, and after a person has agreed."""
        return await work("pay", number)

    @site.agent("peek", rate_limit=f"{PEEKS}/minute")
    async def peek(number: str) -> str:
        """Look: seldom, for each caller, whichever worker answers."""
        return number

    @site.agent("idle", execution="async", effect="idempotent", timeout=3600.0)
    async def idle(number: str) -> str:
        """Take a slot for longer than others do."""
        note("idle", number, "begun")
        await asyncio.sleep(3.0)
        return number

    @site.agent("ship", execution="async", effect="idempotent", idempotency=keys, timeout=10.0)
    async def ship(number: str) -> str:
        """Ship: in the background, and to the end."""
        return await work("ship", number, 0.6)

    @site.agent("charge", execution="async", idempotency=keys, timeout=10.0)
    async def charge(number: str) -> str:
        """Charge: in the background, and never twice."""
        return await work("charge", number, 0.6)

    app.add_middleware(AgentPublisher, site=site, check=False)
    return app
