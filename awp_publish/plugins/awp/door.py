"""The AWP door: the Agent Web Protocol over WebSocket (paper of March 2026, MVP and draft 0.1), for agents that browse.

A session browses only this site, as a browser without JavaScript does, in this process. The engine is in
`awp_publish.browsing`; this package has the WebSocket, authentication and sessions, the protocol's methods, and the
site's own actions as skills, on the path of every call.

Callers are identified by the upgrade request, as at every other door, or by the `auth` of awp.hello. A caller whose
scopes include some of AWP's own has only these; everybody else has DEFAULT_SCOPES. A session belongs to the connection
that made it. When the connection is gone, the session waits for `resume` by a connection that has its token, or that is
of the same known caller. For anybody else it does not exist.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import ExitStack, aclosing, asynccontextmanager, suppress
from functools import partial
from typing import Final

from awp_publish.browsing.browser import PAGE_BYTES
from awp_publish.browsing.errors import AwpError
from awp_publish.calls.call import Principal
from awp_publish.http.client_address import client_address
from awp_publish.http.exchange import Receive, Scope, Send, read_fields
from awp_publish.http.handshake import SocketGate, require_upgrade
from awp_publish.http.inner_calls import INNER_CALL, InnerCall
from awp_publish.http.site_client import SiteClient
from awp_publish.http.sockets import GOING_AWAY, CloseReason, SocketConnection
from awp_publish.http.streams import OpenStreams, Place
from awp_publish.http.tasks import OwnedTasks
from awp_publish.model import JsonObject
from awp_publish.plugin import Context, Endpoints
from awp_publish.plugins.awp.client import HELLO, AwpClient
from awp_publish.plugins.awp.errors import error_of
from awp_publish.plugins.awp.messages import (
    PROTOCOL,
    AwpRequest,
    Frame,
    InvalidFrame,
    make_error,
    make_message,
    new_trace,
    read_request,
    write_frame,
)
from awp_publish.plugins.awp.sessions import SWEEP_INTERVAL
from awp_publish.plugins.awp.shared import SharedParts
from awp_publish.problems import Problem, RateLimited

logger: Final = logging.getLogger("awp_publish.calls")

_NO_HANDSHAKE: Final = CloseReason(1008, "awp.hello is missing.")
_NOT_KNOWN: Final = CloseReason(1008, "The credentials are no longer valid.")


class Connection(SocketConnection):
    """One client's accepted WebSocket. `idle` are the seconds without a message after which it is closed."""

    no_handshake = _NO_HANDSHAKE

    def __init__(self, client: AwpClient, receive: Receive, send: Send, max_bytes: int, idle: float) -> None:
        super().__init__(receive, send, max_bytes, idle, client.door.sessions.browsing.messages_per_second)
        self._client = client
        self._telling: list[asyncio.Task[None]] = []

    @property
    def is_greeted(self) -> bool:
        return self._client.identity is not None

    def leave(self) -> None:
        """Let the sessions of a client that is gone wait for another connection."""
        self._client.leave()

    async def refuse_large(self, frame: Frame) -> None:
        """Answer a frame that is too large to be read."""
        large = AwpError("INVALID_REQUEST", "The message is too large.", {"max_bytes": self.max_bytes})
        await self._write(make_error("", large), is_packed=isinstance(frame, bytes))

    async def take(self, frame: Frame, retry_after_ms: int | None) -> None:
        """Start answering a frame. The handshake is awaited, because everything after it depends on it."""
        try:
            request = read_request(frame)
        except InvalidFrame as error:
            await self._write(make_error(error.request_id, error), is_packed=isinstance(frame, bytes))
            return
        if retry_after_ms is not None:
            details = {"retry_after_ms": retry_after_ms}
            too_soon = AwpError("RATE_LIMITED", "There were too many messages.", details)
            await self._write(make_error(request.id, too_soon, request.trace), is_packed=request.is_packed)
        elif request.method == HELLO:
            await self._answer(request)
            for task in self._telling:
                task.cancel()
            self._telling = [
                self._pending.start(self._tell(name, cursor, is_packed=request.is_packed), f"awp_publish {name}")
                for name, cursor in self._client.followed.items()
            ]
        else:
            await self.start(self._answer(request), f"awp_publish {request.method[:50]}")

    async def _answer(self, request: AwpRequest) -> None:
        trace = request.trace
        try:
            message = make_message(trace, id=request.id, type="response", result=await self._client.answer(request))
        except AwpError as error:
            message = make_error(request.id, error, trace)
        except Problem as problem:
            message = make_error(request.id, error_of(problem, self._client.door.skills.renderer, trace), trace)
        except Exception:
            logger.exception("the AWP door failed (request_id=%s)", trace)
            message = _failure(request.id, trace)
        with suppress(OSError):  # the client is gone; reading ends as well
            await self._write(message, is_packed=request.is_packed, trace=trace)
            while self._client.events:
                await self._write(self._client.events.pop(0), is_packed=request.is_packed)

    async def _tell(self, name: str, cursor: str | None, *, is_packed: bool) -> None:
        """Send a client the occurrences of an event of the site as they happen."""
        identity, events = self._client.identity, self._client.door.events
        caller = identity.principal if identity is not None else None
        event = events.find(name, caller)
        if event is None:
            return
        positions = events.read_cursor(event, cursor) if cursor is not None else None
        batches = events.follow(event, events.logs_for(event, caller), positions)
        with suppress(OSError):  # the client is gone; reading ends as well
            async with aclosing(batches):
                async for batch in batches:
                    if not await self._is_still(caller):
                        return
                    for entry, after in batch.steps():
                        occurrence = {"event_id": entry.id, "name": name, "timestamp": entry.timestamp}
                        occurrence |= {"data": entry.data, "cursor": events.write_cursor(after)}
                        message = make_message(new_trace(), type="event", method=name, params=occurrence)
                        await self._write(message, is_packed=is_packed)

    async def _is_still(self, caller: Principal | None) -> bool:
        """Return True if the caller's permissions are unchanged; close the connection for invalid credentials."""
        try:
            current = await self._client.verify()
        except Problem:
            self.close(_NOT_KNOWN)
            return False
        if current != caller and current is not None and caller is not None and current.key == caller.key:
            self.close(_NOT_KNOWN)  # otherwise a new handshake has restarted this
        return current == caller

    async def _write(self, message: JsonObject, *, is_packed: bool, trace: str | None = None) -> None:
        try:
            frame = write_frame(message, is_packed=is_packed)
        except (TypeError, ValueError, OverflowError):
            logger.exception("an answer of the AWP door cannot be written")
            frame = write_frame(_failure(str(message.get("id", "")), trace), is_packed=is_packed)
        await self.write(frame)


def _failure(request_id: str, trace: str | None) -> JsonObject:
    details = {"trace_id": trace} if trace is not None else {}
    words = "The site failed. Its log has the cause under this trace_id."
    return make_error(request_id, AwpError("INTERNAL", words, details), trace)


SUBPROTOCOLS: Final = ("awp", "awp.json", "awp.msgpack")
"""Subprotocols that are accepted if a client offers them; frames have their encoding in any case."""

_UPGRADE: Final = b"The Agent Web Protocol is spoken here over WebSocket.\n"


def open_door(context: Context) -> Endpoints:
    """Open the door of one public address of a site."""
    door, path = AwpDoor(context), context.catalog.paths.awp
    return Endpoints(exact={path: door.answer_http}, running=door.running, sockets={path: door.answer})


class AwpDoor(SharedParts):
    """Accepts WebSockets."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._context = context
        self._gate = SocketGate(context, PROTOCOL, self.catalog.paths.awp, self.skills.renderer)
        self._tasks = OwnedTasks()
        self._connections: set[Connection] = set()
        self.open = OpenStreams("connections")

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one WebSocket, from its handshake (RFC 6455 section 4) to its end."""
        address = client_address(scope, read_fields(scope["headers"]), self._context.admission.trusted_proxies)
        with ExitStack() as place:
            try:
                slot = place.enter_context(self.open.hold(None, address, is_identified=False))
            except RateLimited as problem:
                await self._gate.refuse_problem(problem, scope, receive, send)
                return
            if await self._gate.accept(scope, receive, send, SUBPROTOCOLS):
                await self._serve(scope, receive, send, slot, address)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, slot: Place, address: str) -> None:
        admission, app = self._context.admission, self._context.application.entrance(scope)
        site = SiteClient(app, scope, self.catalog.prefix, PAGE_BYTES, self._tasks, address)
        client = AwpClient(self, site, partial(self.open.identify, slot, address=address))
        connection = Connection(client, receive, send, admission.max_body_bytes, self.sessions.idle)
        self._connections.add(connection)
        try:
            await connection.serve()
        finally:
            self._connections.discard(connection)

    async def answer_http(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that carries a skills.invoke through the application; any other has to upgrade."""
        inner_call = scope.get(INNER_CALL)
        if isinstance(inner_call, InnerCall):
            await self.skills.calls.answer(inner_call, scope, receive, send)
        else:
            await require_upgrade(_UPGRADE, scope, send)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """End sessions whose time is up, and finally all. Without a lifespan they end when others are used."""

        async def sweep() -> None:
            while True:
                await asyncio.sleep(SWEEP_INTERVAL)
                self.sessions.sweep()

        sweeping = asyncio.create_task(sweep(), name="awp_publish sessions")
        try:
            yield
        finally:
            sweeping.cancel()
            for connection in tuple(self._connections):
                connection.close(GOING_AWAY)
            self.sessions.clear()
            await asyncio.wait({sweeping})
            await self._tasks.cancel()
