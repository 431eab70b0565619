"""A person's token is good at every door, and every document says how an agent gets one."""

import httpx
import pytest
from fastapi import Depends

from awp_publish import ApiKey, Awp, Mcp
from tests.client import TestClient
from tests.doors.adapters import DOORS
from tests.plugins.awp.awp_client import AwpClient
from tests.plugins.mcp.mcp_messages import message, post
from tests.plugins.sign_in.shop import URL, Agent, customer, invoke, make_shop

METADATA = f"{URL}/.well-known/oauth-authorization-server"


@pytest.fixture(scope="module", params=[False, True], ids=["sessions inside", "sessions outside"])
def shop(request):
    app = make_shop(sessions_outside=request.param, settings={"plugins": ["mcp", "a2a", "awp"]})
    with TestClient(app, base_url=URL) as client:
        yield client


@pytest.fixture(scope="module")
def token(shop) -> str:
    return str(Agent(shop, TestClient(shop.app, base_url=URL)).sign_in()["access_token"])


@pytest.mark.parametrize("door", DOORS)
def test_a_call_with_a_token_is_the_persons_at_every_door(shop, token, door):
    caller = DOORS[door](shop)
    assert caller.call("read_profile", token=token).output == "ann"
    assert caller.call("order_book", {"title": "Emma"}, token=token).output == "Emma for ann"


@pytest.mark.parametrize("door", DOORS)
def test_a_call_without_one_is_told_where_to_get_one(shop, door):
    answer = DOORS[door](shop).call("order_book", {"title": "Emma"})
    assert answer.code == "AUTHENTICATION_REQUIRED"
    assert "oauth-protected-resource" in answer.challenge
    assert 'scope="orders"' in answer.challenge
    assert "Let the person you act for sign in" in answer.recovery


@pytest.mark.parametrize("door", DOORS)
def test_a_token_that_is_over_is_told_to_be(shop, door):
    caller = DOORS[door](shop)
    answer = caller.call("read_profile", token="awp_at_" + "x" * 86)
    assert answer.code == "INVALID_CREDENTIALS"
    assert 'error="invalid_token"' in answer.challenge


def test_every_document_says_how_people_sign_in(shop):
    scopes = {"orders": "Place orders"}
    credentials = shop.get("/agent.json").json()["auth"]["x-credentials"]
    assert shop.get("/.well-known/ai-actions.json").json()["authentication"]["x-credentials"] == credentials
    assert shop.get("/.well-known/woa.json").json()["authz"]["credentials"] == credentials
    assert credentials[0]["metadata"] == METADATA
    assert credentials[0]["scopes"] == scopes
    card = shop.get("/.well-known/agent-card.json").json()["securitySchemes"]["oauth2"]["oauth2SecurityScheme"]
    assert card["oauth2MetadataUrl"] == METADATA
    flow = card["flows"]["authorizationCode"]
    assert flow["scopes"] == scopes
    assert flow["authorizationUrl"] == f"{URL}/agents/sign-in/authorize"
    assert flow["tokenUrl"] == f"{URL}/agents/sign-in/token"
    resource = shop.get("/.well-known/oauth-protected-resource/mcp").json()
    assert (resource["resource"], resource["authorization_servers"]) == (f"{URL}/mcp", [URL])
    for path in ("/llms.txt", "/auth.md"):
        assert METADATA in shop.get(path).text


def test_the_metadata_has_what_clients_need(shop):
    answer = shop.get(METADATA)
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["access-control-allow-origin"] == "*"
    server = answer.json()
    assert server["issuer"] == URL
    assert server["code_challenge_methods_supported"] == ["S256"]
    assert server["response_types_supported"] == ["code"]
    assert server["client_id_metadata_document_supported"] is True
    assert "none" in server["token_endpoint_auth_methods_supported"]
    for name in ("authorization_endpoint", "token_endpoint", "registration_endpoint", "revocation_endpoint"):
        assert shop.options(server[name]).status_code == 204


def test_a_site_below_a_path_is_found_by_the_address_of_openid(open_client):
    app = make_shop("https://shop.example/books")
    shop = open_client(app, root_path="/books")
    server = shop.get("/books/.well-known/openid-configuration").json()
    assert server["issuer"] == "https://shop.example/books"
    assert server["token_endpoint"] == "https://shop.example/books/agents/sign-in/token"
    assert "https://shop.example/books/.well-known/openid-configuration" in shop.get("/books/llms.txt").text
    card = shop.get("/books/.well-known/agent-card.json").json()
    metadata = card["securitySchemes"]["oauth2"]["oauth2SecurityScheme"]["oauth2MetadataUrl"]
    assert metadata == "https://shop.example/books/.well-known/openid-configuration"


def test_a_site_is_an_authorization_server_at_each_of_its_addresses_whose_tokens_hold_at_all(open_client):
    shop = open_client(make_shop([URL, "https://laden.example"]))
    laden = TestClient(shop.app, base_url="https://laden.example")
    for http, url in ((shop, URL), (laden, "https://laden.example")):
        resource = http.get("/.well-known/oauth-protected-resource/mcp").json()
        server = http.get("/.well-known/oauth-authorization-server").json()
        assert resource["authorization_servers"] == [server["issuer"]] == [url]
        agent = Agent(http, TestClient(shop.app, base_url=url))
        token = agent.sign_in(resource=f"{url}/mcp")["access_token"]
        for called in (shop, laden):
            assert invoke(called, "read_profile", token).json() == "ann"
            assert invoke(called, "add_book", token, title="Emma").status_code == 200
        assert invoke(shop, "add_book", token, title="Emma").json() == ["Emma"] * 3


def test_tools_say_which_of_them_need_a_person(shop):
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    tools = {tool["name"]: tool for tool in shop.post("/mcp", json=body, headers=headers).json()["result"]["tools"]}
    assert tools["list_books"]["_meta"]["securitySchemes"] == [{"type": "noauth"}]
    assert tools["order_book"]["_meta"]["securitySchemes"] == [{"type": "oauth2", "scopes": ["orders"]}]


def test_a_session_is_offered_to_callers_without_a_token_alone(shop, token, open_client):
    def offered(http: TestClient) -> dict[str, str]:
        tools = post(http, message("tools/list")).json()["result"]["tools"]
        inputs = {tool["name"]: tool["inputSchema"]["properties"] for tool in tools}
        return {
            name: properties["session"]["description"] for name, properties in inputs.items() if "session" in properties
        }

    assert list(offered(shop)) == ["list_books"]
    assert "if you call without a token" in offered(shop)["list_books"]
    keys = open_client(make_shop(settings={"authenticate": ApiKey({"a-key-of-a-partner": "partner"})}))
    assert len(offered(keys)) == 4
    # A session of somebody else's, shown beside a token, is not looked at.
    headers = {"authorization": f"Bearer {token}", "awp-session": "x" * 56}
    answer = shop.post("/agents/read_profile/invoke", json={"input": {}, "session": "x" * 56}, headers=headers)
    assert (answer.json(), "awp-session" in answer.headers) == ("ann", False)


def listed_at_mcp(shop: TestClient, headers: dict[str, str]) -> set[str]:
    return {tool["name"] for tool in post(shop, message("tools/list"), headers=headers).json()["result"]["tools"]}


def listed_at_awp(shop: TestClient, headers: dict[str, str]) -> set[str]:
    with AwpClient.greeted(shop, headers) as caller:
        return {skill["name"] for skill in caller.do("skills.list")["skills"]}


OPEN = {"list_books"}
FOR_ALL = OPEN | {"read_profile", "add_book"}


@pytest.mark.parametrize("listed", [listed_at_mcp, listed_at_awp], ids=["mcp", "awp"])
@pytest.mark.parametrize(
    ("only_allowed", "to_nobody", "to_a_person"),
    [
        (None, FOR_ALL | {"order_book"}, FOR_ALL | {"order_book"}),
        (True, OPEN, FOR_ALL),
        (False, FOR_ALL | {"order_book", "close_shop"}, FOR_ALL | {"order_book", "close_shop"}),
    ],
)
def test_nobody_is_shown_what_signing_in_would_not_let_them_call(
    open_client, listed, only_allowed, to_nobody, to_a_person
):
    plugins = [Mcp(list_only_allowed=only_allowed), Awp(list_only_allowed=only_allowed)]
    app = make_shop(settings={"plugins": plugins}, scopes={"orders": "Place orders", "gifts": "Wrap gifts"})

    @app.post("/close")
    @app.state.site.action("close_shop", scopes=["keys"])
    async def close_shop() -> str:
        """Close the shop."""
        return "closed"

    shop = open_client(app)
    token = Agent(shop, TestClient(app, base_url=URL)).sign_in(scope="gifts")["access_token"]
    assert listed(shop, {}) == to_nobody
    assert listed(shop, {"authorization": f"Bearer {token}"}) == to_a_person


def test_a_guarded_tool_answers_over_http_so_that_clients_begin_to_sign_in(shop):
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}

    def call(name: str) -> httpx.Response:
        params = {"name": name, "arguments": {}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return shop.post("/mcp", json=body, headers=headers)

    assert call("list_books").json()["result"]["structuredContent"] == {"result": ["Emma"]}
    refused = call("read_profile")
    assert refused.status_code == 401
    (challenge,) = refused.headers.get_list("www-authenticate")
    assert f'resource_metadata="{URL}/.well-known/oauth-protected-resource/mcp"' in challenge


def test_pages_of_other_origins_may_ask_for_tokens_and_read_the_answers(shop):
    for path in ("token", "register", "revoke"):
        answer = shop.post(f"/agents/sign-in/{path}", content=b"x", headers={"origin": "https://inspector.example"})
        assert answer.status_code in (400, 401)
        assert answer.headers["access-control-allow-origin"] == "*"
        assert "error_description" in answer.json()


def test_an_open_action_needs_no_token_and_takes_one(shop, token):
    assert invoke(shop, "list_books").json() == ["Emma"]
    assert invoke(shop, "list_books", token).json() == ["Emma"]


def test_a_background_job_runs_as_the_person_who_has_begun_it(open_client):
    app = make_shop()
    site = app.state.site

    @app.post("/parcels")
    @site.action("pack_parcel", auth_required=True, execution="async")
    async def pack_parcel(name: str = Depends(customer)) -> str:
        """Pack a parcel."""
        return f"a parcel for {name}"

    shop = open_client(app)
    agent = Agent(shop, TestClient(app, base_url=URL))
    token = agent.sign_in()["access_token"]
    headers = {"authorization": f"Bearer {token}"}
    begun = invoke(shop, "pack_parcel", token)
    assert begun.status_code == 202
    while (job := shop.get(f"/agents/jobs/{begun.json()['job_id']}", headers=headers).json())["status"] in (
        "accepted",
        "running",
    ):
        pass
    assert job["result"] == "a parcel for ann"
    assert shop.get(f"/agents/jobs/{begun.json()['job_id']}").status_code == 404
    tools = {tool["name"]: tool for tool in post(shop, message("tools/list")).json()["result"]["tools"]}
    assert list(tools["get_job"]["inputSchema"]["properties"]) == [
        "job_id"
    ]  # no job is nobody's, so none has a session
