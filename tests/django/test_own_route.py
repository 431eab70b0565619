"""A call reaches the view of its own action and nothing else, past all middleware of the project."""

import asyncio

import httpx2
import pytest
from asgiref.sync import sync_to_async
from awp_publish_django.asgi import get_asgi_application
from django.contrib.auth import login
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseForbidden, JsonResponse
from django.test import override_settings
from django.urls import include, path, re_path
from django.views.decorators.http import require_GET, require_POST

from awp_publish import ApplicationUser
from tests.django.sites import make_site
from tests.django.test_calls import Agent, Asgi, Wsgi
from tests.django.test_calls_through_doors import call_tool, send_message

ran: list[str] = []
site = make_site(
    plugins=["mcp", "a2a"], secret_keys=["a key of this test, long enough for it"], authenticate=ApplicationUser()
)


@site.action("cancel_all", auth_required=True, confirm=True)
@require_POST
def cancel_all(request: HttpRequest) -> HttpResponse:
    """Cancel every order."""
    ran.append("cancel_all")
    return JsonResponse({"cancelled": True})


@require_POST
def secret(request: HttpRequest) -> HttpResponse:
    ran.append("secret")
    return JsonResponse({"secret": True})


@site.action("show_order", outputs={"type": "object"})
@require_POST
def show_order(request: HttpRequest, order_id: str) -> HttpResponse:
    """Show an order."""
    ran.append(f"show {order_id}")
    return JsonResponse({"id": order_id, "user": request.user.get_username()})


@site.action("pack_order", outputs={"type": "object"}, execution="async")
@require_POST
def pack_order(request: HttpRequest, order_id: str) -> HttpResponse:
    """Pack an order."""
    ran.append(f"pack {order_id}")
    return JsonResponse({"id": order_id})


@require_POST
def pack_all(request: HttpRequest) -> HttpResponse:
    ran.append("pack all")
    return JsonResponse({"packed": True})


@site.action("list_users", outputs={"type": "object"})
@require_GET
def list_users(request: HttpRequest) -> HttpResponse:
    """Say who is here."""
    ran.append("list_users")
    return JsonResponse({"user": request.user.get_username(), "tenant": getattr(request, "tenant", None)})


@site.action("sign_in", outputs={"type": "object"})
@require_POST
def sign_in(request: HttpRequest) -> HttpResponse:
    """Sign in as Ann."""
    login(request, User.objects.get(username="ann"), "django.contrib.auth.backends.ModelBackend")
    return JsonResponse({"signed_in": True})


orders = [
    path("cancel-all", cancel_all),
    re_path(r"^secret/?$", secret),
    path("all/pack", pack_all),
    re_path(r"^(?P<order_id>[^/]+)/pack$", pack_order),
    path("<str:order_id>", show_order),
]
urlpatterns = [path("orders/", include(orders)), path("admin/users", list_users), path("sign-in", sign_in)]


class AdminGuard:
    """Middleware that lets nobody see /admin/ but the staff, and says whose shop it is."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        if request.path.startswith("/admin/") and not request.user.is_staff:
            return HttpResponseForbidden("For the staff.")
        request.tenant = "north"
        return self.get_response(request)


OWN = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
]
OURS = "awp_publish_django.middleware.AgentPublisherMiddleware"
GUARDED = [*OWN, f"{__name__}.AdminGuard", OURS]


class FreshAsgi(Asgi):
    """With an application of these settings."""

    async def tell(self, path, document, **headers):
        cookies = {name: morsel.value for name, morsel in self.client.cookies.items()}
        transport = httpx2.ASGITransport(get_asgi_application())
        async with httpx2.AsyncClient(transport=transport, base_url="https://shop.example", cookies=cookies) as http:
            return await http.post(path, json=document, headers=headers)


@pytest.fixture(params=[Wsgi, FreshAsgi])
def agent(request: pytest.FixtureRequest) -> Agent:
    made: Agent = request.param()
    return made


@pytest.fixture(params=["below", "enclosed"])
def shop(request: pytest.FixtureRequest):
    ran.clear()
    middleware = GUARDED if request.param == "enclosed" else [*OWN, OURS, f"{__name__}.AdminGuard"]
    given = {"ROOT_URLCONF": __name__, "AWP_PUBLISH": {"SITE": f"{__name__}.site"}, "MIDDLEWARE": middleware}
    with override_settings(**given):
        yield


VALUES = ["cancel-all", "secret"]


@pytest.mark.parametrize("value", [*VALUES, "secret\n", "cancel-all\n"])
async def test_a_value_that_names_a_sibling_runs_nothing(shop, agent, value):
    answer = await agent.call("show_order", {"order_id": value})
    assert set(ran) <= {f"show {value}"}
    if value in VALUES:
        assert (answer.status_code, answer.json()["code"]) == (422, "INVALID_INPUT")
        assert answer.json()["errors"][0]["pointer"] == "/order_id"
    assert (await agent.call("show_order", {"order_id": "o-1"})).json()["id"] == "o-1"


async def test_a_value_leads_to_no_other_route_through_other_doors(shop, agent):
    answer = await call_tool(agent, "show_order", {"order_id": "cancel-all"})
    assert answer["_meta"]["awp/problem"]["code"] == "INVALID_INPUT"
    task = (await send_message(agent, "show_order", {"order_id": "cancel-all"})).json()["result"]["task"]
    assert task["status"]["message"]["parts"][1]["data"]["code"] == "INVALID_INPUT"
    assert ran == []


async def test_a_job_leads_to_no_other_route(shop):
    agent = Wsgi()
    for value, wanted in (("all", ("failed", [])), ("o-1", ("done", ["pack o-1"]))):
        ran.clear()
        address = (await agent.call("pack_order", {"order_id": value})).json()["poll_endpoint"]
        for _ in range(600):
            answer = (await agent.get(address.removeprefix("https://shop.example"))).json()
            if answer["status"] in ("done", "failed"):
                break
            await asyncio.sleep(0.05)
        assert (answer["status"], ran) == wanted


async def test_middleware_of_the_project_sees_the_address_of_the_view(shop, agent):
    ann = await User.objects.acreate(username="ann")
    await agent.login(ann)
    assert (await agent.call("list_users", {})).status_code == 403
    assert (await call_tool(agent, "list_users", {}))["isError"] is True
    task = (await send_message(agent, "list_users", {})).json()["result"]["task"]
    assert task["status"]["state"] != "TASK_STATE_COMPLETED"
    assert ran == []
    await User.objects.filter(pk=ann.pk).aupdate(is_staff=True)
    assert (await agent.call("list_users", {})).json() == {"user": "ann", "tenant": "north"}


@pytest.mark.parametrize("cookie", [None, "of-a-session-that-is-over"])
async def test_signing_in_through_a_door_works(shop, agent, cookie):
    await User.objects.acreate(username="ann")
    if cookie is not None:
        agent.client.cookies["sessionid"] = cookie
    assert (await agent.call("sign_in", {})).status_code == 200
    assert (await agent.call("show_order", {"order_id": "o-1"})).json()["user"] == "ann"
    assert await sync_to_async(lambda: agent.client.session["_auth_user_id"])()
