"""The store of one process: quick, and forgotten when the process ends. For tests, and for sites of one worker."""

import threading
import time
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import Final

from awp_publish.stores.store import Add, Count, Ran, Schedule, Step, Swap, carry_out, unavailable

MAX_OUTDATED: Final = 64
"""Outdated times that an agenda may hold beside as many as it has names."""

ENTRY_BYTES: Final = 256
"""About the memory that Python needs for an entry beside its key and value."""


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
        self._lock = threading.Lock()
        self._shelf = _Shelf()

    async def run(self, steps: Sequence[Step], *, durable: bool = False) -> Ran:
        """Carry out steps. Nothing in memory is durable. Raises StoreUnavailable when the store is full."""
        with self._lock:
            now = self._clock()
            shelf = self._shelf
            if shelf.is_overdue(now):
                shelf.purge(now, 2 * len(steps))
            if shelf.size + len(steps) > self._most or shelf.bytes + sum(map(_bytes_of, steps)) > self._most_bytes:
                shelf.purge(now, shelf.size)
                entries, size = shelf.growth(steps)
                is_full = entries > 0 and shelf.size + entries > self._most
                if is_full or (size > 0 and shelf.bytes + size > self._most_bytes):
                    raise unavailable("The site's store is full.")
            return carry_out(steps, shelf, now)

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


def _bytes_of(step: Step) -> int:
    """The most that a step takes."""
    # Each call of an action comes by here, and a match of classes takes several times as long.
    if isinstance(step, Count):
        return ENTRY_BYTES + len(step.key)
    if isinstance(step, Add):
        return ENTRY_BYTES + len(step.key) + len(step.value)
    if isinstance(step, Swap):
        return 0 if step.new is None else ENTRY_BYTES + len(step.key) + len(step.new)
    return ENTRY_BYTES + len(step.member) if isinstance(step, Schedule) else 0


class _Agenda:
    """Names and when the time of each has come. A name has one time; setting it anew outdates the one before."""

    __slots__ = ("heap", "when")

    def __init__(self) -> None:
        self.when: dict[str, float] = {}
        self.heap: list[tuple[float, str]] = []

    def set(self, name: str, when: float) -> None:
        self.when[name] = when
        heappush(self.heap, (when, name))
        if len(self.heap) > 2 * len(self.when) + MAX_OUTDATED:
            self.heap = [(when, name) for name, when in self.when.items()]
            heapify(self.heap)

    def drop(self, name: str) -> None:
        self.when.pop(name, None)

    def pop_due(self, now: float, most: int) -> list[str]:
        """Take out up to `most` names whose time has come, the earliest first."""
        names: list[str] = []
        heap = self.heap
        while heap and heap[0][0] <= now and len(names) < most:
            when, name = heappop(heap)
            if self.when.get(name) == when:
                del self.when[name]
                names.append(name)
        return names


class _Shelf:
    """Values, windows and queues, each with the times at which they are over."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self._expiries = _Agenda()
        self._events: dict[str, int] = {}
        self._closings = _Agenda()
        self._queues: dict[str, _Agenda] = {}
        self.bytes = 0

    @property
    def size(self) -> int:
        """The number of values, windows and members."""
        size = len(self._values) + len(self._events)
        return size + sum(len(queue.when) for queue in self._queues.values()) if self._queues else size

    def growth(self, steps: Sequence[Step]) -> tuple[int, int]:
        """By how many entries and bytes steps make it larger, once what is over is forgotten."""
        entries = size = 0
        for step in steps:
            match step:
                case Add(key) if key not in self._values:
                    is_new = True
                case Swap(key, old) if self._values.get(key) == old:
                    is_new = False
                    size -= ENTRY_BYTES + len(key) + len(old)
                case Count(key) if key not in self._events:
                    is_new = True
                case Schedule(queue, member) if queue not in self._queues or member not in self._queues[queue].when:
                    is_new = True
                case _:
                    continue  # changes nothing, or does not hold
            entries += is_new
            size += _bytes_of(step)
        return entries, size

    def is_overdue(self, now: float) -> bool:
        """True when there is anything to forget."""
        values, windows = self._expiries.heap, self._closings.heap
        return bool((values and values[0][0] <= now) or (windows and windows[0][0] <= now))

    def purge(self, now: float, most: int) -> None:
        """Forget up to `most` values and as many windows that are over."""
        for key in self._expiries.pop_due(now, most):
            self.bytes -= ENTRY_BYTES + len(key) + len(self._values.pop(key))
        for key in self._closings.pop_due(now, most):
            self.bytes -= ENTRY_BYTES + len(key)
            del self._events[key]

    def value(self, key: str, now: float) -> bytes | None:
        expires = self._expiries.when.get(key)
        return None if expires is None or expires <= now else self._values[key]

    def window(self, key: str, now: float) -> tuple[int, float]:
        closes = self._closings.when.get(key)
        return (0, 0.0) if closes is None or closes <= now else (self._events[key], closes)

    def put(self, key: str, value: bytes, expires: float) -> None:
        before = self._values.get(key)
        self.bytes += ENTRY_BYTES + len(key) + len(value) if before is None else len(value) - len(before)
        self._values[key] = value
        self._expiries.set(key, expires)

    def drop(self, key: str) -> None:
        value = self._values.pop(key, None)
        if value is not None:
            self.bytes -= ENTRY_BYTES + len(key) + len(value)
        self._expiries.drop(key)

    def count(self, key: str, events: int, closes: float) -> None:
        if key not in self._events:
            self.bytes += ENTRY_BYTES + len(key)
        self._events[key] = events
        if self._closings.when.get(key) != closes:
            self._closings.set(key, closes)

    def schedule(self, queue: str, member: str, due: float, now: float) -> None:
        agenda = self._queues.setdefault(queue, _Agenda())
        if member not in agenda.when:
            self.bytes += ENTRY_BYTES + len(member)
        agenda.set(member, due)

    def unschedule(self, queue: str, member: str) -> None:
        agenda = self._queues.get(queue)
        if agenda is None:
            return
        if member in agenda.when:
            self.bytes -= ENTRY_BYTES + len(member)
        agenda.drop(member)
        if not agenda.when:
            del self._queues[queue]

    def others(self, queue: str, member: str) -> int:
        agenda = self._queues.get(queue)
        return 0 if agenda is None else len(agenda.when) - (member in agenda.when)

    def take(self, queue: str, lease: float, most: int, now: float) -> tuple[str, ...]:
        agenda = self._queues.get(queue)
        if agenda is None:
            return ()
        members = agenda.pop_due(now, most)
        for member in members:
            agenda.set(member, now + lease)
        return tuple(members)
