"""Every store, with a clock that a test moves: their own for memory and SQLite, the real one for Redis."""

import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from uuid import uuid4

import pytest

from awp_publish.stores import Store
from awp_publish.stores.memory import MemoryStore
from tests.installed import is_installed

PLUGINS = {"sqlite": "sqlite", "redis": "redis", "cluster": "redis", "postgres": "postgres"}
KINDS = ("memory", *(kind for kind, plugin in PLUGINS.items() if is_installed(plugin)))


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now

    def pass_time(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


@pytest.fixture
def make_store(kind: str, clock: Clock, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[], Store]:
    """Makes a store of one kind; those that are shared, of the same file or server each time."""
    namespace = uuid4().hex

    def make() -> Store:
        if kind == "memory":
            return MemoryStore(clock)
        if kind == "sqlite":
            from awp_publish.plugins.sqlite.store import SqliteStore

            return SqliteStore(str(tmp_path / "agents.db"), namespace, clock=clock, timeout=20)
        if kind == "postgres":
            from awp_publish.plugins.postgres.store import PostgresStore

            return PostgresStore(request.getfixturevalue("postgres_url"), namespace, clock=clock, timeout=20)
        if kind == "cluster":  # all in one place: what holds of several is tested in test_cluster.py
            from awp_publish.plugins.redis.cluster import RedisClusterStore

            url = request.getfixturevalue("redis_cluster").url
            return RedisClusterStore(url, f"{{{namespace}}}", timeout=20)
        from awp_publish.plugins.redis.store import RedisStore

        return RedisStore(request.getfixturevalue("redis_url"), namespace, timeout=20)

    if kind == "postgres":
        request.getfixturevalue("postgres_url")
    if kind in ("redis", "cluster"):  # not later: a server cannot be started from inside an event loop
        request.getfixturevalue("redis_url" if kind == "redis" else "redis_cluster")
    return make


@pytest.fixture
async def store(make_store: Callable[[], Store]) -> AsyncIterator[Store]:
    made = make_store()
    try:
        yield made
    finally:
        await made.close()


@pytest.fixture
def second(kind: str) -> float:
    """How long a second of a test is: on the real clock, what a busy machine does in one takes longer."""
    return 3.0 if kind in ("redis", "cluster") else 1.0


@pytest.fixture
def pass_time(kind: str, clock: Clock) -> Callable[[float], None]:
    return time.sleep if kind in ("redis", "cluster") else clock.pass_time
