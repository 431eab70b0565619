"""What was signed for another address, and what a page of another origin sends, counts at no door."""

from collections.abc import Mapping
from typing import Any

import pytest
from starlette.applications import Starlette

from awp_publish import AgentPublisher, JwtBearer, Site, WebBotAuth, current_caller
from tests.client import TestClient
from tests.doors.adapters import EVERY_DOOR as DOORS
from tests.doors.callers import Asked, Told
from tests.installed import installed
from tests.plugins.identity.test_botauth import OWN_KEYS, SIGNER, signed
from tests.plugins.identity.test_bound_tokens import ISSUER, KEYS, proof, public, token

SHOP, LOCAL = "https://shop.example", "http://localhost:8000"
ADDRESSES = {
    "woa": ("POST", "/agents/word/invoke"),
    "plain": ("POST", "/agents/actions/word"),
    "mcp": ("POST", "/mcp"),
    "a2a": ("POST", "/a2a"),
    "awp": ("GET", "/awp"),
    "bridge": ("GET", "/actions-bridge"),
}
KNOWN = {
    "signature": WebBotAuth(signers=[SIGNER], keys=OWN_KEYS),
    "proof": JwtBearer(issuer=ISSUER, audience=SHOP, jwks=KEYS),
}


def make_client(open_client, **options: Any) -> TestClient:
    site = Site(
        **{"name": "Shop", "description": "Sells.", "url": SHOP, "plugins": ["mcp", "a2a", "awp", "bridge"]} | options
    )

    @site.agent("word")
    async def word() -> str:
        """Say who calls."""
        caller = current_caller()
        return caller.id if caller is not None else "nobody"

    client: TestClient = open_client(AgentPublisher(Starlette(), site=site, check=False))
    return client


def show(name: str, how: str, address: str) -> dict[str, str]:
    """The headers of a caller who has signed, or who has a proof, for a door at an address."""
    method, path = ADDRESSES[name]
    if how == "signature":
        return signed(path, origin=address)
    bound = token()
    return {"authorization": f"DPoP {bound}", "dpop": proof(bound, htm=method, htu=address + path)}


def call(client: TestClient, name: str, headers: Mapping[str, str]) -> Told:
    return DOORS[name](client).send(Asked("word", {}, headers, {}))


@pytest.mark.parametrize("name", DOORS)
@pytest.mark.parametrize("how", KNOWN)
@pytest.mark.parametrize(
    "host", ["localhost:7777", "localhost", "127.0.0.1:7777", "[::1]", "192.168.1.7:8000", "evil.example"]
)
def test_a_signature_for_another_authority_counts_nowhere_even_if_host_names_it(open_client, name, how, host):
    client = make_client(open_client, authenticate=KNOWN[how])
    for scheme in ("http", "https"):
        answer = call(client, name, {"host": host, **show(name, how, f"{scheme}://{host}")})
        assert answer.code in ("INVALID_CREDENTIALS", "INVALID_PROOF"), (scheme, answer)
    own = call(client, name, {"host": "shop.example", **show(name, how, SHOP)})
    assert own.output == (SIGNER if how == "signature" else "ann")


@pytest.mark.parametrize("how", KNOWN)
@pytest.mark.needs("plain")
def test_a_site_that_names_the_default_port_is_signed_for_without_it(open_client, how):
    client = make_client(open_client, authenticate=KNOWN[how], url="https://Shop.example:443/")
    answer = call(client, "plain", {"host": "shop.example", **show("plain", how, SHOP)})
    assert answer.output == (SIGNER if how == "signature" else "ann")


@pytest.mark.parametrize("name", DOORS)
@pytest.mark.parametrize("how", KNOWN)
def test_a_site_in_development_is_signed_for_at_any_loopback_address(open_client, name, how):
    client = make_client(open_client, authenticate=KNOWN[how], url=LOCAL)
    for host in ("localhost:8000", "127.0.0.1:7777"):
        is_https = host != "localhost:8000" and ADDRESSES[name][0] == "POST"  # as the test client comes
        scheme = "https" if is_https else "http"
        answer = call(client, name, {"host": host, **show(name, how, f"{scheme}://{host}")})
        assert answer.output == (SIGNER if how == "signature" else "ann"), answer
    foreign = call(client, name, {"host": "evil.example", **show(name, how, "https://evil.example")})
    assert foreign.code in ("INVALID_CREDENTIALS", "INVALID_PROOF")


BINDINGS: dict[str, Any] = {
    "a certificate": {"x5t#S256": "bwcK0esc3ACC3DB2Y5_lESsXE8o9ltc05O89jdN-dg2"},
    "a key": {"jwk": public()},
    "a key's name": {"kid": "one"},
    "something unknown": {"new": True},
    "several": {"jkt": "x", "x5t#S256": "y"},
    "nothing": {},
    "no text": {"jkt": 5},
    "a text": "jkt",
    "a list": ["jkt"],
    "null": None,
}


@pytest.mark.parametrize("name", DOORS)
@pytest.mark.parametrize("way", BINDINGS)
def test_a_token_that_is_bound_in_a_way_that_is_not_checked_is_refused_and_told_why(open_client, name, way):
    bound = token(key=None, cnf=BINDINGS[way])
    method, path = ADDRESSES[name]
    client = make_client(open_client, authenticate=KNOWN["proof"])
    shown = {"dpop": proof(bound, htm=method, htu=SHOP + path)}
    for scheme, beside in (("Bearer", {}), ("DPoP", shown)):
        answer = call(client, name, {"host": "shop.example", "authorization": f"{scheme} {bound}", **beside})
        assert answer.code == "INVALID_CREDENTIALS"
        assert "cnf" in answer.detail
        assert "not bound" in answer.recovery
        assert 'error="invalid_token"' in answer.challenge
        assert "cnf" in answer.challenge
    assert call(client, name, {"authorization": f"Bearer {token(key=None)}"}).output == "ann"


@pytest.mark.parametrize("how", KNOWN)
@pytest.mark.needs("plain")
def test_a_public_site_that_lists_a_loopback_address_is_signed_for_at_no_other(open_client, how):
    client = make_client(open_client, authenticate=KNOWN[how], url=[SHOP, LOCAL])
    for address in (SHOP, LOCAL):
        host = address.partition("://")[2]
        answer = call(client, "plain", {"host": host, **show("plain", how, address)})
        assert answer.output == (SIGNER if how == "signature" else "ann"), address
    other = call(client, "plain", {"host": "localhost:7777", **show("plain", how, "https://localhost:7777")})
    assert other.code == "INVALID_CREDENTIALS"


FOREIGN_PAGES = {
    "of another scheme": ("shop.example", "http://shop.example", {}),
    "of another scheme at another port": ("shop.example:8000", "http://shop.example:8000", {}),
    "of a browser's extension": ("shop.example", "chrome-extension://shop.example", {}),
    "of the reader's machine": ("shop.example", "http://localhost:8000", {}),
    "of the reader's machine, behind a proxy": (
        "127.0.0.1:8000",
        "http://127.0.0.1:8000",
        {"x-forwarded-for": "192.0.2.1"},
    ),
}


@pytest.mark.parametrize("name", DOORS)
@pytest.mark.parametrize("page", FOREIGN_PAGES)
def test_a_page_of_another_origin_calls_at_no_door_with_cookies(open_client, name, page):
    host, origin, beside = FOREIGN_PAGES[page]
    answer = call(make_client(open_client), name, {"host": host, "origin": origin, "cookie": "session=1", **beside})
    assert answer.code == "CROSS_SITE_COOKIES"


@pytest.mark.parametrize("name", DOORS)
@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("shop.example", "https://shop.example"),
        ("shop.example:443", "https://shop.example"),
        ("127.0.0.1:8000", "https://shop.example"),  # a proxy that sends its own name for the site
        ("localhost:8000", "http://localhost:8000"),
        ("127.0.0.1:8000", "http://127.0.0.1:8000"),
    ],
)
def test_the_sites_own_pages_call_with_cookies_and_in_development_those_of_loopback_names(
    open_client, name, host, origin
):
    answer = call(make_client(open_client), name, {"host": host, "origin": origin, "cookie": "session=1"})
    assert answer.output == "nobody"


@pytest.mark.needs("overview", "discovery")
def test_a_site_is_read_and_tried_on_its_owners_machine_whatever_its_address(open_client):
    client = make_client(open_client, plugins=installed("overview"))
    here = {"host": "localhost:8000", "sec-fetch-mode": "navigate"}
    for path in ("/agent.json", "/llms.txt", "/agents", "/agents/try/word"):
        assert client.get(path, headers=here).status_code == 200, path
    page = here | {"origin": LOCAL, "content-type": "application/x-www-form-urlencoded"}
    tried = client.post("/agents/try/word", headers=page, content=b"")
    assert tried.status_code == 200
    assert "nobody" in tried.text
    foreign = client.post("/agents/try/word", headers=page | {"origin": "http://localhost:9999"}, content=b"")
    assert foreign.status_code == 403
