"""Checks for AWAS, agent.json, WoA and actions.json documents, whoever publishes them.

    from awp_publish.checks import check_document

    for finding in check_document(data, path="/.well-known/woa.json"):
        print(finding)

Checking never raises because of a document's content: whatever is wrong becomes a `Finding`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from awp_publish.checks import awas, text
from awp_publish.checks.awas import AWAS
from awp_publish.checks.engine import LEVELS, Check, Finding, Specification, finding, in_order, subject_of
from awp_publish.checks.recognition import recognise, specifications
from awp_publish.checks.site import SITE
from awp_publish.checks.text import ParsedDocument

__all__ = ["Finding", "all_checks", "check_document", "check_documents", "specifications"]


@cache
def all_checks() -> tuple[Check, ...]:
    """Return all checks, in the order of the page that documents them."""
    return tuple(check for kind in (text.ANY_DOCUMENT, *specifications(), SITE) for check in kind.checks)


def check_document(
    document: bytes | str | Mapping[str, object], kind: str | None = None, path: str = "", *, lenient: bool = False
) -> list[Finding]:
    """Check one document against its specification: errors first, then in document order.

    `kind` is one of "awas", "agent-json", "woa", "awas-mcp", "awas-a2a" and "actions-json"; by default it is recognised
    by the members or the path. Another kind raises `ValueError`. `path` is where the document is served. With
    `lenient`, faults that only strict readers of actions.json reject, in maps older than V1, are warnings.
    """
    wanted = next((specification for specification in specifications() if specification.name == kind), None)
    if kind is not None and wanted is None:
        names = ", ".join(specification.name for specification in specifications())
        raise ValueError(f"Unknown kind of document {kind!r}. The kinds are {names}.")
    reading = text.read(document)
    return _judge(reading, wanted or recognise(reading.document, path), path, lenient=lenient)


def check_documents(documents: Mapping[str, bytes]) -> list[Finding]:
    """Check the documents of one site (path to bytes), each on its own and against each other.

    Documents of other kinds, and further copies of the same bytes, are skipped.
    """
    readings: dict[bytes, ParsedDocument] = {}
    parsed: dict[str, object] = {}
    findings: list[Finding] = []
    for path, data in documents.items():
        seen = data in readings
        reading = readings[data] if seen else readings.setdefault(data, text.read(data))
        if reading.document is not None:
            parsed[path] = reading.document
        kind = recognise(reading.document, path)
        if kind is not None and not seen:
            findings += _judge(reading, kind, path)
    order = {path: index for index, path in enumerate(parsed)}
    for judged in sorted(SITE.judge(parsed), key=lambda one: order[one.document]):
        findings.append(replace(judged, subject=subject_of(parsed[judged.document], judged.pointer)))
    return sorted(findings, key=lambda finding: LEVELS.index(finding.level))


def _judge(reading: ParsedDocument, kind: Specification | None, path: str, *, lenient: bool = False) -> list[Finding]:
    if kind is not None and kind.judge_reading is not None:
        return kind.judge_reading(reading, path, lenient)
    findings, document = list(reading.findings), reading.document
    if document is not None and kind is None:
        findings.append(text.UNKNOWN.complete(finding("", "This is not one of the documents that can be checked.")))
    elif document is not None and kind is not None:
        findings += text.ANY_DOCUMENT.judge(document)
        found = list(kind.judge(document))
        findings += found
        # White space counts, too, but the check itself only sees the parsed document.
        if kind is AWAS and not any(finding.check == awas.too_large.id for finding in found):
            findings += map(awas.too_large.complete, awas.oversize(reading.size))
    return in_order(findings, document, path)
