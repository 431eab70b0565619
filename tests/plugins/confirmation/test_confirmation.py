"""Human confirmation (agent.json section 9): asked in plain language, bound, expiring, good for one call."""

import asyncio
from string import ascii_letters, digits
from typing import Annotated

import httpx
import pytest
from fastapi import Depends, FastAPI
from fastapi.security import APIKeyCookie
from hypothesis import HealthCheck, given, settings, strategies as st
from pydantic import BaseModel, Field, SecretStr
from starlette.applications import Starlette

from awp_publish import AgentPublisher, DeclarationError, Site
from awp_publish.calls.tokens import Tokens
from tests.client import TestClient
from tests.examples import examples
from tests.guarded import ANN, KEYS, invoke, known_callers, make_shop, publish, status_and_code
from tests.installed import installed

PURPOSE = "confirmation:shop.example"


def make_site(**options):
    """A shop whose orders have to be confirmed, and the orders."""
    site, orders = make_shop(**{"authenticate": known_callers(), "secret_keys": KEYS, **options}), []

    @site.agent("order", effect="irreversible", idempotency="24h")
    async def order(title: str = "Emma", copies: int = 1) -> int:
        """Order copies of a book. They are sent at once."""
        orders.append(title)
        return len(orders)

    @site.agent("cancel", confirm=True)
    async def cancel(title: str = "Emma", copies: int = 1) -> int:
        """Cancel an order."""
        orders.append("cancelled")
        return len(orders)

    return site, orders


@pytest.fixture
def shop(open_client):
    site, orders = make_site()
    return publish(site, open_client), orders


def ask(client, agent="order", given=None, headers=ANN) -> str:
    answer = invoke(client, agent, given, headers)
    assert status_and_code(answer) == (428, "CONFIRMATION_REQUIRED")
    return answer.json()["confirmation"]["token"]


def confirm(client, token, agent="order", given=None, headers=ANN):
    return invoke(client, agent, given, headers | {"awp-confirmation": token})


# --- The question ---


class Card(BaseModel):
    owner: str
    number: SecretStr


SECRET = "4111-hidden"
SECRET_INPUT = {
    "title": "Emma",
    "pin": SECRET,
    "code": SECRET,
    "card": {"owner": "Ann", "number": SECRET},
    "cards": [{"owner": "Ben", "number": SECRET}],
    "more": {"first": SECRET},
}


@pytest.mark.parametrize(
    "summary",
    [None, "Pay {title} with {pin}, {code}, {card}, {cards}, {more}", "Pay {title} with {missing_pin}{pin!r:>20}"],
)
def test_inputs_that_are_marked_as_secret_are_never_shown(open_client, summary):
    site = make_shop()

    @site.agent("pay", confirm=True if summary is None else summary)
    async def pay(
        title: str,
        pin: SecretStr,
        card: Card,
        code: SecretStr | None = None,
        cards: tuple[Card, ...] = (),
        more: dict[str, SecretStr] | None = None,
        missing_pin: Annotated[str, Field(json_schema_extra={"writeOnly": True})] = "",
    ) -> None:
        """Pay a book."""

    answer = invoke(publish(site, open_client), "pay", SECRET_INPUT)
    assert answer.status_code == 428
    assert "Emma" in answer.text
    assert SECRET not in answer.text


def test_the_site_may_ask_in_its_own_words(open_client):
    site = make_shop()

    @site.agent("text", confirm="Order {copies} x {title} for {who}?")
    async def text(title: str, copies: int = 1, who: str = "you") -> None:
        """Order."""

    @site.agent("function", confirm=lambda given: f"{given['title']}!".upper())
    async def function(title: str) -> None:
        """Order."""

    @site.agent("looks_up", confirm=look_up)
    async def looks_up(title: str) -> None:
        """Order."""

    client = publish(site, open_client)
    summaries = {
        agent: invoke(client, agent, {"title": "Emma {x}"}, {"cookie": "basket=7; theme=dark"}).json()
        for agent in ("text", "function", "looks_up")
    }
    assert {agent: told["confirmation"]["summary"] for agent, told in summaries.items()} == {
        "text": 'Order 1 x "Emma {x}" for "you"?',
        "function": "EMMA {X}!",
        "looks_up": "Emma {x} of basket 7 for ann",
    }


async def look_up(given, call) -> str:
    return f"{given['title']} of basket {call.cookies['basket']} for {call.application_session.get('user_id', 'ann')}"


# --- The answer ---


def test_a_receipt_is_no_confirmation(shop):
    client, orders = shop
    facts = Tokens(KEYS, PURPOSE, 600).read(ask(client))
    receipt, _ = Tokens(KEYS, "receipt:shop.example", 600).write(facts)
    assert status_and_code(confirm(client, receipt)) == (400, "CONFIRMATION_TAMPERED")
    assert orders == []


TAMPERED = settings(
    max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@TAMPERED
@given(st.data())
def test_no_byte_of_a_confirmation_can_be_changed(shop, data):
    client, orders = shop
    token = ask(client)
    index = data.draw(st.integers(0, 300)) % len(token)
    other = data.draw(st.characters(min_codepoint=33, max_codepoint=126))
    changed = token[:index] + (other if other != token[index] else "~") + token[index + 1 :]
    answer = confirm(client, changed)
    assert status_and_code(answer)[1] in ("CONFIRMATION_TAMPERED", "CONFIRMATION_EXPIRED"), (token, changed)
    assert orders == []


def test_a_confirmation_cannot_be_spelled_in_another_way(shop):
    """The last character of base64 has bits that mean nothing."""
    client, orders = shop
    token = ask(client)
    spelled = [token[:-1] + last for last in ascii_letters + digits + "-_=" if last != token[-1]]
    answers = {
        status_and_code(confirm(client, changed)) for changed in (*spelled, token + "=", token + ".", "." + token)
    }
    assert (answers, orders) == ({(400, "CONFIRMATION_TAMPERED")}, [])


@pytest.mark.slow
@TAMPERED
@given(st.text(st.characters(codec="latin-1", exclude_characters="\r\n\0"), max_size=300))
def test_no_text_is_a_confirmation(shop, text):
    client, orders = shop
    answer = invoke(client, "order", headers=ANN, confirmation=text)
    assert status_and_code(answer)[1] == ("CONFIRMATION_TAMPERED" if text else "CONFIRMATION_REQUIRED")
    assert orders == []


# --- Keys, stores and replays ---


def test_a_rotated_key_is_good_as_long_as_it_is_listed(open_client):
    clients = [publish(make_site(secret_keys=keys)[0], open_client) for keys in (["old" * 9], ["new" * 9, "old" * 9])]
    token = ask(clients[0])
    assert confirm(clients[1], token).json() == 1
    newest = publish(make_site(secret_keys=["new" * 9])[0], open_client)
    assert status_and_code(confirm(newest, token)) == (400, "CONFIRMATION_TAMPERED")
    assert confirm(newest, ask(clients[1])).json() == 1  # the newest signs


def test_a_confirmation_is_good_with_the_cookie_by_which_the_route_knows_its_caller_alone(open_client):
    site, app, scheme = make_shop(), FastAPI(), APIKeyCookie(name="sid")

    @app.post("/orders")
    @site.action("order", confirm=True)
    async def order(shown: str = Depends(scheme)) -> str:
        """Order something."""
        return shown

    client = publish(site, open_client, app)
    token = ask(client, headers={"cookie": "theme=dark; lang=en; sid=ann"})
    refused = confirm(client, token, headers={"cookie": "theme=dark; lang=en; sid=ben"})
    assert status_and_code(refused) == (403, "CONFIRMATION_FOREIGN")
    assert confirm(client, token, headers={"cookie": "lang=de; sid=ann"}).json() == "ann"


@pytest.mark.parametrize("kind", installed("sqlite", "redis"))
def test_a_confirmation_is_good_once_across_all_processes(open_client, tmp_path, request, kind):
    store = request.getfixturevalue("start_redis")().url if kind == "redis" else f"sqlite:///{tmp_path}/agents.db"
    clients = [publish(make_site(store=store)[0], open_client) for _ in range(2)]
    token = ask(clients[0])
    assert confirm(clients[1], token).json() == 1
    assert [status_and_code(confirm(client, token))[1] for client in clients] == ["CONFIRMATION_SPENT"] * 2


@pytest.mark.needs("sqlite")
def test_a_shared_store_without_keys_is_refused_at_start_up(tmp_path):
    site = Site("Shop", "Sells.", url="https://shop.example", store=f"sqlite:///{tmp_path / 'agents.db'}")

    @site.agent("order", effect="irreversible")
    async def order() -> None:
        """Order."""

    with (
        pytest.raises(DeclarationError, match=r'action "order".*secret_keys'),
        TestClient(AgentPublisher(Starlette(), site=site)),
    ):
        pass


# --- What comes first, and what is claimed ---


def test_a_call_that_is_asked_about_claims_no_key(shop):
    client, orders = shop
    key = ANN | {"idempotency-key": "k-1"}
    token = ask(client, headers=key)
    assert ask(client, given={"copies": 2}, headers=key) != token
    assert confirm(client, token, headers=key).json() == 1
    assert confirm(client, token, headers=key).headers["idempotent-replayed"] == "true"
    assert orders == ["Emma"]


@pytest.mark.parametrize("has_keys", [False, True])
async def test_one_of_many_calls_with_the_same_confirmation_runs(has_keys):
    site, orders = make_shop(authenticate=known_callers(), secret_keys=KEYS), []

    async def ask_slowly(given: dict[str, object]) -> str:
        await asyncio.sleep(0.01)  # each has seen the confirmation unspent when the first spends it
        return "Order it."

    @site.agent("order", effect="irreversible", idempotency="24h", confirm=ask_slowly)
    async def order() -> int:
        """Order a book."""
        orders.append("Emma")
        return len(orders)

    app = AgentPublisher(Starlette(), site=site)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="https://shop.example") as client:

        async def call(headers):
            return await client.post("/agents/order/invoke", json={"input": {}}, headers=ANN | headers)

        token = (await call({})).json()["confirmation"]["token"]
        keys = [{"idempotency-key": f"k-{number}"} if has_keys else {} for number in range(8)]
        answers = await asyncio.gather(*(call({"awp-confirmation": token} | key) for key in keys))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7
    assert orders == ["Emma"]


def test_no_confirmation_is_asked_for_by_a_function_of_wrong_shape():
    with pytest.raises(DeclarationError, match="of the input and the call"):
        make_shop().agent("order", confirm=5)  # type: ignore[arg-type]
