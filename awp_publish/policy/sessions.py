"""Sessions of callers without a cookie jar: what actions set in cookies is kept in the store, under an id of ours.

Whoever shows the id has the cookies. It is a secret, so the store knows only its digest; a session that a known caller
has begun is nobody else's. It ends when its cookies are cleared, when nobody has used it for IDLE seconds, and
LIFETIME seconds after it began. The cookies themselves are in the store in the clear, as they are in a browser's.
"""

import logging
import re
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Final

import orjson

from awp_publish.browsing.addresses import WebAddress
from awp_publish.browsing.cookies import Cookie, CookieJar
from awp_publish.policy.idempotency import FLEETING
from awp_publish.policy.tokens import Tokens
from awp_publish.problems import SessionUnknown
from awp_publish.stores.store import SESSION, Add, Count, Look, Step, Store, Swap, unavailable

IDLE: Final = 2 * 3600.0
"""Seconds after its last use at which a session ends."""

LIFETIME: Final = 24 * 3600.0
"""Seconds after its begin at which a session ends, however much it is used."""

REFRESH: Final = IDLE / 8
"""Seconds after which a use is written down that has changed no cookie."""

MAX_COOKIES: Final = 30
MAX_COOKIE_BYTES: Final = 4096
"""Bytes of a cookie's name and value, which is what browsers take (RFC 6265 section 6.1)."""

MAX_BYTES: Final = 16_384
"""Bytes of all that is kept of a session; beyond it, as beyond MAX_COOKIES, the oldest cookies are dropped."""

MAX_ANONYMOUS: Final = 300
ANONYMOUS_WINDOW: Final = 3600.0
"""Sessions that callers of one address whom nobody knows may begin, in so many seconds."""

MAX_TRIES: Final = 100
"""Times that the cookies of one answer are put to those of other calls of the session, which write at that moment."""

_ID: Final = re.compile(r"[A-Za-z0-9_-]{32}[0-9a-f]{24}")

logger: Final = logging.getLogger("awp_publish.calls")


@dataclass(slots=True)
class KeptSession:
    """A session as it is in the store: `raw` is the record there. `key` tells sessions apart and is no secret."""

    key: str
    owner: str
    created: float
    used: float
    jar: CookieJar
    raw: bytes = field(default=b"", repr=False)


class CookieSessions:
    """The sessions of one site. `tokens` tell the ids that were made here. Every verb raises StoreUnavailable."""

    def __init__(self, store: Store, tokens: Tokens, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._tokens = tokens
        self._clock = clock

    def new_id(self) -> str:
        """Return an id that nobody can guess (192 bits), and that this site knows for its own."""
        name = secrets.token_urlsafe(24)
        return name + self._tokens.digests(name)[0][:24]

    def is_own(self, session_id: str) -> bool:
        """Tell whether an id was made by this site, and not thought up by a caller."""
        if not _ID.fullmatch(session_id):
            return False
        return any(
            secrets.compare_digest(digest[:24], session_id[32:]) for digest in self._tokens.digests(session_id[:32])
        )

    async def find(self, session_id: str) -> KeptSession | None:
        """Return a session, None if there is none under that id."""
        if not _ID.fullmatch(session_id):
            return None
        key = key_of(session_id)
        raw = (await self._store.run((Look(key),))).seen[0]
        return self._read(key, raw) if isinstance(raw, bytes) else None

    def header_for(self, session: KeptSession, at: WebAddress) -> str:
        """Return the value of the header Cookie for a request to an address, "" for none."""
        return session.jar.header_for(at, self._clock())

    def are_worth(self, set_cookies: Iterable[str], at: WebAddress) -> bool:
        """Tell whether an answer from an address sets cookies for which a session is begun."""
        jar = CookieJar(MAX_COOKIES, MAX_COOKIE_BYTES)
        jar.store_from((("set-cookie", one) for one in set_cookies), at, self._clock())
        return _is_worth(jar)

    async def begin(
        self, session_id: str, owner: str, address: str, set_cookies: Iterable[str], at: WebAddress
    ) -> bool:
        """Keep the cookies that an answer from an address sets; False if the caller's `address` has begun too many."""
        now = self._clock()
        jar, key = CookieJar(MAX_COOKIES, MAX_COOKIE_BYTES), key_of(session_id)
        jar.store_from((("set-cookie", one) for one in set_cookies), at, now)
        raw = _write(owner, now, now, jar)
        steps: list[Step] = [Add(key, raw, IDLE)]
        if not owner:
            steps.append(Count(f"sessions:ip:{address}", MAX_ANONYMOUS, ANONYMOUS_WINDOW))
        ran = await self._store.run(steps)
        if ran.failed == 0:  # another call of the same conversation was quicker
            other = self._read(key, ran.seen[0]) if isinstance(ran.seen[0], bytes) else None
            if other is None or other.owner != owner:
                return False
            await self.update(other, set_cookies, at)
            return True
        if ran.failed is not None:
            logger.warning("a session was not begun: callers of one address may begin %d an hour", MAX_ANONYMOUS)
        return ran.failed is None

    async def update(self, session: KeptSession, set_cookies: Iterable[str], at: WebAddress) -> None:
        """Put the cookies that an answer sets to those that the session has by then; without any left it ends.

        A session that has ended meanwhile stays ended.
        """
        headers = [("set-cookie", one) for one in set_cookies]
        for _ in range(MAX_TRIES):
            now = self._clock()
            if not headers and now - session.used < REFRESH:
                return
            session.jar.store_from(headers, at, now)
            new = _write(session.owner, session.created, now, session.jar) if _is_worth(session.jar) else None
            seconds = min(IDLE, session.created + LIFETIME - now)
            ran = await self._store.run((Swap(session.key, session.raw, new, seconds),))
            if ran.failed is None:
                return
            found = ran.seen[0]
            if not isinstance(found, bytes):
                return
            session = self._read(session.key, found)
        raise unavailable("The session is used by too many calls at a time.")

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
        if session.created + LIFETIME <= self._clock():  # a clock was set back, or the store's differs
            raise SessionUnknown("The session is over.")
        return session


def key_of(session_id: str) -> str:
    """Return the key of a session in the store, from which nobody finds its id."""
    return SESSION + sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()


def names_somebody(cookie: str) -> bool:
    """Tell whether a header Cookie holds more than what proxies, statistics and CSRF checks leave in any client."""
    names = (pair.partition("=")[0].strip() for pair in cookie.split(";"))
    return any(name and not FLEETING.match(name) for name in names)


def _is_worth(jar: CookieJar) -> bool:
    return any(not FLEETING.match(cookie.name) for cookie in jar)


def _write(owner: str, created: float, used: float, jar: CookieJar) -> bytes:
    while True:
        cookies = [asdict(cookie) for cookie in jar]
        raw = orjson.dumps({"owner": owner, "created": created, "used": used, "cookies": cookies})
        if len(raw) <= MAX_BYTES or not cookies:
            return raw
        jar.remove([next(iter(jar))])
