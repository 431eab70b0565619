"""`Guard`: the gates of one action in their order, with one round trip to the store for all of them.

authenticate -> limits -> validate input -> idempotent replay -> confirmation -> prerequisites. Who calls is known
before anything is counted. A replay is looked up before the confirmation, because a retried call carries one that is
spent. Gates refuse by themselves or demand steps of the store; the demands of all are sent together, so a later gate's
refusal is held back until the earlier ones have had their say. A caller over the limit costs no more of the input than
a look at whether it conforms: what is wrong with it is only worked out for those who are told.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NoReturn

from awp_publish.model import Action, RateLimit
from awp_publish.policy.authentication import AuthenticationGate, Authenticator, set_caller
from awp_publish.policy.call import Call, Demand, Gate, Outcome, Result, never_gone
from awp_publish.policy.confirmation import confirmation_gate
from awp_publish.policy.idempotency import idempotency_gate, settle_claim
from awp_publish.policy.limits import limit_gate
from awp_publish.policy.prerequisites import Receipts
from awp_publish.policy.tokens import Tokens
from awp_publish.problems import InvalidInput, Problem, StoreUnavailable
from awp_publish.schema import Validator
from awp_publish.stores.store import Ran, Step, Store

logger: Final = logging.getLogger("awp_publish.calls")


class Guard:
    """Admits calls of one action, and settles afterwards what it claimed for them.

    `durable` says that what is claimed must outlive a loss of power. `receipts` writes receipts for this action's
    successes, if any action asks for them.
    """

    def __init__(
        self,
        store: Store,
        gates: Sequence[Gate],
        authentication: AuthenticationGate | None = None,
        receipts: Receipts | None = None,
        *,
        durable: bool = False,
    ) -> None:
        self._store = store
        self._gates = tuple(gates)
        self._authentication = authentication
        self._receipts = receipts
        self._durable = durable

    async def admit(self, call: Call) -> Outcome | None:
        """Let a call pass (None) or answer it with what is recorded. Raises the Problem of the gate that refuses."""
        if call.credentials is not None:
            credentials = call.credentials()
            call.address = credentials.address
            if self._authentication is not None:
                call.principal = await self._authentication(credentials)
                set_caller(call.principal)
        demands: list[Demand] = []
        objection: Problem | None = None
        for gate in self._gates:
            try:
                demand = gate(call)
            except Problem as problem:
                objection = problem
                break
            if demand is not None:
                demands.append(demand)
                if demand.refuses:
                    break
        answer = await self._ask(call, demands, objection) if demands else None
        if answer is not None:
            return self._with_receipt(call, answer)
        if objection is not None:
            raise objection
        return None

    async def conclude(self, call: Call, result: Result) -> Result:
        """Record how a call ended under its key, and hand out its receipt. The answer stands even if that fails."""
        if call.claim is not None:
            try:
                await self._store.run((settle_claim(call, call.claim, result),), durable=True)
            except StoreUnavailable:
                told = (call.action.id, call.request_id)
                logger.exception("the answer of action %s could not be recorded (request_id=%s)", *told)
        return self._with_receipt(call, result) if isinstance(result, Outcome) else result

    async def _ask(self, call: Call, demands: Sequence[Demand], objection: Problem | None) -> Outcome | None:
        """One round trip for all demands; then each gate, in order, reads what its own steps saw."""
        steps: list[Step] = []
        is_refused = objection is not None or demands[-1].refuses
        for demand in demands:
            steps += demand.looks if is_refused else demand.steps
        ran = await self._store.run(steps, durable=self._durable) if steps else Ran(None, ())
        failed = len(steps) if ran.failed is None else ran.failed
        first = 0
        for demand in demands:
            last = first + len(demand.steps)  # as many as there are looks
            answer = demand.judge(ran.seen[first:last], failed >= last)
            if answer is not None or failed < last:
                return answer
            first = last
        if (objection is None and call.claim is not None) or self._durable:
            call.gone = never_gone  # what is claimed is carried to its end, so that it can be recorded
        return None

    def _with_receipt(self, call: Call, outcome: Outcome) -> Outcome:
        if self._receipts is not None and not call.action.is_background:
            call.headers += (self._receipts.write(call),)
        return outcome


# --- What a site enforces: the few things its guards share, and which gates stand around an action ---


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


def guard_of(action: Action, enforcement: Enforcement, inputs: Validator) -> Guard | None:
    """The guard of an action, None if nothing is declared that it could enforce."""
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
    gates = _present((limits, partial(_validate, inputs), *admission))
    durable = action.needs_confirmation or action.is_irreversible
    return Guard(enforcement.store, gates, authentication, receipts, durable=durable)


def _validate(inputs: Validator, call: Call) -> Demand | None:
    """Refuse an input that does not conform, once all that comes before has let the call pass (WoA section 5.1)."""
    if inputs.is_valid(call.input):
        return None

    def refuse(*_: object) -> NoReturn:
        raise InvalidInput.of(*inputs.describe(call.input))

    return Demand((), (), refuse, refuses=True)


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
