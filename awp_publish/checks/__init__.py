"""Checks for AWAS, agent.json, WoA and actions.json documents, whoever publishes them.

    from awp_publish.checks import check_document

    for finding in check_document(data, path="/.well-known/woa.json"):
        print(finding)

Checking never raises because of a document's content: whatever is wrong becomes a `Finding`.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from awp_publish.checks import text
from awp_publish.checks.engine import LEVELS, Check, Finding, Specification, finding, in_order, subject_of
from awp_publish.checks.recognition import recognise, specifications
from awp_publish.checks.site import site_checks
from awp_publish.checks.text import ParsedDocument

__all__ = ["Finding", "all_checks", "check_document", "check_documents", "specifications"]


@cache
def all_checks() -> tuple[Check, ...]:
    """Return all checks, in the order of the page that documents them."""
    return tuple(check for kind in (text.ANY_DOCUMENT, *specifications()) for check in kind.checks) + site_checks()


def check_document(
    document: bytes | str | Mapping[str, object], kind: str | None = None, path: str = "", *, lenient: bool = False
) -> list[Finding]:
    """Check one document against its specification: errors first, then in document order.

    `kind` is the name of a kind of document, such as "woa", "awas" or "agent-json"; by default it is recognised
    by the members or the path. Another kind raises `ValueError`. `path` is where the document is served. With
    `lenient`, faults that only strict readers of actions.json reject, in maps older than V1, are warnings.
    """
    requested = next((specification for specification in specifications() if specification.name == kind), None)
    if kind is not None and requested is None:
        names = ", ".join(specification.name for specification in specifications())
        raise ValueError(f"Unknown kind of document {kind!r}. The kinds are {names}.")
    reading = text.read(document)
    return _judge(reading, requested or recognise(reading.document, path), path, lenient=lenient)


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
    of_site = (judged for check in site_checks() for judged in check(parsed))
    for judged in sorted(of_site, key=lambda judged: order[judged.document]):
        findings.append(replace(judged, subject=subject_of(parsed[judged.document], judged.pointer)))
    return sorted(findings, key=lambda finding: LEVELS.index(finding.level))


def _judge(reading: ParsedDocument, kind: Specification | None, path: str, *, lenient: bool = False) -> list[Finding]:
    if kind is not None and kind.judge_reading is not None:
        return kind.judge_reading(reading, path, lenient)
    if kind is not None:
        findings = text.judge(reading, kind)
    elif reading.document is not None:
        unknown = finding("", "This is not one of the documents that can be checked.")
        findings = [*reading.findings, text.UNKNOWN.complete(unknown)]
    else:
        findings = list(reading.findings)
    return in_order(findings, reading.document, path)
