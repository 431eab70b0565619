"""`Guard`: the gates of one action in their order, with one round trip to the store for all of them.

authenticate -> limits -> validate input -> idempotent replay -> confirmation -> prerequisites. Who calls is known
before anything is counted. A replay is looked up before the confirmation, because a retried call carries one that is
spent. Gates refuse by themselves or demand steps of the store; the demands of all are sent together, so a later gate's
refusal is held back until the earlier ones have had their say.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from awp_publish.policy.authentication import AuthenticationGate
from awp_publish.policy.call import Call, Demand, Gate, Outcome, Result, never_gone
from awp_publish.policy.idempotency import settle_claim
from awp_publish.policy.prerequisites import hand_out_receipt
from awp_publish.policy.principal import set_caller
from awp_publish.policy.tokens import Tokens
from awp_publish.problems import Problem, StoreUnavailable
from awp_publish.stores.batches import BatchedStore
from awp_publish.stores.memory import MemoryStore
from awp_publish.stores.store import Ran, Step, Store

logger: Final = logging.getLogger("awp_publish.calls")

PATIENCE: Final = 5.0
"""Seconds that a store of the site's own may take. Ours keep their time themselves."""

RETRY: Final = (("Retry-After", "1"),)


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
        receipts: Tokens | None = None,
        *,
        durable: bool = False,
    ) -> None:
        self._store = store
        self._keeps_time = isinstance(store, MemoryStore | BatchedStore)
        self._gates = tuple(gates)
        self._authentication = authentication
        self._receipts = receipts
        self._durable = durable

    async def admit(self, call: Call) -> Outcome | None:
        """Let a call pass (None) or answer it with what is recorded. Raises the Problem of the gate that refuses."""
        await self._identify(call)
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
                await self._reach_store((settle_claim(call, call.claim, result),), durable=True)
            except StoreUnavailable:
                told = (call.action.id, call.request_id)
                logger.exception("the answer of action %s could not be recorded (request_id=%s)", *told)
        return self._with_receipt(call, result) if isinstance(result, Outcome) else result

    async def _identify(self, call: Call) -> None:
        if call.credentials is None:
            return
        credentials = call.credentials()
        call.address = credentials.address
        if self._authentication is not None:
            call.principal = await self._authentication(credentials)
            set_caller(call.principal)

    async def _ask(self, call: Call, demands: Sequence[Demand], objection: Problem | None) -> Outcome | None:
        """One round trip for all demands; then each gate, in order, reads what its own steps saw."""
        parts = [demand.looks if objection is not None else demand.steps for demand in demands]
        ran = await self._reach_store([step for part in parts for step in part], durable=self._durable)
        first = 0
        for demand, part in zip(demands, parts, strict=True):
            last = first + len(part)
            holds = ran.failed is None or ran.failed >= last
            answer = demand.judge(ran.seen[first:last], holds)
            if answer is not None or not holds:
                return answer
            first = last
        if (objection is None and call.claim is not None) or self._durable:
            call.gone = never_gone  # what is claimed is carried to its end, so that it can be recorded
        return None

    async def _reach_store(self, steps: Sequence[Step], *, durable: bool) -> Ran:
        """Raises StoreUnavailable, whatever a store of the site's own does that fails."""
        try:
            if self._keeps_time:
                return await self._store.run(steps, durable=durable)
            async with asyncio.timeout(PATIENCE):
                return await self._store.run(steps, durable=durable)
        except StoreUnavailable as problem:
            problem.headers = problem.headers or RETRY
            raise
        except Exception as error:
            logger.exception("the store failed")
            raise StoreUnavailable("The site's store failed.", headers=RETRY) from error

    def _with_receipt(self, call: Call, outcome: Outcome) -> Outcome:
        if self._receipts is not None and not call.action.is_background:
            call.headers += (hand_out_receipt(self._receipts, call),)
        return outcome
