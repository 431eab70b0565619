"""The work of a store: a few steps, carried out together in one round trip.

A store keeps what has to outlive a call or be shared between processes: idempotent answers, spent tokens, counts, jobs.
Everything a call needs of it at one moment is one `run`: a list of steps, looked at in order until one does not hold.

* A `Count` counts at once, and stays counted whatever the later steps say.
* All else is done together: if a step does not hold, no step but the counts before it has changed anything.

Keys, queues and members are text, values bytes, times seconds. What has expired is not there.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Final, NamedTuple, Protocol, TypeAlias

from awp_publish.problems import StoreUnavailable

JOB: Final = "job:"
"""The prefix of the keys of background jobs. Their records hold credentials of callers until the job has ended."""

SESSION: Final = "session:"
"""The prefix of the keys of sessions, which hold the cookies of callers."""

WEBHOOK: Final = "webhook:"
"""The prefix of the keys of webhooks, which hold the secrets that they are signed with."""

SECRETS: Final = (JOB, SESSION, WEBHOOK)
"""Beginnings of the keys under which credentials are kept: what is replaced or dropped there must not stay readable."""

TOLERANCE: Final = 3600.0
"""Seconds by which a member of a queue may have been scheduled in the future, before the clock counts as set back."""

ENDLESS: Final = 1e15
"""Seconds since 1970 of what never expires; not every database knows infinity."""


def session_key(session_id: str) -> str:
    """Return the key of a session in the store, from which nobody finds its id."""
    return SESSION + sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()


class Count(NamedTuple):
    """One more event. Holds while that makes at most `most` in a window of `seconds`, which the first event opens.

    One too many is not counted. A window never lasts longer than `seconds`, even if a clock is set back.
    """

    key: str
    most: int
    seconds: float


class Look(NamedTuple):
    """Tell the value. Always holds."""

    key: str


class Add(NamedTuple):
    """Put a value where there is none, for `seconds`. Holds if there was none."""

    key: str
    value: bytes
    seconds: float


class Swap(NamedTuple):
    """Replace a value by another for `seconds`, or by nothing (None). Holds if the value was exactly `old`."""

    key: str
    old: bytes
    new: bytes | None
    seconds: float = 0.0


class Schedule(NamedTuple):
    """Have a member of a queue due after `delay` seconds, in place of when it was due before.

    Holds if the queue has fewer than `most` members beside it, and always without `most`.
    """

    queue: str
    member: str
    delay: float
    most: int | None = None


class Unschedule(NamedTuple):
    """Take a member out of a queue. Always holds."""

    queue: str
    member: str


Step: TypeAlias = Count | Look | Add | Swap | Schedule | Unschedule


class Counted(NamedTuple):
    """The finding of a `Count`: `events` in the window, this one included if it was counted, and seconds to its close.

    A `Schedule` with `most` saw so many other members in its queue.
    """

    events: int
    seconds_left: float


Seen: TypeAlias = Counted | bytes | None
"""The finding of a step before it did anything: a count, or the value under its key. None for other steps on queues."""


class Ran(NamedTuple):
    """The result of the steps. `failed` is the index of the first that did not hold, None if all are done.

    `seen` has one entry for each step up to and including the failed one.
    """

    failed: int | None
    seen: tuple[Seen, ...]


class Store(Protocol):
    """Memory, SQLite, Redis, or one of your own: three verbs, the same everywhere, usable from any event loop.

    Every verb raises StoreUnavailable when the store is slow, full or gone.
    """

    @property
    def is_shared(self) -> bool:
        """True when other processes see the same store."""

    async def run(self, steps: Sequence[Step], *, durable: bool = False) -> Ran:
        """Carry out steps in one round trip. `durable` also waits until a loss of power could not undo them."""

    async def take(self, queue: str, lease: float, most: int) -> tuple[str, ...]:
        """Up to `most` members of a queue that are due, longest due first. Each is due again after `lease` seconds."""

    async def close(self) -> None:
        """Let go of threads, files and connections. A store that is used again opens again."""


# --- Carrying out steps, in the one order that every store keeps: look at all of them, then change ---
# SQLite and Django's database do it with `carry_out` on their own `Shelf`; memory in place, Redis in Lua. All
# steps look at what was there before the run; only a `Count` sees the counts before it, since those are made at once.


class Shelf(Protocol):
    """The contents of a store at one moment; times are in seconds of the store's own clock."""

    def value(self, key: str, now: float) -> bytes | None:
        """The value under a key, if it has not expired."""

    def window(self, key: str, now: float) -> tuple[int, float]:
        """The events in a window that is open, and when it closes; (0, 0.0) if none is."""

    def put(self, key: str, value: bytes, expires: float) -> None: ...

    def drop(self, key: str) -> None: ...

    def count(self, key: str, events: int, closes: float) -> None: ...

    def schedule(self, queue: str, member: str, due: float, now: float) -> None: ...

    def unschedule(self, queue: str, member: str) -> None: ...

    def others(self, queue: str, member: str) -> int:
        """The number of members of a queue beside one."""


class LeasingShelf(Shelf, Protocol):
    """A shelf of which members of queues can be leased."""

    def take(self, queue: str, lease: float, most: int, now: float) -> tuple[str, ...]:
        """Lease what is due, and what would not be due for hours only because the clock was set back."""


def carry_out(steps: Sequence[Step], shelf: Shelf, now: float) -> Ran:
    """Count and look until a step does not hold; if all hold, make the changes."""
    seen: list[Seen] = []
    for index, step in enumerate(steps):
        holds = True
        saw: Seen = None
        if isinstance(step, Look):
            saw = shelf.value(step.key, now)
        elif isinstance(step, Add):
            saw = shelf.value(step.key, now)
            holds = saw is None
        elif isinstance(step, Swap):
            saw = shelf.value(step.key, now)
            holds = saw == step.old
        elif isinstance(step, Count):
            key, most, seconds = step
            events, closes = shelf.window(key, now)
            if events == 0 or closes > now + seconds:  # none is open, or the clock was set back since
                events, closes = 0, now + seconds
            left = min(closes - now, seconds)  # the sum above may have been rounded up
            holds = events < most
            if holds:
                shelf.count(key, events + 1, closes)
                saw = Counted(events + 1, max(left, 0.0))
            else:
                saw = Counted(events, left if events else 0.0)
        elif isinstance(step, Schedule) and step.most is not None:
            others = shelf.others(step.queue, step.member)
            holds, saw = others < step.most, Counted(others, 0.0)
        seen.append(saw)
        if not holds:
            return Ran(index, tuple(seen))
    for step in steps:
        if isinstance(step, (Add, Swap)):
            value = step.value if isinstance(step, Add) else step.new
            if value is None or step.seconds <= 0:
                shelf.drop(step.key)
            else:
                shelf.put(step.key, value, now + step.seconds)
        elif isinstance(step, Schedule):
            shelf.schedule(step.queue, step.member, now + step.delay, now)
        elif isinstance(step, Unschedule):
            shelf.unschedule(step.queue, step.member)
    return Ran(None, tuple(seen))


def encode(text: str) -> bytes:
    """Return a key or a member as bytes: text that is no valid Unicode, or has a NUL in it, is one like any other."""
    return text.encode("utf-8", "surrogatepass")


def decode(name: bytes) -> str:
    return name.decode("utf-8", "surrogatepass")


def unavailable(detail: str) -> StoreUnavailable:
    """The problem of a store that is slow, full or gone. Callers read the detail: it names no path and no host."""
    return StoreUnavailable(detail, headers=(("Retry-After", "1"),))
