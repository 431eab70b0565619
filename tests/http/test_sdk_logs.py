"""Whatever comes in through MCP and A2A, and at whatever level is logged: no input and no token stands in a log."""

import logging
from typing import Any

import pytest
from starlette.applications import Starlette

from awp_publish import AgentPublisher
from tests.client import TestClient
from tests.guarded import known_callers, make_shop
from tests.installed import installed
from tests.plugins.mcp.mcp_messages import CLASSIC, headers_of, message

SECRET = "hunter2-hunter2"
TOKEN = "ann-secret-token"
WRONG = "a-wrong-token-of-ann"


@pytest.fixture
def client(open_client) -> TestClient:
    site = make_shop(plugins=installed("mcp", "a2a"), authenticate=known_callers())

    @site.agent("echo")
    async def echo(text: str) -> str:
        """Say it again."""
        return text

    @site.agent("ship", execution="async")
    async def ship(text: str) -> str:
        """Ship."""
        return text

    client: TestClient = open_client(AgentPublisher(Starlette(), site=site))
    return client


def bodies_of_a2a() -> list[tuple[str, str, Any]]:
    """Path, version and body of calls of every kind, valid and not."""
    data: list[Any] = [
        {"skill": "echo", "input": {"text": SECRET}},
        {"skill": "ship", "input": {"text": SECRET}},
        {"skill": "echo", "input": {"text": [SECRET]}},
        {"skill": SECRET, "input": {SECRET: SECRET}},
        SECRET,
    ]
    one = [{"messageId": SECRET, "role": "ROLE_USER", "parts": [{"data": item}]} for item in data]
    one += [{"messageId": "m", "role": "ROLE_USER", "parts": [{"raw": SECRET}], "metadata": SECRET}]
    three = [
        {"messageId": SECRET, "role": "user", "kind": "message", "parts": [{"kind": "data", "data": d}]} for d in data
    ]
    three += [
        {"messageId": "m", "role": "user", "kind": "message", "parts": [{"kind": SECRET, "data": SECRET}, SECRET]}
    ]
    http = [{"messageId": SECRET, "role": "ROLE_USER", "content": [{"data": {"data": item}}]} for item in data]
    calls: list[tuple[str, str, Any]] = []
    params: Any
    for params in ({"message": item} for item in one):
        for method in ("SendMessage", "SendStreamingMessage", SECRET):
            calls.append(("/a2a", "1.0", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
        calls += [("/a2a/message:send", "1.0", params), ("/a2a/message:stream", "1.0", params)]
        calls += [("/a2a/message:send", SECRET, params), ("/a2a", "1.0", {"jsonrpc": SECRET, "params": params})]
    for params in ({"message": item} for item in three):
        for method in ("message/send", "message/stream"):
            calls.append(("/a2a", "", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
    for params in ({"request": item, "configuration": {"historyLength": 2**31}} for item in http):
        calls += [("/a2a/v1/message:send", "", params), ("/a2a/v1/message:stream", "", params)]
        calls += [("/a2a/v1/message:send", "", {"request": params["request"]})]
    for method, version in (("GetTask", "1.0"), ("ListTasks", "1.0"), ("CancelTask", "1.0"), ("tasks/get", "")):
        for params in ({"id": SECRET}, {"pageToken": SECRET}, {"id": [SECRET]}, SECRET, [SECRET]):
            calls.append(("/a2a", version, {"jsonrpc": "2.0", "id": SECRET, "method": method, "params": params}))
    return calls


def bodies_of_mcp() -> list[Any]:
    """Messages of every kind, valid and not."""
    progress = {"progressToken": SECRET}
    return [
        message("tools/call", {"name": "echo", "arguments": {"text": SECRET}}),
        message("tools/call", {"name": "echo", "arguments": {"text": SECRET}}, meta=progress),
        message("tools/call", {"name": "echo", "arguments": {"text": [SECRET]}}),
        message("tools/call", {"name": SECRET, "arguments": SECRET}),
        message("tools/call", {"name": {"x": SECRET}}),
        message("resources/read", {"uri": SECRET}),
        message("prompts/get", {"name": SECRET, "arguments": [SECRET]}),
        message("tools/list", {"cursor": SECRET}),
        message(SECRET),
        {"jsonrpc": SECRET, "id": 1, "method": "tools/call", "params": SECRET},
        {"jsonrpc": "2.0", "id": {"x": SECRET}, "method": "tools/call", "params": {}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [SECRET], "reason": SECRET}},
        {"jsonrpc": "2.0", "method": f"notifications/{SECRET}"},
        {"jsonrpc": "2.0", "id": 5, "result": SECRET},
        {
            "jsonrpc": "2.0",
            "id": 5,
            "method": "initialize",
            "params": {"protocolVersion": SECRET, "clientInfo": SECRET},
        },
    ]


@pytest.mark.needs("mcp", "a2a")
def test_no_input_and_no_token_is_logged(client, caplog):
    with caplog.at_level(logging.DEBUG):
        caplog.clear()
        for token in (TOKEN, WRONG):
            bearer = {"authorization": f"Bearer {token}"}
            for path, version, body in bodies_of_a2a():
                headers = {**bearer, **({"a2a-version": version} if version else {})}
                client.post(path, json=body, headers=headers)
            client.get(f"/a2a/tasks/{SECRET}", headers={**bearer, "a2a-version": "1.0"})
            client.get("/a2a/tasks", params={"pageToken": SECRET}, headers={**bearer, "a2a-version": "1.0"})
            for body in bodies_of_mcp():
                for version in ("2026-07-28", CLASSIC):
                    given = body.get("params")
                    named = headers_of({"method": "x", "params": given if isinstance(given, dict) else {}}, version)
                    named |= {"mcp-method": str(body.get("method", "")), "mcp-session-id": token}
                    client.post("/mcp", json=body, headers={**bearer, **named})
                    client.post("/mcp", json=body, headers={**bearer, "accept": "*/*"})
    sdk = {record.name.partition(".")[0] for record in caplog.records}
    assert {"a2a", "mcp", "sse_starlette"} <= sdk
    rows = [
        (record.name, text[:300])
        for record in caplog.records
        if not record.name.startswith(("httpx", "httpcore"))  # the test's own client
        for text in (logging.Formatter("%(message)s").format(record), repr(record.__dict__))
        if any(secret in text for secret in (SECRET, TOKEN, WRONG))
    ]
    assert not rows


@pytest.mark.needs("mcp", "a2a")
def test_an_error_in_an_sdk_is_logged_with_its_place(client, caplog):
    call = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": {"parts": SECRET}}}
    with caplog.at_level(logging.WARNING):
        client.post("/a2a", json=call)
    [record] = [record for record in caplog.records if record.name.startswith("a2a.")]
    assert record.levelname == "ERROR"
    text = logging.Formatter("%(message)s").format(record)
    assert "handle_request, line " in text
    assert "Traceback" in text
    assert text.endswith("ValidationError")


def test_the_sdks_log_as_ever_outside_of_our_doors(client, caplog):
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("a2a.server.routes.jsonrpc_dispatcher").debug("the body is %s", "whole")
    assert "the body is whole" in caplog.text
