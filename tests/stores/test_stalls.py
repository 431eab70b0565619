"""A store that stalls and goes on: calls that were told to come again do, with the same key and confirmation."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager

import pytest
from starlette.applications import Starlette

from awp_publish import AgentPublisher, BearerToken
from awp_publish.plugins.redis.store import RedisStore
from awp_publish.plugins.sqlite.store import SqliteStore
from awp_publish.stores import Store
from tests.doors.adapters import DOORS
from tests.doors.callers import Told
from tests.guarded import KEYS, make_shop
from tests.installed import installed

LOCK = """
import sqlite3, sys
other = sqlite3.connect(sys.argv[1], isolation_level=None)
other.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.readline()
other.execute("ROLLBACK")
"""


@pytest.fixture(params=["redis", "sqlite"])
def stalling(request, tmp_path) -> Iterator[tuple[Store, Callable[[], AbstractContextManager[None]]]]:
    """A store, and the context in which it stalls: a server that is stopped, a file that another process locks."""
    if request.param == "redis":
        server = request.getfixturevalue("start_redis")()

        @contextmanager
        def stopped() -> Iterator[None]:
            server.pause()
            yield
            server.resume()

        yield RedisStore(server.url, "shop", timeout=2.0), stopped
        return
    path = str(tmp_path / "agents.db")

    @contextmanager
    def locked() -> Iterator[None]:
        command = [sys.executable, "-c", LOCK, path]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "locked\n"
            yield
            other.communicate("go\n")

    yield SqliteStore(path, "shop", timeout=2.0), locked


@pytest.mark.slow
def test_calls_that_a_stalled_store_refused_run_once_when_they_are_sent_again(stalling, open_client):
    store, stalled = stalling
    pay_through_a_stall(store, stalled, open_client)


def pay_through_a_stall(store, stalled, open_client):
    """Through every door at once: ask, confirm while the store stalls, and send the same again."""
    site = make_shop(
        store=store,
        authenticate=BearerToken({"t-ann": "ann"}),
        secret_keys=KEYS,
        plugins=installed("mcp", "a2a", "awp"),
    )
    paid = []

    @site.agent("pay", effect="irreversible", idempotency="24h")
    async def pay(door: str) -> str:
        """Pay books."""
        paid.append(door)
        return "paid"

    client = open_client(AgentPublisher(Starlette(), site=site))
    doors = {name: adapter(client) for name, adapter in DOORS.items()}
    tokens: dict[str, str] = {}

    def call(name: str) -> Told:
        confirmation = tokens.get(name)
        return doors[name].call("pay", {"door": name}, token="t-ann", key=f"{name}-1", confirmation=confirmation)

    def call_until_served(name: str) -> Told:
        """As a caller does whom the store has no time for: a busy machine may be late before it stalls, too."""
        until = time.monotonic() + 30
        while (told := call(name)).code == "STORE_UNAVAILABLE" and time.monotonic() < until:
            time.sleep(0.1)
        return told

    tokens |= {name: call_until_served(name).question["token"] for name in doors}
    with ThreadPoolExecutor(len(doors)) as threads:
        with stalled():
            refused = list(threads.map(call, doors))
            assert {told.code for told in refused} == {"STORE_UNAVAILABLE"}
            assert "with the same key" in refused[0].recovery
            time.sleep(1)
        time.sleep(0.5)  # what it was sent before, it carries out now
        assert paid == []
        told = list(threads.map(call_until_served, doors))
        assert [(item.code, item.output) for item in told] == [(None, "paid")] * len(doors)
        assert sorted(paid) == sorted(doors)
        assert all(call_until_served(name).is_replayed for name in doors)
    assert sorted(paid) == sorted(doors)
