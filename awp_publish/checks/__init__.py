"""Checks of AWAS, agent.json, WoA and actions.json documents: ours or anybody's.

    from awp_publish.checks import check_document

    for finding in check_document(data, path="/.well-known/woa.json"):
        print(finding)

Whatever a document contains, checking it raises nothing: what is wrong becomes a `Finding`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from awp_publish.checks import actions_json, awas, site, text
from awp_publish.checks.engine import (
    LEVELS,
    Check,
    Finding,
    Specification,
    finding,
    in_order,
    subject_of,
)
from awp_publish.checks.text import ParsedDocument

__all__ = ["ALL_CHECKS", "Finding", "check_document", "check_documents"]

ALL_CHECKS: tuple[Check, ...] = tuple(
    check for kind in (text.ANY_DOCUMENT, *site.SPECIFICATIONS, site.SITE) for check in kind.checks
)
"""Every check there is, in the order of the page that documents them."""


def check_document(
    document: bytes | str | Mapping[str, object], kind: str | None = None, path: str = "", *, lenient: bool = False
) -> list[Finding]:
    """Check one document against its specification: errors first, then in document order.

    `kind` is one of "awas", "agent-json", "woa", "awas-mcp", "awas-a2a" and "actions-json"; without it the kind is told
    from the members, or from the path. Another kind raises `ValueError`. `path` is where the document is served.
    `lenient` turns into warnings what only strict readers refuse in maps that are older than actions.json V1.
    """
    wanted = site.named(kind) if kind is not None else None
    reading = text.read(document)
    return _judge(reading, wanted or site.recognised(reading.document, path), path, lenient=lenient)


def check_documents(documents: Mapping[str, bytes]) -> list[Finding]:
    """Check the documents of one site, given path by path, each by itself and against each other.

    Documents of other kinds are passed over, and so are further copies of the same bytes.
    """
    readings: dict[bytes, ParsedDocument] = {}
    parsed: dict[str, object] = {}
    findings: list[Finding] = []
    for path, data in documents.items():
        seen = data in readings
        reading = readings[data] if seen else readings.setdefault(data, text.read(data))
        if reading.document is not None:
            parsed[path] = reading.document
        kind = site.recognised(reading.document, path)
        if kind is not None and not seen:
            findings += _judge(reading, kind, path)
    order = {path: index for index, path in enumerate(parsed)}
    for found in sorted(site.SITE.judge(parsed), key=lambda found: order[found.document]):
        findings.append(replace(found, subject=subject_of(parsed[found.document], found.pointer)))
    return sorted(findings, key=lambda found: LEVELS.index(found.level))


def _judge(reading: ParsedDocument, kind: Specification | None, path: str, *, lenient: bool = False) -> list[Finding]:
    if kind is actions_json.ACTIONS_JSON:
        return actions_json.check_map(reading, path, lenient=lenient)
    findings, document = list(reading.findings), reading.document
    if document is not None and kind is None:
        findings.append(text.UNKNOWN.complete(finding("", "This is none of the documents that can be checked.")))
    elif document is not None and kind is not None:
        findings += text.ANY_DOCUMENT.judge(document)
        found = list(kind.judge(document))
        findings += found
        # White space counts too. The check itself sees only what was read from the text.
        if kind is awas.AWAS and not any(one.check == awas.too_large.id for one in found):
            findings += map(awas.too_large.complete, awas.oversize(reading.size))
    return in_order(findings, document, path)
