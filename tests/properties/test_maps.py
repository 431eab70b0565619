"""What a runtime of maps must do for every number and order, not for one of each."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from awp_publish.maps.composition import Imported
from awp_publish.maps.rules import TRUST
from awp_publish.maps.runtime import Runtime
from awp_publish.plugins.actions_json.reading import ActionMap
from tests.browsing.driving import Agent, page
from tests.browsing.running import Driver, Json, map_of, step, tool
from tests.examples import examples

PAGES = {"/": "<title>Home</title><main><h1>Home</h1><p id=text>12345</p></main>"}
HANDLED = {"name": "go", "description": "x", "input_schema": {"type": "object"}, "x_actions": {"handler": "go"}}
STATES = [{"name": "ready", "diagnostics": [{"name": "head", "target": {"selector": "h1"}}]}]


def moving(*transitions: Json) -> Json:
    rows = [
        {"name": f"move{number}", "from": "ready", "to": "ready", "tool": "go", **members}
        for number, members in enumerate(transitions)
    ]
    states = [*STATES, {"name": "never", "diagnostics": [{"name": "none", "target": {"selector": "#none"}}]}]
    return map_of(HANDLED, states=states, transitions=rows)


async def answer(_: Any) -> object:
    return {}


@pytest.mark.parametrize("place", range(3))
def test_each_transition_of_a_tool_holds_its_calls_back(place):
    slow: list[Json] = [{}, {}, {}]
    slow[place] = {"rate_limit_ms": 60_000}
    run = Driver(PAGES, moving(*slow), handlers={"go": answer}, seconds=5)
    run.call()
    failure = run.failure()
    assert (failure.code, failure.evidence["transition"]) == ("unsafe_state", f"move{place}")


@pytest.mark.parametrize("place", range(3))
def test_each_transition_of_a_tool_has_its_preconditions_checked(place):
    rows: list[Json] = [{}, {}, {}]
    rows[place] = {"preconditions": ["never"]}
    failure = Driver(PAGES, moving(*rows), handlers={"go": answer}).failure()
    assert (failure.code, failure.evidence["transition"]) == ("state_mismatch", f"move{place}")


@pytest.mark.parametrize("place", range(3))
def test_each_transition_of_a_tool_that_is_complete_may_be_made_again(place):
    rows: list[Json] = [{}, {}, {}]
    rows[place] = {"convergence": {"max_attempts": 1, "complete_when": "ready"}}
    run = Driver(PAGES, moving(*rows), handlers={"go": answer})
    assert [run.call() for _ in range(3)] == [{}] * 3


def test_a_wait_that_would_end_after_the_call_is_refused_at_once():
    run = Driver(PAGES, moving({"rate_limit_ms": 4_000}), handlers={"go": answer}, seconds=3)
    run.call()
    failure = run.failure()
    assert failure.code == "unsafe_state"
    assert 0 < failure.evidence["retry_after_ms"] <= 4_000


@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 7))
def test_a_text_is_truncated_if_it_is_longer_than_the_limit(limit):
    snapshot = step("read", "dom.snapshot_text", {"selector": "#text", "max_chars": limit + 1})
    run = Driver(PAGES, map_of(tool("go", snapshot, output="{% steps.read.output %}")))
    assert run.call() == {"text": "12345"[: limit + 1], "truncated": limit + 1 < 5}


@pytest.mark.parametrize("limit", [2, 3, 4])
def test_a_loop_is_truncated_if_it_has_more_items_than_the_limit(limit):
    loop = step("each", "page.info", for_each="{% [1, 2, 3] %}", max_items=limit)
    run = Driver(PAGES, map_of(tool("go", loop, output="{% steps.each %}")))
    output = run.call()
    assert len(output["items"]) == min(limit, 3)
    assert ("truncated" in output) is (limit < 3)


@pytest.mark.parametrize(("limit", "is_truncated"), [(4, True), (5, False), (6, False)])
def test_a_body_is_truncated_if_it_is_longer_than_the_limit(limit, is_truncated):
    agent = Agent({"/": PAGES["/"], "/data": page("12345")})
    answered = agent.web.drive(agent.session.tab().fetch("/data", limit))
    assert (answered["body"], answered["truncated"]) == ("12345"[:limit], is_truncated)


def composed(imported: Json, maps: dict[str, Json]) -> ActionMap:
    document = map_of(imports=[{"id": "i", "uri": "one", "kind": "public", "namespace": "one", **imported}])
    whole = ActionMap.read(document).composed(lambda uri, _: Imported(ActionMap.read(maps[uri]).document, uri), "main")
    assert whole.is_valid, whole.findings
    return whole


@pytest.mark.parametrize("trust", [*sorted(TRUST), None])
def test_only_maps_of_the_site_and_of_this_machine_reach_its_handlers(trust):
    whole = composed({} if trust is None else {"trust": trust}, {"one": map_of(HANDLED)})
    run = Driver(PAGES, map_of())
    run.runtime = Runtime(whole, run.page, handlers={"go": answer}, private=True)
    if trust in ("website", "local"):
        assert run.call("one.go") == {}
    else:
        assert run.failure("one.go").code == "missing_handler"


@pytest.mark.parametrize("trust", ["private", "public"])
def test_trust_in_a_map_does_not_extend_to_what_it_imports(trust):
    inner = {"imports": [{"id": "j", "uri": "two", "kind": "public", "namespace": "two", "trust": trust}]}
    whole = composed({"trust": "website"}, {"one": map_of(**inner), "two": map_of(HANDLED)})
    run = Driver(PAGES, map_of())
    run.runtime = Runtime(whole, run.page, handlers={"go": answer})
    code = "unknown_action" if trust == "private" else "missing_handler"
    assert run.failure("one.two.go").code == code
