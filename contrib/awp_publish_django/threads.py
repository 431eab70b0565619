"""What a server of WSGI does to threads: gevent, where only one greenlet may wait, and eventlet, which is refused."""

import sys
from collections import deque
from queue import Empty, SimpleQueue
from typing import Final, Generic, TypeVar

from awp_publish.stores.threads import is_gevent

T = TypeVar("T")


def is_eventlet() -> bool:
    """Return True if eventlet has replaced threads. It is not supported: no other thread can wake its loop."""
    patcher = sys.modules.get("eventlet.patcher")
    return patcher is not None and bool(patcher.is_monkey_patched("thread"))


EVENTLET: Final = (
    "eventlet replaces threads, and agents' calls need threads of the operating system. "
    "Serve the project with gunicorn's worker class gthread or gevent, or under ASGI."
)


class Mailbox(Generic[T]):
    """A queue filled by other threads and read by the thread that made it; with gevent, only that greenlet waits."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[T] | None = None
        if is_gevent():
            self._items: deque[T] = deque()
            self._loop = sys.modules["gevent"].get_hub().loop
            self._arrived = sys.modules["gevent.event"].Event()
        else:
            self._queue = SimpleQueue()

    def put(self, item: T) -> None:
        """Append an item. May be called from any thread."""
        if self._queue is not None:
            self._queue.put(item)
        else:
            self._items.append(item)
            self._loop.run_callback_threadsafe(self._arrived.set)

    def get(self) -> T:
        """Return the next item, waiting for one if necessary."""
        if self._queue is not None:
            return self._queue.get()
        while True:
            try:
                return self._items.popleft()
            except IndexError:
                self._arrived.wait()
                self._arrived.clear()

    def get_nowait(self) -> T:
        """Return the next item. Raises Empty if there is none."""
        if self._queue is not None:
            return self._queue.get_nowait()
        try:
            return self._items.popleft()
        except IndexError:
            raise Empty from None
