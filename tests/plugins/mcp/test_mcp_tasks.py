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
from tests.plugins.mcp.mcp_messages import CLASSIC, MODERN, VERSIONS, headers_of, message, open_stream
from tests.plugins.sessions.test_sessions import make_app as sessions_app

EXTENSION = "io.modelcontextprotocol/tasks"
TASKS: dict[str, Any] = {"extensions": {EXTENSION: {}}}
ASKS: dict[str, Any] = {**TASKS, "elicitation": {}}
METHODS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("tasks/get", {}),
    ("tasks/cancel", {}),
    ("tasks/update", {"inputResponses": {}}),
)


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


async def test_a_background_action_is_a_task_for_clients_that_take_tasks(app, ran):
    async with running(app):
        client = Client(app)
        begun = await client.call("print_book", title="Emma")
        assert begun["resultType"] == "task"
        assert begun.keys() >= {"taskId", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs"}
        assert "content" not in begun
        task = await client.ended(begun["taskId"])
    assert (task["resultType"], task["status"]) == ("complete", "completed")
    assert task["result"]["isError"] is False
    assert task["result"]["structuredContent"]["result"] == {"printed": "Emma"}
    assert task["createdAt"] == begun["createdAt"]
    assert ran == ["Emma"]


async def test_a_call_with_the_same_key_is_the_same_task(app, ran):
    async with running(app):
        client = Client(app, **{"idempotency-key": "k-1"})
        first, second = [await client.call("print_book", title="Emma") for _ in range(2)]
        await client.ended(first["taskId"])
    assert first["taskId"] == second["taskId"]
    assert ran == ["Emma"]


@pytest.mark.parametrize(("title", "status"), [("refuse", "completed"), ("crash", "failed")])
async def test_a_refusal_is_a_result_and_a_crash_is_an_error(app, title, status):
    async with running(app):
        client = Client(app)
        task = await client.ended((await client.call("print_book", title=title))["taskId"])
    assert task["status"] == status
    if status == "completed":
        assert task["result"]["isError"] is True
        assert task["result"]["_meta"]["awp/problem"]["detail"] == "Out of paper."
    else:
        assert task["error"]["code"] == -32603
        assert "result" not in task
        assert "secret" not in str(task)


async def test_a_task_tells_how_far_it_is_and_can_be_cancelled_more_than_once(app):
    async with running(app):
        client = Client(app)
        task_id = (await client.call("print_book", title="long"))["taskId"]
        async with asyncio.timeout(50):
            while (await client.ask("tasks/get", taskId=task_id)).get("statusMessage") != "page 1":  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        for _ in range(2):
            assert (await client.ask("tasks/cancel", taskId=task_id)).keys() <= {"resultType", "_meta"}
        assert (await client.ended(task_id))["status"] == "cancelled"
        assert (await client.ask("tasks/cancel", taskId=task_id))["resultType"] == "complete"


async def test_a_person_is_asked_before_the_task_goes_on(app, ran):
    async with running(app):
        client = Client(app, ASKS)
        begun = await client.call("burn_book", title="Emma")
        assert (begun["resultType"], begun["status"]) == ("task", "input_required")
        assert "inputRequests" not in begun
        asked = await client.ask("tasks/get", taskId=begun["taskId"])
        assert asked["inputRequests"]["confirmation"]["params"]["message"] == 'Burn "Emma"?'
        ignored = {"other": {"action": "accept"}}
        await client.ask("tasks/update", taskId=begun["taskId"], inputResponses=ignored)
        assert (await client.ask("tasks/get", taskId=begun["taskId"]))["status"] == "input_required"
        assert ran == []
        agreed = {"confirmation": {"action": "accept", "content": {}}}
        acknowledged = await client.ask("tasks/update", taskId=begun["taskId"], inputResponses=agreed)
        assert acknowledged.keys() <= {"resultType", "_meta"}
        task = await client.ended(begun["taskId"])
        again = await client.ask("tasks/update", taskId=begun["taskId"], inputResponses=agreed)
        assert again["resultType"] == "complete"
    assert (task["status"], task["taskId"]) == ("completed", begun["taskId"])
    assert task["result"]["structuredContent"]["result"] == "ashes"
    assert ran == ["Emma"]


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


async def test_a_no_ends_the_task_and_nothing_is_done(app, ran):
    async with running(app):
        client = Client(app, ASKS)
        task_id = (await client.call("burn_book", title="Emma"))["taskId"]
        await client.ask("tasks/update", taskId=task_id, inputResponses={"confirmation": {"action": "decline"}})
        task = await client.ask("tasks/get", taskId=task_id)
    assert (task["status"], task["result"]["isError"]) == ("completed", True)
    assert "declined" in task["result"]["content"][0]["text"]
    assert ran == []


async def test_of_two_yeses_at_once_one_counts(app, ran):
    async with running(app):
        client = Client(app, ASKS)
        task_id = (await client.call("burn_book", title="Emma"))["taskId"]
        agreed = {"confirmation": {"action": "accept"}}
        await asyncio.gather(*(client.ask("tasks/update", taskId=task_id, inputResponses=agreed) for _ in range(4)))
        assert (await client.ended(task_id))["status"] == "completed"
    assert ran == ["Emma"]


async def test_a_task_that_waits_for_its_person_can_be_cancelled(app, ran):
    async with running(app):
        client = Client(app, ASKS)
        task_id = (await client.call("burn_book", title="Emma"))["taskId"]
        await client.ask("tasks/cancel", taskId=task_id)
        await client.ask("tasks/update", taskId=task_id, inputResponses={"confirmation": {"action": "accept"}})
        assert (await client.ask("tasks/get", taskId=task_id))["status"] == "cancelled"
    assert ran == []


async def test_who_cannot_ask_its_user_is_told_that_a_confirmation_is_required(app):
    async with running(app):
        told = await Client(app).call("burn_book", title="Emma")
    assert told["_meta"]["awp/problem"]["code"] == "CONFIRMATION_REQUIRED"


async def test_nobody_else_finds_a_task(app):
    async with running(app):
        mine = Client(app, ASKS, authorization="Bearer ann-secret-token")
        other = Client(app, ASKS, authorization="Bearer ben-secret-token")
        ids = [(await mine.call(name, title="Emma"))["taskId"] for name in ("print_book", "burn_book")]
        for task_id in ids:
            assert (await mine.ask("tasks/get", taskId=task_id))["taskId"] == task_id
            for method, more in METHODS:
                assert (await other.ask(method, taskId=task_id, **more))["code"] == -32602
        assert (await mine.ask("tasks/get", taskId="nothing"))["code"] == -32602


async def test_the_methods_are_refused_without_the_extension_and_in_older_revisions(app):
    async with running(app):
        client = Client(app, {})
        for method, more in METHODS:
            answer = await client.send(method, {"taskId": "x", **more})
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32021)
            assert answer.json()["error"]["data"] == {"requiredCapabilities": TASKS}
        assert (await client.send("tasks/get", {"taskId": "x"}, CLASSIC)).json()["error"]["code"] == -32601
        for removed in ("tasks/list", "tasks/result"):
            assert (await Client(app).ask(removed))["code"] == -32601


async def test_a_header_that_names_another_task_is_refused(app):
    async with running(app):
        client = Client(app)
        task_id = (await client.call("print_book", title="Emma"))["taskId"]
        answer = await client.send("tasks/get", {"taskId": task_id}, **{"mcp-name": "another"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32020)


async def test_replies_of_another_shape_are_invalid_params(app):
    async with running(app):
        client = Client(app, ASKS)
        task_id = (await client.call("burn_book", title="Emma"))["taskId"]
        wrong: tuple[Any, ...] = ({"confirmation": 5}, {"confirmation": {"action": "maybe"}}, [], None)
        for replies in wrong:
            assert (await client.ask("tasks/update", taskId=task_id, inputResponses=replies))["code"] == -32602
        assert (await client.ask("tasks/get", taskId=task_id))["status"] == "input_required"


async def test_the_extension_is_offered_where_there_are_background_actions(app):
    plain = make_shop(plugins=["mcp"])

    @plain.agent("count_books", effect="read")
    async def count_books() -> int:
        """Count."""
        return 3

    for one, offered in ((app, True), (AgentPublisher(FastAPI(), site=plain), False)):
        async with running(one):
            capabilities = (await Client(one).ask("server/discover"))["capabilities"]
            names = [tool["name"] for tool in (await Client(one).ask("tools/list"))["tools"]]
        assert (EXTENSION in capabilities.get("extensions", {})) is offered
        assert ("get_job" in names) is offered


@pytest.mark.parametrize("version", VERSIONS)
async def test_clients_without_the_extension_get_the_job_and_a_tool_to_poll_it(app, version):
    async with running(app):
        client = Client(app, {})

        async def call(name, **given) -> Any:
            return (await client.send("tools/call", {"name": name, "arguments": given}, version)).json()["result"]

        job = (await call("print_book", title="Emma"))["structuredContent"]
        assert job["status"] == "accepted"
        async with asyncio.timeout(50):
            while (told := await call("get_job", job_id=job["job_id"]))["structuredContent"]["status"] != "done":  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert told["structuredContent"]["result"] == {"printed": "Emma"}
        unknown = await call("get_job", job_id="nothing")
        assert (unknown["isError"], unknown["_meta"]["awp/problem"]["code"]) == (True, "UNKNOWN_JOB")
        for wrong in ({}, {"job_id": 5}, {"job_id": job["job_id"], "more": 1}):
            assert (await call("get_job", **wrong))["_meta"]["awp/problem"]["code"] == "INVALID_INPUT"


async def sign_in(client) -> str:
    """Sign in as eve, and give the session that tells so."""
    blocks = (await client.ask("tools/call", name="sign_in", arguments={"name": "eve"}))["content"]
    session: str = next(one["text"] for one in blocks if one["text"].startswith("session: ")).split()[1]
    return session


async def test_whoever_a_session_alone_has_told_finds_the_task_by_its_id():
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


async def test_who_listens_for_a_task_is_told_what_becomes_of_it(app, monkeypatch):
    monkeypatch.setattr(tasks, "MAX_POLL_MS", 10)
    async with running(app):
        client, other = Client(app, ASKS), Client(app, authorization="Bearer ann-secret-token")
        begun, asked = await client.call("print_book", title="Emma"), await client.call("burn_book", title="Emma")
        foreign = await other.call("print_book", title="Emma")
        ids = [begun["taskId"], asked["taskId"]]
        async with listening(app, *ids, foreign["taskId"], "nothing", capabilities=ASKS) as next_message:
            acknowledged = await next_message()
            assert acknowledged["params"]["notifications"] == {"taskIds": ids}
            told = [(await next_message()) for _ in range(2)]
            assert {one["method"] for one in told} == {"notifications/tasks"}
            assert [one["params"]["taskId"] for one in told] == ids
            assert told[1]["params"]["inputRequests"].keys() == {"confirmation"}
            await client.ask("tasks/cancel", taskId=asked["taskId"])
            while not {one["params"]["status"] for one in told} >= {"completed", "cancelled"}:
                told.append(await next_message())
        shown = await client.ask("tasks/get", taskId=begun["taskId"])
    [done] = [one["params"] for one in told if one["params"]["status"] == "completed"]
    assert done.pop("_meta") == {"io.modelcontextprotocol/subscriptionId": 1}
    assert done.keys() == shown.keys() - {"resultType", "_meta"}
    assert done["result"]["structuredContent"] == shown["result"]["structuredContent"]
    states = [{**one["params"], "ttlMs": 0, "pollIntervalMs": 0} for one in told]
    assert all(states.count(one) == 1 for one in states), "nobody is told twice of the same"


async def test_who_may_not_look_at_a_task_any_more_is_told_nothing_of_it(monkeypatch):
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
            while (told := await next_message()).get("method"):
                assert told["params"]["status"] == "working"
        assert told["result"]["resultType"] == "complete"
        over.set()


@pytest.mark.parametrize(("capabilities", "code"), [({}, -32021), (TASKS, -32602)])
async def test_listening_for_tasks_needs_the_extension_and_ids(app, capabilities, code):
    wanted = {"taskIds": ["x"]} if code == -32021 else {"taskIds": "x"}
    refused = await Client(app, capabilities).ask("subscriptions/listen", notifications=wanted)
    assert refused["code"] == code
    if code == -32021:
        assert refused["data"] == {"requiredCapabilities": TASKS}


async def test_what_waits_for_a_person_is_kept_in_bounds_and_the_call_is_answered_all_the_same(app, monkeypatch):
    monkeypatch.setattr(pending, "MAX_ANONYMOUS_TASKS", 2)
    async with running(app):
        client, known = Client(app, ASKS), Client(app, ASKS, **ANN)
        large = await client.call("burn_book", title="x" * 40_000)
        assert large["resultType"] != "task"
        assert "Burn " in str(large)
        assert (await known.call("burn_book", title="x" * 40_000))["resultType"] == "task"
        assert (await known.call("burn_book", title="x" * 300_000))["resultType"] != "task"
        kinds = [(await client.call("burn_book", title=f"{number}"))["resultType"] for number in range(4)]
        assert [one == "task" for one in kinds] == [True, True, False, False]
        kinds = [(await known.call("burn_book", title=f"{number}"))["resultType"] for number in range(4)]
        assert kinds == ["task"] * 4
