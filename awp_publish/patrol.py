"""Looking after calls that take long: deadlines, callers who went away, handlers that work on after their answer.

One timer looks after all calls. A timer and a task for each would cost a quick call a tenth of its time, for
something that quick calls never need; so deadlines are kept to within one `INTERVAL`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeAlias, TypeVar

INTERVAL: Final = 0.1
"""Seconds between two rounds."""

R = TypeVar("R")
Gone: TypeAlias = Callable[[], Awaitable[None]]


class Watch(Generic[R]):
    """One call under watch, in whose task it is made. Hands over exactly one result: the first that anybody has."""

    __slots__ = (
        "_answer",
        "_deadline",
        "_deliver",
        "_finished",
        "_finisher",
        "_gone",
        "_listener",
        "_overdue",
        "_task",
        "interrupted",
    )

    def __init__(
        self, deliver: Callable[[R], Awaitable[None]], deadline: float, overdue: Callable[[], R], gone: Gone | None
    ) -> None:
        """`overdue()` makes the result of a call past `deadline` (monotonic seconds); `gone()` ends at a hang-up."""
        self._deliver = deliver
        self._deadline = deadline
        self._overdue = overdue
        self._gone = gone
        self._task = asyncio.current_task()
        self._answer: R | None = None
        self._finished = False
        self._finisher: asyncio.Task[None] | None = None
        self._listener: asyncio.Task[None] | None = None
        self.interrupted = False

    def note(self, answer: R) -> None:
        """The answer is complete, though its handler may work on: from now on nothing interrupts the call."""
        self._answer = answer

    async def finish(self, result: R) -> None:
        """Hand over a result, unless one was handed over already."""
        if not self._finished:
            self._finished = True
            await self._deliver(result)

    def inspect(self, now: float) -> None:
        """One round: give out an answer whose handler works on, end what is overdue, listen for a hang-up."""
        if self._finished:
            return
        if self._answer is not None:
            self._finisher = self._start(self.finish(self._answer))
        elif now >= self._deadline:
            self._finisher = self._start(self.finish(self._overdue()))
            self._interrupt()
        elif self._gone is not None and self._listener is None:
            self._listener = self._start(self._listen(self._gone))

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
        if not self._finished and self._answer is None:
            self._finished = True
            self._interrupt()

    def _interrupt(self) -> None:
        self.interrupted = True
        if self._task is not None:
            self._task.cancel()

    def _start(self, work: "asyncio._CoroutineLike[None]") -> "asyncio.Task[None]":
        return asyncio.get_running_loop().create_task(work)


class Patrol(Generic[R]):
    """The rounds over all watched calls. No timer runs while there is no call."""

    def __init__(self) -> None:
        self._watches: set[Watch[R]] = set()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, watch: Watch[R]) -> None:
        self._watches.add(watch)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(INTERVAL, self._round)

    def remove(self, watch: Watch[R]) -> None:
        self._watches.discard(watch)

    def _round(self) -> None:
        self._timer = None
        now = time.monotonic()
        for watch in tuple(self._watches):
            watch.inspect(now)
        if self._watches:
            self._timer = asyncio.get_running_loop().call_later(INTERVAL, self._round)
