"""The in-process store: fast, and lost when the process ends. For tests, and for sites with one worker."""

import math
import threading
import time
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, Final

from awp_publish.stores.store import Add, Count, Ran, Reserve, Schedule, Step, Swap, unavailable
from awp_publish.stores.transaction import carry_out

MAX_OUTDATED: Final = 64
"""Stale heap entries that `_TimedEntries` may hold beyond one for each of its names."""

ENTRY_BYTES: Final = 256
"""Approximate memory that Python needs for an entry besides its key and value."""


class MemoryStore:
    """Keeps everything in dicts, for all threads and event loops of this process.

    `clock` returns seconds and never goes back. Steps that would exceed `most_entries` unexpired entries or
    `most_bytes` are refused with StoreUnavailable; existing entries can still be read, removed, or replaced by
    something no larger.
    """

    is_shared: Final = False

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        most_entries: int = 1_000_000,
        most_bytes: int = 256 * 1024 * 1024,
    ) -> None:
        self._clock = clock
        self._most = most_entries
        self._most_bytes = most_bytes
        # Below this, a single run cannot fill the store, so nobody has to work out how much room it needs.
        self._plenty = min(most_bytes, ENTRY_BYTES * most_entries) // 2
        self._lock = threading.Lock()
        self._tables = _Tables()

    async def run(self, steps: Sequence[Step], *, durable: bool = False) -> Ran:
        """Carry out steps. Nothing in memory is durable. Raises StoreUnavailable when the store is full."""
        lock, tables = self._lock, self._tables
        lock.acquire()  # with a context manager it would take twice as long
        try:
            now = self._clock()
            if tables.due <= now:  # expired entries make room, a few at a time
                tables.purge(now, 2 * len(steps))
            size = tables.bytes_used + ENTRY_BYTES * len(steps)
            for step in steps:
                if type(step) is Add:
                    size += len(step.value)
                elif type(step) is Swap and step.new is not None:
                    size += len(step.new)
            if size > self._plenty:
                self._make_room(steps, now)
            return carry_out(steps, tables, now)
        finally:
            lock.release()

    async def take(self, queue: str, lease: float, most: int) -> tuple[str, ...]:
        with self._lock:
            return self._tables.take(queue, lease, most, self._clock())

    async def close(self) -> None:
        """Do nothing: entries stay until they expire."""

    @property
    def bytes_used(self) -> int:
        """The bytes in use, of at most `most_bytes`, including expired entries that were not purged yet."""
        return self._tables.bytes_used

    def _make_room(self, steps: Sequence[Step], now: float) -> None:
        """Purge everything that has expired.

        Raises StoreUnavailable if that does not make enough room for the steps.
        """
        self._tables.purge(now, math.inf)
        values, windows, queues = self._tables.values.entries, self._tables.windows.entries, self._tables.queues
        more = size = 0
        for step in steps:
            match step:
                case Add(key, value) if key not in values:
                    more += 1
                    size += ENTRY_BYTES + len(key) + len(value)
                case Swap(key, old, new) if values.get(key, (None,))[0] == old:
                    size += len(new) - len(old) if new is not None else -ENTRY_BYTES - len(key) - len(old)
                case Count(key) | Reserve(key) if key not in windows:
                    more += 1
                    size += ENTRY_BYTES + len(key)
                case Schedule(queue, member) if queue not in queues or member not in queues[queue].entries:
                    more += 1
                    size += ENTRY_BYTES + len(member)
                case _:
                    pass  # changes nothing, or does not hold
        count = len(values) + len(windows) + sum(len(queue.entries) for queue in queues.values())
        if (more > 0 and count + more > self._most) or (size > 0 and self.bytes_used + size > self._most_bytes):
            raise unavailable("The site's store is full.")


class _Tables:
    """The dicts of a store, as the transaction of each run. `due` is when the first value or window expires."""

    def __init__(self) -> None:
        self.values = _TimedEntries()
        """Values, and when they expire."""
        self.windows = _TimedEntries()
        """Numbers of events and reserved totals, and when they are forgotten."""
        self.queues: dict[str, _TimedEntries] = {}
        self.bytes_used = 0
        self.due = math.inf

    def value(self, key: str, now: float) -> bytes | None:
        entry = self.values.entries.get(key)
        return None if entry is None or entry[1] <= now else entry[0]

    def window(self, key: str, now: float) -> tuple[int, float]:
        entry = self.windows.entries.get(key)
        return _NO_WINDOW if entry is None or entry[1] <= now else entry

    def put(self, key: str, value: bytes, expires: float) -> None:
        before = self.values.set(key, (value, expires))
        self.bytes_used += len(value) + (ENTRY_BYTES + len(key) if before is None else -len(before[0]))
        if expires < self.due:
            self.due = expires

    def drop(self, key: str) -> None:
        if (before := self.values.remove(key)) is not None:
            self.bytes_used -= ENTRY_BYTES + len(key) + len(before[0])

    def count(self, key: str, events: int, closes: float) -> None:
        """Keep a number of events, or a total, until it closes. A total of 0 takes no room."""
        if events == 0:
            if self.windows.remove(key) is not None:
                self.bytes_used -= ENTRY_BYTES + len(key)
            return
        if self.windows.set(key, (events, closes)) is None:
            self.bytes_used += ENTRY_BYTES + len(key)
        if closes < self.due:
            self.due = closes

    def schedule(self, queue: str, member: str, due: float, now: float) -> None:
        if self.queues.setdefault(queue, _TimedEntries()).set(member, (None, due)) is None:
            self.bytes_used += ENTRY_BYTES + len(member)

    def unschedule(self, queue: str, member: str) -> None:
        timed = self.queues.get(queue)
        if timed is not None and timed.entries.pop(member, None) is not None:
            self.bytes_used -= ENTRY_BYTES + len(member)
            if not timed.entries:
                del self.queues[queue]

    def others(self, queue: str, member: str) -> int:
        timed = self.queues.get(queue)
        return 0 if timed is None else len(timed.entries) - (member in timed.entries)

    def take(self, queue: str, lease: float, most: int, now: float) -> tuple[str, ...]:
        timed = self.queues.get(queue)
        members = tuple(member for member, _ in timed.pop_due(now, most)) if timed is not None else ()
        for member in members:
            self.queues[queue].set(member, (None, now + lease))
        return members

    def purge(self, now: float, visits: float) -> None:
        """Forget values and windows that have expired, visiting at most `visits` heap entries of each."""
        for key, (value, _) in self.values.pop_due(now, len(self.values.entries), visits):
            self.bytes_used -= ENTRY_BYTES + len(key) + len(value)
        for key, _ in self.windows.pop_due(now, len(self.windows.entries), visits):
            self.bytes_used -= ENTRY_BYTES + len(key)
        self.due = min((table.heap[0][0] for table in (self.values, self.windows) if table.heap), default=math.inf)


_NO_WINDOW: Final = (0, 0.0)


class _TimedEntries:
    """A dict of (value, time) pairs, ordered by time.

    Every name is in `heap` with its time or an earlier one; an entry that surfaces too early is pushed back.
    """

    __slots__ = ("entries", "heap")

    def __init__(self) -> None:
        self.entries: dict[str, Any] = {}
        self.heap: list[tuple[float, str]] = []

    def set(self, name: str, entry: Sequence[Any]) -> Any:
        """Set a pair. Returns the previous one, None if there was none."""
        entries, when = self.entries, entry[1]
        before = entries.get(name)
        entries[name] = entry
        if before is None or when < before[1]:
            heappush(self.heap, (when, name))
            if len(self.heap) > 2 * len(entries) + MAX_OUTDATED:
                self._tidy()
        return before

    def remove(self, name: str) -> Any:
        """Remove a pair. Returns it, None if there was none."""
        entry = self.entries.pop(name, None)
        if len(self.heap) > 2 * len(self.entries) + MAX_OUTDATED:
            self._tidy()
        return entry

    def _tidy(self) -> None:
        self.heap[:] = [(entry[1], name) for name, entry in self.entries.items()]
        heapify(self.heap)

    def pop_due(self, now: float, most: int, visits: float = math.inf) -> list[tuple[str, Any]]:
        """Remove and return up to `most` due names, earliest first, visiting at most `visits` heap entries."""
        due: list[tuple[str, Any]] = []
        heap = self.heap
        while heap and heap[0][0] <= now and len(due) < most and visits > 0:
            visits -= 1
            when, name = heappop(heap)
            entry = self.entries.get(name)
            if entry is not None and entry[1] == when:
                due.append((name, self.entries.pop(name)))
            elif entry is not None and entry[1] > when:
                heappush(heap, (entry[1], name))
        return due
