"""Workflows: steps with conditions, loops, attempts and pacing (V1, workflow)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Final

import orjson

from awp_publish.maps import rules
from awp_publish.maps.engine import ExpressionError
from awp_publish.maps.expressions import UNDEFINED, fill
from awp_publish.maps.failure_classes import WorkflowFailure, _failed
from awp_publish.maps.live_page import LivePage, PrimitiveError
from awp_publish.maps.performing import run_primitive
from awp_publish.maps.targets import wait_for
from awp_publish.maps.trace import Trace
from awp_publish.schema import JsonObject, depth_exceeds

FATAL: Final = ("workflow_retry_exhausted", "transport_failed")
"""Codes of errors after which a workflow ends even if the step may fail."""


class _Skipped(Exception):
    """The condition of a step does not hold."""


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
        """Run a primitive: `{ok, output}`, or `{ok, error}`."""
        await asyncio.sleep(0)  # a page in process never awaits: yield to other tasks and timeouts
        filled: object = None
        try:
            filled = self.value(arguments if arguments is not None else {}, **names)
            output = await run_primitive(self.page, str(primitive), filled, self.trace.drift)
            if depth_exceeds(output, rules.MAX_DEPTH):
                raise PrimitiveError("invalid_result", f"The answer is nested more than {rules.MAX_DEPTH} deep.")
            return {"ok": True, "output": output}
        except PrimitiveError as error:
            cause = {"code": error.code, "message": error.message, **error.evidence}
            if error.code == "invalid_input" and isinstance(filled, Mapping) and isinstance(arguments, Mapping):
                lost = {name: slot for name, slot in arguments.items() if name not in filled}
                if lost:
                    cause["message"] = f"{error.message}; {', '.join(map(str, lost.values()))} has no value"[:1000]
                    cause["undefined"] = lost
            return {"ok": False, "error": cause}
        except ExpressionError as error:
            return {"ok": False, "error": {"code": error.code, "message": error.message}}

    async def settle(self, step: JsonObject) -> JsonObject | None:
        """Wait according to `settle_after`. A timeout is not a failure: settling is only pacing (V1, workflow)."""
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
        """Run a step, with its loop or its attempts. Raises _Skipped, ExpressionError and WorkflowFailure."""
        if "when" in step and not self.value(step["when"]):
            raise _Skipped
        primitive, arguments = step.get("primitive"), step.get("args")
        continues = step.get("on_error") == "continue"
        if "for_each" in step:
            items = self.value(step["for_each"])
            if not isinstance(items, list):
                message = "for_each did not return an array. Write $append([], ...) where there may be only one item."
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
    """Run a workflow of a checked map. Returns its output, or `{steps}` without one. Raises WorkflowFailure."""
    run = _Run(page, arguments, trace)
    results = run.document["steps"]
    assert isinstance(results, dict)
    for step in rules.objects(workflow, "steps")[: rules.MAX_STEPS]:
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
        failure = result.get("error")
        cause: JsonObject = failure if isinstance(failure, Mapping) else {}
        if not result["ok"] and (step.get("on_error") != "continue" or cause.get("code") in FATAL):
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
