"""Progress through the MCP door: what handlers report, how jobs go, and what becomes of both when a caller leaves."""

import asyncio
import re
import threading
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from fastapi import BackgroundTasks, FastAPI, Response
from starlette.applications import Starlette

from awp_publish import AgentPublisher, OAuth, report_progress
from awp_publish.calls.deadlines import DEADLINE_INTERVAL
from awp_publish.http.exchange import AsgiApp, Message, Receive, Scope, Send
from awp_publish.http.running import running
from tests.guarded import known_callers, make_shop
from tests.plugins.mcp.mcp_messages import CLASSIC, MODERN, MODES, VERSIONS, connect, headers_of, message
from tests.plugins.mcp.test_mcp_calls import McpCaller, publish
from tests.storyteller import make_storyteller

TOKEN = {"progressToken": "p-1"}
PAUSE = 0.12
"""Seconds between two reports that are both to be told."""


class Streamed(McpCaller):
    """A call that asks for its progress."""

    def __init__(self, app, name, version=MODERN, given=None, meta=None, headers=None) -> None:
        super().__init__(app, name, given, version, headers)
        sent = message("tools/call", {"name": name, "arguments": given or {}}, version=version, meta=meta or TOKEN)
        self._bodies = [orjson.dumps(sent)]

    @property
    def told(self) -> list[Any]:
        """Every message of the answer, be it a stream or JSON."""
        whole = b"".join(sent.get("body", b"") for sent in self.messages[1:])
        if self.headers[b"content-type"].startswith(b"application/json"):
            return [orjson.loads(whole)]
        lines = [line.removeprefix(b"data: ") for line in whole.split(b"\r\n") if line.startswith(b"data: ")]
        return [orjson.loads(line) for line in lines]

    @property
    def progress(self) -> list[Any]:
        return [item["params"] for item in self.told if item.get("method") == "notifications/progress"]


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(50):
        while not is_so():  # noqa: ASYNC110, others make it so
            await asyncio.sleep(0.01)


@pytest.fixture
def site():
    return make_shop(plugins=["mcp"])


@pytest.fixture
def count(site):
    """A handler that reports, in the event loop, and what it waits for after each report if it `waits`."""
    answer = asyncio.Semaphore(0)

    @site.agent("count")
    async def count(steps: int = 3, waits: bool = False) -> int:
        """Count."""
        for step in range(steps):
            report_progress(step / steps, f"step {step}")
            await (asyncio.wait_for(answer.acquire(), 20) if waits else asyncio.sleep(PAUSE))
        return steps

    return answer


def noted(app: AsgiApp, note: Callable[[], object]) -> AsgiApp:
    """An application; `note` is called when it has told of progress. A client in process hears it all at the end."""

    async def noting(scope: Scope, receive: Receive, send: Send) -> None:
        async def forward(message: Message) -> None:
            await send(message)
            if b"notifications/progress" in message.get("body", b""):
                note()

        await app(scope, receive, forward)

    return noting


async def heard(client, name, given=None) -> tuple[list[Any], Any]:
    """What a client is told of a call while it runs, and the result."""
    results: list[Any] = []

    async def hear(progress, total, words) -> None:
        results.append((progress, total, words))

    return results, await client.call_tool(name, given or {}, progress_callback=hear)


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_asks_for_progress_is_told_what_the_handler_reports(site, count, mode):
    async with connect(noted(publish(site), count.release), mode) as client:
        answer, result = await heard(client, "count", {"waits": True})
    assert answer == [(0.0, 1.0, "step 0"), (1 / 3, 1.0, "step 1"), (2 / 3, 1.0, "step 2")]
    assert result.structured_content in (3, {"result": 3})


@pytest.mark.parametrize("lifespan", [True, False])
@pytest.mark.parametrize("mode", MODES)
async def test_a_plain_handler_behind_a_route_reports_from_its_thread(site, mode, lifespan):
    app, threads, is_told = FastAPI(), set(), threading.Event()

    @app.get("/count")
    @site.action("count")
    def count() -> str:
        """Count."""
        threads.add(threading.get_ident())
        report_progress(0.5, "half")
        assert is_told.wait(20)
        report_progress(1)
        return "done"

    app.add_middleware(AgentPublisher, site=site)
    async with connect(noted(app, is_told.set), mode, lifespan=lifespan) as client:
        answer, result = await heard(client, "count")
    assert answer == [(0.5, 1.0, "half"), (1.0, 1.0, None)]
    assert result.is_error is False
    assert threading.get_ident() not in threads


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_asks_for_progress_is_told_what_a_route_streams(site, mode):
    is_told = asyncio.Event()
    app = make_storyteller(site, is_told)
    async with connect(noted(app, is_told.set), mode) as client:
        answer, result = await heard(client, "story")
    assert answer[0] == (5, None, "Once ")
    assert result.content[0].text == "Once upon a time"


@pytest.mark.parametrize("version", VERSIONS)
async def test_progress_grows_from_one_notification_to_the_next(site, version):
    @site.agent("waver")
    async def waver() -> str:
        """Go back and forth."""
        report_progress(0.5)
        await until(lambda: len(caller.messages) > 1)
        for fraction in (0.5, 0.3, 0.6):
            report_progress(fraction)
            await asyncio.sleep(PAUSE)
        return "done"

    app = publish(site)
    async with running(app):
        caller = Streamed(app, "waver", version)
        await caller.call()
    assert [report["progress"] for report in caller.progress] == [0.5, 0.6]
    assert {report["progressToken"] for report in caller.progress} == {"p-1"}
    assert caller.told[-1]["result"]["isError"] is False


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_hundred_reports_at_once_are_one_notification(site, version):
    @site.agent("hurry")
    async def hurry() -> str:
        """Report a lot."""
        for step in range(100):
            report_progress(step / 100)
        return "done"

    app = publish(site)
    async with running(app):
        caller = Streamed(app, "hurry", version)
        await caller.call()
    assert [report["progress"] for report in caller.progress] == [0.99]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("meta", "accept"),
    [
        ({"a": 1}, "application/json, text/event-stream"),
        ({"progressToken": 1.5}, "application/json, text/event-stream"),
        (TOKEN, "application/json"),
    ],
)
async def test_a_client_without_progress_or_streams_is_answered_with_json(site, count, version, meta, accept):
    app = publish(site)
    caller = Streamed(app, "count", version, {"steps": 1}, meta, {"accept": accept})
    await caller.call()
    assert caller.headers[b"content-type"].startswith(b"application/json")
    assert caller.progress == []


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_challenge_is_an_http_status_even_where_progress_was_asked_for(version):
    login = OAuth(authorization_servers=("https://login.example",))
    site = make_shop(plugins=["mcp"], authenticate=known_callers(), oauth=login)

    @site.agent("mine", auth_required=True)
    async def mine() -> str:
        """What is mine."""
        return "mine"

    app = publish(site)
    async with running(app):
        caller = Streamed(app, "mine", version)
        await caller.call()
    assert caller.status == 401
    assert b"resource_metadata=" in caller.headers[b"www-authenticate"]


# --- Callers who leave, handlers who stay ---


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_caller_who_leaves_a_stream_ends_the_call(site, version):
    begun, ended = asyncio.Event(), asyncio.Event()

    @site.agent("sleep")
    async def sleep() -> str:
        """Sleep."""
        report_progress(0.1)
        begun.set()
        try:
            await asyncio.sleep(30)
        finally:
            ended.set()
        return "awake"

    app = publish(site)
    async with running(app):
        caller = Streamed(app, "sleep", version)
        calling = asyncio.create_task(caller.call())
        await asyncio.wait_for(begun.wait(), 20)
        caller.hang_up()
        await asyncio.wait_for(calling, 20)
    assert ended.is_set()


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_handler_that_does_not_heed_its_deadline_does_not_keep_a_stream_open(site, version):
    go = asyncio.Event()

    @site.agent("stubborn", timeout=0.5)
    async def stubborn() -> str:
        """Do not stop."""
        report_progress(0.5)
        while not go.is_set():
            try:
                await asyncio.wait_for(go.wait(), 30)
            except asyncio.CancelledError:
                continue
        return "done"

    app = publish(site)
    async with running(app):
        caller = Streamed(app, "stubborn", version)
        calling = asyncio.create_task(caller.call())
        await until(lambda: len(caller.messages) > 1 and not caller.messages[-1].get("more_body"))
        assert not calling.done()
        go.set()
        await asyncio.wait_for(calling, 20)
    assert caller.told[-1]["result"]["_meta"]["awp/problem"]["code"] == "HANDLER_TIMEOUT"
    assert caller.told[-1]["id"] == 1


# --- Background jobs ---


@pytest.fixture
def printing(site):
    """A background action, and how its runs end."""
    ends: list[str] = []

    @site.agent("print_book", execution="async", timeout=30, idempotency="1h")
    async def print_book(title: str, pages: int = 2) -> list[str]:
        """Print a book."""
        try:
            for page in range(pages):
                report_progress(page / pages, f"page {page}")
                await asyncio.sleep(0.3)
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise
        if title == "":
            raise RuntimeError("no title")
        ends.append("done")
        return [title]

    return ends


@pytest.mark.parametrize("mode", MODES)
async def test_a_job_is_followed_to_its_end_for_a_client_that_asks_for_progress(site, printing, mode):
    async with connect(publish(site), mode) as client:
        answer, result = await heard(client, "print_book", {"title": "Emma"})
    assert answer
    assert answer == sorted(answer)
    assert result.structured_content["status"] == "done"
    assert result.structured_content["result"] == ["Emma"]


@pytest.mark.parametrize("mode", MODES)
async def test_a_job_that_fails_is_an_error_of_the_tool(site, printing, mode):
    async with connect(publish(site), mode) as client:
        _, result = await heard(client, "print_book", {"title": "", "pages": 1})
    assert result.is_error is True
    assert result.meta["awp/problem"]["code"] == "HANDLER_FAILED"


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_job_that_takes_longer_than_its_action_may_is_answered_as_accepted(site, version):
    @site.agent("dig", execution="async", timeout=0.2)
    async def dig() -> str:
        """Dig."""
        await asyncio.sleep(30)
        return "dug"

    app = publish(site)
    async with running(app):
        caller = Streamed(app, "dig", version)
        await caller.call()
    answer = caller.told[-1]["result"]["structuredContent"]
    assert answer["status"] == "accepted"
    assert answer["poll_endpoint"].endswith(answer["job_id"])


@pytest.mark.parametrize(
    ("version", "headers", "end"),
    [(MODERN, {}, "cancelled"), (CLASSIC, {}, "done"), (MODERN, {"idempotency-key": "k-1"}, "done")],
)
async def test_closing_the_stream_cancels_the_job_where_the_revision_says_so(site, printing, version, headers, end):
    app = publish(site)
    async with running(app):
        pages = 3 if end == "done" else 100  # until the caller leaves
        caller = Streamed(app, "print_book", version, {"title": "Emma", "pages": pages}, headers=headers)
        calling = asyncio.create_task(caller.call())
        await until(lambda: len(caller.messages) > 1)
        caller.hang_up()
        await asyncio.wait_for(calling, 20)
        await until(lambda: bool(printing))
    assert printing == [end]


def test_the_headers_of_a_streamed_call_are_those_of_a_stream(site, count, open_client):
    client = open_client(AgentPublisher(Starlette(), site=site))
    sent = message("tools/call", {"name": "count", "arguments": {"steps": 2}}, meta=TOKEN)
    answer = client.post("/mcp", json=sent, headers=headers_of(sent))
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["x-accel-buffering"] == "no"
    assert answer.headers["x-request-id"]


@pytest.mark.parametrize("version", VERSIONS)
async def test_json_of_several_lines_is_one_event_of_the_stream_though_its_handler_works_on(version, site):
    app = FastAPI()

    @app.get("/raw")
    @site.action("raw")
    async def raw(later: BackgroundTasks) -> dict[str, Any]:
        """Answer in JSON of the route's own writing."""
        report_progress(0.5)
        await asyncio.sleep(PAUSE)
        later.add_task(asyncio.sleep, 2 * DEADLINE_INTERVAL)
        written: Any = Response(b'{"n":\n 1}', media_type="application/json", background=later)
        return written

    published = AgentPublisher(app, site=site)
    async with running(published):
        call = Streamed(published, "raw", version)
        await call.call()
    assert call.told[-1]["result"]["structuredContent"] == {"n": 1}
    assert not re.search(rb"[^\r]\n", b"".join(sent.get("body", b"") for sent in call.messages))
