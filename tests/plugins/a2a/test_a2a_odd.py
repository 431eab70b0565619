"""Requests of A2A that have odd members, in both versions and bindings: invalid params, and never an error of ours."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.applications import Starlette

from awp_publish import AgentPublisher
from tests.client import TestClient
from tests.guarded import ANN, known_callers, make_shop

T = "00000000-0000-0000-0000-000000000000"
CALL = {"skill": "add", "input": {"numbers": [1]}}
MESSAGE = {"messageId": "m", "contextId": "c", "metadata": {"a": 1}, "extensions": ["x"]}
ONE = {**MESSAGE, "role": "ROLE_USER", "parts": [{"data": CALL}], "referenceTaskIds": ["t"]}
THREE = {**MESSAGE, "kind": "message", "role": "user", "parts": [{"kind": "data", "data": CALL}]}
THREE_HTTP = {**MESSAGE, "role": "ROLE_USER", "content": [{"data": {"data": CALL}}]}
SETTINGS = {"historyLength": 1, "acceptedOutputModes": ["text"]}

ODD: list[Any] = [
    *(None, True, 0, 1, -1, 2**31, -(2**31) - 1, 2**40, 1.5, 1e300, "", "x", "\u0000", "NaN", "2025-13-45", "y" * 5000),
    *([], [1], [None], [[]], [{}], {}, {"a": 1}, {"kind": "x"}),
]
FILES: list[Any] = [
    *ODD,
    {"bytes": "!"},
    {"bytes": 1},
    {"bytes": "aGk="},
    {"uri": 7},
    {"uri": "http://x"},
    {"raw": "!"},
]
PARTS = [
    *({"kind": "file", "file": file} for file in FILES),
    *({"kind": kind} for kind in ("text", "data", "file", "odd")),
    *({"file": file} for file in FILES),
    *({name: odd} for name in ("raw", "url", "text", "data", "kind") for odd in ODD),
    {"kind": "text", "text": "x", "metadata": 5},
    {"text": "a", "data": {}},
]


def cases(value: Any) -> Iterator[Any]:
    """A JSON value with one member replaced by something odd, or left out, in every place."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from ({**value, name: odd} for odd in ODD)
            yield from ({**value, name: inner} for inner in cases(member))
            yield {other: one for other, one in value.items() if other != name}
        yield {**value, "strange": 1}
    elif isinstance(value, list):
        yield from ([odd] for odd in ODD)
        yield from ([inner] for inner in cases(value[0]))
        yield value * 2


@pytest.fixture
def client(open_client) -> TestClient:
    site = make_shop(plugins=["a2a"], authenticate=known_callers())

    @site.agent("add")
    async def add(numbers: list[int]) -> int:
        """Add numbers."""
        return sum(numbers)

    client: TestClient = open_client(AgentPublisher(Starlette(), site=site))
    return client


def post(client: TestClient, path: str, body: object, version: str = "") -> tuple[int, Any]:
    """The status and the answer to a body as it is, or the first thing that a stream tells."""
    headers = {**ANN, "content-type": "application/json", **({"a2a-version": version} if version else {})}
    answer = client.post(path, content=json.dumps(body), headers=headers)
    response = answer.text.removeprefix("data:").partition("\r\n")[0]
    return answer.status_code, json.loads(response)


def complaint(answer: tuple[int, Any], known: tuple[int, ...]) -> object:
    """What is wrong with an answer: an error that is none of those that a caller can be told here."""
    status, told = answer
    error = told.get("error")
    if error is None:
        return None if status == 200 else status
    ours = error["code"] not in known
    return (status, error) if status >= 500 or ours or "raceback" in str(error) else None


RPC = (-32602, -32001, -32002, -32003, -32004, -32005)
HTTP = (400, 404)
BODIES: dict[str, tuple[str, str, list[str], dict[str, Any]]] = {
    "1.0 JSON-RPC": ("/a2a", "1.0", ["SendMessage", "SendStreamingMessage"], {"message": ONE}),
    "0.3 JSON-RPC": ("/a2a", "", ["message/send", "message/stream"], {"message": THREE}),
    "1.0 HTTP+JSON": ("/a2a/message:", "1.0", ["send", "stream"], {"message": ONE}),
    "0.3 HTTP+JSON": ("/a2a/v1/message:", "", ["send", "stream"], {"request": THREE_HTTP}),
}


@pytest.mark.slow
@pytest.mark.parametrize("spoken", BODIES)
def test_an_odd_message_is_answered_or_invalid(client, spoken):
    path, version, methods, said = BODIES[spoken]
    [name] = said
    whole = {**said, "configuration": SETTINGS}
    parts = "content" if name == "request" else "parts"
    bodies = [*cases(whole), *({**whole, name: {**whole[name], parts: [part]}} for part in PARTS), *ODD]
    wrong = []
    for number, body in enumerate(bodies):
        method = methods[number % 2]
        if path == "/a2a":
            call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": body}
            found = complaint(post(client, path, call, version), RPC)
        else:
            found = complaint(post(client, path + method, body, version), HTTP)
        wrong += [(str(body)[:200], found)] if found is not None else []
    assert not wrong


SMALLER: dict[str, tuple[str, dict[str, Any]]] = {
    "GetTask": ("1.0", {"id": T, "historyLength": 1}),
    "CancelTask": ("1.0", {"id": T, "metadata": {}}),
    "SubscribeToTask": ("1.0", {"id": T}),
    "ListTasks": (
        "1.0",
        {
            "contextId": "c",
            "pageSize": 5,
            "pageToken": "AAAA",
            "status": "TASK_STATE_WORKING",
            "historyLength": 1,
            "statusTimestampAfter": "2025-01-01T00:00:00Z",
            "includeArtifacts": True,
        },
    ),
    "ListTaskPushNotificationConfigs": ("1.0", {"taskId": T, "pageSize": 3, "pageToken": "x"}),
    "CreateTaskPushNotificationConfig": ("1.0", {"taskId": T, "url": "https://x.example"}),
    "GetExtendedAgentCard": ("1.0", {}),
    "tasks/get": ("", {"id": T, "historyLength": 1, "metadata": {"a": 1}}),
    "tasks/cancel": ("", {"id": T, "metadata": {"a": 1}}),
    "tasks/resubscribe": ("", {"id": T, "metadata": {"a": 1}}),
    "tasks/pushNotificationConfig/set": ("", {"taskId": T, "pushNotificationConfig": {"url": "https://x.example"}}),
    "agent/getAuthenticatedExtendedCard": ("", {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("method", SMALLER)
def test_an_odd_call_is_answered_or_invalid(client, method):
    version, whole = SMALLER[method]
    wrong = []
    for params in [whole, *cases(whole), *ODD]:
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        found = complaint(post(client, "/a2a", call, version), RPC)
        wrong += [(str(params)[:200], found)] if found is not None else []
    assert not wrong


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", ["/a2a/tasks", f"/a2a/tasks/{T}", f"/a2a/v1/tasks/{T}", f"/a2a/v1/tasks/{T}:subscribe", f"/a2a/tasks/{T}x"]
)
def test_odd_queries_are_answered_or_invalid(client, path):
    headers = {**ANN, **({} if "/v1/" in path else {"a2a-version": "1.0"})}
    post(client, "/a2a/message:send", {"message": ONE}, "1.0")
    names = (
        "historyLength",
        "pageSize",
        "pageToken",
        "contextId",
        "status",
        "statusTimestampAfter",
        "includeArtifacts",
    )
    tokens = ("AAAA", "eyJ0cyI6MSwiaWQiOiJhIn0", "eyJ0cyI6OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTksImlkIjoiYSJ9")
    wrong = []
    for name in (*names, "tenant", "metadata", "strange"):
        for value in [
            *(odd if isinstance(odd, str) else json.dumps(odd) for odd in ODD),
            "Infinity",
            "9" * 50,
            *tokens,
        ]:
            answer = client.get(path, params={name: value}, headers=headers)
            if answer.status_code not in (200, 400, 404):
                wrong.append((name, value[:50], answer.status_code, answer.text[:200]))
    assert not wrong


def test_a_list_of_tasks_in_a_state_that_there_is_not_is_refused_and_not_a_list_of_all(client):
    call = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {"status": "completed"}}
    error = post(client, "/a2a", call, "1.0")[1]["error"]
    assert (error["code"], "one of TASK_STATE_SUBMITTED, TASK_STATE_WORKING" in error["message"]) == (-32602, True)
    at = {**ANN, "a2a-version": "1.0"}
    codes = {
        state: client.get(f"/a2a/tasks?status={state}", headers=at).status_code for state in ("completed", "", "0")
    }
    assert codes == {"completed": 400, "": 200, "0": 200}
    assert client.get("/a2a/tasks?status=TASK_STATE_COMPLETED", headers=at).json()["tasks"] == []


@pytest.mark.parametrize("part", [{"kind": "odd"}, {"kind": "file", "file": {"bytes": 1}}, 1, None, []])
def test_an_odd_part_of_0_3_is_invalid(client, part):
    message = {**THREE, "parts": [part]}
    for method in ("message/send", "message/stream"):
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": message}}
        assert post(client, "/a2a", call)[1]["error"]["code"] == -32602
    if part is not None and not isinstance(part, dict):
        for verb in ("send", "stream"):
            status, answer = post(client, f"/a2a/v1/message:{verb}", {"request": {**THREE_HTTP, "content": [part]}})
            assert (status, answer["error"]["code"]) == (400, 400)


def test_a_method_of_0_3_in_another_version_is_told_so(client):
    call = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": THREE}}
    assert post(client, "/a2a", call, "1.0")[1]["error"]["code"] == -32009
