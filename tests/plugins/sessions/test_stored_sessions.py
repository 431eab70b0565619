"""The cookies of sessions, in every store."""

import asyncio

import pytest

from awp_publish.browsing.addresses import parse_address
from awp_publish.calls.tokens import Tokens
from awp_publish.plugins.sessions.cookies import CookieSessions
from awp_publish.stores import Look
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


async def test_cookies_set_meanwhile_follow_a_session_to_its_new_id_unless_they_identify_somebody_else(sessions):
    session_id = await begin(sessions, "session=nobody")
    calls = [await sessions.find(session_id) for _ in range(3)]
    new_id = await sessions.update(calls[0], ["session=ann"], HOME)
    assert new_id is not None
    assert await sessions.update(calls[1], ["basket=2"], HOME) is None
    assert await sessions.update(calls[2], ["session=eve"], HOME) is None
    assert await cookies(sessions, new_id) == "session=ann; basket=2"
