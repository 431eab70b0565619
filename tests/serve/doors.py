"""The doors through which agents call, each as a small adapter: what the contract of all doors is told through.

A new door is one class here with a `call` like the others', and one entry in DOORS.
"""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any, Final, Protocol
from urllib.parse import unquote

from starlette.testclient import TestClient, WebSocketDenialResponse

from tests.serve.awp_client import AwpClient
from tests.serve.mcp_messages import message, post


@dataclass(frozen=True)
class Told:
    """What a caller is told. `code` is that of a problem, None for a success.

    `recovery` says what to do now, `retry_after` (seconds) when, `challenge` what to send, `question` is a
    confirmation that a person has to give. `is_replayed` tells a recorded answer, `receipt` proves a success, `session`
    is one that has begun. `content` is the media type, the name and the bytes of an output that is no JSON.
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
    content: tuple[str, str, bytes] | None = None
    session: str | None = None


REBOUND: Final[Mapping[str, str]] = {
    "host": "evil.example",
    "origin": "http://evil.example",
    "x-forwarded-host": "shop.example",
}


class DoorCaller(Protocol):
    """Calls agents of one application through one door.

    `ways` are, by the problem that asks for it, how a caller of this door sends a confirmation and a receipt.
    """

    ways: Mapping[str, str]

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


class WoaCaller:
    """The WoA REST door."""

    ways: Mapping[str, str] = {
        "ConfirmationRequired": "in the header AWP-Confirmation",
        "PrerequisiteRequired": "AWP-Receipt header",
    }

    def __init__(self, client: TestClient) -> None:
        self._client = client

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
        named = {"idempotency-key": key, "awp-confirmation": confirmation, "awp-receipt": ", ".join(receipts) or None}
        headers = {name: value for name, value in named.items() if value is not None}
        headers |= {"authorization": f"Bearer {token}"} if token is not None else {}
        headers |= {"cookie": "session=1", "origin": "https://evil.example"} if as_foreign_page else {}
        headers |= REBOUND if as_rebound_page else {}
        answer = self._send(agent, given or {}, headers, session)
        retry_after = answer.headers.get("retry-after")
        problem = answer.json() if answer.headers["content-type"] == "application/problem+json" else None
        if problem is None:
            replayed = answer.headers.get("idempotent-replayed") == "true"
            output, content = self._read(answer)
            receipt, begun = answer.headers.get("awp-receipt"), answer.headers.get("awp-session")
            return Told(None, output, is_replayed=replayed, receipt=receipt, content=content, session=begun)
        assert problem["status"] == answer.status_code >= 400
        return Told(
            problem["code"],
            recovery=problem["recovery"],
            detail=problem["detail"],
            retry_after=int(retry_after) if retry_after is not None else None,
            challenge=answer.headers.get("www-authenticate", ""),
            question=problem.get("confirmation", {}),
        )

    def _send(self, agent: str, given: Mapping[str, object], headers: Mapping[str, str], session: str | None) -> Any:
        return self._client.post(f"/agents/{agent}/invoke", json={"input": given, "session": session}, headers=headers)

    def _read(self, answer: Any) -> tuple[Any, tuple[str, str, bytes] | None]:
        return answer.json(), _content(answer.json(), answer.headers.get("awp-content-type"))


class PlainCaller(WoaCaller):
    """The plain door: an action's own address and method, its inputs flat."""

    ways: Mapping[str, str] = {
        "ConfirmationRequired": "in the header AWP-Confirmation.",
        "PrerequisiteRequired": "in the header AWP-Receipt. None is to be repeated",
    }

    def _send(self, agent: str, given: Mapping[str, object], headers: Mapping[str, str], session: str | None) -> Any:
        headers = {**headers, **({} if session is None else {"awp-session": session})}
        answer = self._client.post(f"/agents/actions/{agent}", json=given, headers=headers)
        if answer.status_code != 405:
            return answer
        method = answer.headers["allow"].partition(",")[0]
        return self._client.request(method, f"/agents/actions/{agent}", json=given, headers=headers)

    def _read(self, answer: Any) -> tuple[Any, tuple[str, str, bytes] | None]:
        """An answer is what the route gave, in its own type."""
        if answer.headers["content-type"] == "application/json":
            return answer.json(), None
        told = answer.headers.get("awp-content-type", "")
        if answer.headers["content-type"].startswith("text/"):
            return answer.text, None
        name = told.partition("; name*=UTF-8''")[2]
        return None, (answer.headers["content-type"], unquote(name), answer.content)


class McpCaller:
    """The MCP door, in the stateless revision. What an envelope carries travels in `_meta`."""

    ways: Mapping[str, str] = {
        "ConfirmationRequired": "the argument confirmation",
        "PrerequisiteRequired": "the argument receipts",
    }

    def __init__(self, client: TestClient) -> None:
        self._client = client

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
        named = {"idempotencyKey": key, "confirmation": confirmation, "receipts": list(receipts) or None}
        meta = {f"awp/{name}": value for name, value in named.items() if value is not None}
        arguments = {**(given or {}), **({} if session is None else {"session": session})}
        sent = message("tools/call", {"name": agent, "arguments": arguments}, meta=meta)
        headers = {"authorization": f"Bearer {token}"} if token is not None else {}
        headers |= {"cookie": "session=1", "origin": "https://evil.example"} if as_foreign_page else {}
        headers |= REBOUND if as_rebound_page else {}
        answer = post(self._client, sent, headers=headers)
        if answer.headers["content-type"] == "application/problem+json":  # refused before it was a message
            return self._refused(answer.json(), answer.headers)
        if answer.status_code == 401:  # a challenge, which leads to where credentials come from (RFC 9728 section 5.1)
            assert "resource_metadata=" in answer.headers["www-authenticate"]
            return self._refused(answer.json()["error"]["data"], answer.headers)
        assert answer.status_code == 200
        result = answer.json()["result"]
        added = result["_meta"].get("awp/headers", {})
        if result["isError"]:
            assert json.loads(result["content"][0]["text"]) == result["_meta"]["awp/problem"]
            return self._refused(result["_meta"]["awp/problem"], added)
        replayed = added.get("idempotent-replayed") == "true"
        receipt, begun = added.get("awp-receipt"), added.get("awp-session")
        assert begun is None or begun in result["content"][-1]["text"]  # for the model to see
        block = result["content"][0]
        if block["type"] != "text":
            held = block.get("resource", block)
            name = unquote(held["uri"]).rsplit("/", 1)[-1] if "uri" in held else ""
            content = held["mimeType"], name, base64.b64decode(held.get("blob") or held["data"])
            assert "structuredContent" not in result
            return Told(None, is_replayed=replayed, receipt=receipt, content=content, session=begun)
        output = result.get("structuredContent", block["text"])  # a string that no schema asks for is plain text
        return Told(None, output, is_replayed=replayed, receipt=receipt, session=begun)

    def _refused(self, problem: Mapping[str, Any], added: Mapping[str, str]) -> Told:
        return Told(
            problem["code"],
            recovery=problem["recovery"],
            detail=problem["detail"],
            retry_after=int(added["retry-after"]) if "retry-after" in added else None,
            challenge=added.get("www-authenticate", ""),
            question=problem.get("confirmation", {}),
        )


class A2aCaller:
    """The A2A door. What HTTP says in headers, a task says in its metadata."""

    ways: Mapping[str, str] = {
        "ConfirmationRequired": 'data part {"confirmation":',
        "PrerequisiteRequired": '{"receipts": [...]}',
    }
    key_field = "idempotency_key"

    def __init__(self, client: TestClient) -> None:
        self._client = client

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
        beside = {self.key_field: key, "confirmation": confirmation, "receipts": list(receipts) or None}
        beside["session"] = session
        members = {name: value for name, value in beside.items() if value is not None}
        data = {"skill": agent, "input": given or {}, **members}
        message = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"data": data}]}
        body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
        headers = {"a2a-version": "1.0"}
        headers |= {"authorization": f"Bearer {token}"} if token is not None else {}
        headers |= {"cookie": "session=1", "origin": "https://evil.example"} if as_foreign_page else {}
        headers |= REBOUND if as_rebound_page else {}
        answer = self._client.post("/a2a", json=body, headers=headers).json()
        if "error" in answer:
            return _told_of(answer["error"]["data"][0]["metadata"], {})
        task = answer["result"]["task"]
        told = task.get("metadata", {}).get("headers", {})
        if task["status"]["state"] == "TASK_STATE_COMPLETED":
            replayed = told.get("idempotent-replayed") == "true"
            [part] = task["artifacts"][0]["parts"]
            content = None
            if "raw" in part:
                content = part["mediaType"], part.get("filename", ""), base64.b64decode(part["raw"])
            output = part["data"] if "data" in part else part.get("text")
            receipt, begun = told.get("awp-receipt"), told.get("awp-session")
            return Told(None, output, is_replayed=replayed, receipt=receipt, content=content, session=begun)
        return _told_of(task["status"]["message"]["parts"][1]["data"], told)


class AwpCaller:
    """The AWP door: `skills.invoke`, on a connection of its own for each call."""

    ways: Mapping[str, str] = {
        "ConfirmationRequired": "params.confirmation",
        "PrerequisiteRequired": "params.receipts",
    }

    def __init__(self, client: TestClient) -> None:
        self._client = client

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
        headers = {"authorization": f"Bearer {token}"} if token is not None else {}
        headers |= {"cookie": "session=1", "origin": "https://evil.example"} if as_foreign_page else {}
        headers |= REBOUND if as_rebound_page else {}
        params: dict[str, Any] = {"skill": agent, "args": given or {}}
        params |= {"confirmation": confirmation, "receipts": list(receipts), "session": session}
        try:
            with AwpClient.open(self._client, headers) as caller:
                greeted = caller.ask("awp.hello")
                if "error" in greeted:
                    return self._refused(greeted["error"])
                answer = caller.ask("skills.invoke", params, key=key)
        except WebSocketDenialResponse as denied:
            return _told_of(denied.json(), {})
        if "error" in answer:
            return self._refused(answer["error"])
        told = _with_hyphens(answer["result"].get("headers", {}))
        replayed, output = told.get("idempotent-replayed") == "true", answer["result"]["output"]
        content = _content(output, told.get("awp-content-type"))
        receipt, begun = told.get("awp-receipt"), told.get("awp-session")
        return Told(None, output, is_replayed=replayed, receipt=receipt, content=content, session=begun)

    def _refused(self, error: Mapping[str, Any]) -> Told:
        assert error["message"] == error["details"]["detail"]
        return _told_of(error["details"], _with_hyphens(error["details"].get("headers", {})))


class BridgeCaller:
    """The bridge: a tool with the handler `agents.invoke`, in a page in process of a connection of its own."""

    ways: Mapping[str, str] = {
        "ConfirmationRequired": "confirmation beside arguments",
        "PrerequisiteRequired": "receipts beside arguments",
    }

    def __init__(self, client: TestClient) -> None:
        self._client = client

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
        headers = {"authorization": f"Bearer {token}"} if token is not None else {}
        headers |= {"cookie": "session=1", "origin": "https://evil.example"} if as_foreign_page else {}
        headers |= REBOUND if as_rebound_page else {}
        item: dict[str, Any] = {"type": "action_call", "call_id": token_hex(8), "name": agent, "arguments": given or {}}
        beside = {"confirmation": confirmation, "receipts": list(receipts), "session": session, "idempotency_key": key}
        item |= {name: value for name, value in beside.items() if value}
        try:
            headers = {"host": "shop.example", **headers}
            with self._client.websocket_connect("/actions-bridge", headers=headers) as socket:
                socket.send_json(item)
                answer = socket.receive_json()
        except WebSocketDenialResponse as denied:
            return _told_of(denied.json(), denied.headers)
        if "error" in answer:
            told = answer["error"]["evidence"]
            own = {"code": answer["error"]["code"].upper(), "recovery": "", "detail": answer["error"]["message"]}
            return _told_of({**own, **told}, told.get("headers", {}))
        told = answer.get("headers", {})
        output, replayed = answer["output"], told.get("idempotent-replayed") == "true"
        content = _content(output, told.get("awp-content-type"))
        receipt, begun = told.get("awp-receipt"), told.get("awp-session")
        return Told(None, output, is_replayed=replayed, receipt=receipt, content=content, session=begun)


def _content(output: Any, header: str | None) -> tuple[str, str, bytes] | None:
    """The content of base64 in JSON, as the header beside it says."""
    if header is None or header.startswith("text/"):
        return None
    kind, _, name = header.partition("; name*=UTF-8''")
    return kind, unquote(name), base64.b64decode(output)


def _with_hyphens(members: Mapping[str, str]) -> dict[str, str]:
    """Headers as HTTP names them, from members of a message, which have no hyphens."""
    return {name.replace("_", "-"): value for name, value in members.items()}


def _told_of(problem: Mapping[str, Any], headers: Mapping[str, str]) -> Told:
    retry_after = headers.get("retry-after")
    return Told(
        problem["code"],
        recovery=problem["recovery"],
        detail=problem["detail"],
        retry_after=int(retry_after) if retry_after is not None else None,
        challenge=headers.get("www-authenticate", ""),
        question=problem.get("confirmation", {}),
    )


DOORS: Final[Mapping[str, Callable[[TestClient], DoorCaller]]] = {
    "woa": WoaCaller,
    "plain": PlainCaller,
    "mcp": McpCaller,
    "a2a": A2aCaller,
    "awp": AwpCaller,
}
