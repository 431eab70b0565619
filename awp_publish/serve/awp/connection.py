"""One WebSocket of the AWP door: it reads frames, has them answered, writes the answers, whatever the other end does.

Requests are answered as soon as they can be; several may be under way. No more than PENDING wait at a time: then
nothing is read until one of them is answered. A client that does not read its answers for PATIENCE is left.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from awp_publish.browsing.errors import AwpError, refuse
from awp_publish.browsing.session import METHODS, Method
from awp_publish.model import JsonObject
from awp_publish.problems import Problem
from awp_publish.serve.awp.callers import Identity, new_challenge, read_hello, tell_hello
from awp_publish.serve.awp.messages import (
    MUTATION,
    Frame,
    Request,
    Unreadable,
    cursors_of,
    read_request,
    tell_changes,
    tell_error,
    tell_problem,
    tell_result,
    write_frame,
)
from awp_publish.serve.awp.sessions import (
    Client,
    Desk,
    Held,
    Surface,
    close_session,
    create_session,
    drive,
    export_session,
    has_large_page,
    import_session,
    invoke_skill,
    list_sessions,
    list_skills,
    once,
    read_milliseconds,
    resume_session,
)
from awp_publish.serve.endpoint import Telling
from awp_publish.serve.http import Receive, Send

# --- What a client says at the AWP door, and what it is answered ---
# One conversation is one connection. It knows nothing of frames: requests come in, results go out, refusals are
# raised.

HELLO: Final = "awp.hello"

Answer: TypeAlias = Callable[[Client, Request], Awaitable[JsonObject]]

OWN: Final[Mapping[str, tuple[str, Answer]]] = {
    "session.create": ("session:write", create_session),
    "session.close": ("session:write", close_session),
    "session.list": ("", list_sessions),
    "session.resume": ("session:write", resume_session),
    "session.export": ("session:write", export_session),
    "session.import": ("session:write", import_session),
    "skills.list": ("", list_skills),
    "skills.invoke": ("skills:invoke", invoke_skill),
}
"""Methods that are not those of a page, and the scopes that they need (paper, Table 3)."""

UNSUPPORTED: Final = (
    "page.evaluate",
    "page.screenshot",
    "page.downloads.",
    "page.wait_for",
    "session.set_network",
    "network.",
    "plugin.",
    "proxy.",
)
"""Beginnings of methods that one description or another has, and a browser without JavaScript and network has not."""

READING: Final = {method.name for method in METHODS.values() if method.scope == "som:read"} | {"session.cookies.get"}
"""Methods that change nothing: sent again, they are carried out again."""

WAITS: Final = ("dom_content_loaded", "load", "network_idle", "som_stable")
"""Draft, Page Lifecycle. Without JavaScript a page that has come is all of these."""


class Conversation(Client):
    """One client, from its handshake on."""

    def __init__(self, desk: Desk, surface: Surface) -> None:
        super().__init__(desk, surface)
        self._challenge = new_challenge()

    async def answer(self, request: Request) -> JsonObject:
        """The result of a request. Raises AwpError, Problem."""
        if request.method == HELLO:
            return await self._greet(request)
        caller, (own, method) = self.caller, (OWN.get(request.method), METHODS.get(request.method))
        if own is not None:
            scope, answer = own
            caller.need(scope, request.method)
            return await answer(self, request)
        if method is None:
            raise _unknown(request.method)
        caller.need(method.scope, request.method)
        return await self._browse(method, request)

    def leave(self) -> None:
        """The connection is gone."""
        self.desk.sessions.release(self)

    # --- Pages ---

    async def _browse(self, method: Method, request: Request) -> JsonObject:
        """A method of a session's pages or cookies. What is wrong with the request is told before its session is."""
        method.check(request.params)
        seconds = _read_wait(request.params)
        held = self.find(request)
        async with held.turn:
            self.check_open(held)
            run = partial(self._run, method, held, request, min(self.desk.longest, seconds or held.seconds))
            result = await (run() if method.name in READING else once(held.repeats, request, run))
            self.desk.sessions.touch(held)
            return result

    async def _run(self, method: Method, held: Held, request: Request, seconds: float) -> JsonObject:
        before = cursors_of(held.session) if MUTATION in self.wanted and method.scope == "page:act" else {}
        steps, is_large = method.run(held.session, request.params), has_large_page(held.session)
        result = await drive(steps, self.surface.fetch, method.name, seconds, in_thread=is_large)
        self.events += tell_changes(held.session, before, request.trace)
        return result

    # --- The handshake ---

    async def _greet(self, request: Request) -> JsonObject:
        """It may be sent again: by the same caller, or by one who was nobody before."""
        wishes = read_hello(request.params, is_packed=request.is_packed)
        auth, challenge = request.params.get("auth"), self._challenge
        if auth is not None or self.identity is None:
            self._challenge = new_challenge()
            identity = await self._identify(auth, challenge, request)
            self._check_change(identity)
            self.identity = identity
        self.wanted = wishes.events
        return tell_hello(self.desk.catalog, self.desk.browsing, wishes, self._tell_auth(self.caller))

    async def _identify(self, auth: object, challenge: str, request: Request) -> Identity:
        callers = self.desk.callers
        try:
            identity = await callers.identify(self.surface.scope, auth, challenge)
        except Problem as problem:
            raise self._with_challenge(self.desk.skills.refuse(problem, request.trace)) from problem
        if self.desk.browsing.auth_required and identity.principal is None:
            details = {"methods": callers.methods}
            raise self._with_challenge(AwpError("PERMISSION_DENIED", "This site asks who is browsing.", details))
        return identity

    def _with_challenge(self, error: AwpError) -> AwpError:
        """A refusal that tells what to sign for the next attempt."""
        return AwpError(error.code, error.message, {**error.details, **self._tell_challenge()})

    def _tell_challenge(self) -> JsonObject:
        return {"challenge": self._challenge} if "auth.hmac" in self.desk.callers.methods else {}

    def _check_change(self, identity: Identity) -> None:
        before = self.identity
        if before is not None and before.id != identity.id and (before.id or any(self.desk.sessions.of(self))):
            raise AwpError("CONFLICT", "This connection belongs to another caller, or has sessions.", {"method": HELLO})

    def _tell_auth(self, identity: Identity) -> JsonObject:
        told = {"method": identity.method, "principal": identity.id or None, "scopes": sorted(identity.scopes)}
        return {**told, "methods": self.desk.callers.methods, **self._tell_challenge()}


def _read_wait(params: Mapping[str, object]) -> float | None:
    """How many seconds a request gives itself: `timeout_ms`, or that of `wait` (draft). Raises AwpError."""
    wait = params.get("wait")
    if wait is not None and not isinstance(wait, dict):
        refuse("wait must be an object.", param="wait")
    if wait and wait.get("until", "load") not in WAITS:
        refuse(f"wait.until must be one of {', '.join(WAITS)}.", param="wait.until", known=list(WAITS))
    within = read_milliseconds(wait or {}, "timeout_ms", 0.0)
    return read_milliseconds(params, "timeout_ms", within) or None


def _unknown(method: str) -> AwpError:
    if method.startswith(UNSUPPORTED):
        return AwpError("UNSUPPORTED", f"Not supported: {method[:100]}", {"method": method[:100]})
    return AwpError("INVALID_REQUEST", f"Unknown method: {method[:100]}", {"method": method[:100]})


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
