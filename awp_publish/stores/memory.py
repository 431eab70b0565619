"""The store of one process: quick, and forgotten when the process ends. For tests, and for sites of one worker."""

import math
import threading
import time
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import Final

from awp_publish.stores.steps import carry_out, unavailable
from awp_publish.stores.store import Add, Count, Ran, Schedule, Step

SLACK: Final = 64
"""How many outdated times an agenda may hold beside as many as it has names."""


class MemoryStore:
    """Keeps everything in dicts, for all threads and event loops of this process.

    `clock` tells seconds that never go back. With `most_entries` that have not expired, further ones are refused with
    StoreUnavailable, while what is there can still be read, replaced and removed.
    """

    is_shared: Final = False

    def __init__(self, clock: Callable[[], float] = time.monotonic, most_entries: int = 1_000_000) -> None:
        self._clock = clock
        self._most = most_entries
        self._lock = threading.Lock()
        self._shelf = _Shelf()

    async def run(self, steps: Sequence[Step], *, durable: bool = False) -> Ran:
        """Carry out steps. Nothing in memory is durable. Raises StoreUnavailable when the store is full."""
        with self._lock:
            now = self._clock()
            shelf = self._shelf
            if shelf.is_overdue(now):
                shelf.purge(now, 2 * len(steps))
            if shelf.size + len(steps) > self._most:
                self._make_room(steps, now)
            return carry_out(steps, shelf, now)

    async def take(self, queue: str, lease: float, most: int) -> tuple[str, ...]:
        """Up to `most` members of a queue that are due, longest due first. Each is due again after `lease` seconds."""
        with self._lock:
            return self._shelf.take(queue, lease, most, self._clock())

    async def close(self) -> None:
        """Nothing to let go of: what was put here stays until it expires."""

    def _make_room(self, steps: Sequence[Step], now: float) -> None:
        shelf = self._shelf
        shelf.purge(now, shelf.size)
        if shelf.size + shelf.growth(steps) > self._most:
            raise unavailable("The site's store is full.")


class _Agenda:
    """Names and when the time of each has come. A name has one time; setting it anew outdates the one before."""

    __slots__ = ("_heap", "when")

    def __init__(self) -> None:
        self.when: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []

    def set(self, name: str, when: float) -> None:
        self.when[name] = when
        heappush(self._heap, (when, name))
        if len(self._heap) > 2 * len(self.when) + SLACK:
            self._heap = [(when, name) for name, when in self.when.items()]
            heapify(self._heap)

    def drop(self, name: str) -> None:
        self.when.pop(name, None)

    @property
    def earliest(self) -> float:
        """A time before which nobody's has come."""
        return self._heap[0][0] if self._heap else math.inf

    def pop_due(self, now: float, most: int) -> list[str]:
        """Take out up to `most` names whose time has come, the earliest first."""
        names: list[str] = []
        heap = self._heap
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

    @property
    def size(self) -> int:
        """How many values, windows and members there are."""
        size = len(self._values) + len(self._events)
        return size + sum(len(queue.when) for queue in self._queues.values()) if self._queues else size

    def growth(self, steps: Sequence[Step]) -> int:
        """By how much steps can make it larger."""
        return sum(self._is_new(step) for step in steps)

    def _is_new(self, step: Step) -> bool:
        match step:
            case Add(key):
                return key not in self._values
            case Count(key):
                return key not in self._events
            case Schedule(queue, member):
                return queue not in self._queues or member not in self._queues[queue].when
            case _:
                return False

    def is_overdue(self, now: float) -> bool:
        """Whether there is anything to forget."""
        return self._expiries.earliest <= now or self._closings.earliest <= now

    def purge(self, now: float, most: int) -> None:
        """Forget up to `most` values and as many windows that are over."""
        for key in self._expiries.pop_due(now, most):
            del self._values[key]
        for key in self._closings.pop_due(now, most):
            del self._events[key]

    def value(self, key: str, now: float) -> bytes | None:
        expires = self._expiries.when.get(key)
        return None if expires is None or expires <= now else self._values[key]

    def window(self, key: str, now: float) -> tuple[int, float]:
        closes = self._closings.when.get(key)
        return (0, 0.0) if closes is None or closes <= now else (self._events[key], closes)

    def put(self, key: str, value: bytes, expires: float) -> None:
        self._values[key] = value
        self._expiries.set(key, expires)

    def drop(self, key: str) -> None:
        self._values.pop(key, None)
        self._expiries.drop(key)

    def count(self, key: str, events: int, closes: float) -> None:
        self._events[key] = events
        if self._closings.when.get(key) != closes:
            self._closings.set(key, closes)

    def schedule(self, queue: str, member: str, due: float, now: float) -> None:
        self._queues.setdefault(queue, _Agenda()).set(member, due)

    def unschedule(self, queue: str, member: str) -> None:
        agenda = self._queues.get(queue)
        if agenda is None:
            return
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
