"""The tool `get_job`, with which clients without the extension for tasks poll the jobs of background actions."""

from typing import Any, Final

from awp_publish.model import JsonObject
from awp_publish.plugins.mcp.dialect import SESSION

GET_JOB: Final = "get_job"
"""The tool with which clients without the extension poll, because they may be unable to make a GET request."""

_STATUSES: Final = ("accepted", "running", "done", "failed", "cancelled")


def get_job_entry(session: JsonObject | None) -> dict[str, Any]:
    """Return the entry of `tools/list`. `session` is the argument with the session of a caller, None without it."""
    properties: dict[str, JsonObject] = {
        "job_id": {"type": "string", "description": "The job_id that the tool returned."}
    }
    if session is not None:
        properties[SESSION] = session
    return {
        "name": GET_JOB,
        "title": "Get job",
        "description": (
            "Check a background job by the job_id that its tool returned. Repeat every few seconds until "
            "status is done, failed or cancelled."
        ),
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": ["job_id"],
            "additionalProperties": False,
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "job_id": {"type": "string"},
                "action": {"type": "string"},
                "status": {"enum": [*_STATUSES]},
                "result": {"description": "What the action returned, once status is done."},
                "problem": {"type": "object", "description": "Why it failed, once status is failed or cancelled."},
            },
            "required": ["job_id", "action", "status"],
        },
        "annotations": {
            "title": "Get job",
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    }
