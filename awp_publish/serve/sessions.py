"""Sessions: at every door the one way in which callers without a cookie jar keep their cookies.

What the route of an action sets in cookies is kept in the store under an id of ours, which the answer hands out; a
call that shows the id has the cookies. A caller who sends cookies has a jar, and needs none of it. The id is a secret,
so the store knows only its digest; a session that a known caller has begun is nobody else's. It ends when its cookies
are cleared, when nobody has used it for IDLE seconds, and LIFETIME seconds after it began.

Where middleware of the site stands outside of us, a call with a session comes in once more, from outside and with its
cookies, so that what this middleware knows its visitors by holds for agents too. The cookies that it sets on the way
out are the session's.
"""

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Final, TypeAlias, cast

import orjson

from awp_publish.browsing.addresses import WebAddress, parse_address
from awp_publish.browsing.cookies import Cookie, CookieJar
from awp_publish.model import Catalog
from awp_publish.policy.call import SESSION_HEADER, Call, Deliver, Outcome, Result
from awp_publish.policy.guard import VOLATILE_COOKIES, Guards, Tokens
from awp_publish.problems import HandlerFailed, Problem, SessionUnknown, StoreUnavailable, code_of
from awp_publish.serve.credentials import TrustedProxies, client_address, read_credentials
from awp_publish.serve.dispatch import NOT_CARRIED, ROUTE_CALL, come_from_outside, read_answer
from awp_publish.serve.http import AsgiApp, Message, Receive, Scope, Send, read_fields
from awp_publish.stores.store import Add, Count, Look, Step, Store, Swap, session_key, unavailable

logger: Final = logging.getLogger("awp_publish.calls")

# --- What is kept of a session. The cookies themselves are in the store in the clear, as they are in a browser's ---

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

    def ids_of_job(self, job_id: str) -> tuple[str, ...]:
        """Return the ids that a session has which a job has begun, under each of the site's keys, the newest first.

        They are not kept with the job: who reads the store learns none.
        """
        names = [digest[:32] for digest in self._tokens.digests(f"job {job_id}")]
        return tuple(name + self._tokens.digests(name)[0][:24] for name in names)

    async def find(self, session_id: str) -> KeptSession | None:
        """Return a session, None if there is none under that id."""
        return await self.load(session_key(session_id)) if _ID.fullmatch(session_id) else None

    async def load(self, key: str) -> KeptSession | None:
        """Return the session under a key, None for none."""
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

    async def begin(self, key: str, owner: str, address: str, set_cookies: Iterable[str], at: WebAddress) -> bool:
        """Keep the cookies that an answer from an address sets; False if the caller's `address` has begun too many."""
        now = self._clock()
        jar = CookieJar(MAX_COOKIES, MAX_COOKIE_BYTES)
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


def names_somebody(cookie: str) -> bool:
    """Tell whether a header Cookie holds more than what proxies, statistics and CSRF checks leave in any client."""
    names = (pair.partition("=")[0].strip() for pair in cookie.split(";"))
    return any(name and not VOLATILE_COOKIES.match(name) for name in names)


def _is_worth(jar: CookieJar) -> bool:
    return any(not VOLATILE_COOKIES.match(cookie.name) for cookie in jar)


def _write(owner: str, created: float, used: float, jar: CookieJar) -> bytes:
    while True:
        cookies = [asdict(cookie) for cookie in jar]
        raw = orjson.dumps({"owner": owner, "created": created, "used": used, "cookies": cookies})
        if len(raw) <= MAX_BYTES or not cookies:
            return raw
        jar.remove([next(iter(jar))])


def has_session_callers(guards: Guards, catalog: Catalog) -> bool:
    """Tell whether callers are known by cookies: by the application's session or user, or by a route's own scheme."""
    by_session = any(one.method == "session" for one in guards.authenticators)
    return by_session or any(one.place == "cookie" for action in catalog.actions for one in action.route_credentials)


# --- Calls with a session ---

CHALLENGE: Final = "AWP-Session"
"""No such scheme is registered, but a 401 has to carry a challenge (RFC 9110 section 11.6.1)."""

_FAILED: Final = "a request with the cookies of a session failed (request_id=%s)"
_NOT_KEPT: Final = "the cookies of action %s are not kept (request_id=%s)"

Run: TypeAlias = Callable[[Call, Deliver], Awaitable[None]]
"""Carries a call through its gates and its handler."""


@dataclass(frozen=True, slots=True)
class Outside:
    """The whole application, where something stands outside of us; `carried` are members that its scopes need."""

    app: AsgiApp
    state: Callable[[], Mapping[str, object]]
    carried: tuple[str, ...] = ()


class SessionCalls:
    """Runs the calls of one catalog that have a session, or may begin one. `outside` is None where nothing is there."""

    def __init__(
        self,
        sessions: CookieSessions,
        catalog: Catalog,
        guards: Guards,
        trusted_proxies: TrustedProxies,
        outside: Outside | None,
    ) -> None:
        self._sessions = sessions
        self._catalog = catalog
        self._proxies = trusted_proxies
        self._outside = outside
        # Whose a session is, it cannot say itself. What is wrong with credentials is counted by the call's own gate.
        others = tuple(one for one in guards.authenticators if one.method != "session")
        self._identify = replace(guards.identify(), authenticators=others, store=None) if others else None
        self._addresses: dict[str, WebAddress] = {
            action.id: parse_address(catalog.absolute(action.target.path if action.target else catalog.paths.invoke))
            for action in catalog.actions
        }
        self._recovery: str | None = None
        if (sign_in := catalog.sign_in) is not None and code_of(SessionUnknown.slug) not in catalog.site.errors:
            again = "then send the session that its answer hands out."
            self._recovery = f"Leave the session out and call {sign_in.id}, {again}"

    async def __call__(self, run: Run, call: Call, deliver: Deliver) -> None:
        """Run a call. Delivers SessionUnknown for a session that is none, or not this caller's."""
        scope = cast(Scope, call.context)
        fields, at, taken = read_fields(scope["headers"]), self._addresses[call.action.id], list[str]()
        if call.has_cookie_jar or names_somebody(fields.get(b"cookie", b"").decode("latin-1")):
            if SESSION_HEADER in fields:
                self._put_headers(call, scope, "")
            await run(call, deliver)
            return
        try:
            session = await self._find(call)
        except Problem as problem:
            if call.action.is_public:
                await deliver(problem)
            else:
                call.objection = problem
                await run(call, deliver)
            return

        if session is None:
            new_id = call.conversation
            if new_id is None or not self._sessions.is_own(new_id):
                new_id = self._sessions.new_id()

            def take(set_cookies: list[bytes]) -> None:
                taken.extend(one.decode("latin-1") for one in set_cookies)
                if taken and self._sessions.are_worth(taken, at):
                    call.session_id = session_key(new_id)

            async def hand_out(result: Result) -> None:
                if call.session_id:
                    address = client_address(scope, fields, self._proxies)
                    try:  # who came without cookies is known, if at all, by more than the session
                        if await self._sessions.begin(session_key(new_id), call.caller_id, address, taken, at):
                            call.headers += ((SESSION_HEADER, new_id.encode()),)
                    except StoreUnavailable:  # must not cost the caller the answer
                        logger.exception(_NOT_KEPT, call.action.id, call.request_id)
                await deliver(result)

            call.on_cookies, call.is_fresh = take, self._outside is not None
            await run(call, hand_out)
            return

        call.session_id = session.key
        call.on_cookies = lambda set_cookies: taken.extend(one.decode("latin-1") for one in set_cookies)

        async def keep(result: Result) -> None:
            # The session has the cookies: a client with a jar, which would send one of them, is known by its session.
            if isinstance(result, Outcome):
                result.headers = tuple(pair for pair in result.headers if pair[0] != b"set-cookie")
            else:
                result.headers = tuple(pair for pair in result.headers if pair[0].lower() != "set-cookie")
            try:
                await self._sessions.update(session, taken, at)
            except StoreUnavailable:  # must not cost the caller the answer
                logger.exception(_NOT_KEPT, call.action.id, call.request_id)
            await deliver(result)

        cookies = self._sessions.header_for(session, at)
        if self._outside is None:
            self._put_headers(call, scope, cookies)
            await run(call, keep)
        else:
            await self._reenter(run, call, keep, scope, cookies, taken)

    async def _find(self, call: Call) -> KeptSession | None:
        """Return the session that a call shows. Raises SessionUnknown, StoreUnavailable."""
        shown, conversation = call.session, call.conversation
        if shown is None and (conversation is None or not self._sessions.is_own(conversation)):
            return None
        session = await self._sessions.find(shown or conversation or "")
        if session is not None and session.owner != await self._own_id(call, session.owner):
            session = None
        if session is None and shown is not None:
            raise self._unknown()
        return session

    async def _own_id(self, call: Call, owner: str) -> str:
        """Return the id of a caller who is known by more than the session, "" for nobody."""
        if self._identify is None or call.credentials is None:
            return ""
        try:
            principal = await self._identify(call.credentials())
        except Problem:
            if owner and not call.action.route_authenticates:
                raise
            return ""  # the call's own gate says what is wrong
        return principal.id if principal is not None else ""

    def _put_headers(self, call: Call, scope: Scope, cookies: str) -> Scope:
        """Give a call the scope with the cookies of its session."""
        changed = with_cookies(scope, cookies)
        self._put_scope(call, changed)
        return changed

    def _put_scope(self, call: Call, scope: Scope) -> None:
        call.context, before = scope, call.credentials
        if before is not None:
            shown, now = before(), read_credentials(scope, read_fields(scope["headers"]), self._proxies)
            credentials = now._replace(address=shown.address, signed=shown.signed)
            call.credentials = lambda: credentials

    async def _reenter(
        self, run: Run, call: Call, deliver: Deliver, scope: Scope, cookies: str, taken: list[str]
    ) -> None:
        """Run a call within a request that comes in from outside, with the cookies of its session."""
        results = list[Result]()

        async def arrive(inner: Scope, answer: Callable[[], Awaitable[None]]) -> None:
            async def deliver_inside(result: Result) -> None:
                results.append(result)
                await answer()  # which goes out through all that looks at cookies

            self._put_scope(call, inner)
            await run(call, deliver_inside)

        passing = SessionPass(arrive)
        entering = asyncio.ensure_future(self._enter(passing, self._put_headers(call, scope, cookies), call.request_id))
        try:
            await passing.wait(entering)
            taken += passing.set_cookies
            if results:
                await deliver(results[0])
            elif not passing.has_arrived:  # something around us has answered, or failed
                refused = 300 <= passing.status < 600
                failure = HandlerFailed("The site failed before the action was called.")
                await deliver(read_answer(call, passing.status, (), b"", {}) if refused else failure)
        except asyncio.CancelledError:
            entering.cancel()
            raise
        finally:
            await asyncio.wait({entering})  # the handler may work on after its answer
        if not entering.cancelled() and (error := entering.exception()) is not None:
            logger.error(_FAILED, call.request_id, exc_info=error)

    async def _enter(self, passing: "SessionPass", scope: Scope, request_id: str) -> None:
        outside = cast(Outside, self._outside)
        carried = {name: scope[name] for name in outside.carried if name in scope}
        headers = [pair for pair in scope["headers"] if pair[0] not in NOT_CARRIED]
        fresh = {**come_from_outside({**scope, "headers": headers}, outside.state(), request_id), **carried}
        fresh[ROUTE_CALL] = passing
        await outside.app(fresh, passing.receive, passing.send)

    async def visit(self, scope: Scope) -> Scope:
        """Return the scope of a request that is no call as what knows visitors sees it with the session that it shows.

        Raises SessionUnknown, StoreUnavailable.
        """
        fields = read_fields(scope["headers"])
        shown = fields.get(SESSION_HEADER, b"").decode("latin-1").strip()
        if not shown or names_somebody(fields.get(b"cookie", b"").decode("latin-1")):
            return scope
        session, own = await self._sessions.find(shown), ""
        if self._identify is not None:
            principal = await self._identify(read_credentials(scope, fields, self._proxies))
            own = principal.id if principal is not None else ""
        if session is None or session.owner != own:
            raise self._unknown()
        cookies = self._sessions.header_for(session, parse_address(self._catalog.absolute("/")))
        changed = with_cookies(scope, cookies)
        if self._outside is None:
            return changed
        seen = [changed]

        async def arrive(inner: Scope, answer: Callable[[], Awaitable[None]]) -> None:
            seen.append(inner)

        try:
            await self._enter(SessionPass(arrive), changed, "")
        except Exception:
            logger.exception(_FAILED, "")
        return seen[-1]

    def _unknown(self) -> SessionUnknown:
        detail, challenge = "This session is not known here, or is over.", [("WWW-Authenticate", CHALLENGE)]
        return SessionUnknown(detail, recovery=self._recovery, headers=challenge)


def with_cookies(scope: Scope, cookies: str) -> Scope:
    """Return the scope that a caller with these cookies would have sent. Nobody behind it sees the session's id."""
    headers = [pair for pair in scope["headers"] if pair[0] != SESSION_HEADER]
    if cookies:
        own = [value for name, value in headers if name == b"cookie"]
        headers = [pair for pair in headers if pair[0] != b"cookie"]
        headers.append((b"cookie", b"; ".join([*own, cookies.encode("latin-1", "replace")])))
    return {**scope, "headers": headers}


class SessionPass:
    """A request on its way through what stands outside of us. `arrived` is given the scope in which it arrives."""

    target = None

    def __init__(self, arrived: Callable[[Scope, Callable[[], Awaitable[None]]], Awaitable[None]]) -> None:
        self._arrived = arrived
        self._is_sent = False
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.has_arrived = False
        self.status = 0
        self.set_cookies: list[str] = []

    async def arrive(self, app: AsgiApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Have done what is to be done here, and answer the request, as soon as that wants it or when it is done."""
        self.has_arrived, is_answered = True, False
        scope.pop(ROUTE_CALL)

        async def answer() -> None:
            nonlocal is_answered
            is_answered = True
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body", "body": b""})

        await self._arrived(scope, answer)
        if not is_answered:
            await answer()

    async def receive(self) -> Message:
        if not self._is_sent:
            self._is_sent = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await asyncio.wait({self._ended})
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = message.get("headers", ())
            self.set_cookies = [value.decode("latin-1") for name, value in headers if name.lower() == b"set-cookie"]
        elif message["type"] == "http.response.body" and not message.get("more_body", False):
            self._end()

    async def wait(self, entering: "asyncio.Future[None]") -> None:
        """Return when the request is answered, or its task has ended without that."""
        entering.add_done_callback(lambda _: self._end())
        await self._ended

    def _end(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)
