"""Calls through the MCP door that take more than an answer: a person's yes, time, jobs, keys, people who leave."""

import asyncio
from typing import Any

import orjson
import pytest
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from mcp.types import ElicitResult
from pydantic import BaseModel
from starlette.applications import Starlette

from awp_publish import AgentPublisher
from awp_publish.client import AgentClient
from awp_publish.http.running import running
from tests.guarded import KEYS, Caller, make_shop
from tests.plugins.mcp.mcp_messages import MODERN, MODES, VERSIONS, call, connect, headers_of, message


class McpCaller(Caller):
    """One `tools/call` at the ASGI interface, whose caller may hang up."""

    def __init__(self, app, name, given=None, version=MODERN, headers=None) -> None:
        sent = message("tools/call", {"name": name, "arguments": given or {}}, version=version)
        super().__init__(app, name, given, headers_of(sent, version) | dict(headers or {}))
        self._bodies = [orjson.dumps(sent)]
        self._path = "/mcp"
        self.answered = asyncio.Event()

    async def _send(self, message) -> None:
        await super()._send(message)
        if self.is_answered:
            self.answered.set()


def publish(site):
    return AgentPublisher(Starlette(), site=site)


@pytest.fixture
def shop():
    site = make_shop(plugins=["mcp"], secret_keys=KEYS)

    @site.agent("pay", confirm="Pay {copies} books.")
    async def pay(copies: int = 1) -> int:
        """Pay books."""
        return copies

    return site


# --- A person's agreement ---

AGREED = {"confirmation": {"action": "accept"}}


class Person:
    """Who sits at the client."""

    def __init__(self, action: Any) -> None:
        self.action = action
        self.asked: list[str] = []

    async def reply(self, _context, params) -> ElicitResult:
        self.asked.append(params.message)
        assert params.requested_schema == {"type": "object", "properties": {}}
        return ElicitResult(action=self.action, content={} if self.action == "accept" else None)


async def test_the_client_asks_its_user_where_it_can(shop):
    person = Person("accept")
    async with connect(publish(shop), MODERN, elicitation_callback=person.reply) as client:
        answer = await client.call_tool("pay", {"copies": 2})
    assert person.asked == ["Pay 2 books."]
    assert (answer.is_error, answer.structured_content) == (False, 2)


def test_a_person_is_asked_again_about_what_reads_differently_by_now(open_client):
    site, prices = make_shop(plugins=["mcp"], secret_keys=KEYS), [5]

    @site.agent("pay", confirm=lambda given: f"Pay {prices[-1]} pounds.")
    async def pay() -> str:
        """Pay."""
        return "paid"

    client = open_client(publish(site))
    can_ask: Any = {"elicitation": {}}
    asked = _send(client, {"name": "pay"}, can_ask)
    prices.append(50)
    again = _send(client, {"name": "pay", "inputResponses": AGREED, "requestState": asked["requestState"]}, can_ask)
    assert again["inputRequests"]["confirmation"]["params"]["message"] == "Pay 50 pounds."
    agreed = {"inputResponses": AGREED, "requestState": again["requestState"]}
    assert _send(client, {"name": "pay", **agreed}, can_ask)["isError"] is False


def test_an_agreement_without_the_state_it_belongs_to_counts_for_nothing(shop, open_client):
    answer = _send(open_client(publish(shop)), {"name": "pay", "inputResponses": AGREED}, {})
    assert answer["_meta"]["awp/problem"]["code"] == "CONFIRMATION_REQUIRED"


def _send(client, params, capabilities):
    sent = message("tools/call", params, capabilities=capabilities)
    return client.post("/mcp", json=sent, headers=headers_of(sent)).json()["result"]


@pytest.mark.parametrize("meta", [{"awp/confirmation": 1}, {"awp/receipts": "one"}, {"awp/idempotencyKey": []}])
def test_our_members_of_meta_have_to_have_the_right_type(shop, open_client, meta):
    assert call(open_client(publish(shop)), "pay", meta=meta)["_meta"]["awp/problem"]["code"] == "INVALID_ENVELOPE"


# --- Time ---


@pytest.mark.parametrize("mode", MODES)
async def test_a_slow_handler_is_told_of_in_time(mode):
    site = make_shop(plugins=["mcp"])
    ended = asyncio.Event()

    @site.agent("sleep", timeout=0.1)
    async def sleep() -> str:
        """Sleep."""
        try:
            await asyncio.sleep(30)
        finally:
            ended.set()
        return "awake"

    async with connect(publish(site), mode) as client:
        answer = await client.call_tool("sleep", {})
        assert answer.meta["awp/problem"]["code"] == "HANDLER_TIMEOUT"
        await asyncio.wait_for(ended.wait(), 20)


@pytest.mark.parametrize("lifespan", [True, False])
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_caller_who_leaves_ends_the_call(version, lifespan):
    site = make_shop(plugins=["mcp"])
    begun, ended = asyncio.Event(), asyncio.Event()

    @site.agent("sleep")
    async def sleep() -> str:
        """Sleep."""
        begun.set()
        try:
            await asyncio.sleep(30)
        finally:
            ended.set()
        return "awake"

    app = publish(site)
    caller = McpCaller(app, "sleep", version=version)

    async def leave() -> None:
        calling = asyncio.create_task(caller.call())
        await asyncio.wait_for(begun.wait(), 20)
        caller.hang_up()
        await asyncio.wait_for(calling, 20)
        assert ended.is_set()

    if lifespan:
        async with running(app):
            await leave()
    else:
        await leave()
    assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task() and not task.done()]


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_caller_who_leaves_in_the_middle_of_a_body_is_no_failure(shop, version, caplog):
    caller = McpCaller(publish(shop), "pay", version=version)
    caller._bodies = []
    caller.hang_up()
    await caller.call()
    assert caller.messages == []
    assert "ERROR" not in caplog.text


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_answer_is_given_while_its_route_works_on(version):
    site = make_shop(plugins=["mcp"])
    app, go = FastAPI(), asyncio.Event()

    @app.get("/slow")
    @site.action("slow")
    async def slow(request: Request) -> str:
        """Answer, and work on."""
        return "done"

    class WorksOn:
        def __init__(self, inner) -> None:
            self.inner = inner

        async def __call__(self, scope, receive, send) -> None:
            await self.inner(scope, receive, send)
            if scope.get("path") == "/slow":
                await go.wait()

    app.add_middleware(WorksOn)
    app.add_middleware(AgentPublisher, site=site)
    async with running(app):
        caller = McpCaller(app, "slow", version=version)
        calling = asyncio.create_task(caller.call())
        await asyncio.wait_for(caller.answered.wait(), 20)
        assert not calling.done()
        go.set()
        await asyncio.wait_for(calling, 20)
    assert b"done" in caller.body


async def test_the_server_may_stop_in_the_middle_of_a_call():
    site = make_shop(plugins=["mcp"])
    begun, ended = asyncio.Event(), asyncio.Event()

    @site.agent("sleep")
    async def sleep() -> str:
        """Sleep."""
        begun.set()
        try:
            await asyncio.sleep(30)
        finally:
            ended.set()
        return "awake"

    app = publish(site)
    for version in VERSIONS:
        begun.clear()
        ended.clear()
        calling = asyncio.create_task(McpCaller(app, "sleep", version=version).call())
        await asyncio.wait_for(begun.wait(), 20)
        calling.cancel()
        await asyncio.wait({calling}, timeout=20)
        assert calling.cancelled()
        assert ended.is_set()


# --- Answers against their schema, jobs, keys ---


@pytest.mark.parametrize("mode", MODES)
async def test_an_answer_against_its_schema_is_never_sent(mode):
    site = make_shop(plugins=["mcp"])

    @site.agent("count", outputs={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    async def count():
        """Count books."""
        return {"n": "secret"}

    async with connect(publish(site), mode) as client:
        answer = await client.call_tool("count", {})
    assert answer.meta["awp/problem"]["code"] == "INVALID_OUTPUT"
    assert "secret" not in answer.model_dump_json()


@pytest.mark.parametrize("mode", MODES)
async def test_answers_that_break_a_derived_schema_reach_official_clients(mode):
    """Which refuse what is not of the tool's outputSchema: it has none where the route may answer something else."""
    site, app = make_shop(plugins=["mcp"]), FastAPI()

    @app.post("/direct")
    @site.action("direct")
    async def direct() -> dict[str, int]:
        """Answer directly."""
        return JSONResponse({"title": "Emma"})  # type: ignore[return-value]

    @app.post("/wrapped")
    @site.action("wrapped")
    async def wrapped() -> dict[str, int]:
        """Answer as FastAPI does, and then something else around it."""
        return {"n": 1}

    class Price(BaseModel):
        euros: float

    @app.get("/price")
    @site.action("price")
    async def price() -> Price:
        """Answer with what JSON has not, for which pydantic writes null."""
        return Price(euros=float("nan"))

    @app.middleware("http")
    async def wrap(request, call_next):
        answer = await call_next(request)
        if request.url.path != "/wrapped":
            return answer
        return JSONResponse({"data": orjson.loads(b"".join([part async for part in answer.body_iterator]))})

    async with connect(AgentPublisher(app, site=site), mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        sent, marked = await client.call_tool("direct", {}), await client.call_tool("wrapped", {})
        priced = await client.call_tool("price", {})
    assert tools["direct"].output_schema is None
    assert not sent.is_error
    assert "Emma" in sent.content[0].text
    assert (priced.is_error, priced.structured_content) == (False, {"euros": None})
    assert tools["wrapped"].output_schema is not None
    assert marked.structured_content is None
    assert marked.content[0].text == '{"data":{"n":1}}'
    assert "has taken effect, so do not repeat it" in marked.content[1].text
    with AgentClient(AgentPublisher(app, site=site), door="mcp") as agent:
        assert agent.call("wrapped") == {"data": {"n": 1}}


def test_a_key_makes_a_retry_safe_however_it_is_sent(open_client):
    site = make_shop(plugins=["mcp"])
    ran = []

    @site.agent("order", idempotency={"key_field": "order_key"})
    async def order() -> dict[str, int]:
        """Order a book."""
        ran.append(1)
        return {"number": len(ran)}

    client = open_client(publish(site))
    first = call(client, "order", meta={"awp/idempotencyKey": "k-1"})
    again = call(client, "order", meta={"awp/idempotencyKey": "k-1"})
    assert first["structuredContent"] == again["structuredContent"] == {"number": 1}
    assert again["_meta"]["awp/headers"]["idempotent-replayed"] == "true"
    sent = message("tools/call", {"name": "order"})
    header = client.post("/mcp", json=sent, headers=headers_of(sent) | {"idempotency-key": "k-1"})
    assert header.headers["idempotent-replayed"] == "true"
    assert header.json()["result"]["structuredContent"] == {"number": 1}


async def test_many_calls_at_once_are_kept_apart(shop):
    site = make_shop(plugins=["mcp"])

    @site.agent("echo")
    async def echo(n: int) -> int:
        """Say it again."""
        await asyncio.sleep(0.01)
        return n

    app = publish(site)
    async with running(app):
        for version in VERSIONS:
            callers = [McpCaller(app, "echo", {"n": n}, version) for n in range(100)]
            await asyncio.gather(*(caller.call() for caller in callers))
            results = [orjson.loads(caller.body)["result"]["content"][0]["text"] for caller in callers]
            assert [orjson.loads(text) for text in results] in (list(range(100)), [{"result": n} for n in range(100)])


# --- What a model can send: arguments beside those of the action ---


@pytest.fixture
def depot():
    site, runs = make_shop(plugins=["mcp"], secret_keys=KEYS), []

    @site.agent("look")
    async def look() -> str:
        """Look."""
        return "seen"

    @site.agent("send_things", confirm=True, requires=["look"])
    async def send_things(copies: int = 1) -> str:
        """Send things."""
        runs.append(copies)
        return "sent"

    @site.agent("sign", confirm=True, requires=["look"])
    async def sign(confirmation: str, receipts: list[str]) -> str:
        """Sign, with inputs of these very names."""
        return confirmation + "".join(receipts)

    return site, runs


@pytest.mark.parametrize("mode", MODES)
async def test_confirmation_and_receipts_are_arguments_that_a_model_can_write(depot, mode):
    site, runs = depot
    async with connect(publish(site), mode) as client:
        tools = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
        assert set(tools["send_things"]["properties"]) == {"copies", "confirmation", "receipts"}
        assert "required" not in tools["send_things"]
        assert "properties" not in tools["look"] or tools["look"]["properties"] == {}
        seen = await client.call_tool("look", {})
        assert "look" in (await client.call_tool("send_things", {"copies": 2})).meta["awp/problem"]["missing"]
        said = next(item.text for item in seen.content if item.text.startswith("receipt: "))
        carried = {"copies": 2, "receipts": [said.removeprefix("receipt: ")]}
        asked = await client.call_tool("send_things", carried)
        question = orjson.loads(asked.content[0].text)["confirmation"]
        done = await client.call_tool("send_things", {**carried, "confirmation": question["token"]})
    assert (done.is_error, runs) == (False, [2])


def test_an_action_keeps_inputs_of_its_own_by_those_names(depot, open_client):
    client = open_client(publish(depot[0]))
    listed = client.post("/mcp", json=(sent := message("tools/list", {})), headers=headers_of(sent)).json()
    schema = {tool["name"]: tool["inputSchema"] for tool in listed["result"]["tools"]}["sign"]
    assert schema["required"] == ["confirmation", "receipts"]


@pytest.mark.parametrize("wrong", [{"confirmation": 5}, {"receipts": "text"}, {"receipts": [5]}])
def test_arguments_of_ours_that_are_of_the_wrong_kind_are_refused(depot, open_client, wrong):
    answer = _send(open_client(publish(depot[0])), {"name": "send_things", "arguments": wrong}, {})
    assert answer["_meta"]["awp/problem"]["code"] == "INVALID_ENVELOPE"
