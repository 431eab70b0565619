"""Tokens that are bound to a key (RFC 9449), and who is asked for a token before they connect."""

import base64
import hashlib
import json
import time
from typing import Any
from uuid import uuid4

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from fastapi import FastAPI
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from awp_publish import AgentPublisher, JwtBearer, OAuth, Site, current_caller
from tests.client import TestClient
from tests.plugins.awp.awp_client import AwpClient
from tests.plugins.mcp.mcp_messages import headers_of, message
from tests.rsa_keys import rsa_key

ISSUER, SHOP, MCP = "https://login.example", "https://shop.example", "https://shop.example/mcp"
ISSUER_KEY = rsa_key("first")
KEY, OTHER_KEY = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
KEYS = {"keys": [RSAAlgorithm.to_jwk(ISSUER_KEY.public_key(), as_dict=True) | {"kid": "one"}]}


def digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


def public(key=KEY) -> dict[str, str]:
    whole = ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return {name: whole[name] for name in ("crv", "kty", "x", "y")}


def token(key=KEY, **changes) -> str:
    values = {"iss": ISSUER, "aud": [SHOP, MCP], "sub": "ann", "exp": int(time.time()) + 600, "scope": "buy"} | changes
    if key is not None:
        values["cnf"] = {"jkt": digest(json.dumps(public(key), separators=(",", ":"), sort_keys=True))}
    return jwt.encode(values, ISSUER_KEY, "RS256", {"kid": "one"})


def proof(of: str, *, key=KEY, signed_with=None, algorithm="ES256", header=None, leave_out=(), **changes) -> str:
    values = {"htm": "POST", "htu": MCP, "iat": int(time.time()), "jti": str(uuid4()), "ath": digest(of)} | changes
    kept = {name: value for name, value in values.items() if name not in leave_out}
    facts = {"typ": "dpop+jwt", "jwk": public(key)} | (header or {})
    signer: Any = None if algorithm == "none" else signed_with or key
    return jwt.encode(kept, signer, algorithm, {fact: facts[fact] for fact in facts if fact not in leave_out})


def make_client(open_client, audience="known", takes=(SHOP, MCP), **options) -> TestClient:
    app = FastAPI()
    known = JwtBearer(issuer=ISSUER, audience=takes, jwks=KEYS, **options)
    site = Site(
        "Shop",
        url=SHOP,
        description="Books.",
        plugins=["mcp", "awp"],
        authenticate=known,
        oauth=OAuth(authorization_servers=(ISSUER,)),
    )

    @site.agent("greet", effect="read", audience=audience)
    async def greet() -> str:
        """Greet the caller."""
        caller = current_caller()
        return f"{caller.id} by {caller.client}" if caller is not None else "nobody"

    @site.agent("buy", audience=audience, scopes=["buy", "pay"])
    async def buy() -> str:
        """Buy a book."""
        return "bought"

    app.add_middleware(AgentPublisher, site=site)
    return open_client(app)


def ask(client, authorization=None, *proofs, method="server/discover", params=None):
    sent = message(method, params)
    headers = [*headers_of(sent).items(), *(("dpop", one) for one in proofs)]
    headers += [("authorization", authorization)] if authorization is not None else []
    return client.post("/mcp", json=sent, headers=headers)


def challenges(answer) -> list[str]:
    return answer.headers.get_list("www-authenticate")


def test_a_bound_token_with_its_proof_is_taken_once(open_client):
    client, bound = make_client(open_client), token()
    once = proof(bound)
    assert ask(client, f"DPoP {bound}", once).status_code == 200
    again = ask(client, f"DPoP {bound}", once)
    assert again.status_code == 401
    assert "It has already been used for a request (jti)." in again.text
    assert ask(client, f"dpop {bound}", proof(bound, htu="HTTPS://Shop.Example:443/%6dcp?x=1#y")).status_code == 200
    assert ask(client, f"DPoP {bound}", proof(bound, iat=time.time() - 290)).status_code == 200


SYMMETRIC = "k" * 32

WRONG: dict[str, dict[str, Any]] = {
    "signed with another key": {"signed_with": OTHER_KEY},
    "by another key": {"key": OTHER_KEY},
    "for another method": {"htm": "GET"},
    "for another token": {"ath": "x"},
    "with a private key": {"header": {"jwk": ECAlgorithm.to_jwk(KEY, as_dict=True)}},
    "longer than any other": {"pad": "x" * 9000},
    "with a key that is none": {"header": {"jwk": {"kty": "EC", "crv": "P-256", "x": "!", "y": []}}},
    "expired": {"exp": 1_700_000_000},
    "not valid yet": {"nbf": 9_999_999_999},
    "for an address with a tab in it": {"htu": "https://shop.ex\tample/mcp"},
    "with a time beyond all numbers": {"iat": 10**400},
    "symmetric": {"signed_with": SYMMETRIC, "algorithm": "HS256"},
    "unsigned": {"algorithm": "none"},
}


def test_no_other_proof_is(open_client):
    client, bound = make_client(open_client), token()
    now = int(time.time())
    for case, changes in (WRONG | {"too old": {"iat": now - 303}, "of the future": {"iat": now + 330}}).items():
        answer = ask(client, f"DPoP {bound}", proof(bound, **changes))
        [bearer, dpop] = challenges(answer)
        assert answer.status_code == 401, case
        assert "error" not in bearer, case
        assert dpop.startswith('DPoP algs="ES256 '), case
        # RFC 9449 section 7.1: a binding that does not hold is the token's fault
        error = "invalid_token" if case == "by another key" else "invalid_dpop_proof"
        assert f'error="{error}"' in dpop, case
        assert 'resource_metadata="https://shop.example/.well-known/oauth-protected-resource/mcp"' in dpop
    malformed = ["not-a-token", "a.b.c", "", f"{proof(bound)}, {proof(bound)}", "x" * 9000]
    for item in malformed:
        assert ask(client, f"DPoP {bound}", item).status_code == 401, item[:50]
    assert ask(client, f"DPoP {bound}", proof(bound), proof(bound)).status_code == 401
    assert ask(client, f"DPoP {bound}").status_code == 401


def test_a_token_and_its_scheme_belong_together(open_client):
    client, bound, free = make_client(open_client), token(), token(key=None)
    downgraded = ask(client, f"Bearer {bound}", proof(bound))
    assert downgraded.status_code == 401
    [bearer, dpop] = challenges(downgraded)
    assert bearer.startswith("Bearer ")
    assert 'error="invalid_token"' in bearer
    assert dpop.startswith('DPoP algs="ES256 ')
    assert "error" not in dpop
    assert ask(client, f"DPoP {free}", proof(free)).status_code == 401
    assert ask(client, f"Bearer {free}").status_code == 200
    foreign = token(aud="https://other.example/mcp")
    refused = ask(client, f"DPoP {foreign}", proof(foreign))
    assert refused.status_code == 401
    assert 'error="invalid_token"' in challenges(refused)[1]


def test_a_site_may_take_bound_tokens_alone_and_says_so(open_client):
    client, bound, free = make_client(open_client, dpop_required=True), token(), token(key=None)
    assert ask(client, f"DPoP {bound}", proof(bound)).status_code == 200
    refused = ask(client, f"Bearer {free}")
    assert refused.status_code == 401
    assert [challenge.partition(" ")[0] for challenge in challenges(refused)] == ["DPoP"]
    answer = client.get("/.well-known/oauth-protected-resource/mcp").json()
    assert answer["dpop_bound_access_tokens_required"] is True
    assert "ES256" in answer["dpop_signing_alg_values_supported"]
    assert "HS256" not in answer["dpop_signing_alg_values_supported"]


@pytest.mark.parametrize("audience", [MCP, "https://shop.example/mcp/", None])
def test_a_client_of_a_site_without_public_actions_is_asked_for_a_token_for_this_address(open_client, audience):
    client = make_client(open_client)
    asked = ask(client)
    assert asked.status_code == 401
    error = asked.json()["error"]
    assert (error["code"], error["data"]["code"]) == (-32600, "AUTHENTICATION_REQUIRED")
    assert 'resource_metadata="https://shop.example/.well-known/oauth-protected-resource/mcp"' in challenges(asked)[0]
    given = {"aud": audience} if audience is not None else {}
    shown = (
        token(key=None, **given)
        if given
        else jwt.encode(
            {"iss": ISSUER, "sub": "ann", "exp": int(time.time()) + 600}, ISSUER_KEY, "RS256", {"kid": "one"}
        )
    )
    assert ask(client, f"Bearer {shown}").status_code == (200 if audience == MCP else 401)


def test_everybody_may_connect_if_an_action_is_public(open_client):
    assert ask(make_client(open_client, audience="public")).status_code == 200


def test_a_token_with_too_few_scopes_is_told_all_that_the_call_takes(open_client):
    client = make_client(open_client)
    for scheme, key in (("Bearer", None), ("DPoP", KEY)):
        low = token(key=key)
        answer = ask(
            client, f"{scheme} {low}", *([proof(low)] if key else []), method="tools/call", params={"name": "buy"}
        )
        assert answer.status_code == 403
        for told in challenges(answer):
            assert 'error="insufficient_scope"' in told
            assert 'scope="buy pay"' in told
            assert "/.well-known/oauth-protected-resource/mcp" in told
        high = token(key=key, scope="buy pay")
        answer = ask(
            client, f"{scheme} {high}", *([proof(high)] if key else []), method="tools/call", params={"name": "buy"}
        )
        assert answer.json()["result"]["isError"] is False


def test_the_client_that_a_token_names_is_known(open_client):
    client = make_client(open_client)
    shown = token(key=None, client_id="https://chat.example/client.json")
    answer = ask(client, f"Bearer {shown}", method="tools/call", params={"name": "greet", "arguments": {}})
    assert "ann by https://chat.example/client.json" in answer.text


def test_an_audience_that_the_metadata_does_not_name_is_told_at_the_start(open_client, caplog):
    make_client(open_client, takes=(SHOP,))
    assert "start-audience" in caplog.text
    assert f"{MCP}, but JwtBearer accepts only tokens for {SHOP}." in caplog.text


def test_a_websocket_has_shown_its_proof_once_for_all_its_calls(open_client):
    client, bound = make_client(open_client), token(scope="buy pay")
    shown = {"authorization": f"DPoP {bound}", "dpop": proof(bound, htm="GET", htu="https://shop.example/awp")}
    with AwpClient.greeted(client, shown) as caller:
        for _ in range(2):
            assert caller.do("skills.invoke", skill="greet")["output"] == "ann by None"
        assert caller.do("skills.invoke", skill="buy")["output"] == "bought"
    with AwpClient.open(client, shown) as caller:  # but not for another connection
        assert "already been used for a request" in caller.fail("awp.hello", client_name="tests")["message"]


def test_a_bound_token_is_told_of_missing_scopes_in_its_own_scheme(open_client):
    client, bound = make_client(open_client), token()
    answer = ask(client, f"DPoP {bound}", proof(bound), method="tools/call", params={"name": "buy"})
    assert answer.status_code == 403
    [bearer, dpop] = challenges(answer)
    assert (bearer[:7], dpop[:5]) == ("Bearer ", "DPoP ")
    for item in (bearer, dpop):
        assert 'error="insufficient_scope"' in item
        assert 'scope="buy pay"' in item
    free = ask(client, f"Bearer {token(None)}", method="tools/call", params={"name": "buy"})
    [bearer] = challenges(free)
    assert bearer.startswith("Bearer ")
