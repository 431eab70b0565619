"""A person signs in on the site's own page, allows an agent to act, and the agent's calls are the person's."""

import re
from urllib.parse import parse_qsl, urlsplit
from uuid import UUID

import pytest
from fastapi import FastAPI, Header, HTTPException, Request, Response
from fastapi.responses import JSONResponse

from awp_publish import (
    AgentPublisher,
    ApiKey,
    Client,
    DeclarationError,
    Person,
    Principal,
    SessionUser,
    SignIn,
    Site,
    current_caller,
)
from tests.client import TestClient
from tests.plugins.sign_in.shop import BACK, KEYS, URL, Agent, invoke, make_shop, sent_back


@pytest.fixture(params=[False, True], ids=["sessions inside", "sessions outside"])
def shop(request, open_client) -> TestClient:
    return open_client(make_shop(sessions_outside=request.param))


@pytest.fixture
def agent(shop) -> Agent:
    return Agent(shop, TestClient(shop.app, base_url=URL), client_name="Claude")


def test_an_agent_acts_as_the_person_who_has_allowed_it(shop, agent):
    assert invoke(shop, "read_profile").status_code == 401
    tokens = agent.sign_in("ann")
    assert invoke(shop, "read_profile", tokens["access_token"]).json() == "ann"
    assert invoke(shop, "order_book", tokens["access_token"], title="Emma").json() == "Emma for ann"


def test_an_unticked_scope_is_not_granted_and_asked_for_when_needed(open_client):
    shop = open_client(make_shop(scopes={"orders": "Place orders", "profile": "See your name"}))
    agent = Agent(shop, TestClient(shop.app, base_url=URL))
    page = agent.follow(agent.ask(scope="orders profile"))
    sent = dict(parse_qsl(urlsplit(agent.answer(page, scopes=["profile"]).headers["location"]).query))
    tokens = agent.exchange(sent["code"]).json()
    assert tokens["scope"] == "profile"
    refused = invoke(shop, "order_book", tokens["access_token"], title="Emma")
    assert refused.status_code == 403
    challenge = refused.headers["www-authenticate"]
    assert 'error="insufficient_scope"' in challenge
    assert 'scope="orders"' in challenge
    more = agent.sign_in(scope="orders profile")
    assert invoke(shop, "order_book", more["access_token"], title="Emma").status_code == 200


def test_the_same_client_is_not_asked_about_twice_unless_it_wants_more_or_is_local(shop, agent):
    agent.sign_in()
    answer = agent.browser.get(agent.ask().headers["location"], follow_redirects=False)
    assert answer.status_code == 303
    assert "code=" in answer.headers["location"]
    asked = agent.browser.get(agent.ask(prompt="consent").headers["location"], follow_redirects=False)
    assert asked.status_code == 200
    local = Agent(shop, agent.browser, "http://127.0.0.1/callback")
    local.sign_in()
    assert local.follow(local.ask()).status_code == 200


def test_an_unknown_scope_is_dropped_and_nothing_but_unknown_ones_is_refused(agent):
    assert agent.sign_in(scope="orders unheard offline_access")["scope"] == "orders"
    assert sent_back(agent.ask(scope="unheard"))["error"] == "invalid_scope"


def test_scopes_that_clients_ask_every_server_for_are_left_out(open_client, agent):
    asked = "openid email profile offline_access"
    assert agent.sign_in(scope=asked)["scope"] == "orders"
    shop = open_client(make_shop(scopes={}))
    other = Agent(shop, TestClient(shop.app, base_url=URL), scope=asked)
    assert "scope" not in other.sign_in(scope=asked)


def test_a_person_ends_an_agents_access_on_the_page_of_connected_agents(shop, agent):
    tokens = agent.sign_in()
    page = agent.browser.get("/agents/connections").text
    assert '<strong>Claude</strong><small class="block">agent.example</small>' in page
    assert "Place orders." in page
    assert "today" in page
    form = re.findall(r'name="token" value="([^"]+)"', page)[0], re.findall(r'name="end" value="([^"]+)"', page)[0]
    stranger = TestClient(shop.app, base_url=URL)
    stranger.post("/login", data={"name": "eve"}, follow_redirects=False)
    stranger.get("/agents/connections")
    stolen = {"token": form[0], "end": form[1]}
    assert stranger.post("/agents/connections", data=stolen).status_code == 403
    assert invoke(shop, "read_profile", tokens["access_token"]).status_code == 200
    ended = agent.browser.post("/agents/connections", data=stolen)
    assert "Claude is disconnected" in ended.text
    assert "No agent is connected" in ended.text
    assert invoke(shop, "read_profile", tokens["access_token"]).status_code == 401
    assert agent.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    asked = agent.follow(agent.ask())
    assert "Let Claude act for you?" in asked.text  # what was allowed before is not remembered


def test_a_client_that_the_owner_names_needs_no_registration_and_may_act_for_itself(open_client):
    partner = Client("partner", "Partner", redirects=[BACK], secret="s" * 40, scopes=["orders"])
    app = make_shop(clients=[partner], register=False)

    @app.state.site.agent("who_calls", auth_required=True)
    async def who_calls() -> str:
        """Say who calls."""
        caller = current_caller()
        return f"{caller.id} {sorted(caller.scopes)}" if caller else ""

    shop = open_client(app)
    server = shop.get("/.well-known/oauth-authorization-server").json()
    assert "registration_endpoint" not in server
    assert "client_credentials" in server["grant_types_supported"]
    refused = shop.post("/agents/sign-in/register", json={"redirect_uris": [BACK]})
    assert refused.status_code == 400
    answer = shop.post(server["token_endpoint"], data={"grant_type": "client_credentials"}, auth=("partner", "s" * 40))
    assert answer.status_code == 200, answer.text
    assert "refresh_token" not in answer.json()
    assert invoke(shop, "who_calls", answer.json()["access_token"]).json() == "client:partner ['orders']"


def test_a_site_with_tokens_of_its_own_says_with_which_headers_a_person_calls(open_client):
    known = {"ann": "token-of-ann"}

    async def find_user(request: Request) -> Person | None:
        name = request.cookies.get("who")
        return Person(name, name.title()) if name in known else None

    def as_user(person: Person) -> dict[str, str] | None:
        return {"Authorization": f"Bearer {known[person.id]}", "X-Member": "yes"} if person.id in known else None

    sign_in = SignIn(login="/login", user=find_user, as_user=as_user)
    site = Site("Shop", "Sells things.", URL, plugins=[sign_in], store="memory:", secret_keys=KEYS)
    app = FastAPI()

    @app.get("/me")
    @site.action("read_profile", auth_required=True)
    async def read_profile(request: Request, answer: Response, authorization: str = Header()) -> str:
        """Read who is there, and how often they have."""
        if authorization not in [f"Bearer {token}" for token in known.values()]:
            raise HTTPException(401)
        seen = int(request.cookies.get("seen", "0")) + 1
        answer.set_cookie("seen", str(seen))
        return f"{authorization} {seen} {request.headers.getlist('x-member')}"

    app.add_middleware(AgentPublisher, site=site)
    shop = open_client(app)
    agent = Agent(shop, TestClient(app, base_url=URL, cookies={"who": "ann"}))
    page = agent.follow(agent.ask(scope=None, resource=None))
    assert "<dd>Ann</dd>" in page.text
    assert 'Do all that you may do here through an agent:<small class="block">read profile</small>' in page.text
    code = dict(parse_qsl(urlsplit(agent.answer(page).headers["location"]).query))["code"]
    tokens = agent.exchange(code).json()
    for times in (1, 2):  # what routes set is kept with the token
        headers = {"authorization": f"Bearer {tokens['access_token']}", "x-member": "no", "x-own": "1"}
        answer = shop.post("/agents/read_profile/invoke", json={"input": {}}, headers=headers)
        assert answer.json() == f"Bearer token-of-ann {times} ['yes']"
        assert not {"set-cookie", "awp-session"} & answer.headers.keys()
    del known["ann"]
    assert invoke(shop, "read_profile", tokens["access_token"]).status_code == 401
    assert agent.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"


def test_a_person_whom_the_site_no_longer_knows_has_no_agents(open_client):
    blocked: set[str] = set()

    def find_user(request: Request) -> str | None:
        name = request.session.get("user")
        return None if name in blocked else name

    shop = open_client(make_shop(user=find_user))
    agent = Agent(shop, TestClient(shop.app, base_url=URL))
    tokens = agent.sign_in()
    assert invoke(shop, "read_profile", tokens["access_token"]).status_code == 200
    blocked.add("ann")
    refused = invoke(shop, "read_profile", tokens["access_token"])
    assert refused.status_code == 401
    assert 'error="invalid_token"' in refused.headers["www-authenticate"]
    assert agent.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    blocked.clear()
    assert agent.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"


@pytest.mark.parametrize("known", [7, UUID(int=7)])
def test_an_id_is_whatever_the_sites_database_has(open_client, known):
    shop = open_client(make_shop(user=lambda request: known if "user" in request.session else None))
    agent = Agent(shop, TestClient(shop.app, base_url=URL))
    assert invoke(shop, "read_profile", agent.sign_in()["access_token"]).json() == "ann"


@pytest.mark.parametrize("known", [True, 1.5, ["ann"], b"ann"])
def test_a_value_that_is_not_a_person_signs_nobody_in(open_client, caplog, known):
    shop = open_client(make_shop(user=lambda request: known))
    assert TestClient(shop.app, base_url=URL).get("/agents/connections").status_code == 503
    assert f"user returned a value of type {type(known).__name__}" in caplog.text


def test_pages_of_the_sites_own_take_the_place_of_ours(open_client, tmp_path):
    content = "<h1>{{ client.name }} & friends: {{ person.name }}</h1>"
    own = f'{{% extends "page.html" %}}{{% block content %}}{content}{{% endblock %}}'
    (tmp_path / "consent.html").write_text(own)
    shop = open_client(make_shop(templates=tmp_path))
    agent = Agent(shop, TestClient(shop.app, base_url=URL), client_name="<Claude>")
    assert "<h1>&lt;Claude&gt; & friends: ann</h1>" in agent.follow(agent.ask()).text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"login": None}, "nobody can sign in"),
        ({"user": None}, "the site cannot tell who is signed in"),
        ({"user": SessionUser}, "must be SessionUser"),
        ({"scopes": {"orders": "x", "a b": "x"}}, "is not a scope"),
        ({"clients": [Client("a", "A", secret="short")]}, "at least 32 characters"),
        ({"clients": [Client("a", "A", redirects=["http://a.example"])]}, "must begin with https"),
        ({"trusted_hosts": ["https://claude.ai"]}, "is not a host"),
        ({"minutes": 0}, "minutes"),
    ],
)
def test_a_wrong_option_is_said_at_start_up(open_client, options, words):
    with pytest.raises(DeclarationError, match=words):
        open_client(make_shop(**options))


def test_a_scope_that_nobody_can_allow_is_a_finding(open_client):
    app = make_shop(scopes={"other": "Something else"})
    shop = open_client(app)
    assert shop.get("/.well-known/oauth-authorization-server").json()["scopes_supported"] == ["other"]
    assert "scopes_supported" not in shop.get("/.well-known/oauth-protected-resource/mcp").json()
    assert [finding.check for finding in app.state.site.findings if "orders" in finding.message] == ["sign-in-scope"]


def test_a_site_that_cannot_tell_who_is_signed_in_lets_nobody_in_and_says_so(open_client, caplog):
    is_down = False

    def find_user(request: Request) -> str | None:
        if is_down:
            raise ConnectionError("the database is gone")
        name = request.session.get("user")
        return None if name is None else str(name)

    shop = open_client(make_shop(user=find_user))
    agent = Agent(shop, TestClient(shop.app, base_url=URL))
    tokens, page = agent.sign_in(), agent.follow(agent.ask(prompt="consent"))
    is_down = True
    refused = invoke(shop, "read_profile", tokens["access_token"])
    assert (refused.status_code, refused.json()["code"]) == (500, "HANDLER_FAILED")
    assert agent.refresh(tokens["refresh_token"]).json()["error"] == "temporarily_unavailable"
    for answer in (agent.answer(page), agent.browser.get("/agents/connections")):
        assert answer.status_code == 503
        assert "try again in a minute" in answer.text
    assert "the database is gone" in caplog.text
    is_down = False
    assert invoke(shop, "read_profile", tokens["access_token"]).status_code == 200
    assert agent.refresh(agent.refresh(tokens["refresh_token"]).json()["refresh_token"]).status_code == 200


def test_cookies_of_a_narrow_path_are_sent_where_they_belong(open_client):
    app = make_shop()
    site = app.state.site

    @app.post("/lists/open", response_model=None)
    @site.action("open_list", auth_required=True)
    async def open_list() -> JSONResponse:
        """Open a list."""
        answer = JSONResponse("opened")
        answer.set_cookie("list", "7", path="/lists")
        return answer

    @app.get("/lists/show")
    @site.action("show_list", auth_required=True)
    async def show_list(request: Request) -> str | None:
        """Show the list."""
        return request.cookies.get("list")

    shop = open_client(app)
    token = Agent(shop, TestClient(app, base_url=URL)).sign_in()["access_token"]
    assert invoke(shop, "open_list", token).json() == "opened"
    assert invoke(shop, "show_list", token).json() == "7"


@pytest.mark.parametrize("role", ["operator", "reader"])
def test_an_operator_sees_and_ends_connected_agents_in_the_overview(open_client, role):
    keys = ApiKey({"the-key-of-ann": Principal("owner", frozenset({role}))})
    shop = open_client(make_shop(settings={"plugins": ["mcp", "overview"], "authenticate": keys}))
    owner = {"x-api-key": "the-key-of-ann"}
    agent = Agent(shop, TestClient(shop.app, base_url=URL), client_name="Reading helper")
    tokens = agent.sign_in()
    assert "Reading helper" not in shop.get("/agents").text
    page = shop.get("/agents", headers=owner).text
    forms = re.findall(r'name="awp-panel" value="([^"]+)"', page)
    if role == "reader":
        assert not forms
        return
    assert "Connected agents (1)" in page
    assert shop.post("/agents", data={"awp-panel": forms[0]}).status_code == 403
    assert invoke(shop, "read_profile", tokens["access_token"]).status_code == 200
    ended = shop.post("/agents", data={"awp-panel": forms[0]}, headers=owner).text
    assert "Reading helper is disconnected from ann." in ended
    assert 'name="awp-panel"' not in ended
    assert invoke(shop, "read_profile", tokens["access_token"]).status_code == 401
    assert "It had already ended." in shop.post("/agents", data={"awp-panel": forms[0]}, headers=owner).text
    assert "Let Reading helper act for you?" in agent.follow(agent.ask()).text
