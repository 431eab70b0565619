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

from awp_publish.browsing.errors import AwpError, missing, refuse
from awp_publish.browsing.page import Fetched
from awp_publish.invoke import Invoker
from awp_publish.model import DEFAULT_OPERATION, Action, Catalog, JsonObject
from awp_publish.policy.authentication import Principal, Signed
from awp_publish.policy.call import Call, Result
from awp_publish.problems import HandlerFailed, InvalidEnvelope, Problem, UnknownAgent
from awp_publish.protocols.schema_reading import answer_schema
from awp_publish.serve.awp.messages import JsonText, headers_told, tell_problem, telling_of
from awp_publish.serve.credentials import read_credentials
from awp_publish.serve.endpoint import Admission
from awp_publish.serve.http import Receive, Scope, Send, read_fields, wait_for_hang_up
from awp_publish.serve.woa import read_admission

PROTOCOL: Final = "awp"
CARRIED: Final = "awp_publish.awp"
"""The member of a scope that carries a call."""


@dataclass(slots=True)
class Carried:
    """A call on its way through the application: what it is made of, and what came of it."""

    action: Action
    given: JsonObject
    members: Mapping[str, object]
    trace: str
    signed: Signed | None
    call: Call | None = None
    result: Result | None = None


class Skills:
    """The actions of one catalog, as skills."""

    def __init__(self, catalog: Catalog, invoker: Invoker, admission: Admission, *, lists_only_allowed: bool) -> None:
        self._actions = {action.id: action for action in catalog.actions}
        self._listed = [(action, _describe(action)) for action in catalog.actions]
        self._invoker = invoker
        self._proxies = admission.trusted_proxies
        self._telling = telling_of(catalog)
        self._lists_only_allowed = lists_only_allowed

    def list(self, principal: Principal | None) -> dict[str, object]:
        """The result of skills.list: all of them, or with `Site(list_only_allowed=True)` what a caller may call."""
        everything = not self._lists_only_allowed
        shown = [entry for action, entry in self._listed if everything or _may_call(principal, action)]
        return {"skills": shown, "count": len(shown)}

    def read(self, params: Mapping[str, object], key: str | None, trace: str, signed: Signed | None) -> Carried:
        """The call that skills.invoke asks for. Raises AwpError, or a Problem for a skill that is not there."""
        skill, operation, given = params.get("skill"), params.get("action"), params.get("args", {})
        if not isinstance(skill, str):
            raise missing("skill")
        if operation is not None and not isinstance(operation, str):
            refuse("action must be text.", param="action")
        if not isinstance(given, dict):
            refuse("args must be an object.", param="args")
        action = self._find(skill, operation)
        name = action.idempotency.key_field if action.idempotency else "idempotency_key"
        members = {member: params[member] for member in ("confirmation", "receipts") if params.get(member) is not None}
        return Carried(action, given, members | ({name: key} if key is not None else {}), trace, signed)

    def _find(self, skill: str, operation: str | None) -> Action:
        """A skill is an action by its id, or an agent, of which `action` names the operation."""
        action = self._actions.get(skill)
        if action is not None and operation in (None, DEFAULT_OPERATION, action.operation, action.id):
            return action
        try:
            return self._invoker.find(skill, operation)
        except UnknownAgent as problem:
            recovery = "Use a name that skills.list tells."
            raise UnknownAgent(f'This site has no skill "{skill[:100]}".', recovery=recovery) from problem

    async def answer(self, carried: Carried, scope: Scope, receive: Receive, send: Send) -> None:
        """Run a call that has come in through the application; its result stays in this process."""
        fields = read_fields(scope["headers"])
        gone = partial(wait_for_hang_up, receive)
        call = carried.call = Call(carried.action, carried.given, carried.trace, PROTOCOL, scope, gone)

        async def deliver(result: Result) -> None:
            carried.result = result
            set_cookies = [pair for pair in result.headers if pair[0] == b"set-cookie"]
            await send({"type": "http.response.start", "status": 204, "headers": set_cookies})
            await send({"type": "http.response.body", "body": b""})

        if self._invoker.is_guarded(carried.action):
            credentials = read_credentials(scope, fields, self._proxies)._replace(signed=carried.signed)
            call.credentials = lambda: credentials
            try:
                read_admission(call, carried.members, {})
            except Problem as problem:
                self._invoker.note_refusal(PROTOCOL, carried.trace, problem)
                await deliver(problem)
                return
        await self._invoker.run(call, deliver)

    def tell(self, carried: Carried, fetched: Fetched) -> JsonObject:
        """The result of skills.invoke. Raises AwpError for a refusal or failure."""
        added = carried.call.headers if carried.call is not None else ()
        result = carried.result if carried.result is not None else _refused_outside(fetched)
        if isinstance(result, Problem):
            raise tell_problem(result, self._telling, carried.trace, added)
        told: dict[str, object] = {
            "status": "accepted" if result.status == 202 else "ok",
            "skill": carried.action.id,
            "action": carried.action.operation,
            "output": JsonText(result.body),
        }
        headers = headers_told((*result.headers, *added))
        return {**told, "headers": headers} if headers else told

    def refuse(self, problem: Problem, trace: str) -> AwpError:
        """The error for what is no call, noted as at every other door."""
        self._invoker.note_refusal(PROTOCOL, trace, problem)
        return tell_problem(problem, self._telling, trace)


def _describe(action: Action) -> JsonObject:
    """The draft says that skills have actions; here each has one, and what it takes."""
    return {
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


def _may_call(principal: Principal | None, action: Action) -> bool:
    """What a route with credentials of its own allows is known to the route alone."""
    if action.route_authenticates or not (action.auth_required or action.scopes):
        return True
    return principal is not None and principal.scopes.issuperset(action.scopes)


def _refused_outside(fetched: Fetched) -> Problem:
    """Something around us has answered, and the call was never made."""
    if fetched.status >= 500:
        return HandlerFailed("The site failed before the action was called.")
    detail = f"The site refused the request before the action was called, with status {fetched.status}."
    return InvalidEnvelope(detail, status=fetched.status if fetched.status >= 400 else 403)
