"""Drives a method of a browsing session: fetches what it asks for, within its time; large pages are read in threads."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, TypeAlias

from awp_publish.browsing.errors import AwpError
from awp_publish.browsing.page import Fetch, Fetched, Steps
from awp_publish.browsing.session import Session
from awp_publish.model import JsonObject

LARGE: Final = 64_000
"""Bytes of a page that is read in a thread: it takes longer than others should wait."""

_READERS: Final = ThreadPoolExecutor(2, "awp_publish browsing")
"""Threads of their own, and few: pages that strangers ask for must not keep others from theirs."""

Reach: TypeAlias = Callable[[Fetch], Awaitable[Fetched]]


@dataclass(frozen=True, slots=True)
class Done:
    """The end of a method. StopIteration, which carries its result, cannot leave a thread."""

    result: JsonObject


def has_large_page(session: Session) -> bool:
    """Whether a page of a session is large: to look at it again may mean to read it again."""
    shown = (tab.history.current for tab in session.tabs.values())
    return any(one is not None and one.page is not None and len(one.page.html) > LARGE for one in shown)


async def drive(steps: Steps, reach: Reach, method: str, seconds: float, *, in_thread: bool = False) -> JsonObject:
    """What a method comes to. Raises its AwpError; TIMEOUT when its time is up, and then its page is as it was.

    `in_thread` says that its first step takes long already.
    """
    try:
        async with asyncio.timeout(seconds):
            return await _run(steps, reach, in_thread=in_thread)
    except TimeoutError:
        details = {"timeout_ms": round(seconds * 1000), "method": method}
        raise AwpError("TIMEOUT", f"{method} took longer than {seconds:g} seconds.", details) from None
    finally:
        steps.close()


async def _run(steps: Steps, reach: Reach, *, in_thread: bool) -> JsonObject:
    step = await _advance_in_thread(steps, None) if in_thread else _advance(steps, None)
    while isinstance(step, Fetch):
        fetched = await reach(step)
        takes_long = in_thread or len(fetched.body) > LARGE
        step = await _advance_in_thread(steps, fetched) if takes_long else _advance(steps, fetched)
    return step.result


def _advance(steps: Steps, fetched: Fetched | None) -> Fetch | Done:
    try:
        return next(steps) if fetched is None else steps.send(fetched)
    except StopIteration as end:
        return Done(end.value)


async def _advance_in_thread(steps: Steps, fetched: Fetched | None) -> Fetch | Done:
    """A thread cannot be interrupted: whoever is cancelled waits until it has ended, so that `steps` can be closed."""
    job = _READERS.submit(_advance, steps, fetched)
    advancing = asyncio.wrap_future(job)
    try:
        return await asyncio.shield(advancing)
    except asyncio.CancelledError:
        if not job.cancel():
            await asyncio.wait({advancing})
        raise
