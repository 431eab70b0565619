"""Callers without a cookie jar keep Django's session, wherever the middleware of sessions stands."""

import json

import pytest
from awp_publish_django.store import DjangoStore
from django.contrib.auth import login, logout
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.test import override_settings
from django.urls import path
from django.views.decorators.http import require_GET, require_POST

from awp_publish import ApplicationUser
from tests.django.sites import make_site
from tests.django.test_calls import Agent, Wsgi
from tests.django.test_calls_through_doors import call_tool
from tests.django.test_own_route import OURS, OWN, FreshAsgi

site = make_site(plugins=["mcp", "a2a"], authenticate=ApplicationUser(), store=DjangoStore(using="store", timeout=20))


@site.action("sign_in", outputs={"type": "object"})
@require_POST
def sign_in(request: HttpRequest) -> HttpResponse:
    """Sign in as Ann."""
    login(request, User.objects.get(username="ann"), "django.contrib.auth.backends.ModelBackend")
    return JsonResponse({"signed_in": True})


@site.action("sign_out", outputs={"type": "object"})
@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """Sign out."""
    logout(request)
    return JsonResponse({"signed_in": False})


@site.action("my_orders", outputs={"type": "object"})
@require_GET
@login_required
def my_orders(request: HttpRequest) -> HttpResponse:
    """List my orders."""
    return JsonResponse({"of": request.user.get_username()})


@site.action("count_visits", outputs={"type": "object"})
@require_POST
def count_visits(request: HttpRequest) -> HttpResponse:
    """Count this visit."""
    request.session["visits"] = request.session.get("visits", 0) + 1
    return JsonResponse({"visits": request.session["visits"]})


@site.agent("mine", auth_required=True, outputs={"type": "string"})
def mine() -> str:
    """What is mine."""
    return "mine"


urlpatterns = [
    path("sign-in", sign_in),
    path("sign-out", sign_out),
    path("orders", my_orders),
    path("visits", count_visits),
]


class Plain:
    """Middleware of the project's own."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        return self.get_response(request)


@pytest.fixture(params=[Wsgi, FreshAsgi])
def agent(request: pytest.FixtureRequest) -> Agent:
    made: Agent = request.param()
    return made


@pytest.fixture(params=["below", "enclosed"])
def shop(request: pytest.FixtureRequest):
    own = f"{__name__}.Plain"
    middleware = [*OWN, OURS, own] if request.param == "below" else [*OWN, own, OURS]
    given = {"ROOT_URLCONF": __name__, "AWP_PUBLISH": {"SITE": f"{__name__}.site"}, "MIDDLEWARE": middleware}
    with override_settings(**given):
        yield


@pytest.fixture
async def user() -> User:
    return await User.objects.acreate(username="ann")


async def through_mcp(agent, name, session=None):
    result = await call_tool(agent, name, {} if session is None else {"session": session})
    agent.client.cookies.clear()
    if result["isError"]:
        return None, result["_meta"]["awp/problem"]["code"]
    return result["_meta"].get("awp/headers", {}).get("awp-session"), result["structuredContent"]


async def through_woa(agent, name, session=None):
    given = {"input": {}, "session": session}
    answer = await agent.tell(f"/agents/{name}/invoke", given)
    agent.client.cookies.clear()
    response = json.loads(answer.content)
    return answer.headers.get("awp-session"), response["code"] if answer.status_code >= 400 else response


@pytest.mark.parametrize("call", [through_mcp, through_woa])
async def test_a_caller_without_a_cookie_jar_is_known_until_they_sign_out(shop, agent, user, call):
    assert (await call(agent, "my_orders"))[1] == "AUTHENTICATION_REQUIRED"
    session, _ = await call(agent, "sign_in")
    assert session is not None
    assert await call(agent, "my_orders", session) == (None, {"of": "ann"})
    assert (await call(agent, "mine", session))[1] in ("mine", {"result": "mine"})
    assert [(await call(agent, "count_visits", session))[1]["visits"] for _ in range(2)] == [1, 2]
    assert (await call(agent, "sign_out", session))[1] == {"signed_in": False}
    assert (await call(agent, "my_orders", session))[1] == "SESSION_UNKNOWN"


@pytest.mark.parametrize("call", [through_mcp, through_woa])
async def test_signing_in_changes_the_session_id(shop, agent, user, call):
    planted, _ = await call(agent, "count_visits")
    renewed, _ = await call(agent, "sign_in", planted)
    assert renewed not in (None, planted)
    assert (await call(agent, "my_orders", planted))[1] == "SESSION_UNKNOWN"
    assert await call(agent, "my_orders", renewed) == (None, {"of": "ann"})
    assert (await call(agent, "count_visits", renewed))[1] == {"visits": 2}, "what it had is kept"


async def test_a_basket_of_somebody_unknown_is_kept(shop, agent):
    session, first = await through_mcp(agent, "count_visits")
    assert first == {"visits": 1}
    assert await through_mcp(agent, "count_visits", session) == (None, {"visits": 2})
    assert (await through_mcp(agent, "count_visits"))[1] == {"visits": 1}
