"""What steps find and change, whichever store carries them out: `transcripts/steps.txt`, and `memory.txt` with the
bytes that memory takes.

A step is its name and its fields. `run` gives the index of the step that failed, and what each has found.
"""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from awp_publish.problems import StoreUnavailable
from awp_publish.stores import Add, Count, Counted, Look, Reserve, Schedule, Step, Store, Swap, Unschedule, values
from awp_publish.stores.memory import ENTRY_BYTES, MemoryStore
from awp_publish.stores.store import decode, encode, session_key, unavailable
from awp_publish.stores.values import change_value, read_value
from tests.function_transcripts import compare
from tests.stores.conftest import Clock

TEXTS = Path(__file__).parent / "transcripts"
KINDS: dict[str, Callable[..., Step]] = {
    each.__name__.lower(): each for each in (Add, Count, Look, Reserve, Schedule, Swap, Unschedule)
}


def step_of(fields: list[Any]) -> Step:
    name, *rest = fields
    is_value = name in ("add", "swap")
    rest[1:] = [each.encode() if is_value and isinstance(each, str) else each for each in rest[1:]]
    return KINDS[name](*rest)


def shown(found: object) -> object:
    if isinstance(found, bytes):
        return found.decode() if len(found) < 100 else f"{len(found)} bytes"
    return [found.events, round(found.seconds_left, 3)] if isinstance(found, Counted) else found


class Scene:
    """A store, and the clock by which it goes."""

    def __init__(self, store: Any, clock: Clock, runner: asyncio.Runner) -> None:
        self.store, self.clock, self._runner = store, clock, runner

    def open(self, most_entries: int = 1_000_000, most_bytes: int = 1_000_000) -> None:
        self.store = MemoryStore(self.clock, most_entries, most_bytes)

    def run(self, *steps: list[Any]) -> Any:
        try:
            failed, seen = self._runner.run(self.store.run([step_of(step) for step in steps]))
        except StoreUnavailable as problem:
            return str(problem)
        return [failed, [shown(each) for each in seen]]

    def durable(self, *steps: list[Any]) -> Any:
        return self._runner.run(self.store.run([step_of(step) for step in steps], durable=True)).failed

    def take(self, queue: str, lease: float, most: int) -> Any:
        return self._runner.run(self.store.take(queue, lease, most))

    def sleep(self, seconds: float) -> None:
        self.clock.pass_time(seconds)

    def used(self) -> list[int]:
        """Return the bytes of entries beside their own, and the entries of which memory knows."""
        tables = [self.store._values, self.store._windows, *self.store._queues.values()]
        number = sum(len(table.entries) for table in tables)
        return [number, self.store.bytes_used - number * ENTRY_BYTES, sum(len(table.heap) for table in tables)]

    def change(self, key: str, new: str | None, others: int = 0) -> Any:
        """Change a value while others change it so many times."""
        results = list[Any]()

        async def make(old: bytes | None) -> bytes | None:
            results.append(shown(old))
            if len(results) <= others:
                other = values.replacement(key, await read_value(self.store, key), b"%d" % len(results), 60)
                await self.store.run([other])
            return None if new is None else new.encode()

        results.append(self._runner.run(change_value(self.store, key, make, 60)))
        return results


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture
def scene(make_store: Callable[[], Store], clock: Clock, runner: asyncio.Runner) -> Iterator[Scene]:
    store = make_store()
    yield Scene(store, clock, runner)
    runner.run(store.close())


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"], indirect=True)
def test_steps_find_and_change_values_as_in_the_transcript(scene, request, monkeypatch):
    monkeypatch.setattr(values, "MAX_TRIES", 3)
    names = ["run", "durable", "take", "sleep", "change"]
    compare(TEXTS / "steps.txt", {name: getattr(scene, name) for name in names}, request)


def test_the_memory_store_keeps_as_much_as_in_the_transcript(clock, runner, request):
    scene = Scene(None, clock, runner)
    names = ["open", "run", "take", "sleep", "used"]
    compare(TEXTS / "memory.txt", {name: getattr(scene, name) for name in names}, request)


def test_keys_and_values_are_written_as_in_the_transcript(request):
    functions: dict[str, Callable[..., Any]] = {
        "session_key": session_key,
        "encode": lambda text: list(encode(text)),
        "decode": lambda numbers: [ord(each) for each in decode(bytes(numbers))],
        "unavailable": lambda detail: (str(unavailable(detail)), unavailable(detail).headers),
    }
    compare(TEXTS / "names.txt", functions, request)
