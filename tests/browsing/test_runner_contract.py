"""What a runtime of actions.json does upon a page, whatever drives the page."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from awp_publish.browsing.page import Fetched
from awp_publish.maps.chromium import why_unavailable
from awp_publish.maps.failures import RuntimeFailure
from awp_publish.maps.roles import roles_of
from tests.browsing.driving import HOME, Answer, page, redirect
from tests.browsing.running import Driver, Json, click, map_of, open_in_chromium, open_in_process, step, tool
from tests.limit import OF_BROWSERS

OPENERS: dict[str, Any] = {"in_process": open_in_process, "chromium": open_in_chromium}
"""Ways to open a page of a tiny site, by the name of what drives it."""

SHOP: Mapping[str, Answer] = {
    "/": "<title>Shop</title><main><h1>Books</h1><form role=search action=/search aria-label='Site search'>"
    "<label>Words <input name=q></label><label><input type=checkbox name=used value=1> Used only</label>"
    "<button type=submit>Find</button></form><p hidden class=secret>Secret</p><a href=/about>About</a> "
    "<a href=/gone id=gone>Gone</a></main>",
    "/search": lambda fetch: (
        "<title>Results</title><main><h1>Results</h1><p class=count>"
        f"Asked: {fetch.path.partition('?')[2]}</p>"
        "<ol><li class=book data-id=1><a class=title href=/b/1>Emma</a> <data class=price value=950>9.50</data></li>"
        "<li class=book data-id=2><a class=title href=/b/2>Persuasion</a></li></ol></main>"
    ),
    "/about": "<title>About</title><main><h1>About us</h1><button disabled>Buy</button><button>Sell</button></main>",
    "/order": lambda fetch: redirect("/done", 303) if b"copies=2" in fetch.body else page("<h1>Refused</h1>", 400),
    "/done": "<title>Done</title><main><h1>Thank you</h1></main>",
    "/b/1": "<title>Emma</title><main><h1>Emma</h1><form method=post action=/order><label>Copies "
    "<input type=number name=copies value=1></label><button>Order</button></form></main>",
}

SEARCH = tool(
    "search",
    step(
        "type", "text.insert", {"text": "{% input.q %}", "target": {"selector": "input[name='q']"}, "mode": "replace"}
    ),
    step("checked", "dom.observe.visible", {"selector": "input[name='used']:checked"}),
    *click("used", "input[name='used']", when="{% input.used != ($count(steps.checked.output.matches) > 0) %}"),
    *click("submit", "form button", settle_after={"locator": {"selector": "p.count"}, "timeout_ms": 2000}),
    step("verify", "locator.wait_for", {"locator": {"selector": "p.count"}, "timeout_ms": 2000}),
    step("asked", "locator.text_content", {"locator": {"selector": "p.count"}}),
    step("page", "page.info"),
    output="{% {'ok': true, 'title': steps.page.output.title, 'asked': steps.asked.output.text} %}",
)


@pytest.fixture(params=["in_process", pytest.param("chromium", marks=pytest.mark.limit(OF_BROWSERS))])
def run(request: pytest.FixtureRequest) -> Callable[..., Driver]:
    """Make a driver upon the shop."""
    if request.param == "chromium" and (reason := why_unavailable()) is not None:
        pytest.skip(reason)

    def make(document: Json, start: str = "/", pages: Mapping[str, Answer] = SHOP, **options: Any) -> Driver:
        return Driver(pages, document, start=start, opening=OPENERS[request.param], **options)

    return make


def test_a_workflow_fills_a_form_sends_it_and_reads_the_answer(run):
    driver = run(map_of(SEARCH))
    expected = {"ok": True, "title": "Results", "asked": "Asked: q=emma&used=1"}
    assert driver.call("search", q="emma", used=True) == expected


def test_a_condition_skips_a_step_and_the_summary_says_so(run):
    result = run(map_of(SEARCH)).result("search", {"q": "emma", "used": False})
    assert result.output["asked"] == "Asked: q=emma"
    assert [one["id"] for one in result.steps if one["skipped"]] == ["used"]


def test_typed_text_is_kept_and_enter_submits_the_form(run):
    document = map_of(
        tool(
            "go",
            *click("field", "input[name='q']"),
            step("type", "text.insert", {"text": "em"}),
            step("more", "text.insert", {"text": "ma", "mode": "append"}),
            step("enter", "keyboard.press", {"key": "Enter"}),
            step("seen", "locator.text_content", {"locator": {"selector": "p.count"}}),
            output="{% steps.seen.output.text %}",
        )
    )
    assert run(document).call() == "Asked: q=emma"


def test_a_post_and_its_redirect_are_followed(run):
    document = map_of(
        tool(
            "go",
            step("copies", "text.insert", {"text": "2", "target": {"selector": "[name='copies']"}, "mode": "replace"}),
            *click("order", "form button"),
            step("page", "page.info"),
            output="{% steps.page.output.title %}",
        )
    )
    assert run(document, "/b/1").call() == "Done"


def test_all_predicates_of_a_target_hold_together(run):
    def found(locator: Json) -> Any:
        document = map_of(
            tool(
                "go", step("look", "locator.element_info", {"locator": locator}), output="{% steps.look.output.text %}"
            )
        )
        driver = run(document)
        try:
            return driver.call()
        except Exception as failure:
            return getattr(failure, "evidence", {}).get("cause", {}).get("code", repr(failure))

    assert found({"role": "link", "text_equals": "About"}) == "About"
    assert found({"role": "button", "name": "find"}) == "Find"
    assert found({"selector": "a", "text_contains": "bou", "url_contains": "shop.example"}) == "About"
    assert found({"selector": "a", "text_contains": "Find"}) == "target_not_found"
    assert found({"selector": "a", "role": "button", "text_contains": "About"}) == "target_not_found"
    assert found({"selector": ".secret"}) == "target_not_found"
    assert found({"selector": "#none", "fallback_selectors": ["#nothing", "h1"]}) == "Books"
    assert found({"text_equals": "Books"}) == "Books"
    assert found({"selector": "h1", "url_contains": "/search"}) == "target_not_found"
    assert found({"role": "search"}).startswith("Words")
    assert found({"role": "text_input"}) == found({"role": "textbox"}) == ""


def test_several_matches_are_told_and_nothing_is_done_to_any(run):
    look = step("look", "locator.element_info", {"locator": {"selector": "a"}})
    driver = run(
        map_of(tool("look", look), tool("type", step("t", "text.insert", {"text": "x", "target": {"role": "link"}})))
    )
    output = driver.call("look")["steps"]["look"]["output"]
    assert (output["ambiguous"], output["candidate_count"], len(output["candidates"])) == (True, 2, 2)
    assert "clickable_center" not in output
    assert driver.failure("type").evidence["cause"]["code"] == "multiple_targets"


def test_a_link_that_leads_to_an_error_is_a_failed_step(run):
    failure = run(map_of(tool("go", *click("gone", "#gone"), step("page", "page.info")))).failure()
    assert (failure.code, failure.evidence["step_id"]) == ("handler_failed", "gone")
    assert failure.evidence["cause"]["code"] == "navigation_failed"
    assert [one["id"] for one in failure.evidence["steps"]] == ["find_gone", "gone"]


def test_a_point_of_an_earlier_page_clicks_nothing(run):
    steps = (
        step("old", "locator.element_info", {"locator": {"selector": "#gone"}}),
        *click("about", "a[href='/about']"),
        step("again", "pointer.click", {"x": "{% steps.old.output.clickable_center.x %}", "y": 1_000_000}),
    )
    failure = run(map_of(tool("go", *steps))).failure()
    assert failure.evidence["step_id"] == "again"
    assert failure.evidence["cause"]["code"] in ("target_not_found", "point_out_of_viewport")


LEAVING = (
    "<script>addEventListener('pagehide', () => { const end = Date.now() + 300; while (Date.now() < end); })</script>"
)
"""A script that keeps a page from being replaced for a moment, in which Chromium would never end its closing."""


def test_a_click_ends_when_the_page_behind_the_link_has_replaced_the_one_before(run):
    pages = {**SHOP, "/": SHOP["/"] + LEAVING}
    driver = run(map_of(tool("go", *click("about", "a[href='/about']"))), pages=pages)
    driver.call()
    assert driver.page.url == f"{HOME}/about"
    driver = run(map_of(tool("go", *click("gone", "#gone"))), pages=pages)
    assert driver.failure().evidence["cause"]["code"] == "navigation_failed"
    assert driver.page.url == f"{HOME}/gone"


def test_execution_steps_inspect_type_click_wait_and_extract(run):
    steps = [
        {
            "id": "look",
            "type": "inspect",
            "target": {"selector": "[name='q']"},
            "assert": {"visible": True, "enabled": True},
        },
        {"id": "type", "type": "type", "target": {"selector": "[name='q']"}, "value_from": "q"},
        {"id": "send", "type": "click", "target": {"role": "button", "name": "Find"}},
        {"id": "wait", "type": "wait", "until": {"selector": "p.count", "text_contains": "Asked"}, "timeout_ms": 2000},
        {"id": "read", "type": "extract", "target": {"selector": "p.count"}, "as": "asked"},
    ]
    one = {
        "name": "go",
        "description": "Searches.",
        "input_schema": {"type": "object", "properties": {"q": {"type": "string"}}},
        "x_actions": {"execution": {"mode": "steps_first", "steps": steps}},
    }
    result = run(map_of(one)).result("go", {"q": "emma"})
    assert result.output == {"ok": True, "asked": "Asked: q=emma"}
    assert [one["id"] for one in result.steps] == ["look", "type", "send", "wait", "read"]


def test_a_projection_reads_the_page_as_an_object(run):
    projection = {
        "name": "results",
        "description": "The books.",
        "scope": {"url_matches": "https://shop.example/search*"},
        "snapshot": {
            "version": 1,
            "source": "dom",
            "extract": [
                {
                    "id": "books",
                    "selector": "li.book",
                    "many": True,
                    "fields": {
                        "id": {"attribute": "data-id"},
                        "title": {"selector": ".title", "property": "innerText", "trim": True, "required": True},
                        "cents": {"selector": ".price", "attribute": "value", "required": True},
                        "price": {"selector": ".price", "default": "unknown"},
                    },
                },
                {"id": "count", "selector": "p.count", "many": False},
            ],
            "projection": {"language": "jsonata", "expression": "{% {'books': $append([], records.books)} %}"},
        },
        "summaries": [{"name": "short", "expression": "{% {'titles': state.books.title} %}"}],
    }
    driver = run(map_of(SEARCH, state_projections=[projection]), "/search?q=x")
    read = driver.ask("state_read", "results")
    assert read["state"] == {
        "books": [
            {"id": "1", "title": "Emma", "cents": "950", "price": "9.50"},
            {"id": "2", "title": "Persuasion", "cents": None, "price": "unknown"},
        ]
    }
    assert read["diagnostics"]["selector_counts"] == {"books": 2, "count": 1}
    assert read["diagnostics"]["missing_required_fields"] == ["books.1.cents"]
    assert driver.ask("state_summary", "results", "short")["summary"] == {"titles": ["Emma", "Persuasion"]}
    assert driver.ask("list")["projections"][0]["summaries"] == ["short"]


def test_checks_tell_what_they_saw(run):
    def check(check_id: str, **assertion: Any) -> Json:
        return {"id": check_id, "description": "x", "assertions": [assertion]}

    checks = [
        check("there", target={"selector": "button"}, visible=True, count=2),
        check("usable", target={"role": "button", "name": "Buy"}, enabled=True),
        check("gone", target={"selector": "form"}, visible=True),
        check("says", target={"selector": "h1"}, text_contains="About"),
        check("hidden", target={"selector": "dialog"}, visible=False),
    ]
    results = run(map_of(checks=checks), "/about").ask("check")
    values = {result["check_id"]: result["status"] for result in results}
    assert values == {"there": "passed", "usable": "failed", "gone": "failed", "says": "passed", "hidden": "passed"}
    failed = results[2]
    assert failed["error"]["code"] == "drift_detected"
    assert failed.keys() >= {"check_id", "status", "observed_at", "url", "evidence"}


def test_one_of_very_many_is_found_by_its_text(run):
    links = "".join(f"<p><a href=/{number}>Number {number}</a></p>" for number in range(1_200))
    look = step("look", "locator.element_info", {"locator": {"selector": "a", "text_equals": "Number 1100"}})
    by_name = step("name", "locator.element_info", {"locator": {"role": "link", "name": "Number 900"}})
    driver = run(
        map_of(tool("go", look, by_name, output="{% [steps.look.output.text, steps.name.output.text] %}")),
        pages={"/": links},
    )
    assert driver.call() == ["Number 1100", "Number 900"]


def test_an_address_of_the_site_is_read_without_being_shown(run):
    fetch = step("sheet", "page.fetch", {"url": "{% '/sheets/' & input.id %}"})
    output = "{% {'status': steps.sheet.output.status, 'cells': $split(steps.sheet.output.body, ','), 'whole': "
    output += "$not(steps.sheet.output.truncated)} %}"
    sheets = {"/sheets/1": Fetched(200, (("Content-Type", "text/csv; charset=iso-8859-1"),), b"caf\xe9,tea")}
    driver = run(map_of(tool("read", fetch, output=output)), pages={**SHOP, **sheets})
    assert driver.call("read", id="1") == {"status": 200, "cells": ["café", "tea"], "whole": True}
    assert driver.call("read", id="2")["status"] == 404
    assert driver.page.url.endswith("/")
    assert driver.ask("call", "read", {"id": "1"}).steps[0]["ok"]


def test_a_request_of_a_script_follows_redirects_within_the_site_and_is_limited(run):
    pages = {**SHOP, "/old": redirect("/long"), "/long": page("x" * 150_000)}
    output = (
        "{% {'url': steps.it.output.url, 'size': $length(steps.it.output.body), 'cut': steps.it.output.truncated} %}"
    )
    driver = run(map_of(tool("go", step("it", "page.fetch", {"url": "/old"}), output=output)), pages=pages)
    if driver.page.host == "in_process":  # what answers for the site in Chromium has no redirects for scripts
        assert driver.call() == {"url": f"{HOME}/long", "size": 100_000, "cut": True}
    other = run(map_of(tool("go", step("it", "page.fetch", {"url": "https://evil.example/"}))), pages=pages)
    assert other.failure().evidence["cause"]["code"] == "permission_denied"


def test_a_list_of_elements_is_read_by_the_fields_that_are_asked_for(run):
    fields: list[Json] = [
        {"name": "title", "selector": ".title", "attributes": ["aria-label", "text"]},
        {"name": "number", "selector": ":scope", "attribute": "data-id"},
        {"name": "price", "selector": "data", "attribute": "value"},
    ]
    binding = {"arguments": {"scope": {"selectors": ["ul", "ol"]}, "item_selector": "li", "fields": fields}}
    document = map_of(
        {
            "name": "books",
            "description": "Reads.",
            "input_schema": {"type": "object"},
            "x_actions": {"handler": "browser.extract_elements", "binding": binding},
        }
    )
    driver = run(document, start="/search?q=e")
    assert driver.call("books") == {
        "items": [
            {"title": "Emma", "number": "1", "price": "950"},
            {"title": "Persuasion", "number": "2", "price": None},
        ],
        "item_count": 2,
    }
    assert driver.call("books", scope={})["item_count"] == 2
    assert driver.failure("books", scope={"selector": "table"}).code == "target_not_found"
    assert driver.call("books", scope={"selectors": ["main", "li"], "text_contains": "Emma"})["item_count"] == 2
    assert driver.failure("books", scope={"selector": "li", "text_equals": "Emma"}).code == "target_not_found"
    assert driver.call("books", scope={"text_contains": "Emma"})["item_count"] == 2
    assert driver.failure("books", scope={"frame": "iframe"}).code == "capability_unavailable"
    assert driver.failure("books", scope={"selector": "ol", "root_strategy": "parent"}).code == "capability_unavailable"
    assert driver.failure("books", fields=[{"selector": "a"}]).code == "invalid_input"


CARDS = (
    "<main><div class='card big'><div>One</div><p class=x:y>1</p><div class=in><div>Inner</div></div></div>"
    "<div class=card><div>Two</div><span><i>a</i></span><i>b</i></div></main>"
)


@pytest.mark.parametrize(
    ("css", "first", "second"),
    [
        (":scope > div:first-child", ["One"], ["Two"]),
        (":scope > div", ["One", "Inner"], ["Two"]),
        (":scope div", ["One", "Inner", "Inner"], ["Two"]),
        (":scope>div>div", ["Inner"], []),
        (":scope > span i, :scope > p", ["1"], ["a"]),
        (":scope.big > p", ["1"], []),
        (":scope > span + i", [], ["b"]),
        ("main p, :scope > i", ["1"], ["b"]),
        (":scope > p.x\\:y:not([class='a > b'])", ["1"], []),
        (":scope", [], []),
    ],
)
def test_a_record_calls_itself_scope(run, css, first, second):
    field = {"selector": css, "many": True}
    extract = [{"id": "cards", "selector": "main .card", "many": True, "fields": {"found": field}}]
    snapshot: Json = {"version": 1, "source": "dom", "extract": extract}
    snapshot["projection"] = {"language": "jsonata", "expression": "records"}
    driver = run(map_of(state_projections=[{"name": "cards", "snapshot": snapshot}]), pages={"/": CARDS})
    found = driver.ask("state_read", "cards")["state"]["cards"]
    assert [finding["found"] for finding in found] == [first, second]


def test_records_within_each_other_have_a_bound(run):
    extract = [{"id": "all", "selector": "div", "fields": {"inner": {"selector": "div", "many": True}}}]
    snapshot: Json = {"version": 1, "source": "dom", "extract": extract}
    snapshot["projection"] = {"language": "jsonata", "expression": "records"}
    document = map_of(state_projections=[{"name": "all", "snapshot": snapshot}])
    driver = run(document, pages={"/": f"{'<div>' * 460}x{'</div>' * 460}"})
    with pytest.raises(RuntimeFailure, match="more than 100000 values") as failed:
        driver.ask("state_read", "all")
    assert failed.value.evidence["code"] == "state_projection_failed"


def test_a_part_of_a_page_is_scrolled_where_it_is_named(run):
    box = "<main style='height:100px;overflow:auto'><p style='height:900px'>Long</p></main>"
    arguments = {"delta_y": "{% input.by %}", "scope": {"selectors": ["nav", "main"], "root_strategy": "scope"}}
    scroll = step("it", "viewport.scroll", arguments)
    output = "{% steps.it.output.scroll_y %}"
    driver = run(map_of(tool("part", scroll, output=output)), pages={"/": box})
    assert driver.call("part", by=30) == 30
    assert driver.call("part", by=-900) == 0
    lost = step("it", "viewport.scroll", {"delta_y": 1, "scope": {"selector": "nav"}})
    assert run(map_of(tool("part", lost)), pages={"/": box}).failure("part").code == "handler_failed"


def test_a_record_may_be_the_whole_page(run):
    fields = {"title": {"selector": "h1"}}
    snapshot: Json = {"version": 1, "source": "dom", "extract": [{"id": "page", "selector": "body", "fields": fields}]}
    snapshot["projection"] = {"language": "jsonata", "expression": "{'title': records.page.title}"}
    driver = run(map_of(state_projections=[{"name": "page", "snapshot": snapshot}]))
    assert driver.ask("state_read", "page")["state"] == {"title": "Books"}


def test_an_argument_that_comes_to_nothing_is_named(run):
    pages = {"/": "<main><button>Save</button><button>Save</button></main>"}
    failure = run(map_of(tool("go", *click("save", "button"))), pages=pages).failure()
    assert failure.evidence["cause"]["code"] == "invalid_input"
    assert failure.message == (
        "The arguments of pointer.click are wrong: /x is required; "
        "{% steps.find_save.output.clickable_center.x %}, {% steps.find_save.output.clickable_center.y %} has no value"
    )


def test_the_end_of_a_field_is_gone_to_and_written_at(run):
    steps = (
        *click("field", "input[name='q']"),
        step("a", "text.insert", {"text": "em"}),
        step("end", "keyboard.press", {"key": "Control+End"}),
        step("b", "text.insert", {"text": "ma"}),
        step("value", "locator.text_content", {"locator": {"selector": "input[name='q']"}}),
    )
    assert run(map_of(tool("go", *steps, output="{% steps.value.output.text %}"))).call() == "emma"


def test_a_centre_of_an_earlier_page_clicks_nothing(run):
    found = step("found", "locator.element_info", {"locator": {"selector": "a[href='/about']"}})
    centre = {axis: f"{{% steps.found.output.clickable_center.{axis} %}}" for axis in ("x", "y")}
    again = step("again", "pointer.click", centre)
    driver = run(map_of(tool("go", found, step("there", "browser.navigate", {"url": "/b/1"}), again)))
    failure = driver.failure()
    assert (failure.evidence["step_id"], failure.evidence["cause"]["stale"]) == ("again", True)
    assert driver.page.url.endswith("/b/1")


MOVING = """<title>Moving</title><main><div id=top></div><input name=q>
<button id=one>One</button><button id=two>Two</button><p class=said></p><script>
const said = document.querySelector(".said"), [one, two] = document.querySelectorAll("button");
for (const button of [one, two]) button.addEventListener("click", () => { said.textContent = button.id; });
document.querySelector("input").addEventListener("input", (event) => {
  if (event.target.value === "move") { document.querySelector("#top").style.height = "700px"; one.before(two); }
  if (event.target.value === "hide") one.hidden = true;
  if (event.target.value === "lose") one.remove();
});
</script></main>"""


@pytest.mark.parametrize(
    ("change", "code"), [("move", None), ("hide", "target_not_visible"), ("lose", "target_not_found")]
)
def test_a_centre_means_the_element_that_it_was_told_of(run, change, code):
    found, clicked = click("one", "#one")
    text = step("type", "text.insert", {"text": change, "target": {"selector": "input"}})
    said = step("said", "locator.text_content", {"locator": {"selector": ".said"}})
    driver = run(
        map_of(tool("go", found, text, clicked, said, output="{% steps.said.output.text %}")), pages={"/": MOVING}
    )
    if not driver.page.has_scripts:
        return  # nothing changes while nobody acts
    if code is None:
        assert driver.call() == "one"
    else:
        assert driver.failure().evidence["cause"]["code"] == code


IN_CHROMIUM = pytest.mark.parametrize(
    "run", [pytest.param("chromium", marks=pytest.mark.limit(OF_BROWSERS))], indirect=True
)


@IN_CHROMIUM
def test_a_tab_that_is_closed_ends_the_call_whatever_its_steps_may_survive(run):
    looking = step("look", "locator.wait_for", {"locator": {"selector": "#none"}}, on_error="continue")
    driver = run(map_of(tool("go", step("page", "page.info"), looking, step("again", "page.info"))))
    page = driver.page

    def close(step_id: str, changes: bool) -> None:
        if step_id == "look":
            closing.append(asyncio.ensure_future(page.page.close()))

    closing: list[Any] = []
    with pytest.raises(RuntimeFailure) as failed:
        driver.result("go", {}, on_step=close)
    assert failed.value.code == "transport_failed"
    done: Any = failed.value.evidence["steps"]
    assert [item["id"] for item in done] == ["page", "look"]


@IN_CHROMIUM
@pytest.mark.parametrize("primitive", ["pointer.click", "browser.navigate", "keyboard.press", "page.info"])
def test_every_primitive_of_a_closed_tab_fails(run, primitive):
    arguments: dict[str, Json] = {
        "pointer.click": {"x": 5, "y": 5},
        "browser.navigate": {"url": "/about"},
        "keyboard.press": {"key": "a"},
    }
    driver = run(map_of(tool("go", step("it", primitive, arguments.get(primitive, {})))))

    async def close() -> None:
        await driver.page.page.close()

    driver.run(close())
    assert driver.failure().code == "transport_failed"


@pytest.mark.parametrize(
    ("tag", "attributes", "roles"),
    [
        ("del", {}, {"deletion"}),
        ("th", {"scope": "row"}, {"rowheader"}),
        ("img", {"alt": ""}, {"none", "image"}),
        ("div", {"role": "nonesuch button"}, {"button"}),
        ("div", {"role": "section"}, set()),
        ("nav", {"role": "nonesuch"}, {"navigation"}),
        ("ul", {"role": "none"}, {"none", "presentation"}),
        ("button", {"role": "presentation"}, {"button", "presentation"}),
        ("div", {"role": "directory"}, {"directory", "list"}),
    ],
)
def test_an_element_has_the_first_role_that_it_is_given_and_that_there_is(tag, attributes, roles):
    assert roles_of(tag, attributes) == roles
