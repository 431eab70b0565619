"""Threads for a site's synchronous functions, so that they do not block the event loop.

They run in a thread pool unless a framework provides a better place: Django keeps a database connection, and a test's
transaction, for each thread.
"""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Final, TypeAlias, TypeVar

from starlette.concurrency import run_in_threadpool

T = TypeVar("T")

Runner: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Calls a function somewhere it may block, and returns its result or raises its exception."""

RUNNER: Final[ContextVar[Runner | None]] = ContextVar("awp_publish_runner", default=None)
"""The runner of functions in the present context; None means the thread pool."""


async def run_in_thread(function: Callable[[], T], otherwise: Runner = run_in_threadpool) -> T:
    """Call a function that may block. `otherwise` runs it if the context has no runner."""
    runner = RUNNER.get() or otherwise
    answer: T = await runner(function)
    return answer
