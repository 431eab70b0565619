"""People of a Django project sign in on its own page and allow agents, which then act as they do."""

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from awp_publish_django.checks import TAG
from awp_publish_django.sign_in import MARK, DjangoUsers
from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AbstractUser, Permission, User
from django.contrib.auth.views import LoginView
from django.contrib.sessions.models import Session
from django.core.checks import run_checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.test import Client, override_settings
from django.urls import include, path, reverse_lazy
from django.views.decorators.http import require_GET, require_POST

from awp_publish import Mcp, SignIn
from awp_publish.plugins.sign_in import grants
from benchmarks.person import hidden_fields
from tests.django.signing_in import FAST, PASSWORD, DjangoAgent, came_back, open_asgi, open_wsgi
from tests.django.sites import make_site
from tests.django.test_own_route import OURS
from tests.plugins.mcp.mcp_messages import message, post
from tests.plugins.sign_in.shop import invoke

KEYS = ["a key of this test, long enough for it"]
site = make_site(plugins=["mcp", SignIn()], store="memory:", secret_keys=KEYS)
SCOPES = {"shop.add_book": "Put books on the shelves", "orders": "See your orders"}
scoped = make_site(plugins=["mcp", SignIn(scopes=SCOPES)], store="memory:", secret_keys=KEYS)


@site.action("read_profile", outputs={"type": "object"})
@require_GET
@login_required
def read_profile(request: HttpRequest) -> HttpResponse:
    """Read the customer's name."""
    return JsonResponse({"name": request.user.get_username()})


class BookForm(forms.Form):
    title = forms.CharField()


@site.action("add_to_basket", auth_required=True, inputs=BookForm)
@require_POST
def add_to_basket(request: HttpRequest) -> HttpResponse:
    """Put a book into the basket."""
    request.session["basket"] = [*request.session.get("basket", []), request.POST.get("title", "")]
    messages.success(request, "It is in your basket.")
    return HttpResponseRedirect("/basket")


@site.action("show_basket", auth_required=True, outputs={"type": "object"})
@require_GET
def show_basket(request: HttpRequest) -> HttpResponse:
    """Show the basket."""
    return JsonResponse({"basket": request.session.get("basket", [])})


@site.action("stock_book", scopes=["shop.add_book"], outputs={"type": "object"})
@require_POST
def stock_book(request: HttpRequest) -> HttpResponse:
    """Put a book on the shelves."""
    return JsonResponse({"by": request.user.get_username()})


@site.action("pack_later", auth_required=True, execution="async", outputs={"type": "object"})
@require_POST
def pack_later(request: HttpRequest) -> HttpResponse:
    """Pack what was ordered."""
    return JsonResponse({"by": request.user.get_username()})


@site.action("log_out", auth_required=True, outputs={"type": "object"})
@require_POST
def log_out(request: HttpRequest) -> HttpResponse:
    """Sign out."""
    request.session.flush()
    return JsonResponse({})


@login_required
def home(request: HttpRequest) -> HttpResponse:
    return HttpResponse(f"Hello {request.user.get_username()}")


plain = make_site()
listed = make_site(plugins=[Mcp(list_only_allowed=True), SignIn()], store="memory:", secret_keys=KEYS)
listed.declare("show_basket", method="GET", path="/basket", description="Show the basket.", auth_required=True)
listed.declare("stock_book", method="POST", path="/stock", description="Stock a book.", scopes=["shop.add_book"])
listed.declare("secret_stock", method="POST", path="/stock", description="Stock.", scopes=["shop.delete_book"])
misled = make_site(plugins=[SignIn()], secret_keys=KEYS)
mounted = make_site(url="https://shop.example/shop", plugins=["mcp", SignIn()], store="memory:", secret_keys=KEYS)
mounted.declare("read_profile", method="GET", path="/profile", description="Read the name.", outputs={"type": "object"})
scoped.declare(
    "stock_book", method="POST", path="/stock", description="Put a book on the shelves.", scopes=["shop.add_book"]
)
scoped.declare("show_basket", method="GET", path="/basket", description="Show the basket.", scopes=["orders"])
urlpatterns = [
    path("profile", read_profile),
    path("basket/add", add_to_basket),
    path("basket", show_basket),
    path("stock", stock_book),
    path("log-out", log_out),
    path("pack", pack_later),
    path("", home),
    path("admin/", admin.site.urls),
    path("accounts/login/", LoginView.as_view(template_name="login.html"), name="sign-in"),
]


class Included:
    """The URLs of a project without our middleware."""

    urlpatterns: ClassVar = [path("", include("awp_publish_django.urls")), *urlpatterns]


LOGIN = '<form method="post">{% csrf_token %}<input name="username"><input type="password" name="password"></form>'
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    OURS,
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
]


def templates(**own: str) -> list[dict[str, Any]]:
    """Return the setting for these templates."""
    known = {"login.html": LOGIN, **{f"awp_publish/sign_in/{name}.html": text for name, text in own.items()}}
    loaders = [("django.template.loaders.locmem.Loader", known), "django.template.loaders.app_directories.Loader"]
    names = ("template.context_processors.request", "contrib.auth.context_processors.auth")
    processors = [f"django.{name}" for name in (*names, "contrib.messages.context_processors.messages")]
    options = {"loaders": loaders, "context_processors": processors}
    return [{"BACKEND": "django.template.backends.django.DjangoTemplates", "OPTIONS": options}]


def settings_of(name: str = "site", **changes: Any) -> dict[str, Any]:
    """Return the settings of a project with one of the sites."""
    return {
        "ROOT_URLCONF": __name__,
        "AWP_PUBLISH": {"SITE": f"{__name__}.{name}"},
        "MIDDLEWARE": MIDDLEWARE,
        "LOGIN_URL": "/accounts/login/",
        "PASSWORD_HASHERS": FAST,
        "TEMPLATES": templates(),
        **changes,
    }


seen: list[str] = []


class Seeing:
    """Middleware of the project's own, above ours."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        seen.append(request.user.get_username())
        return self.get_response(request)


@pytest.fixture(params=["wsgi", "asgi"])
def gateway(request: pytest.FixtureRequest):
    return open_wsgi if request.param == "wsgi" else open_asgi


@pytest.fixture
def opened(gateway) -> Iterator[Any]:
    """Opens HTTP clients of the project as it is set up then."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(gateway())


@pytest.fixture
def project() -> Iterator[None]:
    with override_settings(**settings_of()):
        yield


@pytest.fixture
def ann() -> User:
    with override_settings(PASSWORD_HASHERS=FAST):
        return User.objects.create_user("ann", "ann@shop.example", PASSWORD, first_name="Ann", last_name="Elliot")


@pytest.fixture
def shop(project, ann, opened):
    return opened()


@pytest.fixture
def agent(shop, opened) -> DjangoAgent:
    return DjangoAgent(shop, opened())


def test_an_agent_acts_as_the_person_who_signs_in_with_djangos_own_form(shop, agent):
    assert invoke(shop, "read_profile").status_code == 401
    token = agent.sign_in(scope=None)["access_token"]
    assert agent.logins == 1
    assert invoke(shop, "read_profile", token).json()["name"] == "ann"
    assert invoke(shop, "read_profile").status_code == 401


def test_the_page_says_who_is_signed_in_and_who_is_sent_on_without_a_form(shop, agent):
    page = agent.follow(agent.ask(scope=None))
    assert "Ann Elliot" in page.text
    assert agent.follow(agent.ask(scope=None)).status_code == 200
    assert agent.logins == 1


def test_a_model_of_users_need_not_know_full_names(shop, agent, monkeypatch):
    monkeypatch.delattr(AbstractUser, "get_full_name")  # as a model made from AbstractBaseUser
    assert "<dd>ann</dd>" in agent.follow(agent.ask(scope=None)).text


def test_the_session_is_the_tokens_own(shop, agent):
    token = agent.sign_in(scope=None)["access_token"]
    added = invoke(shop, "add_to_basket", token, title="Emma").json()
    assert (added["location"], added["messages"]) == ("/basket", ["It is in your basket."])
    assert invoke(shop, "add_to_basket", token, title="Persuasion").status_code == 200
    assert invoke(shop, "show_basket", token).json() == {"basket": ["Emma", "Persuasion"]}
    assert agent.browser.get("/basket").json() == {"basket": []}
    assert not shop.cookies
    agent.browser.cookies.clear()
    assert invoke(shop, "show_basket", token).json() == {"basket": ["Emma", "Persuasion"]}


def test_signing_out_of_the_browser_leaves_the_agent_connected(shop, agent):
    token = agent.sign_in(scope=None)["access_token"]
    Session.objects.get(session_key=agent.browser.cookies["sessionid"]).delete()
    assert agent.browser.get("/", follow_redirects=False).status_code == 302
    assert invoke(shop, "read_profile", token).json()["name"] == "ann"


def is_over(shop, agent, tokens) -> None:
    """Assert that neither of the tokens is worth anything any more."""
    for action in ("read_profile", "show_basket"):
        refused = invoke(shop, action, tokens["access_token"])
        assert refused.status_code == 401
    refreshed = agent.refresh(tokens["refresh_token"])
    assert (refreshed.status_code, refreshed.json()["error"]) == (400, "invalid_grant")
    for action in ("read_profile", "show_basket"):  # a view that asks for a login itself, and one that does not
        again = invoke(shop, action, tokens["access_token"])
        assert again.status_code == 401
        assert "is unknown" in again.json()["detail"]
        assert 'error="invalid_token"' in again.headers["www-authenticate"]


def test_a_change_of_the_password_ends_it(shop, agent, ann):
    tokens = agent.sign_in(scope=None)
    assert invoke(shop, "show_basket", tokens["access_token"]).status_code == 200
    ann.set_password("another one")
    ann.save()
    is_over(shop, agent, tokens)


def test_a_user_who_is_deactivated_is_nobody(shop, agent, ann):
    tokens = agent.sign_in(scope=None)
    ann.is_active = False
    ann.save()
    is_over(shop, agent, tokens)


def test_a_refresh_after_that_ends_the_grant_and_its_session(shop, agent, ann):
    tokens = agent.sign_in(scope=None)
    ann.is_active = False
    ann.save()
    assert agent.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    ann.is_active = True
    ann.save()
    assert agent.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    assert invoke(shop, "show_basket", tokens["access_token"]).status_code == 401


def test_a_user_who_is_deleted_is_nobody(shop, agent, ann):
    tokens = agent.sign_in(scope=None)
    ann.delete()
    is_over(shop, agent, tokens)


def test_an_agent_that_signs_out_has_to_ask_again(shop, agent):
    tokens = agent.sign_in(scope=None)
    assert invoke(shop, "log_out", tokens["access_token"]).status_code == 200
    assert agent.browser.get("/").text == "Hello ann"
    is_over(shop, agent, tokens)


def test_a_refreshed_token_has_the_same_session(shop, agent):
    tokens = agent.sign_in(scope=None)
    invoke(shop, "add_to_basket", tokens["access_token"], title="Emma")
    renewed = agent.refresh(tokens["refresh_token"]).json()
    assert invoke(shop, "show_basket", renewed["access_token"]).json() == {"basket": ["Emma"]}


@pytest.mark.parametrize("engine", ["cache", "cached_db", "file", "signed_cookies"])
def test_every_kind_of_session_will_do(ann, engine, tmp_path):
    kept: dict[str, Any] = {
        "SESSION_ENGINE": f"django.contrib.sessions.backends.{engine}",
        "SESSION_FILE_PATH": str(tmp_path),
    }
    with override_settings(**settings_of(**kept)), open_wsgi() as shop, open_wsgi() as browser:
        agent = DjangoAgent(shop, browser)
        tokens = agent.sign_in(scope=None)
        invoke(shop, "add_to_basket", tokens["access_token"], title="Emma")
        assert invoke(shop, "show_basket", tokens["access_token"]).json() == {"basket": ["Emma"]}
        assert browser.get("/basket").json() == {"basket": []}
        tokens = agent.refresh(tokens["refresh_token"]).json()
        ann.set_password("another one")
        ann.save()
        is_over(shop, agent, tokens)


def test_a_session_outlives_a_change_of_the_projects_key(shop, agent):
    token = agent.sign_in(scope=None)["access_token"]
    invoke(shop, "add_to_basket", token, title="Emma")
    with override_settings(SECRET_KEY="another key, only for tests", SECRET_KEY_FALLBACKS=[settings.SECRET_KEY]):
        for _ in range(2):  # Django gives the session another id
            assert invoke(shop, "show_basket", token).json() == {"basket": ["Emma"]}


def test_the_domain_and_path_of_a_session_cookie_are_respected(ann, opened):
    own: dict[str, Any] = {
        "SESSION_COOKIE_NAME": "known",
        "SESSION_COOKIE_DOMAIN": "shop.example",
        "SESSION_COOKIE_SECURE": True,
    }
    with override_settings(**settings_of(**own)):
        shop = opened()
        token = DjangoAgent(shop, opened()).sign_in(scope=None)["access_token"]
        for number in (1, 2):
            invoke(shop, "add_to_basket", token, title="Emma")
            assert invoke(shop, "show_basket", token).json() == {"basket": ["Emma"] * number}


def test_disconnecting_an_agent_ends_its_session_and_not_the_persons(shop, agent):
    tokens = agent.sign_in(scope=None)
    before = Session.objects.count()
    page = agent.browser.get("/agents/connections")
    assert "Ann Elliot" in page.text
    grant, *_ = re.findall(r'name="end" value="([^"]+)"', page.text)
    form = {"token": hidden_fields(page.text)["token"], "end": grant}
    assert "is disconnected" in agent.browser.post("/agents/connections", data=form).text
    assert Session.objects.count() == before - 1
    assert agent.browser.get("/").text == "Hello ann"
    assert invoke(shop, "show_basket", tokens["access_token"]).status_code == 401


@pytest.mark.parametrize(
    "way", ["its client revokes it", "its code comes again", "its refresh token comes again", "another"]
)
def test_the_session_of_a_grant_ends_with_it(shop, agent, monkeypatch, way):
    code = agent.consent(scope=None)["code"]
    tokens = agent.exchange(code).json()
    [session] = [it for it in Session.objects.all() if it.get_decoded().get(MARK)]
    if way == "its client revokes it":
        form = {"token": tokens["refresh_token"], "client_id": agent.id}
        assert shop.post("/agents/sign-in/revoke", data=form).status_code == 200
    elif way == "its code comes again":
        assert agent.exchange(code).status_code == 400
    elif way == "its refresh token comes again":
        monkeypatch.setattr(grants, "GRACE_SECONDS", 0.0)
        assert agent.refresh(tokens["refresh_token"]).status_code == 200
        assert agent.refresh(tokens["refresh_token"]).status_code == 400
    else:
        monkeypatch.setattr(grants, "MAX_OF_PERSON", 1)
        agent.sign_in(scope=None)
    assert not Session.objects.filter(pk=session.pk).exists()


def test_nobody_but_the_person_sends_the_form(shop, agent, opened):
    page = agent.follow(agent.ask(scope=None))
    other = DjangoAgent(shop, opened())
    User.objects.create_user("ben", password=PASSWORD)
    other.follow(other.ask(scope=None), "ben")
    mine, agent.browser = agent.browser, other.browser
    assert agent.answer(page).status_code == 403
    agent.browser = mine
    forged = SimpleNamespace(url=page.url, text=page.text.replace('name="token" value="', 'name="token" value="x'))
    assert agent.answer(forged).status_code == 403
    assert "code" in came_back(agent.answer(page))


def test_the_consent_page_lets_another_person_sign_in(shop, agent):
    User.objects.create_user("ben", password=PASSWORD)
    page = agent.follow(agent.ask(scope=None))
    assert "Not Ann Elliot?" in page.text
    page = agent.follow(agent.answer(page, "other"), "ben")
    assert agent.logins == 2
    assert "Ann Elliot" not in page.text
    token = agent.exchange(came_back(agent.answer(page))["code"]).json()["access_token"]
    assert invoke(shop, "read_profile", token).json()["name"] == "ben"


def test_the_projects_own_middleware_sees_the_person(ann, opened):
    above = [*MIDDLEWARE[:3], f"{__name__}.Seeing", *MIDDLEWARE[3:]]
    with override_settings(**settings_of(MIDDLEWARE=above)):
        shop = opened()
        token = DjangoAgent(shop, opened()).sign_in(scope=None)["access_token"]
        seen.clear()
        assert invoke(shop, "read_profile", token).json() == {"name": "ann"}
        assert seen.count("ann") >= 1
        assert seen[-1] == "ann"


def test_a_project_that_includes_our_urls_signs_people_in_too(ann, opened):
    without = [name for name in MIDDLEWARE if name != OURS]
    with override_settings(**settings_of(MIDDLEWARE=without, ROOT_URLCONF=Included)):
        shop = opened()
        tokens = DjangoAgent(shop, opened()).sign_in(scope=None)
        assert invoke(shop, "read_profile", tokens["access_token"]).json() == {"name": "ann"}
        ann.set_password("another one")
        ann.save()
        assert invoke(shop, "read_profile", tokens["access_token"]).status_code == 401


def test_a_job_is_the_persons_too(shop, agent, ann):
    token = agent.sign_in(scope=None)["access_token"]
    accepted = invoke(shop, "pack_later", token)
    assert accepted.status_code == 202
    headers = {"authorization": f"Bearer {token}"}
    assert shop.get(accepted.headers["location"]).status_code == 404
    job = wait_for_job(lambda: shop.get(accepted.headers["location"], headers=headers))
    assert job["result"] == {"by": "ann"}
    ann.is_active = False
    ann.save()
    assert shop.get(accepted.headers["location"], headers=headers).status_code == 401


def wait_for_job(look: Any) -> Any:
    """Return a job when it is done."""
    until = time.monotonic() + 60
    while (job := look().json())["status"] not in ("done", "failed"):
        assert time.monotonic() < until
        time.sleep(0.05)
    return job


def test_a_template_of_the_projects_own_is_used(ann, opened):
    own = "<h1>{{ client.name }} wants {{ person.name }}</h1>{{ user.email }} at {{ request.path }}" + (
        '<form method="post" action="{{ action }}"><input type="hidden" name="request" value="{{ pending }}">'
        '<input type="hidden" name="token" value="{{ token }}"></form>'
    )
    with override_settings(**settings_of(TEMPLATES=templates(consent=own))):
        shop = opened()
        agent = DjangoAgent(shop, opened(), client_name="<b>Claude</b>")
        page = agent.follow(agent.ask(scope=None))
        heading = "<h1>&lt;b&gt;Claude&lt;/b&gt; wants Ann Elliot</h1>"
        assert page.text.startswith(f"{heading}ann@shop.example at /agents/sign-in/consent")
        assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
        assert "code" in came_back(agent.answer(page))
        assert "Connected agents" in agent.browser.get("/agents/connections").text


# Permissions


def stock(shop: Any, token: str) -> tuple[int, Any]:
    answer = invoke(shop, "stock_book", token)
    return answer.status_code, answer.json().get("code") or answer.json()


def allow_stocking(user: User) -> None:
    user.user_permissions.add(Permission.objects.get(codename="add_book"))


def test_a_token_without_scopes_may_what_its_person_may_at_present(shop, agent, ann):
    refused = invoke(shop, "stock_book")
    assert refused.status_code == 401
    token = agent.sign_in(scope="shop.add_book")["access_token"]
    assert stock(shop, token) == (403, "INSUFFICIENT_PERMISSIONS")
    assert "www-authenticate" not in invoke(shop, "stock_book", token).headers, "another token would not help"
    allow_stocking(ann)
    assert stock(shop, token) == (200, {"by": "ann"})
    ann.user_permissions.clear()
    assert stock(shop, token) == (403, "INSUFFICIENT_PERMISSIONS")


def test_both_the_person_and_the_site_have_to_allow_it(ann, opened):
    with override_settings(**settings_of("scoped")):
        shop = opened()
        agent = DjangoAgent(shop, opened())
        allow_stocking(ann)
        orders = agent.sign_in(scope="orders")["access_token"]
        assert invoke(shop, "show_basket", orders).status_code == 200, "a word that is no permission"
        assert stock(shop, orders) == (403, "INSUFFICIENT_SCOPE")
        both = agent.sign_in(scope="orders shop.add_book")["access_token"]
        assert stock(shop, both) == (200, {"by": "ann"})
        ann.user_permissions.clear()
        assert stock(shop, both) == (403, "INSUFFICIENT_PERMISSIONS")
        assert invoke(shop, "show_basket", both).status_code == 200


def test_a_list_of_tools_has_what_the_person_may_call_at_present(ann, opened):
    with override_settings(**settings_of("listed")):
        shop = opened()
        token = DjangoAgent(shop, opened()).sign_in(scope=None)["access_token"]

        def tools(**headers: str) -> list[str]:
            answer = post(shop, message("tools/list", {}), headers=headers)
            return [tool["name"] for tool in answer.json()["result"]["tools"]] if answer.status_code == 200 else []

        known = {"authorization": f"Bearer {token}"}
        assert tools(**known) == ["show_basket"]
        allow_stocking(ann)
        assert tools(**known) == ["show_basket", "stock_book"]
        assert "secret_stock" not in tools()
        ann.user_permissions.add(Permission.objects.get(codename="delete_book"))
        assert "secret_stock" in tools(**known)
        ann.set_password("another one")
        ann.save()
        assert tools(**known) == []


def test_the_page_says_what_each_permission_opens(ann, opened):
    with override_settings(**settings_of("scoped")):
        agent = DjangoAgent(opened(), opened())
        page = agent.follow(agent.ask(scope="shop.add_book")).text
        assert "Put books on the shelves" in page
        assert "stock book" in page
        assert "See your orders" not in page


# The admin

CONNECTED = "/admin/awp_publish_django/connectedagent/"


def text_of(response: Any) -> str:
    """Return the text of an answer to Django's own client."""
    return str(response.content.decode())


def newest_agent(client: Client) -> Any:
    """Return what the admin tells of the agent that was connected last."""
    page: Any = client.get(CONNECTED)
    return page.context_data["agents"][0]


def test_the_owner_sees_in_the_admin_who_is_connected_and_ends_that(shop, agent):
    agent = DjangoAgent(shop, agent.browser, client_name="<i>Claude</i>")
    tokens = agent.sign_in(scope=None)
    boss = Client(SERVER_NAME="shop.example")
    boss.force_login(User.objects.create_superuser("boss"))
    assert CONNECTED in text_of(boss.get("/admin/"))
    page = text_of(boss.get(CONNECTED))
    assert "&lt;i&gt;Claude&lt;/i&gt;" in page
    assert "Ann Elliot" in page
    assert tokens["access_token"] not in page
    listed = newest_agent(boss)
    assert listed["since"] == listed["used"] < listed["until"]
    assert agent.refresh(tokens["refresh_token"]).status_code == 200
    renewed = newest_agent(boss)
    assert renewed["since"] == listed["since"] < renewed["used"]
    sessions = Session.objects.count()
    newest, *_ = re.findall(r'name="end" value="([^"]+)"', page)
    assert "is disconnected" in text_of(boss.post(CONNECTED, {"end": newest}, follow=True))
    assert Session.objects.count() == sessions - 1
    assert invoke(shop, "show_basket", tokens["access_token"]).status_code == 401
    assert boss.get(f"{CONNECTED}{newest}/change/").status_code == 302, "a row of the store is nobody's to see"


def test_a_person_with_view_permission_ends_nothing_in_the_admin(shop, agent):
    agent.sign_in(scope=None)
    clerk = User.objects.create_user("clerk", is_staff=True)
    looker = Client(SERVER_NAME="shop.example")
    looker.force_login(clerk)
    assert looker.get(CONNECTED).status_code == 403
    clerk.user_permissions.add(Permission.objects.get(codename="view_connectedagent"))
    page = looker.get(CONNECTED)
    assert "Ann Elliot" in text_of(page)
    assert 'name="end"' not in text_of(page)
    assert looker.post(CONNECTED, {"end": "x"}).status_code == 403


def test_a_site_without_sign_in_has_nothing_of_it_in_the_admin():
    boss = Client(SERVER_NAME="shop.example")
    boss.force_login(User.objects.create_superuser("boss"))
    with override_settings(**settings_of("plain")):
        assert CONNECTED not in text_of(boss.get("/admin/"))
        assert "No agent is connected." in text_of(boss.get(CONNECTED))


# What is wrong, and where people sign in


def complaints(name: str = "site", **changes: Any) -> dict[str, str]:
    with override_settings(**settings_of(name, DEBUG=True, **changes)):
        return {str(check.id): f"{check.msg} {check.hint}" for check in run_checks(tags=[TAG])}


def test_a_project_that_people_sign_in_to_has_nothing_to_complain_of():
    for url in ("/accounts/login/", "/accounts/login", "sign-in", reverse_lazy("sign-in"), "https://sso.example/in"):
        assert complaints(LOGIN_URL=url) == {}


def test_a_login_url_without_a_page_is_told():
    answer = complaints(LOGIN_URL="/sign-in/")
    assert "LOGIN_URL ('/sign-in/'), where the project has no page" in answer["awp_publish.E008"]
    for name, code in (
        ("misled", "awp_publish.E002"),
        ("site", "awp_publish.E008"),
    ):  # published or not
        assert "no URL of this name. Set LOGIN_URL" in complaints(name, LOGIN_URL="nowhere")[code]


def test_a_command_tells_it_too():
    with (
        override_settings(**settings_of(LOGIN_URL="/sign-in/")),
        pytest.raises(SystemCheckError, match="where the project has no page"),
    ):
        call_command("agents", "check", skip_checks=False)


def test_middleware_that_tells_too_late_who_is_signed_in_is_told():
    assert "is not above AgentPublisherMiddleware" in complaints(MIDDLEWARE=[OURS, *MIDDLEWARE[:3]])["awp_publish.E004"]


def test_a_memory_that_other_workers_do_not_share_is_told():
    with override_settings(**settings_of()):
        assert "what people have allowed" in " ".join(check.msg for check in run_checks(tags=[TAG]))


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("sign-in", "/accounts/login/?next=%2Fagents"),
        ("https://sso.example/in?to=shop", "https://sso.example/in?to=shop&next=https%3A%2F%2Fshop.example%2Fagents"),
    ],
)
def test_people_are_sent_to_the_login_url_wherever_it_is(ann, opened, url, address):
    with override_settings(**settings_of(LOGIN_URL=url)):
        agent = DjangoAgent(opened(), opened())
        asked = agent.browser.get(agent.ask(scope=None).headers["location"], follow_redirects=False)
        assert asked.headers["location"].startswith(address)
        listed = agent.browser.get("/agents/connections", follow_redirects=False)
        assert listed.headers["location"].startswith(address)


@pytest.mark.parametrize(
    ("login", "path"),
    [("/shop/in", "/in"), ("/shopping/in", "/shopping/in"), ("/in", "/in"), ("https://sso.example/shop/in", None)],
)
def test_a_login_url_may_be_written_with_the_path_of_the_mount(login, path):
    with override_settings(LOGIN_URL=login):
        assert DjangoUsers(mounted).login() == (path or login)
        assert DjangoUsers(site).login() == login


@pytest.mark.parametrize("login", ["/shop/accounts/login/", "sign-in"])
def test_a_project_below_a_path_is_signed_in_to_there(ann, gateway, login):
    below = "https://shop.example/shop"
    with (
        override_settings(**settings_of("mounted", LOGIN_URL=login)),
        gateway(below) as shop,
        gateway(below) as browser,
    ):
        agent = DjangoAgent(shop, browser)
        token = agent.sign_in(scope=None, resource=f"{below}/mcp")["access_token"]
        answer = shop.post(
            f"{below}/agents/read_profile/invoke", json={"input": {}}, headers={"authorization": f"Bearer {token}"}
        )
        assert answer.json()["name"] == "ann"
        assert browser.cookies.get("sessionid", path="/")
