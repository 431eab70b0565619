"""The browsing sessions of one process: who holds which, when they end, and how they are found again after a reconnect.

A session belongs to the connection that made it. When that is gone the session waits for `resume`, for a connection
that shows its token, or that is made by the same known caller. To anybody else it is not there.
"""

import asyncio
import hmac
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from awp_publish.browsing.addresses import Origins
from awp_publish.browsing.browser import SessionLimits
from awp_publish.browsing.errors import AwpError, missing, refuse
from awp_publish.browsing.page import PageCache
from awp_publish.browsing.session import Session
from awp_publish.model import Browsing, JsonObject
from awp_publish.serve.awp_repeats import Repeats
from awp_publish.values import seconds_of

SWEEP: Final = 5.0
"""Seconds between looks for sessions that have ended."""


class Held:
    """A session and what the door knows of it. `holder` is the connection that has it, None after that is gone.

    `address` is that of the client who made it, "" where it is not known.
    Methods of one session are carried out one after the other, in the order in which they came: `turn` sees to it.
    """

    __slots__ = (
        "address",
        "created",
        "ends",
        "holder",
        "is_open",
        "principal",
        "repeats",
        "seconds",
        "session",
        "token",
        "turn",
        "used",
    )

    def __init__(
        self,
        session: Session,
        holder: object,
        principal: str,
        address: str,
        seconds: float,
        now: float,
        ends: float,
    ) -> None:
        self.session = session
        self.holder: object | None = holder
        self.principal = principal
        self.address = address
        self.seconds = seconds
        self.created = self.used = now
        self.ends = ends
        self.token = secrets.token_urlsafe(24)
        self.turn = asyncio.Lock()
        self.repeats = Repeats()
        self.is_open = True

    @property
    def id(self) -> str:
        return self.session.id


class Sessions:
    """All sessions of one address of the site in this process."""

    def __init__(self, browsing: Browsing, urls: tuple[str, ...], clock: Callable[[], float] = time.monotonic) -> None:
        self.browsing = browsing
        self.limits = SessionLimits(pages=browsing.pages_per_session, page_bytes=browsing.page_bytes)
        self._origins = Origins.of(*urls)
        self._cache = PageCache()
        self._clock = clock
        self._held: dict[str, Held] = {}
        self._idle = float(seconds_of(browsing.idle))
        self._lifetime = float(seconds_of(browsing.lifetime))
        self._resume = float(seconds_of(browsing.resume))
        self._next_sweep = 0.0

    def __len__(self) -> int:
        return len(self._held)

    @property
    def times(self) -> JsonObject:
        """What a client is told of how long sessions last, in milliseconds."""
        return {"idle_ms": round(self._idle * 1000), "resume_ms": round(self._resume * 1000)}

    # --- Making and ending ---

    def create(
        self, holder: object, principal: str, params: Mapping[str, object], longest: float, address: str = ""
    ) -> Held:
        """A new session. `longest` is the most seconds that anything may take. Raises AwpError."""
        profile = params.get("profile") if isinstance(params.get("profile"), dict) else {}
        assert isinstance(profile, dict)
        self._check_room(holder, address)
        session = Session(
            self._origins,
            user_agent=_read_text(params, "user_agent"),
            locale=_read_text(params, "locale") or _read_text(profile, "locale"),
            limits=replace(self.limits, pages=_read_most_pages(params, self.limits.pages)),
            cache=self._cache,
        )
        return self._keep(session, holder, principal, address, params, longest)

    def restore(
        self, holder: object, principal: str, exported: object, params: JsonObject, longest: float, address: str = ""
    ) -> Held:
        """The session that an export describes, under a new id. Raises AwpError."""
        self._check_room(holder, address)
        session = Session.restore(exported, self._origins, limits=self.limits, cache=self._cache)
        return self._keep(session, holder, principal, address, params, longest)

    def _keep(
        self,
        session: Session,
        holder: object,
        principal: str,
        address: str,
        params: Mapping[str, object],
        longest: float,
    ) -> Held:
        now = self._clock()
        lifetime = min(self._lifetime, read_milliseconds(params, "ttl_ms", self._lifetime))
        seconds = min(longest, read_milliseconds(params, "timeout_ms", longest))
        held = Held(session, holder, principal, address, seconds, now, now + lifetime)
        self._held[held.id] = held
        return held

    def _check_room(self, holder: object, address: str) -> None:
        """Make room for one more session of a connection. Raises AwpError where there is none.

        A connection at its limit, and then an address, is refused before anybody else's session is closed.
        """
        self.sweep()
        self._check_connection(holder)
        if address:
            self._make_room(self.browsing.sessions_per_address, "address", address)
        self._make_room(self.browsing.sessions, "server", None)

    def _check_connection(self, holder: object) -> None:
        if sum(1 for _ in self.of(holder)) >= self.browsing.sessions_per_connection:
            raise _too_many(self.browsing.sessions_per_connection, "connection")

    def _make_room(self, most: int, of: str, address: str | None) -> None:
        """Whoever is here goes before whoever may come back: of those without a connection the oldest makes room."""
        counted = [held for held in self._held.values() if address is None or held.address == address]
        if len(counted) < most:
            return
        waiting = [held for held in counted if held.holder is None]
        if not waiting:
            raise _too_many(most, of)
        self.close(min(waiting, key=lambda held: held.used))

    def close(self, held: Held) -> None:
        """End a session."""
        held.is_open = False
        self._held.pop(held.id, None)

    # --- Finding ---

    def of(self, holder: object) -> Iterator[Held]:
        """The sessions of a connection, the oldest first."""
        return (held for held in self._held.values() if held.holder is holder)

    def find(self, holder: object, principal: str, session_id: str) -> Held:
        """A session of this connection, or one that waits for its known caller. Raises AwpError."""
        held = self._held.get(session_id)
        if held is None or self._has_ended(held, self._clock()):
            self.sweep(at_once=True)
            raise not_found(session_id)
        if held.holder is not holder:
            if held.holder is not None or not principal or held.principal != principal:
                raise not_found(session_id)
            self._check_connection(holder)
            held.holder = holder
        held.used = self._clock()
        return held

    def resume(self, holder: object, principal: str, session_id: str, token: str) -> Held:
        """A session whose token is shown, even from a connection that still has it. Raises AwpError."""
        held = self._held.get(session_id)
        known = held.token if held is not None and not self._has_ended(held, self._clock()) else ""
        is_token = hmac.compare_digest(known.encode(), token.encode("utf-8", "replace"))
        if held is None or not known or not is_token or held.principal != principal:
            raise not_found(session_id)
        if held.holder is not holder:
            self._check_connection(holder)
        held.holder, held.used = holder, self._clock()
        return held

    def touch(self, held: Held) -> None:
        """A session has been used."""
        held.used = self._clock()

    def uptime_ms(self, held: Held) -> int:
        """How long a session has been there."""
        return round((self._clock() - held.created) * 1000)

    # --- Ending by time ---

    def release(self, holder: object) -> None:
        """A connection is gone: its sessions wait for another."""
        now = self._clock()
        for held in tuple(self.of(holder)):
            held.holder, held.used = None, now
        self.sweep()

    def sweep(self, *, at_once: bool = False) -> None:
        """End the sessions whose time is up; at most every SWEEP seconds unless `at_once`."""
        now = self._clock()
        if now < self._next_sweep and not at_once and len(self._held) < self.browsing.sessions:
            return
        self._next_sweep = now + SWEEP
        for held in tuple(self._held.values()):
            if self._has_ended(held, now):
                self.close(held)

    def clear(self) -> None:
        """End all."""
        for held in tuple(self._held.values()):
            self.close(held)

    def _has_ended(self, held: Held, now: float) -> bool:
        if now >= held.ends:
            return True
        return not held.turn.locked() and now - held.used >= (self._resume if held.holder is None else self._idle)


def _too_many(most: int, of: str) -> AwpError:
    recovery = "Close a session with session.close, or come back later."
    details = {"max_sessions": most, "per": of, "recovery": recovery}
    return AwpError("INTERNAL", f"Maximum sessions ({most}) of this {of} reached", details)


def not_found(session_id: str) -> AwpError:
    """What a caller is told of a session that is not there, or not theirs."""
    recovery = "Make one with session.create; after a reconnect session.resume, in another process session.import."
    details = {"session_id": session_id[:100], "recovery": recovery}
    return AwpError("NOT_FOUND", f"Session not found: {session_id[:100]}", details)


def read_session_id(params: Mapping[str, object]) -> str:
    """The session that a request is about. Raises AwpError."""
    given = params.get("session_id")
    if given is None:
        raise missing("session_id")
    if not isinstance(given, str):
        refuse("session_id must be text.", param="session_id")
    return given


def read_milliseconds(params: Mapping[str, object], name: str, otherwise: float) -> float:
    """A time in milliseconds, as seconds. Raises AwpError for what is no positive number."""
    given = params.get(name)
    if given is None:
        return otherwise
    if isinstance(given, bool) or not isinstance(given, (int, float)) or given <= 0:
        refuse(f"{name} must be a positive number of milliseconds.", param=name)
    return given / 1000


def _read_most_pages(params: Mapping[str, object], most: int) -> int:
    """`limits.max_pages` of the draft: fewer pages than the site allows. Raises AwpError for what is no number."""
    limits = params.get("limits")
    wanted = limits.get("max_pages") if isinstance(limits, dict) else None
    if wanted is None:
        return most
    if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1:
        refuse("limits.max_pages must be a positive whole number.", param="limits.max_pages")
    return min(wanted, most)


def _read_text(params: Mapping[str, object], name: str) -> str | None:
    given = params.get(name)
    if given is not None and (not isinstance(given, str) or not 0 < len(given) <= 500 or not given.isprintable()):
        refuse(f"{name} must be printable text of 1 to 500 characters.", param=name)
    return given
