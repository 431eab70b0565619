"""Running what a tool of an actions.json consists of: its workflow, or the steps of `x_actions.execution` (V1)."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import orjson

from awp_publish.browsing.live_page import LivePage, PrimitiveError
from awp_publish.browsing.locating import locate, locate_one
from awp_publish.browsing.primitives import HARMLESS, run_primitive, wait_for
from awp_publish.checks.engine import depth_exceeds
from awp_publish.model import JsonObject
from awp_publish.workflows import rules
from awp_publish.workflows.expressions import UNDEFINED, ExpressionError, fill

Progress: TypeAlias = Callable[[str, bool], None]
"""Told before each step: its id, and whether it may change something."""

RECOVERY: Final[Mapping[str, tuple[str, bool, str]]] = {
    "overlay_interference": (
        "mutation",
        True,
        "Hide what covers the page, return to a known state of the page, then try the step again.",
    ),
    "postcondition_failed": (
        "postcondition",
        False,
        "Read the state of the page before trying again: the action may have taken effect in part.",
    ),
    "control_not_ready": (
        "readiness",
        True,
        "Wait for the control that was looked for, then try again from the last state that was verified.",
    ),
    "target_not_found": (
        "precondition",
        False,
        "Return to a known state of the page, verify what the target is, and try again only where it is there.",
    ),
}
"""Classes of failures: the state that failed, whether trying again may help, and what a caller can safely do."""

CODES: Final[Mapping[str, str]] = {
    "workflow_step_failed": "a step failed; `cause` has the code of its primitive or expression",
    "workflow_loop_input_invalid": "`for_each` gave no array",
    "workflow_retry_exhausted": "`retry_until` did not hold in `max_attempts` attempts; `on_error` does not help",
    "workflow_retry_not_executed": "there was no attempt",
    "workflow_output_failed": "`output` could not be evaluated; `cause` has the code of the expression",
    "workflow_output_too_large": "the output has more than 32,000 bytes",
    "partial_expression_unsupported": "a slot is not the whole text",
    "disallowed_expression_function": "`$eval`, `$random`, `$now` or `$millis` is named",
    "invalid_expression": "the expression cannot be read",
    "expression_evaluation_failed": "the expression failed, or took longer than 50 ms",
    "expression_output_too_large": "an expression gave more than 16,000 bytes",
}
"""Codes of workflows and expressions, in the evidence of a failure."""

_COVERED: Final = re.compile(r"overlay|occlud|intercept", re.IGNORECASE)
_CONTROL: Final = re.compile(r"find|verify|ready|badge|button|control", re.IGNORECASE)


class WorkflowFailure(Exception):
    """A workflow that failed. `error` is that of the published runtime; `cause` is what happened in the step."""

    def __init__(self, code: str, message: str, *, cause: JsonObject | None = None, **error: object) -> None:
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.cause = code, message, cause
        self.error: JsonObject = {"code": code, **error, "message": message, "cause": cause}


@dataclass(slots=True)
class Trace:
    """The course of a call: the summaries of the steps so far, the step that is under way, what was told of drift."""

    steps: list[dict[str, object]] = field(default_factory=list)
    current: str | None = None
    has_changed: bool = False
    drift: list[str] = field(default_factory=list)
    on_step: Progress | None = None

    def begin(self, step_id: str, primitive: str) -> None:
        """Note that a step begins."""
        changes = primitive not in HARMLESS
        self.current, self.has_changed = step_id, self.has_changed or changes
        if self.on_step is not None:
            self.on_step(step_id, changes)

    def end(
        self,
        step: JsonObject,
        began: float,
        *,
        ok: bool = True,
        skipped: bool = False,
        settle: JsonObject | None = None,
    ) -> None:
        """Note how a step ended."""
        summary = {"id": step.get("id"), "primitive": step.get("primitive", step.get("type")), "ok": ok}
        summary |= {"skipped": skipped, "duration_ms": round((time.monotonic() - began) * 1000)}
        self.steps.append(summary | ({} if settle is None else {"settle": settle}))
        self.current = None


class _Skipped(Exception):
    """A step whose condition does not hold."""


def failure_class(step: JsonObject, cause: JsonObject) -> str:
    """Tell the class of a step's failure (`RECOVERY`)."""
    code, message = str(cause.get("code", "")), str(cause.get("message", ""))
    step_id, primitive = str(step.get("id", "")), str(step.get("primitive", ""))
    if _COVERED.search(f"{code} {message}"):
        return "overlay_interference"
    if code == "postcondition_failed" or "postcondition" in step_id.lower():
        return "postcondition_failed"
    is_looking = primitive.startswith("locator.") or _CONTROL.search(step_id) is not None
    if code.startswith("workflow_retry_") or code in ("timeout", "target_not_ready") or is_looking:
        return "control_not_ready"
    return "target_not_found"


def _failed(step: JsonObject, cause: JsonObject) -> WorkflowFailure:
    code = str(cause.get("code", ""))
    named = failure_class(step, cause)
    state, retryable, recovery = RECOVERY[named]
    return WorkflowFailure(
        code if code.startswith("workflow_") else "workflow_step_failed",
        str(cause.get("message") or f"The step {step.get('id')} failed."),
        cause=cause,
        step_id=step.get("id"),
        primitive=step.get("primitive"),
        failure_class=named,
        failed_state=state,
        retryable=retryable,
        recoverable=named != "target_not_found" or code in ("target_not_found", "navigation_failed"),
        safe_recovery=recovery,
    )


class _Run:
    """One run of a workflow."""

    def __init__(self, page: LivePage, arguments: JsonObject, trace: Trace) -> None:
        self.page, self.trace = page, trace
        self.document: dict[str, object] = {"input": arguments, "steps": {}, "item": None, "index": None}

    def value(self, slot: object, **names: object) -> object:
        """Return a value with its slots filled. Raises ExpressionError."""
        value = fill(slot, {**self.document, **names}, rules.MAX_EXPRESSION_BYTES)
        return None if value is UNDEFINED else value

    async def once(self, primitive: object, arguments: object, **names: object) -> dict[str, object]:
        """Carry out a primitive: `{ok, output}`, or `{ok, error}`."""
        await asyncio.sleep(0)  # a page in process never waits: here others have their turn, and time can be up
        filled: object = None
        try:
            filled = self.value(arguments if arguments is not None else {}, **names)
            output = await run_primitive(self.page, str(primitive), filled, self.trace.drift)
            if depth_exceeds(output, rules.MAX_DEPTH):
                raise PrimitiveError("invalid_result", f"The answer is nested more than {rules.MAX_DEPTH} deep.")
            return {"ok": True, "output": output}
        except PrimitiveError as error:
            told = {"code": error.code, "message": error.message, **error.evidence}
            if error.code == "invalid_input" and isinstance(filled, Mapping) and isinstance(arguments, Mapping):
                lost = {name: slot for name, slot in arguments.items() if name not in filled}
                if lost:
                    told["message"] = f"{error.message}; nothing came of {', '.join(map(str, lost.values()))}"[:1000]
                    told["undefined"] = lost
            return {"ok": False, "error": told}
        except ExpressionError as error:
            return {"ok": False, "error": {"code": error.code, "message": error.message}}

    async def settle(self, step: JsonObject) -> JsonObject | None:
        """Wait as `settle_after` says. That the time is up is no failure: it is pacing (V1, workflow)."""
        given = step.get("settle_after")
        if not isinstance(given, Mapping):
            return None
        delay = given.get("delay_ms")
        if isinstance(delay, (int, float)):
            if self.page.has_scripts:
                await asyncio.sleep(delay / 1000)
            return {"ok": True, "mode": "delay", "delay_ms": delay, "waited_ms": delay if self.page.has_scripts else 0}
        timeout = given.get("timeout_ms")
        try:
            locator = self.value(given.get("locator"))
            match, waited = await wait_for(
                self.page,
                locator if isinstance(locator, Mapping) else {},
                timeout if isinstance(timeout, (int, float)) else rules.SETTLE_TIMEOUT_MS,
                attached=given.get("state") == "attached",
            )
        except (PrimitiveError, ExpressionError) as error:
            return {"ok": False, "mode": "locator", "reason": error.code, "waited_ms": 0}
        if not match.elements:
            return {"ok": False, "mode": "locator", "reason": "timeout", "waited_ms": waited}
        return {"ok": True, "mode": "locator", "waited_ms": waited}

    async def step(self, step: JsonObject) -> dict[str, object]:
        """Carry out a step, with its loop or its attempts. Raises _Skipped, ExpressionError and WorkflowFailure."""
        if "when" in step and not self.value(step["when"]):
            raise _Skipped
        primitive, arguments = step.get("primitive"), step.get("args")
        continues = step.get("on_error") == "continue"
        if "for_each" in step:
            items = self.value(step["for_each"])
            if not isinstance(items, list):
                message = "for_each did not give an array. Write $append([], ...) where a single one is possible."
                raise _failed(step, {"code": "workflow_loop_input_invalid", "message": message})
            most = _bound(step.get("max_items"), rules.MAX_ITEMS)
            results: list[dict[str, object]] = []
            for index, item in enumerate(items[:most]):
                results.append(await self.once(primitive, arguments, item=item, index=index))
                if not results[-1]["ok"] and not continues:
                    return {"ok": False, "items": results, "error": results[-1]["error"]}
            cut = {"truncated": True, "total": len(items)} if len(items) > most else {}
            return {"ok": all(result["ok"] for result in results), "items": results, **cut}
        if "retry_until" not in step:
            return await self.once(primitive, arguments)
        most = _bound(step.get("max_attempts"), rules.MAX_ATTEMPTS)
        attempts: list[dict[str, object]] = []
        steps = self.document["steps"]
        assert isinstance(steps, dict)
        result: dict[str, object] = {
            "ok": False,
            "error": {"code": "workflow_retry_not_executed", "message": "No try."},
        }
        for attempt in range(most):
            result = await self.once(primitive, arguments, index=attempt)
            attempts.append(result)
            steps[str(step.get("id"))] = result
            if not result["ok"] and not continues:
                return result | {"attempts": attempts}
            if self.value(step["retry_until"], index=attempt):
                return result | {"attempts": attempts}
            after = step.get("after_each")
            if attempt < most - 1 and isinstance(after, Mapping):
                between = await self.once(after.get("primitive"), after.get("args"), index=attempt)
                attempts.append(between)
                if not between["ok"] and not continues:
                    return between | {"attempts": attempts}
        error = {
            "code": "workflow_retry_exhausted",
            "message": f"retry_until of the step {step.get('id')} did not hold after {most} attempts.",
            "cause": result.get("error"),
        }
        return {**result, "ok": False, "attempts": attempts, "error": error}


def _bound(given: object, limit: int) -> int:
    is_number = isinstance(given, (int, float)) and not isinstance(given, bool)
    return max(1, min(int(given), limit)) if is_number else 1  # type: ignore[call-overload]


async def run_workflow(page: LivePage, workflow: JsonObject, arguments: JsonObject, trace: Trace) -> object:
    """Run a workflow of a checked map, and return its output, `{steps}` without one. Raises WorkflowFailure."""
    run = _Run(page, arguments, trace)
    results = run.document["steps"]
    assert isinstance(results, dict)
    given = workflow.get("steps")
    steps: Sequence[JsonObject] = given if isinstance(given, list) else ()
    for step in steps[: rules.MAX_STEPS]:
        step_id, began = str(step.get("id")), time.monotonic()
        trace.begin(step_id, str(step.get("primitive")))
        try:
            result = await run.step(step)
        except _Skipped:
            results[step_id] = {"ok": True, "skipped": True}
            trace.end(step, began, skipped=True)
            continue
        except ExpressionError as error:
            result = {"ok": False, "error": {"code": error.code, "message": error.message}}
        except WorkflowFailure:
            trace.end(step, began, ok=False)
            raise
        except asyncio.CancelledError:
            trace.steps.append({"id": step_id, "primitive": step.get("primitive"), "ok": False, "skipped": False})
            raise
        results[step_id] = result
        told = result.get("error")
        cause: JsonObject = told if isinstance(told, Mapping) else {}
        if not result["ok"] and (step.get("on_error") != "continue" or cause.get("code") == "workflow_retry_exhausted"):
            trace.end(step, began, ok=False)
            raise _failed(step, cause)
        settle = await run.settle(step) if result["ok"] else None
        trace.end(step, began, ok=bool(result["ok"]), settle=settle)
    if "output" not in workflow:
        value: object = {"steps": results}
    else:
        try:
            value = run.value(workflow["output"])
        except ExpressionError as error:
            reason = {"code": error.code, "message": error.message}
            code = error.code if error.code == "expression_output_too_large" else "workflow_output_failed"
            raise WorkflowFailure(code, f"The output failed: {error.message}", cause=reason) from error
    size = len(orjson.dumps(value))
    if size > rules.MAX_WORKFLOW_BYTES:
        message = f"The output has {size} bytes of JSON; {rules.MAX_WORKFLOW_BYTES} are allowed."
        raise WorkflowFailure("workflow_output_too_large", message)
    return value


# --- The steps of x_actions.execution ---


async def run_steps(page: LivePage, steps: Sequence[object], arguments: JsonObject, trace: Trace) -> JsonObject:
    """Run the steps of `x_actions.execution`, and return `ok` and what they extract. Raises PrimitiveError.

    The failure says the step: `step_id` in its evidence.
    """
    output: dict[str, object] = {"ok": True}
    for number, given in enumerate(steps):
        step: JsonObject = given if isinstance(given, Mapping) else {}
        step_id, kind, began = str(step.get("id", f"step_{number + 1}")), str(step.get("type")), time.monotonic()
        trace.begin(step_id, kind if kind in ("type", "click") else "page.info")
        try:
            skipped = await _execute(page, kind, step, arguments, output, trace)
        except PrimitiveError as error:
            trace.end({**step, "id": step_id}, began, ok=False)
            error.evidence = {"step_id": step_id, **error.evidence}
            raise
        except asyncio.CancelledError:
            trace.steps.append({"id": step_id, "primitive": kind, "ok": False, "skipped": False})
            raise
        trace.end({**step, "id": step_id}, began, skipped=skipped)
    return output


async def _execute(
    page: LivePage, kind: str, step: JsonObject, arguments: JsonObject, output: dict[str, object], trace: Trace
) -> bool:
    """Carry out one step, and say whether there was nothing to do."""
    if kind not in rules.STEP_TYPES:
        raise PrimitiveError("capability_unavailable", f"Steps of the type {kind!r} are not known.", capability=kind)
    target = step.get("until", step.get("target")) if kind == "wait" else step.get("target")
    if not isinstance(target, Mapping):
        raise PrimitiveError("target_not_found", f"The {kind} step has no target.")
    if kind == "wait":
        given = step.get("timeout_ms")
        timeout = given if isinstance(given, (int, float)) else rules.SETTLE_TIMEOUT_MS
        match, waited = await wait_for(page, target, timeout, attached=target.get("visible") is False)
        trace.drift += match.drift
        if not match.elements:
            message = f"What is waited for did not come: {match.reason}"
            raise PrimitiveError("timeout", message, waited_ms=waited, url=page.url, **match.evidence)
        return False
    if kind == "inspect":
        wanted = step.get("assert")
        await inspect(page, target, wanted if isinstance(wanted, Mapping) else {"visible": True}, trace.drift)
        return False
    text = ""
    if kind == "type":
        name = step.get("value_from")
        value: object = arguments if isinstance(name, str) else step.get("value")
        for part in name.removeprefix("input.").split(".") if isinstance(name, str) else ():
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is None:  # an optional argument that was not given
            return True
        if not isinstance(value, (str, int, float)):
            raise PrimitiveError("invalid_input", f"{name} is no text that could be typed.")
        text = str(value).lower() if isinstance(value, bool) else str(value)
    element, match = await locate_one(page, target)
    trace.drift += match.drift
    if kind == "type":
        await page.insert(element.ref, text, "append" if step.get("mode") == "append" else "replace")
    elif kind == "click":
        await page.perform("pointer.click", element.box.describe_centre())
    else:
        name = step.get("as")
        output[name if isinstance(name, str) else str(step.get("id"))] = element.text
    return False


async def inspect(page: LivePage, target: JsonObject, wanted: JsonObject, drift: list[str]) -> JsonObject:
    """Hold a target to assertions, and return the evidence. Raises PrimitiveError for the first that does not hold.

    `visible` true or false, `enabled`, `text_contains`, `text_equals`, `count`; without any it has to be visible.
    """
    known = {"visible", "enabled", "text_contains", "text_equals", "count"}
    if not wanted.keys() & known:
        wanted = {"visible": True}
    match = await locate(page, target, attached=wanted.get("visible") is False)
    drift += match.drift
    evidence: JsonObject = {"url": page.url, "target": dict(target), **match.evidence}
    shown = [element for element in match.elements if element.is_visible]
    if wanted.get("visible") is False:
        if shown:
            raise PrimitiveError(
                "assertion_failed", "It is visible, and should not be.", assertion="visible", **evidence
            )
    elif not match.elements and wanted.get("count") != 0:
        raise PrimitiveError("target_not_found", match.reason, assertion="visible", **evidence)
    count = wanted.get("count")
    if isinstance(count, (int, float)) and not isinstance(count, bool) and len(match.elements) != count:
        message = f"There are {len(match.elements)}, and {count} are expected."
        raise PrimitiveError("assertion_failed", message, assertion="count", **evidence)
    enabled = wanted.get("enabled")
    if isinstance(enabled, bool) and not any(element.is_enabled is enabled for element in match.elements):
        message = f"It is {'disabled' if enabled else 'enabled'}."
        raise PrimitiveError("assertion_failed", message, assertion="enabled", **evidence)
    for name in ("text_contains", "text_equals"):
        text = wanted.get(name)
        if not isinstance(text, str):
            continue
        plain = " ".join(text.split())
        fits = (plain in one.text if name == "text_contains" else plain == one.text for one in match.elements)
        if not any(fits):
            raise PrimitiveError("assertion_failed", f"The text is not {text[:100]!r}.", assertion=name, **evidence)
    return evidence
