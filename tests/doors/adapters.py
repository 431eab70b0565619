"""The doors through which agents call, each as a small adapter: what the contract of all doors is told through.

Calls are written by the wires of the doors. A new door is one class here, which reads its answers, and one entry in
DOORS.
"""

import base64
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from secrets import token_hex
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from starlette.testclient import WebSocketDenialResponse

from awp_publish.calls.wire import WireCall, WireRequest
from awp_publish.client import doors
from awp_publish.plugins.a2a.wire import read_metadata
from tests.client import TestClient
from tests.installed import is_installed
from tests.plugins.awp.awp_client import AwpClient

Content: TypeAlias = tuple[str, str, bytes]
"""The media type, the name and the bytes of what is not JSON."""


@dataclass(frozen=True)
class Told:
    """What a caller is told. `code` is that of a problem, None for a success.

    `recovery` says what to do now, `retry_after` (seconds) when, `challenge` what to send, `question` is a
    confirmation that a person has to give. `is_replayed` tells a recorded answer, `receipt` proves a success, `session`
    is one that has begun. `content` is the media type, the name and the bytes of an output that is not JSON.
    """

    code: str | None
    output: Any = None
    recovery: str = ""
    detail: str = ""
    retry_after: int | None = None
    challenge: str = ""
    question: Mapping[str, str] = field(default_factory=dict)
    is_replayed: bool = False
    receipt: str | None = None
    content: Content | None = None
    session: str | None = None


REBOUND: Final[Mapping[str, str]] = {
    "host": "evil.example",
    "origin": "http://evil.example",
    "x-forwarded-host": "shop.example",
}


@dataclass(frozen=True)
class Asked:
    """A call, as it was asked for: `beside` is what goes with the input, by the names of an envelope's members."""

    agent: str
    given: Mapping[str, object]
    headers: Mapping[str, str]
    beside: Mapping[str, Any]


class DoorCaller(ABC):
    """Calls agents of one application through one door.

    `ways` are, by the problem that asks for it, how a caller of this door sends a confirmation and a receipt.
    """

    ways: Mapping[str, str]
    wire: str = ""
    """The name of the wire with which calls are written. Answers are read here, so that each is read twice."""

    def __init__(self, client: TestClient) -> None:
        self._client = client

    def write(self, asked: Asked) -> WireRequest:
        """Write a call with the door's wire."""
        beside = asked.beside
        call = WireCall(
            action=asked.agent,
            inputs=asked.given,
            key=beside.get("idempotency_key", ""),
            confirmation=beside.get("confirmation", ""),
            receipts=beside.get("receipts", ()),
            session=beside.get("session", ""),
        )
        wire = doors()[self.wire]
        return wire.write(call, wire.path)

    def post(self, request: WireRequest, asked: Asked) -> Any:
        headers = {**dict(request.headers), **asked.headers}
        return self._client.request(request.method, request.path, content=request.content(), headers=headers)

    def call(
        self,
        agent: str,
        given: Mapping[str, object] | None = None,
        *,
        token: str | None = None,
        key: str | None = None,
        confirmation: str | None = None,
        receipts: Sequence[str] = (),
        session: str | None = None,
        as_foreign_page: bool = False,
        as_rebound_page: bool = False,
    ) -> Told:
        """Call an agent.

        `as_foreign_page` is as a browser does it for another site's page, with cookies, `as_rebound_page` for a page
        whose name leads to this server since its owner has changed its address (DNS rebinding).
        """
        headers = {"authorization": f"Bearer {token}"} if token is not None else {}
        headers |= {"cookie": "session=1", "origin": "https://evil.example"} if as_foreign_page else {}
        headers |= REBOUND if as_rebound_page else {}
        beside = {"idempotency_key": key, "confirmation": confirmation, "receipts": list(receipts), "session": session}
        return self.send(
            Asked(agent, given or {}, headers, {name: one for name, one in beside.items() if one not in (None, [])})
        )

    @abstractmethod
    def send(self, asked: Asked) -> Told:
        """Send a call, and say what the answer tells."""


class WoaCaller(DoorCaller):
    """The WoA REST door."""

    wire = "woa"
    ways: Mapping[str, str] = {
        "ConfirmationRequired": "in the header AWP-Confirmation",
        "PrerequisiteRequired": "AWP-Receipt header",
    }

    def send(self, asked: Asked) -> Told:
        answer = self.post(self.write(asked), asked)
        if answer.headers["content-type"] == "application/problem+json":
            assert answer.json()["status"] == answer.status_code >= 400
            return _refused(answer.json(), answer.headers)
        return _told(*self.read(answer), answer.headers)

    def read(self, answer: Any) -> tuple[Any, Content | None]:
        return answer.json(), _content(answer.json(), answer.headers.get("awp-content-type"))


class PlainCaller(WoaCaller):
    """The plain door: an action's own address and method, its inputs flat."""

    wire = "plain"
    ways: Mapping[str, str] = {
        "ConfirmationRequired": "in the header AWP-Confirmation.",
        "PrerequisiteRequired": "in the header AWP-Receipt. Do not repeat a call only to get its receipt",
    }

    def post(self, request: WireRequest, asked: Asked) -> Any:
        answer = super().post(request, asked)
        if answer.status_code != 405:
            return answer
        return super().post(replace(request, method=answer.headers["allow"].partition(",")[0]), asked)

    def read(self, answer: Any) -> tuple[Any, Content | None]:
        """An answer is what the route gave, in its own type."""
        if answer.headers["content-type"] == "application/json":
            return answer.json(), None
        told = answer.headers.get("awp-content-type", "")
        if answer.headers["content-type"].startswith("text/"):
            return answer.text, None
        name = told.partition("; name*=UTF-8''")[2]
        return None, (answer.headers["content-type"], unquote(name), answer.content)


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
            return _refused(answer.json(), answer.headers)
        if answer.status_code in (401, 403):  # a challenge
            # It leads to where credentials come from (RFC 9728 section 5.1), or names the scopes that are missing.
            assert answer.status_code == 403 or "resource_metadata=" in answer.headers["www-authenticate"]
            return _refused(answer.json()["error"]["data"], answer.headers)
        assert answer.status_code == 200
        result = answer.json()["result"]
        added = result["_meta"].get("awp/headers", {})
        if result["isError"]:
            assert json.loads(result["content"][0]["text"]) == result["_meta"]["awp/problem"]
            return _refused(result["_meta"]["awp/problem"], added)
        begun = added.get("awp-session")
        assert begun is None or begun in result["content"][-1]["text"]  # for the model to see
        block = result["content"][0]
        if block["type"] == "text":  # a string that no schema asks for is plain text
            return _told(result.get("structuredContent", block["text"]), None, added)
        held = block.get("resource", block)
        name = unquote(held["uri"]).rsplit("/", 1)[-1] if "uri" in held else ""
        assert "structuredContent" not in result
        return _told(None, (held["mimeType"], name, base64.b64decode(held.get("blob") or held["data"])), added)


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
            return _refused(read_metadata(answer["error"]["data"][0]["metadata"]), {})
        task = answer["result"]["task"]
        told = task.get("metadata", {}).get("headers", {})
        if task["status"]["state"] != "TASK_STATE_COMPLETED":
            return _refused(task["status"]["message"]["parts"][1]["data"], told)
        [part] = task["artifacts"][0]["parts"]
        content = None
        if "raw" in part:
            content = part["mediaType"], part.get("filename", ""), base64.b64decode(part["raw"])
        return _told(part["data"] if "data" in part else part.get("text"), content, told)


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
            return _refused(denied.json(), {})
        if "error" in answer:
            details = answer["error"]["details"]
            assert answer["error"]["message"] == details["detail"]
            return _refused(details, _with_hyphens(details.get("headers", {})))
        told, output = _with_hyphens(answer["result"].get("headers", {})), answer["result"]["output"]
        return _told(output, _content(output, told.get("awp-content-type")), told)


class BridgeCaller(DoorCaller):
    """The bridge: a tool with the handler `agents.invoke`, in a page in process of a connection of its own."""

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
            return _refused(denied.json(), denied.headers)
        if "error" in answer:
            told = answer["error"]["evidence"]
            own = {"code": answer["error"]["code"].upper(), "recovery": "", "detail": answer["error"]["message"]}
            return _refused({**own, **told}, told.get("headers", {}))
        told, output = answer.get("headers", {}), answer["output"]
        return _told(output, _content(output, told.get("awp-content-type")), told)


def _content(output: Any, header: str | None) -> Content | None:
    """The content of base64 in JSON, as the header beside it says."""
    if header is None or header.startswith("text/"):
        return None
    kind, _, name = header.partition("; name*=UTF-8''")
    return kind, unquote(name), base64.b64decode(output)


def _with_hyphens(members: Mapping[str, str]) -> dict[str, str]:
    """Headers as HTTP names them, from members of a message, which have no hyphens."""
    return {name.replace("_", "-"): value for name, value in members.items()}


def _told(output: Any, content: Content | None, headers: Mapping[str, str]) -> Told:
    """Return what a success tells, beside its output in the headers of HTTP or what stands for them."""
    return Told(
        None,
        output,
        is_replayed=headers.get("idempotent-replayed") == "true",
        receipt=headers.get("awp-receipt"),
        content=content,
        session=headers.get("awp-session"),
    )


def _refused(problem: Mapping[str, Any], headers: Mapping[str, str]) -> Told:
    retry_after = headers.get("retry-after")
    return Told(
        problem["code"],
        recovery=problem["recovery"],
        detail=problem["detail"],
        retry_after=int(retry_after) if retry_after is not None else None,
        challenge=headers.get("www-authenticate", ""),
        question=problem.get("confirmation", {}),
    )


_PLUGINS: Final = (("woa", WoaCaller), ("mcp", McpCaller), ("a2a", A2aCaller), ("awp", AwpCaller))

DOORS: Final[Mapping[str, Callable[[TestClient], DoorCaller]]] = {
    **{name: caller for name, caller in _PLUGINS if is_installed(name)},
    "plain": PlainCaller,
}
