"""Who calls? The caller of everything that follows: by the site's authenticators, and by the signature of an agent."""

from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from awp_publish.calls.authentication import AuthenticationGate
from awp_publish.calls.call import Call, Principal
from awp_publish.calls.callers import CALLER, AgentAuthenticator
from awp_publish.calls.gates.gate import Ask, Facts, Gate, GateCheck, GuardedSite, Guards
from awp_publish.model import Action, Catalog
from awp_publish.problems import (
    AuthenticationRequired,
    AuthExpired,
    DeclarationError,
    InsufficientPermissions,
    InsufficientScope,
    InvalidCredentials,
    Problem,
    RateLimited,
)


def authentication_of(action: Action, guards: Guards) -> AuthenticationGate | None:
    """Return what identifies the callers of an action, None for a site without authenticators."""
    if not guards.authenticators:
        return None
    # Where the route asks, ours only identify callers whom we know.
    return AuthenticationGate(
        guards.authenticators,
        required=action.asker == "site",
        scopes=action.scopes,
        realm=guards.realm,
        metadata_url=guards.metadata_url,
        trusts_route=action.asker == "scheme",
        route_scopes=frozenset(
            scope for alternative in action.security for scopes in alternative.values() for scope in scopes
        ),
        store=guards.store,
    )


def agents_of(guards: Guards | GuardedSite) -> AgentAuthenticator | None:
    """Return the authenticator that knows agents by their signatures, None without one."""
    return next(
        (authenticator for authenticator in guards.authenticators if isinstance(authenticator, AgentAuthenticator)),
        None,
    )


class _Identify(GateCheck[Ask]):
    """Finds the caller. Whether that is sufficient is decided after the audience: see `_Require`."""

    def __init__(self, action: Action, gate: AuthenticationGate, agents: AgentAuthenticator | None) -> None:
        self._is_public = action.is_public
        self._gate = gate
        self._find_at_once = gate.find_at_once
        self._agents = agents

    def enter(self, call: Call) -> Awaitable[None] | None:
        """Set the call's principal. Raises what the authenticators raise, unless that would tell of the action."""
        if self._agents is None and call.identified is not None:
            _set(call, call.identified)
            return None
        find, authorization = self._find_at_once, call.members.authorization
        if find is None or authorization is None or (principal := find(authorization)) is None:
            return self._identify(call)
        _set(call, principal)
        return None

    async def _identify(self, call: Call) -> None:
        principal, credentials, agents = call.principal, call.presented, self._agents
        if agents is not None:
            with suppress(Problem):  # raised again where it matters
                await agents(credentials)
            call.label = agents.label_of(credentials)
        try:
            principal = call.identified or await self._gate.identify(credentials)
        except Problem:
            if self._is_public:
                raise
        _set(call, principal)


def _set(call: Call, principal: Principal | None) -> None:
    if principal is not None and principal.label != call.label:
        principal = replace(principal, label=call.label)
    call.principal = principal
    CALLER.set(principal)


class _Require(GateCheck[Ask]):
    """Refuses callers who are not known, who lack a scope, or who are not among the agents that an action is for."""

    def __init__(self, action: Action, gate: AuthenticationGate, agents: AgentAuthenticator | None) -> None:
        self._action = action
        self._gate = gate
        self._agents = agents

    def enter(self, call: Call) -> None:
        """Raise AuthenticationRequired, InsufficientScope or InsufficientPermissions."""
        if call.principal is None or self._gate.scopes:
            self._gate.require(call.principal, call.members.authorization)
        # Only an agent that has signed can be one of them, however else the caller is known.
        agents, allowed = self._agents, self._action.allow_agents
        if allowed and (agents is None or agents.names_of(call.presented).isdisjoint(allowed)):
            raise InsufficientPermissions(
                f"Action {self._action.id} is only for {', '.join(allowed)}; this caller is {call.label}.",
                recovery="Sign the request as Accept-Signature says, if you are one of those agents.",
                headers=getattr(agents, "demands", ()),
            )


def _identify(action: Action, facts: Facts) -> GateCheck[Any] | None:
    gate = authentication_of(action, facts.guards)
    return _Identify(action, gate, agents_of(facts.guards)) if gate is not None else None


def _require(action: Action, facts: Facts) -> GateCheck[Any] | None:
    gate = authentication_of(action, facts.guards)
    if gate is None or not (gate.required or gate.scopes or action.allow_agents):
        return None
    return _Require(action, gate, agents_of(facts.guards))


def _check(catalog: Catalog, site: GuardedSite) -> None:
    for action in catalog.actions:
        # A route whose security scheme refuses nobody is refused calls without credentials by `RouteCaller`.
        if action.asker == "site" and not (site.authenticators or action.route_credentials):
            when = ", before a job is accepted" if action.is_background else ""
            refuses = f"its route is not known to refuse callers who have not signed in{when}"
            wrong = f"auth_required: the site authenticates nobody, and {refuses}."
            if action.scopes:
                wrong = "auth_required: the site authenticates nobody, so that nobody would check its scopes."
            remedy = "Give Site(authenticate=...), or the route a security scheme."
            raise DeclarationError(f'action "{action.id}"', wrong, remedy)
        if action.allow_agents and agents_of(site) is None:
            wrong = "allow_agents: no authenticator of the site identifies agents."
            raise DeclarationError(f'action "{action.id}"', wrong, "Give Site(authenticate=WebBotAuth(...)).")


IDENTIFY: Final = Gate(
    name="identification",
    order=100,
    of=_identify,
    refuses=(InvalidCredentials, AuthExpired, RateLimited),
    options=("authenticate",),
)

REQUIRE: Final = Gate(
    name="authentication",
    order=300,
    of=_require,
    refuses=(AuthenticationRequired, InsufficientScope, InsufficientPermissions),
    options=("auth_required", "scopes", "allow_agents"),
    check=_check,
)
