"""A formset class says what an action takes: a list of rows, sent as the numbered fields that its view reads."""

import json
from typing import Any

import pytest
from awp_publish_django.project import DjangoProject
from django import forms
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.test import Client, override_settings
from django.urls import path
from django.views.decorators.http import require_POST

from awp_publish import DeclarationError
from tests.django.shop.models import Book
from tests.django.sites import make_site

site = make_site()


class Guest(forms.Form):
    email = forms.EmailField()
    meals = forms.MultipleChoiceField(choices=[("a", "A"), ("b", "B")], required=False)
    vegan = forms.BooleanField(required=False)


Guests = forms.formset_factory(Guest, min_num=1, validate_min=True, max_num=3, validate_max=True, extra=0)
Books = forms.modelformset_factory(Book, fields=["title", "pages"], can_delete=True, extra=0)


@site.action("invite", inputs=Guests)
@require_POST
def invite(request: HttpRequest):
    """Invite guests."""
    guests = Guests(request.POST)
    if not guests.is_valid() or any(item["email"] == "full@example.com" for item in guests.cleaned_data):
        if guests.is_valid():
            guests.forms[1].add_error("email", "There is no room.")
            guests.forms[0].add_error(None, "They eat nothing here.")
        return HttpResponse(guests.as_table())
    return JsonResponse({"guests": guests.cleaned_data})


@site.action("edit_books", inputs=Books)
@require_POST
def edit_books(request: HttpRequest):
    """Edit books."""
    books = Books(request.POST)
    if not books.is_valid():
        return JsonResponse({"errors": books.errors}, status=400)
    books.save()
    return JsonResponse({"titles": [book.title for book in Book.objects.order_by("title")]})


class Party(forms.Form):
    title = forms.CharField(max_length=20)
    paid = forms.BooleanField(required=False)


@site.action("give_party", inputs=[Party, Guests])
@require_POST
def give_party(request: HttpRequest):
    """Give a party for guests."""
    party, guests = Party(request.POST), Guests(request.POST)
    if not all([party.is_valid(), guests.is_valid()]):
        return HttpResponse(party.as_p() + guests.as_table())
    if party.cleaned_data["title"] == "taken":
        party.add_error("title", "There is one already.")
        guests.forms[0].add_error("email", "They are there.")
        return HttpResponse(party.as_p() + guests.as_table())
    return JsonResponse({**party.cleaned_data, "guests": [item["email"] for item in guests.cleaned_data]})


@site.action("give_two", inputs=[Party, type("Second", (Party,), {"prefix": "second"})])
@require_POST
def give_two(request: HttpRequest):
    """Give two parties."""
    first, second = Party(request.POST), Party(request.POST, prefix="second")
    if not all([first.is_valid(), second.is_valid()]) or first.cleaned_data == second.cleaned_data:
        second.add_error("title", "It is the same party.")
        return HttpResponse(first.as_p() + second.as_p())
    return JsonResponse([first.cleaned_data, second.cleaned_data], safe=False)


urlpatterns = [
    path("guests", invite),
    path("books", edit_books),
    path("party", give_party),
    path("two-parties", give_two),
]


@pytest.fixture(autouse=True)
def _project():
    with override_settings(ROOT_URLCONF=__name__, AWP_PUBLISH={"SITE": f"{__name__}.site"}):
        yield


def call(agent: str, **given: object):
    body = json.dumps({"input": given})
    return Client().post(f"/agents/{agent}/invoke", body, content_type="application/json")


def test_fields_of_one_name_are_told_apart_by_the_prefix_of_a_form():
    answer = call("give_two", **{"title": "Ball", "second-title": "Tea", "second-paid": True})
    assert answer.json() == [{"title": "Ball", "paid": False}, {"title": "Tea", "paid": True}]
    refused = call("give_two", **{"title": "Ball", "second-title": "Ball"}).json()
    assert refused["errors"] == [{"pointer": "/second-title", "detail": "It is the same party."}]


def test_rows_arrive_in_the_formset():
    rows = [{"email": "a@example.com", "meals": ["a", "b"], "vegan": True}, {"email": "b@example.com", "vegan": False}]
    answer = call("invite", form=rows)
    assert answer.json()["guests"] == [rows[0], {**rows[1], "meals": []}]


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        ({"form": []}, "/form"),
        ({"form": [{"email": "a@example.com"}] * 4}, "/form"),
        ({"form": [{}]}, "/form/0"),
        ({"form": [{"email": "a@example.com"}, {"email": "no"}]}, "/form/1/email"),
        ({"form": [{"email": "a@example.com", "name": "A"}]}, "/form/0"),
        ({"form": "a@example.com"}, "/form"),
        ({}, ""),
        ({"form-TOTAL_FORMS": "1", "form": []}, ""),
    ],
)
def test_rows_that_are_wrong_are_pointed_at(given, pointer):
    answer = call("invite", **given)
    assert answer.status_code == 422
    assert any(error["pointer"].startswith(pointer) for error in answer.json()["errors"])


def test_errors_of_a_view_about_a_row_point_at_it():
    answer = call("invite", form=[{"email": "full@example.com"}, {"email": "b@example.com"}])
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/form/0", "/form/1/email"]


def test_rows_of_a_model_are_changed_added_and_deleted():
    kept, gone = (Book.objects.create(title=title, pages=1) for title in ("Emma", "Gone"))
    rows = [
        {"id": kept.pk, "title": "Emma, again", "pages": 2},
        {"id": gone.pk, "title": "Gone", "pages": 1, "DELETE": True},
        {"title": "New", "pages": 3},
    ]
    assert call("edit_books", form=rows).json() == {"titles": ["Emma, again", "New"]}


def test_a_formset_with_files_is_refused_with_a_remedy():
    class Upload(forms.Form):
        file = forms.FileField()

    wrong = make_site()
    wrong.declare("send", method="POST", path="/guests", inputs=forms.formset_factory(Upload), description="Send.")
    with pytest.raises(DeclarationError, match="raw schema"):
        wrong.freeze(DjangoProject((path("guests", invite),)))


def test_a_form_and_a_formset_of_one_view_are_sent_together():
    rows = [{"email": "a@example.com"}, {"email": "b@example.com"}]
    assert call("give_party", title="Tea", form=rows).json() == {
        "title": "Tea",
        "paid": False,
        "guests": ["a@example.com", "b@example.com"],
    }
    described = dict[str, Any](next(action for action in site.catalog.actions if action.id == "give_party").inputs)
    assert set(described["properties"]) == {"title", "paid", "form"}
    assert set(described["required"]) == {"title", "form"}
    assert described["additionalProperties"] is False


@pytest.mark.parametrize(
    ("given", "pointers"),
    [
        ({"title": "Tea", "form": [{"email": "no"}]}, {"/form/0/email"}),
        ({"form": [{"email": "a@example.com"}]}, {"/title"}),
        ({"title": "Tea"}, {"/form"}),
        ({"title": "Tea", "form": [{"email": "a@example.com"}], "more": 1}, {"/more"}),
        ({"title": "taken", "form": [{"email": "a@example.com"}]}, {"/title", "/form/0/email"}),
    ],
)
def test_errors_of_a_form_and_its_formset_point_at_their_inputs(given, pointers):
    answer = call("give_party", **given)
    assert answer.status_code == 422
    assert pointers <= {error["pointer"] for error in answer.json()["errors"]}


@pytest.mark.parametrize(("kinds", "told"), [([Party, Party], "prefix"), ([Party, Book], "is not a form")])
def test_forms_of_one_view_that_cannot_be_told_apart_are_refused(kinds, told):
    wrong = make_site()
    wrong.declare("send", method="POST", path="/guests", inputs=kinds, description="Send.")
    with pytest.raises(DeclarationError, match=told):
        wrong.freeze(DjangoProject((path("guests", invite),)))
