"""The project's database keeps the contract of every store, be it SQLite or PostgreSQL."""

import asyncio
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from typing import Any

import pytest
from awp_publish_django.models import Entry, Lock
from awp_publish_django.store import PURGE_EVERY, DjangoStore
from django.db import connections, transaction
from django.db.backends.signals import connection_created
from starlette.applications import Starlette

from awp_publish import AgentPublisher
from awp_publish.problems import StoreUnavailable
from awp_publish.stores import Add, Look, Store
from tests.client import TestClient
from tests.django.sites import make_site
from tests.plugins.events.test_events_log import *  # noqa: F403
from tests.plugins.events.test_webhooks import *  # noqa: F403
from tests.plugins.jobs.test_credentials import MARK, make_site as make_reporting_site, send_and_wait
from tests.plugins.traffic.test_stored_traffic import *  # noqa: F403
from tests.stores.conftest import Clock
from tests.stores.test_contract import *  # noqa: F403


@pytest.fixture
def clock() -> Clock:
    """It begins now: the shop keeps its things in the same tables, and forgets there what has expired for it."""
    clock = Clock()
    clock.now = time.time()
    return clock


@pytest.fixture
def kind() -> str:
    return "django"


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> str:
    """Its alias."""
    return "store" if request.param == "sqlite" else str(request.getfixturevalue("postgres"))


@pytest.fixture
def make_store(clock: Clock, database: str) -> Callable[[], Store]:
    namespace = uuid.uuid4().hex
    return lambda: DjangoStore(namespace, using=database, clock=clock, timeout=20)


@pytest.mark.parametrize(("seconds", "number"), [(0, 3), (None, 0)])
async def test_the_store_keeps_its_connection_as_long_as_the_project_says(monkeypatch, clock, seconds, number):
    made: list[object] = []
    monkeypatch.setitem(connections.settings["store"], "CONN_MAX_AGE", seconds)
    store = DjangoStore(uuid.uuid4().hex, using="store", clock=clock, timeout=20)
    await store.run([Look("a")])
    note = lambda connection, **_: made.append(connection) if connection.alias == "store" else None  # noqa: E731
    connection_created.connect(note)
    try:
        for _ in range(3):
            await store.run([Look("a")])
    finally:
        connection_created.disconnect(note)
        await store.close()
    assert len(made) == number


@pytest.fixture
async def store(make_store: Callable[[], Store]) -> AsyncIterator[Store]:
    made = make_store()
    yield made
    await made.close()


@pytest.fixture
def second() -> float:
    return 1.0


@pytest.fixture
def pass_time(clock: Clock) -> Callable[[float], None]:
    return clock.pass_time


async def test_expired_values_are_forgotten(store, clock, pass_time, database):
    await store.run([Add(f"key{number}", b"one", 1) for number in range(5)])
    pass_time(2)
    for number in range(PURGE_EVERY):
        await store.run([Add("other", b"", 1), Look(f"{number}")])
    assert await Entry.objects.using(database).filter(expires__lte=clock()).acount() == 0


async def test_a_site_keeps_its_answers_in_the_database(clock):
    site = make_site(store=DjangoStore(uuid.uuid4().hex, using="store", timeout=20))
    numbers = iter(range(10))

    @site.agent("count", idempotency=True)
    def count() -> int:
        """Count."""
        return next(numbers)

    with TestClient(AgentPublisher(Starlette(), site=site)) as client:
        for _ in range(2):
            answer = client.post("/agents/count/invoke", json={"input": {}}, headers={"idempotency-key": "one"})
            assert answer.json() == 0
    assert answer.headers["idempotent-replayed"] == "true"


def test_an_answer_that_the_database_has_no_room_for_was_given_and_its_call_is_not_said_to_run():
    site = make_site(store=DjangoStore(uuid.uuid4().hex, using="store", timeout=20))
    runs = []

    @site.agent("count", idempotency=True)
    def count() -> str:
        """Count."""
        runs.append(1)
        return "x" * 60_000

    def leave_little_room(connection: Any, **_: object) -> None:
        if connection.alias == "store":
            with connection.cursor() as cursor:
                cursor.execute("VACUUM")  # other tests have left free pages
                [pages] = cursor.execute("PRAGMA page_count").fetchone()
                cursor.execute(f"PRAGMA max_page_count = {pages + 8}")

    connection_created.connect(leave_little_room)
    try:
        with TestClient(AgentPublisher(Starlette(), site=site)) as client:
            first, again = (
                client.post("/agents/count/invoke", json={"input": {}}, headers={"idempotency-key": "one"})
                for _ in range(2)
            )
    finally:
        connection_created.disconnect(leave_little_room)
    assert first.status_code == 200
    assert (again.status_code, again.json()["code"], len(runs)) == (409, "ANSWER_NOT_KEPT", 1)


def test_credentials_of_ended_jobs_are_in_no_row(open_client, database):
    go, namespace = threading.Event(), uuid.uuid4().hex
    site = make_reporting_site(DjangoStore(namespace, using=database, timeout=20), go)
    send_and_wait(open_client(AgentPublisher(Starlette(), site=site)), go, 3)
    values = [bytes(entry.value) for entry in Entry.objects.using(database).filter(is_job=True)]
    assert values
    assert MARK.encode() not in b"".join(values)


async def test_a_database_that_is_not_configured_is_an_unavailable_store():
    store = DjangoStore("site", using="nowhere")
    with pytest.raises(StoreUnavailable):
        await store.run([Add("key", b"", 1)])
    await store.close()


async def test_a_transaction_of_the_sites_own_can_write_after_it_has_read_while_the_store_waits_for_it():
    """As with ATOMIC_REQUESTS on SQLite: a lock that is held while one waits would have it fail at once."""
    store = DjangoStore(uuid.uuid4().hex, using="store")
    await store.run((Add("first", b"", 60.0),))
    has_read, outcome = threading.Event(), list[str]()

    def serve() -> None:
        with closing(connections["store"]), transaction.atomic(using="store"):
            Entry.objects.using("store").count()
            has_read.set()
            time.sleep(0.3)
            Entry.objects.using("store").filter(key="nobody's").delete()
            Lock.objects.using("store").filter(name="nobody's").update(turn=1)
        outcome.append("written")

    request = threading.Thread(target=serve)
    request.start()
    await asyncio.to_thread(has_read.wait, 30)
    assert (await store.run((Add("second", b"kept", 60.0),))).failed is None
    await asyncio.to_thread(request.join)
    assert outcome == ["written"]
    assert (await store.run((Look("second"),))).seen == (b"kept",)
    await store.close()
