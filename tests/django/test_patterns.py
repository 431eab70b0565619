"""Every pattern of a Django project compiles as ECMA-262 with the `u` flag, or a finding names its action."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import django
import pytest
from awp_publish_django.publication import get_publication
from django import forms
from django.contrib.auth.models import User
from django.core import validators
from django.core.checks import run_checks
from django.http import HttpRequest, JsonResponse
from django.test import Client, override_settings
from django.urls import path, re_path
from django.views.decorators.http import require_GET, require_POST
from pydantic import BaseModel, ConfigDict, Field
from rest_framework import generics, serializers

from tests.django.sites import make_site

site = make_site(plugins=["mcp"])


HTTPS: Any = {"assume_scheme": "https"} if django.VERSION >= (5, 0) else {}


class EveryText(forms.Form):
    name = forms.CharField(validators=[validators.RegexValidator(r"^[\w.@+-]+\Z")])
    slug = forms.SlugField(required=False)
    unicode_slug = forms.SlugField(allow_unicode=True, required=False)
    color = forms.RegexField(re.compile(r"^#?[0-9a-f]{6}\Z", re.IGNORECASE), required=False)
    code = forms.RegexField(r"(?P<part>[a-z]\@)(?P=part)", required=False)
    numbers = forms.CharField(validators=[validators.validate_comma_separated_integer_list], required=False)
    link = forms.URLField(required=False, **HTTPS)
    mail = forms.EmailField(required=False)
    address = forms.GenericIPAddressField(required=False)
    greedy = forms.RegexField(r"a(?=b)*", required=False)
    borders = forms.RegexField(r"\bcat\b", required=False)
    harmless = forms.CharField(validators=[validators.RegexValidator("<", inverse_match=True)], required=False)


class Member(serializers.ModelSerializer):
    home = serializers.URLField(required=False)
    mark = serializers.RegexField(r"^[a-z\-]\Z", required=False)

    class Meta:
        model = User
        fields = ("username", "email", "home", "mark")

    def create(self, validated_data):
        return validated_data

    def to_representation(self, instance):
        return dict(instance)


class Team(serializers.Serializer):
    members = Member(many=True)

    def create(self, validated_data):
        return validated_data


class Coloured(BaseModel):
    model_config = ConfigDict(regex_engine="python-re")
    tint: str = Field(pattern=r"(?i)^[a-f]+\Z")
    rest: str = Field(default="", pattern=r"^x++$")


@site.action("take", inputs=EveryText)
@require_POST
def take(request: HttpRequest) -> JsonResponse:
    """Take every text."""
    form = EveryText(request.POST)
    return JsonResponse({"errors": form.errors, "name": form.data.get("name")})


@site.action("paint", inputs=Coloured)
@require_POST
def paint(request: HttpRequest) -> JsonResponse:
    """Paint something."""
    return JsonResponse(json.loads(request.body))


@site.action("read")
@require_GET
def read(request: HttpRequest, word: str, number: str) -> JsonResponse:
    """Read a word."""
    return JsonResponse({"word": word})


class Members(generics.CreateAPIView):
    """Add a member."""

    serializer_class = Member


class Teams(generics.CreateAPIView):
    """Add a team."""

    serializer_class = Team


urlpatterns = [
    path("take", take),
    path("paint", paint),
    re_path(r"^read/(?P<word>[\w-]+)/(?P<number>\d{2}(?i:x))\Z", read),
    path("members", Members.as_view()),
    path("teams", Teams.as_view()),
]
site.declare("add_member", method="POST", path="/members")
site.declare("add_team", method="POST", path="/teams")


@pytest.fixture(autouse=True)
def _project():
    with override_settings(ROOT_URLCONF=__name__, AWP_PUBLISH={"SITE": f"{__name__}.site"}):
        yield


def patterns_in(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from (value for name, value in schema.items() if name == "pattern" and isinstance(value, str))
        for inner in schema.values():
            yield from patterns_in(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from patterns_in(inner)


def call(agent: str, given: object) -> Any:
    client = Client(raise_request_exception=False)
    return client.post(f"/agents/{agent}/invoke", json.dumps({"input": given}), content_type="application/json")


def tools() -> list[dict[str, Any]]:
    sent = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    accept = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    answer = Client(SERVER_NAME="shop.example").post(
        "/mcp", json.dumps(sent), content_type="application/json", secure=True, headers=accept
    )
    body = b"".join(answer)
    text = next((line for line in body.decode().splitlines() if line.startswith("data:")), body.decode())
    listed: list[dict[str, Any]] = json.loads(text.removeprefix("data:"))["result"]["tools"]
    return listed


def test_every_pattern_of_the_list_of_tools_compiles_in_python_and_has_nothing_of_it_alone():
    listed = list(patterns_in(tools()))
    assert len(listed) >= 8
    for pattern in listed:
        re.compile(pattern)
        assert not re.search(r"\\[zZA]|\(\?P|\(\?i", pattern), pattern


@pytest.mark.skipif(shutil.which("node") is None, reason="JavaScript's own engine is asked")
def test_every_pattern_of_every_document_compiles_as_javascript_does_it():
    documents = [json.loads(one) for path, one in get_publication().documents().items() if path.endswith("json")]
    listed = [*patterns_in(tools()), *patterns_in(documents)]
    program = "for (const one of JSON.parse(require('fs').readFileSync(0))) new RegExp(one, 'u')"
    ran = subprocess.run(["node", "-e", program], input=json.dumps(listed), capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_patterns_that_are_left_out_are_reported_by_action():
    said = [check.msg for check in run_checks(tags=["agents"]) if check.id == "awp_publish.W006"]
    for action, member in (("take", "greedy"), ("take", "borders"), ("take", "harmless"), ("paint", "rest")):
        assert any(f'"{action}"' in item and f"/{member}" in item for item in said), said
    published = json.dumps(tools())
    assert "x-pattern-left-out" not in published


def test_names_of_all_scripts_are_taken_where_the_form_takes_them():
    assert call("take", {"name": "Müller"}).json() == {"errors": {}, "name": "Müller"}
    assert call("take", {"name": "two words"}).status_code == 422
    assert call("take", {"name": "ann", "color": "#FFaa00"}).json()["errors"] == {}
    assert call("take", {"name": "ann", "color": "#FFaa0g"}).status_code == 422
    assert call("add_member", {"username": "Jürgen", "home": "HTTP://EXAMPLE.org"}).status_code == 201
    assert call("add_member", {"username": "a b"}).status_code == 422
    assert call("read", {"word": "größe-1", "number": "12X"}).json() == {"word": "größe-1"}
