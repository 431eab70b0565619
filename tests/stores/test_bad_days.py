"""Stores that are slow, full or gone: StoreUnavailable while it lasts, and all is well when it is over."""

import asyncio
import gc
import logging
import os
import sqlite3
import threading
import time
from contextlib import closing, suppress

import psycopg
import pytest
import redis

from awp_publish.plugins.redis.store import RedisStore
from awp_publish.plugins.sqlite.store import SqliteStore
from awp_publish.problems import StoreUnavailable
from awp_publish.stores import Add, Count, Look, Ran, Schedule, Step, Swap, Unschedule
from awp_publish.stores.memory import MemoryStore
from tests.postgres_server import PostgresServer

# --- Memory ---


async def test_the_bytes_of_memory_are_those_of_what_is_there_whatever_is_done(clock):
    store, empty = MemoryStore(clock), MemoryStore(clock).bytes_used
    for number in range(200):
        key = f"key {number % 7}"
        await store.run([Add(key, b"x" * number, 5), Count(key, 3, 4), Schedule("queue", key, number % 3)])
        await store.run([Swap(key, b"x" * number, b"y" * 300, 3)])
        await store.take("queue", 1, 2)
        clock.pass_time(number % 4)
    clock.pass_time(10)
    for number in range(7):
        await store.run([Unschedule("queue", f"key {number}")])
    await store.run([Look("nothing")] * 20)
    assert store.bytes_used == empty == 0


async def test_memory_keeps_what_was_put_off_until_its_new_time_and_not_longer(clock):
    store = MemoryStore(clock)
    for number in range(100):
        await store.run([Add(f"key {number}", b"1", 10), Add(f"soon {number}", b"1", 100)])
        await store.run([Swap(f"key {number}", b"1", b"2", 100)])
        await store.run([Swap(f"soon {number}", b"1", b"2", 10)])
    clock.pass_time(11)
    ran = await store.run([Look("key 7"), Look("soon 7"), *[Look("nothing")] * 200])
    assert ran.seen[:2] == (b"2", None)
    assert store.bytes_used > 0
    clock.pass_time(100)
    await store.run([Look("nothing")] * 200)
    assert store.bytes_used == 0


async def test_memory_stays_as_large_as_what_is_in_it(clock):
    store = MemoryStore(clock, most_entries=50)
    for number in range(2000):
        steps: list[Step] = [
            Add(f"key {number}", b"value", 10),
            Count(f"count {number}", 1, 10),
            Schedule("queue", "same", number),
        ]
        assert (await store.run(steps)).failed is None
        clock.pass_time(1)


# --- SQLite ---


@pytest.fixture
def path(tmp_path):
    return tmp_path / "agents.db"


@pytest.fixture
async def sqlite(path, clock):
    store = SqliteStore(str(path), "shop", clock=clock, timeout=20)
    yield store
    await store.close()


async def test_an_answer_in_place_of_its_claim_is_one_page_of_the_log(sqlite, path, clock):
    await sqlite.run([Add("key", b"claim", 100)])
    size = os.path.getsize(f"{path}-wal")  # noqa: ASYNC240
    await sqlite.run([Swap("key", b"claim", b"answer", 100)], durable=True)
    assert os.path.getsize(f"{path}-wal") - size == 24 + 4096  # noqa: ASYNC240


async def test_a_postponed_job_is_not_forgotten_at_its_old_time(sqlite, clock):
    await sqlite.run([Add("key", b"1", 10), Count("count", 2, 10)])
    await sqlite.run([Swap("key", b"1", b"2", 1000)])
    clock.pass_time(20)
    await sqlite.run([Count("count", 2, 1000)])
    clock.pass_time(20)
    await sqlite.run([Add(f"other {number}", b"1", 10) for number in range(64)])
    ran = await sqlite.run([Look("key"), Count("count", 2, 1000)])
    assert (ran.failed, ran.seen[0], ran.seen[1][0]) == (None, b"2", 2)


async def is_well(store):
    """Whether a store counts, adds and looks."""
    await store.run([Count("count", 1_000_000, 60), Add("well", b"value", 60)])
    return (await store.run([Look("well")])).seen == (b"value",)


async def is_well_at_last(store):
    """Whether it is well before long: who waits less than a second may have to ask a busy machine more than once."""
    async with asyncio.timeout(30):
        while True:
            with suppress(StoreUnavailable):
                return await is_well(store)
            await asyncio.sleep(0.05)


async def fails(store, steps, *, durable=False):
    with pytest.raises(StoreUnavailable) as caught:
        await store.run(steps, durable=durable)
    assert caught.value.status == 503
    assert caught.value.headers == (("Retry-After", "1"),)
    assert "/" not in caught.value.detail
    assert "127." not in caught.value.detail
    return caught.value.detail


async def test_a_full_disk_refuses_what_is_too_much_and_nothing_else(path, monkeypatch):
    store = SqliteStore(str(path), "shop", timeout=20)
    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", connect_with_little_room)
        large = [store.run([Add(f"large {n}", b"x" * 1_000_000, 60)]) for n in range(3)]
        small = [store.run([Add(f"small {n}", b"x", 60)]) for n in range(20)]
        done = await asyncio.gather(*large, *small, return_exceptions=True)
        assert ["full" in item.detail for item in done[:3] if isinstance(item, StoreUnavailable)] == [True] * 3
        assert done[3:] == [Ran(None, (None,))] * 20
        assert await is_well(store)
        await store.close()
    assert (await store.run([Add("large 0", b"x" * 1_000_000, 60)])).failed is None
    await store.close()


_connect = sqlite3.connect


def connect_with_little_room(*arguments, **options):
    connection = _connect(*arguments, **options)
    connection.execute("PRAGMA max_page_count = 40")
    return connection


async def test_a_file_that_cannot_be_made_makes_it_unavailable(tmp_path):
    obstacle = tmp_path / "folder"
    obstacle.write_text("a file where the folder should be")
    store = SqliteStore(str(obstacle / "agents.db"), "shop")
    assert "opened" in await fails(store, [Look("key")])
    obstacle.unlink()
    obstacle.mkdir()
    assert await is_well(store)
    await store.close()


async def test_a_database_that_is_damaged_underneath_makes_it_unavailable(sqlite, path):
    await sqlite.run([Add(f"key {n}", b"x" * 3000, 60) for n in range(50)])
    await sqlite.close()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(40 * 4096))
    await fails(sqlite, [Look(f"key {n}") for n in range(50)])
    path.unlink()
    assert await is_well(sqlite)


async def test_a_clock_set_back_closes_windows_and_holds_no_jobs(sqlite, clock):
    await sqlite.run([Count("key", 1, 60), Schedule("queue", "member", 10), Schedule("queue", "far", 10)])
    clock.pass_time(-1_000_000)
    assert (await sqlite.run([Count("key", 1, 60)])).failed is None
    assert (await sqlite.run([Count("key", 1, 60)])).failed == 0
    assert set(await sqlite.take("queue", 60, 5)) == {"member", "far"}
    assert await sqlite.take("queue", 60, 5) == ()


async def test_a_clock_set_forward_ends_what_it_passes(sqlite, clock):
    await sqlite.run([Count("key", 1, 60), Add("value", b"", 60), Schedule("queue", "member", 10)])
    clock.pass_time(1_000_000)
    assert (await sqlite.run([Count("key", 1, 60), Look("value")])).seen[1] is None
    assert await sqlite.take("queue", 60, 5) == ("member",)


async def test_the_file_stays_as_large_as_what_is_in_it(sqlite, path, clock):
    sizes = []
    for _ in range(2):
        for _ in range(100):
            await sqlite.run([Add(f"key {clock.now} {n}", b"x" * 500, 10) for n in range(10)])
            clock.pass_time(1)
        await sqlite.close()  # what is in the log goes into the file
        sizes.append(path.stat().st_size)
    assert sizes[1] <= sizes[0] * 1.2
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT count(*) FROM awp_entries").fetchone()[0] < 300


async def test_an_outage_is_logged_when_it_begins_and_when_it_ends(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    store = SqliteStore(str(tmp_path / "folder" / "agents.db"), "shop")
    for _ in range(3):
        await fails(store, [Look("key")])
    (tmp_path / "folder").mkdir()
    assert await is_well(store)
    await store.close()
    assert len(caplog.records) == 2
    assert str(tmp_path / "folder") in caplog.text


async def test_a_store_that_nobody_has_any_more_ends_its_thread(path):
    before = threading.active_count()
    store = SqliteStore(str(path), "shop")
    await is_well(store)
    del store
    gc.collect()
    give_up = time.monotonic() + 30
    while threading.active_count() > before:
        assert time.monotonic() < give_up
        await asyncio.sleep(0.01)


# --- Redis ---


@pytest.fixture
def server(start_redis):
    return start_redis()


@pytest.fixture
async def shared(server):
    store = RedisStore(server.url, "shop", timeout=20)
    yield store
    await store.close()


@pytest.fixture
async def hasty(server):
    """The same server, for whoever waits for it no longer than a second."""
    store = RedisStore(server.url, "shop", timeout=1)
    yield store
    await store.close()


async def test_a_server_that_is_stopped_makes_it_unavailable_at_once_until_it_is_started(server):
    store = RedisStore(server.url, "shop", timeout=3600)  # whoever waits for it hangs
    try:
        assert await is_well(store)
        server.stop()
        assert "reached" in await fails(store, [Look("key")])
        await fails(store, [Add("key", b"", 60)])
        server.start()
        assert await is_well(store)
    finally:
        await store.close()


async def test_a_server_that_was_started_anew_between_two_calls_is_not_noticed(shared, server):
    assert await is_well(shared)
    server.stop()
    server.start()
    assert await is_well(shared)


async def test_a_server_that_lost_its_scripts_is_given_them_again(shared, server):
    assert await is_well(shared)
    with closing(redis.Redis.from_url(server.url)) as other:
        other.script_flush()
    runs = [shared.run([Count("count", 1000, 60)]) for _ in range(20)]
    assert max(ran.seen[0].events for ran in await asyncio.gather(*runs)) == 21


@pytest.mark.slow
async def test_a_server_that_hangs_makes_it_unavailable_in_time_and_the_loop_goes_on(shared, hasty, server):
    assert await is_well_at_last(hasty)
    server.pause()
    rounds = 0
    waiting = [asyncio.create_task(fails(hasty, [Add(f"key {n}", b"", 60)])) for n in range(20)]
    async with asyncio.timeout(50):
        while not all(task.done() for task in waiting):
            rounds += 1
            await asyncio.sleep(0.01)
    assert rounds > 2
    await asyncio.gather(*waiting)
    server.resume()
    assert await is_well_at_last(hasty)  # the thread may still wait for the answer that never came
    assert set((await shared.run([Look(f"key {n}") for n in range(20)])).seen) == {None}  # what was refused is not done


@pytest.mark.slow
async def test_members_that_were_asked_for_in_vain_are_not_leased_later(shared, hasty, server):
    assert await is_well_at_last(hasty)
    await shared.run([Schedule("queue", "member", 0)])
    server.pause()
    with pytest.raises(StoreUnavailable):
        await hasty.take("queue", 60, 5)
    server.resume()
    await asyncio.sleep(0.5)
    assert await shared.take("queue", 60, 5) == ("member",)


@pytest.mark.slow
async def test_a_write_under_a_claim_succeeds_however_late(shared, hasty, server):
    assert await is_well_at_last(hasty)
    await shared.run([Add("claim", b"running", 60)])
    server.pause()
    await fails(hasty, [Swap("claim", b"running", b"done", 60)])
    server.resume()
    async with asyncio.timeout(50):
        while (await shared.run([Look("claim")])).seen != (b"done",):  # noqa: ASYNC110, the server does it
            await asyncio.sleep(0.01)


async def test_a_server_whose_clock_is_another_than_was_thought_costs_a_round_trip_and_no_call(shared, server):
    assert await is_well(shared)
    worker = shared._thread._backend
    for seconds in (-3600.0, 3600.0):
        worker._clock_offset += seconds
        worker._offset_measured -= 1
        assert await is_well(shared)
        assert abs(worker._clock_offset - (time.time() - time.monotonic())) < 60


async def test_a_server_without_memory_refuses_what_needs_some(shared, server):
    await shared.run([Add("key", b"one", 60)])
    with closing(redis.Redis.from_url(server.url)) as other:
        other.config_set("maxmemory", 1)
        assert "full" in await fails(shared, [Add("other", b"", 60)])
        assert "full" in await fails(shared, [Count("count", 5, 60)])
        assert (await shared.run([Look("key")])).seen == (b"one",)
        other.config_set("maxmemory", 0)
    assert await is_well(shared)


async def test_a_run_is_one_round_trip_and_so_are_many_at_once(shared, server):
    assert await is_well(shared)
    with closing(redis.Redis.from_url(server.url)) as other:
        before = other.info("stats")["total_reads_processed"]
        for number in range(20):
            await shared.run([Count("count", 100, 60), Add(f"key {number}", b"", 60)])
        assert other.info("stats")["total_reads_processed"] - before == 21  # the question itself is one


async def test_everything_is_kept_under_the_names_of_the_namespace_and_expires(shared, server):
    await shared.run([Count("count", 100, 60), Add("key", b"", 60), Schedule("queue", "member", 0)])
    with closing(redis.Redis.from_url(server.url)) as other:
        keys = {key: other.ttl(key) for key in other.scan_iter()}
    assert keys.keys() == {b"awp:shop:c:count", b"awp:shop:v:key", b"awp:shop:q:queue"}
    assert keys.pop(b"awp:shop:q:queue") == -1
    assert all(30 < left <= 60 for left in keys.values())


async def test_a_password_is_in_no_message_and_in_no_log(server, caplog):
    caplog.set_level(logging.DEBUG)
    with closing(redis.Redis.from_url(server.url)) as other:
        other.config_set("requirepass", "right")
    store = RedisStore(server.url.replace("//", "//:hunter2@"), "shop", timeout=0.5)
    with pytest.raises(StoreUnavailable) as caught:
        await store.run([Look("key")])
    await store.close()
    assert "hunter2" not in caplog.text + repr(caught.value) + repr(caught.value.__cause__)


# --- PostgreSQL ---


def make_postgres(url, namespace, timeout=20.0):
    pytest.importorskip("psycopg_pool")
    from awp_publish.plugins.postgres.store import PostgresStore

    return PostgresStore(url, namespace, timeout=timeout)


@pytest.fixture
def postgres(tmp_path):
    server = PostgresServer()
    try:
        yield server
    finally:
        server.stop()


async def test_a_postgresql_that_is_killed_makes_it_unavailable_until_it_is_back_with_what_was_durable(postgres):
    store = make_postgres(postgres.url, "site")
    try:
        await store.run([Add("paid", b"once", 60)], durable=True)
        postgres.kill()
        assert "cannot be reached" in await fails(store, [Add("other", b"", 60)])
        postgres.start()
        assert (await store.run([Add("paid", b"twice", 60)])).failed == 0
        assert (await store.run([Look("paid"), Look("other")])).seen == (b"once", None)
    finally:
        await store.close()


async def test_a_lock_of_postgresql_that_is_held_too_long_makes_it_unavailable(postgres_url):
    store, hasty = make_postgres(postgres_url, "locked"), make_postgres(postgres_url, "locked", 1)
    try:
        assert await is_well_at_last(hasty)
        with psycopg.connect(postgres_url) as other:
            other.execute("LOCK awp_entries IN ACCESS EXCLUSIVE MODE")
            await fails(hasty, [Add("key", b"one", 60)])
        await asyncio.sleep(0.2)
        assert (await store.run([Look("key")])).seen == (None,)  # what was refused is not done later
    finally:
        await store.close()
        await hasty.close()


async def test_a_postgresql_that_is_nowhere_is_unavailable_and_keeps_its_password():
    store = make_postgres("postgresql://shop:secret@127.0.0.1:9/shop", "site")
    answer = await fails(store, [Look("key")])
    assert "cannot be reached" in answer
    assert "secret" not in answer
    await store.close()


async def test_a_pool_of_postgresql_is_opened_by_the_first_call_bounded_and_closed_with_the_store(postgres_url):
    store, most = make_postgres(postgres_url, "pool"), 0
    with psycopg.connect(postgres_url, autocommit=True) as other:

        def connections():
            asked = "SELECT pid FROM pg_stat_activity WHERE application_name = 'awp_publish'"
            return {pid for (pid,) in other.execute(f"{asked} AND datname = current_database()")}

        before = connections()
        for _ in range(10):
            calls = [store.run([Count("count", 10_000, 60), Add(f"key {n}", b"", 60)]) for n in range(60)]
            ran, seen = await asyncio.gather(asyncio.gather(*calls), asyncio.to_thread(connections))
            most = max(most, len(seen - before))
        assert max(result.seen[0].events for result in ran) == 600
        assert 1 <= most <= 4
        await store.close()
        while connections() - before:  # the server's processes end a moment later  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_request_that_waits_for_a_lock_of_postgresql_delays_no_other(postgres_url):
    store = make_postgres(postgres_url, "waiting")
    try:
        await store.run([Add("one", b"1", 60), Add("other", b"2", 60)])
        with psycopg.connect(postgres_url) as busy:
            busy.execute("SELECT key FROM awp_entries WHERE value = '1' FOR UPDATE").fetchall()
            waiting = asyncio.create_task(store.run([Swap("one", b"1", b"3", 60)]))
            asked = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
            while not busy.execute(asked).fetchone():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            assert (await store.run([Swap("other", b"2", b"4", 60)], durable=True)).failed is None
            assert (await store.run([Look("one"), Look("other")])).seen == (b"1", b"4")
            assert not waiting.done()
        assert (await waiting).failed is None
    finally:
        await store.close()


async def test_one_run_that_postgresql_refuses_does_not_undo_the_others(postgres_url):
    store = make_postgres(postgres_url, "refused")
    try:
        wrong = store.run([Add("wrong", object(), 60)])  # type: ignore[arg-type]
        right = [store.run([Add(f"key {n}", b"", 60), Schedule("queue", str(n), 0)]) for n in range(20)]
        done = await asyncio.gather(wrong, *right, return_exceptions=True)
        assert isinstance(done[0], StoreUnavailable)
        assert done[1:] == [Ran(None, (None, None))] * 20
        assert len(await store.take("queue", 60, 50)) == 20
    finally:
        await store.close()
