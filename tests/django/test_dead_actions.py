"""Actions whose inputs are not those that their views read are found at start-up."""

import json
from typing import Any

import pytest
from awp_publish_django.publication import get_publication
from django import forms
from django.contrib.auth.models import User
from django.core.checks import run_checks
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.test import Client, override_settings
from django.urls import path
from django.views import View
from django.views.decorators.http import require_GET, require_POST
from rest_framework import generics, serializers, viewsets
from rest_framework.decorators import action, api_view
from rest_framework.response import Response

from tests.django.sites import make_site

site = make_site()


def schema(*names: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string"} for name in names}, "additionalProperties": False}


class Words(forms.Form):
    words = forms.CharField()


@site.action("post_blind")
@require_POST
def post_blind(request: HttpRequest) -> JsonResponse:
    """Read a field that nobody can send."""
    return JsonResponse({"title": request.POST["title"]})


@site.action("post_json")
@require_POST
def post_json(request: HttpRequest) -> JsonResponse:
    """Read a body that nobody can send."""
    return JsonResponse(json.loads(request.body))


@site.action("get_blind")
@require_GET
def get_blind(request: HttpRequest, pk: int) -> JsonResponse:
    """Read a query that no document names."""
    return JsonResponse({"q": request.GET.get("q"), "has": "page" in request.GET})


@site.action("get_unread", inputs=schema("q", "limit"))
@require_GET
def get_unread(request: HttpRequest) -> JsonResponse:
    """Read one of two."""
    return JsonResponse({"q": request.GET["q"]})


@site.action("get_short", inputs=schema("q"))
@require_GET
def get_short(request: HttpRequest) -> JsonResponse:
    """Read more than is declared."""
    return JsonResponse({"q": request.GET["q"], "page": request.GET.getlist("page")})


@site.action("press")
@require_POST
def press(request: HttpRequest) -> JsonResponse:
    """Press a button, which takes nothing."""
    render(request, "order.html")
    return JsonResponse({"user": request.user.is_authenticated})


@site.action("fine", inputs=Words)
@require_POST
def fine(request: HttpRequest) -> HttpResponse:
    """Read a form."""
    return JsonResponse({"ok": Words(request.POST).is_valid()})


@site.action("handed_on", inputs=schema("q"))
@require_GET
def handed_on(request: HttpRequest) -> JsonResponse:
    """Give the request to somebody else."""
    return JsonResponse(_search(request))


def _search(request: HttpRequest) -> dict[str, object]:
    return {"q": request.GET["q"]}


@site.action("plain")
@require_GET
def plain(request: HttpRequest) -> JsonResponse:
    """Read nothing."""
    return JsonResponse({})


class Blind(View):
    def post(self, request: HttpRequest) -> JsonResponse:
        """Read a field by a method."""
        return JsonResponse({"title": request.POST.get("title")})


class SelfBlind(View):
    def post(self, *args: object) -> JsonResponse:
        """Read a field of the request that the view keeps."""
        return JsonResponse({"title": self.request.POST.get("title")})


class Tickets(viewsets.GenericViewSet):  # type: ignore[misc]
    queryset = User.objects.all()

    @action(detail=True, methods=["post"])
    def close(self, request, pk=None):
        """Close a ticket, which takes nothing."""
        return Response({"closed": self.get_object().pk})

    @action(detail=True)
    def history(self, request, pk=None):
        """Show what has happened to a ticket."""
        return Response({"of": self.get_object().pk})

    @action(detail=False)
    def recent(self, request):
        """Show the newest tickets."""
        return Response({"most": request.query_params.get("most")})

    @action(detail=True, methods=["post"])
    def discount(self, request, pk=None):
        """Reduce what a ticket costs."""
        return Response({"percent": request.data["percent"], "of": self.get_object().pk})


class Guests(generics.ListAPIView):  # type: ignore[misc]
    """List guests."""

    class Guest(serializers.ModelSerializer):  # type: ignore[misc]
        class Meta:
            model = User
            fields = ("username",)

    serializer_class = Guest

    def get_queryset(self):
        return User.objects.filter(username=self.request.query_params.get("name"))


@api_view(["GET"])
def sums(request):
    """Count what there is."""
    return Response({"since": request.query_params.get("since")})


class Hello(View):
    def get(self, request: HttpRequest) -> JsonResponse:
        """Greet somebody."""
        return JsonResponse({"hello": self.request.GET.get("name")})


VIEWS = (post_blind, post_json, get_unread, get_short, press, fine, handed_on, plain)
urlpatterns = [
    *(path(view.__name__, view) for view in VIEWS),
    path("get_blind/<int:pk>", get_blind),
    path("blind", Blind.as_view()),
    path("self-blind", SelfBlind.as_view()),
    *(
        path(f"tickets/<int:pk>/{name}", Tickets.as_view({method: name}))
        for method, name in (("post", "close"), ("get", "history"), ("post", "discount"))
    ),
    path("tickets/recent", Tickets.as_view({"get": "recent"})),
    path("guests", Guests.as_view()),
    path("sums", sums),
    path("hello", Hello.as_view()),
]
site.declare("by_method", method="POST", path="/blind")
site.declare("by_self", method="POST", path="/self-blind")
site.declare("close", method="POST", path="/tickets/{pk}/close")
site.declare("history", method="GET", path="/tickets/{pk}/history")
site.declare("discount", method="POST", path="/tickets/{pk}/discount")
site.declare("recent", method="GET", path="/tickets/recent")
site.declare("guests", method="GET", path="/guests")
site.declare("sums", method="GET", path="/sums")
site.declare("hello", method="GET", path="/hello")


@pytest.fixture(autouse=True)
def _project():
    with override_settings(ROOT_URLCONF=__name__, AWP_PUBLISH={"SITE": f"{__name__}.site"}):
        yield


def call(agent: str, **given: object) -> tuple[int, Any]:
    answer = Client().post(f"/agents/{agent}/invoke", json.dumps({"input": given}), content_type="application/json")
    return answer.status_code, answer.json()


def test_findings_name_the_action_and_what_its_view_reads():
    said = {
        check.msg.split('"')[1]: check.msg for check in run_checks(tags=["agents"]) if check.id == "awp_publish.W006"
    }
    expected = {
        "post_blind": "has no inputs=, and its view reads a body, of which it reads title",
        "post_json": "has no inputs=, and its view reads a body",
        "by_method": "of which it reads title",
        "by_self": "has no inputs=, and its view reads a body",
        "discount": "has no inputs=, and its view reads a body, of which it reads percent",
        "get_blind": "reads page, q from its query",
        "get_unread": "declares limit, which its view never reads",
        "recent": "reads most from its query",
        "guests": "reads name from its query",
        "sums": "reads since from its query",
        "hello": "reads name from its query",
        "get_short": "does not declare page, which its view reads",
    }
    assert said.keys() == expected.keys(), said
    for name, words in expected.items():
        assert words in said[name]


def test_a_query_that_is_not_known_is_open_and_one_that_is_nothing_is_closed():
    catalog = get_publication().site.catalog
    assert "additionalProperties" not in catalog.action("get_blind").inputs
    assert catalog.action("plain").inputs["additionalProperties"] is False
    assert call("get_blind", pk=1, q="x", page="2") == (200, {"q": "x", "has": True})
    assert call("plain", q="x")[0] == 422


def test_views_of_rest_framework_and_classes_are_sent_the_query_that_they_read():
    User.objects.create(username="ann")
    User.objects.create(username="ben")
    assert call("recent", most="3") == (200, {"most": "3"})
    assert call("guests", name="ann") == (200, [{"username": "ann"}])
    assert call("sums", since="May") == (200, {"since": "May"})
    assert call("hello", name="Ann") == (200, {"hello": "Ann"})
    assert call("history", pk=1, most="3")[0] == 422
