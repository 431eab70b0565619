"""How a worker process is told to end."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

STOP: Final = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def heed_signals(stopping: asyncio.Event) -> Iterator[None]:
    """SIGTERM and SIGINT set the event. For the main thread."""
    loop = asyncio.get_running_loop()
    for number in STOP:
        loop.add_signal_handler(number, stopping.set)
    try:
        yield
    finally:
        for number in STOP:
            loop.remove_signal_handler(number)


async def wait_for_signal() -> None:
    """Return when the process is to end."""
    stopping = asyncio.Event()
    with heed_signals(stopping):
        await stopping.wait()
