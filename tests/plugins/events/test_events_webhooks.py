"""Webhook subscriptions of MCP's events extension: verified, signed, tried again, and kept in the site's store."""

import asyncio
import base64
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from typing import Any

import pytest
from fastapi import FastAPI

from awp_publish import AgentPublisher, BearerToken, Principal
from awp_publish.http.running import running
from awp_publish.plugins.events import hook, log as events, webhooks
from awp_publish.plugins.events.audiences import log_of, write_cursor
from awp_publish.problems import StoreUnavailable
from awp_publish.stores.memory import MemoryStore
from awp_publish.stores.store import WEBHOOK, Look, Schedule
from tests.guarded import ANN, BEN, Watched, known_callers, make_shop
from tests.plugins.events.test_events import Client, Shipped, orders
from tests.plugins.events.webhook_receiver import is_signed, new_secret, receiving


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(webhooks, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(hook, "PAUSES", (0.02, 0.02, 0.02))


@pytest.fixture
def receiver(monkeypatch):
    with receiving(monkeypatch) as receiver:
        yield receiver


@pytest.fixture
def site(receiver):
    site = make_shop(plugins=["mcp"], authenticate=known_callers())
    site.event("order_shipped", payload=Shipped)
    return site


@pytest.fixture
def app(site):
    return AgentPublisher(FastAPI(), site=site)


@pytest.fixture
def ann(app):
    return Client(app, **ANN)


SECRET = new_secret()


async def subscribe(client, url, secret=SECRET, mode="webhook", name="order_shipped", **params):
    return await client.ask(
        "events/subscribe", name=name, delivery={"mode": mode, "url": url, "secret": secret}, **params
    )


async def kept(site, granted) -> bytes:
    """What the store has of a subscription."""
    return (await site.store.run((Look(f"{WEBHOOK}{granted['id']}"),))).seen[0] or b""


async def unsubscribe(client, url, **params):
    return await client.ask("events/unsubscribe", name="order_shipped", delivery={"url": url}, **params)


async def test_a_subscription_is_verified_and_sent_what_happens(app, site, ann, receiver):
    async with running(app):
        granted = await subscribe(ann, f"{receiver.url}/hook?who=ann", ttlMs=3_600_000)
        [asked] = receiver.verified
        assert (asked.path, asked.headers["content-type"]) == ("/hook?who=ann", "application/json")
        assert asked.headers["webhook-id"].startswith("msg_verification_")
        assert is_signed(asked, SECRET)
        assert granted["id"].startswith("sub_")
        assert granted["truncated"] is False
        left = datetime.fromisoformat(granted["refreshBefore"]).timestamp() - time.time()
        assert 3_590 < left <= 3_600
        answer = await site.emit("order_shipped", {"order_id": "1"}, audience="principal:ann")
        [sent] = await receiver.wait_for(1)
    assert is_signed(sent, SECRET)
    assert sent.headers["webhook-id"] == answer
    assert sent.headers["x-mcp-subscription-id"] == granted["id"] == asked.headers["x-mcp-subscription-id"]
    assert {**sent.json, "timestamp": "", "cursor": ""} == {
        "eventId": answer,
        "name": "order_shipped",
        "timestamp": "",
        "data": {"order_id": "1", "carrier": "post"},
        "cursor": "",
    }
    assert (await ann.poll(sent.json["cursor"]))["events"] == []
    assert orders(await ann.poll(granted["cursor"])) == ["1"]


async def test_a_failed_delivery_is_repeated_with_a_new_signature(app, site, ann, receiver):
    async with running(app):
        await subscribe(ann, receiver.url)
        receiver.statuses = [500, 429, 302]
        await site.emit("order_shipped", {"order_id": "1"}, audience="public")
        tries = await receiver.wait_for(4)
        assert len({one.headers["webhook-id"] for one in tries}) == 1
        assert all(is_signed(one, SECRET) and one.path == "/" for one in tries)
        await site.emit("order_shipped", {"order_id": "2"}, audience="public")
        assert (await receiver.wait_for(5))[4].json["data"]["order_id"] == "2"


async def test_a_delivery_that_fails_too_often_is_given_up_and_delays_no_other(app, site, ann, receiver):
    async with running(app):
        await subscribe(ann, receiver.url)
        receiver.statuses = [500] * 2
        await site.emit("order_shipped", {"order_id": "1"}, audience="public")
        await site.emit("order_shipped", {"order_id": "2"}, audience="public")
        await receiver.wait_for(4)
        assert {delivery.json["data"]["order_id"] for delivery in receiver.received} == {"1", "2"}
        receiver.received.clear()
        receiver.statuses = [500] * 10
        await site.emit("order_shipped", {"order_id": "3"}, audience="public")
        await receiver.wait_for(4)
        await asyncio.sleep(0.15)
    assert len(receiver.received) == 4


@pytest.mark.parametrize("status", [410, 413])
async def test_an_event_refused_as_gone_or_too_large_is_not_sent_again_and_the_next_one_is(
    app, site, ann, receiver, status
):
    async with running(app):
        await subscribe(ann, receiver.url)
        receiver.statuses = [status]
        await site.emit("order_shipped", {"order_id": "1"}, audience="public")
        await receiver.wait_for(1)
        await asyncio.sleep(0.15)
        assert len(receiver.received) == 1
        await site.emit("order_shipped", {"order_id": "2"}, audience="public")
        assert (await receiver.wait_for(2))[1].json["data"]["order_id"] == "2"


async def test_a_refresh_goes_on_with_a_new_secret_beside_the_old_one(app, site, ann, receiver):
    other = new_secret()
    async with running(app):
        first = await subscribe(ann, receiver.url)
        assert "deliveryStatus" not in first
        receiver.statuses = [500]
        await site.emit("order_shipped", {"order_id": "1"}, audience="public")
        await receiver.wait_for(2)
        again = await subscribe(ann, receiver.url, other)
        assert again["id"] == first["id"]
        assert again["deliveryStatus"]["active"] is True
        await site.emit("order_shipped", {"order_id": "2"}, audience="public")
        sent = (await receiver.wait_for(3))[2]
    assert is_signed(sent, SECRET)
    assert is_signed(sent, other)
    assert len(receiver.verified) == 1


@pytest.mark.parametrize(
    ("status", "words"), [(200, "did not echo the challenge"), (404, "refused"), (500, "failed"), (503, "failed")]
)
async def test_an_address_that_does_not_echo_is_sent_nothing(app, site, ann, receiver, status, words):
    receiver.echoes, receiver.verification = False, status
    async with running(app):
        answer = await subscribe(ann, receiver.url)
        assert (answer["code"], answer["message"]) == (-32027, f"The address {words}.")
        assert answer["data"] == {"reason": "challenge_failed"}
        await site.emit("order_shipped", {"order_id": "1"}, audience="public")
        await asyncio.sleep(0.1)
    assert receiver.received == []


async def test_an_address_that_nobody_is_at_is_told_so(app, ann, receiver, monkeypatch):
    monkeypatch.setenv(webhooks.ORIGINS_VARIABLE, "http://127.0.0.1:1")
    site = make_shop(plugins=["mcp"], authenticate=known_callers())
    site.event("order_shipped", payload=Shipped)
    answer = await subscribe(Client(AgentPublisher(FastAPI(), site=site), **ANN), "http://127.0.0.1:1/hook")
    assert (answer["code"], answer["data"]) == (-32027, {"reason": "connection_refused"})


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/hook",
        "ftp://example.com/hook",
        "https://127.0.0.1/hook",
        "https://localhost/hook",
        "https://10.0.0.1/hook",
        "https://169.254.169.254/latest/meta-data",
        "https://[::1]/hook",
        "https://[fd00::1]/hook",
        "https://metadata.google.internal/",
        "https://user:password@example.com/",
        "https://example.com/#part",
        "https://example.com/a b",
        "https:///hook",
        "https://[::1",
        "hook",
        "",
        f"https://example.com/{'a' * 3000}",
    ],
)
async def test_an_address_that_is_not_public_is_refused(ann, url):
    assert (await subscribe(ann, url))["code"] == -32602


async def test_a_name_that_leads_into_a_private_network_is_not_connected_to(ann, receiver, monkeypatch):
    port = receiver.url.rpartition(":")[2]
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: [(2, 1, 6, "", ("127.0.0.1", int(port)))])
    answer = await subscribe(ann, f"https://innocent.example:{port}/hook")
    assert (answer["code"], answer["data"]) == (-32027, {"reason": "connection_refused"})
    assert receiver.verified == []


@pytest.mark.parametrize(
    "secret",
    [
        "",
        "whsec_",
        "secret",
        "whsec_" + base64.b64encode(b"x" * 23).decode(),
        "whsec_" + base64.b64encode(b"x" * 65).decode(),
    ],
)
async def test_a_secret_that_is_none_is_refused(ann, receiver, secret):
    assert (await subscribe(ann, receiver.url, secret))["code"] == -32602


async def test_a_subscription_ends_when_its_time_is_over(app, site, ann, receiver, monkeypatch):
    monkeypatch.setattr("awp_publish.plugins.mcp.event_webhooks.MIN_TTL", 0.0)
    async with running(app):
        await subscribe(ann, receiver.url, ttlMs=1)
        await asyncio.sleep(0.05)
        await site.emit("order_shipped", {"order_id": "1"}, audience="public")
        await asyncio.sleep(0.1)
        assert receiver.received == []
        assert (await unsubscribe(ann, receiver.url))["code"] == -32023


async def test_no_expiry_is_granted_where_the_store_outlives_the_process(receiver, tmp_path, ann):
    assert (await subscribe(ann, receiver.url, ttlMs=None))["refreshBefore"] is not None
    options = {"plugins": ["mcp"], "authenticate": known_callers(), "store": f"sqlite:///{tmp_path}/agents.db"}
    first, second = make_shop(**options), make_shop(**options)
    for site in (first, second):
        site.event("order_shipped", payload=Shipped)
    app, restarted = (AgentPublisher(FastAPI(), site=site) for site in (first, second))
    async with running(app):
        assert (await subscribe(Client(app, **ANN), receiver.url, ttlMs=None))["refreshBefore"] is None
    await second.emit("order_shipped", {"order_id": "1"}, audience="principal:ann")
    async with running(restarted):
        assert (await receiver.wait_for(1))[0].json["data"]["order_id"] == "1"


async def test_without_a_lifespan_the_first_subscription_starts_the_sending(app, site, ann, receiver):
    await subscribe(ann, receiver.url)
    await site.emit("order_shipped", {"order_id": "1"}, audience="public")
    await receiver.wait_for(1)
    assert [delivery.json["data"]["order_id"] for delivery in receiver.received] == ["1"]


async def test_there_are_only_so_many_subscriptions(app, ann, receiver, monkeypatch):
    monkeypatch.setattr(webhooks, "MAX_OF_CALLER", 2)
    answers = [await subscribe(ann, receiver.url, arguments={"order_id": str(n)}) for n in range(3)]
    assert ["id" in answer for answer in answers] == [True, True, False]
    assert (answers[2]["code"], answers[2]["data"]) == (-32025, {"limit": "subscriptions", "max": 2})
    assert len(receiver.verified) == 1


async def test_an_event_that_the_site_no_longer_has_ends_its_subscriptions(receiver, tmp_path):
    options = {"plugins": ["mcp"], "authenticate": known_callers(), "store": f"sqlite:///{tmp_path}/agents.db"}
    before, after = make_shop(**options), make_shop(**options)
    before.event("order_shipped", payload=Shipped)
    after.event("order_lost")
    app = AgentPublisher(FastAPI(), site=before)
    async with running(app):
        granted = await subscribe(Client(app, **ANN), receiver.url)
    async with running(AgentPublisher(FastAPI(), site=after)):
        await after.store.run((Schedule(hook.DUE, granted["id"], 0.0),))
        [ended] = await receiver.wait_for(1)
    assert ended.json["type"] == "terminated"
    assert ended.json["error"]["code"] == -32023
    assert ended.headers["webhook-id"].startswith("msg_terminated_")
    assert is_signed(ended, SECRET)


async def test_callers_are_told_of_the_end_of_their_own_jobs(receiver):
    site = make_shop(plugins=["mcp"], authenticate=known_callers())

    @site.agent("print_book", execution="async", idempotency="1h")
    async def print_book(title: str) -> str:
        """Print a book."""
        return title

    app = AgentPublisher(FastAPI(), site=site)
    ann, ben = Client(app, **ANN), Client(app, **BEN)
    async with running(app):
        cursors = [(await item.poll(name="job_ended"))["cursor"] for item in (ann, ben)]
        await subscribe(ann, receiver.url, name="job_ended", arguments={"action": "print_book"})
        accepted = await ann.ask("tools/call", name="print_book", arguments={"title": "Emma"})
        [sent] = await receiver.wait_for(1)
        answer = await ann.poll(cursors[0], name="job_ended")
        assert (await ben.poll(cursors[1], name="job_ended"))["events"] == []
    job = accepted["structuredContent"]
    assert sent.json["data"] == {
        "job_id": job["job_id"],
        "action": "print_book",
        "status": "done",
        "poll_endpoint": job["poll_endpoint"],
    }
    assert [event["data"] for event in answer["events"]] == [sent.json["data"]]


async def test_a_subscriber_who_missed_too_much_is_told_of_the_gap(app, site, ann, receiver, monkeypatch):
    monkeypatch.setattr(events, "MAX_KEPT", 3)
    async with running(app):
        await subscribe(ann, receiver.url)
    for number in range(6):
        await site.emit("order_shipped", {"order_id": str(number)}, audience="public")
    async with running(app):
        gap, *sent = await receiver.wait_for(4)
    assert gap.json["type"] == "gap"
    assert gap.headers["webhook-id"].startswith("msg_gap_")
    assert orders(await ann.poll(gap.json["cursor"])) == ["3", "4", "5"]
    assert [message.json["data"]["order_id"] for message in sent] == ["3", "4", "5"]


async def test_an_address_that_always_fails_is_left_alone_until_its_caller_comes_back(
    app, site, ann, receiver, monkeypatch
):
    monkeypatch.setattr(hook, "SUSPENDED_AFTER", 2)
    monkeypatch.setattr(hook, "SUSPENDED_SECONDS", 0.0)
    async with running(app):
        granted = await subscribe(ann, receiver.url)
        receiver.statuses = [500] * 2
        await site.emit("order_shipped", {"order_id": "1"}, audience="public")
        await receiver.wait_for(2)
        async with asyncio.timeout(50):
            while b'"is_active":true' in (await kept(site, granted)):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        await asyncio.sleep(0.1)
        assert len(receiver.received) == 2
        status = (await subscribe(ann, receiver.url))["deliveryStatus"]
        assert (status["active"], status["lastError"]) == (False, "http_5xx")
        assert status["failedSince"]
        assert (await receiver.wait_for(3))[2].json["data"]["order_id"] == "1"
        async with asyncio.timeout(50):
            while (await subscribe(ann, receiver.url))["deliveryStatus"]["lastError"] is not None:  # noqa: ASYNC110
                await asyncio.sleep(0.02)


async def test_an_endless_subscription_is_forgotten_after_days_without_a_delivery(receiver, tmp_path, monkeypatch):
    site = make_shop(plugins=["mcp"], authenticate=known_callers(), store=f"sqlite:///{tmp_path}/agents.db")
    site.event("order_shipped", payload=Shipped)
    app = AgentPublisher(FastAPI(), site=site)
    ann = Client(app, **ANN)
    async with running(app):
        granted = await subscribe(ann, receiver.url, ttlMs=None)
        receiver.statuses = [500, 500]
        await site.emit("order_shipped", {"order_id": "0"}, audience="public")
        await receiver.wait_for(3)
        monkeypatch.setattr(webhooks, "DROPPED_SECONDS", 0.0)
        receiver.statuses = [500]
        await site.emit("order_shipped", {"order_id": "1"}, audience="public")
        async with asyncio.timeout(50):
            while await kept(site, granted):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert (await unsubscribe(ann, receiver.url))["code"] == -32023


async def test_a_store_that_is_away_keeps_nothing_from_being_sent_later(receiver, monkeypatch, caplog):
    monkeypatch.setattr(webhooks, "LEASE", 0.2)
    store = Watched(MemoryStore())
    site = make_shop(plugins=["mcp"], authenticate=known_callers(), store=store)
    site.event("order_shipped", payload=Shipped)
    app = AgentPublisher(FastAPI(), site=site)
    ann = Client(app, **ANN)

    async def fail(steps):
        raise StoreUnavailable("The store is away.")

    async def fail_for_webhooks(steps):
        if any(isinstance(step, Look) and step.key.startswith(WEBHOOK) for step in steps):
            has_failed.set()
            raise StoreUnavailable("The store is away.")

    has_failed = asyncio.Event()
    async with running(app):
        await subscribe(ann, receiver.url)
        store.trouble = fail
        assert (await ann.poll())["code"] == -32603
        assert (await subscribe(ann, receiver.url))["code"] == -32603
        await asyncio.sleep(0.1)
        store.trouble = fail_for_webhooks
        await site.emit("order_shipped", {"order_id": "1"}, audience="public")
        await has_failed.wait()
        store.trouble = None
        assert (await receiver.wait_for(1))[0].json["data"]["order_id"] == "1"
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_only_so_many_addresses_are_asked_in_a_minute(app, ann, receiver, monkeypatch):
    monkeypatch.setattr(webhooks, "VERIFICATIONS", 2)
    answers = [await subscribe(ann, f"{receiver.url}/{number}") for number in range(3)]
    assert answers[2]["code"] == -32025
    assert len(receiver.verified) == 2


@pytest.mark.parametrize("how", ["a scope is lost", "a cursor is made up"])
async def test_events_in_other_logs_do_not_wake_a_subscription(receiver, how):
    watched, scopes = Watched(MemoryStore()), {"buy", "staff"}
    site = make_shop(plugins=["mcp"], authenticate=BearerToken(lambda _: Principal("eve", frozenset(scopes))))
    site.event("order_shipped", payload=Shipped)
    site.store, eve = watched, Client(app := AgentPublisher(FastAPI(), site=site), authorization="Bearer eve")
    theirs = {log_of("order_shipped", "principal:ann"): ("made", 0)}
    async with running(app):
        params = {} if how == "a scope is lost" else {"cursor": write_cursor(theirs)}
        await subscribe(eve, receiver.url, **params)
        await site.emit("order_shipped", {"order_id": "1"}, audience="public")
        await receiver.wait_for(1)
        scopes.discard("staff")
        await subscribe(eve, receiver.url)
        for audience in ("staff", "principal:ann"):
            await site.emit("order_shipped", {"order_id": "2"}, audience=audience)
        await site.emit("order_shipped", {"order_id": "3"}, audience="public")
        await receiver.wait_for(2)
        before = len(watched.runs)
        for _ in range(200):
            await asyncio.sleep(0)
        await asyncio.sleep(0.1)
        assert len(watched.runs) - before < 100
    assert [delivery.json["data"]["order_id"] for delivery in receiver.received] == ["1", "3"]


async def test_addresses_that_do_not_answer_hold_up_nobody_else(app, site, ann, receiver, monkeypatch):
    monkeypatch.setattr(webhooks, "MAX_AT_ONCE", 3)
    monkeypatch.setattr(webhooks, "MAX_AT_ONCE_OF_CALLER", 2)
    monkeypatch.setattr(webhooks, "LEASE", 600.0)  # nothing is sent because nobody else has sent it
    with ThreadPoolExecutor(1) as threads:  # those of the event loop, which check credentials too
        asyncio.get_running_loop().set_default_executor(threads)
        receiver.stalls, ben = "/never", Client(app, **BEN)
        async with running(app):
            for number in range(4):
                await subscribe(ann, f"{receiver.url}/never/{number}")
            await subscribe(ben, f"{receiver.url}/soon")
            await site.emit("order_shipped", {"order_id": "1"}, audience="public")
            assert "/soon" in [item.path for item in await receiver.wait_for(3)]
            receiver.goes_on.set()
            paths = [item.path for item in await receiver.wait_for(5)]
    assert sorted(paths) == [*(f"/never/{number}" for number in range(4)), "/soon"]


async def test_an_event_that_occurs_while_an_empty_poll_ends_is_sent_at_once(receiver):
    class Store(Watched):
        emit: Any = None

        async def run(self, steps, *, durable=False):
            ran = await super().run(steps, durable=durable)
            if self.emit is not None and [type(step) for step in steps[:2]] == [Schedule, Look]:
                emit, self.emit = self.emit, None
                await emit()
                await asyncio.sleep(0.1)  # the worker finds it due meanwhile
            return ran

    store = Store(MemoryStore())
    site = make_shop(plugins=["mcp"], authenticate=known_callers(), store=store)
    site.event("order_shipped", payload=Shipped)
    app = AgentPublisher(FastAPI(), site=site)
    async with running(app):
        store.emit = partial(site.emit, "order_shipped", {"order_id": "1"}, audience="public")
        await subscribe(Client(app, **ANN), receiver.url)
        assert (await receiver.wait_for(1))[0].json["data"]["order_id"] == "1"


async def test_a_failed_event_is_not_sent_again_to_a_caller_who_may_no_longer_see_it(receiver):
    scopes = {"staff"}
    site = make_shop(plugins=["mcp"], authenticate=BearerToken(lambda _: Principal("eve", frozenset(scopes))))
    site.event("order_shipped", payload=Shipped)
    eve = Client(app := AgentPublisher(FastAPI(), site=site), authorization="Bearer eve")
    async with running(app):
        await subscribe(eve, f"{receiver.url}/hook")
        receiver.stalls, receiver.statuses = "/hook", [500]
        await site.emit("order_shipped", {"order_id": "1"}, audience="staff")
        await receiver.wait_for(1)
        scopes.clear()
        await subscribe(eve, f"{receiver.url}/hook")
        receiver.goes_on.set()
        await site.emit("order_shipped", {"order_id": "2"}, audience="public")
        await receiver.wait_for(2)
        await asyncio.sleep(0.3)
    assert [delivery.json["data"]["order_id"] for delivery in receiver.received] == ["1", "2"]
