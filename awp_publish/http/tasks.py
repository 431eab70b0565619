"""Tasks with an owner."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Final

FINISH_SECONDS: Final = 10.0
"""Seconds that a task has to finish after its owner has ended, if `let_finish` was called for it."""


class OwnedTasks:
    """Tasks that are cancelled with their owner. Their exceptions are logged."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._finishing: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[object, object, None], name: str) -> "asyncio.Task[None]":
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return task

    def let_finish(self, task: "asyncio.Task[None]") -> None:
        """Give a task that was started here FINISH_SECONDS to finish before it is cancelled with its owner."""
        self._finishing.add(task)

    async def cancel(self) -> None:
        """Cancel the tasks that still run, and wait for them."""
        for task in self._tasks - self._finishing:
            task.cancel()
        try:
            if finishing := self._tasks & self._finishing:
                await asyncio.wait(finishing, timeout=FINISH_SECONDS)
        finally:
            running = tuple(self._tasks)
            for task in running:
                task.cancel()
            if running:
                await asyncio.wait(running)

    def _forget(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        self._finishing.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logging.getLogger("awp_publish.calls").error("%s failed", task.get_name(), exc_info=error)


async def wait_for_end(task: "asyncio.Task[None]") -> None:
    """Wait until a task has ended. If the waiting is cancelled, cancel the task and wait for its end."""
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task})
        raise
