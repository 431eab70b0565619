"""Plain HTTP under Django: actions at addresses of their own, and routes that are guarded."""

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.test import AsyncClient, Client, override_settings
from django.urls import path
from django.views.decorators.http import require_GET, require_POST

from awp_publish import ApplicationUser
from tests.django.sites import make_site

HOST = "shop.example"
KEYS = ["a key of this test, long enough for it"]
ran: list[str] = []
INPUTS = {"type": "object", "properties": {"copies": {"type": "integer"}}, "required": ["copies"]}


def _declare(site, prefix):
    """Views on a site of their own: one function cannot stand on two."""

    @site.action("show_order", outputs={"type": "object"}, guard_routes=False)
    @require_GET
    def show_order(request: HttpRequest, number: int) -> JsonResponse:
        """Show an order."""
        return JsonResponse({"number": number})

    @site.action(
        "order",
        idempotency="24h",
        inputs=INPUTS,
        outputs={"type": "string", "contentMediaType": "text/html"},
        content_type="application/x-www-form-urlencoded",
    )
    @require_POST
    def order(request: HttpRequest, title: str) -> HttpResponse:
        """Order by form."""
        ran.append(title)
        return HttpResponseRedirect("/thanks") if request.POST["copies"] == "9" else HttpResponse(f"<p>{len(ran)}</p>")

    @site.action("mine", auth_required=True, rate_limit="3/minute")
    @require_GET
    def mine(request: HttpRequest) -> HttpResponse:
        """What is mine."""
        return HttpResponse(request.user.get_username())

    return [
        path(f"{prefix}/orders/<int:number>", show_order),
        path(f"{prefix}/books/<str:title>/order", order),
        path(f"{prefix}/mine", mine),
    ]


site = make_site(secret_keys=KEYS, authenticate=ApplicationUser(), guard_routes=True, store="memory:")
urlpatterns = _declare(site, "shop")


@pytest.fixture(params=["wsgi", "asgi"])
def visit(request):
    """Requests of one visitor, under WSGI and under ASGI; `visit.login(user)` signs them in."""
    ran.clear()
    site.store.__init__()  # type: ignore[misc]
    settings = {"SITE": "tests.django.test_plain.site"}
    with override_settings(AWP_PUBLISH=settings, ROOT_URLCONF="tests.django.test_plain"):
        yield Visit(request.param)


class Visit:
    def __init__(self, kind):
        is_wsgi = kind == "wsgi"
        self.client = Client(False, SERVER_NAME=HOST) if is_wsgi else AsyncClient(raise_request_exception=False)

    async def __call__(self, method, address, data=None, content_type=None, **headers):
        send = getattr(self.client, method)
        given = {"headers": headers}
        given |= {} if data is None else {"data": data}
        given |= {} if content_type is None else {"content_type": content_type}
        if isinstance(self.client, Client):
            return await sync_to_async(send)(address, **given)
        return await send(address, **given)


FORM = "application/x-www-form-urlencoded"


async def test_actions_have_addresses_of_their_own(visit):
    assert (await visit("get", "/agents/actions/show_order?number=7")).json() == {"number": 7}
    page = await visit("post", "/agents/actions/order", "title=Emma&copies=2", FORM)
    assert (page.status_code, page["content-type"], page.content) == (200, "text/html; charset=utf-8", b"<p>1</p>")
    wrong = await visit("post", "/agents/actions/order", "title=Emma&copies=x", FORM)
    assert (wrong.status_code, wrong.json()["code"]) == (422, "INVALID_INPUT")
    assert (await visit("get", "/agents/actions/order")).status_code == 405
    listed = (await visit("get", "/agent.json")).json()["actions"]
    assert {item["id"]: item["endpoint"] for item in listed} == {
        "show_order": "/shop/orders/{number}",
        "order": "/agents/actions/order",
        "mine": "/agents/actions/mine",
    }


async def test_a_guarded_view_is_asked_for_who_calls_and_counts(visit):
    refused = await visit("get", "/shop/mine")
    assert (refused.status_code, refused["content-type"]) == (401, "application/problem+json")
    user = await User.objects.acreate(username="ann")
    await sync_to_async(visit.client.force_login)(user)
    answers = [await visit("get", "/shop/mine") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert (answers[0].content, answers[0]["x-ratelimit-remaining"]) == (b"ann", "2")


async def test_a_guarded_view_answers_once_under_a_key(visit):
    key = {"idempotency-key": "k-1"}
    first, again = [await visit("post", "/shop/books/Emma/order", "copies=2", FORM, **key) for _ in range(2)]
    assert (first.content, again.content, again["idempotent-replayed"]) == (b"<p>1</p>", b"<p>1</p>", "true")
    moved = await visit("post", "/shop/books/Emma/order", "copies=9", FORM)
    assert (moved.status_code, moved["location"]) == (302, "/thanks")
    assert (await visit("post", "/shop/books/Emma/order", "copies=x", FORM)).status_code == 422
    large = await visit("post", "/shop/books/Emma/order", "copies=2&x=" + "x" * 1_100_000, FORM)
    assert large.status_code == 413
    assert ran == ["Emma", "Emma"]


async def test_a_view_that_is_not_guarded_is_left_alone(visit):
    assert (await visit("get", "/shop/orders/7")).json() == {"number": 7}
    assert (await visit("get", "/shop/books/Emma/order")).status_code == 405
    assert (await visit("get", "/shop/nowhere")).status_code == 404
