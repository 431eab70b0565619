"""The event that known callers get when a background job of theirs has ended."""

from typing import Final

from awp_publish.model import JsonObject

JOB_ENDED: Final = "job_ended"
JOB_PAYLOAD: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "job_id": {"type": "string"},
        "action": {"type": "string"},
        "status": {"type": "string", "enum": ["done", "failed", "cancelled"]},
        "poll_endpoint": {"type": "string", "description": "Where the result is."},
    },
    "required": ["job_id", "action", "status", "poll_endpoint"],
    "additionalProperties": False,
}
