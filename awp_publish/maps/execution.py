"""The steps of `x_actions.execution`, which workflows have replaced."""

import asyncio
import time
from collections.abc import Mapping, Sequence

from awp_publish.maps import rules
from awp_publish.maps.live_page import LivePage, PrimitiveError
from awp_publish.maps.targets import inspect, locate_one, wait_for
from awp_publish.maps.trace import Trace
from awp_publish.schema import JsonObject


async def run_steps(page: LivePage, steps: Sequence[object], arguments: JsonObject, trace: Trace) -> JsonObject:
    """Run the steps of `x_actions.execution`. Returns `ok` and the extracted values. Raises PrimitiveError.

    The error's evidence names the failed step as `step_id`.
    """
    output: dict[str, object] = {"ok": True}
    for number, entry in enumerate(steps):
        step: JsonObject = entry if isinstance(entry, Mapping) else {}
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
    """Run one step. Returns True if it was skipped."""
    if kind not in rules.STEP_TYPES:
        raise PrimitiveError("capability_unavailable", f"Steps of the type {kind!r} are not known.", capability=kind)
    target = step.get("until", step.get("target")) if kind == "wait" else step.get("target")
    if not isinstance(target, Mapping):
        raise PrimitiveError("target_not_found", f"The {kind} step has no target.")
    if kind == "wait":
        timeout_ms = step.get("timeout_ms")
        timeout = timeout_ms if isinstance(timeout_ms, (int, float)) else rules.SETTLE_TIMEOUT_MS
        match, waited = await wait_for(page, target, timeout, attached=target.get("visible") is False)
        trace.drift += match.drift
        if not match.elements:
            message = f"What the step waits for did not appear: {match.reason}"
            raise PrimitiveError("timeout", message, waited_ms=waited, url=page.url, **match.evidence)
        return False
    if kind == "inspect":
        assertions = step.get("assert")
        await inspect(page, target, assertions if isinstance(assertions, Mapping) else {"visible": True}, trace.drift)
        return False
    text = ""
    if kind == "type":
        name = step.get("value_from")
        value: object = arguments if isinstance(name, str) else step.get("value")
        for part in name.removeprefix("input.").split(".") if isinstance(name, str) else ():
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is None:  # an optional argument was not given
            return True
        if not isinstance(value, (str, int, float)):
            raise PrimitiveError("invalid_input", f"{name} is not text that can be typed.")
        text = str(value).lower() if isinstance(value, bool) else str(value)
    element = await locate_one(page, target, trace.drift)
    if kind == "type":
        await page.insert(element.ref, text, "append" if step.get("mode") == "append" else "replace")
    elif kind == "click":
        await page.perform("pointer.click", element.box.describe_centre())
    else:
        name = step.get("as")
        output[name if isinstance(name, str) else str(step.get("id"))] = element.text
    return False
