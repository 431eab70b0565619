"""An agent that knows nothing but what documents and answers tell it buys a book and has it shipped."""

import re
import time
from collections.abc import Mapping
from typing import TypeAlias

import pytest

from benchmarks.person import carry_out, token_steps
from demo_site.app import create_app
from tests.client import TestClient
from tests.demo_site.bookshop import get_token

Given: TypeAlias = Mapping[str, object]

ORIGIN = "https://books.example"
PARCEL: dict[str, object] = {"name": "Ada", "address": "1 Quiet Lane"}


class Agent:
    """Keeps its token and receipts, does what a refusal tells it to do, and notes every refusal."""

    def __init__(self, client: TestClient) -> None:
        self.client = client
        self.refusals: list[str] = []
        self._woa = client.get("/.well-known/woa.json").json()
        self._errors = client.get("/agent.json").json()["errors"]
        self._receipts: list[str] = []

    def call(self, called: str, given: Given, **envelope: str):
        """One call, at the address and with the members that the WoA document and the answers tell."""
        path = self._woa["transports"]["rest"]["invoke_path"].replace("{agent_id}", called)
        sent = {"input": given, "receipts": self._receipts, **envelope}
        answer = self.client.post(path, json=sent)
        if "awp-receipt" in answer.headers:
            self._receipts.append(answer.headers["awp-receipt"])
        return answer

    def manage(self, called: str, given: Given, **envelope: str):
        """Call until it is done: each refusal is followed by what it says."""
        for _ in range(5):
            answer = self.call(called, given, **envelope)
            if answer.status_code < 400:
                return answer
            problem = answer.json()
            self.refusals.append(problem["code"])
            assert self._errors[problem["code"]]["recovery"] == problem["recovery"]
            if "confirmation" in problem:
                assert str(given["name"]) in problem["confirmation"]["summary"]
                envelope["confirmation"] = problem["confirmation"]["token"]
            elif answer.status_code == 401:
                assert problem["recovery"].startswith("Let the person you act for sign in")
                self._get_token(answer.headers["www-authenticate"])
            else:
                self._follow(problem["recovery"])
        raise AssertionError(self.refusals)

    def _follow(self, recovery: str) -> None:
        next_action = re.match(r"call (\w+)", recovery)
        assert next_action, recovery
        known: dict[str, Given] = {"add_to_basket": {"slug": "moby-dick", "quantity": 1}}
        assert self.call(next_action[1], known[next_action[1]]).status_code == 200

    def _get_token(self, challenge: str) -> None:
        """Let the person sign in, in a browser of their own, where the challenge leads."""
        [metadata] = re.findall(r'resource_metadata="([^"]+)"', challenge)
        [server] = self.client.get(metadata).json()["authorization_servers"]
        self.use(carry_out(token_steps(server), TestClient(self.client.app, ORIGIN)))

    def use(self, token: str) -> None:
        """Call with this token from now on."""
        self.client.headers["authorization"] = f"Bearer {token}"

    def wait_for(self, accepted) -> dict[str, object]:
        """Poll at Location until the job has ended."""
        give_up = time.monotonic() + 30
        while time.monotonic() < give_up:
            job = self.client.get(accepted.headers["location"]).json()
            if job["status"] in ("done", "failed", "cancelled"):
                return job
            time.sleep(0.01)
        raise TimeoutError


@pytest.fixture
def agent():
    with TestClient(create_app(ORIGIN, packing_pause=0), base_url=ORIGIN) as client:
        yield Agent(client)


def stock(agent: Agent) -> int:
    return agent.call("show_book", {"slug": "moby-dick"}).json()["stock"]


def test_an_agent_buys_a_book_by_following_documents_and_refusals(agent):
    before = stock(agent)
    placed = agent.manage("check_out", PARCEL, idempotency_key="order-1")
    assert placed.status_code == 201
    assert agent.refusals == [
        "AUTHENTICATION_REQUIRED",
        "PREREQUISITE_REQUIRED",
        "CONFIRMATION_REQUIRED",
    ]
    assert [line["slug"] for line in placed.json()["lines"]] == ["moby-dick"]
    assert stock(agent) == before - 1

    accepted = agent.call("ship_order", {"order_id": placed.json()["order_id"]})
    assert (accepted.status_code, accepted.headers["retry-after"]) == (202, "1")
    job = agent.wait_for(accepted)
    assert (job["status"], job["progress"]["fraction"]) == ("done", 1.0)
    assert job["result"]["status"] == "shipped"
    shown = agent.call("show_order", {"order_id": placed.json()["order_id"]}).json()
    assert shown == placed.json() | {"status": "shipped"}


def test_a_repeated_order_is_the_same_order(agent):
    sign_in(agent)
    agent.call("add_to_basket", {"slug": "moby-dick"})
    token = agent.call("check_out", PARCEL).json()["confirmation"]["token"]
    first = agent.call("check_out", PARCEL, confirmation=token, idempotency_key="order-1")
    left = stock(agent)
    again = agent.call("check_out", PARCEL, confirmation=token, idempotency_key="order-1")
    assert first.status_code == again.status_code == 201
    assert again.json() == first.json()
    assert again.headers["idempotent-replayed"] == "true"
    assert stock(agent) == left
    other = agent.call("check_out", PARCEL | {"name": "Bea"}, idempotency_key="order-1")
    assert (other.status_code, other.json()["code"]) == (409, "IDEMPOTENCY_KEY_REUSED")
    spent = agent.call("check_out", PARCEL, confirmation=token, idempotency_key="order-2")
    assert (spent.status_code, spent.json()["code"]) == (409, "CONFIRMATION_SPENT")


def test_a_confirmation_holds_for_the_recipient_that_was_shown(agent):
    sign_in(agent)
    agent.call("add_to_basket", {"slug": "moby-dick"})
    asked = agent.call("check_out", PARCEL).json()["confirmation"]
    assert "Ada" in asked["summary"]
    assert "1 Quiet Lane" in asked["summary"]
    refused = agent.call("check_out", PARCEL | {"address": "2 Loud Street"}, confirmation=asked["token"])
    assert (refused.status_code, refused.json()["code"]) == (409, "CONFIRMATION_MISMATCH")
    assert agent.call("show_basket", {}).json()["copies"] == 1


def test_an_order_is_shipped_once_however_often_that_is_asked_for(agent):
    placed = agent.manage("check_out", PARCEL).json()
    given = {"order_id": placed["order_id"]}
    calls = [agent.call("ship_order", given, idempotency_key="ship-1") for _ in range(2)]
    assert calls[0].json()["job_id"] == calls[1].json()["job_id"]
    calls.append(agent.call("ship_order", given))
    assert [agent.wait_for(call)["result"]["status"] for call in calls] == ["shipped"] * 3


def test_somebody_elses_order_is_neither_shipped_nor_is_its_job_seen(agent):
    placed = agent.manage("check_out", PARCEL).json()
    accepted = agent.call("ship_order", {"order_id": placed["order_id"]})
    agent.wait_for(accepted)
    agent.use(get_token(agent.client, {"name": "visitor", "password": "bookmark"}))
    assert agent.client.get(accepted.headers["location"]).status_code == 404
    job = agent.wait_for(agent.call("ship_order", {"order_id": placed["order_id"]}))
    assert (job["status"], job["problem"]["code"]) == ("failed", "UNKNOWN_ORDER")


def test_packing_can_be_followed_and_called_off():
    with TestClient(create_app(ORIGIN, packing_pause=30), base_url=ORIGIN) as client:
        agent = Agent(client)
        placed = agent.manage("check_out", PARCEL).json()
        accepted = agent.call("ship_order", {"order_id": placed["order_id"]})
        assert client.delete(accepted.headers["location"]).status_code in (200, 202)
        assert agent.wait_for(accepted)["status"] == "cancelled"
        assert agent.call("show_order", {"order_id": placed["order_id"]}).json()["status"] == "received"


def sign_in(agent: Agent) -> None:
    agent.use(get_token(agent.client))


def test_a_person_reads_the_titles_and_the_total_before_they_agree(agent):
    sign_in(agent)
    assert agent.call("check_out", PARCEL).json()["code"] == "PREREQUISITE_REQUIRED"
    agent.call("add_to_basket", {"slug": "moby-dick"})
    agent.call("add_to_basket", {"slug": "emma", "quantity": 2})
    asked = agent.call("check_out", PARCEL).json()["confirmation"]
    assert asked["summary"] == (
        'Order 2 x Emma, 1 x Moby-Dick for $29.50 in all, to be sent to "Ada", "1 Quiet Lane". This cannot be undone.'
    )


def test_a_basket_that_has_changed_since_the_question_is_asked_about_again(agent):
    sign_in(agent)
    agent.call("add_to_basket", {"slug": "emma", "quantity": 2})
    asked = agent.call("check_out", PARCEL).json()["confirmation"]
    agent.call("change_quantity", {"slug": "emma", "quantity": 6})
    refused = agent.call("check_out", PARCEL, confirmation=asked["token"])
    assert (refused.status_code, refused.json()["code"]) == (409, "CONFIRMATION_STALE")
    assert "$57.00 in all" in refused.json()["confirmation"]["summary"]
    placed = agent.call("check_out", PARCEL, confirmation=refused.json()["confirmation"]["token"])
    assert placed.json()["total_cents"] == 5700


def test_nobody_is_asked_about_an_empty_basket(agent):
    sign_in(agent)
    agent.call("add_to_basket", {"slug": "emma"})
    agent.call("remove_from_basket", {"slug": "emma"})
    refused = agent.call("check_out", PARCEL)
    assert (refused.status_code, refused.json()["code"]) == (409, "EMPTY_BASKET")
    assert "add_to_basket" in refused.json()["recovery"]
