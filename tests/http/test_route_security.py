"""Applications that authenticate their callers themselves, with FastAPI's security: what is published and asked."""

from typing import Annotated, Any

import pytest
from a2a.types import AgentCard
from fastapi import APIRouter, Depends, FastAPI, Header, HTTPException, Security
from fastapi.security import (
    APIKeyCookie,
    APIKeyHeader,
    APIKeyQuery,
    HTTPAuthorizationCredentials,
    HTTPBasic,
    HTTPBasicCredentials,
    HTTPBearer,
    OAuth2AuthorizationCodeBearer,
    OAuth2PasswordBearer,
    OpenIdConnect,
    SecurityScopes,
)
from google.protobuf.json_format import ParseDict

from awp_publish import AgentPublisher, ApiKey, DeclarationError, Site
from awp_publish.checks import check_document
from awp_publish.client.in_process import InProcess
from awp_publish.schema.reading import members
from tests.client import TestClient
from tests.doors.adapters import DOORS
from tests.installed import installed

ORIGIN = "https://shop.example"
SCOPES = {"orders": "Read orders.", "refund": "Pay back."}


def new_site(**options: Any) -> Site:
    return Site(name="Shop", description="Sells things.", url=ORIGIN, plugins=installed("mcp", "a2a", "awp"), **options)


def published(app: Any, site: Site) -> TestClient:
    return TestClient(AgentPublisher(app, site=site, check=False), base_url=ORIGIN)


def inputs_of(site: Site) -> set[str]:
    """Return the names of the inputs of a site's only action."""
    return set(members(site.catalog.actions[0].inputs))


def guarded_by(scheme: Any) -> tuple[FastAPI, Site]:
    app, site = FastAPI(), new_site()

    @app.get("/orders")
    @site.action("list_orders")
    async def list_orders(shown: Annotated[Any, Security(scheme, scopes=["orders"])]) -> str:
        """List orders."""
        return "orders"

    @app.get("/books")
    @site.action("list_books")
    async def list_books() -> str:
        """List books."""
        return "books"

    return app, site


PASSWORD = OAuth2PasswordBearer(tokenUrl="token", refreshUrl="/refresh", scopes=SCOPES)
CODE = OAuth2AuthorizationCodeBearer("https://idp.example/authorize", "https://idp.example/token", scopes=SCOPES)
CONNECT = OpenIdConnect(openIdConnectUrl="https://idp.example/.well-known/openid-configuration")


@pytest.mark.needs("a2a")
@pytest.mark.parametrize(
    ("scheme", "name", "agent_json_type", "awas_method", "a2a"),
    [
        (HTTPBearer(), "HTTPBearer", "bearer", "bearer", {"httpAuthSecurityScheme": {"scheme": "bearer"}}),
        (
            HTTPBearer(bearerFormat="JWT", description="A token."),
            "HTTPBearer",
            "bearer",
            "bearer",
            {"httpAuthSecurityScheme": {"description": "A token.", "scheme": "bearer", "bearerFormat": "JWT"}},
        ),
        (
            APIKeyHeader(name="X-Key", scheme_name="shop_key"),
            "shop_key",
            "api_key",
            "api_key",
            {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}},
        ),
        (
            APIKeyQuery(name="api_key"),
            "APIKeyQuery",
            "api_key",
            "api_key",
            {"apiKeySecurityScheme": {"location": "query", "name": "api_key"}},
        ),
        (
            APIKeyCookie(name="sid"),
            "APIKeyCookie",
            "api_key",
            "api_key",
            {"apiKeySecurityScheme": {"location": "cookie", "name": "sid"}},
        ),
        (
            PASSWORD,
            "OAuth2PasswordBearer",
            "oauth2",
            "oauth",
            {
                "oauth2SecurityScheme": {
                    "flows": {
                        "password": {
                            "scopes": SCOPES,
                            "tokenUrl": f"{ORIGIN}/token",
                            "refreshUrl": f"{ORIGIN}/refresh",
                        }
                    }
                }
            },
        ),
        (
            CODE,
            "OAuth2AuthorizationCodeBearer",
            "oauth2",
            "oauth",
            {
                "oauth2SecurityScheme": {
                    "flows": {
                        "authorizationCode": {
                            "scopes": SCOPES,
                            "authorizationUrl": "https://idp.example/authorize",
                            "tokenUrl": "https://idp.example/token",
                        }
                    }
                }
            },
        ),
        (
            CONNECT,
            "OpenIdConnect",
            "oauth2",
            "oauth",
            {
                "openIdConnectSecurityScheme": {
                    "openIdConnectUrl": "https://idp.example/.well-known/openid-configuration"
                }
            },
        ),
        (HTTPBasic(), "HTTPBasic", None, None, {"httpAuthSecurityScheme": {"scheme": "basic"}}),
    ],
)
def test_a_route_s_scheme_is_in_every_document_that_speaks_of_authentication(
    scheme, name, agent_json_type, awas_method, a2a
):
    with published(*guarded_by(scheme)) as client:
        of_openapi = client.get("/openapi.json").json()["components"]["securitySchemes"][name]
        card = client.get("/.well-known/agent-card.json").json()
        assert card["securitySchemes"] == {name: a2a}
        ParseDict(card, AgentCard())
        asked = next(skill for skill in card["skills"] if skill["id"] == "list_orders")["securityRequirements"]
        listed = next(iter(client.get("/openapi.json").json()["paths"]["/orders"].values()))["security"]
        assert asked == [{"schemes": {name: {"list": listed[0][name]} if listed[0][name] else {}}}]
        assert "securityRequirements" not in next(skill for skill in card["skills"] if skill["id"] == "list_books")
        agent_json = client.get("/agent.json").json()
        assert agent_json["auth"].get("type") == agent_json_type
        assert agent_json["auth"]["required_for"] == ["list_orders"]
        awas = client.get("/.well-known/ai-actions.json").json()
        assert awas["authentication"].get("methods") == ([awas_method] if awas_method else None)
        woa = client.get("/.well-known/woa.json").json()
        for told in (
            agent_json["auth"]["x-security-schemes"],
            awas["authentication"]["x-security-schemes"],
            woa["authz"]["securitySchemes"],
        ):
            assert told[name].keys() == of_openapi.keys()
            assert {key: told[name][key] for key in told[name] if key not in ("flows", "openIdConnectUrl")} == {
                key: of_openapi[key] for key in of_openapi if key not in ("flows", "openIdConnectUrl")
            }
        assert (
            agent_json["auth"]["x-credentials"]
            == awas["authentication"]["x-credentials"]
            == woa["authz"]["credentials"]
        )
        for path in ("/agent.json", "/.well-known/ai-actions.json", "/.well-known/woa.json"):
            wrong = [item for item in check_document(client.get(path).content) if item.level == "error"]
            assert wrong == []


def test_addresses_of_flows_are_where_the_tokens_are_had():
    with published(*guarded_by(PASSWORD)) as client:
        awas = client.get("/.well-known/ai-actions.json").json()
        assert awas["authentication"]["endpoints"] == {"token": f"{ORIGIN}/token", "refresh": f"{ORIGIN}/refresh"}
        flows = client.get("/agent.json").json()["auth"]["x-security-schemes"]["OAuth2PasswordBearer"]["flows"]
        assert flows == {
            "password": {"scopes": SCOPES, "tokenUrl": f"{ORIGIN}/token", "refreshUrl": f"{ORIGIN}/refresh"}
        }


@pytest.mark.needs("identity", "mcp")
def test_openid_connect_tells_the_authorization_server_of_rfc_9728():
    with published(*guarded_by(CONNECT)) as client:
        for path, resource in (("", ORIGIN), ("/mcp", f"{ORIGIN}/mcp")):
            response = client.get(f"/.well-known/oauth-protected-resource{path}").json()
            assert response["resource"] == resource
            assert response["authorization_servers"] == ["https://idp.example"]
            assert response["scopes_supported"] == ["orders"]
        answer = client.post(
            "/mcp",
            json={
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": "list_orders", "arguments": {}},
            },
            headers={"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"},
        )
        metadata = f'resource_metadata="{ORIGIN}/.well-known/oauth-protected-resource/mcp"'
        assert answer.status_code == 401
        (challenge,) = answer.headers.get_list("www-authenticate")
        assert metadata in challenge


@pytest.mark.needs("identity", "mcp")
@pytest.mark.parametrize(
    ("scheme", "kind", "takes_tokens"),
    [
        (PASSWORD, b"Bearer", True),
        (HTTPBearer(), b"Bearer", True),
        (APIKeyHeader(name="X-Key"), b"APIKey", False),
        (HTTPBasic(realm="the shop"), b"Basic", False),
    ],
)
def test_a_route_that_refuses_tells_mcp_clients_where_its_schemes_are_described(scheme, kind, takes_tokens):
    with published(*guarded_by(scheme)) as client:
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_orders", "arguments": {}}}
        for version in ("2025-06-18", "2025-11-25"):
            accept = {"accept": "application/json, text/event-stream", "mcp-protocol-version": version}
            answer = client.post("/mcp", json=asked, headers=accept)
            challenge = answer.headers["www-authenticate"]
            assert answer.status_code == 401
            assert answer.json()["error"]["data"]["code"] == "AUTHENTICATION_REQUIRED"
            assert challenge.split()[0].lower() == kind.decode().lower()
            address = challenge.partition('resource_metadata="')[2].partition('"')[0]
            assert address == f"{ORIGIN}/.well-known/oauth-protected-resource/mcp"
            assert ('realm="the shop"' in challenge) == (kind == b"Basic")
        response = client.get(address.removeprefix(ORIGIN)).json()
        assert response["resource"] == f"{ORIGIN}/mcp"
        assert response["x-security-schemes"] == client.get("/agent.json").json()["auth"]["x-security-schemes"]
        assert ("bearer_methods_supported" in response) == takes_tokens
        assert "authorization_servers" not in response  # a token endpoint is none


@pytest.mark.needs("a2a")
def test_several_flows_and_several_schemes_are_alternatives():
    app, site = FastAPI(), new_site()
    key, bearer = APIKeyHeader(name="X-Key"), HTTPBearer()
    admins = APIRouter(prefix="/admin", dependencies=[Depends(key)])

    @admins.get("/stock")
    @site.action("stock")
    async def stock(token: Annotated[HTTPAuthorizationCredentials, Depends(bearer)]) -> str:
        """Show the stock."""
        return token.credentials

    app.include_router(admins)
    with published(app, site) as client:
        asked = client.get("/openapi.json").json()["paths"]["/admin/stock"]["get"]["security"]
        skill = client.get("/.well-known/agent-card.json").json()["skills"][0]
        assert [set(securityRequirement["schemes"]) for securityRequirement in skill["securityRequirements"]] == [
            set(item) for item in asked
        ]
        headers = {"X-Key": "k", "Authorization": "Bearer t"}
        assert client.get("/agents/actions/stock", headers=headers).json() == "t"


@pytest.mark.needs("a2a")
def test_mounted_applications_may_call_different_schemes_the_same():
    app, site = FastAPI(), new_site()
    for version, name in (("v1", "X-Old"), ("v2", "X-New")):
        mounted, key = FastAPI(), APIKeyHeader(name=name)

        @mounted.get("/books")
        @site.action(f"books_{version}")
        async def books(shown: Annotated[str, Depends(key)]) -> str:
            """List books."""
            return shown

        app.mount(f"/{version}", mounted)
    with published(app, site) as client:
        card = client.get("/.well-known/agent-card.json").json()
        assert {name: one["apiKeySecurityScheme"]["name"] for name, one in card["securitySchemes"].items()} == {
            "APIKeyHeader": "X-Old",
            "APIKeyHeader_2": "X-New",
        }
        asked = [skill["securityRequirements"] for skill in card["skills"]]
        assert asked == [[{"schemes": {"APIKeyHeader": {}}}], [{"schemes": {"APIKeyHeader_2": {}}}]]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("scheme", "send"),
    [
        (HTTPBearer(), {"headers": {"authorization": "Bearer t"}}),
        (APIKeyHeader(name="X-Key"), {"headers": {"x-key": "t"}}),
        (APIKeyCookie(name="sid"), {"cookies": {"sid": "t"}}),
        (APIKeyQuery(name="api_key"), {"params": {"api_key": "t"}}),
    ],
    ids=["bearer", "header", "cookie", "query"],
)
def test_a_401_has_one_code_and_its_challenge_at_every_door(door, scheme, send):
    with published(*guarded_by(scheme)) as client:
        caller = DOORS[door](client)
        refused = caller.call("list_orders")
        assert refused.code == "AUTHENTICATION_REQUIRED"
        assert refused.challenge
        for name, value in send.items():
            setattr(client, name, value)
        answer = caller.call("list_orders")
        assert answer.output in ("orders", {"result": "orders"}), answer


def protected() -> tuple[FastAPI, Site, list[str]]:
    """An application as its own tutorial teaches it: a token, a user of it, an active user of that."""
    app, site, asked = FastAPI(), new_site(secret_keys=["s" * 32]), list[str]()
    bearer = OAuth2PasswordBearer(tokenUrl="token", scopes=SCOPES)

    async def current_user(scopes: SecurityScopes, token: Annotated[str, Depends(bearer)]) -> str:
        asked.append(token)
        if token not in ("anna", "ben", "gone"):
            raise HTTPException(401, "Could not validate credentials", {"WWW-Authenticate": "Bearer"})
        if "refund" in scopes.scopes and token != "anna":
            raise HTTPException(403, "Not enough permissions")
        return token

    async def active_user(user: Annotated[str, Depends(current_user)]) -> str:
        if user == "gone":
            raise HTTPException(403, "Inactive user")
        return user

    @app.post("/orders/{number}/refund")
    @site.action("refund", confirm="Pay order {number} back?")
    async def refund(
        number: int,
        reason: str,
        user: Annotated[str, Depends(active_user)],
        admin: Annotated[str, Security(current_user, scopes=["refund"])],
    ) -> str:
        """Pay an order back."""
        return f"{number} {reason} {user}"

    @site.agent("forget", confirm=True)
    async def forget(user: Annotated[str, Depends(active_user)]) -> str:
        """Forget the caller."""
        return user

    return app, site, asked


@pytest.mark.parametrize("door", DOORS)
def test_nobody_is_asked_to_confirm_before_the_route_would_let_them(door):
    app, site, asked = protected()
    with published(app, site) as client:
        caller, given = DOORS[door](client), {"number": 7, "reason": "broken"}
        for token, code in (
            (None, "AUTHENTICATION_REQUIRED"),
            ("nobody", "INVALID_CREDENTIALS"),
            ("ben", "INSUFFICIENT_PERMISSIONS"),
            ("gone", "INSUFFICIENT_PERMISSIONS"),
        ):
            assert caller.call("refund", given, token=token).code == code
        question = caller.call("refund", given, token="anna")
        assert (question.code, question.question["summary"]) == ("CONFIRMATION_REQUIRED", "Pay order 7 back?")
        answer = caller.call("refund", given, token="anna", confirmation=question.question["token"])
        assert answer.output in ("7 broken anna", {"result": "7 broken anna"})
        assert caller.call("forget", token="nobody").code == "INVALID_CREDENTIALS"
        assert caller.call("forget", token="gone").code == "INSUFFICIENT_PERMISSIONS"
        assert caller.call("forget", token="ben").code == "CONFIRMATION_REQUIRED"
    assert "anna" in asked


def test_the_dry_pass_runs_nothing_but_the_route_s_security():
    app, site, ran = FastAPI(), new_site(secret_keys=["s" * 32]), list[str]()
    key = APIKeyHeader(name="X-Key")

    async def check(shown: Annotated[str, Depends(key)]) -> None:
        ran.append("check")
        if shown != "right":
            raise HTTPException(401, "Wrong key.")

    async def count() -> None:
        ran.append("count")

    @app.delete("/books/{slug}", dependencies=[Depends(check), Depends(count)])
    @site.action("remove_book", confirm=True)
    async def remove_book(slug: str) -> str:
        """Remove a book."""
        ran.append("handler")
        return slug

    with published(app, site) as client:
        body = {"input": {"slug": "emma"}}
        wrong = client.post("/agents/remove_book/invoke", json=body, headers={"X-Key": "wrong"})
        assert (wrong.status_code, wrong.json()["code"]) == (401, "INVALID_CREDENTIALS")
        asked = client.post("/agents/remove_book/invoke", json=body, headers={"X-Key": "right"}).json()
        assert asked["code"] == "CONFIRMATION_REQUIRED"
        assert ran == ["check", "check"]
        headers = {"X-Key": "right", "AWP-Confirmation": asked["confirmation"]["token"]}
        assert client.post("/agents/remove_book/invoke", json=body, headers=headers).json() == "emma"
        assert ran == ["check", "check", "check", "count", "handler"]
        assert client.request("DELETE", "/books/emma", headers={"X-Key": "right"}).json() == "emma"


def test_a_header_with_a_credential_is_no_input_and_the_caller_s_own_is_used():
    app, site = FastAPI(), new_site()

    async def get_token_header(x_token: Annotated[str, Header()]) -> str:
        if x_token != "fake-super-secret-token":
            raise HTTPException(401, "X-Token header invalid")
        return x_token

    @app.get("/items", dependencies=[Depends(get_token_header)])
    @site.action("list_items")
    async def list_items(q: str = "", x_request_source: Annotated[str, Header()] = "web") -> list[str]:
        """List items."""
        return [q, x_request_source]

    with published(app, site) as client:
        assert inputs_of(site) == {"q", "x-request-source"}
        lacking = client.get("/agents/actions/list_items")
        assert (lacking.status_code, lacking.json()["code"]) == (401, "AUTHENTICATION_REQUIRED")
        assert lacking.headers["www-authenticate"] == 'ApiKey header="x-token"'
        wrong = client.get("/agents/actions/list_items", headers={"X-Token": "no"})
        assert (wrong.status_code, wrong.json()["code"]) == (401, "INVALID_CREDENTIALS")
        headers = {"X-Token": "fake-super-secret-token"}
        answer = client.get("/agents/actions/list_items", params={"q": "a"}, headers=headers)
        assert answer.json() == ["a", "web"]
        smuggled = client.get("/agents/actions/list_items", params={"x-token": "fake-super-secret-token"})
        assert smuggled.json()["code"] == "INVALID_INPUT"


def test_a_header_that_the_site_checks_is_no_input_and_stays_checked():
    app, site = FastAPI(), new_site(authenticate=ApiKey({"right-key": "partner"}, header="X-Partner"))

    @app.get("/stock")
    @site.action("stock", auth_required=True)
    async def stock(x_partner: Annotated[str, Header()]) -> str:
        """Show the stock."""
        return x_partner

    with published(app, site) as client:
        assert inputs_of(site) == set()
        for headers, status in (({}, 401), ({"X-Partner": "wrong"}, 401), ({"X-Partner": "right-key"}, 200)):
            assert client.get("/agents/actions/stock", headers=headers).status_code == status


@pytest.mark.parametrize("door", DOORS)
def test_a_required_header_that_the_request_carries_counts_as_given(door):
    app, site = FastAPI(), new_site()

    @app.get("/prices")
    @site.action("prices")
    async def prices(x_tenant: Annotated[str, Header()], x_level: Annotated[int, Header()], q: str) -> list[Any]:
        """List prices."""
        return [x_tenant, x_level, q]

    with published(app, site) as client:
        caller = DOORS[door](client)
        assert caller.call("prices", {"q": "a"}).code == "INVALID_INPUT"
        client.headers.update({"X-Tenant": "acme", "X-Level": "3"})
        assert caller.call("prices", {"q": "a"}).output in (["acme", 3, "a"], {"result": ["acme", 3, "a"]})
        given = {"q": "a", "x-tenant": "other", "x-level": 4}
        assert caller.call("prices", given).output in (["other", 4, "a"], {"result": ["other", 4, "a"]})
        client.headers.update({"X-Level": "many"})
        assert caller.call("prices", {"q": "a"}).code == "INVALID_INPUT"


def test_a_list_of_what_is_allowed_is_refused_where_only_routes_know_who_calls():
    from awp_publish import Mcp

    app, site = guarded_by(HTTPBearer())
    site = Site(name="Shop", description="Sells.", url=ORIGIN, plugins=[Mcp(list_only_allowed=True)])
    site.declare("list_orders", method="GET", path="/orders")
    with pytest.raises(DeclarationError) as refused:
        AgentPublisher(app, site=site, check=False).open()
    assert str(refused.value) == (
        "site: plugins.mcp.list_only_allowed: only routes authenticate callers (list_orders), and they are not asked "
        "for a list. Give Site(authenticate=...), or leave it out."
    )


@pytest.mark.needs("findings")
def test_a_line_says_which_actions_need_credentials_of_which_nothing_is_known(caplog):
    app, site = FastAPI(), new_site()

    @app.get("/me")
    @site.action("me")
    async def me(authorization: Annotated[str, Header()]) -> str:
        """Say who I am."""
        return authorization

    with TestClient(AgentPublisher(app, site=site), base_url=ORIGIN):
        lines = [record.getMessage() for record in caplog.records if "credentials" in record.getMessage()]
    assert any("me" in line and "start-credentials" in line for line in lines), lines


def test_basic_credentials_have_their_own_challenge():
    basic = HTTPBasic()
    app, site = FastAPI(), new_site()

    @app.get("/me")
    @site.action("me")
    async def me(shown: Annotated[HTTPBasicCredentials, Depends(basic)]) -> str:
        """Say who I am."""
        return shown.username

    with published(app, site) as client:
        refused = client.get("/agents/actions/me")
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Basic")
        assert client.get("/agents/actions/me", auth=("anna", "x")).json() == "anna"


@pytest.mark.needs("awp")
def test_a_key_in_the_address_of_the_awp_door_is_the_routes():
    app, site = FastAPI(), new_site()

    @app.get("/orders")
    @site.action("list_orders")
    async def list_orders(key: Annotated[str, Security(APIKeyQuery(name="api_key"))]) -> str:
        """List orders."""
        return key

    client = InProcess(AgentPublisher(app, site=site, check=False), 5)
    hello = {"client_name": "test", "client_version": "1", "awp_version": "0.1"}
    messages = [
        {"id": "1", "type": "request", "method": "awp.hello", "params": hello},
        {"id": "2", "type": "request", "method": "skills.invoke", "params": {"skill": "list_orders", "args": {}}},
    ]
    try:
        answer = client.talk("/awp?api_key=a%20b&other=c", {}, messages)
        assert answer[1]["result"]["output"] == "a b"
        assert client.talk("/awp?other=c", {}, messages)[1]["error"]["details"]["status"] == 401
    finally:
        client.close()
