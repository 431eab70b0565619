"""What can be wrong with a document before anybody looks at what it says."""

import json

import pytest

from awp_publish.checks import check_document

from .documents import AGENT_JSON, AWAS, PATHS, WOA


def test_white_space_counts_for_the_size_of_a_text() -> None:
    padded = json.dumps(AWAS) + " " * 110_000
    assert [finding.check for finding in check_document(padded)] == ["awas-size"]
    assert [finding.check for finding in check_document(padded.encode())] == ["awas-size"]


def test_only_awas_has_a_limit_of_size() -> None:
    assert check_document(json.dumps(WOA) + " " * 110_000) == []


def test_unmistakable_members_count_more_than_the_path() -> None:
    assert check_document(WOA, path=PATHS["agent-json"]) == []


def test_a_kind_that_is_asked_for_counts_most() -> None:
    assert "agent-json-required" in {finding.check for finding in check_document(WOA, "agent-json")}


def test_errors_come_first_and_then_document_order() -> None:
    actions = AGENT_JSON["actions"]
    assert isinstance(actions, list)
    broken = {**AGENT_JSON, "agent_hints": {"a": 1}, "actions": [{**actions[0], "method": "X", "rate_limit": "?"}, 5]}
    broken["intent"] = ""
    found = [(finding.level, finding.pointer) for finding in check_document(broken)]
    errors = [pointer for level, pointer in found if level == "error"]
    assert found[: len(errors)] == [("error", pointer) for pointer in errors]
    assert errors[:4] == ["/auth/required_for/0", "/auth/required_for/1", "/actions/0/method", "/actions/1"]
    warnings = [pointer for level, pointer in found if level == "warning"]
    assert warnings == ["/intent", "/actions/0/rate_limit", "/agent_hints/a"]


def test_long_values_are_shortened_in_messages() -> None:
    found = check_document({**WOA, "woa_version": "x" * 10_000})
    assert len(found[0].message) < 120


def test_a_secret_is_not_repeated_in_its_finding() -> None:
    secret = "ghp_" + "a1B2" * 9
    found = check_document({**WOA, "authz": {"note": f"use {secret}"}})
    assert [finding.check for finding in found] == ["document-secret"]
    assert secret not in str(found[0])


@pytest.mark.parametrize("data", [b'{"a": ' * 300 + b"1" + b"}" * 300, b"[" * 100_000])
def test_a_text_that_is_nested_too_deeply_is_a_finding(data: bytes) -> None:
    assert [finding.check for finding in check_document(data)] == ["json-depth"]
