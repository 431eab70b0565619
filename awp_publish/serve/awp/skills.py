"""`skills.list` and `skills.invoke`: the site's own actions, on the path of every call.

A call is made of a request that comes in from outside, through the whole application, as at the HTTP doors: with what
the connection shows of its caller and, given a session, with the cookies of that session, which keeps those that it is
set. So whoever has signed in on a page is known to the actions, and the other way round. The request carries the call
in its scope, where nobody outside of this process can put anything.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import orjson

from awp_publish.browsing.addresses import parse_address
from awp_publish.browsing.errors import AwpError, missing, refuse
from awp_publish.browsing.page import Fetch
from awp_publish.browsing.session import Session
from awp_publish.model import DEFAULT_OPERATION, Action, JsonObject
from awp_publish.policy.call import Call, Principal, Result, Signed
from awp_publish.problems import HandlerFailed, InvalidEnvelope, Problem, UnknownAgent, did_you_mean
from awp_publish.protocols.schema_reading import answer_schema
from awp_publish.serve.awp.callers import Identity, with_header
from awp_publish.serve.awp.messages import RECOVERIES, AwpRequest, JsonText, error_of, shown_headers
from awp_publish.serve.awp.sessions import SiteClient
from awp_publish.serve.credentials import read_credentials
from awp_publish.serve.doors import DoorContext
from awp_publish.serve.endpoint import ProblemRenderer
from awp_publish.serve.http import Receive, Scope, Send, read_fields, wait_for_disconnect
from awp_publish.serve.woa import read_admission

PROTOCOL: Final = "awp"

SKILL_CALL: Final = "awp_publish.awp"
"""The member of a scope that carries a call."""

_PLACES: Final[Mapping[str, str]] = {
    "skill": "it is a parameter of skills.invoke, beside args",
    "args": "put its members directly into args",
    "input": "put its members directly into args",
    "idempotency_key": "send it as meta.idempotency_key of the message",
    "confirmation": "it is a parameter of skills.invoke, beside args",
    "receipts": "they are a parameter of skills.invoke, beside args",
}
"""Where parameters of skills.invoke belong that stand inside its args."""

_OF_UPGRADE: Final = (
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


@dataclass(slots=True)
class SkillCall:
    """A call on its way through the application: what it is made of, and what came of it."""

    action: Action
    given: JsonObject
    members: Mapping[str, object]
    trace: str
    signed: Signed | None
    conversation: str | None = None
    has_cookie_jar: bool = False
    call: Call | None = None
    result: Result | None = None


class AwpSkills:
    """The actions of one catalog, as skills."""

    def __init__(self, door: DoorContext) -> None:
        self.renderer = ProblemRenderer(door.catalog, RECOVERIES)
        self._catalog = door.catalog
        self._invoker = door.invoker
        self.answer_redactors = door.invoker.answer_redactors
        self._admission = door.admission
        self._proxies = door.admission.trusted_proxies
        self._lists_only_allowed = door.settings.list_only_allowed
        self._actions = {action.id: action for action in door.catalog.actions}
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
            }
            for action in door.catalog.actions
        }

    def list(self, caller: Principal | None) -> JsonObject:
        """Return the result of skills.list: all, or with `Site(list_only_allowed=True)` what a caller may call."""
        shown = [
            self._listed[action.id]
            for action in self._actions.values()
            if not self._lists_only_allowed
            or action.route_authenticates  # what such a route allows is known to the route alone
            or not (action.auth_required or action.scopes)
            or (caller is not None and caller.scopes.issuperset(action.scopes))
        ]
        return {"skills": shown, "count": len(shown)}

    def read(self, request: AwpRequest, signed: Signed | None) -> SkillCall:
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
                action = self._invoker.find(skill, operation)
            except UnknownAgent:
                recovery = "Use a name that skills.list tells."
                meant = did_you_mean(skill, self._actions)
                unknown = UnknownAgent(f'This site has no skill "{skill[:100]}". {meant}'.rstrip(), recovery=recovery)
                raise self.refusal(unknown, request.trace) from unknown
            except Problem as problem:
                raise self.refusal(problem, request.trace) from problem
        if action.max_body_bytes is not None or self._admission.max_body_bytes > self._admission.usual_body_bytes:
            try:
                self._admission.check_size(action, len(orjson.dumps(given)))
            except Problem as problem:
                raise self.refusal(problem, request.trace) from problem
        name = action.idempotency.key_field if action.idempotency else "idempotency_key"
        beside = ("confirmation", "receipts", "session")
        members = {member: params[member] for member in beside if params.get(member) is not None}
        if request.key is not None:
            members[name] = request.key
        return SkillCall(action, given, members, request.trace, signed)

    def refusal(self, problem: Problem, trace: str) -> AwpError:
        """Return the error for what is no call, noted as at every other door."""
        self._invoker.note_refusal(PROTOCOL, trace, problem)
        return error_of(problem, self.renderer, trace)

    async def invoke(
        self, skill_call: SkillCall, site: SiteClient, caller: Identity, session: Session | None
    ) -> JsonObject:
        """Send a call to our own door, in one request in which the whole application has its say.

        A session is a visitor of its own: with one, the connection's cookies stay out of the call, and out of the
        session; the cookies are those of the action. Returns the result of skills.invoke. Raises AwpError.
        """
        action, catalog = skill_call.action, self._catalog
        home = parse_address(catalog.absolute(catalog.paths.awp))
        own = action.target.path if action.target is not None else catalog.invoke_path_of(action)
        goal = parse_address(catalog.absolute(own))  # whose cookies these are
        headers = [("host", home.authority), ("content-type", "application/json"), ("x-request-id", skill_call.trace)]
        for name, value in with_header(site.scope["headers"], caller.header):
            if not name.startswith(_OF_UPGRADE):  # what is left may tell who calls
                headers.append((name.decode("latin-1"), value.decode("latin-1")))
        if session is not None:
            skill_call.has_cookie_jar = True
            browser = session.browser
            visitor = {"user-agent": browser.user_agent, "cookie": browser.jar.header_for(goal, browser.clock())}
            headers = [*(pair for pair in headers if pair[0] not in visitor), *visitor.items()]
        fetch = Fetch("POST", home.target, tuple(pair for pair in headers if pair[1]), b"{}", home.origin)
        fetched = await site.fetch(fetch, {SKILL_CALL: skill_call})
        if session is not None:
            session.browser.jar.store_from(fetched.headers, goal, session.browser.clock())
        result, added = skill_call.result, skill_call.call.headers if skill_call.call is not None else ()
        if result is None and fetched.status >= 500:  # something around us has answered, and the call was never made
            result = HandlerFailed("The site failed before the action was called.")
        elif result is None:
            detail = f"The site refused the request before the action was called, with status {fetched.status}."
            result = InvalidEnvelope(detail, status=fetched.status if fetched.status >= 400 else 403)
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

    async def answer(self, skill_call: SkillCall, scope: Scope, receive: Receive, send: Send) -> None:
        """Run a call that has come in through the application; its result stays in this process."""
        action, trace, disconnected = skill_call.action, skill_call.trace, partial(wait_for_disconnect, receive)
        call = skill_call.call = Call(action, skill_call.given, trace, PROTOCOL, scope, disconnected)
        call.places = _PLACES

        call.conversation, call.has_cookie_jar = skill_call.conversation, skill_call.has_cookie_jar

        async def deliver(result: Result) -> None:
            skill_call.result = result
            set_cookies = [pair for pair in result.headers if pair[0] == b"set-cookie"]
            await send({"type": "http.response.start", "status": 204, "headers": set_cookies})
            await send({"type": "http.response.body", "body": b""})

        if self._invoker.is_guarded(action):
            fields = read_fields(scope["headers"])
            credentials = read_credentials(scope, fields, self._proxies)._replace(signed=skill_call.signed)
            call.credentials = lambda: credentials
            try:
                read_admission(call, skill_call.members, {})
            except Problem as problem:
                self._invoker.note_refusal(PROTOCOL, trace, problem)
                await deliver(problem)
                return
        await self._invoker.run(call, deliver)
