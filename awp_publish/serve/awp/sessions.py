"""The callers of the AWP door, the handshake `awp.hello` in which they may say who they are, and their sessions.

Callers are known by what the upgrade request shows, as at every other door, or by the `auth` of awp.hello. A caller
whose scopes name some of AWP's own has these and no others; everybody else has those of DEFAULT_SCOPES. A session
belongs to the connection that made it. When that is gone the session waits for `resume`, for a connection that shows
its token, or that is made by the same known caller. To anybody else it is not there.
"""

import asyncio
import hmac
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Final, NoReturn

from awp_publish.browsing.addresses import Origins
from awp_publish.browsing.errors import AwpError, refuse
from awp_publish.browsing.observing import FORMATS
from awp_publish.browsing.page import PAGE_BYTES, PAGES_PER_SESSION, PageCache, SessionLimits
from awp_publish.browsing.session import Session
from awp_publish.model import Catalog, JsonObject
from awp_publish.policy.authentication import ApiKey, ApplicationUser, SessionUser, SharedSecret
from awp_publish.policy.call import Principal, Signed
from awp_publish.serve.awp.messages import MUTATION, AnswerCache
from awp_publish.serve.credentials import read_credentials
from awp_publish.serve.doors import DoorContext
from awp_publish.serve.http import Pair, Scope, read_fields, with_header
from awp_publish.serve.sockets import ADDRESS_SHARE
from awp_publish.settings import IDLE_SECONDS, Browsing

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

METHODS: Final = ("auth.none", "auth.bearer", "auth.hmac")

_TOKEN: Final = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller, if they are known: how, and with what a call of theirs shows it again."""

    method: str
    principal: Principal | None
    header: Pair | None = None
    signed: Signed | None = None

    @property
    def id(self) -> str:
        """The known caller's id, "" for nobody."""
        return self.principal.id if self.principal is not None else ""

    @property
    def scopes(self) -> frozenset[str]:
        """Return their permissions at this door."""
        named = self.principal.scopes.intersection(SCOPES) if self.principal is not None else None
        return named or DEFAULT_SCOPES

    def need(self, scope: str, method: str) -> None:
        """Raise AwpError PERMISSION_DENIED without that scope; "" is had by everybody."""
        if scope and scope not in self.scopes:
            details = {"required_scope": scope, "method": method, "scopes": sorted(self.scopes)}
            raise AwpError("PERMISSION_DENIED", f"{method} needs the scope {scope}.", details)


class AwpCallers:
    """Identifies callers. `methods` are the ways to be known that awp.hello can take."""

    def __init__(self, door: DoorContext) -> None:
        kinds = door.guards.authenticators
        self._identify = door.guards.identify()
        self._proxies = door.admission.trusted_proxies
        # The header that a token of awp.hello stands for, None where nobody reads one.
        others = (SharedSecret, SessionUser, ApplicationUser, ApiKey)
        reads_bearer = any(not isinstance(one, others) for one in kinds)
        if reads_bearer or any(action.route_authenticates for action in door.catalog.actions):
            self._token_header: str | None = "authorization"
        else:
            self._token_header = next((one.header.lower() for one in kinds if isinstance(one, ApiKey)), None)
        signs = any(isinstance(one, SharedSecret) for one in kinds)
        taken = {"auth.none": True, "auth.bearer": self._token_header is not None, "auth.hmac": signs}
        self.methods = [method for method in METHODS if taken[method]]

    async def identify(self, scope: Scope, auth: object, challenge: str) -> Identity:
        """Identify who opened a connection: `scope` is its upgrade, `auth` that of awp.hello.

        Raises AwpError for an `auth` that cannot be read, and the Problem of an authenticator for wrong credentials.
        """
        given = {"method": "auth.none"} if auth is None else auth
        if not isinstance(given, dict):
            refuse("auth must be an object with a method.", param="auth")
        method = given.get("method", given.get("type"))
        if method not in METHODS:
            refuse(f"auth.method must be one of {', '.join(METHODS)}.", param="auth.method", methods=list(METHODS))
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
        fields = read_fields(with_header(scope["headers"], header))
        credentials = read_credentials(scope, fields, self._proxies)._replace(signed=signed)
        return Identity(method, await self._identify(credentials), header, signed)


def new_challenge() -> str:
    """Return a text for a caller to sign, once."""
    return secrets.token_urlsafe(24)


# --- `awp.hello` ---
# The MVP (section 4.1) sends client_name, client_version and awp_version, and gets a list of features; the draft
# (Handshake) sends client, awp.versions and wants, and gets an object of features. Everything else is in both answers.

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
"""The features of a site that is browsed; "skills.invoke" where it has actions."""


@dataclass(frozen=True, slots=True)
class Hello:
    """A client's handshake: whether in the draft's shape, the encoding it gets, and the events it wants.

    `cursors` say where it was in those of the site.

    With `concurrency` requests of one session for different pages do not wait for one another (paper, 4.2).
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
    """Render the result of a handshake. `offered` are the events of the site that the caller may want."""
    from awp_publish import __version__ as version

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
        "server_version": version,
        "features": features,
        "awp": {"version": VERSION},
        "encoding": {"selected": hello.encoding},
        "compression": {"selected": "none"},
        "concurrency": {"selected": "pages" if hello.concurrency else "none"},
        "server": {"name": NAME, "version": version, "site": catalog.site.name, "url": catalog.url},
        "limits": limits,
        "events": sorted(hello.events),
        **({"available_events": offered} if offered else {}),
        "auth": auth,
    }


# --- Sessions ---

SESSIONS_PER_CONNECTION: Final = 8
LIFETIME: Final = 8 * 3600.0
"""Seconds after which a session ends, however much it is used."""
RESUME_WITHIN: Final = 300.0
"""Seconds for which a session waits without a connection."""
EXPORT_LIFETIME: Final = 24 * 3600.0
"""Seconds for which an exported session can be imported."""

SWEEP_INTERVAL: Final = 5.0
"""Seconds between looks for sessions that have ended."""


class Turns:
    """The order of one session's requests. Each waits for those before it about the same page or all of the session."""

    __slots__ = ("_ahead",)

    def __init__(self) -> None:
        self._ahead: list[tuple[str | None, asyncio.Event]] = []

    @property
    def is_busy(self) -> bool:
        """Return True while a request is carried out or waits."""
        return bool(self._ahead)

    @property
    def has_whole(self) -> bool:
        """Return True while one of them is about the whole session."""
        return any(page is None for page, _ in self._ahead)

    @asynccontextmanager
    async def take(self, page: str | None = None) -> AsyncIterator[None]:
        """Have the turn of a request about one page, or about the whole session."""
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
    """A session and what the door knows of it. `owner` is the connection that has it, None after that is gone.

    `address` is that of the client who made it, "" where it is not known, `timeout` the seconds that its methods may
    take. Its methods are carried out in the order in which they came, in `turns`. Of several at the same time only one
    reads and changes what the pages share, under `stepping`.
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


class Sessions:
    """All sessions of one address of the site in this process. Times are in seconds of `clock`."""

    def __init__(self, browsing: Browsing, urls: tuple[str, ...], clock: Callable[[], float] = time.monotonic) -> None:
        self.browsing = browsing
        share = max(browsing.sessions // ADDRESS_SHARE, SESSIONS_PER_CONNECTION)
        self.per_address = min(browsing.sessions, share)
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
        """Return what the handshake tells of the limits."""
        return {
            "max_sessions": min(self.per_address, SESSIONS_PER_CONNECTION),
            "max_pages_per_session": PAGES_PER_SESSION,
            "max_messages_per_second": self.browsing.messages_per_second,
        }

    def create(
        self, owner: object, principal: str, params: Mapping[str, object], max_seconds: float, address: str = ""
    ) -> OpenSession:
        """Make a session. `max_seconds` is the most that anything may take. Raises AwpError."""
        profile = params.get("profile")
        self._make_room(owner, address)
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
        """Make the session that an export describes, under a new id. Raises AwpError."""
        self._make_room(owner, address)
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

    def _make_room(self, owner: object, address: str) -> None:
        """Make room for one more session of a connection. Raises AwpError where there is none.

        A connection at its limit, and then an address, is refused before anybody else's session is closed. Whoever is
        here goes before whoever may come back: of the sessions without a connection the oldest makes room.
        """
        self.sweep()
        self._check_connection(owner)
        of_address = (self.per_address, "address", lambda one: one.address == address)
        of_server = (self.browsing.sessions, "server", lambda one: True)
        for most, of, counts in (of_address, of_server) if address else (of_server,):
            counted = [one for one in self._open.values() if counts(one)]
            if len(counted) < most:
                continue
            waiting = [one for one in counted if one.owner is None]
            if not waiting:
                _refuse_more(most, of)
            self.close(min(waiting, key=lambda one: one.last_used))

    def _check_connection(self, owner: object) -> None:
        most = SESSIONS_PER_CONNECTION
        if sum(1 for _ in self.of(owner)) >= most:
            _refuse_more(most, "connection")

    def close(self, opened: OpenSession) -> None:
        """End a session."""
        opened.is_open = False
        self._open.pop(opened.id, None)

    def of(self, owner: object) -> Iterator[OpenSession]:
        """Return the sessions of a connection, the oldest first."""
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
        """Return a session whose token is shown, even from a connection that still has it. Raises AwpError."""
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
        """Note that a session was used."""
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
        """Have the sessions of a connection that is gone wait for another."""
        now = self._clock()
        for opened in tuple(self.of(owner)):
            opened.owner, opened.last_used = None, now
        self.sweep()

    def sweep(self, *, at_once: bool = False) -> None:
        """End the sessions whose time is up; at most every SWEEP_INTERVAL unless `at_once`."""
        now = self._clock()
        if now < self._next_sweep and not at_once and len(self._open) < self.browsing.sessions:
            return
        self._next_sweep = now + SWEEP_INTERVAL
        for opened in tuple(self._open.values()):
            if self._has_ended(opened, now):
                self.close(opened)

    def clear(self) -> None:
        """End all."""
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
    """Return the refusal of a session that is not there, or not the caller's."""
    recovery = "Make one with session.create; after a reconnect session.resume, in another process session.import."
    details = {"session_id": session_id[:100], "recovery": recovery}
    return AwpError("NOT_FOUND", f"Session not found: {session_id[:100]}", details)


def read_milliseconds(params: Mapping[str, object], name: str, otherwise: float) -> float:
    """Read a time in milliseconds, as seconds. Raises AwpError for what is no positive number."""
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
