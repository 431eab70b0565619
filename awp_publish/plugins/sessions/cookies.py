"""Sessions: server-side cookie jars for callers without one, the same at every door.

The cookies that an action's route sets are kept in the store under an id of ours, which the answer contains. A later
call with this id is made with these cookies. Callers that send cookies have a jar of their own and get no session. The
id is a secret, so the store has only its digest. A session begun by an authenticated caller belongs to that caller
alone. It ends when its cookies are cleared, after IDLE seconds without use, or LIFETIME seconds after it began.

If middleware of the site runs outside of us, a call with a session is sent through it again, with its cookies, so that
this middleware recognizes agents as it recognizes visitors. Cookies that it sets on the answer go into the session.
"""

import logging
import re
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import orjson

from awp_publish.browsing.addresses import WebAddress
from awp_publish.browsing.cookies import Cookie, CookieJar
from awp_publish.calls.fingerprints import VOLATILE_COOKIES
from awp_publish.calls.gates.gate import Guards
from awp_publish.calls.tokens import Tokens
from awp_publish.http.client_address import network_around
from awp_publish.model import Catalog
from awp_publish.plugins.sessions.identity import identity_of
from awp_publish.problems import SessionUnknown
from awp_publish.stores.store import Add, Count, Step, Store, Swap, session_key, unavailable
from awp_publish.stores.values import read_value

logger: Final = logging.getLogger("awp_publish.calls")

IDLE: Final = 2 * 3600.0
"""Seconds without use after which a session ends."""

LIFETIME: Final = 24 * 3600.0
"""Seconds after its creation at which a session ends."""

REFRESH: Final = IDLE / 8
"""Seconds after which the last use is saved even if no cookie has changed."""

MAX_COOKIES: Final = 30

MAX_COOKIE_BYTES: Final = 4096
"""Maximum bytes of a cookie's name and value, as in browsers (RFC 6265 section 6.1)."""

MAX_BYTES: Final = 16_384
"""Maximum bytes of a session's record; above it, as above MAX_COOKIES, the oldest cookies are dropped."""

MAX_ANONYMOUS: Final = 300

ANONYMOUS_WINDOW: Final = 3600.0
"""Sessions that anonymous callers of one address may begin within ANONYMOUS_WINDOW seconds."""

ADDRESSES_OF_NETWORK: Final = 8
"""Times MAX_ANONYMOUS that anonymous callers of one IPv6 network of 48 bits may begin, which has 65,536 of 64 bits."""

MAX_RENEWALS: Final = 20
"""How often the id of a session may have changed while a call or job of it ran."""

MAX_TRIES: Final = 100
"""How often an update is retried if other calls of the session write at the same time."""

_RENEWED: Final = "This session has another id since its caller has signed in or out."

_RENEWED_RECOVERY: Final = (
    "Send the session that the answer to signing in or out returned; if you do not have it, leave "
    "the session out and sign in again."
)

_ID: Final = re.compile(r"[A-Za-z0-9_-]{32}[0-9a-f]{24}")


@dataclass(slots=True)
class KeptSession:
    """A session from the store; `raw` is its record. `key` identifies it and is not a secret."""

    key: str
    owner: str
    created: float
    used: float
    jar: CookieJar
    raw: bytes = field(default=b"", repr=False)


class CookieSessions:
    """The sessions of one site. `tokens` authenticate its ids. Methods that use the store raise StoreUnavailable."""

    def __init__(
        self,
        store: Store,
        tokens: Tokens,
        clock: Callable[[], float] = time.time,
        identifying: Collection[str] = (),
        successes: Any = None,
    ) -> None:
        """Create the sessions. `identifying` are the names of cookies by which callers are known to be identified.

        `successes` are those of callers that the site remembers, None if it remembers none.
        """
        self._successes = successes
        self._identifying = identifying
        self._store = store
        self._tokens = tokens
        self._clock = clock

    def new_id(self) -> str:
        """Return a new id: 192 random bits and an authentication code."""
        name = secrets.token_urlsafe(24)
        return name + self._tokens.digests(name)[0][:24]

    def is_own(self, session_id: str) -> bool:
        """Return True if this site has issued an id."""
        if not _ID.fullmatch(session_id):
            return False
        return any(
            secrets.compare_digest(digest[:24], session_id[32:]) for digest in self._tokens.digests(session_id[:32])
        )

    def ids_of_job(self, job_id: str) -> tuple[str, ...]:
        """Return the ids of the session that a job has begun, one for each signing key, the newest first.

        They are derived and not stored with the job, so that the store does not reveal them.
        """
        names = [digest[:32] for digest in self._tokens.digests(f"job {job_id}")]
        return tuple(name + self._tokens.digests(name)[0][:24] for name in names)

    async def find(self, session_id: str) -> KeptSession | None:
        """Return the session with an id, None if there is none."""
        return await self.load(session_key(session_id)) if _ID.fullmatch(session_id) else None

    async def load(self, key: str, *, follows: bool = False) -> KeptSession | None:
        """Return the session with a key, None if there is none.

        If it has a new id, it is found by `follows` alone, which is for keys that no caller has sent. Raises
        SessionUnknown otherwise.
        """
        for _ in range(MAX_RENEWALS):
            raw = await read_value(self._store, key)
            if raw is None:
                return None
            moved = _moved_to(raw)
            if moved is None:
                return self._read(key, raw)
            if not follows:
                raise SessionUnknown(_RENEWED, recovery=_RENEWED_RECOVERY)
            key = moved
        return None

    async def has_moved_to(self, session_id: str, new_ids: Iterable[str]) -> bool:
        """Return True if the session with an id has one of these new ids."""
        raw = await read_value(self._store, session_key(session_id))
        return raw is not None and _moved_to(raw) in {session_key(new_id) for new_id in new_ids}

    def header_for(self, session: KeptSession, at: WebAddress) -> str:
        """Return the Cookie header for a request to an address, "" for none."""
        return session.jar.header_for(at, self._clock())

    def are_worth_keeping(self, set_cookies: Iterable[str], at: WebAddress) -> bool:
        """Return True if an answer sets cookies that are worth a session."""
        jar = CookieJar(MAX_COOKIES, MAX_COOKIE_BYTES)
        jar.store_from((("set-cookie", cookie) for cookie in set_cookies), at, self._clock())
        return _is_worth_keeping(jar)

    async def begin(self, key: str, owner: str, address: str, set_cookies: Iterable[str], at: WebAddress) -> bool:
        """Begin a session with the cookies of an answer. Returns False if `address` has begun too many sessions."""
        now = self._clock()
        jar = CookieJar(MAX_COOKIES, MAX_COOKIE_BYTES)
        jar.store_from((("set-cookie", cookie) for cookie in set_cookies), at, now)
        raw = _write(owner, now, now, jar)
        steps: list[Step] = [Add(key, raw, IDLE)]
        if not owner:
            steps.append(Count(f"sessions:ip:{address}", MAX_ANONYMOUS, ANONYMOUS_WINDOW))
            if network := network_around(address):
                most = MAX_ANONYMOUS * ADDRESSES_OF_NETWORK
                steps.append(Count(f"sessions:ip:{network}", most, ANONYMOUS_WINDOW))
        ran = await self._store.run(steps)
        if ran.failed == 0:  # another call of the same conversation has begun it meanwhile
            other = self._read(key, ran.seen[0]) if isinstance(ran.seen[0], bytes) else None
            if other is None or other.owner != owner:
                return False
            await self.update(other, set_cookies, at)
            return True
        if ran.failed is not None:
            of, most = (
                ("address", MAX_ANONYMOUS) if ran.failed == 1 else ("network", MAX_ANONYMOUS * ADDRESSES_OF_NETWORK)
            )
            logger.warning("a session was refused: anonymous callers from one %s may begin %d an hour", of, most)
        return ran.failed is None

    async def update(
        self,
        session: KeptSession,
        set_cookies: Iterable[str],
        at: WebAddress,
        *,
        new_id: str | None = None,
        may_renew: bool = True,
    ) -> str | None:
        """Add the cookies of an answer to a session, which ends if no cookies are left.

        If they identify somebody else than before, the session moves to a new id (`new_id`, or a random one), with what
        is remembered of its successes, and the old id ends at once. Returns the new id, None if it has the same.
        Concurrent changes are kept. A call that finds that its session has moved meanwhile keeps its cookies there, if
        these identify nobody else: who knew the old id must not get at the new one. With `may_renew=False` the session
        is such a one. A session that has ended meanwhile stays ended.
        """
        headers = [("set-cookie", cookie) for cookie in set_cookies]
        new_id = new_id or self.new_id()
        for _ in range(MAX_TRIES):
            now = self._clock()
            if not headers and now - session.used < REFRESH:
                return None
            before = identity_of(session.jar, self._identifying)
            session.jar.store_from(headers, at, now)
            is_kept = _is_worth_keeping(session.jar)
            seconds = min(IDLE, session.created + LIFETIME - now)
            new = _write(session.owner, session.created, now, session.jar) if is_kept else None
            is_renewed = is_kept and identity_of(session.jar, self._identifying) != before
            if is_renewed and not may_renew:
                logger.warning("cookies of a session that has a new id were dropped: they identify somebody else")
                return None
            if is_renewed and new is not None:
                key = session_key(new_id)
                moved = orjson.dumps({"moved": key})
                # The old one moves last, once what it moves to is there.
                steps: list[Step] = [*await self._successes_of(session.key, key), Add(key, new, seconds)]
                swap = Swap(session.key, session.raw, moved, IDLE)
                ran = await self._store.run((*steps, swap))
                has_changed = ran.failed == len(steps)
            else:
                ran = await self._store.run((Swap(session.key, session.raw, new, seconds),))
                has_changed = ran.failed is not None
            if ran.failed is None:
                return new_id if is_renewed else None
            latest = await self.load(session.key, follows=True) if has_changed else None
            if latest is None:
                return None
            may_renew = may_renew and latest.key == session.key
            session = latest
        raise unavailable("Too many calls use the session at the same time.")

    async def _successes_of(self, before: str, after: str) -> Sequence[Step]:
        """Return the steps that remember the successes of a session under its new key."""
        if self._successes is None:
            return ()
        steps: Sequence[Step] = await self._successes.moved(f"session:{before}", f"session:{after}")
        return steps

    def _read(self, key: str, raw: bytes) -> KeptSession:
        try:
            facts = orjson.loads(raw)
            jar = CookieJar(MAX_COOKIES, MAX_COOKIE_BYTES)
            for cookie in facts["cookies"]:
                jar.store(Cookie(**cookie), self._clock())
            session = KeptSession(key, facts["owner"], float(facts["created"]), float(facts["used"]), jar, raw)
        except (ValueError, KeyError, TypeError) as error:
            logger.error("the record of a session cannot be read: %s", type(error).__name__)
            raise unavailable("The record of this session is damaged.") from None
        if session.created + LIFETIME <= self._clock():  # usually the store has removed it; the clocks may differ
            raise SessionUnknown("The session has ended.")
        return session


def _moved_to(raw: bytes) -> str | None:
    """Return the key to which a session has moved, None for one that is where it was."""
    if not raw.startswith(b'{"moved":'):
        return None
    key: object = orjson.loads(raw).get("moved")
    return key if isinstance(key, str) else None


def has_own_cookies(cookie: str) -> bool:
    """Return True if a Cookie header has more than the cookies that proxies, analytics and CSRF checks set."""
    names = (pair.partition("=")[0].strip() for pair in cookie.split(";"))
    return any(name and not VOLATILE_COOKIES.match(name) for name in names)


def _is_worth_keeping(jar: CookieJar) -> bool:
    return any(not VOLATILE_COOKIES.match(cookie.name) for cookie in jar)


def _write(owner: str, created: float, used: float, jar: CookieJar) -> bytes:
    while True:
        cookies = [asdict(cookie) for cookie in jar]
        raw = orjson.dumps({"owner": owner, "created": created, "used": used, "cookies": cookies})
        if len(raw) <= MAX_BYTES or not cookies:
            return raw
        jar.remove([next(iter(jar))])


def has_session_callers(guards: Guards, catalog: Catalog) -> bool:
    """Return True if callers are identified by cookies: by the application's session, or by a route's own scheme."""
    by_session = any(authenticator.method == "session" for authenticator in guards.authenticators)
    return by_session or any(
        credential.place == "cookie" for action in catalog.actions for credential in action.route_credentials
    )
