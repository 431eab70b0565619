"""Push notifications of A2A: what becomes of a task is sent where its caller says, and events are tasks that go on."""

import asyncio
from typing import Any, cast

import httpx
import pytest
from a2a.types.a2a_pb2 import (
    AuthenticationInfo,
    ListTaskPushNotificationConfigsRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
)
from fastapi import FastAPI

from awp_publish import AgentPublisher, BearerToken, Principal, report_progress
from awp_publish.http.running import running
from awp_publish.plugins.a2a import event_tasks, pushes
from awp_publish.plugins.events import webhooks
from tests.guarded import make_shop
from tests.plugins.a2a.a2a_client import make_caller, open_caller, serving
from tests.plugins.events.test_events import Shipped
from tests.plugins.events.webhook_receiver import is_signed, new_secret, receiving


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(webhooks, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(webhooks.Webhooks, "PAUSES", (0.02, 0.02, 0.02))
    monkeypatch.setattr(pushes, "FIRST_PAUSE", 0.02)
    monkeypatch.setattr(pushes, "MAX_PAUSE", 0.05)


@pytest.fixture
def receiver(monkeypatch):
    with receiving(monkeypatch) as receiver:
        yield receiver


def publish(**options):
    site = make_shop(plugins=["a2a"], **options)
    site.event("order_shipped", payload=Shipped)
    go_on = asyncio.Event()

    @site.agent("print_book", execution="async", idempotency="1h")
    async def print_book(title: str) -> dict[str, object]:
        """Print a book."""
        report_progress(0.5, "page 1")
        await go_on.wait()
        return {"printed": title, "pages": 2}

    @site.agent("add")
    async def add(numbers: list[int]) -> int:
        """Add."""
        return sum(numbers)

    return AgentPublisher(FastAPI(), site=site), site, go_on


def config_of(task, receiver, **members):
    return TaskPushNotificationConfig(task_id=task.id, url=f"{receiver.url}/push", **members)


def states(receiver) -> list[str]:
    updates = [
        delivery.json["statusUpdate"]["status"]["state"]
        for delivery in receiver.received
        if "statusUpdate" in delivery.json
    ]
    return [one for place, one in enumerate(updates) if updates[place - 1 : place] != [one]]


@pytest.mark.parametrize("spoken", ["1.0 JSON-RPC", "1.0 HTTP+JSON"])
async def test_the_end_of_a_task_is_sent_and_signed(receiver, spoken):
    app, _, go_on = publish()
    secret = new_secret()
    async with running(app), open_caller(app, spoken) as caller:
        task = await caller.call("print_book", {"title": "Emma"}, at_once=True)
        given = config_of(task, receiver, id="mine", authentication=AuthenticationInfo(scheme="w", credentials=secret))
        kept = await caller.client.create_task_push_notification_config(given)
        assert (kept.id, kept.task_id, kept.url) == ("mine", task.id, given.url)
        go_on.set()
        async with asyncio.timeout(50):
            while not states(receiver) or states(receiver)[-1] != "TASK_STATE_COMPLETED":  # noqa: ASYNC110
                await asyncio.sleep(0.02)
    assert all(is_signed(delivery, secret) for delivery in receiver.received)
    [artifact] = [
        delivery.json["artifactUpdate"] for delivery in receiver.received if "artifactUpdate" in delivery.json
    ]
    printed = artifact["artifact"]["parts"][0]["data"]
    assert printed == {"printed": "Emma", "pages": 2}
    assert isinstance(printed["pages"], int), "a whole number stays one"
    assert artifact["taskId"] == task.id
    assert "authorization" not in receiver.received[0].headers


@pytest.mark.parametrize(("statuses", "count"), [([500, 503], 4), ([410], 1), ([413], 1), ([500] * 9, 4)])
async def test_a_failed_delivery_is_repeated_unless_its_event_is_gone(receiver, statuses, count):
    app, _, _ = publish()
    async with running(app), open_caller(app) as caller:
        task = await caller.call("add", {"numbers": [1]})
        receiver.statuses = list(statuses)
        await caller.client.create_task_push_notification_config(config_of(task, receiver))
        await receiver.wait_for(count)
        await asyncio.sleep(0.2)
        asked = ListTaskPushNotificationConfigsRequest(task_id=task.id)
        async with asyncio.timeout(50):  # what is gone is forgotten only after it has answered so
            while True:
                left = (await caller.client.list_task_push_notification_configs(asked)).configs
                if len(left) == (0 if statuses == [410] else 1):
                    break
    assert len(receiver.received) == count


async def test_a_task_has_only_so_many_configs(receiver, monkeypatch):
    monkeypatch.setattr(pushes, "MAX_CONFIGS", 2)
    app, _, _ = publish()
    async with open_caller(app) as caller:
        task = await caller.call("add", {"numbers": [1]})
        for _ in range(2):
            await caller.client.create_task_push_notification_config(config_of(task, receiver))
        with pytest.raises(Exception, match="2 push notification configs"):
            await caller.client.create_task_push_notification_config(config_of(task, receiver))


# --- Events ---


async def test_a_caller_with_fewer_permissions_than_before_is_told_less_of_a_tasks_event(receiver, monkeypatch):
    monkeypatch.setattr(event_tasks, "LOOK_SECONDS", 0.05)
    scopes = {"staff"}
    app, site, _ = publish(authenticate=BearerToken(lambda _: Principal("eve", frozenset(scopes))))
    async with serving(app) as url, httpx.AsyncClient(headers={"authorization": "Bearer eve"}) as http:
        plain, streams = (make_caller(http, f"{url}/a2a", "1.0 JSON-RPC", streaming=item) for item in (False, True))
        task = await plain.call("order_shipped", {})
        scopes.clear()
        await plain.client.create_task_push_notification_config(config_of(task, receiver))
        async with asyncio.timeout(50):
            answer = streams.client.subscribe(SubscribeToTaskRequest(id=task.id))
            await anext(answer)
            await site.emit("order_shipped", {"order_id": "1"}, audience="staff")
            await site.emit("order_shipped", {"order_id": "2"}, audience="public")
            update = (await anext(answer)).artifact_update
            await cast(Any, answer).aclose()
        [sent] = await receiver.wait_for(1)
    assert update.artifact.parts[0].data.struct_value["order_id"] == "2"
    assert sent.json["artifactUpdate"]["artifact"]["parts"][0]["data"]["order_id"] == "2"


@pytest.mark.parametrize("how", ["withdrawn", "expired"])
async def test_a_stream_of_events_ends_when_its_token_is_not_good_any_more(monkeypatch, how):
    monkeypatch.setattr(event_tasks, "LOOK_SECONDS", 0.05)
    known = {"eve": Principal("eve", claims={"exp": 1} if how == "expired" else {})}
    app, site, _ = publish(authenticate=BearerToken(known.get))
    async with serving(app) as url, httpx.AsyncClient(headers={"authorization": "Bearer eve"}) as http:
        plain, streams = (make_caller(http, f"{url}/a2a", "1.0 JSON-RPC", streaming=item) for item in (False, True))
        task = await plain.call("order_shipped", {})
        async with asyncio.timeout(50):
            answer = streams.client.subscribe(SubscribeToTaskRequest(id=task.id))
            await anext(answer)
            await site.emit("order_shipped", {"order_id": "1"}, audience="principal:eve")
            assert (await anext(answer)).artifact_update.artifact.parts[0].data.struct_value["order_id"] == "1"
            if how == "withdrawn":
                monkeypatch.setattr(event_tasks, "VERIFY_SECONDS", 0.0)
            known.clear()
            await site.emit("order_shipped", {"order_id": "2"}, audience="principal:eve")
            assert [item async for item in answer] == []


async def test_a_site_without_events_promises_no_push_notifications(open_client):
    site = make_shop(plugins=["a2a", "no:events"])
    site.agent("add", description="Add.")(lambda: 1)
    app = AgentPublisher(FastAPI(), site=site)
    assert open_client(app).get("/.well-known/agent-card.json").json()["capabilities"]["pushNotifications"] is False
