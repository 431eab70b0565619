"""The door as the contract of all doors calls it."""

import base64
import json
from collections.abc import Mapping
from urllib.parse import unquote

from tests.doors.callers import Asked, DoorCaller, Told, refused, succeeded


class McpCaller(DoorCaller):
    """The MCP door, in the stateless revision. What an envelope carries travels in `_meta`."""

    wire = "mcp"
    ways: Mapping[str, str] = {
        "ConfirmationRequired": "the argument confirmation",
        "PrerequisiteRequired": "the argument receipts",
    }

    def send(self, asked: Asked) -> Told:
        answer = self.post(self.write(asked), asked)
        if answer.headers["content-type"] == "application/problem+json":  # refused before it was a message
            return refused(answer.json(), answer.headers)
        if answer.status_code in (401, 403):  # a challenge
            # It leads to where credentials come from (RFC 9728 section 5.1), or names the scopes that are missing.
            assert answer.status_code == 403 or "resource_metadata=" in answer.headers["www-authenticate"]
            return refused(answer.json()["error"]["data"], answer.headers)
        assert answer.status_code == 200
        result = answer.json()["result"]
        added = result["_meta"].get("awp/headers", {})
        if result["isError"]:
            assert json.loads(result["content"][0]["text"]) == result["_meta"]["awp/problem"]
            return refused(result["_meta"]["awp/problem"], added)
        begun = added.get("awp-session")
        assert begun is None or begun in result["content"][-1]["text"]  # for the model to see
        block = result["content"][0]
        if block["type"] == "text":  # a string that no schema asks for is plain text
            return succeeded(result.get("structuredContent", block["text"]), None, added)
        held = block.get("resource", block)
        name = unquote(held["uri"]).rsplit("/", 1)[-1] if "uri" in held else ""
        assert "structuredContent" not in result
        return succeeded(None, (held["mimeType"], name, base64.b64decode(held.get("blob") or held["data"])), added)


CALLER = McpCaller
