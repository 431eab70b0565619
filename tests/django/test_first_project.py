"""What somebody meets who adds us to a first project: forms with defaults, messages, an API of django-ninja."""

import json
from typing import Any

from awp_publish_django.publication import get_publication
from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.test import Client, override_settings
from django.urls import path
from django.views.decorators.http import require_POST
from ninja import NinjaAPI, Schema

from tests.django.shop.settings import MIDDLEWARE
from tests.django.sites import make_site

site = make_site()
api = NinjaAPI(urls_namespace="first")


class Note(Schema):
    text: str
    stars: int = 3


@api.post("/notes")
def add_note(request: HttpRequest, note: Note) -> dict[str, object]:
    """Add a note."""
    return note.model_dump()


class Order(forms.Form):
    title = forms.CharField()
    copies = forms.IntegerField(initial=1)
    password = forms.CharField(widget=forms.PasswordInput, initial="secret")


@site.action("order", inputs=Order)
@require_POST
def order(request: HttpRequest) -> HttpResponse:
    """Order a book."""
    form = Order(request.POST)
    if not form.is_valid():
        return HttpResponse(form.as_p())
    messages.success(request, f"{form.cleaned_data['copies']} of {form.cleaned_data['title']}")
    return redirect("/thanks/")


def thanks(request: HttpRequest) -> HttpResponse:
    return HttpResponse(f"<h1>Thanks</h1><p>{' '.join(map(str, messages.get_messages(request)))}</p>")


site.include(operations=["add_note"])
urlpatterns = [path("order/", order), path("thanks/", thanks), path("api/", api.urls)]
ABOVE = "django.contrib.messages.middleware.MessageMiddleware"
OPTIONS: dict[str, Any] = {
    "ROOT_URLCONF": __name__,
    "AWP_PUBLISH": {"SITE": f"{__name__}.site"},
    "MIDDLEWARE": [*MIDDLEWARE[:2], ABOVE, *(item for item in MIDDLEWARE[2:] if item != ABOVE)],
}


def call(name: str, given: dict[str, object], visitor: Client | None = None) -> Any:
    sent = json.dumps({"input": given})
    client = visitor or Client(headers={"host": "shop.example"})
    return client.post(f"/agents/{name}/invoke", sent, content_type="application/json", secure=True).json()


def test_a_field_that_its_page_shows_filled_in_need_not_be_sent():
    with override_settings(**OPTIONS):
        action = next(action for action in get_publication().site.catalog.actions if action.id == "order")
        assert action.inputs["required"] == ["title", "password"]
        assert call("order", {"title": "Emma", "password": "x"})["messages"] == ["1 of Emma"]


def test_the_page_after_a_redirect_shows_the_message_of_its_own_call():
    with override_settings(**OPTIONS):
        for title in ("Emma", "Persuasion"):
            answer = call("order", {"title": title, "copies": 2, "password": "x"})
            assert answer["page"] == f"# Thanks\n\n2 of {title}\n"


def test_a_message_that_a_visitor_has_not_seen_yet_is_none_of_their_agents_call():
    with override_settings(**OPTIONS):
        visitor = Client(headers={"host": "shop.example"})
        assert visitor.post("/order/", {"title": "Emma", "copies": 1, "password": "x"}, secure=True).status_code == 302
        answer = call("order", {"title": "Persuasion", "copies": 2, "password": "x"}, visitor)
        assert answer["messages"] == ["2 of Persuasion"]


def test_an_operation_of_an_api_is_included_by_its_own_name_and_finds_nothing_wrong():
    with override_settings(**OPTIONS):
        published = get_publication().site
        assert [action.id for action in published.catalog.actions if action.id.endswith("add_note")] == [
            "first_add_note"
        ]
        assert [finding.message for finding in published.findings if "add_note" in finding.message] == []
        assert call("first_add_note", {"text": "hi"}) == {"text": "hi", "stars": 3}
