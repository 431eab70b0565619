"""Workflows of an actions.json, run: conditions, loops, attempts, settling, failures, bounds."""

import asyncio
from typing import Any

import pytest

from awp_publish.maps.failures import RuntimeFailure
from tests.browsing.running import Driver, Json, click, map_of, step, tool

PAGE = (
    "<title>List</title><main><ul><li>one</li><li>two</li><li>three</li></ul><form><input name=a><input name=b>"
    "<input name=n type=number><textarea name=t>x</textarea><select name=s><option>1</select><button>Send</button>"
    "</form><div id=box>Box</div><p contenteditable>e</p></main>"
)
INFO = step("info", "page.info")


def driver(*steps: Json, output: str | None = None, pages: Any = None, **members: Any) -> Driver:
    return Driver(pages or {"/": PAGE}, map_of(tool("go", *steps, output=output, **members)))


def test_without_an_output_the_results_of_the_steps_are_the_output():
    output = driver(INFO).call()
    assert output["steps"]["info"]["output"] == {"url": "https://shop.example/", "title": "List"}


def test_undefined_members_are_left_out_and_null_stays():
    assert driver(INFO, output="{% {'a': input.nothing, 'b': null} %}").call() == {"b": None}


def test_an_output_may_have_slots_anywhere_inside():
    document = map_of(tool("go", INFO))
    document["tools"][0]["workflow"]["output"] = {"list": ["{% input.x %}", "{% input.y %}"], "plain": 1}
    assert Driver({"/": PAGE}, document).call(x=1) == {"list": [1], "plain": 1}


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("$error('no')", "workflow_output_failed"),
        ("$pad('x', 9999) & $pad('x', 9999)", "expression_output_too_large"),
        ("$map([1..200], function($i) { $pad('x', 10000) })", "workflow_output_failed"),
        ("($f := function($n) { $f($n + 1) }; $f(1))", "workflow_output_failed"),
    ],
)
def test_hostile_expressions_end_with_a_code(expression, code):
    failure = driver(INFO, output=f"{{% {expression} %}}").failure()
    assert failure.evidence["code"] in (code, "expression_output_too_large")
    assert [one["id"] for one in failure.evidence["steps"]] == ["info"]


def test_an_output_of_many_slots_is_bounded_as_a_whole():
    document = map_of(tool("go", INFO))
    document["tools"][0]["workflow"]["output"] = ["{% $pad('x', 9999) %}"] * 4
    failure = Driver({"/": PAGE}, document).failure()
    assert (failure.code, failure.evidence["code"]) == ("invalid_result", "workflow_output_too_large")


def test_a_step_is_given_the_input_with_what_the_map_binds_and_the_call_wins():
    binding = {"direction": "agent_to_html", "binding": {"arguments": {"q": "bound", "r": "too"}}}
    run = driver(INFO, output="{% input %}", x_actions=binding)
    assert run.call(q="said") == {"q": "said", "r": "too"}


def test_a_loop_runs_for_each_item_and_says_what_it_cut_off():
    texts = step(
        "type",
        "text.insert",
        {"text": "{% item & $string(index) %}", "target": {"selector": "[name='a']"}},
        for_each="{% input.words %}",
        max_items=2,
    )
    read = step("read", "locator.text_content", {"locator": {"selector": "[name='a']"}})
    run = driver(texts, read, output="{% {'loop': steps.type, 'text': steps.read.output.text} %}")
    output = run.call(words=["x", "y", "z"])
    assert output["text"] == "x0y1"
    assert (len(output["loop"]["items"]), output["loop"]["truncated"], output["loop"]["total"]) == (2, True, 3)


def test_a_loop_over_what_is_no_array_fails_and_says_so():
    failure = driver(step("go", "page.info", for_each="{% input.one %}", max_items=5)).failure(one="x")
    assert failure.evidence["code"] == "workflow_loop_input_invalid"
    assert failure.evidence["step_id"] == "go"
    assert failure.evidence["failed_state"] == "precondition"


def test_a_loop_stops_at_its_first_failure_unless_it_may_continue():
    missing = {"locator": {"selector": "{% item %}"}}
    loop = step("look", "locator.text_content", missing, for_each=["#none", "#box"], max_items=5)
    assert driver(loop).failure().evidence["cause"]["code"] == "target_not_found"
    output = driver({**loop, "on_error": "continue"}).call()
    items = output["steps"]["look"]["items"]
    assert [item["ok"] for item in items] == [False, True]


def test_attempts_end_when_their_condition_holds():
    retried = step(
        "type",
        "text.insert",
        {"text": "x", "target": {"selector": "[name='a']"}},
        retry_until="{% $length(steps.read.output.text) > 1 or index = 2 %}",
        max_attempts=5,
    )
    output = driver(retried).call()
    assert len(output["steps"]["type"]["attempts"]) == 3


def test_attempts_that_never_succeed_are_exhausted_even_where_errors_may_continue():
    look = step(
        "look", "dom.observe.visible", {"selector": "li"}, retry_until=False, max_attempts=3, on_error="continue"
    )
    failure = driver(look, INFO).failure()
    assert (failure.code, failure.evidence["code"]) == ("handler_failed", "workflow_retry_exhausted")
    assert failure.evidence["failure_class"] == "control_not_ready"


def test_attempts_end_at_the_first_that_fails():
    wait = step("look", "locator.text_content", {"locator": {"selector": "#none"}}, retry_until=False, max_attempts=9)
    failure = driver(wait).failure()
    assert failure.evidence["code"] == "workflow_step_failed"
    assert failure.evidence["cause"]["code"] == "target_not_found"


def test_between_attempts_one_primitive_runs():
    between = {"primitive": "viewport.scroll", "args": {"delta_y": 40}}
    look = step("look", "page.info", retry_until="{% index = 1 %}", max_attempts=3, after_each=between)
    attempts = driver(look).call()["steps"]["look"]["attempts"]
    assert [list(attempt["output"]) for attempt in attempts] == [
        ["url", "title"],
        ["scroll_x", "scroll_y"],
        ["url", "title"],
    ]


def test_a_step_that_may_fail_leaves_its_error_for_the_others():
    look = step("look", "locator.element_info", {"locator": {"selector": "#none"}}, on_error="continue")
    run = driver(look, INFO, output="{% steps.look.error.code %}")
    assert run.call() == "target_not_found"


def test_settling_is_pacing_and_its_timeout_fails_nothing():
    settle = {"locator": {"selector": "#none"}, "timeout_ms": 100}
    result = driver({**INFO, "settle_after": settle}).result("go", {})
    assert result.steps[0]["settle"] == {"ok": False, "mode": "locator", "reason": "timeout", "waited_ms": 0}
    delayed = driver({**INFO, "settle_after": {"delay_ms": 60_000}}).result("go", {})
    assert delayed.steps[0]["settle"]["waited_ms"] == 0


def test_loops_and_attempts_settle_too():
    settle = {"locator": {"selector": "#box"}}
    loop = step("loop", "page.info", for_each=[1], max_items=1, settle_after=settle)
    tried = step("tried", "page.info", retry_until=True, max_attempts=1, settle_after=settle)
    result = driver(loop, tried).result("go", {})
    assert [one["settle"]["ok"] for one in result.steps] == [True, True]


@pytest.mark.parametrize(
    ("failing", "code", "named"),
    [
        (step("look", "locator.wait_for", {"locator": {"selector": "#no"}}), "timeout", "control_not_ready"),
        (step("it", "pointer.click", {"x": 1, "y": 2}), "point_out_of_viewport", "target_not_found"),
        (step("it", "text.insert", {"text": "x"}), "target_not_editable", "target_not_found"),
        (
            step("it", "text.insert", {"text": "x", "target": {"selector": "#box"}}),
            "target_not_editable",
            "target_not_found",
        ),
        (step("it", "keyboard.press", {"key": "Nonsense"}), "invalid_key", "target_not_found"),
        (step("it", "dom.snapshot_text", {"selector": "{% 'a[' %}"}), "invalid_selector", "target_not_found"),
        (step("it", "pointer.click", {"x": "{% input.none %}", "y": 1}), "invalid_input", "target_not_found"),
        (step("find_button", "text.insert", {"text": "x"}), "target_not_editable", "target_not_found"),
        (
            step("look", "locator.text_content", {"locator": {"selector": "#no"}}),
            "target_not_found",
            "control_not_ready",
        ),
    ],
)
def test_a_failure_names_the_step_the_cause_and_the_class(failing, code, named):
    document = map_of(tool("go", INFO, failing))
    document["tools"][0]["workflow"]["steps"][1].setdefault("args", {})
    failure = Driver({"/": PAGE}, document).failure()
    error = failure.evidence
    assert (failure.code, error["code"]) == ("handler_failed", "workflow_step_failed")
    assert (error["step_id"], error["primitive"]) == (failing["id"], failing["primitive"])
    assert (error["cause"]["code"], error["failure_class"]) == (code, named)
    assert error.keys() >= {"message", "failed_state", "retryable", "recoverable", "safe_recovery"}
    assert [one["id"] for one in error["steps"]] == ["info", failing["id"]]


@pytest.mark.parametrize(
    "primitive", ["browser.screenshot", "clipboard.read", "pointer.drag", "overlay.menu.show", "debug.run_javascript"]
)
def test_capabilities_that_need_a_screen_are_reported_as_unavailable(primitive):
    given: Any = {"pointer.drag": {"from": {}, "to": {}}, "debug.run_javascript": {"source": "x"}}.get(primitive, {})
    failure = driver(step("it", primitive, given)).failure()
    assert failure.code == "capability_unavailable"
    assert failure.evidence["cause"]["capability"] == primitive
    assert failure.evidence["cause"]["host"] == "in_process"


def test_requirements_of_a_tool_are_checked_before_its_first_step():
    run = driver(*click("it", "#box"), requires=["page.info", "browser.screenshot"])
    failure = run.failure()
    assert (failure.code, failure.evidence["capabilities"]) == ("capability_unavailable", ["browser.screenshot"])
    assert run.ask("list")["actions"] == []


def test_a_form_that_is_not_valid_is_not_sent_and_every_fault_is_told():
    pages = {"/": "<form action=/x><input name=a required aria-label=A><input name=b required><button>Go"}
    failure = driver(*click("it", "button"), pages=pages).failure()
    assert failure.evidence["cause"]["code"] == "form_invalid"
    assert [item["name"] for item in failure.evidence["cause"]["invalid"]] == ["a", "b"]


def test_time_that_is_up_ends_a_call_and_the_runtime_goes_on():
    async def slow(call: object) -> None:
        await asyncio.sleep(60)

    handled = {"name": "slow", "description": "x", "input_schema": {}, "x_actions": {"handler": "slow.one"}}
    run = Driver({"/": PAGE}, map_of(tool("go", INFO), handled), handlers={"slow.one": slow}, seconds=0.05)
    failure = run.failure("slow")
    assert (failure.code, failure.evidence["step_id"]) == ("handler_timeout", "slow.one")
    assert failure.evidence["elapsed_ms"] > 0
    assert run.call("go")


def test_time_is_up_for_loops_of_expensive_expressions_too():
    expensive = "{% $count($map([1..9000], function($i) { $sum([1..100]) })) %}"
    text = {"text_contains": expensive}
    loop = step("loop", "dom.observe.visible", text, for_each=list(range(50)), max_items=50, on_error="continue")
    again = [{**loop, "id": f"loop_{number}"} for number in range(25)]
    failure = Driver({"/": PAGE}, map_of(tool("go", *again)), seconds=0.1).failure()
    assert (failure.code, failure.evidence["step_id"]) == ("handler_timeout", "loop_0")


def test_many_expensive_expressions_in_one_value_end_together():
    expensive = "{% $count($map([1..500], function($i) { 1 })) %}"
    document = map_of(tool("go", INFO))
    document["tools"][0]["workflow"]["output"] = [expensive] * 20_000
    failure = Driver({"/": PAGE}, document).failure()
    # Ours, for all of them together; on a busy machine the engine's own, for the one that was cut off, comes before.
    assert "took more than" in failure.message or "timeout after" in failure.message


def test_before_each_step_it_is_told_and_whether_it_may_change_something():
    results: list[tuple[str, bool]] = []
    steps = (INFO, *click("it", "#box"), step("scroll", "viewport.scroll", {"delta_y": 1}))
    driver(*steps).result("go", {}, on_step=lambda *one: results.append(one))
    assert results == [("info", False), ("find_it", False), ("it", True), ("scroll", False)]


def test_two_calls_of_one_runtime_run_one_after_the_other():
    order: list[str] = []

    async def record(call: Any) -> str:
        order.append(f"begin {call.arguments['n']}")
        await asyncio.sleep(0)
        order.append(f"end {call.arguments['n']}")
        return "done"

    handled = {"name": "one", "description": "x", "input_schema": {}, "x_actions": {"handler": "our.one"}}
    run = Driver({"/": PAGE}, map_of(handled), handlers={"our.one": record})

    async def both() -> None:
        await asyncio.gather(run.runtime.call("one", {"n": 1}), run.runtime.call("one", {"n": 2}))

    asyncio.run(both())
    assert order == ["begin 1", "end 1", "begin 2", "end 2"]


def test_keys_do_what_they_do_without_scripts():
    steps = (
        *click("focus", "[name='a']"),
        step("x", "keyboard.press", {"key": "x"}),
        step("y", "keyboard.press", {"key": "Y"}),
        step("back", "keyboard.press", {"key": "Backspace"}),
        step("tab", "keyboard.press", {"key": "Tab"}),
        step("b", "text.insert", {"text": "second"}),
        step("shift", "keyboard.press", {"key": "Shift+Tab"}),
        step("space", "keyboard.press", {"key": " "}),
        step("z", "text.insert", {"text": "z"}),
        step("one", "locator.text_content", {"locator": {"selector": "[name='a']"}}),
        step("two", "locator.text_content", {"locator": {"selector": "[name='b']"}}),
        step("escape", "keyboard.press", {"key": "Escape"}),
    )
    assert driver(*steps, output="{% [steps.one.output.text, steps.two.output.text] %}").call() == ["x z", "second"]


def test_a_box_is_ticked_with_the_space_bar_and_is_then_checked():
    pages = {"/": "<form><input type=checkbox id=c><label for=c>Yes</label></form>"}
    steps = (
        *click("focus", "label"),
        step("on", "dom.observe.visible", {"selector": "#c:checked"}),
        step("space", "keyboard.press", {"key": "Space"}),
        step("off", "dom.observe.visible", {"selector": "#c:checked"}),
    )
    counts = "{% [steps.on.output.match_count, steps.off.output.match_count] %}"
    assert driver(*steps, output=counts, pages=pages).call() == [1, 0]


def test_a_page_that_is_loaded_gives_the_focus_to_what_asks_for_it():
    pages = {"/": "<input name=x><input name=y autofocus>"}
    typed = step("t", "text.insert", {"text": "here"})
    read = step("r", "locator.text_content", {"locator": {"selector": "[name='y']"}})
    assert driver(typed, read, output="{% steps.r.output.text %}", pages=pages).call() == "here"


def test_the_focus_ends_with_its_page():
    pages = {"/": "<input name=q><a href=/next>n</a>", "/next": "<input name=q>"}
    steps = (*click("field", "[name='q']"), *click("go", "a"), step("type", "text.insert", {"text": "x"}))
    failure = driver(*steps, pages=pages).failure()
    assert (failure.evidence["step_id"], failure.evidence["cause"]["code"]) == ("type", "target_not_editable")


def test_a_handler_is_an_approved_function_a_primitive_or_nothing():
    def handled(handler: str) -> Json:
        x_actions = {"handler": handler, "binding": {"arguments": {"locator": {"selector": "#box"}}}}
        return {"name": "go", "description": "x", "input_schema": {"type": "object"}, "x_actions": x_actions}

    assert Driver({"/": PAGE}, map_of(handled("locator.text_content"))).call() == {"text": "Box"}
    for name in ("constructor", "__import__", "os.system", "window.alert", "agents.invoke"):
        run = Driver({"/": PAGE}, map_of(handled(name)))
        if run.map.is_valid:
            assert run.failure().code == "missing_handler"


def test_an_exception_of_a_handler_is_reported_without_its_message():
    async def broken(call: object) -> None:
        raise ValueError("the password is 1234")

    async def refusing(call: object) -> None:
        raise RuntimeFailure("permission_denied", "Sign in first.", {"reason": "scope"})

    def handled(name: str) -> Json:
        return {"name": name, "description": "x", "input_schema": {}, "x_actions": {"handler": f"our.{name}"}}

    handlers = {"our.broken": broken, "our.refusing": refusing}
    run = Driver({"/": PAGE}, map_of(handled("broken"), handled("refusing")), handlers=handlers)
    failure = run.failure("broken")
    assert failure.code == "handler_failed"
    assert "1234" not in str(failure.describe())
    assert run.failure("refusing").code == "permission_denied"


def test_the_steps_of_a_tool_stand_in_for_a_handler_that_is_missing():
    execution = {
        "mode": "handler_first",
        "fallback": "steps_on_missing_handler_or_drift",
        "steps": [{"id": "read", "type": "extract", "target": {"selector": "#box"}, "as": "text"}],
    }
    one = {
        "name": "go",
        "description": "x",
        "input_schema": {},
        "x_actions": {"handler": "a.b", "execution": execution},
    }
    run = Driver({"/": PAGE}, map_of(one))
    result = run.result("go", {})
    assert result.output == {"ok": True, "text": "Box"}
    assert "a.b" in result.drift[0]


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"mode": "wild"}, "capability_unavailable"),
        ({"steps": [{"id": "a", "type": "dance", "target": {"selector": "#box"}}]}, "capability_unavailable"),
        ({"steps": [{"id": "a", "type": "click", "target": {"selector": "#no"}}]}, "target_not_found"),
        ({"steps": [{"id": "a", "type": "click", "target": {"selector": "li"}}]}, "target_not_found"),
        ({"steps": [{"id": "a", "type": "wait", "until": {"selector": "#no"}}]}, "handler_timeout"),
        (
            {
                "steps": [
                    {"id": "a", "type": "inspect", "target": {"selector": "#box"}, "assert": {"text_contains": "z"}}
                ]
            },
            "state_mismatch",
        ),
    ],
)
def test_execution_steps_that_fail_have_a_code_of_the_bridge(members, code):
    execution = {"steps": [{"id": "x", "type": "inspect", "target": {"selector": "#box"}}], **members}
    one = {"name": "go", "description": "x", "input_schema": {}, "x_actions": {"execution": execution}}
    failure = Driver({"/": PAGE}, map_of(one)).failure()
    assert failure.code == code
    if "mode" not in members:
        assert failure.evidence["step_id"] == "a"
        assert failure.evidence["steps"][-1]["ok"] is False


def test_a_result_is_held_to_its_schema():
    wanted = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    run = driver(INFO, output="{% {'n': input.n} %}", x_actions={"result_schema": wanted})
    assert run.call(n=1) == {"n": 1}
    failure = run.failure(n="x")
    assert (failure.code, failure.evidence["errors"][0]["pointer"]) == ("invalid_result", "/n")
    assert failure.evidence["steps"][0]["id"] == "info"
