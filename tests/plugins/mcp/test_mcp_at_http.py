"""What the MCP door is as an HTTP endpoint: methods, origins, hosts, browsers, credentials, and bad requests."""

import orjson
import pytest
from mcp.client.auth.utils import (
    build_protected_resource_metadata_discovery_urls,
    extract_resource_metadata_from_www_auth,
)
from mcp.shared.auth_utils import check_resource_allowed
from starlette.applications import Starlette

from awp_publish import AgentPublisher, Limits, Mcp, OAuth
from tests.guarded import ANN, BEN, known_callers, make_shop
from tests.plugins.identity.test_jwt import bearer, token
from tests.plugins.mcp.mcp_messages import CLASSIC, MODERN, VERSIONS, headers_of, message, post

LIST = message("tools/list")
JSON = {"content-type": "application/json"}
BROWSER = "https://app.example"


def make_site(**options):
    site = make_shop(**{"plugins": ["mcp"], "authenticate": known_callers()} | options)

    @site.agent("look")
    async def look(copies: int = 1) -> str:
        """Look at books."""
        return "books" * copies

    @site.agent("mine", auth_required=True)
    async def mine() -> str:
        """What is mine."""
        return "mine"

    @site.agent("buy", scopes=["buy"])
    async def buy() -> str:
        """Buy a book."""
        return "bought"

    return site


@pytest.fixture
def client(open_client):
    return open_client(AgentPublisher(Starlette(), site=make_site()))


# --- Methods ---


@pytest.mark.slow
def test_a_thousand_who_wait_for_a_stream_are_all_told_that_there_is_none(client):
    answers = {client.get("/mcp", headers={"accept": "text/event-stream"}).status_code for _ in range(1000)}
    assert answers == {405}


# --- Who may ask ---


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://shop.example", "https://shop.example.evil"])
def test_pages_of_other_origins_are_refused(client, version, origin):
    sent = message("tools/list", version=version)
    assert post(client, sent, version, {"origin": origin}).status_code == 403


def test_ports_and_all_addresses_of_a_site_count(open_client):
    site = make_site()
    site = type(site)("Shop", "Sells.", url=["http://127.0.0.1:8000", "https://shop.example"], plugins=["mcp"])
    client = open_client(AgentPublisher(Starlette(), site=site))
    origins = ["http://127.0.0.1:8000", "https://shop.example", "http://shop.example", "http://127.0.0.1:9000"]
    asked = [post(client, LIST, headers={"origin": origin, "host": "127.0.0.1:8000"}) for origin in origins]
    assert [answer.status_code for answer in asked] == [200, 200, 403, 403]


def test_an_invalid_message_of_a_foreign_page_is_refused_like_any_other(client):
    for host in ("shop.example", "evil.example"):
        headers = headers_of(LIST) | JSON | {"origin": "https://evil.example", "host": host}
        assert client.post("/mcp", content=b"{", headers=headers).status_code == 403


@pytest.mark.parametrize("origins", [[BROWSER], ["*"]])
def test_browsers_of_listed_origins_may_call(open_client, origins):
    client = open_client(AgentPublisher(Starlette(), site=make_site(allow_origins=origins)))
    asked = {"origin": BROWSER, "access-control-request-method": "POST"}
    preflight = client.options("/mcp", headers=asked)
    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-origin"] in (BROWSER, "*")
    assert {"*", "Authorization"} <= set(preflight.headers["access-control-allow-headers"].split(", "))
    answer = post(client, LIST, headers={"origin": BROWSER})
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] in (BROWSER, "*")
    assert "WWW-Authenticate" in answer.headers["access-control-expose-headers"]
    assert "access-control-allow-credentials" not in answer.headers


# --- Who has to say who they are ---

LOGIN = OAuth(authorization_servers=("https://login.example",))
METADATA = "https://shop.example/.well-known/oauth-protected-resource/mcp"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("name", "headers", "status", "error"),
    [
        ("mine", {}, 401, ""),
        ("mine", {"authorization": "Bearer wrong"}, 401, 'error="invalid_token"'),
        ("buy", BEN, 403, 'error="insufficient_scope"'),
    ],
)
def test_clients_are_sent_to_the_authorization_server(open_client, version, name, headers, status, error):
    client = open_client(AgentPublisher(Starlette(), site=make_site(oauth=LOGIN)))
    answer = post(client, message("tools/call", {"name": name}, version=version), version, headers)
    assert answer.status_code == status
    assert f'resource_metadata="{METADATA}"' in answer.headers["www-authenticate"]
    described = client.get(METADATA).json()
    assert described["resource"] == "https://shop.example/mcp"
    assert described["authorization_servers"] == ["https://login.example"]
    assert error in answer.headers["www-authenticate"]
    response = answer.json()["error"]["data"]
    assert response["status"] == status
    assert response["recovery"]


def test_other_doors_send_their_callers_to_the_sites_own_metadata(open_client):
    client = open_client(AgentPublisher(Starlette(), site=make_site(oauth=LOGIN)))
    challenge = client.post("/agents/mine/invoke", json={"input": {}}).headers["www-authenticate"]
    assert f'resource_metadata="{METADATA.removesuffix("/mcp")}"' in challenge
    assert client.get(METADATA.removesuffix("/mcp")).json()["resource"] == "https://shop.example"


def test_the_official_client_finds_the_metadata_with_and_without_a_challenge(open_client):
    endpoint = "https://shop.example/mcp"
    client = open_client(AgentPublisher(Starlette(), site=make_site(oauth=LOGIN)))
    refused = post(client, message("tools/call", {"name": "mine"}))
    named = extract_resource_metadata_from_www_auth(refused)
    assert named == METADATA
    for address in build_protected_resource_metadata_discovery_urls(None, endpoint):
        assert check_resource_allowed(endpoint, client.get(address).json()["resource"])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("audience", "status"),
    [("https://shop.example/mcp", 200), (["https://shop.example"], 200), ("https://other.example/mcp", 401)],
)
def test_a_token_for_another_resource_is_refused(open_client, version, audience, status):
    known = bearer(audience=["https://shop.example", "https://shop.example/mcp"])
    site = make_shop(plugins=["mcp"], authenticate=known, oauth=LOGIN)

    @site.agent("mine", auth_required=True)
    async def mine() -> str:
        """What is mine."""
        return "mine"

    sent = message("tools/call", {"name": "mine"}, version=version)
    headers = {"authorization": f"Bearer {token(aud=audience)}"}
    answer = post(open_client(AgentPublisher(Starlette(), site=site)), sent, version, headers)
    assert answer.status_code == status
    assert ('error="invalid_token"' in answer.headers.get("www-authenticate", "")) is (status == 401)


# --- Bad requests ---


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"nonsense",
        b'{"jsonrpc": "2.0", "id": 1, "id": 2}',
        b'{"a": NaN}',
        b'{"a": "\\ud800"}',
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b'{"a": 1e999}',
        b"9" * 5000,
    ],
)
def test_a_body_that_is_not_json_is_a_parse_error(client, version, body):
    answer = client.post("/mcp", content=body, headers=headers_of(LIST, version) | JSON)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == -32700
    assert answer.json()["id"] is None


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("body", [[], [LIST], [LIST] * 1000, "text", 1, None, True])
def test_a_body_that_is_not_one_message_is_an_invalid_request(client, version, body):
    answer = client.post("/mcp", content=orjson.dumps(body), headers=headers_of(LIST, version) | JSON)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32600)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("method", ["tools/call", "tools/list", "initialize", "notifications/cancelled"])
@pytest.mark.parametrize("request_id", [{}, {"a": 1}, [], [1], True, False, 1.5, 1.0, None])
def test_an_id_that_is_no_string_or_integer_is_an_invalid_request(client, version, method, request_id):
    sent = {**message(method, {"name": "look"}, version=version), "id": request_id}
    for body in (sent, [sent]):  # batches are never taken
        answer = client.post("/mcp", json=body, headers=headers_of(sent, version))
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32600)
        assert answer.json()["id"] is None


def test_an_unknown_revision_is_told_which_are_known(client):
    sent = message("tools/list")
    sent["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2099-01-01"
    answer = post(client, sent, headers={"mcp-protocol-version": "2099-01-01"})
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == -32022
    assert MODERN in answer.json()["error"]["data"]["supported"]


def test_blanks_at_the_ends_of_a_header_do_not_count(client):
    answer = post(client, LIST, headers={"mcp-method": " tools/list \t"})
    assert answer.status_code == 200


@pytest.mark.parametrize("version", VERSIONS)
def test_a_body_beyond_the_sites_limit_is_not_read(open_client, version):
    client = open_client(AgentPublisher(Starlette(), site=make_site(limits=Limits(max_body_bytes=2000))))
    sent = message("tools/call", {"name": "look", "arguments": {"copies": "x" * 3000}}, version=version)
    answer = post(client, sent, version)
    assert (answer.status_code, answer.json()["code"]) == (413, "BODY_TOO_LARGE")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("headers", "statuses"),
    [
        ({"accept": "text/html"}, {406}),
        ({"content-type": "text/plain"}, {400, 415}),
        ({"accept": "application/json"}, {200}),
        ({"accept": "*/*"}, {200}),
        ({"content-type": "application/json; charset=utf-8"}, {200}),
    ],
)
def test_types_are_negotiated(client, version, headers, statuses):
    assert post(client, message("tools/list", version=version), version, headers).status_code in statuses


@pytest.mark.parametrize("version", VERSIONS)
def test_notifications_are_taken_and_not_answered(client, version):
    sent = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    answer = client.post("/mcp", json=sent, headers=headers_of(LIST, version))
    assert (answer.status_code, answer.content) == (202, b"")


@pytest.mark.parametrize("version", VERSIONS)
def test_no_answer_is_kept_by_a_cache(client, version):
    for method, params in (("tools/list", None), ("tools/call", {"name": "look"}), ("tools/fly", None)):
        answer = post(client, message(method, params or {}, version=version), version)
        assert answer.headers.get_list("cache-control") == ["no-store"]


def test_every_answer_has_the_id_of_its_request(client):
    assert post(client, LIST, headers={"x-request-id": "my-own"}).headers["x-request-id"] == "my-own"
    assert post(client, LIST).headers["x-request-id"]


# --- Who is shown what ---


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("headers", "shown"), [({}, ["look"]), (BEN, ["look", "mine"]), (ANN, ["look", "mine", "buy"])]
)
def test_a_site_may_list_to_each_caller_what_they_may_call(open_client, version, headers, shown):
    client = open_client(AgentPublisher(Starlette(), site=make_site(plugins=[Mcp(list_only_allowed=True)])))
    listed = post(client, message("tools/list", version=version), version, headers).json()["result"]
    assert [tool["name"] for tool in listed["tools"]] == shown
    assert listed.get("cacheScope") == ("private" if version == MODERN else None)
    refused = post(client, message("tools/call", {"name": "buy"}, version=version), version, BEN).json()["result"]
    assert refused["_meta"]["awp/problem"]["code"] == "INSUFFICIENT_SCOPE"


@pytest.mark.parametrize("version", VERSIONS)
def test_wrong_credentials_are_shown_no_list_of_their_own(open_client, version):
    client = open_client(AgentPublisher(Starlette(), site=make_site(plugins=[Mcp(list_only_allowed=True)])))
    sent = message("tools/list", version=version)
    answer = post(client, sent, version, {"authorization": "Bearer wrong"})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.json()["error"]["data"]["code"] == "INVALID_CREDENTIALS"


def test_otherwise_the_list_is_the_same_for_all(client):
    listed = [post(client, LIST, headers=headers).json()["result"]["tools"] for headers in ({}, ANN)]
    assert listed[0] == listed[1]
    assert len(listed[0]) == 3


# --- What is on record ---


@pytest.mark.parametrize("version", VERSIONS)
def test_calls_and_refusals_are_on_record(client, caplog, version):
    caplog.set_level("INFO", logger="awp_publish.access")
    for name in ("look", "mine", "fly"):
        post(client, message("tools/call", {"name": name}, version=version), version)
    client.post("/mcp", content=b"{", headers=headers_of(LIST, version) | JSON)
    calls = [record.call for record in caplog.records if record.name == "awp_publish.access"]
    assert [call["door"] for call in calls] == ["mcp"] * 4
    assert [call["outcome"] for call in calls] == ["ok", "AUTHENTICATION_REQUIRED", "UNKNOWN_AGENT", "NOT_JSON"]


@pytest.mark.parametrize("header", [None, "", CLASSIC, "2025-03-26"])
@pytest.mark.parametrize("method", ["tools/list", "tools/call", "server/discover"])
def test_a_revision_that_only_the_body_names_is_a_mismatch(client, method, header):
    sent = message(method, {"name": "mine"} if method == "tools/call" else None)
    headers = {name: value for name, value in headers_of(sent).items() if name != "mcp-protocol-version"}
    answer = client.post(
        "/mcp", json=sent, headers=headers | ({} if header is None else {"mcp-protocol-version": header})
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32020)
    assert answer.json()["id"] == 1
