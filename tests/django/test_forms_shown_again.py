"""A view that shows its form again has done nothing: agents hear which of their inputs were refused."""

import json
from typing import Any, Final

import pytest
from django import forms
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.template import engines
from django.test import AsyncClient, Client, override_settings
from django.urls import path
from django.views.decorators.http import require_GET, require_POST

from tests.django.sites import make_site

site = make_site()
SAVED: list[str] = []


class Contact(forms.Form):
    email = forms.CharField()
    age = forms.IntegerField(required=False)

    def clean_email(self) -> str:
        if "@" not in self.cleaned_data["email"]:
            raise forms.ValidationError("Enter a real address.")
        return str(self.cleaned_data["email"])

    def clean(self) -> None:
        if self.cleaned_data.get("age") == 13:
            raise forms.ValidationError("Not at thirteen.")


Contacts = forms.formset_factory(Contact, min_num=1, validate_min=True)
ROWS = {
    "type": "object",
    "properties": {
        **{f"form-{row}-email": {"type": "string"} for row in range(2)},
        "form-TOTAL_FORMS": {"type": "string"},
        "form-INITIAL_FORMS": {"type": "string"},
    },
}
PREFIXED = {"type": "object", "properties": {"who-email": {"type": "string"}}}
FORM: Final = "application/x-www-form-urlencoded"
PAGE = engines["django"].from_string("<form>{{ form.as_p }}{{ search.as_p }}</form>")


def page(**context: object) -> HttpResponse:
    return HttpResponse(PAGE.render(context))


@site.action("write", inputs=Contact, idempotency=True)
@require_POST
def write(request: HttpRequest) -> HttpResponse:
    """Write to us."""
    form = Contact(request.POST)
    if form.is_valid():
        SAVED.append(form.cleaned_data["email"])
        return redirect("/thanks/")
    return render(request, "order.html", {"form": form})


@site.action("write_by_hand", inputs=Contact)
@require_POST
def write_by_hand(request: HttpRequest) -> HttpResponse:
    """Write to us; the page is made without a template's response."""
    form = Contact(request.POST.copy(), prefix=None)
    return page(form=form) if not form.is_valid() else page(search=Contact(request.GET))


@site.action("write_prefixed", inputs=PREFIXED, method="POST", content_type=FORM)
def write_prefixed(request: HttpRequest) -> HttpResponse:
    """Write to us."""
    return page(form=Contact(request.POST, prefix="who"))


@site.action("write_as_json", inputs=Contact)
@require_POST
def write_as_json(request: HttpRequest) -> HttpResponse:
    """Write to us."""
    form = Contact(request.POST)
    return JsonResponse({"ok": form.is_valid(), "errors": form.errors})


@site.action("write_json", inputs={"type": "object", "properties": {"email": {"type": "string"}}})
@require_POST
def write_json(request: HttpRequest) -> HttpResponse:
    """Write to us in JSON."""
    form = Contact(json.loads(request.body))
    return JsonResponse({"ok": form.is_valid()})


@site.action("write_and_leave", inputs=Contact)
@require_POST
def write_and_leave(request: HttpRequest) -> HttpResponse:
    """Write to us; the page after it is the same in any case."""
    form = Contact(request.POST)
    if form.is_valid():
        SAVED.append(form.cleaned_data["email"])
    return redirect("/")


@site.action("write_all", inputs=ROWS, method="POST", content_type=FORM)
async def write_all(request: HttpRequest) -> HttpResponse:
    """Write about several."""
    several = Contacts(request.POST)
    return page(form=several) if not several.is_valid() else redirect("/thanks/")


@site.action("find", inputs={"type": "object", "properties": {"email": {"type": "string"}}})
@require_GET
def find(request: HttpRequest) -> HttpResponse:
    """Find somebody; the page has the form that was sent."""
    return page(form=Contact(request.GET))


@site.action("change", inputs=Contact, method="POST")
def change(request: HttpRequest) -> HttpResponse:
    """Change somebody, on a page that answers 400 with its form."""
    form = Contact(request.POST)
    return HttpResponse(PAGE.render({"form": form}), status=200 if form.is_valid() else 400)


@site.action("sign_up", inputs=Contact, method="POST")
def sign_up(request: HttpRequest) -> HttpResponse:
    """Sign up, and go on to the sign-in page."""
    if request.POST["email"] == "stranger@":
        return redirect(f"/members/sign-in/?next={request.path}")
    return redirect("/members/sign-in/") if Contact(request.POST).is_valid() else page()


VIEWS = (write, write_by_hand, write_prefixed, write_as_json, write_json, write_and_leave, find, change, sign_up)
urlpatterns = [*(path(view.__name__, view) for view in VIEWS), path("all", transaction.non_atomic_requests(write_all))]


@pytest.fixture(autouse=True)
def _project():
    SAVED.clear()
    with override_settings(ROOT_URLCONF=__name__, AWP_PUBLISH={"SITE": f"{__name__}.site"}):
        yield


@pytest.fixture(params=["wsgi", "asgi"])
def call(request):
    """One call, and its status and answer."""

    async def ask(action: str, given: object, **headers: str) -> tuple[int, Any]:
        asked: dict[str, Any] = {"data": json.dumps({"input": given}), "content_type": "application/json"}
        place = f"/agents/{action}/invoke"
        if request.param == "wsgi":
            from asgiref.sync import sync_to_async

            answer: Any = await sync_to_async(Client().post)(place, **asked, headers=headers)
        else:
            answer = await AsyncClient().post(place, **asked, headers=headers)
        return answer.status_code, answer.json()

    return ask


def refused(told: Any) -> list[tuple[str, str]]:
    assert told["code"] == "INVALID_INPUT"
    return [(error["pointer"], error["detail"]) for error in told["errors"]]


WRONG = [("/email", "Enter a real address.")]


@pytest.mark.parametrize("action", ["write", "write_by_hand", "write_as_json", "write_and_leave", "find", "change"])
async def test_an_invalid_form_is_a_refusal_however_the_page_is_made(call, action):
    status, answer = await call(action, {"email": "nowhere"})
    assert status == 422
    assert refused(answer) == WRONG
    assert SAVED == []


async def test_errors_of_a_form_that_a_view_has_filled_from_json_are_the_views_own(call):
    assert await call("write_json", {"email": "nowhere"}) == (200, {"ok": False})


async def test_a_valid_form_is_a_success_whatever_other_forms_its_page_shows(call):
    assert await call("write", {"email": "ann@"}) == (200, {"location": "/thanks/"})
    assert (await call("write_by_hand", {"email": "ann@"}))[0] == 200
    assert await call("write_and_leave", {"email": "ann@"}) == (200, {"location": "/"})
    assert (await call("find", {}))[0] == 200
    assert SAVED == ["ann@", "ann@"]


async def test_an_error_of_a_form_as_a_whole_points_at_no_field(call):
    assert refused((await call("write", {"email": "ann@", "age": 13}))[1]) == [("", "Not at thirteen.")]


async def test_a_refusal_is_not_replayed_as_a_success(call):
    for _ in range(2):
        assert (await call("write", {"email": "nowhere"}, **{"idempotency-key": "once"}))[0] == 422


async def test_a_prefix_and_a_formset_say_which_of_several(call):
    assert refused((await call("write_prefixed", {"who-email": "nowhere"}))[1]) == [("/who-email", WRONG[0][1])]
    rows = {"form-TOTAL_FORMS": "2", "form-INITIAL_FORMS": "0"}
    status, answer = await call("write_all", {**rows, "form-0-email": "ann@", "form-1-email": "nowhere"})
    assert (status, refused(answer)) == (422, [("/form/1/email", WRONG[0][1])])
    assert (await call("write_all", {**rows, "form-0-email": "ann@", "form-1-email": "b@"}))[0] == 200
    answer = (await call("write_all", {**rows, "form-TOTAL_FORMS": "0"}))[1]
    assert refused(answer) == [("/form", "Please submit at least 1 form.")]


async def test_a_sign_in_page_that_comes_after_success_is_none_that_is_asked_for(call):
    assert await call("sign_up", {"email": "ann@"}) == (200, {"location": "/members/sign-in/"})
    assert (await call("sign_up", {"email": "stranger@"}))[0] == 401
