"""Ending streams and waits when the server stops: it waits for them before it sends `lifespan.shutdown`."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from awp_publish.http.body import ClientDisconnect, wait_for_disconnect
from awp_publish.http.exchange import Receive

T = TypeVar("T")

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


async def wait_for(work: Coroutine[Any, Any, T], receive: Receive, seconds: float | None) -> T:
    """Return the result of a coroutine.

    Raises ClientDisconnect if the client leaves first, TimeoutError after so many seconds or if the server stops.
    """
    working = asyncio.create_task(work)
    leaving = asyncio.create_task(wait_for_disconnect(receive))
    stopping = asyncio.get_running_loop().create_future()
    try:
        with ended_by_stop(stopping.cancel):
            ends = {working, leaving, stopping}
            await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientDisconnect if leaving.done() else TimeoutError
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.wait({working, leaving})
