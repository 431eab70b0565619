"""Maps and the dictionary that others have published, and what they say a runtime does, run in process."""

import json
from pathlib import Path
from typing import Any

import pytest

from awp_publish import DeclarationError, Site
from awp_publish.maps.chromium import why_unavailable
from awp_publish.maps.primitives import PORTABLE
from awp_publish.plugins.actions_json.page_map import OWN_PARTS
from awp_publish.schema import compile_schema
from tests.browsing.driving import page
from tests.browsing.running import Driver, Json, map_of, open_in_chromium, step, tool
from tests.limit import OF_BROWSERS

FOLDER = Path(__file__).parents[2] / ".." / "shared" / "fixtures" / "actions-json"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the published maps are not beside the project")


def published(name: str) -> Json:
    document: Json = json.loads((FOLDER / name).read_text())
    return document


@pytest.mark.parametrize("name", ["simple-form", "good-map", "bad-map", "overlay"])
def test_the_parts_of_a_published_map_are_pasted_into_a_page(name: str):
    parts = {
        part: value for part, value in published(f"{name}.actions.json").items() if part in (*OWN_PARTS, "imports")
    }
    Site("Shop", "Sells.", "https://shop.example").page("/", map=parts)
    damaged = next(iter(parts))
    with pytest.raises(DeclarationError, match=f"/{damaged}"):
        Site("Shop", "Sells.", "https://shop.example").page("/", map={**parts, damaged: "nothing of the kind"})


def contact(fetch: Any) -> Any:
    """Answer as the page of the map does, on the server."""
    name = fetch.path.partition("name=")[2] if "?" in fetch.path else ""
    html = (FOLDER / "simple-form.index.html").read_text()
    return page(html.replace('<output id="result">', f'<output id="result">{f"Submitted {name}" if name else ""}'))


@pytest.fixture
def form() -> Driver:
    return Driver({"/": contact, "/examples/simple-form/index.html": contact}, published("simple-form.actions.json"))


def test_the_steps_of_the_published_form_run_where_its_handler_is_not(form):
    result = form.result("contact.submit_name", {"name": "Ada"})
    assert result.output == {"ok": True, "result": "Submitted Ada"}
    assert [one["id"] for one in result.steps] == [
        "inspect_name_input",
        "type_name",
        "click_submit",
        "wait_for_result",
        "extract_result",
    ]
    assert "contactForm.submitName" in result.drift[-1]


def test_the_states_context_and_checks_of_the_published_form_hold(form):
    assert form.ask("states")["current"] == ["form_ready"]
    assert [item["id"] for item in form.ask("context")] == ["contact.form.context"]
    assert [item["status"] for item in form.ask("check")] == ["passed", "passed"]
    assert "form_submitted" in form.ask("states")["current"]
    assert form.ask("status")["attachments"] == [{"id": "contact-result-status", "state": "unsupported"}]


@pytest.mark.limit(OF_BROWSERS)
def test_the_checks_of_the_published_form_pass_in_a_browser_again_and_again():
    if (reason := why_unavailable()) is not None:
        pytest.skip(reason)
    html = (FOLDER / "simple-form.index.html").read_text()
    form = Driver(
        {"/": html, "/examples/simple-form/index.html": html},
        published("simple-form.actions.json"),
        opening=open_in_chromium,
    )
    for _ in range(2):
        assert [item["status"] for item in form.ask("check")] == ["passed", "passed"]


def test_the_published_form_takes_no_other_arguments(form):
    assert form.failure("contact.submit_name", nom="Ada").code == "invalid_input"


CARDS = "<main><p data-testid=card-name>One</p><p data-testid=card-name>Two</p><button>Archive</button></main>"


def test_the_good_map_is_run_leniently_and_its_postcondition_never_holds():
    document = published("good-map.actions.json")
    run = Driver({"/": CARDS}, document, lenient=True)
    assert run.call("good.card.find")["candidate_count"] == 2
    document["state_projections"][0]["snapshot"]["projection"] = {"language": "jsonata", "expression": "{'cards': []}"}
    failure = Driver({"/": CARDS}, document, lenient=True).failure("good.card.open", card_title="Two")
    # A name within a filter means the filtered thing: a mistake of the map (reference, JSONata how-to).
    assert failure.evidence["code"] == "state_postcondition_failed"
    assert [(one["id"], one["ok"]) for one in failure.evidence["steps"]] == [
        ("hideOverlay", True),
        ("findCard", True),
        ("click", True),
    ]


def test_the_bad_map_clicks_where_nothing_is_and_is_told():
    run = Driver({"/": CARDS}, published("bad-map.actions.json"), lenient=True)
    assert run.failure("bad.card.move").evidence["cause"]["code"] == "point_out_of_viewport"
    assert run.call("bad.button.find")["ambiguous"] is False
    assert run.failure("bad.modal.find").code == "target_not_found"


def test_the_tools_of_the_extension_are_primitives():
    run = Driver({"/": CARDS}, published("overlay.actions.json"), lenient=True)
    assert run.call("locator.element_info", locator={"selector": "button"})["text"] == "Archive"
    assert run.call("dom.list_sections") == {"sections": [], "section_count": 0}
    assert run.failure("browser.screenshot").code == "capability_unavailable"
    assert run.call("overlay.menu.hide") == {"hidden": True}
    assert run.failure("overlay.menu.show").code == "capability_unavailable"


FORM = (
    "<title>T</title><body><section><h2>Head</h2><form action=/next><input name=q autofocus value=a><button>Go</button>"
    "</form></section></body>"
)
ARGUMENTS: dict[str, Json] = {
    "pointer.move": {"x": "{% steps.at.output.clickable_center.x %}", "y": "{% steps.at.output.clickable_center.y %}"},
    "pointer.drag": {"from": {"x": 1, "y": 1}, "to": {"x": 2, "y": 2}},
    "viewport.scroll": {"delta_y": 30},
    "text.insert": {"text": "b"},
    "clipboard.write": {"text": "x"},
    "dom.observe.visible": {"selector": "h2"},
    "dom.snapshot_text": {"max_chars": 3},
    "dom.list_sections": {"item_selector": "input"},
    "locator.element_info": {"locator": {"selector": "h2"}},
    "locator.text_content": {"locator": {"selector": "h2"}},
    "locator.wait_for": {"locator": {"selector": "h2"}},
    "keyboard.press": {"key": "Enter"},
}
ARGUMENTS |= dict.fromkeys(("pointer.click", "pointer.double_click"), ARGUMENTS["pointer.move"])


@pytest.mark.parametrize("name", list(PORTABLE))
def test_a_portable_primitive_answers_as_the_dictionary_says_or_is_unavailable(name):
    records = {primitive["name"]: primitive for primitive in published("dictionary.v1.json")["primitives"]}
    at = step("at", "locator.element_info", {"locator": {"selector": "button"}})
    document = map_of(tool("go", at, step("it", name, ARGUMENTS.get(name, {})), output="{% steps.it.output %}"))
    run = Driver({"/": FORM, "/next": "<h1>Next</h1>"}, document)
    if name in ("pointer.drag", "clipboard.read", "clipboard.write"):
        assert run.failure().code == "capability_unavailable"
        return
    output = run.call()
    assert compile_schema(records[name]["output_schema"])(output) == ()
    assert set(records[name]["output_schema"].get("properties", {})) <= set(output) | {
        "fidelity",
        "viewport_height",
        "scroll_y",
    }
