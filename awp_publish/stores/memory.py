"""The store of one process: quick, and forgotten when the process ends. For tests, and for sites of one worker."""

import threading
import time
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import Final, cast

from awp_publish.stores.store import Add, Count, Counted, Ran, Schedule, Seen, Step, Swap, Unschedule, unavailable

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
        # Each call of a guarded action comes by here twice: so the steps are carried out in place, not through `Shelf`.
        with self._lock:
            now, shelf = self._clock(), self._shelf
            values, expiries, events, closings = shelf.values, shelf.expiries, shelf.events, shelf.closings

            # Is there room? What is over makes some, a little at a time.
            if (expiries.heap and expiries.heap[0][0] <= now) or (closings.heap and closings.heap[0][0] <= now):
                shelf.purge(now, 2 * len(steps))
            most = ENTRY_BYTES * len(steps)
            for step in steps:
                kind = type(step)
                most += len(step[0])
                if kind is Add:
                    most += len(step.value)  # type: ignore[union-attr]
                elif kind is Swap:
                    most += len(step.new or b"")  # type: ignore[union-attr]
                elif kind is Schedule:
                    most += len(step.member)  # type: ignore[union-attr]
            entries = len(values) + len(events) + (shelf.members() if shelf.queues else 0)
            if entries + len(steps) > self._most or shelf.bytes + most > self._most_bytes:
                self._make_room(steps, now)

            # Count and look, until a step does not hold
            seen: list[Seen] = []
            for step in steps:
                kind = type(step)
                if kind is Count:
                    key, allowed, seconds = cast(Count, step)
                    count, closes = events.get(key, 0), closings.when.get(key, 0.0)
                    if closes <= now or closes > now + seconds:  # none is open, or the clock was set back since
                        count, closes = 0, now + seconds
                    left = min(closes - now, seconds)  # the sum above may have been rounded up
                    if count >= allowed:
                        seen.append(Counted(count, left if count else 0.0))
                        return Ran(len(seen) - 1, tuple(seen))
                    if key not in events:
                        shelf.bytes += ENTRY_BYTES + len(key)
                    events[key] = count + 1
                    if closings.when.get(key) != closes:
                        closings.set(key, closes)
                    seen.append(Counted(count + 1, max(left, 0.0)))
                    continue
                saw: Seen = None
                holds = True
                if kind is Schedule:
                    queue, member, _, limit = cast(Schedule, step)
                    if limit is not None:
                        others = shelf.others(queue, member)
                        saw, holds = Counted(others, 0.0), others < limit
                elif kind is not Unschedule:
                    if expiries.when.get(step[0], now) > now:
                        saw = values[step[0]]
                    if kind is Add:
                        holds = saw is None
                    elif kind is Swap:
                        holds = saw == cast(Swap, step).old
                seen.append(saw)
                if not holds:
                    return Ran(len(seen) - 1, tuple(seen))

            # All of them hold: change
            for step in steps:
                kind = type(step)
                if kind is Add or kind is Swap:
                    key, seconds = step[0], step.seconds  # type: ignore[union-attr]
                    new = step.value if kind is Add else step.new  # type: ignore[union-attr]
                    if new is None or seconds <= 0:
                        shelf.drop(key)
                        continue
                    before = values.get(key)
                    shelf.bytes += len(new) - (-ENTRY_BYTES - len(key) if before is None else len(before))
                    values[key] = new
                    expiries.set(key, now + seconds)
                elif kind is Schedule:
                    shelf.schedule(step[0], step.member, now + step.delay)  # type: ignore[union-attr]
                elif kind is Unschedule:
                    shelf.unschedule(step[0], step.member)  # type: ignore[union-attr]
            return Ran(None, tuple(seen))

    def _make_room(self, steps: Sequence[Step], now: float) -> None:
        """Forget all that is over. Raises StoreUnavailable where that is not enough."""
        shelf = self._shelf
        shelf.purge(now, len(shelf.values) + len(shelf.events))
        entries, size = shelf.growth(steps)
        count = len(shelf.values) + len(shelf.events) + shelf.members()
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
        self.values: dict[str, bytes] = {}
        self.expiries = _Agenda()
        self.events: dict[str, int] = {}
        self.closings = _Agenda()
        self.queues: dict[str, _Agenda] = {}
        self.bytes = 0

    def members(self) -> int:
        """The number of members of all queues."""
        return sum(len(queue.when) for queue in self.queues.values())

    def growth(self, steps: Sequence[Step]) -> tuple[int, int]:
        """By how many entries and bytes steps make it larger, once what is over is forgotten."""
        entries = size = 0
        for step in steps:
            match step:
                case Add(key, value) if key not in self.values:
                    entries += 1
                    size += ENTRY_BYTES + len(key) + len(value)
                case Swap(key, old, new) if self.values.get(key) == old:
                    size += len(new) - len(old) if new is not None else -ENTRY_BYTES - len(key) - len(old)
                case Count(key) if key not in self.events:
                    entries += 1
                    size += ENTRY_BYTES + len(key)
                case Schedule(queue, member) if queue not in self.queues or member not in self.queues[queue].when:
                    entries += 1
                    size += ENTRY_BYTES + len(member)
                case _:
                    pass  # changes nothing, or does not hold
        return entries, size

    def purge(self, now: float, most: int) -> None:
        """Forget up to `most` values and as many windows that are over."""
        for key in self.expiries.pop_due(now, most):
            self.bytes -= ENTRY_BYTES + len(key) + len(self.values.pop(key))
        for key in self.closings.pop_due(now, most):
            self.bytes -= ENTRY_BYTES + len(key)
            del self.events[key]

    def drop(self, key: str) -> None:
        value = self.values.pop(key, None)
        if value is not None:
            self.bytes -= ENTRY_BYTES + len(key) + len(value)
        self.expiries.drop(key)

    def schedule(self, queue: str, member: str, due: float) -> None:
        agenda = self.queues.setdefault(queue, _Agenda())
        if member not in agenda.when:
            self.bytes += ENTRY_BYTES + len(member)
        agenda.set(member, due)

    def unschedule(self, queue: str, member: str) -> None:
        agenda = self.queues.get(queue)
        if agenda is None:
            return
        if member in agenda.when:
            self.bytes -= ENTRY_BYTES + len(member)
        agenda.drop(member)
        if not agenda.when:
            del self.queues[queue]

    def others(self, queue: str, member: str) -> int:
        agenda = self.queues.get(queue)
        return 0 if agenda is None else len(agenda.when) - (member in agenda.when)

    def take(self, queue: str, lease: float, most: int, now: float) -> tuple[str, ...]:
        agenda = self.queues.get(queue)
        if agenda is None:
            return ()
        members = agenda.pop_due(now, most)
        for member in members:
            agenda.set(member, now + lease)
        return tuple(members)
