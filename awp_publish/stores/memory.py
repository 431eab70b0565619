"""The store of one process: quick, and forgotten when the process ends. For tests, and for sites of one worker."""

import math
import threading
import time
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, Final

from awp_publish.stores.store import Add, Count, Counted, Look, Ran, Schedule, Seen, Step, Swap, Unschedule, unavailable

MAX_OUTDATED: Final = 64
"""Outdated times that an agenda may hold beside as many as it has names."""

ENTRY_BYTES: Final = 256
"""About the memory that Python needs for an entry beside its key and value."""


_new: Final = tuple.__new__
"""Makes a named tuple as its class does, without a function of Python in between."""


class MemoryStore:
    """Keeps everything in dicts, for all threads and event loops of this process.

    `clock` tells seconds that never go back. Beyond `most_entries` that have not expired, or `most_bytes` of them, what
    needs more room is refused with StoreUnavailable; what is there can still be read, replaced by as much or less, and
    removed.
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
        # With less than this no few steps can fill it: then nobody has to look how much they need.
        self._plenty = min(most_bytes, ENTRY_BYTES * most_entries) // 2
        self._lock = threading.Lock()
        self._values = _Agenda()
        """Values, and when they expire."""
        self._windows = _Agenda()
        """Numbers of events, and when their windows close."""
        self._queues: dict[str, _Agenda] = {}
        self._bytes = 0
        self._due = math.inf
        """When the first value or window is over."""

    async def run(self, steps: Sequence[Step], *, durable: bool = False) -> Ran:
        """Carry out steps. Nothing in memory is durable. Raises StoreUnavailable when the store is full."""
        # Each call of a guarded action comes by here twice: so all is done in place.
        lock = self._lock
        lock.acquire()  # with a context manager it would take twice as long
        try:
            now = self._clock()
            if self._due <= now:  # what is over makes room, a little at a time
                self._purge(now, 2 * len(steps))
            if self._bytes + ENTRY_BYTES * len(steps) > self._plenty:
                self._make_room(steps, now)

            # Count and look, until a step does not hold
            values = self._values.entries
            seen: list[Seen] = []
            changes: list[tuple[str, bytes | None, float]] = []
            size, has_queues = 0, False
            step: Any  # what it is, `kind` tells
            for step in steps:
                kind = type(step)
                if kind is Count:
                    key, allowed, seconds = step
                    window = self._windows.entries.get(key)
                    if window is None or not now < window[1] <= now + seconds:
                        if allowed <= 0:
                            return Ran(len(seen), (*seen, Counted(0, 0.0)))
                        # None was, or the clock was set back since.
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
                    seen.append(_new(Counted, (events, left)))
                elif kind is Add or kind is Swap or kind is Look:
                    key = step[0]
                    entry = values.get(key)
                    found = None if entry is None or entry[1] <= now else entry[0]
                    seen.append(found)
                    if kind is Look:
                        continue
                    if found != (step[1] if kind is Swap else None):
                        return Ran(len(seen) - 1, tuple(seen))
                    new = step[-2]
                    if new is not None:
                        size += len(new)
                    changes.append((key, new, now + step[-1]))
                else:
                    has_queues = True
                    others: Counted | None = None
                    if kind is Schedule and step.most is not None:
                        agenda = self._queues.get(step.queue)
                        count = 0 if agenda is None else len(agenda.entries) - (step.member in agenda.entries)
                        others = Counted(count, 0.0)
                        if count >= step.most:
                            return Ran(len(seen), (*seen, others))
                    seen.append(others)

            # All of them hold: change
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
                        agenda = self._queues.setdefault(step.queue, _Agenda())
                        if agenda.set(step.member, (None, now + step.delay)) is None:
                            self._bytes += ENTRY_BYTES + len(step.member)
                    elif type(step) is Unschedule and (agenda := self._queues.get(step.queue)) is not None:
                        if agenda.entries.pop(step.member, None) is not None:
                            self._bytes -= ENTRY_BYTES + len(step.member)
                        if not agenda.entries:
                            del self._queues[step.queue]
            return _new(Ran, (None, tuple(seen)))
        finally:
            lock.release()

    async def take(self, queue: str, lease: float, most: int) -> tuple[str, ...]:
        """Up to `most` members of a queue that are due, longest due first. Each is due again after `lease` seconds."""
        with self._lock:
            now, agenda = self._clock(), self._queues.get(queue)
            if agenda is None:
                return ()
            members = tuple(member for member, _ in agenda.pop_due(now, most))
            for member in members:
                agenda.set(member, (None, now + lease))
            return members

    async def close(self) -> None:
        """Nothing to let go of: what was put here stays until it expires."""

    @property
    def bytes_used(self) -> int:
        """The part of `most_bytes` that is taken, by what has expired and is still to be forgotten too."""
        return self._bytes

    def _make_room(self, steps: Sequence[Step], now: float) -> None:
        """Forget all that is over. Raises StoreUnavailable where that is not enough for the steps."""
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
                case Count(key) if key not in windows:
                    more += 1
                    size += ENTRY_BYTES + len(key)
                case Schedule(queue, member) if queue not in queues or member not in queues[queue].entries:
                    more += 1
                    size += ENTRY_BYTES + len(member)
                case _:
                    pass  # changes nothing, or does not hold
        count = len(values) + len(windows) + sum(len(one.entries) for one in queues.values())
        if (more > 0 and count + more > self._most) or (size > 0 and self._bytes + size > self._most_bytes):
            raise unavailable("The site's store is full.")

    def _purge(self, now: float, looks: float) -> None:
        """Forget values and windows that are over, with so many looks for each."""
        for key, (value, _) in self._values.pop_due(now, len(self._values.entries), looks):
            self._bytes -= ENTRY_BYTES + len(key) + len(value)
        for key, _ in self._windows.pop_due(now, len(self._windows.entries), looks):
            self._bytes -= ENTRY_BYTES + len(key)
        self._due = min((one.heap[0][0] for one in (self._values, self._windows) if one.heap), default=math.inf)


class _Agenda:
    """Pairs by name: something, and when its time has come. Setting a pair anew outdates the one before.

    Every name stands in `heap` with its time or an earlier one; when that comes, it is put off.
    """

    __slots__ = ("entries", "heap")

    def __init__(self) -> None:
        self.entries: dict[str, Any] = {}
        self.heap: list[tuple[float, str]] = []

    def set(self, name: str, entry: Sequence[Any]) -> Any:
        """Return the pair that was there before, None for none."""
        entries, when = self.entries, entry[1]
        before = entries.get(name)
        entries[name] = entry
        if before is None or when < before[1]:
            heappush(self.heap, (when, name))
            self._tidy()
        return before

    def remove(self, name: str) -> Any:
        """Return the pair that was there, None for none."""
        found = self.entries.pop(name, None)
        self._tidy()
        return found

    def _tidy(self) -> None:
        """Keep the heap about as long as there are names."""
        if len(self.heap) > 2 * len(self.entries) + MAX_OUTDATED:
            self.heap[:] = [(entry[1], name) for name, entry in self.entries.items()]
            heapify(self.heap)

    def pop_due(self, now: float, most: int, looks: float = math.inf) -> list[tuple[str, Any]]:
        """Take out up to `most` names whose time has come, the earliest first, with so many looks at the heap."""
        found: list[tuple[str, Any]] = []
        heap = self.heap
        while heap and heap[0][0] <= now and len(found) < most and looks > 0:
            looks -= 1
            when, name = heappop(heap)
            entry = self.entries.get(name)
            if entry is not None and entry[1] == when:
                found.append((name, self.entries.pop(name)))
            elif entry is not None and entry[1] > when:
                heappush(heap, (entry[1], name))
        return found
