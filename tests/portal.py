"""The portal between a test and the event loop of its client, with fewer changes of threads.

Starlette's client crosses it eight times for a request and waits twice each time: until a task has begun, and until it
has ended. What needs no loop is done where it is asked for, and nobody waits for the beginning.
"""

from asyncio import AbstractEventLoop
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from typing import Any, cast

import anyio
import anyio.from_thread
import sniffio

FREE = (anyio.Event, anyio.CancelScope, anyio.create_memory_object_stream)
"""What may be made in any thread, as long as anyio knows for which library."""


class Portal(anyio.from_thread.BlockingPortal):
    """A portal that waits for results only."""

    def call(self, func: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]
        """Return what a function returns, which runs in the loop if it has to."""
        if getattr(func, "__origin__", func) in FREE:
            self._check_running()
            return _as_in_asyncio(func, *args)
        return super().call(func, *args)

    def _spawn_task_from_thread(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: object,
        future: Future[Any],
    ) -> None:
        start = partial(self._task_group.start_soon, self._call_func, func, args, kwargs, future, name=name)
        cast(AbstractEventLoop, self._token.native_token).call_soon_threadsafe(_as_in_asyncio, start)


def _as_in_asyncio(func: Callable[..., Any], *args: Any) -> Any:
    context = copy_context()
    context.run(sniffio.current_async_library_cvar.set, "asyncio")
    return context.run(func, *args)


def install() -> None:
    """Have Starlette's client use it."""
    anyio.from_thread.BlockingPortal = Portal  # type: ignore[misc]
