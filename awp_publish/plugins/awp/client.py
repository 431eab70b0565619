"""Requests and their results, without frames."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final, TypeAlias

from awp_publish.browsing.acting import RESERVED
from awp_publish.browsing.driving import drive, has_large_page
from awp_publish.browsing.errors import AwpError, missing, refuse
from awp_publish.browsing.methods import METHODS
from awp_publish.calls.call import Principal, read_key
from awp_publish.calls.tokens import Expired, NotOurs
from awp_publish.http.site_client import SiteClient
from awp_publish.model import JsonObject
from awp_publish.plugins.awp.answers import AnswerCache
from awp_publish.plugins.awp.callers import Identity, new_challenge
from awp_publish.plugins.awp.hello import read_hello, render_hello
from awp_publish.plugins.awp.messages import MUTATION, AwpRequest, mutations_since
from awp_publish.plugins.awp.sessions import RESUME_WITHIN, OpenSession, not_found, read_milliseconds
from awp_publish.plugins.awp.shared import SharedParts
from awp_publish.problems import Problem, RateLimited

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

    def __init__(self, door: SharedParts, site: SiteClient, take_place: Callable[[Principal | None], None]) -> None:
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
            shortened = name[:100]
            if name.startswith(UNSUPPORTED):
                raise AwpError("UNSUPPORTED", f"Not supported: {shortened}", {"method": shortened})
            raise AwpError("INVALID_REQUEST", f"Unknown method: {shortened}", {"method": shortened})
        identity.need(method.scope, name)
        # Mistakes in the request are reported before its session is looked up.
        method.check(request.params)
        wait = request.params.get("wait")
        if wait is not None and not isinstance(wait, dict):
            refuse("wait must be an object.", param="wait")
        if wait and wait.get("until", "load") not in WAITS:
            refuse(f"wait.until must be one of {', '.join(WAITS)}.", param="wait.until", known=list(WAITS))
        timeout = read_milliseconds(request.params, "timeout_ms", read_milliseconds(wait or {}, "timeout_ms", 0.0))
        opened = self._find(identity, request)
        page: str | None = None  # of a request that concerns one page only
        if self._is_concurrent and name in OF_ONE_PAGE:
            # The oldest page may change while earlier requests run.
            oldest = None if opened.turns.has_whole else next(iter(opened.session.tabs), None)
            page_id = request.params.get("page_id")
            page = page_id if isinstance(page_id, str) else oldest
        session, seconds = opened.session, min(self.door.max_seconds, timeout or opened.timeout)

        async def run() -> JsonObject:
            cursors: Mapping[str, int] = {}
            if MUTATION in self._wanted and method.scope == "page:act":
                pages = [tab for tab in session.tabs.values() if page is None or tab.id == page]
                cursors = {tab.id: tab.history.cursor for tab in pages if tab.history.current is not None}
            steps, is_large = method.run(session, request.params), has_large_page(session)
            result = await drive(steps, self._site.fetch, name, seconds, in_thread=is_large, alone=opened.stepping)
            self.events += mutations_since(session, cursors, request.trace)
            return result

        async with self._turn(opened, page):
            result = await opened.answers.answer_once(request, run, is_safe=name in SAFE)
            self.door.sessions.touch(opened)
            return result

    async def _greet(self, request: AwpRequest) -> JsonObject:
        """Answer the handshake. It may be repeated by the same caller, or by one who was unknown before."""
        door, before = self.door, self.identity
        ids = frozenset(event.id for event in door.catalog.events)
        hello = read_hello(request.params, is_packed=request.is_packed, event_ids=ids)
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
                raise AwpError("PERMISSION_DENIED", "This site requires authentication.", details)
            if before is not None and before.id != identity.id and (before.id or any(door.sessions.of(self))):
                words = "This connection belongs to another caller, or has sessions."
                raise AwpError("CONFLICT", words, {"method": HELLO})
            try:
                self._take_place(identity.principal)
            except RateLimited as problem:
                raise door.skills.refusal(problem, request.trace) from problem
            self.identity = identity
        events = [event for event in ids if door.events.find(event, identity.principal) is not None]
        hello = replace(hello, events=hello.events.intersection({MUTATION, *events}))
        self._wanted, self._is_concurrent = hello.events, hello.concurrency
        self.followed = {event: hello.cursors.get(event) for event in hello.events - {MUTATION}}
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

    def _find(self, caller: Identity, request: AwpRequest) -> OpenSession:
        return self.door.sessions.find(self, caller.id, _read_session_id(request))

    @asynccontextmanager
    async def _turn(self, opened: OpenSession, page: str | None = None) -> AsyncIterator[None]:
        """Wait for a request's turn. Raises AwpError if its session was closed, or resumed elsewhere, meanwhile."""
        async with opened.turns.take(page):
            if not opened.is_open or opened.owner is not self:
                raise not_found(opened.id)
            yield

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
        params = request.params

        async def run() -> JsonObject:
            # Draft, Capability Rules: a request that needs an unavailable feature is refused, not ignored.
            if params.get("persist"):
                recovery = "Keep the answer of session.export and pass it to session.import later."
                details = {"param": "persist", "recovery": recovery}
                raise AwpError("UNSUPPORTED", "Sessions do not survive a restart.", details)
            network, profile = params.get("network"), params.get("profile")
            for name, value in (("network", network), ("profile", profile)):
                if value is not None and not isinstance(value, dict):
                    refuse(f"{name} must be an object.", param=name)
            proxies = {"proxy": params.get("proxy")}
            proxies |= {"network.proxy": network.get("proxy")} if isinstance(network, dict) else {}
            for name, proxy in proxies.items():
                # Draft, session.create: {"mode": "none"} requests no proxy.
                if proxy not in (None, "none", {}, {"mode": "none"}):
                    words = "Proxies are not supported: only this site can be browsed."
                    raise AwpError("UNSUPPORTED", words, {"param": name})
            for name in ("impersonate", "impersonation"):
                if isinstance(profile, dict) and profile.get(name) not in (None, "none"):
                    words = "Browsers are not impersonated: pages are requested with the session's own user agent."
                    raise AwpError("UNSUPPORTED", words, {"param": f"profile.{name}"})
            door, address = self.door, self._site.address
            return self._describe(door.sessions.create(self, caller.id, params, door.max_seconds, address))

        return await self._answers.answer_once(request, run)

    async def close_session(self, caller: Identity, request: AwpRequest) -> JsonObject:
        opened = self._find(caller, request)
        async with self._turn(opened):
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
        async with self._turn(opened):
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

    async def list_skills(self, caller: Identity, request: AwpRequest) -> JsonObject:
        return self.door.skills.list(caller.principal)

    async def invoke_skill(self, caller: Identity, request: AwpRequest) -> JsonObject:
        """Answer skills.invoke: with the cookies of a session, or without one."""
        opened = self._find(caller, request) if request.params.get("session_id") is not None else None
        call = self.door.skills.read(request, caller.signed)
        call.conversation = self._conversation
        # The action's own gate handles its keys.
        request = replace(request, key=request.key if call.action.idempotency is None else None)
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
        async with self._turn(opened):
            return await opened.answers.answer_once(request, run, redact)


def _read_skill_intent(request: AwpRequest) -> AwpRequest | None:
    """Return the skills.invoke for a page.act with `skill.x` or `intent.x` (paper 6.4), or None for others.

    The skill's input is the intent's `args`, or its `value` if that is an object.
    """
    intent = request.params.get("intent") if request.method == "page.act" else None
    action = intent.get("action") if isinstance(intent, dict) else None
    if not isinstance(intent, dict) or not isinstance(action, str) or not action.startswith(RESERVED):
        return None
    arguments = intent.get("args", intent.get("value", {}))
    beside = {name: value for name, value in intent.items() if name in ("confirmation", "receipts", "session")}
    params = {**request.params, **beside, "skill": action.partition(".")[2], "args": arguments}
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
    session_id = request.params.get("session_id")
    if session_id is None:
        raise missing("session_id")
    if not isinstance(session_id, str):
        refuse("session_id must be a string.", param="session_id")
    return session_id
