"""Views that fail, refuse, stream or never end, and requests that others have read before: under WSGI and ASGI."""

import asyncio
import io
import itertools
import threading
import time
from collections.abc import Iterator

import pytest
from awp_publish_django.responses import close_response
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db import transaction
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.test import Client, override_settings
from django.urls import path
from django.views.decorators.http import require_GET, require_POST

from awp_publish import Site
from tests.django.shop.models import Book
from tests.django.sites import make_site
from tests.django.test_calls import Asgi, Wsgi

site: Site = make_site()
left = threading.Event()
GIVEN = '{"input": {}}'


def _endless() -> Iterator[bytes]:
    try:
        for number in itertools.count():
            time.sleep(0.01)
            yield b"%d " % number
    finally:
        left.set()


@site.action("fail")
@require_GET
def fail(request: HttpRequest, how: str) -> HttpResponse:
    """Fail in one of several ways."""
    if how == "nothing":
        return None  # type: ignore[return-value]
    raise {
        "missing": Http404("No such book."),
        "denied": PermissionDenied("Not for you."),
        "suspicious": SuspiciousOperation("secret"),
        "bug": ZeroDivisionError("secret"),
        "exit": SystemError("secret"),
    }[how]


@site.action("stream")
@require_GET
def stream(request: HttpRequest) -> StreamingHttpResponse:
    """Answer in parts."""
    return StreamingHttpResponse(iter([b"one ", "two"]), content_type="text/plain")


@site.action("stream_async", method="GET")
@transaction.non_atomic_requests
async def stream_async(request: HttpRequest) -> StreamingHttpResponse:
    """Answer in parts that are waited for."""

    async def parts():
        yield b"one "
        yield b"two"

    return StreamingHttpResponse(parts(), content_type="text/plain")


@site.action("file")
@require_GET
def file(request: HttpRequest) -> StreamingHttpResponse:
    """Answer a file."""
    return FileResponse(io.BytesIO(b"%PDF"), content_type="application/pdf")


@site.action("endless", timeout=1)
@require_GET
def endless(request: HttpRequest) -> StreamingHttpResponse:
    """Answer in parts without end."""
    return StreamingHttpResponse(_endless(), content_type="text/plain")


@site.action("write", inputs={"type": "object", "properties": {"status": {"type": "integer"}}})
@require_POST
def write(request: HttpRequest) -> HttpResponse:
    """Write a book, and refuse with the transaction undone."""
    Book.objects.create(title="Emma")
    transaction.set_rollback(True)
    return HttpResponse("no", status=409)


urlpatterns = [
    path("fail/<slug:how>/", fail),
    path("stream/", stream),
    path("stream-async/", stream_async),
    path("file/", file),
    path("endless/", endless),
    path("write/", write),
]


@pytest.fixture(autouse=True)
def _project():
    left.clear()
    with override_settings(ROOT_URLCONF=__name__, AWP_PUBLISH={"SITE": f"{__name__}.site"}):
        yield


@pytest.fixture(params=[Wsgi, Asgi])
def agent(request):
    return request.param()


@pytest.mark.parametrize(
    ("how", "status", "code"),
    [
        ("missing", 404, "REFUSED"),
        ("denied", 403, "INSUFFICIENT_PERMISSIONS"),
        ("suspicious", 400, "REFUSED"),
        ("bug", 500, "HANDLER_FAILED"),
        ("exit", 500, "HANDLER_FAILED"),
        ("nothing", 500, "HANDLER_FAILED"),
    ],
)
async def test_an_exception_of_a_view_is_reported_without_its_code(agent, how, status, code):
    answer = await agent.call("fail", {"how": how})
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert "secret" not in answer.content.decode()


async def test_details_of_a_failure_in_debug_mode_are_not_passed_on(agent):
    with override_settings(DEBUG=True):
        answer = await agent.call("fail", {"how": "bug"})
    assert answer.json()["code"] == "HANDLER_FAILED"
    assert "secret" not in answer.content.decode()


@pytest.mark.parametrize(("action", "said"), [("stream", "one two"), ("stream_async", "one two"), ("file", "JVBERg==")])
async def test_answers_in_parts_are_told_whole(agent, action, said):
    assert (await agent.call(action, {})).json() == said


def test_a_resource_that_fails_to_close_keeps_no_other_open():
    response, closed = HttpResponse(), []
    response._resource_closers += [lambda: closed.append(True), lambda: 1 // 0]  # type: ignore[attr-defined]
    close_response(response)
    assert closed == [True]


async def test_an_answer_without_end_ends_at_the_deadline(agent):
    answer = await agent.call("endless", {})
    assert (answer.status_code, answer.json()["code"]) == (504, "HANDLER_TIMEOUT")
    assert await asyncio.to_thread(left.wait, 30)


async def test_a_refusal_with_its_transaction_undone_leaves_nothing(agent):
    answer = await agent.call("write", {"status": 409})
    assert (answer.status_code, answer.json()["detail"]) == (409, "no")
    assert not await Book.objects.aexists()


class ReadsBodies:
    """A middleware that has read the body before us, for its log."""

    sync_capable = True

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        assert request.body or request.method == "GET"  # a call of a view comes through here as well
        return self.get_response(request)


async def test_a_body_that_others_have_read_is_still_there():
    middleware = [f"{__name__}.ReadsBodies", "awp_publish_django.middleware.AgentPublisherMiddleware"]
    with override_settings(MIDDLEWARE=middleware):
        for agent in (Wsgi(), Asgi()):
            assert (await agent.call("stream", {})).json() == "one two"


def test_a_project_that_a_server_mounts_below_a_prefix():
    client = Client(SCRIPT_NAME="/sub")
    assert client.get("/agent.json").status_code == 200
    answer = client.post("/agents/stream/invoke", GIVEN, content_type="application/json")
    assert answer.json() == "one two"


@pytest.mark.parametrize("appends", [True, False])
def test_addresses_of_ours_are_not_led_to_one_with_a_slash(appends):
    middleware = [
        "django.middleware.common.CommonMiddleware",
        "awp_publish_django.middleware.AgentPublisherMiddleware",
    ]
    with override_settings(MIDDLEWARE=middleware, APPEND_SLASH=appends):
        client = Client()
        assert client.get("/agent.json").status_code == 200
        assert client.post("/agents/stream/invoke", GIVEN, content_type="application/json").status_code == 200
        assert client.get("/stream").status_code == (301 if appends else 404)
