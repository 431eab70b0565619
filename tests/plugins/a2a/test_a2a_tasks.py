"""Tasks of the A2A door over more than one request: confirmation, credentials, jobs, whose task it is."""

import asyncio
from collections.abc import Callable

import pytest
from a2a.client.errors import A2AClientError
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
)
from a2a.utils.errors import A2AError, TaskNotCancelableError, UnsupportedOperationError
from hypothesis import example, given, strategies as st
from starlette.applications import Starlette

from awp_publish import AgentPublisher, Site, report_progress
from awp_publish.http.exchange import AsgiApp, Message, Receive, Scope, Send
from awp_publish.http.running import running
from awp_publish.plugins.a2a import handler
from awp_publish.plugins.a2a.wire import read_metadata, write_metadata
from tests.guarded import ANN, KEYS, known_callers, make_shop
from tests.plugins.a2a.a2a_client import (
    SPOKEN,
    Caller,
    open_caller,
    output,
    problem,
    state,
    stream,
    told_headers,
)

REFUSED = (A2AError, A2AClientError)
"""The client of 0.3 over HTTP+JSON knows no errors but by their status."""

EVERYTHING = pytest.mark.parametrize("spoken", SPOKEN)


class Shop:
    """A shop with background actions, which a test lets go on when it wants to."""

    def __init__(self, **options) -> None:
        self.go, self.begun = asyncio.Event(), asyncio.Event()
        self.cancelled: list[str] = []
        self.site = self._declare(make_shop(plugins=["a2a"], secret_keys=KEYS, authenticate=known_callers(), **options))
        self.app: AsgiApp = AgentPublisher(Starlette(), site=self.site)

    def _declare(self, site: Site) -> Site:
        @site.agent("pay", confirm="Pay for {copies} books.")
        async def pay(copies: int = 1) -> int:
            """Pay."""
            return copies

        @site.agent("mine", auth_required=True, rate_limit="5/minute")
        async def mine() -> str:
            """What is mine."""
            return "mine"

        @site.agent("ship", execution="async")
        async def ship(number: int) -> str:
            """Ship an order."""
            report_progress(0.5, "packing")
            self.begun.set()
            try:
                await asyncio.wait_for(self.go.wait(), 30)
            except asyncio.CancelledError:
                self.cancelled.append("ship")
                raise
            return f"{number} is on its way"

        @site.agent("lose", execution="async")
        async def lose() -> str:
            """Lose an order."""
            raise RuntimeError("a secret of the site")

        @site.agent("slow")
        async def slow() -> str:
            """Take a while."""
            self.begun.set()
            try:
                await asyncio.wait_for(self.go.wait(), 30)
            except asyncio.CancelledError:
                self.cancelled.append("slow")
                raise
            return "done"

        return site


async def get(caller: Caller, task: Task) -> Task:
    return await caller.client.get_task(GetTaskRequest(id=task.id))


async def until(caller: Caller, task: Task, wanted: str) -> Task:
    for _ in range(1000):
        task = await get(caller, task)
        if state(task) == wanted:
            return task
        await asyncio.sleep(0.02)
    raise AssertionError(f"{state(task)}, not {wanted}")


# --- What a task waits for ---


async def test_credentials_are_asked_for_and_the_same_task_goes_on_with_them():
    shop = Shop()
    async with open_caller(shop.app) as nobody:
        asked = await nobody.call("mine")
        assert state(asked) == "auth_required"
        assert told_headers(asked)["www-authenticate"].startswith("Bearer")
    async with open_caller(shop.app, headers=ANN) as ann:
        task = await ann.send({}, task=asked)
        assert (state(task), output(task)) == ("completed", "mine")
        assert "ratelimit" in told_headers(task)


# --- Whose task it is ---


@given(st.dictionaries(st.text(), st.text() | st.integers(-(2**53), 2**53) | st.lists(st.text() | st.none())))
@example({"detail": "401", "title": "[", "hint": '"quoted"', "status": 401, "errors": [{"pointer": "/a"}]})
def test_a_problem_is_read_from_the_metadata_that_it_was_written_into(members):
    assert read_metadata(write_metadata(members)) == members


async def test_a_task_survives_the_process_in_a_store_that_does(tmp_path):
    store = f"sqlite:///{tmp_path}/agents.db"
    async with running(Shop(store=store).app, {}), open_caller(Shop(store=store).app) as caller:
        asked = await caller.call("pay")
    async with running((shop := Shop(store=store)).app, {}), open_caller(shop.app) as caller:
        paid = await caller.send({"confirmation": problem(asked)["confirmation"]["token"]}, task=asked)
        assert state(paid) == "completed"


# --- Background actions ---


async def test_a_call_that_another_request_waits_for_is_cancelled():
    shop = Shop()
    async with open_caller(shop.app, headers=ANN, streaming=True) as ann:
        begun = asyncio.create_task(stream(ann, {"skill": "slow", "input": {}}))
        task = await _first_of(ann)
        await asyncio.wait_for(shop.begun.wait(), 20)
        cancelled = await ann.client.cancel_task(CancelTaskRequest(id=task.id))
        answer = await asyncio.wait_for(begun, 20)
    assert (state(cancelled), shop.cancelled) == ("canceled", ["slow"])
    assert state(answer[-1].status_update) == "canceled"


class Bookings:
    """An application of several workers on one store, with an action that takes a while."""

    def __init__(self, store: str, **declared) -> None:
        self.go, self.begun = asyncio.Event(), asyncio.Event()
        self.effects: list[str] = []
        self.workers = [self._work(make_shop(plugins=["a2a"], store=store, **OPTIONS), declared) for _ in range(2)]

    def _work(self, site: Site, declared) -> AsgiApp:
        @site.agent("book", **declared)
        async def book(title: str) -> str:
            """Book a room."""
            self.begun.set()
            await asyncio.wait_for(self.go.wait(), 30)
            self.effects.append(title)
            return title

        return AgentPublisher(Starlette(), site=site)


OPTIONS = {"secret_keys": KEYS, "authenticate": known_callers()}
WORKERS = pytest.mark.parametrize("worker", [0, 1], ids=["the same worker", "another worker"])


@pytest.fixture
async def bookings(tmp_path, request):
    bookings = Bookings(f"sqlite:///{tmp_path}/agents.db", **getattr(request, "param", {}))
    async with running(bookings.workers[0], {}), running(bookings.workers[1], {}):
        yield bookings


@pytest.mark.slow
@WORKERS
async def test_a_stream_is_cancelled_at_any_worker(bookings, worker):
    first, other = bookings.workers[0], bookings.workers[worker]
    async with open_caller(first, headers=ANN, streaming=True) as ann, open_caller(other, headers=ANN) as again:
        begun = asyncio.create_task(stream(ann, {"skill": "book", "input": {"title": "Emma"}}))
        task = await until(again, await _first_of(again), "working")
        cancelled = await asyncio.wait_for(again.client.cancel_task(CancelTaskRequest(id=task.id)), 20)
        answer = await asyncio.wait_for(begun, 20)
        bookings.go.set()
        assert (state(cancelled), state(answer[-1].status_update)) == ("canceled", "canceled")
        assert state(await get(ann, task)) == "canceled"
    assert not bookings.effects


@pytest.mark.slow
@WORKERS
async def test_a_task_that_goes_on_is_cancelled_at_any_worker_or_takes_effect_but_never_both(bookings, worker):
    first, other = bookings.workers[0], bookings.workers[worker]
    async with open_caller(first) as caller, open_caller(other) as again:
        asked = await caller.call("book")
        goes_on = asyncio.create_task(caller.call("book", {"title": "Emma"}, task=asked))
        await until(again, asked, "working")
        with pytest.raises(UnsupportedOperationError):
            await again.call("book", {"title": "Persuasion"}, task=asked)
        cancelled = await asyncio.wait_for(again.client.cancel_task(CancelTaskRequest(id=asked.id)), 20)
        ended = await asyncio.wait_for(goes_on, 20)
        bookings.go.set()
        assert (state(cancelled), state(ended), bookings.effects) == ("canceled", "canceled", [])
        assert state(await get(caller, asked)) == "canceled"


@pytest.mark.slow
@WORKERS
@pytest.mark.parametrize("bookings", [{"idempotency": "1h"}], indirect=True)
async def test_a_call_that_is_carried_to_its_end_is_not_told_as_cancelled(bookings, worker, monkeypatch):
    monkeypatch.setattr("awp_publish.plugins.a2a.handler.MAX_CANCEL_WAIT", 1.5)
    first, other = bookings.workers[0], bookings.workers[worker]
    async with open_caller(first, headers=ANN, streaming=True) as ann, open_caller(other, headers=ANN) as again:
        begun = asyncio.create_task(
            stream(ann, {"skill": "book", "input": {"title": "Emma"}, "idempotency_key": "k-1234567890"})
        )
        task = await until(again, await _first_of(again), "working")
        await asyncio.wait_for(bookings.begun.wait(), 20)
        with pytest.raises(TaskNotCancelableError):
            await again.client.cancel_task(CancelTaskRequest(id=task.id))
        bookings.go.set()
        answer = await asyncio.wait_for(begun, 20)
        assert (state(answer[-1].status_update), bookings.effects) == ("completed", ["Emma"])
        assert state(await get(again, task)) == "completed"


def noted(app: AsgiApp, begun: Callable[[], object], word: bytes = b"") -> AsgiApp:
    """An application; `begun` is called when one of its streams has sent its first event, or the first with a word."""

    async def noting(scope: Scope, receive: Receive, send: Send) -> None:
        is_stream = False

        async def note(message: Message) -> None:
            nonlocal is_stream
            await send(message)
            if message["type"] == "http.response.start":
                is_stream = dict(message["headers"]).get(b"content-type", b"").startswith(b"text/event-stream")
            elif is_stream and message.get("body") and word in message["body"].lower():
                is_stream = False
                begun()

        await app(scope, receive, note)

    return noting


async def _first_of(caller: Caller) -> Task:
    for _ in range(1000):
        listed = (await caller.client.list_tasks(ListTasksRequest())).tasks
        if listed:
            return listed[0]
        await asyncio.sleep(0.02)
    raise AssertionError("no task is listed")


@EVERYTHING
async def test_a_running_task_can_be_subscribed_to_again(spoken):
    shop = Shop()
    app = noted(shop.app, shop.go.set)
    async with running(shop.app, {}), open_caller(app, spoken, streaming=True) as caller:
        async with open_caller(shop.app, spoken) as other:
            task = await other.call("ship", {"number": 7}, at_once=True)
        results = [event async for event in caller.client.subscribe(SubscribeToTaskRequest(id=task.id))]
        assert state(results[-1].status_update) == "completed"
        with pytest.raises(REFUSED):
            [event async for event in caller.client.subscribe(SubscribeToTaskRequest(id=task.id))]


@EVERYTHING
async def test_a_task_that_waits_can_be_subscribed_to_until_it_ends(spoken):
    app, begun = Shop().app, asyncio.Semaphore(0)
    listening = noted(app, begun.release)
    async with open_caller(app, spoken) as caller, open_caller(listening, spoken, streaming=True) as listener:
        asked = await caller.call("pay")

        async def subscribe() -> list[StreamResponse]:
            return [event async for event in listener.client.subscribe(SubscribeToTaskRequest(id=asked.id))]

        subscribed = [asyncio.create_task(subscribe()) for _ in range(2)]
        async with asyncio.timeout(50):
            for _ in subscribed:
                await begun.acquire()
        await asyncio.sleep(0.1)
        assert not any(event.done() for event in subscribed)
        await caller.send({"confirmation": problem(asked)["confirmation"]["token"]}, task=asked)
        for told in await asyncio.gather(*subscribed):
            assert state(told[0].task) == "input_required"
            assert [part.data.number_value for part in told[-2].artifact_update.artifact.parts] == [1]
            assert state(told[-1].status_update) == "completed"


async def test_a_task_that_is_abandoned_is_not_followed_for_ever(monkeypatch):
    monkeypatch.setattr(handler, "MAX_SUBSCRIPTION", 0.05)
    async with open_caller(app := Shop().app) as caller, open_caller(app, streaming=True) as listener:
        asked = await caller.call("pay")
        results = [event async for event in listener.client.subscribe(SubscribeToTaskRequest(id=asked.id))]
        assert [state(item.task) for item in results] == ["input_required"]
