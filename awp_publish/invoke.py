"""The path of every call: find -> gates -> validate -> handler -> validate -> record -> outcome.

Only this file calls a handler, so that no door can go round a gate. Gates stand in two rows: those before the handler
may refuse a call (raise a Problem) or answer it (return an Outcome), those after it see what the caller will see. A
guarded action has its guard as the one gate in front, which also records in the end how the call went.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, NoReturn, TypeAlias

import orjson

from awp_publish.model import DEFAULT_OPERATION, Action, Catalog, Status
from awp_publish.observing import Observer
from awp_publish.patrol import Patrol, Watch
from awp_publish.policy.call import Call, Demand, Gate, Outcome, Result
from awp_publish.policy.guard import Enforcement, guard_of
from awp_publish.problems import (
    DeclarationError,
    HandlerFailed,
    HandlerTimeout,
    InvalidInput,
    InvalidOutput,
    Problem,
    TemporarilyUnavailable,
    UnknownAgent,
    UnknownOperation,
)
from awp_publish.schema import UnusableSchema, compile_schema

RETRY_UNAVAILABLE: Final = 60
"""Seconds after which a caller may look whether a degraded action works again."""

logger: Final = logging.getLogger("awp_publish.calls")


Deliver: TypeAlias = Callable[[Result], Awaitable[None]]
Answered: TypeAlias = Callable[[Result], None]
Reach: TypeAlias = Callable[[Call, Answered], Awaitable[Result]]
"""Reaches the route behind an action. Reports the answer once it is complete; returns when the route has ended."""

Accept: TypeAlias = Callable[[Call], Awaitable[Outcome]]
"""Takes a call of a background action in, to be performed later. Raises StoreUnavailable."""

Before: TypeAlias = Callable[[Call], Awaitable[Outcome | None] | None]
"""A gate in front of the handler: None lets the call pass at once; what it has to wait for may answer the call."""

After: TypeAlias = Callable[[Call, Outcome], Awaitable[Outcome] | None]
"""A gate behind the handler: None leaves the outcome as it is."""


Conclude: TypeAlias = Callable[[Call, Result], Awaitable[Result]]
"""Records how a call ended, a refusal or failure too."""


@dataclass(frozen=True, slots=True)
class Gates:
    """The gates of one action, in order. Each may raise a Problem; `conclude` sees every end of an admitted call."""

    before: tuple[Before, ...]
    after: tuple[After, ...]
    conclude: Conclude | None = None


def check_input(action: Action) -> Gate:
    """Refuse an input that does not conform to the action's schema (WoA section 5.1).

    What is wrong with it is found out in the end, when all that comes before has let the call pass.
    """
    validator = compile_schema(action.inputs)

    def gate(call: Call) -> Demand | None:
        if validator.is_valid(call.input):
            return None

        def refuse(*_: object) -> NoReturn:
            raise InvalidInput.of(*validator.describe(call.input))

        return Demand((), (), refuse, refuses=True)

    return gate


def check_output(action: Action) -> After:
    """Never send an answer that does not conform to the action's schema (WoA section 5.2)."""
    validator = compile_schema(action.outputs)

    def gate(call: Call, outcome: Outcome) -> None:
        if not validator.is_valid(outcome.output):
            first = validator.describe(outcome.output)[0][0]
            told = (action.id, first.pointer, first.detail, call.request_id)
            logger.error("action %s answered against its schema: %s %s (request_id=%s)", *told)
            raise InvalidOutput(f"The answer of action {action.id} does not match its outputs schema.")

    return gate


def gates_of(action: Action, enforcement: Enforcement | None) -> Gates:
    """Which gates stand around an action, in order. Raises DeclarationError."""
    try:
        validate, after = check_input(action), (check_output(action),)
    except UnusableSchema as error:
        remedy = "Declare inputs=... and outputs=... (a model or a JSON Schema)."
        raise DeclarationError(f'action "{action.id}"', f"{error}.", remedy) from error
    guard = guard_of(action, enforcement, validate) if enforcement is not None else None
    if guard is not None:
        return Gates((guard.admit,), after, guard.conclude)

    def admit(call: Call) -> None:
        if (demand := validate(call)) is not None:
            demand.judge((), False)

    return Gates((admit,), after)


class Run(Watch[Result]):
    """One call on its way: what to do with its result, and what its result is when it takes too long."""

    __slots__ = ("_call", "_deliver", "_gates")

    def __init__(self, call: Call, gates: Gates, deliver: Deliver) -> None:
        super().__init__(time.monotonic() + call.action.timeout, call.gone)
        self._call = call
        self._gates = gates
        self._deliver = deliver

    async def hand_over(self, result: Result) -> None:
        """Show an outcome to the gates behind the handler, record it, and deliver what they make of it."""
        if not isinstance(result, Problem):
            try:
                for gate in self._gates.after:
                    waiting = gate(self._call, result)
                    if waiting is not None:
                        result = await waiting
            except Problem as problem:
                result = problem
        if self._gates.conclude is not None:
            result = await self._gates.conclude(self._call, result)
        await self._deliver(result)

    def overdue(self) -> Result:
        action, request_id = self._call.action, self._call.request_id
        logger.error("action %s took too long (request_id=%s)", action.id, request_id)
        return HandlerTimeout(f"Action {action.id} gave no answer within {action.timeout:g} seconds.")


class Invoker:
    """Runs calls of one catalog. Everything that depends only on an action is prepared here, once.

    `accept` takes in calls of background actions; without it they are handled while their callers wait.
    """

    def __init__(
        self,
        catalog: Catalog,
        reach: Reach,
        enforcement: Enforcement | None = None,
        accept: Accept | None = None,
        observer: Observer | None = None,
    ) -> None:
        self._agents = {agent.id: agent for agent in catalog.agents}
        self._actions: Mapping[str, Action] = {action.id: action for action in catalog.actions}
        self._gates = {action.id: gates_of(action, enforcement) for action in catalog.actions}
        self._reach = reach
        self._accept = accept
        self._observer = observer or Observer()
        self._patrol: Patrol[Result] = Patrol()
        self._unavailable: frozenset[str] = frozenset()
        self.heed(catalog.status)

    def heed(self, status: Status) -> None:
        """From now on refuse what does not work (agent.json section 13)."""
        self._unavailable = status.degraded_actions if status.operational else frozenset(self._actions)

    def find(self, agent_id: str, operation: str | None) -> Action:
        """The action that an agent and operation name mean. Raises UnknownAgent, UnknownOperation.

        An omitted operation means "default" (WoA section 5.1).
        """
        agent = self._agents.get(agent_id)
        if agent is None:
            raise UnknownAgent(f'This site has no agent "{_quote(agent_id)}".')
        action_id = agent.operations.get(DEFAULT_OPERATION if operation is None else operation)
        if action_id is None:
            known = ", ".join(agent.operations)
            named = "no default operation" if operation is None else f'no operation "{_quote(operation)}"'
            raise UnknownOperation(f'Agent "{agent_id}" has {named}. It has: {known}.')
        return self._actions[action_id]

    def is_guarded(self, action: Action) -> bool:
        """Whether more of a call is to be known than its input: by gates, or because its job counts as its caller's."""
        return self._gates[action.id].conclude is not None or action.is_background

    def note_refusal(self, door: str, request_id: str, problem: Problem) -> None:
        """Note a request that never became a call."""
        self._observer.note_refusal(door, request_id, problem)

    def run(self, call: Call, deliver: Deliver) -> Awaitable[None]:
        """Carry a call through its gates and its handler, and `deliver` one outcome or problem.

        Delivers before it returns when a handler works on after its answer, or does not heed its deadline.
        """
        if self._observer.is_watching():
            return self._observer.watch(call, deliver, self._admit)
        return self._admit(call, deliver)

    async def _admit(self, call: Call, deliver: Deliver) -> None:
        gates = self._gates[call.action.id]
        try:
            if self._unavailable and call.action.id in self._unavailable:
                raise _unavailable(call.action)
            for gate in gates.before:
                waiting = gate(call)
                if waiting is not None and (answer := await waiting) is not None:
                    await deliver(answer)
                    return
        except Problem as problem:
            await deliver(problem)
            return
        if self._accept is not None and call.action.is_background:
            await self._take_in(call, gates, self._accept, deliver)
            return
        run = Run(call, gates, deliver)
        self._patrol.add(run)
        try:
            await run.finish(await self._handle(call, run))
        except asyncio.CancelledError:
            if not run.interrupted:
                raise
        finally:
            self._patrol.remove(run)
            if run.has_company:
                await run.settle()

    async def _take_in(self, call: Call, gates: Gates, accept: Accept, deliver: Deliver) -> None:
        result: Result
        try:
            result = await accept(call)
        except Problem as problem:
            result = problem
        await deliver(result if gates.conclude is None else await gates.conclude(call, result))

    async def _handle(self, call: Call, run: Run) -> Result:
        try:
            if call.action.function is not None:
                return _outcome_of(await call.action.function(call.input))
            return await self._reach(call, run.note)
        except InvalidOutput as problem:
            logger.error("action %s: %s (request_id=%s)", call.action.id, problem, call.request_id, exc_info=problem)
            return problem
        except Problem as problem:
            return problem
        except Exception:
            failure = failed(call)
            return failure if run.answer is None else run.answer  # what fails after its answer does not take it back


def failed(call: Call) -> HandlerFailed:
    """The problem for an exception that is being handled; the traceback goes into the log under the same id."""
    logger.exception("action %s failed (request_id=%s)", call.action.id, call.request_id)
    return HandlerFailed(f"Action {call.action.id} failed. The site's log has the cause under this request_id.")


def _unavailable(action: Action) -> TemporarilyUnavailable:
    return TemporarilyUnavailable(
        f"Action {action.id} does not work at the moment.", headers=[("Retry-After", str(RETRY_UNAVAILABLE))]
    )


def _outcome_of(body: bytes) -> Outcome:
    return Outcome(body, orjson.loads(body))


def _quote(text: str) -> str:
    return text[:100]
