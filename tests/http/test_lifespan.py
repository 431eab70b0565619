"""What runs beside an application: opened after it has started, closed before it stops, whatever goes wrong."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from starlette.applications import Starlette

from awp_publish.http.lifespan import run_lifespan
from awp_publish.http.running import StartFailed, running


class Server:
    """The server's side of a lifespan exchange, and a diary of all that happens."""

    def __init__(self) -> None:
        self.diary: list[str] = []
        self.sent: list[dict[str, str]] = []
        self.scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}
        self.started = asyncio.Event()
        self.stop = asyncio.Event()
        self._messages = iter(["lifespan.startup"])

    async def receive(self):
        for kind in self._messages:
            return {"type": kind}
        await self.stop.wait()
        return {"type": "lifespan.shutdown"}

    async def send(self, message):
        self.diary.append(message["type"])
        self.sent.append(message)
        self.started.set()

    @asynccontextmanager
    async def opened(self):
        self.diary.append("opened")
        try:
            async with asyncio.TaskGroup():
                yield
        finally:
            self.diary.append("closed")

    def application(self) -> Starlette:
        @asynccontextmanager
        async def lifespan(app):
            self.diary.append("application started")
            yield {"pool": "open"}
            self.diary.append("application stopped")

        return Starlette(lifespan=lifespan)

    def run(self, app, opened=None):
        return asyncio.create_task(run_lifespan(app, self.scope, self.receive, self.send, opened or self.opened))


async def fail(error: Exception) -> None:
    raise error


async def test_ours_runs_inside_the_applications_own_lifespan():
    server = Server()
    running = server.run(server.application())
    await server.started.wait()
    assert server.scope["state"] == {"pool": "open"}
    server.stop.set()
    await asyncio.wait_for(running, 20)
    assert server.diary == [
        "application started",
        "opened",
        "lifespan.startup.complete",
        "closed",
        "application stopped",
        "lifespan.shutdown.complete",
    ]


async def test_a_door_that_cannot_be_opened_fails_the_start_and_stops_the_application(caplog):
    server = Server()

    @asynccontextmanager
    async def opened():
        await fail(OSError("the cellar is flooded"))
        yield

    with pytest.raises(OSError, match="cellar"):  # without it, Starlette's test client would wait for ever at its end
        await asyncio.wait_for(server.run(server.application(), opened), 20)
    assert server.sent == [{"type": "lifespan.startup.failed", "message": "OSError: the cellar is flooded"}]
    assert server.diary == ["application started", "lifespan.startup.failed", "application stopped"]
    assert "cellar" in caplog.text


async def test_an_application_that_fails_to_start_opens_nothing():
    server = Server()

    @asynccontextmanager
    async def lifespan(app):
        await fail(RuntimeError("no database"))
        yield

    with pytest.raises(RuntimeError):
        await server.run(Starlette(lifespan=lifespan))
    assert server.diary == ["lifespan.startup.failed"]


async def test_an_application_without_lifespan_raises_as_before():
    server = Server()

    async def app(scope, receive, send):
        raise AssertionError("http only")

    with pytest.raises(AssertionError):
        await server.run(app)
    assert server.diary == []


async def test_an_application_that_only_returns_has_nothing_opened_for_it():
    server = Server()

    async def app(scope, receive, send):
        await receive()

    await server.run(app)
    assert server.diary == []


async def test_an_application_that_dies_while_it_runs_closes_ours():
    server = Server()

    async def app(scope, receive, send):
        await receive()
        await send({"type": "lifespan.startup.complete"})
        raise RuntimeError("gone")

    with pytest.raises(RuntimeError):
        await server.run(app)
    assert server.diary == ["opened", "lifespan.startup.complete", "closed"]


async def test_a_server_that_cancels_the_exchange_closes_ours():
    server = Server()
    running = server.run(server.application())
    await server.started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert server.diary[-1] == "closed"


async def test_a_server_that_cancels_while_ours_is_being_opened_closes_it():
    server, opening, closed = Server(), asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def opened():
        opening.set()
        try:
            await asyncio.sleep(60)
            yield
        finally:
            closed.set()

    running = server.run(server.application(), opened)
    await opening.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert closed.is_set()


async def test_a_failure_while_closing_does_not_keep_the_application_from_stopping(caplog):
    server = Server()

    @asynccontextmanager
    async def opened():
        yield
        raise OSError("the door is stuck")

    running = server.run(server.application(), opened)
    await server.started.wait()
    server.stop.set()
    await asyncio.wait_for(running, 20)
    assert server.diary[-1] == "lifespan.shutdown.complete"
    assert "the door is stuck" in caplog.text


async def test_messages_in_different_tasks_do_not_matter():
    """Task groups must be left in the task that entered them."""
    server = Server()

    async def app(scope, receive, send):
        await asyncio.create_task(receive())
        await asyncio.create_task(send({"type": "lifespan.startup.complete"}))
        await asyncio.create_task(receive())
        await asyncio.create_task(send({"type": "lifespan.shutdown.complete"}))

    running = server.run(app)
    await server.started.wait()
    server.stop.set()
    await asyncio.wait_for(running, 20)
    assert server.diary == ["opened", "lifespan.startup.complete", "closed", "lifespan.shutdown.complete"]


# --- For a process that is no server ---


async def test_an_application_runs_in_a_process_that_is_no_server():
    server = Server()
    async with running(server.application()) as state:
        assert state == {"pool": "open"}
        assert server.diary == ["application started"]
    assert server.diary == ["application started", "application stopped"]


async def test_an_application_that_does_not_start_says_why():
    @asynccontextmanager
    async def lifespan(app):
        await fail(RuntimeError("no database"))
        yield

    with pytest.raises(StartFailed, match="no database"):
        async with running(Starlette(lifespan=lifespan)):
            raise AssertionError


async def test_an_application_without_lifespan_runs_in_a_process_that_is_no_server():
    async def app(scope, receive, send):
        raise KeyError("path")

    async with running(app) as state:
        assert state == {}


async def test_an_application_whose_lifespan_dies_is_in_the_log(caplog):
    async def app(scope, receive, send):
        await receive()
        await send({"type": "lifespan.startup.complete"})
        raise RuntimeError("the cable was cut")

    async with running(app), asyncio.timeout(50):
        while "the cable was cut" not in caplog.text:  # noqa: ASYNC110, a task of ours writes it
            await asyncio.sleep(0.01)


async def test_a_process_that_is_cancelled_stops_its_application():
    server, entered = Server(), asyncio.Event()

    async def work():
        async with running(server.application()):
            entered.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(work())
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert server.diary == ["application started", "application stopped"]
