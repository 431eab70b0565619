"""Maps of actions.json: what strict readers accept, and what lenient ones read in spite of it."""

import json
import re
from pathlib import Path

import pytest

from awp_publish.checks import Finding, check_document
from awp_publish.maps import rules
from awp_publish.plugins.actions_json.checks import expressions as actions_json

from .documents import ABSENT, ACTIONS_JSON, edited

MAPS = Path(__file__).parents[2] / ".." / "shared" / "fixtures" / "actions-json"


def errors(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(finding.check, finding.pointer) for finding in findings if finding.level == "error"]


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


def test_the_smallest_map_is_valid() -> None:
    assert check_document(b'{"protocol": "actions.json", "version": 1, "tools": []}') == []


def test_a_name_that_is_given_twice_is_an_error() -> None:
    data = json.dumps(ACTIONS_JSON).replace("{", '{"version": 1, ', 1)
    assert ("json-duplicate-key", "/version") in errors(check_document(data))


def test_white_space_counts_for_the_size_of_a_map(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MAX_MAP_BYTES", 10_000)
    assert errors(check_document(json.dumps(ACTIONS_JSON))) == []
    assert errors(check_document(json.dumps(ACTIONS_JSON) + " " * 10_000)) == [("actions-size", "")]


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


@pytest.mark.parametrize("member", ["workflow", "x_actions", "input_schema"])
def test_a_map_without_its_mark_is_known_by_its_tools(member):
    found = check_document({"tools": [{"name": "a"}, {"name": "b", member: {}}]})
    assert "document-unknown" not in {finding.check for finding in found}
    assert "document-unknown" in {finding.check for finding in check_document({"tools": [{"name": "a"}]})}
