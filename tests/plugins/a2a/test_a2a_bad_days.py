"""The A2A door on bad days: whatever comes in, the answer is the protocol's own error, and nothing is left running."""

import asyncio
import json
from typing import Any

import orjson
import pytest
from a2a.types.a2a_pb2 import GetTaskRequest
from a2a.utils.errors import InternalError, UnsupportedOperationError
from google.protobuf.json_format import MessageToDict
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

from awp_publish import AgentPublisher, Site
from awp_publish.http.exchange import AsgiApp, Message
from awp_publish.http.running import running
from awp_publish.stores.memory import MemoryStore
from tests.client import TestClient
from tests.guarded import Watched, make_shop
from tests.plugins.a2a.a2a_client import open_caller, output, problem, state

VERSION = {"a2a-version": "1.0"}


def make_site(**options) -> Site:
    site = make_shop(plugins=["a2a"], **options)

    @site.agent("add")
    async def add(numbers: list[int]) -> int:
        """Add numbers."""
        return sum(numbers)

    @site.agent("nest")
    async def nest(levels: int) -> object:
        """Answer with something deep."""
        deep: object = 1
        for _ in range(levels):
            deep = [deep]
        return deep

    return site


def publish(site: Site | None = None) -> AsgiApp:
    return AgentPublisher(Starlette(), site=site or make_site())


def make_call(method: str = "SendMessage", **params: object) -> dict[str, object]:
    part = {"data": {"skill": "add", "input": {"numbers": [1, 2]}}}
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [part]}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {"message": message}}


@pytest.fixture
def client(open_client) -> TestClient:
    return open_client(publish())


# --- What cannot be read ---


def test_a_giant_body_is_refused_unread(client):
    giant = b'{"jsonrpc": "2.0", "x": "' + b"x" * 2_000_000 + b'"}'
    for path in ("/a2a", "/a2a/message:send"):
        answer = client.post(path, content=giant, headers={**VERSION, "content-type": "application/json"})
        assert (answer.status_code, "larger than" in answer.json()["error"]["message"]) == (413, True)


# --- HTTP around it ---


def test_browsers_of_allowed_origins_may_call(open_client):
    client = open_client(publish(make_site(allow_origins=["https://ours.example"])))
    asked = {"origin": "https://ours.example", "access-control-request-method": "POST"}
    for path in ("/a2a", "/a2a/", "/a2a/message:send"):
        assert client.options(path, headers=asked).headers["access-control-allow-origin"] == "https://ours.example"
        assert (
            "access-control-allow-origin"
            not in client.options(path, headers={"origin": "https://evil.example"}).headers
        )
    answer = client.post("/a2a", json=make_call(), headers={**VERSION, "origin": "https://ours.example"})
    assert answer.headers["access-control-allow-origin"] == "https://ours.example"
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("accept", "content_type", "answered"),
    [
        ("application/json", "application/a2a+json", "application/json"),
        ("*/*", "application/json", "application/json"),
        ("*/*", "application/a2a+json", "application/a2a+json"),
        ("application/a2a+json", "application/json", "application/a2a+json"),
    ],
)
def test_http_json_is_named_as_the_caller_knows_it(client, accept, content_type, answered):
    headers = {**VERSION, "accept": accept, "content-type": content_type}
    answer = client.post("/a2a/message:send", json=make_call()["params"], headers=headers)
    assert answer.headers["content-type"] == answered


def test_the_extension_is_explained_at_its_uri(client):
    card = client.get("/.well-known/agent-card.json").json()
    uri = card["capabilities"]["extensions"][0]["uri"]
    assert "Selecting a skill" in client.get(uri).text
    asked = {**VERSION, "a2a-extensions": f"https://other.example/x, {uri}"}
    assert client.post("/a2a", json=make_call(), headers=asked).headers["a2a-extensions"] == uri
    assert "a2a-extensions" not in client.post("/a2a", json=make_call(), headers=VERSION).headers


def test_the_door_works_where_the_application_is_mounted(open_client):
    inner = Starlette()
    site = make_site()
    inner.add_middleware(AgentPublisher, site=site)
    client = open_client(Starlette(routes=[Mount("/shop", app=inner)]))
    answer = client.post("/shop/a2a", json=make_call(), headers=VERSION)
    assert answer.json()["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert client.post("/shop/a2a/message:send", json=make_call()["params"], headers=VERSION).status_code == 200


# --- Unsupported ---


# --- What comes out ---


async def test_an_output_too_deep_for_protobuf_is_told_as_text():
    async with open_caller(publish()) as caller:
        for levels in (5, 40, 150):
            task = await caller.call("nest", {"levels": levels})
            assert state(task) == "completed"
            [part] = task.artifacts[0].parts
            text = part.text or orjson.dumps(MessageToDict(part.data)).replace(b".0", b"").decode()
            assert text == "[" * levels + "1" + "]" * levels


# --- Nothing is left running ---


class Stream:
    """A request at the ASGI interface, whose caller may leave."""

    def __init__(self, app: AsgiApp, skill: str, method: str = "SendStreamingMessage") -> None:
        data = {"skill": skill, "input": {}}
        message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": data}]}
        body = orjson.dumps({**make_call(method), "params": {"message": message}})
        self._app = app
        self._messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        self._left = asyncio.Event()
        self.sent: list[Message] = []
        self.begun = asyncio.Event()

    async def run(self) -> None:
        headers = [(b"a2a-version", b"1.0"), (b"content-type", b"application/json"), (b"host", b"shop.example")]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "https",
            "path": "/a2a",
            "raw_path": b"/a2a",
            "query_string": b"",
            "headers": headers,
            "server": ("shop.example", 443),
            "client": ("192.0.2.1", 1),
        }
        await self._app(scope, self._receive, self._send)

    def leave(self) -> None:
        self._left.set()

    async def _receive(self) -> Message:
        if self._messages:
            return self._messages.pop()
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        self.sent.append(message)
        if message["type"] == "http.response.body":
            self.begun.set()


def _left_since(before: set["asyncio.Task[Any]"]) -> set["asyncio.Task[Any]"]:
    """Tasks that run on, but for the one of the SDK's event streams that watches for the end of the server."""
    return {task for task in asyncio.all_tasks() - before if "_shutdown_watcher" not in repr(task)}


def make_waiting_site(ended: list[str], go: asyncio.Event, begun: asyncio.Event | None = None) -> Site:
    site = make_site()
    begun = begun or asyncio.Event()

    @site.agent("wait")
    async def wait() -> str:
        """Wait."""
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("wait")
        return "done"

    @site.agent("linger", execution="async")
    async def linger() -> str:
        """Wait in the background."""
        begun.set()
        await go.wait()
        return "done"

    return site


async def test_a_caller_who_leaves_mid_stream_leaves_nothing_running():
    ended: list[str] = []
    begun = asyncio.Event()
    app = publish(make_waiting_site(ended, asyncio.Event(), begun))
    before = asyncio.all_tasks()
    stream = Stream(app, "wait")
    running_stream = asyncio.create_task(stream.run())
    await asyncio.wait_for(stream.begun.wait(), 20)
    await asyncio.wait_for(begun.wait(), 20)
    stream.leave()
    await asyncio.wait_for(running_stream, 20)
    for _ in range(1000):
        if not _left_since(before):
            break
        await asyncio.sleep(0.02)
    assert not _left_since(before)
    assert ended == ["wait"]


@pytest.mark.parametrize("skill", ["wait", "linger"])
async def test_a_caller_who_leaves_before_the_answer_leaves_nothing_waiting(skill):
    ended: list[str] = []
    go, begun = asyncio.Event(), asyncio.Event()
    app = publish(make_waiting_site(ended, go, begun))
    async with running(app, {}):
        request = Stream(app, skill, "SendMessage")
        answering = asyncio.create_task(request.run())
        await asyncio.wait_for(begun.wait(), 20)
        request.leave()
        await asyncio.wait_for(answering, 20)
        go.set()
    assert ended == (["wait"] if skill == "wait" else [])


async def test_a_call_is_answered_at_its_deadline_though_its_handler_does_not_heed_it():
    site = make_site()
    go = asyncio.Event()
    ended: list[str] = []

    @site.agent("stubborn", timeout=0.5)
    async def stubborn() -> str:
        """Do not heed any deadline."""
        while not go.is_set():
            try:
                await go.wait()
            except asyncio.CancelledError:
                ended.append("asked")
        return "late"

    app = publish(site)
    async with running(app, {}), open_caller(app) as caller:
        task = await asyncio.wait_for(caller.call("stubborn"), 20)
        go.set()
    assert (state(task), problem(task)["code"]) == ("failed", "HANDLER_TIMEOUT")
    assert ended


async def test_an_answer_does_not_wait_for_what_is_done_after_it(client):
    go, done = asyncio.Event(), asyncio.Event()

    async def afterwards() -> None:
        await go.wait()
        done.set()

    async def answer(request: Request) -> JSONResponse:
        return JSONResponse("answered", background=BackgroundTask(afterwards))

    site = make_site()
    site.declare("post", method="POST", path="/post", description="Post a letter.")
    app = AgentPublisher(Starlette(routes=[Route("/post", answer, methods=["POST"])]), site=site)
    async with open_caller(app) as caller:
        assert output(await caller.call("post")) == "answered"
        assert not done.is_set()
        go.set()
        await asyncio.wait_for(done.wait(), 20)


async def test_one_of_two_simultaneous_messages_continues_the_task():
    go = asyncio.Event()
    ran: list[str] = []
    site = make_site()

    @site.agent("echo")
    async def echo(word: str) -> str:
        """Say it again."""
        ran.append(word)
        await go.wait()
        return word

    async with open_caller(publish(site)) as caller:
        asked = await caller.call("echo")
        both = [asyncio.create_task(caller.call("echo", {"word": word}, task=asked)) for word in ("one", "two")]
        await asyncio.wait(both, timeout=20, return_when=asyncio.FIRST_COMPLETED)  # one is refused, the other waits
        go.set()
        answers = await asyncio.gather(*both, return_exceptions=True)
        kept = await caller.client.get_task(GetTaskRequest(id=asked.id))
    [done] = [answer for answer in answers if not isinstance(answer, BaseException)]
    [refused] = [answer for answer in answers if isinstance(answer, BaseException)]
    assert ran in (["one"], ["two"])
    assert ran == [output(done)] == [output(kept)]
    assert isinstance(refused, UnsupportedOperationError)


@pytest.mark.slow
async def test_many_idle_streams_end_when_their_callers_leave():
    go = asyncio.Event()
    app = publish(make_waiting_site([], go))
    async with running(app, {}):
        streams = [Stream(app, "linger") for _ in range(1000)]
        tasks = [asyncio.create_task(stream.run()) for stream in streams]
        await asyncio.wait_for(asyncio.gather(*(stream.begun.wait() for stream in streams)), 60)
        assert (await _call_beside(app)) == 3
        for stream in streams:
            stream.leave()
        await asyncio.wait_for(asyncio.gather(*tasks), 60)
        go.set()


async def _call_beside(app: AsgiApp) -> object:
    async with open_caller(app) as caller:
        return output(await caller.call("add", {"numbers": [1, 2]}))


async def test_a_store_that_is_away_is_told_to_the_log_and_not_to_the_caller():
    store = Watched(MemoryStore())
    app = publish(make_site(store=store))

    async def explode(_: object) -> None:
        raise RuntimeError("a secret of ours")

    async with open_caller(app) as caller:
        task = await caller.call("add", {"numbers": [1]})
        store.trouble = explode
        with pytest.raises(InternalError) as caught:
            await caller.client.get_task(GetTaskRequest(id=task.id))
        assert "secret" not in str(caught.value)
        assert (
            state(await caller.call("add", {"numbers": [1]})) == "completed"
        )  # an answer is worth more than its record


def test_a_value_that_json_cannot_represent_is_described(client):
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": {"skill": "fly\u0000\u2028" + "y" * 500}}]}
    task = client.post("/a2a", json=make_call(message=message), headers=VERSION).json()["result"]["task"]
    assert task["status"]["message"]["parts"][1]["data"]["code"] == "UNKNOWN_OPERATION"
    wrong = client.post("/a2a", content=b'{"a": 1, "a": 2}', headers={**VERSION, "content-type": "application/json"})
    assert 'name "a" twice' in wrong.json()["error"]["message"]


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/a2a", "POST, OPTIONS"),
        ("/a2a/message:send", "POST, OPTIONS"),
        ("/a2a/tasks", "GET, HEAD, OPTIONS"),
        ("/a2a/tasks/1/pushNotificationConfigs/2", "GET, HEAD, DELETE, OPTIONS"),
    ],
)
def test_allow_has_the_methods_of_its_own_path(client, path, allowed):
    assert client.options(path).headers["allow"] == allowed
    refused = client.put(path, headers=VERSION)
    assert (refused.status_code, refused.headers["allow"]) == (405, allowed)
    assert "PUT" in refused.json()["error"]["message"]


@pytest.mark.parametrize("path", ["/a2a", "/a2a/message:send"])
def test_metadata_of_an_error_are_texts(client, path):
    params = {"message": {"role": "ROLE_USER", "parts": []}}
    sent = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params} if path == "/a2a" else params
    error = client.post(path, json=sent, headers=VERSION).json()["error"]
    info, violations = error["data"] if path == "/a2a" else error["details"]
    assert [fault["field"] for fault in json.loads(info["metadata"]["errors"])] == [
        fault["field"] for fault in violations["fieldViolations"]
    ]
    assert all(isinstance(value, str) for value in info["metadata"].values())
