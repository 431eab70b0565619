"""A store of the site's own, kept in bounds: one that hangs or breaks costs a call seconds, and never its answer."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from awp_publish.problems import StoreUnavailable
from awp_publish.stores.steps import unavailable
from awp_publish.stores.store import Ran, Step, Store

logger: Final = logging.getLogger("awp_publish.stores")

PATIENCE: Final = 5.0
"""Seconds that one verb may take. Our own stores keep their time themselves."""


class ForeignStore:
    """Somebody else's store as one of ours: whatever goes wrong in it is StoreUnavailable."""

    def __init__(self, store: Store, patience: float = PATIENCE) -> None:
        self._store = store
        self._patience = patience

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
            async with asyncio.timeout(self._patience):
                yield
        except StoreUnavailable as problem:
            raise unavailable(problem.detail) from problem
        except Exception as error:
            logger.exception("the store failed")
            raise unavailable("The site's store failed.") from error
