"""Maps of actions.json: what strict readers accept, and what lenient ones read in spite of it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from awp_publish.checks import Finding, check_document
from awp_publish.maps import rules
from awp_publish.plugins.actions_json.checks import expressions as actions_json

from .documents import ABSENT, ACTIONS_JSON, edited

MAPS = Path(__file__).parents[2] / ".." / "shared" / "fixtures" / "actions-json"


def errors(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(finding.check, finding.pointer) for finding in findings if finding.level == "error"]


@pytest.mark.parametrize(
    "edits",
    [
        {"/version": 1.0},
        {"/skill": {"any": ["thing"]}},
        {"/surface": ABSENT},
        {"/tools/0/workflow/output": "{% 'about $now' %}"},
        {"/tools/0/workflow/output": "  {% input.q %}\n"},
        {"/tools/0/target/selector": ["form", "main form"]},
        {"/signals/0/ingestion": "disabled_by_default", "/signals/0/event": ABSENT},
        {"/imports/0/namespace": ABSENT, "/composition/namespace_required": False},
        {"/tools/0/workflow/x_state_machine": {"requires_state": "search.ready"}},
        {"/tools/0/workflow/steps/0/settle_after": {"delay_ms": 5}},
        {
            "/tools/0/input_schema": {
                "$schema": "http://json-schema.org/draft-07/schema#",
                "definitions": {"a": {"items": [{}]}},
                "properties": {"q": {"$ref": "#/definitions/a"}},
            }
        },
    ],
)
def test_what_the_specification_leaves_open_is_no_error(edits: dict[str, object]) -> None:
    assert errors(check_document(edited(ACTIONS_JSON, edits))) == []


ROW = re.compile(r"^\| ([^|]+) \| `(/[^`]*)` \| (.+?) \| `(/[^`]*)` \|$", re.MULTILINE)
PAGE = MAPS.parents[1] / "reference" / "actions-json-acceptance.md"


@pytest.mark.skipif(not PAGE.is_file(), reason="the page of cases is not beside the project")
def test_each_change_of_the_worked_example_that_has_to_be_refused_is() -> None:
    text = PAGE.read_text("utf-8")
    example = json.loads(text.rpartition("```json\n")[2].partition("```")[0])
    rows, differing = ROW.findall(text), []
    for name, place, value, pointer in rows:
        given = ABSENT if value == "removed" else [{}] * 26 if value == "26 steps" else json.loads(value.strip("`"))
        if pointer not in [at for _, at in errors(check_document(edited(example, {place: given})))]:
            differing.append(name)
    assert (len(rows), differing) == (63, [])


@pytest.mark.parametrize(("version", "words"), [(ABSENT, "The version is missing."), ("0.9", 'The version is "0.9".')])
def test_a_wrong_version_is_told_from_a_missing_one(version: Any, words: str) -> None:
    found = check_document(edited(ACTIONS_JSON, {"/version": version}))
    assert words in [one.message for one in found if one.pointer == "/version"]


def test_an_import_without_a_namespace_where_none_is_needed_is_a_warning() -> None:
    document = edited(ACTIONS_JSON, {"/imports/0/namespace": ABSENT, "/composition/namespace_required": False})
    (found,) = (one for one in check_document(document) if one.check == "actions-conflict-policy")
    assert (found.level, found.pointer) == ("warning", "/imports/0/namespace")


@pytest.mark.parametrize(
    ("name", "is_lost"),
    [("payments.pay", False), ("payments.cards.pay", False), ("paymentsx.pay", True), ("payments", True)],
)
def test_a_name_may_come_from_an_import_where_it_begins_with_a_namespace(name: str, is_lost: bool) -> None:
    document = edited(ACTIONS_JSON, {"/transitions/0/tool": name, "/imports/0/namespace": "payments"})
    assert errors(check_document(document)) == ([("actions-transition", "/transitions/0/tool")] if is_lost else [])


@pytest.mark.parametrize("protocol", [ABSENT, "actions"])
def test_a_map_is_known_by_its_tools_when_its_protocol_is_wrong(protocol: object) -> None:
    assert errors(check_document(edited(ACTIONS_JSON, {"/protocol": protocol}))) == [("actions-protocol", "/protocol")]


def test_the_smallest_map_is_valid() -> None:
    assert check_document(b'{"protocol": "actions.json", "version": 1, "tools": []}') == []


def test_a_name_that_is_given_twice_is_an_error() -> None:
    data = json.dumps(ACTIONS_JSON).replace("{", '{"version": 1, ', 1)
    assert ("json-duplicate-key", "/version") in errors(check_document(data))


def test_white_space_counts_for_the_size_of_a_map(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MAX_MAP_BYTES", 10_000)
    assert errors(check_document(json.dumps(ACTIONS_JSON))) == []
    assert errors(check_document(json.dumps(ACTIONS_JSON) + " " * 10_000)) == [("actions-size", "")]


def left_out(document: Any) -> list[str]:
    """The tools that a lenient reader leaves out, of a map that it reads."""
    findings = check_document(document, lenient=True)
    assert errors(findings) == []
    return [finding.pointer for finding in findings if finding.check == "actions-unusable-tool"]


def test_a_lenient_reader_takes_maps_that_are_older_than_version_1() -> None:
    old = edited(ACTIONS_JSON, {"/version": "0.1.0-draft", "/tools/0/input_schema": ABSENT})
    assert {check for check, _ in errors(check_document(old))} == {"actions-version", "actions-input-schema"}
    lenient = check_document(old, lenient=True)
    assert errors(lenient) == []
    assert {finding.check for finding in lenient} == {"actions-version", "actions-input-schema"}
    assert errors(check_document(edited(ACTIONS_JSON, {"/version": 2}), lenient=True))


def test_a_lenient_reader_executes_tools_that_are_named_like_a_primitive() -> None:
    tool = {"name": "overlay.menu.hide", "description": "Hide the menu.", "input_schema": {"type": "object"}}
    document = edited(ACTIONS_JSON, {"/tools/-": tool})
    assert errors(check_document(document)) == [("actions-executable", "/tools/2")]
    assert errors(check_document(document, lenient=True)) == []
    other = edited(ACTIONS_JSON, {"/tools/-": {**tool, "name": "shop.buy"}})
    assert left_out(other) == ["/tools/2"]


def test_a_lenient_reader_passes_over_what_it_cannot_use() -> None:
    tool = {
        "name": "site.map",
        "description": "What the site is.",
        "input_schema": {"type": "object"},
        "x_actions": {"static_output": {"ok": True}},
    }
    edits = {
        "/tools/-": tool,
        "/context": {"home": "The home page."},
        "/surface": "inbox",
        "/tools/0/workflow/steps/0/args/speed": 1,
    }
    document = edited(ACTIONS_JSON, edits)
    strict = {"actions-executable", "actions-type", "actions-arguments"}
    assert {check for check, _ in errors(check_document(document))} == strict
    assert errors(check_document(document, lenient=True)) == []
    assert errors(check_document(edited(document, {"/tools": {}}), lenient=True))


def test_a_lenient_reader_leaves_to_the_runtime_what_may_never_be_used() -> None:
    edits = {
        "/tools/0/workflow/steps/0/primitive": "actions.site",
        "/tools/0/target/selector": "main .gap-1.5",
        "/tools/0/target/fallback_selectors": ["form", "form["],
        "/state_projections/0/snapshot/extract/0/selector": "li.w-2.5",
        "/tools/0/workflow/output": f"{{% '{'x' * 4000}' %}}",
    }
    document = edited(ACTIONS_JSON, edits)
    assert {check for check, _ in errors(check_document(document))} == {
        "actions-primitive",
        "actions-selector",
        "actions-expression",
    }
    lenient = check_document(document, lenient=True)
    assert errors(lenient) == []
    assert len(lenient) == 5
    clicking = {"/tools/0/workflow/steps/0/after_each": {"primitive": "pointer.click"}}
    assert left_out(edited(document, clicking)) == ["/tools/0"]
    assert left_out(edited(document, {"/tools/0/target/selector": [5]})) == ["/tools/0"]


def test_without_an_engine_expressions_are_not_compiled_and_the_finding_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(actions_json, "has_engine", lambda: False)
    monkeypatch.setattr(actions_json, "_is_sound", actions_json._is_sound.__wrapped__)  # keeps nothing
    broken = edited(ACTIONS_JSON, {"/tools/0/workflow/output": "{% {'ok': %}"})
    assert [finding.check for finding in check_document(broken)] == ["actions-no-engine"]


@pytest.mark.skipif(not MAPS.is_dir(), reason="the published maps are not beside the project")
@pytest.mark.parametrize(
    ("name", "strict"),
    [
        ("simple-form.actions.json", set()),
        ("good-map.actions.json", {"actions-version"}),
        ("bad-map.actions.json", {"actions-version"}),
        ("overlay.actions.json", {"actions-executable"}),
    ],
)
def test_published_maps_are_refused_for_what_they_lack_and_read_leniently(name: str, strict: set[str]) -> None:
    data = (MAPS / name).read_bytes()
    assert {check for check, _ in errors(check_document(data))} == strict
    assert errors(check_document(data, lenient=True)) == []


def test_each_import_without_a_namespace_is_found():
    imports = [{"id": name, "uri": f"https://{name}.example/a.json", "kind": "public"} for name in ("one", "two")]
    found = errors(check_document({**ACTIONS_JSON, "imports": imports}, "actions-json"))
    assert [pointer for check, pointer in found if check == "actions-namespace"] == [
        "/imports/0/namespace",
        "/imports/1/namespace",
    ]


@pytest.mark.parametrize("member", ["workflow", "x_actions", "input_schema"])
def test_a_map_without_its_mark_is_known_by_its_tools(member):
    found = check_document({"tools": [{"name": "a"}, {"name": "b", member: {}}]})
    assert "document-unknown" not in {finding.check for finding in found}
    assert "document-unknown" in {finding.check for finding in check_document({"tools": [{"name": "a"}]})}
