"""Clients of 2025-11-25 ask their users in the stream that answers a call; the reply may reach any worker."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp.types import ElicitResult
from starlette.applications import Starlette

from awp_publish import AgentPublisher, Site, report_progress
from awp_publish.plugins.mcp.elicitation import MAX_QUESTIONS
from tests.guarded import KEYS
from tests.live_server import serve
from tests.plugins.mcp.mcp_messages import CLASSIC, connect_to, headers_of, message
from tests.plugins.mcp.test_mcp_calls import Person


def make_app(url: str, store: str | None = None, prices: list[int] | None = None) -> Any:
    options: dict[str, Any] = {"store": store} if store else {}
    site = Site("Shop", "Sells things.", url=url, plugins=["mcp"], secret_keys=KEYS, **options)

    def summarize(given: dict[str, Any]) -> str:
        return f"Pay {given['copies']} books at {(prices or [5]).pop() if prices else 5}."

    @site.agent("pay", confirm=summarize)
    async def pay(copies: int = 1) -> int:
        """Pay books."""
        report_progress(0.5, "paying")
        return copies

    @site.agent("look")
    async def look() -> str:
        """Look."""
        return "books"

    return AgentPublisher(Starlette(), site=site)


@asynccontextmanager
async def client_of(url: str, person: Person | None) -> AsyncIterator[Any]:
    options = {} if person is None else {"elicitation_callback": person.reply}
    async with httpx2.AsyncClient(timeout=50) as http, connect_to(f"{url}/mcp", http, "legacy", **options) as client:
        yield client


async def test_the_official_client_asks_its_user():
    person = Person("accept")
    async with serve(make_app) as url, client_of(url, person) as client:
        answer = await client.call_tool("pay", {"copies": 2})
        assert (await client.call_tool("look")).is_error is False
    assert person.asked == ["Pay 2 books at 5."]
    assert (answer.is_error, answer.structured_content) == (False, {"result": 2})


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_person_who_does_not_agree_is_not_asked_again(action):
    person = Person(action)
    async with serve(make_app) as url, client_of(url, person) as client:
        answer = await client.call_tool("pay", {"copies": 2})
    problem = answer.meta["awp/problem"]
    assert (len(person.asked), problem["code"]) == (1, "CONFIRMATION_REQUIRED")
    assert problem["recovery"].startswith("Do not repeat")
    assert "confirmation" not in problem


async def test_a_client_that_cannot_ask_gets_the_token():
    async with serve(make_app) as url, client_of(url, None) as client:
        answer = await client.call_tool("pay", {"copies": 2})
    assert answer.meta["awp/problem"]["confirmation"]["token"]


async def test_progress_and_question_share_one_stream():
    person, reported = Person("accept"), []

    async def note(progress: float, _total: float | None, text: str | None) -> None:
        reported.append((progress, text))

    async with serve(make_app) as url, client_of(url, person) as client:
        answer = await client.call_tool("pay", {"copies": 2}, progress_callback=note)
    assert (len(person.asked), answer.structured_content) == (1, {"result": 2})
    assert reported == [(0.5, "paying")]


async def test_a_client_that_fails_to_ask_gets_the_token():
    async def fail(_context: Any, _params: Any) -> ElicitResult:
        raise RuntimeError("no window")

    async with (
        serve(make_app) as url,
        httpx2.AsyncClient(timeout=50) as http,
        connect_to(f"{url}/mcp", http, "legacy", elicitation_callback=fail) as client,
    ):
        answer = await client.call_tool("pay", {"copies": 2})
    assert answer.meta["awp/problem"]["confirmation"]["token"]


class Session:
    """A client of its own making, at one or several workers."""

    def __init__(self, http: Any, capabilities: object) -> None:
        self._http, self._capabilities = http, capabilities
        self.headers: dict[str, str] = {}

    async def begin(self, url: str) -> str | None:
        params = {
            "protocolVersion": CLASSIC,
            "capabilities": self._capabilities,
            "clientInfo": {"name": "a", "version": "1"},
        }
        answer = await self.post(url, message("initialize", params, version=CLASSIC))
        session_id: str | None = answer.headers.get("mcp-session-id")
        self.headers = {} if session_id is None else {"mcp-session-id": session_id}
        return session_id

    async def post(self, url: str, sent: Any, **headers: str) -> Any:
        fields = headers_of(sent, CLASSIC) | self.headers | {"host": "shop.example"} | headers
        return await self._http.post(f"{url}/mcp", json=sent, headers=fields)

    @asynccontextmanager
    async def call(self, url: str) -> AsyncIterator[AsyncIterator[Any]]:
        sent = message("tools/call", {"name": "pay", "arguments": {"copies": 2}}, version=CLASSIC)
        fields = headers_of(sent, CLASSIC) | self.headers | {"host": "shop.example"}
        async with self._http.stream("POST", f"{url}/mcp", json=sent, headers=fields) as answer:
            assert answer.headers["content-type"] == "text/event-stream"
            yield (json.loads(line[6:]) async for line in answer.aiter_lines() if line.startswith("data: "))


def reply_to(question: Any, action: str = "accept") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": question["id"], "result": {"action": action, "content": {}}}


@asynccontextmanager
async def two_workers(tmp_path: Any, **options: Any) -> AsyncIterator[tuple[str, str, Any]]:
    def make(_: str) -> Any:
        return make_app("https://shop.example", f"sqlite:///{tmp_path}/calls.db", **options)

    async with AsyncExitStack() as stack:
        first, second = [await stack.enter_async_context(serve(make)) for _ in range(2)]
        yield first, second, await stack.enter_async_context(httpx2.AsyncClient(timeout=50))


async def test_the_reply_may_reach_another_worker(tmp_path):
    async with two_workers(tmp_path) as (first, second, http):
        session = Session(http, {"elicitation": {"form": {}}})
        await session.begin(second)
        async with session.call(first) as messages:
            question = await anext(messages)
            assert question["method"] == "elicitation/create"
            assert question["params"]["message"] == "Pay 2 books at 5."
            answer = await session.post(second, reply_to(question))
            assert (answer.status_code, answer.content) == (202, b"")
            result = await anext(messages)
        assert (result["id"], result["result"]["structuredContent"]) == (1, {"result": 2})
        # A second reply, and one to no question, change nothing.
        for late in (reply_to(question), {"jsonrpc": "2.0", "id": "awp-question-none", "result": {"action": "accept"}}):
            assert (await session.post(first, late)).status_code == 202


async def test_a_person_is_asked_again_about_what_reads_differently_by_now_but_not_for_ever(tmp_path):
    prices = list(range(100))
    async with two_workers(tmp_path, prices=prices) as (first, _, http):
        session = Session(http, {"elicitation": {}})
        await session.begin(first)
        asked = []
        async with session.call(first) as messages:
            async for item in messages:
                if "method" not in item:
                    break
                asked.append(item["params"]["message"])
                await session.post(first, reply_to(item))
    assert len(set(asked)) == MAX_QUESTIONS
    problem = item["result"]["_meta"]["awp/problem"]
    assert (problem["code"], "token" in problem["confirmation"]) == ("CONFIRMATION_STALE", True)


async def test_a_caller_who_hangs_up_does_not_keep_the_server_from_stopping(tmp_path):
    async with two_workers(tmp_path) as (first, _, http):
        session = Session(http, {"elicitation": {}})
        await session.begin(first)
        async with session.call(first) as messages:
            question = await anext(messages)
        assert (await session.post(first, reply_to(question))).status_code == 202


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {"url": {}}}, {"elicitation": 3}, {"sampling": {}}])
async def test_only_a_client_that_can_show_a_form_gets_a_session(tmp_path, capabilities):
    async with two_workers(tmp_path) as (first, _, http):
        assert await Session(http, capabilities).begin(first) is None


async def test_a_page_of_another_origin_cannot_reply(tmp_path):
    async with two_workers(tmp_path) as (first, second, http):
        session = Session(http, {"elicitation": {}})
        await session.begin(first)
        async with session.call(first) as messages:
            question = await anext(messages)
            foreign = await session.post(second, reply_to(question), origin="https://evil.example")
            assert foreign.status_code == 403
            await session.post(second, reply_to(question, "decline"))
            result = await anext(messages)
        assert result["result"]["isError"] is True


async def test_a_client_that_accepts_no_stream_gets_the_token(tmp_path):
    async with two_workers(tmp_path) as (first, _, http):
        session = Session(http, {"elicitation": {}})
        await session.begin(first)
        sent = message("tools/call", {"name": "pay", "arguments": {"copies": 2}}, version=CLASSIC)
        answer = await session.post(first, sent, accept="application/json")
    assert answer.json()["result"]["_meta"]["awp/problem"]["confirmation"]["token"]
