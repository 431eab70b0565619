"""`AgentClient` reads answers of any kind: what comes of them is a result or CallFailed."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from websockets.sync.server import serve

from awp_publish.client import AgentClient, Answer, CallFailed, doors
from tests.cli.test_hostile_output import hostile_site
from tests.dripping_server import DRIPS, hostile_server
from tests.examples import examples

ODD_NUMBERS = [1e999, -1e999, float("nan"), True, False, -1, 0, 99, 1000, 10**400, 409.5]
STATUSES: list[Any] = [None, "abc", "409", "1e3", {}, [], *ODD_NUMBERS]
EXPECTED = {"409": 409, 409.5: 409}


def status_of(status: object) -> int:
    return EXPECTED.get(status, 0) if isinstance(status, (str, float)) else 0


@pytest.mark.parametrize("status", STATUSES, ids=lambda one: repr(one)[:10])
def test_any_status_of_a_problem_is_read(status):
    problem = {"code": "REFUSED", "status": status, "detail": "No."}
    assert CallFailed("order", problem).status == status_of(status)
    missing = CallFailed("order", {})
    assert (missing.status, missing.code) == (0, "")


@pytest.mark.parametrize("door", doors())
@pytest.mark.parametrize("status", STATUSES, ids=lambda one: repr(one)[:10])
def test_any_status_of_a_problem_is_call_failed_at_each_door(door, status):
    problem = {"code": "REFUSED", "status": status, "detail": "No."}
    with pytest.raises(CallFailed, match="REFUSED") as failed:
        call(door, answers_of(door, problem))
    # The status of the answer itself, where the problem has none.
    expected = status_of(status) or (409 if door in ("woa", "plain") else 0)
    assert failed.value.status == expected


def answers_of(door: str, problem: object) -> object:
    """What a door's answer with a problem is."""
    tool_result = {"result": {"isError": True, "content": [], "_meta": {"awp/problem": problem}}}
    return {
        "woa": problem,
        "plain": problem,
        "mcp": tool_result,
        "mcp-2025-11-25": tool_result,
        "a2a": {
            "result": {
                "task": {"id": "1", "status": {"state": "TASK_STATE_FAILED", "message": {"parts": [{"data": problem}]}}}
            }
        },
        "awp": {"error": {"message": "No.", "details": problem}},
    }[door]


def application(answer: object, status: int = 200, headers: Any = ()) -> Any:
    """An application that gives one answer to everything, over HTTP and over a WebSocket."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept"})
            await receive()
            while (message := await receive())["type"] == "websocket.receive":
                number = json.loads(message["text"])["id"]
                said = {**answer, "id": number} if isinstance(answer, dict) else {"id": number, "result": answer}
                await send({"type": "websocket.send", "text": json.dumps(said)})
            return
        fields = [(b"content-type", b"application/json"), *headers]
        await send({"type": "http.response.start", "status": status, "headers": fields})
        await send({"type": "http.response.body", "body": json.dumps(answer).encode()})

    return app


def call(door: str, answer: object, status: int | None = None, headers: Any = (), **options: Any) -> Answer:
    if status is None:
        status = 409 if door in ("woa", "plain") else 200
    with AgentClient(application(answer, status, headers), door=door, timeout=5, **options) as client:
        return client.send("order", {"a": 1})


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["\ud800", "\x00", "\r\n", "http://[", "//x", "1", "0", "TASK_STATE_COMPLETED", "text", "e30="])
)
WORDS = """
id result error data detail message code status state task artifacts parts text raw metadata headers
_meta awp/headers awp/problem isError content structuredContent type resource blob details output
job_id poll_endpoint problem confirmation token summary retry-after awp-session awp-receipt
awp_content_type awp- content-type protocols endpoint x-woa document mcp a2a x-awp transports rest
base invoke_path remotes url actions supportedInterfaces protocolBinding agent_status
status_endpoint
"""
NAMES = WORDS.split()
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=3), inner, max_size=6)
    ),
    max_leaves=20,
)

# Answers that are nearly right: one of a door's own, with anything in one of its places.
TEMPLATES: list[Any] = [
    {"result": {"structuredContent": 1, "_meta": {"awp/headers": {"awp-session": "s"}}}},
    {"result": {"content": [{"type": "text", "text": "x"}], "isError": True, "_meta": {"awp/problem": {"code": "A"}}}},
    {"result": {"content": [{"type": "resource", "resource": {"blob": "eA=="}}]}},
    {"error": {"code": 1, "message": "m", "data": [{"metadata": {"code": "A", "detail": "d"}}]}},
    {"error": {"message": "m", "details": {"detail": "d", "headers": {"retry_after": "0"}}}},
    {
        "result": {
            "task": {
                "id": "1",
                "status": {"state": "TASK_STATE_COMPLETED", "message": {"parts": [{"data": {}}]}},
                "artifacts": [{"parts": [{"raw": "eA=="}]}],
                "metadata": {"headers": {"awp-receipt": "r"}},
            }
        }
    },
    {"result": {"output": "eA==", "headers": {"awp_content_type": "image/png"}}},
    {"code": "CONFIRMATION_REQUIRED", "status": 428, "detail": "d", "confirmation": {"token": "t", "summary": "s"}},
    {"job_id": "1", "poll_endpoint": "/agents/jobs/1", "result": 1},
    {"job_id": "1", "poll_endpoint": "/agents/jobs/1", "problem": {"code": "A"}, "status": "failed"},
    {
        "protocols": {
            "x-woa": {"endpoint": "/w/{agent_id}", "document": "/.well-known/woa.json"},
            "mcp": {"endpoint": "/m"},
        },
        "actions": [{"id": "a", "endpoint": "/agents/actions/a"}],
        "transports": {"rest": {"base": "http://a.example", "invoke_path": "/x"}},
    },
]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, inner in items for place in places(inner, (*path, key)))]


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    made = dict(value) if isinstance(value, dict) else list(value)
    made[path[0]] = replaced(value[path[0]], path[1:], new)
    return made


@st.composite
def nearly_right(draw: st.DrawFn) -> Any:
    template = draw(st.sampled_from(TEMPLATES))
    return replaced(template, draw(st.sampled_from(places(template))), draw(anything))


header_values = st.binary(max_size=10).filter(lambda one: not set(one) & set(b"\r\n\0"))
headers = st.lists(
    st.tuples(
        st.sampled_from([b"awp-session", b"awp-receipt", b"retry-after", b"allow", b"content-type"]), header_values
    ),
    max_size=2,
)


@pytest.mark.parametrize("door", [*doors(), None])
@settings(deadline=None, max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow])
@given(
    answer=anything | nearly_right(),
    status=st.sampled_from([200, 202, 400, 405, 409, 428, 500]),
    headers=headers,
)
def test_any_json_is_a_result_or_call_failed(door, answer, status, headers):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("awp_publish.client.time.sleep", lambda _: None)
        with (
            suppress(CallFailed, StillRunning),
            AgentClient(application(answer, status, headers), door=door, timeout=30, confirm=True) as client,
            still_running(),
        ):
            client.timeout = 0  # of polling: a job may say for ever that it is running
            client.send("order", {"a": 1})
            client.send("order", {"a": 1})


@pytest.mark.parametrize("door", ["woa", "plain", "mcp", None])
def test_any_json_over_the_network_is_a_result_or_call_failed(door, monkeypatch):
    """Addresses, sessions and tokens of an answer are sent in the next request, where not every character may stand."""
    monkeypatch.setattr("awp_publish.client.time.sleep", lambda _: None)
    current: list[Any] = [None]

    @settings(deadline=None, max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow])
    @given(answer=anything | nearly_right(), status=st.sampled_from(["200 OK", "405 No", "428 Ask"]))
    def check(answer: Any, status: str) -> None:
        current[0] = (status, {"Content-Type": "application/json"}, json.dumps(answer).encode())
        with suppress(CallFailed, StillRunning), AgentClient(url, door=door, confirm=True) as client, still_running():
            client.timeout = 0
            client.send("order", {"a": 1})
            client.send("order", {"a": 1})

    with hostile_site(lambda _: current[0]) as url:
        check()


class StillRunning(Exception):
    """A job that has not ended in time."""


@contextmanager
def still_running() -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        if "has not ended" in str(error):
            raise StillRunning from error
        raise


@pytest.mark.parametrize("place", ["@HOST/x", ".HOST/x", ":80@HOST/x", "//HOST/x", "http://HOST/x", "\\\\HOST/x"])
@pytest.mark.parametrize("kind", ["job", "invoke", "mcp"])
def test_no_path_in_an_answer_becomes_another_host(place, kind):
    """WoA section 8.2: the token of the caller goes to the target alone."""
    visited: list[str] = []
    asked: list[str] = []

    def other(path: str) -> tuple[str, dict[str, str], bytes]:
        visited.append(path)
        return "200 OK", {"Content-Type": "application/json"}, b'{"result": 1}'

    with hostile_site(other) as elsewhere:
        address = place.replace("HOST", elsewhere.removeprefix("http://"))

        def answer(path: str) -> tuple[str, dict[str, str], bytes]:
            asked.append(path)
            said: dict[str, object] = {"job_id": "1", "poll_endpoint": address}
            if path == "/.well-known/woa.json" and kind == "invoke":
                said = {"transports": {"rest": {"base": "", "invoke_path": address}}}
            if path == "/agent.json":
                said = {"protocols": {"mcp": {"endpoint": address}}} if kind == "mcp" else {}
            elif len(asked) > 8:
                said = {"result": 2}
            return "200 OK", {"Content-Type": "application/json"}, json.dumps(said).encode()

        door: str = "mcp" if kind == "mcp" else "woa"
        with hostile_site(answer) as url, AgentClient(url, door=door, token="secret", timeout=10) as client:
            client.timeout = 0
            with suppress(CallFailed, TimeoutError):
                client.call("order")
    assert visited == []
    assert asked


def test_a_task_that_does_not_end_in_time_is_given_up_with_its_name():
    working = {"result": {"task": {"id": "1", "status": {"state": "TASK_STATE_WORKING"}}}}
    with AgentClient(application(working), door="a2a") as client:
        client.timeout = 0
        with pytest.raises(TimeoutError, match="order has not ended within 0 seconds"):
            client.call("order")


BODIES = [b"", b"\xff", b"{", b"[" * 100_000, b'"\\ud800"', b"data: {", b"null", b"NaN"]
BODIES += [b'{"result": ' + b"1" * 5000 + b"}"]


@pytest.mark.parametrize("door", ["woa", "plain", "mcp", "a2a"])
def test_any_bytes_over_the_network_are_a_result_or_call_failed(door):
    current: list[Any] = [None]
    with hostile_site(lambda _: current[0]) as url:
        for body in BODIES:
            for kind in ("application/json", "text/event-stream", "application/problem+json", "a/b"):
                current[0] = ("200 OK", {"Content-Type": kind}, body)
                with AgentClient(url, door=door) as client, suppress(CallFailed):
                    client.call("order")


TEXTS = ["", "{", "[]", "null", '{"id": "ID"}', '"x"', '{"id": "ID", "result": 5}', "[" * 100_000]
TEXTS += ['{"id": "", "error": {"code": "INVALID_REQUEST", "message": "Invalid JSON."}}']  # to an unreadable message


@pytest.mark.parametrize("text", TEXTS, ids=lambda one: one[:20])
def test_any_message_of_a_websocket_is_a_result_or_call_failed(text):
    def answer(socket: Any) -> None:
        for message in socket:
            socket.send(text.replace("ID", json.loads(message)["id"]))

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept"})
            await receive()
            while (message := await receive())["type"] == "websocket.receive":
                said = text.replace("ID", json.loads(message["text"])["id"])
                await send({"type": "websocket.send", **({"text": said} if said else {"bytes": b"{}"})})

    with serve(answer, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        for target in (app, f"http://127.0.0.1:{server.socket.getsockname()[1]}"):
            with AgentClient(target, door="awp", timeout=30) as client:
                client._documents["/agent.json"] = {}  # it names no addresses
                with pytest.raises(CallFailed):
                    client.call("order")
        server.shutdown()
        thread.join()


def test_messages_for_nobody_do_not_stretch_the_deadline_of_a_websocket():
    sent = 0

    def answer(socket: Any) -> None:
        nonlocal sent
        for _ in socket:
            while True:
                socket.send('{"id": "another"}')
                sent += 1
                over.wait(0.005)

    over = threading.Event()
    with serve(answer, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        port = server.socket.getsockname()[1]
        with AgentClient(f"http://127.0.0.1:{port}", door="awp", timeout=0.2) as client:
            client._documents["/agent.json"] = {}  # it names no addresses
            with pytest.raises(TimeoutError):
                client.call("order")
        over.set()
        server.shutdown()
        thread.join()
    assert sent < 10_000


def test_a_handshake_of_a_websocket_has_the_same_deadline():
    for drip in DRIPS:
        with hostile_server(drip) as server, AgentClient(server.url, door="awp", timeout=0.2) as client:
            client._documents["/agent.json"] = {}  # it names no addresses
            with pytest.raises((TimeoutError, CallFailed)):
                client.call("order")
