"""Checks of AWAS, agent.json and WoA documents: ours or anybody's.

    from awp_publish.checks import check_document

    for finding in check_document(data, path="/.well-known/woa.json"):
        print(finding)

Whatever a document contains, checking it raises nothing: what is wrong becomes a `Finding`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from awp_publish.checks import site, text
from awp_publish.checks.awas import LARGEST
from awp_publish.checks.engine import LEVELS, Check, Finding, Flaw, position
from awp_publish.checks.site import Kind
from awp_publish.checks.text import Reading

__all__ = ["ALL_CHECKS", "Finding", "check_document", "check_documents"]

ALL_CHECKS: tuple[Check, ...] = (
    *text.CHECKS,
    *(check for kind in site.KINDS for check in kind.checks),
    *site.CHECKS,
)
"""Every check there is, in the order of the page that documents them."""


def check_document(
    document: bytes | str | Mapping[str, object], kind: str | None = None, path: str = ""
) -> list[Finding]:
    """Check one document against its specification: errors first, then in document order.

    `kind` is one of "awas", "agent-json", "woa", "awas-mcp" and "awas-a2a"; without it the kind is told from the
    members, or from the path. Another kind raises `ValueError`. `path` is where the document is served.
    """
    asked = site.named(kind) if kind is not None else None
    reading = text.read(document)
    return _judged(reading, asked or _recognised(reading, path), path)


def check_documents(documents: Mapping[str, bytes]) -> list[Finding]:
    """Check the documents of one site, given path by path, each by itself and against each other.

    Documents of other kinds are passed over, and so are further copies of the same bytes.
    """
    parsed: dict[str, object] = {}
    findings: list[Finding] = []
    seen: set[bytes] = set()
    for path, data in documents.items():
        reading = text.read(data)
        if reading.document is not None:
            parsed[path] = reading.document
        kind = _recognised(reading, path)
        if kind is not None and data not in seen:
            findings += _judged(reading, kind, path)
        seen.add(data)
    findings += _across(parsed)
    return sorted(findings, key=_severity)


def _recognised(reading: Reading, path: str) -> Kind | None:
    return site.recognised(reading.document, path) if reading.document is not None else site.at_path(path)


def _judged(reading: Reading, kind: Kind | None, path: str) -> list[Finding]:
    findings = list(reading.findings)
    if reading.document is not None:
        findings += _checked(reading.document, kind, reading.size)
    findings.sort(key=lambda finding: (_severity(finding), position(reading.document, finding.pointer)))
    return [replace(finding, document=path) for finding in findings]


def _checked(document: Mapping[str, object], kind: Kind | None, size: int) -> Iterator[Finding]:
    if kind is None:
        yield text.BY_ID["document-unknown"].finding(Flaw("", "This is none of the documents that can be checked."))
        return
    for check in (*site.COMMON, *kind.checks):
        found = list(check(document))
        yield from found or _oversize(check, size)
        if found and check.decisive:
            return


def _oversize(check: Check, size: int) -> Iterator[Finding]:
    """Count the bytes of a text too: the check itself sees only what was read from it."""
    if check.id == "awas-size" and size > LARGEST:
        yield check.finding(Flaw("", f"The manifest has {size} bytes; {LARGEST} are recommended at most."))


def _severity(finding: Finding) -> int:
    return LEVELS.index(finding.level)


def _across(parsed: Mapping[str, object]) -> list[Finding]:
    order = list(parsed)
    found = [finding for check in site.CHECKS for finding in check(parsed)]
    return sorted(found, key=lambda finding: order.index(finding.document))
