"""`RuntimeFailure`: a call, a reading or a check that failed, with the codes of the Actions Bridge Protocol."""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from awp_publish.maps.live_page import PrimitiveError
from awp_publish.schema import JsonObject

Code: TypeAlias = Literal[
    "unknown_action",
    "invalid_input",
    "runtime_not_ready",
    "permission_denied",
    "ambiguous_runtime",
    "runtime_not_found",
    "capability_unavailable",
    "missing_handler",
    "handler_failed",
    "handler_timeout",
    "invalid_result",
    "target_not_found",
    "state_mismatch",
    "drift_detected",
    "unsafe_state",
    "transport_failed",
]
"""The stable codes of the Actions Bridge Protocol. `RuntimeFailure.code` is always one of these."""
CODES: Final[Mapping[Code, str]] = {
    "unknown_action": "no tool that agents may call has this name",
    "invalid_input": "the arguments do not match the tool's `input_schema`; `errors` has pointers",
    "runtime_not_ready": "the map is not valid (`findings`), or no page is loaded",
    "permission_denied": "a gate of the site refused the call; its problem is in the evidence",
    "ambiguous_runtime": "several runtimes of the caller match (bridge)",
    "runtime_not_found": "no runtime of the caller matches (bridge)",
    "capability_unavailable": "the page lacks a capability: `capability`, `host`",
    "missing_handler": "no approved handler has this name",
    "handler_failed": "a handler, a workflow (`code`, `step_id`, `cause`) or a projection (`code`) failed",
    "handler_timeout": "the call timed out: `elapsed_ms`, `step_id`",
    "invalid_result": "the output does not match its schema, or is larger than allowed",
    "target_not_found": "the target of the tool or of a step is not on the page, or matches several elements",
    "state_mismatch": "a required state, an assertion or a postcondition does not hold",
    "drift_detected": "a check failed",
    "unsafe_state": "repeated too soon (`retry_after_ms`) or too often in one state (`attempts`)",
    "transport_failed": "the tab was closed, or its runtime disconnected",
}
"""Meanings of the codes, for our runtimes and the bridge."""


class RuntimeFailure(Exception):
    """A call, a reading or a check failed. It is the `error` of an `action_error`.

    Codes of workflows and projections are in `evidence["code"]`; completed steps are in `evidence["steps"]`.
    """

    def __init__(
        self,
        code: Code,
        message: str,
        evidence: Mapping[str, object] | None = None,
        *,
        severity: str = "major",
        recoverable: bool = True,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code: Code = code
        self.message = message
        self.severity, self.recoverable = severity, recoverable
        self.evidence: JsonObject = dict(evidence or {})

    def describe(self) -> JsonObject:
        """Return the `error` member: code, message, severity, recoverable, evidence."""
        return {
            "code": self.code,
            "message": self.message,
            "severity": self.severity,
            "recoverable": self.recoverable,
            "evidence": self.evidence,
        }


def code_of_primitive(error: PrimitiveError) -> Code:
    """Return the bridge's code for a primitive that failed outside of a workflow."""
    others: Mapping[str, Code] = {
        "multiple_targets": "target_not_found",
        "target_not_visible": "target_not_found",
        "point_out_of_viewport": "target_not_found",
        "invalid_selector": "target_not_found",
        "timeout": "handler_timeout",
        "assertion_failed": "state_mismatch",
        "target_not_ready": "state_mismatch",
        "state_document_unavailable": "runtime_not_ready",
    }
    return error.code if error.code in CODES else others.get(error.code, "handler_failed")  # type: ignore[return-value]
