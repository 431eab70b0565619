"""The parts that the doors over WebSocket share: who may connect, and how one connection is read, written and closed.

Requests are answered as soon as they can be; several may be under way. No more than MAX_PENDING wait at a time: then
nothing is read until one of them is answered. A client that does not read its answers for CLIENT_TIMEOUT is left.
"""

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from contextlib import suppress
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from awp_publish.browsing.addresses import parse_address
from awp_publish.problems import CrossSiteCookies, ForeignHost
from awp_publish.serve.credentials import is_local_page, refuse_foreign_host
from awp_publish.serve.doors import DoorContext
from awp_publish.serve.endpoint import ProblemRenderer, read_request_id
from awp_publish.serve.http import Fields, Message, Receive, Reply, Scope, Send, read_fields
from awp_publish.serve.lifespan import OwnedTasks

logger: Final = logging.getLogger("awp_publish.calls")

# --- The handshake ---

PLAIN: Final = (b"content-type", b"text/plain; charset=utf-8")
_FOREIGN: Final = Reply(403, (PLAIN,), b"Pages of this origin may not connect here.\n")


class SocketGate:
    """Decides who may open a WebSocket at one path of a site, and answers those who may not."""

    def __init__(self, door: DoorContext, protocol: str, path: str, renderer: ProblemRenderer) -> None:
        self._door, self._protocol, self._path, self._renderer = door, protocol, path, renderer
        # As browsers write them (Fetch, section 3.2): without the port that goes without saying.
        self._origins = frozenset(parse_address(url).origin for url in door.settings.urls)
        self._allowed = frozenset(origin.lower() for origin in door.admission.allow_origins)

    async def accept(self, scope: Scope, receive: Receive, send: Send, subprotocols: tuple[str, ...] = ()) -> bool:
        """Complete the handshake (RFC 6455 section 4), or refuse it."""
        await receive()
        denial = self._deny(read_fields(scope["headers"]))
        if denial is None:
            offered = scope.get("subprotocols") or ()
            chosen = next((name for name in offered if name in subprotocols), None)
            await send({"type": "websocket.accept", "subprotocol": chosen})
            return True
        await self.refuse(denial, scope, send)
        return False

    async def refuse(self, denial: Reply, scope: Scope, send: Send) -> None:
        """Refuse a handshake, with an answer where the server can give one."""
        if "websocket.http.response" in scope.get("extensions", {}):
            headers = list(denial.headers)
            await send({"type": "websocket.http.response.start", "status": denial.status, "headers": headers})
            await send({"type": "websocket.http.response.body", "body": denial.body})
        else:
            await send({"type": "websocket.close", "code": 1008, "reason": ""})

    def _deny(self, fields: Fields) -> Reply | None:
        """Return the refusal of a browser's page that may not connect.

        WebSockets are not held to CORS: a browser opens one for any page, and sends cookies along. So an Origin has to
        be one of the site's own addresses or of `allow_origins`, and Host one of the site's hosts.
        """
        try:
            refuse_foreign_host(fields, self._door.admission.own_hosts)
            origin = fields.get(b"origin")
            named = origin.decode("latin-1").strip().lower() if origin is not None else None
            if named is None or named in self._origins or is_local_page(fields):
                return None
            if b"cookie" in fields:
                raise CrossSiteCookies("The connection has cookies, but it comes from a page of another site.")
        except (ForeignHost, CrossSiteCookies) as problem:
            request_id = read_request_id(fields)
            self._door.invoker.note_refusal(self._protocol, request_id, problem)
            return self._renderer.reply(problem, self._path, request_id)
        return None if self._allowed & {"*", named} else _FOREIGN


def own_urls(door: DoorContext) -> tuple[str, ...]:
    """Return the public addresses under which the pages of a door's catalog are."""
    return tuple(url for url in door.settings.urls if urlsplit(url).path == door.catalog.prefix)


# --- One connection ---

Frame: TypeAlias = str | bytes

MAX_PENDING: Final = 64
"""Requests of one connection that are under way at a time."""

CLIENT_TIMEOUT: Final = 30.0
"""Seconds in which a client has to complete its handshake, whatever else it sends, and to take an answer."""

ADDRESS_SHARE: Final = 5
"""All callers of one address have a fifth of what a process keeps for callers (`browsing.sessions`)."""

MAX_REFUSED: Final = 1000
"""Requests in a row that are refused as too many, before the connection is closed."""


class CloseReason(NamedTuple):
    """The reason for closing a connection from this side: a code of RFC 6455 section 7.4.1, and words."""

    code: int
    words: str


GOING_AWAY: Final = CloseReason(1001, "The server stops.")
_IDLE: Final = CloseReason(1001, "No message for too long.")
_FLOOD: Final = CloseReason(1008, "Too many messages.")
_TOO_LARGE: Final = CloseReason(1009, "The message is too large.")
_UNREAD: Final = CloseReason(1008, "Answers are not read.")


class SocketConnection(ABC):
    """One client's WebSocket, once it is accepted: it reads frames and has them taken, whatever the other end does.

    `rate` are the messages that may come in a second, `idle` the seconds without one that end the connection.
    """

    max_pending = MAX_PENDING
    no_handshake = CloseReason(1008, "There was no handshake.")

    def __init__(self, receive: Receive, send: Send, max_bytes: int, idle: float, rate: int) -> None:
        self._receive = receive
        self._send = send
        self.max_bytes = max_bytes
        self._idle = idle
        self._rate = rate
        self._tokens = 2.0 * rate  # a token bucket: as many messages at once as two seconds are worth
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
        """Return True if the client has completed the handshake of its protocol."""

    @property
    def is_waited_for(self) -> bool:
        """Return True if the client has a reason to be silent."""
        return bool(self._pending)

    @abstractmethod
    async def take(self, frame: Frame, retry_after_ms: int | None) -> None:
        """Have a frame answered; with `retry_after_ms` it came too soon, and is to be refused."""

    @abstractmethod
    async def refuse_large(self, frame: Frame) -> None:
        """Tell the client that a frame was larger than `max_bytes`."""

    @abstractmethod
    def leave(self) -> None:
        """Let go of what the client had: it is gone."""

    async def serve(self) -> None:
        """Take frames until either end closes. Whatever happens, nothing of this client goes on after it."""
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
                with suppress(TimeoutError):  # its answers are not read: this would not be either
                    async with asyncio.timeout(1.0):
                        await self._send({"type": "websocket.close", "code": code, "reason": words})
        except OSError:
            pass  # the other end is gone, as servers tell who write to it
        finally:
            self.leave()
            await self._pending.cancel()

    def close(self, reason: CloseReason) -> None:
        """Close this connection as soon as it can be."""
        self._closing = self._closing or reason
        if self._waiting is not None and not self._waiting.expired():
            self._waiting.reschedule(asyncio.get_running_loop().time())

    async def start(self, work: Coroutine[object, object, None], name: str) -> None:
        """Answer a request beside others, as soon as there is room for it."""
        self._refused = 0
        await self._room.acquire()
        task = self._pending.start(work, name)
        task.add_done_callback(lambda _: self._room.release())

    async def write(self, frame: Message) -> None:
        """Send a frame, after those before it. Raises OSError where the other end is gone."""
        try:
            async with self._writing, asyncio.timeout(CLIENT_TIMEOUT):
                await self._send(frame)
        except TimeoutError:
            self.close(_UNREAD)

    async def _read(self) -> Frame | None:
        """Return the next frame, None when there will be none.

        The handshake has one deadline, however many other messages come before it; then each message has its own.
        """
        while self._closing is None:
            until = asyncio.get_running_loop().time() + self._idle if self.is_greeted else self._greet_by
            try:
                async with asyncio.timeout_at(until) as self._waiting:
                    message = await self._receive()
            except TimeoutError:
                if not self.is_greeted:
                    self._closing = self._closing or self.no_handshake
                elif not self.is_waited_for:
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
