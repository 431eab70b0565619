"""Ending streams when the server stops: it waits for them before it sends `lifespan.shutdown`."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

LOOK_SECONDS: Final = 0.5
"""Seconds between two checks whether the server is about to stop."""


def is_stopping() -> bool:
    """Return True if uvicorn is about to stop. It waits for open responses before it sends `lifespan.shutdown`.

    It has no API for this, but its SIGTERM handler is a method of the server object. Other servers are not supported.
    """
    server = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    return getattr(server, "should_exit", False) is True


@contextmanager
def ended_by_stop(end: Callable[[], object]) -> Iterator[None]:
    """Call `end` in this event loop if the server begins to stop while the block runs."""
    loop = asyncio.get_running_loop()
    timers: list[asyncio.TimerHandle] = []

    def look() -> None:
        if is_stopping():
            end()
        else:
            timers[:] = [loop.call_later(LOOK_SECONDS, look)]

    timers.append(loop.call_later(LOOK_SECONDS, look))
    try:
        yield
    finally:
        timers[0].cancel()
        timers.clear()  # break the reference cycle with `look`
