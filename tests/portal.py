"""The portal between a test and the event loop of its client, with fewer changes of threads.

Starlette's client crosses it eight times for a request and waits twice each time: until a task has begun, and until it
has ended. What needs no loop is done where it is asked for, and nobody waits for the beginning.
"""

from asyncio import AbstractEventLoop
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, cast

import anyio
import anyio.from_thread
from anyio._core._eventloop import set_current_async_library

FREE = (anyio.Event, anyio.create_memory_object_stream)
"""What may be made in any thread."""


class Portal(anyio.from_thread.BlockingPortal):
    """A portal that waits for results only."""

    def call(self, func: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]
        """Return what a function returns, which runs in the loop if it has to."""
        if getattr(func, "__origin__", func) in FREE:
            self._check_running()
            return func(*args)
        return super().call(func, *args)

    def _spawn_task_from_thread(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: object,
        future: Future[Any],
    ) -> None:
        def start() -> None:
            set_current_async_library("asyncio")
            self._task_group.start_soon(self._call_func, func, args, kwargs, future, name=name)

        cast(AbstractEventLoop, self._token.native_token).call_soon_threadsafe(start)


def install() -> None:
    """Have Starlette's client use it."""
    anyio.from_thread.BlockingPortal = Portal  # type: ignore[misc]
