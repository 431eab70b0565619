"""Runs an application without a server."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from awp_publish.http.exchange import AsgiApp, Message
from awp_publish.http.tasks import wait_for_end

logger: Final = logging.getLogger("awp_publish")

INSPECTED: Final = "awp_publish.inspected"
"""The extension of the lifespan of an application that a command only reads: no jobs run, and no events are sent."""


class StartFailed(Exception):
    """The application's startup failed; the message is the application's own."""


@asynccontextmanager
async def running(app: AsgiApp, extensions: Mapping[str, object] | None = None) -> AsyncIterator[Mapping[str, object]]:
    """Run an application's lifespan as a server does, and yield the lifespan `state` for its requests.

    `extensions` go into the lifespan's scope (ASGI specification, Extensions). An application without lifespan support
    runs without. Raises StartFailed.
    """
    server = _Server(extensions or {})
    task = asyncio.create_task(server.serve(app), name="awp_publish application")
    try:
        await server.started
        yield server.state
    finally:
        server.is_over.set()
        await wait_for_end(task)


class _Server:
    """The server's side of a lifespan exchange."""

    def __init__(self, extensions: Mapping[str, object]) -> None:
        self._extensions = extensions
        self.state: dict[str, object] = {}
        self.started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.is_over = asyncio.Event()
        self._has_begun = False

    async def serve(self, app: AsgiApp) -> None:
        version = {"version": "3.0", "spec_version": "2.0"}
        scope = {"type": "lifespan", "asgi": version, "state": self.state, "extensions": self._extensions}
        try:
            await app(scope, self._receive, self._send)
        except Exception as error:
            if not self.started.done():
                pass
            elif (failure := self.started.exception()) is not None:
                failure.__cause__ = error
            else:
                logger.exception("the application's lifespan has failed")
        if not self.started.done():
            self.started.set_result(None)

    async def _receive(self) -> Message:
        if self._has_begun:
            await self.is_over.wait()
            return {"type": "lifespan.shutdown"}
        self._has_begun = True
        return {"type": "lifespan.startup"}

    async def _send(self, message: Message) -> None:
        if self.started.done():
            return
        if message["type"] == "lifespan.startup.failed":
            self.started.set_exception(StartFailed(message.get("message", "")))
        elif message["type"] == "lifespan.startup.complete":
            self.started.set_result(None)
