"""Calls under a limit for all callers that a process takes from the store some at a time.

A limit in total is one key, to which every call of every worker would go. A process that leases a hundred calls goes
there once for them. The windows of such a limit begin with the clock, not with the first call: what was leased is used
within its window or lost. So no more calls are made than allowed, as far as the clocks of the machines agree; and each
process may keep one lease from the others, who are then refused that much too early.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import cast
from weakref import WeakKeyDictionary

from awp_publish.stores.store import Counted, Reserve, Store


class Lease:
    """A process's part of one limit: at most `size` calls at a time of `most` in a window of `seconds`."""

    def __init__(self, key: str, most: int, seconds: int, size: int, store: Store, clock: Callable[[], float]) -> None:
        self._key = key
        self._most = most
        self._seconds = seconds
        self._size = size
        self._store = store
        self._clock = clock
        self._window = -1
        self._left = 0
        self._total = 0
        """Calls of the window that all processes have leased, as far as this one knows."""
        self._changes = threading.Lock()  # a process may have an event loop in each of several threads
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    @property
    def counted(self) -> Counted:
        """Calls of the window that are made or leased by others, and the seconds until it closes."""
        seconds_left = (self._window + 1) * self._seconds - self._clock()
        return Counted(self._total - self._left, max(0.0, min(seconds_left, self._seconds)))

    def take(self) -> bool:
        """Take one of the leased calls. Returns False if none is left."""
        with self._changes:
            if int(self._clock() // self._seconds) != self._window or self._left <= 0:
                return False
            self._left -= 1
            return True

    async def renew(self) -> bool:
        """Take a call, after leasing more where none is left. Returns False if the limit is reached.

        Raises StoreUnavailable.
        """
        loop = asyncio.get_running_loop()
        async with self._locks.setdefault(loop, asyncio.Lock()):
            while not self.take():
                window = int(self._clock() // self._seconds)
                with self._changes:
                    if window != self._window:
                        self._window, self._left, self._total = window, 0, 0
                    amount = min(self._size, self._most - self._total)
                if amount <= 0:
                    return False
                step = Reserve(f"{self._key}:{window}", amount, self._most, 2.0 * self._seconds)
                ran = await self._store.run((step,))
                with self._changes:
                    if window != self._window:
                        continue  # what was leased is of a window that is over
                    self._total = cast(Counted, ran.seen[0]).events
                    if ran.failed is None:
                        self._total += amount
                        self._left += amount
            return True
