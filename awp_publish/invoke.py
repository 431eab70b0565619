"""The path of every call: find -> gates -> validate -> handler -> validate -> outcome.

Only this file calls a handler, so that no door can go round a gate. Gates stand in two rows: those before the handler
may refuse a call (raise a Problem) or answer it (return an Outcome), those after it see what the caller will see.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import orjson

from awp_publish.model import DEFAULT_OPERATION, Action, Catalog, JsonObject
from awp_publish.patrol import Patrol, Watch
from awp_publish.problems import (
    DeclarationError,
    HandlerFailed,
    HandlerTimeout,
    InvalidInput,
    InvalidOutput,
    Problem,
    UnknownAgent,
    UnknownOperation,
)
from awp_publish.schema import UnusableSchema, compile_schema

logger: Final = logging.getLogger("awp_publish.calls")


@dataclass(slots=True)
class Call:
    """One call, whichever door it came through.

    `context` is the door's own request, which a reach of the same kind knows how to use. `gone()` returns when the
    caller has hung up.
    """

    action: Action
    input: JsonObject
    request_id: str
    door: str
    context: object = None
    gone: Callable[[], Awaitable[None]] | None = None


@dataclass(slots=True)
class Outcome:
    """What an action answered: JSON text, the same decoded, and the headers worth carrying to the caller."""

    body: bytes
    output: object
    status: int = 200
    headers: tuple[tuple[bytes, bytes], ...] = ()


Result: TypeAlias = Outcome | Problem
Deliver: TypeAlias = Callable[[Result], Awaitable[None]]
Answered: TypeAlias = Callable[[Result], None]
Reach: TypeAlias = Callable[[Call, Answered], Awaitable[Result]]
"""Reaches the route behind an action. Reports the answer once it is complete; returns when the route has ended."""

Before: TypeAlias = Callable[[Call], Awaitable[Outcome | None] | None]
"""A gate in front of the handler: None lets the call pass at once; what it has to wait for may answer the call."""

After: TypeAlias = Callable[[Call, Outcome], Awaitable[Outcome] | None]
"""A gate behind the handler: None leaves the outcome as it is."""


@dataclass(frozen=True, slots=True)
class Gates:
    """The gates of one action, in order. Each may raise a Problem."""

    before: tuple[Before, ...]
    after: tuple[After, ...]


def check_input(action: Action) -> Before:
    """Refuse an input that does not conform to the action's schema (WoA section 5.1)."""
    validate = compile_schema(action.inputs)

    def gate(call: Call) -> None:
        if violations := validate(call.input):
            first, more = violations[0], len(violations) - 1
            also = f" (and {more} more)" if more else ""
            raise InvalidInput(f"{first.pointer or 'The input'}: {first.detail}{also}.", errors=violations)

    return gate


def check_output(action: Action) -> After:
    """Never send an answer that does not conform to the action's schema (WoA section 5.2)."""
    validate = compile_schema(action.outputs)

    def gate(call: Call, outcome: Outcome) -> None:
        if violations := validate(outcome.output):
            told = (action.id, violations[0].pointer, violations[0].detail, call.request_id)
            logger.error("action %s answered against its schema: %s %s (request_id=%s)", *told)
            raise InvalidOutput(f"The answer of action {action.id} does not match its outputs schema.")

    return gate


def gates_of(action: Action) -> Gates:
    """Which gates stand around an action, in order. Raises DeclarationError."""
    try:
        return Gates(before=(check_input(action),), after=(check_output(action),))
    except UnusableSchema as error:
        remedy = "Declare inputs=... and outputs=... (a model or a JSON Schema)."
        raise DeclarationError(f'action "{action.id}"', f"{error}.", remedy) from error


class Run(Watch[Result]):
    """One call on its way: what to do with its result, and what its result is when it takes too long."""

    __slots__ = ("_after", "_call", "_deliver")

    def __init__(self, call: Call, after: tuple[After, ...], deliver: Deliver) -> None:
        super().__init__(time.monotonic() + call.action.timeout, call.gone)
        self._call = call
        self._after = after
        self._deliver = deliver

    async def hand_over(self, result: Result) -> None:
        """Show an outcome to the gates behind the handler, and deliver what they make of it."""
        if not isinstance(result, Problem):
            try:
                for gate in self._after:
                    waiting = gate(self._call, result)
                    if waiting is not None:
                        result = await waiting
            except Problem as problem:
                result = problem
        await self._deliver(result)

    def overdue(self) -> Result:
        action, request_id = self._call.action, self._call.request_id
        logger.error("action %s took too long (request_id=%s)", action.id, request_id)
        return HandlerTimeout(f"Action {action.id} gave no answer within {action.timeout:g} seconds.")


class Invoker:
    """Runs calls of one catalog. Everything that depends only on an action is prepared here, once."""

    def __init__(self, catalog: Catalog, reach: Reach) -> None:
        self._agents = {agent.id: agent for agent in catalog.agents}
        self._actions: Mapping[str, Action] = {action.id: action for action in catalog.actions}
        self._gates = {action.id: gates_of(action) for action in catalog.actions}
        self._reach = reach
        self._patrol: Patrol[Result] = Patrol()

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

    async def run(self, call: Call, deliver: Deliver) -> None:
        """Carry a call through its gates and its handler, and `deliver` one outcome or problem.

        Delivers before it returns when a handler works on after its answer, or does not heed its deadline.
        """
        gates = self._gates[call.action.id]
        try:
            for gate in gates.before:
                waiting = gate(call)
                if waiting is not None and (answer := await waiting) is not None:
                    await deliver(answer)
                    return
        except Problem as problem:
            await deliver(problem)
            return
        run = Run(call, gates.after, deliver)
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


def _outcome_of(body: bytes) -> Outcome:
    return Outcome(body, orjson.loads(body))


def _quote(text: str) -> str:
    return text[:100]
