"""What a form's schema admits, the form takes; what agents send arrives as it was."""

import json
from datetime import UTC, date, datetime
from typing import Any

import pytest
from awp_publish_django.forms import read_form
from awp_publish_django.project import DjangoProject
from django import forms
from django.core import validators
from django.http import HttpRequest, JsonResponse
from django.test import Client, override_settings
from django.urls import path
from django.views.decorators.http import require_GET, require_POST
from hypothesis import HealthCheck, given, settings, strategies as some

from awp_publish import DeclarationError
from awp_publish.schema import compile_schema
from tests.django.shop.models import Book
from tests.django.sites import make_site
from tests.examples import examples


class Everything(forms.Form):
    text = forms.CharField(max_length=10, help_text="Some words.", label="Words")
    code = forms.RegexField(r"^[a-z]{2}\Z", required=False)
    slug = forms.SlugField(required=False)
    number = forms.IntegerField(min_value=-5, max_value=5, initial=2)
    share = forms.FloatField(required=False, max_value=1.5)
    price = forms.DecimalField(required=False, max_digits=6, decimal_places=2)
    agreed = forms.BooleanField()
    loud = forms.BooleanField(required=False)
    size = forms.ChoiceField(choices=[("s", "Small"), ("Large ones", [("l", "Large"), ("xl", "Huge")])])
    level = forms.TypedChoiceField(choices=[(1, "one"), (2, "two")], coerce=int, required=False)
    tags = forms.MultipleChoiceField(choices=[("a", "a"), ("b", "b")], required=False)
    day = forms.DateField(required=False)
    moment = forms.DateTimeField(required=False)
    hour = forms.TimeField(required=False)
    mail = forms.EmailField(required=False)
    key = forms.UUIDField(required=False)
    both = forms.ComboField(fields=[forms.CharField(max_length=20), forms.EmailField()], required=False)
    maybe = forms.NullBooleanField(required=False)
    extra = forms.JSONField(required=False)
    file = forms.FileField(required=False)
    fixed = forms.CharField(disabled=True, required=False, initial="x")
    made = forms.CharField(required=False, initial=lambda: "now")


SEEN: list[dict[str, Any]] = []
site = make_site()


@site.action("take", inputs=Everything)
@require_POST
def take(request: HttpRequest) -> JsonResponse:
    """Take everything."""
    form = Everything(request.POST, request.FILES)
    if not form.is_valid():
        return JsonResponse({"detail": json.loads(form.errors.as_json())}, status=409)
    content = form.cleaned_data["file"]
    SEEN.append({**form.cleaned_data, "file": content and content.read()})
    return JsonResponse({})


class SearchForm(forms.Form):
    prefix = "s"
    q = forms.CharField()
    only = forms.MultipleChoiceField(choices=[("new", "new"), ("old", "old")], required=False)


@site.action("look", inputs=SearchForm)
@require_GET
def look(request: HttpRequest) -> JsonResponse:
    """Look for something."""
    form = SearchForm(request.GET)
    assert form.is_valid(), form.errors
    return JsonResponse(form.cleaned_data)


urlpatterns = [path("take", take), path("look", look)]


@pytest.fixture(autouse=True)
def _project():
    with override_settings(ROOT_URLCONF=__name__, AWP_PUBLISH={"SITE": f"{__name__}.site"}):
        yield


def call(agent: str, given: object) -> Any:
    client = Client(raise_request_exception=False)
    return client.post(f"/agents/{agent}/invoke", json.dumps({"input": given}), content_type="application/json")


def properties(form: type[forms.BaseForm], method: str = "POST") -> Any:
    read = read_form(form, method)
    assert read is not None
    return read.inputs["properties"]


def test_fields_are_described_in_words_of_json_schema():
    read = properties(Everything)
    assert read["text"] == {
        "type": "string",
        "title": "Words",
        "description": "Some words.",
        "maxLength": 10,
        "minLength": 1,
    }
    assert read["code"] == {"type": "string", "pattern": "^$|^[a-z]{2}$"}
    assert read["day"] == {"type": "string", "anyOf": [{"format": "date"}, {"const": ""}]}
    assert read["both"] == {"type": "string"}
    assert read["number"] == {"type": "integer", "minimum": -5, "maximum": 5, "default": 2}
    assert read["share"] == {"type": "number", "maximum": 1.5}
    assert read["agreed"] == {"type": "boolean", "const": True}
    assert read["size"]["enum"] == ["s", "l", "xl"]
    assert read["size"]["description"] == "s: Small; l: Large; xl: Huge"
    assert read["level"]["enum"] == [1, 2]
    assert read["tags"]["items"] == {"type": "string", "enum": ["a", "b"]}
    assert read["file"]["anyOf"][0] == {"type": "string", "contentEncoding": "base64"}
    assert "fixed" not in read
    assert "default" not in read["made"]


def test_optional_inputs_may_be_empty_and_null_in_an_update():
    texts = ("code", "slug", "day", "moment", "hour", "mail", "key", "both", "made")
    assert call("take", {"text": "x", "agreed": True, "size": "s", **dict.fromkeys(texts, "")}).status_code == 200
    update = read_form(Everything, "POST", on_page=True, changes=True)
    assert update is not None
    nulls: Any = dict.fromkeys((*texts, "share", "price", "level", "maybe", "extra", "file"))
    assert compile_schema(update.inputs).is_valid({**nulls, "agreed": True})


def test_references_to_rows_are_not_listed():
    class Pick(forms.Form):
        book = forms.ModelChoiceField(Book.objects.all())
        books = forms.ModelMultipleChoiceField(Book.objects.all(), to_field_name="title")
        of_issue = forms.ModelChoiceField(Book.objects.all(), to_field_name="issue__name")

    assert properties(Pick)["of_issue"] == {"type": ["string", "integer"]}
    assert properties(Pick)["book"] == {"type": "integer"}
    assert properties(Pick)["books"] == {
        "type": "array",
        "items": {"type": "string"},
        "uniqueItems": True,
        "minItems": 1,
    }


def test_a_pattern_that_other_engines_do_not_know_is_left_to_the_form():
    class Odd(forms.Form):
        odd = forms.CharField(validators=[validators.RegexValidator("(?i:a)", inverse_match=True)])

    assert "pattern" not in properties(Odd)["odd"]


def test_a_field_of_several_parts_is_refused_with_a_remedy():
    class Split(forms.Form):
        moment = forms.SplitDateTimeField()

    wrong = make_site()
    wrong.declare("take", method="POST", path="/take", inputs=Split, description="Take.")
    with pytest.raises(DeclarationError, match=r"moment .* has several parts"):
        wrong.freeze(DjangoProject((path("take", take),)))


def test_a_form_read_from_the_query_keeps_its_prefix():
    assert call("look", {"q": "Ä&b", "only": ["new", "old"]}).json() == {"q": "Ä&b", "only": ["new", "old"]}


def test_files_dates_and_structures_arrive():
    sent = {"text": "a", "number": 1, "agreed": True, "size": "s"}
    more = {"file": "aGVsbG8=", "day": "2026-01-02", "moment": "2026-01-02T03:04:05Z", "extra": {"a": [1]}}
    answer = call("take", {**sent, **more, "hour": "10:30", "level": 2, "loud": True})
    assert answer.status_code == 200, answer.content
    seen = SEEN[-1]
    assert seen["file"] == b"hello"
    assert (seen["day"], seen["moment"]) == (date(2026, 1, 2), datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    assert (seen["extra"], seen["level"], seen["loud"]) == ({"a": [1]}, 2, True)


TEXT = some.text(some.characters(exclude_categories=("Cc", "Cs", "Z")), min_size=1, max_size=10)
INPUTS = some.fixed_dictionaries(
    {"text": TEXT, "number": some.integers(-5, 5), "agreed": some.just(True), "size": some.sampled_from(["s", "l"])},
    optional={
        "code": some.from_regex("[a-z]{2}", fullmatch=True),
        "slug": some.from_regex("[-a-zA-Z0-9_]+", fullmatch=True),
        "share": some.floats(-1e6, 1.5),
        "loud": some.booleans(),
        "level": some.sampled_from([1, 2]),
        "tags": some.lists(some.sampled_from(["a", "b"]), unique=True),
        "day": some.dates().map(str),
        "key": some.uuids().map(str),
    },
)
VALID = compile_schema({"type": "object", "properties": properties(Everything)})


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sent=INPUTS)
def test_valid_inputs_arrive_as_they_were_sent(sent):
    assert VALID(sent) == ()
    answer = call("take", sent)
    assert answer.status_code == 200, answer.content
    for name, value in sent.items():
        seen = SEEN[-1][name]
        assert seen == value or str(seen) == value
