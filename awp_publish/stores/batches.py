"""What SQLite and Redis share: one thread that carries out, together, whatever is waiting.

An event loop must not wait for a disk or a socket, and a hundred calls at once should cost one round trip and one
commit. So requests of all loops and threads go to a `_Desk`: a thread, its queue, and the `Worker` that it alone uses.
Whatever has gathered while the worker was busy is the next batch.

Whoever was told that the store is unavailable sends the same call again, with the same key and the same confirmation.
So steps are carried out until their deadline or not at all: the first part of a request's time is for its steps, the
rest is for the answer to come back.
"""

import asyncio
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Final, Protocol, TypeAlias, cast

from awp_publish.problems import StoreUnavailable
from awp_publish.stores.store import Look, Ran, Step, Swap, unavailable

logger: Final = logging.getLogger("awp_publish.stores")

LARGEST_BATCH: Final = 500
"""Requests carried out together; more would keep the first of them waiting for the last."""

SHARE_FOR_STEPS: Final = 0.75
"""Which part of its time a request that changes something may wait. What is left is for the answer's way back."""


@dataclass(frozen=True, slots=True)
class Run:
    """Carry out steps."""

    steps: tuple[Step, ...]
    durable: bool


@dataclass(frozen=True, slots=True)
class Take:
    """Lease members of a queue that are due."""

    queue: str
    lease: float
    most: int


Order: TypeAlias = Run | Take
Answer: TypeAlias = Ran | tuple[str, ...]


class Request:
    """An order on its way, and who waits for it. The worker sets `answer`: what came of it, or the exception.

    `deadline` is when it may last be carried out, in seconds of `time.monotonic`. The worker asks `is_wanted` before it
    begins, and `commit` before what it did can no longer be undone: whoever waits gives up at the deadline, but once
    it is committed only when all of its time is over. `may_be_late` is what only writes down what has happened, under
    what was claimed for it: better late than never.
    """

    __slots__ = (
        "_end",
        "_future",
        "_has_gone",
        "_is_committed",
        "_lock",
        "answer",
        "deadline",
        "loop",
        "may_be_late",
        "order",
    )

    def __init__(self, order: Order, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        kinds = {type(step) for step in order.steps} if isinstance(order, Run) else {Take}
        now = time.monotonic()
        self.order = order
        self.loop = loop
        self.deadline = now + seconds * (1.0 if kinds == {Look} else SHARE_FOR_STEPS)
        self.may_be_late = kinds == {Swap}
        self.answer: Answer | Exception | None = None
        self._end = now + seconds
        self._future: asyncio.Future[Answer] = loop.create_future()
        self._lock = threading.Lock()
        self._is_committed = False
        self._has_gone = False

    @property
    def is_wanted(self) -> bool:
        """Whether somebody still waits for it, or it may be late."""
        return not self._has_gone or self.may_be_late

    def commit(self) -> bool:
        """Decide that it is carried out. False if nobody wants it any more, and then nobody ever will."""
        with self._lock:
            self._is_committed = self.is_wanted
            return self._is_committed

    async def wait(self) -> Answer:
        """The answer. Raises StoreUnavailable when there is none in time."""
        timer = self.loop.call_later(self.deadline - time.monotonic(), self._give_up)
        try:
            return await self._future
        finally:
            timer.cancel()
            with self._lock:
                self._has_gone = True

    def settle(self) -> None:
        """Give the answer to whoever waits, in their own event loop."""
        if self._future.done():
            return
        if isinstance(self.answer, Exception):
            self._future.set_exception(self.answer)
        elif self.answer is not None:
            self._future.set_result(self.answer)

    def _give_up(self) -> None:
        with self._lock:
            left = self._end - time.monotonic() if self._is_committed else 0.0
            self._has_gone = left <= 0
        if not self._has_gone:
            self.loop.call_later(left, self._give_up)
        elif not self._future.done():
            self._future.set_exception(unavailable("The site's store did not answer in time."))


class Worker(Protocol):
    """What does the work, all in one thread. Opens its file or connection when it needs it, again after a failure."""

    def carry_out(self, requests: Sequence[Request]) -> None:
        """Set the answer of each request that is carried out. Raises StoreUnavailable for all that have none."""

    def tidy(self) -> float | None:
        """Do what can wait, if it has waited long enough. Seconds after which to ask again, None for nothing to do."""

    def close(self) -> None: ...


class BatchedStore:
    """A store whose work is done by a worker in a thread, for all event loops and threads of a process.

    `timeout` is how many seconds a request may wait and take. What was not carried out within the first three quarters
    of them never is. Thread and connection come with the first request, again after `close`, and anew in the child
    after a fork.
    """

    is_shared: Final = True

    def __init__(self, hire: Callable[[], Worker], timeout: float) -> None:
        self._hire = hire
        self._timeout = timeout
        self._lock = threading.Lock()
        self._desk: _Desk | None = None
        self._farewell: weakref.finalize[..., BatchedStore] | None = None
        """Ends the thread of a store that nobody closed and nobody has any more."""
        _STORES.add(self)

    async def run(self, steps: Sequence[Step], *, durable: bool = False) -> Ran:
        """Carry out steps in one round trip. Raises StoreUnavailable."""
        return cast(Ran, await self._ask(Run(tuple(steps), durable)))

    async def take(self, queue: str, lease: float, most: int) -> tuple[str, ...]:
        """Up to `most` members of a queue that are due, due again after `lease` seconds. Raises StoreUnavailable."""
        return cast(tuple[str, ...], await self._ask(Take(queue, lease, most)))

    async def close(self) -> None:
        """Carry out what is waiting, then end the thread and close its connection."""
        with self._lock:
            desk, self._desk = self._desk, None
            if self._farewell is not None:
                self._farewell.detach()
        if desk is not None:
            await desk.close()

    async def _ask(self, order: Order) -> Answer:
        request = Request(order, asyncio.get_running_loop(), self._timeout)
        with self._lock:  # so that no request comes after the desk was told to close
            if self._desk is None:
                self._desk = _Desk(self._hire())
                self._farewell = weakref.finalize(self, self._desk.tell_to_close)
            self._desk.requests.put(request)
        return await request.wait()

    def _forget_desk(self) -> None:
        """In the child of a fork: the thread is not here, the connection is the parent's, the lock may be held."""
        self._lock = threading.Lock()
        if self._desk is not None:
            _FOREIGN.append(self._desk)
            self._desk = None


class _Desk:
    """One thread with one worker."""

    def __init__(self, worker: Worker) -> None:
        self.requests: SimpleQueue[Request | None] = SimpleQueue()
        self._worker = worker
        self._is_open = True
        self._is_well = True
        self._ended: Future[None] = Future()
        self._ended.set_running_or_notify_cancel()  # from here on nobody can cancel it
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._work, name="awp-publish-store", daemon=True)
        self._thread.start()

    def tell_to_close(self) -> None:
        if self._process == os.getpid():
            self.requests.put(None)

    async def close(self) -> None:
        self.tell_to_close()
        await asyncio.wrap_future(self._ended)
        self._thread.join()  # it has nothing left to do

    def _work(self) -> None:
        try:
            pause: float | None = None
            while self._is_open:
                batch = self._next_batch(pause)
                if batch:
                    self._carry_out(batch)
                _settle(batch)
                batch.clear()  # what was asked and answered is not kept until somebody asks again
                pause = self._worker.tidy()
        finally:
            try:
                self._worker.close()
            finally:
                self._ended.set_result(None)

    def _next_batch(self, seconds: float | None) -> list[Request]:
        """Wait for a request and take along what else has gathered. Empty after `seconds`, or when it closes."""
        batch: list[Request] = []
        with suppress(Empty):
            while self._is_open and len(batch) < LARGEST_BATCH:
                request = self.requests.get(block=not batch, timeout=seconds)
                if request is None:
                    self._is_open = False
                else:
                    batch.append(request)
        return batch

    def _carry_out(self, batch: list[Request]) -> None:
        try:
            self._worker.carry_out(batch)
            self._note(None)
        except StoreUnavailable as problem:
            self._note(problem)
            _answer_all(batch, problem.detail)
        except Exception:
            logger.exception("the store failed")
            _answer_all(batch, "The site's store failed.")

    def _note(self, problem: StoreUnavailable | None) -> None:
        """Log the beginning and the end of an outage, not every call in between."""
        if problem is not None and self._is_well:
            logger.error("the store is unavailable: %s (%s)", problem.detail, type(problem.__cause__).__name__)
        elif problem is None and not self._is_well:
            logger.warning("the store is available again")
        self._is_well = problem is None


def _answer_all(batch: list[Request], detail: str) -> None:
    for request in batch:
        if request.answer is None:
            request.answer = unavailable(detail)  # each its own: a traceback is added to it where it is raised


def _settle(batch: list[Request]) -> None:
    """Wake each event loop once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Request]] = {}
    for request in batch:
        by_loop.setdefault(request.loop, []).append(request)
    for loop, requests in by_loop.items():
        with suppress(RuntimeError):  # a loop that was closed meanwhile: nobody waits there
            loop.call_soon_threadsafe(_settle_here, requests)


def _settle_here(requests: list[Request]) -> None:
    for request in requests:
        request.settle()


_STORES: Final[weakref.WeakSet[BatchedStore]] = weakref.WeakSet()
_FOREIGN: Final[list[_Desk]] = []
"""Desks of the parent, kept so that no connection of the parent is closed by its child."""


def _after_fork() -> None:
    for store in _STORES:
        store._forget_desk()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
