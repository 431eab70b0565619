"""The stores that remember calls, behind one small protocol. Of all but the one in memory, plug-ins have the code."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final, cast

from awp_publish.problems import DeclarationError, StoreUnavailable
from awp_publish.stores.memory import MemoryStore as MemoryStore
from awp_publish.stores.store import (
    Add as Add,
    Count as Count,
    Counted as Counted,
    Look as Look,
    Ran as Ran,
    Reserve as Reserve,
    Schedule as Schedule,
    Seen as Seen,
    Step as Step,
    Store as Store,
    Swap as Swap,
    Unschedule as Unschedule,
    unavailable,
)

logger: Final = logging.getLogger("awp_publish.stores")

DEFAULT_TIMEOUT: Final = 5.0
"""Seconds that one method of a custom store may take. The built-in stores have their own timeouts."""


def read_store(name: str, store: object) -> Store:
    """Return a store that a site or a plug-in has made. Raises DeclarationError for what lacks a part of one."""
    lacking = [part for part in ("is_shared", "run", "take", "close") if not hasattr(store, part)]
    if not lacking and not isinstance(store, type):
        return cast(Store, store)
    why = f"it has no {', '.join(lacking)}" if lacking else "it is a class"
    raise DeclarationError("site", f"{name} is not a store: {why}.", 'Write "sqlite:///agents.db" or "redis://...".')


class ForeignStore:
    """Wraps a site's own store, so that whatever goes wrong in it is StoreUnavailable."""

    def __init__(self, store: Store, timeout: float = DEFAULT_TIMEOUT) -> None:
        self._store = store
        self._timeout = timeout

    @property
    def is_shared(self) -> bool:
        return self._store.is_shared

    async def run(self, steps: Sequence[Step], *, durable: bool = False) -> Ran:
        async with self._in_bounds():
            return await self._store.run(steps, durable=durable)

    async def take(self, queue: str, lease: float, most: int) -> tuple[str, ...]:
        async with self._in_bounds():
            return await self._store.take(queue, lease, most)

    async def close(self) -> None:
        await self._store.close()

    @asynccontextmanager
    async def _in_bounds(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._timeout):
                yield
        except StoreUnavailable as problem:
            raise unavailable(problem.detail) from problem
        except Exception as error:
            logger.exception("the store failed")
            raise unavailable("The site's store failed.") from error
