"""Runs our own contexts during the application's lifespan: opened after its startup, closed before its shutdown.

They are opened and closed in one task of their own, as task groups require. The application may handle its lifespan
messages in any task.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, TypeAlias

from awp_publish.http.exchange import AsgiApp, Message, Receive, Scope, Send
from awp_publish.http.tasks import wait_for_end

logger: Final = logging.getLogger("awp_publish")

Opened: TypeAlias = Callable[[], AbstractAsyncContextManager[object]]


async def run_lifespan(app: AsgiApp, scope: Scope, receive: Receive, send: Send, opened: Opened) -> None:
    """Pass a lifespan exchange on to the application, and keep the context `opened` open meanwhile.

    If the context cannot be opened, startup fails with its error, and the application is shut down again. An
    application without lifespan support raises, as it would without us; then the context is not opened.
    """
    exchange = _Lifespan(receive, send, opened)
    try:
        await app(scope, exchange.receive, exchange.send)
    finally:
        await exchange.keeper.close()


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
        self._has_failed = False

    async def receive(self) -> Message:
        if self._has_failed:
            return {"type": "lifespan.shutdown"}
        message = await self._receive()
        if message["type"] == "lifespan.shutdown":
            await self.keeper.close()
        return message

    async def send(self, message: Message) -> None:
        if self._has_failed:
            return  # the server has received `startup.failed` and expects no more messages
        if message["type"] == "lifespan.startup.complete":
            try:
                await self.keeper.open()
            except Exception as error:
                logger.exception("a background task of the site could not be started")
                self._has_failed = True
                message = {"type": "lifespan.startup.failed", "message": f"{type(error).__name__}: {error}"}
        await self._send(message)
