"""Looking after calls that take long: deadlines, callers who went away, handlers that work on after their answer.

One timer looks after all calls. A timer and a task for each would cost a quick call a tenth of its time, for something
that quick calls never need; so deadlines are kept to within one `INTERVAL`.
"""

import asyncio
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeAlias, TypeVar

INTERVAL: Final = 0.1
"""Seconds between two rounds."""

R = TypeVar("R")
Gone: TypeAlias = Callable[[], Awaitable[None]]


class Watch(ABC, Generic[R]):
    """One call under watch, in whose task it is made. Hands over exactly one result: the first that anybody has.

    `gone()` ends when the caller hangs up; `deadline` is in monotonic seconds.
    """

    __slots__ = ("_finished", "_finisher", "_listener", "_task", "answer", "deadline", "gone", "interrupted")

    def __init__(self, deadline: float, gone: Gone | None) -> None:
        self.deadline = deadline
        self.gone = gone
        self.interrupted = False
        self._task = asyncio.current_task()
        self.answer: R | None = None
        self._finished = False
        self._finisher: asyncio.Task[None] | None = None
        self._listener: asyncio.Task[None] | None = None

    @abstractmethod
    async def hand_over(self, result: R) -> None:
        """Give the result to whoever waits for it."""

    @abstractmethod
    def overdue(self) -> R:
        """The result of a call that is past its deadline."""

    def note(self, answer: R) -> None:
        """The answer is complete, though its handler may work on: from now on nothing interrupts the call."""
        self.answer = answer

    async def finish(self, result: R) -> None:
        """Hand over a result, unless one was handed over already."""
        if not self._finished:
            self._finished = True
            await self.hand_over(result)

    def inspect(self, now: float) -> None:
        """One round: give out an answer whose handler works on, end what is overdue, listen for a hang-up."""
        if self._finished:
            return
        if self.answer is not None:
            self._finisher = self._start(self.finish(self.answer))
        elif now >= self.deadline:
            self._finisher = self._start(self.finish(self.overdue()))
            self._interrupt()
        elif self.gone is not None and self._listener is None:
            self._listener = self._start(self._listen(self.gone))

    @property
    def has_company(self) -> bool:
        """Whether the patrol did anything in this call's name that has to be settled."""
        return self._listener is not None or self._finisher is not None or self.interrupted

    async def settle(self) -> None:
        """Wait for the tasks that the patrol started in this call's name. The call owns them and awaits this."""
        if self.interrupted and self._task is not None:
            self._task.uncancel()
        if self._listener is not None:
            self._listener.cancel()
        started = [task for task in (self._listener, self._finisher) if task is not None]
        if started:
            await asyncio.gather(*started, return_exceptions=True)

    async def _listen(self, gone: Gone) -> None:
        await gone()
        if not self._finished and self.answer is None:
            self._finished = True
            self._interrupt()

    def _interrupt(self) -> None:
        self.interrupted = True
        if self._task is not None:
            self._task.cancel()

    def _start(self, work: "asyncio._CoroutineLike[None]") -> "asyncio.Task[None]":
        return asyncio.get_running_loop().create_task(work)


class Patrol(Generic[R]):
    """The rounds over all watched calls, each event loop's apart: a process may run several, in turn or in threads."""

    def __init__(self) -> None:
        self._own = threading.local()

    def add(self, watch: Watch[R]) -> None:
        rounds: _Rounds[R] | None = getattr(self._own, "rounds", None)
        loop = asyncio.get_running_loop()
        if rounds is None or rounds.loop is not loop:
            rounds = self._own.rounds = _Rounds(loop)
        rounds.add(watch)

    def remove(self, watch: Watch[R]) -> None:
        rounds: _Rounds[R] = self._own.rounds
        rounds.watches.discard(watch)


class _Rounds(Generic[R]):
    """The rounds of one event loop. No timer runs while there is no call."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.watches: set[Watch[R]] = set()
        self._is_due = False

    def add(self, watch: Watch[R]) -> None:
        self.watches.add(watch)
        if not self._is_due:
            self._is_due = True
            self.loop.call_later(INTERVAL, self._go)

    def _go(self) -> None:
        now = time.monotonic()
        for watch in tuple(self.watches):
            watch.inspect(now)
        self._is_due = bool(self.watches)
        if self._is_due:
            self.loop.call_later(INTERVAL, self._go)
