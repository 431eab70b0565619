"""Pages under Django's per-site cache, in every order, from every backend: each reader gets the format it accepts."""

import asyncio

import pytest
from awp_publish_django.publication import MIDDLEWARE
from django.core.cache import cache
from django.db import transaction
from django.http import FileResponse, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.test import AsyncClient, Client, override_settings
from django.urls import path

from awp_publish import Pages, Site

UPDATE, FETCH = (f"django.middleware.cache.{name}CacheMiddleware" for name in ("Update", "FetchFrom"))
CONDITIONAL, GZIP = "django.middleware.http.ConditionalGetMiddleware", "django.middleware.gzip.GZipMiddleware"
ORDERS = {
    "between": [UPDATE, MIDDLEWARE, FETCH],
    "below": [UPDATE, FETCH, MIDDLEWARE],
    "above": [MIDDLEWARE, UPDATE, FETCH],
    "among others": [UPDATE, GZIP, CONDITIONAL, MIDDLEWARE, FETCH],
}
BODY = "<main><h1>Teas</h1><p>Green or black.</p></main>"
PUBLIC = {"Cache-Control": "public, max-age=600"}
ASKED: list[str] = []


def plain(request: HttpRequest) -> HttpResponseBase:
    ASKED.append(request.headers.get("accept", ""))
    return HttpResponse(BODY, headers=PUBLIC)


def stream(request: HttpRequest) -> HttpResponseBase:
    ASKED.append(request.headers.get("accept", ""))
    return StreamingHttpResponse((piece for piece in (BODY[:20], BODY[20:])), headers=PUBLIC)


@transaction.non_atomic_requests
async def stream_async(request: HttpRequest) -> HttpResponseBase:
    async def pieces():
        yield BODY[:20]
        yield BODY[20:]

    return StreamingHttpResponse(pieces(), headers=PUBLIC)


def file(request: HttpRequest) -> HttpResponseBase:
    return FileResponse(open(__file__, "rb"), content_type="text/html", headers=PUBLIC)


urlpatterns = [path(view.__name__, view) for view in (plain, stream, stream_async, file)]
site = Site("Shop", "Sells tea.", url="http://testserver")
shared = Site("Shop", "Sells tea.", url="http://testserver", plugins=[Pages(shared_cache=True)])

FORMATS = {
    "*/*": "text/html",
    "text/markdown": "text/markdown",
    "application/som+json": "application/som+json",
    "text/html": "text/html",
}


@pytest.fixture(params=[(Client, "locmem.LocMemCache"), (AsyncClient, "filebased.FileBasedCache")])
def kind(request, tmp_path):
    kind, backend = request.param
    where = {"BACKEND": f"django.core.cache.backends.{backend}", "LOCATION": str(tmp_path)}
    with override_settings(CACHES={"default": where}, ROOT_URLCONF=__name__):
        cache.clear()
        ASKED.clear()
        yield kind


def ask(client: Client | AsyncClient, address: str, accept: str) -> HttpResponseBase:
    if isinstance(client, AsyncClient):
        return asyncio.run(client.get(address, headers={"accept": accept}))
    return client.get(address, headers={"accept": accept})


@pytest.mark.parametrize("name", ["site", "shared"])
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_a_cached_page_is_given_in_the_format_that_its_reader_accepts(order, name, kind):
    pages = ["plain", "stream", "file", *(["stream_async"] if kind is AsyncClient else [])]
    with override_settings(MIDDLEWARE=order, AWP_PUBLISH={"SITE": f"{__name__}.{name}"}):
        client = kind()
        for page in pages:
            for accept in (*FORMATS, *FORMATS):
                answer = ask(client, f"/{page}", accept)
                assert answer.status_code == 200, (page, accept)
                assert answer["content-type"].startswith(FORMATS[accept]), (page, accept)
                assert "Accept" in answer["vary"], (page, accept)
                answer.close()
            answer = ask(client, f"/agents/som?url=/{page}", "*/*")
            assert (answer.status_code, answer["content-type"]) == (200, "application/som+json"), page
        before = len(ASKED)
        ask(client, "/plain", "*/*")
        assert len(ASKED) == before, "the cache has it"


site.declare("count", method="GET", path="/count", description="Count the requests.")


def count(request: HttpRequest) -> HttpResponseBase:
    ASKED.append("count")
    return HttpResponse(str(len(ASKED)), content_type="application/json")


urlpatterns.append(path("count", count))


def test_a_call_is_never_answered_from_the_cache(kind):
    with override_settings(MIDDLEWARE=ORDERS["below"], AWP_PUBLISH={"SITE": f"{__name__}.site"}):
        client = kind()
        answers = [ask(client, "/agents/actions/count", "*/*") for _ in range(3)]
        assert [b"".join(answer) for answer in answers] == [b"1", b"2", b"3"]
        documents = [ask(client, "/agent.json", "*/*") for _ in range(2)]
        assert b"".join(documents[0]) == b"".join(documents[1])
        assert "private" not in documents[0]["cache-control"]
