"""Failures of workflows: their codes, and the classes that say whether a retry may help (V1, workflow)."""

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
    "workflow_output_failed": "`output` could not be evaluated; `cause` has the code of the expression",
    "workflow_output_too_large": "the output has more than 32,000 bytes",
    "partial_expression_unsupported": "a slot is not the whole text",
    "disallowed_expression_function": "`$eval`, `$random`, `$now` or `$millis` is named",
    "invalid_expression": "the expression cannot be read",
    "expression_evaluation_failed": "the expression failed, or took longer than 50 ms",
    "expression_output_too_large": "an expression returned more than 16,000 bytes",
}
"""Codes of workflows and expressions, in the evidence of a failure."""
_CLASSES: Final[Mapping[str, str]] = {
    "target_not_visible": "overlay_interference",
    "postcondition_failed": "postcondition_failed",
    "assertion_failed": "postcondition_failed",
    "timeout": "control_not_ready",
    "target_not_ready": "control_not_ready",
    "workflow_retry_exhausted": "control_not_ready",
}
"""The classes of causes; all others are `target_not_found`, unless a step that looks for an element failed."""
_RECOVERABLE: Final = ("target_not_found", "navigation_failed")
"""Causes of the class `target_not_found` after which another call may succeed."""


class WorkflowFailure(Exception):
    """A workflow failed. `error` has the form of the published runtime's; `cause` is what happened in the step."""

    def __init__(self, code: str, message: str, *, cause: JsonObject | None = None, **error: object) -> None:
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.cause = code, message, cause
        self.error: JsonObject = {"code": code, **error, "message": message, "cause": cause}


def failed_step(step: JsonObject, cause: JsonObject) -> WorkflowFailure:
    """Return the failure of a step, with its class (`RECOVERY`)."""
    code, primitive = str(cause.get("code", "")), str(step.get("primitive", ""))
    is_looking = primitive.startswith("locator.")
    failure_class = _CLASSES.get(code, "control_not_ready" if is_looking else "target_not_found")
    state, is_retryable, recovery = RECOVERY[failure_class]
    return WorkflowFailure(
        code if code.startswith("workflow_") else "workflow_step_failed",
        str(cause.get("message") or f"The step {step.get('id')} failed."),
        cause=cause,
        step_id=step.get("id"),
        primitive=step.get("primitive"),
        failure_class=failure_class,
        failed_state=state,
        retryable=is_retryable,
        recoverable=failure_class != "target_not_found" or code in _RECOVERABLE,
        safe_recovery=recovery,
    )
