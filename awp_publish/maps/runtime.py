"""The runtime of an actions.json: a valid map, composed with its imports, that controls one page.

    action_map = ActionMap.read(document)
    runtime = Runtime(action_map, page, handlers={"agents.invoke": invoke})
    result = await runtime.call("search_books", {"q": "Emma"})

A call returns a `ToolResult` or raises `RuntimeFailure`, whose codes are those of the Actions Bridge Protocol.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeAlias

from awp_publish.maps import reading, rules
from awp_publish.maps.attachments import Attachments
from awp_publish.maps.checking import MapChecks
from awp_publish.maps.composed import ComposedMap
from awp_publish.maps.execution import run_steps
from awp_publish.maps.failure_classes import RECOVERY, WorkflowFailure
from awp_publish.maps.failures import Code, RuntimeFailure, code_of_primitive
from awp_publish.maps.live_page import LivePage, PrimitiveError
from awp_publish.maps.performing import can_run, errors_of, run_primitive
from awp_publish.maps.primitives import PRIMITIVES
from awp_publish.maps.projections import (
    ProjectionError,
    Snapshot,
    diff_answer,
    full_answer,
    read_projection,
    summaries_of,
    summary_answer,
    verify,
)
from awp_publish.maps.signals import Signals
from awp_publish.maps.states import States
from awp_publish.maps.targets import locate
from awp_publish.maps.trace import Progress, ToolResult, Trace
from awp_publish.maps.transitions import Transitions
from awp_publish.maps.workflows import run_workflow
from awp_publish.schema import JsonObject, did_you_mean, utc_text


@dataclass(frozen=True, slots=True)
class HandlerCall:
    """A call of a handler: the tool, the agent's own arguments, and those that the map binds (`x_actions.binding`)."""

    tool: str
    arguments: JsonObject
    bound: JsonObject

    def merged(self) -> JsonObject:
        """Return the bound arguments, overridden by the agent's own."""
        return {**self.bound, **self.arguments}


Handler: TypeAlias = Callable[[HandlerCall], Awaitable[object]]
"""A function that runs a tool. It may raise RuntimeFailure; any other exception becomes `handler_failed`."""


CALL_SECONDS: Final = 30.0


class Runtime:
    """Runs the tools of one map on one page, one call after the other.

    `handlers` are approved functions outside of the page, by their names in maps; primitives and functions of the
    page's own scripts are looked up after them. `seconds` limits each call. Only with `private` are the `private` parts
    of the map listed and callable: they belong to the owner of the map.
    """

    def __init__(
        self,
        action_map: ComposedMap,
        page: LivePage,
        *,
        handlers: Mapping[str, Handler] | None = None,
        seconds: float = CALL_SECONDS,
        private: bool = False,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.map, self.page = action_map, page
        self._handlers, self._seconds = dict(handlers or {}), seconds
        self._hidden: frozenset[str] = frozenset() if private else action_map.private
        self._now = now
        self._lock = asyncio.Lock()
        self._snapshots: dict[str, Snapshot] = {}
        self._states = States(action_map, page)
        self._transitions = Transitions(action_map, page, self._states, clock)
        self._attachments = Attachments(page, self._states)
        self._signals = Signals(action_map, page, self._hidden, self._observed)
        self._checks = MapChecks(action_map, page, self._states, self.call, self._observed)

    def _require_ready(self) -> None:
        if not self.map.is_valid:
            errors = [finding for finding in self.map.findings if finding.level == "error"]
            findings = [
                {"check": error.check, "pointer": error.pointer, "message": error.message} for error in errors[:20]
            ]
            message = f"The map of this page is not valid: {errors[0].message}"
            raise RuntimeFailure("runtime_not_ready", message, {"findings": findings}, recoverable=False)

    def _observed(self) -> str:
        return utc_text(self._now())

    def _tools(self) -> Iterator[JsonObject]:
        for tool in self.map.objects("tools"):
            if (
                reading.part(tool, "x_actions").get("direction") != "html_to_agent"
                and tool.get("name") not in self._hidden
            ):
                yield tool

    def _projections(self) -> Sequence[JsonObject]:
        """Return the projections whose scope includes the address; the first of a name counts."""
        projections: dict[object, JsonObject] = {}
        for projection in self.map.objects("state_projections"):
            scope = reading.part(projection, "scope").get("url_matches")
            is_here = not scope or rules.url_fits({"url_matches": scope}, self.page.url)
            if is_here and projection.get("name") not in self._hidden:
                projections.setdefault(projection.get("name"), projection)
        return list(projections.values())

    async def list(self) -> JsonObject:
        """Return the `actions` and `projections` that can be used now (`actions.site`, mode list).

        An action has `name`, `description`, `input_schema` and, if it is bound to addresses, `target_url_contains`. An
        invalid map has none.
        """
        results: dict[str, JsonObject] = {}
        actions = []
        for tool in self._tools():
            name, target, x_actions = tool.get("name"), reading.part(tool, "target"), reading.part(tool, "x_actions")
            bound = reading.part(x_actions, "binding").get("target_url_contains")
            if isinstance(bound, str) and bound not in self.page.url:
                continue
            is_bound, handler = x_actions.get("scope") != "persistent", x_actions.get("handler")
            if is_bound and await self._states.misfit(target, results) is not None:
                continue
            is_executable = (
                bool(reading.part(x_actions, "execution").get("steps"))
                or isinstance(tool.get("workflow"), Mapping)
                or "static_output" in x_actions
                or self.page.has_scripts  # which may have its handler
                or name in PRIMITIVES
                or handler in PRIMITIVES
                or (handler in self._handlers and name not in self.map.foreign)
            )
            if not is_executable or not all(can_run(self.page, needed) for needed in reading.texts(tool, "requires")):
                continue
            action = {
                "name": name,
                "description": tool.get("description"),
                "input_schema": tool.get("input_schema", {"type": "object", "additionalProperties": False}),
            }
            part = bound if isinstance(bound, str) else target.get("url_contains") if is_bound else None
            actions.append(action | ({"target_url_contains": part} if isinstance(part, str) else {}))
        projections = [
            {
                "name": projection.get("name"),
                "description": projection.get("description"),
                "summaries": summaries_of(projection),
            }
            for projection in self._projections()
            if projection.get("purpose") != rules.POSTCONDITION
        ]
        return {"actions": actions, "projections": projections}

    async def states(self) -> JsonObject:
        """Return `current` (names), `unknown` (those without diagnostics) and `diagnostics` of each state."""
        self._require_ready()
        return await self._states.summary()

    async def context(self, task: str = "") -> Sequence[JsonObject]:
        """Return the context blocks that the address, the states, the targets and the task select."""
        self._require_ready()
        return await self._states.context(task)

    async def signals(self) -> Sequence[JsonObject]:
        """Return the events since the last call that the map enables and whose payload is valid."""
        self._require_ready()
        return await self._signals.take()

    @property
    def dropped_events(self) -> int:
        """The number of events that were not forwarded because their payload was invalid."""
        return self._signals.dropped

    async def check(self, ids: Sequence[str] | None = None) -> Sequence[JsonObject]:
        """Run checks of the map, by default all, and return their results with evidence."""
        self._require_ready()
        return await self._checks.run(ids)

    async def status(self) -> JsonObject:
        """Return `url`, `states`, `attachments` and `observed_at`: a `runtime_status` without its ids.

        Attachments are installed, removed and installed again according to their lifecycle; in a page without a screen
        they are `unsupported`.
        """
        self._require_ready()
        await self._signals.listen()
        states = await self._states.summary()
        attachments = [
            {"id": attachment.get("id"), "state": await self._attachments.update(attachment)}
            for attachment in self.map.objects("attachments")
        ]
        return {
            "url": self.page.url,
            "states": states["current"],
            "attachments": attachments,
            "observed_at": self._observed(),
        }

    async def call(
        self,
        tool: str,
        arguments: object,
        *,
        seconds: float | None = None,
        on_step: Progress | None = None,
    ) -> ToolResult:
        """Run a tool. Raises RuntimeFailure, after which the runtime can still be used.

        `seconds` limits the call, within the runtime's own limit; at the limit `handler_timeout` has `elapsed_ms` and
        `step_id`, and no further step begins. `on_step` is called before each step with its id and whether it may
        change something.
        """
        self._require_ready()
        trace, began = Trace(on_step=on_step), time.monotonic()
        limit = self._seconds if seconds is None else max(0.0, min(seconds, self._seconds))
        try:
            async with asyncio.timeout(limit), self._lock:
                return await self._call(tool, arguments, trace, began + limit)
        except TimeoutError:
            elapsed = round((time.monotonic() - began) * 1000)
            evidence = {"elapsed_ms": elapsed, "step_id": trace.current, "url": self.page.url, **_done(trace)}
            message = f"{tool} took longer than {limit:g} seconds."
            raise RuntimeFailure("handler_timeout", message, evidence, recoverable=not trace.has_changed) from None

    async def _call(self, name: str, arguments: object, trace: Trace, deadline: float) -> ToolResult:
        tool = next((candidate for candidate in self._tools() if candidate.get("name") == name), None)
        if tool is None:
            names = [str(tool.get("name")) for tool in self._tools()]
            message = f"Unknown action {name[:100]!r}. {did_you_mean(name, names)}".strip()
            raise RuntimeFailure("unknown_action", message, {"actions": names[:50]})
        x_actions = reading.part(tool, "x_actions")
        members = arguments if isinstance(arguments, Mapping) else None
        schema = tool.get("input_schema", {"type": "object", "additionalProperties": False})
        validator = self.map.validator(f"tools/{name}/input", schema)
        wrong = () if members is None or validator is None else validator(dict(members))
        if members is None or wrong:
            first = f"{wrong[0].pointer} {wrong[0].detail}".strip() if wrong else "They must be an object."
            message = f"The arguments of {name} are wrong: {first}"
            raise RuntimeFailure("invalid_input", message, {"errors": errors_of(wrong)})
        result_schema = x_actions.get("result_schema", tool.get("result_schema"))
        result_validator = self.map.validator(f"tools/{name}/result", result_schema)
        binding = reading.part(x_actions, "binding")
        bound = reading.part(binding, "arguments")
        part = binding.get("target_url_contains")
        if isinstance(part, str) and part not in self.page.url:
            evidence = {"url": self.page.url, "target_url_contains": part}
            raise RuntimeFailure("target_not_found", f"{name} belongs to another page.", evidence)
        missing = [needed for needed in reading.texts(tool, "requires") if not can_run(self.page, needed)]
        if missing:
            message = f"{name} requires {', '.join(missing)}, which this page cannot carry out."
            lacking: JsonObject = {"capability": missing[0], "capabilities": missing, "host": self.page.host}
            raise RuntimeFailure("capability_unavailable", message, lacking, recoverable=False)
        if x_actions.get("scope") != "persistent":
            await self._require_target(name, reading.part(tool, "target"), trace)
        moves = await self._transitions.begin(tool, members, deadline)
        try:
            result, was_outside = await self._execute(tool, HandlerCall(name, members, bound), trace)
        finally:  # a failed call may have changed the page as well
            self._transitions.note(moves)
        wrong = () if result_validator is None else result_validator(result)
        if wrong:
            message = f"The result of {name} is wrong: {wrong[0].pointer} {wrong[0].detail}"
            details: JsonObject = {"errors": errors_of(wrong), **_done(trace)}
            raise RuntimeFailure("invalid_result", message, details, recoverable=False)
        if not was_outside:
            await self._verify(name, {**bound, **members}, trace)
        for transition in moves:
            await self._transitions.end(transition, members, result)
        return ToolResult(result, trace.steps, trace.drift)

    async def _require_target(self, name: str, target: JsonObject, trace: Trace) -> None:
        """Check the state and the target of a tool before it runs."""
        state = target.get("state")
        if isinstance(state, str):
            diagnosed = await self._states.diagnose(state)
            if diagnosed["holds"] is False:
                evidence = {"state": state, "diagnostics": diagnosed["diagnostics"], "url": self.page.url}
                raise RuntimeFailure(
                    "state_mismatch", f"{name} needs the state {state}, which does not hold.", evidence
                )
        if not target:
            return
        try:
            match = await locate(self.page, target)
        except PrimitiveError as error:
            raise self._failure(error, trace) from error
        trace.drift += match.drift
        if not match.elements:
            evidence = {"url": self.page.url, "target": dict(target), **match.evidence}
            raise RuntimeFailure(
                "target_not_found", f"The target of {name} is not on the page: {match.reason}", evidence
            )

    async def _execute(self, tool: JsonObject, call: HandlerCall, trace: Trace) -> tuple[object, bool]:
        """Run a tool according to its execution. The second value is True if a handler outside of the page ran it."""
        x_actions = reading.part(tool, "x_actions")
        execution, handler = reading.part(x_actions, "execution"), x_actions.get("handler")
        steps, workflow = execution.get("steps"), tool.get("workflow")
        mode = execution.get("mode", "handler_first" if isinstance(handler, str) else "steps_first")
        if mode not in rules.EXECUTION_MODES:
            message = f"The execution mode {str(mode)[:100]!r} is not known."
            raise RuntimeFailure("capability_unavailable", message, {"capability": mode, "host": self.page.host})
        is_primitive = call.tool in PRIMITIVES and call.tool != handler
        has_steps = isinstance(workflow, Mapping) or bool(steps) or is_primitive
        try:
            if isinstance(handler, str) and (mode == "handler_first" or not has_steps):
                try:
                    return await self._handle(handler, call, trace)
                except PrimitiveError as error:
                    if error.code != "missing_handler" or not has_steps:
                        raise
                    trace.drift.append(f"The handler {handler!r} is missing; the steps were run in its place.")
            if isinstance(workflow, Mapping):
                return await run_workflow(self.page, workflow, call.merged(), trace), False
            if steps and isinstance(steps, list):
                return await run_steps(self.page, steps, call.merged(), trace), False
            if "static_output" in x_actions:
                return x_actions["static_output"], True
            if is_primitive:  # lenient readers take a tool with a primitive's name for it
                return await self._handle(call.tool, call, trace)
        except WorkflowFailure as failure:
            cause = failure.cause or {}
            code: Code = "handler_failed"
            if cause.get("code") in ("capability_unavailable", "transport_failed"):
                code = cause["code"]  # type: ignore[assignment]
            if failure.code in ("workflow_output_too_large", "expression_output_too_large"):
                code = "invalid_result"
            evidence = {**failure.error, "url": self.page.url, **_done(trace)}
            recoverable = bool(failure.error.get("recoverable", False))
            raise RuntimeFailure(code, failure.message, evidence, recoverable=recoverable) from failure
        except PrimitiveError as error:
            raise self._failure(error, trace) from error
        raise RuntimeFailure("missing_handler", f"The map does not say how {call.tool} is executed.", recoverable=False)

    async def _handle(self, name: str, call: HandlerCall, trace: Trace) -> tuple[object, bool]:
        """Call a handler: an approved one, a primitive, or a function of the page. Never code from a map."""
        approved = self._handlers.get(name) if call.tool not in self.map.foreign else None
        if approved is not None:
            trace.begin(name, name)
            try:
                output = await approved(call)
            except (RuntimeFailure, asyncio.CancelledError):
                raise
            except Exception as error:
                message = f"The handler {name} failed: {type(error).__name__}."
                raise RuntimeFailure("handler_failed", message, {"handler": name}) from error
            trace.current = None
            return output, True
        if name in PRIMITIVES:
            began = time.monotonic()
            trace.begin(name, name)
            output = await run_primitive(self.page, name, dict(call.merged()), trace.drift)
            trace.end({"id": name, "primitive": name}, began)
            return output, False
        trace.begin(name, name)
        output = await self.page.invoke(name, call.merged())
        trace.current = None
        return output, False

    def _failure(self, error: PrimitiveError, trace: Trace) -> RuntimeFailure:
        code = code_of_primitive(error)
        evidence = {"code": error.code, **error.evidence, **_done(trace)}
        return RuntimeFailure(code, error.message, evidence, recoverable=code != "capability_unavailable")

    async def state_read(self, projection: str | None = None, max_bytes: int | None = None) -> JsonObject:
        """Return the state of a projection, by default of the only one in scope. Raises RuntimeFailure."""
        return await self._project(projection, lambda _, snapshot: full_answer(snapshot, max_bytes))

    async def state_summary(
        self, projection: str | None = None, summary: str | None = None, max_bytes: int | None = None
    ) -> JsonObject:
        """Return a summary of a projection's state, by default the first. Raises RuntimeFailure."""
        return await self._project(projection, lambda _, snapshot: summary_answer(snapshot, summary, max_bytes))

    async def state_diff(self, projection: str | None = None) -> JsonObject:
        """Return the changes in a projection's state since it was last read. Raises RuntimeFailure.

        `patches` are a JSON Patch, `deltas` classify the changes. Without an earlier reading the answer has the `state`
        and the `reason` `no_previous_state`.
        """
        return await self._project(projection, diff_answer)

    async def _project(self, name: str | None, answer: Callable[[Snapshot | None, Snapshot], JsonObject]) -> JsonObject:
        self._require_ready()
        async with self._lock:
            try:
                snapshot = await self._snapshot(name)
                key = str(snapshot.projection.get("name"))
                before, self._snapshots[key] = self._snapshots.get(key), snapshot
                return answer(before, snapshot)
            except ProjectionError as error:
                too_much = ("state_payload_too_large", "state_schema_validation_failed", "expression_output_too_large")
                code: Code = "invalid_result" if error.code in too_much else "handler_failed"
                cause = error.evidence.get("cause")
                if isinstance(cause, Mapping) and cause.get("code") == "capability_unavailable":
                    code = "capability_unavailable"
                evidence = {"code": error.code, "url": self.page.url, **error.evidence}
                raise RuntimeFailure(code, error.message, evidence) from error

    async def _snapshot(self, name: str | None) -> Snapshot:
        scoped = self._projections()
        projection = next((candidate for candidate in scoped if candidate.get("name") == name), None)
        readable = [projection for projection in scoped if projection.get("purpose") != rules.POSTCONDITION]
        if name is None and len(readable) == 1:
            projection = readable[0]
        if projection is None:
            here = [str(candidate.get("name")) for candidate in readable]
            message = f"No projection {name!r} fits this page." if name else "Name the projection."
            message = message if here else "No projection applies to this page."
            raise ProjectionError("state_projection_not_found", message, available_projections=here)
        schema = reading.part(projection, "snapshot").get("output_schema")
        place = next(at for at, item in enumerate(self.map.objects("state_projections")) if item is projection)
        validator = self.map.validator(f"state_projections/{place}", schema)
        return await read_projection(self.page, projection, validator, self._now())

    async def _verify(self, tool: str, arguments: JsonObject, trace: Trace) -> None:
        """Check the postconditions of a tool in all projections. Raises RuntimeFailure."""
        for projection in self.map.objects("state_projections"):
            condition = reading.part(projection, "postconditions").get(tool)
            if projection.get("name") in self._hidden or not isinstance(condition, Mapping):
                continue
            name = str(condition.get("projection") or projection.get("name"))
            try:
                snapshot = await self._snapshot(name)
                fault, code, evidence = verify(condition, snapshot.state, arguments), "state_postcondition_failed", {}
            except ProjectionError as error:
                fault, code, evidence = error.message, error.code, dict(error.evidence)
            if fault is not None:
                details = {"code": code, "projection": name, "url": self.page.url, **evidence, **_done(trace)}
                state, retryable, recovery = RECOVERY["postcondition_failed"]
                details |= {"failure_class": "postcondition_failed", "failed_state": state}
                details |= {"retryable": retryable, "safe_recovery": recovery}
                raise RuntimeFailure("state_mismatch", fault, details)


def _done(trace: Trace) -> dict[str, object]:
    done: dict[str, object] = {"steps": list(trace.steps)}
    return done | ({"drift": list(trace.drift)} if trace.drift else {})
