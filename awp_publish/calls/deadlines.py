"""Deadlines of running calls, and what else may come before their handlers have returned."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Final

from awp_publish.calls.call import Call, Result, RunningCall
from awp_publish.problems import HandlerTimeout, in_seconds

DEADLINE_INTERVAL: Final = 0.1
"""Seconds between two checks of the running calls."""

logger: Final = logging.getLogger("awp_publish.calls")


class Deadlines:
    """The running calls of each event loop in `calls`, looked after by one timer a loop.

    A timer and a task per call would add a tenth to the time of a quick call, which never needs them. `deliver` gives a
    call its result before its handler has returned.
    """

    def __init__(self, deliver: Callable[[Call, Result], Awaitable[None]]) -> None:
        self._deliver = deliver
        self.calls: dict[asyncio.AbstractEventLoop, set[Call]] = {}

    def watch(self, loop: asyncio.AbstractEventLoop) -> set[Call]:
        """Start the timer that enforces the deadlines of an event loop's calls, to within one DEADLINE_INTERVAL.

        It runs as long as there are calls. A process may run several loops, in turn or in threads; closed ones are
        dropped here.
        """
        for ended in [loop for loop in tuple(self.calls) if loop.is_closed()]:
            self.calls.pop(ended, None)
        calls = self.calls[loop] = set()
        loop.call_later(DEADLINE_INTERVAL, self._check, loop, calls)
        return calls

    def _check(self, loop: asyncio.AbstractEventLoop, calls: set[Call]) -> None:
        """Deliver answers whose handlers still run, end overdue calls, and watch the others for a disconnect."""
        now = perf_counter()
        for call in tuple(calls):
            run = call.run
            if run.is_delivered:
                continue
            run.is_overseen = True
            if call.answer is not None:
                run.finisher = asyncio.ensure_future(self._deliver(call, call.answer))
            elif now >= run.deadline:
                action = call.action
                logger.error("action %s took too long (request_id=%s)", action.id, call.request_id)
                late = HandlerTimeout(f"Action {action.id} gave no answer within {in_seconds(action.timeout)}.")
                run.finisher = asyncio.ensure_future(self._deliver(call, late))
                run.interrupt()
            elif call.disconnected is not None and run.listener is None:
                run.listener = asyncio.ensure_future(_listen(call))
        if calls:
            loop.call_later(DEADLINE_INTERVAL, self._check, loop, calls)
        else:
            del self.calls[loop]


async def _listen(call: Call) -> None:
    """End a call if its caller disconnects before there is an answer."""
    if call.disconnected is not None:
        await call.disconnected()
    if not call.run.is_delivered and call.answer is None:
        call.run.is_delivered = True
        call.run.interrupt()


async def settle(run: RunningCall) -> None:
    """Wait for the tasks that a call owns."""
    if run.interrupted and run.task is not None:
        run.task.uncancel()
    if run.listener is not None:
        run.listener.cancel()
    started = [task for task in (run.listener, run.finisher) if task is not None]
    if started:
        await asyncio.gather(*started, return_exceptions=True)
