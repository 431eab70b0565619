"""Idempotency keys (agent.json section 9, draft-ietf-httpapi-idempotency-key-header): one key, one run."""

import asyncio
from hashlib import sha256

import orjson
import pytest
from fastapi import Depends, FastAPI, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import SecretStr
from starlette.middleware.sessions import SessionMiddleware

from awp_publish import AgentPublisher
from awp_publish.plugins.idempotency.gate import MAX_ANONYMOUS_BYTES, MAX_ANONYMOUS_KEYS
from awp_publish.stores.memory import MemoryStore
from tests.guarded import ANN, BEN, Caller, invoke, invoke_agent, known_callers, make_shop, publish, status_and_code

KEY = {"idempotency-key": "k-1"}


@pytest.fixture
def shop(open_client):
    """A client of a shop whose orders are numbered, and the orders."""
    site, orders = make_shop(authenticate=known_callers()), []

    @site.agent("order", idempotency="24h")
    async def order(item: str = "book", copies: int = 1) -> dict[str, object]:
        """Order something."""
        orders.append(item)
        return {"number": len(orders), "item": item}

    @site.agent("cancel", idempotency="24h")
    async def cancel(item: str = "book", copies: int = 1) -> int:
        """Cancel something."""
        orders.append("cancelled")
        return len(orders)

    return publish(site, open_client), orders


def test_the_order_of_members_does_not_matter_and_their_values_do(shop):
    client, orders = shop
    first = invoke(client, "order", {"item": "a", "copies": 2}, KEY)
    assert invoke(client, "order", {"copies": 2, "item": "a"}, KEY).content == first.content
    assert status_and_code(invoke(client, "order", {"item": "a", "copies": 3}, KEY)) == (409, "IDEMPOTENCY_KEY_REUSED")
    assert status_and_code(invoke(client, "order", {"item": "a"}, KEY)) == (409, "IDEMPOTENCY_KEY_REUSED")
    assert orders == ["a"]


# --- Where the key stands ---


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("field", ["ref", "idempotency_key"])
def test_a_key_among_the_inputs_of_an_action_without_such_an_input_is_a_key(open_client, field, closed):
    site, given = make_shop(), []
    texts = {"item": {"type": "string"}, "note": {"type": "string"}}
    inputs = {"type": "object", "properties": texts, "additionalProperties": not closed}

    @site.agent("order", idempotency={"window": "1h", "key_field": field}, inputs=inputs)
    async def order(given_inputs: dict[str, object]) -> int:
        """Order something."""
        given.append(given_inputs)
        return len(given)

    client = publish(site, open_client)
    order_of_a = {"item": "a", "note": "b"}
    assert [invoke_agent(client, "order", {**order_of_a, field: "r-1"}).json() for _ in range(2)] == [1, 1]
    assert invoke_agent(client, "order", order_of_a, **{field: "r-1"}).json() == 1
    assert invoke_agent(client, "order", order_of_a, idempotency_key="r-1").json() == 1
    assert given == [order_of_a]
    for wrong in ("", True, ["r-2"], {"r": 2}):
        refused = invoke_agent(client, "order", {"item": "a", field: wrong})
        assert status_and_code(refused) == (
            400,
            "INVALID_IDEMPOTENCY_KEY",
        )
    assert status_and_code(invoke_agent(client, "order", {field: "r-1"}, {"idempotency-key": "r-2"})) == (
        400,
        "INVALID_IDEMPOTENCY_KEY",
    )
    assert len(given) == 1


# --- What is replayed ---


def test_a_route_that_knows_its_callers_itself_never_has_one_callers_answer_replayed_to_another(open_client):
    """We do not know who calls there, only which credentials they show."""
    site, app, scheme = make_shop(), FastAPI(), HTTPBearer()

    @app.post("/orders")
    @site.action("order", idempotency="24h")
    async def order(shown: HTTPAuthorizationCredentials = Depends(scheme)) -> str:  # noqa: B008
        """Order something."""
        return f"the order of {shown.credentials}"

    client = publish(site, open_client, app)
    first = invoke(client, "order", headers=ANN | KEY)
    assert first.json() == "the order of ann-secret-token"
    for other in (BEN, {}):
        assert status_and_code(invoke(client, "order", headers=other | KEY)) == (409, "IDEMPOTENCY_KEY_REUSED")
    again = invoke(client, "order", headers=ANN | KEY)
    assert (again.content, again.headers["idempotent-replayed"]) == (first.content, "true")
    assert invoke(client, "order", headers=BEN | {"idempotency-key": "k-2"}).json() == "the order of ben-secret-token"


def test_the_answer_of_one_session_is_not_replayed_to_another(open_client):
    site, app = make_shop(), FastAPI()

    @app.get("/login/{name}")
    async def log_in(name: str, request: Request) -> None:
        request.session["user"] = name

    @app.post("/orders")
    @site.action("order", idempotency="24h")
    async def order(request: Request) -> str:
        """Order something."""
        return f"the order of {request.session.get('user')}"

    app.add_middleware(AgentPublisher, site=site)
    app.add_middleware(SessionMiddleware, secret_key="x" * 32)
    ann, ben = open_client(app), open_client(app)
    ann.get("/login/ann")
    ben.get("/login/ben")
    first, again = (invoke(ann, "order", headers=KEY) for _ in range(2))
    assert (first.json(), again.content) == ("the order of ann", first.content)
    assert status_and_code(invoke(ben, "order", headers=KEY)) == (409, "IDEMPOTENCY_KEY_REUSED")


# --- In flight ---


async def test_a_key_in_flight_is_told_to_come_back():
    site, begun, go = make_shop(), asyncio.Event(), asyncio.Event()

    @site.agent("order", idempotency="24h")
    async def order() -> str:
        """Order something."""
        begun.set()
        await go.wait()
        return "done"

    app = AgentPublisher(FastAPI(), site=site)
    first = asyncio.create_task(Caller(app, "order", {}, KEY).call())
    await begun.wait()
    second = await Caller(app, "order", {}, KEY).call()
    assert (second.status, second.code) == (409, "IDEMPOTENCY_KEY_IN_FLIGHT")
    assert int(second.headers[b"retry-after"]) >= 1
    assert (await Caller(app, "order", {"extra": 1}, KEY).call()).code in ("INVALID_INPUT", "IDEMPOTENCY_KEY_REUSED")
    go.set()
    assert (await first).body == b'"done"'
    assert (await Caller(app, "order", {}, KEY).call()).headers[b"idempotent-replayed"] == b"true"


@pytest.mark.slow
def test_the_answers_that_are_recorded_for_an_address_are_bounded_in_bytes_and_number(open_client):
    store = MemoryStore()
    site, runs = make_shop(store=store, authenticate=known_callers()), []

    @site.agent("echo", idempotency="24h")
    async def echo(text: str = "") -> str:
        """Say it again."""
        runs.append(text)
        return text

    client = publish(site, open_client)
    for number in range(20):
        assert (
            invoke(client, "echo", {"text": "x" * 900_000}, {"idempotency-key": f"large {number}"}).status_code == 200
        )
    assert store.bytes_used < 20 * 1000
    for number in range(MAX_ANONYMOUS_KEYS - 20):
        assert invoke(client, "echo", None, {"idempotency-key": f"short {number}"}).status_code == 200
    runs.clear()
    refused = invoke(client, "echo", None, {"idempotency-key": "one too many"})
    assert status_and_code(refused) == (429, "RATE_LIMITED")
    assert 0 < int(refused.headers["retry-after"]) <= 3600
    assert not runs
    assert invoke(client, "echo", None, {"idempotency-key": "short 0"}).headers["idempotent-replayed"] == "true"
    assert invoke(client, "echo").status_code == 200
    assert invoke(client, "echo", None, {**ANN, "idempotency-key": "one too many"}).status_code == 200


# --- What the store knows of an input ---


@pytest.mark.needs("sqlite")
@pytest.mark.parametrize("placed", ["memory", "shared"])
def test_no_input_can_be_guessed_from_what_is_in_the_store_and_keys_are_rotated(open_client, tmp_path, placed):
    old, new, given = "o" * 32, "n" * 32, {"pin": "0000"}

    def open_with(keys: list[str], store: object):
        site = make_shop(secret_keys=keys, store=store)

        @site.agent("sign_in", idempotency="24h")
        async def sign_in(pin: SecretStr) -> int:
            """Sign in."""
            runs.append(pin)
            return len(runs)

        return publish(site, open_client)

    runs: list[SecretStr] = []
    store = MemoryStore() if placed == "memory" else f"sqlite:///{tmp_path}/agents.db"
    client = open_with([old], store)
    assert invoke(client, "sign_in", given, KEY).json() == 1
    if placed == "shared":
        kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
        plain = orjson.dumps(given, option=orjson.OPT_SORT_KEYS)
        assert sha256(plain).hexdigest().encode() not in kept
        assert b"k-1" in kept

    # Under a newer key it is the same input, as long as the older one is known; then it is another.
    client = open_with([new, old], store)
    answer = invoke(client, "sign_in", given, KEY)
    assert (answer.json(), answer.headers["idempotent-replayed"]) == (1, "true")
    assert status_and_code(invoke(client, "sign_in", {"pin": "0001"}, KEY)) == (409, "IDEMPOTENCY_KEY_REUSED")
    client = open_with([new], store)
    assert status_and_code(invoke(client, "sign_in", given, KEY)) == (409, "IDEMPOTENCY_KEY_REUSED")
    assert len(runs) == 1


@pytest.mark.needs("sqlite")
def test_processes_that_share_a_store_and_no_key_know_an_input_again(open_client, tmp_path):
    answers = []
    for _ in range(2):
        site = make_shop(store=f"sqlite:///{tmp_path}/agents.db")

        @site.agent("order", idempotency="24h")
        async def order(item: str) -> str:
            """Order something."""
            return item

        answers.append(invoke(publish(site, open_client), "order", {"item": "a"}, KEY))
    assert [answer.headers.get("idempotent-replayed") for answer in answers] == [None, "true"]


def test_answers_to_one_address_cannot_fill_the_store(open_client):
    store = MemoryStore()
    site, runs = make_shop(authenticate=known_callers(), store=store), []

    @site.agent("order", idempotency="24h")
    async def order(size: int = 60_000) -> str:
        """Order something."""
        runs.append(1)
        return "x" * size

    client = publish(site, open_client)
    calls = MAX_ANONYMOUS_BYTES // 60_000 + 20
    for number in range(calls):
        assert invoke(client, "order", {}, {"idempotency-key": f"k-{number}"}).status_code == 200
    assert store.bytes_used < MAX_ANONYMOUS_BYTES + 1000 * 1024
    assert invoke(client, "order", {}, {"idempotency-key": "k-0"}).headers["idempotent-replayed"] == "true"
    last = invoke(client, "order", {}, {"idempotency-key": f"k-{calls - 1}"})
    assert status_and_code(last) == (409, "ANSWER_NOT_KEPT")
    assert len(runs) == calls
    for whose in (ANN, {}):  # of known callers more are kept, of others small ones
        given = {} if whose else {"size": 10}
        first, again = (invoke(client, "order", given, whose | {"idempotency-key": "new"}) for _ in range(2))
        assert (again.content, again.headers["idempotent-replayed"]) == (first.content, "true")


@pytest.mark.parametrize("size", [10, 20_000])
def test_answers_to_one_known_caller_cannot_fill_the_store(open_client, monkeypatch, size):
    monkeypatch.setattr("awp_publish.plugins.idempotency.gate.MAX_CALLER_BYTES", 100_000)
    store = MemoryStore()
    site, runs = make_shop(authenticate=known_callers(), store=store), []

    @site.agent("order", idempotency="24h")
    async def order() -> str:
        """Order something."""
        runs.append(1)
        return "x" * size

    client = publish(site, open_client)
    calls = 100_000 // (size + 300) + 20
    for number in range(calls):
        assert invoke(client, "order", {}, ANN | {"idempotency-key": f"k-{number}"}).status_code == 200
    first, last = (invoke(client, "order", {}, ANN | {"idempotency-key": f"k-{n}"}) for n in (0, calls - 1))
    assert first.headers["idempotent-replayed"] == "true"
    assert status_and_code(last) == (409, "ANSWER_NOT_KEPT")
    assert len(runs) == calls
    for whose in (BEN, {}):
        answers = [invoke(client, "order", {}, whose | {"idempotency-key": "new"}) for _ in range(2)]
        assert answers[1].headers["idempotent-replayed"] == "true"
