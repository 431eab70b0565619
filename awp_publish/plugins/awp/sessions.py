"""Browsing sessions of clients, and their owners."""

import asyncio
import hmac
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, NoReturn

from awp_publish.browsing.addresses import Origins
from awp_publish.browsing.browser import PAGE_BYTES, PAGES_PER_SESSION, SessionLimits
from awp_publish.browsing.compiled import PageCache
from awp_publish.browsing.errors import AwpError, refuse
from awp_publish.browsing.session import Session
from awp_publish.calls.call import share_of
from awp_publish.http.client_address import network_around
from awp_publish.http.sockets import ADDRESS_SHARE, IDLE_SECONDS, room_for_unknown
from awp_publish.model import JsonObject
from awp_publish.plugins.awp.answers import AnswerCache
from awp_publish.plugins.awp.options import Awp

SMALLEST_SHARE: Final = 8
"""Sessions that one caller may have at least, however few a process keeps."""
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
        share = max(browsing.sessions // ADDRESS_SHARE, SMALLEST_SHARE)
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
            "max_sessions": self.per_share,
            "max_pages_per_session": PAGES_PER_SESSION,
            "max_messages_per_second": self.browsing.messages_per_second,
        }

    def create(
        self, owner: object, principal: str, params: Mapping[str, object], max_seconds: float, address: str = ""
    ) -> OpenSession:
        """Make a session. `max_seconds` limits its timeout. Raises AwpError."""
        profile = params.get("profile")
        user_agent = _read_printable(params, "user_agent")
        locale = _read_printable(params, "locale")
        if not locale and isinstance(profile, dict):
            locale = _read_printable(profile, "locale")
        declared, pages = params.get("limits"), self._limits.pages
        if not isinstance(declared, dict | None):
            refuse("limits must be an object.", param="limits")
        # Draft: fewer than the site allows.
        max_pages = declared.get("max_pages") if declared is not None else None
        if isinstance(max_pages, bool) or (max_pages is not None and (not isinstance(max_pages, int) or max_pages < 1)):
            refuse("limits.max_pages must be a positive whole number.", param="limits.max_pages")
        limits = replace(self._limits, pages=min(max_pages or pages, pages))
        session = Session(self._origins, user_agent=user_agent, locale=locale, limits=limits, cache=self._cache)
        return self._add(session, owner, principal, address, params, max_seconds)

    def restore(
        self, owner: object, principal: str, exported: object, params: JsonObject, max_seconds: float, address: str = ""
    ) -> OpenSession:
        """Make the session that an export describes, with a new id. Raises AwpError."""
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
        self._make_room(principal, address)  # nothing is closed for what is refused
        opened = OpenSession(session, owner, principal, address, timeout, now, now, now + lifetime)
        self._open[opened.id] = opened
        return opened

    def _make_room(self, principal: str, address: str) -> None:
        """Make room for one more session of a caller. Raises AwpError if there is none.

        A caller at its limit, then unknown callers together are refused before anybody else's session is closed. All
        sessions of a caller may be on one connection (paper, Goal 4). If the server is full, the oldest session without
        a connection is closed.
        """
        self.sweep()
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

    def close(self, opened: OpenSession) -> None:
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
            opened.owner = owner
        opened.last_used = self._clock()
        return opened

    def resume(self, owner: object, principal: str, session_id: str, token: str) -> OpenSession:
        """Return the session of a token, even if another connection still has it. Raises AwpError."""
        opened = self._open.get(session_id)
        expected = opened.token if opened is not None and not self._has_ended(opened, self._clock()) else ""
        is_token = hmac.compare_digest(expected.encode(), token.encode("utf-8", "replace"))
        if opened is None or not expected or not is_token or opened.principal != principal:
            raise not_found(session_id)
        opened.owner, opened.last_used = owner, self._clock()
        return opened

    def touch(self, opened: OpenSession) -> None:
        """Record that a session was used."""
        opened.last_used = self._clock()

    def summarise(self, opened: OpenSession) -> JsonObject:
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
    value = params.get(name)
    if value is None:
        return otherwise
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
        refuse(f"{name} must be a positive number of milliseconds.", param=name)
    return value / 1000


def _read_printable(params: Mapping[str, object], name: str) -> str | None:
    text = params.get(name)
    if text is not None and (not isinstance(text, str) or not 0 < len(text) <= 500 or not text.isprintable()):
        refuse(f"{name} must be printable text of 1 to 500 characters.", param=name)
    return text
