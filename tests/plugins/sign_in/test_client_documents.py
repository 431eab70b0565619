"""Clients that are known by a metadata document at an https address of theirs."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from jwt.algorithms import ECAlgorithm

from awp_publish.http import outgoing
from awp_publish.plugins.sign_in import clients
from tests.client import TestClient
from tests.http.test_outgoing import context as context, serving
from tests.plugins.sign_in.shop import BACK, URL, Agent, invoke, make_shop
from tests.plugins.sign_in.test_client_keys import JWT_BEARER, KEY, OTHER_KEY, jwk, sign

BY_KEY = {"token_endpoint_auth_method": "private_key_jwt"}


class Publisher:
    """A server with one metadata document, which a test changes."""

    def __init__(self) -> None:
        self.status, self.headers, self.port = 200, {"Content-Type": "application/json"}, 0
        self.asked: list[str] = []
        self.changes: dict[str, Any] = {}
        self.keys = [jwk(KEY)]
        self.body: bytes | None = None
        self.instead: Callable[[Any], tuple[int, dict[str, str], bytes]] | None = None

    @property
    def address(self) -> str:
        return f"https://localhost:{self.port}/client.json"

    def answer(self, request: Any) -> tuple[int, dict[str, str], bytes]:
        if self.instead is not None:
            return self.instead(request)
        if request.path == "/keys.json":
            return 200, {}, json.dumps({"keys": self.keys}).encode()
        document = {
            "client_id": self.address,
            "client_name": "Claude",
            "redirect_uris": [BACK],
            "token_endpoint_auth_method": "none",
            **self.changes,
        }
        body = json.dumps({name: value for name, value in document.items() if value is not None}).encode()
        return self.status, self.headers, self.body if self.body is not None else body


@pytest.fixture
def publisher(context, monkeypatch) -> Iterator[Publisher]:
    monkeypatch.setattr(outgoing, "is_public_address", lambda address: address in ("127.0.0.1", "::1"))
    made = Publisher()
    with serving(made.answer, context) as (port, asked):
        made.port, made.asked = port, asked
        yield made


@pytest.fixture
def shop(open_client) -> TestClient:
    return open_client(make_shop())


@pytest.fixture
def agent(shop, publisher) -> Agent:
    agent = Agent(shop, TestClient(shop.app, base_url=URL))
    agent.id = publisher.address
    return agent


def test_a_client_is_known_by_its_document_which_is_fetched_once(shop, agent, publisher):
    page = agent.follow(agent.ask())
    assert "Let Claude act for you?" in page.text
    assert f"<dd>localhost:{publisher.port}</dd>" in page.text
    assert "Anybody can choose the name “Claude”" in page.text
    assert f"<strong>localhost:{publisher.port}</strong>" in page.text
    tokens = agent.sign_in()
    assert invoke(shop, "read_profile", tokens["access_token"]).json() == "ann"
    assert agent.refresh(tokens["refresh_token"]).status_code == 200
    assert publisher.asked == ["GET /client.json"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"client_id": "https://other.example/client.json"}, "its client_id is not its own address"),
        ({"client_id": None}, "its client_id is not its own address"),
        ({"redirect_uris": []}, "redirect_uris must be a list"),
        ({"redirect_uris": ["http://agent.example/"]}, "must begin with https"),
        ({"redirect_uris": "https://agent.example/"}, "redirect_uris must be a list"),
        ({"client_secret": "x"}, "token_endpoint_auth_method is not none or private_key_jwt"),
        ({"client_secret_expires_at": 0}, "token_endpoint_auth_method is not none"),
        ({"token_endpoint_auth_method": "client_secret_post"}, "token_endpoint_auth_method is not none"),
        ({"token_endpoint_auth_method": []}, "token_endpoint_auth_method is not none"),
        (BY_KEY, "it must have either jwks or jwks_uri"),
        (BY_KEY | {"jwks": {"keys": [jwk(KEY)]}, "jwks_uri": "https://a.example"}, "either jwks or jwks_uri"),
        (BY_KEY | {"jwks": {"keys": []}}, "no public key that verifies signatures"),
        (BY_KEY | {"jwks": {"keys": [ECAlgorithm.to_jwk(KEY, as_dict=True)]}}, "it is secret"),
        (BY_KEY | {"jwks_uri": "http://localhost/keys.json"}, "at an https address"),
        (BY_KEY | {"jwks_uri": "https://user@localhost/keys.json"}, "not an https address"),
        ({"padding": "x" * 6000}, "more than 5120 bytes"),
    ],
)
def test_a_document_that_is_not_its_own_or_says_too_much_is_refused(agent, publisher, changes, words):
    publisher.changes = changes
    answer = agent.ask()
    assert answer.status_code == 400
    assert words in answer.text
    assert "location" not in answer.headers


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (404, {}, None),
        (500, {}, None),
        (302, {"Location": "https://localhost/other"}, b""),
        (200, {"Content-Type": "application/json"}, b"<html>"),
        (200, {"Content-Type": "text/plain"}, None),
        (200, {}, None),
    ],
)
def test_a_document_that_is_not_there_is_said_and_no_redirect_is_followed(agent, publisher, status, headers, body):
    publisher.status, publisher.headers, publisher.body = status, headers, body
    answer = agent.ask()
    assert answer.status_code == 400
    assert "cannot be used" in answer.text
    assert len(publisher.asked) == 1
    publisher.status, publisher.headers, publisher.body = 200, {"Content-Type": "application/json"}, None
    assert agent.ask().status_code == 303  # what is wrong is not kept (section 5.2)


def test_a_document_at_an_address_that_is_not_public_is_never_asked_for(agent, publisher, monkeypatch):
    monkeypatch.undo()
    answer = agent.ask()
    assert answer.status_code == 400
    assert "cannot be fetched from a public address" in answer.text
    assert publisher.asked == []


@pytest.mark.parametrize(
    "client_id",
    [
        "https://localhost",
        "https://localhost/",
        "http://localhost/client.json",
        "https://user@localhost/client.json",
        "https://localhost/a/../client.json",
        "https://localhost/%2e%2e/client.json",
        "https://localhost/client.json#x",
        "https://[::1/client.json",
    ],
)
def test_an_address_that_is_no_client_id_is_never_asked_for(agent, publisher, client_id):
    answer = agent.ask(client_id=client_id.replace("localhost", f"localhost:{publisher.port}"))
    assert answer.status_code == 400
    assert publisher.asked == []


def test_a_site_may_name_the_hosts_whose_agents_it_admits(open_client, publisher):
    for hosts, status in ((["claude.ai"], 403), ([f"localhost:{publisher.port}"], 303)):
        shop = open_client(make_shop(trusted_hosts=hosts))
        agent = Agent(shop, TestClient(shop.app, base_url=URL))
        agent.id = publisher.address
        assert agent.ask().status_code == status
    assert "Anybody can choose the name" not in agent.follow(agent.ask()).text
    assert agent.ask(scope="unheard").status_code == 303


def test_nobody_has_documents_fetched_without_end(agent, publisher):
    statuses = [agent.ask(client_id=f"{publisher.address}?{number}").status_code for number in range(40)]
    assert statuses[-1] == 429
    assert len(publisher.asked) <= 30


def test_slow_documents_take_few_of_the_sites_threads(agent, publisher, monkeypatch):
    monkeypatch.setattr(clients, "MAX_FETCHING", 1)
    arrived, released = Event(), Event()

    def hold(_: Any) -> tuple[int, dict[str, str], bytes]:
        arrived.set()
        released.wait(60)
        return 404, {}, b""

    publisher.instead = hold
    with ThreadPoolExecutor(1) as threads:
        slow = threads.submit(agent.ask, client_id=f"{publisher.address}?slow")
        try:
            assert arrived.wait(60)
            refused = agent.ask()
        finally:
            released.set()
        assert (refused.status_code, slow.result().status_code) == (503, 400)
    publisher.instead = None
    assert agent.ask().status_code == 303


def test_a_consent_holds_while_the_clients_server_is_down(agent, publisher, open_client, tmp_path):
    store = f"sqlite:///{tmp_path / 'agents.db'}"
    first, second = (open_client(make_shop(settings={"store": store})) for _ in range(2))
    agent.browser = TestClient(first.app, base_url=URL)
    code = agent.consent()["code"]
    publisher.status, agent.http = 500, second
    tokens = agent.exchange(code).json()
    renewed = agent.refresh(tokens["refresh_token"]).json()
    assert invoke(second, "read_profile", renewed["access_token"]).json() == "ann"
    assert publisher.asked == ["GET /client.json"]


def test_a_document_that_only_local_programs_can_use_is_warned_of(agent, publisher):
    publisher.changes = {"redirect_uris": ["http://127.0.0.1/callback"]}
    agent.redirect = "http://127.0.0.1:4321/callback"
    page = agent.follow(agent.ask()).text
    assert "cannot check which program asks" in page
    assert "127.0.0.1:4321" in page


@pytest.mark.parametrize("place", ["jwks", "jwks_uri"])
def test_a_client_whose_document_has_keys_proves_each_time_that_it_has_them(shop, agent, publisher, place):
    keys = {"jwks": {"keys": [jwk(KEY)]}, "jwks_uri": publisher.address.replace("client", "keys")}
    publisher.changes = BY_KEY | {place: keys[place]}

    def proof(key: Any = KEY) -> dict[str, Any]:
        assertion = sign(key, iss=publisher.address, sub=publisher.address)
        return {"client_assertion": assertion, "client_assertion_type": JWT_BEARER}

    def revoke(**shown: Any) -> int:
        form = {"token": tokens["refresh_token"], "client_id": agent.id, **shown}
        return int(shop.post(agent.server["revocation_endpoint"], data=form).status_code)

    code = agent.consent()["code"]
    for shown in ({}, proof(OTHER_KEY), {"client_secret": "x" * 40}):
        assert agent.exchange(code, **shown).json()["error"] == "invalid_client"
    tokens = agent.exchange(code, **proof()).json()
    assert invoke(shop, "read_profile", tokens["access_token"]).json() == "ann"
    assert agent.refresh(tokens["refresh_token"]).json()["error"] == "invalid_client"
    publisher.changes = {}  # whoever has the document changed meanwhile is no better off
    tokens = agent.refresh(tokens["refresh_token"], **proof()).json()
    assert (revoke(), revoke(**proof(OTHER_KEY))) == (401, 401)
    assert invoke(shop, "read_profile", tokens["access_token"]).status_code == 200
    assert revoke(**proof()) == 200
    assert invoke(shop, "read_profile", tokens["access_token"]).status_code == 401


def test_a_clients_keys_are_asked_for_at_public_addresses_only_and_their_server_may_be_down(
    agent, publisher, monkeypatch
):
    publisher.changes = BY_KEY | {"jwks_uri": publisher.address.replace("client", "keys")}
    assertion = sign(iss=publisher.address, sub=publisher.address)
    form = {"client_assertion": assertion, "client_assertion_type": JWT_BEARER}
    code = agent.consent()["code"]
    monkeypatch.setattr(outgoing, "is_public_address", lambda _: False)
    answer = agent.exchange(code, **form)
    assert (answer.status_code, answer.json()["error"]) == (503, "temporarily_unavailable")
    assert publisher.asked == ["GET /client.json"]


def test_a_set_of_keys_that_strangers_publish_is_not_read_without_end(agent, publisher):
    publisher.changes = BY_KEY | {"jwks_uri": publisher.address.replace("client", "keys")}
    publisher.keys = [jwk(KEY, padding="x" * 70_000)]
    assertion = sign(iss=publisher.address, sub=publisher.address)
    code = agent.consent()["code"]
    answer = agent.exchange(code, client_assertion=assertion, client_assertion_type=JWT_BEARER)
    assert (answer.status_code, answer.json()["error"]) == (503, "temporarily_unavailable")


def test_a_client_that_authenticates_hears_that_its_document_cannot_be_read(agent, publisher):
    publisher.status = 500
    assertion = sign(iss=publisher.address, sub=publisher.address)
    answer = agent.exchange("x", client_assertion=assertion, client_assertion_type=JWT_BEARER)
    assert (answer.status_code, answer.json()["error"]) == (503, "temporarily_unavailable")
