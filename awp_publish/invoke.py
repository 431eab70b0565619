"""The path of every call: find -> gates -> validate -> handler -> validate -> record -> outcome.

Only this file calls a handler, so that no door can go round a gate. Gates stand in two rows: those before the handler
may refuse a call (raise a Problem) or answer it (return an Outcome), those after it see what the caller will see. A
guarded action has its guard as the one gate in front, which also records in the end how the call went.
"""

import asyncio
import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Final, Generic, NoReturn, Protocol, TypeAlias, TypeVar

import orjson

from awp_publish.model import DEFAULT_OPERATION, Action, Catalog, Status
from awp_publish.policy.call import Call, CallListener, Demand, Gate, Outcome, Result
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

# --- OpenTelemetry spans of calls ---

PREFIX: Final = "awp_publish."
"""Attributes of ours; the conventions of OpenTelemetry know no agent calls."""


class Span(Protocol):
    """A span that takes note of what came of its call."""

    def note(self, facts: Mapping[str, object]) -> None: ...


def is_on() -> bool:
    """Whether spans go anywhere. Until an application sets a provider, the API's own stands in and records nothing."""
    api = _api()
    return api is not None and not isinstance(api.get_tracer_provider(), api.ProxyTracerProvider)


@contextmanager
def start_span(name: str) -> Iterator[Span]:
    """A span around what is done inside of it, which makes it the parent of the handler's own spans."""
    api = _api()
    assert api is not None
    with api.get_tracer("awp_publish").start_as_current_span(name, kind=api.SpanKind.SERVER) as span:
        yield _Noting(span, api)


class _Noting:
    def __init__(self, span: object, api: ModuleType) -> None:
        self._span = span
        self._api = api

    def note(self, facts: Mapping[str, object]) -> None:
        told = {PREFIX + name: value for name, value in facts.items() if isinstance(value, (str, int, float))}
        self._span.set_attributes(told)  # type: ignore[attr-defined]
        status = facts.get("status")
        if isinstance(status, int) and status >= 500:
            self._span.set_status(self._api.StatusCode.ERROR, str(facts.get("outcome")))  # type: ignore[attr-defined]


@cache
def _api() -> ModuleType | None:
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace


# --- A record of calls: one log line for each, and an OpenTelemetry span where a tracer is set up ---
# The line is JSON in the log `awp_publish.access`, level INFO: door, action, principal, outcome, status, milliseconds
# and request id. Inputs are in it only if the site asked for that. Listeners of the site are given the same facts.
# While nobody listens, a call costs nothing here.

access_logger: Final = logging.getLogger("awp_publish.access")
failures: Final = logging.getLogger("awp_publish")

UNANSWERED: Final = "UNANSWERED"
"""The outcome of a call that ended without an answer, because its caller hung up or the server stops."""

Deliver: TypeAlias = Callable[[Result], Awaitable[None]]
Carry: TypeAlias = Callable[[Call, Deliver], Awaitable[None]]


class Observer:
    """Watches calls, if anybody wants to know. `log_inputs` adds their inputs to the facts, whatever they hold."""

    def __init__(self, log_inputs: bool = False, listeners: Sequence[CallListener] = ()) -> None:
        self._log_inputs = log_inputs
        self._listeners = listeners
        self._is_tracing = False
        self._look_again = 0.0

    def is_watching(self) -> bool:
        """Whether anybody wants to know. Tracing is set up once, so it is looked for once a second until it is."""
        if self._is_tracing or self._listeners or access_logger.isEnabledFor(logging.INFO):
            return True
        now = time.monotonic()
        if now >= self._look_again:
            self._look_again = now + 1.0
            self._is_tracing = is_on()
        return self._is_tracing

    async def watch(self, call: Call, deliver: Deliver, carry: Carry) -> None:
        """Carry a call on its way, and note what is delivered for it, or that nothing was: its caller hung up."""
        started = time.perf_counter()
        is_noted = False
        with _span(call) as note:

            def note_end(result: Result | None) -> None:
                nonlocal is_noted
                is_noted = True
                facts = _facts(call.door, call.request_id, call.action.id, call.caller_id, result, started)
                note(facts)
                self._tell({**facts, "input": call.input} if self._log_inputs else facts)

            async def deliver_noted(result: Result) -> None:
                note_end(result)
                await deliver(result)

            try:
                await carry(call, deliver_noted)
            finally:
                if not is_noted:
                    note_end(None)

    def note_refusal(self, door: str, request_id: str, problem: Problem) -> None:
        """Note a request that a door refused before it was a call of any action."""
        if self._listeners or access_logger.isEnabledFor(logging.INFO):
            self._tell(_facts(door, request_id, "", "", problem, time.perf_counter()))

    def _tell(self, facts: dict[str, object]) -> None:
        _write(facts)
        for listener in self._listeners:
            try:
                listener(facts)
            except Exception:
                failures.exception("a listener of calls has failed")


def _facts(
    door: str, request_id: str, action: str, principal: str, result: Result | None, started: float
) -> dict[str, object]:
    """What is noted. `outcome` is "ok", the code of a problem, or UNANSWERED; then there is no status."""
    return {
        "door": door,
        "action": action or None,
        "principal": principal or None,
        "outcome": UNANSWERED if result is None else result.code if isinstance(result, Problem) else "ok",
        "status": None if result is None else result.status,
        "ms": round((time.perf_counter() - started) * 1000, 3),
        "request_id": request_id,
    }


def _write(facts: dict[str, object]) -> None:
    """JSON keeps one call on one line, whatever a caller's id or input holds. The facts are in `record.call` too."""
    if access_logger.isEnabledFor(logging.INFO):
        access_logger.info("%s", orjson.dumps(facts, default=str).decode(), extra={"call": facts})


@contextmanager
def _span(call: Call) -> Iterator[Callable[[dict[str, object]], None]]:
    if not is_on():
        yield lambda facts: None
        return
    with start_span(f"{call.door} {call.action.id}") as span:
        yield span.note


# --- Looking after calls that take long ---
# One timer looks after all calls. A timer and a task for each would cost a quick call a tenth of its time, for
# something that quick calls never need; so deadlines are kept to within one `INTERVAL`.

INTERVAL: Final = 0.1
"""Seconds between two rounds."""

R = TypeVar("R")
Gone: TypeAlias = Callable[[], Awaitable[None]]


class Watch(ABC, Generic[R]):
    """One call under watch, in whose task it is made. Hands over exactly one result: the first that anybody has.

    `gone()` ends when the caller hangs up; `deadline` is in monotonic seconds.
    """

    __slots__ = ("_finished", "_finisher", "_listener", "_task", "answer", "deadline", "gone", "interrupted")

    def __init__(self, deadline: float, gone: Gone | None) -> None:
        self.deadline = deadline
        self.gone = gone
        self.interrupted = False
        self._task = asyncio.current_task()
        self.answer: R | None = None
        self._finished = False
        self._finisher: asyncio.Task[None] | None = None
        self._listener: asyncio.Task[None] | None = None

    @abstractmethod
    async def hand_over(self, result: R) -> None:
        """Give the result to whoever waits for it."""

    @abstractmethod
    def overdue(self) -> R:
        """The result of a call that is past its deadline."""

    def note(self, answer: R) -> None:
        """The answer is complete, though its handler may work on: from now on nothing interrupts the call."""
        self.answer = answer

    async def finish(self, result: R) -> None:
        """Hand over a result, unless one was handed over already."""
        if not self._finished:
            self._finished = True
            await self.hand_over(result)

    def inspect(self, now: float) -> None:
        """One round: give out an answer whose handler works on, end what is overdue, listen for a hang-up."""
        if self._finished:
            return
        if self.answer is not None:
            self._finisher = self._start(self.finish(self.answer))
        elif now >= self.deadline:
            self._finisher = self._start(self.finish(self.overdue()))
            self._interrupt()
        elif self.gone is not None and self._listener is None:
            self._listener = self._start(self._listen(self.gone))

    @property
    def has_company(self) -> bool:
        """Whether the patrol did anything in this call's name that has to be settled."""
        return self._listener is not None or self._finisher is not None or self.interrupted

    async def settle(self) -> None:
        """Wait for the tasks that the patrol started in this call's name. The call owns them and awaits this."""
        if self.interrupted and self._task is not None:
            self._task.uncancel()
        if self._listener is not None:
            self._listener.cancel()
        started = [task for task in (self._listener, self._finisher) if task is not None]
        if started:
            await asyncio.gather(*started, return_exceptions=True)

    async def _listen(self, gone: Gone) -> None:
        await gone()
        if not self._finished and self.answer is None:
            self._finished = True
            self._interrupt()

    def _interrupt(self) -> None:
        self.interrupted = True
        if self._task is not None:
            self._task.cancel()

    def _start(self, work: "asyncio._CoroutineLike[None]") -> "asyncio.Task[None]":
        return asyncio.get_running_loop().create_task(work)


class Patrol(Generic[R]):
    """The rounds over all watched calls, each event loop's apart: a process may run several, in turn or in threads."""

    def __init__(self) -> None:
        self._own = threading.local()

    def add(self, watch: Watch[R]) -> None:
        rounds: _Rounds[R] | None = getattr(self._own, "rounds", None)
        loop = asyncio.get_running_loop()
        if rounds is None or rounds.loop is not loop:
            rounds = self._own.rounds = _Rounds(loop)
        rounds.add(watch)

    def remove(self, watch: Watch[R]) -> None:
        rounds: _Rounds[R] = self._own.rounds
        rounds.watches.discard(watch)


class _Rounds(Generic[R]):
    """The rounds of one event loop. No timer runs while there is no call."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.watches: set[Watch[R]] = set()
        self._is_due = False

    def add(self, watch: Watch[R]) -> None:
        self.watches.add(watch)
        if not self._is_due:
            self._is_due = True
            self.loop.call_later(INTERVAL, self._go)

    def _go(self) -> None:
        now = time.monotonic()
        for watch in tuple(self.watches):
            watch.inspect(now)
        self._is_due = bool(self.watches)
        if self._is_due:
            self.loop.call_later(INTERVAL, self._go)


RETRY_UNAVAILABLE: Final = 60
"""Seconds after which a caller may look whether a degraded action works again."""

logger: Final = logging.getLogger("awp_publish.calls")


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
