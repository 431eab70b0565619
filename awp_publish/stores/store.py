"""The interface of a store: a few steps, carried out together in one round trip.

A store keeps what has to outlive a call or be shared between processes: idempotent answers, spent tokens, counts, jobs.
Everything that a call needs from it at one moment is one `run`: a list of steps, tested in order until one does not
hold.

* A `Count` counts at once, and stays counted whatever the later steps find.
* All other steps take effect together: if one does not hold, only the counts before it have changed anything.

Keys, queues and members are text, values are bytes, times are seconds. An expired value counts as absent.

A key or queue whose name has text in braces is of that place (`{user:ann}limit:search`), any other of its own. A store
of several shards keeps a place together: what has to be done together, or in one round trip, is of one place. What
concerns one caller is of the caller's (`{user:key}`, `{ip:address}`, `{session:key}`), all jobs are of `{jobs}`, events
and webhooks of `{events}`. For runs on several places, see `shards`.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Final, NamedTuple, Protocol, TypeAlias

from awp_publish.problems import StoreUnavailable

JOB: Final = "{jobs}job:"
"""The prefix of the keys of background jobs. Their records hold callers' credentials until the job has ended."""

SESSION: Final = "session:"
"""The prefix of the keys of sessions, which hold callers' cookies."""

WEBHOOK: Final = "{events}webhook:"
"""The prefix of the keys of webhooks, which hold the secrets that sign their deliveries."""

CLOCK_TOLERANCE: Final = 3600.0
"""A queue member scheduled more than this many seconds in the future shows that the clock was set back."""

NEVER_EXPIRES: Final = 1e15
"""The expiry of what never expires, in seconds since 1970; not every database knows infinity."""


def session_key(session_id: str) -> str:
    """Return the key of a session in the store: a hash, from which its id cannot be recovered."""
    return SESSION + sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()


class Count(NamedTuple):
    """Count one more event. Holds if that makes at most `most` in a window of `seconds`, which the first event opens.

    An event beyond `most` is not counted. A window never lasts longer than `seconds`, even if a clock is set back.
    """

    key: str
    most: int
    seconds: float


class Look(NamedTuple):
    """Read the value. Always holds."""

    key: str


class Add(NamedTuple):
    """Store a value for `seconds` under a key that has none. Holds if there was none."""

    key: str
    value: bytes
    seconds: float


class Swap(NamedTuple):
    """Replace a value for `seconds`, or remove it (`new` is None). Holds if the value was exactly `old`."""

    key: str
    old: bytes
    new: bytes | None
    seconds: float = 0.0


class Schedule(NamedTuple):
    """Make a member of a queue due in `delay` seconds, whenever it was due before.

    Holds if the queue has fewer than `most` other members; without `most`, always.
    """

    queue: str
    member: str
    delay: float
    most: int | None = None


class Unschedule(NamedTuple):
    """Remove a member from a queue. Always holds."""

    queue: str
    member: str


class Reserve(NamedTuple):
    """Add an amount to a total; a negative amount is given back. No key is used for a `Count` too.

    Holds if the total is then at most `most`; without `most`, or for what is given back, always. A total never falls
    below 0, and one that was not changed for `seconds` is forgotten.
    """

    key: str
    amount: int
    most: int | None
    seconds: float


Step: TypeAlias = Count | Look | Add | Swap | Schedule | Unschedule | Reserve


class Counted(NamedTuple):
    """What a `Count` found: `events` in the window, including this one if it was counted, and seconds until it closes.

    For a `Schedule` with `most`, `events` is the number of other members in its queue; for a `Reserve`, the total
    before it.
    """

    events: int
    seconds_left: float


Seen: TypeAlias = Counted | bytes | None
"""What a step found before it changed anything: a count, or the value under its key. None for other queue steps."""


class Ran(NamedTuple):
    """The result of a run. `failed` is the index of the first step that did not hold, None if all were carried out.

    `seen` has one entry for each step up to and including the failed one.
    """

    failed: int | None
    seen: tuple[Seen, ...]


class Store(Protocol):
    """Memory, SQLite, Redis, or one of your own: three methods, usable from any event loop.

    Each of them raises StoreUnavailable when the store is slow, full or gone.
    """

    @property
    def is_shared(self) -> bool:
        """True when other processes see the same store."""

    async def run(self, steps: Sequence[Step], *, durable: bool = False) -> Ran:
        """Carry out steps in one round trip. With `durable`, return only when a power failure cannot undo them."""

    async def take(self, queue: str, lease: float, most: int) -> tuple[str, ...]:
        """Return up to `most` due members of a queue, longest due first. Each is due again after `lease` seconds."""

    async def close(self) -> None:
        """Release threads, files and connections. A store that is used again reopens them."""


def encode(text: str) -> bytes:
    """Return a key or member as bytes. Lone surrogates and NULs are allowed."""
    return text.encode("utf-8", "surrogatepass")


def decode(name: bytes) -> str:
    return name.decode("utf-8", "surrogatepass")


def unavailable(detail: str) -> StoreUnavailable:
    """Return the problem of a store that is slow, full or gone.

    Callers see the detail: it must name no path and no host.
    """
    return StoreUnavailable(detail, headers=(("Retry-After", "1"),))
