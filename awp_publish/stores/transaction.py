"""Carrying out steps in the one order that every store keeps: test all of them, then apply the changes.

SQL stores use `carry_out` on a `Transaction` of their own; the memory store does it in place, Redis in Lua. Every step
sees what was there before the run; only a `Count` sees the counts before it, since those take effect at once.
"""

from collections.abc import Sequence
from typing import Protocol

from awp_publish.stores.store import Add, Count, Counted, Look, Ran, Reserve, Schedule, Seen, Step, Swap, Unschedule


class Transaction(Protocol):
    """One transaction on a store. Times are in seconds of the store's own clock."""

    def value(self, key: str, now: float) -> bytes | None:
        """Return the value under a key unless it has expired."""

    def window(self, key: str, now: float) -> tuple[int, float]:
        """Return the events in an open window and when it closes; (0, 0.0) if none is open."""

    def put(self, key: str, value: bytes, expires: float) -> None: ...

    def drop(self, key: str) -> None: ...

    def count(self, key: str, events: int, closes: float) -> None: ...

    def schedule(self, queue: str, member: str, due: float, now: float) -> None: ...

    def unschedule(self, queue: str, member: str) -> None: ...

    def others(self, queue: str, member: str) -> int:
        """Return the number of members of a queue other than `member`."""


class LeasingTransaction(Transaction, Protocol):
    """A transaction that can lease members of queues, too."""

    def take(self, queue: str, lease: float, most: int, now: float) -> tuple[str, ...]:
        """Lease members that are due, and those that seem due in hours only because the clock was set back."""


def carry_out(steps: Sequence[Step], transaction: Transaction, now: float) -> Ran:
    """Test the steps until one does not hold; if all hold, make their changes."""
    seen: list[Seen] = []
    changes: list[Add | Swap | Schedule | Unschedule | Reserve] = []
    for step in steps:
        holds = True
        saw: Seen = None
        if type(step) is Count:
            key, most, seconds = step
            events, closes = transaction.window(key, now)
            if events == 0 or closes > now + seconds:  # none is open, or the clock was set back since
                events, closes = 0, now + seconds
            if holds := events < most:
                events += 1
                transaction.count(key, events, closes)
            left = closes - now if events else 0.0
            saw = Counted(events, seconds if left > seconds else left)  # the sum above may have been rounded up
        elif type(step) is Look:
            saw = transaction.value(step.key, now)
        elif type(step) is Add:
            saw = transaction.value(step.key, now)
            holds = saw is None
            changes.append(step)
        elif type(step) is Swap:
            saw = transaction.value(step.key, now)
            holds = saw == step.old
            changes.append(step)
        elif type(step) is Schedule:
            if step.most is not None:
                others = transaction.others(step.queue, step.member)
                holds, saw = others < step.most, Counted(others, 0.0)
            changes.append(step)
        elif type(step) is Unschedule:
            changes.append(step)
        elif type(step) is Reserve:
            total, _ = transaction.window(step.key, now)
            holds = step.most is None or step.amount <= 0 or total + step.amount <= step.most
            saw = Counted(total, 0.0)
            changes.append(step)
        seen.append(saw)
        if not holds:
            return Ran(len(seen) - 1, tuple(seen))
    for step in changes:
        if type(step) is Add or type(step) is Swap:
            key, value = step.key, step[-2]
            if value is None or step.seconds <= 0:
                transaction.drop(key)
            else:
                transaction.put(key, value, now + step.seconds)
        elif type(step) is Schedule:
            transaction.schedule(step.queue, step.member, now + step.delay, now)
        elif type(step) is Unschedule:
            transaction.unschedule(step.queue, step.member)
        elif type(step) is Reserve:
            total = max(transaction.window(step.key, now)[0] + step.amount, 0)
            transaction.count(step.key, total, now + step.seconds if total else now)
    return Ran(None, tuple(seen))
