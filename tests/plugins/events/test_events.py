"""Events: declared, emitted, and read through MCP's extension `io.modelcontextprotocol/events` (SEP-3415)."""

import asyncio
import base64
import gc
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from pydantic import BaseModel

from awp_publish import AgentPublisher, Principal
from awp_publish.http.running import INSPECTED, running
from awp_publish.plugins.events.log import _Group
from awp_publish.problems import DeclarationError, InvalidOutput
from awp_publish.stores.memory import MemoryStore
from tests.guarded import ANN, BEN, known_callers, make_shop
from tests.plugins.mcp.mcp_messages import MODERN, headers_of, message, open_stream


class Shipped(BaseModel):
    """An order has left the warehouse."""

    order_id: str
    carrier: str = "post"


class Client:
    """Sends messages of the stateless generation."""

    def __init__(self, app, **headers) -> None:
        self.http = httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="https://shop.example")
        self._headers = headers

    async def send(self, method, params, version=MODERN) -> httpx.Response:
        sent = message(method, params, version=version)
        return await self.http.post("/mcp", json=sent, headers=headers_of(sent, version) | self._headers)

    async def ask(self, method, **params) -> Any:
        answer = (await self.send(method, params)).json()
        return answer.get("result") or answer["error"]

    async def poll(self, cursor=None, name="order_shipped", **params) -> Any:
        return await self.ask("events/poll", name=name, cursor=cursor, **params)


@pytest.fixture
def site():
    site = make_shop(plugins=["mcp"], authenticate=known_callers())
    site.event("order_shipped", payload=Shipped)
    return site


@pytest.fixture
def app(site):
    return AgentPublisher(FastAPI(), site=site)


def orders(batch) -> list[str]:
    return [event["data"]["order_id"] for event in batch["events"]]


@pytest.mark.parametrize("method", ["events/list", "events/poll", "events/stream"])
async def test_no_events_no_methods(method):
    app = AgentPublisher(FastAPI(), site=make_shop(plugins=["mcp"]))
    answer = await Client(app).ask(method, name="order_shipped")
    assert answer["code"] == -32601


# --- Audiences ---


async def test_a_cursor_of_somebody_else_leads_to_nothing_of_theirs(app, site):
    ann, ben = Client(app, **ANN), Client(app, **BEN)
    cursor = (await ann.poll())["cursor"]
    await site.emit("order_shipped", {"order_id": "ann"}, audience="principal:ann")
    assert (await ben.poll(cursor))["events"] == []
    assert orders(await ann.poll(cursor)) == ["ann"]


async def test_nobody_can_tell_that_others_have_events(app, site):
    ben = Client(app, **BEN)
    cursor = (await ben.poll())["cursor"]
    await site.emit("order_shipped", {"order_id": "ann"}, audience="principal:ann")
    assert (await ben.poll(cursor))["cursor"] == cursor


# --- Polling ---


@pytest.mark.parametrize(
    "cursor",
    [
        "nonsense",
        "",
        "é",
        *(base64.b64encode(item).decode() for item in (b"null", b"[]", b'["x"]', b"[1,[2,3]]", b"{}")),
    ],
)
async def test_a_cursor_that_has_lost_its_place_is_a_gap_and_no_error(app, site, cursor):
    client = Client(app)
    await site.emit("order_shipped", {"order_id": "1"}, audience="public")
    batch = await client.poll(cursor)
    assert (batch["events"], batch["truncated"]) == ([], True)
    fresh = await client.poll(batch["cursor"])
    assert fresh["truncated"] is False


@pytest.mark.parametrize("told", [b'["order_shipped",["a","b",-1]]', b'["order_shipped",["a","b"]]', b'["other"]'])
async def test_a_cursor_that_somebody_has_written_leads_nowhere(app, site, told):
    await site.emit("order_shipped", {"order_id": "1"}, audience="public")
    batch = await Client(app).poll(base64.b64encode(told).decode())
    assert (batch["events"], batch["truncated"]) == ([], True)


@pytest.mark.parametrize(("emitted", "kept"), [(250, 250), (1_000, 1_000), (2_050, 1_000)])
async def test_simultaneous_events_are_read_once_in_order_and_old_ones_are_gone(emitted, kept):
    store = MemoryStore(most_entries=1_500)  # what is gone makes room
    site = make_shop(plugins=["mcp"], store=store)
    site.event("order_shipped", payload=Shipped)
    client = Client(AgentPublisher(FastAPI(), site=site))
    cursor = (await client.poll())["cursor"]
    await asyncio.gather(
        *(site.emit("order_shipped", {"order_id": str(number)}, audience="public") for number in range(emitted))
    )
    batch = await client.poll(cursor, maxEvents=200)
    assert (batch["truncated"], batch["hasMore"]) == (kept < emitted, True)
    read = list[str]()
    while batch["events"]:
        read += orders(batch)
        batch = await client.poll(batch["cursor"], maxEvents=200)
        assert not batch["truncated"]
    assert read == [str(number) for number in range(emitted - kept, emitted)]


# --- Emitting ---


async def test_an_undeclared_event_is_not_emitted(site):
    with pytest.raises(DeclarationError, match='Did you mean "order_shipped"'):
        await site.emit("order_shiped", {"order_id": "1"})
    with pytest.raises(InvalidOutput, match="/order_id: Field required"):
        await site.emit("order_shipped", {"orderid": "1"})
    with pytest.raises(InvalidOutput, match="bytes"):
        await site.emit("order_shipped", {"order_id": "1" * 300_000})
    with pytest.raises(DeclarationError, match="audience"):
        await site.emit("order_shipped", {"order_id": "1"}, audience="publik")
    for nobody in ("", "principal:", "scope:", 5, ["public"]):
        with pytest.raises(DeclarationError, match="audience"):
            await site.emit("order_shipped", {"order_id": "1"}, audience=nobody)


async def test_a_payload_that_no_json_can_have_is_refused(site):
    site.event("order_lost")
    with pytest.raises(InvalidOutput, match="cannot be written as JSON"):
        await site.emit("order_lost", {"order_id": object()})


async def test_the_first_of_many_mistakes_in_a_payload_are_described():
    site = make_shop()
    needed = list("abcde")
    site.event("order_lost", payload={"type": "object", "required": needed})
    with pytest.raises(InvalidOutput) as refused:
        await site.emit("order_lost", {})
    assert [name for name in needed if f"/{name}: " in str(refused.value)] == ["a", "b", "c"]
    assert len(refused.value.errors) == 5


async def test_an_event_with_an_id_of_its_source_is_kept_once(app, site):
    client = Client(app)
    cursor = (await client.poll())["cursor"]
    sent = [site.emit("order_shipped", {"order_id": str(n)}, audience="public", unique="stripe-1") for n in range(3)]
    assert await asyncio.gather(*sent) == ["stripe-1"] * 3
    await site.emit("order_shipped", {"order_id": "9"}, audience="public", unique="stripe-1")
    await site.emit("order_shipped", {"order_id": "9"}, audience="public", unique="stripe-2")
    assert orders(await client.poll(cursor)) == ["0", "9"]


@dataclass
class Dropped:
    order_id: str


PAYLOADS = [
    (Shipped, Shipped(order_id="1")),
    (Dropped, Dropped("1")),
    ({"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}, {"order_id": "1"}),
    (None, {"order_id": "1", "anything": None}),
]


@pytest.mark.parametrize(("payload", "given"), PAYLOADS)
async def test_a_payload_is_a_model_a_schema_or_any_object(payload, given):
    site = make_shop(plugins=["mcp"])
    site.event("order_dropped", payload=payload)
    client = Client(AgentPublisher(FastAPI(), site=site))
    cursor = (await client.poll(name="order_dropped"))["cursor"]
    await site.emit("order_dropped", given)
    [event] = (await client.poll(cursor, name="order_dropped"))["events"]
    assert event["data"]["order_id"] == "1"
    if isinstance(payload, dict):
        with pytest.raises(InvalidOutput, match="/order_id"):
            await site.emit("order_dropped", {"order_id": 1})
    with pytest.raises(InvalidOutput):
        await site.emit("order_dropped", [1])


async def test_a_decorated_function_is_unchanged_and_describes_the_event():
    site = make_shop(plugins=["mcp"])

    @site.event("order_paid")
    class Paid(BaseModel):
        """An order is paid."""

        order_id: str

    @site.event("order_lost", payload=Paid)
    def lost() -> None:
        """An order is lost."""

    @site.event("order_found", payload=Paid)
    class Found:
        """What nobody reads: the payload says what it is."""

    assert Paid(order_id="1").order_id == "1"
    assert lost() is None
    listed = (await Client(AgentPublisher(FastAPI(), site=site)).ask("events/list"))["events"]
    assert [(item["name"], item["description"]) for item in listed] == [
        ("order_paid", "An order is paid."),
        ("order_lost", "An order is lost."),
        ("order_found", "An order is paid."),
    ]
    assert listed[0]["payloadSchema"]["required"] == ["order_id"]


@pytest.mark.parametrize(
    ("event_id", "options", "told"),
    [
        ("Order", {}, "id"),
        (lambda: None, {}, "needs an id"),
        ("order", {"payload": int}, "must be an object"),
        ("order", {"payload": {"type": "nonsense"}}, "payload"),
        ("order", {"description": " "}, "description"),
        ("order", {"audience": "knwon"}, '"order": audience: .*did you mean "known"'),
    ],
)
async def test_a_wrong_declaration_is_refused(event_id, options, told):
    site = make_shop(plugins=["mcp"])

    def publish() -> None:
        site.event(event_id, **options)
        AgentPublisher(FastAPI(), site=site).open()

    with pytest.raises(DeclarationError, match=told):
        publish()


async def test_an_event_is_declared_once_and_before_the_start(site, app):
    with pytest.raises(DeclarationError, match="twice"):
        site.event("order_shipped")
    app.open()
    with pytest.raises(DeclarationError, match="after the site was published"):
        site.event("order_lost")


@pytest.mark.parametrize(("has_events", "extensions"), [(True, {}), (False, {}), (True, {INSPECTED: True})])
async def test_webhooks_are_looked_for_where_there_are_events_and_a_server(site, has_events, extensions):
    app = AgentPublisher(FastAPI(), site=site if has_events else make_shop(plugins=["mcp"]))
    async with running(app, extensions):
        names = {task.get_name() for task in asyncio.all_tasks()}
    assert ("awp_publish webhooks" in names) is (has_events and not extensions)


async def test_nothing_is_kept_in_memory_for_each_audience(site, app):
    def count() -> int:
        return sum(isinstance(kept, _Group) for kept in gc.get_objects())

    app.open()
    before = count()
    for number in range(20):
        await site.emit("order_shipped", {"order_id": "1"}, audience=f"principal:{number}")
    assert count() <= before


async def test_workers_that_share_nothing_are_refused_what_happens(site, monkeypatch):
    monkeypatch.setenv("WEB_CONCURRENCY", "2")
    with pytest.raises(DeclarationError, match="keep what has happened in its own memory"):
        AgentPublisher(FastAPI(), site=site).open()


# --- Streams ---


def streaming(app, headers=None, **params):
    return open_stream(app, "events/stream", {"name": "order_shipped", **params}, headers)


async def test_a_stream_without_a_lifespan(app, site):
    async with streaming(app) as next_message:
        await next_message()
        await site.emit("order_shipped", {"order_id": "1"}, audience="public")
        assert (await next_message())["params"]["data"]["order_id"] == "1"


async def test_a_stream_ends_with_the_application(app, monkeypatch):
    monkeypatch.setattr("awp_publish.plugins.mcp.events.LOOK_SECONDS", 0.01)
    monkeypatch.setattr("awp_publish.plugins.mcp.events.STREAM_SECONDS", 0.0)
    async with streaming(app) as next_message:
        assert (await next_message())["method"] == "notifications/events/active"
        assert (await next_message())["result"]["resultType"] == "complete"


async def test_a_quiet_stream_beats(app, monkeypatch):
    monkeypatch.setattr("awp_publish.plugins.mcp.events.HEARTBEAT_SECONDS", 0.01)
    monkeypatch.setattr("awp_publish.plugins.mcp.events.LOOK_SECONDS", 0.01)
    async with streaming(app) as next_message:
        active, beat = await next_message(), await next_message()
    assert beat["method"] == "notifications/events/heartbeat"
    assert beat["params"]["cursor"] == active["params"]["cursor"]


@pytest.mark.parametrize("how", ["withdrawn", "expired"])
async def test_a_stream_of_whom_nobody_knows_any_more_is_ended(monkeypatch, how):
    if how == "withdrawn":
        monkeypatch.setattr("awp_publish.plugins.mcp.events.VERIFY_SECONDS", 0.0)
    monkeypatch.setattr("awp_publish.plugins.mcp.events.LOOK_SECONDS", 0.01)
    tokens = {"token-of-ann-1234": Principal("ann", claims={"exp": 1} if how == "expired" else {})}
    site = make_shop(plugins=["mcp"], authenticate=lambda shown: tokens.get(shown.headers.get("authorization", "")))
    site.event("order_shipped", payload=Shipped)
    app = AgentPublisher(FastAPI(), site=site)
    async with streaming(app, {"authorization": "token-of-ann-1234"}) as next_message:
        await next_message()
        tokens.clear()
        await site.emit("order_shipped", {"order_id": "2"}, audience="principal:ann")
        ended, result = await next_message(), await next_message()
    assert ended["method"] == "notifications/events/terminated"
    assert ended["params"]["error"]["code"] == -32024
    assert result["result"]["resultType"] == "complete"
