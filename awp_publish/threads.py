"""Where synchronous functions of a site are called, so that the event loop goes on: in a pool of threads, or elsewhere.

A framework may have a better place: Django keeps a database connection, and a test's transaction, for each thread.
"""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Final, TypeAlias, TypeVar

from starlette.concurrency import run_in_threadpool

T = TypeVar("T")

Runner: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Calls a function where it may block, and gives its answer. Raises what it raises."""

RUNNER: Final[ContextVar[Runner | None]] = ContextVar("awp_publish_runner", default=None)
"""Where functions are called in the present context; None is a pool of threads."""


async def run_in_thread(function: Callable[[], T], otherwise: Runner = run_in_threadpool) -> T:
    """Call a function that may block. `otherwise` is the pool where nobody has set another place."""
    runner = RUNNER.get() or otherwise
    answer: T = await runner(function)
    return answer
