"""Workflows: steps with conditions, loops, attempts and pacing (V1, workflow)."""

import asyncio
import time
from collections.abc import Mapping
from typing import Final, TypeAlias

import orjson

from awp_publish.maps import reading, rules
from awp_publish.maps.engine import ExpressionError
from awp_publish.maps.expressions import UNDEFINED, fill
from awp_publish.maps.failure_classes import WorkflowFailure, failed_step
from awp_publish.maps.live_page import LivePage, PrimitiveError
from awp_publish.maps.performing import run_primitive
from awp_publish.maps.targets import wait_for
from awp_publish.maps.trace import Trace
from awp_publish.schema import JsonObject, depth_exceeds

FATAL: Final = ("workflow_retry_exhausted", "transport_failed")
"""Codes of errors after which a workflow ends even if the step may fail."""


Result: TypeAlias = dict[str, object]
"""What a step has done: `{ok, output}`, `{ok, error}`, and `items` or `attempts`."""


class _Skipped(Exception):
    """The condition of a step does not hold."""


class _Run:
    """One run of a workflow."""

    def __init__(self, page: LivePage, arguments: JsonObject, trace: Trace) -> None:
        self.page, self.trace = page, trace
        self.results: dict[str, Result] = {}
        self.document: Result = {"input": arguments, "steps": self.results, "item": None, "index": None}

    def value(self, slot: object, **names: object) -> object:
        """Return a value with its slots filled. Raises ExpressionError."""
        value = fill(slot, {**self.document, **names}, rules.MAX_EXPRESSION_BYTES)
        return None if value is UNDEFINED else value

    async def once(self, primitive: object, arguments: object, **names: object) -> Result:
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
        settle = step.get("settle_after")
        if not isinstance(settle, Mapping):
            return None
        delay = settle.get("delay_ms")
        if isinstance(delay, (int, float)):
            if self.page.has_scripts:
                await asyncio.sleep(delay / 1000)
            return {"ok": True, "mode": "delay", "delay_ms": delay, "waited_ms": delay if self.page.has_scripts else 0}
        timeout = settle.get("timeout_ms")
        try:
            locator = self.value(settle.get("locator"))
            match, waited = await wait_for(
                self.page,
                locator if isinstance(locator, Mapping) else {},
                timeout if isinstance(timeout, (int, float)) else rules.SETTLE_TIMEOUT_MS,
                attached=settle.get("state") == "attached",
            )
        except (PrimitiveError, ExpressionError) as error:
            return {"ok": False, "mode": "locator", "reason": error.code, "waited_ms": 0}
        if not match.elements:
            return {"ok": False, "mode": "locator", "reason": "timeout", "waited_ms": waited}
        return {"ok": True, "mode": "locator", "waited_ms": waited}

    async def step(self, step: JsonObject) -> Result:
        """Run a step, with its loop or its attempts. Raises _Skipped, ExpressionError and WorkflowFailure."""
        if "when" in step and not self.value(step["when"]):
            raise _Skipped
        if "for_each" in step:
            return await self._loop(step)
        if "retry_until" in step:
            return await self._attempts(step)
        return await self.once(step.get("primitive"), step.get("args"))

    async def _loop(self, step: JsonObject) -> Result:
        """Run a step for each item; without `on_error: continue`, up to the first failure."""
        items = self.value(step["for_each"])
        if not isinstance(items, list):
            message = "for_each did not return an array. Write $append([], ...) where there may be only one item."
            raise failed_step(step, {"code": "workflow_loop_input_invalid", "message": message})
        limit, results = _bound(step.get("max_items"), rules.MAX_ITEMS), list[Result]()
        for index, item in enumerate(items[:limit]):
            result = await self.once(step.get("primitive"), step.get("args"), item=item, index=index)
            results.append(result)
            if not result["ok"] and step.get("on_error") != "continue":
                return {"ok": False, "items": results, "error": result["error"]}
        cut = {"truncated": True, "total": len(items)} if len(items) > limit else {}
        return {"ok": all(result["ok"] for result in results), "items": results, **cut}

    async def _attempts(self, step: JsonObject) -> Result:
        """Run a step until `retry_until` holds, and `after_each` between attempts."""
        limit, after = _bound(step.get("max_attempts"), rules.MAX_ATTEMPTS), step.get("after_each")
        attempts: list[Result] = []
        for attempt in range(limit):
            result = await self.once(step.get("primitive"), step.get("args"), index=attempt)
            attempts.append(result)
            self.results[str(step.get("id"))] = result
            if not result["ok"] and step.get("on_error") != "continue":
                return result
            if self.value(step["retry_until"], index=attempt):
                return result | {"attempts": attempts}
            if attempt < limit - 1 and isinstance(after, Mapping):
                between = await self.once(after.get("primitive"), after.get("args"), index=attempt)
                attempts.append(between)
                if not between["ok"] and step.get("on_error") != "continue":
                    return between
        error = {
            "code": "workflow_retry_exhausted",
            "message": f"retry_until of the step {step.get('id')} did not hold after {limit} attempts.",
            "cause": result.get("error"),
        }
        return {**result, "ok": False, "attempts": attempts, "error": error}


def _bound(number: object, limit: int) -> int:
    is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
    return max(1, min(int(number), limit)) if is_number else 1  # type: ignore[call-overload]


async def run_workflow(page: LivePage, workflow: JsonObject, arguments: JsonObject, trace: Trace) -> object:
    """Run a workflow of a checked map. Returns its output, or `{steps}` without one. Raises WorkflowFailure."""
    run = _Run(page, arguments, trace)
    for step in reading.objects(workflow, "steps")[: rules.MAX_STEPS]:
        step_id, began = str(step.get("id")), time.monotonic()
        trace.begin(step_id, str(step.get("primitive")))
        try:
            result = await run.step(step)
        except _Skipped:
            run.results[step_id] = {"ok": True, "skipped": True}
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
        run.results[step_id] = result
        failure = result.get("error")
        cause: JsonObject = failure if isinstance(failure, Mapping) else {}
        if not result["ok"] and (step.get("on_error") != "continue" or cause.get("code") in FATAL):
            trace.end(step, began, ok=False)
            raise failed_step(step, cause)
        settle = await run.settle(step) if result["ok"] else None
        trace.end(step, began, ok=bool(result["ok"]), settle=settle)
    if "output" not in workflow:
        value: object = {"steps": run.results}
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
