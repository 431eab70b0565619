"""What a site enforces: the few things its guards share, and which gates stand around an action."""

from collections.abc import Sequence
from dataclasses import dataclass

from awp_publish.model import Action, RateLimit
from awp_publish.policy.authentication import AuthenticationGate
from awp_publish.policy.call import Gate
from awp_publish.policy.confirmation import confirmation_gate
from awp_publish.policy.guard import Guard
from awp_publish.policy.idempotency import idempotency_gate
from awp_publish.policy.limits import limit_gate
from awp_publish.policy.prerequisites import Receipts
from awp_publish.policy.principal import Authenticator
from awp_publish.policy.tokens import Tokens
from awp_publish.stores.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Enforcement:
    """What the guards of one site share.

    `realm` and `metadata_url` stand in challenges (RFC 9110 section 11.5, RFC 9728 section 5.1). `confirmations` and
    `receipts` are there where an action needs them; `receipted` are the actions whose successes are worth a receipt.
    """

    store: Store
    authenticators: tuple[Authenticator, ...] = ()
    realm: str = ""
    metadata_url: str | None = None
    rate_limit: RateLimit | None = None
    confirmations: Tokens | None = None
    receipts: Receipts | None = None
    receipted: frozenset[str] = frozenset()

    def identify(self) -> AuthenticationGate:
        """The gate that tells who makes a request, for what is no call of an action. Nobody has to be known."""
        return AuthenticationGate(self.authenticators, False, (), self.realm, self.metadata_url, store=self.store)


def guard_of(action: Action, enforcement: Enforcement, validate: Gate) -> Guard | None:
    """The guard of an action, None if nothing is declared that it could enforce. `validate` checks the input."""
    limits = limit_gate(action, enforcement.rate_limit)
    admission = (
        idempotency_gate(action),
        confirmation_gate(action, enforcement.confirmations),
        enforcement.receipts.gate(action) if enforcement.receipts is not None else None,
    )
    declared = _present((limits, *admission))
    authentication = _authentication(action, enforcement)
    receipts = enforcement.receipts if action.id in enforcement.receipted else None
    if not declared and authentication is None and receipts is None:
        return None
    gates = _present((limits, validate, *admission))
    durable = action.needs_confirmation or action.is_irreversible
    return Guard(enforcement.store, gates, authentication, receipts, durable=durable)


def _present(gates: Sequence[Gate | None]) -> list[Gate]:
    return [gate for gate in gates if gate is not None]


def _authentication(action: Action, enforcement: Enforcement) -> AuthenticationGate | None:
    """A route with a security scheme of its own asks for credentials itself; ours are told who calls if we know it."""
    if not enforcement.authenticators:
        return None
    ours = action.auth_required and not action.route_authenticates
    return AuthenticationGate(
        enforcement.authenticators,
        required=ours,
        scopes=action.scopes if ours else (),
        realm=enforcement.realm,
        metadata_url=enforcement.metadata_url,
        trusts_route=action.route_authenticates,
        store=enforcement.store,
    )
