"""Changes of what one public address of a site publishes, at this worker and at others.

Workers notify each other through the site's store if it is shared, also when one starts whose documents are others than
those of the last: while a new version is deployed.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from hashlib import sha256
from typing import Final

from awp_publish.plugin import Context
from awp_publish.problems import StoreUnavailable
from awp_publish.stores.store import Store
from awp_publish.stores.values import read_value, replacement

LOOK_SECONDS: Final = 2.0
"""Seconds between two polls for changes that other workers have published."""

KEPT_SECONDS: Final = 86_400.0


class Changes:
    """The changes of one address: `version` counts them, `is_elsewhere` says that another worker made the last one."""

    def __init__(self, door: Context) -> None:
        self._door = door
        self._store: Store = door.guards.store
        self._key = f"mcp-changed:{door.catalog.absolute('/')}"
        self.version = 0
        self.is_elsewhere = False
        self.is_closing = False
        self._listening: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._digested: tuple[int, dict[str, str]] = (-1, {})
        self._unwritten: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
        door.site.change_listeners.append(self.tell)

    @contextmanager
    def waking(self, woken: asyncio.Event) -> Iterator[None]:
        """Set an event at each change, and when the application stops, while the context is open."""
        self._listening[woken] = asyncio.get_running_loop()
        try:
            yield
        finally:
            del self._listening[woken]

    def tell(self) -> None:
        """Note a change, here and at other workers. May be called from any thread."""
        self._note(is_elsewhere=False)
        if self._unwritten is not None:
            loop, event = self._unwritten
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(event.set)

    def digests(self) -> dict[str, str]:
        """Return the digest of every document by its address, computed once for each change."""
        version, digests = self._digested
        if version != self.version:
            version = self.version
            digests = {
                self._door.catalog.absolute(path): document.encodings.digest
                for documents in self._door.documents()
                for path, document in documents.items()
            }
            self._digested = version, digests
        return digests

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Exchange changes with other workers while the application runs."""
        self.is_closing = False
        unwritten = asyncio.Event()
        task: asyncio.Task[None] | None = None
        if self._store.is_shared:
            self._unwritten = (asyncio.get_running_loop(), unwritten)
            task = asyncio.create_task(self._exchange(unwritten), name="awp_publish changes")
        try:
            yield
        finally:
            self._unwritten, self.is_closing = None, True
            self._wake()
            if task is not None:
                task.cancel()
                await asyncio.wait({task})

    def _note(self, *, is_elsewhere: bool) -> None:
        self.version += 1
        self.is_elsewhere = is_elsewhere
        self._wake()

    def _wake(self) -> None:
        for woken, loop in tuple(self._listening.items()):
            with suppress(RuntimeError):  # the listener's loop has ended
                loop.call_soon_threadsafe(woken.set)

    async def _exchange(self, unwritten: asyncio.Event) -> None:
        seen: bytes | None = None
        has_looked = False
        while True:
            try:
                now = await read_value(self._store, self._key)
                if has_looked and now != seen and now is not None:
                    self._note(is_elsewhere=True)
                published = sha256(repr(sorted(self.digests().items())).encode()).digest()
                if not has_looked and (now is None or now[8:] != published):
                    unwritten.set()
                seen, has_looked = now, True
                if unwritten.is_set():
                    new = secrets.token_bytes(8) + published
                    step = replacement(self._key, now, new, KEPT_SECONDS)
                    if (await self._store.run((step,))).failed is not None:
                        continue
                    seen = new
                    unwritten.clear()
            except StoreUnavailable:  # `unwritten` is still set, so the wait below would return at once
                await asyncio.sleep(LOOK_SECONDS)
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await unwritten.wait()
