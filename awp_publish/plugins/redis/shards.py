"""Runs over several shards: a store that is spread over machines carries out what lies on one of them together.

A key's place is its text in the first braces, else the key itself; names of one place are in one shard. The
steps of a run are carried out in their order, stretch by stretch, each of neighbouring steps in one shard.

If a step does not hold, what earlier stretches have added or reserved is taken back; counts stay counted. If a stretch
is not answered, nothing is taken back: what was carried out before it stays, what comes after it is not done. So what
may be left over has to be harmless: a claim whose call was refused expires, bytes are reserved for longer than needed.
What cannot be taken back (a `Swap`, a `Schedule`, an `Unschedule`) may not stand before a stretch that may fail.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Final, TypeAlias

from awp_publish.problems import StoreUnavailable
from awp_publish.stores.store import (
    Add,
    Count,
    Look,
    Ran,
    Reserve,
    Schedule,
    Seen,
    Step,
    Swap,
    Unschedule,
    unavailable,
)

logger: Final = logging.getLogger("awp_publish.stores")

RunShard: TypeAlias = Callable[[Hashable, tuple[Step, ...]], Awaitable[Ran]]
"""Carries out steps in one shard. Raises StoreUnavailable."""


async def run_stretches(steps: Sequence[Step], shard_of: Callable[[Step], Hashable], run: RunShard) -> Ran:
    """Carry out steps, stretch by stretch."""
    stretches = [(shard, tuple(stretch)) for shard, stretch in groupby(steps, shard_of)]
    if len(stretches) == 1:
        return await run(*stretches[0])
    _refuse_irreversible(stretches)
    seen: list[Seen] = []
    for at, (shard, stretch) in enumerate(stretches):
        ran = await run(shard, stretch)
        if ran.failed is not None:
            await _take_back(stretches[:at], run)
            return Ran(len(seen) + ran.failed, (*seen, *ran.seen))
        seen += ran.seen
    return Ran(None, tuple(seen))


def _refuse_irreversible(stretches: Sequence[tuple[Hashable, tuple[Step, ...]]]) -> None:
    may_fail = False
    for _, stretch in reversed(stretches):
        if may_fail and any(isinstance(step, (Swap, Schedule, Unschedule)) for step in stretch):
            logger.error(
                "a run over several shards was refused: put its Swap and its queue steps last, or give the names of "
                "its steps one place in braces ({user:ann}...)"
            )
            raise unavailable("The site's store cannot carry out this together.")
        may_fail = may_fail or any(map(_may_fail, stretch))


def _may_fail(step: Step) -> bool:
    if isinstance(step, (Schedule, Reserve)):
        return step.most is not None
    return isinstance(step, (Count, Add, Swap))


async def _take_back(stretches: Sequence[tuple[Hashable, tuple[Step, ...]]], run: RunShard) -> None:
    for shard, stretch in stretches:
        back = tuple(_inverse(step) for step in stretch if isinstance(step, (Add, Reserve)))
        with suppress(StoreUnavailable):  # then it stays until it expires
            for step in back:
                await run(shard, (step,))


def _inverse(step: Add | Reserve) -> Step:
    if isinstance(step, Add):
        return Swap(step.key, step.value, None)
    return Reserve(step.key, -step.amount, None, step.seconds)


async def look_everywhere(steps: Sequence[Look], shard_of: Callable[[Step], Hashable], run: RunShard) -> Ran:
    """Read values from all shards at the same time."""
    by_shard: dict[Hashable, list[int]] = {}
    for index, step in enumerate(steps):
        by_shard.setdefault(shard_of(step), []).append(index)
    rans = await asyncio.gather(*(run(shard, tuple(steps[at] for at in where)) for shard, where in by_shard.items()))
    seen: list[Seen] = [None] * len(steps)
    for where, ran in zip(by_shard.values(), rans, strict=True):
        for at, value in zip(where, ran.seen, strict=True):
            seen[at] = value
    return Ran(None, tuple(seen))
