"""Nothing that a Django project publishes points at what does not answer."""

import json
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import Context, Template
from django.test import Client, override_settings
from django.urls import path

from awp_publish import DeclarationError, Site
from tests.http.test_advertised import dead, follow_everything

URL = "https://shop.example"
HEAD = Template(
    '{% load agents %}<title>Tea</title>{% head_links %}{% page_meta "/" %}{% structured_data "/" %}{% webmcp_script %}'
)


def make_site(url: str) -> Site:
    site = Site("Shop", "Sells tea.", url=url, plugins=["mcp", "a2a", "awp"])
    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    site.declare("search", method="GET", path="/search/", description="Search teas.", inputs=schema, outputs={})
    site.page("/", title="Front")
    site.page("/teas/{slug}", title="A tea")
    return site


def front(request: HttpRequest) -> HttpResponse:
    return HttpResponse(HEAD.render(Context()) + "<h1>Tea</h1>")


def search(request: HttpRequest) -> HttpResponse:
    return JsonResponse([request.GET.get("q")], safe=False)


def tea(request: HttpRequest, slug: str) -> HttpResponse:
    return HttpResponse(f"<h1>{slug}</h1>", status=200 if slug == "assam" else 404)


urlpatterns = [path("", front), path("search/", search), path("teas/<str:slug>", tea)]
at_the_top, below_a_path = make_site(URL), make_site(f"{URL}/tea")


class Answer:
    """A Django answer as the walk over a site reads it."""

    def __init__(self, response: Any) -> None:
        self.status_code, self.headers, self.text = response.status_code, self, response.content.decode()
        self._response = response

    def get(self, name: str, default: str = "") -> str:
        return str(self._response.headers.get(name, default))

    def get_list(self, name: str) -> list[str]:
        return [self.get(name)]

    def json(self) -> Any:
        return json.loads(self.text)


class Visitor:
    """Django's client puts FORCE_SCRIPT_NAME before a path itself."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    def get(self, address: str, headers: dict[str, str]) -> Answer:
        parts = urlsplit(address)
        below = parts.path.removeprefix(self.prefix) or "/"
        return Answer(Client().get(f"{below}?{parts.query}".rstrip("?"), headers=headers, secure=True))


@pytest.mark.parametrize(("name", "prefix"), [("at_the_top", ""), ("below_a_path", "/tea")])
def test_every_address_that_is_told_answers(name, prefix):
    settings = {"SITE": f"{__name__}.{name}", "LINK_HEADERS": True}
    with override_settings(
        AWP_PUBLISH=settings, ROOT_URLCONF=__name__, FORCE_SCRIPT_NAME=prefix or None, ALLOWED_HOSTS=["*"]
    ):
        found = follow_everything(Visitor(prefix), URL + prefix)
    assert dead(found) == []
    assert len(found) > 30
    assert [address for address in found if not address.startswith(URL + prefix)] == []


def test_placeholders_as_django_writes_them_are_told_how_they_are_written_here():
    with pytest.raises(DeclarationError, match=r'placeholders in braces: "/teas/\{slug\}/\{year\}"'):
        make_site(URL).page("/teas/<str:slug>/<year>", title="A tea")


def test_every_address_that_a_whole_project_tells_answers():
    with override_settings(AWP_PUBLISH={"SITE": "tests.django.shop.agents.site", "LINK_HEADERS": True}):
        found = follow_everything(Visitor(""), URL)
    found.pop(URL, None)  # what the project says of itself, which has no first page
    assert dead(found) == []
