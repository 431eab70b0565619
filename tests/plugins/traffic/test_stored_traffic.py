"""Traffic in every store: workers add up, days are forgotten, totals stay, and no sum depends on who keeps it."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import pytest

from awp_publish.plugins.traffic.record import SHARDS, TrafficRecord
from awp_publish.stores import Add, Store

DAY = 86_400.0


def given(store: Store) -> Store:
    return store


@pytest.fixture
def kept(kind: str, make_store: Callable[[], Store]) -> list[Store]:
    """What two workers have: a store each of what they share, and of memory the same one."""
    first = make_store()
    return [first, first if kind == "memory" else make_store()]


async def test_workers_that_write_at_once_add_up(kept, clock):
    records = [TrafficRecord(partial(given, store), days=3, clock=clock) for store in kept for _ in range(2)]
    for record in records:
        for number in range(50):
            record.add("mcp", f"action_{number % 5}", "ann" if number % 2 else "", "unknown", "ok", 3.0)
        record.add("woa", "action_0", "", "forged", "INVALID_CREDENTIALS", 1.0)
        record.add("markdown", "/books", "", "unknown", "ok")
    await asyncio.gather(*(record.flush() for record in records))
    report = await records[0].read()
    assert report.sum_by("door") == {("mcp",): 200, ("markdown",): 4, ("woa",): 4}
    assert report.sum_by("caller") == {("",): 108, ("ann",): 100}
    assert report.sum_by("label", "outcome")["forged", "INVALID_CREDENTIALS"] == 4
    assert sum(map(sum, report.latencies.values())) == 204
    assert {line["type"] for line in report.lines()} == {"calls", "pages", "latency"}
    totals = await records[-1].read_totals()
    assert totals.sum_by("door") == report.sum_by("door")
    assert totals.sum_by("caller") == {("",): 208}
    for store in kept:
        await store.close()


async def test_days_are_forgotten_and_totals_stay(kept, clock):
    record, other = (TrafficRecord(partial(given, store), days=2, clock=clock) for store in kept)
    for _ in range(4):
        record.add("woa", "word", "ann", "unknown", "ok", 1.0)
        await record.flush()
        clock.pass_time(DAY)
    clock.pass_time(-DAY)
    report = await other.read(30)
    assert len(report.days) == 2
    assert report.sum_by("day") == {(day,): 1 for day in report.days}
    clock.pass_time(10 * DAY)
    assert (await other.read()).rows == ()
    assert (await other.read_totals()).sum_by("caller") == {("",): 4}
    for store in kept:
        await store.close()


async def test_a_damaged_record_begins_anew(kept, clock):
    today = datetime.fromtimestamp(clock(), UTC).date().isoformat()
    await kept[0].run([Add(f"{{traffic}}{today}:{shard}", b'{"x":[', 60.0) for shard in range(SHARDS)])
    record = TrafficRecord(partial(given, kept[1]), clock=clock)
    record.add("woa", "word", "", "unknown", "ok", 1.0)
    assert (await record.read()).sum_by("day", "action") == {(today, "word"): 1}
    for store in kept:
        await store.close()
