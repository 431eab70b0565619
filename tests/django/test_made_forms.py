"""Forms whose fields or choices are made in `__init__`, or chosen by the view; and models that say what they take."""

import json
from typing import Any

import pytest
from awp_publish_django.forms import UNREAD, read_form
from awp_publish_django.project import DjangoProject
from awp_publish_django.publication import get_publication
from django import forms
from django.contrib.auth.models import Group
from django.core.checks import run_checks
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django.urls import path
from django.views.decorators.http import require_POST
from django.views.generic import CreateView, FormView

from tests.django.shop.models import Shelf
from tests.django.sites import make_site


class MadeInInit(forms.Form):
    size = forms.ChoiceField(choices=())

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["size"].choices = [("s", "Small"), ("l", "Large")]  # type: ignore[attr-defined]
        self.fields["note"] = forms.CharField(help_text="<em>Anything</em> &amp; more.", required=False)
        self.fields["secret"] = forms.CharField(widget=forms.PasswordInput)


class ForSomebody(forms.Form):
    group = forms.ChoiceField(choices=())

    def __init__(self, *args: Any, owner: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["group"].choices = [(owner, owner)]  # type: ignore[attr-defined]


class FromDatabase(forms.Form):
    group = forms.ChoiceField(choices=())

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["group"].choices = [(item.pk, item.name) for item in Group.objects.all()]  # type: ignore[attr-defined]


class Lazy(forms.Form):
    group = forms.ChoiceField(choices=lambda: [(item.pk, item.name) for item in Group.objects.all()])


class Unknown(FormView):
    """Take what only a request tells."""

    http_method_names = ("post",)

    def get_form(self, form_class: Any = None) -> ForSomebody:
        return ForSomebody(self.request.POST, owner=self.request.user.profile.owner)  # type: ignore[union-attr]


class ShelfForm(forms.ModelForm):
    class Meta:
        model = Shelf
        fields = ("code", "boards")


class Chosen(FormView):
    """Choose a size."""

    http_method_names = ("post",)
    template_name = "order.html"

    def get_form_class(self) -> type[forms.Form]:
        return MadeInInit

    def form_valid(self, form: forms.Form) -> HttpResponse:
        return JsonResponse(form.cleaned_data)


class ForOwner(Chosen):
    """Choose a group."""

    def get_form_class(self) -> type[forms.Form]:
        return ForSomebody

    def get_form_kwargs(self) -> dict[str, Any]:
        return {**super().get_form_kwargs(), "owner": "ann"}


class Guarded(CreateView):
    """Keep a shelf."""

    http_method_names = ("post",)

    def get_form_class(self) -> type[forms.ModelForm]:
        raise PermissionDenied


class GuardedBoards(Guarded):
    """Keep boards."""

    model = Shelf
    fields = ("boards",)


site = make_site()


@site.action("take", inputs=ForSomebody)
@require_POST
def take(request: HttpRequest) -> HttpResponse:
    """Take what a form takes that nobody can make."""
    return JsonResponse(request.POST.dict())


@site.action("pick", inputs=FromDatabase)
@require_POST
def pick(request: HttpRequest) -> HttpResponse:
    """Take what a form takes whose choices are rows."""
    return JsonResponse(request.POST.dict())


@site.action("pick_lazily", inputs=Lazy)
@require_POST
def pick_lazily(request: HttpRequest) -> HttpResponse:
    """Take what a form takes whose choices are rows, when they are asked for."""
    return JsonResponse(request.POST.dict())


urlpatterns = [
    *(path(view.__name__, view) for view in (take, pick, pick_lazily)),
    path("chosen", Chosen.as_view()),
    path("for-owner", ForOwner.as_view()),
    path("unknown", Unknown.as_view()),
    path("by-options", Guarded.as_view(model=Shelf, fields=["code"])),
    path("by-form", Guarded.as_view(form_class=ShelfForm)),
    path("by-class", GuardedBoards.as_view()),
]
site.declare("unknown", method="POST", path="/unknown")
site.declare("chosen", method="POST", path="/chosen")
site.declare("for_owner", method="POST", path="/for-owner")
for name in ("by-options", "by-form", "by-class"):
    site.declare(name.replace("-", "_"), method="POST", path=f"/{name}")


@pytest.fixture(autouse=True)
def _project():
    with override_settings(ROOT_URLCONF=__name__, AWP_PUBLISH={"SITE": f"{__name__}.site"}):
        yield


def properties(form: type[forms.BaseForm]) -> Any:
    operation = read_form(form, "POST")
    assert operation is not None
    return operation.inputs["properties"]


def test_an_instance_tells_what_the_class_does_not():
    read = properties(MadeInInit)
    assert read["size"]["enum"] == ["s", "l"]
    assert read["note"]["description"] == "Anything & more."
    assert read["secret"]["format"] == "password"


def test_the_database_is_not_asked_for_what_is_published_so_no_rows_are_listed():
    group = Group.objects.create(name="staff")
    with CaptureQueriesContext(connection) as asked:
        run_checks(tags=["agents"])
    assert not asked.captured_queries
    for action in ("pick", "pick_lazily"):
        assert "enum" not in str(get_publication().site.catalog.action(action).inputs)
        body = json.dumps({"input": {"group": str(group.pk)}})
        answer = Client().post(f"/agents/{action}/invoke", body, content_type="application/json")
        assert answer.json() == {"group": str(group.pk)}


def test_validators_of_the_model_are_in_the_schema():
    read = properties(ShelfForm)
    assert (read["code"]["pattern"], read["code"]["maxLength"], read["boards"]["maximum"]) == ("^[A-Z]+$", 9, 7)


@pytest.mark.parametrize(
    ("action", "members", "has_choices"),
    [
        ("chosen", {"size", "note", "secret"}, True),
        ("for_owner", {"group"}, True),
        ("by_options", {"code"}, False),
        ("by_form", {"code", "boards"}, False),
        ("by_class", {"boards"}, False),
    ],
)
def test_the_form_that_a_view_makes_or_names_is_its_inputs(action, members, has_choices):
    inputs: Any = get_publication().site.catalog.action(action).inputs
    assert set(inputs["properties"]) == members
    assert ("enum" in str(inputs)) is has_choices


def test_a_form_that_nobody_can_make_closes_nothing_and_a_check_says_so():
    inputs = get_publication().site.catalog.action("take").inputs
    assert "additionalProperties" not in inputs
    assert "enum" not in str(inputs)
    results = [check for check in run_checks(tags=["agents"]) if check.id == "awp_publish.W004"]
    assert [item.msg.split()[0].rpartition(".")[2] for item in results] == ["ForSomebody", "FromDatabase", "Unknown"]
    assert "inputs=" in str(results[0].hint)
    body = json.dumps({"input": {"group": "ann"}})
    assert Client().post("/agents/take/invoke", body, content_type="application/json").json() == {"group": "ann"}


def test_a_site_without_such_forms_is_told_nothing():
    own = make_site()
    own.declare("chosen", method="POST", path="/chosen")
    UNREAD.clear()
    own.freeze(DjangoProject((path("chosen", Chosen.as_view()),)))
    assert not UNREAD
