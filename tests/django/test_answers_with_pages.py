"""A page is no success of a write, a page that asks for something first says what, and a 404 stays one."""

import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django import forms
from django.conf.urls.i18n import i18n_patterns
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotFound, JsonResponse
from django.shortcuts import redirect
from django.test import AsyncClient, Client, override_settings
from django.urls import path
from django.views.decorators.http import require_GET, require_POST

from tests.django.shop.settings import MIDDLEWARE
from tests.django.sites import make_site

CODE = """<!doctype html><title>Site</title><h1>Enter the <b>code</b></h1>
<form method="post"><input type="hidden" name="csrfmiddlewaretoken" value="x">
<label for="c">Code of six digits:</label><input id="c" name="sudo_code"><button>Go</button></form>"""
NONE: dict[str, Any] = {"type": "object", "properties": {}}
DONE: list[str] = []
CODES: list[str] = []
site = make_site(secret_keys=["k" * 32])


class Nothing(forms.Form):
    """A form of which only the button is pressed."""


@site.action("close", inputs=Nothing, confirm=True)
@require_POST
def close(request: HttpRequest) -> HttpResponse:
    """Close the account."""
    if not CODES:
        return HttpResponse(CODE)
    DONE.append("close")
    return redirect("/closed/")


@site.action("thank", inputs=NONE)
@require_POST
def thank(request: HttpRequest) -> HttpResponse:
    """Answer with a page, done or not."""
    return HttpResponse("<title>Thanks &amp; bye</title><p>Nothing to see</p>")


@site.action("complain", inputs=NONE)
@require_POST
def complain(request: HttpRequest) -> HttpResponse:
    """Answer with a page that says what is wrong."""
    return HttpResponse('<h1>Order</h1><ul class="errorlist"><li>We are <i>closed</i>.</li></ul>')


@site.action("reorder", inputs=NONE)
@require_POST
def reorder(request: HttpRequest) -> HttpResponse:
    """Answer with nothing at all."""
    return HttpResponse()


@site.action("file", inputs=NONE)
@require_POST
def file(request: HttpRequest) -> HttpResponse:
    """Answer that something was made."""
    return HttpResponse("<h1>Filed</h1>", status=201)


class Words(forms.Form):
    words = forms.CharField()


@site.action("say", inputs=Words)
@require_POST
def say(request: HttpRequest) -> HttpResponse:
    """Show the same form again, for reasons of its own."""
    return HttpResponse('<h1>Say</h1><form method="post"><input name="words"></form>')


class Entry(forms.Form):
    title = forms.CharField()
    note = forms.CharField()


@site.action("enter", inputs=Entry)
@require_POST
def enter(request: HttpRequest) -> HttpResponse:
    """Enter a note, and offer to enter another one."""
    assert Entry(request.POST).is_valid()
    return HttpResponse('<h1>Entered</h1><form method="post"><input name="note"><input name="more"></form>')


class Refused(forms.Form):
    words = forms.CharField()

    def clean_words(self) -> str:
        raise forms.ValidationError("Not these words.")


@site.action("conflict", inputs=Refused)
@require_POST
def conflict(request: HttpRequest) -> HttpResponse:
    """Answer with a status of its own, whatever is wrong with the form."""
    form = Refused(request.POST)
    return HttpResponse(f"<h1>Somebody else was first</h1>{form.errors}", status=409)


@site.action("paint", inputs=NONE, outputs={"type": "string", "contentMediaType": "text/html"})
@require_POST
def paint(request: HttpRequest) -> HttpResponse:
    """Answer with a page that is declared."""
    return HttpResponse("<p>Painted</p>")


@site.action("look_up", inputs=NONE, effect="read")
@require_POST
def look_up(request: HttpRequest) -> HttpResponse:
    """Read by POST."""
    return HttpResponse("<p>Found</p>")


@site.action("remove", inputs={"type": "object", "properties": {"raises": {"type": "boolean"}}})
@require_POST
def remove(request: HttpRequest) -> HttpResponse:
    """Remove what is not there."""
    if json.loads(request.body).get("raises"):
        raise Http404("None")
    return HttpResponseNotFound("none")


@site.action("leave", inputs=Words)
@require_POST
def leave(request: HttpRequest) -> HttpResponse:
    """Raise a 404 of a form."""
    raise Http404("None")


@site.action("read", method="GET")
@transaction.non_atomic_requests
async def read(request: HttpRequest) -> JsonResponse:
    """Read what is not there."""
    raise Http404("None")


@require_GET
def anything(request: HttpRequest, rest: str) -> HttpResponse:
    return HttpResponse(f"any {rest}")


VIEWS = (close, reorder, file, thank, complain, say, enter, conflict, paint, look_up, remove, leave, read)
urlpatterns = [
    *(path(view.__name__, view) for view in VIEWS),
    *i18n_patterns(path("<path:rest>", anything), prefix_default_language=True),
]
OURS = "awp_publish_django.middleware.AgentPublisherMiddleware"
LOCALE = "django.middleware.locale.LocaleMiddleware"


@pytest.fixture(autouse=True, params=["inside", "outside"])
def _project(request):
    rest = [item for item in MIDDLEWARE if item not in (OURS, LOCALE)]
    order = [OURS, *rest, LOCALE] if request.param == "inside" else ["tests.django.test_answers_with_pages.own", LOCALE]
    order = order if request.param == "inside" else [*order, *rest, OURS]
    DONE.clear()
    CODES.clear()
    given = {"ROOT_URLCONF": __name__, "AWP_PUBLISH": {"SITE": f"{__name__}.site"}, "MIDDLEWARE": order}
    with override_settings(**given, LANGUAGES=[("en", "English"), ("de", "Deutsch")], USE_I18N=True):
        yield


def own(get_response):
    """Be a middleware of the project's, because of which calls pass all of it."""
    return get_response


@pytest.fixture(params=["wsgi", "asgi"])
def call(request):
    async def ask(action: str, given: object = None, **envelope: object) -> tuple[int, Any]:
        body = json.dumps({"input": given or {}, **envelope})
        sent: dict[str, Any] = {"data": body, "content_type": "application/json"}
        client: Any = Client() if request.param == "wsgi" else AsyncClient()
        post = sync_to_async(client.post) if request.param == "wsgi" else client.post
        answer = await post(f"/agents/{action}/invoke", **sent)
        return answer.status_code, answer.json()

    return ask


async def test_a_page_that_asks_for_something_first_says_what_and_spends_no_confirmation(call):
    answer = (await call("close"))[1]
    token = answer["confirmation"]["token"]
    for _ in range(2):
        status, answer = await call("close", confirmation=token)
        assert (status, answer["detail"]) == (
            428,
            'The site first asks for something on the page "Enter the code": Code of six digits.',
        )
    assert DONE == []
    CODES.append("123456")
    assert await call("close", confirmation=token) == (200, {"location": "/closed/", "page": "any closed/\n"})
    assert (await call("close", confirmation=token))[1]["code"] == "CONFIRMATION_SPENT"
    assert DONE == ["close"]


@pytest.mark.parametrize(
    ("action", "given", "status", "words"),
    [
        ("thank", None, 409, 'answered with "Thanks & bye", which does not say whether it took effect'),
        ("complain", None, 422, "We are closed."),
        ("say", {"words": "x"}, 409, 'shows its form on the page "Say" again'),
    ],
)
async def test_a_page_is_no_success_of_a_write(call, action, given, status, words):
    refused, answer = await call(action, given)
    assert refused == status
    assert words in answer["detail"]


async def test_an_empty_answer_and_a_201_are_successes(call):
    assert (await call("reorder"))[0] == 200
    assert (await call("file"))[0] in (200, 201)


async def test_a_page_that_is_declared_or_read_is_a_success(call):
    assert (await call("paint"))[0] == 200
    assert (await call("look_up"))[0] == 200


@pytest.mark.parametrize(
    ("action", "given"), [("remove", {}), ("remove", {"raises": True}), ("leave", {"words": "x"}), ("read", {})]
)
async def test_a_404_that_a_middleware_redirects_is_a_404(call, action, given):
    status, answer = await call(action, given)
    assert (status, "location" in answer) == (404, False), answer
