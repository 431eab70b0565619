"""What becomes of requests of a store whose work a thread does: `transcripts/requests.txt` and `batches.txt`.

`request` is given an order, the seconds that it may take, and what happens to it at some of them, in virtual time.
`single` and `pooled` are given the size of the largest batch, requests that arrive while the thread is busy, and what
becomes of their batches.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from awp_publish.problems import StoreUnavailable
from awp_publish.stores import Look, Ran, batches
from awp_publish.stores.batches import BatchedStore, BatchThread, RunSteps, StoreRequest, TakeDue
from awp_publish.stores.store import unavailable
from tests.function_transcripts import compare
from tests.stores.test_steps_transcript import step_of
from tests.virtual_time import run_virtually

TEXTS = Path(__file__).parent / "transcripts"


def order_of(given: list[Any]) -> RunSteps | TakeDue:
    return TakeDue("queue", 60, 5) if given == ["take"] else RunSteps(tuple(map(step_of, given)), False)


def request(given: list[Any], seconds: float, events: Mapping[str, str], poll: float = 0.0) -> list[str]:
    lines = list[str]()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        made = StoreRequest(order_of(given), loop, seconds)

        def say(text: object) -> None:
            lines.append(f"{loop.time():g} {text}")

        async def wait() -> None:
            try:
                say(await made.wait())
            except StoreUnavailable as problem:
                say(problem.detail)
            except asyncio.CancelledError:
                say("cancelled")
            except RuntimeError as error:
                say(f"raised {error}")

        say(f"writes: {made.writes}, until {made.deadline:g}, may be late: {made.may_be_late}")
        waiting = asyncio.create_task(wait())
        for moment, event in events.items():
            await asyncio.sleep(float(moment) - loop.time())
            match event:
                case "commit":
                    say(f"is wanted: {made.is_wanted}, is committed: {made.commit()}")
                case "answer" | "fails":
                    made.answer = ("done",) if event == "answer" else RuntimeError("No.")
                    made.settle()
                case "settle":
                    made.settle()
                case "cancel":
                    waiting.cancel()
                case "ignore":
                    made.ignore()
        await asyncio.wait({waiting})
        say(f"is wanted: {made.is_wanted}")

    run_virtually(main())
    return lines


class Backend:
    """Writes down its batches. One that is to `hold` lasts until it is released."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words, self.told = list(words), list[Any]()
        self.released, self.holding = threading.Event(), threading.Semaphore(0)

    def carry_out(self, requests: Sequence[StoreRequest]) -> None:
        if _name(requests[0]) == "hold":
            self.holding.release()
            assert self.released.wait(20)
        self.answer(requests)

    def answer(self, requests: Sequence[StoreRequest]) -> None:
        names = [_name(each) for each in requests]
        is_held = names == ["hold"]
        if not is_held:
            self.told.append(names)
        word = self.words.pop(0) if self.words and not is_held else "ok"
        for each in requests[: 1 if word == "half" else None]:
            if word in ("ok", "half", "each"):
                each.answer = RuntimeError("No.") if word == "each" else Ran(None, (_name(each).encode(),))
        if word in ("half", "away"):
            raise unavailable("The server is away.") from OSError("No route to host")
        if word == "broken":
            raise RuntimeError("It is broken.")

    def tidy(self) -> float | None:
        return None

    def close(self) -> None:
        self.told.append("closed")


class PooledBackend(Backend):
    """As `Backend`, with several batches at the same time."""

    async def carry_out(self, requests: Sequence[StoreRequest]) -> None:  # type: ignore[override]
        if _name(requests[0]) == "hold":
            self.holding.release()
            assert await asyncio.to_thread(self.released.wait, 20)
        self.answer(requests)

    async def close(self) -> None:  # type: ignore[override]
        super().close()


def _name(request: StoreRequest) -> str:
    return request.order.steps[0].key if isinstance(request.order, RunSteps) else "take"  # type: ignore[union-attr]


async def _play(store: BatchedStore, backend: Backend, rounds: Sequence[Sequence[str]], most: int = 1) -> list[Any]:
    results = list[Any]()
    for names in rounds:
        backend.released.clear()
        held = list[Any]()
        for _ in range(most):
            held.append(asyncio.create_task(store.run([Look("hold")])))
            assert await asyncio.to_thread(backend.holding.acquire, timeout=20)
        tasks = [
            asyncio.create_task(store.take("queue", 60, 5) if name == "take" else store.run([Look(name)]))
            for name in names
        ]
        await asyncio.sleep(0)
        backend.released.set()
        await asyncio.gather(*held)
        results += [[_outcome(each) for each in await asyncio.gather(*tasks, return_exceptions=True)], [*backend.told]]
        backend.told.clear()
    thread = store._thread
    await store.close()
    await store.close()
    is_alive = thread is not None and thread._thread._thread is not None and thread._thread._thread.is_alive()
    return [*results, *backend.told, *(["the thread is alive"] if is_alive else [])]


def _outcome(answer: Any) -> str:
    return str(answer.seen[0], "ascii") if isinstance(answer, Ran) else str(getattr(answer, "detail", answer))  # type: ignore[arg-type]


def test_requests_to_a_store_are_waited_for_as_in_the_transcript(request, monkeypatch):
    clock = SimpleNamespace(monotonic=lambda: asyncio.get_running_loop().time())
    monkeypatch.setattr(batches, "time", clock)
    compare(TEXTS / "requests.txt", {"request": globals()["request"]}, request)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Callable[..., list[Any]]:
    """Run rounds of requests with a backend and its thread, and return their answers and what was logged."""
    caplog.set_level(logging.WARNING, "awp_publish.stores")

    def run(
        backend: Backend, thread: Callable[[], BatchThread], largest: int, rounds: list[list[str]], most: int = 1
    ) -> list[Any]:
        monkeypatch.setattr(batches, "MAX_BATCH", largest)
        answers = asyncio.run(_play(BatchedStore(thread, 20), backend, rounds, most))
        messages = [f"{record.levelname} {record.getMessage()}" for record in caplog.records]
        caplog.clear()
        return [*answers, *messages]

    return run


def test_requests_are_batched_as_in_the_transcript(request, run):
    def single(largest: int, rounds: list[list[str]], words: str = "") -> list[Any]:
        backend = Backend(words.split())
        return run(backend, lambda: BatchThread(backend), largest, rounds)

    compare(TEXTS / "batches.txt", {"single": single}, request)


@pytest.mark.needs("postgres")
def test_requests_run_at_the_same_time_as_in_the_transcript(request, run, monkeypatch):
    from awp_publish.plugins.postgres import pool

    def pooled(largest: int, most: int, rounds: list[list[str]], words: str = "") -> list[Any]:
        monkeypatch.setattr(pool, "MAX_BATCH", largest)
        backend: Any = PooledBackend(words.split())
        return run(backend, lambda: pool.PooledThread(backend, most), largest, rounds, most)

    compare(TEXTS / "pools.txt", {"pooled": pooled}, request)
