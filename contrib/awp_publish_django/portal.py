"""An event loop for WSGI: one thread in each process runs the doors, and the threads of requests talk to it.

What belongs to a request's own thread (its view, its database connection) is sent back to that thread, which runs it
while it waits for the answer, so that a synchronous view has the same connection as the middleware around it.
"""

import asyncio
import atexit
import os
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass
from functools import partial
from queue import Empty
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from asgiref.sync import SyncToAsync, sync_to_async
from django.db import close_old_connections, connections

from awp_publish.calls.threads import RUNNER
from awp_publish.http.exchange import AsgiApp, Message, Receive, Send
from awp_publish.http.running import running
from awp_publish.stores.threads import Thread, ThreadsOfTheirOwn, is_gevent, make_lock
from awp_publish_django.gateway import Sent
from awp_publish_django.threads import Mailbox

T = TypeVar("T")

JOIN_TIMEOUT: Final = 5.0
"""Seconds that the end of a process waits for the loop's thread."""

Changes: TypeAlias = list[tuple[ContextVar[Any], object]]


@dataclass(frozen=True, slots=True, eq=False)
class ThreadCall(Generic[T]):
    """A function that a request's thread calls for its coroutine. `changes` are those of the context since it began."""

    function: Callable[[], T]
    answer: "asyncio.Future[T]"
    changes: Changes

    def run(self) -> None:
        """Call it in this thread, in a context of its own, so that nothing leaks into the next request."""
        if self.answer.done():
            return  # it timed out or was cancelled before it began

        def run() -> T:
            _THREAD_CALL.set(self)
            for variable, value in self.changes:
                variable.set(value)
            return self.function()

        settle: Callable[[], None]
        try:
            settle = partial(self.answer.set_result, copy_context().run(run))
        except Exception as error:
            settle = partial(self.answer.set_exception, error)
        _call_on_loop(self.answer.get_loop(), lambda: None if self.answer.done() else settle())


_THREAD_CALL: Final[ContextVar[ThreadCall[Any] | None]] = ContextVar("awp_publish_thread_call", default=None)


def is_wanted() -> bool:
    """Return True if anybody still waits for what this thread does: threads cannot be cancelled, but they can ask."""
    call = _THREAD_CALL.get()
    return call is None or not call.answer.done()


def _call_on_loop(loop: asyncio.AbstractEventLoop, function: Callable[[], object]) -> None:
    with suppress(RuntimeError):  # the loop was closed: the process ends
        loop.call_soon_threadsafe(function)


class Conversation:
    """One request, answered on the loop, with calls back into its own thread."""

    def __init__(self, body: bytes = b"") -> None:
        self._sent = Sent(body)
        self._events: Mailbox[ThreadCall[Any] | Message | None] = Mailbox()
        self._entry: Context | None = None
        self._lock = make_lock()
        self._is_over = False

    async def in_thread(self, function: Callable[[], T]) -> T:
        """Call a function in the request's thread, with what the context has become since the request came in.

        If the caller has disconnected, that thread is gone too: the function gets a thread of its own.
        """
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        entry = self._entry or Context()
        now = copy_context().items()
        changes = [(variable, value) for variable, value in now if entry.get(variable, _ABSENT) is not value]
        with self._lock:
            is_over = self._is_over
            self._events.put(ThreadCall(function, answer, changes))
        if is_over:
            self._run_leftovers()
        return await answer

    def messages(
        self, app: Callable[[Receive, Send], Awaitable[None]], loop: asyncio.AbstractEventLoop
    ) -> Iterator[Message]:
        """The ASGI messages that `app(receive, send)` sends from the loop. Raises what it raises.

        When this generator is closed early, `receive` returns a disconnect.
        """
        self._entry = copy_context()
        future = asyncio.run_coroutine_threadsafe(self._run(app), loop)
        _CONVERSATIONS.add(future)
        future.add_done_callback(_CONVERSATIONS.discard)
        future.add_done_callback(lambda _: self._events.put(None))
        try:
            while (event := self._events.get()) is not None:
                if isinstance(event, ThreadCall):
                    event.run()
                else:
                    yield event
            future.result()
        finally:
            with self._lock:
                self._is_over = True
            _call_on_loop(loop, self._sent.disconnect)
            self._run_leftovers()

    async def _run(self, app: Callable[[Receive, Send], Awaitable[None]]) -> None:
        RUNNER.set(self.in_thread)
        try:
            await app(self._sent.receive, self._send)
        finally:  # in the thread where async functions ask databases, for whose end nobody waits
            ending = sync_to_async(close_old_connections)()
            closing = asyncio.get_running_loop().create_task(ending, context=Context())
            _CLOSING.add(closing)
            closing.add_done_callback(_CLOSING.discard)

    async def _send(self, message: Message) -> None:
        if not self._is_over:
            self._events.put(message)

    def _run_leftovers(self) -> None:
        """Make the calls that the request's thread has not made, each in a thread of its own."""

        def run_alone(call: ThreadCall[Any]) -> None:
            try:
                call.run()
            finally:
                connections.close_all()

        with suppress(Empty):
            while True:
                event = self._events.get_nowait()
                if isinstance(event, ThreadCall):
                    Thread(partial(run_alone, event), "awp_publish call")


_ABSENT: Final = object()
_CONVERSATIONS: Final[set["Future[None]"]] = set()
_CLOSING: Final[set["asyncio.Task[None]"]] = set()
"""Tasks under way, held here so that one whose caller has disconnected is not garbage-collected."""


class _Running(NamedTuple):
    loop: asyncio.AbstractEventLoop
    stop: asyncio.Event
    thread: Thread


class Portal:
    """The loop's thread, started by the first request of a process; servers fork after they have imported us.

    `app` is kept running on it as an ASGI server does (its lifespan), for WSGI knows none.
    """

    def __init__(self, app: AsgiApp) -> None:
        self._app = app
        self._running: _Running | None = None
        _PORTALS.add(self)

    def loop(self) -> asyncio.AbstractEventLoop:
        """The running loop. Raises StartFailed when the application does not start."""
        return (self._running or self._start()).loop

    def _start(self) -> _Running:
        # Made where it is needed: after gevent has made locks into its own, by which greenlets wait for each other.
        with self.__dict__.setdefault("_lock", threading.Lock()):
            if self._running is None:
                ready: Mailbox[tuple[asyncio.AbstractEventLoop, asyncio.Event] | BaseException] = Mailbox()
                thread = Thread(partial(self._live, ready), "awp_publish loop")
                begun = ready.get()
                if isinstance(begun, BaseException):
                    raise begun
                self._running = _Running(*begun, thread)
                atexit.register(self.close)
            return self._running

    def _live(self, ready: "Mailbox[tuple[asyncio.AbstractEventLoop, asyncio.Event] | BaseException]") -> None:
        begun = False

        async def keep_running() -> None:
            nonlocal begun
            loop, stop = asyncio.get_running_loop(), asyncio.Event()
            if is_gevent():  # what runs beside the loop would be greenlets in its thread, and asks databases
                loop.set_default_executor(ThreadsOfTheirOwn())
                # Private, and only under gevent: asgiref does not ask which thread shall make asynchronous queries.
                SyncToAsync.single_thread_executor = ThreadsOfTheirOwn(is_single=True)
            async with running(self._app):
                begun = True
                ready.put((loop, stop))
                await stop.wait()

        try:
            asyncio.run(keep_running())
        except BaseException as error:
            if not begun:
                ready.put(error)
            elif self._running is not None or not isinstance(error, RuntimeError):
                raise
            # Else the process ends: what ran has been stopped. Python 3.12 starts no thread any more then, in which
            # asyncio would wait for those of its pool.

    def close(self) -> None:
        """Stop the application and the loop, if they run in this process."""
        running_here, self._running = self._running, None
        if running_here is not None:
            atexit.unregister(self.close)
            _call_on_loop(running_here.loop, running_here.stop.set)
            running_here.thread.join(JOIN_TIMEOUT)

    def forget(self) -> None:
        """Start anew in the child of a fork: the thread is the parent's, and whoever holds the lock is not here."""
        self._running = None
        self.__dict__.pop("_lock", None)


_PORTALS: Final[weakref.WeakSet[Portal]] = weakref.WeakSet()


def _after_fork() -> None:
    for portal in _PORTALS:
        portal.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
