"""A project's TestCase calls actions by `self.agent.call`."""

from awp_publish_django.test import AgentTestMixin
from django import forms
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.test import TestCase, override_settings
from django.urls import path
from django.views.decorators.http import require_GET, require_POST

from tests.django.shop.models import Book
from tests.django.sites import make_site

site = make_site()


class Title(forms.Form):
    title = forms.CharField()


@site.action("add", inputs=Title, confirm=True)
@require_POST
def add(request: HttpRequest) -> HttpResponse:
    """Add a book."""
    form = Title(request.POST)
    if form.is_valid():
        Book.objects.create(title=form.cleaned_data["title"])
    return redirect("/thanks/")


@site.action("whoami")
@require_GET
def whoami(request: HttpRequest) -> JsonResponse:
    """Who is asking."""
    return JsonResponse({"user": request.user.get_username()})


@site.action("forget")
@require_POST
def forget(request: HttpRequest) -> HttpResponse:
    """Forget all."""
    return HttpResponse(status=204)


urlpatterns = [path("add", add), path("whoami", whoami), path("forget", forget)]


@override_settings(ROOT_URLCONF=__name__, AWP_PUBLISH={"SITE": f"{__name__}.site"})
class AgentTests(AgentTestMixin, TestCase):
    def test_a_call_is_answered_and_its_changes_are_in_the_transaction_of_the_test(self) -> None:
        asked = self.agent.call("add", {"title": "Emma"})
        assert (asked.status, asked.code) == (428, "CONFIRMATION_REQUIRED")
        assert Book.objects.count() == 0
        answer = self.agent.call("add", {"title": "Emma"}, confirm=True)
        assert (answer.status, answer.value, answer.code) == (200, {"location": "/thanks/"}, None)
        assert Book.objects.get().title == "Emma"

    def test_the_caller_is_the_visitor_of_the_tests_client(self) -> None:
        self.client.force_login(User.objects.create(username="ann"))
        assert self.agent.call("whoami").value == {"user": "ann"}

    def test_an_empty_answer_has_no_value(self) -> None:
        answer = self.agent.call("forget")
        assert (answer.status, answer.value, answer.code) == (200, None, None)

    def test_refusals_and_unknown_actions_say_so(self) -> None:
        assert self.agent.call("add", {}).code == "INVALID_INPUT"
        with self.assertRaisesMessage(LookupError, 'Unknown action "ad". There are: add, whoami, forget.'):
            self.agent.call("ad")
