"""Webhooks are kept the same in every store."""

import asyncio
import time

import pytest

from awp_publish.plugins.events import webhooks
from awp_publish.plugins.events.hook import DUE, Webhook
from awp_publish.plugins.events.log import APPENDED, Events
from awp_publish.plugins.events.webhooks import TooMany, Webhooks
from awp_publish.stores.store import Look, Schedule


@pytest.fixture
def hooks(store, monkeypatch):
    monkeypatch.setattr(Webhooks, "work_anyway", lambda _: None)  # nobody takes what is due but the test
    return Webhooks(lambda: store, Events(lambda: store))


def hook(name, principal="ann", **members):
    secret = "whsec_" + "a" * 32
    return Webhook(id=name, kind="test", principal=principal, url="https://x.example/", secret=secret, **members)


async def test_a_webhook_is_found_changed_and_forgotten(hooks, store):
    kept = hook("one", logs=("log-a", "log-b"), expires=time.time() + 3600, about={"n": 1})
    assert await hooks.put(kept, None)
    assert not await hooks.put(hook("one"), None), "there is one of that id"
    assert [item.id for item in await hooks.at("log-b")] == ["one"]
    assert await store.take(DUE, 60.0, 10) == ("one",)

    async def count_one_more():
        await hooks.change(await hooks.find("one"), lambda one: one.about.update(n=one.about["n"] + 1))

    await asyncio.gather(*(count_one_more() for _ in range(5)))
    found = await hooks.find("one")
    assert (found.about, found.secret) == ({"n": 6}, kept.secret)
    assert not await hooks.put(hook("one"), hook("one", raw=b"as it was")), "somebody else has changed it"
    assert await hooks.put(hook("one", logs=("log-a",), about={"n": 7}), found)
    assert await hooks.at("log-b") == []
    await hooks.remove(found)
    assert await hooks.find("one") is None
    assert await hooks.at("log-a") == []
    assert (await store.run((Look("{events}webhooks-at:log-a"),))).seen == (None,)


async def test_a_log_wakes_those_that_wait_for_it(hooks, store):
    for name in ("one", "two"):
        await hooks.put(hook(name, logs=("log-a",) if name == "one" else ("log-b",)), None)
    assert set(await store.take(DUE, 60.0, 10)) == {"one", "two"}
    await store.run((Schedule(APPENDED, "log-a", 0.0),))
    for log in await store.take(APPENDED, 60.0, 10):
        await hooks.on_queue[APPENDED](log)
    assert await store.take(DUE, 60.0, 10) == ("one",)
    assert await store.take(APPENDED, 60.0, 10) == ()


async def test_there_are_only_so_many(hooks, monkeypatch):
    monkeypatch.setattr(webhooks, "MAX_OF_CALLER", 2)
    monkeypatch.setattr(webhooks, "MAX_AT_LOG", 2)
    for name in ("one", "two"):
        await hooks.put(hook(name, logs=("log-a",)), None)
    with pytest.raises(TooMany, match="2 subscriptions already"):
        await hooks.put(hook("three", logs=("log-b",)), None)
    with pytest.raises(TooMany, match="subscriptions of this event"):
        await hooks.put(hook("three", "ben", logs=("log-a",)), None)
    assert await hooks.find("three") is None
    await hooks.remove(await hooks.find("two"))
    assert await hooks.put(hook("three", logs=("log-a",)), None)
