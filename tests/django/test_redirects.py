"""A redirect after a write is its success, whatever the caller sent: one rule for Django and all other frameworks."""

import json
from typing import Any

from django.contrib.auth import login
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect
from django.test import AsyncClient, Client, override_settings
from django.urls import path
from django.views import View
from django.views.decorators.http import require_GET, require_POST

from tests.django.shop.settings import MIDDLEWARE
from tests.django.sites import make_site

TITLE: dict[str, Any] = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
site = make_site(secret_keys=["k" * 32])
DONE: list[str] = []


@site.action("order", inputs=TITLE)
@require_POST
def order(request: HttpRequest) -> HttpResponse:
    """Order a book; the caller sends JSON."""
    DONE.append(json.loads(request.body)["title"])
    return redirect("/orders/1")


@site.action("leave", inputs=TITLE)
@require_POST
def leave(request: HttpRequest) -> HttpResponse:
    """Order a book at another site."""
    return redirect("https://books.example/orders/1")


@site.action("asynchronous", method="POST", inputs=TITLE)
@transaction.non_atomic_requests
async def asynchronous(request: HttpRequest) -> HttpResponse:
    """Order a book on the event loop."""
    return HttpResponseRedirect("/orders/1")


@site.action("guarded", inputs=TITLE)
@require_POST
def guarded(request: HttpRequest) -> HttpResponse:
    """Order a book after a sign-in."""
    return redirect(f"/sign_in/?next={request.path}")


@site.action("preserving", inputs=TITLE)
@require_POST
def preserving(request: HttpRequest) -> HttpResponse:
    """Ask for the same request at another address, which does nothing."""
    return HttpResponse(status=307, headers={"Location": "/order"})


@site.action("find", inputs=TITLE)
@require_GET
def find(request: HttpRequest) -> HttpResponse:
    """Find a book, at another address."""
    return redirect("/orders/1")


@site.action("put_in_basket", inputs=TITLE)
@require_POST
def put_in_basket(request: HttpRequest) -> HttpResponse:
    """Put a book into the visitor's basket."""
    request.session["basket"] = [*request.session.get("basket", ()), json.loads(request.body)["title"]]
    return redirect("/basket")


@site.action("join", inputs=TITLE)
@require_POST
def join(request: HttpRequest) -> HttpResponse:
    """Become a member, who is signed in at once."""
    login(request, User.objects.create(username=json.loads(request.body)["title"]))
    return redirect("/basket")


class Shelf(View):
    def get(self, request: HttpRequest) -> JsonResponse:
        return JsonResponse({"shelf": ["Emma"]})


class Door(LoginView):
    """A page on which people sign in, at an address that does not say so."""


LED = {"to_shelf": "/shelf", "to_door": "/door", "to_login": "/login/?next=/to_login", "to_nowhere": "/nowhere"}
for name in LED:
    site.declare(name, method="POST", path=f"/{name}", description="Order a book.", inputs=TITLE)


@require_POST
def lead(request: HttpRequest) -> HttpResponse:
    return redirect(LED[request.path.rpartition("/")[2]])


def basket(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"user": request.user.get_username(), "basket": request.session.get("basket", [])})


def show(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "received"})


urlpatterns = [
    path("order", order),
    path("leave", leave),
    path("asynchronous", asynchronous),
    path("guarded", guarded),
    path("preserving", preserving),
    path("find", find),
    path("orders/1", show),
    path("put_in_basket", put_in_basket),
    path("join", join),
    path("basket", basket),
    path("shelf", Shelf.as_view()),
    path("door", Door.as_view()),
    *(path(name, lead) for name in LED),
]
SETTINGS = override_settings(
    ROOT_URLCONF=__name__, AWP_PUBLISH={"SITE": f"{__name__}.site"}, MIDDLEWARE=MIDDLEWARE, ALLOWED_HOSTS=["*"]
)
EXPECTED = {
    "order": (200, {"location": "/orders/1", "page": {"status": "received"}}),
    "asynchronous": (200, {"location": "/orders/1", "page": {"status": "received"}}),
    "leave": (200, {"location": "https://books.example/orders/1"}),
    "guarded": (401, "AUTHENTICATION_REQUIRED"),
    "preserving": (502, "HANDLER_REDIRECTED"),
    "find": (200, {"status": "received"}),
    "to_shelf": (200, {"location": "/shelf", "page": {"shelf": ["Emma"]}}),
    "to_door": (401, "AUTHENTICATION_REQUIRED"),
    "to_login": (401, "AUTHENTICATION_REQUIRED"),
    "to_nowhere": (200, {"location": "/nowhere"}),
}


def result_of(answer: Any) -> tuple[int, object]:
    body = json.loads(answer.content)
    return answer.status_code, body.get("code", body)


def test_a_redirect_of_a_json_post_is_its_success():
    with SETTINGS:
        client = Client(headers={"host": "shop.example"})
        for name, expected in EXPECTED.items():
            answer = client.post(
                f"/agents/{name}/invoke", {"input": {"title": "Emma"}}, content_type="application/json", secure=True
            )
            assert result_of(answer) == expected, name


async def test_a_message_is_a_refusal_under_asgi_too():
    with SETTINGS:
        client = AsyncClient(headers={"host": "shop.example"})
        for name, expected in EXPECTED.items():
            sent = json.dumps({"input": {"title": "Emma"}})
            answer = await client.post(f"/agents/{name}/invoke", sent, content_type="application/json", secure=True)
            assert result_of(answer) == expected, name


def own(get_response: Any) -> Any:
    return get_response


def test_the_page_after_a_redirect_knows_what_its_call_has_changed_of_the_session():
    for above in ([], [f"{__name__}.own"]):
        with SETTINGS, override_settings(MIDDLEWARE=[*above, *MIDDLEWARE]):
            client = Client(headers={"host": "shop.example"})

            def call(name: str, title: str, client: Client = client) -> Any:
                sent = {"input": {"title": title}}
                answer = client.post(f"/agents/{name}/invoke", sent, content_type="application/json", secure=True)
                return json.loads(answer.content)["page"]

            assert call("put_in_basket", "Emma") == {"user": "", "basket": ["Emma"]}
            name = f"ann{len(above)}"
            assert call("join", name) == {"user": name, "basket": ["Emma"]}
            assert call("put_in_basket", "Persuasion") == {"user": name, "basket": ["Emma", "Persuasion"]}
