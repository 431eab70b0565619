"""Whatever a site answers, `AgentClient` returns an answer or raises CallFailed, and nothing else."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from awp_publish.client import AgentClient, CallFailed, doors
from tests.examples import examples

NAMES = [
    "result",
    "error",
    "code",
    "status",
    "detail",
    "data",
    "metadata",
    "parts",
    "text",
    "task",
    "id",
    "state",
    "artifacts",
    "content",
    "structuredContent",
    "isError",
    "type",
    "blob",
    "_meta",
    "awp/headers",
    "confirmation",
    "token",
    "job_id",
    "poll_endpoint",
    "output",
    "headers",
    "details",
]
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=12,
)


def site_that_answers(status: int, body: Any, kind: str = "application/json") -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.accept"})
            while (message := await receive())["type"] == "websocket.receive":
                asked = json.loads(message["text"])
                answer = {**body, "id": asked["id"]} if isinstance(body, dict) else {"id": asked["id"], "result": body}
                await send({"type": "websocket.send", "text": json.dumps(answer)})
            return
        if scope["type"] != "http":
            return
        is_document = scope["method"] == "GET"
        await send(
            {
                "type": "http.response.start",
                "status": 404 if is_document else status,
                "headers": [(b"content-type", kind.encode())],
            }
        )
        await send({"type": "http.response.body", "body": b"" if is_document else json.dumps(body).encode()})

    return app


def call(app: Any, door: Any) -> Any:
    with AgentClient(app, door=door, timeout=5.0) as client:
        return client.call("find", {})


@settings(max_examples=examples(150), deadline=None)
@given(
    status=st.sampled_from([200, 202, 400, 404, 409, 428, 500]), body=ANYTHING, door=st.sampled_from(sorted(doors()))
)
def test_an_answer_of_any_shape_is_an_answer_or_a_failed_call(status, body, door):
    with suppress(CallFailed):
        call(site_that_answers(status, body), door)


def test_what_cannot_be_sent_is_the_callers_mistake():
    with AgentClient(site_that_answers(200, {}), door="woa") as client, pytest.raises(TypeError):
        client.call("find", {"q": object()})
