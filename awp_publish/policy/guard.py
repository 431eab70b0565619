"""`Guard`: the gates of one action in their order, with one round trip to the store for all of them.

authenticate -> limits -> validate input -> idempotent replay -> confirmation -> prerequisites. Who calls is known
before anything is counted. A replay is looked up before the confirmation, because a retried call carries one that is
spent. Gates refuse by themselves or demand steps of the store; the demands of all are sent together, so a later gate's
refusal is held back until the earlier ones have had their say. A caller over the limit costs no more of the input than
a look at whether it conforms: what is wrong with it is only worked out for those who are told.
"""

import logging
from collections.abc import Sequence
from typing import Final

from awp_publish.policy.authentication import AuthenticationGate
from awp_publish.policy.call import Call, Demand, Gate, Outcome, Result, never_gone
from awp_publish.policy.idempotency import settle_claim
from awp_publish.policy.prerequisites import Receipts
from awp_publish.policy.principal import set_caller
from awp_publish.problems import Problem, StoreUnavailable
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
