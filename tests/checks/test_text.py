"""What can be wrong with a document before anybody looks at what it says."""

import json
import math

import pytest

from awp_publish.checks import Finding, check_document

from .documents import AGENT_JSON, AWAS, PATHS, WOA

TEXT_CASES: list[tuple[str, str, bytes | str]] = [
    ("json-utf8", "", b'{"woa_version": "\xff"}'),
    ("json-utf8", "", '{"woa_version": "1"}'.encode("utf-16")),
    ("json-bom", "", b"\xef\xbb\xbf" + json.dumps(WOA).encode()),
    ("json-syntax", "", b""),
    ("json-syntax", "", b'{"woa_version": "1",}'),
    ("json-syntax", "", b"{'woa_version': '1'}"),
    ("json-syntax", "", b'{"woa_version": ' + b"1" * 5000 + b"}"),
    ("json-object", "", b"[1]"),
    ("json-object", "", b"null"),
    ("json-object", "", '"woa"'),
    ("json-depth", "", b'{"a": ' * 300 + b"1" + b"}" * 300),
    ("json-depth", "", b"[" * 100_000),
    ("json-number", "/x/1", json.dumps({**WOA, "x": [1, math.nan]})),
    ("json-number", "/x", json.dumps({**WOA, "x": -math.inf})),
    ("json-duplicate-key", "/woa_version", json.dumps(WOA).replace("{", '{"woa_version": "0", ', 1)),
    ("json-duplicate-key", "/a/0/b", '{"a": [{"b": 1, "b": 2}]}'),
    ("document-unknown", "", b'{"hello": "world"}'),
]


def of_check(findings: list[Finding], check: str) -> list[Finding]:
    return [finding for finding in findings if finding.check == check]


@pytest.mark.parametrize(("check", "pointer", "data"), TEXT_CASES)
def test_a_text_that_is_no_sound_json_is_a_finding(check: str, pointer: str, data: bytes | str) -> None:
    found = of_check(check_document(data), check)
    assert [finding.pointer for finding in found] == [pointer]


def test_a_text_that_cannot_be_read_has_one_finding_only() -> None:
    assert len(check_document(b"{", "woa")) == 1


def test_what_follows_a_byte_order_mark_is_checked_all_the_same() -> None:
    data = b"\xef\xbb\xbf" + json.dumps({**WOA, "woa_version": 1}).encode()
    assert {finding.check for finding in check_document(data)} == {"json-bom", "woa-version"}


def test_a_key_inside_the_lost_one_of_two_members_is_reported_at_the_root() -> None:
    found = of_check(check_document('{"a": {"b": 1, "b": 2}, "a": 1}'), "json-duplicate-key")
    assert sorted(finding.pointer for finding in found) == ["", "/a"]


def test_white_space_counts_for_the_size_of_a_text() -> None:
    padded = json.dumps(AWAS) + " " * 110_000
    assert [finding.check for finding in check_document(padded)] == ["awas-size"]
    assert [finding.check for finding in check_document(padded.encode())] == ["awas-size"]


def test_only_awas_has_a_limit_of_size() -> None:
    assert check_document(json.dumps(WOA) + " " * 110_000) == []


def test_an_unknown_kind_is_the_callers_mistake() -> None:
    with pytest.raises(
        ValueError, match=r"'wao'\. The kinds are actions-json, agent-json, awas, awas-a2a, awas-mcp, woa"
    ):
        check_document(WOA, "wao")


def test_the_path_decides_where_members_do_not() -> None:
    findings = check_document({}, path="/.well-known/woa.json")
    assert {finding.check for finding in findings} == {"woa-required"}
    assert {finding.document for finding in findings} == {"/.well-known/woa.json"}


def test_unmistakable_members_count_more_than_the_path() -> None:
    assert check_document(WOA, path=PATHS["agent-json"]) == []


def test_a_kind_that_is_asked_for_counts_most() -> None:
    assert "agent-json-required" in {finding.check for finding in check_document(WOA, "agent-json")}


@pytest.mark.parametrize(
    ("members", "name"),
    [
        ({"version": "1.0", "origin": "a.example", "payout_address": "0x0"}, "FransDevelopment"),
        ({"schema_version": "1.0", "subject": {}, "last_reviewed": "2026-01-01"}, "facts file"),
        ({"protocolVersion": "0.3.0", "skills": [], "url": "https://a.example"}, "A2A agent card"),
    ],
)
def test_another_standard_under_the_same_name_is_named_and_nothing_else_is_said(
    members: dict[str, object], name: str
) -> None:
    findings = check_document(members, path="/agent.json")
    assert [finding.check for finding in findings] == ["agent-json-other-standard"]
    assert name in findings[0].message


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


def test_a_finding_can_be_printed_whatever_the_document_says() -> None:
    found = check_document('{"woa_version": "\\ud800", "agents": [], "transports": {"\\ud800": {}}}')
    assert all(str(finding).encode() for finding in found)
    assert "\\ud800" in " ".join(map(str, found))


def test_long_values_are_shortened_in_messages() -> None:
    found = check_document({**WOA, "woa_version": "x" * 10_000})
    assert len(found[0].message) < 120


def test_a_secret_is_not_repeated_in_its_finding() -> None:
    secret = "ghp_" + "a1B2" * 9
    found = check_document({**WOA, "authz": {"note": f"use {secret}"}})
    assert [finding.check for finding in found] == ["document-secret"]
    assert secret not in str(found[0])
