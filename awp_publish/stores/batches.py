"""The batching that SQLite, Redis and PostgreSQL share: one thread carries out together whatever requests are waiting.

An event loop must not wait for a disk or a socket, and a hundred concurrent calls should cost one round trip and one
commit. So requests from all loops and threads go to a `BatchThread`: a thread, its queue, and the `Backend` that only
this thread uses. Requests that arrive while the backend is busy form the next batch.

A caller who was told that the store is unavailable sends the same call again, with the same key and confirmation. So
steps are carried out before their deadline or not at all: the first part of a request's time is for its steps, the
rest for its answer to come back.
"""

import asyncio
import logging
import os
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Final, Protocol, TypeAlias, cast

from awp_publish.problems import StoreUnavailable
from awp_publish.stores.store import Look, Ran, Reserve, Step, Swap, unavailable
from awp_publish.stores.threads import Thread, make_lock, make_queue
from awp_publish.stores.transaction import LeasingTransaction, carry_out

logger: Final = logging.getLogger("awp_publish.stores")

MAX_BATCH: Final = 500
"""Maximum requests in a batch; in a larger one the first would wait too long for the last."""

SHARE_OF_STEPS: Final = 0.75
"""The share of its time within which a request that writes must be carried out. The rest is for its answer."""


@dataclass(frozen=True, slots=True)
class RunSteps:
    """Carry out steps."""

    steps: tuple[Step, ...]
    durable: bool


@dataclass(frozen=True, slots=True)
class TakeDue:
    """Lease members of a queue that are due."""

    queue: str
    lease: float
    most: int


Order: TypeAlias = RunSteps | TakeDue
Answer: TypeAlias = Ran | tuple[str, ...]


class StoreRequest:
    """A pending order and the task that waits for it. The backend sets `answer` to the result or the exception.

    `deadline`, in seconds of `time.monotonic`, is the last moment at which it may be carried out. The backend checks
    `is_wanted` before it begins, and calls `commit` before its work can no longer be undone: the waiting task gives up
    at the deadline, or, once the request is committed, when all of its time is over. `writes` is False if it only
    reads. `may_be_late` is True if it only records an outcome in place of its claim, and the bytes that this takes:
    better late than never.
    """

    __slots__ = (
        "_end",
        "_future",
        "_is_abandoned",
        "_is_committed",
        "_lock",
        "answer",
        "deadline",
        "loop",
        "may_be_late",
        "order",
        "writes",
    )

    def __init__(self, order: Order, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        kinds = {type(step) for step in order.steps} if isinstance(order, RunSteps) else {TakeDue}
        now = time.monotonic()
        self.order = order
        self.loop = loop
        self.writes = bool(kinds - {Look})
        self.deadline = now + seconds * (SHARE_OF_STEPS if self.writes else 1.0)
        self.may_be_late = Swap in kinds and kinds <= {Swap, Reserve}
        self.answer: Answer | Exception | None = None
        self._end = now + seconds
        self._future: asyncio.Future[Answer] = loop.create_future()
        self._lock = make_lock()
        self._is_committed = False
        self._is_abandoned = False

    @property
    def is_wanted(self) -> bool:
        """True while somebody waits for the answer, or if the request may be late."""
        return not self._is_abandoned or self.may_be_late

    def commit(self) -> bool:
        """Commit to carrying it out. Returns False if it is no longer wanted, which is then final."""
        with self._lock:
            self._is_committed = self.is_wanted
            return self._is_committed

    def carry_out(self, transaction: LeasingTransaction, now: float) -> Answer:
        """Carry out the order within a transaction that can still be rolled back."""
        if isinstance(self.order, TakeDue):
            return transaction.take(self.order.queue, self.order.lease, self.order.most, now)
        return carry_out(self.order.steps, transaction, now)

    async def wait(self) -> Answer:
        """Return the answer. Raises StoreUnavailable if it does not come in time."""
        timer = self.loop.call_later(self.deadline - time.monotonic(), self._give_up)
        try:
            return await self._future
        finally:
            timer.cancel()
            with self._lock:
                self._is_abandoned = True

    def ignore(self) -> None:
        """Let nobody wait for the answer."""
        self._future.cancel()

    def settle(self) -> None:
        """Hand over the answer. Runs in the event loop of the waiting task."""
        if self._future.done():
            return
        if isinstance(self.answer, Exception):
            self._future.set_exception(self.answer)
        elif self.answer is not None:
            self._future.set_result(self.answer)

    def _give_up(self) -> None:
        with self._lock:
            left = self._end - time.monotonic() if self._is_committed else 0.0
            self._is_abandoned = left <= 0
        if not self._is_abandoned:
            self.loop.call_later(left, self._give_up)
        elif not self._future.done():
            self._future.set_exception(unavailable("The site's store did not answer in time."))


class Backend(Protocol):
    """A store's access to its file or server, used by one thread. Connects when needed, and again after a failure."""

    def carry_out(self, requests: Sequence[StoreRequest]) -> None:
        """Set the answer of each request that is carried out. Raises StoreUnavailable for all that have none."""

    def tidy(self) -> float | None:
        """Do deferred work that is due.

        Returns the seconds after which to call again, None if nothing is left to do.
        """

    def close(self) -> None: ...


class BatchedStore:
    """A store whose work is done by a backend in a thread, for all event loops and threads of a process.

    `timeout` limits the seconds from a request to its answer. What was not carried out within the first three quarters
    of them never is. The thread is started, and the connection opened, by the first request: also by the first one
    after `close`, and by the first one in a child process after a fork.
    """

    is_shared: Final = True

    def __init__(self, start: "Callable[[], BatchThread]", timeout: float) -> None:
        self._start = start
        self._timeout = timeout
        self._lock = make_lock()
        self._thread: BatchThread | None = None
        self._finalizer: weakref.finalize[..., BatchedStore] | None = None
        """Ends the thread of a store that was garbage-collected without having been closed."""
        _STORES.add(self)

    async def run(self, steps: Sequence[Step], *, durable: bool = False) -> Ran:
        """Carry out steps in one round trip. Raises StoreUnavailable."""
        return cast(Ran, await self.ask(RunSteps(tuple(steps), durable), self._timeout))

    async def take(self, queue: str, lease: float, most: int) -> tuple[str, ...]:
        """Return up to `most` due members of a queue, due again after `lease` seconds. Raises StoreUnavailable."""
        return cast(tuple[str, ...], await self.ask(TakeDue(queue, lease, most), self._timeout))

    async def close(self) -> None:
        """Carry out what is waiting, then end the thread and close its connection."""
        with self._lock:
            thread, self._thread = self._thread, None
            if self._finalizer is not None:
                self._finalizer.detach()
        if thread is not None:
            await thread.close()

    async def ask(self, order: Order, seconds: float) -> Answer:
        """Have an order carried out, and return its answer within so many seconds. Raises StoreUnavailable."""
        return await self._put(order, seconds).wait()

    def hint(self, order: Order) -> None:
        """Have an order carried out for whose answer nobody waits."""
        self._put(order, self._timeout).ignore()

    def _put(self, order: Order, seconds: float) -> StoreRequest:
        request = StoreRequest(order, asyncio.get_running_loop(), seconds)
        with self._lock:  # so that no request is queued behind the end marker
            if self._thread is None:
                self._thread = self._start()
                self._finalizer = weakref.finalize(self, self._thread.stop)
            self._thread.put(request)
        return request


class BatchThread:
    """One thread with one backend."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._start()

    def _start(self) -> None:
        self._requests: SimpleQueue[StoreRequest | None] = make_queue()
        self._is_open = True
        self._is_well = True
        self._ended: Future[None] = Future()
        self._ended.set_running_or_notify_cancel()  # so that it cannot be cancelled
        self._process = os.getpid()
        self._thread = Thread(self._work, "awp-publish-store")

    def put(self, request: StoreRequest | None) -> None:
        """Queue a request; None ends the thread once the requests before it are carried out."""
        self._requests.put(request)

    def stop(self) -> None:
        if self._process == os.getpid():
            self.put(None)

    async def close(self) -> None:
        self.stop()
        await asyncio.wrap_future(self._ended)
        self._thread.join()  # it has nothing left to do

    def _gather(self, *, block: bool, timeout: float | None = None) -> list[StoreRequest]:
        """Return the queued requests. With `block`, wait up to `timeout` seconds for the first one."""
        batch: list[StoreRequest] = []
        with suppress(Empty):
            while self._is_open and len(batch) < MAX_BATCH:
                request = self._requests.get(block=block and not batch, timeout=timeout)
                if request is None:
                    self._is_open = False
                else:
                    batch.append(request)
        return batch

    def _work(self) -> None:
        try:
            pause: float | None = None
            while self._is_open:
                batch = self._gather(block=True, timeout=pause)
                try:
                    if batch:
                        self._backend.carry_out(batch)
                        self._note(None)
                except Exception as error:
                    self._fail(batch, error)
                settle(batch)
                del batch  # requests and answers are not kept until the next request comes
                pause = self._backend.tidy()
        finally:
            try:
                self._backend.close()
            finally:
                self._ended.set_result(None)

    def _fail(self, batch: list[StoreRequest], error: Exception) -> None:
        """Set the error as the answer of every request that has none."""
        detail = "The site's store failed."
        if isinstance(error, StoreUnavailable):
            self._note(error)
            detail = error.detail
        else:
            logger.error("the store failed", exc_info=error)
        for request in batch:
            if request.answer is None:
                request.answer = unavailable(detail)  # one each, because raising it adds a traceback

    def _note(self, problem: StoreUnavailable | None) -> None:
        """Log the beginning and the end of an outage, not every call in between."""
        if problem is not None and self._is_well:
            cause = problem.__cause__
            # What the system says names a file or an address; what a database says may quote what it was sent.
            said = f"{type(cause).__name__}: {cause}" if isinstance(cause, OSError) else type(cause).__name__
            logger.error("the store is unavailable: %s (%s)", problem.detail, said)
        elif problem is None and not self._is_well:
            logger.warning("the store is available again")
        self._is_well = problem is None


def settle(batch: list[StoreRequest]) -> None:
    """Hand over the answers, waking each event loop once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[StoreRequest]] = {}
    for request in batch:
        by_loop.setdefault(request.loop, []).append(request)
    for loop, requests in by_loop.items():
        with suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits there
            loop.call_soon_threadsafe(_settle_here, requests)


def _settle_here(requests: list[StoreRequest]) -> None:
    for request in requests:
        request.settle()


_STORES: Final[weakref.WeakSet[BatchedStore]] = weakref.WeakSet()
_INHERITED: Final[list[BatchThread]] = []
"""The parent's threads, kept referenced in a child so that it does not close the parent's connections."""


def _after_fork() -> None:
    """Reset stores in a child: the thread does not run here, the connection is the parent's, the lock may be held."""
    for store in _STORES:
        store._lock = make_lock()
        if store._thread is not None:
            _INHERITED.append(store._thread)
            store._thread = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
