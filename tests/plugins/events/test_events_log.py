"""The log of events is the same in every store."""

import asyncio

import pytest

from awp_publish.calls.call import Principal
from awp_publish.plugins.events.audiences import logs_for, read_cursor, write_cursor
from awp_publish.plugins.events.log import KEPT_SECONDS, MAX_KEPT, Events
from awp_publish.stores import Schedule

ANN, BEN = Principal("ann", frozenset({"buy"})), Principal("ben")


@pytest.fixture
def events(store):
    events = Events(lambda: store)
    events.declare("order_shipped", None, None, "public")
    return events


def numbers(batch) -> list[int]:
    return [occurrence.facts["data"]["n"] for occurrence in batch.occurrences]


async def test_an_event_is_read_by_its_audience(events):
    [event] = events.all()
    begun = [(await events.read(event, logs_for(event, item), None)).positions for item in (ANN, BEN, None)]
    for number, audience in enumerate(("public", "known", "principal:ann", "scope:buy", Principal("ben"))):
        await events.emit("order_shipped", {"n": number}, audience)
    read = [await events.read(event, logs_for(event, one), at) for one, at in zip((ANN, BEN, None), begun, strict=True)]
    assert [sorted(numbers(item)) for item in read] == [[0, 1, 2, 3], [0, 1, 4], [0]]
    assert not any(item.truncated or item.has_more for item in read)
    again = await events.read(event, logs_for(event, ANN), read_cursor(event, write_cursor(read[0].positions)))
    assert again.occurrences == ()


async def test_all_that_is_emitted_at_once_is_kept_once_and_in_order(events, store):
    [event] = events.all()
    others = Events(lambda: store)  # another worker
    others.declare("order_shipped", None, None, "public")
    logs = logs_for(event, None)
    at = (await events.read(event, logs, None)).positions
    await asyncio.gather(
        *(
            (events, others)[number % 2].emit("order_shipped", {"n": number}, unique=f"u{number // 2}")
            for number in range(60)
        )
    )
    batch = await events.read(event, logs, at, most=100)
    assert sorted(number // 2 for number in numbers(batch)) == list(range(30))


async def test_a_look_is_not_postponed_where_there_is_news(events, store):
    """Else a process that is killed before it has sent the news leaves them until then."""
    [event] = events.all()
    at = (await events.read(event, logs_for(event, ANN), None)).positions
    await events.emit("order_shipped", {"n": 1})
    await store.run([Schedule("looks", "ann", 0.0)])
    assert await events.has_news(at, Schedule("looks", "ann", 300.0))
    assert await store.take("looks", 0.0, 1) == ("ann",)
    now = (await events.read(event, logs_for(event, ANN), at)).positions
    assert not await events.has_news(now, Schedule("looks", "ann", 300.0))
    assert await store.take("looks", 0.0, 1) == ()


async def test_old_events_are_forgotten(events, pass_time, kind):
    if kind in ("redis", "cluster"):
        pytest.skip("a clock that is the server's")
    [event] = events.all()
    logs = logs_for(event, None)
    at = (await events.read(event, logs, None)).positions
    await events.emit("order_shipped", {"n": 1})
    pass_time(KEPT_SECONDS + 1)
    await events.emit("order_shipped", {"n": 2})
    batch = await events.read(event, logs, at)
    assert (numbers(batch), batch.truncated) == ([2], True)


async def test_no_more_than_so_many_are_kept(events):
    [event] = events.all()
    logs = logs_for(event, None)
    at = (await events.read(event, logs, None)).positions
    await asyncio.gather(*(events.emit("order_shipped", {"n": number}) for number in range(MAX_KEPT + 150)))
    batch = await events.read(event, logs, at, most=200)
    assert batch.truncated
    assert numbers(batch)[0] == 150
