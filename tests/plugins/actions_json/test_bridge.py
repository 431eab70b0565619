"""The bridge: agents and runtimes, who reaches whom, one answer for each call, and bad days."""

import asyncio
import re
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from awp_publish import About, AgentPublisher, Bridge, Paths, Site
from awp_publish.http.running import running
from awp_publish.plugins.actions_json import runtimes
from awp_publish.plugins.actions_json.items import DRIVEN, ITEMS
from tests.guarded import ANN, BEN, KEYS, known_callers, make_shop
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


async def test_a_call_goes_to_the_runtime_and_its_output_back(ends):
    tab, agent = ends
    agent.call("add_numbers", {"numbers": [1, 2]}, "call-7", timeout_ms=5000)
    call = await tab.hear()
    assert call == {
        "type": "action_call",
        "call_id": "call-7",
        "runtime_id": "tab",
        "name": "add_numbers",
        "arguments": {"numbers": [1, 2]},
        "timeout_ms": 5000,
    }
    tab.answer(call, {"ok": True})
    told = {"type": "action_call_output", "call_id": "call-7", "runtime_id": "tab", "output": {"ok": True}}
    assert await agent.hear() == told


@pytest.mark.parametrize("is_wrapped", [False, True])
async def test_an_output_that_does_not_fit_the_result_schema_is_no_success(ends, is_wrapped):
    tab, agent = ends
    arguments = {"numbers": [1, 2]}
    if is_wrapped:
        agent.call("actions.site", {"mode": "call", "action": "add_numbers", "arguments": arguments})
    else:
        agent.call("add_numbers", arguments)
    output = {"sum": "three"}
    tab.answer(await tab.hear(), {"ok": True, "result": output} if is_wrapped else output)
    error = (await agent.hear())["error"]
    assert (error["code"], error["recoverable"]) == ("invalid_result", False)
    assert error["evidence"]["errors"][0]["pointer"] == "/sum"


async def test_an_error_of_the_runtime_is_passed_on_with_its_members(ends):
    tab, agent = ends
    agent.call("add_numbers", {"numbers": []})
    call = await tab.hear()
    error = {
        "code": "target_not_found",
        "message": "No form.",
        "severity": "minor",
        "recoverable": True,
        "evidence": {"selector": "form"},
    }
    tab.say({"type": "action_error", "call_id": call["call_id"], "runtime_id": "tab", "error": error})
    assert await agent.hear() == {"type": "action_error", "call_id": "call-1", "error": error}


async def test_a_code_that_the_protocol_does_not_have_is_evidence(ends):
    tab, agent = ends
    agent.call("add_numbers", {"numbers": []})
    call = await tab.hear()
    error = {"code": "workflow_step_failed", "message": "Step 2 failed."}
    tab.say({"type": "action_error", "call_id": call["call_id"], "runtime_id": "tab", "error": error})
    told = (await agent.hear())["error"]
    assert (told["code"], told["evidence"]["code"]) == ("handler_failed", "workflow_step_failed")


async def test_calls_of_one_runtime_run_one_after_the_other_and_in_order(ends):
    tab, agent = ends
    for number in range(3):
        agent.call("add_numbers", {"numbers": [number]}, f"c{number}")
    for number in range(3):
        call = await tab.hear()
        assert call["call_id"] == f"c{number}"
        assert await tab.quiet()
        tab.answer(call, {"sum": number})
        assert (await agent.hear())["output"] == {"sum": number}


@pytest.mark.parametrize("name", ["runtime_id", "target_runtime_id"])
async def test_a_runtime_is_chosen_by_its_id(ends, app, stack, name):
    _, agent = ends
    other = await stack.enter_async_context(connected(app, ANN))
    await other.ready("second")
    agent.call("add_numbers", {"numbers": []}, **{name: "second"})
    assert (await other.hear())["runtime_id"] == "second"


@pytest.mark.parametrize(
    "selectors",
    [
        {"target": {"runtime_id": "second"}},
        {"target": {"runtime_key": "key-of-second"}},
        {"target_url_contains": "/cart"},
        {"target_title_contains": "Cart"},
        {"target_url_contains": "/cart", "runtime_id": "second"},
    ],
)
async def test_a_runtime_is_chosen_by_what_it_shows(ends, app, stack, selectors):
    _, agent = ends
    other = await stack.enter_async_context(connected(app, ANN))
    await other.ready("second", "https://shop.example/cart", title="Your Cart", runtime_key="key-of-second")
    agent.call("add_numbers", {"numbers": []}, **selectors)
    assert (await other.hear())["runtime_id"] == "second"


async def test_what_means_several_runtimes_is_ambiguous_and_names_them(ends, app, stack):
    _, agent = ends
    other = await stack.enter_async_context(connected(app, ANN))
    await other.ready("second", "https://shop.example/cart")
    error = await agent.error("add_numbers", {"numbers": []})
    assert error["code"] == "ambiguous_runtime"
    candidates = {(one["runtime_id"], one["url"]) for one in error["evidence"]["candidates"]}
    assert candidates == {("tab", "https://shop.example/"), ("second", "https://shop.example/cart")}


@pytest.mark.parametrize(
    "selectors",
    [
        {"runtime_id": "nobody"},
        {"target_url_contains": "/nowhere"},
        {"runtime_id": "tab", "target_url_contains": "/nowhere"},
        {"authorization_id": SECRET},
        {"target": {"runtime_key": "unknown"}},
    ],
)
async def test_what_means_no_runtime_is_not_found(ends, selectors):
    _, agent = ends
    assert (await agent.error("add_numbers", {"numbers": []}, **selectors))["code"] == "runtime_not_found"


async def test_two_names_of_one_thing_have_to_agree(ends):
    _, agent = ends
    error = await agent.error("add_numbers", {"numbers": []}, runtime_id="tab", target={"runtime_id": "other"})
    assert error["code"] == "invalid_input"


async def test_input_that_does_not_fit_is_refused_with_pointers_before_the_runtime_hears_of_it(ends):
    tab, agent = ends
    error = await agent.error("add_numbers", {"numbers": ["x"]})
    assert error["code"] == "invalid_input"
    assert error["evidence"]["errors"][0]["pointer"] == "/numbers/0"
    assert await tab.quiet()


async def test_an_action_that_nobody_declares_is_unknown_and_a_primitive_is_passed_on(ends):
    tab, agent = ends
    assert (await agent.error("drop_tables"))["code"] == "unknown_action"
    agent.call("page.info", call_id="c2")
    assert (await tab.hear())["name"] == "page.info"


async def test_what_a_runtime_announces_can_be_called_at_it(app, stack):
    tab = await stack.enter_async_context(connected(app, ANN))
    agent = await stack.enter_async_context(connected(app, ANN))
    manifest = {"protocol": "actions.json", "version": 1, "tools": [{"name": "own.thing"}]}
    await tab.ready(manifest=manifest)
    agent.call("own.thing")
    assert (await tab.hear())["name"] == "own.thing"


@pytest.mark.parametrize("manifest", [{"protocol": "x", "version": 1}, {"protocol": "actions.json", "version": True}])
async def test_a_runtime_with_another_map_is_not_ready(app, stack, manifest):
    tab = await stack.enter_async_context(connected(app, ANN))
    agent = await stack.enter_async_context(connected(app, ANN))
    await tab.ready(manifest=manifest)
    assert (await agent.error("add_numbers", {"numbers": []}))["code"] == "runtime_not_ready"


async def test_the_same_call_again_has_the_same_answer_and_is_not_sent_again(ends):
    tab, agent = ends
    agent.call("add_numbers", {"numbers": [1]})
    tab.answer(await tab.hear(), {"sum": 1})
    first = await agent.hear()
    assert await agent.ask("add_numbers", {"numbers": [1]}) == first
    assert await tab.quiet()
    assert (await agent.error("add_numbers", {"numbers": [2]}))["code"] == "invalid_input"
    assert (await agent.error("page.info", {"numbers": [1]}))["code"] == "invalid_input"


async def test_a_call_id_that_is_under_way_is_refused(ends):
    tab, agent = ends
    agent.call("add_numbers", {"numbers": [1]})
    call = await tab.hear()
    assert (await agent.error("add_numbers", {"numbers": [1]}))["code"] == "invalid_input"
    tab.answer(call, {"sum": 1})
    assert (await agent.hear())["output"] == {"sum": 1}


async def test_what_is_given_once_is_not_kept_for_a_call_again(stack):
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


async def test_the_runtime_of_somebody_else_does_not_exist(app, stack):
    tab = await stack.enter_async_context(connected(app, ANN))
    await tab.ready()
    for headers in (BEN, {}):
        agent = await stack.enter_async_context(connected(app, headers))
        error = await agent.error("add_numbers", {"numbers": []}, runtime_id="tab")
        assert error["code"] == "runtime_not_found"
        assert "tab" not in str(error["evidence"])
        listed = await agent.ask("actions.site", {"mode": "list"}, "list")
        assert listed["output"]["runtimes"] == []
    assert await tab.quiet()


async def test_tabs_of_nobody_known_are_strangers_to_each_other(app, stack):
    tab = await stack.enter_async_context(connected(app))
    agent = await stack.enter_async_context(connected(app))
    await tab.ready()
    assert (await agent.error("add_numbers", {"numbers": []}, runtime_id="tab"))["code"] == "runtime_not_found"


@pytest.mark.parametrize(
    "shown", [{"authorization_id": SECRET}, {"target": {"authorization_id": SECRET}}, {"runtime_id": SECRET}]
)
async def test_a_visitor_lets_an_agent_in_by_a_code(app, stack, shown):
    tab = await stack.enter_async_context(connected(app))
    agent = await stack.enter_async_context(connected(app, BEN))
    await tab.ready(authorization_id=SECRET)
    agent.call("add_numbers", {"numbers": []}, **shown)
    tab.answer(await tab.hear(), {"sum": 1})
    assert (await agent.hear())["output"] == {"sum": 1}


async def test_a_code_that_is_taken_back_opens_nothing(app, stack):
    tab = await stack.enter_async_context(connected(app))
    agent = await stack.enter_async_context(connected(app, BEN))
    await tab.ready(authorization_id=SECRET)
    await tab.ready()
    assert (await agent.error("add_numbers", {"numbers": []}, authorization_id=SECRET))["code"] == "runtime_not_found"


async def test_a_short_code_opens_nothing(app, stack):
    tab = await stack.enter_async_context(connected(app))
    agent = await stack.enter_async_context(connected(app, BEN))
    await tab.ready(authorization_id="1234567")
    assert (await agent.error("add_numbers", {"numbers": []}, authorization_id="1234567"))["code"] == (
        "runtime_not_found"
    )


async def test_nobody_takes_the_id_or_the_code_of_another_runtime(app, stack):
    tab = await stack.enter_async_context(connected(app, ANN))
    thief = await stack.enter_async_context(connected(app, BEN))
    await tab.ready(authorization_id=SECRET)
    await thief.ready(authorization_id=SECRET)
    assert (await thief.hear())["error"]["code"] == "invalid_input"
    again = await stack.enter_async_context(connected(app, ANN))
    await again.ready()
    assert (await again.hear())["error"]["code"] == "invalid_input"


async def test_wrong_credentials_open_nothing(app, stack):
    end = await stack.enter_async_context(connected(app, {"authorization": "Bearer wrong"}))
    assert end.status == 401


async def test_pages_of_other_sites_open_nothing(app, stack):
    foreign = {"origin": "https://evil.example"}
    for headers in (foreign, {**foreign, "cookie": "session=1"}):
        assert (await stack.enter_async_context(connected(app, headers))).status == 403
    own = await stack.enter_async_context(connected(app, {"origin": "https://shop.example"}))
    assert own.status == 101


async def test_a_site_that_asks_who_connects_answers_nobody_else(stack):
    published = publish(make_bridge(Bridge(auth_required=True)))
    await stack.enter_async_context(running(published))
    agent = await stack.enter_async_context(connected(published))
    assert (await agent.error("page.info"))["code"] == "permission_denied"


async def test_a_runtime_that_loads_its_page_anew_takes_its_call_up_again(app, stack):
    agent = await stack.enter_async_context(connected(app, ANN))
    async with connected(app, ANN) as tab:
        await tab.ready(runtime_key=SECRET)
        agent.call("add_numbers", {"numbers": [1]})
        call = await tab.hear()
    assert await agent.quiet()
    back = await stack.enter_async_context(connected(app, ANN))
    await back.ready(runtime_key=SECRET, url="https://shop.example/next")
    assert await back.quiet(), "what was sent is never sent again"
    back.answer(call, {"sum": 1})
    assert (await agent.hear())["output"] == {"sum": 1}


async def test_a_visitor_of_nobody_known_comes_back_by_the_key_alone(app, stack):
    agent = await stack.enter_async_context(connected(app, ANN))
    async with connected(app) as tab:
        await tab.ready(runtime_key=SECRET, authorization_id=OTHER_SECRET)
        agent.call("add_numbers", {"numbers": [1]}, authorization_id=OTHER_SECRET)
        call = await tab.hear()
    back = await stack.enter_async_context(connected(app))
    await back.ready(runtime_key=SECRET, authorization_id=OTHER_SECRET)
    back.answer(call, {"sum": 1})
    assert (await agent.hear())["output"] == {"sum": 1}


async def test_a_call_waits_for_a_page_that_is_loaded_anew(app, stack):
    agent = await stack.enter_async_context(connected(app, ANN))
    async with connected(app, ANN) as tab:
        await tab.ready(runtime_key=SECRET)
    agent.call("add_numbers", {"numbers": [1]})
    back = await stack.enter_async_context(connected(app, ANN))
    await back.ready(runtime_key=SECRET)
    back.answer(await back.hear(), {"sum": 1})
    assert (await agent.hear())["output"] == {"sum": 1}


@pytest.mark.parametrize(
    ("primitive", "arguments"), [("text.insert", {"text": "x"}), ("keyboard.press", {"key": "Enter"})]
)
async def test_what_may_have_changed_a_page_is_not_done_again_after_it_has_been_loaded_anew(
    app, stack, primitive, arguments
):
    agent = await stack.enter_async_context(connected(app, ANN))
    async with connected(app, ANN) as tab:
        await tab.ready(runtime_key=SECRET, capabilities=[DRIVEN])
        agent.call(primitive, arguments)
        step = await tab.hear()
        while step["name"] not in ("page.insert", "page.perform"):
            tab.answer(step, {"ok": True})
            step = await tab.hear()
    back = await stack.enter_async_context(connected(app, ANN))
    await back.ready(runtime_key=SECRET, capabilities=[DRIVEN])
    assert (await agent.hear())["output"]["navigated"] is True
    while not await back.quiet():
        assert (await back.hear())["name"] != step["name"]


async def test_a_runtime_that_does_not_come_back_fails_its_call(app, stack, monkeypatch):
    monkeypatch.setattr("awp_publish.plugins.actions_json.pairing.GRACE", 0.01)
    agent = await stack.enter_async_context(connected(app, ANN))
    async with connected(app, ANN) as tab:
        await tab.ready(runtime_key=SECRET)
        agent.call("add_numbers", {"numbers": [1]})
        await tab.hear()
    assert (await agent.hear())["error"]["code"] == "transport_failed"


async def test_a_runtime_that_hangs_up_in_a_call_fails_it_with_the_last_step(app, stack):
    agent = await stack.enter_async_context(connected(app, ANN))
    for mutating in (False, True):
        async with connected(app, ANN) as tab:
            await tab.ready()
            agent.call("add_numbers", {"numbers": [1]}, f"c-{mutating}")
            call = await tab.hear()
            step = {"call_id": call["call_id"], "step_id": "type_q", "mutating": mutating}
            tab.say({"type": "runtime_status", "runtime_id": "tab", "call": step})
            await tab.quiet()
        error = (await agent.hear())["error"]
        assert (error["code"], error["recoverable"]) == ("transport_failed", not mutating)
        assert error["evidence"]["step_id"] == "type_q"
        assert "reason" not in error["evidence"], "what has been reported needs no guess"


async def test_the_answer_of_another_runtime_counts_for_nothing(app, stack):
    tab = await stack.enter_async_context(connected(app, ANN))
    agent = await stack.enter_async_context(connected(app, ANN))
    other = await stack.enter_async_context(connected(app, ANN))
    await tab.ready()
    await other.ready("second")
    agent.call("add_numbers", {"numbers": [1]}, runtime_id="tab")
    call = await tab.hear()
    other.answer({**call, "runtime_id": "second"}, {"sum": -1})
    other.answer(call, {"sum": -1})
    assert await agent.quiet()
    tab.answer(call, {"sum": 3})
    tab.answer(call, {"sum": 6})
    assert (await agent.hear())["output"] == {"sum": 3}
    assert await agent.quiet()


async def test_a_late_answer_does_not_answer_another_callers_call_of_the_same_id(app, stack):
    tab = await stack.enter_async_context(connected(app, ANN))
    await tab.ready(authorization_id=SECRET)
    first = await stack.enter_async_context(connected(app, ANN))
    second = await stack.enter_async_context(connected(app, BEN))
    assert (await first.error("add_numbers", {"numbers": [1]}, timeout_ms=20))["code"] == "handler_timeout"
    late, stop = await tab.hear(), await tab.hear()
    assert (stop["type"], stop["call_id"]) == ("action_error", late["call_id"])
    second.call("add_numbers", {"numbers": [2]}, authorization_id=SECRET)
    call = await tab.hear()
    tab.answer(late, {"sum": 7})
    tab.answer(call, {"sum": 8})
    assert (await second.hear())["output"] == {"sum": 8}


async def test_a_call_that_takes_too_long_is_told_how_long_and_where_it_was(ends):
    tab, agent = ends
    agent.call("add_numbers", {"numbers": [1]}, timeout_ms=500)
    call = await tab.hear()
    tab.say({"type": "runtime_status", "runtime_id": "tab", "call": {"step_id": "submit", "mutating": True}})
    error = (await agent.hear())["error"]
    assert (error["code"], error["evidence"]["step_id"], error["recoverable"]) == ("handler_timeout", "submit", False)
    assert error["evidence"]["elapsed_ms"] > 0
    tab.answer(call, {"sum": 7})
    assert await agent.quiet()


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '"x"',
        "{}",
        '{"type": "hello"}',
        '{"type": 5}',
        '{"type": "action_call", "type": "action_call"}',
        '{"type": "action_call"}',
        '{"type": "action_call", "call_id": 5, "name": "x", "arguments": {}}',
        '{"type": "action_call", "call_id": "", "name": "x", "arguments": {}}',
        '{"type": "action_call", "call_id": "c", "name": "page.info"}',
        '{"type": "action_call", "call_id": "c", "name": "page.info", "arguments": []}',
        '{"type": "action_call", "call_id": "c", "name": "page.info", "arguments": {}, "timeout_ms": 0}',
        '{"type": "action_call", "call_id": "c", "name": "page.info", "arguments": {}, "timeout_ms": true}',
        '{"type": "action_call", "call_id": "c", "name": "page.info", "arguments": {}, "target": 5}',
        '{"type": "action_call", "call_id": "c", "name": "' + "x" * 300 + '", "arguments": {}}',
        '{"type": "runtime_ready"}',
        '{"type": "runtime_ready", "runtime_id": "a"}',
        '{"type": "runtime_ready", "runtime_id": "a", "url": 5}',
        '{"type": "runtime_ready", "runtime_id": "a", "url": "/", "manifest": []}',
        '{"type": "runtime_ready", "runtime_id": "a", "url": "/", "capabilities": [5]}',
        '{"type": "action_call_output", "call_id": "c"}',
        '{"type": "action_call_output", "call_id": "c", "runtime_id": "a"}',
        '{"type": "action_error", "call_id": "c", "error": {}}',
        '{"type": "dom_event", "runtime_id": "a"}',
        '{"x": ' + "[" * 3000 + "]" * 3000 + "}",
        '{"type": "action_call", "call_id": "c", "name": "x", "arguments": {"a": NaN}}',
        '{"type": "\\ud800"}',
    ],
)
async def test_what_cannot_be_read_is_told_and_the_connection_stays(app, stack, text):
    end = await stack.enter_async_context(connected(app, ANN))
    end.say_text(text)
    answer = await end.hear()
    assert answer["type"] == "action_error"
    assert answer["error"]["code"] in ("invalid_input", "runtime_not_ready"), answer
    assert (await end.ask("actions.site", {"mode": "list"}, "after"))["type"] == "action_call_output"


async def test_what_a_runtime_says_before_it_is_ready_is_refused(app, stack):
    end = await stack.enter_async_context(connected(app, ANN))
    for item in ({"type": "runtime_status"}, {"type": "dom_event", "event_id": "e", "name": "n", "payload": {}}):
        end.say({**item, "runtime_id": "tab"})
        answer = await end.hear()
        assert (answer["error"]["code"], answer["runtime_id"]) == ("runtime_not_ready", "tab")


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


async def test_of_too_many_messages_the_answer_that_is_awaited_is_still_taken(stack):
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


async def test_an_agent_that_hangs_up_stops_its_call(app, stack):
    tab = await stack.enter_async_context(connected(app, ANN))
    await tab.ready()
    async with connected(app, ANN) as agent:
        agent.call("add_numbers", {"numbers": [1]})
        call = await tab.hear()
    stop = await tab.hear()
    assert (stop["type"], stop["call_id"]) == ("action_error", call["call_id"])


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


def event(payload: object, **members: object) -> dict[str, object]:
    told = {"type": "dom_event", "event_id": "e1", "runtime_id": "tab", "name": "home.chosen", "event": "shop:chosen"}
    return {**told, "payload": payload, **members}


async def test_a_declared_event_is_forwarded_to_the_agents_of_its_owner(ends, app, stack):
    tab, agent = ends
    stranger = await stack.enter_async_context(connected(app, BEN))
    tab.say(event({"slug": "emma"}, url="https://shop.example/"))
    told = await agent.hear()
    assert (told["type"], told["name"], told["payload"]) == ("dom_event", "home.chosen", {"slug": "emma"})
    assert "previous_call_id" not in told
    assert await stranger.quiet()
    assert await tab.quiet()


async def test_an_event_within_a_call_names_it_to_its_caller(ends):
    tab, agent = ends
    agent.call("add_numbers", {"numbers": [1]})
    call = await tab.hear()
    tab.say(event({}))
    assert (await agent.hear())["previous_call_id"] == "call-1"
    tab.answer(call, {"sum": 1})
    await agent.hear()
    tab.say(event({}, event_id="e2"))
    assert (await agent.hear())["previous_call_id"] == "call-1"


@pytest.mark.parametrize("item", [event({"slug": "a", "more": 1}), event("text"), event({}, name="home.unknown")])
async def test_an_event_that_nobody_declared_or_that_does_not_fit_is_dropped(ends, item):
    tab, agent = ends
    tab.say(item)
    assert await tab.quiet()
    assert await agent.quiet()


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


def test_the_script_answers_as_every_document_does(open_client):
    site = Site("Shop", "Sells.", url="https://shop.example", plugins=["bridge"])
    client = open_client(AgentPublisher(Starlette(), site=site))
    etag = client.get("/agents/actions.js", headers={"accept-encoding": "identity"}).headers["etag"]
    requests: list[tuple[str, dict[str, str]]] = [
        ("GET", {}),
        ("HEAD", {}),
        ("OPTIONS", {"origin": "https://agent.example", "access-control-request-method": "GET"}),
        ("POST", {}),
        ("DELETE", {}),
        ("GET", {"if-match": etag}),
        ("GET", {"if-match": "*"}),
        ("GET", {"if-match": '"another"'}),
        ("HEAD", {"if-match": '"another"'}),
        ("GET", {"if-none-match": etag}),
        ("GET", {"if-none-match": f"W/{etag}"}),
        ("GET", {"if-none-match": "*"}),
        ("GET", {"if-modified-since": "Fri, 01 Jan 2100 00:00:00 GMT"}),
        ("GET", {"if-unmodified-since": "Sat, 01 Jan 2000 00:00:00 GMT"}),
        ("GET", {"accept-encoding": "gzip"}),
    ]
    own = {"etag", "content-length", "link", "content-type", "last-modified"}  # each was made at its own time
    for method, headers in requests:
        tags = {name: "ETAG" if value.strip("W/") == etag else value for name, value in headers.items()}
        answers = []
        for path in ("/agents/actions.js", "/agent.json"):
            sent = {"accept-encoding": "identity", **headers}
            if "ETAG" in tags.values() and path == "/agent.json":
                theirs = client.get(path, headers={"accept-encoding": "identity"}).headers["etag"]
                sent = {name: value.replace(etag, theirs) for name, value in sent.items()}
            answer = client.request(method, path, headers=sent)
            facts = {name: value for name, value in answer.headers.items() if name not in own}
            answers.append((answer.status_code, bool(answer.content), facts, sorted(answer.headers.keys() - {"link"})))
        assert answers[0] == answers[1], (method, headers)


def test_the_bridge_tells_http_to_upgrade(open_client):
    assert open_client(publish()).get("/actions-bridge").status_code == 426


SOUND: dict[str, dict[str, Any]] = {
    "runtime_ready": {"runtime_id": "a", "url": "https://shop.example/"},
    "runtime_status": {"runtime_id": "tab"},
    "action_call": {"call_id": "c", "name": "page.info", "arguments": {}},
    "action_call_output": {"call_id": "c", "runtime_id": "tab", "output": 1},
    "dom_event": {"event_id": "e", "runtime_id": "tab", "name": "home.unknown", "payload": {}},
    "action_error": {"error": {"code": "handler_failed"}, "call_id": "c"},
}


@pytest.mark.parametrize(("kind", "members"), [(kind, told[0]) for kind, told in ITEMS.items()])
async def test_a_member_that_has_to_be_there_is_asked_for(app, stack, kind, members):
    end = await stack.enter_async_context(connected(app, ANN))
    await end.ready()
    for name in re.findall(r"(\w+)\*(?=[\s{]|$)", members):
        end.say({"type": kind, **{member: value for member, value in SOUND[kind].items() if member != name}})
        answer = await end.hear()
        assert (answer["type"], answer["error"]["code"]) == ("action_error", "invalid_input"), name
        assert name in answer["error"]["message"]
