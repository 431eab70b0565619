"""Files keep their names and media types on the way to a form, and documents say how they are written."""

import base64
import json
from typing import Any

from django import forms
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.validators import FileExtensionValidator
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.test import Client, override_settings
from django.urls import path
from django.views.decorators.http import require_POST

from tests.django.shop.settings import MIDDLEWARE
from tests.django.sites import make_site

site = make_site(secret_keys=["k" * 32])
BASE64 = base64.b64encode(b"x,y").decode()


class Upload(forms.Form):
    table = forms.FileField()


@site.action("upload", inputs=Upload)
@require_POST
def upload(request: HttpRequest) -> JsonResponse:
    """Upload a table."""
    file: Any = request.FILES["table"]
    return JsonResponse([file.name, file.content_type, file.read().decode()], safe=False)


class SeveralFiles(forms.ClearableFileInput):
    allow_multiple_selected = True


class Tables(forms.Form):
    tables = forms.FileField(widget=SeveralFiles)


@site.action("upload_all", inputs=Tables)
@require_POST
def upload_all(request: HttpRequest) -> JsonResponse:
    """Upload tables."""
    return JsonResponse([file.name for file in request.FILES.getlist("tables")], safe=False)


class Report(forms.Form):
    prefix = "report"
    table = forms.FileField(validators=[FileExtensionValidator(["csv"])])


@site.action("report", inputs=Report)
@require_POST
def report(request: HttpRequest) -> HttpResponse:
    """Report by a table."""
    form = Report(request.POST, request.FILES)
    return HttpResponse(f"<p>{form.errors}</p>")


urlpatterns = [path("upload", upload), path("upload-all", upload_all), path("report", report)]
SETTINGS = override_settings(
    ROOT_URLCONF=__name__, AWP_PUBLISH={"SITE": f"{__name__}.site"}, MIDDLEWARE=MIDDLEWARE, ALLOWED_HOSTS=["*"]
)


def test_a_file_keeps_its_name_and_its_media_type():
    given = {
        ("table", "application/octet-stream"): BASE64,
        ("a.csv", "text/csv"): {"filename": "a.csv", "content": BASE64},
        ("a.csv", "text/x-own"): {"filename": "a.csv", "content_type": "text/x-own", "content": BASE64},
    }
    with SETTINGS:
        client = Client(headers={"host": "shop.example"})
        sent = {"table": SimpleUploadedFile("a b.csv", b"x,y", content_type="text/csv")}
        answer = client.post("/agents/actions/upload", sent, secure=True)
        assert answer.json() == ["a b.csv", "text/csv", "x,y"]
        for (name, kind), value in given.items():
            body = json.dumps({"input": {"table": value}})
            answer = client.post("/agents/upload/invoke", body, content_type="application/json", secure=True)
            assert answer.json() == [name, kind, "x,y"]
        body = json.dumps({"input": {"tables": [{"filename": f"{n}.csv", "content": BASE64} for n in "ab"]}})
        answer = client.post("/agents/upload_all/invoke", body, content_type="application/json", secure=True)
        assert answer.json() == ["a.csv", "b.csv"]


def test_an_error_about_a_file_names_its_input_whatever_the_form_calls_it():
    with SETTINGS:
        body = json.dumps({"input": {"table": {"filename": "a.txt", "content": BASE64}}})
        client = Client(headers={"host": "shop.example"})
        refused = client.post("/agents/report/invoke", body, content_type="application/json", secure=True)
        assert [error["pointer"] for error in refused.json()["errors"]] == ["/table"]


def test_documents_say_that_a_file_is_base64():
    with SETTINGS:
        client = Client(headers={"host": "shop.example"})
        assert "upload {table: base64}" in client.get("/llms.txt", secure=True).content.decode()
        manifest = json.loads(client.get("/.well-known/awas.json", secure=True).content)
        assert manifest["actions"][0]["parameters"][0]["x-encoding"] == "base64"
        described = json.loads(client.get("/agent.json", secure=True).content)
        assert described["actions"][0]["inputs"]["table"]["x-encoding"] == "base64"


def test_a_file_that_is_not_base64_is_refused_as_that():
    with SETTINGS:
        client = Client(headers={"host": "shop.example"})
        body = json.dumps({"input": {"table": "hello"}})
        answer = client.post("/agents/upload/invoke", body, content_type="application/json", secure=True)
        (error,) = answer.json()["errors"]
        assert error["pointer"] == "/table"
        assert error["detail"].startswith("must be base64 or a string that matches the pattern ^data:")
