"""The AWP door: the Agent Web Protocol over WebSocket (paper of March 2026, MVP and draft 0.1), for agents that browse.

A session browses this site and no other, as a browser without JavaScript does, in this process. The engine is in
`awp_publish.browsing`; here are the WebSocket, who may open it, what is asked for over it, and the site's own actions
as skills, on the path of every call.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias

import orjson

from awp_publish.browsing.acting import RESERVED
from awp_publish.browsing.errors import AwpError, missing, refuse
from awp_publish.browsing.page import PAGE_BYTES
from awp_publish.browsing.session import METHODS, Session
from awp_publish.events import logs_for, read_cursor, write_cursor
from awp_publish.model import DEFAULT_OPERATION, Door, JsonObject, Paths
from awp_publish.policy.call import Principal, Signed, read_key
from awp_publish.policy.guard import Expired, NotOurs, Tokens
from awp_publish.problems import Problem, UnknownAgent, did_you_mean
from awp_publish.schema_reading import answer_schema
from awp_publish.serve.awp.messages import (
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
from awp_publish.serve.awp.sessions import (
    EXPORT_LIFETIME,
    RESUME_WITHIN,
    SWEEP_INTERVAL,
    VERSION,
    AwpCallers,
    Identity,
    OpenSession,
    Sessions,
    new_challenge,
    not_found,
    read_hello,
    read_milliseconds,
    render_hello,
)
from awp_publish.serve.credentials import client_address
from awp_publish.serve.doors import DoorContext, LiveDoor
from awp_publish.serve.endpoint import ProblemRenderer
from awp_publish.serve.http import Receive, Reply, Scope, Send, read_fields, send_reply
from awp_publish.serve.lifespan import OwnedTasks
from awp_publish.serve.site_client import INNER_CALL, InnerCall, InnerCalls, SiteClient, drive, has_large_page
from awp_publish.serve.sockets import GOING_AWAY, PLAIN, CloseReason, SocketConnection, SocketGate, own_urls

PROTOCOL: Final = "awp"

_PLACES: Final[Mapping[str, str]] = {
    "skill": "it is a parameter of skills.invoke, beside args",
    "args": "put its members directly into args",
    "input": "put its members directly into args",
    "idempotency_key": "send it as meta.idempotency_key of the message",
    "confirmation": "it is a parameter of skills.invoke, beside args",
    "receipts": "they are a parameter of skills.invoke, beside args",
}
"""The right places of parameters of skills.invoke that stand inside its args."""


class AwpSkills:
    """The actions of one catalog, as skills."""

    def __init__(self, door: DoorContext) -> None:
        self.renderer = ProblemRenderer(door.catalog, RECOVERIES)
        self._invoker = door.invoker
        self.answer_redactors = door.invoker.answer_redactors
        self._admission = door.admission
        self.calls = InnerCalls(door, PROTOCOL, door.catalog.paths.awp, _PLACES)
        self._lists_only_allowed = door.settings.list_only_allowed
        self._actions = {action.id: action for action in door.catalog.actions}
        self._public = [action.id for action in door.catalog.actions if action.is_public]
        # The draft says that skills have actions; here each has one, and what it takes.
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
        """Return the result of skills.list: what a caller may know of, with `Site(list_only_allowed=True)` may call."""
        scopes = caller.scopes if caller is not None else None
        shown = [
            self._listed[action.id]
            for action in self._actions.values()
            if action.is_for(scopes)
            and (
                not self._lists_only_allowed
                or action.route_authenticates  # what such a route allows is known to the route alone
                or not (action.auth_required or action.scopes)
                or (scopes is not None and scopes.issuperset(action.scopes))
            )
        ]
        return {"skills": shown, "count": len(shown)}

    def read(self, request: AwpRequest, signed: Signed | None) -> InnerCall:
        """Read the call that skills.invoke asks for. Raises AwpError."""
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
        # A skill is an action by its id, or an agent, of which `action` names the operation.
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
        """Return what a caller is told for whom there is no such skill."""
        problem = self._invoker.unknown(PROTOCOL, skill, operation)
        if not isinstance(problem, UnknownAgent):
            return problem
        meant = did_you_mean(skill, self._public)
        recovery = "Use a name that skills.list tells."
        return UnknownAgent(f'This site has no skill "{skill[:100]}". {meant}'.rstrip(), recovery=recovery)

    def refusal(self, problem: Problem, trace: str) -> AwpError:
        """Return the error for what is no call, noted as at every other door."""
        self._invoker.note_refusal(PROTOCOL, trace, problem)
        return error_of(problem, self.renderer, trace)

    async def invoke(
        self, skill_call: InnerCall, site: SiteClient, caller: Identity, session: Session | None
    ) -> JsonObject:
        """Send a call to our own door, in one request in which the whole application has its say.

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
"""Beginnings of methods that one description or another has, and a browser without JavaScript and network has not."""

SAFE: Final = {method.name for method in METHODS.values() if method.scope == "som:read"} | {"session.cookies.get"}
"""Methods that change nothing: sent again, they are carried out again."""

OF_ONE_PAGE: Final = METHODS.keys() - {
    *("page.create", "page.close", "page.list"),
    *("session.cookies.get", "session.cookies.set", "session.cookies.clear"),
}
"""Methods that are about one page only."""

MAX_METHODS: Final = 1_000
"""Idempotency keys of one connection whose methods are remembered."""

WAITS: Final = ("dom_content_loaded", "load", "network_idle", "som_stable")
"""Draft, Page Lifecycle. Without JavaScript a page that has come is all of these."""


class AwpClient:
    """One client: who it is since its handshake, and what it asks for. `events` follow the next response."""

    def __init__(self, door: "AwpDoor", site: SiteClient) -> None:
        self.door = door
        self.identity: Identity | None = None
        self.events: list[JsonObject] = []
        self.followed: dict[str, str | None] = {}
        """Events of the site that it is told of from now on, and where it was in them."""
        self._site = site
        self._answers = AnswerCache()
        self._wanted: frozenset[str] = frozenset()
        self._is_concurrent = False
        self._methods: dict[str, str] = {}
        """By idempotency key, the method that it was used for."""
        self._challenge = new_challenge()
        # Calls of skills on one connection have one session, unless they name a session of pages.
        self._conversation = door.session_ids.new_id() if door.session_ids is not None else None

    async def answer(self, request: AwpRequest) -> JsonObject:
        """Return the result of a request. Raises AwpError, Problem."""
        name = request.method
        if name == HELLO:
            return await self._greet(request)
        if self.identity is None:
            raise AwpError("INVALID_REQUEST", "Must send awp.hello before any other method")
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
        # What is wrong with the request is told before its session is looked for.
        method.check(request.params)
        wait = request.params.get("wait")
        if wait is not None and not isinstance(wait, dict):
            refuse("wait must be an object.", param="wait")
        if wait and wait.get("until", "load") not in WAITS:
            refuse(f"wait.until must be one of {', '.join(WAITS)}.", param="wait.until", known=list(WAITS))
        wanted = read_milliseconds(request.params, "timeout_ms", read_milliseconds(wait or {}, "timeout_ms", 0.0))
        opened = self._find(identity, request)
        page: str | None = None  # of a request that is about one page alone
        if self._is_concurrent and name in OF_ONE_PAGE:
            # Which page is the oldest may change with what is carried out before.
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
        """Answer the handshake. It may be sent again: by the same caller, or by one who was nobody before."""
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
            self.identity = identity
        events = [one for one in ids if door.events.find(one, identity.principal) is not None]
        hello = replace(hello, events=hello.events.intersection({MUTATION, *events}))
        self._wanted, self._is_concurrent = hello.events, hello.concurrency
        self.followed = {one: hello.cursors.get(one) for one in hello.events - {MUTATION}}
        described = {
            "method": identity.method,
            "principal": identity.id or None,
            "scopes": sorted(identity.scopes),
            "methods": door.callers.methods,
            **self._to_sign(),
        }
        return render_hello(door.catalog, door.sessions, hello, described, sorted(events))

    def _to_sign(self) -> JsonObject:
        """Return the challenge for the next attempt, which a refusal carries too."""
        return {"challenge": self._challenge} if "auth.hmac" in self.door.callers.methods else {}

    def leave(self) -> None:
        """Have the sessions of a connection that is gone wait for another."""
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
            # Draft, Capability Rules: what needs a feature that is not there is refused, not ignored.
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
                # Draft, session.create: {"mode": "none"} asks for what there is.
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
        """Answer session.list: those of this connection."""
        sessions = self.door.sessions
        listed = [sessions.summarise(opened) for opened in sessions.of(self)]
        return {"sessions": listed, "count": len(listed)}

    async def resume_session(self, caller: Identity, request: AwpRequest) -> JsonObject:
        """Answer session.resume: for a session whose connection is gone, or is about to be found gone."""
        session_id, token = _read_session_id(request), request.params.get("resume_token")
        if not isinstance(token, str):
            raise missing("resume_token")
        opened = self.door.sessions.resume(self, caller.id, session_id, token)
        return {**self._describe(opened), **self.door.sessions.summarise(opened)}

    async def export_session(self, caller: Identity, request: AwpRequest) -> JsonObject:
        """Answer session.export: all that is worth carrying, signed for this caller."""
        opened = self._find(caller, request)
        async with opened.turns.take():
            self._check_open(opened)
            state, expires = self.door.exports.write({"p": caller.id, "s": opened.session.export()})
        return {"session_id": opened.id, "state": state, "expires_at": int(expires)}

    async def import_session(self, caller: Identity, request: AwpRequest) -> JsonObject:
        """Answer session.import: a new session like the one that was exported, in this process or another."""
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
        """Answer skills.invoke: in a session, whose cookies the call has, or without one."""
        opened = self._find(caller, request) if request.params.get("session_id") is not None else None
        call = self.door.skills.read(request, caller.signed)
        call.conversation = self._conversation
        if call.action.idempotency is not None:
            request = replace(request, key=None)  # the action's own gate knows what its keys mean
        session = opened.session if opened is not None else None
        run = partial(self.door.skills.invoke, call, self._site, caller, session)
        redact = self.door.skills.answer_redactors.get(call.action.id)
        if opened is None:
            return await self._answers.answer_once(request, run, redact)
        async with opened.turns.take():
            self._check_open(opened)
            return await opened.answers.answer_once(request, run, redact)


def _read_skill_intent(request: AwpRequest) -> AwpRequest | None:
    """Return the skills.invoke that a page.act with `skill.x` or `intent.x` means (paper 6.4); None for any other.

    The skill's input is the intent's `args`, or its `value` where that is an object.
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
"""Methods that are not those of a page, and the scopes that they need (paper, Table 3)."""


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


class Connection(SocketConnection):
    """One client's WebSocket, once it is accepted. `idle` are the seconds without a message that end it."""

    no_handshake = _NO_HANDSHAKE

    def __init__(self, client: AwpClient, receive: Receive, send: Send, max_bytes: int, idle: float) -> None:
        super().__init__(receive, send, max_bytes, idle, client.door.sessions.browsing.messages_per_second)
        self._client = client
        self._telling: list[asyncio.Task[None]] = []

    @property
    def is_greeted(self) -> bool:
        """Return True if there was a handshake."""
        return self._client.identity is not None

    def leave(self) -> None:
        """Have the sessions of a client that is gone wait for another connection."""
        self._client.leave()

    async def refuse_large(self, frame: Frame) -> None:
        """Answer a frame that is not read."""
        large = AwpError("INVALID_REQUEST", "The message is too large.", {"max_bytes": self.max_bytes})
        await self._write(make_error("", large), is_packed=isinstance(frame, bytes))

    async def take(self, frame: Frame, retry_after_ms: int | None) -> None:
        """Have a frame answered. The handshake is waited for, since all that follows depends on it."""
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
        with suppress(OSError):  # nobody is there to be told; reading ends as well
            await self._write(message, is_packed=request.is_packed, trace=trace)
            while self._client.events:
                await self._write(self._client.events.pop(0), is_packed=request.is_packed)

    async def _tell(self, name: str, cursor: str | None, *, is_packed: bool) -> None:
        """Tell a client of an event of the site as it happens."""
        identity, events = self._client.identity, self._client.door.events
        caller = identity.principal if identity is not None else None
        event = events.find(name, caller)
        if event is None:
            return
        positions = read_cursor(event, cursor) if cursor is not None else None
        batches = events.follow(event, logs_for(event, caller), positions)
        with suppress(OSError):  # nobody is there to be told; reading ends as well
            async with aclosing(batches):
                async for batch in batches:
                    for one, after in batch.steps():
                        told = {"event_id": one.id, "name": name, "timestamp": one.timestamp, "data": one.data}
                        told |= {"cursor": write_cursor(after)}
                        message = make_message(new_trace(), type="event", method=name, params=told)
                        await self._write(message, is_packed=is_packed)

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
"""Accepted where a client offers them; the frames tell the encoding in any case."""

_UPGRADE: Final = Reply(
    426, (PLAIN, (b"upgrade", b"websocket")), b"The Agent Web Protocol is spoken here over WebSocket.\n"
)


def describe_door(paths: Paths) -> Door:
    """Describe the door for the documents."""
    return Door(PROTOCOL, VERSION, paths.awp)


def open_door(context: DoorContext) -> LiveDoor:
    """Open the door of one public address of a site."""
    door, path = AwpDoor(context), context.catalog.paths.awp
    return LiveDoor({path: door.answer_http}, running=door.running, sockets={path: door.answer})


class AwpDoor:
    """Accepts WebSockets, and has what all connections share. `max_seconds` is the most that anything may take."""

    def __init__(self, context: DoorContext) -> None:
        settings, self.catalog = context.settings, context.catalog
        self.sessions = Sessions(settings.browsing, own_urls(context))
        self.callers, self.skills = AwpCallers(context), AwpSkills(context)
        self.exports = Tokens(context.keys, f"awp_session:{settings.namespace}", EXPORT_LIFETIME)
        self.events, self.session_ids = context.site.events, context.sessions
        self.max_seconds = settings.timeout
        self._context = context
        self._gate = SocketGate(context, PROTOCOL, self.catalog.paths.awp, self.skills.renderer)
        self._tasks = OwnedTasks()
        self._connections: set[Connection] = set()

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one WebSocket, from its handshake (RFC 6455 section 4) to its end."""
        if not await self._gate.accept(scope, receive, send, SUBPROTOCOLS):
            return
        admission, app = self._context.admission, self._context.entrance(scope)
        address = client_address(scope, read_fields(scope["headers"]), admission.trusted_proxies)
        site = SiteClient(app, scope, self.catalog.prefix, PAGE_BYTES, self._tasks, address)
        connection = Connection(AwpClient(self, site), receive, send, admission.max_body_bytes, self.sessions.idle)
        self._connections.add(connection)
        try:
            await connection.serve()
        finally:
            self._connections.discard(connection)

    async def answer_http(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that carries a call of skills.invoke through the application; any other has to upgrade."""
        inner_call = scope.get(INNER_CALL)
        if isinstance(inner_call, InnerCall):
            await self.skills.calls.answer(inner_call, scope, receive, send)
        else:
            await send_reply(_UPGRADE, send)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """End sessions whose time is up, and in the end all. Without a lifespan they end when others are used."""

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
