"""The checks of AWAS's documents, as plug-ins announce theirs: the manifest, and those for MCP and A2A clients."""

from dataclasses import replace

from awp_publish.checks.engine import Finding, in_order
from awp_publish.checks.text import ParsedDocument, judge
from awp_publish.plugins.awas.checks.bridge_manifests import A2A as A2A, MCP as MCP
from awp_publish.plugins.awas.checks.manifest import SPECIFICATION, oversize, too_large


def _judge_reading(reading: ParsedDocument, path: str, is_lenient: bool) -> list[Finding]:
    findings = judge(reading, SPECIFICATION)
    # White space counts, too, but the check itself only sees the parsed document.
    if reading.document is not None and not any(finding.check == too_large.id for finding in findings):
        findings += map(too_large.complete, oversize(reading.size))
    return in_order(findings, reading.document, path)


AWAS = replace(SPECIFICATION, judge_reading=_judge_reading)
