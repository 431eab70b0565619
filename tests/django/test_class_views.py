"""Declarations on class-based views: on the class, on its methods, and through Django's `method_decorator`."""

import json

import django
import pytest
from awp_publish_django.project import DjangoProject
from awp_publish_django.publication import get_publication
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.test import Client, RequestFactory, override_settings
from django.urls import path
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.cache import never_cache

from awp_publish import DeclarationError, Site
from tests.django.sites import make_site

site = make_site()


class Plain(View):
    """A shelf."""

    def get(self, request: HttpRequest, shelf: str) -> HttpResponse:
        """Read a shelf."""
        return JsonResponse({"read": shelf})

    def post(self, request: HttpRequest, shelf: str) -> HttpResponse:
        """Fill a shelf."""
        return JsonResponse({"filled": shelf})


@method_decorator(site.action("read_dispatched", method="GET"), name="dispatch")
@method_decorator(site.action("fill_dispatched", method="POST"), name="dispatch")
class Dispatched(Plain):
    """A shelf."""


@method_decorator(site.action("read_named"), name="get")
@method_decorator(site.action("fill_named"), name="post")
@method_decorator(never_cache, name="dispatch")
class Named(Plain):
    """A shelf, by its methods."""


class Inside(View):
    @method_decorator(site.action("read_inside"))
    def get(self, request: HttpRequest, shelf: str) -> HttpResponse:
        """Read a shelf."""
        return JsonResponse({"read": shelf})

    @method_decorator([site.action("fill_inside"), never_cache])
    def post(self, request: HttpRequest, shelf: str) -> HttpResponse:
        """Fill a shelf."""
        return JsonResponse({"filled": shelf})

    @site.action("drop_inside")
    @method_decorator(login_required)
    def delete(self, request: HttpRequest, shelf: str) -> HttpResponse:
        """Drop a shelf."""
        return JsonResponse({"dropped": shelf})


def decorating_async(decorator):
    """Asynchronous methods can be decorated so since Django 5.2."""
    return method_decorator(decorator) if django.VERSION >= (5, 2) else decorator


class Asynchronous(View):
    @decorating_async(site.action("read_async"))
    async def get(self, request: HttpRequest, shelf: str) -> HttpResponse:
        """Read a shelf."""
        return JsonResponse({"read": shelf})


@method_decorator(site.agent("librarian"), name="get")
class Agent(Plain):
    http_method_names = ("get",)


urlpatterns = [
    path("dispatched/<slug:shelf>", Dispatched.as_view()),
    path("named/<slug:shelf>", Named.as_view()),
    path("inside/<slug:shelf>", Inside.as_view()),
    path("async/<slug:shelf>", transaction.non_atomic_requests(Asynchronous.as_view())),
    path("agent/<slug:shelf>", Agent.as_view()),
]

CALLS = {
    "read_dispatched": ("read", "GET", "/dispatched/{shelf}"),
    "fill_dispatched": ("filled", "POST", "/dispatched/{shelf}"),
    "read_named": ("read", "GET", "/named/{shelf}"),
    "fill_named": ("filled", "POST", "/named/{shelf}"),
    "read_inside": ("read", "GET", "/inside/{shelf}"),
    "fill_inside": ("filled", "POST", "/inside/{shelf}"),
    "read_async": ("read", "GET", "/async/{shelf}"),
    "librarian": ("read", "GET", "/agent/{shelf}"),
}


@pytest.fixture(autouse=True)
def _project():
    with override_settings(ROOT_URLCONF=__name__, AWP_PUBLISH={"SITE": f"{__name__}.site"}):
        yield


def way_to(published: Site, action_id: str) -> tuple[str, str]:
    target = published.catalog.action(action_id).target
    assert target is not None
    return target.method, target.path


@pytest.mark.parametrize("action_id", CALLS)
def test_a_declaration_through_method_decorator_is_one_of_the_view(action_id):
    word, method, path_template = CALLS[action_id]
    action = get_publication().site.catalog.action(action_id)
    assert way_to(get_publication().site, action_id) == (method, path_template)
    assert action.inputs["properties"] == {"shelf": {"type": "string", "minLength": 1, "pattern": "^[-a-zA-Z0-9_]+$"}}
    for shelf in ("poems", "plays"):  # Django applies the decorator once more for each request
        given = json.dumps({"input": {"shelf": shelf}})
        answer = Client().post(f"/agents/{action_id}/invoke", given, content_type="application/json")
        assert answer.json() == {word: shelf}


def test_descriptions_are_those_of_the_methods():
    catalog = get_publication().site.catalog
    assert catalog.action("read_named").description == "Read a shelf."
    assert catalog.action("fill_inside").description == "Fill a shelf."
    assert way_to(get_publication().site, "drop_inside")[0] == "DELETE"


def test_a_view_that_is_called_before_anything_is_published_declares_nothing_anew():
    own = make_site()

    @method_decorator(own.action("read_early"), name="get")
    class Early(Plain):
        """A shelf."""

    view = Early.as_view()
    for _ in range(2):
        assert view(RequestFactory().get("/"), shelf="a").getvalue() == b'{"read": "a"}'
    own.freeze(DjangoProject((path("early/<shelf>", view),)))
    assert way_to(own, "read_early") == ("GET", "/early/{shelf}")


def test_dispatch_of_several_methods_asks_which_is_meant():
    own = make_site()

    @method_decorator(own.action("either"), name="dispatch")
    class Either(Plain):
        """A shelf."""

    with pytest.raises(DeclarationError, match="reachable in several ways"):
        own.freeze(DjangoProject((path("either/<shelf>", Either.as_view()),)))


def test_two_views_cannot_have_one_action():
    own = make_site()
    declare = own.action("twice")
    method_decorator(declare, name="get")(type("One", (Plain,), {}))
    with pytest.raises(DeclarationError, match="declared twice"):
        method_decorator(declare, name="get")(type("Other", (Plain,), {}))


def test_a_declaration_of_what_as_view_made_is_refused_with_what_to_declare_instead():
    own = make_site()
    own.action("read_shelf", method="GET")(Plain.as_view())
    with pytest.raises(DeclarationError, match=r"declare it before as_view\(\)"):
        own.freeze(DjangoProject((path("shelves/<shelf>", Plain.as_view()),)))
    own = make_site()
    own.action("read_shelf", method="GET")(Plain)
    own.freeze(DjangoProject((path("shelves/<shelf>", Plain.as_view()),)))
