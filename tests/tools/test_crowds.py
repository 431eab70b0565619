"""Those who judge a crowd of strangers see when somebody takes what is others'."""

from collections import Counter

import pytest

from tools.fuzz.crowds import Crowd, Shop, judge


@pytest.fixture
def shop(tmp_path):
    opened = Shop(tmp_path)
    yield opened
    opened.close()


def limited(most: int, of_address: int, of_strangers: int) -> Crowd:
    """A crowd that wants what there is in these numbers: in all, for an address, and for all strangers together."""
    taken: Counter[str] = Counter()

    def act(shop: Shop, number: int) -> bool:
        address = str(shop.client.address)
        is_known = bool(shop.client.wear({}))
        strangers = taken.total() - taken["known"]
        if taken.total() >= most or (not is_known and (taken[address] >= of_address or strangers >= of_strangers)):
            return False
        taken["known" if is_known else address] += 1
        return True

    return Crowd(act, 100, holds=True)


@pytest.mark.parametrize(
    ("shares", "wrong"),
    [
        ((50, 10, 40), []),
        ((50, 10, 50), ["a caller who is known is refused"]),
        ((50, 50, 49), ["a stranger of another address is refused"]),
        ((1000, 1000, 1000), ["one address has 100 at a time"]),
        ((0, 0, 0), ["strangers are not served", "a stranger of another address", "a caller who is known"]),
    ],
)
def test_callers_refused_because_of_others_are_noticed(shop, shares, wrong):
    answer = list(judge(shop, limited(*shares)))
    assert len(answer) == len(wrong), answer
    assert all(said.startswith(words) for said, words in zip(answer, wrong, strict=True)), answer


def test_a_store_that_fills_up_is_noticed(shop, tmp_path):
    def act(shop: Shop, number: int) -> bool:
        with (tmp_path / "agents.db-more").open("ab") as file:
            file.truncate((number + 1) << 20)
        return True

    assert list(judge(shop, Crowd(act, 65, 1))) == ["65 requests of one address left 65 MiB in the store"]
