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
import hmac
import logging
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, NoReturn, TypeAlias

import orjson

from awp_publish.browsing.acting import RESERVED
from awp_publish.browsing.addresses import Origins
from awp_publish.browsing.errors import AwpError, missing, refuse
from awp_publish.browsing.observing import FORMATS
from awp_publish.browsing.page import PAGE_BYTES, PAGES_PER_SESSION, PageCache, SessionLimits
from awp_publish.browsing.session import METHODS, Session
from awp_publish.calls.authentication import ApiKey, ApplicationUser, SessionUser, SharedSecret
from awp_publish.calls.call import Principal, Signed, read_key, share_of
from awp_publish.calls.tokens import Expired, NotOurs, Tokens
from awp_publish.http.credentials import client_address, network_around, read_credentials
from awp_publish.http.doors import session_ids_of
from awp_publish.http.driving import drive, has_large_page
from awp_publish.http.endpoint import ProblemRenderer
from awp_publish.http.exchange import Pair, Receive, Reply, Scope, Send, read_fields, send_reply, with_header
from awp_publish.http.inner_calls import INNER_CALL, InnerCall, InnerCalls
from awp_publish.http.lifespan import OwnedTasks
from awp_publish.http.site_client import SiteClient
from awp_publish.http.sockets import (
    ADDRESS_SHARE,
    GOING_AWAY,
    IDLE_SECONDS,
    PLAIN,
    CloseReason,
    SocketConnection,
    SocketGate,
    own_urls,
    room_for_unknown,
)
from awp_publish.http.streams import OpenStreams, Place
from awp_publish.model import DEFAULT_OPERATION, Catalog, JsonObject, __version__
from awp_publish.plugin import Context, Endpoints
from awp_publish.plugins.awp.messages import (
    MUTATION,
    RECOVERIES,
    AnswerCache,
    AwpRequest,
    Frame,
    InvalidFrame,
    JsonText,
    error_of,
    make_error,
    make_message,
    mutations_since,
    new_trace,
    read_request,
    shown_headers,
    write_frame,
)
from awp_publish.plugins.awp.options import Awp
from awp_publish.problems import InvalidCredentials, Problem, RateLimited, UnknownAgent, did_you_mean
from awp_publish.schema.reading import answer_schema

PROTOCOL: Final = "awp"

# --- Callers ---

SCOPES: Final = (
    "som:read",
    "page:act",
    "page:evaluate",
    "session:write",
    "network:configure",
    "skills:invoke",
)
"""Paper, Table 3."""

DEFAULT_SCOPES: Final = frozenset(SCOPES) - {"page:evaluate", "network:configure"}

AUTH_METHODS: Final = ("auth.none", "auth.bearer", "auth.hmac")

_TOKEN: Final = re.compile(r"[!-~]+")


VERIFY_SECONDS: Final = 60.0
"""Seconds after which a connection's caller is identified again: a token may have been revoked."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller, and how it was identified: the header or the signature that its calls repeat.

    `since` is the monotonic time at which the caller was identified.
    """

    method: str
    principal: Principal | None
    header: Pair | None = None
    signed: Signed | None = None
    since: float = field(default_factory=time.monotonic, compare=False)

    @property
    def id(self) -> str:
        """What tells the known caller from all others, or ""."""
        return self.principal.key if self.principal is not None else ""

    @property
    def scopes(self) -> frozenset[str]:
        """Return the caller's permissions at this door."""
        named = self.principal.scopes.intersection(SCOPES) if self.principal is not None else None
        return named or DEFAULT_SCOPES

    def need(self, scope: str, method: str) -> None:
        """Raise AwpError PERMISSION_DENIED unless the caller has a scope; "" needs none."""
        if scope and scope not in self.scopes:
            details = {"required_scope": scope, "method": method, "scopes": sorted(self.scopes)}
            raise AwpError("PERMISSION_DENIED", f"{method} needs the scope {scope}.", details)


class AwpCallers:
    """Identifies callers. `methods` are the authentication methods that awp.hello accepts."""

    def __init__(self, door: Context) -> None:
        kinds = door.guards.authenticators
        self._identify = door.guards.identify()
        self._proxies = door.admission.trusted_proxies
        # The header for a token in awp.hello, or None if no authenticator reads one.
        others = (SharedSecret, SessionUser, ApplicationUser, ApiKey)
        reads_bearer = any(not isinstance(one, others) for one in kinds)
        if reads_bearer or any(action.route_authenticates for action in door.catalog.actions):
            self._token_header: str | None = "authorization"
        else:
            self._token_header = next((one.header.lower() for one in kinds if isinstance(one, ApiKey)), None)
        signs = any(isinstance(one, SharedSecret) for one in kinds)
        taken = {"auth.none": True, "auth.bearer": self._token_header is not None, "auth.hmac": signs}
        self.methods = [method for method in AUTH_METHODS if taken[method]]

    async def identify(self, scope: Scope, auth: object, challenge: str) -> Identity:
        """Identify the caller of a connection: `scope` is its upgrade request, `auth` that of awp.hello.

        Raises AwpError for an unreadable `auth`, and the Problem of an authenticator for wrong credentials.
        """
        given = {"method": "auth.none"} if auth is None else auth
        if not isinstance(given, dict):
            refuse("auth must be an object with a method.", param="auth")
        method = given.get("method", given.get("type"))
        if method not in AUTH_METHODS:
            refuse(
                f"auth.method must be one of {', '.join(AUTH_METHODS)}.",
                param="auth.method",
                methods=list(AUTH_METHODS),
            )
        if method not in self.methods:
            raise AwpError("UNSUPPORTED", f"This site does not take {method}.", {"methods": self.methods})

        def read(name: str) -> str:
            text = given.get(name)
            if not isinstance(text, str) or not 0 < len(text) <= 20_000:
                refuse(f"Missing required param: auth.{name}", param=f"auth.{name}")
            return text

        header = signed = None
        if method == "auth.bearer":
            token, name = read("token"), self._token_header or "authorization"
            if not _TOKEN.fullmatch(token):
                refuse("auth.token must be visible ASCII characters.", param="auth.token")
            header = name.encode("latin-1"), f"{'Bearer ' if name == 'authorization' else ''}{token}".encode("ascii")
        elif method == "auth.hmac":
            signed = Signed(read("key_id"), challenge, read("signature"))
        return await self._identity(scope, method, header, signed)

    async def verify(self, scope: Scope, identity: Identity) -> Identity:
        """Identify a known caller again, after VERIFY_SECONDS and when its token has expired.

        Raises the Problem of an authenticator if the credentials are no longer valid.
        """
        caller = identity.principal
        if caller is None or not (time.monotonic() - identity.since >= VERIFY_SECONDS or caller.has_expired()):
            return identity
        known = await self._identity(scope, identity.method, identity.header, identity.signed)
        if known.id != identity.id:
            raise InvalidCredentials("The credentials of this connection are no longer valid.")
        return known

    async def _identity(self, scope: Scope, method: str, header: Pair | None, signed: Signed | None) -> Identity:
        fields = read_fields(with_header(scope["headers"], header))
        credentials = read_credentials(scope, fields, self._proxies)._replace(signed=signed)
        return Identity(method, await self._identify(credentials), header, signed)


def new_challenge() -> str:
    """Return a text for a caller to sign once."""
    return secrets.token_urlsafe(24)


# --- `awp.hello` ---
# In the MVP (section 4.1) a client sends client_name, client_version and awp_version, and gets a list of features; in
# the draft (Handshake) it sends client, awp.versions and wants, and gets an object of features. All else is the same.

VERSION: Final = "0.1"
ENCODINGS: Final = ("json", "msgpack")
NAME: Final = "awp-publish"
FEATURES: Final = (
    "som.snapshot",
    "som.mutations",
    "act.primitive",
    "extract",
    "pages",
    "history",
    "cookies",
    "sessions.list",
    "sessions.resume",
    "sessions.export",
    "idempotency",
    "encoding.msgpack",
)
"""The features of a site that can be browsed; "skills.invoke" is added if it has actions."""


@dataclass(frozen=True, slots=True)
class Hello:
    """A client's handshake: whether it is the draft's, the encoding of answers, and the events that it wants.

    `cursors` are its positions in the site's events. With `concurrency`, requests of one session for different pages do
    not wait for one another (paper, 4.2).
    """

    is_draft: bool
    encoding: str
    events: frozenset[str]
    concurrency: bool
    cursors: Mapping[str, str] = field(default_factory=dict)


def read_hello(params: Mapping[str, object], *, is_packed: bool, known: frozenset[str] = frozenset()) -> Hello:
    """Read a handshake; `known` are the events of the site.

    Raises AwpError: INVALID_REQUEST for another version, UNSUPPORTED for other encodings.
    """
    single = params.get("awp_version")
    if single is not None and not isinstance(single, str):
        refuse("awp_version must be text.", param="awp_version")
    versions = [*_texts(_object(params, "awp"), "versions"), *([single] if single is not None else [])]
    if VERSION not in (versions or [VERSION]):
        named = ", ".join(versions)[:100]
        raise AwpError("INVALID_REQUEST", f"Unsupported AWP version: {named}", {"supported": [VERSION]})
    wants = _object(params, "wants")
    wanted = _texts(wants, "encoding") or ["msgpack" if is_packed else "json"]
    encoding = next((name for name in wanted if name in ENCODINGS), None)
    if encoding is None:
        raise AwpError("UNSUPPORTED", "None of the encodings is spoken here.", {"supported": list(ENCODINGS)})
    is_draft = any(name in params for name in ("client", "awp", "wants"))
    at_once = not _CONCURRENCY.isdisjoint(_texts(wants, "features"))
    for name in ("concurrency", "concurrent"):
        asked = wants.get(name)
        at_once = at_once or asked is True
        if not isinstance(asked, bool):
            at_once = at_once or not _PAGES.isdisjoint(_texts(wants, name))
    cursors = {name: text for name, text in _object(wants, "cursors").items() if isinstance(text, str)}
    return Hello(is_draft, encoding, frozenset(_texts(wants, "events")) & {MUTATION, *known}, at_once, cursors)


_CONCURRENCY: Final = frozenset(("concurrency", "concurrent", "pages.concurrent"))
_PAGES: Final = frozenset(("page", "pages"))


def _object(params: Mapping[str, object], name: str) -> Mapping[str, object]:
    given = params.get(name)
    if given is None:
        return {}
    if not isinstance(given, dict):
        refuse(f"{name} must be an object.", param=name)
    return given


def _texts(params: Mapping[str, object], name: str) -> list[str]:
    given = params.get(name)
    if given is None:
        return []
    if isinstance(given, str):
        return [given]
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        refuse(f"{name} must be a list of texts.", param=name)
    return given


def render_hello(
    catalog: Catalog, sessions: "Sessions", hello: Hello, auth: JsonObject, offered: list[str]
) -> JsonObject:
    """Render the result of a handshake. `offered` are the events of the site to which the caller may subscribe."""

    has_skills = bool(catalog.actions)
    limits = sessions.describe_limits()
    features: object = [*FEATURES, *(["skills.invoke"] if has_skills else [])]
    if hello.is_draft:
        features = {
            "som": {"snapshot": True, "mutation": True, "formats": list(FORMATS), "max_bytes": PAGE_BYTES},
            "skills": {"invoke": has_skills, "registry": True},
            "network": {"proxy": False, "profiles": []},
            "limits": limits,
        }
    return {
        "awp_version": VERSION,
        "server_name": NAME,
        "server_version": __version__,
        "features": features,
        "awp": {"version": VERSION},
        "encoding": {"selected": hello.encoding},
        "compression": {"selected": "none"},
        "concurrency": {"selected": "pages" if hello.concurrency else "none"},
        "server": {"name": NAME, "version": __version__, "site": catalog.site.name, "url": catalog.url},
        "limits": limits,
        "events": sorted(hello.events),
        **({"available_events": offered} if offered else {}),
        "auth": auth,
    }


# --- Sessions ---

SESSIONS_PER_CONNECTION: Final = 8
LIFETIME: Final = 8 * 3600.0
"""Seconds after which a session ends, even if it is in use."""
RESUME_WITHIN: Final = 300.0
"""Seconds for which a session waits without a connection."""
EXPORT_LIFETIME: Final = 24 * 3600.0
"""Seconds for which an exported session can be imported."""

SWEEP_INTERVAL: Final = 5.0
"""Seconds between two checks for sessions that have ended."""


class Turns:
    """The order of one session's requests. Each waits for earlier ones about the same page or the whole session."""

    __slots__ = ("_ahead",)

    def __init__(self) -> None:
        self._ahead: list[tuple[str | None, asyncio.Event]] = []

    @property
    def is_busy(self) -> bool:
        """Return True while a request runs or waits."""
        return bool(self._ahead)

    @property
    def has_whole(self) -> bool:
        """Return True while a request about the whole session runs or waits."""
        return any(page is None for page, _ in self._ahead)

    @asynccontextmanager
    async def take(self, page: str | None = None) -> AsyncIterator[None]:
        """Wait for the turn of a request about one page, or about the whole session."""
        mine = page, asyncio.Event()
        ahead = [event for other, event in self._ahead if page is None or other is None or other == page]
        self._ahead.append(mine)
        try:
            for event in ahead:
                await event.wait()
            yield
        finally:
            self._ahead.remove(mine)
            mine[1].set()


@dataclass(slots=True, eq=False)
class OpenSession:
    """A session and the door's data about it. `owner` is its connection, None after that is gone.

    `address` is that of the client that made it, "" if unknown; `timeout` are the seconds that its methods may take.
    Its methods run in the order in which they came, in `turns`. Of several at the same time, only the one with
    `stepping` reads and changes what the pages share.
    """

    session: Session
    owner: object | None
    principal: str
    address: str
    timeout: float
    created: float
    last_used: float
    expires: float
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    turns: Turns = field(default_factory=Turns)
    stepping: asyncio.Lock = field(default_factory=asyncio.Lock)
    answers: AnswerCache = field(default_factory=AnswerCache)
    is_open: bool = True

    @property
    def id(self) -> str:
        return self.session.id

    @property
    def ttl_ms(self) -> int:
        return round((self.expires - self.created) * 1000)


def _is_of_network(network: str, opened: OpenSession) -> bool:
    return not opened.principal and network_around(opened.address) == network


class Sessions:
    """All sessions of one address of the site in this process. Times are in seconds of `clock`."""

    def __init__(self, browsing: Awp, urls: tuple[str, ...], clock: Callable[[], float] = time.monotonic) -> None:
        self.browsing = browsing
        share = max(browsing.sessions // ADDRESS_SHARE, SESSIONS_PER_CONNECTION)
        self.per_share = min(browsing.sessions, share)
        self.per_network = max(room_for_unknown(browsing.sessions) // 2, self.per_share)
        self.idle = IDLE_SECONDS
        self._limits = SessionLimits(pages=PAGES_PER_SESSION, page_bytes=PAGE_BYTES)
        self._origins = Origins.of(*urls)
        self._cache = PageCache()
        self._clock = clock
        self._open: dict[str, OpenSession] = {}
        self._next_sweep = 0.0

    def __len__(self) -> int:
        return len(self._open)

    def describe_limits(self) -> JsonObject:
        """Return the limits for the handshake."""
        return {
            "max_sessions": min(self.per_share, SESSIONS_PER_CONNECTION),
            "max_pages_per_session": PAGES_PER_SESSION,
            "max_messages_per_second": self.browsing.messages_per_second,
        }

    def create(
        self, owner: object, principal: str, params: Mapping[str, object], max_seconds: float, address: str = ""
    ) -> OpenSession:
        """Make a session. `max_seconds` limits its timeout. Raises AwpError."""
        profile = params.get("profile")
        self._make_room(owner, principal, address)
        user_agent = _read_printable(params, "user_agent")
        locale = _read_printable(params, "locale")
        if not locale and isinstance(profile, dict):
            locale = _read_printable(profile, "locale")
        declared, pages = params.get("limits"), self._limits.pages
        wanted = declared.get("max_pages") if isinstance(declared, dict) else None  # draft: fewer than the site allows
        if isinstance(wanted, bool) or (wanted is not None and (not isinstance(wanted, int) or wanted < 1)):
            refuse("limits.max_pages must be a positive whole number.", param="limits.max_pages")
        limits = replace(self._limits, pages=min(wanted or pages, pages))
        session = Session(self._origins, user_agent=user_agent, locale=locale, limits=limits, cache=self._cache)
        return self._add(session, owner, principal, address, params, max_seconds)

    def restore(
        self, owner: object, principal: str, exported: object, params: JsonObject, max_seconds: float, address: str = ""
    ) -> OpenSession:
        """Make the session that an export describes, with a new id. Raises AwpError."""
        self._make_room(owner, principal, address)
        session = Session.restore(exported, self._origins, limits=self._limits, cache=self._cache)
        return self._add(session, owner, principal, address, params, max_seconds)

    def _add(
        self,
        session: Session,
        owner: object,
        principal: str,
        address: str,
        params: Mapping[str, object],
        max_seconds: float,
    ) -> OpenSession:
        now = self._clock()
        lifetime = min(LIFETIME, read_milliseconds(params, "ttl_ms", LIFETIME))
        timeout = min(max_seconds, read_milliseconds(params, "timeout_ms", max_seconds))
        opened = OpenSession(session, owner, principal, address, timeout, now, now, now + lifetime)
        self._open[opened.id] = opened
        return opened

    def _make_room(self, owner: object, principal: str, address: str) -> None:
        """Make room for one more session of a connection. Raises AwpError if there is none.

        A connection at its limit, then its caller, then unknown callers together are refused before anybody else's
        session is closed. If the server is full, the oldest session without a connection is closed.
        """
        self.sweep()
        self._check_connection(owner)
        share = share_of(principal, address)
        groups: list[tuple[int, str, Callable[[OpenSession], bool]]] = []
        if principal or address:
            whose = "caller" if principal else "address"
            groups.append((self.per_share, whose, lambda opened: share_of(opened.principal, opened.address) == share))
        if not principal:
            if network := network_around(address):
                groups.append((self.per_network, "network", partial(_is_of_network, network)))
            most = room_for_unknown(self.browsing.sessions)
            groups.append((most, "server for unknown callers", lambda opened: not opened.principal))
        groups.append((self.browsing.sessions, "server", lambda opened: True))
        for most, of, counts in groups:
            counted = [opened for opened in self._open.values() if counts(opened)]
            if len(counted) < most:
                continue
            waiting = [opened for opened in counted if opened.owner is None]
            if not waiting:
                _refuse_more(most, of)
            self.close(min(waiting, key=lambda opened: opened.last_used))

    def _check_connection(self, owner: object) -> None:
        most = SESSIONS_PER_CONNECTION
        if sum(1 for _ in self.of(owner)) >= most:
            _refuse_more(most, "connection")

    def close(self, opened: OpenSession) -> None:
        """End a session."""
        opened.is_open = False
        self._open.pop(opened.id, None)

    def of(self, owner: object) -> Iterator[OpenSession]:
        """Return the sessions of a connection, oldest first."""
        return (opened for opened in self._open.values() if opened.owner is owner)

    def find(self, owner: object, principal: str, session_id: str) -> OpenSession:
        """Return a session of this connection, or one that waits for its known caller. Raises AwpError."""
        opened = self._open.get(session_id)
        if opened is None or self._has_ended(opened, self._clock()):
            self.sweep(at_once=True)
            raise not_found(session_id)
        if opened.owner is not owner:
            if opened.owner is not None or not principal or opened.principal != principal:
                raise not_found(session_id)
            self._check_connection(owner)
            opened.owner = owner
        opened.last_used = self._clock()
        return opened

    def resume(self, owner: object, principal: str, session_id: str, token: str) -> OpenSession:
        """Return the session of a token, even if another connection still has it. Raises AwpError."""
        opened = self._open.get(session_id)
        known = opened.token if opened is not None and not self._has_ended(opened, self._clock()) else ""
        is_token = hmac.compare_digest(known.encode(), token.encode("utf-8", "replace"))
        if opened is None or not known or not is_token or opened.principal != principal:
            raise not_found(session_id)
        if opened.owner is not owner:
            self._check_connection(owner)
        opened.owner, opened.last_used = owner, self._clock()
        return opened

    def touch(self, opened: OpenSession) -> None:
        """Record that a session was used."""
        opened.last_used = self._clock()

    def summarise(self, opened: OpenSession) -> JsonObject:
        """Describe a session for its client."""
        return {
            "session_id": opened.id,
            "url": opened.session.url,
            "page_count": len(opened.session.tabs),
            "uptime_ms": round((self._clock() - opened.created) * 1000),
        }

    def release(self, owner: object) -> None:
        """Let the sessions of a connection that is gone wait for another one."""
        now = self._clock()
        for opened in tuple(self.of(owner)):
            opened.owner, opened.last_used = None, now
        self.sweep()

    def sweep(self, *, at_once: bool = False) -> None:
        """End the sessions whose time is up, at most every SWEEP_INTERVAL unless `at_once`."""
        now = self._clock()
        if now < self._next_sweep and not at_once and len(self._open) < self.browsing.sessions:
            return
        self._next_sweep = now + SWEEP_INTERVAL
        for opened in tuple(self._open.values()):
            if self._has_ended(opened, now):
                self.close(opened)

    def clear(self) -> None:
        """End all sessions."""
        for opened in tuple(self._open.values()):
            self.close(opened)

    def _has_ended(self, opened: OpenSession, now: float) -> bool:
        if now >= opened.expires:
            return True
        patience = RESUME_WITHIN if opened.owner is None else self.idle
        return not opened.turns.is_busy and now - opened.last_used >= patience


def _refuse_more(most: int, of: str) -> NoReturn:
    recovery = "Close a session with session.close, or come back later."
    details = {"max_sessions": most, "per": of, "recovery": recovery}
    raise AwpError("INTERNAL", f"Maximum sessions ({most}) of this {of} reached", details)


def not_found(session_id: str) -> AwpError:
    """Return the refusal of a session that does not exist, or is not the caller's."""
    recovery = "Make one with session.create; after a reconnect session.resume, in another process session.import."
    details = {"session_id": session_id[:100], "recovery": recovery}
    return AwpError("NOT_FOUND", f"Session not found: {session_id[:100]}", details)


def read_milliseconds(params: Mapping[str, object], name: str, otherwise: float) -> float:
    """Read a time in milliseconds, as seconds. Raises AwpError unless it is a positive number."""
    given = params.get(name)
    if given is None:
        return otherwise
    if isinstance(given, bool) or not isinstance(given, (int, float)) or given <= 0:
        refuse(f"{name} must be a positive number of milliseconds.", param=name)
    return given / 1000


def _read_printable(params: Mapping[str, object], name: str) -> str | None:
    given = params.get(name)
    if given is not None and (not isinstance(given, str) or not 0 < len(given) <= 500 or not given.isprintable()):
        refuse(f"{name} must be printable text of 1 to 500 characters.", param=name)
    return given


# --- Skills: the site's own actions ---

_PLACES: Final[Mapping[str, str]] = {
    "skill": "it is a parameter of skills.invoke, beside args",
    "args": "put its members directly into args",
    "input": "put its members directly into args",
    "idempotency_key": "send it as meta.idempotency_key of the message",
    "confirmation": "it is a parameter of skills.invoke, beside args",
    "receipts": "they are a parameter of skills.invoke, beside args",
}
"""Where parameters of skills.invoke belong that callers put into its args by mistake."""


class AwpSkills:
    """The actions of one catalog, as skills."""

    def __init__(self, door: Context) -> None:
        self.renderer = ProblemRenderer(door.catalog, RECOVERIES)
        self._invoker = door.invoker
        self.answer_redactors = door.invoker.answer_redactors
        self._admission = door.admission
        self.calls = InnerCalls(door, PROTOCOL, door.catalog.paths.awp, _PLACES)
        self._lists_only_allowed = door.settings.list_only_allowed
        self._actions = {action.id: action for action in door.catalog.actions}
        self._public = [action.id for action in door.catalog.actions if action.is_public]
        # In the draft a skill has actions; here each skill has one, and its input schema.
        self._listed = {
            action.id: {
                "name": action.id,
                "title": action.name,
                "description": action.description,
                "agent": action.agent_id,
                "actions": [action.operation],
                "input_schema": action.inputs,
                "output_schema": answer_schema(action),
                "auth_required": action.auth_required,
                "scopes": list(action.scopes),
                "side_effect": action.side_effect,
                "requires_human_confirmation": action.needs_confirmation,
                "execution": action.execution,
                "tags": list(action.tags),
            }
            for action in door.catalog.actions
        }

    def list(self, caller: Principal | None) -> JsonObject:
        """Return the result of skills.list: skills that a caller may see, or may call
        (`Site(list_only_allowed=True)`).
        """
        scopes = caller.scopes if caller is not None else None
        shown = [
            self._listed[action.id]
            for action in self._actions.values()
            if action.is_for(scopes)
            and (
                not self._lists_only_allowed
                or action.route_authenticates  # only the route knows whom it allows
                or not (action.auth_required or action.scopes)
                or (scopes is not None and scopes.issuperset(action.scopes))
            )
        ]
        return {"skills": shown, "count": len(shown)}

    def read(self, request: AwpRequest, signed: Signed | None) -> InnerCall:
        """Read the call of a skills.invoke. Raises AwpError."""
        params = request.params
        skill, operation, given = params.get("skill"), params.get("action"), params.get("args", {})
        if not isinstance(skill, str):
            raise missing("skill")
        for name in ("input", "arguments"):
            if name in params:
                refuse(f"skills.invoke takes the input of a skill as args, not as {name}.", param="args")
        if operation is not None and not isinstance(operation, str):
            refuse("action must be text.", param="action")
        if not isinstance(given, dict):
            refuse("args must be an object.", param="args")
        # A skill is an action's id, or an agent whose operation is named by `action`.
        action = self._actions.get(skill)
        if action is None or operation not in (None, DEFAULT_OPERATION, action.operation, action.id):
            try:
                action = self._invoker.find(PROTOCOL, skill, operation)
            except Problem:
                raise self.refusal(self.unknown(skill, operation), request.trace) from None
        objection: Problem | None = None
        if action.max_body_bytes is not None or self._admission.max_body_bytes > self._admission.usual_body_bytes:
            try:
                self._admission.check_size(action, len(orjson.dumps(given)))
            except Problem as problem:
                if action.is_public:
                    raise self.refusal(problem, request.trace) from problem
                objection = problem
        name = action.idempotency.key_field if action.idempotency else "idempotency_key"
        beside = ("confirmation", "receipts", "session")
        members = {member: params[member] for member in beside if params.get(member) is not None}
        if request.key is not None:
            members[name] = request.key
        inner = InnerCall(action, given, members, request.trace, signed)
        inner.unknown, inner.objection = partial(self.unknown, skill, operation), objection
        return inner

    def unknown(self, skill: str, operation: str | None) -> Problem:
        """Return the refusal for an unknown skill."""
        problem = self._invoker.unknown(PROTOCOL, skill, operation)
        if not isinstance(problem, UnknownAgent):
            return problem
        meant = did_you_mean(skill, self._public)
        recovery = "Use a name that skills.list tells."
        return UnknownAgent(f'This site has no skill "{skill[:100]}". {meant}'.rstrip(), recovery=recovery)

    def refusal(self, problem: Problem, trace: str) -> AwpError:
        """Return the error for a request that is not a call, and record it as every other door does."""
        self._invoker.note_refusal(PROTOCOL, trace, problem)
        return error_of(problem, self.renderer, trace)

    async def invoke(
        self, skill_call: InnerCall, site: SiteClient, caller: Identity, session: Session | None
    ) -> JsonObject:
        """Send a call to our own door, as a request through the whole application.

        Returns the result of skills.invoke. Raises AwpError.
        """
        action = skill_call.action
        result, added = await self.calls.send(skill_call, site, caller.header, session)
        if isinstance(result, Problem):
            raise error_of(result, self.renderer, skill_call.trace, added)
        shown = shown_headers((*result.headers, *added))
        return {
            "status": "accepted" if result.status == 202 else "ok",
            "skill": action.id,
            "action": action.operation,
            "output": JsonText(result.body),
            **({"headers": shown} if shown else {}),
        }


# --- Requests and their results, without frames ---

HELLO: Final = "awp.hello"

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
"""Prefixes of methods of the specifications that a browser without JavaScript and network control cannot have."""

SAFE: Final = {method.name for method in METHODS.values() if method.scope == "som:read"} | {"session.cookies.get"}
"""Methods that change nothing, which are carried out again if they are repeated."""

OF_ONE_PAGE: Final = METHODS.keys() - {
    *("page.create", "page.close", "page.list"),
    *("session.cookies.get", "session.cookies.set", "session.cookies.clear"),
}
"""Methods that concern one page only."""

MAX_METHODS: Final = 1_000
"""Idempotency keys of one connection whose methods are remembered."""

WAITS: Final = ("dom_content_loaded", "load", "network_idle", "som_stable")
"""Draft, Page Lifecycle. Without JavaScript a loaded page satisfies all of these."""


class AwpClient:
    """One client: its identity since the handshake, and its requests. `events` follow the next response."""

    def __init__(self, door: "AwpDoor", site: SiteClient, take_place: Callable[[Principal | None], None]) -> None:
        """Create a client. `take_place` moves its connection to its caller's share, or raises RateLimited."""
        self.door = door
        self._take_place = take_place
        self.identity: Identity | None = None
        self.events: list[JsonObject] = []
        self.followed: dict[str, str | None] = {}
        """Events of the site to which it subscribes from now on, and its positions in them."""
        self._site = site
        self._answers = AnswerCache()
        self._wanted: frozenset[str] = frozenset()
        self._is_concurrent = False
        self._methods: dict[str, str] = {}
        """The method for which each idempotency key was used."""
        self._challenge = new_challenge()
        # Calls of skills on one connection share a session, unless they name a session of pages.
        self._conversation = door.session_ids.new_id() if door.session_ids is not None else None

    async def answer(self, request: AwpRequest) -> JsonObject:
        """Return the result of a request. Raises AwpError, Problem."""
        name = request.method
        if name == HELLO:
            return await self._greet(request)
        if self.identity is None:
            raise AwpError("INVALID_REQUEST", "Must send awp.hello before any other method")
        try:
            await self.verify()
        except Problem as problem:
            raise self.door.skills.refusal(problem, request.trace) from problem
        if (invoked := _read_skill_intent(request)) is not None:
            request, name = invoked, invoked.method
        if request.key is None:
            return await self._carry_out(self.identity, request)
        key = read_key(request.key)
        if self._methods.get(key, name) != name:
            words = "The idempotency key was used for another method."
            raise AwpError("CONFLICT", words, {"idempotency_key": key, "method": self._methods[key]})
        result = await self._carry_out(self.identity, request)
        self._methods[key] = name
        if len(self._methods) > MAX_METHODS:
            del self._methods[next(iter(self._methods))]
        return result

    async def verify(self) -> Principal | None:
        """Return the caller, identified again from time to time. Raises a Problem if the credentials are invalid."""
        before = self.identity
        if before is None:
            return None
        identity = await self.door.callers.verify(self._site.scope, before)
        if self.identity is before:  # no other handshake came meanwhile
            self.identity = identity
        return identity.principal

    async def _carry_out(self, identity: Identity, request: AwpRequest) -> JsonObject:
        name = request.method
        if name in OWN_METHODS:
            scope, answer = OWN_METHODS[name]
            identity.need(scope, name)
            return await answer(self, identity, request)
        method = METHODS.get(name)
        if method is None:
            shown = name[:100]
            if name.startswith(UNSUPPORTED):
                raise AwpError("UNSUPPORTED", f"Not supported: {shown}", {"method": shown})
            raise AwpError("INVALID_REQUEST", f"Unknown method: {shown}", {"method": shown})
        identity.need(method.scope, name)
        # Mistakes in the request are reported before its session is looked up.
        method.check(request.params)
        wait = request.params.get("wait")
        if wait is not None and not isinstance(wait, dict):
            refuse("wait must be an object.", param="wait")
        if wait and wait.get("until", "load") not in WAITS:
            refuse(f"wait.until must be one of {', '.join(WAITS)}.", param="wait.until", known=list(WAITS))
        wanted = read_milliseconds(request.params, "timeout_ms", read_milliseconds(wait or {}, "timeout_ms", 0.0))
        opened = self._find(identity, request)
        page: str | None = None  # of a request that concerns one page only
        if self._is_concurrent and name in OF_ONE_PAGE:
            # The oldest page may change while earlier requests run.
            oldest = None if opened.turns.has_whole else next(iter(opened.session.tabs), None)
            named = request.params.get("page_id")
            page = named if isinstance(named, str) else oldest
        session, seconds = opened.session, min(self.door.max_seconds, wanted or opened.timeout)

        async def run() -> JsonObject:
            cursors: Mapping[str, int] = {}
            if MUTATION in self._wanted and method.scope == "page:act":
                pages = [tab for tab in session.tabs.values() if page is None or tab.id == page]
                cursors = {tab.id: tab.history.cursor for tab in pages if tab.history.current is not None}
            steps, is_large = method.run(session, request.params), has_large_page(session)
            result = await drive(steps, self._site.fetch, name, seconds, in_thread=is_large, alone=opened.stepping)
            self.events += mutations_since(session, cursors, request.trace)
            return result

        async with opened.turns.take(page):
            self._check_open(opened)
            result = await opened.answers.answer_once(request, run, is_safe=name in SAFE)
            self.door.sessions.touch(opened)
            return result

    async def _greet(self, request: AwpRequest) -> JsonObject:
        """Answer the handshake. It may be repeated by the same caller, or by one who was unknown before."""
        door, before = self.door, self.identity
        ids = frozenset(one.id for one in door.catalog.events)
        hello = read_hello(request.params, is_packed=request.is_packed, known=ids)
        auth, challenge = request.params.get("auth"), self._challenge
        if auth is None and before is not None:
            identity = before
        else:
            self._challenge = new_challenge()
            try:
                identity = await door.callers.identify(self._site.scope, auth, challenge)
            except Problem as problem:
                error = door.skills.refusal(problem, request.trace)
                raise AwpError(error.code, error.message, {**error.details, **self._to_sign()}) from problem
            if door.sessions.browsing.auth_required and identity.principal is None:
                details = {"methods": door.callers.methods, **self._to_sign()}
                raise AwpError("PERMISSION_DENIED", "This site asks who is browsing.", details)
            if before is not None and before.id != identity.id and (before.id or any(door.sessions.of(self))):
                words = "This connection belongs to another caller, or has sessions."
                raise AwpError("CONFLICT", words, {"method": HELLO})
            try:
                self._take_place(identity.principal)
            except RateLimited as problem:
                raise door.skills.refusal(problem, request.trace) from problem
            self.identity = identity
        events = [one for one in ids if door.events.find(one, identity.principal) is not None]
        hello = replace(hello, events=hello.events.intersection({MUTATION, *events}))
        self._wanted, self._is_concurrent = hello.events, hello.concurrency
        self.followed = {one: hello.cursors.get(one) for one in hello.events - {MUTATION}}
        described = {
            "method": identity.method,
            "principal": identity.principal.id if identity.principal is not None else None,
            "scopes": sorted(identity.scopes),
            "methods": door.callers.methods,
            **self._to_sign(),
        }
        return render_hello(door.catalog, door.sessions, hello, described, sorted(events))

    def _to_sign(self) -> JsonObject:
        """Return the challenge for the next attempt, which refusals contain too."""
        return {"challenge": self._challenge} if "auth.hmac" in self.door.callers.methods else {}

    def leave(self) -> None:
        """Let the sessions of a connection that is gone wait for another one."""
        self.door.sessions.release(self)

    # --- Sessions ---

    def _find(self, caller: Identity, request: AwpRequest) -> OpenSession:
        return self.door.sessions.find(self, caller.id, _read_session_id(request))

    def _check_open(self, opened: OpenSession) -> None:
        """Refuse a session that was closed, or resumed elsewhere, while a request waited for its turn."""
        if not opened.is_open or opened.owner is not self:
            raise not_found(opened.id)

    def _describe(self, opened: OpenSession) -> JsonObject:
        sessions = self.door.sessions
        times = {
            "ttl_ms": opened.ttl_ms,
            "timeout_ms": round(opened.timeout * 1000),
            "idle_ms": round(sessions.idle * 1000),
            "resume_ms": round(RESUME_WITHIN * 1000),
        }
        return {"session_id": opened.id, "resume_token": opened.token, **times}

    async def create_session(self, caller: Identity, request: AwpRequest) -> JsonObject:
        """Answer session.create."""
        params = request.params

        async def run() -> JsonObject:
            # Draft, Capability Rules: a request that needs an unavailable feature is refused, not ignored.
            if params.get("persist"):
                recovery = "Keep what session.export answers, and session.import it later."
                details = {"param": "persist", "recovery": recovery}
                raise AwpError("UNSUPPORTED", "Sessions are not kept over a restart.", details)
            network, profile = params.get("network"), params.get("profile")
            for name, given in (("network", network), ("profile", profile)):
                if given is not None and not isinstance(given, dict):
                    refuse(f"{name} must be an object.", param=name)
            asked = {"proxy": params.get("proxy")}
            asked |= {"network.proxy": network.get("proxy")} if isinstance(network, dict) else {}
            for name, proxy in asked.items():
                # Draft, session.create: {"mode": "none"} requests no proxy.
                if proxy not in (None, "none", {}, {"mode": "none"}):
                    words = "There are no proxies: only this site is browsed."
                    raise AwpError("UNSUPPORTED", words, {"param": name})
            for name in ("impersonate", "impersonation"):
                if isinstance(profile, dict) and profile.get(name) not in (None, "none"):
                    words = "No browser is impersonated: pages are asked for under the session's own user agent."
                    raise AwpError("UNSUPPORTED", words, {"param": f"profile.{name}"})
            door, address = self.door, self._site.address
            return self._describe(door.sessions.create(self, caller.id, params, door.max_seconds, address))

        return await self._answers.answer_once(request, run)

    async def close_session(self, caller: Identity, request: AwpRequest) -> JsonObject:
        """Answer session.close."""
        opened = self._find(caller, request)
        async with opened.turns.take():
            self._check_open(opened)
            self.door.sessions.close(opened)
        return {"closed": True}

    async def list_sessions(self, caller: Identity, request: AwpRequest) -> JsonObject:
        """Answer session.list: the sessions of this connection."""
        sessions = self.door.sessions
        listed = [sessions.summarise(opened) for opened in sessions.of(self)]
        return {"sessions": listed, "count": len(listed)}

    async def resume_session(self, caller: Identity, request: AwpRequest) -> JsonObject:
        """Answer session.resume, for a session whose connection is gone, or not yet known to be gone."""
        session_id, token = _read_session_id(request), request.params.get("resume_token")
        if not isinstance(token, str):
            raise missing("resume_token")
        opened = self.door.sessions.resume(self, caller.id, session_id, token)
        return {**self._describe(opened), **self.door.sessions.summarise(opened)}

    async def export_session(self, caller: Identity, request: AwpRequest) -> JsonObject:
        """Answer session.export: what can be transferred, signed for this caller."""
        opened = self._find(caller, request)
        async with opened.turns.take():
            self._check_open(opened)
            state, expires = self.door.exports.write({"p": caller.id, "s": opened.session.export()})
        return {"session_id": opened.id, "state": state, "expires_at": int(expires)}

    async def import_session(self, caller: Identity, request: AwpRequest) -> JsonObject:
        """Answer session.import: a new session with the exported content, in this process or another."""
        door, params = self.door, request.params

        async def run() -> JsonObject:
            state = params.get("state")
            if not isinstance(state, str):
                raise missing("state")
            try:
                facts = door.exports.read(state)
            except NotOurs:
                refuse("The state is not an export of this site.", param="state")
            except Expired:
                refuse("The state has expired.", param="state")
            if facts.get("p") != caller.id:
                raise AwpError("PERMISSION_DENIED", "The state was exported for another caller.", {"param": "state"})
            exported, limit, address = facts.get("s"), door.max_seconds, self._site.address
            opened = door.sessions.restore(self, caller.id, exported, params, limit, address)
            return {**self._describe(opened), **door.sessions.summarise(opened)}

        return await self._answers.answer_once(request, run)

    # --- Skills ---

    async def list_skills(self, caller: Identity, request: AwpRequest) -> JsonObject:
        """Answer skills.list."""
        return self.door.skills.list(caller.principal)

    async def invoke_skill(self, caller: Identity, request: AwpRequest) -> JsonObject:
        """Answer skills.invoke: with the cookies of a session, or without one."""
        opened = self._find(caller, request) if request.params.get("session_id") is not None else None
        call = self.door.skills.read(request, caller.signed)
        call.conversation = self._conversation
        if call.action.idempotency is not None:
            request = replace(request, key=None)  # the action's own gate handles its keys
        session = opened.session if opened is not None else None

        async def run() -> JsonObject:
            answer = await self.door.skills.invoke(call, self._site, caller, session)
            headers = answer.get("headers")
            begun = headers.get("awp_session") if isinstance(headers, Mapping) else None
            if isinstance(begun, str) and "session" not in call.members:
                self._conversation = begun  # the connection goes on in the session that has begun, or has a new id
            return answer

        redact = self.door.skills.answer_redactors.get(call.action.id)
        if opened is None:
            return await self._answers.answer_once(request, run, redact)
        async with opened.turns.take():
            self._check_open(opened)
            return await opened.answers.answer_once(request, run, redact)


def _read_skill_intent(request: AwpRequest) -> AwpRequest | None:
    """Return the skills.invoke for a page.act with `skill.x` or `intent.x` (paper 6.4), or None for others.

    The skill's input is the intent's `args`, or its `value` if that is an object.
    """
    intent = request.params.get("intent") if request.method == "page.act" else None
    action = intent.get("action") if isinstance(intent, dict) else None
    if not isinstance(intent, dict) or not isinstance(action, str) or not action.startswith(RESERVED):
        return None
    given = intent.get("args", intent.get("value", {}))
    beside = {name: value for name, value in intent.items() if name in ("confirmation", "receipts", "session")}
    params = {**request.params, **beside, "skill": action.partition(".")[2], "args": given}
    del params["intent"]
    return replace(request, method="skills.invoke", params=params)


Answer: TypeAlias = Callable[[AwpClient, Identity, AwpRequest], Awaitable[JsonObject]]

OWN_METHODS: Final[Mapping[str, tuple[str, Answer]]] = {
    "session.create": ("session:write", AwpClient.create_session),
    "session.close": ("session:write", AwpClient.close_session),
    "session.list": ("", AwpClient.list_sessions),
    "session.resume": ("session:write", AwpClient.resume_session),
    "session.export": ("session:write", AwpClient.export_session),
    "session.import": ("session:write", AwpClient.import_session),
    "skills.list": ("", AwpClient.list_skills),
    "skills.invoke": ("skills:invoke", AwpClient.invoke_skill),
}
"""Methods that do not concern a page, and the scopes that they need (paper, Table 3)."""


def _read_session_id(request: AwpRequest) -> str:
    given = request.params.get("session_id")
    if given is None:
        raise missing("session_id")
    if not isinstance(given, str):
        refuse("session_id must be text.", param="session_id")
    return given


# --- Frames ---

logger: Final = logging.getLogger("awp_publish.calls")

_NO_HANDSHAKE: Final = CloseReason(1008, "There was no awp.hello.")
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
        """Return True after the handshake."""
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
                    for one, after in batch.steps():
                        occurrence = {"event_id": one.id, "name": name, "timestamp": one.timestamp, "data": one.data}
                        occurrence |= {"cursor": events.write_cursor(after)}
                        message = make_message(new_trace(), type="event", method=name, params=occurrence)
                        await self._write(message, is_packed=is_packed)

    async def _is_still(self, caller: Principal | None) -> bool:
        """Return True if the caller's permissions are unchanged; close the connection for invalid credentials."""
        try:
            known = await self._client.verify()
        except Problem:
            self.close(_NOT_KNOWN)
            return False
        if known != caller and known is not None and caller is not None and known.key == caller.key:
            self.close(_NOT_KNOWN)  # otherwise a new handshake has restarted this
        return known == caller

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

_UPGRADE: Final = Reply(
    426, (PLAIN, (b"upgrade", b"websocket")), b"The Agent Web Protocol is spoken here over WebSocket.\n"
)


def open_door(context: Context) -> Endpoints:
    """Open the door of one public address of a site."""
    door, path = AwpDoor(context), context.catalog.paths.awp
    return Endpoints(exact={path: door.answer_http}, running=door.running, sockets={path: door.answer})


class AwpDoor:
    """Accepts WebSockets, and has the parts that all connections share. `max_seconds` limits the time of any method."""

    def __init__(self, context: Context) -> None:
        settings, self.catalog = context.settings, context.catalog
        self.sessions = Sessions(context.options, own_urls(context))
        self.callers, self.skills = AwpCallers(context), AwpSkills(context)
        self.exports = Tokens(context.keys, f"awp_session:{settings.namespace}", EXPORT_LIFETIME)
        self.events, self.session_ids = context.ask("events").log, session_ids_of(context)
        self.max_seconds = settings.timeout
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
                held = place.enter_context(self.open.hold(None, address, is_identified=False))
            except RateLimited as problem:
                await self._gate.refuse_problem(problem, scope, receive, send)
                return
            if await self._gate.accept(scope, receive, send, SUBPROTOCOLS):
                await self._serve(scope, receive, send, held, address)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, held: Place, address: str) -> None:
        admission, app = self._context.admission, self._context.entrance(scope)
        site = SiteClient(app, scope, self.catalog.prefix, PAGE_BYTES, self._tasks, address)
        client = AwpClient(self, site, partial(self.open.identify, held, address=address))
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
            await send_reply(_UPGRADE, send)

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
