"""A WebSocket connection of a door: reading, writing and closing it.

Requests are handled concurrently. If MAX_PENDING are pending, no more are read until one is answered. The connection
is closed if the client does not read its answers for CLIENT_TIMEOUT seconds.
"""

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from contextlib import suppress
from typing import Final, NamedTuple, TypeAlias

from awp_publish.http.exchange import Message, Receive, Send
from awp_publish.http.tasks import OwnedTasks

logger: Final = logging.getLogger("awp_publish.calls")

Frame: TypeAlias = str | bytes

IDLE_SECONDS: Final = 900.0
"""Seconds without a message after which a session or a connection is closed."""

MAX_PENDING: Final = 64
"""Maximum pending requests of one connection."""

CLIENT_TIMEOUT: Final = 30.0
"""Seconds within which a client has to complete its handshake, and to read an answer."""

ADDRESS_SHARE: Final = 5
"""A known caller, or the unknown ones of one address, get a fifth of a process's sessions (`browsing.sessions`)."""

RESERVED_SHARE: Final = 5
"""A fifth of the sessions of a process is for known callers only."""


def room_for_unknown(sessions: int) -> int:
    """Return how many of a process's sessions all unknown callers may have together."""
    return sessions - sessions // RESERVED_SHARE


MAX_REFUSED: Final = 1000
"""Consecutive requests refused by the rate limit after which the connection is closed."""


class CloseReason(NamedTuple):
    """The reason for which the server closes a connection: a code (RFC 6455 section 7.4.1) and a text."""

    code: int
    words: str


GOING_AWAY: Final = CloseReason(1001, "The server is shutting down.")
_IDLE: Final = CloseReason(1001, "No message arrived for too long.")
_FLOOD: Final = CloseReason(1008, "Too many messages.")
_TOO_LARGE: Final = CloseReason(1009, "The message is too large.")
_UNREAD: Final = CloseReason(1008, "The client does not read its answers.")


class SocketConnection(ABC):
    """An accepted WebSocket connection: reads frames, and passes them to `take`.

    `rate` is the number of messages allowed per second, `idle` the number of seconds without one after which the
    connection is closed.
    """

    max_pending = MAX_PENDING
    no_handshake = CloseReason(1008, "The handshake is missing.")

    def __init__(self, receive: Receive, send: Send, max_bytes: int, idle: float, rate: int) -> None:
        self._receive = receive
        self._send = send
        self.max_bytes = max_bytes
        self._idle = idle
        self._rate = rate
        self._tokens = 2.0 * rate  # a token bucket, with a burst of two seconds' messages
        self._filled = time.monotonic()
        self._refused = 0
        self._greet_by = 0.0
        self._room = asyncio.Semaphore(self.max_pending)
        self._writing = asyncio.Lock()
        self._pending = OwnedTasks()
        self._waiting: asyncio.Timeout | None = None
        self._closing: CloseReason | None = None

    @property
    @abstractmethod
    def is_greeted(self) -> bool:
        """True if the client has completed the handshake of its protocol."""

    @abstractmethod
    async def take(self, frame: Frame, retry_after_ms: int | None) -> None:
        """Handle a frame. If `retry_after_ms` is given, refuse it: it exceeds the rate limit."""

    @abstractmethod
    async def refuse_large(self, frame: Frame) -> None:
        """Answer a frame that is larger than `max_bytes`. The connection is closed afterwards."""

    @abstractmethod
    def leave(self) -> None:
        """Release the client's resources: it has disconnected."""

    async def serve(self) -> None:
        """Handle frames until either end closes. Afterwards no task of this client is left running."""
        self._greet_by = asyncio.get_running_loop().time() + CLIENT_TIMEOUT
        try:
            while (frame := await self._read()) is not None:
                if len(frame) > self.max_bytes:
                    await self.refuse_large(frame)
                    self._closing = _TOO_LARGE
                    continue
                now = time.monotonic()
                self._tokens = min(2.0 * self._rate, self._tokens + (now - self._filled) * self._rate)
                self._filled = now
                if self._tokens >= 1.0:
                    self._tokens -= 1.0
                    await self.take(frame, None)
                    continue
                self._refused += 1
                if self._refused >= MAX_REFUSED:
                    self._closing = _FLOOD
                    continue
                await self.take(frame, round((1.0 - self._tokens) / self._rate * 1000) + 1)
            if self._closing is not None:
                code, words = self._closing
                with suppress(TimeoutError):  # a client that does not read its answers will not read this either
                    async with asyncio.timeout(1.0):
                        await self._send({"type": "websocket.close", "code": code, "reason": words})
        except OSError:
            pass  # the client has disconnected
        finally:
            self.leave()
            await self._pending.cancel()

    def close(self, reason: CloseReason) -> None:
        """Close this connection as soon as possible."""
        self._closing = self._closing or reason
        if self._waiting is not None and not self._waiting.expired():
            self._waiting.reschedule(asyncio.get_running_loop().time())

    async def start(self, work: Coroutine[object, object, None], name: str) -> None:
        """Handle a request in a task, after waiting until fewer than `max_pending` are pending."""
        self._refused = 0
        await self._room.acquire()
        task = self._pending.start(work, name)
        task.add_done_callback(lambda _: self._room.release())

    async def write(self, frame: Message) -> None:
        """Send a frame, in order. Raises OSError if the client has disconnected."""
        try:
            async with self._writing, asyncio.timeout(CLIENT_TIMEOUT):
                await self._send(frame)
        except TimeoutError:
            self.close(_UNREAD)

    async def _read(self) -> Frame | None:
        """Return the next frame, None if the connection is closed.

        The handshake has one deadline, even if other messages come before it. Afterwards, the idle timeout applies.
        """
        while self._closing is None:
            until = asyncio.get_running_loop().time() + self._idle if self.is_greeted else self._greet_by
            try:
                async with asyncio.timeout_at(until) as self._waiting:
                    message = await self._receive()
            except TimeoutError:
                if not self.is_greeted:
                    self._closing = self._closing or self.no_handshake
                elif not self._pending:  # a client that waits for answers is not idle
                    self._closing = self._closing or _IDLE
                continue
            finally:
                self._waiting = None
            if message["type"] == "websocket.disconnect":
                return None
            text: str | None = message.get("text")
            packed: bytes | None = message.get("bytes")
            return text if text is not None else packed or b""
        return None
