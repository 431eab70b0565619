"""What people have allowed, in every store: of those who come at once one wins, and what was used ends."""

import asyncio
import time

import pytest

from awp_publish.browsing.cookies import Cookie
from awp_publish.calls.tokens import Tokens
from awp_publish.plugins.sign_in.clients import KnownClient
from awp_publish.plugins.sign_in.errors import OAuthError
from awp_publish.plugins.sign_in.grants import MAX_OF_PERSON, MAX_RECENT, Grant, Grants, challenge_of
from awp_publish.stores import Look, Step
from awp_publish.stores.memory import MemoryStore

CLAUDE, ANOTHER = (KnownClient(name, name, (), "registered") for name in ("claude", "another"))
VERIFIER = "v" * 43
BACK = "https://agent.example/callback"


def allowed(person: str = "session ann", **facts: object) -> Grant:
    now = time.time()
    given = {"client": "claude", "client_name": "Claude", "person_name": "Ann", "scopes": ("orders",), **facts}
    return Grant(id="", person=person, began=now, until=now + 3600.0, **given)  # type: ignore[arg-type]


@pytest.fixture
def grants(store) -> Grants:
    return Grants(store, Tokens(["a key", "an older key"], "test", 0.0), 600)


async def begin(grants: Grants, grant: Grant | None = None) -> str:
    return await grants.begin(grant or allowed(), BACK, challenge_of(VERIFIER))


async def exchange(grants: Grants, code: str):
    return await grants.exchange(code, CLAUDE, BACK, VERIFIER)


async def test_a_code_that_is_sent_several_times_at_once_gives_no_lasting_tokens(grants):
    code = await begin(grants)
    results = await asyncio.gather(*(exchange(grants, code) for _ in range(5)), return_exceptions=True)
    issued = [result for result in results if not isinstance(result, BaseException)]
    assert len(issued) == 1
    assert {error.code for error in results if isinstance(error, OAuthError)} == {"invalid_grant"}
    assert await grants.find(issued[0].access) is None  # somebody else had the code
    with pytest.raises(OAuthError, match="not known"):
        await grants.refresh(issued[0].refresh, CLAUDE, None)


async def test_refreshing_twice_at_once_gives_two_answers_of_which_one_may_be_lost(grants):
    issued = await exchange(grants, await begin(grants))
    first, second = await asyncio.gather(*(grants.refresh(issued.refresh, CLAUDE, None) for _ in range(2)))
    assert first.refresh != second.refresh
    for tokens in (first, second):
        assert await grants.find(tokens.access) is not None
    third = await grants.refresh(second.refresh, CLAUDE, None)
    with pytest.raises(OAuthError, match="already been used"):  # the other one's successor is none of a lost answer
        await grants.refresh(first.refresh, CLAUDE, None)
    assert await grants.find(third.access) is None


async def test_a_refresh_token_that_was_used_long_ago_ends_the_grant(store):
    now = [time.time()]
    grants = Grants(store, Tokens(["a key"], "test", 0.0), 600, lambda: now[0])
    issued = await exchange(grants, await begin(grants))
    later = await grants.refresh(issued.refresh, CLAUDE, None)
    now[0] += 31.0
    with pytest.raises(OAuthError, match="already been used"):
        await grants.refresh(issued.refresh, CLAUDE, None)
    assert await grants.find(later.access) is None


async def test_an_access_token_ends_before_its_grant_does(store):
    now = [time.time()]
    grants = Grants(store, Tokens(["a key"], "test", 0.0), 600, lambda: now[0])
    issued = await exchange(grants, await begin(grants))
    assert issued.seconds == 600
    now[0] += 601.0
    assert await grants.find(issued.access) is None
    later = await grants.refresh(issued.refresh, CLAUDE, None)
    assert await grants.find(later.access) is not None


async def test_cookies_that_two_answers_set_at_once_are_both_kept(grants):
    issued = await exchange(grants, await begin(grants, allowed(cookies=(Cookie(name="a", value="1", domain="x"),))))
    access = await grants.find(issued.access)

    def add(name: str):
        return lambda cookies: (*cookies, Cookie(name=name, value="1", domain="x"))

    await asyncio.gather(*(grants.keep_cookies(access.grant, add(name)) for name in "bcd"))
    kept = await grants.find(issued.access)
    assert {cookie.name for cookie in kept.grant.cookies} == set("abcd")


async def test_a_person_sees_their_own_grants_alone_and_the_oldest_of_too_many_ends(grants):
    first = await exchange(grants, await begin(grants))
    for _ in range(MAX_OF_PERSON):
        await exchange(grants, await begin(grants))
    await exchange(grants, await begin(grants, allowed("session ben")))
    await begin(grants)  # nobody has its tokens
    listed = await grants.of_person("session ann")
    assert len(listed) == MAX_OF_PERSON
    assert await grants.find(first.access) is None
    assert [grant.person for grant in await grants.of_person("session ben")] == ["session ben"]
    assert await grants.of_person("session nobody") == []


async def test_a_token_ends_by_the_hand_of_its_own_client_alone(grants):
    issued = await exchange(grants, await begin(grants))
    with pytest.raises(OAuthError, match="another client"):
        await grants.end_of_token(issued.access, ANOTHER)
    assert await grants.find(issued.access) is not None
    await grants.end_of_token(issued.access, CLAUDE)
    assert await grants.find(issued.access) is None
    again = await grants.refresh(issued.refresh, CLAUDE, None)
    await grants.end_of_token(again.refresh, CLAUDE)
    assert await grants.find(again.access) is None


@pytest.mark.parametrize("kind_of_token", ["access", "refresh", "code"])
async def test_a_token_that_this_site_has_not_issued_asks_nothing_of_the_store(kind_of_token):
    forger = Grants(None, Tokens(["another key"], "test", 0.0), 600)  # type: ignore[arg-type]
    grants = Grants(None, Tokens(["a key"], "test", 0.0), 600)  # type: ignore[arg-type]
    forged = forger.issue(kind_of_token, "g" * 22)
    assert grants.grant_of(kind_of_token, forged) is None
    assert grants.grant_of("access", grants.issue("refresh", "g" * 22)) is None
    assert await grants.find(forged) is None


async def test_tokens_of_an_older_key_are_still_good(store):
    older = Grants(store, Tokens(["old"], "test", 0.0), 600)
    issued = await exchange(older, await begin(older))
    newer = Grants(store, Tokens(["new", "old"], "test", 0.0), 600)
    assert await newer.find(issued.access) is not None
    assert await Grants(store, Tokens(["new"], "test", 0.0), 600).find(issued.access) is None


async def test_the_owner_sees_the_newest_of_all_people_and_none_that_has_ended(grants, monkeypatch):
    monkeypatch.setattr("awp_publish.plugins.sign_in.grants.MAX_RECENT", 3)
    assert MAX_RECENT == 500
    assert await grants.recent() == []
    for number in range(5):
        await exchange(grants, await begin(grants, allowed(f"session {number}")))
    newest = await grants.recent()
    assert [one.person for one in newest] == ["session 4", "session 3", "session 2"]
    await grants.end(newest[1].id)
    assert [one.person for one in await grants.recent()] == ["session 4", "session 2"]


async def test_several_consents_at_once_are_all_listed(grants):
    codes = [await begin(grants, allowed(f"session {number}")) for number in range(8)]
    await asyncio.gather(*(exchange(grants, code) for code in codes))
    assert {one.person for one in await grants.recent()} == {f"session {number}" for number in range(8)}


class _Forgetful(MemoryStore):
    """Knows what a power failure would undo."""

    def __init__(self) -> None:
        super().__init__()
        self.undone: list[Step] = []

    async def run(self, steps, *, durable=False):
        ran = await super().run(steps, durable=durable)
        if not durable and ran.failed is None:
            self.undone += [step for step in steps if not isinstance(step, Look)]
        return ran


async def test_no_power_failure_brings_back_or_takes_away_what_a_person_has_decided():
    store = _Forgetful()
    grants = Grants(store, Tokens(["a key"], "test", 0.0), 600)
    issued = await exchange(grants, await begin(grants))
    issued = await grants.refresh(issued.refresh, CLAUDE, None)
    assert issued.refresh is not None
    await grants.end_of_token(issued.access, CLAUDE)
    await grants.end_of_token(issued.refresh, CLAUDE)
    assert await grants.find(issued.access) is None
    assert store.undone == []
