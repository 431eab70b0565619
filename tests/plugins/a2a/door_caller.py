"""The door as the contract of all doors calls it."""

import base64
from collections.abc import Mapping
from typing import Any

from awp_publish.plugins.a2a.wire import read_metadata
from tests.doors.callers import Asked, DoorCaller, Told, refused, succeeded


class A2aCaller(DoorCaller):
    """The A2A door. What HTTP says in headers, a task says in its metadata."""

    wire = "a2a"
    ways: Mapping[str, str] = {
        "ConfirmationRequired": 'data part {"confirmation":',
        "PrerequisiteRequired": '{"receipts": [...]}',
    }

    key_field = "idempotency_key"

    def send(self, asked: Asked) -> Told:
        request: Any = self.write(asked)
        [part] = request.body["params"]["message"]["parts"]
        if "idempotency_key" in part["data"]:
            part["data"][self.key_field] = part["data"].pop("idempotency_key")
        answer = self.post(request, asked).json()
        if "error" in answer:
            return refused(read_metadata(answer["error"]["data"][0]["metadata"]), {})
        task = answer["result"]["task"]
        response = task.get("metadata", {}).get("headers", {})
        if task["status"]["state"] != "TASK_STATE_COMPLETED":
            return refused(task["status"]["message"]["parts"][1]["data"], response)
        [part] = task["artifacts"][0]["parts"]
        content = None
        if "raw" in part:
            content = part["mediaType"], part.get("filename", ""), base64.b64decode(part["raw"])
        return succeeded(part["data"] if "data" in part else part.get("text"), content, response)


CALLER = A2aCaller
