"""Deadlines, callers who hang up, handlers that work on after their answer, servers that stop."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import pytest
from fastapi import BackgroundTasks, FastAPI
from starlette.applications import Starlette

from awp_publish import AgentPublisher, Limits, Site
from awp_publish.calls import deadlines
from awp_publish.http.exchange import Message
from tests.guarded import Caller

pytestmark = pytest.mark.needs("plain")


@pytest.fixture
async def no_leftovers() -> AsyncIterator[None]:
    yield
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.fixture
def pass_time(monkeypatch) -> Callable[[float], None]:
    """Moves the clock of deadlines on, so that those of a call are neither waited for nor missed by a busy machine."""
    passed = [0.0]
    monkeypatch.setattr(deadlines, "perf_counter", lambda: perf_counter() + sum(passed))
    return passed.append


Handler = Callable[..., object]


def endless_work() -> tuple[Handler, asyncio.Event, asyncio.Event]:
    """A handler that never ends by itself, and what tells that it was started and that it was cancelled."""
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def work() -> str:
        """Work."""
        started.set()
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return "done"

    return work, started, cancelled


def wrapped(site: Site, handler: Handler, kind: str) -> AgentPublisher:
    """The same handler as a route of FastAPI's and as a plain function."""
    if kind == "function":
        site.agent("work")(handler)
        return AgentPublisher(Starlette(), site=site)
    app = FastAPI()
    app.post("/work")(site.action("work")(handler))
    return AgentPublisher(app, site=site)


KINDS = pytest.mark.parametrize("kind", ["function", "route"])


@KINDS
async def test_a_slow_handler_is_ended_at_its_deadline(no_leftovers, kind):
    site = Site("Shop", "Sells.", url="https://shop.example", limits=Limits(timeout=0.5))
    work, _, cancelled = endless_work()
    caller = Caller(wrapped(site, work, kind), "work", {})
    await asyncio.wait_for(caller.call(), 20)  # the handler takes longer
    assert (caller.status, caller.code) == (504, "HANDLER_TIMEOUT")
    assert cancelled.is_set()


@KINDS
async def test_a_thread_that_cannot_be_ended_does_not_keep_the_caller_waiting(no_leftovers, kind):
    site = Site("Shop", "Sells.", url="https://shop.example", limits=Limits(timeout=0.5))
    release = threading.Event()

    def work() -> str:
        """Work."""
        release.wait(60)
        return "done"

    caller = Caller(wrapped(site, work, kind), "work", {})
    call = asyncio.create_task(caller.call())
    await asyncio.wait_for(caller.answered.wait(), 20)
    assert (caller.status, caller.code) == (504, "HANDLER_TIMEOUT")
    assert not call.done()
    release.set()
    await call
    assert len(caller.messages) == 2


@KINDS
async def test_an_action_has_its_own_deadline(no_leftovers, kind):
    site = Site("Shop", "Sells.", url="https://shop.example", limits=Limits(timeout=30))

    async def work() -> str:
        """Work."""
        await asyncio.sleep(30)
        return "done"

    if kind == "function":
        site.agent("work", timeout=0.1)(work)
        app = AgentPublisher(Starlette(), site=site)
    else:
        inner = FastAPI()
        inner.post("/work")(site.action("work", timeout=0.1)(work))
        app = AgentPublisher(inner, site=site)
    caller = Caller(app, "work", {})
    await caller.call()
    assert caller.status == 504


@KINDS
async def test_a_caller_who_hangs_up_ends_the_handler(no_leftovers, site, kind):
    work, started, cancelled = endless_work()
    caller = Caller(wrapped(site, work, kind), "work", {})
    call = asyncio.create_task(caller.call())
    await started.wait()
    caller.hang_up()
    await asyncio.wait_for(call, 20)
    assert cancelled.is_set()
    assert caller.messages == []


async def test_a_caller_who_hangs_up_while_sending_is_not_answered(no_leftovers, site):
    site.declare("any", method="POST", path="/any", description="Anything.")
    publisher = AgentPublisher(Starlette(), site=site)
    sent: list[object] = []

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/agents/actions/any", "query_string": b"", "headers": headers}
    await publisher(scope, receive, send)
    assert sent == []


async def test_background_work_does_not_keep_the_caller_waiting_and_is_not_cut_off(no_leftovers, pass_time):
    site = Site("Shop", "Sells.", url="https://shop.example", limits=Limits(timeout=30))
    app = FastAPI()
    release, finished = asyncio.Event(), asyncio.Event()

    async def write_letter() -> None:
        await release.wait()
        finished.set()

    @app.post("/order")
    @site.action("order")
    async def order(background: BackgroundTasks) -> str:
        """Order."""
        background.add_task(write_letter)
        return "ordered"

    caller = Caller(AgentPublisher(app, site=site), "order", {})
    call = asyncio.create_task(caller.call())
    await asyncio.wait_for(caller.answered.wait(), 20)
    assert (caller.status, caller.body) == (200, b'"ordered"')
    caller.hang_up()
    pass_time(60)
    await asyncio.sleep(3 * deadlines.DEADLINE_INTERVAL)
    assert not call.done()
    release.set()
    await asyncio.wait_for(call, 20)
    assert finished.is_set()
    assert len(caller.messages) == 2


@KINDS
async def test_a_server_that_stops_ends_the_call(no_leftovers, site, kind):
    work, started, cancelled = endless_work()
    call = asyncio.create_task(Caller(wrapped(site, work, kind), "work", {}).call())
    await started.wait()
    await asyncio.sleep(0.25)  # so that the patrol has begun to listen for a hang-up
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert cancelled.is_set()


async def test_a_hundred_slow_calls_are_looked_after_at_once(no_leftovers, pass_time):
    site = Site("Shop", "Sells.", url="https://shop.example", limits=Limits(timeout=30))

    async def work(wait: float) -> str:
        """Work."""
        await asyncio.sleep(wait)
        return "done"

    app = wrapped(site, work, "function")
    callers = [Caller(app, "work", {"wait": wait}) for wait in (0.0, 0.05, 60.0, 90.0) for _ in range(25)]
    calls = [asyncio.create_task(caller.call()) for caller in callers]
    await asyncio.wait_for(asyncio.gather(*calls[:50]), 20)
    pass_time(40)
    await asyncio.wait_for(asyncio.gather(*calls[50:]), 20)
    assert [caller.status for caller in callers] == [200] * 50 + [504] * 50


def test_deadlines_hold_in_every_event_loop_of_a_process():
    """A loop that ends soon after a call must not take the patrol's timer along."""
    site = Site("Shop", "Sells.", url="https://shop.example", limits=Limits(timeout=30))

    @site.agent("work_long", timeout=0.5)
    async def work_long() -> str:
        """Work for a long time."""
        await asyncio.sleep(20)
        return "done"

    async def work() -> str:
        """Work."""
        return "done"

    app = wrapped(site, work, "function")

    def call_alone(agent: str) -> object:
        caller = Caller(app, agent, {})
        asyncio.run(caller.call())
        return caller.status

    assert call_alone("work") == 200
    assert call_alone("work_long") == 504
    with ThreadPoolExecutor() as threads:
        assert list(threads.map(call_alone, ["work", "work_long"] * 2)) == [200, 504, 200, 504]


def test_background_work_that_fails_does_not_take_the_answer_back(site, open_client, caplog):
    app = FastAPI()

    def fail() -> None:
        raise RuntimeError("the letter was lost")

    @app.post("/order")
    @site.action("order")
    async def order(background: BackgroundTasks) -> str:
        """Order."""
        background.add_task(fail)
        return "ordered"

    answer = open_client(AgentPublisher(app, site=site)).post("/agents/actions/order")
    assert (answer.status_code, answer.json()) == (200, "ordered")
    assert "the letter was lost" in caplog.text


async def test_a_body_in_a_hundred_thousand_pieces_is_read_in_passing(site):
    """Joining pieces one by one would copy what is there already each time."""

    async def work(text: str) -> int:
        """Work."""
        return len(text)

    pieces = iter([b'{"text":"', *[b"a"] * 100_000, b'"}'])
    sent: list[Message] = []

    async def receive() -> Message:
        piece = next(pieces, b"")
        return {"type": "http.request", "body": piece, "more_body": piece != b'"}'}

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/agents/actions/work", "query_string": b"", "headers": headers}
    await wrapped(site, work, "function")(scope, receive, send)
    assert sent[1]["body"] == b"100000"
