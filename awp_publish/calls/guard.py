"""`Guard`: all gates of one action, in their order.

The caller is known before anything is counted, and callers who may not know of the action are told that it does not
exist. What may be answered from a record is looked up before a person is asked, and nobody is asked about a call that
cannot go through.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

from awp_publish.calls.call import Call, Outcome, Result, never_disconnected
from awp_publish.calls.gates.audience import AUDIENCE
from awp_publish.calls.gates.gate import Ask, Facts, Gate, GateCheck, Guards
from awp_publish.calls.gates.identify import IDENTIFY, REQUIRE
from awp_publish.calls.gates.inputs import INPUTS
from awp_publish.model import Action
from awp_publish.problems import DeclarationError, Problem, RateLimited
from awp_publish.stores.store import Ran, Seen, Step

logger: Final = logging.getLogger("awp_publish.calls")

GATES: Final = (IDENTIFY, AUDIENCE, REQUIRE, INPUTS)
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
    concerned: list[tuple[Gate, Any]] = [(gate, made) for gate in gates if (made := gate.of(action, facts)) is not None]
    for gate, check in concerned:
        if not isinstance(check, GateCheck):
            wrong = f'what is returned for action "{action.id}" is a {type(check).__name__}.'
            raise DeclarationError(f'gate "{gate.name}"', wrong, "Return a GateCheck, or None.")
        if type(check).ask is GateCheck.ask and type(check).judge is not GateCheck.judge:
            wrong = f"{type(check).__name__} has judge but no ask, so that it would never judge."
            raise DeclarationError(f'gate "{gate.name}"', wrong, "Let ask return an Ask, or refuse in enter.")
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
            if (pending := enter(call)) is not None:
                await pending
        asked, waits, refusal = self._ask(call)

        # To count and to claim, or to count and look.
        steps: list[Step] = []
        for ask in asked.values():
            steps += (*ask.counts, *ask.looks) if waits else ask.counts
        claims = [] if waits or refusal is not None else [step for ask in asked.values() for step in ask.claims]
        ran = await self._store.run(steps + claims, durable=self._durable) if steps or claims else _NOTHING
        answer = _judge(call, asked, waits, ran)
        if answer is None:
            if refusal is not None:
                raise refusal if isinstance(refusal, Problem) else refusal()
            if waits:  # what was looked at allows the claims
                for check, ask in asked.items():
                    if ask.waits:
                        await check.consider(call, ask, ask.looked)
                steps, claims = [], [step for ask in asked.values() for step in ask.claims]
                ran = await self._store.run(claims, durable=self._durable) if claims else _NOTHING
            if ran.failed is not None:
                answer = await _refuse(call, asked, ran.failed - len(steps), ran.seen[-1])
        if answer is not None:
            for replayed in self._replayed:
                await replayed(call, answer)
            return answer
        call.asked = asked
        if claims:
            call.disconnected = never_disconnected  # it runs to its end, so that it can be recorded
        return None

    def _ask(self, call: Call) -> tuple[_Asked, bool, Problem | Callable[[], Problem] | None]:
        """Return what the checks want of the store, whether any of them waits, and the refusal of the last one."""
        asked: _Asked = {}
        waits = False
        for check, ask_for in self._asking:
            try:
                ask = ask_for(call)
            except Problem as problem:
                return asked, waits, problem
            if ask is not None:
                asked[check] = ask
                waits = waits or ask.waits
                if ask.refusal is not None:
                    return asked, waits, ask.refusal
        return asked, waits, None

    def needs_answer(self, call: Call) -> bool:
        """Return True if the answer of an admitted call has to be whole before its caller gets any of it."""
        return any(check.needs_answer(call, call.asked.get(check)) for check in self._ending)

    async def conclude(self, call: Call, result: Result) -> None:
        """Tell the gates how an admitted call ended: they record its answer, and add to its headers.

        The action has run, so its answer outlasts the failure of a gate.
        """
        for check in self._ending:
            try:
                await check.ended(call, call.asked.get(check), result)
            except Exception:
                values = (type(check).__qualname__, call.action.id, call.request_id)
                logger.exception("the gate %s failed after a call of action %s (request_id=%s)", *values)


def _judge(call: Call, asked: _Asked, waits: bool, ran: Ran) -> Outcome | None:
    """Let each check judge what the store has found for it, up to the first that answers or refuses the call."""
    failed, seen = ran
    end = 0
    for check, ask in asked.items():
        start, end = end, end + len(ask.counts) + (len(ask.looks) if waits else 0)
        if failed is not None and failed < end:
            check.judge(call, ask, seen[start:], failed - start)
            raise RateLimited("This call exceeds a limit.")  # whatever the check made of it
        if waits:
            ask.looked = seen[start + len(ask.counts) : end]
        if (start < end or ask.waits) and (answer := check.judge(call, ask, seen[start:end], None)) is not None:
            return answer
    return None


async def _refuse(call: Call, asked: _Asked, failed: int, seen: Seen) -> Outcome:
    """Let the check whose claim did not hold answer the call."""
    for check, ask in asked.items():
        if failed < len(ask.claims):
            return await check.refused(call, ask, failed, seen)
        failed -= len(ask.claims)
    raise AssertionError("a step that nobody has asked for did not hold")
