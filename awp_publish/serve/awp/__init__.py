"""The AWP door: the Agent Web Protocol over WebSocket (paper of March 2026, MVP and draft 0.1), for agents that browse.

A session browses this site and no other, as a browser without JavaScript does, in this process. The engine is in
`awp_publish.browsing`; here are the WebSocket, who may open it, the sessions, and the way to the site's own pages.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import urlsplit

from awp_publish.browsing.addresses import parse_address
from awp_publish.model import Door, Paths, seconds_of
from awp_publish.policy.tokens import Tokens
from awp_publish.problems import CrossSiteCookies, ForeignHost
from awp_publish.serve.awp.callers import VERSION, AwpCallers
from awp_publish.serve.awp.connection import GOING_AWAY, AwpClient, AwpService, Connection
from awp_publish.serve.awp.sessions import EXPORT_LIFETIME, SWEEP_INTERVAL, OwnedTasks, Sessions, SiteClient
from awp_publish.serve.awp.skills import PROTOCOL, SKILL_CALL, AwpSkills, SkillCall
from awp_publish.serve.credentials import client_address, is_local_page, refuse_foreign_host
from awp_publish.serve.doors import DoorContext, LiveDoor
from awp_publish.serve.endpoint import read_request_id
from awp_publish.serve.http import Fields, Receive, Reply, Scope, Send, read_fields, send_reply

SUBPROTOCOLS: Final = ("awp", "awp.json", "awp.msgpack")
"""Accepted where a client offers them; the frames tell the encoding in any case."""

_PLAIN: Final = (b"content-type", b"text/plain; charset=utf-8")
_UPGRADE: Final = Reply(
    426, (_PLAIN, (b"upgrade", b"websocket")), b"The Agent Web Protocol is spoken here over WebSocket.\n"
)
_FOREIGN: Final = Reply(403, (_PLAIN,), b"Pages of this origin may not browse here.\n")


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
            Sessions(browsing, tuple(url for url in settings.urls if urlsplit(url).path == catalog.prefix)),
            AwpCallers(door),
            AwpSkills(door),
            Tokens(door.keys, f"awp_session:{settings.namespace}", EXPORT_LIFETIME),
            settings.timeout,
            door.sessions,
        )
        # As browsers write them (Fetch, section 3.2): without the port that goes without saying.
        self._origins = frozenset(parse_address(url).origin for url in settings.urls)
        self._allowed = frozenset(origin.lower() for origin in door.admission.allow_origins)
        self._tasks = OwnedTasks()
        self._connections: set[Connection] = set()

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one WebSocket, from its handshake (RFC 6455 section 4) to its end."""
        await receive()
        fields, door, service = read_fields(scope["headers"]), self._door, self._service
        denial = self._deny(fields)
        if denial is not None:
            if "websocket.http.response" not in scope.get("extensions", {}):
                await send({"type": "websocket.close", "code": 1008, "reason": ""})
                return
            headers = list(denial.headers)
            await send({"type": "websocket.http.response.start", "status": denial.status, "headers": headers})
            await send({"type": "websocket.http.response.body", "body": denial.body})
            return
        offered = scope.get("subprotocols") or ()
        subprotocol = next((name for name in offered if name in SUBPROTOCOLS), None)
        await send({"type": "websocket.accept", "subprotocol": subprotocol})
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

    def _deny(self, fields: Fields) -> Reply | None:
        """Return the refusal of a browser's page that may not browse here.

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
            request_id, renderer = read_request_id(fields), self._service.skills.renderer
            self._door.invoker.note_refusal(PROTOCOL, request_id, problem)
            path = self._service.catalog.paths.awp
            return renderer.reply(problem, path, request_id)
        return None if self._allowed & {"*", named} else _FOREIGN

    async def answer_http(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that carries a call of skills.invoke through the application; any other has to upgrade."""
        skill_call = scope.get(SKILL_CALL)
        if isinstance(skill_call, SkillCall):
            await self._service.skills.answer(skill_call, scope, receive, send)
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
