"""An event loop in which waiting takes no time: a minute of two workers side by side is the same in each run."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

REAL_SECONDS = 20.0
"""In which a thread gives its answer, if nothing else is waited for."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose time goes on as soon as all tasks wait for it."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_Selector(self))

    def time(self) -> float:
        return self.now


class _Selector(selectors.SelectSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            events = super().select(REAL_SECONDS)
            assert events, "All tasks wait, and nothing will ever wake them."
            return events
        events = super().select(0)
        if not events:
            self._loop.now += max(timeout, 0.0)
        return events


def run_virtually(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in virtual time, which begins at 0."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
