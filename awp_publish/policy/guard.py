"""`Guard`: the gates of one action in their order, with one round trip to the store for all of them.

authenticate -> limits -> validate input -> idempotent replay -> confirmation -> prerequisites. Who calls is known
before anything is counted. A replay is looked up before the confirmation, because a retried call carries one that is
spent. Gates refuse by themselves or by what the store sees, which is asked once; so a later gate's refusal is held back
until the earlier ones have had their say. A caller over the limit costs no more of the input than a look at whether it
conforms: what is wrong with it is only worked out for those who are told.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from awp_publish.model import Action, RateLimit
from awp_publish.policy.authentication import AuthenticationGate, Authenticator, set_caller
from awp_publish.policy.call import Call, Claim, Outcome, Result, never_disconnected
from awp_publish.policy.confirmation import Confirmations
from awp_publish.policy.idempotency import IdempotencyKeys
from awp_publish.policy.limits import RateLimits
from awp_publish.policy.prerequisites import Receipts
from awp_publish.policy.tokens import Tokens
from awp_publish.problems import ConfirmationSpent, InvalidInput, Problem, StoreUnavailable
from awp_publish.schema import Validator
from awp_publish.stores.store import Add, Look, Ran, Store

logger: Final = logging.getLogger("awp_publish.calls")


class Guard:
    """Admits calls of one action, and settles afterwards what it claimed for them."""

    def __init__(self, action: Action, enforcement: "Enforcement", inputs: Validator) -> None:
        self._store = enforcement.store
        self._inputs = inputs
        limits = RateLimits(action, enforcement.rate_limit)
        self._limits = limits if limits.names else None
        self._keys = IdempotencyKeys(action, action.idempotency) if action.idempotency is not None else None
        asks = action.needs_confirmation and enforcement.confirmations is not None
        self._confirmations = Confirmations(action, enforcement.confirmations) if asks else None  # type: ignore[arg-type]
        depends = action.requires
        self._prerequisites = enforcement.receipts if depends else None
        self._receipts = enforcement.receipts if action.id in enforcement.receipted else None
        self._hands_out = self._receipts is not None and not action.is_background
        self._durable = action.needs_confirmation or action.is_irreversible  # claims must outlive a loss of power
        self._authentication: AuthenticationGate | None = None
        if enforcement.authenticators:
            # A route with a security scheme of its own asks for credentials itself; ours tell who calls if we know it.
            ours = action.auth_required and not action.route_authenticates
            self._authentication = AuthenticationGate(
                enforcement.authenticators,
                required=ours,
                scopes=action.scopes if ours else (),
                realm=enforcement.realm,
                metadata_url=enforcement.metadata_url,
                trusts_route=action.route_authenticates,
                store=enforcement.store,
            )

    @property
    def is_needed(self) -> bool:
        """Whether anything is declared that it could enforce."""
        policies = (
            self._limits,
            self._keys,
            self._confirmations,
            self._prerequisites,
            self._authentication,
            self._receipts,
        )
        return any(policy is not None for policy in policies)

    async def admit(self, call: Call) -> Outcome | None:
        """Let a call pass (None) or answer it with what is recorded. Raises the Problem of the gate that refuses."""
        # Who calls?
        if call.credentials is not None:
            credentials = call.credentials()
            call.address = credentials.address
            if self._authentication is not None:
                call.principal = await self._authentication(credentials)
                set_caller(call.principal)

        # What do the gates see by themselves? The first objection ends it, and is told if the store has none before.
        claim: Claim | None = None
        confirmed: tuple[Add, Callable[[type[Problem], str], Problem]] | None = None
        objection: Problem | None = None
        if self._keys is not None:
            self._keys.take(call)
        is_valid = self._inputs.is_valid(call.input)
        if is_valid:
            try:
                if self._keys is not None:
                    claim = self._keys.claim(call)
                if self._confirmations is not None:
                    confirmed = self._confirmations.read(call)
                if self._prerequisites is not None:
                    self._prerequisites.check(call)
            except Problem as problem:
                objection = problem

        # What does the store see? One round trip; a call that is refused anyway only looks, so that it claims nothing.
        steps = self._limits.counts(call) if self._limits is not None else []
        counted = len(steps)
        if claim is not None and self._keys is not None:
            steps += self._keys.steps(call, claim)
        claimed = len(steps)
        if confirmed is not None:
            steps.append(confirmed[0])
        if objection is not None:
            looks = [claim.key] * (claimed - counted) if claim is not None else []
            looks += [confirmed[0].key] if confirmed is not None else []
            steps[counted:] = [Look(key) for key in looks]
        ran = await self._store.run(steps, durable=self._durable) if steps else Ran(None, ())
        failed = len(steps) if ran.failed is None else ran.failed

        # Each gate, in order
        if self._limits is not None:
            self._limits.tell(call, ran.seen[:counted], failed >= counted)  # type: ignore[arg-type]
        if not is_valid:
            raise InvalidInput.of(*self._inputs.describe(call.input, call.elsewhere))
        if claim is not None and self._keys is not None:
            answer = self._keys.answer(claim, ran.seen[counted:claimed], failed >= claimed)
            if answer is not None:
                return self._with_receipt(call, answer)
        if confirmed is not None and ran.seen[claimed] is not None:
            raise confirmed[1](ConfirmationSpent, "The confirmation admitted a call before.")
        if objection is not None:
            raise objection
        call.claim = claim
        if claim is not None or (self._durable and steps):
            call.gone = never_disconnected  # what is claimed is carried to its end, so that it can be recorded
        return None

    async def conclude(self, call: Call, result: Result) -> Result:
        """Record how a call ended under its key, and hand out its receipt. The answer stands even if that fails."""
        if call.claim is not None and self._keys is not None:
            try:
                await self._store.run((self._keys.settle(call, call.claim, result),), durable=True)
            except StoreUnavailable:
                told = (call.action.id, call.request_id)
                logger.exception("the answer of action %s could not be recorded (request_id=%s)", *told)
        return self._with_receipt(call, result) if self._hands_out and isinstance(result, Outcome) else result

    def _with_receipt(self, call: Call, outcome: Outcome) -> Outcome:
        if self._hands_out and self._receipts is not None:
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
