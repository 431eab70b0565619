"""Browsing through the AWP door: pages are reached as a visitor reaches them, and whatever they do is answered."""

import asyncio
import threading
import time

import pytest
from starlette.applications import Starlette
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Mount, Route

from awp_publish import AgentPublisher, Limits, Site
from awp_publish.http.exchange import AsgiApp, Receive, Scope, Send
from tests.client import TestClient
from tests.plugins.awp.awp_client import AwpClient
from tests.plugins.awp.awp_site import BACKGROUND_RUNS, ROUTES, make_site, page, publish


@pytest.fixture
def client(open_client) -> TestClient:
    return open_client(publish(make_site(limits=Limits(timeout=30))))


@pytest.fixture
def caller(client):
    with AwpClient.greeted(client) as caller:
        yield caller


def read(caller: AwpClient, session: str) -> str:
    """What a page says, all of it."""
    return str(caller.do("page.observe", session_id=session)["som"])


def test_a_page_is_opened_observed_acted_on_and_extracted_from(caller):
    session = caller.create()
    answer = caller.do("page.navigate", session_id=session, url="https://shop.example/")
    assert (answer["url"], answer["status"], answer["som_ready"]) == ("https://shop.example/", 200, True)
    assert answer["content_type"].startswith("text/html")
    assert answer["html_bytes"] > 0
    assert {"load_ms", "fetch_ms", "pipeline_ms", "title", "som_bytes"} <= set(answer)
    observed = caller.do("page.observe", session_id=session)
    assert observed["som"]["title"] == "Home"
    target = {"text": "Next", "role": "link"}
    acted = caller.do("page.act", session_id=session, intent={"action": "click", "target": target})
    assert (acted["status"], acted["effects"]["navigated"]) == ("ok", True)
    data = caller.do("page.extract", session_id=session, fields={"title": {"role": "heading", "level": 1}})
    assert data["data"] == {"title": "Next"}
    assert data["provenance"]["title"].startswith("e_")


def test_a_form_is_filled_in_and_its_cookie_is_kept(caller):
    session = caller.create()
    caller.do("page.navigate", session_id=session, url="/enter")
    caller.do("page.act", session_id=session, intent={"action": "type", "target": {"css": "input"}, "value": "Ann"})
    caller.do("page.act", session_id=session, intent={"action": "click", "target": {"css": "button"}})
    assert "Hello Ann." in read(caller, session)
    assert caller.do("session.cookies.get", session_id=session)["count"] == 1
    other = caller.create()
    caller.do("page.navigate", session_id=other, url="/")
    assert "Hello nobody." in read(caller, other)


def test_requests_are_those_of_a_visitor(open_client):
    headers = {"authorization": "Bearer secret", "cookie": "session=secret", "x-forwarded-for": "192.0.2.7"}
    with AwpClient.greeted(open_client(publish()), headers) as caller:
        session = caller.create()
        caller.do("page.navigate", session_id=session, url="/echo?a=b%20c")
        said = read(caller, session)
    assert "secret" not in said
    for shown in ("[host=shop.example]", "[scheme=https]", "[path=/echo]", "[query=a=b%20c]", "[client=testclient]"):
        assert shown in said
    assert "[x-forwarded-for=192.0.2.7]" in said
    assert "upgrade" not in said
    assert "sec-websocket" not in said


@pytest.mark.parametrize(
    "url", ["https://evil.example/", "//evil.example/", "http://127.0.0.1:1/", "file:///etc/passwd", "javascript:1"]
)
def test_foreign_addresses_are_refused(caller, url):
    session = caller.create()
    assert caller.fail("page.navigate", session_id=session, url=url)["code"] in ("PERMISSION_DENIED", "UNSUPPORTED")


def test_a_redirect_to_elsewhere_is_not_followed(caller):
    session = caller.create()
    assert caller.fail("page.navigate", session_id=session, url="/away")["code"] == "NAVIGATION_FAILED"


def test_redirects_in_a_circle_end(caller):
    session = caller.create()
    assert caller.fail("page.navigate", session_id=session, url="/circle")["code"] == "NAVIGATION_FAILED"


def test_a_page_that_raises_is_a_failed_page_and_tells_nothing(open_client, caplog):
    client = TestClient(publish(), base_url="https://shop.example", raise_server_exceptions=False)
    with client, AwpClient.greeted(client) as caller:
        session = caller.create()
        answer = caller.ask("page.navigate", {"session_id": session, "url": "/fail"})
        assert answer["error"]["code"] == "NAVIGATION_FAILED"
        assert "secret" not in str(answer)
        assert caller.do("page.navigate", session_id=session, url="/")["status"] == 200
    assert "a bug with a secret in it" in caplog.text


def test_a_page_that_takes_too_long_is_a_timeout_and_leaves_the_page_before(caller):
    session = caller.create()
    caller.do("page.navigate", session_id=session, url="/next")
    error = caller.fail("page.navigate", session_id=session, url="/sleep", timeout_ms=50)
    assert (error["code"], error["details"]["timeout_ms"]) == ("TIMEOUT", 50)
    assert caller.do("page.observe", session_id=session)["som"]["title"] == "Next"
    wait = {"until": "load", "timeout_ms": 50}
    assert caller.fail("page.navigate", session_id=session, url="/sleep", wait=wait)["code"] == "TIMEOUT"
    quick = caller.create(timeout_ms=50)
    assert caller.fail("page.navigate", session_id=quick, url="/sleep")["code"] == "TIMEOUT"


@pytest.mark.parametrize(
    ("wait", "param"), [(7, "wait"), ({"until": "never"}, "wait.until"), ({"timeout_ms": -1}, "timeout_ms")]
)
def test_a_wait_that_cannot_end_is_refused(caller, wait, param):
    session = caller.create()
    error = caller.fail("page.navigate", session_id=session, url="/", wait=wait)
    assert (error["code"], error["details"]["param"]) == ("INVALID_REQUEST", param)


def test_a_page_without_end_is_cut_off(open_client, monkeypatch):
    for where in ("door", "sessions"):
        monkeypatch.setattr(f"awp_publish.plugins.awp.{where}.PAGE_BYTES", 300_000)
    client = open_client(publish(make_site()))
    with AwpClient.greeted(client) as caller:
        session = caller.create()
        assert caller.fail("page.navigate", session_id=session, url="/drip")["code"] == "NAVIGATION_FAILED"
        assert caller.do("page.navigate", session_id=session, url="/")["status"] == 200


def test_a_large_page_is_a_page(caller):
    session = caller.create()
    assert caller.do("page.navigate", session_id=session, url="/large")["html_bytes"] > 200_000


def test_work_after_the_answer_of_a_page_is_completed(caller):
    BACKGROUND_RUNS.clear()
    session = caller.create()
    caller.do("page.navigate", session_id=session, url="/mail")
    caller.do("session.close", session_id=session)
    deadline = time.monotonic() + 30
    while not BACKGROUND_RUNS:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_our_own_pages_are_pages(caller):
    session = caller.create()
    assert caller.do("page.navigate", session_id=session, url="/agent.json")["status"] == 200
    assert caller.fail("page.navigate", session_id=session, url="/awp")["code"] == "NAVIGATION_FAILED"


def test_a_key_acts_once(caller):
    session = caller.create()
    intent = {"action": "type", "target": {"css": "input"}, "value": "Ann"}
    caller.do("page.navigate", session_id=session, url="/enter")
    params = {"session_id": session, "intent": intent}
    first, again = (caller.ask("page.act", params, key="k-1")["result"] for _ in range(2))
    assert first == again
    other = {"session_id": session, "intent": {**intent, "value": "Ben"}}
    assert caller.ask("page.act", other, key="k-1")["error"]["code"] == "CONFLICT"


def test_answers_under_many_keys_are_not_all_remembered(caller):
    session = caller.create()
    caller.do("page.navigate", session_id=session, url="/enter")

    def turn_to(number: int, key: str) -> int:
        intent = {"action": "type", "target": {"css": "input"}, "value": str(number)}
        answer = caller.ask("page.act", {"session_id": session, "intent": intent}, key=key)
        return int(answer["result"]["effects"]["som_cursor"])

    first = turn_to(0, "k-0")
    cursors = [turn_to(number, f"k-{number}") for number in range(1, 65)]
    assert turn_to(64, "k-64") == cursors[-1]
    assert turn_to(0, "k-0") > cursors[-1] > first


def test_a_large_page_is_looked_at_without_holding_up_others(caller):
    session, other = caller.create(), caller.create()
    caller.do("page.navigate", session_id=session, url="/large")
    asked = [caller.say("page.observe", {"session_id": item, "mode": "snapshot"}) for item in (session, other)]
    answers = {(answer := caller.hear())["id"]: answer for _ in asked}
    assert answers[asked[0]]["result"]["som"]["title"] == "Large"
    assert answers[asked[1]]["error"]["message"] == "No page loaded yet"


def test_requests_of_one_session_keep_their_order_and_others_need_not_wait(open_client):
    begun, go = threading.Event(), threading.Event()

    def gate(request: Request) -> HTMLResponse:
        begun.set()
        go.wait(30)
        return page("Gate")

    application = Starlette(routes=[Route("/gate", gate), Route("/next", lambda request: page("Next"))])
    with AwpClient.greeted(open_client(AgentPublisher(application, site=make_site()))) as caller:
        slow, quick = caller.create(), caller.create()
        first = caller.say("page.navigate", {"session_id": slow, "url": "/gate"})
        second = caller.say("page.observe", {"session_id": slow})
        assert begun.wait(30)
        assert caller.do("page.navigate", session_id=quick, url="/next")["title"] == "Next"
        go.set()
        assert caller.hear()["id"] == first
        observed = caller.hear()
        assert observed["id"] == second
        assert observed["result"]["som"]["title"] == "Gate"


def test_a_closed_session_answers_nothing_that_comes_after(caller):
    session = caller.create()
    asked = [
        caller.say("page.navigate", {"session_id": session, "url": "/"}),
        caller.say("session.close", {"session_id": session}),
        caller.say("page.observe", {"session_id": session}),
    ]
    answers = {(answer := caller.hear())["id"]: answer for _ in asked}
    assert [answers[item].get("error", {}).get("code") for item in asked] == [None, None, "NOT_FOUND"]


def meeting_site(patience: float = 20) -> Starlette:
    """A site with two pages of which each waits for the other to be asked for, and a count of its pages under way."""
    here = {"a": asyncio.Event(), "b": asyncio.Event()}
    under_way: list[str] = []

    async def meet(request: Request) -> HTMLResponse:
        name = request.path_params["name"]
        here[name].set()
        try:
            async with asyncio.timeout(patience):
                await here["b" if name == "a" else "a"].wait()
        except TimeoutError:
            return page("Alone")
        return page("Together")

    async def count(request: Request) -> HTMLResponse:
        under_way.append("x")
        most = len(under_way)
        await asyncio.sleep(0.01)
        under_way.pop()
        return page(f"{most} under way")

    site = Starlette(routes=[Route("/meet/{name}", meet), Route("/count", count)])
    site.add_middleware(AgentPublisher, site=make_site(limits=Limits(timeout=30)))
    return site


@pytest.mark.parametrize(
    ("wants", "titles"),
    [
        ({"concurrency": True}, {"Together"}),
        ({"concurrency": "pages"}, {"Together"}),
        ({"features": ["concurrency"]}, {"Together"}),
        ({"concurrency": False}, {"Alone", "Together"}),
        ({}, {"Alone", "Together"}),
    ],
)
def test_pages_of_one_session_are_opened_at_the_same_time_for_a_client_that_wants_it(open_client, wants, titles):
    patience = 20 if len(titles) == 1 else 0.02
    with AwpClient.greeted(open_client(meeting_site(patience)), wants=wants) as caller:
        session = caller.create()
        other = caller.do("page.create", session_id=session)["page_id"]
        caller.say("page.navigate", {"session_id": session, "url": "/meet/a"}, key="first")
        caller.say("page.navigate", {"session_id": session, "page_id": other, "url": "/meet/b"}, key="second")
        answers = [caller.hear(), caller.hear()]
        assert {answer["result"]["title"] for answer in answers} == titles


def test_requests_about_one_page_or_all_of_a_session_keep_their_order_even_then(open_client):
    with AwpClient.greeted(open_client(meeting_site()), wants={"concurrency": True}) as caller:
        session = caller.create()
        navigate = {"session_id": session, "url": "/count"}
        asked = [
            caller.say("page.navigate", navigate),
            caller.say("page.navigate", {**navigate, "page_id": "p_1"}),
            caller.say("page.close", {"session_id": session, "page_id": "p_1"}),
            caller.say("page.observe", {"session_id": session, "page_id": "p_1"}),
            caller.say("page.create", {"session_id": session}),
            caller.say("page.navigate", navigate),
        ]
        answers = [caller.hear() for _ in asked]
        assert [answer["id"] for answer in answers] == asked
        codes = [answer.get("error", {}).get("code") for answer in answers]
        assert codes == [None, None, None, "NOT_FOUND", None, None]
        assert {answers[at]["result"]["title"] for at in (0, 1, 5)} == {"1 under way"}


@pytest.mark.parametrize("wants", [{"concurrency": 1}, {"concurrency": {}}, {"concurrent": [1]}])
def test_a_wish_for_concurrency_that_cannot_be_read_is_refused(client, wants):
    with AwpClient.open(client) as caller:
        assert caller.fail("awp.hello", wants=wants)["code"] == "INVALID_REQUEST"


def test_a_client_that_wants_it_is_told_what_its_actions_made_of_a_page(client):
    with AwpClient.greeted(client, wants={"events": ["page.som_mutation", "page.telemetry"]}) as caller:
        session = caller.create()
        caller.do("page.navigate", session_id=session, url="/enter")
        before = caller.do("page.observe", session_id=session)
        params = {"intent": {"action": "type", "target": {"css": "input"}, "value": "Ann"}}
        caller.do("page.act", session_id=session, **params)
        event = caller.hear()
        assert event["meta"].keys() == {"trace_id", "span_id"}
        assert (event["type"], event["method"], "id" in event) == ("event", "page.som_mutation", False)
        told = event["params"]
        assert (told["session_id"], told["page_id"]) == (session, "p_1")
        asked = {"session_id": session, "mode": "mutations", "cursor": before["cursor"]}
        changes = caller.do("page.observe", **asked)
        assert (told["patch"], told["cursor"]) == (changes["patch"], f"c:{changes['cursor']}")
        assert "Ann" in str(told["patch"])
        caller.do("page.navigate", session_id=session, url="/next")
        assert caller.hear()["method"] == "page.som_mutation"


# --- Where the site is ---


def shop_below(path: str, url: str) -> Starlette:
    inner = Starlette(routes=[Route("/", lambda request: page("Home")), Route("/next", lambda request: page("Next"))])
    inner.add_middleware(AgentPublisher, site=Site("Shop", "Sells.", url=url, plugins=["awp"]))
    return Starlette(routes=[Mount(path, inner), Route("/next", lambda request: page("Outside"))])


@pytest.mark.parametrize("outside", [True, False])
def test_a_mounted_site_is_browsed_below_its_path(open_client, outside):
    application = shop_below("/shop", "https://shop.example/shop")
    if outside:
        inner = Starlette(routes=[Route("/next", lambda request: page("Next"))])
        published = AgentPublisher(inner, site=Site("Shop", "S.", url="https://shop.example/shop", plugins=["awp"]))
        application = Starlette(routes=[Mount("/shop", published), Route("/next", lambda request: page("Outside"))])
    with open_client(application).websocket_connect("/shop/awp") as socket:
        caller = AwpClient(socket)
        caller.do("awp.hello")
        session = caller.create()
        assert caller.do("page.navigate", session_id=session, url="https://shop.example/shop/next")["title"] == "Next"
        assert "error" in caller.ask("page.navigate", {"session_id": session, "url": "https://shop.example/next"})


def test_a_proxy_may_take_the_sites_path_off(open_client):
    inner = Starlette(routes=[Route("/next", lambda request: page("Next"))])
    site = Site("Shop", "Sells.", url="https://shop.example/shop", plugins=["awp"])
    with AwpClient.greeted(open_client(AgentPublisher(inner, site=site))) as caller:
        session = caller.create()
        assert caller.do("page.navigate", session_id=session, url="https://shop.example/shop/next")["title"] == "Next"


def test_a_site_without_lifespan_is_browsed_all_the_same():
    client = TestClient(publish(), base_url="https://shop.example")  # not entered: no lifespan, a loop for each socket
    with AwpClient.greeted(client) as caller:
        session = caller.create()
        assert caller.do("page.navigate", session_id=session, url="/next")["title"] == "Next"


class Wrapping:
    """Middleware that keeps what it wraps under a name of its own."""

    def __init__(self, app: AsgiApp) -> None:
        self._wrapped = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._wrapped(scope, receive, send)


def test_middleware_between_us_and_the_pages_may_call_what_it_wraps_as_it_likes(open_client):
    app = Starlette(routes=ROUTES)
    app.add_middleware(Wrapping)
    app.add_middleware(AgentPublisher, site=make_site())
    app.add_middleware(SessionMiddleware, secret_key="a secret of the tests")
    with AwpClient.greeted(open_client(app)) as caller:
        session = caller.create()
        caller.do("page.navigate", session_id=session, url="/")
        assert "Hello nobody." in str(caller.do("page.observe", session_id=session)["som"])
