"""The path of every call: find -> guard or validate -> handler -> validate -> record -> deliver.

Only this module calls a handler, so no door can bypass a gate. If an action is guarded, its guard validates the input,
along with its other checks, and records the result.
"""

import asyncio
import logging
import re
from asyncio import current_task, get_running_loop
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from time import perf_counter
from typing import Any, Final, TypeAlias

import orjson
from starlette.exceptions import HTTPException

from awp_publish.calls.call import Call, Content, Deliver, Outcome, RawHeaders, Result, RunningCall
from awp_publish.calls.gates.gate import Facts, Guards
from awp_publish.calls.guard import Guard, guard_of
from awp_publish.calls.observe import UNANSWERED, Carry, Observer, access_logger, is_on
from awp_publish.model import DEFAULT_OPERATION, Action, Agent, Catalog, JsonObject, Status
from awp_publish.problems import (
    DeclarationError,
    HandlerFailed,
    HandlerRedirected,
    HandlerTimeout,
    InvalidInput,
    InvalidOutput,
    Problem,
    TemporarilyUnavailable,
    UnknownAgent,
    UnknownOperation,
    did_you_mean,
    raised,
)
from awp_publish.schema import UnusableSchema, Validator, compile_schema, media
from awp_publish.schema.redaction import Redact, answer_redactor, input_redactor

DEADLINE_INTERVAL: Final = 0.1
"""Seconds between two checks of the running calls."""

RETRY_UNAVAILABLE: Final = 60
"""Seconds after which a caller may retry a degraded action."""

logger: Final = logging.getLogger("awp_publish.calls")

Reach: TypeAlias = Callable[[Call], Awaitable[Result]]
"""Handles a call. Sets the call's `answer` once it is complete; returns when the handler has ended."""

Accept: TypeAlias = Callable[[Call], Awaitable[Outcome]]
"""Accepts a call of a background action, to be run later. Raises StoreUnavailable."""

Handle: TypeAlias = Callable[[Any], Awaitable[Any]]
"""A handler that takes an input or a whole call."""

CarryWithSession: TypeAlias = Callable[[Carry, Call, Deliver], Awaitable[None]]
"""Runs a call with the cookies of its session, if it has one."""


class Routes:
    """The routes behind the actions of a catalog, which `call` reaches."""

    def __init__(self, call: Reach) -> None:
        self.call = call

    def check(self, call: Call) -> None:
        """Raise InvalidInput if a call cannot be sent to its route."""

    async def rehearse(self, call: Call) -> None:
        """Run only the security checks of a call's route. Raises the Problem of a caller who may not call it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallHooks:
    """How a plug-in takes part in every call of one address.

    `accept` takes calls of background actions to be run later. `carry` runs a call within something of its own, such as
    the cookies of its caller's session. `handlers` take the calls of actions that the plug-in has declared, by their
    ids. `around` wraps the whole path of a call, and `around_handler` every handler.
    """

    accept: Accept | None = None
    carry: CarryWithSession | None = None
    handlers: Mapping[str, Reach] = field(default_factory=dict)
    around: Callable[[Carry], Carry] | None = None
    around_handler: Callable[[Handle], Handle] | None = None


@dataclass(frozen=True, slots=True)
class _Prepared:
    """Everything about calls that depends only on the action.

    A `function` takes the input of a call; without one, `reach` takes the call. `accept` is set for background actions.
    `content` is the header of an answer that is declared as base64-encoded media. `headers` has the name, header and
    schema of each input that may be taken from the caller's own request. `takes_any_text` is set if every text and
    every file is a valid answer.
    """

    action: Action
    inputs: Validator
    outputs: Validator
    guard: Guard | None
    function: Handle | None
    reach: Reach
    accept: Accept | None
    content: RawHeaders
    headers: tuple[tuple[str, bytes, JsonObject], ...]
    takes_any_text: bool


def _prepare(action: Action, guards: Guards | None, routes: Routes, hooks: Sequence[CallHooks]) -> _Prepared:
    try:
        inputs, outputs = compile_schema(action.inputs, asserts_formats=True), compile_schema(action.outputs)
    except UnusableSchema as error:
        remedy = "Declare inputs=... and outputs=... (a model or a JSON Schema)."
        raise DeclarationError(f'action "{action.id}"', f"{error}.", remedy) from error
    guard = None
    if guards is not None:
        guard = guard_of(action, Facts(guards=guards, inputs=inputs, check=routes.check, rehearse=routes.rehearse))
    function: Handle | None = action.function
    reach, accept = routes.call, None
    for hook in hooks:
        if action.id in hook.handlers:
            function, reach = None, hook.handlers[action.id]
        if action.is_background:
            accept = accept or hook.accept
        if hook.around_handler is not None:
            function = None if function is None else hook.around_handler(function)
            reach = hook.around_handler(reach)
    kind = media.declared_type(action.outputs)
    # The required inputs that the route reads from headers: the caller's own request may have these headers.
    properties, required = action.inputs.get("properties"), action.inputs.get("required")
    headers: tuple[tuple[str, bytes, JsonObject], ...] = ()
    if action.way is not None and isinstance(properties, Mapping) and isinstance(required, list):
        headers = tuple(
            (
                parameter.name,
                parameter.wire_name.lower().encode("latin-1", "replace"),
                properties.get(parameter.name, {}),
            )
            for parameter in action.way.parameters
            if parameter.location == "header"
            and parameter.name in required
            and not _ABOUT_THE_CALL.fullmatch(parameter.wire_name.lower())
        )
    return _Prepared(
        action,
        inputs,
        outputs,
        guard,
        function,
        reach,
        accept,
        content=(media.write_header(kind),) if kind else (),
        headers=headers,
        takes_any_text=action.outputs.get("type", "string") == "string" and _OF_ANY_TEXT.issuperset(action.outputs),
    )


_OF_ANY_TEXT: Final = frozenset({"type", "title", "description", "contentMediaType", "contentEncoding"})
"""Members of a schema that refuse no text."""

_ABOUT_THE_CALL: Final = re.compile(
    r"accept(-.*)?|content-.*|if-.*|range|te|trailer|transfer-encoding|connection|expect"
)
"""Headers that describe the request itself, not the call inside it."""


def _add_header_inputs(call: Call, headers: tuple[tuple[str, bytes, JsonObject], ...]) -> None:
    """Take missing inputs from the headers of the caller's own request, as the route itself would."""
    scope = call.context
    if not isinstance(scope, Mapping) or not isinstance(call.input, Mapping):
        return
    carried: dict[bytes, bytes] = dict(reversed(scope.get("headers", ())))
    for name, header, schema in headers:
        if name in call.input or header not in carried:
            continue
        value: object = carried[header].decode("latin-1")
        if schema.get("type") in ("integer", "number", "boolean"):
            with suppress(orjson.JSONDecodeError):
                value = orjson.loads(carried[header])
        call.input = {**call.input, name: value}


_UNMATCHED: Final = (
    "the answers of action %s do not match the outputs that its route describes: %s %s. They are passed on; declare "
    "outputs=, or correct the route (request_id=%s)"
)

MAX_KNOWN: Final = 20
"""Names that are listed in the refusal of an unknown one."""


def _known(what: str, names: Collection[str]) -> str:
    more = f" and {len(names) - MAX_KNOWN} more" if len(names) > MAX_KNOWN else ""
    return f"Known {what}: {', '.join(islice(names, MAX_KNOWN)) or 'none'}{more}."


def absent_action(catalog: Catalog) -> Action | None:
    """Return an action that nobody may know of, None if the catalog has no other such one.

    At a site with actions for a limited audience, a call of an unknown name is made as one of this action: it is then
    refused after the same steps as that of a name that exists, so that nobody can tell the two apart.
    """
    if all(action.is_public for action in catalog.actions):
        return None
    return Action(
        id="",
        name="",
        description="",
        inputs={},
        outputs={},
        agent_id="",
        type="custom",
        effect="write",
        audience=NOBODY,
    )


NOBODY: Final = "\n"
"""A scope that no token has: scopes are separated by white space."""


class Invoker:
    """Runs calls of one catalog. Everything that depends only on an action is prepared once, here.

    Without an `accept` among the `hooks`, callers of background actions wait for their results. What the first hook
    carries a call within is outermost.
    """

    def __init__(
        self,
        catalog: Catalog,
        routes: Routes,
        guards: Guards | None = None,
        observer: Observer | None = None,
        hooks: Sequence[CallHooks] = (),
    ) -> None:
        self._catalog = catalog
        self._offered: dict[str, Mapping[tuple[str, str | None], Action]] = {}
        self._shown: dict[str, Mapping[str, Agent]] = {}
        self.absent = absent_action(catalog) if guards is not None else None
        """The action as which unknown names are called, None where they are refused at once."""
        actions = catalog.actions if self.absent is None else (*catalog.actions, self.absent)
        self._actions: Mapping[str, _Prepared] = {
            action.id: _prepare(action, guards, routes, hooks) for action in actions
        }
        self._rehearse = routes.rehearse
        redactors = ((action.id, input_redactor(action.inputs)) for action in catalog.actions)
        self.input_redactors: Mapping[str, Redact] = {name: redact for name, redact in redactors if redact is not None}
        """Functions that redact secrets, for the actions whose inputs contain some."""
        redactors = ((action.id, answer_redactor(action.outputs)) for action in catalog.actions)
        self.answer_redactors: Mapping[str, Redact] = {name: redact for name, redact in redactors if redact is not None}
        """Functions that redact one-time values, for the actions whose answers contain some."""
        self._codes = catalog.site.errors
        self._observer = observer or Observer()
        carries = [hook.carry for hook in hooks if hook.carry is not None]
        self._carry: Carry = self._run
        for carry in reversed(carries):
            self._carry = partial(carry, self._carry)
        for around in [hook.around for hook in hooks if hook.around is not None]:
            self._carry = around(self._carry)
        self._has_sessions = bool(carries)
        self.guarded: Collection[str] = frozenset(
            prepared.action.id
            for prepared in self._actions.values()
            if self._has_sessions or prepared.guard is not None or prepared.action.is_background
        )
        """Ids of actions whose calls need the caller's credentials: for a guard, a session, or the owner of a job."""
        self._traffic = self._observer.traffic
        self._look_again = 0.0
        self._running: dict[asyncio.AbstractEventLoop, set[Call]] = {}
        self._unmatched: set[str] = set()
        self._unavailable: frozenset[str] = frozenset()
        self.set_status(catalog.status)

    def set_status(self, status: Status) -> None:
        """Refuse calls of degraded actions from now on (agent.json section 13)."""
        self._unavailable = status.degraded_actions if status.operational else frozenset(self._actions)

    def offered(self, door: str) -> Mapping[tuple[str, str | None], Action]:
        """Return the actions that a door offers, by agent and operation.

        An omitted operation (None) means "default" (WoA section 5.1). Actions for a limited audience are included;
        their guards decide whether a caller may know of them.
        """
        agents = self._offered.get(door)
        if agents is None:
            agents = self._offered[door] = {
                (agent.id, named): self._actions[action_id].action
                for agent in self._catalog.exposed_at(door).agents
                for name, action_id in agent.operations.items()
                for named in ((name, None) if name == DEFAULT_OPERATION else (name,))
            }
        return agents

    def find(self, door: str, agent_id: str, operation: str | None) -> Action:
        """Return the action of an agent and operation at a door. Raises UnknownAgent or UnknownOperation."""
        action = self.offered(door).get((agent_id, operation))
        if action is None:
            raise self.unknown(door, agent_id, operation)
        return action

    def unknown(self, door: str, agent_id: str, operation: str | None) -> Problem:
        """Return the problem for an unknown agent or operation. It lists only names that are public."""
        agents = self._shown.get(door)
        if agents is None:
            agents = self._shown[door] = {agent.id: agent for agent in self._catalog.exposed_at(door).public.agents}
        agent = agents.get(agent_id)
        if agent is None:
            suggestion = did_you_mean(agent_id, agents) or _known("agents", agents)
            return UnknownAgent(f'This site has no agent "{agent_id[:100]}". {suggestion}')
        named = "no default operation" if operation is None else f'no operation "{operation[:100]}"'
        suggestion = did_you_mean(operation or "", agent.operations)
        names = _known("operations", agent.operations)
        return UnknownOperation(f'Agent "{agent_id}" has {named}. {suggestion}{" " if suggestion else ""}{names}')

    def is_traced(self) -> bool:
        """Return True if spans are exported. The answer may be a second old."""
        return perf_counter() >= self._look_again and is_on()

    def note_refusal(self, door: str, request_id: str, problem: Problem) -> None:
        """Report a request that never became a call."""
        self._observer.note_refusal(door, request_id, problem)

    def run(self, call: Call, deliver: Deliver) -> Awaitable[None]:
        """Run a call through its gates and its handler, and `deliver` exactly one outcome or problem.

        The result is delivered before this returns if the handler continues after its answer or ignores its deadline.
        """
        call.started = started = perf_counter()
        if started < self._look_again and not access_logger.isEnabledFor(logging.INFO):
            carry = self._carry
            return carry(call, deliver)
        return self._run_watched(call, deliver)

    async def _run_watched(self, call: Call, deliver: Deliver) -> None:
        """Run a call and report its result to observers; also count the calls that sessions refuse.

        A site with neither observers nor sessions comes here once a second, to see whether that has changed, and to
        write the traffic record if no lifespan does that.
        """
        observer, traffic, carry = self._observer, self._traffic, self._carry
        is_watching = observer.is_watching()
        if not (is_watching or self._has_sessions):
            self._look_again = call.started + 1.0
        if is_watching:
            carry = partial(observer.watch, carry, self.input_redactors.get(call.action.id))
        if self._has_sessions:

            async def deliver_counted(result: Result) -> None:
                self._count(call, result)
                await deliver(result)

            await carry(call, deliver_counted)
        else:
            await carry(call, deliver)
        if traffic is not None and perf_counter() >= traffic.due:
            await traffic.flush()

    # Callables that are attributes get a local name first: `self.name(...)` would search the class for a method.

    async def _run(self, call: Call, deliver: Deliver) -> None:
        prepared = self._actions[call.action.id]
        action, guard, is_valid = prepared.action, prepared.guard, prepared.inputs.is_valid
        result: Result | None = None
        if prepared.headers:
            _add_header_inputs(call, prepared.headers)

        # Admit or refuse.
        try:
            if self._unavailable and action.id in self._unavailable:
                retry = [("Retry-After", str(RETRY_UNAVAILABLE))]
                call.refuse(TemporarilyUnavailable(f"Action {action.id} does not work at the moment.", headers=retry))
            if guard is not None:
                result = await guard.admit(call)
            elif not is_valid(call.input):
                raise InvalidInput.of(*prepared.inputs.describe(call.input, call.elsewhere))
        except Problem as problem:
            problem.is_refusal = True
            result = problem.without_frames()
        if result is not None:
            self._count(call, result)
            await deliver(result)
            return

        # A background action: run it later.
        if prepared.accept is not None:
            try:
                await self._rehearse(call)  # whoever may not call gets no job
                result = await prepared.accept(call)
            except Problem as problem:
                result = problem.without_frames()
            await self._conclude(prepared, call, result, deliver)
            return

        # Run the handler now, under its deadline. A timer and a task per call would add a tenth to the time of a quick
        # call, which never needs them, so each event loop has one timer for all its running calls.
        loop = get_running_loop()
        calls = self._running.get(loop)
        if calls is None:
            calls = self._watch_deadlines(loop)
        needs_whole = True
        if call.on_part is not None:
            is_checked = action.enforces_outputs and not prepared.takes_any_text
            needs_whole = is_checked or (guard is not None and guard.needs_answer(call))
        running = call.run = RunningCall(deliver, perf_counter() + action.timeout, current_task(loop), needs_whole)
        calls.add(call)
        try:
            try:
                if (function := prepared.function) is not None:
                    body = await function(call.input)
                    result = Outcome(body, orjson.loads(body))
                else:
                    reach = prepared.reach
                    result = await reach(call)
            except Problem as problem:
                if isinstance(problem, InvalidOutput):
                    values = (action.id, problem, call.request_id)
                    logger.error("action %s: %s (request_id=%s)", *values, exc_info=problem)
                result = problem.without_frames()
            except HTTPException as error:
                result = raised(error, self._codes) if call.answer is None else call.answer
            except Exception:
                failure = failed(call)
                result = failure if call.answer is None else call.answer  # a complete answer outlasts a later failure
            if not running.is_delivered:
                result = self._validate(prepared, call, result)
                if guard is not None:
                    await guard.conclude(call, result)
                self._count(call, result)
                await deliver(result)
        except asyncio.CancelledError:
            is_late = running.finisher is not None if running.interrupted else running.is_delivered  # already counted
            if not is_late:
                self._count(call, None)
            if not running.interrupted:
                raise
        finally:
            calls.discard(call)
            if running.is_overseen:
                await _settle(running)
            del running.deliver  # usually refers back to the call: a reference cycle

    def _validate(self, prepared: _Prepared, call: Call, result: Result) -> Result:
        """Mark the call as delivered. Return the result, InvalidOutput if it is not as declared (WoA section 5.2)."""
        call.run.is_delivered = True
        if type(result) is Outcome and not result.is_streamed:
            if not prepared.outputs.is_valid(result.output):
                result = self._judge_unmatched(prepared, call, result)
            elif prepared.content and type(result.output) is str:
                is_declared = any(name == media.HEADER for name, _ in result.headers)  # by the route, for this answer
                if not is_declared:
                    result.headers = (*result.headers, *prepared.content)
                    disposition = result.content.disposition if result.content is not None else ""
                    result.content = Content(media.declared_type(call.action.outputs), "", disposition)
        return result

    def _judge_unmatched(self, prepared: _Prepared, call: Call, outcome: Outcome) -> Result:
        """Return what becomes of an answer that does not match the schema: a derived one fails no call."""
        action = call.action
        if outcome.redirect:
            page = outcome.output.get("page") if isinstance(outcome.output, Mapping) else None
            if page is not None and prepared.outputs.is_valid(page):  # what the action promises is at the address
                return replace(outcome, body=orjson.dumps(page), output=page)
            if not action.enforces_outputs:
                return outcome
            detail = f"Action {action.id} answered with a redirect that leads to no answer."
            return HandlerRedirected(detail, members={"location": outcome.redirect})
        first = prepared.outputs.describe(outcome.output)[0][0]
        if action.enforces_outputs:
            values = (action.id, first.pointer, first.detail, call.request_id)
            logger.error("the answer of action %s does not match its schema: %s %s (request_id=%s)", *values)
            return InvalidOutput(f"The answer of action {action.id} does not match its outputs schema.")
        if action.id not in self._unmatched:
            self._unmatched.add(action.id)
            logger.warning(_UNMATCHED, action.id, first.pointer or "it", first.detail, call.request_id)
        return outcome

    async def _conclude(self, prepared: _Prepared, call: Call, result: Result, deliver: Deliver) -> None:
        if prepared.guard is not None:
            await prepared.guard.conclude(call, result)
        self._count(call, result)
        await deliver(result)

    def _count(self, call: Call, result: Result | None) -> None:
        """Count a finished call, once."""
        if (traffic := self._traffic) is not None and (started := call.started):
            ended = perf_counter()
            call.started = 0.0
            principal = call.principal
            outcome = "ok" if isinstance(result, Outcome) else UNANSWERED if result is None else result.code
            kind = call.door, call.action.id, "" if principal is None else principal.id, call.label, outcome
            times = traffic.pending.get(kind) if ended < traffic.midnight else None
            if times is None:
                times = traffic.times_of(kind, ended)
            times.append(ended - started)
            if len(times) >= traffic.max_pending:
                traffic.sum_up()

    def _watch_deadlines(self, loop: asyncio.AbstractEventLoop) -> set[Call]:
        """Start the timer that enforces the deadlines of an event loop's calls, to within one DEADLINE_INTERVAL.

        It runs as long as there are calls. A process may run several loops, in turn or in threads; closed ones are
        dropped here.
        """
        for ended in [loop for loop in tuple(self._running) if loop.is_closed()]:
            self._running.pop(ended, None)
        calls = self._running[loop] = set()
        loop.call_later(DEADLINE_INTERVAL, self._check_running, loop, calls)
        return calls

    def _check_running(self, loop: asyncio.AbstractEventLoop, calls: set[Call]) -> None:
        """Deliver answers whose handlers still run, end overdue calls, and watch the others for a disconnect."""
        now = perf_counter()
        for call in tuple(calls):
            run = call.run
            if run.is_delivered:
                continue
            run.is_overseen = True
            if call.answer is not None:
                run.finisher = asyncio.ensure_future(self._deliver_early(call, call.answer))
            elif now >= run.deadline:
                action = call.action
                logger.error("action %s took too long (request_id=%s)", action.id, call.request_id)
                late = HandlerTimeout(f"Action {action.id} gave no answer within {action.timeout:g} seconds.")
                run.finisher = asyncio.ensure_future(self._deliver_early(call, late))
                run.interrupt()
            elif call.disconnected is not None and run.listener is None:
                run.listener = asyncio.ensure_future(_listen(call))
        if calls:
            loop.call_later(DEADLINE_INTERVAL, self._check_running, loop, calls)
        else:
            del self._running[loop]

    async def _deliver_early(self, call: Call, result: Result) -> None:
        """Deliver a result before the handler has returned, unless one is already delivered."""
        if not call.run.is_delivered:
            prepared = self._actions[call.action.id]
            await self._conclude(prepared, call, self._validate(prepared, call, result), call.run.deliver)


async def _listen(call: Call) -> None:
    """End a call if its caller disconnects before there is an answer."""
    if call.disconnected is not None:
        await call.disconnected()
    if not call.run.is_delivered and call.answer is None:
        call.run.is_delivered = True
        call.run.interrupt()


async def _settle(run: RunningCall) -> None:
    """Wait for the tasks that a call owns."""
    if run.interrupted and run.task is not None:
        run.task.uncancel()
    if run.listener is not None:
        run.listener.cancel()
    started = [task for task in (run.listener, run.finisher) if task is not None]
    if started:
        await asyncio.gather(*started, return_exceptions=True)


def failed(call: Call) -> HandlerFailed:
    """Log the exception that is being handled, and return a problem with the same request id."""
    logger.exception("action %s failed (request_id=%s)", call.action.id, call.request_id)
    return HandlerFailed(f"Action {call.action.id} failed. The site's log has the cause under this request_id.")
