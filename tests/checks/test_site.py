"""The documents of one site are compared with each other."""

import json

import pytest

from awp_publish.checks import Finding, check_documents

from .documents import ABSENT, KINDS, PATHS, edited

SITE = {PATHS[kind]: document for kind, document in KINDS.items()} | {"/.well-known/awas.json": KINDS["awas"]}
AWAS, AGENT_JSON, WOA = PATHS["awas"], PATHS["agent-json"], PATHS["woa"]
MCP, A2A, ALIAS = PATHS["awas-mcp"], PATHS["awas-a2a"], "/.well-known/awas.json"

# (check, document, pointer, the changes of each document; None takes the document away)
SITE_CASES: list[tuple[str, str, str, dict[str, dict[str, object] | None]]] = [
    ("site-catalogue", MCP, "/endpoints/actions", {MCP: {"/endpoints/actions": "/awas.json"}}),
    ("site-catalogue", A2A, "/endpoints/actions_registry", {ALIAS: None}),
    ("site-catalogue", MCP, "/endpoints/actions", {MCP: {"/endpoints/actions": "https://books.example/awas.json?a=1"}}),
    ("site-place", ALIAS, "", {AWAS: None}),
    ("site-actions", AGENT_JSON, "/actions/0/method", {AGENT_JSON: {"/actions/0/method": "POST"}}),
    ("site-actions", AGENT_JSON, "/actions/0/endpoint", {AGENT_JSON: {"/actions/0/endpoint": "/find"}}),
    ("site-invoke-path", WOA, "/transports/rest/invoke_path", {WOA: {"/transports/rest/invoke_path": "/agent.json?x"}}),
]


def checked(changes: dict[str, dict[str, object] | None]) -> list[Finding]:
    documents = {}
    for path, document in SITE.items():
        edits = changes.get(path, {})
        if edits is not None:
            documents[path] = json.dumps(edited(document, edits)).encode()
    return check_documents(documents)


@pytest.mark.parametrize(("check", "path", "pointer", "changes"), SITE_CASES)
def test_documents_that_disagree_get_a_finding(
    check: str, path: str, pointer: str, changes: dict[str, dict[str, object] | None]
) -> None:
    findings = checked(changes)
    assert (check, path, pointer) in {(finding.check, finding.document, finding.pointer) for finding in findings}
    assert {finding.check for finding in findings} == {check}, [str(finding) for finding in findings]


def test_an_agent_json_at_another_place_is_pointed_out() -> None:
    findings = check_documents({"/.well-known/agent.json": json.dumps(KINDS["agent-json"]).encode()})
    assert [(finding.check, finding.document) for finding in findings] == [("site-place", "/.well-known/agent.json")]


@pytest.mark.parametrize("endpoint", ["https://books.example/search", "/search?lang=en", "/search"])
def test_an_endpoint_may_be_written_as_a_path_or_as_a_url(endpoint: str) -> None:
    assert checked({AGENT_JSON: {"/actions/0/endpoint": endpoint}}) == []


def test_an_action_through_a_protocol_is_not_compared() -> None:
    via = {"/actions/0/via": "mcp", "/actions/0/endpoint": ABSENT, "/actions/0/method": ABSENT}
    assert checked({AGENT_JSON: via}) == []


def test_a_copy_of_the_same_bytes_is_reported_once() -> None:
    broken: dict[str, object] = {"/name": 5}
    findings = checked({AWAS: broken, ALIAS: broken})
    assert [(finding.check, finding.document) for finding in findings] == [("awas-type", AWAS)]


def test_errors_of_all_documents_come_first() -> None:
    findings = checked({AWAS: {"/contact/email": "desk"}, WOA: {"/woa_version": 1}, ALIAS: {"/contact": ABSENT}})
    assert [finding.check for finding in findings] == ["woa-version", "awas-email"]


def test_a_document_that_cannot_be_read_is_reported_where_one_of_ours_should_be() -> None:
    findings = check_documents({"/agent.json": b"{", "/llms.txt": b"# Bookshop", "/sitemap.json": b"\xff"})
    assert [(finding.check, finding.document) for finding in findings] == [("json-syntax", "/agent.json")]
