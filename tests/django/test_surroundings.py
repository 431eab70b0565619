"""What stands around: the per-site cache in either order, the log of a failure, Django's own TestCase."""

import json
import logging
import sys
from io import StringIO
from types import ModuleType

import pytest
from awp_publish_django.publication import MIDDLEWARE
from awp_publish_django.store import DjangoStore
from django.core.cache import cache
from django.core.checks import run_checks
from django.core.exceptions import MiddlewareNotUsed
from django.core.management import call_command
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.test import Client, override_settings
from django.urls import path
from django.views.decorators.http import require_GET, require_POST

from awp_publish import Approval, Site
from tests.django.shop.models import Book
from tests.django.sites import make_site
from tests.http.test_real_server import wait_until

SEEN: list[str] = []
UPDATE, FETCH = (f"django.middleware.cache.{name}CacheMiddleware" for name in ("Update", "FetchFrom"))


@require_GET
def whose(request: HttpRequest) -> JsonResponse:
    SEEN.append(request.headers.get("x-name", ""))
    return JsonResponse({"name": SEEN[-1]})


@require_GET
def fail(request: HttpRequest) -> JsonResponse:
    raise RuntimeError("something of the view")


@require_POST
def add(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"id": Book.objects.create(title="Emma").pk})


def note_host(get_response):
    def answer(request: HttpRequest) -> HttpResponse:
        request.host = request.get_host()  # type: ignore[attr-defined]
        return get_response(request)

    return answer


def tell_host(get_response):
    def answer(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response["X-Host"] = getattr(request, "host", "unknown")
        return response

    return answer


def make_shop(**options: object) -> Site:
    site = make_site(**options)
    site.declare("whose", method="GET", path="/whose", description="Say whose.", rate_limit="100/minute")
    site.declare("fail", method="GET", path="/fail", description="Fail.")
    site.declare("add", method="POST", path="/add", description="Add.", idempotency=True)
    return site


urlpatterns = [path("whose", whose), path("fail", fail), path("add", add)]
site, tested, guarded = make_shop(), make_shop(store=DjangoStore()), make_site()
guarded.declare(
    "whose", method="GET", path="/whose", description="Say whose.", rate_limit="9/minute", guard_routes=True
)


@pytest.fixture(autouse=True)
def _project():
    SEEN.clear()
    with override_settings(ROOT_URLCONF=__name__, AWP_PUBLISH={"SITE": f"{__name__}.site"}):
        yield


def call(agent: str, **headers: str):
    body = json.dumps({"input": {}})
    client = Client(raise_request_exception=False)
    return client.post(f"/agents/{agent}/invoke", body, content_type="application/json", headers=headers)


@pytest.mark.parametrize("order", [[UPDATE, MIDDLEWARE, FETCH], [UPDATE, FETCH, MIDDLEWARE]])
def test_the_per_site_cache_keeps_no_answer_of_ours_for_others(order):
    cache.clear()
    with override_settings(MIDDLEWARE=order):
        for name in ("ann", "bob"):
            answer = Client().get("/agents/actions/whose", headers={"x-name": name})
            assert answer.json() == {"name": name}
            assert Client().get("/agent.json").status_code == 200


def test_the_traceback_of_a_failure_has_the_request_id_that_the_caller_got(caplog):
    with caplog.at_level(logging.ERROR, logger="django.request"):
        answer = call("fail").json()
    written = [record for record in caplog.records if record.exc_info and record.exc_info[1] is not None]
    assert f"request_id={answer['request_id']}" in str(getattr(written[0].exc_info[1], "__notes__", ""))


def test_an_approval_takes_effect_in_a_worker_of_wsgi_that_is_only_read(tmp_path, monkeypatch):
    def agents() -> list[str]:
        return [agent["id"] for agent in Client().get("/.well-known/woa.json").json()["agents"]]

    hidden = make_shop(plugins=[Approval(str(tmp_path / "approved.json"))])
    monkeypatch.setitem(globals(), "hidden", hidden)
    with override_settings(AWP_PUBLISH={"SITE": f"{__name__}.hidden"}):
        assert agents() == []
        hidden.approve("whose")
        wait_until(lambda: agents() == ["whose"])


def test_guarded_actions_work_in_a_test_case_whose_transaction_holds_the_database():
    hosts = ["*", "testserver"]  # as Django's test runner sets them
    with (
        override_settings(ALLOWED_HOSTS=hosts, AWP_PUBLISH={"SITE": f"{__name__}.tested"}),
        transaction.atomic(),
    ):
        Book.objects.create(title="Persuasion")
        first = call("add", **{"idempotency-key": "once"})
        assert call("add", **{"idempotency-key": "once"}).json() == first.json()
        assert Book.objects.count() == 2
        transaction.set_rollback(True)


@pytest.mark.parametrize("patched", ["thread", "socket"])
def test_calls_are_refused_where_eventlet_has_replaced_threads_and_a_check_says_why(monkeypatch, patched):
    eventlet = ModuleType("eventlet.patcher")
    eventlet.is_monkey_patched = patched.__eq__  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "eventlet.patcher", eventlet)
    answer, is_refused = call("whose"), patched == "thread"
    assert answer.status_code == (503 if is_refused else 200)
    assert ("gthread" in answer.json().get("detail", "")) is is_refused
    assert Client().get("/agent.json").status_code == 200
    assert ("awp_publish.E005" in {message.id for message in run_checks(tags=["agents"])}) is is_refused
    with override_settings(AWP_PUBLISH={"SITE": f"{__name__}.guarded"}):
        assert Client().get("/whose", headers={"host": "shop.example"}).status_code == answer.status_code


def decline(get_response):
    raise MiddlewareNotUsed("not in this project")


def test_middleware_above_that_is_not_used_costs_no_call():
    with override_settings(MIDDLEWARE=[f"{__name__}.decline", f"{__name__}.tell_host", MIDDLEWARE]):
        assert call("whose").status_code == 200


def test_a_call_of_the_command_with_a_key_is_made_once():
    for _ in range(2):
        call_command("agents", "call", "add", "--key", "once for all", stdout=StringIO())
    assert Book.objects.count() == 1


def test_middleware_above_sees_what_middleware_below_has_set_on_a_request():
    order = [f"{__name__}.tell_host", MIDDLEWARE, f"{__name__}.note_host"]
    with override_settings(MIDDLEWARE=order):
        assert [call("whose")["x-host"], call("whose")["x-host"]] == ["testserver", "testserver"]
