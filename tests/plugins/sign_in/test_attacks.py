"""The attacks of RFC 9700 and of draft-ietf-oauth-client-id-metadata-document, each of which fails.

What the endpoints answer to wrong requests, codes and tokens is in `transcripts`.
"""

from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote_plus

import pytest
from fastapi import Request, Security
from fastapi.security import APIKeyCookie

from awp_publish import Client, Proxies, current_caller
from awp_publish.plugins.sign_in import at
from awp_publish.plugins.sign_in.redirects import why_refused
from benchmarks.person import hidden_fields
from tests.client import TestClient
from tests.plugins.sign_in.shop import BACK, URL, Agent, invoke, make_shop, sent_back


@pytest.fixture
def shop(open_client) -> TestClient:
    return open_client(make_shop())


def browser_of(shop: TestClient) -> TestClient:
    return TestClient(shop.app, base_url=URL)


@pytest.fixture
def agent(shop) -> Agent:
    return Agent(shop, browser_of(shop))


# Clients authenticate in one way, and errors are written as their RFCs say


def ask_as_partner(shop: TestClient, sent: str | None = None, **form: str):
    """Ask for a token with the id and the secret of a client in a header, and with a form."""
    headers = {"authorization": f"Basic {b64encode(sent.encode()).decode()}"} if sent is not None else {}
    whole = {"grant_type": "client_credentials", **form}
    return shop.post("/agents/sign-in/token", data=whole, headers=headers)


SECRET = "a secret: 100% + more" * 2
ENCODED = f"the+partner:{quote_plus(SECRET)}"


def test_a_client_with_a_secret_learns_how_to_show_it(open_client):
    shop = open_client(make_shop(clients=[Client("partner", "Partner", redirects=[BACK], secret="s" * 40)]))
    server = shop.get("/.well-known/oauth-authorization-server").json()
    assert "client_secret_basic" in server["token_endpoint_auth_methods_supported"]
    assert "client_credentials" not in server["grant_types_supported"]
    assert ask_as_partner(shop, f"partner:{'s' * 40}").json()["error"] == "unauthorized_client"


# Redirects: to addresses that are not registered nobody is sent, whatever is wrong (RFC 9700 section 4.1)


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.example/callback",
        BACK + "/",
        BACK + "?x=1",
        BACK + "/../evil",
        "https://agent.example:8443/callback",
        "https://agent.example.evil.example/callback",
        "https://agent.example@evil.example/callback",
        "https://AGENT.example/callback",
        "http://agent.example/callback",
        "javascript:alert(1)",
        "//evil.example/callback",
    ],
)
def test_nobody_is_sent_to_an_address_that_is_not_exactly_a_registered_one(agent, address):
    for changes in ({}, {"response_type": "token"}, {"code_challenge": None}):
        answer = agent.ask(redirect_uri=address, **changes)
        assert answer.status_code == 400
        assert "location" not in answer.headers
        assert "has not registered" in answer.text


def test_nobody_is_sent_back_for_a_client_that_is_not_known(agent):
    for client_id in ("x" * 32, "../../etc", "https://evil.example", "<script>", "\x00", "https://a.example/../x"):
        answer = agent.ask(client_id=client_id)
        assert answer.status_code == 400
        assert "location" not in answer.headers
        assert "<script>" not in answer.text


MISTAKES: list[dict[str, str | None]] = [
    {"response_type": "token"},
    {"code_challenge": None},
    {"scope": "unheard"},
    {"resource": "https://other.example"},
    {"prompt": "none"},
]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_site_sends_nobody_away_for_a_link_with_a_mistake_by_itself(agent, mistake):
    """Anybody may register an address, so that a link to the site would lead wherever they want (section 4.11.2)."""
    answer = agent.follow(agent.ask(**mistake), name="")
    assert answer.status_code == 400
    assert ">agent.example</a>" in answer.text
    back = sent_back(answer)
    assert (back["state"], back["iss"]) == ("the state", URL)
    assert back["error"]


def test_a_request_for_headers_alone_changes_nothing(shop, agent):
    agent.sign_in()  # from now on, a code is issued without a question
    asked = agent.ask().headers["location"]
    for address in (asked, agent.server["authorization_endpoint"], "/agents/connections"):
        looked = agent.browser.head(address, follow_redirects=False)
        assert "location" not in looked.headers
        assert not looked.content
    for path in ("token", "revoke", "register"):
        refused = shop.head(f"/agents/sign-in/{path}")
        assert (refused.status_code, refused.headers["allow"]) == (405, "POST, OPTIONS")
    for method in ("OPTIONS", "PUT", "DELETE", "PATCH"):
        assert agent.browser.request(method, asked).status_code in (204, 405)
    assert agent.browser.request("GET", asked, data={"answer": "allow"}, follow_redirects=False).status_code == 303


def test_a_loopback_client_may_listen_at_any_port_and_at_no_other_path_or_host(shop):
    agent = Agent(shop, browser_of(shop), "http://127.0.0.1:7777/callback")
    assert agent.ask(redirect_uri="http://127.0.0.1:51234/callback").status_code == 303
    root = Agent(shop, browser_of(shop), "http://127.0.0.1")
    assert root.ask(redirect_uri="http://127.0.0.1:51234/").status_code == 303
    for address in ("http://127.0.0.1:51234/other", "http://localhost:51234/callback", "https://127.0.0.1/callback"):
        assert agent.ask(redirect_uri=address).status_code == 400


def test_a_scheme_of_a_programs_own_is_taken_exactly_as_registered(shop):
    agent = Agent(shop, browser_of(shop), "cursor://anysphere.cursor-mcp/oauth/callback")
    assert agent.ask().status_code == 303
    assert agent.ask(redirect_uri="cursor://anysphere.cursor-mcp/oauth/other").status_code == 400


# PKCE (RFC 9700 sections 2.1.1 and 4.8)


@pytest.mark.parametrize("verifier", [None, "", "w" * 43, "v", "v" * 200, "ü" * 43])
def test_a_stolen_code_is_of_no_use_without_its_verifier(agent, verifier):
    code = agent.consent()["code"]
    answer = agent.exchange(code, code_verifier=verifier)
    assert answer.status_code == 400
    assert answer.json()["error"] in ("invalid_grant", "invalid_request")
    assert agent.exchange(code).status_code == 200


# Ways that are no more (sections 2.1.2, 2.4, 2.6 and 4.3)


def test_a_token_in_an_address_is_none_and_what_endpoints_take_stands_in_the_body(shop, agent):
    token = agent.sign_in()["access_token"]
    called = shop.post(f"/agents/read_profile/invoke?access_token={token}", json={"input": {}})
    assert called.status_code == 401
    form = {"grant_type": "authorization_code", "client_id": agent.id, "code_verifier": agent.verifier}
    asked = shop.post(agent.server["token_endpoint"], params={**form, "code": agent.consent()["code"]})
    assert (asked.status_code, asked.json()["error"]) == (400, "invalid_request")


def test_no_page_of_another_origin_reads_what_a_person_is_asked(agent):
    origin = {"origin": "https://evil.example", "access-control-request-method": "GET"}
    for address in (agent.server["authorization_endpoint"], agent.ask().headers["location"], "/agents/connections"):
        for method in ("GET", "OPTIONS"):
            answer = agent.browser.request(method, address, headers=origin, follow_redirects=False)
            assert "access-control-allow-origin" not in answer.headers


def test_a_client_that_has_a_persons_id_is_not_that_person(open_client):
    ann = Client("ann", "Partner", secret="s" * 40, scopes=["orders"])
    shop = open_client(make_shop(clients=[ann]))
    token = ask_as_partner(shop, f"ann:{'s' * 40}").json()["access_token"]
    assert invoke(shop, "read_profile", token).status_code == 401


# Codes (sections 4.2, 4.5 and 2.1.1)


def test_a_code_of_one_client_is_of_no_use_to_another(shop, agent):
    other = Agent(shop, browser_of(shop))
    code = agent.consent()["code"]
    answer = other.exchange(code, code_verifier=agent.verifier)
    assert answer.json()["error"] == "invalid_grant"
    assert agent.exchange(code, redirect_uri="https://agent.example/other").json()["error"] == "invalid_grant"
    assert agent.exchange(code, redirect_uri=None).status_code == 200  # OAuth 2.1 section 10.2


def test_a_code_is_no_token_and_a_token_no_code(shop, agent):
    code = agent.consent()["code"]
    assert invoke(shop, "read_profile", code).status_code == 401
    tokens = agent.exchange(code).json()
    assert invoke(shop, "read_profile", tokens["refresh_token"]).status_code == 401
    assert agent.exchange(tokens["access_token"]).json()["error"] == "invalid_grant"
    assert agent.refresh(tokens["access_token"]).json()["error"] == "invalid_grant"


# Forgery, clickjacking and fixation at the consent page (sections 4.7 and 4.16)


def test_a_consent_that_another_page_has_sent_is_refused(shop, agent):
    page = agent.follow(agent.ask())
    form = hidden_fields(page.text)
    stolen = {**form, "answer": "allow", "scope": "orders"}
    attacker = browser_of(shop)
    attacker.post("/login", data={"name": "eve"})
    for changes in ({"token": ""}, {"token": "x"}, {"request": "x"}):
        answer = agent.browser.post("/agents/sign-in/consent", data=stolen | changes, follow_redirects=False)
        assert answer.status_code in (400, 403)
    assert attacker.post("/agents/sign-in/consent", data=stolen, follow_redirects=False).status_code == 403
    agent.browser.cookies.delete("awp_sign_in")
    assert agent.browser.post("/agents/sign-in/consent", data=stolen, follow_redirects=False).status_code == 403


def test_a_form_of_one_request_answers_no_other(agent):
    first, second = (hidden_fields(agent.follow(agent.ask(state=state)).text) for state in ("1", "2"))
    mixed = {"request": second["request"], "token": first["token"], "answer": "allow", "scope": "orders"}
    assert agent.browser.post("/agents/sign-in/consent", data=mixed, follow_redirects=False).status_code == 403


def test_somebody_who_has_signed_in_meanwhile_as_another_person_is_asked_again(agent):
    page = agent.follow(agent.ask())
    agent.browser.post("/login", data={"name": "ben"}, follow_redirects=False)
    assert agent.answer(page).status_code == 403


def test_a_request_that_is_too_old_is_asked_about_and_answered_no_more(open_client, monkeypatch):
    monkeypatch.setattr(at, "PENDING_SECONDS", -1)
    shop = open_client(make_shop())
    page = (agent := Agent(shop, browser_of(shop))).follow(agent.ask())
    assert (page.status_code, "This request has expired" in page.text) == (400, True)


def test_each_request_is_answered_once(agent):
    page = agent.follow(agent.ask())
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: agent.answer(page), range(4)))
    assert sorted(answer.status_code for answer in answers) == [303, 409, 409, 409]
    assert agent.answer(page).status_code == 409


# Phishing by names


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("<b>Claude</b><script>alert(1)</script>", "&lt;b&gt;Claude&lt;/b&gt;&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("Claude\u202egro.live", "Claude gro.live"),
        ("Cla\u200bude\n\nYou are safe", "Cla ude You are safe"),
        ("\uff23\uff4c\uff41\uff55\uff44\uff45", "Claude"),
        ("C" * 500, "C" * 60),
        ("\n\u202e", "A program"),
        ("\u2800\u3164", "A program"),
        ("Claud\u0435", "A program"),  # its last letter is Cyrillic
        ("\u0421\u04cf\u0430\u0443\u0501\u0435", "A program"),  # all are
        ("\u13df\u13de\u13aa", "A program"),  # Cherokee
        ("\u1d04\u029f\u1d00\u1d1c\u1d05\u1d07", "A program"),  # small capitals
        ("C\u0336\u0334\u0337\u0335laude", "A program"),
        ("C\u0336\u0334\u0337laude", "C\u0336\u0334\u0337laude"),
        ("Claude \u0420\u043e\u0441\u0430", "A program"),  # a Russian word that looks like "Poca"
        ("\u0420\u043e\u0441\u0442\u043e\u043a", "\u0420\u043e\u0441\u0442\u043e\u043a"),
        ("VK-\u0431\u043e\u0442", "VK-\u0431\u043e\u0442"),
        ("Cl\u0251ude", "A program"),  # a phonetic sign
        ("\ud55c\uad6d\u4eba bot", "\ud55c\uad6d\u4eba bot"),
        ("\u5c0f\u540d\u3105Claude", "\u5c0f\u540d\u3105Claude"),
        ("\u3042\ud55c", "A program"),  # nobody writes Japanese and Korean in one word
        ("\u042f\u043d\u0434\u0435\u043a\u0441 Agent", "\u042f\u043d\u0434\u0435\u043a\u0441 Agent"),
        ("Claude \u30a8\u30fc\u30b8\u30a7\u30f3\u30c8", "Claude \u30a8\u30fc\u30b8\u30a7\u30f3\u30c8"),
        ("\u0110\u1ea1i l\u00fd", "\u0110\u1ea1i l\u00fd"),
    ],
)
def test_a_clients_name_is_shown_on_one_line_and_cannot_imitate_another(shop, name, shown):
    agent = Agent(shop, browser_of(shop), client_name=name)
    page = agent.follow(agent.ask()).text
    assert f"<h1>Let {shown} act for you?</h1>" in page


def test_a_name_that_anybody_may_choose_stands_beside_the_host_that_gets_the_answer(shop):
    agent = Agent(shop, browser_of(shop), "https://evil.example/cb", client_name="Claude")
    page = agent.follow(agent.ask()).text
    assert "Anybody can choose the name “Claude”" in page
    assert "<dd>evil.example</dd>" in page
    assert "xn--" not in page
    encoded = Agent(shop, browser_of(shop), "https://xn--lude-hoa0c.example/cb", client_name="Claude")
    assert "may look like one that you know" in encoded.follow(encoded.ask()).text
    capital = Agent(shop, browser_of(shop), "https://cIaude.ai/cb", client_name="Claude")  # looks like claude.ai
    assert "<dd>ciaude.ai</dd>" in capital.follow(capital.ask()).text
    local = Agent(shop, browser_of(shop), "http://127.0.0.1/cb", client_name="Claude Code")
    assert "cannot check which program asks" in local.follow(local.ask()).text


@pytest.mark.parametrize("local", ["http://127.0.0.1/callback", "cursor://agent/callback", "http://localhost/callback"])
def test_a_client_that_may_intercept_the_answer_is_warned_of_each_time(shop, local):
    agent = Agent(shop, browser_of(shop), client_name="Claude Code")
    listed = [BACK, local]
    agent.id = shop.post("/agents/sign-in/register", json={"redirect_uris": listed}).json()["client_id"]
    page = agent.follow(agent.ask(redirect_uri=local))
    assert "cannot check which program asks" in page.text
    assert agent.answer(page).headers["location"].startswith(local)
    assert "cannot check which program asks" in agent.follow(agent.ask(redirect_uri=local)).text
    assert "code" in sent_back(agent.follow(agent.ask()))  # nobody but the client's own server gets this one


# Replay of refresh tokens (section 4.14)


def test_a_refresh_token_that_was_stolen_and_used_ends_the_grant(shop, agent):
    first = agent.sign_in()
    second = agent.refresh(first["refresh_token"]).json()
    third = agent.refresh(second["refresh_token"]).json()
    assert agent.refresh(first["refresh_token"]).json()["error"] == "invalid_grant"
    assert invoke(shop, "read_profile", third["access_token"]).status_code == 401


# Audience (section 4.10)


@pytest.mark.parametrize(
    "resource",
    ["https://other.example/mcp", "https://shop.example.evil.example", "x", URL + "/x", URL + "/MCP", URL + "#x"],
)
def test_a_token_for_another_site_is_not_asked_for_here(agent, resource):
    assert sent_back(agent.ask(resource=resource))["error"] == "invalid_target"


@pytest.mark.parametrize("resource", [None, URL, URL + "/", URL + "/mcp", URL + "/a2a", "HTTPS://Shop.example/mcp"])
def test_a_token_for_the_site_or_one_of_its_doors_is(agent, resource):
    assert "code" in agent.consent(resource=resource)


# Registration floods and guessed secrets


def test_nobody_registers_clients_without_end(shop, agent):
    statuses = [shop.post("/agents/sign-in/register", json={"redirect_uris": [BACK]}).status_code for _ in range(25)]
    assert statuses.count(201) < 25
    refused = shop.post("/agents/sign-in/register", json={"redirect_uris": [BACK]})
    assert (refused.status_code, 0 < int(refused.headers["retry-after"]) <= 3600) == (429, True)
    assert len(shop.post("/agents/sign-in/register", content=b"[" * 100_000).content) < 1000


PROXY = Proxies(trusted=["10.0.0.1"], header="x-forwarded-for")


def test_guessing_at_a_secret_is_refused_and_keeps_nobody_else_out(open_client):
    clients = [Client(name, name, secret=name[0] * 40, scopes=["orders"]) for name in ("partner", "other")]
    shop = open_client(make_shop(clients=clients, settings={"proxies": PROXY}), client=("10.0.0.1", 50000))

    def ask(name: str, secret: str | None, address: str):
        form = {"grant_type": "client_credentials", "client_id": name, "client_secret": secret}
        sent = {name: value for name, value in form.items() if value is not None}
        return shop.post("/agents/sign-in/token", data=sent, headers={"x-forwarded-for": address})

    assert {ask("partner", None, "192.0.2.7").status_code for _ in range(25)} == {401}  # nothing is guessed
    assert ask("partner", "p" * 40, "192.0.2.7").status_code == 200
    wrong = [ask("partner", "x" * 40, "192.0.2.7") for _ in range(25)]
    assert [answer.status_code for answer in wrong] == [401] * 20 + [429] * 5
    unheard = ask("partner", "p" * 40, "192.0.2.7")
    assert (unheard.status_code, unheard.json()["error"], unheard.headers["retry-after"]) == (429, "slow_down", "60")
    assert ask("partner", "p" * 40, "192.0.2.8").status_code == 200
    assert ask("other", "o" * 40, "192.0.2.7").status_code == 200


# Session fixation, and sessions that are not the token's


def test_an_agents_cookies_are_not_the_persons(shop, agent):
    token = agent.sign_in()["access_token"]
    eve = browser_of(shop)
    eve.post("/login", data={"name": "eve"})
    cookie = "; ".join(f"{name}={value}" for name, value in eve.cookies.items())
    headers = {"authorization": f"Bearer {token}", "cookie": cookie}
    answer = shop.post("/agents/read_profile/invoke", json={"input": {}}, headers=headers)
    assert answer.json() == "ann"
    assert "set-cookie" not in answer.headers


def test_changes_of_an_agent_to_the_persons_session_stay_with_the_grant(shop, agent):
    token = agent.sign_in()["access_token"]
    assert invoke(shop, "add_book", token, title="Emma").json() == ["Emma"]
    assert invoke(shop, "add_book", token, title="Persuasion").json() == ["Emma", "Persuasion"]
    other = Agent(shop, browser_of(shop))
    assert invoke(shop, "add_book", other.sign_in("ben")["access_token"], title="Emma").json() == ["Emma"]


def test_the_route_by_which_the_application_is_asked_is_nobodys(shop):
    for method in ("GET", "POST"):
        assert shop.request(method, "/agents/sign-in/person").status_code in (404, 405)


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer  ", "bearer\t"])
def test_a_token_is_the_same_however_its_scheme_is_written(open_client, scheme):
    blocked: set[str] = set()

    def find_user(request: Request) -> str | None:
        name = request.session.get("user")
        return None if name in blocked else name

    app = make_shop(user=find_user)

    @app.state.site.agent("who_calls", auth_required=True)
    async def who_calls() -> str:
        """Say who calls."""
        caller = current_caller()
        return caller.id if caller is not None else ""

    shop = open_client(app)
    token = Agent(shop, browser_of(shop)).sign_in()["access_token"]
    eve = browser_of(shop)
    eve.post("/login", data={"name": "eve"})
    shown = f"{scheme} {token} " if scheme.strip() == scheme else f"{scheme}{token}"
    cookie = "; ".join(f"{name}={value}" for name, value in eve.cookies.items())

    def call(action: str):
        headers = {"authorization": shown, "cookie": cookie}
        return shop.post(f"/agents/{action}/invoke", json={"input": {}}, headers=headers)

    assert call("read_profile").json() == "ann"
    assert call("who_calls").json() == "ann"
    blocked.add("ann")
    assert call("read_profile").status_code == 401
    assert call("who_calls").status_code == 401


def test_two_tokens_of_one_request_are_none(shop, agent):
    token = agent.sign_in()["access_token"]
    headers = [("authorization", f"Bearer {token}"), ("authorization", f"Bearer {token}")]
    assert shop.post("/agents/read_profile/invoke", json={"input": {}}, headers=headers).status_code == 401


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_a_program_on_the_persons_machine_is_reached_at_each_of_its_names(host):
    assert why_refused(f"http://{host}:8765/callback") is None
    assert why_refused(f"http://{host.strip('[]')}.example/callback") is not None


def test_a_scope_holds_though_the_route_asks_by_itself_who_calls(open_client):
    app = make_shop(scopes={"orders": "Place orders", "gifts": "Wrap gifts"})

    @app.post("/gifts")
    @app.state.site.action("wrap_gift", scopes=["gifts"])
    async def wrap_gift(session: str = Security(APIKeyCookie(name="session"))) -> str:
        """Wrap a gift."""
        return "wrapped" if session else ""

    shop = open_client(app)
    agent = Agent(shop, browser_of(shop))
    assert invoke(shop, "wrap_gift", agent.sign_in(scope="orders")["access_token"]).status_code == 403
    assert invoke(shop, "wrap_gift", agent.sign_in(scope="gifts")["access_token"]).json() == "wrapped"
