"""What a client says at the AWP door, and what it is answered: the handshake, the table of methods, and their scopes.

One conversation is one connection. It knows nothing of frames: requests come in, results go out, refusals are raised.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final, TypeAlias

from awp_publish.browsing.errors import AwpError, refuse
from awp_publish.browsing.session import METHODS, Method
from awp_publish.model import JsonObject
from awp_publish.problems import Problem
from awp_publish.serve.awp_callers import Identity, new_challenge
from awp_publish.serve.awp_desk import Client, Desk, once
from awp_publish.serve.awp_driving import drive, has_large_page
from awp_publish.serve.awp_events import MUTATION, cursors_of, tell_changes
from awp_publish.serve.awp_fetch import Surface
from awp_publish.serve.awp_hello import read_hello, tell_hello
from awp_publish.serve.awp_messages import Request
from awp_publish.serve.awp_session_methods import (
    close_session,
    create_session,
    export_session,
    import_session,
    list_sessions,
    resume_session,
)
from awp_publish.serve.awp_sessions import Held, read_milliseconds
from awp_publish.serve.awp_skill_methods import invoke_skill, list_skills

HELLO: Final = "awp.hello"

Answer: TypeAlias = Callable[[Client, Request], Awaitable[JsonObject]]

OWN: Final[Mapping[str, tuple[str, Answer]]] = {
    "session.create": ("session:write", create_session),
    "session.close": ("session:write", close_session),
    "session.list": ("", list_sessions),
    "session.resume": ("session:write", resume_session),
    "session.export": ("session:write", export_session),
    "session.import": ("session:write", import_session),
    "skills.list": ("", list_skills),
    "skills.invoke": ("skills:invoke", invoke_skill),
}
"""Methods that are not those of a page, and the scopes that they need (paper, Table 3)."""

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

READING: Final = {method.name for method in METHODS.values() if method.scope == "som:read"} | {"session.cookies.get"}
"""Methods that change nothing: sent again, they are carried out again."""

WAITS: Final = ("dom_content_loaded", "load", "network_idle", "som_stable")
"""Draft, Page Lifecycle. Without JavaScript a page that has come is all of these."""


class Conversation(Client):
    """One client, from its handshake on."""

    def __init__(self, desk: Desk, surface: Surface) -> None:
        super().__init__(desk, surface)
        self._challenge = new_challenge()

    async def answer(self, request: Request) -> JsonObject:
        """The result of a request. Raises AwpError, Problem."""
        if request.method == HELLO:
            return await self._greet(request)
        caller, (own, method) = self.caller, (OWN.get(request.method), METHODS.get(request.method))
        if own is not None:
            scope, answer = own
            caller.need(scope, request.method)
            return await answer(self, request)
        if method is None:
            raise _unknown(request.method)
        caller.need(method.scope, request.method)
        return await self._browse(method, request)

    def leave(self) -> None:
        """The connection is gone."""
        self.desk.sessions.release(self)

    # --- Pages ---

    async def _browse(self, method: Method, request: Request) -> JsonObject:
        """A method of a session's pages or cookies. What is wrong with the request is told before its session is."""
        method.check(request.params)
        seconds = _read_wait(request.params)
        held = self.find(request)
        async with held.turn:
            self.check_open(held)
            run = partial(self._run, method, held, request, min(self.desk.longest, seconds or held.seconds))
            result = await (run() if method.name in READING else once(held.repeats, request, run))
            self.desk.sessions.touch(held)
            return result

    async def _run(self, method: Method, held: Held, request: Request, seconds: float) -> JsonObject:
        before = cursors_of(held.session) if MUTATION in self.wanted and method.scope == "page:act" else {}
        steps, is_large = method.run(held.session, request.params), has_large_page(held.session)
        result = await drive(steps, self.surface.fetch, method.name, seconds, in_thread=is_large)
        self.events += tell_changes(held.session, before, request.trace)
        return result

    # --- The handshake ---

    async def _greet(self, request: Request) -> JsonObject:
        """It may be sent again: by the same caller, or by one who was nobody before."""
        wishes = read_hello(request.params, is_packed=request.is_packed)
        auth, challenge = request.params.get("auth"), self._challenge
        if auth is not None or self.identity is None:
            self._challenge = new_challenge()
            identity = await self._identify(auth, challenge, request)
            self._check_change(identity)
            self.identity = identity
        self.wanted = wishes.events
        return tell_hello(self.desk.catalog, self.desk.browsing, wishes, self._tell_auth(self.caller))

    async def _identify(self, auth: object, challenge: str, request: Request) -> Identity:
        callers = self.desk.callers
        try:
            identity = await callers.identify(self.surface.scope, auth, challenge)
        except Problem as problem:
            raise self._with_challenge(self.desk.skills.refuse(problem, request.trace)) from problem
        if self.desk.browsing.auth_required and identity.principal is None:
            details = {"methods": callers.methods}
            raise self._with_challenge(AwpError("PERMISSION_DENIED", "This site asks who is browsing.", details))
        return identity

    def _with_challenge(self, error: AwpError) -> AwpError:
        """A refusal that tells what to sign for the next attempt."""
        return AwpError(error.code, error.message, {**error.details, **self._tell_challenge()})

    def _tell_challenge(self) -> JsonObject:
        return {"challenge": self._challenge} if "auth.hmac" in self.desk.callers.methods else {}

    def _check_change(self, identity: Identity) -> None:
        before = self.identity
        if before is not None and before.id != identity.id and (before.id or any(self.desk.sessions.of(self))):
            raise AwpError("CONFLICT", "This connection belongs to another caller, or has sessions.", {"method": HELLO})

    def _tell_auth(self, identity: Identity) -> JsonObject:
        told = {"method": identity.method, "principal": identity.id or None, "scopes": sorted(identity.scopes)}
        return {**told, "methods": self.desk.callers.methods, **self._tell_challenge()}


def _read_wait(params: Mapping[str, object]) -> float | None:
    """How many seconds a request gives itself: `timeout_ms`, or that of `wait` (draft). Raises AwpError."""
    wait = params.get("wait")
    if wait is not None and not isinstance(wait, dict):
        refuse("wait must be an object.", param="wait")
    if wait and wait.get("until", "load") not in WAITS:
        refuse(f"wait.until must be one of {', '.join(WAITS)}.", param="wait.until", known=list(WAITS))
    within = read_milliseconds(wait or {}, "timeout_ms", 0.0)
    return read_milliseconds(params, "timeout_ms", within) or None


def _unknown(method: str) -> AwpError:
    if method.startswith(UNSUPPORTED):
        return AwpError("UNSUPPORTED", f"Not supported: {method[:100]}", {"method": method[:100]})
    return AwpError("INVALID_REQUEST", f"Unknown method: {method[:100]}", {"method": method[:100]})
