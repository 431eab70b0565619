"""Threads of the operating system, even if gevent has patched those of Python.

gevent replaces threads, locks and queues with its own, all of which live in one operating system thread. An event loop
in that thread would run beneath every greenlet, where Django refuses database access, and a blocking store would stop
all greenlets. Code that needs a real thread, and whatever connects such threads with others, therefore uses the
unpatched originals.
"""

import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


def is_gevent() -> bool:
    """Return True if gevent has replaced threads with greenlets."""
    monkey = sys.modules.get("gevent.monkey")
    return monkey is not None and bool(monkey.is_module_patched("threading"))


def make_lock() -> threading.Lock:
    """Make a lock between threads of the operating system, to be held only briefly."""
    lock: threading.Lock = _original("_thread", "allocate_lock")()
    return lock


def make_queue() -> "SimpleQueue[Any]":
    """Make a queue on which threads of the operating system wait."""
    queue: SimpleQueue[Any] = _original("queue", "SimpleQueue")()
    return queue


def pause(seconds: float) -> None:
    """Block the real thread, even if gevent has patched `time.sleep`."""
    _original("time", "sleep")(seconds)


def _original(module: str, name: str) -> Any:
    if is_gevent():
        return sys.modules["gevent.monkey"].get_original(module, name)
    return {"allocate_lock": threading.Lock, "SimpleQueue": SimpleQueue, "sleep": time.sleep}[name]


class Thread:
    """A thread of the operating system that starts at once and, as a daemon, does not keep the process alive."""

    def __init__(self, target: Callable[[], object], name: str) -> None:
        self._thread: threading.Thread | None = None
        if is_gevent():
            self._is_running = make_lock()
            self._is_running.acquire()

            def run() -> None:
                try:
                    target()
                finally:
                    self._is_running.release()

            _original("_thread", "start_new_thread")(run, ())
        else:
            self._thread = threading.Thread(target=target, name=name, daemon=True)
            self._thread.start()

    def join(self, timeout: float = -1) -> None:
        """Wait until the thread ends, at most `timeout` seconds if it is not negative."""
        if self._thread is not None:
            self._thread.join(None if timeout < 0 else timeout)
        elif self._is_running.acquire(timeout=timeout):
            self._is_running.release()


class ThreadsOfTheirOwn(ThreadPoolExecutor):
    """Runs each function in an operating system thread of its own, or all in the same one, in order, if `is_single`.

    With gevent, what an event loop runs in threads would otherwise be a greenlet of the loop's own thread.
    """

    def __init__(self, *, is_single: bool = False) -> None:
        super().__init__(1)  # the executor's own thread never starts
        self._orders: SimpleQueue[Callable[[], None]] | None = make_queue() if is_single else None
        self._is_started = False
        self._starting = make_lock()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Run `fn(*args, **kwargs)`."""
        future: Future[Any] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        orders = self._orders
        if orders is None:
            Thread(run, "awp_publish function")
            return future

        def work() -> None:
            while True:
                orders.get()()

        orders.put(run)
        with self._starting:
            started, self._is_started = self._is_started, True
        if not started:
            Thread(work, "awp_publish functions")
        return future
