"""A thread whose event loop carries out a few batches at the same time, through several connections of one backend."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from awp_publish.stores.batches import MAX_BATCH, BatchThread, StoreRequest, settle
from awp_publish.stores.threads import ThreadsOfTheirOwn, is_gevent


class PooledBackend(Protocol):
    """A store's access to a server through several connections, used by the event loop of one thread."""

    async def carry_out(self, requests: Sequence[StoreRequest]) -> None:
        """Set the answer of each request that is carried out. Raises StoreUnavailable for all that have none."""

    async def close(self) -> None: ...


class PooledThread(BatchThread):
    """One thread with an event loop, in which a backend carries out up to `most` batches at the same time."""

    def __init__(self, backend: PooledBackend, most: int) -> None:
        self._pool = backend
        self._slots = asyncio.Semaphore(most)
        self._arrived = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._start()

    def put(self, request: StoreRequest | None) -> None:
        super().put(request)
        if self._loop is not None:
            with suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._arrived.set)

    def _work(self) -> None:
        loop = asyncio.SelectorEventLoop()  # the only kind that psycopg supports on every platform
        try:
            if is_gevent():  # its executor would resolve host names in greenlets of this thread
                loop.set_default_executor(ThreadsOfTheirOwn())
            loop.run_until_complete(self._serve())
        finally:
            loop.close()
            self._ended.set_result(None)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._arrived.set()  # for requests that came before the loop ran
        try:
            async with asyncio.TaskGroup() as under_way:
                while self._is_open:
                    await self._slots.acquire()
                    await self._arrived.wait()
                    self._arrived.clear()
                    under_way.create_task(self._carry_out(self._gather(block=False)))
        finally:
            await self._pool.close()

    async def _carry_out(self, batch: list[StoreRequest]) -> None:
        if len(batch) == MAX_BATCH:
            self._arrived.set()  # there may be more
        try:
            if batch:
                await self._pool.carry_out(batch)
                self._note(None)
        except Exception as error:
            self._fail(batch, error)
        finally:
            self._slots.release()
        settle(batch)
