"""What calls of a test client do not show: answers in parts, callers who leave, prefixes, several processes."""

import asyncio
import os
import queue
import threading
from collections.abc import AsyncIterator, Generator, Iterator

import pytest
from awp_publish_django.answering import response_of_messages, response_of_stream
from awp_publish_django.gateway import scope_of
from awp_publish_django.inner import make_inner_request
from awp_publish_django.portal import Conversation, Portal, ThreadCall
from awp_publish_django.project import DjangoProject
from django.http import StreamingHttpResponse
from django.test import Client, RequestFactory, override_settings

from awp_publish.http.exchange import Message
from awp_publish.http.running import StartFailed

PARTS: list[Message] = [
    {
        "type": "http.response.start",
        "status": 200,
        "headers": [(b"vary", b"A"), (b"vary", b"B"), (b"set-cookie", b"a=1")],
    },
    {"type": "http.response.body", "body": b"one ", "more_body": True},
    {"type": "http.response.body", "body": b"two"},
]


@pytest.fixture
def portal() -> Iterator[Portal]:
    made = Portal(DjangoProject())
    yield made
    made.close()


def test_an_answer_in_parts_is_passed_on_as_it_comes(portal):
    conversation = Conversation()

    async def app(receive, send):
        for message in PARTS:
            await send(message)

    response = response_of_messages(conversation.messages(app, portal.loop()))
    assert isinstance(response, StreamingHttpResponse)
    assert (response["vary"], response.cookies["a"].value) == ("A, B", "1")
    assert b"".join(response) == b"one two"


async def test_an_answer_in_parts_is_passed_on_under_asgi():
    async def messages() -> AsyncIterator[Message]:
        for message in PARTS:
            yield message

    response = await response_of_stream(messages())
    assert isinstance(response, StreamingHttpResponse)
    assert b"".join([part async for part in response]) == b"one two"


def test_a_client_that_stops_reading_has_left(portal):
    conversation, told = Conversation(b"a"), queue.SimpleQueue[Message]()

    async def app(receive, send):
        told.put(await receive())
        await send(PARTS[0])
        told.put(await receive())

    messages = conversation.messages(app, portal.loop())
    next(messages)
    assert isinstance(messages, Generator)
    messages.close()
    assert told.get(timeout=30) == {"type": "http.request", "body": b"a", "more_body": False}
    assert told.get(timeout=30) == {"type": "http.disconnect"}


def test_work_left_by_a_dead_thread_is_done_in_another(portal):
    conversation, done = Conversation(), queue.SimpleQueue[tuple[bool, int]]()

    async def app(receive, send):
        await send(PARTS[0])
        for has_left in (False, True):
            if has_left:
                await receive()
                await receive()
            done.put((has_left, await conversation.in_thread(threading.get_ident)))
            await send(PARTS[1])

    messages = conversation.messages(app, portal.loop())
    next(messages)
    next(messages)
    assert isinstance(messages, Generator)
    messages.close()
    assert done.get(timeout=30) == (False, threading.get_ident())
    has_left, thread = done.get(timeout=30)
    assert has_left
    assert thread != threading.get_ident()


async def test_work_that_is_cancelled_before_it_begins_is_not_done():
    answer, done = asyncio.get_running_loop().create_future(), []
    answer.cancel()
    ThreadCall(lambda: done.append("late"), answer, []).run()
    assert done == []


def test_headers_of_the_connection_stay_with_the_server():
    headers = [(b"connection", b"keep-alive"), (b"transfer-encoding", b"chunked"), (b"x-own", b"a")]
    response = response_of_messages(iter([{**PARTS[0], "headers": headers}, PARTS[2]]))
    assert dict(response.items()) == {"x-own": "a"}


def test_failures_on_the_loop_and_in_the_thread_are_raised(portal):
    for where in ("loop", "thread"):
        conversation = Conversation()

        async def app(receive, send, where=where, conversation=conversation):
            if where == "thread":
                await conversation.in_thread(lambda: 1 // 0)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            list(conversation.messages(app, portal.loop()))


def test_an_application_that_does_not_start_says_so():
    async def app(scope, receive, send):
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no store"})

    with pytest.raises(StartFailed, match="no store"):
        Portal(app).loop()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_process_has_a_loop_of_its_own(portal):
    first = portal.loop()
    child = os.fork()
    if child == 0:
        os._exit(0 if portal.loop() is not first else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert portal.loop() is first


def test_a_project_below_a_prefix_answers_below_it():
    with override_settings(FORCE_SCRIPT_NAME="/sub"):
        answer = Client().get("/agent.json")
        assert answer.status_code == 200
        given = '{"input": {"first": 1, "second": 2}}'
        called = Client().post("/agents/add/invoke", given, content_type="application/json")
    assert called.content == b"3"


def test_an_inner_request_is_the_callers_but_for_what_it_asks():
    outer = RequestFactory().post("/agents/x/invoke?a=1", {"b": 2}, headers={"cookie": "c=3", "x-own": "kept"})
    outer.META["REMOTE_ADDR"] = "203.0.113.9"
    outer.tenant = "north"  # type: ignore[attr-defined]
    assert (outer.GET["a"], outer.POST["b"], outer.COOKIES["c"]) == ("1", "2", "3")
    scope = {**scope_of(outer), "method": "PUT", "path": "/ä/b", "query_string": b"q=4"}
    scope["headers"] = [*scope["headers"], (b"content-type", b"application/json")]
    inner = make_inner_request(outer, scope, b"{}")
    assert (inner.method, inner.path_info, inner.GET.dict(), inner.body) == ("PUT", "/ä/b", {"q": "4"}, b"{}")
    assert (inner.headers["X-Own"], inner.COOKIES["c"], inner.META["REMOTE_ADDR"]) == ("kept", "3", "203.0.113.9")
    assert vars(inner)["tenant"] == "north"
