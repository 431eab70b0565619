"""The door as the contract of all doors calls it."""

from collections.abc import Mapping
from secrets import token_hex

from starlette.testclient import WebSocketDenialResponse

from tests.doors.callers import Asked, DoorCaller, Told, content_of, refused, succeeded


class BridgeCaller(DoorCaller):
    """The bridge: a tool with the handler `agents.invoke`, in a page in process of a connection of its own."""

    keeps_cookies = True
    ways: Mapping[str, str] = {
        "ConfirmationRequired": "confirmation beside arguments",
        "PrerequisiteRequired": "receipts beside arguments",
    }

    def send(self, asked: Asked) -> Told:
        item = {"type": "action_call", "call_id": token_hex(8), "name": asked.agent, "arguments": asked.given}
        try:
            headers = {"host": "shop.example", **asked.headers}
            with self._client.websocket_connect("/actions-bridge", headers=headers) as socket:
                socket.send_json({**item, **asked.beside})
                answer = socket.receive_json()
        except WebSocketDenialResponse as denied:
            return refused(denied.json(), denied.headers)
        if "error" in answer:
            told = answer["error"]["evidence"]
            own = {"code": answer["error"]["code"].upper(), "recovery": "", "detail": answer["error"]["message"]}
            return refused({**own, **told}, told.get("headers", {}))
        told, output = answer.get("headers", {}), answer["output"]
        return succeeded(output, content_of(output, told.get("awp-content-type")), told)


CALLER = BridgeCaller
