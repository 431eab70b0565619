"""Documents that are right get no findings."""

import json

import pytest

from awp_publish.checks import check_document, check_documents

from .agent_json_cases import SYNTHETIC
from .documents import ABSENT, AWAS_1_0, KINDS, PATHS, edited


@pytest.mark.parametrize("kind", KINDS)
def test_a_valid_document_has_no_findings(kind: str) -> None:
    assert check_document(KINDS[kind], kind) == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_kind_is_told_from_the_members(kind: str) -> None:
    assert check_document(json.dumps(KINDS[kind])) == []
    assert check_document(json.dumps(KINDS[kind]).encode()) == []


def test_a_manifest_of_awas_1_0_is_right_for_its_own_version() -> None:
    assert check_document(AWAS_1_0, "awas") == []


def test_the_documents_of_one_site_agree() -> None:
    site = {PATHS[kind]: json.dumps(document).encode() for kind, document in KINDS.items()}
    site["/.well-known/awas.json"] = site["/.well-known/ai-actions.json"]
    site["/schema/awas-schema.json"] = b'{"$schema": "https://json-schema.org/draft/2020-12/schema"}'
    site["/llms.txt"] = b"# Bookshop"
    assert check_documents(site) == []


@pytest.mark.parametrize(
    ("kind", "edits"),
    [
        ("agent-json", {**SYNTHETIC, "/confidence": 0}),
        ("agent-json", {**SYNTHETIC, "/confidence": 1}),
        ("awas", {"/actions/0/parameters/0/default": None}),
        ("awas", {"/actions/0/path": "https://books.example/search?lang=en"}),
        ("awas", {"/actions/0/parameters/0/type": "null", "/actions/0/parameters/0/example": None}),
        ("awas", {"/actions/0/result/properties/title": "h2 > a:is(.x, .y)::after"}),
        ("awas", {"/actions/0/parameters/0/validation/pattern": r"^\p{L}+$"}),
        ("agent-json", {"/actions/0/rate_limit": "100 per hour"}),
        ("agent-json", {"/auth/token_expiry": "never"}),
        ("agent-json", {"/actions/0/outputs/books": "array[object[book]]"}),
        ("agent-json", {"/actions/0/outputs/books": {"type": "array[book]", "description": "The books"}}),
        ("agent-json", {"/domain": "bücher.example"}),
        ("agent-json", {"/domain": "localhost:8000"}),
        ("agent-json", {"/x-extra": {"anything": 1}, "/actions/0/intent": "find"}),
        ("agent-json", {"/actions/0/description": "List books in order to choose one, newest orders first."}),
        ("woa", {"/authz": {"scheme": "south", "policy_uri": "https://authz.example/p"}}),
        ("woa", {"/transports/rest/invoke_path": "/invoke?agent={agent_id}"}),
        ("woa", {"/transports/rest/base": "https://books.example/api/v1"}),
        ("woa", {"/agents/0/inputs/properties/password": {"type": "string"}}),
        ("woa", {"/agents/0/inputs/properties/$ref": {"type": "string"}}),
        ("woa", {"/agents/0/inputs/properties/text": {"const": {"$ref": "#/nowhere"}}}),
        ("woa", {"/agents/0/inputs/$defs/text/$anchor": "t", "/agents/0/inputs/properties/text/$ref": "#t"}),
        ("woa", {"/agents/0/outputs": {"type": "object", "properties": {"next": {"$ref": "#"}}}}),
        ("woa", {"/transports/mcp/server": "books-mcp"}),
        ("awas-mcp", {"/capabilities": {"actions": True}}),
        ("awas-mcp", {"/name": ABSENT, "/version": ABSENT}),
        ("awas", {"/actions/0/colour": "red"}),
        ("awas", {"/actions/0/path": ABSENT, "/actions/0/description": ABSENT}),
        ("awas", {"/actions/1/sideEffect": ABSENT}),
        ("awas", {"/actions/0/parameters/1/format": "colour"}),
        ("awas", {"/actions/1/parameters/0/example": ABSENT}),
        ("awas", {"/workflows/0/steps/0": "search_shops"}),
        ("agent-json", {"/awp_version": "0.1", "/actions/1/endpoint": "/orders", "/actions/1/method": "POST"}),
        ("agent-json", {"/protocols/woa": {"version": "1"}}),
        ("agent-json", {"/auth/token_expiry": "a while"}),
        ("agent-json", {"/actions/0/inputs/q/type": "airport_code"}),
        ("agent-json", {"/actions/1/sensitivity": ABSENT}),
        ("woa", {"/agents/0/operations/0/name": "short"}),
        ("woa", {"/transports/com.example.pigeon": {}}),
        ("awas-mcp", {"/endpoints": {"things": "/.well-known/ai-actions.json", "shape": "/schema/awas.json"}}),
    ],
)
def test_unusual_spellings_that_the_specifications_allow_pass(kind: str, edits: dict[str, object]) -> None:
    assert check_document(edited(KINDS[kind], edits), kind) == []
