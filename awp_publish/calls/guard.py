"""`Guard`: all gates of one action, in the order of `GATES`.

The caller is known before anything is counted, and callers who may not know of the action are told that it does not
exist. A replay is looked up before the confirmation, because a retried call carries a used one; prerequisites precede
the confirmation, so that no person is asked about a call that cannot go through.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from awp_publish.calls.call import Call, Outcome, Result, never_disconnected
from awp_publish.calls.gates.audience import AUDIENCE
from awp_publish.calls.gates.confirmation import CONFIRMATION
from awp_publish.calls.gates.gate import Ask, Facts, Gate, GateCheck, Guards
from awp_publish.calls.gates.idempotency import IDEMPOTENCY
from awp_publish.calls.gates.identify import IDENTIFY, REQUIRE
from awp_publish.calls.gates.inputs import INPUTS
from awp_publish.calls.gates.limits import LIMITS
from awp_publish.calls.gates.prerequisites import PREREQUISITES, RECEIPTS
from awp_publish.model import Action
from awp_publish.problems import Problem, RateLimited
from awp_publish.stores.store import Ran, Seen, Step

GATES: Final = (
    IDENTIFY,
    AUDIENCE,
    REQUIRE,
    LIMITS,
    INPUTS,
    IDEMPOTENCY,
    PREREQUISITES,
    RECEIPTS,
    CONFIRMATION,
)
"""The core's own gates. Those of plug-ins stand between them, by their `order`."""

_NOTHING: Final = Ran(None, ())

_Asked: TypeAlias = dict[GateCheck[Any], Ask]
"""Checks in their order, each with what it asks of the store."""


def in_order(gates: Iterable[Gate]) -> list[Gate]:
    """Return the core's own gates and these in their order."""
    return sorted((*GATES, *gates), key=lambda gate: gate.order)


def guard_of(action: Action, facts: Facts) -> "Guard | None":
    """Return the guard of an action, None if no gate concerns it."""
    gates = in_order(facts.guards.gates)
    concerned = [(gate, made) for gate in gates if (made := gate.of(action, facts)) is not None]
    if not any(gate.alone for gate, _ in concerned):
        return None
    return Guard(action, facts.guards, [made for _, made in concerned])


class Guard:
    """Admits calls of one action, and afterwards tells its gates how they ended."""

    def __init__(self, action: Action, guards: Guards, checks: Sequence[GateCheck[Any]]) -> None:
        self._store = guards.store
        self._durable = action.needs_confirmation or action.is_irreversible  # claims must survive a power failure
        self._enter = [check.enter for check in checks if type(check).enter is not GateCheck.enter]
        self._asking = [(check, check.ask) for check in checks if type(check).ask is not GateCheck.ask]
        self._replayed = [check.replayed for check in checks if type(check).replayed is not GateCheck.replayed]
        self._ending = [check for check in reversed(checks) if type(check).ended is not GateCheck.ended]

    async def admit(self, call: Call) -> Outcome | None:
        """Admit a call (None), or return its recorded answer. Raises the Problem for which it is refused."""
        for enter in self._enter:
            if (identified := enter(call)) is not None:
                await identified

        # What does each check ask of the store?
        asked: _Asked = {}
        counts: list[Step] = []
        claims: list[Step] = []
        waits = False
        refusal: Callable[[], Problem] | None = None
        for check, ask_for in self._asking:
            try:
                ask = ask_for(call)
            except Problem as problem:
                refusal = partial(_same, problem)
                break
            if ask is not None:
                asked[check] = ask
                counts += ask.counts
                claims += ask.claims
                waits = waits or ask.waits
                if (refusal := ask.refusal) is not None:
                    break

        # Go there: to count and to claim, or to count and look.
        steps, at = counts, len(counts)
        if waits:
            steps = counts + [step for ask in asked.values() for step in ask.looks]
        elif refusal is None:
            steps = counts + claims
        failed, seen = await self._store.run(steps, durable=self._durable) if steps else _NOTHING

        # What does each check make of it? Counts come first, in order; what was looked at begins at `looks`.
        answer: Outcome | None = None
        end, looks = 0, at
        for check, ask in asked.items():
            if not (waits or ask.counts):
                continue
            start, end = end, end + len(ask.counts)
            if failed is not None and start <= failed < end:
                check.judge(call, ask, seen[start:], failed - start)
                raise RateLimited("This call exceeds a limit.")  # whatever the check made of it
            results = seen[start:end]
            if waits:
                start, looks = looks, looks + len(ask.looks)
                results += seen[start:looks]
            if (results or ask.waits) and (answer := check.judge(call, ask, results, None)) is not None:
                break

        if answer is None:
            if refusal is not None:
                raise refusal()
            if waits:
                steps = await self._consider(call, asked, seen, at)
                failed, seen = await self._store.run(steps, durable=self._durable) if steps else _NOTHING
                at = 0
            if failed is not None:
                answer = await _refuse(call, asked, failed - at, seen[-1])
        if answer is not None:
            for replayed in self._replayed:
                await replayed(call, answer)
            return answer
        call.asked = asked
        if len(steps) > at:
            call.disconnected = never_disconnected  # it runs to its end, so that it can be recorded
        return None

    async def _consider(self, call: Call, asked: _Asked, seen: Sequence[Seen], at: int) -> list[Step]:
        """Let the checks that wait consider what they have looked at. Return the claims of all; raises a Problem."""
        for check, ask in asked.items():
            looked = seen[at : at + len(ask.looks)]
            at += len(ask.looks)
            if ask.waits:
                await check.consider(call, ask, looked)
        return [step for ask in asked.values() for step in ask.claims]

    def needs_answer(self, call: Call) -> bool:
        """Return True if the answer of an admitted call has to be whole before its caller gets any of it."""
        return any(check.needs_answer(call, call.asked.get(check)) for check in self._ending)

    async def conclude(self, call: Call, result: Result) -> None:
        """Tell the gates how an admitted call ended: they record its answer, and add to its headers."""
        for check in self._ending:
            await check.ended(call, call.asked.get(check), result)


def _same(problem: Problem) -> Problem:
    return problem


async def _refuse(call: Call, asked: _Asked, failed: int, seen: Seen) -> Outcome:
    """Let the check whose claim did not hold answer the call."""
    for check, ask in asked.items():
        if failed < len(ask.claims):
            return await check.refused(call, ask, failed, seen)
        failed -= len(ask.claims)
    raise AssertionError("a step that nobody has asked for did not hold")
