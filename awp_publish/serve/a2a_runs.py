"""Calls on their way through the A2A door, each in a task of its own.

A call is answered when it has a result, though its handler may work on. It is told that its caller has left when the
connection is closed, the stream is given up, or CancelTask asks for it. What must come to its end, does (guards).
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

from awp_publish.invoke import Invoker
from awp_publish.policy.call import Call, Result
from awp_publish.problems import JobCancelled
from awp_publish.serve.a2a_exchange import A2aExchange
from awp_publish.serve.a2a_tasks import Kept

logger: Final = logging.getLogger("awp_publish.calls")

Settle: TypeAlias = Callable[[Result], Awaitable[Kept]]
"""Writes down what became of a call."""


class Run:
    """One call. `settled` is what became of its task."""

    def __init__(self, call: Call, exchange: A2aExchange, settle: Settle) -> None:
        self.settled: asyncio.Future[Kept] = asyncio.get_running_loop().create_future()
        self._call = call
        self._exchange = exchange
        self._settle = settle
        self._called_off = asyncio.Event()

    async def go(self, invoker: Invoker) -> None:
        """Make the call."""
        self._call.gone = self._gone
        try:
            await invoker.run(self._call, self._deliver)
            if not self.settled.done():
                await self._deliver(JobCancelled("The call was cancelled before it had a result."))
        except Exception as error:
            logger.exception("a task could not be carried out (request_id=%s)", self._call.request_id)
            if not self.settled.done():
                self.settled.set_exception(error)
                self.settled.exception()  # there may be nobody left to look at it
        finally:
            self.settled.cancel()

    async def wait(self) -> Kept:
        """What became of the task. Whoever gives up waiting calls the run off."""
        try:
            return await asyncio.shield(self.settled)
        except asyncio.CancelledError:
            self.call_off()
            raise

    def call_off(self) -> None:
        """Nobody wants the result any more."""
        self._called_off.set()

    async def _deliver(self, result: Result) -> None:
        kept = await self._settle(result)
        if not self.settled.done():
            self.settled.set_result(kept)

    async def _gone(self) -> None:
        ends = [asyncio.ensure_future(self._exchange.hang_up()), asyncio.ensure_future(self._called_off.wait())]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
            await asyncio.gather(*ends, return_exceptions=True)


class Runs:
    """The calls that this process makes at the moment. It owns their tasks."""

    def __init__(self, invoker: Invoker) -> None:
        self._invoker = invoker
        self._runs: dict[str, Run] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, task_id: str, run: Run) -> Run:
        """Make a call."""
        self._runs[task_id] = run
        task = asyncio.create_task(run.go(self._invoker))
        self._tasks.add(task)
        task.add_done_callback(lambda ended: self._end(task_id, run, ended))
        return run

    def find(self, task_id: str) -> Run | None:
        """The call that is being made for a task, by this process."""
        return self._runs.get(task_id)

    def _end(self, task_id: str, run: Run, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if self._runs.get(task_id) is run:
            del self._runs[task_id]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """While the application runs. Requests have been answered when it ends; what still runs, nobody waits for."""
        try:
            yield
        finally:
            for task in tuple(self._tasks):
                task.cancel()
            if self._tasks:
                await asyncio.wait(tuple(self._tasks))
