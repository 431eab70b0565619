"""What a store can do: a few steps, carried out together in one round trip.

A store keeps what has to outlive a call or be shared between processes: idempotent answers, spent tokens, counts, jobs.
Everything a call needs of it at one moment is one `run`: a list of steps, looked at in order until one does not hold.

* A `Count` counts at once, and stays counted whatever the later steps say.
* All else is done together: if a step does not hold, no step but the counts before it has changed anything.

Keys, queues and members are text, values bytes, times seconds. What has expired is not there.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

JOB: Final = "job:"
"""What the keys of background jobs begin with. Their records hold credentials of callers until the job has ended."""


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
    """What a `Count` saw: `events` in the window, this one included if it was counted, and seconds until it closes.

    A `Schedule` with `most` saw so many other members in its queue.
    """

    events: int
    seconds_left: float


Seen: TypeAlias = Counted | bytes | None
"""What a step saw before it did anything: a count, or the value under its key. None for other steps on queues."""


class Ran(NamedTuple):
    """What became of the steps. `failed` is the index of the first that did not hold, None if all are done.

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
        """Whether other processes see the same store."""

    async def run(self, steps: Sequence[Step], *, durable: bool = False) -> Ran:
        """Carry out steps in one round trip. `durable` also waits until a loss of power could not undo them."""

    async def take(self, queue: str, lease: float, most: int) -> tuple[str, ...]:
        """Up to `most` members of a queue that are due, longest due first. Each is due again after `lease` seconds."""

    async def close(self) -> None:
        """Let go of threads, files and connections. A store that is used again opens again."""
