"""Prerequisites: an action that depends on others wants the receipts of their successes."""

import time
from typing import Any

import pytest

from awp_publish import Refused
from awp_publish.calls.tokens import Tokens
from awp_publish.stores.memory import MemoryStore
from tests.guarded import ANN, BEN, KEYS, Watched, invoke, known_callers, make_shop, poll, publish, status_and_code

PURPOSE = "receipt:shop.example"


def make_site(*, enforced=True, **options):
    """To pay, a customer has looked and ordered before."""
    before: Any = {"requires" if enforced else "depends_on": ["look", "order"]}
    site = make_shop(authenticate=known_callers(), secret_keys=KEYS, **options)

    @site.agent("look")
    async def look(fail: bool = False) -> str:
        """Look at books."""
        if fail:
            raise Refused("There is nothing to see.")
        return "books"

    @site.agent("order", idempotency="24h", execution="sync")
    async def order() -> str:
        """Order a book."""
        return "ordered"

    @site.agent("pay", **before)
    async def pay() -> str:
        """Pay an order."""
        return "paid"

    return site


@pytest.fixture
def client(open_client):
    return publish(make_site(), open_client)


def receipt(client, agent, headers=None, given=None):
    answer = invoke(client, agent, given, headers)
    assert answer.status_code == 200
    return answer.headers["awp-receipt"]


def pay(client, *receipts, headers=None):
    sent = {"awp-receipt": ", ".join(receipts)} if receipts else {}
    return invoke(client, "pay", headers=(headers or {}) | sent)


# --- What is asked for ---


def test_unenforced_prerequisites_ask_for_nothing_and_give_no_receipts(open_client):
    client = publish(make_site(enforced=False), open_client)
    assert pay(client).json() == "paid"
    assert "awp-receipt" not in invoke(client, "look").headers


@pytest.mark.parametrize("order", [("look", "order"), ("order", "look")])
def test_receipts_stand_in_the_header_or_in_the_envelope_or_in_both(client, order):
    first, second = (receipt(client, agent) for agent in order)
    assert pay(client, first, second).json() == "paid"
    assert invoke(client, "pay", receipts=[first, second]).json() == "paid"
    assert invoke(client, "pay", headers={"awp-receipt": first}, receipts=[second]).json() == "paid"
    assert invoke(client, "pay", headers=[("awp-receipt", first), ("awp-receipt", second)]).json() == "paid"
    assert pay(client, first).json()["missing"] == [order[1]]


# --- What gives receipts ---


def test_a_replayed_success_gives_a_receipt_too(client):
    key = {"idempotency-key": "k-1"}
    receipts = [receipt(client, "order", key) for _ in range(2)]
    seen = receipt(client, "look")
    assert [pay(client, seen, one).json() for one in receipts] == ["paid", "paid"]


@pytest.mark.needs("jobs")
def test_a_background_job_gives_its_receipt_when_it_is_done(open_client):
    site = make_shop(authenticate=known_callers())

    @site.agent("print", execution="async")
    async def print_book(fail: bool = False) -> str:
        """Print a book."""
        if fail:
            raise Refused("No paper.")
        return "printed"

    @site.agent("bind", requires=["print"])
    async def bind() -> str:
        """Bind a book."""
        return "bound"

    client = publish(site, open_client)
    started, failed = (invoke(client, "print", {"fail": fail}, ANN) for fail in (False, True))
    assert started.status_code == 202
    assert "awp-receipt" not in started.headers
    done, refused = (poll(client, item.headers["location"], ANN) for item in (started, failed))
    assert (done.json()["status"], refused.json()["status"]) == ("done", "failed")
    assert "awp-receipt" not in refused.headers
    sent = {"awp-receipt": done.headers["awp-receipt"]}
    assert invoke(client, "bind", headers=ANN | sent).json() == "bound"
    assert status_and_code(invoke(client, "bind", headers=BEN | sent)) == (428, "PREREQUISITE_REQUIRED")


# --- What is remembered ---


def test_the_store_remembers_a_known_callers_successes_and_replays_count_again(open_client):
    store = Watched(MemoryStore())
    client = publish(make_site(store=store), open_client)
    for agent, headers in (("look", ANN), ("look", ANN), *[("order", ANN | {"idempotency-key": "k-1"})] * 2):
        assert invoke(client, agent, headers=headers).status_code == 200
    assert pay(client, headers=ANN).json() == "paid"
    answer = pay(client, headers=BEN)
    assert answer.json()["missing"] == ["look", "order"]
    assert "receipt" not in answer.json()["detail"]
    assert pay(client).json()["missing"] == ["look", "order"]


@pytest.mark.needs("jobs")
def test_a_background_jobs_success_is_remembered(open_client):
    site = make_shop(authenticate=known_callers())

    @site.agent("print", execution="async")
    async def print_book() -> str:
        """Print a book."""
        return "printed"

    @site.agent("bind", requires=["print"])
    async def bind() -> str:
        """Bind a book."""
        return "bound"

    client = publish(site, open_client)
    started = invoke(client, "print", headers=ANN)
    assert poll(client, started.headers["location"], ANN).json()["status"] == "done"
    assert invoke(client, "bind", headers=ANN).json() == "bound"
    assert status_and_code(invoke(client, "bind", headers=BEN)) == (428, "PREREQUISITE_REQUIRED")


# --- Whose receipts are good ---


def test_receipts_of_other_times_sites_keys_and_purposes_are_not_good(client):
    seen, facts = receipt(client, "look"), {"action": "order", "caller": ""}
    ways = {
        "expired": Tokens(KEYS, PURPOSE, 3600, clock=lambda: time.time() - 3601),
        "another site": Tokens(KEYS, "receipt:other.example", 3600),
        "another key": Tokens(["x" * 32], PURPOSE, 3600),
        "a confirmation": Tokens(KEYS, "confirmation:shop.example", 3600),
    }
    for way, tokens in ways.items():
        assert pay(client, seen, tokens.write(facts)[0]).json().get("missing") == ["order"], way
    assert pay(client, seen, Tokens(KEYS, PURPOSE, 3600).write(facts)[0]).json() == "paid"


def test_changed_receipts_and_rubbish_are_passed_over(client):
    seen, ordered = receipt(client, "look"), receipt(client, "order")
    changed = [ordered[:index] + "x" + ordered[index + 1 :] for index in range(len(ordered)) if ordered[index] != "x"]
    for item in (*changed, "", "a.b.c", "é", ordered + "=", ordered[::-1]):
        answer = invoke(client, "pay", receipts=[seen, item])
        assert answer.json()["missing"] == ["order"], item
    assert pay(client, seen, changed[0], "rubbish", ordered).json() == "paid"
