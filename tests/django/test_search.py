"""Search over the pages of a Django project: from its views and its own sitemap, under WSGI and ASGI."""

import json
from collections.abc import Iterator

import pytest
from awp_publish_django.publication import get_publication
from django.contrib.sitemaps import Sitemap
from django.contrib.sitemaps.views import sitemap
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.test import modify_settings, override_settings
from django.urls import path

from awp_publish import Search, Site

OURS = "awp_publish_django.middleware.AgentPublisherMiddleware"
CALL = {"content_type": "application/json"}


def lamps(request: HttpRequest) -> HttpResponse:
    return HttpResponse("<title>Lamps</title><h1>Lamps</h1><p>A lamp of brass.</p>")


@transaction.non_atomic_requests
async def oil(request: HttpRequest) -> HttpResponse:
    return HttpResponse("<title>Oil</title><h1>Oil</h1><p>Oil for lamps.</p>")


def account(request: HttpRequest) -> HttpResponse:
    return HttpResponse("<title>Account</title><p>The lamps of one visitor.</p>", status=403)


class Pages(Sitemap):  # type: ignore[type-arg]
    protocol = "https"

    def items(self) -> list[str]:
        return ["/lamps", "/oil", "/account"]

    def location(self, item: object) -> str:
        return str(item)


urlpatterns = [
    path("lamps", lamps),
    path("oil", oil),
    path("account", account),
    path("sitemap.xml", sitemap, {"sitemaps": {"pages": Pages}}),
]
site = Site("Shop", "Sells lamps.", url="https://shop.example", plugins=[Search()])


@pytest.fixture(autouse=True)
def _shop() -> Iterator[None]:
    changed = {"ROOT_URLCONF": __name__, "AWP_PUBLISH": {"SITE": f"{__name__}.site"}, "MIDDLEWARE": [OURS]}
    with modify_settings(INSTALLED_APPS={"append": "django.contrib.sitemaps"}), override_settings(**changed):
        yield
        get_publication().portal.close()


def test_pages_are_found_and_read_under_wsgi(client):
    found = client.post("/agents/search/invoke", json.dumps({"input": {"query": "brass lamps"}}), **CALL).json()
    assert [result["id"] for result in found["results"]] == ["/lamps", "/oil"]
    page = client.post("/agents/fetch/invoke", json.dumps({"input": {"id": "/oil"}}), **CALL).json()
    assert page["text"] == "# Oil\n\nOil for lamps."


async def test_pages_are_found_under_asgi_without_a_lifespan(async_client):
    answer = await async_client.post("/agents/search/invoke", json.dumps({"input": {"query": "oil"}}), **CALL)
    assert [result["id"] for result in answer.json()["results"]] == ["/oil"]
