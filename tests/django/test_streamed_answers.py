"""What a view streams is passed on as it comes at the plain door, under WSGI and under ASGI."""

import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from django.db import transaction
from django.http import HttpRequest, StreamingHttpResponse
from django.test import AsyncClient, Client, override_settings
from django.urls import path
from django.views.decorators.http import require_GET

from tests.django.shop.settings import MIDDLEWARE
from tests.django.sites import make_site

site = make_site()
MADE: list[str] = []
ENDED = threading.Event()


@site.action("export", rate_limit="100/minute")
@require_GET
def export(request: HttpRequest) -> StreamingHttpResponse:
    """Export all orders."""

    def rows() -> Iterator[str]:
        for number in range(3):
            MADE.append(str(number))
            yield f"{number}\n"

    return StreamingHttpResponse(rows(), content_type="text/csv", headers={"Content-Disposition": "attachment"})


@site.action("export_async", method="GET")
@transaction.non_atomic_requests
async def export_async(request: HttpRequest) -> StreamingHttpResponse:
    """Export all orders on the event loop."""

    async def rows() -> AsyncIterator[str]:
        for number in range(3):
            MADE.append(str(number))
            yield f"{number}\n"

    return StreamingHttpResponse(rows(), content_type="text/csv")


@site.action("export_guarded", rate_limit="100/minute", guard_routes=True)
@require_GET
def export_guarded(request: HttpRequest) -> StreamingHttpResponse:
    """Export all orders, to people too."""
    return export(request)


@site.action("page")
@require_GET
def page(request: HttpRequest) -> StreamingHttpResponse:
    """Show a page in parts."""
    return StreamingHttpResponse(iter(["<h1>Orders", "</h1>"]))


class Ticks:
    """An endless answer, which is told when nobody reads it any more."""

    def __iter__(self) -> Iterator[str]:
        while True:
            yield "tick"

    def close(self) -> None:
        ENDED.set()


@site.action("tick")
@require_GET
def tick(request: HttpRequest) -> StreamingHttpResponse:
    """Tick."""
    return StreamingHttpResponse(Ticks(), content_type="text/plain")


def own(get_response: Any) -> Any:
    return get_response


urlpatterns = [
    path("export", export),
    path("export_async", export_async),
    path("export_guarded", export_guarded),
    path("page", page),
    path("tick", tick),
]


@pytest.fixture(params=[[], [f"{__name__}.own"]], ids=["alone", "with middleware above"], autouse=True)
def _project(request: pytest.FixtureRequest) -> Iterator[None]:
    MADE.clear()
    options = {"ROOT_URLCONF": __name__, "AWP_PUBLISH": {"SITE": f"{__name__}.site"}}
    with override_settings(**options, MIDDLEWARE=[*request.param, *MIDDLEWARE]):
        yield


def test_streams_are_passed_on_under_wsgi():
    answer = Client().get("/agents/actions/export", headers={"host": "shop.example"})
    assert (answer.status_code, answer["content-type"]) == (200, "text/csv")
    assert answer["content-disposition"] == "attachment"
    assert "ratelimit" in answer.headers
    parts = iter(answer)
    assert next(parts) == b"0\n"
    assert MADE == ["0"], "the rest is made when it is asked for"
    assert b"".join(parts) == b"1\n2\n"
    answer.close()


def test_a_guarded_view_streams_to_its_own_visitors():
    answer = Client().get("/export_guarded", headers={"host": "shop.example"})
    assert (answer.status_code, answer["content-type"]) == (200, "text/csv")
    assert (answer["content-disposition"], "ratelimit" in answer.headers) == ("attachment", True)
    parts = iter(answer)
    assert next(parts) == b"0\n"
    assert MADE == ["0"], "the rest is made when it is asked for"
    assert b"".join(parts) == b"1\n2\n"
    answer.close()


@pytest.mark.parametrize(
    "address", ["/agents/actions/export", "/agents/actions/export_async", "/export_guarded"], ids=lambda one: one[-7:]
)
async def test_streams_are_passed_on_under_asgi(address):
    answer: Any = await AsyncClient().get(address)
    assert (answer.status_code, answer["content-type"]) == (200, "text/csv")
    assert answer.streaming
    assert [part async for part in answer if part] == [b"0\n", b"1\n", b"2\n"]
    answer.close()


def test_a_stream_of_an_asynchronous_view_is_read_whole_under_wsgi():
    answer = Client().get("/agents/actions/export_async", headers={"host": "shop.example"})
    assert b"".join(answer) == b"0\n1\n2\n"


def test_a_visitor_who_leaves_ends_an_endless_stream():
    ENDED.clear()
    answer = Client().get("/agents/actions/tick", headers={"host": "shop.example"})
    assert next(iter(answer)) == b"tick"
    answer.close()
    assert ENDED.wait(30)


def test_a_page_is_read_whole_and_other_doors_answer_as_ever():
    answer = Client().get("/agents/actions/page", headers={"host": "shop.example"})
    assert b"Orders" in b"".join(answer)
    called = Client().post("/agents/export/invoke", '{"input": {}}', content_type="application/json")
    assert called.json() == "0\n1\n2\n"
