"""The in-process store: fast, and lost when the process ends. For tests, and for sites with one worker."""

import math
import threading
import time
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, Final

from awp_publish.stores.store import (
    Add,
    Count,
    Counted,
    Look,
    Ran,
    Reserve,
    Schedule,
    Seen,
    Step,
    Swap,
    Unschedule,
    unavailable,
)

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
        self._values = _TimedEntries()
        """Values, and when they expire."""
        self._windows = _TimedEntries()
        """Numbers of events and reserved totals, and when they are forgotten."""
        self._queues: dict[str, _TimedEntries] = {}
        self._bytes = 0
        self._due = math.inf
        """When the first value or window expires."""

    async def run(self, steps: Sequence[Step], *, durable: bool = False) -> Ran:
        """Carry out steps. Nothing in memory is durable. Raises StoreUnavailable when the store is full."""
        # Each call of a guarded action runs this twice, so everything is inlined.
        lock = self._lock
        lock.acquire()  # with a context manager it would take twice as long
        try:
            now = self._clock()
            if self._due <= now:  # expired entries make room, a few at a time
                self._purge(now, 2 * len(steps))
            if self._bytes + ENTRY_BYTES * len(steps) > self._plenty:
                self._make_room(steps, now)

            # Test the steps until one does not hold.
            values = self._values.entries
            seen: list[Seen] = []
            changes: list[tuple[str, bytes | None, float]] = []
            totals: list[tuple[str, int, float]] = []
            size, has_queues = 0, False
            step: Any  # its type is tested through `kind`
            for step in steps:
                kind = type(step)
                if kind is Count:
                    key, allowed, seconds = step
                    window = self._windows.entries.get(key)
                    if window is None or not now < window[1] <= now + seconds:
                        if allowed <= 0:
                            return Ran(len(seen), (*seen, Counted(0, 0.0)))
                        # No window is open, or the clock has been set back since.
                        closes = now + seconds
                        if self._windows.set(key, window := [0, closes]) is None:
                            self._bytes += ENTRY_BYTES + len(key)
                        if closes < self._due:
                            self._due = closes
                    events, closes = window
                    left = closes - now
                    if left > seconds:  # the sum above may have been rounded up
                        left = seconds
                    if events >= allowed:
                        return Ran(len(seen), (*seen, Counted(events, left)))
                    window[0] = events = events + 1
                    seen.append(Counted(events, left))
                elif kind is Add or kind is Swap:
                    if kind is Add:
                        key, new, seconds = step
                        old = None
                    else:
                        key, old, new, seconds = step
                    entry = values.get(key)
                    value = None if entry is None or entry[1] <= now else entry[0]
                    seen.append(value)
                    if value != old:
                        return Ran(len(seen) - 1, tuple(seen))
                    if new is not None:
                        size += len(new)
                    changes.append((key, new, now + seconds))
                elif kind is Reserve:
                    key, amount, most, seconds = step
                    window = self._windows.entries.get(key)
                    total = window[0] if window is not None and window[1] > now else 0
                    seen.append(Counted(total, 0.0))
                    if most is not None and 0 < amount > most - total:
                        return Ran(len(seen) - 1, tuple(seen))
                    totals.append((key, amount, seconds))
                elif kind is Look:
                    entry = values.get(step.key)
                    seen.append(None if entry is None or entry[1] <= now else entry[0])
                else:
                    has_queues = True
                    others: Counted | None = None
                    if kind is Schedule and step.most is not None:
                        timed = self._queues.get(step.queue)
                        count = 0 if timed is None else len(timed.entries) - (step.member in timed.entries)
                        others = Counted(count, 0.0)
                        if count >= step.most:
                            return Ran(len(seen), (*seen, others))
                    seen.append(others)

            # All of them hold: apply the changes.
            if size > self._plenty:
                self._make_room(steps, now)
            for key, new, expires in changes:
                before = values.get(key)
                if new is None or expires <= now:
                    if before is not None:
                        self._values.remove(key)
                        self._bytes -= ENTRY_BYTES + len(key) + len(before[0])
                    continue
                if before is None:
                    self._bytes += ENTRY_BYTES + len(key) + len(new)
                    heappush(self._values.heap, (expires, key))
                else:
                    self._bytes += len(new) - len(before[0])
                    if expires < before[1]:
                        self._values.set(key, (new, expires))
                values[key] = (new, expires)
                if expires < self._due:
                    self._due = expires
            if has_queues:
                for step in steps:
                    if type(step) is Schedule:
                        timed = self._queues.setdefault(step.queue, _TimedEntries())
                        if timed.set(step.member, (None, now + step.delay)) is None:
                            self._bytes += ENTRY_BYTES + len(step.member)
                    elif type(step) is Unschedule and (timed := self._queues.get(step.queue)) is not None:
                        if timed.entries.pop(step.member, None) is not None:
                            self._bytes -= ENTRY_BYTES + len(step.member)
                        if not timed.entries:
                            del self._queues[step.queue]
            for key, amount, seconds in totals:
                self._reserve(key, amount, now, now + seconds)
            return Ran(None, tuple(seen))
        finally:
            lock.release()

    async def take(self, queue: str, lease: float, most: int) -> tuple[str, ...]:
        with self._lock:
            now, timed = self._clock(), self._queues.get(queue)
            if timed is None:
                return ()
            members = tuple(member for member, _ in timed.pop_due(now, most))
            for member in members:
                timed.set(member, (None, now + lease))
            return members

    async def close(self) -> None:
        """Do nothing: entries stay until they expire."""

    @property
    def bytes_used(self) -> int:
        """The bytes in use, of at most `most_bytes`, including expired entries that were not purged yet."""
        return self._bytes

    def _reserve(self, key: str, amount: int, now: float, until: float) -> None:
        """Change a total. One that is 0 takes no room."""
        window = self._windows.entries.get(key)
        total = amount if window is None or window[1] <= now else window[0] + amount
        if window is not None and total > 0 and now < window[1] <= until:
            window[:] = total, until  # the heap has it with an earlier time, which is allowed
        elif total > 0 and until > now:
            if self._windows.set(key, [total, until]) is None:
                self._bytes += ENTRY_BYTES + len(key)
            if until < self._due:
                self._due = until
        elif self._windows.remove(key) is not None:
            self._bytes -= ENTRY_BYTES + len(key)

    def _make_room(self, steps: Sequence[Step], now: float) -> None:
        """Purge everything that has expired.

        Raises StoreUnavailable if that does not make enough room for the steps.
        """
        self._purge(now, math.inf)
        values, windows, queues = self._values.entries, self._windows.entries, self._queues
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
        if (more > 0 and count + more > self._most) or (size > 0 and self._bytes + size > self._most_bytes):
            raise unavailable("The site's store is full.")

    def _purge(self, now: float, visits: float) -> None:
        """Forget values and windows that have expired, visiting at most `visits` heap entries of each."""
        for key, (value, _) in self._values.pop_due(now, len(self._values.entries), visits):
            self._bytes -= ENTRY_BYTES + len(key) + len(value)
        for key, _ in self._windows.pop_due(now, len(self._windows.entries), visits):
            self._bytes -= ENTRY_BYTES + len(key)
        self._due = min((table.heap[0][0] for table in (self._values, self._windows) if table.heap), default=math.inf)


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
            self._tidy()
        return before

    def remove(self, name: str) -> Any:
        """Remove a pair. Returns it, None if there was none."""
        entry = self.entries.pop(name, None)
        self._tidy()
        return entry

    def _tidy(self) -> None:
        if len(self.heap) > 2 * len(self.entries) + MAX_OUTDATED:
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
