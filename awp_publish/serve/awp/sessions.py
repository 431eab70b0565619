"""The browsing sessions of one process: who holds which, when they end, and how they are found again after a reconnect.

A session belongs to the connection that made it. When that is gone the session waits for `resume`, for a connection
that shows its token, or that is made by the same known caller. To anybody else it is not there.
"""

import asyncio
import hmac
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from awp_publish.browsing.addresses import Origins, WebAddress, parse_address
from awp_publish.browsing.browser import SessionLimits
from awp_publish.browsing.errors import AwpError, missing, refuse
from awp_publish.browsing.page import Fetch, Fetched, PageCache, Steps
from awp_publish.browsing.session import Session
from awp_publish.model import Browsing, Catalog, JsonObject, seconds_of
from awp_publish.policy.idempotency import read_key
from awp_publish.policy.tokens import Expired, NotOurs, Tokens
from awp_publish.problems import Problem
from awp_publish.serve.awp.callers import Callers, Identity, with_header
from awp_publish.serve.awp.messages import Repeats, Request, fingerprint_of
from awp_publish.serve.awp.skills import CARRIED, Carried, Skills
from awp_publish.serve.http import AsgiApp, Scope
from awp_publish.serve.pages import FORWARDED, PageAnswer, PageExchange, PageRequest

# --- How the AWP door reaches the site's own pages: as a visitor does who has the session's cookies ---
# Requests come in from outside, so that sessions, authentication and all other middleware hold. Of the WebSocket's
# own request they have the client's address and the state of the lifespan, no credentials. An answer is given on as
# soon as it is complete; what a page does after it is done to its end.

logger: Final = logging.getLogger("awp_publish.calls")


class Tails:
    """Requests that go on after their answer, as background tasks of an application do: they have an owner."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, task: "asyncio.Task[None]") -> None:
        """Look after a task from now on."""
        self._tasks.add(task)
        task.add_done_callback(self._forget)

    async def end(self) -> None:
        """Cancel those that still run, and wait for them."""
        running = tuple(self._tasks)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)

    def _forget(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a page that was browsed failed", exc_info=error)


@dataclass(frozen=True, slots=True)
class Surface:
    """Where one connection's requests come in: the application, and what its own request said of the client.

    `prefix` is the path of the site's public address, `most_bytes` how much of an answer is read, `address` that of the
    client, "" where it is not known.
    """

    app: AsgiApp
    scope: Scope
    prefix: str
    most_bytes: int
    tails: Tails
    address: str = ""

    async def fetch(self, fetch: Fetch, members: Mapping[str, object] | None = None) -> Fetched:
        """Ask the site. `members` are further members of the scope. Raises AwpError NAVIGATION_FAILED.

        Returns as soon as the answer is complete, or longer than any page may be; then its beginning is returned.
        """
        exchange = PageExchange(fetch.body, self.most_bytes)
        scope = {**self._request_of(fetch).scope(self.scope), **(members or {})}
        task = asyncio.create_task(_run(self.app, scope, exchange), name="awp_publish browsing")
        self.tails.add(task)
        try:
            return _told(await exchange.answered)
        except asyncio.CancelledError:
            exchange.hang_up()
            task.cancel()
            raise
        finally:
            if exchange.is_cut:
                task.cancel()

    def _request_of(self, fetch: Fetch) -> PageRequest:
        """The session's own request, with its cookies; of the WebSocket's what proxies say, and its state."""
        path, _, query = fetch.path.partition("?")
        own = ((name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in fetch.headers)
        return PageRequest(
            urlsplit(fetch.origin),
            self._inside(path.encode("latin-1", "replace")),
            query.encode("latin-1", "replace"),
            (*own, *(pair for pair in self.scope["headers"] if pair[0] in FORWARDED)),
            fetch.method,
            fetch.body,
            self.scope.get("state", {}),
        )

    def _inside(self, path: bytes) -> bytes:
        """A public path as the application knows it: a proxy may have taken the site's prefix off, or a server not."""
        prefix = self.prefix.encode("latin-1", "replace")
        if path != prefix and not path.startswith(prefix + b"/"):
            raise AwpError("NAVIGATION_FAILED", "The address is not one of this site.", {"reason": "foreign_address"})
        return path.removeprefix(prefix)


async def _run(app: AsgiApp, scope: Scope, exchange: PageExchange) -> None:
    """The application has returned, or raised; a server would answer for it if it has not done so itself."""
    try:
        await app(scope, exchange.receive, exchange.send)
    finally:
        if not exchange.answered.done():
            details = {"status": 500, "reason": "no_answer"}
            exchange.answered.set_exception(AwpError("NAVIGATION_FAILED", "The site failed to answer.", details))


def _told(answer: PageAnswer) -> Fetched:
    headers = tuple((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in answer.headers)
    return Fetched(answer.status, headers, answer.body)


# --- Drives a method of a browsing session ---

LARGE: Final = 64_000
"""Bytes of a page that is read in a thread: it takes longer than others should wait."""

_READERS: Final = ThreadPoolExecutor(2, "awp_publish browsing")
"""Threads of their own, and few: pages that strangers ask for must not keep others from theirs."""

Reach: TypeAlias = Callable[[Fetch], Awaitable[Fetched]]


@dataclass(frozen=True, slots=True)
class Done:
    """The end of a method. StopIteration, which carries its result, cannot leave a thread."""

    result: JsonObject


def has_large_page(session: Session) -> bool:
    """Whether a page of a session is large: to look at it again may mean to read it again."""
    shown = (tab.history.current for tab in session.tabs.values())
    return any(one is not None and one.page is not None and len(one.page.html) > LARGE for one in shown)


async def drive(steps: Steps, reach: Reach, method: str, seconds: float, *, in_thread: bool = False) -> JsonObject:
    """What a method comes to. Raises its AwpError; TIMEOUT when its time is up, and then its page is as it was.

    `in_thread` says that its first step takes long already.
    """
    try:
        async with asyncio.timeout(seconds):
            return await _run_steps(steps, reach, in_thread=in_thread)
    except TimeoutError:
        details = {"timeout_ms": round(seconds * 1000), "method": method}
        raise AwpError("TIMEOUT", f"{method} took longer than {seconds:g} seconds.", details) from None
    finally:
        steps.close()


async def _run_steps(steps: Steps, reach: Reach, *, in_thread: bool) -> JsonObject:
    step = await _advance_in_thread(steps, None) if in_thread else _advance(steps, None)
    while isinstance(step, Fetch):
        fetched = await reach(step)
        takes_long = in_thread or len(fetched.body) > LARGE
        step = await _advance_in_thread(steps, fetched) if takes_long else _advance(steps, fetched)
    return step.result


def _advance(steps: Steps, fetched: Fetched | None) -> Fetch | Done:
    try:
        return next(steps) if fetched is None else steps.send(fetched)
    except StopIteration as end:
        return Done(end.value)


async def _advance_in_thread(steps: Steps, fetched: Fetched | None) -> Fetch | Done:
    """A thread cannot be interrupted: whoever is cancelled waits until it has ended, so that `steps` can be closed."""
    job = _READERS.submit(_advance, steps, fetched)
    advancing = asyncio.wrap_future(job)
    try:
        return await asyncio.shield(advancing)
    except asyncio.CancelledError:
        if not job.cancel():
            await asyncio.wait({advancing})
        raise


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


# --- What the methods of the AWP door work with ---


@dataclass(frozen=True, slots=True)
class Desk:
    """What all clients share. `longest` are the seconds that anything may take."""

    catalog: Catalog
    browsing: Browsing
    sessions: Sessions
    callers: Callers
    skills: Skills
    exports: Tokens
    longest: float


class Client:
    """One client: where its requests to the site come in, who it is since its handshake, and what it has been told.

    `wanted` are the events that it asked for, `events` those that it is to be told after the present answer.
    """

    def __init__(self, desk: Desk, surface: Surface) -> None:
        self.desk = desk
        self.surface = surface
        self.identity: Identity | None = None
        self.repeats = Repeats()
        self.wanted: frozenset[str] = frozenset()
        self.events: list[dict[str, object]] = []

    @property
    def caller(self) -> Identity:
        """Who it is. Raises AwpError before the handshake."""
        if self.identity is None:
            raise AwpError("INVALID_REQUEST", "Must send awp.hello before any other method")
        return self.identity

    def find(self, request: Request) -> Held:
        """The session that a request is about. Raises AwpError."""
        return self.desk.sessions.find(self, self.caller.id, read_session_id(request.params))

    def check_open(self, held: Held) -> None:
        """A session may have been closed, or resumed elsewhere, while a request waited for its turn."""
        if not held.is_open or held.holder is not self:
            raise not_found(held.id)


async def once(repeats: Repeats, request: Request, run: Callable[[], Awaitable[JsonObject]]) -> JsonObject:
    """The answer under a request's idempotency key, if there is one; else what `run` comes to, which is remembered.

    Raises InvalidIdempotencyKey for a key that is none.
    """
    if request.key is None:
        return await run()
    key, fingerprint = read_key(request.key), fingerprint_of(request.method, request.params)
    async with repeats.turn:
        found = repeats.find(key, fingerprint)
        if found is not None:
            return found
        result = await run()
        repeats.keep(key, fingerprint, result)
        return result


# --- The methods of the AWP door that are about sessions as a whole ---


async def create_session(client: Client, request: Request) -> JsonObject:
    """session.create."""
    return await once(client.repeats, request, partial(_create, client, request.params))


async def _create(client: Client, params: Mapping[str, object]) -> JsonObject:
    _refuse_unsupported(params)
    address = client.surface.address
    held = client.desk.sessions.create(client, client.caller.id, params, client.desk.longest, address)
    return _tell(client, held)


def _refuse_unsupported(params: Mapping[str, object]) -> None:
    """Draft, Capability Rules: what needs a feature that is not there is refused, not ignored."""
    if params.get("persist"):
        details = {"param": "persist", "recovery": "Keep what session.export answers, and session.import it later."}
        raise AwpError("UNSUPPORTED", "Sessions are not kept over a restart.", details)
    network = params.get("network")
    proxy = network.get("proxy") if isinstance(network, dict) else None
    mode = proxy.get("mode", "none") if isinstance(proxy, dict) else proxy
    if mode not in (None, "none"):
        raise AwpError("UNSUPPORTED", "There are no proxies: only this site is browsed.", {"param": "network.proxy"})


async def close_session(client: Client, request: Request) -> JsonObject:
    """session.close."""
    held = client.find(request)
    async with held.turn:
        client.check_open(held)
        client.desk.sessions.close(held)
    return {"closed": True}


async def list_sessions(client: Client, request: Request) -> JsonObject:
    """session.list: those of this connection."""
    listed = [_summarise(client, held) for held in client.desk.sessions.of(client)]
    return {"sessions": listed, "count": len(listed)}


async def resume_session(client: Client, request: Request) -> JsonObject:
    """session.resume: a session whose connection is gone, or is about to be found gone."""
    session_id, token = read_session_id(request.params), request.params.get("resume_token")
    if not isinstance(token, str):
        raise missing("resume_token")
    held = client.desk.sessions.resume(client, client.caller.id, session_id, token)
    return {**_tell(client, held), **_summarise(client, held)}


async def export_session(client: Client, request: Request) -> JsonObject:
    """session.export: all that is worth carrying, signed for this caller."""
    held = client.find(request)
    async with held.turn:
        client.check_open(held)
        state, expires = client.desk.exports.write({"p": client.caller.id, "s": held.session.export()})
    return {"session_id": held.id, "state": state, "expires_at": int(expires)}


async def import_session(client: Client, request: Request) -> JsonObject:
    """session.import: a new session like the one that was exported, in this process or another."""
    return await once(client.repeats, request, partial(_import, client, request.params))


async def _import(client: Client, params: JsonObject) -> JsonObject:
    desk, state = client.desk, params.get("state")
    if not isinstance(state, str):
        raise missing("state")
    exported = _read_export(desk.exports, state, client.caller.id)
    held = desk.sessions.restore(client, client.caller.id, exported, params, desk.longest, client.surface.address)
    return {**_tell(client, held), **_summarise(client, held)}


def _read_export(exports: Tokens, state: str, caller: str) -> object:
    try:
        facts = exports.read(state)
    except NotOurs:
        refuse("The state is not an export of this site.", param="state")
    except Expired:
        refuse("The state has expired.", param="state")
    if facts.get("p") != caller:
        raise AwpError("PERMISSION_DENIED", "The state was exported for another caller.", {"param": "state"})
    return facts.get("s")


def _tell(client: Client, held: Held) -> JsonObject:
    return {"session_id": held.id, "resume_token": held.token, **client.desk.sessions.times}


def _summarise(client: Client, held: Held) -> JsonObject:
    return {
        "session_id": held.id,
        "url": held.session.url,
        "page_count": held.session.page_count,
        "uptime_ms": client.desk.sessions.uptime_ms(held),
    }


# --- The methods of the AWP door that are about the site's own actions ---

_NOT_CARRIED: Final = (
    b"accept",
    b"connection",
    b"content-",
    b"host",
    b"origin",
    b"sec-",
    b"transfer-",
    b"upgrade",
    b"x-request-id",
)
"""Beginnings of headers that speak about the upgrade, not about its caller."""


async def list_skills(client: Client, request: Request) -> JsonObject:
    """skills.list."""
    return client.desk.skills.list(client.caller.principal)


async def invoke_skill(client: Client, request: Request) -> JsonObject:
    """skills.invoke: in a session, whose cookies the call has, or without one."""
    skills = client.desk.skills
    held = client.find(request) if request.params.get("session_id") is not None else None
    try:
        carried = skills.read(request.params, request.key, request.trace, client.caller.signed)
    except Problem as problem:
        raise skills.refuse(problem, request.trace) from problem
    run = partial(_invoke, client, held, carried)
    if carried.action.idempotency is not None:
        request = replace(request, key=None)  # the action's own gate knows what its keys mean
    if held is None:
        return await once(client.repeats, request, run)
    async with held.turn:
        client.check_open(held)
        return await once(held.repeats, request, run)


async def _invoke(client: Client, held: Held | None, carried: Carried) -> JsonObject:
    """One request to our own door, in which the whole application has its say; the cookies are those of the action.

    A session is a visitor of its own: with one, the connection's cookies stay out of the call, and out of the session.
    """
    desk, action = client.desk, carried.action
    home = parse_address(desk.catalog.absolute(desk.catalog.paths.awp))
    goal = parse_address(desk.catalog.absolute(desk.catalog.endpoint_of(action)[1]))
    headers = _headers_of(client, carried, home)
    if held is not None:
        browser = held.session.browser
        visitor = {"user-agent": browser.user_agent, "cookie": browser.jar.header_for(goal, browser.clock())}
        headers = [*(pair for pair in headers if pair[0] not in visitor), *visitor.items()]
    fetch = Fetch("POST", home.target, tuple(pair for pair in headers if pair[1]), b"{}", home.origin)
    fetched = await client.surface.fetch(fetch, {CARRIED: carried})
    if held is not None:
        held.session.browser.jar.store_from(fetched.headers, goal, held.session.browser.clock())
    return desk.skills.tell(carried, fetched)


def _headers_of(client: Client, carried: Carried, home: WebAddress) -> list[tuple[str, str]]:
    """What the connection's own request showed, which may tell who calls."""
    shown = with_header(client.surface.scope["headers"], client.caller.header)
    kept = [(name, value) for name, value in shown if not name.startswith(_NOT_CARRIED)]
    own = [("host", home.authority), ("content-type", "application/json"), ("x-request-id", carried.trace)]
    return [*own, *((name.decode("latin-1"), value.decode("latin-1")) for name, value in kept)]
