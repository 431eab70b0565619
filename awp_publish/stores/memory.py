"""The in-process store: fast, and lost when the process ends. For tests, and for sites with one worker."""

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, Final, TypeAlias

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

Tested: TypeAlias = tuple[bool, Seen]
"""Whether a step holds, and what it has found."""

_Test: TypeAlias = Callable[["MemoryStore", Any, float], Tested]
_Change: TypeAlias = Callable[["MemoryStore", Any, float], None]


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
        self.bytes_used = 0  # with those of expired entries that were not purged yet
        self._incoming = 0
        """Bytes of the values that the run under way will store if all of its steps hold."""
        self._due = math.inf
        """When the first value or window expires."""

    async def run(self, steps: Sequence[Step], *, durable: bool = False) -> Ran:
        """Carry out steps. Nothing in memory is durable. Raises StoreUnavailable when the store is full."""
        lock = self._lock
        lock.acquire()  # with a context manager it would take twice as long
        try:
            now = self._clock()
            if self._due <= now:  # expired entries make room, a few at a time
                self._purge(now, 2 * len(steps))
            if self.bytes_used + ENTRY_BYTES * len(steps) > self._plenty:
                self._make_room(steps, now)
            self._incoming = 0
            seen: list[Seen] = []
            changes: list[tuple[_Change, Step]] = []
            for step in steps:
                test, change = _KINDS[type(step)]
                holds, found = test(self, step, now)
                seen.append(found)
                if not holds:
                    return Ran(len(seen) - 1, tuple(seen))
                if change is not None:
                    changes.append((change, step))
            if self._incoming > self._plenty:
                self._make_room(steps, now)
            for change, step in changes:
                change(self, step, now)
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

    # Each test returns whether its step holds, and what it has found; only a `Count` changes something at once.

    def _test_count(self, step: Count, now: float) -> Tested:
        key, most, seconds = step
        window = self._windows.entries.get(key)
        if window is None or not now < window[1] <= now + seconds:  # none is open, or the clock was set back since
            if most <= 0:
                return False, Counted(0, 0.0)
            window = [0, now + seconds]
            self._open_window(key, window)
        events, closes = window
        left = closes - now
        if left > seconds:  # the sum above may have been rounded up
            left = seconds
        if events >= most:
            return False, Counted(events, left)
        window[0] = events = events + 1
        return True, Counted(events, left)

    def _test_look(self, step: Look, now: float) -> Tested:
        entry = self._values.entries.get(step.key)
        return True, None if entry is None or entry[1] <= now else entry[0]

    def _test_add(self, step: Add, now: float) -> Tested:
        entry = self._values.entries.get(step.key)
        if entry is not None and entry[1] > now:
            return False, entry[0]
        self._incoming += len(step.value)
        return True, None

    def _test_swap(self, step: Swap, now: float) -> Tested:
        entry = self._values.entries.get(step.key)
        value = None if entry is None or entry[1] <= now else entry[0]
        if step.new is not None:
            self._incoming += len(step.new)
        return value == step.old, value

    def _test_reserve(self, step: Reserve, now: float) -> Tested:
        key, amount, most, _ = step
        window = self._windows.entries.get(key)
        total = window[0] if window is not None and window[1] > now else 0
        return most is None or not 0 < amount > most - total, Counted(total, 0.0)

    def _test_schedule(self, step: Schedule, now: float) -> Tested:
        if step.most is None:
            return True, None
        timed = self._queues.get(step.queue)
        others = 0 if timed is None else len(timed.entries) - (step.member in timed.entries)
        return others < step.most, Counted(others, 0.0)

    def _test_unschedule(self, step: Unschedule, now: float) -> Tested:
        return True, None

    def _reserve(self, step: Reserve, now: float) -> None:
        """Change a total. One that is 0 takes no room."""
        key, amount, until = step.key, step.amount, now + step.seconds
        window = self._windows.entries.get(key)
        total = amount if window is None or window[1] <= now else window[0] + amount
        if window is not None and total > 0 and now < window[1] <= until:
            window[:] = total, until  # the heap has it with an earlier time, which is allowed
        elif total > 0 and until > now:
            self._open_window(key, [total, until])
        elif self._windows.remove(key) is not None:
            self.bytes_used -= ENTRY_BYTES + len(key)

    def _schedule(self, step: Schedule, now: float) -> None:
        timed = self._queues.setdefault(step.queue, _TimedEntries())
        if timed.set(step.member, (None, now + step.delay)) is None:
            self.bytes_used += ENTRY_BYTES + len(step.member)

    def _unschedule(self, step: Unschedule, now: float) -> None:
        timed = self._queues.get(step.queue)
        if timed is None:
            return
        if timed.entries.pop(step.member, None) is not None:
            self.bytes_used -= ENTRY_BYTES + len(step.member)
        if not timed.entries:
            del self._queues[step.queue]

    def _set_value(self, step: Add | Swap, now: float) -> None:
        """Store a value, or remove the one that is there."""
        key, new, expires = step.key, step[-2], now + step.seconds
        values = self._values.entries
        before = values.get(key)
        if new is None or expires <= now:
            if before is not None:
                self._values.remove(key)
                self.bytes_used -= ENTRY_BYTES + len(key) + len(before[0])
            return
        if before is None:
            self.bytes_used += ENTRY_BYTES + len(key) + len(new)
            heappush(self._values.heap, (expires, key))
        else:
            self.bytes_used += len(new) - len(before[0])
            if expires < before[1]:
                self._values.set(key, (new, expires))
        values[key] = (new, expires)
        if expires < self._due:
            self._due = expires

    def _open_window(self, key: str, window: list[Any]) -> None:
        """Keep a number of events, or a total, until the time that stands behind it."""
        if self._windows.set(key, window) is None:
            self.bytes_used += ENTRY_BYTES + len(key)
        if window[1] < self._due:
            self._due = window[1]

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
        if (more > 0 and count + more > self._most) or (size > 0 and self.bytes_used + size > self._most_bytes):
            raise unavailable("The site's store is full.")

    def _purge(self, now: float, visits: float) -> None:
        """Forget values and windows that have expired, visiting at most `visits` heap entries of each."""
        for key, (value, _) in self._values.pop_due(now, len(self._values.entries), visits):
            self.bytes_used -= ENTRY_BYTES + len(key) + len(value)
        for key, _ in self._windows.pop_due(now, len(self._windows.entries), visits):
            self.bytes_used -= ENTRY_BYTES + len(key)
        self._due = min((table.heap[0][0] for table in (self._values, self._windows) if table.heap), default=math.inf)


_KINDS: Final[Mapping[type, tuple[_Test, _Change | None]]] = {
    Count: (MemoryStore._test_count, None),
    Look: (MemoryStore._test_look, None),
    Add: (MemoryStore._test_add, MemoryStore._set_value),
    Swap: (MemoryStore._test_swap, MemoryStore._set_value),
    Reserve: (MemoryStore._test_reserve, MemoryStore._reserve),
    Schedule: (MemoryStore._test_schedule, MemoryStore._schedule),
    Unschedule: (MemoryStore._test_unschedule, MemoryStore._unschedule),
}
"""How each kind of step is tested, and what it changes once all steps of a run hold."""


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
