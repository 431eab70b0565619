"""The cookies of sessions, in every store."""

import asyncio

import pytest

from awp_publish.browsing.addresses import parse_address
from awp_publish.calls.tokens import Tokens
from awp_publish.plugins.sessions import cookies as bounds
from awp_publish.plugins.sessions.cookies import CookieSessions
from awp_publish.problems import StoreUnavailable
from awp_publish.stores import Look, Swap
from awp_publish.stores.memory import MemoryStore
from awp_publish.stores.store import session_key

HOME = parse_address("https://shop.example/basket/add")
TOKENS = Tokens(["a secret key of this test alone"], "session:shop.example", 60)


@pytest.fixture
def sessions(store, clock):
    return CookieSessions(store, TOKENS, clock, identifying={"session"})


async def begin(sessions, *set_cookies: str, owner: str = "", address: str = "192.0.2.1") -> str:
    session_id = sessions.new_id()
    assert await sessions.begin(session_key(session_id), owner, address, set_cookies, HOME)
    return session_id


async def cookies(sessions, session_id: str, address: str = "https://shop.example/basket/add") -> str:
    found = await sessions.find(session_id)
    return str(sessions.header_for(found, parse_address(address)))


async def test_cookies_are_sent_where_a_browser_would_send_them(sessions):
    session_id = await begin(
        sessions,
        "account=1; Path=/; Secure; HttpOnly",
        "basket=2",
        "admin=3; Path=/admin",
        "foreign=4; Domain=evil.example",
        "wide=5; Domain=example; Path=/",
        "old=6; Max-Age=0",
    )
    assert await cookies(sessions, session_id) == "basket=2; account=1"
    assert await cookies(sessions, session_id, "https://shop.example/") == "account=1"
    assert await cookies(sessions, session_id, "http://shop.example/") == ""
    assert await cookies(sessions, session_id, "https://other.example/") == ""


async def test_ids_are_long_different_and_known_for_the_sites_own(sessions):
    ids = {sessions.new_id() for _ in range(100)}
    assert len(ids) == 100
    assert all(len(one) == 56 and sessions.is_own(one) for one in ids)
    made_up = ("", "ctx-1", "A" * 56, next(iter(ids))[:-1] + "g", "é" * 56, next(iter(ids)) + "\n")
    assert not any(sessions.is_own(one) for one in made_up)
    others = CookieSessions(MemoryStore(), Tokens(["another key, of another site"], "session:shop.example", 60))
    assert not any(others.is_own(one) for one in ids)


async def test_the_store_has_no_id(sessions, store):
    session_id = await begin(sessions, "a=1")
    found = await sessions.find(session_id)
    assert found.key.startswith("session:")
    assert session_id not in found.key + found.raw.decode()
    assert (await store.run([Look(f"session:{session_id}")])).seen == (None,)


async def test_calls_that_set_cookies_at_the_same_time_lose_none(sessions):
    session_id = await begin(sessions, "first=0")
    same = [await sessions.find(session_id) for _ in range(10)]
    await asyncio.gather(*(sessions.update(one, [f"c{n}={n}"], HOME) for n, one in enumerate(same)))
    assert set((await cookies(sessions, session_id)).split("; ")) == {"first=0", *(f"c{n}={n}" for n in range(10))}


async def test_two_calls_that_begin_one_session_lose_no_cookie(sessions):
    session_id = sessions.new_id()
    begun = [sessions.begin(session_key(session_id), "", "192.0.2.1", [f"c{n}={n}"], HOME) for n in range(3)]
    assert await asyncio.gather(*begun) == [True, True, True]
    assert set((await cookies(sessions, session_id)).split("; ")) == {"c0=0", "c1=1", "c2=2"}
    assert await sessions.begin(session_key(session_id), "ann", "192.0.2.1", ["a=1"], HOME) is False


async def test_a_session_whose_last_cookie_is_cleared_is_over_and_stays_so(sessions):
    session_id = await begin(sessions, "a=1; Path=/", "csrftoken=2; Path=/")
    late, leaving = await sessions.find(session_id), await sessions.find(session_id)
    await sessions.update(leaving, ["a=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT"], HOME)
    await sessions.update(late, ["b=2"], HOME)
    assert await sessions.find(session_id) is None


async def test_a_session_has_at_most_so_many_cookies_and_bytes_of_which_the_oldest_go(sessions):
    session_id = await begin(sessions, *(f"c{n}={n}" for n in range(bounds.MAX_COOKIES + 2)))
    kept = (await cookies(sessions, session_id)).split("; ")
    assert (len(kept), kept[0]) == (bounds.MAX_COOKIES, "c2=2")
    await sessions.update(await sessions.find(session_id), [f"big{n}={'x' * 4000}" for n in range(6)], HOME)
    await sessions.update(await sessions.find(session_id), [f"huge={'x' * 5000}"], HOME)
    found = await sessions.find(session_id)
    assert len(found.raw) <= bounds.MAX_BYTES
    assert [cookie.name for cookie in found.jar] == ["big3", "big4", "big5"]


async def test_unknown_callers_of_one_address_begin_only_so_many(sessions, monkeypatch):
    monkeypatch.setattr(bounds, "MAX_ANONYMOUS", 1)
    await begin(sessions, "a=1")
    assert await sessions.begin(session_key(sessions.new_id()), "", "192.0.2.1", ["a=1"], HOME) is False
    await begin(sessions, "a=1", address="192.0.2.2")
    await begin(sessions, "a=1", owner="ann")


async def test_unknown_callers_of_one_wide_network_begin_only_so_many(sessions, monkeypatch):
    monkeypatch.setattr(bounds, "MAX_ANONYMOUS", 1)
    for number in range(bounds.ADDRESSES_OF_NETWORK):
        await begin(sessions, "a=1", address=f"2001:db8:0:{number}::/64")
    assert await sessions.begin(session_key(sessions.new_id()), "", "2001:db8:0:99::/64", ["a=1"], HOME) is False
    await begin(sessions, "a=1", address="2001:db8:1::/64")
    await begin(sessions, "a=1", address="192.0.2.2")


async def test_a_damaged_record_is_a_store_that_is_unavailable(sessions, store):
    session_id = await begin(sessions, "a=1")
    found = await sessions.find(session_id)
    for damaged in (b"", b"{}", b"[]", b'{"owner":"","created":1,"used":1,"cookies":[{"name":1}]}', b"\xff"):
        assert (await store.run([Swap(found.key, found.raw, damaged, 60)])).failed is None
        found.raw = damaged
        with pytest.raises(StoreUnavailable):
            await sessions.find(session_id)


@pytest.fixture
def kind_with_clock(kind):
    if kind in ("redis", "cluster"):
        pytest.skip("its clock is the server's")


@pytest.mark.usefixtures("kind_with_clock")
async def test_a_session_ends_when_nobody_uses_it(sessions, clock):
    session_id = await begin(sessions, "a=1")
    for _ in range(3):
        clock.pass_time(bounds.IDLE - 1)
        found = await sessions.find(session_id)
        await sessions.update(found, [], HOME)
    clock.pass_time(bounds.IDLE + 1)
    assert await sessions.find(session_id) is None


@pytest.mark.usefixtures("kind_with_clock")
async def test_a_session_ends_however_much_it_is_used(sessions, clock):
    session_id = await begin(sessions, "a=1")
    for _ in range(int(bounds.LIFETIME / 3600) - 1):
        clock.pass_time(3600)
        await sessions.update(await sessions.find(session_id), ["b=2"], HOME)
    clock.pass_time(3601)
    assert await sessions.find(session_id) is None


@pytest.mark.usefixtures("kind_with_clock")
async def test_a_use_is_written_down_now_and_then_only(sessions, clock):
    session_id = await begin(sessions, "a=1")
    before = (await sessions.find(session_id)).raw
    clock.pass_time(bounds.REFRESH - 1)
    await sessions.update(await sessions.find(session_id), [], HOME)
    assert (await sessions.find(session_id)).raw == before
    clock.pass_time(2)
    await sessions.update(await sessions.find(session_id), [], HOME)
    assert (await sessions.find(session_id)).raw != before


async def test_an_id_that_an_older_key_has_signed_is_the_sites_own():
    old, new = "an older key of this site", "a newer key of this site"
    before, after = (
        CookieSessions(MemoryStore(), Tokens(keys, "session:shop.example", 60)) for keys in ([old], [new, old])
    )
    assert after.is_own(before.new_id())
    assert not before.is_own(after.new_id())


async def test_a_session_that_is_begun_or_used_is_nothing_to_log(sessions, caplog):
    session_id = await begin(sessions, "a=1")
    await sessions.update(await sessions.find(session_id), ["a=2"], HOME)
    assert caplog.records == []


async def test_what_calls_set_meanwhile_follows_a_session_to_its_new_id_unless_it_identifies_somebody_else(sessions):
    session_id = await begin(sessions, "session=nobody")
    calls = [await sessions.find(session_id) for _ in range(3)]
    new_id = await sessions.update(calls[0], ["session=ann"], HOME)
    assert new_id is not None
    assert await sessions.update(calls[1], ["basket=2"], HOME) is None
    assert await sessions.update(calls[2], ["session=eve"], HOME) is None
    assert await cookies(sessions, new_id) == "session=ann; basket=2"
