"""A store in a dictionary, with a clock that tests move and an outage that tests switch on."""

from collections.abc import Callable, Sequence

from awp_publish.problems import StoreUnavailable
from awp_publish.stores.store import Add, Count, Look, Ran, Schedule, Seen, Step, Swap, Unschedule


class TinyStore:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.values: dict[str, tuple[bytes, float]] = {}
        self.queues: dict[tuple[str, str], float] = {}
        self.is_away = False

    @property
    def is_shared(self) -> bool:
        return False

    async def run(self, steps: Sequence[Step], *, durable: bool = False) -> Ran:
        if self.is_away:
            raise StoreUnavailable("The store is away.", headers=[("Retry-After", "1")])
        seen: list[Seen] = []
        for index, step in enumerate(steps):
            value = None if isinstance(step, (Schedule, Unschedule, Count)) else self._value(step.key)
            seen.append(value)
            if (isinstance(step, Add) and value is not None) or (isinstance(step, Swap) and value != step.old):
                return Ran(index, tuple(seen))
        for step in steps:
            self._do(step)
        return Ran(None, tuple(seen))

    def _value(self, key: str) -> bytes | None:
        value, end = self.values.get(key, (None, 0.0))
        return value if end > self._now() else None

    def _do(self, step: Step) -> None:
        match step:
            case Add(key, value, seconds):
                self.values[key] = (value, self._now() + seconds)
            case Swap(key, _, None, _):
                del self.values[key]
            case Swap(key, _, bytes(value), seconds):
                self.values[key] = (value, self._now() + seconds)
            case Schedule(queue, member, delay):
                self.queues[queue, member] = self._now() + delay
            case Unschedule(queue, member):
                self.queues.pop((queue, member), None)
            case Look() | Count():
                pass

    async def take(self, queue: str, lease: float, most: int) -> tuple[str, ...]:
        if self.is_away:
            raise StoreUnavailable("The store is away.", headers=[("Retry-After", "1")])
        due = sorted((end, member) for (name, member), end in self.queues.items() if name == queue)
        taken = tuple(member for end, member in due if end <= self._now())[:most]
        for member in taken:
            self.queues[queue, member] = self._now() + lease
        return taken

    async def close(self) -> None:
        pass
