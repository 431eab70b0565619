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
        self._shelf = _Shelf()

    async def run(self, steps: Sequence[Step], *, durable: bool = False) -> Ran:
        """Carry out steps. Nothing in memory is durable. Raises StoreUnavailable when the store is full."""
        # Each call of a guarded action comes by here twice: so the steps are carried out in place, not through `Shelf`.
        with self._lock:
            now, shelf = self._clock(), self._shelf
            values = shelf.values.entries
            if shelf.due <= now:  # what is over makes room, a little at a time
                shelf.purge(now, 2 * len(steps))
            if shelf.bytes + ENTRY_BYTES * len(steps) > self._plenty:
                self._make_room(steps, now)

            step: Any  # what it is, `kind` tells
            if len(steps) == 1 and type(step := steps[0]) is Swap:  # as each guarded call ends
                key, old, new, seconds = step
                entry = values.get(key)
                found = None if entry is None or entry[1] <= now else entry[0]
                if found != old:
                    return Ran(0, (found,))
                if new is None or seconds <= 0:
                    shelf.drop(key)
                else:
                    if len(new) > self._plenty:
                        self._make_room(steps, now)
                    shelf.put(key, new, now + seconds)
                return _new(Ran, (None, (found,)))

            # Count and look, until a step does not hold
            seen: list[Seen] = []
            changes: list[Any] = []
            size, has_queues = 0, False
            for step in steps:
                kind = type(step)
                if kind is Count:
                    key, allowed, seconds = step
                    window = shelf.windows.entries.get(key)
                    if window is None or not now < window[1] <= now + seconds:
                        if allowed <= 0:
                            return Ran(len(seen), (*seen, Counted(0, 0.0)))
                        window = shelf.open(key, now + seconds)  # none was, or the clock was set back since
                    left = window[1] - now
                    if left > seconds:  # the sum above may have been rounded up
                        left = seconds
                    if window[0] >= allowed:
                        return Ran(len(seen), (*seen, Counted(window[0], left)))
                    window[0] += 1
                    seen.append(_new(Counted, (window[0], left)))
                elif kind is Schedule or kind is Unschedule:
                    has_queues = True
                    others: Counted | None = None
                    if kind is Schedule and step.most is not None:
                        others = Counted(shelf.others(step.queue, step.member), 0.0)
                        if others.events >= step.most:
                            return Ran(len(seen), (*seen, others))
                    seen.append(others)
                else:
                    key = step[0]
                    entry = values.get(key)
                    found = None if entry is None or entry[1] <= now else entry[0]
                    seen.append(found)
                    if kind is Look:
                        continue
                    if found != (step.old if kind is Swap else None):
                        return Ran(len(seen) - 1, tuple(seen))
                    changes.append(step)
                    if (new := step[-2]) is not None:
                        size += len(new)

            # All of them hold: change
            if size > self._plenty:
                self._make_room(steps, now)
            for step in changes:
                if (new := step[-2]) is None or step[-1] <= 0:
                    shelf.drop(step[0])
                else:
                    shelf.put(step[0], new, now + step[-1])
            if has_queues:
                for step in steps:
                    if type(step) is Schedule:
                        shelf.schedule(step.queue, step.member, now + step.delay)
                    elif type(step) is Unschedule:
                        shelf.unschedule(step.queue, step.member)
            return _new(Ran, (None, tuple(seen)))

    def _make_room(self, steps: Sequence[Step], now: float) -> None:
        """Forget all that is over. Raises StoreUnavailable where that is not enough."""
        shelf = self._shelf
        shelf.purge(now, math.inf)
        entries, size = shelf.growth(steps)
        count = sum(len(one.entries) for one in (shelf.values, shelf.windows, *shelf.queues.values()))
        is_full = entries > 0 and count + entries > self._most
        if is_full or (size > 0 and shelf.bytes + size > self._most_bytes):
            raise unavailable("The site's store is full.")

    async def take(self, queue: str, lease: float, most: int) -> tuple[str, ...]:
        """Up to `most` members of a queue that are due, longest due first. Each is due again after `lease` seconds."""
        with self._lock:
            return self._shelf.take(queue, lease, most, self._clock())

    async def close(self) -> None:
        """Nothing to let go of: what was put here stays until it expires."""

    @property
    def bytes_used(self) -> int:
        """The part of `most_bytes` that is taken, by what has expired and is still to be forgotten too."""
        return self._shelf.bytes


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
        entries, heap, when = self.entries, self.heap, entry[1]
        before = entries.get(name)
        entries[name] = entry
        if before is None or when < before[1]:
            heappush(heap, (when, name))
            if len(heap) > 2 * len(entries) + MAX_OUTDATED:
                heap[:] = [(entry[1], name) for name, entry in entries.items()]
                heapify(heap)
        return before

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


class _Shelf:
    """Values, windows and queues, each with the times at which they are over; `due` is when the first of them is."""

    def __init__(self) -> None:
        self.values = _Agenda()
        self.windows = _Agenda()
        self.queues: dict[str, _Agenda] = {}
        self.bytes = 0
        self.due = math.inf

    def open(self, key: str, closes: float) -> list[Any]:
        """Open a window without events: their number, and when it closes."""
        window = [0, closes]
        if self.windows.set(key, window) is None:
            self.bytes += ENTRY_BYTES + len(key)
        self.due = min(self.due, closes)
        return window

    def put(self, key: str, value: bytes, expires: float) -> None:
        entries = self.values.entries
        if (before := entries.get(key)) is not None and before[1] <= expires:  # it is put off when its time comes
            entries[key] = (value, expires)
            self.bytes += len(value) - len(before[0])
            return
        self.values.set(key, (value, expires))
        self.bytes += len(value) - len(before[0]) if before is not None else ENTRY_BYTES + len(key) + len(value)
        if expires < self.due:
            self.due = expires

    def growth(self, steps: Sequence[Step]) -> tuple[int, int]:
        """By how many entries and bytes steps make it larger, once what is over is forgotten."""
        entries = size = 0
        for step in steps:
            match step:
                case Add(key, value) if key not in self.values.entries:
                    entries += 1
                    size += ENTRY_BYTES + len(key) + len(value)
                case Swap(key, old, new) if self.values.entries.get(key, (None,))[0] == old:
                    size += len(new) - len(old) if new is not None else -ENTRY_BYTES - len(key) - len(old)
                case Count(key) if key not in self.windows.entries:
                    entries += 1
                    size += ENTRY_BYTES + len(key)
                case Schedule(queue, member) if queue not in self.queues or member not in self.queues[queue].entries:
                    entries += 1
                    size += ENTRY_BYTES + len(member)
                case _:
                    pass  # changes nothing, or does not hold
        return entries, size

    def purge(self, now: float, looks: float) -> None:
        """Forget values and windows that are over, with so many looks for each."""
        for key, (value, _) in self.values.pop_due(now, len(self.values.entries), looks):
            self.bytes -= ENTRY_BYTES + len(key) + len(value)
        for key, _ in self.windows.pop_due(now, len(self.windows.entries), looks):
            self.bytes -= ENTRY_BYTES + len(key)
        self.due = min((one.heap[0][0] for one in (self.values, self.windows) if one.heap), default=math.inf)

    def drop(self, key: str) -> None:
        if (entry := self.values.entries.pop(key, None)) is not None:
            self.bytes -= ENTRY_BYTES + len(key) + len(entry[0])

    def schedule(self, queue: str, member: str, due: float) -> None:
        if self.queues.setdefault(queue, _Agenda()).set(member, (None, due)) is None:
            self.bytes += ENTRY_BYTES + len(member)

    def unschedule(self, queue: str, member: str) -> None:
        agenda = self.queues.get(queue)
        if agenda is None:
            return
        if agenda.entries.pop(member, None) is not None:
            self.bytes -= ENTRY_BYTES + len(member)
        if not agenda.entries:
            del self.queues[queue]

    def others(self, queue: str, member: str) -> int:
        agenda = self.queues.get(queue)
        return 0 if agenda is None else len(agenda.entries) - (member in agenda.entries)

    def take(self, queue: str, lease: float, most: int, now: float) -> tuple[str, ...]:
        agenda = self.queues.get(queue)
        if agenda is None:
            return ()
        members = tuple(member for member, _ in agenda.pop_due(now, most))
        for member in members:
            agenda.set(member, (None, now + lease))
        return members
