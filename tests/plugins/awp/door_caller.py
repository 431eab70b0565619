"""The door as the contract of all doors calls it."""

from collections.abc import Mapping

from starlette.testclient import WebSocketDenialResponse

from tests.doors.callers import Asked, DoorCaller, Told, content_of, refused, succeeded, with_hyphens
from tests.plugins.awp.awp_client import AwpClient


class AwpCaller(DoorCaller):
    """The AWP door: `skills.invoke`, on a connection of its own for each call."""

    wire = "awp"
    ways: Mapping[str, str] = {
        "ConfirmationRequired": "params.confirmation",
        "PrerequisiteRequired": "params.receipts",
    }

    def send(self, asked: Asked) -> Told:
        hello, invoke = self.write(asked).frames
        try:
            with AwpClient.open(self._client, dict(asked.headers)) as caller:
                answer = caller.ask(hello["method"], hello["params"])
                if "error" not in answer:
                    key = invoke.get("meta", {}).get("idempotency_key")
                    answer = caller.ask(invoke["method"], invoke["params"], key=key)
        except WebSocketDenialResponse as denied:
            return refused(denied.json(), {})
        if "error" in answer:
            details = answer["error"]["details"]
            assert answer["error"]["message"] == details["detail"]
            return refused(details, with_hyphens(details.get("headers", {})))
        told, output = with_hyphens(answer["result"].get("headers", {})), answer["result"]["output"]
        return succeeded(output, content_of(output, told.get("awp-content-type")), told)


CALLER = AwpCaller
