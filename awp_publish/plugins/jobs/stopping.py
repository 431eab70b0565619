"""Signals that stop a worker process."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

STOP: Final = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def set_on_signal(stopping: asyncio.Event) -> Iterator[None]:
    """Set the event at SIGTERM and SIGINT. For the main thread."""
    loop = asyncio.get_running_loop()
    for number in STOP:
        loop.add_signal_handler(number, stopping.set)
    try:
        yield
    finally:
        for number in STOP:
            loop.remove_signal_handler(number)


async def wait_for_signal() -> None:
    """Wait until the process is told to end."""
    stopping = asyncio.Event()
    with set_on_signal(stopping):
        await stopping.wait()
