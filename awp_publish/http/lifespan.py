"""Runs our own contexts during the application's lifespan: opened after its startup, closed before its shutdown.

They are opened and closed in one task of their own, as task groups require. The application may handle its lifespan
messages in any task.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, TypeAlias

from awp_publish.http.exchange import AsgiApp, Message, Receive, Scope, Send
from awp_publish.http.tasks import wait_for_end

logger: Final = logging.getLogger("awp_publish")

Opened: TypeAlias = Callable[[], AbstractAsyncContextManager[object]]


async def run_lifespan(app: AsgiApp, scope: Scope, receive: Receive, send: Send, opened: Opened) -> None:
    """Pass a lifespan exchange on to the application, and keep the context `opened` open meanwhile.

    If the context cannot be opened, startup fails with its error, which is raised once the application is shut down
    again. An application without lifespan support raises, as it would without us; then the context is not opened.
    """
    exchange = _Lifespan(receive, send, opened)
    try:
        await app(scope, exchange.receive, exchange.send)
    finally:
        await exchange.keeper.close()
    if exchange.failure is not None:
        raise exchange.failure  # as Starlette does: its test client takes a lifespan that returns for one that runs


class Keeper:
    """Enters, holds and exits a context in one task, as task groups require."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Enter the context. Raises whatever that raises."""
        loop = asyncio.get_running_loop()
        self._is_open: asyncio.Future[None] = loop.create_future()
        self._is_over = asyncio.Event()
        task = self._task = loop.create_task(self._keep(), name="awp_publish lifespan")
        try:
            await asyncio.wait({task, self._is_open}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if not self._is_open.done():
            self._task = None
            await task

    async def _keep(self) -> None:
        try:
            async with self._opened():
                self._is_open.set_result(None)
                await self._is_over.wait()
        except Exception:
            if not self._is_open.done():
                raise
            logger.exception("a background task of the site has failed")  # the application continues

    async def close(self) -> None:
        """Exit the context, and return when that is done; nothing if it is not open."""
        task, self._task = self._task, None
        if task is None:
            return
        self._is_over.set()
        await wait_for_end(task)


class _Lifespan:
    """The application's side of the exchange: intercepts its lifespan messages."""

    def __init__(self, receive: Receive, send: Send, opened: Opened) -> None:
        self.keeper = Keeper(opened)
        self._receive = receive
        self._send = send
        self.failure: Exception | None = None

    async def receive(self) -> Message:
        if self.failure is not None:
            return {"type": "lifespan.shutdown"}
        message = await self._receive()
        if message["type"] == "lifespan.shutdown":
            await self.keeper.close()
        return message

    async def send(self, message: Message) -> None:
        if self.failure is not None:
            return  # the server has received `startup.failed` and expects no more messages
        if message["type"] == "lifespan.startup.complete":
            try:
                await self.keeper.open()
            except Exception as error:
                logger.exception("a background task of the site could not be started")
                self.failure = error
                message = {"type": "lifespan.startup.failed", "message": f"{type(error).__name__}: {error}"}
        await self._send(message)


class LaterDoors:
    """Opens doors while the application runs, because the site's actions have changed.

    They stay open until the application stops. Before it has started, they are opened with it.
    """

    def __init__(self) -> None:
        self._stop: asyncio.Event | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Let doors be opened, and close them at the end."""
        self._stop = stop = asyncio.Event()
        try:
            yield
        finally:
            self._stop = None
            stop.set()
            if self._tasks:
                await asyncio.wait(self._tasks)

    def open(self, doors: Iterable[Opened]) -> None:
        """Open doors, each in a task of its own. On the application's event loop."""
        if self._stop is None:
            return
        for opened in doors:
            task = asyncio.create_task(self._keep(opened, self._stop), name="awp_publish door")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    @staticmethod
    async def _keep(opened: Opened, stop: asyncio.Event) -> None:
        try:
            async with opened():
                await stop.wait()
        except Exception:
            logger.exception("a door that was opened while the application runs has failed")
