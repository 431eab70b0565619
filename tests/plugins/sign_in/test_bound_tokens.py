"""Tokens that are bound to a key of the client's (RFC 9449): of no use to whoever has stolen them."""

import json
import time
from typing import Any
from uuid import uuid4

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from awp_publish import Client
from tests.client import TestClient
from tests.doors.adapters import DOORS
from tests.plugins.sign_in.shop import BACK, URL, Agent, digest_of, make_shop

KEY, OTHER_KEY = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
TOKEN_ENDPOINT = f"{URL}/agents/sign-in/token"
INVOKE = "/agents/read_profile/invoke"


def public(key) -> dict[str, str]:
    whole = ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return {name: whole[name] for name in ("crv", "kty", "x", "y")}


def thumbprint(key) -> str:
    return digest_of(json.dumps(public(key), separators=(",", ":"), sort_keys=True))


def proof(address: str = TOKEN_ENDPOINT, key: Any = KEY, token: str | None = None, **changes: Any) -> str:
    claims = {"htm": "POST", "htu": address, "iat": int(time.time()), "jti": str(uuid4())}
    claims |= {"ath": digest_of(token)} if token is not None else {}
    return jwt.encode(claims | changes, key, "ES256", {"typ": "dpop+jwt", "jwk": public(key)})


class BoundAgent(Agent):
    """An agent that proves a key at the token endpoint."""

    key: Any = KEY
    secret: str | None = None

    def send_form(self, form):
        form |= {"client_secret": self.secret} if self.secret is not None else {}
        headers = {"dpop": proof(key=self.key)} if self.key is not None else {}
        return self.http.post(self.server["token_endpoint"], data=form, headers=headers)


def call(shop, token: str, scheme: str = "DPoP", **changes: Any):
    headers = {"authorization": f"{scheme} {token}", "dpop": proof(URL + INVOKE, token=token, **changes)}
    return shop.post(INVOKE, json={"input": {}}, headers=headers)


@pytest.fixture(scope="module", params=[False, True], ids=["sessions inside", "sessions outside"])
def shop(request):
    partner = Client("partner", "Partner", redirects=[BACK], secret="s" * 40, scopes=["orders"])
    app = make_shop(sessions_outside=request.param, clients=[partner], settings={"plugins": ["mcp", "a2a", "awp"]})
    with TestClient(app, base_url=URL) as client:
        yield client


@pytest.fixture
def agent(shop) -> BoundAgent:
    return BoundAgent(shop, TestClient(shop.app, base_url=URL))


def test_the_metadata_says_with_which_algorithms_keys_are_proven(shop):
    server = shop.get("/.well-known/oauth-authorization-server").json()
    resource = shop.get("/.well-known/oauth-protected-resource").json()
    assert "ES256" in server["dpop_signing_alg_values_supported"]
    assert server["dpop_signing_alg_values_supported"] == resource["dpop_signing_alg_values_supported"]


def test_a_client_that_proves_a_key_gets_a_token_that_needs_it(shop, agent):
    tokens = agent.sign_in()
    assert tokens["token_type"] == "DPoP"
    assert call(shop, tokens["access_token"]).json() == "ann"
    for refused in (
        call(shop, tokens["access_token"], key=OTHER_KEY),
        call(shop, tokens["access_token"], scheme="Bearer"),
        call(shop, tokens["access_token"], htu=f"{URL}/agents/order_book/invoke"),
        call(shop, tokens["access_token"], ath="x"),
        shop.post(INVOKE, json={"input": {}}, headers={"authorization": f"DPoP {tokens['access_token']}"}),
    ):
        assert refused.status_code == 401
        assert any(item.startswith("DPoP algs=") for item in refused.headers.get_list("www-authenticate"))


def test_a_proof_is_good_for_one_call(shop, agent):
    token = agent.sign_in()["access_token"]
    once = {"authorization": f"DPoP {token}", "dpop": proof(URL + INVOKE, token=token)}
    assert shop.post(INVOKE, json={"input": {}}, headers=once).status_code == 200
    assert shop.post(INVOKE, json={"input": {}}, headers=once).status_code == 401


def test_a_bound_token_alone_is_of_no_use_at_any_door(shop, agent):
    token = agent.sign_in()["access_token"]
    for name, door in DOORS.items():
        assert door(shop).call("read_profile", token=token).code == "INVALID_CREDENTIALS", name


def test_a_bound_token_is_taken_at_the_mcp_door(shop, agent):
    token = agent.sign_in()["access_token"]
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "read_profile", "arguments": {}}}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
    headers |= {"authorization": f"DPoP {token}", "dpop": proof(f"{URL}/mcp", token=token)}
    answer = shop.post("/mcp", json=body, headers=headers).json()
    assert answer["result"]["structuredContent"] == {"result": "ann"}


def test_a_token_that_is_not_bound_takes_no_proof(shop, agent):
    agent.key = None
    tokens = agent.sign_in()
    assert tokens["token_type"] == "Bearer"
    refused = call(shop, tokens["access_token"])
    assert refused.status_code == 401
    assert call(shop, tokens["access_token"], scheme="Bearer").json() == "ann"


def test_a_refresh_token_needs_the_key_of_its_grant(agent):
    tokens = agent.sign_in()
    for agent.key in (None, OTHER_KEY):
        assert agent.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    agent.key = KEY
    renewed = agent.refresh(tokens["refresh_token"]).json()
    assert renewed["token_type"] == "DPoP"


def test_a_client_with_a_secret_may_change_its_key_and_not_do_without_one(shop, agent):
    agent.id, agent.secret = "partner", "s" * 40
    tokens = agent.sign_in()
    agent.key = OTHER_KEY
    renewed = agent.refresh(tokens["refresh_token"]).json()
    assert call(shop, renewed["access_token"], key=OTHER_KEY).json() == "ann"
    assert call(shop, renewed["access_token"]).status_code == 401
    agent.key = None
    assert agent.refresh(renewed["refresh_token"]).json()["error"] == "invalid_grant"


def test_a_code_is_bound_to_the_key_that_was_named_when_it_was_asked_for(agent):
    code = agent.consent(dpop_jkt=thumbprint(KEY))["code"]
    for agent.key in (None, OTHER_KEY):
        assert agent.exchange(code).json()["error"] == "invalid_grant"
    agent.key = KEY
    assert agent.exchange(code).json()["token_type"] == "DPoP"


def test_a_wrong_proof_gets_no_token(shop, agent):
    code = agent.consent()["code"]
    for changes in ({"htu": f"{URL}/mcp"}, {"htm": "GET"}, {"iat": 5}, {"jti": ""}):
        form = {"grant_type": "authorization_code", "code": code, "client_id": agent.id, "redirect_uri": BACK}
        headers = {"dpop": proof(**changes)}
        form |= {"code_verifier": agent.verifier}
        refused = shop.post(TOKEN_ENDPOINT, data=form, headers=headers)
        assert (refused.status_code, refused.json()["error"]) == (400, "invalid_dpop_proof")
    assert agent.exchange(code).status_code == 200


def test_a_client_that_acts_for_itself_may_bind_its_token(shop):
    form, headers = {"grant_type": "client_credentials"}, {"dpop": proof()}
    answer = shop.post(TOKEN_ENDPOINT, data=form, headers=headers, auth=("partner", "s" * 40)).json()
    assert answer["token_type"] == "DPoP"
    headers = {"authorization": f"Bearer {answer['access_token']}"}
    assert shop.post("/agents/list_books/invoke", json={"input": {}}, headers=headers).status_code == 401
