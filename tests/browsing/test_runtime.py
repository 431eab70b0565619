"""The rules of a runtime of actions.json (V1, Runtime Rules), and what belongs to one page: states, signals, checks."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from awp_publish.maps.live_page import Box, PageEvent, PrimitiveError
from awp_publish.maps.runtime import Runtime
from awp_publish.plugins.actions_json.reading import ActionMap
from tests.browsing.running import Driver, Json, click, map_of, step, tool

PAGE = (
    "<title>Shop</title><main><h1>Shop</h1><form><input name=q><button>Find</button></form>"
    "<a href=/next>Next</a></main>"
)
NEXT = "<title>Next</title><main><h1>Next</h1><p class=done>Done</p><a href=/>Back</a></main>"
PAGES = {"/": PAGE, "/next": NEXT}
INFO = step("info", "page.info")
STATES = [
    {"name": "ready", "diagnostics": [{"name": "form", "target": {"selector": "form"}}]},
    {
        "name": "done",
        "diagnostics": [
            {"name": "words", "target": {"selector": ".done", "text_equals": "Done"}},
            {"name": "place", "target": {"url_contains": "/next"}},
        ],
    },
    {"name": "unknown"},
]


def handled(name: str, **members: Any) -> Json:
    return {
        "name": name,
        "description": "x",
        "input_schema": {"type": "object"},
        "x_actions": {"handler": name},
        **members,
    }


async def answer(call: Any) -> object:
    return {"tool": call.tool, "arguments": dict(call.arguments), "bound": dict(call.bound)}


def test_nothing_of_an_invalid_map_is_exposed():
    run = Driver(PAGES, map_of(tool("fine", INFO), tool("not fine", INFO)))
    assert run.ask("list") == {"actions": [], "projections": []}
    failure = run.failure("fine")
    assert failure.code == "runtime_not_ready"
    assert [finding["pointer"] for finding in failure.evidence["findings"]] == ["/tools/1/name"]
    for method in ("state_read", "status", "context", "check", "signals", "states"):
        with pytest.raises(Exception, match="runtime_not_ready"):
            run.ask(method)


def test_an_older_map_is_run_where_its_reader_is_lenient():
    document = {**map_of(tool("go", INFO)), "version": "0.1.0-draft"}
    assert Driver(PAGES, document).failure().code == "runtime_not_ready"
    assert Driver(PAGES, document, lenient=True).call()


def test_a_map_that_is_larger_than_allowed_is_refused():
    assert not ActionMap.read(b'{"protocol": "actions.json", "version": 1, "tools": []}' + b" " * 10_000_001).is_valid


@pytest.mark.parametrize(
    ("document", "name", "code", "words"),
    [
        (map_of(tool("search", INFO), tool("open", INFO)), "serch", "unknown_action", 'Did you mean "search"?'),
        (map_of(context=[{"id": "c", "body": "Use it.", "available_tools": ["go"]}]), "go", "unknown_action", ""),
        (map_of({**handled("go"), "x_actions": {"direction": "html_to_agent"}}), "go", "unknown_action", ""),
        (
            map_of(tool("go", step("go", "browser.navigate", {"url": "/", "tab_id": 2}))),
            "go",
            "capability_unavailable",
            "browser.navigate",
        ),
    ],
)
def test_a_call_that_is_not_on_offer_is_refused_with_what_is(document: Json, name: str, code: str, words: str):
    failure = Driver(PAGES, document).failure(name)
    assert failure.code == code
    assert words in f"{failure.message} {failure.evidence}"


@pytest.mark.parametrize("arguments", [{"n": "x"}, {}, {"n": 1, "more": 2}, None, [], "text"])
def test_arguments_are_checked_before_anything_is_fetched(arguments):
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    run = Driver(PAGES, map_of({**tool("go", *click("next", "a")), "input_schema": schema}))
    asked = len(run.web.asked)
    with pytest.raises(Exception, match="invalid_input") as failed:
        run.result("go", arguments)
    assert isinstance(failed.value.evidence["errors"], list)  # type: ignore[attr-defined]
    assert len(run.web.asked) == asked


def test_a_state_that_is_required_is_diagnosed_first():
    one = tool("go", INFO, target={"state": "done"})
    failure = Driver(PAGES, map_of(one, states=STATES)).failure()
    assert (failure.code, failure.evidence["state"]) == ("state_mismatch", "done")
    assert [(diagnostic["name"], diagnostic["holds"]) for diagnostic in failure.evidence["diagnostics"]] == [
        ("words", False),
        ("place", False),
    ]
    assert Driver(PAGES, map_of(one, states=STATES), start="/next").call()


def test_a_state_that_nothing_diagnoses_refuses_no_call_and_is_never_current():
    run = Driver(PAGES, map_of(tool("go", INFO, target={"state": "unknown"}), states=STATES))
    assert run.call()
    response = run.ask("states")
    assert (response["current"], response["unknown"]) == (["ready"], ["unknown"])


def test_the_target_of_a_tool_is_on_the_page():
    missing = tool("missing", INFO, target={"selector": "#none"})
    elsewhere = tool("elsewhere", INFO, target={"selector": "form", "url_contains": "/other"})
    bound = tool("bound", INFO, x_actions={"binding": {"target_url_contains": "other.example"}})
    run = Driver(PAGES, map_of(missing, elsewhere, bound))
    assert {run.failure(name).code for name in ("missing", "elsewhere", "bound")} == {"target_not_found"}
    assert [action["name"] for action in run.ask("list")["actions"]] == ["missing"]


def test_only_what_something_here_carries_out_is_listed():
    run = Driver(PAGES, map_of(tool("steps", INFO), handled("ours"), handled("theirs")), handlers={"ours": answer})
    assert [action["name"] for action in run.ask("list")["actions"]] == ["steps", "ours"]
    assert run.failure("theirs").code == "missing_handler"


def test_a_page_that_changes_under_a_run_fails_the_step_and_clicks_nothing_else():
    run = Driver(PAGES, map_of(tool("go", *click("next", "a"), INFO)))
    tab = run.page._tab  # type: ignore[attr-defined]

    def move(step_id: str, changes: bool) -> None:
        if step_id == "next":  # somebody else has moved the page
            run.web.drive(tab.navigate("/next"))

    with pytest.raises(Exception, match="handler_failed") as failed:
        run.result("go", {}, on_step=move)
    assert failed.value.evidence["cause"]["stale"] is True  # type: ignore[attr-defined]
    assert [item.path for item in run.web.asked] == ["/", "/next"]


def test_a_fallback_that_wins_and_another_name_are_told_as_drift():
    target = {"selector": "#search", "fallback_selectors": ["form"], "name": "Site search"}
    result = Driver(PAGES, map_of(tool("go", INFO, target=target))).result("go", {})
    assert len(result.drift) == 2
    assert "#search" in result.drift[0]


def test_a_persistent_tool_is_bound_to_no_page():
    one = handled("go", target={"selector": "#none", "state": "done"})
    one["x_actions"] = {"handler": "go", "scope": "persistent", "binding": {"arguments": {"agent_id": "x"}}}
    run = Driver(PAGES, map_of(one, states=STATES), handlers={"go": answer})
    assert run.call("go", n=1) == {"tool": "go", "arguments": {"n": 1}, "bound": {"agent_id": "x"}}


def moving(**members: Any) -> Json:
    transition = {"name": "move", "from": "ready", "to": "ready", "tool": "go", **members}
    return map_of(handled("go"), states=STATES, transitions=[transition])


def test_a_call_that_is_repeated_too_soon_waits_or_is_refused():
    run = Driver(PAGES, moving(rate_limit_ms=60_000), handlers={"go": answer}, seconds=5)
    run.call()
    failure = run.failure()
    assert failure.code == "unsafe_state"
    assert 59_000 < failure.evidence["retry_after_ms"] <= 60_000
    quick = Driver(PAGES, moving(rate_limit_ms=20), handlers={"go": answer})
    assert quick.call()
    assert quick.call()


def test_repetitions_in_one_state_have_a_bound():
    run = Driver(PAGES, moving(convergence={"max_attempts": 2, "complete_when": "no more"}), handlers={"go": answer})
    assert run.call(n=1)
    assert run.call(n=1)
    failure = run.failure(n=1)
    assert (failure.code, failure.evidence["attempts"]) == ("unsafe_state", 2)
    assert run.call(n=2)  # another movement


@pytest.mark.parametrize("complete", ["ready", "{% output.arguments.n = 1 %}", "{% 'ready' in states %}"])
def test_a_movement_that_is_complete_may_begin_anew(complete):
    run = Driver(PAGES, moving(convergence={"max_attempts": 1, "complete_when": complete}), handlers={"go": answer})
    for _ in range(3):
        assert run.call(n=1)


def test_a_movement_has_begun_anew_where_it_has_reached_the_state_to_which_it_leads():
    states = [*STATES, {"name": "head", "diagnostics": [{"name": "h", "target": {"selector": "h1"}}]}]
    for end, is_reached in (("head", True), ("done", False), ("ready", False)):
        transition = {"name": "move", "from": "ready", "to": end, "tool": "go", "convergence": {"max_attempts": 1}}
        run = Driver(PAGES, map_of(handled("go"), states=states, transitions=[transition]), handlers={"go": answer})
        assert run.call(n=1)
        assert run.call(n=1) if is_reached else run.failure(n=1).code == "unsafe_state"


def test_a_diagnostic_without_a_target_is_documentation():
    looking = {"name": "look", "description": "Look for the heading."}
    states = [
        {"name": "told", "diagnostics": [looking]},
        {"name": "seen", "diagnostics": [looking, {"name": "form", "target": {"selector": "form"}}]},
        {"name": "unseen", "diagnostics": [looking, {"name": "none", "target": {"selector": "#none"}}]},
    ]
    known = Driver(PAGES, map_of(states=states)).ask("states")
    assert (known["current"], known["unknown"]) == (["seen"], ["told"])
    assert [item["name"] for item in known["diagnostics"]["unseen"]] == ["none"]


def test_a_lenient_reader_leaves_out_what_it_cannot_run_and_says_so():
    broken = {"name": "later", "description": "No one has written it.", "input_schema": {}}
    run = Driver(PAGES, map_of(tool("go", INFO), broken, tool("bad", {"id": "no primitive"})), lenient=True)
    assert [action["name"] for action in run.ask("list")["actions"]] == ["go"]
    assert run.call("go")
    assert run.failure("later").code == "unknown_action"
    left_out = [finding.pointer for finding in run.map.findings if finding.check == "actions-unusable-tool"]
    assert left_out == ["/tools/1", "/tools/2"]
    assert {finding.level for finding in run.map.findings} == {"warning"}
    assert not Driver(PAGES, map_of(tool("go", INFO), broken)).map.is_valid


def test_preconditions_that_name_a_state_are_checked_and_others_are_documentation():
    assert Driver(PAGES, moving(preconditions=["a name is there"]), handlers={"go": answer}).call()
    failure = Driver(PAGES, moving(preconditions=["done"]), handlers={"go": answer}).failure()
    assert (failure.code, failure.evidence["transition"]) == ("state_mismatch", "move")


def test_context_is_selected_by_address_states_targets_and_task():
    def block(name: str, **when: Any) -> Json:
        return {"id": name, "title": name, "body": f"About {name}.", **({"load_when": when} if when else {})}

    context = [
        block("always"),
        block("address", url_contains="/next"),
        block("pattern", url_matches="https://SHOP.example/*"),
        block("states", states=["done", "ready"]),
        block("unknown", states=["unknown"]),
        block("targets", targets=["#none", {"selector": "form"}]),
        block("both", states=["ready"], url_contains="/next"),
        block("broken", targets=["a["]),
        block("task", tasks=["refund"]),
    ]
    run = Driver(PAGES, map_of(context=context, states=STATES))
    assert [item["id"] for item in run.ask("context")] == ["always", "pattern", "states", "targets"]
    assert [item["id"] for item in run.ask("context", "I want a REFUND by targets")][:2] == ["targets", "always"]
    assert "task" in [item["id"] for item in run.ask("context", "I want a REFUND")]


def projection(name: str = "page", **members: Any) -> Json:
    snapshot = {
        "version": 1,
        "source": "dom",
        "extract": [
            {"id": "heads", "selector": "h1"},
            {"id": "links", "selector": "a", "fields": {"to": {"attribute": "href"}}},
        ],
        "projection": {
            "language": "jsonata",
            "expression": "{'heads': records.heads, 'links': $append([], records.links)}",
        },
        **members.pop("snapshot", {}),
    }
    return {"name": name, "description": "x", "snapshot": snapshot, **members}


def test_a_postcondition_is_verified_after_a_tool():
    verified = {"go": {"verify": {"language": "jsonata", "expression": "{% state.heads[0] = input.head %}"}}}
    document = map_of(tool("go", *click("next", "a")), state_projections=[projection(postconditions=verified)])
    assert Driver(PAGES, document).call(head="Next")
    failure = Driver(PAGES, document).failure(head="Shop")
    assert (failure.code, failure.evidence["code"]) == ("state_mismatch", "state_postcondition_failed")
    assert [one["id"] for one in failure.evidence["steps"]] == ["find_next", "next"]
    assert failure.evidence["failure_class"] == "postcondition_failed"


def test_a_change_is_a_patch_and_what_it_means():
    run = Driver(PAGES, map_of(tool("go", *click("next", "a")), state_projections=[projection()]))
    first = run.ask("state_diff")
    assert (first["reason"], first["state"]["heads"]) == ("no_previous_state", ["Shop"])
    run.call()
    second = run.ask("state_diff", "page")
    assert second["patches"] == [
        {"op": "replace", "path": "/heads/0", "value": "Next"},
        {"op": "replace", "path": "/links/0/to", "value": "/"},
    ]
    assert second["deltas"][1] == {"type": "field_replaced", "path": "/links/0/to", "field": "to", "value": "/"}
    assert second["previous_state_hash"] == first["state_hash"] != second["state_hash"]
    assert run.ask("state_diff")["patches"] == []


@pytest.mark.parametrize(
    ("members", "code", "named"),
    [
        ({"snapshot": {"output_schema": {"required": ["books"]}}}, "invalid_result", "state_schema_validation_failed"),
        ({"scope": {"url_matches": "https://other.example/*"}}, "handler_failed", "state_projection_not_found"),
        ({"snapshot": {"extract": [{"id": "x", "xpath": "//a"}]}}, "capability_unavailable", "state_projection_failed"),
        (
            {"snapshot": {"projection": {"language": "jsonata", "expression": "$error('x')"}}},
            "handler_failed",
            "state_projection_failed",
        ),
        (
            {
                "snapshot": {
                    "projection": {"language": "jsonata", "expression": "$map([1..6], function($i){$pad('x', 9999)})"}
                }
            },
            "invalid_result",
            "state_payload_too_large",
        ),
        ({"markers": [{"id": "a", "type": "cursor", "recipe": []}]}, "handler_failed", "invalid_state_markers"),
        ({"markers": "{% [{'id': 'a', 'type': 'other', 'recipe': [1]}] %}"}, "handler_failed", "invalid_state_markers"),
        ({"markers": "{% $error('x') %}"}, "handler_failed", "state_markers_failed"),
    ],
)
def test_a_projection_that_fails_says_how(members, code, named):
    run = Driver(PAGES, map_of(state_projections=[projection(**members)]))
    assert run.map.is_valid, run.map.findings
    with pytest.raises(Exception, match=code) as failed:
        run.ask("state_read", "page")
    assert failed.value.evidence["code"] == named  # type: ignore[attr-defined]
    if named == "state_payload_too_large":
        assert failed.value.evidence["available_summaries"] == []  # type: ignore[attr-defined]


def test_a_summary_has_a_budget_and_a_name():
    summaries = [{"name": "all", "max_bytes": 20, "expression": "{% state %}"}, {"name": "few", "expression": "1"}]
    run = Driver(PAGES, map_of(state_projections=[projection(summaries=summaries)]))
    with pytest.raises(Exception, match="invalid_result") as failed:
        run.ask("state_summary", "page", "all")
    assert failed.value.evidence["code"] == "state_payload_too_large"  # type: ignore[attr-defined]
    assert failed.value.evidence["available_summaries"] == ["all", "few"]  # type: ignore[attr-defined]
    assert run.ask("state_summary", "page", "few")["summary"] == 1
    with pytest.raises(Exception, match="no summary"):
        run.ask("state_summary", "page", "none")
    with pytest.raises(Exception, match="bytes"):
        run.ask("state_read", "page", 10)


def test_markers_that_are_sound_are_in_the_answer():
    recipe = [{"primitive": "pointer.click", "args": {"x": 1, "y": 2}}]
    step_of_recipe = "{'primitive': 'pointer.click', 'args': {'x': 1, 'y': 2}}"
    slot = f"{{% [{{'id': state.heads[0], 'type': 'pointer', 'recipe': [{step_of_recipe}]}}] %}}"
    run = Driver(PAGES, map_of(state_projections=[projection(markers=slot)]))
    assert run.ask("state_read")["markers"] == [{"id": "Shop", "type": "pointer", "recipe": recipe}]


def test_fields_are_read_in_every_way():
    pages = {
        "/": "<ul><li data-n=7><b> Emma </b><i>x</i><i>y</i><input name=q value=v><input type=checkbox checked "
        "aria-label='Tick'><p style='display:none'>hidden</p></li></ul>"
    }
    fields = {
        "text": {"selector": "b"},
        "raw": {"selector": "b", "property": "textContent"},
        "trimmed": {"selector": "b", "property": "textContent", "trim": True},
        "number": {"attribute": "data-n"},
        "several": {"selector": "i", "many": True},
        "nested": {"selector": "i", "many": True, "fields": {"text": {}}},
        "value": {"selector": "[name='q']", "property": "value"},
        "checked": {"selector": "[type='checkbox']", "property": "checked"},
        "label": {"selector": "[type='checkbox']", "property": "ariaLabel"},
        "around": {"selector": "b", "closest": "ul", "property": "boundingClientRect"},
        "unknown": {"selector": "b", "property": "outerHTML"},
        "hidden": {"selector": "p"},
        "missing": {"selector": "#none", "default": 3},
    }
    expression = {"projection": {"language": "jsonata", "expression": "records"}}
    one = {"id": "one", "selector": "li", "many": False, "fields": fields}
    none = {"id": "none", "selector": "#none", "many": False, "fields": fields}
    read = projection(snapshot={"extract": [one, none], **expression})
    state = Driver(pages, map_of(state_projections=[read])).ask("state_read")["state"]
    assert state["none"] is None
    assert state["one"].pop("around").keys() >= {"x", "y", "width", "height", "top", "left", "right", "bottom"}
    assert state["one"] == {
        "text": "Emma",
        "raw": " Emma ",
        "trimmed": "Emma",
        "number": "7",
        "several": ["x", "y"],
        "nested": [{"text": "x"}, {"text": "y"}],
        "value": "v",
        "checked": True,
        "label": "Tick",
        "unknown": None,
        "hidden": "",
        "missing": 3,
    }


def test_a_check_can_go_somewhere_call_a_tool_and_compare_its_result():
    check = {
        "id": "flow",
        "severity": "critical",
        "setup": [{"type": "navigate", "url": "/next"}],
        "steps": [{"type": "call", "tool": "back", "arguments": {}}],
        "expected_result": {"title": "Shop", "url_contains": "shop.example"},
        "assertions": [{"target": {"selector": "form"}, "visible": True}],
    }
    document = map_of(tool("back", *click("b", "a"), INFO, output="{% steps.info.output %}"), checks=[check])
    (result,) = Driver(PAGES, document).ask("check")
    assert result["status"] == "passed", result
    wrong = {**check, "expected_result": {"title": "Other"}}
    (result,) = Driver(PAGES, {**document, "checks": [wrong]}).ask("check")
    assert (result["status"], result["error"]["severity"]) == ("failed", "critical")


def test_a_check_keeps_the_evidence_that_it_is_asked_for():
    failing = {"store_evidence": ["url", "dom_snapshot"], "contingency": "ask", "alternate_selectors": ["h1", "#none"]}
    check = {"id": "c", "assertions": [{"target": {"selector": "#none"}, "visible": True}], "on_fail": failing}
    (result,) = Driver(PAGES, map_of(checks=[check])).ask("check")
    assert result["evidence"]["dom_snapshot"] == PAGE
    assert [len(found) for found in result["evidence"]["alternate_selectors"].values()] == [1, 0]
    assert result["contingency"] == "ask"


def test_a_check_of_another_state_or_address_is_skipped_and_one_of_elsewhere_is_an_error():
    checks = [
        {"id": "state", "state": "done", "assertions": []},
        {"id": "address", "target": {"url_contains": "/next"}},
        {"id": "elsewhere", "setup": [{"type": "navigate", "url": "https://other.example/"}]},
    ]
    results = Driver(PAGES, map_of(checks=checks, states=STATES)).ask("check")
    assert [result["status"] for result in results] == ["skipped", "skipped", "error"]
    assert [
        item["check_id"] for item in Driver(PAGES, map_of(checks=checks, states=STATES)).ask("check", ["state"])
    ] == ["state"]


class Recorded:
    """A page in process to which things can be attached, and that has events."""

    def __init__(self, page: Any) -> None:
        self.inner = page
        self.there: dict[str, str] = {}
        self.log: list[str] = []
        self.events: list[PageEvent] = []
        self.listened: frozenset[str] = frozenset()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def attach(self, attachment_id: str, ref: str, affordance: Json) -> None:
        if affordance.get("label") == "broken":
            raise PrimitiveError("insert_failed", "no")
        self.there[attachment_id] = ref
        self.log.append(f"attach {attachment_id}")

    async def detach(self, attachment_id: str) -> None:
        self.there.pop(attachment_id, None)
        self.log.append(f"detach {attachment_id}")

    async def attached(self) -> frozenset[str]:
        return frozenset(self.there)

    async def listen(self, events: frozenset[str]) -> None:
        self.listened = events

    async def take_events(self) -> Sequence[PageEvent]:
        taken, self.events = self.events, []
        return taken


LIFECYCLE = {"install": "when_target_matches", "remove": "when_context_mismatch", "reattach": "on_url_or_dom_change"}


def recorded(document: Json) -> tuple[Driver, Recorded]:
    run = Driver(PAGES, document)
    page = Recorded(run.page)
    run.runtime = Runtime(run.map, page)  # type: ignore[arg-type]
    return run, page


def test_attachments_are_installed_removed_and_attached_again():
    guide = {"id": "guide", "target": {"selector": "form"}, "affordance": {"label": "x"}, "lifecycle": LIFECYCLE}
    run, page = recorded(map_of(tool("next", *click("n", "a")), attachments=[guide]))

    def state() -> str:
        response: str = run.ask("status")["attachments"][0]["state"]
        return response

    assert (state(), state()) == ("attached", "attached")
    run.call("next")
    assert state() == "drifted"
    run.call("next")
    assert state() == "attached"
    page.there.clear()  # the page's scripts have thrown it away
    assert state() == "attached"
    assert page.log == ["attach guide", "detach guide", "attach guide", "attach guide"]


def test_attachments_that_cannot_be_there_say_so():
    guide = {"id": "guide", "target": {"selector": "form"}, "lifecycle": LIFECYCLE}
    assert Driver(PAGES, map_of(attachments=[guide])).ask("status")["attachments"] == [
        {"id": "guide", "state": "unsupported"}
    ]
    broken = {**guide, "affordance": {"label": "broken"}}
    run, _ = recorded(map_of(attachments=[broken]))
    assert run.ask("status")["attachments"][0]["state"] == "drifted"


def test_only_events_that_the_map_enables_and_that_fit_are_forwarded():
    payload = {"type": "object", "properties": {"id": {"type": "string"}}, "additionalProperties": False}

    def signal(name: str, **members: Any) -> Json:
        return {"name": name, "description": "x", "event": f"shop:{name}", "ingestion": "enabled", **members}

    signals = [
        signal("chosen", payload=payload, target={"selector": "a"}),
        signal("plain"),
        signal("off", ingestion="disabled_by_default", payload=payload),
        {"name": "silent", "event": "shop:silent"},
    ]
    run, page = recorded(map_of(signals=signals))
    assert run.ask("signals") == []
    assert page.listened == {"shop:chosen", "shop:plain"}
    link = asyncio.run(run.page.find("a"))[0].ref
    url = run.page.url
    page.events = [
        PageEvent("shop:chosen", {"id": "7"}, url, [link]),
        PageEvent("shop:chosen", {"id": "7", "more": 1}, url, [link]),
        PageEvent("shop:chosen", {"id": 7}, url, [link]),
        PageEvent("shop:chosen", {"id": "8"}, url, ["0"]),
        PageEvent("shop:plain", {"any": "thing"}, url),
        PageEvent("shop:off", {}, url),
        PageEvent("shop:silent", {}, url),
    ]
    forwarded = run.ask("signals")
    assert [(item["name"], item["payload"]) for item in forwarded] == [("chosen", {"id": "7"}), ("plain", {})]
    assert all(item.keys() >= {"event_id", "event", "url", "observed_at"} for item in forwarded)
    assert run.runtime.dropped_events == 2


def test_a_box_has_its_centre_in_it():
    assert Box(10, 20, 100, 30).describe_centre() == {"x": 60, "y": 35}


@pytest.mark.parametrize(
    ("schema", "fitting", "wrong"),
    [
        (
            {
                "$schema": "http://json-schema.org/draft-07/schema#",
                "definitions": {"pair": {"items": [{"type": "string"}, {"type": "integer"}], "additionalItems": False}},
                "properties": {"it": {"$ref": "#/definitions/pair", "type": "null"}},
                "dependencies": {"a": ["b"], "c": {"required": ["d"]}},
            },
            [{"it": ["a", 1]}, {"a": 1, "b": 2}, {"c": 1, "d": 2}],
            [{"it": ["a", "b"]}, {"it": ["a", 1, 2]}, {"a": 1}, {"c": 1}],
        ),
        (
            {
                "$schema": "http://json-schema.org/draft-04/schema#",
                "id": "https://maps.example/in",
                "properties": {
                    "it": {"minimum": 1, "exclusiveMinimum": True, "maximum": 3, "exclusiveMaximum": False},
                    "items": {"enum": [{"id": "a"}]},
                },
            },
            [{"it": 3}, {"items": {"id": "a"}}],
            [{"it": 1}, {"it": 4}, {"items": {"$id": "a"}}],
        ),
        (
            {
                "$schema": "https://json-schema.org/draft/2019-09/schema",
                "properties": {"it": {"$recursiveRef": "#"}, "n": {"$ref": "#/$defs/n", "minimum": 2}},
                "$defs": {"n": {"type": "integer"}},
                "additionalProperties": False,
            },
            [{"it": {"it": {}}}, {"n": 2}],
            [{"it": {"no": 1}}, {"n": 1}, {"n": "2"}],
        ),
    ],
)
def test_arguments_are_held_to_a_schema_in_the_dialect_that_it_declares(schema, fitting, wrong):
    run = Driver(PAGES, map_of(tool("go", INFO, input_schema=schema)))
    for given in fitting:
        run.result("go", given)
    for given in wrong:
        assert run.failure("go", **given).code == "invalid_input", given


@pytest.mark.parametrize("member", ["input_schema", "result_schema"])
def test_a_schema_that_refers_outside_of_itself_lets_nothing_pass(member):
    schema = {"$ref": "https://maps.example/schema.json"}
    failure = Driver(PAGES, map_of({**tool("go", INFO), member: schema})).failure()
    assert failure.code == "runtime_not_ready"
    assert "cannot be used here" in failure.message
    assert failure.evidence == {}


def test_the_part_of_an_address_to_which_a_tool_is_bound_is_listed_with_it():
    of_target = tool("of_target", INFO, target={"selector": "body", "url_contains": "shop.example"})
    of_binding = tool("of_binding", INFO, x_actions={"binding": {"target_url_contains": "https://"}})
    listed = Driver(PAGES, map_of(of_target, of_binding, tool("unbound", INFO))).ask("list")["actions"]
    assert {item["name"]: item.get("target_url_contains") for item in listed} == {
        "of_target": "shop.example",
        "of_binding": "https://",
        "unbound": None,
    }


CARDS = (
    "<main><div class=card><p>one</p><a href=/1>First</a></div><div class=card><p>two</p><a href=/2>Second</a></div>"
    "<form><input type=hidden name=h value=x><input type=reset><input type=submit></form><hr><i hidden>none</i></main>"
)


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ({"selector": "p", "text_equals": "one", "closest": {"closest": ".card", "selector": "a"}}, "First"),
        ({"selector": "p", "text_equals": "two", "closest": {"closest": ".card", "selector": "a"}}, "Second"),
        ({"selector": "input[type=reset]"}, "Reset"),
        ({"selector": "input[type=submit]"}, "Submit"),
        ({"selector": "input[name=h]"}, "target_not_found"),
        ({"selector": "i"}, "target_not_found"),
        ({"role": "separator"}, ""),
    ],
)
def test_a_target_is_an_element_that_is_seen_and_has_the_text_that_is_seen(target, text):
    look = step("look", "locator.element_info", {"locator": target}, on_error="continue")
    run = Driver({"/": CARDS}, map_of(tool("go", look, output="{% steps.look %}")))
    found = run.call()
    assert (found["output"]["text"] if found["ok"] else found["error"]["code"]) == text
