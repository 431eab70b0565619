"""The stores that remember calls, behind one small protocol. Of all but the one in memory, plug-ins have the code.

`open_store` makes a store from a URL. It opens nothing: threads, files and connections are created at the first use,
because servers fork after they have imported the application.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from awp_publish.problems import DeclarationError, StoreUnavailable
from awp_publish.stores.memory import MemoryStore
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


_NO_OPENERS: Final[Mapping[str, Callable[[str, str], Store]]] = {}
REMEDY: Final = (
    'Use store="memory:", store="sqlite:///agents.db" (a file beside the application), '
    'store="sqlite:////var/lib/agents.db" (an absolute path), store="redis://host:6379/0" '
    'or store="postgresql://user@host/database".'
)


def open_store(url: str, namespace: str, openers: Mapping[str, Callable[[str, str], Store]] = _NO_OPENERS) -> Store:
    """Return the store that a URL names; `namespace` separates sites that share it. Raises DeclarationError.

    `openers` open the stores of plug-ins, by the scheme of their URLs. The error never repeats the URL, because it may
    contain a password.
    """
    if url in ("memory:", "memory://"):
        return MemoryStore()
    if (opens := openers.get(url.partition(":")[0])) is not None:
        return opens(url, namespace)
    raise DeclarationError("site", "store= is not the URL of a store that is known here.", REMEDY)
