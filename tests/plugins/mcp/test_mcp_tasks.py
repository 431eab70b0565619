"""Background actions as tasks (`io.modelcontextprotocol/tasks`, SEP-2663), and the tool `get_job`."""

import asyncio
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from awp_publish import AgentPublisher, report_progress
from awp_publish.http.running import running
from awp_publish.plugins.mcp import pending, tasks
from awp_publish.problems import InvalidCredentials, Refused, StoreUnavailable
from awp_publish.stores.memory import MemoryStore
from awp_publish.stores.store import Swap
from tests.guarded import ANN, Watched, known_callers, make_shop
from tests.plugins.mcp.mcp_messages import MODERN, headers_of, message, open_stream
from tests.plugins.sessions.test_sessions import make_app as sessions_app

EXTENSION = "io.modelcontextprotocol/tasks"
TASKS: dict[str, Any] = {"extensions": {EXTENSION: {}}}
ASKS: dict[str, Any] = {**TASKS, "elicitation": {}}


class Client:
    """Sends messages of the stateless generation, as a client of certain capabilities."""

    def __init__(self, app, capabilities=TASKS, **headers) -> None:
        self._http = httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="https://shop.example")
        self._capabilities = capabilities
        self._headers = headers

    async def send(self, method, params, version=MODERN, **headers) -> httpx.Response:
        sent = message(method, params, version=version, capabilities=self._capabilities)
        named = {"mcp-name": params["taskId"]} if "taskId" in params else {}
        return await self._http.post(
            "/mcp", json=sent, headers=headers_of(sent, version) | named | self._headers | headers
        )

    async def ask(self, method, **params) -> Any:
        answer = (await self.send(method, params)).json()
        return answer.get("result") or answer["error"]

    async def call(self, name, **given) -> Any:
        return await self.ask("tools/call", name=name, arguments=given)

    async def ended(self, task_id) -> Any:
        async with asyncio.timeout(50):
            while (task := await self.ask("tasks/get", taskId=task_id))["status"] == "working":  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        return task


@pytest.fixture
def ran() -> list[str]:
    return []


@pytest.fixture
def app(ran):
    site = make_shop(plugins=["mcp"], authenticate=known_callers())

    @site.agent("print_book", execution="async", idempotency="1h")
    async def print_book(title: str) -> dict[str, str]:
        """Print a book."""
        if title == "crash":
            raise RuntimeError("secret")
        if title == "refuse":
            raise Refused("Out of paper.")
        if title == "long":
            report_progress(0.5, "page 1")
            await asyncio.sleep(30)
        ran.append(title)
        return {"printed": title}

    @site.agent("burn_book", execution="async", confirm="Burn {title}?", effect="irreversible")
    async def burn_book(title: str) -> str:
        """Burn a book."""
        ran.append(title)
        return "ashes"

    @site.agent("count_books", effect="read")
    async def count_books() -> int:
        """Count."""
        return 3

    return AgentPublisher(FastAPI(), site=site)


async def test_a_reply_that_was_lost_with_the_store_is_asked_for_again(ran, monkeypatch):
    store = Watched(MemoryStore())
    site = make_shop(plugins=["mcp"], store=store)

    @site.agent("burn_book", execution="async", confirm="Burn {title}?", effect="irreversible")
    async def burn_book(title: str) -> str:
        """Burn a book."""
        ran.append(title)
        return "ashes"

    taken = 0

    async def fail_after_the_reply_was_taken(steps):
        nonlocal taken
        if taken:
            raise StoreUnavailable("The store is away.")
        taken += isinstance(steps[0], Swap)

    app = AgentPublisher(FastAPI(), site=site)
    agreed = {"confirmation": {"action": "accept"}}
    async with running(app):
        client = Client(app, ASKS)
        task_id = (await client.call("burn_book", title="Emma"))["taskId"]
        store.trouble = fail_after_the_reply_was_taken
        assert (await client.ask("tasks/update", taskId=task_id, inputResponses=agreed))["code"] == -32603
        store.trouble = None
        assert (await client.ask("tasks/get", taskId=task_id))["status"] == "working"
        monkeypatch.setattr(pending, "TAKEN_SECONDS", 0)
        assert (await client.ask("tasks/get", taskId=task_id))["status"] == "input_required"
        await client.ask("tasks/update", taskId=task_id, inputResponses=agreed)
        assert (await client.ended(task_id))["status"] == "completed"
    assert ran == ["Emma"]


async def test_one_of_two_simultaneous_consents_counts(app, ran):
    async with running(app):
        client = Client(app, ASKS)
        task_id = (await client.call("burn_book", title="Emma"))["taskId"]
        agreed = {"confirmation": {"action": "accept"}}
        await asyncio.gather(*(client.ask("tasks/update", taskId=task_id, inputResponses=agreed) for _ in range(4)))
        assert (await client.ended(task_id))["status"] == "completed"
    assert ran == ["Emma"]


async def sign_in(client) -> str:
    """Sign in as eve, and give the session that tells so."""
    blocks = (await client.ask("tools/call", name="sign_in", arguments={"name": "eve"}))["content"]
    session: str = next(block["text"] for block in blocks if block["text"].startswith("session: ")).split()[1]
    return session


async def test_a_caller_known_only_by_a_session_finds_the_task_by_its_id():
    _, shop = sessions_app()
    async with running(shop):
        client, other = Client(shop), Client(shop, authorization="Bearer ben-secret")
        task = await client.call("later", session=await sign_in(Client(shop)))
        assert task["resultType"] == "task"
        ended = await client.ended(task["taskId"])
        assert ended["status"] == "completed"
        assert ended["result"]["structuredContent"]["result"][0] == "eve"
        assert (await other.ended(task["taskId"]))["status"] == "completed"  # nobody guesses it
        assert (await client.ask("tasks/cancel", taskId=task["taskId"]))["resultType"] == "complete"
        job = (await client.call("get_job", job_id=task["taskId"]))["isError"]
        assert job is True  # which is the caller's own still


async def test_a_question_to_whoever_a_session_alone_has_told_is_answered_by_the_tasks_id():
    site, shop = sessions_app(secret_keys=["k" * 32])

    @site.agent("send_later", execution="async", confirm="Send it?", auth_required=True)
    async def send_later() -> str:
        """Send it."""
        return "sent"

    async with running(shop):
        client = Client(shop, ASKS)
        task = await client.call("send_later", session=await sign_in(Client(shop)))
        assert task["status"] == "input_required"
        replies = {"confirmation": {"action": "accept"}}
        await client.ask("tasks/update", taskId=task["taskId"], inputResponses=replies)
        ended = await client.ended(task["taskId"])
    assert ended["status"] == "completed"
    assert "sent" in str(ended["result"])


# --- Task Status Notifications ---


def listening(app, *task_ids, capabilities=TASKS, **headers):
    wanted = {"notifications": {"taskIds": [*task_ids]}}
    return open_stream(app, "subscriptions/listen", wanted, headers, capabilities)


async def test_a_subscriber_of_a_task_is_told_how_it_ends(app, monkeypatch):
    monkeypatch.setattr(tasks, "MAX_POLL_MS", 10)
    async with running(app):
        client, other = Client(app, ASKS), Client(app, authorization="Bearer ann-secret-token")
        begun, asked = await client.call("print_book", title="Emma"), await client.call("burn_book", title="Emma")
        foreign = await other.call("print_book", title="Emma")
        ids = [begun["taskId"], asked["taskId"]]
        async with listening(app, *ids, foreign["taskId"], "nothing", capabilities=ASKS) as next_message:
            acknowledged = await next_message()
            assert acknowledged["params"]["notifications"] == {"taskIds": ids}
            results = [(await next_message()) for _ in range(2)]
            assert {item["method"] for item in results} == {"notifications/tasks"}
            assert [item["params"]["taskId"] for item in results] == ids
            assert results[1]["params"]["inputRequests"].keys() == {"confirmation"}
            await client.ask("tasks/cancel", taskId=asked["taskId"])
            while not {item["params"]["status"] for item in results} >= {"completed", "cancelled"}:
                results.append(await next_message())
        shown = await client.ask("tasks/get", taskId=begun["taskId"])
    [done] = [item["params"] for item in results if item["params"]["status"] == "completed"]
    assert done.pop("_meta") == {"io.modelcontextprotocol/subscriptionId": 1}
    assert done.keys() == shown.keys() - {"resultType", "_meta"}
    assert done["result"]["structuredContent"] == shown["result"]["structuredContent"]
    states = [{**item["params"], "ttlMs": 0, "pollIntervalMs": 0} for item in results]
    assert all(states.count(state) == 1 for state in states), "nobody is told twice of the same"


async def test_a_caller_who_may_no_longer_see_a_task_is_told_nothing_of_it(monkeypatch):
    monkeypatch.setattr(tasks, "MAX_POLL_MS", 10)
    tokens, over = {"t": "ann"}, asyncio.Event()

    def known(shown):
        if shown.headers.get("authorization") not in tokens:
            raise InvalidCredentials("The token is not valid.")
        return "ann"

    site = make_shop(plugins=["mcp"], authenticate=known)

    @site.agent("wait", execution="async")
    async def wait() -> None:
        """Wait."""
        await over.wait()

    app = AgentPublisher(FastAPI(), site=site)
    async with running(app):
        task = await Client(app, authorization="t").call("wait")
        async with listening(app, task["taskId"], authorization="t") as next_message:
            assert [(await next_message())["method"] for _ in range(2)][1] == "notifications/tasks"
            tokens.clear()
            while (answer := await next_message()).get("method"):
                assert answer["params"]["status"] == "working"
        assert answer["result"]["resultType"] == "complete"
        over.set()


async def test_pending_decisions_are_limited_and_the_call_is_answered(app, monkeypatch):
    monkeypatch.setattr(pending, "MAX_ANONYMOUS_TASKS", 2)
    async with running(app):
        client, known = Client(app, ASKS), Client(app, ASKS, **ANN)
        large = await client.call("burn_book", title="x" * 40_000)
        assert large["resultType"] != "task"
        assert "Burn " in str(large)
        assert (await known.call("burn_book", title="x" * 40_000))["resultType"] == "task"
        assert (await known.call("burn_book", title="x" * 300_000))["resultType"] != "task"
        kinds = [(await client.call("burn_book", title=f"{number}"))["resultType"] for number in range(4)]
        assert [kind == "task" for kind in kinds] == [True, True, False, False]
        kinds = [(await known.call("burn_book", title=f"{number}"))["resultType"] for number in range(4)]
        assert kinds == ["task"] * 4
