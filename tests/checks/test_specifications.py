"""The specifications' own examples have no errors, except where an example breaks a rule of its own text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from awp_publish.checks import Finding, check_document

SHARED = Path(__file__).parents[2] / ".." / "shared"
OTHER_STANDARD = "fixtures/agent-json/other-standard-FransDevelopment"

pytestmark = pytest.mark.skipif(
    not SHARED.is_dir(), reason="the texts of the specifications are not beside the project"
)

# Complete documents in the fixtures.
PUBLISHED = (
    "fixtures/awas/ai-actions.json",
    "fixtures/awas/mcp-manifest.json",
    "fixtures/awas/a2a-manifest.json",
    "fixtures/agent-json/agent-json.org.agent.json",
    "fixtures/agent-json/example-shopnova.com.agent.json",
    "fixtures/agent-json/example-taskflow.io.agent.json",
)

# Complete documents inside texts: text, member that tells the document, its value, kind, and the errors that are due.
EXAMPLES: tuple[tuple[str, str, object, str, set[tuple[str, str]]], ...] = (
    ("specs/awas-1.0.txt", "name", "My Website", "awas", set()),
    ("specs/awas-1.0.txt", "name", "Example Site", "awas", set()),
    ("specs/awas-1.0.txt", "name", "BookStore API", "awas", set()),
    ("specs/awas-1.0.txt", "$schema", "https://modelcontextprotocol.io/schema/manifest.json", "awas-mcp", set()),
    ("specs/awas-1.0.txt", "$schema", "https://a2a.dev/schema/manifest.json", "awas-a2a", set()),
    ("specs/woa-draft-00.txt", "woa_version", "1", "woa", set()),
)

# agent.json 0.2 shows its parts only; together they make a document.
PARTS = {"protocols": "a2a", "capabilities": "streaming", "auth": "required_for", "errors": "AUTH_EXPIRED"}
PARTS |= {"entities": "flight", "dependencies": "book_flight", "agent_status": "operational"}


def objects_in(text: str) -> Iterator[dict[str, object]]:
    decoder, at = json.JSONDecoder(), text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except ValueError:
            end = at + 1
        else:
            yield value
        at = text.find("{", end)


def errors(findings: list[Finding]) -> set[tuple[str, str]]:
    return {(finding.check, finding.pointer) for finding in findings if finding.level == "error"}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_document_has_no_errors_and_no_warnings(name: str) -> None:
    findings = check_document((SHARED / name).read_bytes())
    assert [str(finding) for finding in findings] == []


@pytest.mark.parametrize(("name", "member", "value", "kind", "due"), EXAMPLES)
def test_an_example_in_a_specification_has_only_the_errors_it_makes(
    name: str, member: str, value: object, kind: str, due: set[tuple[str, str]]
) -> None:
    examples = [example for example in objects_in((SHARED / name).read_text("utf-8")) if example.get(member) == value]
    assert examples
    for example in examples:
        assert errors(check_document(example, kind)) == due
        assert errors(check_document(json.dumps(example))) == due


def assembled() -> Mapping[str, object]:
    parts = list(objects_in((SHARED / "fixtures/agent-json/SPEC-v0.2.md").read_text("utf-8")))
    named = {name: next(part for part in parts if mark in part) for name, mark in PARTS.items()}
    action = next(part for part in parts if "auth_required" in part)
    return {"awp_version": "0.2", "domain": "a.example", "intent": "Fly.", "actions": [action], **named}


def test_the_parts_shown_by_agent_json_break_only_rules_of_their_own_text() -> None:
    absent = ("agent-json-dependency", "agent-json-auth-action", "agent-json-degraded")
    found = {place for place in errors(check_document(assembled(), "agent-json")) if place[0] not in absent}
    # "version: yes" in the table of section 5.5; the entry `payment` of its example has none.
    assert found == {("agent-json-required", "/protocols/payment/version")}


def test_the_actions_that_agent_json_mentions_and_does_not_show_are_noticed() -> None:
    found = {
        pointer
        for check, pointer in errors(check_document(assembled(), "agent-json"))
        if check != "agent-json-required"
    }
    assert found == {
        "/auth/required_for/0",
        "/auth/required_for/1",
        "/auth/optional_for/0",
        "/dependencies/book_flight",
        "/dependencies/check_in",
        "/dependencies/check_in/0",
        "/dependencies/select_seat",
        "/dependencies/select_seat/0",
        "/agent_status/degraded_actions/0",
    }


def test_every_document_of_the_other_standard_is_recognised() -> None:
    documents = [path for path in sorted((SHARED / OTHER_STANDARD).glob("*.json")) if path.name != "schema.json"]
    assert len(documents) >= 10
    for path in documents:
        findings = check_document(path.read_bytes(), path="/agent.json")
        assert [finding.check for finding in findings] == ["agent-json-other-standard"], path.name
