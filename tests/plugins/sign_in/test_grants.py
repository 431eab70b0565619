"""What people have allowed, in every store: of those who come at once one wins, and what was used ends."""

import asyncio
import time

import pytest

from awp_publish.browsing.cookies import Cookie
from awp_publish.calls.tokens import Tokens
from awp_publish.plugins.sign_in.clients import KnownClient
from awp_publish.plugins.sign_in.errors import OAuthError
from awp_publish.plugins.sign_in.grants import Grant, Grants, challenge_of
from awp_publish.stores import Look, Step
from awp_publish.stores.memory import MemoryStore

CLAUDE = KnownClient("claude", "claude", (), "registered")
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


async def test_cookies_that_two_answers_set_at_once_are_both_kept(grants):
    issued = await exchange(grants, await begin(grants, allowed(cookies=(Cookie(name="a", value="1", domain="x"),))))
    access = await grants.find(issued.access)

    def add(name: str):
        return lambda cookies: (*cookies, Cookie(name=name, value="1", domain="x"))

    await asyncio.gather(*(grants.keep_cookies(access.grant, add(name)) for name in "bcd"))
    kept = await grants.find(issued.access)
    assert {cookie.name for cookie in kept.grant.cookies} == set("abcd")


@pytest.mark.parametrize("kind_of_token", ["access", "refresh", "code"])
async def test_a_token_that_this_site_has_not_issued_asks_nothing_of_the_store(kind_of_token):
    forger = Grants(None, Tokens(["another key"], "test", 0.0), 600)  # type: ignore[arg-type]
    grants = Grants(None, Tokens(["a key"], "test", 0.0), 600)  # type: ignore[arg-type]
    forged = forger.issue(kind_of_token, "g" * 22)
    assert grants.grant_of(kind_of_token, forged) is None
    assert grants.grant_of("access", grants.issue("refresh", "g" * 22)) is None
    assert await grants.find(forged) is None


async def test_several_consents_at_once_are_all_listed(grants):
    codes = [await begin(grants, allowed(f"session {number}")) for number in range(8)]
    await asyncio.gather(*(exchange(grants, code) for code in codes))
    assert {item.person for item in await grants.recent()} == {f"session {number}" for number in range(8)}


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
