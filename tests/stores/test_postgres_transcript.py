"""What PostgreSQL is told, and what becomes of the requests: `transcripts/postgres.txt`.

`carry` is given requests, each with its steps. What is answered, then the statements, by the names that these have in
the store. --golden writes them anew; read the change.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from awp_publish.plugins.postgres import PLUGIN, store
from awp_publish.problems import StoreUnavailable
from awp_publish.stores.batches import StoreRequest
from tests.function_transcripts import compare
from tests.stores.conftest import Clock
from tests.stores.test_redis_transcript import _answer, _order
from tests.stores.test_steps_transcript import TEXTS

NAMES = {value: name.strip("_") for name, value in vars(store).items() if isinstance(value, str)}
NAMES |= {statement: f"SCHEMA {number}" for number, statement in enumerate(store.SCHEMA)}


class Scene:
    """A backend of a store in a real database, whose statements are written down."""

    def __init__(self, url: str, clock: Clock, runner: asyncio.Runner) -> None:
        self.url, self.clock, self._runner = url, clock, runner
        self.told, self.named = list[str](), dict[bytes, str]()
        self.events: list[tuple[str, Callable[[], None]]] = []
        self.backend: Any = None
        self.open()

    def open(self, timeout: float = 20.0) -> None:
        self.close()
        self.backend = store._PostgresBackend(self.url, "transcript", self.clock, timeout)

    def close(self) -> None:
        if self.backend is not None:
            self._runner.run(self.backend.close())
        self.backend = None

    def note(self, sql: Any, parameters: Any) -> None:
        name = NAMES.get(sql, str(sql))
        for each in [each for each in self.events if name.startswith(each[0])][:1]:
            self.events.remove(each)
            self.told.append(f"at {name}")
            each[1]()
        values = parameters.values() if isinstance(parameters, dict) else parameters or ()
        if name in ("FIND", "MEMBERS"):  # from a set
            values = [sorted(map(self._shown, each)) for each in values]
        self.told.append(" ".join([name, *map(self._shown, values)]))

    def _shown(self, value: Any) -> str:
        if isinstance(value, list):
            return f"[{', '.join(map(self._shown, value))}]"
        if isinstance(value, bytes):
            return self.named.get(value, ascii(value.decode("latin-1"))[1:-1])
        if isinstance(value, int) and self.backend._lock <= value < self.backend._lock + store.STRIPES:
            return f"stripe {value - self.backend._lock}"
        return f"{value:.12g}" if isinstance(value, int | float) else str(value)

    def carry(self, *given: Any) -> Any:
        async def carry_out() -> Any:
            requests = [StoreRequest(_order(each), asyncio.get_running_loop(), 20) for each in given]
            for each, request in zip(given, requests, strict=True):
                if isinstance(each, dict) and "gives_up" in each:
                    self._give_up(request, each["gives_up"])
            try:
                await self.backend.carry_out(requests)
            except StoreUnavailable as problem:
                return f"! {problem.detail}"
            return [_answer(each.answer) for each in requests]

        answer = self._runner.run(carry_out())
        told, self.told = self.told, []
        return [answer, *told]

    def _give_up(self, request: StoreRequest, at: str) -> None:
        def give_up() -> None:
            request._is_abandoned = True

        if at:
            self.events.append((at, give_up))
        else:
            give_up()

    def fails(self, at: str, kind: str) -> None:
        def fail() -> None:
            raise RuntimeError("It is broken.") if kind == "broken" else getattr(psycopg.errors, kind)("It failed.")

        self.events.append((at, fail))

    def sleep(self, seconds: float) -> None:
        self.clock.pass_time(seconds)

    def rows(self) -> Any:
        with psycopg.connect(self.url) as connection:
            entries = connection.execute("SELECT key, value, events, expires FROM awp_entries").fetchall()
            queues = connection.execute("SELECT queue, key, member, due, since FROM awp_queue").fetchall()
        return sorted(" ".join(map(self._shown, row)) for row in (*entries, *queues))

    def drop(self) -> None:
        with psycopg.connect(self.url) as connection:
            connection.execute("DROP TABLE IF EXISTS awp_entries, awp_queue")

    def cut(self) -> None:
        """End the connections of the pool on the server."""
        with psycopg.connect(self.url) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND datname = current_database() AND application_name = 'awp_publish'"
            )


@pytest.fixture
def scene(postgres_url: str, clock: Clock, monkeypatch: Any) -> Iterator[Scene]:
    hashed, execute = store._hash, psycopg.AsyncConnection.execute
    with asyncio.Runner() as runner:
        scene = Scene(postgres_url, clock, runner)

        def hash_of(text: str) -> bytes:
            scene.named[hashed(text)] = text.removeprefix("transcript:")
            return hashed(text)

        async def told(connection: Any, query: Any, params: Any = None, **options: Any) -> Any:
            scene.note(query, params)
            return await execute(connection, query, params, **options)

        monkeypatch.setattr(store, "_hash", hash_of)
        monkeypatch.setattr(psycopg.AsyncConnection, "execute", told)
        scene.drop()
        yield scene
        scene.close()
        scene.drop()


def test_statements_for_postgresql_are_as_in_the_transcript(scene, request):
    names = [*("open", "carry", "fails", "sleep", "rows", "drop", "cut", "close")]
    compare(TEXTS / "postgres.txt", {name: getattr(scene, name) for name in names}, request)


def test_postgresql_addresses_name_databases_as_in_the_transcript(request):
    def opened(url: str) -> Any:
        made: Any = PLUGIN.stores[url.partition(":")[0]](url, "shop")
        return type(made).__name__, made.is_shared

    compare(TEXTS / "postgres_addresses.txt", {"open": opened, "schemes": lambda: sorted(PLUGIN.stores)}, request)
