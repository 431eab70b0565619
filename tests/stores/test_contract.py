"""What every store does, whichever it is."""

import asyncio
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from awp_publish.stores import Add, Count, Counted, Look, Ran, Reserve, Schedule, Swap, Unschedule
from awp_publish.stores.values import change_value


async def look(store, key):
    return (await store.run([Look(key)])).seen[0]


def by_the_clock(test):
    """Tries a test again, under another name, where the machine has stood still while a clock of its own went on."""

    async def tried(store, pass_time, second):
        for name in ("one", "two"):
            with suppress(AssertionError):
                return await test(store, pass_time, second, name)
        return await test(store, pass_time, second, "three")

    return tried


# --- Values ---


async def test_nothing_is_there_at_first(store):
    assert await store.run([Look("key")]) == Ran(None, (None,))


async def test_nothing_to_do_is_done(store):
    assert await store.run([]) == Ran(None, ())


async def test_a_value_is_added_only_where_there_is_none(store):
    assert await store.run([Add("key", b"one", 60)]) == Ran(None, (None,))
    assert await store.run([Add("key", b"two", 60)]) == Ran(0, (b"one",))
    assert await look(store, "key") == b"one"


async def test_a_value_is_replaced_by_another_if_it_is_the_one_that_was_expected(store):
    await store.run([Add("key", b"one", 60)])
    assert await store.run([Swap("key", b"one", b"two", 60)]) == Ran(None, (b"one",))
    assert await store.run([Swap("key", b"one", b"three", 60)]) == Ran(0, (b"two",))
    assert await look(store, "key") == b"two"


async def test_a_value_is_replaced_by_nothing(store):
    await store.run([Add("key", b"one", 60)])
    assert await store.run([Swap("key", b"one", None)]) == Ran(None, (b"one",))
    assert await look(store, "key") is None
    assert await store.run([Swap("key", b"one", None)]) == Ran(0, (None,))


async def test_nothing_is_not_the_empty_value(store):
    assert await store.run([Swap("key", b"", b"new", 60)]) == Ran(0, (None,))
    await store.run([Add("key", b"", 60)])
    assert await store.run([Add("key", b"more", 60)]) == Ran(0, (b"",))
    assert await store.run([Swap("key", b"", b"new", 60)]) == Ran(None, (b"",))


@pytest.mark.parametrize("seconds", [0, 0.0, -1])
async def test_a_value_with_no_time_to_live_is_not_found(store, seconds):
    assert (await store.run([Add("key", b"one", seconds)])).failed is None
    assert await look(store, "key") is None
    await store.run([Add("key", b"one", 60)])
    assert (await store.run([Swap("key", b"one", b"two", seconds)])).failed is None
    assert await look(store, "key") is None


async def test_a_value_can_be_put_for_ever(store):
    await store.run([Add("key", b"one", float("inf"))])
    assert await look(store, "key") == b"one"


@by_the_clock
async def test_expired_values_are_not_found(store, pass_time, second, name):
    kept = f"{name} is kept"
    await store.run([Add(name, b"one", 0.5 * second), Add(kept, b"one", 0.5 * second)])
    await store.run([Swap(kept, b"one", b"two", 60)])
    pass_time(0.6 * second)
    assert (await store.run([Look(name), Look(kept)])).seen == (None, b"two")
    assert (await store.run([Swap(name, b"one", b"two", 60)])).failed == 0
    assert (await store.run([Add(name, b"three", 60)])).failed is None


@pytest.mark.parametrize("value", [bytes(range(256)), b"\r\n\0", b"x" * 1_000_000], ids=["all", "controls", "large"])
async def test_values_are_any_bytes(store, value):
    await store.run([Add("key", value, 60)])
    assert await look(store, "key") == value
    assert (await store.run([Swap("key", value, value[::-1], 60)])).failed is None
    assert await look(store, "key") == value[::-1]


@pytest.mark.parametrize("name", ["", "k" * 100_000, "a:b c\n", "é☃", "nul\0nul", "\ud800"], ids=ascii)
async def test_names_are_any_text(store, name):
    steps = [Count(name, 5, 60), Add(name, b"value", 60), Schedule(name, name, 0)]
    assert (await store.run(steps)).failed is None
    assert await look(store, name) == b"value"
    assert await look(store, name + "x") is None
    assert await store.take(name, 60, 5) == (name,)


async def test_counts_values_and_queues_may_have_the_same_name(store):
    await store.run([Count("name", 5, 60), Add("name", b"value", 60), Schedule("name", "member", 0)])
    ran = await store.run([Count("name", 5, 60), Look("name")])
    assert ran.seen[0].events == 2
    assert ran.seen[1] == b"value"
    assert await store.take("name", 60, 5) == ("member",)


# --- Counts ---


async def test_events_are_counted_up_to_the_most_and_one_too_many_is_not(store, pass_time):
    events = [(await store.run([Count("key", 2, 60)])) for _ in range(4)]
    assert [ran.failed for ran in events] == [None, None, 0, 0]
    assert [ran.seen[0].events for ran in events] == [1, 2, 2, 2]
    assert all(40 < ran.seen[0].seconds_left <= 60 for ran in events)
    assert (await store.run([Count("key", 3, 60)])).seen[0].events == 3


@by_the_clock
async def test_a_window_opens_with_the_first_event_and_closes_after_its_seconds(store, pass_time, second, name):
    count = Count(name, 2, second)
    await store.run([count])
    pass_time(0.6 * second)
    again = (await store.run([count])).seen[0]
    assert again.events == 2
    assert 0 < again.seconds_left < 0.41 * second
    pass_time(0.5 * second)
    third = (await store.run([count])).seen[0]
    assert third.events == 1
    assert 0.5 * second < third.seconds_left <= second


async def test_a_call_that_is_not_allowed_is_not_counted(store):
    assert await store.run([Count("key", 0, 60)]) == Ran(0, (Counted(0, 0.0),))


async def test_a_window_of_no_time_is_closed_at_once(store):
    for _ in range(3):
        assert await store.run([Count("key", 1, 0)]) == Ran(None, (Counted(1, 0.0),))


async def test_a_window_never_lasts_longer_than_its_seconds(store):
    await store.run([Count("key", 1, 1000)])
    ran = await store.run([Count("key", 1, 10)])
    assert ran.failed is None
    assert ran.seen[0].seconds_left <= 10


async def test_a_count_stays_counted_whatever_the_later_steps_say(store):
    await store.run([Add("key", b"one", 60)])
    for events in (1, 2):
        ran = await store.run([Count("count", 5, 60), Add("key", b"two", 60)])
        assert ran.failed == 1
        assert ran.seen[0].events == events


async def test_the_first_count_stands_when_the_second_is_refused(store):
    await store.run([Count("small", 1, 60)])
    ran = await store.run([Count("large", 5, 60), Count("small", 1, 60)])
    assert ran.failed == 1
    ran = await store.run([Count("large", 5, 60)])
    assert ran.seen[0].events == 2


async def test_two_counts_of_one_key_are_two_events(store):
    ran = await store.run([Count("key", 2, 60), Count("key", 2, 60), Count("key", 2, 60)])
    assert ran.failed == 2
    assert [seen.events for seen in ran.seen] == [1, 2, 2]


async def test_a_count_behind_a_step_that_does_not_hold_is_not_made(store):
    await store.run([Add("key", b"one", 60)])
    ran = await store.run([Add("key", b"two", 60), Count("count", 5, 60)])
    assert ran == Ran(0, (b"one",))
    assert (await store.run([Count("count", 5, 60)])).seen[0].events == 1


# --- Together ---


async def test_either_all_steps_are_done_or_none(store):
    await store.run([Add("there", b"one", 60), Schedule("queue", "old", 0)])
    ran = await store.run(
        [
            Add("new", b"value", 60),
            Swap("there", b"one", b"two", 60),
            Schedule("queue", "new", 0),
            Unschedule("queue", "old"),
            Swap("there", b"other", None),
            Look("never reached"),
        ]
    )
    assert ran == Ran(4, (None, b"one", None, None, b"one"))
    assert (await store.run([Look("new"), Look("there")])).seen == (None, b"one")
    assert await store.take("queue", 60, 5) == ("old",)


async def test_all_steps_look_at_what_was_there_before(store):
    ran = await store.run([Add("key", b"one", 60), Look("key"), Add("key", b"two", 60)])
    assert ran == Ran(None, (None, None, None))
    assert await look(store, "key") == b"two"


async def test_the_first_step_that_does_not_hold_is_told(store):
    await store.run([Add("one", b"1", 60), Add("two", b"2", 60)])
    assert await store.run([Add("two", b"", 60), Add("one", b"", 60)]) == Ran(0, (b"2",))


async def test_durable_steps_are_done_as_all_others(store):
    assert (await store.run([Add("key", b"one", 60)], durable=True)).failed is None
    assert (await store.run([Add("key", b"two", 60)], durable=True)) == Ran(0, (b"one",))


# --- Queues ---


async def test_members_are_taken_when_they_are_due_the_longest_due_first(store):
    steps = [Schedule("queue", name, delay) for name, delay in (("b", -1), ("c", 0), ("a", -2), ("later", 60))]
    await store.run(steps)
    assert await store.take("queue", 60, 2) == ("a", "b")
    assert await store.take("queue", 60, 2) == ("c",)
    assert await store.take("queue", 60, 2) == ()
    assert await store.take("other", 60, 2) == ()


async def test_none_are_taken_if_none_are_asked_for(store):
    await store.run([Schedule("queue", "member", 0)])
    assert await store.take("queue", 60, 0) == ()


@by_the_clock
async def test_a_member_is_due_after_its_delay_and_again_after_its_lease(store, pass_time, second, name):
    delay = 0.3 * second
    await store.run([Schedule(name, "member", delay)])
    assert await store.take(name, delay, 5) == ()
    pass_time(0.4 * second)
    assert await store.take(name, delay, 5) == ("member",)
    assert await store.take(name, delay, 5) == ()
    pass_time(0.4 * second)
    assert await store.take(name, delay, 5) == ("member",)


async def test_a_member_scheduled_again_is_due_then_and_only_then(store):
    await store.run([Schedule("queue", "sooner", 60), Schedule("queue", "later", 0)])
    await store.run([Schedule("queue", "sooner", 0), Schedule("queue", "later", 60)])
    assert await store.take("queue", 60, 5) == ("sooner",)


async def test_a_member_taken_out_is_never_due(store):
    await store.run([Schedule("queue", "one", 0), Schedule("queue", "two", 0)])
    await store.run([Unschedule("queue", "one"), Unschedule("queue", "nobody"), Unschedule("nowhere", "one")])
    assert await store.take("queue", 60, 5) == ("two",)


async def test_a_member_waits_for_days_if_it_is_to(store, kind, clock):
    await store.run([Schedule("queue", "member", 200_000)])
    clock.pass_time(100_000)
    assert await store.take("queue", 60, 5) == ()


# --- Many at once ---


async def test_one_of_two_hundred_simultaneous_additions_succeeds(store):
    ran = await asyncio.gather(*(store.run([Add("key", b"%d" % n, 60)]) for n in range(200)))
    (winner,) = [n for n, one in enumerate(ran) if one.failed is None]
    assert await look(store, "key") == b"%d" % winner


async def test_a_hundred_at_once_take_each_member_once(store):
    await store.run([Schedule("queue", str(n), 0) for n in range(50)])
    taken = await asyncio.gather(*(store.take("queue", 60, 1) for _ in range(100)))
    assert Counter(member for members in taken for member in members) == Counter(map(str, range(50)))


async def test_a_hundred_at_once_count_each_event(store):
    ran = await asyncio.gather(*(store.run([Count("key", 50, 60)]) for _ in range(100)))
    assert sum(result.failed is None for result in ran) == 50


@pytest.mark.slow
async def test_two_thousand_looks_at_once_are_answered_in_time(store):
    await store.run([Add("key", b"one", 60)])
    ran = await asyncio.gather(*(store.run([Look("key")]) for _ in range(2_000)))
    assert all(result.seen == (b"one",) for result in ran)


# --- Several event loops, opening and closing ---


def test_a_store_is_used_from_one_event_loop_after_the_other(make_store):
    store = make_store()
    assert asyncio.run(store.run([Add("key", b"one", 60)])).failed is None
    assert asyncio.run(look(store, "key")) == b"one"
    asyncio.run(store.close())


def test_a_store_is_used_from_several_threads_at_once(make_store):
    store = make_store()

    async def add_all() -> int:
        ran = await asyncio.gather(*(store.run([Add(f"key {n}", b"value", 60)]) for n in range(100)))
        return sum(result.failed is None for result in ran)

    with ThreadPoolExecutor(4) as threads:
        added = list(threads.map(lambda _: asyncio.run(add_all()), range(4)))
    assert sum(added) == 100
    asyncio.run(store.close())


def test_a_loop_that_ends_while_it_waits_troubles_nobody(make_store):
    store = make_store()

    async def leave() -> None:
        asyncio.ensure_future(store.run([Add("key", b"one", 60)]))  # noqa: RUF006 - ended by the loop
        await asyncio.sleep(0)

    for _ in range(20):
        asyncio.run(leave())
    assert asyncio.run(look(store, "other")) is None
    asyncio.run(store.close())


async def test_a_store_that_was_closed_opens_again_and_has_what_it_had(store):
    before = threading.active_count()
    await store.run([Add("key", b"one", 60)])
    await store.close()
    await store.close()
    assert threading.active_count() <= before
    assert await look(store, "key") == b"one"


async def test_pending_steps_are_done_before_a_store_closes(store):
    running = [asyncio.create_task(store.run([Add(f"key {n}", b"one", 60)])) for n in range(20)]
    await asyncio.sleep(0)
    await store.close()
    assert all(ran.failed is None for ran in await asyncio.gather(*running))


async def test_making_a_store_opens_nothing(make_store, tmp_path):
    before = threading.active_count()
    await make_store().close()
    assert threading.active_count() <= before
    assert not (tmp_path / "agents.db").exists()


async def test_shared_stores_share_and_others_do_not(make_store, store):
    await store.run([Add("key", b"one", 60)])
    other = make_store()
    assert (await look(other, "key") == b"one") is store.is_shared
    await other.close()


# --- Queues with bounds ---


async def test_a_queue_takes_only_so_many_members_and_says_how_many_there_are(store):
    assert await store.run([Schedule("queue", "one", 0, most=2)]) == Ran(None, (Counted(0, 0.0),))
    assert await store.run([Schedule("queue", "two", 0, most=2)]) == Ran(None, (Counted(1, 0.0),))
    assert await store.run([Schedule("queue", "more", 0, most=2)]) == Ran(0, (Counted(2, 0.0),))
    assert await store.run([Schedule("queue", "two", 0, most=2)]) == Ran(None, (Counted(1, 0.0),))
    assert await store.run([Schedule("other", "more", 0, most=0)]) == Ran(0, (Counted(0, 0.0),))
    await store.run([Unschedule("queue", "one")])
    assert (await store.run([Schedule("queue", "more", 0, most=2)])).failed is None
    assert set(await store.take("queue", 60, 5)) == {"two", "more"}


async def test_a_queue_without_room_keeps_the_rest_from_being_done(store):
    await store.run([Schedule("queue", "one", 0)])
    ran = await store.run([Add("key", b"", 60), Schedule("queue", "two", 0, most=1), Schedule("queue", "three", 0)])
    assert ran == Ran(1, (None, Counted(1, 0.0)))
    assert await look(store, "key") is None
    assert await store.take("queue", 60, 5) == ("one",)


async def test_members_may_have_been_due_before_the_queue_was_there(store):
    await store.run(
        [Schedule("queue", "last", 0), Schedule("queue", "first", -60_000), Schedule("queue", "second", -5)]
    )
    assert await store.take("queue", 60, 2) == ("first", "second")
    assert await store.take("queue", 60, 2) == ("last",)


# --- Totals ---


def reserve(amount, most=None, key="total"):
    return Reserve(key, amount, most, 1000)


async def test_an_amount_is_reserved_only_where_the_total_stays_within_its_bound(store):
    assert await store.run([reserve(6, 10)]) == Ran(None, (Counted(0, 0.0),))
    assert await store.run([reserve(5, 10)]) == Ran(0, (Counted(6, 0.0),))
    assert await store.run([reserve(4, 10)]) == Ran(None, (Counted(6, 0.0),))
    assert await store.run([reserve(1, 10)]) == Ran(0, (Counted(10, 0.0),))
    assert await store.run([reserve(1, 0, "other")]) == Ran(0, (Counted(0, 0.0),))


async def test_a_released_amount_can_be_reserved_again_and_a_total_is_never_negative(store):
    await store.run([reserve(10, 10)])
    assert (await store.run([reserve(-4, 1)])).failed is None  # whatever the bound has become
    assert await store.run([reserve(4, 10)]) == Ran(None, (Counted(6, 0.0),))
    await store.run([reserve(-25)])
    assert await store.run([reserve(10, 10)]) == Ran(None, (Counted(0, 0.0),))


async def test_without_a_bound_any_amount_is_reserved(store):
    assert (await store.run([reserve(10**12)])).failed is None
    assert await store.run([reserve(10**12), reserve(1)]) == Ran(None, (Counted(10**12, 0.0),) * 2)
    assert (await store.run([reserve(0)])).seen == (Counted(2 * 10**12 + 1, 0.0),)


async def test_nothing_is_reserved_where_another_step_does_not_hold(store):
    await store.run([Add("key", b"one", 60)])
    assert (await store.run([reserve(5, 10), Add("key", b"two", 60)])).failed == 1
    assert await store.run([Add("new", b"one", 60), reserve(11, 10)]) == Ran(1, (None, Counted(0, 0.0)))
    assert await look(store, "new") is None


@by_the_clock
async def test_a_total_that_nobody_changes_is_forgotten(store, pass_time, second, name):
    await store.run([Reserve(name, 5, None, second)])
    pass_time(0.6 * second)
    assert (await store.run([Reserve(name, 1, None, second)])).seen[0].events == 5
    pass_time(0.6 * second)
    assert (await store.run([Reserve(name, 1, None, second)])).seen[0].events == 6
    pass_time(1.1 * second)
    assert (await store.run([Reserve(name, 1, None, second)])).seen[0].events == 0


async def test_many_reserve_at_once_and_no_more_than_there_is(store):
    rans = await asyncio.gather(*(store.run([reserve(3, 30)]) for _ in range(40)))
    assert Counter(ran.failed for ran in rans) == {None: 10, 0: 30}


async def test_a_value_that_many_change_at_once_has_all_their_changes(store):
    async def add_one(old: bytes | None) -> bytes | None:
        return b"%d" % (int(old or b"0") + 1)

    async def keep(old: bytes | None) -> bytes | None:
        return old

    async def remove(old: bytes | None) -> bytes | None:
        return None

    assert await asyncio.gather(*(change_value(store, "key", add_one, 60.0) for _ in range(3))) == [True] * 3
    assert await look(store, "key") == b"3"
    assert await change_value(store, "key", keep, 60.0)
    assert await change_value(store, "key", remove, 60.0)
    assert await look(store, "key") is None
