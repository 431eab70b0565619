"""Drives a method of a browsing session: fetches what it asks for, within its time; large pages are read in threads."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from awp_publish.browsing.errors import AwpError
from awp_publish.browsing.fetching import Fetch, Fetched, Steps
from awp_publish.model import JsonObject

LARGE: Final = 64_000
"""Bytes of a page that is parsed in a thread: to parse it takes longer than others should wait."""

Reach: TypeAlias = Callable[[Fetch], Awaitable[Fetched]]


@dataclass(frozen=True, slots=True)
class Done:
    """The end of a method. StopIteration, which carries its result, cannot leave a thread."""

    result: JsonObject


async def drive(steps: Steps, reach: Reach, method: str, seconds: float) -> JsonObject:
    """What a method comes to. Raises its AwpError; TIMEOUT when its time is up, and then its page is as it was."""
    try:
        async with asyncio.timeout(seconds):
            return await _run(steps, reach)
    except TimeoutError:
        details = {"timeout_ms": round(seconds * 1000), "method": method}
        raise AwpError("TIMEOUT", f"{method} took longer than {seconds:g} seconds.", details) from None
    finally:
        steps.close()


async def _run(steps: Steps, reach: Reach) -> JsonObject:
    step = _advance(steps, None)
    while isinstance(step, Fetch):
        fetched = await reach(step)
        step = await _advance_in_thread(steps, fetched) if len(fetched.body) > LARGE else _advance(steps, fetched)
    return step.result


def _advance(steps: Steps, fetched: Fetched | None) -> Fetch | Done:
    try:
        return next(steps) if fetched is None else steps.send(fetched)
    except StopIteration as end:
        return Done(end.value)


async def _advance_in_thread(steps: Steps, fetched: Fetched) -> Fetch | Done:
    """A thread cannot be interrupted: whoever is cancelled waits until it has ended, so that `steps` can be closed."""
    advancing = asyncio.ensure_future(asyncio.to_thread(_advance, steps, fetched))
    try:
        return await asyncio.shield(advancing)
    except asyncio.CancelledError:
        await asyncio.wait({advancing})
        if not advancing.cancelled():
            advancing.exception()
        raise
