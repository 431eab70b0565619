"""Documents of a site that are at other places, or cannot be read; `cases.txt` has those that do not agree."""

import json

from awp_publish.checks import check_documents

from .documents import KINDS


def test_an_agent_json_at_another_place_is_pointed_out() -> None:
    findings = check_documents({"/.well-known/agent.json": json.dumps(KINDS["agent-json"]).encode()})
    assert [(finding.check, finding.document) for finding in findings] == [("site-place", "/.well-known/agent.json")]


def test_a_document_that_cannot_be_read_is_reported_where_one_of_ours_should_be() -> None:
    findings = check_documents({"/agent.json": b"{", "/llms.txt": b"# Bookshop", "/sitemap.json": b"\xff"})
    assert [(finding.check, finding.document) for finding in findings] == [("json-syntax", "/agent.json")]
