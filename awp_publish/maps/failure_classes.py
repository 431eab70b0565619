"""Failures of workflows: their codes, and the classes that say whether a retry may help (V1, workflow)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from awp_publish.schema import JsonObject

RECOVERY: Final[Mapping[str, tuple[str, bool, str]]] = {
    "overlay_interference": (
        "mutation",
        True,
        "Close whatever covers the page, return to a known state, then try the step again.",
    ),
    "postcondition_failed": (
        "postcondition",
        False,
        "Read the state of the page before trying again: the action may have taken effect in part.",
    ),
    "control_not_ready": (
        "readiness",
        True,
        "Wait for the control, then try again from the last verified state.",
    ),
    "target_not_found": (
        "precondition",
        False,
        "Return to a known state, check that the target exists, and only then try again.",
    ),
}
"""Classes of failures: the state that failed, whether a retry may help, and what a caller can safely do."""
WORKFLOW_CODES: Final[Mapping[str, str]] = {
    "workflow_step_failed": "a step failed; `cause` has the code of its primitive or expression",
    "workflow_loop_input_invalid": "`for_each` did not return an array",
    "workflow_retry_exhausted": "`retry_until` did not hold after `max_attempts` attempts; `on_error` cannot catch it",
    "workflow_retry_not_executed": "`retry_until` made no attempt",
    "workflow_output_failed": "`output` could not be evaluated; `cause` has the code of the expression",
    "workflow_output_too_large": "the output has more than 32,000 bytes",
    "partial_expression_unsupported": "a slot is not the whole text",
    "disallowed_expression_function": "`$eval`, `$random`, `$now` or `$millis` is named",
    "invalid_expression": "the expression cannot be read",
    "expression_evaluation_failed": "the expression failed, or took longer than 50 ms",
    "expression_output_too_large": "an expression returned more than 16,000 bytes",
}
"""Codes of workflows and expressions, in the evidence of a failure."""
_COVERED: Final = re.compile(r"overlay|occlud|intercept", re.IGNORECASE)
_CONTROL: Final = re.compile(r"find|verify|ready|badge|button|control", re.IGNORECASE)


class WorkflowFailure(Exception):
    """A workflow failed. `error` has the form of the published runtime's; `cause` is what happened in the step."""

    def __init__(self, code: str, message: str, *, cause: JsonObject | None = None, **error: object) -> None:
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.cause = code, message, cause
        self.error: JsonObject = {"code": code, **error, "message": message, "cause": cause}


def _failed(step: JsonObject, cause: JsonObject) -> WorkflowFailure:
    """Return the failure of a step, with its class (`RECOVERY`)."""
    code, step_id = str(cause.get("code", "")), str(step.get("id", ""))
    is_looking = str(step.get("primitive", "")).startswith("locator.") or _CONTROL.search(step_id) is not None
    named = "target_not_found"
    if _COVERED.search(f"{code} {cause.get('message', '')}"):
        named = "overlay_interference"
    elif code == "postcondition_failed" or "postcondition" in step_id.lower():
        named = "postcondition_failed"
    elif code.startswith("workflow_retry_") or code in ("timeout", "target_not_ready") or is_looking:
        named = "control_not_ready"
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
