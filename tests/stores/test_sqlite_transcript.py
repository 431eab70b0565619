"""What SQLite is told, and what becomes of the requests: `transcripts/sqlite.txt`.

`carry` is given requests, each with its steps. What is answered, then the statements, by the names that these have in
the tables of the store, with their parameters. --golden writes them anew; read the change.
"""

import asyncio
import logging
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from awp_publish.plugins.sqlite import PLUGIN, store, tables
from awp_publish.problems import StoreUnavailable
from awp_publish.stores.batches import RunSteps, StoreRequest, TakeDue
from awp_publish.stores.store import Ran
from tests.function_transcripts import compare
from tests.stores.conftest import Clock
from tests.stores.test_steps_transcript import TEXTS, shown, step_of

NAMES = {value: name for name, value in vars(tables).items() if isinstance(value, str)}
NAMES |= {statement: f"SCHEMA {number}" for number, statement in enumerate(tables.SCHEMA)}
NAMES |= {"SELECT 1 FROM awp_entries LIMIT 1": "READ"}


class Scene:
    """A file in which a backend writes, at a time that stands still."""

    def __init__(
        self, path: Path, clock: Clock, loop: asyncio.AbstractEventLoop, caplog: pytest.LogCaptureFixture
    ) -> None:
        self.path, self.clock, self._loop, self._caplog = path, clock, loop, caplog
        self._connect, self.locked_for = sqlite3.connect, 0
        self.told: list[str] = []
        self.events: list[tuple[str, Callable[[], None]]] = []
        """What happens before a statement of this name."""
        self.seconds, self.pauses = 100.0, 0
        self.free = 10**9
        self.other: sqlite3.Connection | None = None
        self.backend = store._SqliteBackend(str(self.path), "shop", clock, 2.0)

    def open(self, timeout: float = 2.0, namespace: str = "shop") -> None:
        self.backend.close()
        self.told.clear()
        self.backend = store._SqliteBackend(str(self.path), namespace, self.clock, timeout)

    def note(self, sql: str, parameters: Any) -> None:
        name = NAMES.get(sql, sql)
        for each in [each for each in self.events if name.startswith(each[0])][:1]:
            self.events.remove(each)
            self.told.append(f"at {name}")
            each[1]()
        values = parameters.values() if isinstance(parameters, dict) else parameters
        self.told.append(" ".join([name, *map(_shown, values)]))

    def carry(self, *given: Any) -> list[Any]:
        requests = [StoreRequest(_order_of(each), self._loop, 1) for each in given]
        for each, request in zip(given, requests, strict=True):
            if isinstance(each, dict) and "gives_up" in each:
                self._give_up(request, each["gives_up"])
        try:
            self.backend.carry_out(requests)
        except StoreUnavailable as problem:
            return [f"! {problem.detail}", *self.said()]
        return [[_answer(request.answer) for request in requests], *self.said()]

    def _give_up(self, request: StoreRequest, at: str) -> None:
        def give_up() -> None:
            request._is_abandoned = True

        if at:
            self.events.append((at, give_up))
        else:
            give_up()

    def fails(self, at: str, code: str, kind: str = "OperationalError") -> None:
        def fail() -> None:
            error = getattr(sqlite3, kind)("It failed.")
            if code:
                error.sqlite_errorcode = getattr(sqlite3, code)
            raise error

        self.events.append((at, fail))

    def breaks(self, at: str) -> None:
        def fail() -> None:
            raise RuntimeError("It is broken.")

        self.events.append((at, fail))

    def said(self) -> list[str]:
        if self.pauses:
            self.told.append(f"{self.pauses} pauses")
        logged = [f"{each.levelname} {each.getMessage()}" for each in self._caplog.records]
        told, self.told, self.pauses = [*self.told, *logged], [], 0
        self._caplog.clear()
        return told

    def tidy(self) -> list[Any]:
        return [self.backend.tidy(), *self.said()]

    def sleep(self, seconds: float) -> None:
        self.clock.pass_time(seconds)
        self.seconds += seconds

    def disk(self, free: int) -> None:
        self.free = free

    def close(self) -> list[Any]:
        self.backend.close()
        return self.said()

    def lock(self, pauses: int = 0) -> None:
        """Hold a lock, for so many pauses."""
        self.other = self._connect(self.path, isolation_level=None)
        self.other.execute("BEGIN IMMEDIATE")
        self.locked_for = pauses

    def pause(self, seconds: float) -> None:
        self.pauses += 1
        self.seconds += 0.5
        assert self.pauses < 100
        if self.other is not None and self.pauses == self.locked_for:
            self.unlock()

    def unlock(self) -> None:
        assert self.other is not None
        self.other.close()
        self.other = None

    def remove(self) -> None:
        for path in self.path.parent.iterdir():
            path.unlink()

    def write(self, text: str) -> None:
        self.path.write_text(text)

    def mode(self, mode: int | None = None) -> Any:
        if mode is not None:
            self.path.chmod(mode)
        return sorted((path.name, oct(path.stat().st_mode & 0o777)) for path in self.path.parent.iterdir())

    def rows(self) -> Any:
        with sqlite3.connect(self.path) as connection:
            entries = connection.execute("SELECT key, value, expires, slot FROM awp_entries ORDER BY key").fetchall()
            queues = connection.execute("SELECT * FROM awp_queue ORDER BY queue, member").fetchall()
        connection.close()
        return [" ".join(map(_shown, row)) for row in (*entries, *queues)]


class Connection(sqlite3.Connection):
    """A connection that says what it is told."""

    scene: Scene

    def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        self.scene.note(sql, parameters)
        return super().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Any) -> sqlite3.Cursor:
        for each in parameters:
            self.scene.note(sql, each)
        return super().executemany(sql, parameters)

    def close(self) -> None:
        self.scene.told.append("closed")
        super().close()


def _order_of(given: Any) -> RunSteps | TakeDue:
    steps = given["steps"] if isinstance(given, dict) else given
    if steps[0] == "take":
        return TakeDue(*steps[1:])
    is_durable = isinstance(given, dict) and given.get("durable", False)
    return RunSteps(tuple(map(step_of, steps)), is_durable)


def _answer(answer: Any) -> Any:
    if isinstance(answer, Ran):
        return [answer.failed, [shown(each) for each in answer.seen]]
    return getattr(answer, "detail", str(answer)) if isinstance(answer, Exception) else answer


def _shown(value: object) -> str:
    if isinstance(value, bytes):
        text = value.decode("latin-1")
        return ascii(text) if len(text) < 100 else f"{len(text)} bytes that end with {text.strip(chr(0))[-9:]!a}"
    return f"{value:.12g}" if isinstance(value, int | float) else str(value)


@pytest.fixture
def scene(tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture, monkeypatch: Any) -> Iterator[Scene]:
    folder = tmp_path / "data"
    folder.mkdir()
    caplog.set_level(logging.WARNING, "awp_publish.stores")
    connect, runner = sqlite3.connect, asyncio.Runner()
    scene = Scene(folder / "agents.db", clock, runner.get_loop(), caplog)

    def opened(path: Any, **options: Any) -> Any:
        if not isinstance(path, str):
            return connect(path, **options)
        scene.told.append(f"opened {os.path.basename(path)} {options}")
        connection: Any = connect(path, **options, factory=Connection)
        connection.scene = scene
        return connection

    monkeypatch.setattr(sqlite3, "connect", opened)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=scene.free))
    monkeypatch.setattr(
        store, "time", SimpleNamespace(time=time.time, monotonic=lambda: scene.seconds, sleep=scene.pause)
    )
    with runner:
        yield scene
    scene.backend.close()


def test_statements_for_sqlite_are_as_in_the_transcript(scene, request):
    names = [
        "open",
        "carry",
        "fails",
        "breaks",
        "tidy",
        "sleep",
        "disk",
        "close",
        "lock",
        "unlock",
        "remove",
        "write",
        "mode",
        "rows",
    ]
    compare(TEXTS / "sqlite.txt", {name: getattr(scene, name) for name in names}, request)


def test_sqlite_addresses_name_files_as_in_the_transcript(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def address(url: str) -> Any:
        opened: Any = PLUGIN.stores["sqlite"](url, "shop")
        return type(opened).__name__, opened.is_shared

    compare(TEXTS / "sqlite_addresses.txt", {"address": address}, request)
