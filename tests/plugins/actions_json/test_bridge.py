"""The bridge: agents and runtimes, who reaches whom, one answer for each call, and bad days."""

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from awp_publish import About, AgentPublisher, Bridge, Paths, Site
from awp_publish.http.running import running
from awp_publish.plugins.actions_json import runtimes
from tests.guarded import ANN, KEYS, known_callers, make_shop
from tests.plugins.actions_json.bridge_client import End, connected

SECRET = "a-code-that-nobody-guesses-1234"
OTHER_SECRET = "another-code-that-nobody-guesses"


async def add(request: Request) -> Response:
    return JSONResponse({"sum": sum((await request.json())["numbers"])})


async def home(request: Request) -> Response:
    return HTMLResponse(
        "<!doctype html><html lang=en><title>Shop</title><body><main><h1>Shop</h1></main></body></html>"
    )


def make_bridge(bridge: str | Bridge = "bridge", **options: object) -> Site:
    site = make_shop(plugins=[bridge], authenticate=known_callers(), secret_keys=KEYS, **options)
    numbers = {"type": "array", "items": {"type": "number"}}
    site.declare(
        "add_numbers",
        method="POST",
        path="/add",
        description="Add numbers.",
        inputs={"type": "object", "properties": {"numbers": numbers}, "required": ["numbers"]},
        outputs={"type": "object", "properties": {"sum": {"type": "number"}}},
        effect="read",
    )
    payload = {"type": "object", "properties": {"slug": {"type": "string"}}, "additionalProperties": False}
    site.page(
        "/",
        id="home",
        title="Home",
        map={"signals": [{"name": "chosen", "event": "shop:chosen", "payload": payload, "description": "A choice."}]},
    )
    return site


def publish(site: Site | None = None) -> AgentPublisher:
    app = Starlette(routes=[Route("/add", add, methods=["POST"]), Route("/", home)])
    return AgentPublisher(app, site=site or make_bridge())


@pytest.fixture
async def stack():
    async with AsyncExitStack() as opened:
        yield opened


@pytest.fixture
async def app(stack):
    published = publish()
    await stack.enter_async_context(running(published))
    return published


@pytest.fixture
async def ends(app, stack):
    """A runtime and an agent of ann's."""
    tab = await stack.enter_async_context(connected(app, ANN))
    agent = await stack.enter_async_context(connected(app, ANN))
    await tab.ready()
    return tab, agent


async def test_one_time_values_are_not_kept_for_a_replay(stack):
    site = make_bridge()

    @site.agent("issue", outputs={"type": "object", "properties": {"token": {"type": "string", "readOnce": True}}})
    async def issue() -> dict[str, str]:
        """Issue a token."""
        return {"token": "given once"}

    published = publish(site)
    await stack.enter_async_context(running(published))
    agent = await stack.enter_async_context(connected(published, ANN))
    assert (await agent.ask("issue"))["output"] == {"token": "given once"}
    again = await agent.error("issue")
    assert (again["evidence"], again["recoverable"]) == ({"code": "ANSWER_NOT_KEPT"}, False)


async def test_a_failure_names_its_request_and_is_recoverable_if_the_action_may_be_repeated(stack):
    site = make_bridge()

    async def fail() -> None:
        raise RuntimeError

    for effect in ("read", "write"):
        site.agent(effect, effect=effect, description="Fail.")(fail)
    published = publish(site)
    await stack.enter_async_context(running(published))
    agent = await stack.enter_async_context(connected(published, ANN))
    for effect in ("read", "write"):
        failure = await agent.error(effect, call_id=effect)
        assert (failure["evidence"]["code"], failure["recoverable"]) == ("HANDLER_FAILED", effect == "read")
        assert len(failure["evidence"]["request_id"]) == 32


async def test_answers_that_are_kept_have_a_bound(app, stack, monkeypatch):
    monkeypatch.setattr(runtimes, "MAX_ANSWER_BYTES", 2_000)
    tab = await stack.enter_async_context(connected(app, ANN))
    agent = await stack.enter_async_context(connected(app, ANN))
    await tab.ready()
    for number in (1, 2):
        agent.call("page.info", call_id=f"c{number}")
        tab.answer(await tab.hear(), "x" * 1_500)
        await agent.hear()
    agent.call("page.info", call_id="c2")
    assert (await agent.hear())["output"] == "x" * 1_500
    agent.call("page.info", call_id="c1")
    assert (await tab.hear())["name"] == "page.info", "it was forgotten, so it is a call of its own"


async def test_a_site_that_asks_who_connects_answers_nobody_else(stack):
    published = publish(make_bridge(Bridge(auth_required=True)))
    await stack.enter_async_context(running(published))
    agent = await stack.enter_async_context(connected(published))
    assert (await agent.error("page.info"))["code"] == "permission_denied"


async def test_a_giant_ends_the_connection_and_the_call_that_waited_for_it(ends):
    tab, agent = ends
    agent.call("add_numbers", {"numbers": [1]})
    call = await tab.hear()
    tab.answer(call, "x" * 2_000_000)
    assert (await tab.hear())["error"]["evidence"] == {"max_bytes": 1_048_576}
    assert (await agent.hear())["error"]["code"] == "transport_failed"
    assert tab.close_code == 1009


async def test_too_many_messages_are_told_when_to_come_back(stack):
    published = publish(make_bridge(Bridge(messages_per_second=5)))
    await stack.enter_async_context(running(published))
    agent = await stack.enter_async_context(connected(published, ANN))
    for number in range(30):
        agent.call("nothing", call_id=f"c{number}", runtime_id="nobody")
    errors = [(await agent.hear())["error"] for _ in range(30)]
    refused = [error for error in errors if error["code"] == "permission_denied"]
    assert len(refused) >= 10
    assert all(error["evidence"]["retry_after_ms"] >= 1 for error in refused)


async def test_an_awaited_answer_is_taken_even_if_there_are_too_many_messages(stack):
    published = publish(make_bridge(Bridge(messages_per_second=5)))
    await stack.enter_async_context(running(published))
    tab = await stack.enter_async_context(connected(published, ANN))
    agent = await stack.enter_async_context(connected(published, ANN))
    await tab.ready()
    agent.call("add_numbers", {"numbers": [1]})
    call = await tab.hear()
    for _ in range(30):
        tab.answer({**call, "call_id": "of nobody"}, {})
    tab.answer(call, {"sum": 1})
    assert (await agent.hear())["output"] == {"sum": 1}
    assert (await tab.hear())["error"]["code"] == "permission_denied"


async def test_too_many_calls_and_runtimes_are_refused(ends, monkeypatch):
    tab, agent = ends
    monkeypatch.setattr(runtimes, "MAX_QUEUED", 2)
    for number in range(3):
        agent.call("add_numbers", {"numbers": [1]}, f"c{number}")
    answer = await agent.hear()
    assert (answer["call_id"], answer["error"]["code"]) == ("c2", "permission_denied")
    monkeypatch.setattr("awp_publish.plugins.actions_json.pairing.MAX_RUNTIMES", 3)
    for number in range(3):
        await tab.ready(f"more-{number}")
    call = await tab.hear()
    refused = call if call["type"] == "action_error" else await tab.hear()
    assert (refused["runtime_id"], refused["error"]["code"]) == ("more-2", "permission_denied")


async def test_nothing_is_left_when_the_server_stops(stack):
    published = publish()
    async with running(published):
        end = End(published, ANN)
        end.task = asyncio.create_task(end.run())
        await end.accepted.wait()
        await end.ready(runtime_key=SECRET)
    async with asyncio.timeout(50):
        await end.task
    assert end.close_code == 1001


def test_the_script_knows_the_addresses_of_its_site_and_may_be_kept(open_client):
    about = About(updated=datetime(2026, 1, 2, tzinfo=UTC))
    paths = Paths(bridge="/wire")
    site = Site("Shop", "Sells.", url="https://shop.example/sub", about=about, plugins=["bridge"], paths=paths)
    client = open_client(AgentPublisher(Starlette(), site=site))
    answer = client.get("/agents/actions.js")
    assert answer.headers["last-modified"] == "Fri, 02 Jan 2026 00:00:00 GMT"
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert '"bridge":"/sub/wire"' in answer.text
    assert '"invoke":"/sub/agents/{agent_id}/invoke"' in answer.text
    again = client.get("/agents/actions.js", headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.text) == (304, "")
    assert client.head("/agents/actions.js").text == ""
    assert "eval(" not in answer.text
    assert "innerHTML" not in answer.text


def test_the_bridge_tells_http_to_upgrade(open_client):
    answer = open_client(publish()).get("/actions-bridge")
    assert answer.status_code == 426
    assert (answer.headers["connection"], answer.headers["upgrade"]) == ("Upgrade", "websocket")
