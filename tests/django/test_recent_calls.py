"""What the admin shows: recent calls and background jobs. And that recording never costs a call."""

import asyncio
import json
import re
import threading
import time
from contextlib import closing

import pytest
from asgiref.sync import sync_to_async
from awp_publish_django.models import JobRecord, RecentCall
from awp_publish_django.publication import get_publication
from awp_publish_django.recent import MAX_PENDING, PRUNE_EVERY, Recorder
from django.contrib.auth.models import Permission, User
from django.db import connection, transaction
from django.test import AsyncClient, Client, override_settings

from awp_publish import Approval
from awp_publish.plugin import Setup
from awp_publish.plugins.approval import PLUGIN, Approvals
from awp_publish.problems import StoreUnavailable
from tests.django.shop.models import Book
from tests.django.test_calls import Asgi, Wsgi

FACTS = {
    "door": "woa",
    "action": "search",
    "principal": "7",
    "outcome": "ok",
    "status": 200,
    "ms": 1.5,
    "request_id": "one",
}


@pytest.fixture(params=[Wsgi, Asgi])
def agent(request):
    return request.param()


@pytest.fixture
def admin() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("boss"))
    return client


async def kept() -> list[RecentCall]:
    """Without those of jobs, which may be another test's."""
    return [call async for call in RecentCall.objects.exclude(door="job").order_by("pk")]


async def test_a_call_is_kept_with_what_the_record_says_and_no_input(agent):
    user = await User.objects.acreate(username="ann")
    await agent.login(user)
    answer = await agent.call("search", {"q": "secret"}, **{"x-request-id": "one"})
    assert answer.status_code == 200
    [call] = await kept()
    assert (call.door, call.action, call.caller, call.outcome, call.status) == (
        "woa",
        "search",
        str(user.pk),
        "ok",
        200,
    )
    assert (call.request_id, call.input) == ("one", None)
    assert call.milliseconds > 0


async def test_refusals_and_failures_are_kept_though_their_transactions_are_rolled_back(agent):
    await agent.call("search", {"q": 3})
    await agent.call("nobody", {})
    await agent.call("add_book", {"title": "cursed"})
    found = [(call.action, call.outcome, call.status) for call in await kept()]
    assert found == [("search", "INVALID_INPUT", 422), ("", "UNKNOWN_AGENT", 404), ("add_book", "HANDLER_FAILED", 500)]
    assert not await Book.objects.aexists()


async def test_a_background_job_is_kept_twice_as_it_was_accepted_and_as_it_was_run(agent):
    assert (await agent.call("post_later", {})).status_code == 202
    until = time.monotonic() + 30
    [call] = await kept()
    assert (call.door, call.action, call.outcome) == ("woa", "post_later", "ok")
    while not await RecentCall.objects.filter(door="job", request_id=call.request_id, outcome="ok").aexists():
        assert time.monotonic() < until
        await asyncio.sleep(0.05)


def test_the_oldest_are_forgotten():
    recorder = Recorder(20)
    for number in range(PRUNE_EVERY * 2):
        recorder({**FACTS, "request_id": str(number)})
        recorder.write()
    numbers = [int(call.request_id) for call in RecentCall.objects.exclude(door="job").order_by("pk")]
    assert 20 <= len(numbers) < 20 + PRUNE_EVERY
    assert numbers[-1] == PRUNE_EVERY * 2 - 1


class PostgresRouter:
    def db_for_write(self, model, **hints):
        return "postgres"

    db_for_read = db_for_write


@pytest.fixture(params=["sqlite", "postgres"])
def _database(request):
    if request.param == "sqlite":
        yield
        return
    request.getfixturevalue("postgres")
    with override_settings(DATABASE_ROUTERS=[f"{__name__}.PostgresRouter"]):
        yield


@pytest.mark.usefixtures("_database")
def test_values_that_a_column_cannot_take_are_kept_as_far_as_possible():
    recorder = Recorder(20)
    recorder(
        {
            **FACTS,
            "principal": "\0\ud800" + "x" * 500,
            "input": {"q": "\0\ud800", "far": float("inf"), "path": r"C:\u0000"},
        }
    )
    recorder.write()
    call = RecentCall.objects.exclude(door="job").get()
    assert call.caller == "??" + "x" * 253
    assert call.input == {"q": "??", "far": "Infinity", "path": r"C:\u0000"}


def test_waiting_records_are_limited():
    recorder = Recorder(20)
    for _ in range(MAX_PENDING + 5):
        recorder(FACTS)
    recorder.write()
    assert RecentCall.objects.exclude(door="job").count() <= MAX_PENDING


def test_a_request_that_has_read_may_write_while_calls_are_written_down():
    """As with ATOMIC_REQUESTS on SQLite: a lock that is held while one waits would have it fail at once."""
    recorder = Recorder(20)
    recorder(FACTS)

    def write() -> None:
        with closing(connection):
            recorder.write()

    writing = threading.Thread(target=write)
    with transaction.atomic():
        Book.objects.count()
        writing.start()
        time.sleep(0.3)
        Book.objects.create(title="Emma")
    writing.join()
    assert Book.objects.count() == RecentCall.objects.filter(request_id="one").count() == 1


def test_a_table_that_is_missing_fails_no_call_and_no_transaction(client, caplog):
    with connection.schema_editor() as editor:
        editor.delete_model(RecentCall)
    try:
        body = json.dumps({"input": {"q": "x"}})
        with transaction.atomic():
            for _ in range(2):
                answer = client.post("/agents/search/invoke", body, content_type="application/json")
                assert answer.status_code == 200
            Book.objects.create(title="Emma")
    finally:
        with connection.schema_editor() as editor:
            editor.create_model(RecentCall)
    assert Book.objects.count() == 1
    assert [record.message for record in caplog.records if "migrate" in record.message] != []


@pytest.mark.parametrize(
    ("value", "most"), [({}, 1000), ({"RECENT_CALLS": 0}, None), ({"RECENT_CALLS": 5}, 5)], ids=str
)
def test_the_setting_says_how_many(client, value, most):
    with override_settings(AWP_PUBLISH={"SITE": "tests.django.shop.agents.site", **value}):
        client.handler._middleware_chain = None
        recorder = get_publication().recorder
        assert (recorder and recorder._most) == most
        client.post("/agents/add/invoke", '{"input": {"first": 1, "second": 2}}', content_type="application/json")
        assert RecentCall.objects.filter(action="add").exists() is (most is not None)


# --- The admin ---


def test_the_admin_lists_calls_and_changes_none(admin, client):
    client.post("/agents/search/invoke", '{"input": {"q": 3}}', content_type="application/json")
    call = RecentCall.objects.exclude(door="job").get()
    page = admin.get("/admin/awp_publish_django/recentcall/")
    assert page.status_code == 200
    assert "INVALID_INPUT" in page.content.decode()
    one = f"/admin/awp_publish_django/recentcall/{call.pk}/change/"
    assert admin.get(one).status_code == 200
    assert admin.post(one, {"outcome": "ok"}).status_code == 403
    assert admin.get("/admin/awp_publish_django/recentcall/add/").status_code == 403
    assert admin.post(f"/admin/awp_publish_django/recentcall/{call.pk}/delete/").status_code == 403


def test_the_admin_shows_traffic_and_what_waits_for_approval(admin, client, monkeypatch, tmp_path):
    client.post("/agents/search/invoke", '{"input": {"q": "emma"}}', content_type="application/json")
    address, site = "/admin/awp_publish_django/recentcall/", get_publication().site
    page = admin.get(address).content.decode()
    assert "<caption>Calls and page reads by day</caption>" in page
    assert re.search(r'<th scope="row">\d{4}-\d\d-\d\d</th><td>[1-9]\d*</td>', page)
    assert "<svg" in page
    assert re.search(r"<caption>By action</caption>.*?<th scope=\"row\">search</th><td>[1-9]", page, re.DOTALL)
    assert "<caption>By caller</caption>" in page
    assert "What waits for approval" not in page

    approval = Setup(PLUGIN, Approval(tmp_path / "approved.json"), site)
    approval.state = Approvals(approval)
    monkeypatch.setitem(site.plugins, "approval", approval)
    site.approve("search")
    page = re.sub(r"\s+", " ", admin.get(address).content.decode())
    waiting = page[page.index("What waits for approval") :].partition("</table>")[0]
    assert '<th scope="row">add_book</th><td>new</td>' in waiting
    assert '<th scope="row">search</th>' not in waiting
    (tmp_path / "approved.json").write_text("{")
    page = admin.get(address)
    assert page.status_code == 200
    assert "approved.json cannot be read" in page.content.decode()


async def test_the_admin_shows_traffic_under_asgi_too(agent):
    client = AsyncClient()
    boss = await sync_to_async(User.objects.create_superuser)("boss")
    await sync_to_async(client.force_login)(boss)
    await agent.call("search", {"q": "emma"})
    page = (await client.get("/admin/awp_publish_django/recentcall/")).content.decode()
    assert re.search(r'<th scope="row">\d{4}-\d\d-\d\d</th><td>[1-9]\d*</td>', page)


@pytest.mark.parametrize("error", [StoreUnavailable("The store does not answer."), RuntimeError("a bug")])
def test_the_admin_lists_calls_while_the_store_does_not_answer(admin, monkeypatch, error):
    async def fail(*_):
        raise error

    monkeypatch.setattr(get_publication().site.store, "run", fail)
    page = admin.get("/admin/awp_publish_django/recentcall/")
    assert page.status_code == 200
    assert "Traffic cannot be read at the moment" in page.content.decode()


def test_the_admin_shows_no_traffic_where_none_is_kept(admin, monkeypatch):
    monkeypatch.delitem(get_publication().site.plugins, "traffic")
    page = admin.get("/admin/awp_publish_django/recentcall/")
    assert page.status_code == 200
    assert "awp-traffic" not in page.content.decode()


def test_permissions_decide_who_may_look(client):
    staff = User.objects.create_user("staff", is_staff=True)
    client.force_login(staff)
    assert client.get("/admin/awp_publish_django/recentcall/").status_code == 403
    staff.user_permissions.add(Permission.objects.get(codename="view_recentcall"))
    assert client.get("/admin/awp_publish_django/recentcall/").status_code == 200
    assert client.get("/admin/awp_publish_django/jobrecord/").status_code == 403


class StoreRouter:
    """The shop keeps its store in another database."""

    def db_for_read(self, model, **hints):
        return "store" if model in (JobRecord,) else None


@override_settings(DATABASE_ROUTERS=["tests.django.test_recent_calls.StoreRouter"])
def test_the_admin_lists_jobs_without_what_they_were_given(admin, client):
    accepted = client.post("/agents/post_later/invoke", '{"input": {}}', content_type="application/json")
    job_id = accepted.json()["job_id"]
    until = time.monotonic() + 30
    while "done" not in (page := admin.get("/admin/awp_publish_django/jobrecord/").content.decode()):
        assert time.monotonic() < until
        time.sleep(0.05)
    assert job_id in page
    assert "post_later" in page
    record = next(item for item in JobRecord.objects.all() if job_id.encode() in bytes(item.value))
    assert job_id in admin.get(f"/admin/awp_publish_django/jobrecord/{record.pk}/change/").content.decode()
    JobRecord.objects.using("store").filter(pk=record.pk).update(value=b"of another version")
    assert admin.get("/admin/awp_publish_django/jobrecord/").status_code == 200
