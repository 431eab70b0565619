"""What takes note of calls: a watcher, which gets the facts of each, and a counter."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from awp_publish.calls.call import Call, Deliver
from awp_publish.problems import Problem
from awp_publish.schema.redaction import Redact

UNANSWERED: Final = "UNANSWERED"
"""The outcome of a call that ended without an answer, because the caller disconnected or the server stopped."""

Carry: TypeAlias = Callable[[Call, Deliver], Awaitable[None]]

CallKind: TypeAlias = tuple[str, str, str, str, str]
"""Door, action, caller, label of the caller, outcome."""


class CallCounter(Protocol):
    """Counts finished calls in memory, and writes the sums when they are `due` (perf_counter).

    `pending` has the durations of the calls since the last sum, by kind, at most `max_pending` for each. A midnight
    (perf_counter) begins a new day, for which there are new lists.
    """

    pending: dict[CallKind, list[float | None]]
    midnight: float
    due: float
    max_pending: int

    def add(self, door: str, action: str, caller: str, label: str, outcome: str) -> None:
        """Count a request that never became a call."""

    def times_of(self, kind: CallKind, now: float) -> list[float | None]:
        """Return the list to which durations of a kind are appended."""

    def sum_up(self) -> None:
        """Add the pending calls to the sums."""

    async def flush(self) -> None:
        """Write the sums."""


class CallWatcher(Protocol):
    """Reports calls, while anybody wants to know of them."""

    def is_logging(self) -> bool:
        """Return True if calls are logged. Asked before each, even if nobody was told of the one before."""

    def is_watching(self) -> bool:
        """Return True if calls are reported to anybody. If nobody listens, they are not watched for a second."""

    def is_traced(self) -> bool:
        """Return True if spans are exported."""

    async def watch(self, carry: Carry, redact: Redact | None, call: Call, deliver: Deliver) -> None:
        """Run a call and report its result. `redact` removes the secrets from its input."""

    def note_refusal(self, door: str, request_id: str, problem: Problem) -> None:
        """Report a request that a door refused before it became a call."""


@dataclass(frozen=True, slots=True)
class Observers:
    """What takes note of the calls of a site, as far as its plug-ins do."""

    watcher: CallWatcher | None = None
    counter: CallCounter | None = None

    def note_refusal(self, door: str, request_id: str, problem: Problem) -> None:
        """Take note of a request that a door refused before it became a call."""
        if self.counter is not None:
            self.counter.add(door, "", "", "unknown", problem.code)
        if self.watcher is not None:
            self.watcher.note_refusal(door, request_id, problem)
