"""The AWP door: the Agent Web Protocol over WebSocket (paper of March 2026, MVP and draft 0.1), for agents that browse.

A session browses this site and no other, as a browser without JavaScript does, in this process. The engine is in
`awp_publish.browsing`; here are the WebSocket, who may open it, the sessions, and the way to the site's own pages.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from awp_publish.model import Door, Paths, seconds_of
from awp_publish.policy.guard import Tokens
from awp_publish.serve.awp.callers import VERSION, AwpCallers
from awp_publish.serve.awp.connection import AwpClient, AwpService, Connection
from awp_publish.serve.awp.sessions import EXPORT_LIFETIME, SWEEP_INTERVAL, Sessions
from awp_publish.serve.awp.skills import PROTOCOL, AwpSkills
from awp_publish.serve.credentials import client_address
from awp_publish.serve.doors import DoorContext, LiveDoor
from awp_publish.serve.http import Receive, Reply, Scope, Send, read_fields, send_reply
from awp_publish.serve.site_client import INNER_CALL, InnerCall, OwnedTasks, SiteClient
from awp_publish.serve.sockets import GOING_AWAY, PLAIN, SocketGate, own_urls

SUBPROTOCOLS: Final = ("awp", "awp.json", "awp.msgpack")
"""Accepted where a client offers them; the frames tell the encoding in any case."""

_UPGRADE: Final = Reply(
    426, (PLAIN, (b"upgrade", b"websocket")), b"The Agent Web Protocol is spoken here over WebSocket.\n"
)


def describe_door(paths: Paths) -> Door:
    """Describe the door for the documents."""
    return Door(PROTOCOL, VERSION, paths.awp)


def open_door(context: DoorContext) -> LiveDoor:
    """Open the door of one public address of a site."""
    door, path = AwpDoor(context), context.catalog.paths.awp
    return LiveDoor({path: door.answer_http}, running=door.running, sockets={path: door.answer})


class AwpDoor:
    """Accepts WebSockets, and owns what outlives one of them."""

    def __init__(self, door: DoorContext) -> None:
        settings, catalog, browsing = door.settings, door.catalog, door.settings.browsing
        self._door = door
        self._service = AwpService(
            catalog,
            Sessions(browsing, own_urls(door)),
            AwpCallers(door),
            AwpSkills(door),
            Tokens(door.keys, f"awp_session:{settings.namespace}", EXPORT_LIFETIME),
            door.site.events,
            settings.timeout,
            door.sessions,
        )
        self._gate = SocketGate(door, PROTOCOL, catalog.paths.awp, self._service.skills.renderer)
        self._tasks = OwnedTasks()
        self._connections: set[Connection] = set()

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one WebSocket, from its handshake (RFC 6455 section 4) to its end."""
        if not await self._gate.accept(scope, receive, send, SUBPROTOCOLS):
            return
        door, service, fields = self._door, self._service, read_fields(scope["headers"])
        address = client_address(scope, fields, door.admission.trusted_proxies)
        app, prefix, max_page = door.entrance(scope), service.catalog.prefix, service.sessions.max_page
        client = AwpClient(service, SiteClient(app, scope, prefix, max_page, self._tasks, address))
        idle = float(seconds_of(service.sessions.browsing.idle))
        connection = Connection(client, receive, send, door.admission.max_body_bytes, idle)
        self._connections.add(connection)
        try:
            await connection.serve()
        finally:
            self._connections.discard(connection)

    async def answer_http(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that carries a call of skills.invoke through the application; any other has to upgrade."""
        inner_call = scope.get(INNER_CALL)
        if isinstance(inner_call, InnerCall):
            await self._service.skills.calls.answer(inner_call, scope, receive, send)
        else:
            await send_reply(_UPGRADE, send)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """End sessions whose time is up, and in the end all. Without a lifespan they end when others are used."""

        async def sweep() -> None:
            while True:
                await asyncio.sleep(SWEEP_INTERVAL)
                self._service.sessions.sweep()

        sweeping = asyncio.create_task(sweep(), name="awp_publish sessions")
        try:
            yield
        finally:
            sweeping.cancel()
            for connection in tuple(self._connections):
                connection.close(GOING_AWAY)
            self._service.sessions.clear()
            await asyncio.wait({sweeping})
            await self._tasks.cancel()
