"""Who calls, at the door: tokens, keys, sessions, the application's own users, and what all others are told."""

from typing import Annotated

import pytest
from fastapi import Depends, FastAPI, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.applications import Starlette
from starlette.authentication import AuthCredentials, AuthenticationBackend, SimpleUser
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.responses import JSONResponse
from starlette.routing import Route

from awp_publish import (
    AgentPublisher,
    ApiKey,
    ApplicationUser,
    BearerToken,
    DeclarationError,
    OAuth,
    Principal,
    SessionUser,
    current_caller,
)
from awp_publish.calls.authentication import MAX_REDACTED_WORDS
from tests.client import TestClient
from tests.guarded import ANN, BEN, invoke, known_callers, make_shop, poll, publish, read, status_and_code

CLEO = {"x-api-key": "key-of-cleo"}


def who() -> str:
    caller = current_caller()
    return caller.id if caller is not None else "nobody"


def make_site(**options):
    site = make_shop(**{"authenticate": [known_callers(), ApiKey({"key-of-cleo": Principal("cleo")})], **options})

    @site.agent("greet")
    async def greet() -> str:
        """Greet whoever it is."""
        return who()

    @site.agent("mine", auth_required=True)
    async def mine() -> str:
        """What is mine."""
        return who()

    @site.agent("buy", scopes=["buy"])
    async def buy() -> str:
        """Buy a book."""
        return who()

    return site


@pytest.fixture
def client(open_client):
    return publish(make_site(), open_client)


# --- Tokens and keys ---


@pytest.mark.parametrize(("headers", "caller"), [(ANN, "ann"), (BEN, "ben"), (CLEO, "cleo")])
def test_known_callers_are_let_through_and_known_to_the_handler(client, headers, caller):
    assert invoke(client, "mine", headers=headers).json() == caller
    assert invoke(client, "greet", headers=headers).json() == caller
    assert invoke(client, "greet").json() == "nobody"


def test_a_derived_authenticator_has_the_last_word(open_client):
    class Banned(BearerToken):
        async def __call__(self, credentials):
            principal = await BearerToken.__call__(self, credentials)
            return None if principal is not None and principal.id == "ben" else principal

    client = publish(make_site(authenticate=Banned({"token-of-ann": "ann", "token-of-ben": "ben"})), open_client)
    assert invoke(client, "mine", headers={"authorization": "Bearer token-of-ann"}).json() == "ann"
    assert invoke(client, "mine", headers={"authorization": "Bearer token-of-ben"}).status_code == 401


def test_nobody_is_told_what_to_send(client):
    refused = invoke(client, "mine")
    assert status_and_code(refused) == (401, "AUTHENTICATION_REQUIRED")
    challenges = refused.headers.get_list("www-authenticate")
    assert challenges == ['Bearer realm="Shop"', 'ApiKey header="X-API-Key"']


@pytest.mark.parametrize("agent", ["mine", "greet", "buy"])
@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": "Bearer wrong"},
        {"authorization": "Bearer"},
        {"authorization": "Bearer a b"},
        {"authorization": "Bearer ann-secret-token, Bearer wrong"},
        {"x-api-key": "wrong"},
        {"x-api-key": ""},
    ],
)
def test_wrong_credentials_are_refused_even_where_none_are_needed(client, agent, headers):
    refused = invoke(client, agent, headers=headers)
    assert status_and_code(refused) == (401, "INVALID_CREDENTIALS")
    assert "www-authenticate" in refused.headers


def test_a_caller_without_the_scopes_is_told_which_are_missing(client):
    assert invoke(client, "buy", headers=ANN).json() == "ann"
    refused = invoke(client, "buy", headers=BEN)
    assert status_and_code(refused) == (403, "INSUFFICIENT_SCOPE")
    assert refused.json()["missing_scopes"] == ["buy"]
    assert 'error="insufficient_scope", scope="buy"' in refused.headers["www-authenticate"]
    assert status_and_code(invoke(client, "buy")) == (401, "AUTHENTICATION_REQUIRED")


def test_the_caller_is_forgotten_with_the_call(client):
    callers = [invoke(client, "greet", headers=headers).json() for headers in (ANN, None, BEN, None)]
    assert callers == ["ann", "nobody", "ben", "nobody"]
    assert current_caller() is None


# --- What the application knows ---


def test_the_user_of_a_session_is_known_if_its_middleware_stands_outside(open_client):
    site = make_site(authenticate=SessionUser("user_id"))

    async def log_in(request: Request) -> JSONResponse:
        request.session["user_id"] = 7
        return JSONResponse("welcome")

    app = Starlette(routes=[Route("/login", log_in)])
    app.add_middleware(AgentPublisher, site=site)
    app.add_middleware(SessionMiddleware, secret_key="x" * 32)
    client = open_client(app)
    assert status_and_code(invoke(client, "mine")) == (401, "AUTHENTICATION_REQUIRED")
    client.get("/login")
    assert invoke(client, "mine").json() == "7"
    for origin in (
        {"origin": "https://evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ):
        for agent in ("mine", "greet"):
            assert status_and_code(invoke(client, agent, headers=origin)) == (403, "CROSS_SITE_COOKIES")
    assert invoke(client, "mine", headers={"origin": "https://shop.example"}).json() == "7"
    assert invoke(client, "mine", headers={"sec-fetch-site": "same-origin"}).json() == "7"


class Backend(AuthenticationBackend):
    async def authenticate(self, conn):
        name = conn.headers.get("x-name")
        return (AuthCredentials(["buy"] if name == "ann" else []), SimpleUser(name)) if name else None


def test_the_user_of_the_application_is_known_with_the_scopes_it_was_granted(open_client):
    site = make_site(authenticate=ApplicationUser())
    app = Starlette(middleware=[Middleware(AuthenticationMiddleware, backend=Backend())])
    app.user_middleware.append(Middleware(AgentPublisher, site=site))
    client = open_client(app)
    assert invoke(client, "buy", headers={"x-name": "ann"}).json() == "ann"
    assert status_and_code(invoke(client, "buy", headers={"x-name": "ben"})) == (403, "INSUFFICIENT_SCOPE")
    assert status_and_code(invoke(client, "mine")) == (401, "AUTHENTICATION_REQUIRED")
    assert invoke(client, "greet").json() == "nobody"


# --- Handlers of every kind ---


@pytest.mark.needs("jobs")
def test_handlers_of_every_kind_know_who_calls(open_client):
    site, app = make_shop(authenticate=known_callers()), FastAPI()

    @app.post("/route")
    @site.action("route")
    async def route() -> str:
        """Say who calls."""
        return who()

    @app.post("/sync")
    @site.action("sync")
    def sync() -> str:
        """Say who calls."""
        return who()

    @site.agent("sync_function")
    def sync_function() -> str:
        """Say who calls."""
        return who()

    @app.post("/job")
    @site.action("job", execution="async")
    def job() -> str:
        """Say who calls, with which scopes."""
        caller = current_caller()
        return f"{who()} {sorted(caller.scopes) if caller else ''}"

    client = publish(site, open_client, app)
    for agent in ("route", "sync", "sync_function"):
        assert [invoke(client, agent, headers=headers).json() for headers in (ANN, None)] == ["ann", "nobody"]
    started = invoke(client, "job", headers=ANN)
    assert poll(client, started.headers["location"], ANN).json()["result"] == "ann ['buy']"
    assert client.post("/route").json() == "nobody"


# --- What is declared ---


@pytest.mark.parametrize("options", [{"auth_required": True}, {"scopes": ["buy"]}])
def test_an_action_that_needs_a_caller_is_refused_at_start_up_if_nothing_tells_who_calls(options):
    site = make_shop()

    @site.agent("mine", **options)
    async def mine() -> None:
        """Mine."""

    with (
        pytest.raises(DeclarationError, match=r'action "mine".*auth_required'),
        TestClient(AgentPublisher(Starlette(), site=site)),
    ):
        pass


def test_a_route_with_a_security_scheme_of_its_own_asks_for_credentials_itself(open_client):
    site, app, scheme = make_shop(), FastAPI(), HTTPBearer()

    @app.post("/mine")
    @site.action("mine")
    async def mine(given=Depends(scheme)) -> str:  # noqa: B008
        """Mine."""
        return str(given.credentials)

    client = publish(site, open_client, app)
    assert invoke(client, "mine", headers={"authorization": "Bearer the-routes-own"}).json() == "the-routes-own"
    refused = invoke(client, "mine")
    assert refused.status_code in (401, 403)
    assert "recovery" in refused.json()


METADATA = "/.well-known/oauth-protected-resource"


@pytest.mark.needs("identity")
@pytest.mark.parametrize("servers", [(), ("https://login.example",)])
def test_the_source_of_tokens_is_published_if_there_are_authorization_servers(open_client, servers):
    site = make_site(oauth=OAuth(authorization_servers=servers))
    client = publish(site, open_client)
    document, refused = client.get(METADATA), invoke(client, "mine")
    if servers:
        assert document.json()["authorization_servers"] == list(servers)
        assert f'resource_metadata="https://shop.example{METADATA}"' in refused.headers["www-authenticate"]
    else:
        assert document.status_code == 404
        assert "resource_metadata" not in refused.headers["www-authenticate"]


def test_a_check_that_fails_refuses_the_call_and_shows_nothing(open_client, caplog):
    def check(token: str) -> str:
        raise KeyError(token)

    refused = invoke(publish(make_site(authenticate=BearerToken(check)), open_client), "greet", headers=ANN)
    assert status_and_code(refused) == (500, "HANDLER_FAILED")
    assert "ann-secret-token" not in refused.text + caplog.text


def test_credentials_that_only_the_route_knows_reach_the_route(open_client):
    site = make_shop(authenticate=BearerToken({"a-token-of-the-site": "partner"}))
    app, scheme = FastAPI(), HTTPBearer()

    @app.get("/me")
    @site.action("me")
    async def me(credentials: Annotated[HTTPAuthorizationCredentials, Depends(scheme)]) -> str:
        """Say who calls."""
        return credentials.credentials

    client = publish(site, open_client, app)
    assert read(client, "me", headers={"authorization": "Bearer of-the-route"}).json() == "of-the-route"
    assert read(client, "me").status_code in (401, 403)


def test_a_caller_whose_name_is_no_text_is_refused(open_client):
    async def verify(token: str) -> str:
        return "\ud800"

    site = make_shop(authenticate=BearerToken(verify))

    @site.agent("order", auth_required=True, idempotency=True)
    async def order() -> int:
        """Order something."""
        return 1

    headers = {"authorization": "Bearer of-nobody", "idempotency-key": "k"}
    refused = invoke(publish(site, open_client), "order", headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (401, "INVALID_CREDENTIALS")


@pytest.mark.parametrize(("words", "is_shown"), [(1, True), (MAX_REDACTED_WORDS + 1, False)])
def test_a_failed_check_is_logged_with_its_message_unless_too_much_was_sent(open_client, caplog, words, is_shown):
    message = "The directory is away."  # in a line of its own, since a traceback has the line that raises

    def check(token: str) -> str:
        raise RuntimeError(message)

    sent = ANN | {"x-sent": " ".join(f"word{number}" for number in range(words))}
    refused = invoke(publish(make_site(authenticate=BearerToken(check)), open_client), "greet", headers=sent)
    assert status_and_code(refused) == (500, "HANDLER_FAILED")
    assert "RuntimeError" in caplog.text
    assert (message in caplog.text) is is_shown
