"""Documents and calls, under WSGI and ASGI alike, through Django's own test clients."""

import asyncio
import json
import time
from typing import Any, Protocol
from urllib.parse import urlsplit

import httpx2
import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import Permission, User
from django.db import transaction
from django.test import AsyncClient, Client

from awp_publish.http.running import running
from awp_publish.plugins.jobs.background import BACKGROUNDS
from tests.django.shop.asgi import application
from tests.django.shop.models import Book

HOST = "shop.example"


class Agent(Protocol):
    """Calls agents of the shop under one of the two."""

    async def get(self, path: str, **headers: str) -> Any: ...

    async def post(self, path: str, document: object, **headers: str) -> Any: ...

    async def tell(self, path: str, document: object, **headers: str) -> Any: ...

    async def call(self, agent: str, given: object, **headers: str) -> Any: ...

    async def login(self, user: User) -> None: ...


class Wsgi:
    def __init__(self) -> None:
        self.client = Client(raise_request_exception=False, SERVER_NAME=HOST)

    async def get(self, path, **headers):
        return await sync_to_async(self.client.get)(path, headers=headers)

    async def post(self, path, document, **headers):
        post = sync_to_async(self.client.post)
        return await post(path, json.dumps(document), content_type="application/json", headers=headers)

    tell = post

    async def call(self, agent, given, **headers):
        return await self.post(f"/agents/{agent}/invoke", {"input": given}, **headers)

    async def login(self, user):
        await sync_to_async(self.client.force_login)(user)


class Asgi:
    def __init__(self) -> None:
        self.client = AsyncClient(raise_request_exception=False)

    async def get(self, path, **headers):
        return await self.client.get(path, headers=headers)

    async def post(self, path, document, **headers):
        body = json.dumps(document)
        return await self.client.post(path, body, content_type="application/json", headers=headers)

    async def tell(self, path, document, **headers):
        """Past the test client, which always says that it asks for the host testserver."""
        cookies = {name: morsel.value for name, morsel in self.client.cookies.items()}
        transport = httpx2.ASGITransport(application)
        async with httpx2.AsyncClient(transport=transport, base_url=f"https://{HOST}", cookies=cookies) as http:
            return await http.post(path, json=document, headers=headers)

    async def call(self, agent, given, **headers):
        return await self.post(f"/agents/{agent}/invoke", {"input": given}, **headers)

    async def login(self, user):
        await sync_to_async(self.client.force_login)(user)


@pytest.fixture(params=[Wsgi, Asgi])
def agent(request: pytest.FixtureRequest) -> Agent:
    made: Agent = request.param()
    return made


@pytest.fixture
async def user() -> User:
    return await User.objects.acreate(username="ann")


async def test_documents_are_served_with_their_headers(agent):
    answer = await agent.get("/agent.json")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert {"etag", "last-modified", "cache-control", "access-control-allow-origin", "link"} <= {
        name.lower() for name in answer.headers
    }
    assert (await agent.get("/agent.json", **{"if-none-match": answer.headers["etag"]})).status_code == 304
    assert "search" in answer.content.decode()


async def test_a_synchronous_view_answers_a_call(agent):
    await Book.objects.acreate(title="Emma")
    answer = await agent.call("search", {"q": "mm"})
    assert (answer.status_code, answer.json()) == (200, {"titles": ["Emma"]})


async def test_an_asynchronous_view_answers_a_call(agent):
    await Book.objects.acreate(title="Emma")
    answer = await agent.call("search_later", {"q": "mm"})
    assert (answer.status_code, answer.json()) == (200, {"titles": ["Emma"]})


async def test_a_function_without_a_route_answers_a_call(agent):
    answer = await agent.call("add", {"first": 2, "second": 3})
    assert answer.json() == 5


@pytest.mark.parametrize("kind", ["wsgi", "asgi"])
def test_a_function_without_a_route_sees_the_database_as_its_request_does(kind, monkeypatch):
    # The record of calls is written by another connection, which waits for our transaction as long as it may.
    monkeypatch.setattr("awp_publish_django.store.UNLOCKED_WAIT_SECONDS", 0.1)

    async def post_async(*given: Any, **options: Any) -> Any:
        return await AsyncClient().post(*given, **options)

    post = Client().post if kind == "wsgi" else async_to_sync(post_async)
    with transaction.atomic():
        Book.objects.create(title="not committed")
        answer = post("/agents/count_books/invoke", '{"input": {}}', content_type="application/json")
        assert answer.json() == 1
        transaction.set_rollback(True)
    assert Book.objects.count() == 0


async def test_a_wrong_input_never_reaches_the_view(agent):
    answer = await agent.call("search", {"q": 3})
    assert answer.status_code == 422
    assert answer.json()["errors"] == [{"pointer": "/q", "detail": "must be a string, not 3"}]


async def test_a_call_runs_in_the_transaction_of_its_request(agent):
    answer = await agent.call("add_book", {"title": "Emma"})
    assert (answer.status_code, answer.json()) == (201, {"atomic": True, "title": "Emma"})
    assert (await agent.call("add_book", {"title": "cursed"})).status_code == 500
    assert [book.title async for book in Book.objects.all()] == ["Emma"]


async def test_a_call_needs_no_csrf_token_and_a_form_of_the_site_still_does(agent):
    await agent.login(await User.objects.acreate(username="ann"))
    agent.client.handler.enforce_csrf_checks = True
    assert (await agent.call("add_book", {"title": "Emma"})).status_code == 201
    if isinstance(agent, Wsgi):
        assert (await sync_to_async(agent.client.post)("/plain")).status_code == 403
    else:
        assert (await agent.client.post("/plain")).status_code == 403


async def test_a_page_of_another_site_calls_nothing_with_the_visitors_cookies(agent, user):
    await agent.login(user)
    answer = await agent.tell("/agents/whoami/invoke", {"input": {}}, origin="https://evil.example")
    assert answer.status_code == 403
    assert answer.json()["code"] == "CROSS_SITE_COOKIES"


async def test_the_logged_in_user_is_the_principal_and_the_session_is_kept(agent, user):
    await agent.login(user)
    for seen in (1, 2):
        answer = await agent.call("whoami", {}, **{"user-agent": "agent/1"})
        assert answer.json() == {
            "user": "ann",
            "caller": str(user.pk),
            "seen": seen,
            "agent": "agent/1",
            "language": "en",
        }
    guarded = await agent.call("guarded", {})
    assert guarded.json() == {"user": "ann"}


async def test_nobody_known_is_told_to_log_in(agent):
    assert (await agent.call("guarded", {})).json()["code"] == "AUTHENTICATION_REQUIRED"
    answer = await agent.call("secret", {})
    assert answer.status_code == 401
    assert "log in" in answer.json()["detail"]


async def test_a_login_required_view_knows_its_visitor(agent, user):
    await agent.login(user)
    assert (await agent.call("secret", {})).json() == {"secret": "ann"}


async def test_permissions_are_scopes(agent, user):
    await agent.login(user)
    assert (await agent.call("stock", {})).json()["code"] == "INSUFFICIENT_SCOPE"
    await user.user_permissions.aadd(await Permission.objects.aget(codename="add_book"))
    assert (await agent.call("stock", {})).json() == {"user": "ann"}


async def test_class_based_views_answer_calls(agent, user):
    await agent.login(user)
    assert (await agent.call("read_book", {"pk": 7})).json() == {"pk": 7}
    assert (await agent.call("read_book", {"pk": -7})).status_code == 422


async def test_a_form_takes_a_call_and_says_what_is_wrong(agent):
    good = {"title": "Emma", "copies": 2, "email": "ann@shop.example"}
    answer = await agent.call("order", good)
    assert (answer.status_code, answer.json()) == (200, {"location": "/thanks/"})
    assert (await agent.call("order", {**good, "copies": 9})).json()["errors"][0]["pointer"] == "/copies"
    refused = (await agent.call("order", {**good, "title": "rare"})).json()
    assert (refused["code"], refused["errors"]) == (
        "INVALID_INPUT",
        [{"pointer": "/copies", "detail": "There is only one."}],
    )
    refused = (await agent.call("order", {**good, "title": "sold out"})).json()
    assert refused["errors"] == [{"pointer": "", "detail": "This one is sold out."}]


async def test_messages_for_people_tell_whether_a_redirect_is_a_success(agent):
    assert (await agent.call("subscribe", {"letter": "weekly"})).json() == {
        "location": "/thanks/",
        "messages": ["You get weekly & more."],
    }
    refused = await agent.call("subscribe", {"letter": "secret"})
    assert (refused.status_code, refused.json()["code"]) == (422, "REFUSED")
    assert refused.json()["detail"] == "Nobody gets the secret letter."


async def test_a_form_read_by_a_function_gets_what_was_sent(agent):
    given = {"title": "Ä & b", "copies": 2, "email": "ann@shop.example", "wrapping": "gift"}
    assert (await agent.call("order_by_hand", given)).json() == given


async def test_a_model_form_takes_a_call(agent):
    assert (await agent.call("new_book", {"title": "Emma", "pages": 3})).json() == {"location": "/thanks/"}
    assert [(book.title, book.pages) async for book in Book.objects.all()] == [("Emma", 3)]


async def test_language_prefixes_and_expressions_are_filled_in(agent):
    answer = await agent.call("greet", {"name": "ann"}, **{"accept-language": "de"})
    assert answer.json() == {"language": "en", "name": "ann"}
    assert (await agent.call("greet", {"name": "not a slug"})).status_code == 422
    assert (await agent.call("old_archive", {"year": "1999"})).json() == {"year": "1999"}
    assert (await agent.call("old_archive", {"year": "99"})).status_code == 422


async def test_a_background_job_reaches_its_view_through_all_of_django(agent, user):
    await agent.login(user)
    accepted = await agent.call("post_later", {})
    assert accepted.status_code == 202
    path = urlsplit(accepted.headers["location"]).path
    job = (await agent.get(path)).json()
    until = time.monotonic() + 30
    while job["status"] not in ("done", "failed"):
        assert time.monotonic() < until
        await asyncio.sleep(0.05)
        job = (await agent.get(path)).json()
    assert (job["status"], job["result"]) == ("done", {"user": "ann", "path": "/later"})


async def test_a_worker_process_finds_the_jobs_of_the_project():
    found: list[object] = []
    async with running(application, {BACKGROUNDS: found}):
        assert len(found) == 1


async def test_other_paths_are_the_projects_own(agent):
    assert (await agent.get("/page")).content == b"<p>a page</p>"
    assert (await agent.get("/agents/nobody")).status_code == 404


async def test_an_agent_that_is_unknown_and_a_body_that_is_too_large_are_refused(agent):
    assert (await agent.call("nobody", {})).json()["code"] == "UNKNOWN_AGENT"
    assert (await agent.call("add", {"first": 1, "second": "x" * 1_100_000})).json()["code"] == "BODY_TOO_LARGE"
