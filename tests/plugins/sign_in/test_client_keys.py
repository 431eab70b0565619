"""Clients that the owner names prove who they are with a key (`private_key_jwt`, RFC 7523)."""

import json
import time
from typing import Any
from uuid import uuid4

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from mcp.client.auth.extensions.client_credentials import PrivateKeyJWTOAuthProvider, SignedJWTParameters
from mcp.client.client import Client as McpClient
from mcp.client.streamable_http import streamable_http_client

from awp_publish import Client, DeclarationError, current_caller
from tests.client import TestClient
from tests.live_server import serve
from tests.plugins.sign_in.people import Storage
from tests.plugins.sign_in.shop import BACK, URL, Agent, invoke, make_shop
from tests.rsa_keys import rsa_key

KEY, OTHER_KEY = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
RSA_KEY, SMALL_KEY = rsa_key("first"), rsa_key("short", 1024)
ED_KEY = ed25519.Ed25519PrivateKey.generate()
TOKEN_ENDPOINT = f"{URL}/agents/sign-in/token"
JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


def jwk(key: Any, **members: str) -> dict[str, Any]:
    return {**ECAlgorithm.to_jwk(key.public_key(), as_dict=True), **members}


def pem(key: Any) -> str:
    return str(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode())


def private_pem(key: Any) -> str:
    return str(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())


def sign(key: Any = KEY, algorithm: str = "ES256", header: dict[str, Any] | None = None, **changes: Any) -> str:
    now = int(time.time())
    claims = {"iss": "partner", "sub": "partner", "aud": URL, "exp": now + 60, "iat": now, "jti": str(uuid4())}
    claims = {name: value for name, value in (claims | changes).items() if value is not None}
    return jwt.encode(claims, key, algorithm, header)


def ask(shop: TestClient, assertion: str | None, **changes: Any):
    form = {"grant_type": "client_credentials", "client_assertion": assertion, "client_assertion_type": JWT_BEARER}
    form = {name: value for name, value in (form | changes).items() if value is not None}
    return shop.post(TOKEN_ENDPOINT, data=form)


def partner(key: Any = None, **options: Any) -> Client:
    return Client("partner", "Partner", redirects=[BACK], scopes=["orders"], key=key or jwk(KEY), **options)


@pytest.fixture(scope="module")
def shop():
    secret = Client("with secret", "Secret", secret="s" * 40, scopes=["orders"])
    with TestClient(make_shop(clients=[partner(), secret]), base_url=URL) as client:
        yield client


def test_the_metadata_says_that_keys_are_taken_and_with_which_algorithms(shop, open_client, monkeypatch):
    server = shop.get("/.well-known/oauth-authorization-server").json()
    for endpoint in ("token", "revocation"):
        methods = server[f"{endpoint}_endpoint_auth_methods_supported"]
        assert methods == ["none", "client_secret_basic", "client_secret_post", "private_key_jwt"]
        algorithms = server[f"{endpoint}_endpoint_auth_signing_alg_values_supported"]
        assert "ES256" in algorithms
        assert not {"none", "HS256"} & {*algorithms}  # RFC 8414 section 2
    server = open_client(make_shop(clients=[partner()])).get("/.well-known/oauth-authorization-server").json()
    assert server["token_endpoint_auth_methods_supported"] == ["none", "private_key_jwt"]
    assert "client_credentials" in server["grant_types_supported"]
    monkeypatch.setattr("awp_publish.plugins.identity.find_spec", lambda name: None)
    server = open_client(make_shop()).get("/.well-known/oauth-authorization-server").json()
    assert server["token_endpoint_auth_methods_supported"] == ["none"]
    assert "token_endpoint_auth_signing_alg_values_supported" not in server


NOW = int(time.time())


@pytest.mark.parametrize(
    ("assertion", "form"),
    [
        ({}, {}),
        ({}, {"client_id": "partner"}),
        ({"aud": [URL]}, {}),
        ({"aud": f"{URL}/"}, {}),
        ({"aud": TOKEN_ENDPOINT}, {}),
        ({"iat": None}, {}),
        ({"header": {"typ": "client-authentication+jwt"}}, {}),
        ({"header": {"kid": "a name of the client's"}}, {}),
    ],
)
def test_a_client_with_a_key_gets_a_token_of_its_own(shop, assertion, form):
    answer = ask(shop, sign(**assertion), **form)
    assert answer.status_code == 200, answer.text
    assert answer.json()["scope"] == "orders"
    assert "refresh_token" not in answer.json()


HMAC = {"key": "k" * 64, "algorithm": "HS256"}


@pytest.mark.parametrize(
    ("assertion", "form", "words"),
    [
        ({"key": OTHER_KEY}, {}, "signature does not match"),
        ({"key": RSA_KEY, "algorithm": "RS256"}, {}, "no such key"),
        ({"key": "", "algorithm": "none"}, {}, "algorithm is not one of"),
        (HMAC, {}, "algorithm is not one of"),
        ({"header": {"typ": "at+jwt"}}, {}, "another purpose"),
        ({"header": {"typ": "dpop+jwt"}}, {}, "another purpose"),
        ({"header": {"crit": ["x"]}}, {"client_id": "partner"}, "token is not valid"),
        ({"iss": "somebody"}, {"client_id": "partner"}, "another issuer"),
        ({"iss": None}, {}, "no iss"),
        ({"sub": "somebody"}, {"client_id": "partner"}, "subject"),
        ({"sub": "somebody"}, {}, "unknown"),
        ({"sub": None}, {}, "client_id is missing"),
        ({"sub": None}, {"client_id": "partner"}, "no sub"),
        ({"sub": 7}, {}, "client_id is missing"),
        ({"sub": "https://\ud800.example/x"}, {}, "metadata document"),
        ({"jti": "\ud800", "aud": "\ud800"}, {}, "another audience"),
        ({"aud": "https://other.example"}, {}, "another audience"),
        ({"aud": f"{URL}/mcp"}, {}, "another audience"),
        ({"aud": [URL, "https://other.example"]}, {}, "more than one audience"),
        ({"aud": []}, {}, "no aud"),
        ({"aud": None}, {}, "no aud"),
        ({"exp": None}, {}, "no exp"),
        ({"exp": NOW - 3600}, {}, "expired"),
        ({"exp": NOW + 24 * 3600}, {}, "valid for more than 3600 seconds"),
        ({"exp": 1e300}, {}, "valid for more than 3600 seconds"),
        ({"exp": "soon"}, {}, "not well formed"),
        ({"nbf": NOW + 24 * 3600}, {}, "not valid yet"),
        ({"iat": NOW + 24 * 3600}, {}, "not valid yet"),
        ({"jti": None}, {}, "no jti"),
        ({"jti": ""}, {}, "no jti"),
        ({}, {"client_id": "with secret"}, "has no key here"),
        ({}, {"client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:saml2-bearer"}, "must be urn"),
        ({}, {"client_assertion": "a.b.c"}, "client_id is missing"),
        ({}, {"client_assertion": "a.b.c", "client_id": "partner"}, "not a signed JSON Web Token"),
        ({}, {"client_assertion": None, "client_id": "partner"}, "with its key"),
    ],
)
def test_a_wrong_assertion_is_no_authentication(open_client, assertion, form, words):
    secret = Client("with secret", "Secret", secret="s" * 40, scopes=["orders"])
    answer = ask(open_client(make_shop(clients=[partner(), secret])), sign(**assertion), **form)
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client"), answer.text
    assert words in answer.json()["error_description"]
    assert "www-authenticate" in answer.headers


@pytest.mark.parametrize("form", [{"client_secret": "s" * 40, "client_id": "partner"}, {"client_assertion_type": None}])
def test_an_assertion_is_the_only_authentication_and_says_what_it_is(shop, form):
    answer = ask(shop, sign(), **form)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")


def test_nobody_tries_assertions_without_end(open_client):
    shop = open_client(make_shop(clients=[partner()]))
    assert [ask(shop, sign(OTHER_KEY)).status_code for _ in range(25)][-1] == 429


def test_an_assertion_is_good_once_in_all_processes_that_share_a_store(open_client, tmp_path):
    store = f"sqlite:///{tmp_path / 'agents.db'}"
    first, second = (open_client(make_shop(clients=[partner()], settings={"store": store})) for _ in range(2))
    assertion = sign()
    assert ask(first, assertion).status_code == 200
    for shop in (first, second):
        answer = ask(shop, assertion)
        assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
        assert "already been used" in answer.json()["error_description"]
    assert ask(second, sign()).status_code == 200


def test_a_client_with_a_key_acts_for_a_person_too_and_shows_it_each_time(shop):
    agent = Agent(shop, TestClient(shop.app, base_url=URL))
    agent.id = "partner"

    def proof() -> dict[str, Any]:
        return {"client_assertion": sign(), "client_assertion_type": JWT_BEARER}

    code = agent.consent()["code"]
    assert agent.exchange(code).json()["error"] == "invalid_client"
    tokens = agent.exchange(code, **proof()).json()
    assert invoke(shop, "read_profile", tokens["access_token"]).json() == "ann"
    assert agent.refresh(tokens["refresh_token"]).json()["error"] == "invalid_client"
    tokens = agent.refresh(tokens["refresh_token"], **proof()).json()
    revoke, form = agent.server["revocation_endpoint"], {"token": tokens["refresh_token"], "client_id": "partner"}
    assert shop.post(revoke, data=form).status_code == 401
    assert invoke(shop, "read_profile", tokens["access_token"]).status_code == 200
    assert shop.post(revoke, data=form | proof()).status_code == 200
    assert invoke(shop, "read_profile", tokens["access_token"]).status_code == 401


NEW, OLD = jwk(KEY, kid="new", use="sig"), jwk(OTHER_KEY, kid="old")


@pytest.mark.parametrize(
    ("key", "signed"),
    [
        (pem(KEY), [{}]),
        (pem(RSA_KEY), [{"key": RSA_KEY, "algorithm": "RS256"}, {"key": RSA_KEY, "algorithm": "PS256"}]),
        (pem(ED_KEY), [{"key": ED_KEY, "algorithm": "EdDSA"}]),
        (OKPAlgorithm.to_jwk(ED_KEY.public_key(), as_dict=True), [{"key": ED_KEY, "algorithm": "EdDSA"}]),
        ({"keys": [NEW, OLD]}, [{"header": {"kid": "new"}}, {"key": OTHER_KEY, "header": {"kid": "old"}}]),
    ],
    ids=["EC as PEM", "RSA as PEM", "Ed25519 as PEM", "JWK", "JWK set"],
)
def test_an_owner_gives_a_clients_key_in_any_usual_form(open_client, key, signed):
    shop = open_client(make_shop(clients=[partner(key)]))
    for changes in signed:
        assert ask(shop, sign(**changes)).status_code == 200


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (private_pem(KEY), "it is secret, and only the client may have it"),
        (ECAlgorithm.to_jwk(KEY, as_dict=True), "it is secret"),
        ({"kty": "oct", "k": "c2VjcmV0"}, "it is secret"),
        ({"keys": [jwk(OTHER_KEY), ECAlgorithm.to_jwk(KEY, as_dict=True)]}, "it is secret"),
        ({"keys": []}, "no public key that verifies signatures"),
        ({"keys": "x"}, "not a JWK"),
        ({}, "no public key"),
        (RSAAlgorithm.to_jwk(SMALL_KEY.public_key(), as_dict=True), "no public key"),
        (pem(ec.generate_private_key(ec.SECP256K1())), "no public key"),
        ("a password of 32 characters or more", "not PEM"),
        ("http://partner.example/jwks.json", "not an https address"),
    ],
)
def test_a_key_that_cannot_be_used_is_said_at_start_up_with_what_to_give(open_client, key, words):
    named = Client("partner", "Partner", scopes=["orders"], key=key)
    with pytest.raises(DeclarationError, match=words) as refused:
        open_client(make_shop(clients=[named]))
    assert 'client "partner"' in str(refused.value)
    assert "Give the public part of the key" in str(refused.value)


def test_a_key_without_what_checks_it_is_said_at_start_up(open_client, monkeypatch):
    monkeypatch.setattr("awp_publish.plugins.identity.find_spec", lambda name: None)
    with pytest.raises(DeclarationError, match=r'pip install "awp-publish\[jwt\]"'):
        open_client(make_shop(clients=[partner()]))


def test_a_client_has_a_secret_or_a_key(open_client):
    with pytest.raises(DeclarationError, match="'partner' has a secret and a key; give it one of them"):
        open_client(make_shop(clients=[partner(secret="s" * 40)]))


async def test_a_clients_keys_are_read_from_its_address_and_may_be_down():
    keys: list[Any] = [None]

    async def publish(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            body = json.dumps(keys[0]).encode()
            await send({"type": "http.response.start", "status": 200 if keys[0] else 500, "headers": []})
            await send({"type": "http.response.body", "body": body})

    async with serve(lambda _: publish) as address:
        shop = TestClient(make_shop(clients=[partner(f"{address}/jwks.json")]), base_url=URL)
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(shop.app), base_url=URL) as http:
            form = {"grant_type": "client_credentials", "client_assertion_type": JWT_BEARER}
            answer = await http.post(TOKEN_ENDPOINT, data=form | {"client_assertion": sign()})
            assert (answer.status_code, answer.json()["error"]) == (503, "temporarily_unavailable")
        keys[0] = {"keys": [jwk(KEY)]}
        shop = TestClient(make_shop(clients=[partner(f"{address}/jwks.json")]), base_url=URL)
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(shop.app), base_url=URL) as http:
            answer = await http.post(TOKEN_ENDPOINT, data=form | {"client_assertion": sign()})
            assert answer.status_code == 200, answer.text


@pytest.mark.slow
async def test_the_sdks_client_buys_for_itself_with_its_key():
    def make(url: str):
        app = make_shop(url, clients=[partner(pem(RSA_KEY))])

        @app.state.site.agent("order_for_stock", auth_required=True, scopes=["orders"])
        async def order_for_stock(title: str) -> str:
            """Order a book for a shop's own stock."""
            caller = current_caller()
            return f"{title} for {caller.id if caller else None}"

        return app

    signing = SignedJWTParameters(issuer="partner", subject="partner", signing_key=private_pem(RSA_KEY))
    async with serve(make) as url:
        provider = PrivateKeyJWTOAuthProvider(
            f"{url}/mcp",
            Storage(),
            "partner",
            signing.create_assertion_provider(),
            scope="orders",
            issuer=url,
        )
        async with (
            httpx2.AsyncClient(auth=provider, timeout=60) as http,
            McpClient(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
        ):
            ordered = await client.call_tool("order_for_stock", {"title": "Emma"})
            assert ordered.structured_content == "Emma for client:partner"
