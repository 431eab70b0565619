"""Doors that are opened while the application runs, because the site's actions have changed."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Final, Self

from awp_publish.plugin import Running

logger: Final = logging.getLogger("awp_publish")


class LaterDoors:
    """Runs doors until the application stops. Before it has started, they are started with it."""

    def __init__(self) -> None:
        self._stop: asyncio.Event | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._stop = asyncio.Event()
        return self

    async def __aexit__(self, kind: type | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self._stop is not None:
            self._stop.set()
        self._stop = None
        if self._tasks:
            await asyncio.wait(self._tasks)

    def run(self, doors: Iterable[Callable[[], Running]]) -> None:
        """Run doors from now on, each in a task of its own. On the application's event loop."""
        if self._stop is None:
            return
        for running in doors:
            task = asyncio.create_task(_run(running, self._stop), name="awp_publish door")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


async def _run(running: Callable[[], Running], stop: asyncio.Event) -> None:
    try:
        async with running():
            await stop.wait()
    except Exception:
        logger.exception("a door that was opened while the application runs has failed")
