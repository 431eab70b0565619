"""What `AgentClient` sends, request by request, and what it makes of each answer."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from websockets.sync.server import serve

from awp_publish.calls.wire import WireCall, WireResponse
from awp_publish.client import AgentClient, CallFailed, doors

JOB = {"job_id": "j", "poll_endpoint": "https://elsewhere.example/agents/jobs/j?x=1"}
RUNNING = {"job_id": "j", "status": "running"}
QUESTION = {"code": "CONFIRMATION_REQUIRED", "status": 428, "confirmation": {"token": "t-1", "summary": "Order?"}}
LIMITED = {"code": "RATE_LIMITED", "status": 429}


def woa_at(base: str, path: str = "/in/{agent_id}") -> dict[str, Any]:
    return {"woa_version": "1", "transports": {"rest": {"base": base, "invoke_path": path}}}


@dataclass(frozen=True)
class Exchange:
    """One call: the answers to its requests, what these are, and its result or the code of its failure."""

    answers: Sequence[Any]
    sent: Sequence[str]
    result: Any
    options: Mapping[str, Any] = field(default_factory=dict)
    call: Mapping[str, Any] = field(default_factory=dict)
    documents: Mapping[str, Any] = field(default_factory=dict)
    session: str | None = None
    kept: tuple[str | None, dict[str, str]] = (None, {})
    """The session and the receipts that it has afterwards."""


UNREADABLE: list[Any] = [{}, {"status": ""}, [], 7]
CALL = 'POST /agents/order/invoke {"input": {}}'
POLL = "GET /agents/jobs/j"
EXCHANGES = {
    "an output": Exchange(
        [{"a": 1}], ['POST /agents/order/invoke {"input": {"x": 1}}'], {"a": 1}, call={"inputs": {"x": 1}}
    ),
    "an operation": Exchange(
        [1], ['POST /agents/order/invoke {"operation": "gift", "input": {}}'], 1, call={"action": "order.gift"}
    ),
    "headers": Exchange(
        [1],
        [f"{CALL} authorization=Bearer t idempotency-key=k x-shop=north"],
        1,
        options={"token": "t", "headers": {"X-Shop": "north"}},
        call={"key": "k"},
    ),
    "a session and a receipt": Exchange(
        [(200, {"AWP-Session": "s-2", "AWP-Receipt": "r-1"}, 1)],
        [f"{CALL} awp-session=s-1"],
        1,
        session="s-1",
        kept=("s-2", {"order": "r-1"}),
    ),
    "a session that no header can carry": Exchange(
        [(200, {"AWP-Session": "sé", "AWP-Receipt": ""}, 1)],
        [f"{CALL} awp-session=s-1"],
        1,
        session="s-1",
        kept=("s-1", {}),
    ),
    "an unknown session": Exchange(
        [(404, {}, {"code": "SESSION_UNKNOWN", "status": 404}), 1],
        [f"{CALL} awp-session=s-1", CALL],
        1,
        session="s-1",
    ),
    "an unknown session where none was sent": Exchange(
        [(404, {}, {"code": "SESSION_UNKNOWN", "status": 404})], [CALL], "SESSION_UNKNOWN"
    ),
    "a question": Exchange(
        [(428, {}, QUESTION), 1],
        [CALL, f"{CALL} awp-confirmation=t-1"],
        1,
        options={"confirm": lambda summary: summary == "Order?"},
    ),
    "a question that is declined": Exchange(
        [(428, {}, QUESTION)], [CALL], "CONFIRMATION_REQUIRED", options={"confirm": False}
    ),
    "a question that nobody can answer": Exchange([(428, {}, QUESTION)], [CALL], "CONFIRMATION_REQUIRED"),
    "a question that is asked twice": Exchange(
        [(428, {}, QUESTION), (428, {}, QUESTION)],
        [CALL, f"{CALL} awp-confirmation=t-1"],
        "CONFIRMATION_REQUIRED",
        options={"confirm": True},
    ),
    "a question with a token that no header can carry": Exchange(
        [(428, {}, {**QUESTION, "confirmation": {"token": "t\n"}})],
        [CALL],
        "CONFIRMATION_REQUIRED",
        options={"confirm": True},
    ),
    "a limit": Exchange([(429, {"Retry-After": "0"}, LIMITED), 1], [CALL] * 2, 1),
    **{
        f"{code}, for a moment": Exchange([(503, {"Retry-After": "0"}, {"code": code}), 1], [CALL] * 2, 1)
        for code in ("TEMPORARILY_UNAVAILABLE", "STORE_UNAVAILABLE", "HANDLER_UNAVAILABLE")
    },
    **{
        f"a token that is {code}": Exchange(
            [(409, {}, {**QUESTION, "status": 409, "code": code}), 1],
            [CALL, f"{CALL} awp-confirmation=t-1"],
            1,
            options={"confirm": True},
        )
        for code in ("CONFIRMATION_EXPIRED", "CONFIRMATION_STALE", "CONFIRMATION_SPENT")
    },
    "a question of another refusal": Exchange(
        [(409, {}, {**QUESTION, "status": 409, "code": "REFUSED"})], [CALL], "REFUSED", options={"confirm": True}
    ),
    "a question without a summary": Exchange(
        [(428, {}, {**QUESTION, "confirmation": {"token": "t-1"}}), 1],
        [CALL, f"{CALL} awp-confirmation=t-1"],
        1,
        options={"confirm": lambda summary: summary == ""},
    ),
    "a question that is no object": Exchange(
        [(428, {}, {**QUESTION, "confirmation": "t-1"})], [CALL], "CONFIRMATION_REQUIRED", options={"confirm": True}
    ),
    "a question, then an unknown session, then a limit": Exchange(
        [
            (428, {}, QUESTION),
            (404, {}, {"code": "SESSION_UNKNOWN", "status": 404}),
            (429, {"Retry-After": "0"}, LIMITED),
            1,
        ],
        [
            f"{CALL} awp-session=s-1",
            f"{CALL} awp-confirmation=t-1 awp-session=s-1",
            f"{CALL} awp-confirmation=t-1",
            f"{CALL} awp-confirmation=t-1",
        ],
        1,
        options={"confirm": True},
        session="s-1",
    ),
    "a limit twice": Exchange([(429, {"Retry-After": "0"}, LIMITED)] * 2, [CALL] * 2, "RATE_LIMITED"),
    **{
        f"a limit of {pause!r}": Exchange([(429, {"Retry-After": pause}, LIMITED)], [CALL], "RATE_LIMITED")
        for pause in ("3600", "soon", "")
    },
    "another refusal": Exchange([(409, {"Retry-After": "0"}, {"code": "REFUSED"})], [CALL], "REFUSED"),
    "a job": Exchange([(202, {}, JOB), RUNNING, {"result": 7}], [CALL, POLL, POLL], 7),
    "a job below another path": Exchange(
        [(202, {}, {**JOB, "poll_endpoint": "/shop/agents/jobs/j"}), {"result": None}],
        [CALL, POLL],
        None,
    ),
    "a job that fails": Exchange([(202, {}, JOB), {"problem": {"code": "REFUSED"}}], [CALL, POLL], "REFUSED"),
    "a job that is gone": Exchange([(202, {}, JOB), (404, {}, {"code": "UNKNOWN_JOB"})], [CALL, POLL], "UNKNOWN_JOB"),
    **{
        f"a job that says {json.dumps(job)}": Exchange([(202, {}, JOB), job], [CALL, POLL], "UNREADABLE_ANSWER")
        for job in UNREADABLE
    },
    "a job that cannot be read": Exchange([(202, {}, JOB), (400, {}, {"code": "BAD"})], [CALL, POLL], "BAD"),
    **{
        f"what is like a job by its {name}": Exchange([{name: "j"}], [CALL], {name: "j"})
        for name in ("job_id", "poll_endpoint")
    },
    "a job whose result is nothing": Exchange([(202, {}, JOB), {"result": None}], [CALL, POLL], None),
    "another path": Exchange(
        [1],
        ['POST /in/order {"input": {}}'],
        1,
        documents={"/.well-known/woa.json": woa_at("https://elsewhere.example")},
    ),
    "a path with a query": Exchange(
        [1],
        ['POST /in/order?k=1 {"input": {}}'],
        1,
        documents={"/.well-known/woa.json": woa_at("https://elsewhere.example", "/in/{agent_id}?k=1")},
    ),
    "a document at no address": Exchange(
        [1], [CALL], 1, documents={"/agent.json": {"protocols": {"woa": {"document": "http://["}}}}
    ),
    "a path with a base of its own": Exchange(
        [1],
        ['POST /in/order {"input": {}}'],
        1,
        documents={
            "/agent.json": {"protocols": {"woa": {"document": "https://shop.example/shop/.well-known/woa.json"}}},
            "/.well-known/woa.json": woa_at("https://shop.example/shop"),
        },
    ),
}


@pytest.mark.parametrize("name", EXCHANGES)
def test_exchanges_of_the_client_are_as_in_the_table(name):
    carry_out(name, EXCHANGES[name])


def address_of(scope: Any) -> str:
    query = scope["query_string"].decode()
    return f"{scope['path']}?{query}" if query else str(scope["path"])


def carry_out(name: str, exchange: Exchange) -> None:
    answers, sent, called = list(exchange.answers), list[str](), False

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        status, headers, value = 404, dict[str, str](), exchange.documents.get(scope["path"])
        if value is not None:
            status = 200
        elif called and (scope["method"] == "POST" or "/jobs/" in scope["path"]):
            body = (await receive())["body"].decode()
            fields = {name.decode(): text.decode() for name, text in scope["headers"]}
            beside = [f"{name}={fields[name]}" for name in sorted(fields) if name not in USUAL]
            sent.append(" ".join(filter(None, [scope["method"], address_of(scope), body, *beside])))
            answer = answers.pop(0)
            status, headers, value = answer if isinstance(answer, tuple) else (200, {}, answer)
        encoded = [(name.lower().encode(), text.encode("latin-1")) for name, text in headers.items()]
        kind = (b"content-type", b"application/json" if status < 400 else b"application/problem+json")
        await send({"type": "http.response.start", "status": status, "headers": [kind, *encoded]})
        await send({"type": "http.response.body", "body": json.dumps(value).encode()})

    call = {"action": "order", "inputs": {}, **exchange.call}
    with AgentClient(app, door="woa", timeout=20, **exchange.options) as client:
        client.session, called = exchange.session, True
        try:
            result = client.send(**call).output
        except CallFailed as failed:
            result = failed.code
        assert (result, sent, answers) == (exchange.result, exchange.sent, []), name
        assert (client.session, client.receipts) == exchange.kept, name


USUAL = {"host", "accept", "content-type", "content-length", "user-agent"}


PLAIN = WireCall(action="order.gift", inputs={"a": 1}, message_id="m")
FULL = WireCall(
    action="order",
    inputs={"a": [1]},
    key="k",
    confirmation="t",
    receipts=("r-1", "r-2"),
    session="s",
    message_id="m",
)
REFUSED = {"status": 409, "code": "REFUSED", "detail": "No."}
RECEIPT = {"headers": {"awp-receipt": "r-1"}}


def task(state: str, *parts: object) -> dict[str, Any]:
    message = {"parts": list(parts)}
    return {"result": {"task": {"id": "7", "status": {"state": state, "message": message}, "artifacts": [message]}}}


ANSWERS: list[tuple[str, int, object]] = [
    ("woa", 200, {"a": 1}),
    ("woa", 409, REFUSED),
    ("woa", 502, "Bad gateway"),
    ("plain", 200, {"a": 1}),
    ("plain", 404, REFUSED),
    *[
        (door, status, answer)
        for door in ("mcp", "mcp-2025-11-25")
        for status, answer in (
            (200, {"result": {"structuredContent": {"result": 5}, "content": []}}),
            (200, {"result": {"structuredContent": {"a": 5}, "_meta": {"awp/headers": {"awp-receipt": "r"}}}}),
            (200, {"result": {"content": [{"type": "text", "text": "Found."}]}}),
            (200, {"result": {"isError": True, "content": [{"type": "text", "text": "Lost."}]}}),
            (200, {"result": {"isError": True, "content": [], "_meta": {"awp/problem": REFUSED}}}),
            (200, {"error": {"code": -32602, "message": "Unknown tool"}}),
            (401, REFUSED),
        )
    ],
    ("a2a", 200, task("TASK_STATE_COMPLETED", {"data": {"a": 1}})),
    ("a2a", 200, task("TASK_STATE_COMPLETED", {"text": "Found."})),
    ("a2a", 200, task("TASK_STATE_FAILED", {"data": REFUSED})),
    ("a2a", 200, task("TASK_STATE_INPUT_REQUIRED", {"data": REFUSED})),
    ("a2a", 200, task("TASK_STATE_WORKING", {"text": "Wait."})),
    ("a2a", 200, {"error": {"code": -32602, "message": "No skill"}}),
    ("awp", 101, {"result": {"output": 3, **RECEIPT}}),
    ("awp", 101, {"error": {"message": "No.", "details": {**REFUSED, **RECEIPT}}}),
    ("awp", 101, {"error": {"message": "No."}}),
    ("awp", 101, {"error": {"message": "No.", "details": {"code": "X"}}}),
    ("awp", 403, REFUSED),
]


def test_each_wire_writes_a_call_and_reads_its_answers(request):
    """Run with --golden to write the file anew, then read the change."""
    lines = []
    for wire in doors().values():
        lines += [f"{wire.name} sends {wire.write(call, wire.path)}" for call in (PLAIN, FULL)]
    for name, status, answer in ANSWERS:
        lines.append(f"{name} reads {status} {json.dumps(answer)}")
        wire = doors()[name]
        response = WireResponse(status, {"content-type": "application/json"}, json.dumps(answer).encode())
        try:
            lines.append(f"    {wire.decode(FULL, wire.write(FULL, wire.path), response)}")
        except CallFailed as failed:
            lines.append(f"    {failed.problem} {dict(failed.headers)}")
    path = Path(__file__).parent / "wires.txt"
    text = "\n".join(lines) + "\n"
    if request.config.getoption("--golden"):
        path.write_text(text)
    assert text == path.read_text()


def test_an_input_that_cannot_be_sent_is_the_callers_mistake():
    async def nowhere(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    with AgentClient(nowhere, door="woa") as client, pytest.raises(TypeError):
        client.call("find", {"q": object()})


@pytest.mark.parametrize(("host", "is_refused"), [("shop.localhost", False), ("shop.example", True), ("shop", False)])
def test_names_that_say_that_they_are_private_may_be(host, is_refused, monkeypatch):
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: [(2, 1, 6, "", ("127.0.0.1", 1))])
    with AgentClient(f"http://{host}:1", door="woa") as client, pytest.raises((CallFailed, OSError)) as failed:
        client.call("order")
    assert (getattr(failed.value, "code", "") == "PRIVATE_ADDRESS") is is_refused


def test_a_websocket_that_is_refused_says_why():
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            headers = [(b"content-type", b"application/problem+json")]
            await send({"type": "websocket.http.response.start", "status": 409, "headers": headers})
            await send({"type": "websocket.http.response.body", "body": json.dumps(REFUSED).encode()})

    with AgentClient(app, door="awp") as client:
        client._documents["/agent.json"] = {}  # it names no addresses
        with pytest.raises(CallFailed) as failed:
            client.call("order")
    assert (failed.value.code, failed.value.status) == ("REFUSED", 409)


DONE = {"result": {"output": 5}}
ERROR = {"error": {"message": "No.", "details": REFUSED}}
FRAMES: dict[str, tuple[list[list[object]], object, int]] = {
    "an output": ([[{"id": "1"}], [{"id": "2", **DONE}]], 5, 2),
    "other messages before it": ([[{"id": "1"}], [{"type": "event"}, {"id": "3"}, {"id": "2", **DONE}]], 5, 2),
    "a handshake that fails": ([[{"id": "1", **ERROR}], []], "REFUSED", 1),
    "a call that fails": ([[{"id": "1"}], [{"id": "2", **ERROR}]], "REFUSED", 2),
    "a connection that is closed": ([], "The connection was closed", 0),
}


@pytest.mark.parametrize("name", FRAMES)
def test_frames_at_a_websocket(name):
    answers, result, count = FRAMES[name]
    heard: list[str] = []

    def talk(socket: Any) -> None:
        for frames in answers:
            heard.append(json.loads(socket.recv())["method"])
            for frame in frames:
                socket.send(json.dumps(frame))
        socket.close()

    with serve(talk, "127.0.0.1", 0) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        with AgentClient(f"http://127.0.0.1:{server.socket.getsockname()[1]}", door="awp", timeout=20) as client:
            client._documents["/agent.json"] = {}  # it names no addresses
            try:
                told = client.call("order")
            except CallFailed as failed:
                told = failed.code or str(failed)
        server.shutdown()
        thread.join()
    assert str(result) in str(told)
    assert heard == ["awp.hello", "skills.invoke"][:count]
