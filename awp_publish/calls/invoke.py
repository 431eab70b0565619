"""The path of every call: find -> guard or validate -> handler -> validate -> record -> deliver.

Only this module calls a handler, so no door can bypass a gate. If an action is guarded, its guard validates the input,
along with its other checks, and records the result.
"""

import asyncio
import logging
from asyncio import current_task, get_running_loop
from collections.abc import Awaitable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Final

import orjson
from starlette.exceptions import HTTPException

from awp_publish.calls.call import Call, Content, Deliver, Outcome, Result, RunningCall
from awp_publish.calls.deadlines import Deadlines, settle
from awp_publish.calls.gates.gate import Guards
from awp_publish.calls.header_inputs import add_header_inputs
from awp_publish.calls.hooks import Accept, CallHooks, Routes
from awp_publish.calls.observe import UNANSWERED, Carry, Observers
from awp_publish.calls.offered_actions import OfferedActions, absent_action
from awp_publish.calls.prepared_action import PreparedAction, prepare_action
from awp_publish.model import Catalog, Status
from awp_publish.problems import (
    HandlerFailed,
    HandlerRedirected,
    InvalidInput,
    InvalidOutput,
    Problem,
    TemporarilyUnavailable,
    raised,
)
from awp_publish.schema import media
from awp_publish.schema.redaction import Redact, answer_redactor, input_redactor

RETRY_UNAVAILABLE: Final = 60
"""Seconds after which a caller may retry a degraded action."""

logger: Final = logging.getLogger("awp_publish.calls")

_UNMATCHED: Final = (
    "the answers of action %s do not match the outputs that its route describes: %s %s. They are passed on; declare "
    "outputs=, or correct the route (request_id=%s)"
)


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
        observers: Observers | None = None,
        hooks: Sequence[CallHooks] = (),
    ) -> None:
        self.offers = OfferedActions(catalog)
        self.absent = absent_action(catalog) if guards is not None else None
        """The action as which unknown names are called, None where they are refused at once."""
        actions = catalog.actions if self.absent is None else (*catalog.actions, self.absent)
        self._actions = {action.id: prepare_action(action, guards, routes, hooks) for action in actions}
        self._rehearse = routes.rehearse
        self.input_redactors: Mapping[str, Redact] = {
            action.id: redact for action in catalog.actions if (redact := input_redactor(action.inputs)) is not None
        }
        """Functions that redact secrets, for the actions whose inputs contain some."""
        self.answer_redactors: Mapping[str, Redact] = {
            action.id: redact for action in catalog.actions if (redact := answer_redactor(action.outputs)) is not None
        }
        """Functions that redact one-time values, for the actions whose answers contain some."""
        self._codes = catalog.site.errors
        observers = observers or Observers()
        self.note_refusal = observers.note_refusal
        """Reports a request that never became a call, by its door and its request id."""
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
        self._watcher, self._traffic = observers.watcher, observers.counter
        self._is_logging = observers.watcher.is_logging if observers.watcher is not None else bool
        self._look_again = 0.0
        self._deadlines = Deadlines(self._deliver_early)
        self._running = self._deadlines.calls
        self._unmatched: set[str] = set()
        self._unavailable: frozenset[str] = frozenset()
        self.set_status(catalog.status)

    def set_status(self, status: Status) -> None:
        """Refuse calls of degraded actions from now on (agent.json section 13)."""
        self._unavailable = status.degraded_actions if status.operational else frozenset(self._actions)

    def is_traced(self) -> bool:
        """Return True if spans are exported. The answer may be a second old."""
        return perf_counter() >= self._look_again and self._watcher is not None and self._watcher.is_traced()

    def run(self, call: Call, deliver: Deliver) -> Awaitable[None]:
        """Run a call through its gates and its handler, and `deliver` exactly one outcome or problem.

        The result is delivered before this returns if the handler continues after its answer or ignores its deadline.
        """
        call.started = started = perf_counter()
        if started < self._look_again and not self._is_logging():
            carry = self._carry
            return carry(call, deliver)
        return self._run_watched(call, deliver)

    async def _run_watched(self, call: Call, deliver: Deliver) -> None:
        """Run a call and report its result to observers; also count the calls that sessions refuse.

        A site with neither observers nor sessions comes here once a second, to see whether that has changed, and to
        write the traffic record if no lifespan does that.
        """
        watcher, traffic, carry = self._watcher, self._traffic, self._carry
        is_watching = watcher is not None and watcher.is_watching()
        if not (is_watching or self._has_sessions):
            self._look_again = call.started + 1.0
        if watcher is not None and is_watching:
            carry = partial(watcher.watch, carry, self.input_redactors.get(call.action.id))
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
            add_header_inputs(call, prepared.headers)

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
        except Exception:  # of a gate
            result = failed(call)
        if result is not None:
            self._count(call, result)
            await deliver(result)
            return

        if prepared.accept is not None:
            await self._accept(prepared.accept, prepared, call, deliver)
            return

        # Run the handler now, under its deadline.
        loop = get_running_loop()
        calls = self._running.get(loop)
        if calls is None:
            calls = self._deadlines.watch(loop)
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
                    logger.error("action %s: %s (request_id=%s)", action.id, problem, call.request_id, exc_info=problem)
                result = problem.without_frames()
            except HTTPException as error:
                result = raised(error, self._codes) if call.answer is None else call.answer
            except (Exception, asyncio.CancelledError) as error:
                if isinstance(error, asyncio.CancelledError) and (running.task is None or running.task.cancelling()):
                    raise  # otherwise the handler has awaited something that was cancelled
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
                await settle(running)
            del running.deliver  # usually refers back to the call: a reference cycle

    def _validate(self, prepared: PreparedAction, call: Call, result: Result) -> Result:
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

    def _judge_unmatched(self, prepared: PreparedAction, call: Call, outcome: Outcome) -> Result:
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
            values = (action.id, first.pointer or "it", first.detail, call.request_id)
            logger.error("the answer of action %s does not match its schema: %s %s (request_id=%s)", *values)
            return InvalidOutput(f"The answer of action {action.id} does not match its outputs schema.")
        if action.id not in self._unmatched:
            self._unmatched.add(action.id)
            logger.warning(_UNMATCHED, action.id, first.pointer or "it", first.detail, call.request_id)
        return outcome

    async def _accept(self, accept: Accept, prepared: PreparedAction, call: Call, deliver: Deliver) -> None:
        """Accept a call of a background action, which runs later."""
        try:
            await self._rehearse(call)  # whoever may not call gets no job
            result: Result = await accept(call)
        except Problem as problem:
            result = problem.without_frames()
        await self._conclude(prepared, call, result, deliver)

    async def _conclude(self, prepared: PreparedAction, call: Call, result: Result, deliver: Deliver) -> None:
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

    async def _deliver_early(self, call: Call, result: Result) -> None:
        """Deliver a result before the handler has returned, unless one is already delivered."""
        if not call.run.is_delivered:
            prepared = self._actions[call.action.id]
            await self._conclude(prepared, call, self._validate(prepared, call, result), call.run.deliver)


def failed(call: Call) -> HandlerFailed:
    """Log the exception that is being handled, and return a problem with the same request id."""
    logger.exception("action %s failed (request_id=%s)", call.action.id, call.request_id)
    return HandlerFailed(f"Action {call.action.id} failed. The site's log has the cause under this request_id.")
