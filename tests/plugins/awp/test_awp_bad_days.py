"""The AWP door on bad days: floods, giants, clients that do not read, connections that drop. Nothing is left behind."""

import asyncio
import gc
import time
import weakref
from contextlib import suppress
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route
from starlette.websockets import WebSocketDisconnect

from awp_publish import AgentPublisher, Awp
from awp_publish.http import sockets, tasks
from awp_publish.http.running import running
from tests.client import TestClient
from tests.plugins.awp.awp_client import AwpClient
from tests.plugins.awp.awp_site import make_site, page, publish
from tests.plugins.awp.awp_socket import Socket, connected


@pytest.fixture
def client(open_client) -> TestClient:
    return open_client(publish())


# --- Too much ---


def test_too_many_messages_are_told_when_to_come_back(open_client):
    client = open_client(publish(make_site(plugins=[Awp(messages_per_second=5)])))
    with AwpClient.greeted(client) as caller:
        errors = [answer["error"] for _ in range(30) if "error" in (answer := caller.ask("session.list"))]
    assert len(errors) >= 10
    assert {error["code"] for error in errors} == {"RATE_LIMITED"}
    assert all(error["details"]["retry_after_ms"] >= 1 for error in errors)


@pytest.mark.parametrize(
    "say", [lambda caller: caller.say("session.list"), lambda caller: caller.socket.send_text("{")]
)
def test_a_flood_is_left(open_client, monkeypatch, say):
    monkeypatch.setattr(sockets, "MAX_REFUSED", 5)
    client = open_client(publish(make_site(plugins=[Awp(messages_per_second=1)])))
    with AwpClient.greeted(client) as caller:
        for _ in range(10):
            say(caller)
        with pytest.raises(WebSocketDisconnect) as left:
            [caller.hear() for _ in range(10)]
    assert left.value.code == 1008


def test_a_giant_is_told_the_limit_and_left(client):
    for frame in ('{"id": "a", "x": "' + "x" * 2_000_000 + '"}', b"\x00" * 2_000_000):
        with AwpClient.greeted(client) as caller:
            if isinstance(frame, str):
                caller.socket.send_text(frame)
                error = caller.hear()["error"]
                assert (error["code"], error["details"]) == ("INVALID_REQUEST", {"max_bytes": 1_048_576})
            else:
                caller.socket.send_bytes(frame)
                caller.socket.receive_bytes()
            with pytest.raises(WebSocketDisconnect) as left:
                caller.hear()
            assert left.value.code == 1009


async def test_no_more_is_read_than_is_answered():
    """A client sends and sends, and never reads: only so much is taken in."""
    app = publish(make_site(plugins=[Awp(messages_per_second=10_000)]))
    async with running(app), connected(app) as socket:
        socket.reads.clear()
        for number in range(5 * sockets.MAX_PENDING):
            socket.say("session.list", f"r{number}")
        for _ in range(1000):
            await asyncio.sleep(0)
        assert socket._in.qsize() > 3 * sockets.MAX_PENDING
        socket.reads.set()
        assert "result" in await socket.hear(f"r{5 * sockets.MAX_PENDING - 1}")


async def test_a_client_that_does_not_read_is_left(monkeypatch):
    app = publish()
    async with running(app):
        socket = Socket(app)
        task = asyncio.create_task(socket.run())
        socket.say("awp.hello", "hello")
        await socket.hear("hello")
        monkeypatch.setattr(sockets, "CLIENT_TIMEOUT", 0.05)
        socket.reads.clear()
        socket.say("session.list")
        async with asyncio.timeout(50):
            await task


# --- Silence ---


def test_a_client_without_a_handshake_is_left(client, monkeypatch):
    monkeypatch.setattr(sockets, "CLIENT_TIMEOUT", 0.05)
    with AwpClient.open(client) as caller, pytest.raises(WebSocketDisconnect) as left:
        caller.hear()
    assert left.value.code == 1008


def test_a_client_that_says_everything_but_its_handshake_is_left_too(client, monkeypatch):
    monkeypatch.setattr(sockets, "CLIENT_TIMEOUT", 0.3)

    def talk(caller: AwpClient) -> None:
        for _ in range(200):
            assert "error" in caller.ask("session.list")
            time.sleep(0.05)

    with AwpClient.open(client) as caller, pytest.raises(WebSocketDisconnect) as left:
        talk(caller)
    assert left.value.code == 1008


def test_a_silent_client_is_left(open_client, monkeypatch):
    monkeypatch.setattr("awp_publish.plugins.awp.sessions.IDLE_SECONDS", 0.2)
    client = open_client(publish(make_site()))
    with AwpClient.greeted(client) as caller, pytest.raises(WebSocketDisconnect) as left:
        caller.hear()
    assert left.value.code == 1001


@pytest.mark.slow
async def test_a_client_that_waits_for_a_slow_page_is_not_idle(monkeypatch):
    monkeypatch.setattr("awp_publish.plugins.awp.sessions.IDLE_SECONDS", 2.0)
    go = asyncio.Event()

    async def slow(request: Request) -> HTMLResponse:
        await go.wait()
        return page("Slow")

    app = AgentPublisher(Starlette(routes=[Route("/slow", slow)]), site=make_site())
    async with running(app), connected(app) as socket:
        socket.say("session.create", "create")
        session = (await socket.hear("create"))["result"]["session_id"]
        socket.say("page.navigate", "navigate", session_id=session, url="/slow")
        await asyncio.sleep(2.5)
        go.set()
        assert (await socket.hear("navigate"))["result"]["title"] == "Slow"


# --- Dropped ---


async def test_a_dropped_connection_ends_what_it_waits_for_and_keeps_its_sessions():
    begun, ended = asyncio.Event(), asyncio.Event()

    async def slow(request: Request) -> HTMLResponse:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        return page("Late")

    app = AgentPublisher(Starlette(routes=[Route("/slow", slow)]), site=make_site())
    async with running(app), asyncio.timeout(50):
        before = asyncio.all_tasks()
        async with connected(app) as socket:
            socket.say("session.create", "create")
            made = (await socket.hear("create"))["result"]
            socket.say("page.navigate", "navigate", session_id=made["session_id"], url="/slow")
            await begun.wait()
        await ended.wait()
        while asyncio.all_tasks() != before:  # noqa: ASYNC110, they end by themselves
            await asyncio.sleep(0.01)
        async with connected(app) as socket:
            wanted = {"session_id": made["session_id"], "resume_token": made["resume_token"]}
            socket.say("session.resume", "resume", **wanted)
            assert "result" in await socket.hear("resume")


@pytest.mark.parametrize("moment", ["of the answer", "when the application ends"])
async def test_work_after_an_answer_is_finished_even_if_the_connection_is_gone(moment):
    begun, ended, finished = asyncio.Event(), asyncio.Event(), asyncio.Event()
    connections: list[Socket] = []

    async def go_on() -> None:
        await ended.wait()
        await asyncio.sleep(0.05)
        finished.set()

    async def answered(request: Request) -> HTMLResponse:
        if moment == "of the answer":
            connections[0].hang_up()
            ended.set()
        return HTMLResponse("<h1>Here</h1>", background=BackgroundTask(go_on))

    async def unanswered(request: Request) -> HTMLResponse:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        return page("Late")

    routes = [Route("/answered", answered), Route("/unanswered", unanswered)]
    app = AgentPublisher(Starlette(routes=routes), site=make_site())
    async with asyncio.timeout(50):
        async with running(app), connected(app) as socket:
            connections.append(socket)
            socket.say("session.create", "create")
            session = (await socket.hear("create"))["result"]["session_id"]
            socket.say("page.navigate", "answered", session_id=session, url="/answered")
            if moment == "of the answer":
                await finished.wait()
            else:
                assert "result" in await socket.hear("answered")
                socket.say("page.navigate", "unanswered", session_id=session, url="/unanswered")
                await begun.wait()
        assert finished.is_set()


async def test_unfinished_work_is_cancelled_when_the_application_ends(monkeypatch):
    monkeypatch.setattr(tasks, "FINISH_SECONDS", 0.01)
    cut = asyncio.Event()

    async def go_on() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            cut.set()

    async def answered(request: Request) -> HTMLResponse:
        return HTMLResponse("<h1>Here</h1>", background=BackgroundTask(go_on))

    app = AgentPublisher(Starlette(routes=[Route("/", answered)]), site=make_site())
    async with asyncio.timeout(50):
        async with running(app), connected(app) as socket:
            socket.say("session.create", "create")
            session = (await socket.hear("create"))["result"]["session_id"]
            socket.say("page.navigate", "navigate", session_id=session, url="/")
            assert "result" in await socket.hear("navigate")
        assert cut.is_set()


async def test_a_slow_page_hears_that_its_visitor_has_gone():
    begun, heard = asyncio.Event(), asyncio.Event()

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        begun.set()
        with suppress(asyncio.CancelledError):
            assert (await receive())["type"] == "http.disconnect"
        heard.set()

    app = AgentPublisher(application, site=make_site())
    async with asyncio.timeout(50), connected(app) as socket:
        socket.say("session.create", "create")
        session = (await socket.hear("create"))["result"]["session_id"]
        socket.say("page.navigate", "navigate", session_id=session, url="/slow", timeout_ms=500)
        await begun.wait()
        assert (await socket.hear("navigate"))["error"]["code"] == "TIMEOUT"
        await heard.wait()


async def test_an_application_that_answers_nothing_is_a_failed_page():
    async def application(scope: Any, receive: Any, send: Any) -> None:
        pass

    app = AgentPublisher(application, site=make_site())
    async with connected(app) as socket:
        socket.say("session.create", "create")
        session = (await socket.hear("create"))["result"]["session_id"]
        socket.say("page.navigate", "navigate", session_id=session, url="/")
        assert (await socket.hear("navigate"))["error"]["code"] == "NAVIGATION_FAILED"


async def test_connections_and_closed_sessions_leave_nothing_behind():
    app = publish()
    async with running(app):
        async with connected(app) as socket:
            kept = weakref.ref(socket)
            for number in range(20):
                socket.say("session.create", f"create{number}")
                session = (await socket.hear(f"create{number}"))["result"]["session_id"]
                socket.say("page.navigate", f"navigate{number}", session_id=session, url="/next")
                await socket.hear(f"navigate{number}")
                socket.say("session.close", f"close{number}", session_id=session)
                await socket.hear(f"close{number}")
        del socket
        gc.collect()
        assert kept() is None


async def test_the_end_of_the_application_ends_connections():
    app = publish()
    async with running(app):
        socket = Socket(app)
        task = asyncio.create_task(socket.run())
        socket.say("awp.hello", "hello")
        await socket.hear("hello")
    async with asyncio.timeout(50):
        await task
    assert socket.sent[-1]["type"] == "websocket.close"
    assert socket.sent[-1]["code"] == 1001


async def test_a_server_that_cannot_send_any_more_is_no_error(caplog):
    app = publish()
    async with running(app), connected(app) as socket:
        socket.is_broken = True
        socket.say("session.list")
        socket.say("awp.hello")
        socket._in.put_nowait({"type": "websocket.receive", "text": "rubbish"})
    assert "Traceback" not in caplog.text


async def test_an_error_in_the_door_is_logged(monkeypatch, caplog):
    def fail(self: object) -> None:
        raise RuntimeError("a bug with a secret in it")

    monkeypatch.setattr("awp_publish.browsing.session.Session.export", fail)
    app = publish()
    async with running(app), connected(app) as socket:
        socket.say("session.create", "create")
        session = (await socket.hear("create"))["result"]["session_id"]
        socket.say("session.export", "export", session_id=session)
        error = (await socket.hear("export"))["error"]
    assert (error["code"], "secret" in str(error)) == ("INTERNAL", False)
    assert error["details"]["trace_id"] in caplog.text
