"""Skills: the actions of the site."""

from functools import partial

from awp_publish.browsing.errors import AwpError, missing, refuse
from awp_publish.browsing.session import Session
from awp_publish.calls.call import Principal, Signed, scopes_of
from awp_publish.http.inner_calls import InnerCall, InnerCalls
from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.http.site_client import SiteClient
from awp_publish.model import DEFAULT_OPERATION, JsonObject, listing_of
from awp_publish.plugin import Context
from awp_publish.plugins.awp.callers import Identity
from awp_publish.plugins.awp.errors import DIALECT, error_of, shown_headers
from awp_publish.plugins.awp.messages import PROTOCOL, AwpRequest, JsonText
from awp_publish.problems import Problem, UnknownAgent, did_you_mean
from awp_publish.schema.embedding import answer_schema


class AwpSkills:
    """The actions of one catalog, as skills."""

    def __init__(self, door: Context) -> None:
        self.renderer = ProblemRenderer(door.catalog, DIALECT.recoveries)
        self._invoker = door.invoker
        self.answer_redactors = door.invoker.answer_redactors
        self.calls = InnerCalls(door, PROTOCOL, door.catalog.paths.awp, DIALECT)
        self._listing = listing_of(door.catalog, door.options.list_only_allowed)
        self._actions = {action.id: action for action in door.catalog.actions}
        self._public = [action.id for action in door.catalog.actions if action.is_public]
        # In the draft a skill has actions; here each skill has one, and its input schema.
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
        """Return the result of skills.list: skills that a caller may see, or call (`Awp(list_only_allowed=)`)."""
        scopes = scopes_of(caller)
        visible = [self._listed[action.id] for action in self._actions.values() if self._listing.shows(action, scopes)]
        return {"skills": visible, "count": len(visible)}

    def read(self, request: AwpRequest, signed: Signed | None) -> InnerCall:
        """Read the call of a skills.invoke. Raises AwpError."""
        params = request.params
        skill, operation, arguments = params.get("skill"), params.get("action"), params.get("args", {})
        if not isinstance(skill, str):
            raise missing("skill")
        if "args" not in params and (misnamed := DIALECT.misnamed(params)):
            refuse(f"skills.invoke takes the input of a skill as args, not as {misnamed}.", param="args")
        if operation is not None and not isinstance(operation, str):
            refuse("action must be a string.", param="action")
        if not isinstance(arguments, dict):
            refuse("args must be an object.", param="args")
        # A skill is an action's id, or an agent whose operation is named by `action`.
        own = self._actions.get(skill)
        offered = self._invoker.offers.at(PROTOCOL).get((skill, operation), self._invoker.absent)
        is_own = own is not None and operation in (None, DEFAULT_OPERATION, own.operation, own.id)
        if (action := own if is_own else offered) is None:
            raise self.refusal(self.unknown(skill, operation), request.trace)
        name = action.idempotency.key_field if action.idempotency else "idempotency_key"
        beside = ("confirmation", "receipts", "session")
        members = {member: params[member] for member in beside if params.get(member) is not None}
        if request.key is not None:
            members[name] = request.key
        unknown = partial(self.unknown, skill, operation)
        return InnerCall(action, arguments, members, request.trace, signed, size=request.size, unknown=unknown)

    def unknown(self, skill: str, operation: str | None) -> Problem:
        problem = self._invoker.offers.unknown(PROTOCOL, skill, operation)
        if not isinstance(problem, UnknownAgent):
            return problem
        suggestion = did_you_mean(skill, self._public)
        recovery = "Use a name that skills.list returns."
        return UnknownAgent(f'This site has no skill "{skill[:100]}". {suggestion}'.rstrip(), recovery=recovery)

    def refusal(self, problem: Problem, trace: str) -> AwpError:
        """Return the error for a request that is not a call, and record it as every other door does."""
        self._invoker.note_refusal(PROTOCOL, trace, problem)
        return error_of(problem, self.renderer, trace)

    async def invoke(
        self, skill_call: InnerCall, site: SiteClient, caller: Identity, session: Session | None
    ) -> JsonObject:
        """Send a call to our own door, as a request through the whole application.

        Returns the result of skills.invoke. Raises AwpError.
        """
        action = skill_call.action
        result, added = await self.calls.send(skill_call, site, caller.header, session)
        if isinstance(result, Problem):
            raise error_of(result, self.renderer, skill_call.trace, added)
        headers = shown_headers((*result.headers, *added))
        return {
            "status": "accepted" if result.status == 202 else "ok",
            "skill": action.id,
            "action": action.operation,
            "output": JsonText(result.body),
            **({"headers": headers} if headers else {}),
        }
