"""What becomes of an idempotency key when its first call did not end well: each cell of CLAIM_AFTER."""

import asyncio
import shutil
import sqlite3
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.responses import JSONResponse, RedirectResponse

from awp_publish import Limits, Refused
from tests.guarded import ANN, invoke, known_callers, make_shop, publish, status_and_code

KEY = {"idempotency-key": "k-1"}

KINDS: dict[str, Any] = {
    "repeatable": {"effect": "idempotent"},
    "other": {},
    "irreversible": {"effect": "irreversible"},
}
FREE, UNKNOWN = "free", "unknown"


@pytest.mark.parametrize(
    ("how", "status", "fates"),
    [
        ("refused", 409, (FREE, FREE, FREE)),
        ("forbidden", 403, (FREE, FREE, FREE)),
        ("failed", 500, (FREE, FREE, UNKNOWN)),
        ("overdue", 504, (FREE, UNKNOWN, UNKNOWN)),
        ("redirected", 502, (FREE, UNKNOWN, UNKNOWN)),
        ("misshapen", 500, (FREE, UNKNOWN, UNKNOWN)),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_the_kind_of_failure_decides_whether_a_key_can_be_used_again(open_client, kind, how, status, fates):
    site, app, runs = make_shop(limits=Limits(timeout=1.0 if how == "overdue" else 30.0)), FastAPI(), []

    @app.post("/orders")
    @site.action("order", idempotency="24h", outputs={"type": "integer"}, **KINDS[kind])
    async def order() -> object:
        """Order something."""
        runs.append(1)
        return await MISHAPS[how]() if len(runs) == 1 else len(runs)

    client = publish(site, open_client, app)

    def call():
        """Call under the key, with the agreement of a person where one is asked for."""
        asked = invoke(client, "order").json() if kind == "irreversible" else {}
        agreed = {"awp-confirmation": asked["confirmation"]["token"]} if asked else {}
        return invoke(client, "order", headers=KEY | agreed)

    assert call().status_code == status
    again = call()
    if fates[list(KINDS).index(kind)] == FREE:
        assert (again.json(), len(runs)) == (2, 2)
        assert call().headers["idempotent-replayed"] == "true"
    else:
        assert (status_and_code(again), len(runs)) == ((409, "OUTCOME_UNKNOWN"), 1)
        assert "idempotent-replayed" not in again.headers


async def _refuse():
    raise Refused("No books left.")


async def _forbid():
    return JSONResponse({"detail": "Not for you."}, status_code=403)


async def _fail():
    raise RuntimeError("a bug")


async def _dawdle():
    await asyncio.sleep(60)


async def _redirect():
    return RedirectResponse("/elsewhere")


async def _misshape():
    return JSONResponse("no number")


MISHAPS = {
    "refused": _refuse,
    "forbidden": _forbid,
    "failed": _fail,
    "overdue": _dawdle,
    "redirected": _redirect,
    "misshapen": _misshape,
}


@pytest.mark.needs("sqlite")
@pytest.mark.parametrize("kind", ["repeatable", "other"])
def test_a_call_is_refused_before_a_full_disk_could_lose_its_answer(open_client, tmp_path, monkeypatch, kind, caplog):
    free = 10**12
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    site, runs = make_shop(authenticate=known_callers(), store=f"sqlite:///{tmp_path / 'agents.db'}"), []

    @site.agent("order", idempotency="24h", **KINDS[kind])
    async def order() -> str:
        """Order something, while others fill the disk."""
        nonlocal free
        free = 15 * 1024 * 1024
        runs.append(1)
        return "x" * 300_000

    client, other = publish(site, open_client), KEY | ANN | {"idempotency-key": "k-2"}
    first = invoke(client, "order", {}, KEY | ANN)
    again = invoke(client, "order", {}, KEY | ANN)
    assert (first.status_code, again.content, again.headers["idempotent-replayed"]) == (200, first.content, "true")
    assert status_and_code(invoke(client, "order", {}, other)) == (503, "STORE_UNAVAILABLE")
    assert status_and_code(invoke(client, "order", {}, other)) == (503, "STORE_UNAVAILABLE")
    assert (len(runs), caplog.text.count("nearly full")) == (1, 1)
    free = 10**12
    assert (invoke(client, "order", {}, other).status_code, len(runs)) == (200, 2)
    assert (caplog.text.count("nearly full"), caplog.text.count("has room again")) == (1, 1)


@pytest.mark.needs("sqlite")
@pytest.mark.parametrize("kind", ["repeatable", "other"])
def test_an_answer_that_does_not_fit_on_the_disk_any_more_was_given_and_its_call_is_not_said_to_run(
    open_client, tmp_path, monkeypatch, kind
):
    connect = sqlite3.connect

    def connect_with_little_room(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.execute("PRAGMA max_page_count = 40")
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect_with_little_room)
    site, runs = make_shop(authenticate=known_callers(), store=f"sqlite:///{tmp_path / 'agents.db'}"), []

    @site.agent("order", idempotency="24h", **KINDS[kind])
    async def order(size: int) -> str:
        """Order something."""
        runs.append(1)
        return "x" * size

    client = publish(site, open_client)
    assert invoke(client, "order", {"size": 300_000}, KEY | ANN).status_code == 200
    again = invoke(client, "order", {"size": 300_000}, KEY | ANN)
    if kind == "repeatable":
        assert (again.status_code, len(runs)) == (200, 2)
    else:
        assert (status_and_code(again), len(runs)) == ((409, "ANSWER_NOT_KEPT"), 1)
        assert "succeeded" in again.json()["detail"]
    other = KEY | ANN | {"idempotency-key": "k-2"}
    first = invoke(client, "order", {"size": 3}, other)
    assert (first.content, first.status_code) == (invoke(client, "order", {"size": 3}, other).content, 200)
    assert len(runs) == 2 + (kind == "repeatable")
