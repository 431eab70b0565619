"""The delivery of an event's occurrences to a webhook: each once, and again what its receiver has not accepted.

A webhook's `about["positions"]` are those up to which its logs have been read; what has failed on the way is in its
`retries`, by log, epoch and number. A failed message does not hold up later ones, unless all have to come in order.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeAlias

from awp_publish.http.outgoing import Failure, Posted
from awp_publish.model import Event
from awp_publish.plugins.events.audiences import Positions
from awp_publish.plugins.events.hook import Message, Webhook
from awp_publish.plugins.events.log import Events, Occurrence
from awp_publish.plugins.events.webhooks import QUIET_SECONDS, Webhooks

MAX_BATCH: Final = 20
"""Occurrences that are read at once."""

Write: TypeAlias = Callable[[Webhook, Occurrence, Positions], Message]
"""Writes the message of an occurrence. The positions are those up to which everything is delivered or given up."""


@dataclass(frozen=True, slots=True)
class EventDelivery:
    """Delivers the occurrences of a site's events."""

    events: Events
    webhooks: Webhooks

    @staticmethod
    def watermark(hook: Webhook, positions: Positions | None = None, but: object = None) -> Positions:
        """Return the positions up to which everything was delivered or given up, assuming that `but` is delivered."""
        safe = dict(positions_of(hook) if positions is None else positions)
        for key, _, _ in hook.retries:
            log, epoch, number = key
            if key != but and safe.get(log, ("", 0))[0] == epoch:
                safe[log] = (epoch, min(safe[log][1], number - 1))
        return safe

    async def carry(
        self,
        hook: Webhook,
        event: Event,
        write: Write,
        *,
        arguments: Mapping[str, Any],
        since: datetime | None = None,
        gap: Callable[[Webhook, Positions], Message] | None = None,
        ends: Callable[[Posted | Failure], bool] = lambda answer: False,
        quiet: float = QUIET_SECONDS,
        is_ordered: bool = False,
    ) -> float | None:
        """Send what a webhook has not received yet. Returns when to look again, in seconds, None if it has ended.

        Nothing is sent of a log that is not among the webhook's own any more. `gap` writes the message for occurrences
        that are gone, `ends` says whether an answer ends the webhook, `quiet` are the seconds between two looks. If
        it `is_ordered`, nothing is sent before a failed message is accepted or given up.
        """
        events, webhooks = self.events, self.webhooks
        current: Webhook | None = hook
        for key, attempts, due in tuple(hook.retries):
            if current is None or not current.is_active or due > time.time():
                continue
            answer, entry = None, await events.find_entry(event, *key) if key[0] in current.logs else None
            if entry is not None:
                answer = await webhooks.send(current, write(current, entry, self.watermark(current, but=key)))
                if ends(answer):
                    return None
            current = await webhooks.change(current, partial(_settle, key, attempts, answer))
        while current is not None and current.is_active:
            if is_ordered and current.retries:
                return await webhooks.postpone(current, _next_retry(current))
            logs, at = [log for log in current.logs if log.startswith(f"{event.id}:")], positions_of(current)
            batch = await events.read(event, logs, at, most=MAX_BATCH, since=since, arguments=arguments)
            if batch.truncated and gap is not None:
                await webhooks.send(current, gap(current, batch.before))
            for entry, after in batch.steps():
                key = [entry.log, after[entry.log][0], entry.number]
                answer = await webhooks.send(current, write(current, entry, self.watermark(current, after, key)))
                if ends(answer):
                    return None
                current = await webhooks.change(current, partial(_advance, key, answer, dict(after)))
                if current is None or not current.is_active or (is_ordered and current.retries):
                    break
            else:
                if positions_of(current) != batch.positions:
                    current = await webhooks.change(current, partial(_advance, None, None, batch.positions))
            if current is None or batch.has_more:
                continue
            pause = min(_next_retry(current), quiet)
            if not await events.has_news(positions_of(current), hook.due_in(pause)):
                return pause
        return None if current is None else QUIET_SECONDS


def _next_retry(hook: Webhook) -> float:
    return max(min((due for _, _, due in hook.retries), default=float("inf")) - time.time(), 0.0)


def positions_of(hook: Webhook) -> Positions:
    """Return the positions up to which a webhook's logs have been read."""
    return {log: (epoch, number) for log, (epoch, number) in hook.about["positions"].items()}


def _settle(key: list[Any], attempts: int, answer: Posted | Failure | None, hook: Webhook) -> None:
    """Record the result of a retried message; None for an occurrence that is gone."""
    if answer is None or hook.note(answer):
        hook.give_up(key)
    else:
        hook.try_again(key, attempts + 1)


def _advance(key: list[Any] | None, answer: Posted | Failure | None, after: Positions, hook: Webhook) -> None:
    """Record the result of a message and the position after it; the key is kept for a retry."""
    hook.about = {**hook.about, "positions": after}
    if key is not None and answer is not None and not hook.note(answer):
        hook.try_again(key, 1)
