"""What `AgentClient` sends, request by request, and what it makes of each answer."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from awp_publish.client import AgentClient, CallFailed

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
    "what is like a job": Exchange([{"job_id": "j"}], [CALL], {"job_id": "j"}),
    "another path": Exchange(
        [1],
        ['POST /in/order {"input": {}}'],
        1,
        documents={"/.well-known/woa.json": woa_at("https://elsewhere.example")},
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


@pytest.mark.parametrize("exchange", EXCHANGES.values(), ids=EXCHANGES)
def test_what_is_sent_and_what_comes_of_it(exchange):
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
            sent.append(" ".join(filter(None, [scope["method"], scope["path"], body, *beside])))
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
        assert (result, sent, answers) == (exchange.result, exchange.sent, [])
        assert (client.session, client.receipts) == exchange.kept


USUAL = {"host", "accept", "content-type", "content-length", "user-agent"}
