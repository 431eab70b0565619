"""Runs a method of a browsing session: each request that it asks for is sent, until it has a result."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

from awp_publish.browsing.errors import AwpError
from awp_publish.browsing.page import Fetch, Fetched, Steps

if TYPE_CHECKING:
    from awp_publish.browsing.session import Session

INLINE_LIMIT: Final = 64_000
"""Bytes up to which a page is parsed on the event loop instead of in a thread."""

_READERS: Final = ThreadPoolExecutor(2, "awp_publish browsing")
"""A separate pool of few threads, so that agents' pages do not delay those of visitors."""


def has_large_page(session: "Session") -> bool:
    """Return True if a page of a session is large, so that a step may take long to parse it again."""
    visited = (tab.history.current for tab in session.tabs.values())
    return any(
        visit is not None and visit.page is not None and len(visit.page.html) > INLINE_LIMIT for visit in visited
    )


async def drive(
    steps: Steps,
    fetch: Callable[[Fetch], Awaitable[Fetched]],
    method: str,
    seconds: float,
    *,
    in_thread: bool = False,
    alone: asyncio.Lock | None = None,
) -> Mapping[str, object]:
    """Run the steps of a method and return its result. Raises its AwpError, or TIMEOUT, which leaves its page as is.

    `in_thread` runs all steps in a thread. The lock `alone` is held during each step, but not during fetches.
    """

    def advance(fetched: Fetched | None) -> Fetch | Mapping[str, object]:
        try:
            return next(steps) if fetched is None else steps.send(fetched)
        except StopIteration as end:  # cannot be raised out of a thread
            result: Mapping[str, object] = end.value
            return result

    fetched, is_large = None, in_thread
    try:
        async with asyncio.timeout(seconds):
            while True:
                async with alone or nullcontext():
                    if is_large:
                        job = _READERS.submit(advance, fetched)
                        advancing = asyncio.wrap_future(job)
                        try:
                            step = await asyncio.shield(advancing)
                        except asyncio.CancelledError:
                            # A thread cannot be interrupted, and `steps` can only be closed after it has ended.
                            if not job.cancel():
                                await asyncio.wait({advancing})
                            raise
                    else:
                        step = advance(fetched)
                if not isinstance(step, Fetch):
                    return step
                fetched = await fetch(step)
                is_large = in_thread or len(fetched.body) > INLINE_LIMIT
    except TimeoutError:
        details = {"timeout_ms": round(seconds * 1000), "method": method}
        raise AwpError("TIMEOUT", f"{method} took longer than {seconds:g} seconds.", details) from None
    finally:
        steps.close()
