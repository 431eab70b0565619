"""One WebSocket of the AWP door: it reads frames, has them answered, writes the answers, whatever the other end does.

Requests are answered as soon as they can be; several may be under way. No more than PENDING wait at a time: then
nothing is read until one of them is answered. A client that does not read its answers for PATIENCE is left.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from awp_publish.browsing.errors import AwpError
from awp_publish.model import JsonObject
from awp_publish.problems import Problem
from awp_publish.serve.awp_conversation import HELLO, Conversation
from awp_publish.serve.awp_messages import (
    Frame,
    Request,
    Unreadable,
    read_request,
    tell_error,
    tell_result,
    write_frame,
)
from awp_publish.serve.awp_refusals import tell_problem
from awp_publish.serve.exchange import Telling
from awp_publish.serve.reply import Receive, Send

logger: Final = logging.getLogger("awp_publish.calls")

PENDING: Final = 64
"""Requests of one connection that are under way at a time."""

PATIENCE: Final = 30.0
"""Seconds in which a client has to complete its handshake, whatever else it sends, and to take an answer."""

STRIKES: Final = 1000
"""Requests in a row that are refused as too many, before the connection is closed."""


class Ending(NamedTuple):
    """Why a connection is closed from this side: a code of RFC 6455 section 7.4.1, and words."""

    code: int
    reason: str


GOING_AWAY: Final = Ending(1001, "The server stops.")
_IDLE: Final = Ending(1001, "Nothing was said for too long.")
_SILENT: Final = Ending(1008, "There was no awp.hello.")
_FLOOD: Final = Ending(1008, "Too many messages.")
_TOO_LARGE: Final = Ending(1009, "The message is too large.")
_UNREAD: Final = Ending(1008, "Answers are not read.")


class Pace:
    """Messages per second: as many at once as two seconds are worth (a token bucket)."""

    __slots__ = ("_left", "_rate", "_seen")

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._left = 2.0 * rate
        self._seen = time.monotonic()

    def take(self) -> float:
        """One message: 0 if it is in time, else the seconds until one will be."""
        now = time.monotonic()
        self._left = min(2.0 * self._rate, self._left + (now - self._seen) * self._rate)
        self._seen = now
        if self._left < 1.0:
            return (1.0 - self._left) / self._rate
        self._left -= 1.0
        return 0.0


class Connection:
    """One client's WebSocket, once it is accepted."""

    def __init__(
        self, conversation: Conversation, telling: Telling, receive: Receive, send: Send, most_bytes: int, idle: float
    ) -> None:
        self._conversation = conversation
        self._telling = telling
        self._receive = receive
        self._send = send
        self._most_bytes = most_bytes
        self._idle = idle
        self._pace = Pace(conversation.desk.browsing.messages_per_second)
        self._greeted_by = 0.0
        self._strikes = 0
        self._room = asyncio.Semaphore(PENDING)
        self._writing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: asyncio.Timeout | None = None
        self._ending: Ending | None = None

    async def serve(self) -> None:
        """Talk until either end has enough. Whatever happens, nothing of this client goes on after it."""
        self._greeted_by = asyncio.get_running_loop().time() + PATIENCE
        try:
            while (frame := await self._read()) is not None:
                await self._take(frame)
            if self._ending is not None:
                await self._close(self._ending)
        except OSError:
            pass  # the other end is gone, as servers tell who write to it
        finally:
            self._conversation.leave()
            await self._end_tasks()

    def end(self, ending: Ending) -> None:
        """Close this connection as soon as it can be."""
        self._ending = self._ending or ending
        if self._waiting is not None and not self._waiting.expired():
            self._waiting.reschedule(asyncio.get_running_loop().time())

    # --- Reading ---

    async def _read(self) -> Frame | None:
        """The next frame, None when there will be none."""
        while self._ending is None:
            try:
                async with asyncio.timeout_at(self._read_until()) as self._waiting:
                    message = await self._receive()
            except TimeoutError:
                if self._conversation.identity is None:
                    self._ending = self._ending or _SILENT
                elif not self._tasks:
                    self._ending = self._ending or _IDLE
                continue
            finally:
                self._waiting = None
            if message["type"] == "websocket.disconnect":
                return None
            text: str | None = message.get("text")
            packed: bytes | None = message.get("bytes")
            return text if text is not None else packed or b""
        return None

    def _read_until(self) -> float:
        """The handshake has one deadline, however many other messages come before it; then each message has its own."""
        if self._conversation.identity is None:
            return self._greeted_by
        return asyncio.get_running_loop().time() + self._idle

    async def _take(self, frame: Frame) -> None:
        """Have a frame answered. The handshake is waited for, since all that follows depends on it."""
        if len(frame) > self._most_bytes:
            error = AwpError("INVALID_REQUEST", "The message is too large.", {"max_bytes": self._most_bytes})
            await self._write(tell_error("", error), is_packed=isinstance(frame, bytes))
            self._ending = _TOO_LARGE
            return
        seconds = self._pace.take()
        if seconds and self._is_flood():
            return
        try:
            request = read_request(frame)
        except Unreadable as error:
            await self._write(tell_error(error.request_id, error), is_packed=isinstance(frame, bytes))
            return
        if seconds:
            await self._slow_down(request, seconds)
            return
        self._strikes = 0
        if request.method == HELLO:
            await self._answer(request)
            return
        await self._room.acquire()
        task = asyncio.create_task(self._answer(request), name=f"awp_publish {request.method[:50]}")
        self._tasks.add(task)
        task.add_done_callback(self._forget)

    def _is_flood(self) -> bool:
        """Whether there were too many messages too often, whatever they said."""
        self._strikes += 1
        if self._strikes >= STRIKES:
            self._ending = _FLOOD
        return self._strikes >= STRIKES

    async def _slow_down(self, request: Request, seconds: float) -> None:
        milliseconds = round(seconds * 1000) + 1
        error = AwpError("RATE_LIMITED", "There were too many messages.", {"retry_after_ms": milliseconds})
        await self._write(tell_error(request.id, error, request), is_packed=request.is_packed)

    # --- Answering ---

    async def _answer(self, request: Request) -> None:
        try:
            told = tell_result(request, await self._conversation.answer(request))
        except AwpError as error:
            told = tell_error(request.id, error, request)
        except Problem as problem:
            told = tell_error(request.id, tell_problem(problem, self._telling, request.trace), request)
        except Exception:
            logger.exception("the AWP door failed (request_id=%s)", request.trace)
            told = tell_error(request.id, _failure(request), request)
        with suppress(OSError):  # nobody is there to be told; reading ends as well
            await self._write(told, is_packed=request.is_packed, request=request)
            while self._conversation.events:
                await self._write(self._conversation.events.pop(0), is_packed=request.is_packed)

    async def _write(self, message: Mapping[str, object], *, is_packed: bool, request: Request | None = None) -> None:
        try:
            frame = write_frame(message, is_packed=is_packed)
        except (TypeError, ValueError, OverflowError):
            logger.exception("an answer of the AWP door cannot be written")
            failure = tell_error(str(message.get("id", "")), _failure(request), request)
            frame = write_frame(failure, is_packed=is_packed)
        try:
            async with self._writing, asyncio.timeout(PATIENCE):
                await self._send(frame)
        except TimeoutError:
            self.end(_UNREAD)

    async def _close(self, ending: Ending) -> None:
        try:
            async with asyncio.timeout(1.0):
                await self._send({"type": "websocket.close", "code": ending.code, "reason": ending.reason})
        except TimeoutError:
            pass  # its answers are not read: this would not be either

    # --- The end ---

    def _forget(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        self._room.release()

    async def _end_tasks(self) -> None:
        running = tuple(self._tasks)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)


def _failure(request: Request | None) -> AwpError:
    details: JsonObject = {"trace_id": request.trace} if request is not None else {}
    return AwpError("INTERNAL", "The site failed. Its log has the cause under this trace_id.", details)
