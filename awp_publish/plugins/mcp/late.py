"""Opens the MCP door with its first request: the official SDK takes half a second and 28 MB to import.

Only for a site in one process. Where several processes share a store, each opens its door at start-up, because it
tells the others of changes, and carries webhooks, that have nothing to do with its own requests.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from threading import Lock

from awp_publish.http.exchange import Receive, Scope, Send
from awp_publish.http.lifespan import Keeper
from awp_publish.plugin import Answer, Context, Endpoints


@dataclass(eq=False)
class _Lifespan:
    """One run of the application, in one event loop."""

    keeper: Keeper
    is_open: bool = False
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class LateDoor:
    """Answers at the address of the MCP endpoint, and opens the door for the first request there."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._path = context.catalog.paths.mcp
        self._lock = Lock()
        self._door: Endpoints | None = None
        self._lifespans: dict[asyncio.AbstractEventLoop, _Lifespan] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to the door."""
        door = self._door if self._door is not None else await asyncio.to_thread(self._open)
        lifespan = self._lifespans.get(asyncio.get_running_loop())
        if lifespan is not None and not lifespan.is_open:
            async with lifespan.turn:
                await self._enter(lifespan)
        answer: Answer = door.exact[self._path]
        await answer(scope, receive, send)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the door while the application runs, from its first request on."""
        loop = asyncio.get_running_loop()
        lifespan = self._lifespans[loop] = _Lifespan(Keeper(self._run))
        try:
            if self._door is not None:
                await self._enter(lifespan)
            yield
        finally:
            del self._lifespans[loop]
            await lifespan.keeper.close()

    def _open(self) -> Endpoints:
        with self._lock:
            if self._door is not None:
                return self._door
            from awp_publish.plugins.mcp.door import open_door

            door = self._door = open_door(self._context)
            return door

    def _run(self) -> AbstractAsyncContextManager[object]:
        door = self._open()
        assert door.running is not None
        return door.running()

    async def _enter(self, lifespan: _Lifespan) -> None:
        if not lifespan.is_open:
            await lifespan.keeper.open()
            lifespan.is_open = True
