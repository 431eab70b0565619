"""Runs our own contexts during the application's lifespan: opened after its startup, closed before its shutdown.

They are opened and closed in one task of their own, as task groups require. The application may handle its lifespan
messages in any task.
"""

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Final, TypeAlias

from awp_publish.http.exchange import AsgiApp, Message, Receive, Scope, Send

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


# --- Ending streams at shutdown: a server waits for them before it sends `lifespan.shutdown` ---

LOOK_SECONDS: Final = 0.5
"""Seconds between two checks whether the server is about to stop."""


def is_stopping() -> bool:
    """Return True if uvicorn is about to stop. It waits for open responses before it sends `lifespan.shutdown`.

    It has no API for this, but its SIGTERM handler is a method of the server object. Other servers are not supported.
    """
    server = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    return getattr(server, "should_exit", False) is True


@contextmanager
def ended_by_stop(end: Callable[[], object]) -> Iterator[None]:
    """Call `end` in this event loop if the server begins to stop while the block runs."""
    loop = asyncio.get_running_loop()
    timers: list[asyncio.TimerHandle] = []

    def look() -> None:
        if is_stopping():
            end()
        else:
            timers[:] = [loop.call_later(LOOK_SECONDS, look)]

    timers.append(loop.call_later(LOOK_SECONDS, look))
    try:
        yield
    finally:
        timers[0].cancel()
        timers.clear()  # break the reference cycle with `look`


# --- Running an application without a server ---


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
        await _wait_for_end(task)


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
        except Exception:
            if self.started.done():
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


async def _wait_for_end(task: "asyncio.Task[None]") -> None:
    """Wait until a task has ended. If the waiting is cancelled, cancel the task and wait for its end."""
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task})
        raise


# --- Our own context ---


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
            logger.exception("what runs beside the application has failed")  # the application continues

    async def close(self) -> None:
        """Exit the context, and return when that is done; nothing if it is not open."""
        task, self._task = self._task, None
        if task is None:
            return
        self._is_over.set()
        await _wait_for_end(task)


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
                logger.exception("what runs beside the application could not be started")
                self._has_failed = True
                message = {"type": "lifespan.startup.failed", "message": f"{type(error).__name__}: {error}"}
        await self._send(message)


# --- Tasks with an owner ---


FINISH_SECONDS: Final = 10.0
"""Seconds that a task has to finish after its owner has ended, if `let_finish` was called for it."""


class OwnedTasks:
    """Tasks that are cancelled with their owner. Their exceptions are logged."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._finishing: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[object, object, None], name: str) -> "asyncio.Task[None]":
        """Start a task."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return task

    def let_finish(self, task: "asyncio.Task[None]") -> None:
        """Give a task that was started here FINISH_SECONDS to finish before it is cancelled with its owner."""
        self._finishing.add(task)

    async def cancel(self) -> None:
        """Cancel the tasks that still run, and wait for them."""
        for task in self._tasks - self._finishing:
            task.cancel()
        try:
            if finishing := self._tasks & self._finishing:
                await asyncio.wait(finishing, timeout=FINISH_SECONDS)
        finally:
            running = tuple(self._tasks)
            for task in running:
                task.cancel()
            if running:
                await asyncio.wait(running)

    def _forget(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        self._finishing.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logging.getLogger("awp_publish.calls").error("%s failed", task.get_name(), exc_info=error)
