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
from awp_publish.browsing.errors import AwpError as AwpError, refuse as refuse
from awp_publish.browsing.observing import FORMATS as FORMATS
from awp_publish.model import Browsing as Browsing, Catalog as Catalog, Door, JsonObject as JsonObject, seconds_of
from awp_publish.policy.authentication import (
    ApiKey as ApiKey,
    ApplicationUser as ApplicationUser,
    Authenticator as Authenticator,
    Credentials as Credentials,
    Principal as Principal,
    SessionUser as SessionUser,
    SharedSecret as SharedSecret,
    Signed as Signed,
)
from awp_publish.policy.guard import Enforcement as Enforcement
from awp_publish.policy.tokens import Tokens
from awp_publish.problems import CrossSiteCookies, ForeignHost, Problem
from awp_publish.serve.awp.callers import VERSION, Callers
from awp_publish.serve.awp.connection import GOING_AWAY, Connection, Conversation
from awp_publish.serve.awp.messages import telling_of
from awp_publish.serve.awp.sessions import SWEEP, Desk, Sessions, Surface, Tails
from awp_publish.serve.awp.skills import CARRIED, PROTOCOL, Carried, Skills
from awp_publish.serve.credentials import (
    TrustedProxies as TrustedProxies,
    client_address,
    is_local_page,
    read_credentials as read_credentials,
    refuse_foreign_host,
)
from awp_publish.serve.doors import LiveDoor, Surroundings
from awp_publish.serve.endpoint import read_request_id, render_problem
from awp_publish.serve.http import Fields, Receive, Reply, Scope, Send, read_fields, send_reply
from awp_publish.site import Site

SUBPROTOCOLS: Final = ("awp", "awp.json", "awp.msgpack")
"""Accepted where a client offers them; the frames tell the encoding in any case."""

_PLAIN: Final = (b"content-type", b"text/plain; charset=utf-8")
_UPGRADE: Final = Reply(
    426, (_PLAIN, (b"upgrade", b"websocket")), b"The Agent Web Protocol is spoken here over WebSocket.\n"
)
_FOREIGN: Final = Reply(403, (_PLAIN,), b"Pages of this origin may not browse here.\n")


def describe_door(site: Site) -> Door:
    """What the documents may say about this door."""
    return Door(PROTOCOL, VERSION, site.paths.awp)


def open_door(surroundings: Surroundings) -> LiveDoor:
    """The door of one public address of a site."""
    door = AwpDoor(surroundings)
    path = surroundings.catalog.paths.awp
    return LiveDoor({path: door.answer_http}, running=door.running, sockets={path: door.answer})


class AwpDoor:
    """Accepts WebSockets, and looks after what outlives one of them."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._telling = telling_of(surroundings.catalog)
        self._desk = _make_desk(surroundings)
        self._origins = _own_origins(surroundings)
        self._tails = Tails()
        self._connections: set[Connection] = set()

    # --- WebSocket ---

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one WebSocket, from its handshake (RFC 6455 section 4) to its end."""
        await receive()
        fields = read_fields(scope["headers"])
        denial = self._deny(fields)
        if denial is not None:
            await _send_denial(denial, scope, send)
            return
        offered = scope.get("subprotocols") or ()
        subprotocol = next((name for name in offered if name in SUBPROTOCOLS), None)
        await send({"type": "websocket.accept", "subprotocol": subprotocol})
        connection = self._connect(scope, receive, send)
        self._connections.add(connection)
        try:
            await connection.serve()
        finally:
            self._connections.discard(connection)

    def _connect(self, scope: Scope, receive: Receive, send: Send) -> Connection:
        surroundings, desk = self._surroundings, self._desk
        most = desk.browsing.page_bytes
        address = client_address(scope, read_fields(scope["headers"]), surroundings.admission.trusted_proxies)
        surface = Surface(surroundings.entrance(scope), scope, desk.catalog.prefix, most, self._tails, address)
        idle = float(seconds_of(desk.browsing.idle))
        conversation = Conversation(desk, surface)
        return Connection(conversation, self._telling, receive, send, surroundings.admission.max_body_bytes, idle)

    def _deny(self, fields: Fields) -> Reply | None:
        """WebSockets are not held to CORS: a browser opens one for any page, and sends cookies along.

        So an Origin has to be one of the site's own addresses or of `allow_origins`, and Host one of the site's hosts.
        """
        admission = self._surroundings.admission
        try:
            refuse_foreign_host(fields, admission.own_hosts)
        except ForeignHost as problem:
            return self._render(problem, fields)
        origin = fields.get(b"origin")
        allowed = [one.lower() for one in admission.allow_origins]
        if origin is None or (named := origin.decode("latin-1").strip().lower()) in self._origins:
            return None
        if is_local_page(fields):
            return None
        if b"cookie" in fields:
            detail = "The connection has cookies, but it comes from a page of another site."
            return self._render(CrossSiteCookies(detail), fields)
        return None if "*" in allowed or named in allowed else _FOREIGN

    def _render(self, problem: Problem, fields: Fields) -> Reply:
        request_id, told = read_request_id(fields), self._telling
        self._surroundings.invoker.note_refusal(PROTOCOL, request_id, problem)
        return render_problem(problem, told.types, told.recoveries, self._desk.catalog.paths.awp, request_id)

    # --- HTTP ---

    async def answer_http(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A request that carries a call of skills.invoke through the application; any other is told to upgrade."""
        carried = scope.get(CARRIED)
        if isinstance(carried, Carried):
            await self._desk.skills.answer(carried, scope, receive, send)
            return
        await send_reply(_UPGRADE, send)

    # --- While the application runs ---

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Ends sessions whose time is up, and in the end all. Without a lifespan they end when others are used."""
        sweeping = asyncio.create_task(self._sweep(), name="awp_publish sessions")
        try:
            yield
        finally:
            sweeping.cancel()
            for connection in tuple(self._connections):
                connection.end(GOING_AWAY)
            self._desk.sessions.clear()
            await asyncio.wait({sweeping})
            await self._tails.end()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP)
            self._desk.sessions.sweep()


def _make_desk(surroundings: Surroundings) -> Desk:
    site, catalog, admission = surroundings.site, surroundings.catalog, surroundings.admission
    browsing, guarding = site.limits.browsing, site.guarding
    keys = guarding.secret_keys or (guarding.own_key,)
    return Desk(
        catalog,
        browsing,
        Sessions(browsing, tuple(url for url in site.urls if urlsplit(url).path == catalog.prefix)),
        Callers(catalog, surroundings.enforcement, admission.trusted_proxies),
        Skills(catalog, surroundings.invoker, admission, lists_only_allowed=site.limits.list_only_allowed),
        Tokens(keys, f"awp_session:{guarding.host}", float(seconds_of(browsing.export_lifetime))),
        site.limits.timeout,
    )


def _own_origins(surroundings: Surroundings) -> frozenset[str]:
    """As browsers write them (Fetch, section 3.2): without the port that goes without saying."""
    return frozenset(parse_address(url).origin for url in surroundings.site.urls)


async def _send_denial(reply: Reply, scope: Scope, send: Send) -> None:
    """The answer to an upgrade that is refused; with words where the server can send them."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008, "reason": ""})
        return
    start = {"type": "websocket.http.response.start", "status": reply.status, "headers": list(reply.headers)}
    await send(start)
    await send({"type": "websocket.http.response.body", "body": reply.body})
