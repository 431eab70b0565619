"""The official clients of MCP list and call actions with every kind of field of forms and of REST framework."""

import asyncio
import json
import os
import shutil
from pathlib import Path
from typing import Any

import django
import pytest
from awp_publish_django.asgi import get_asgi_application
from django import forms
from django.core import validators
from django.forms import fields as form_fields, models as form_models
from django.http import HttpRequest, JsonResponse
from django.test import override_settings
from django.urls import path
from django.views.decorators.http import require_POST
from rest_framework import fields as rest_fields, generics, relations, serializers

from benchmarks.journeys_by_protocols import NODE_MODULES
from tests.django.shop.models import Book
from tests.django.sites import make_site
from tests.plugins.mcp.mcp_messages import MODES, connect
from tools.conformance.server import ADDRESS, served

HERE = str(Path(__file__).parent)
KEY = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
CSV = {"filename": "a.csv", "content_type": "text/csv", "content": "YQ=="}
HTTPS: Any = {"assume_scheme": "https"} if django.VERSION >= (5, 0) else {}
AB = [("a", "A"), ("b", "B")]
NUMBERS: Any = {"choices": [(1, "one"), (2, "two")], "coerce": int}

FORM: dict[str, tuple[forms.Field, object]] = {
    "boolean": (forms.BooleanField(), True),
    "char": (forms.CharField(validators=[validators.RegexValidator(r"(?i)^[\w.@+-]+\Z")]), "Müller"),
    "choice": (forms.ChoiceField(choices=AB), "a"),
    "combo": (forms.ComboField(fields=[forms.CharField(max_length=20), forms.EmailField()]), "a@a.example"),
    "date": (forms.DateField(), "2026-01-02"),
    "moment": (forms.DateTimeField(), "2026-01-02T03:04:05Z"),
    "price": (forms.DecimalField(max_digits=5, decimal_places=2), 1.25),
    "lasting": (forms.DurationField(), "1 00:00:00"),
    "mail": (forms.EmailField(required=False), ""),
    "file": (forms.FileField(), CSV),
    "module": (forms.FilePathField(path=HERE, match=r"every_field\.py$"), __file__),
    "share": (forms.FloatField(max_value=1), 0.5),
    "address": (forms.GenericIPAddressField(), "::1"),
    "image": (forms.ImageField(), PIXEL),
    "integer": (forms.IntegerField(step_size=5), 10),
    "extra": (forms.JSONField(), {"a": [1, None]}),
    "several": (forms.MultipleChoiceField(choices=AB), ["a", "b"]),
    "maybe": (forms.NullBooleanField(), None),
    "pattern": (forms.RegexField(r"^(?P<part>a)(?P=part)\Z"), "aa"),
    "slug": (forms.SlugField(allow_unicode=True), "größe"),
    "time": (forms.TimeField(), "10:11"),
    "typed": (forms.TypedChoiceField(**NUMBERS), 1),
    "several_typed": (forms.TypedMultipleChoiceField(**NUMBERS), [1, 2]),
    "link": (forms.URLField(**HTTPS), "https://exämple.org/ü"),
    "key": (forms.UUIDField(), KEY),
    "book": (forms.ModelChoiceField(Book.objects.all()), 1),
    "books": (forms.ModelMultipleChoiceField(Book.objects.all()), [1]),
}
NOT_TAKEN = {"Field", "BaseTemporalField", "MultiValueField", "SplitDateTimeField"}
"""Of several parts, and what is none."""

books: Any = {"queryset": Book.objects.all()}
REST: dict[str, tuple[serializers.Field, object]] = {
    "boolean": (serializers.BooleanField(), False),
    "char": (serializers.CharField(allow_blank=True, min_length=3), ""),
    "choice": (serializers.ChoiceField(choices=["a", 1]), 1),
    "date": (serializers.DateField(), "2026-01-02"),
    "moment": (serializers.DateTimeField(format="%Y-%m-%dT%H:%M:%S"), "2026-01-02T03:04:05"),
    "price": (serializers.DecimalField(max_digits=4, decimal_places=2), "1.25"),
    "members": (serializers.DictField(child=serializers.IntegerField()), {"a": 1}),
    "lasting": (serializers.DurationField(), "1 00:00:00"),
    "mail": (serializers.EmailField(allow_blank=True), ""),
    "file_path": (serializers.FilePathField(path=HERE, match=r"every_field\.py$"), __file__),
    "share": (serializers.FloatField(), 0.5),
    "store": (serializers.HStoreField(), {"a": None}),
    "address": (serializers.IPAddressField(), "::1"),
    "integer": (serializers.IntegerField(max_value=2**70), 10),
    "extra": (serializers.JSONField(), [1, None]),
    "items": (serializers.ListField(child=serializers.EmailField(allow_blank=True)), ["", "a@a.example"]),
    "several": (serializers.MultipleChoiceField(choices=["a"]), ["a"]),
    "pattern": (serializers.RegexField(r"^[a-z\-]\Z"), "-"),
    "slug": (serializers.SlugField(), "a-b"),
    "time": (serializers.TimeField(), "10:11:00"),
    "link": (serializers.URLField(allow_blank=True), ""),
    "key": (serializers.UUIDField(format="hex"), KEY.replace("-", "")),
    "book": (serializers.PrimaryKeyRelatedField(**books), 1),
    "books": (serializers.PrimaryKeyRelatedField(**books, many=True), [1]),
    "title": (serializers.SlugRelatedField(**books, slug_field="title"), "Emma"),
    "shown": (serializers.HyperlinkedRelatedField(**books, view_name="book"), "/rest/1"),
}
NOT_SENT = {
    *(
        "Field",
        "HiddenField",
        "ReadOnlyField",
        "SerializerMethodField",
        "_UnvalidatedField",
        "ModelField",
        "BigIntegerField",
    ),
    *("RelatedField", "StringRelatedField", "HyperlinkedIdentityField"),
    *("FileField", "ImageField"),  # which need a form, as above
}

EveryForm = type("EveryForm", (forms.Form,), {name: field for name, (field, _) in FORM.items()})
EverySerializer: Any = type(
    "EverySerializer",
    (serializers.Serializer,),
    {**{name: field for name, (field, _) in REST.items()}, "create": lambda self, data: data},
)
site = make_site(url=ADDRESS, plugins=["mcp"])


@site.action("fill", inputs=EveryForm)
@require_POST
def fill(request: HttpRequest) -> JsonResponse:
    """Fill in a form."""
    form: Any = EveryForm(request.POST, request.FILES)
    return JsonResponse({"errors": form.errors, "names": sorted(form.cleaned_data)})


class Rest(generics.CreateAPIView):  # type: ignore[misc]
    """Give back what is sent."""

    serializer_class = EverySerializer

    def perform_create(self, serializer):
        serializer.instance = {**serializer.validated_data, "title": Book.objects.get()}


urlpatterns = [path("fill", fill), path("rest", Rest.as_view()), path("rest/<int:pk>", Rest.as_view(), name="book")]
site.declare("give_back", method="POST", path="/rest")


def kinds_in(module: Any, kind: type) -> set[str]:
    return {name for name, value in vars(module).items() if isinstance(value, type) and issubclass(value, kind)}


def test_the_tables_have_every_kind():
    taken = {type(field).__name__ for field, _ in FORM.values()}
    assert (kinds_in(form_fields, forms.Field) | kinds_in(form_models, forms.ModelChoiceField)) - NOT_TAKEN == taken
    sent = {type(field).__name__ for field, _ in REST.values()}
    assert (kinds_in(rest_fields, serializers.Field) | kinds_in(relations, serializers.Field)) - NOT_SENT == sent


CALLS = {
    "fill": {name: value for name, (_, value) in FORM.items()},
    "give_back": {name: value for name, (_, value) in REST.items()},
}


async def call_by_python(mode: str) -> dict[str, Any]:
    async with connect(get_asgi_application(), mode) as client:
        answers: dict[str, Any] = {"tools": [tool.name for tool in (await client.list_tools()).tools]}
        for name, given in CALLS.items():
            called = await client.call_tool(name, given)
            assert not called.is_error, called
            answers[name] = called.structured_content
    return answers


async def call_by_typescript(package: str) -> dict[str, Any]:
    node = os.environ.get("NODE") or shutil.which("node")
    if node is None or not (NODE_MODULES / "@modelcontextprotocol" / package).is_dir():
        pytest.skip(f"@modelcontextprotocol/{package} is not there: `make conformance` fetches it")
    facts = {"address": f"{ADDRESS}/mcp", "modules": str(NODE_MODULES.resolve()), "package": package, "calls": CALLS}
    program = str(Path(__file__).with_name("every_field.mjs"))
    with served(lambda address: get_asgi_application()):
        process = await asyncio.create_subprocess_exec(
            node, program, json.dumps(facts), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        printed, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    answers: dict[str, Any] = json.loads(printed)
    return answers


@pytest.mark.parametrize("client", [*MODES, "sdk", "client"])
async def test_every_field_is_listed_taken_and_given_back(client):
    await Book.objects.acreate(pk=1, title="Emma")
    with override_settings(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], AWP_PUBLISH={"SITE": f"{__name__}.site"}):
        answers = await (call_by_python if client in MODES else call_by_typescript)(client)
    assert answers["tools"] == ["fill", "give_back"]
    filled = answers["fill"].get("result", answers["fill"])
    assert filled == {"errors": {}, "names": sorted(FORM)}
    shown = answers["give_back"].pop("shown")
    assert {**answers["give_back"], "shown": f"/{shown.split('/', 3)[3]}"} == CALLS["give_back"]
