"""Checks for AWAS, agent.json, WoA and actions.json documents, whoever publishes them.

    from awp_publish.checks import check_document

    for finding in check_document(data, path="/.well-known/woa.json"):
        print(finding)

Checking never raises because of a document's content: whatever is wrong becomes a `Finding`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from importlib.metadata import entry_points
from typing import Final

from awp_publish.checks import awas, text
from awp_publish.checks.agent_json import AGENT_JSON
from awp_publish.checks.awas import A2A, AWAS, MCP, catalogue
from awp_publish.checks.engine import (
    ERROR,
    LEVELS,
    Check,
    Finding,
    JsonObject,
    Specification,
    finding,
    in_order,
    objects,
    shown,
    strings,
    subject_of,
)
from awp_publish.checks.text import ParsedDocument
from awp_publish.checks.urls import is_absolute, split
from awp_publish.checks.woa import PLACEHOLDER_TEXT, WOA
from awp_publish.documents.members import AGENT_CARD_PATHS, AI_CATALOG_PATH, ARD_PATH

__all__ = ["Finding", "all_checks", "check_document", "check_documents", "specifications"]

# --- The kind of a document ---

ENTRY_POINTS: Final = "awp_publish.checks"
"""The group of entry points with which plug-ins announce the kinds of documents that they check."""

_OWN: Final = (AWAS, AGENT_JSON, WOA, MCP, A2A)
_OTHERS: Final = frozenset({*AGENT_CARD_PATHS, ARD_PATH, AI_CATALOG_PATH})
"""Paths of documents of other kinds, which may resemble one of ours."""


@cache
def specifications() -> tuple[Specification, ...]:
    """Return the kinds of documents that are checked: our own, then those of plug-ins."""
    return (*_OWN, *_of_plugins())


@cache
def all_checks() -> tuple[Check, ...]:
    """Return all checks, in the order of the page that documents them."""
    return tuple(check for kind in (text.ANY_DOCUMENT, *specifications(), SITE) for check in kind.checks)


@cache
def _of_plugins() -> tuple[Specification, ...]:
    found: list[Specification] = []
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name):
        try:
            found.append(point.load())
        except ModuleNotFoundError as error:
            if error.name is None or not f"{point.module}.".startswith(f"{error.name}."):
                raise  # otherwise the plug-in was taken out
    return tuple(found)


@cache
def _most_distinctive_first() -> tuple[Specification, ...]:
    return (*_of_plugins(), AGENT_JSON, WOA, A2A, MCP, AWAS)


def _recognised(document: JsonObject | None, path: str = "") -> Specification | None:
    """Return the kind of a document: by distinctive members, else by its path, else by resemblance.

    `document` is None if it could not be parsed; then only the path tells its kind.
    """
    at_path = _kind_at(path)
    if document is None:
        return at_path
    marked = next((kind for kind in _most_distinctive_first() if kind.marks(document)), None)
    if marked or path.endswith(tuple(_OTHERS)):
        return marked
    return at_path or next((kind for kind in _most_distinctive_first() if kind.resembles(document)), None)


@lru_cache(maxsize=512)  # checking a site asks for the same paths repeatedly
def _kind_at(path: str) -> Specification | None:
    exact = next((kind for kind in specifications() if path in kind.paths), None)
    below = (kind for kind in specifications() if path.endswith(tuple(kind.paths)))  # a site may be below a path
    return exact or next(below, None)


# --- Checks that the documents of one site (path to document) agree with each other ---

SITE: Final = Specification("site", "awp_publish")
check = SITE.check


def _of_kind(site: JsonObject, wanted: Specification) -> Iterator[tuple[str, JsonObject]]:
    for path, document in site.items():
        if isinstance(document, dict) and _recognised(document, path) is wanted:
            yield path, document


def _path_of(url: str) -> str:
    parts = split(url)
    return parts.path if is_absolute(url) and parts is not None else url.partition("?")[0].partition("#")[0]


@check("site-catalogue", ERROR, "AWAS 1.0, Manifest Requirements", hint="Publish it there, or correct the endpoint.")
def missing_catalogue(site: JsonObject) -> Iterator[Finding]:
    """The catalogue of actions that the MCP and A2A manifests refer to is published."""
    for kind in (MCP, A2A):
        for path, manifest in _of_kind(site, kind):
            if (found := catalogue(manifest)) is None:
                continue
            at = _path_of(found[1])  # or there below a path, if the whole site is below it
            if at not in site and not any(known in site and at.endswith(known) for known in AWAS.paths):
                yield finding(found[0], f"Nothing is published at {shown(found[1])}.", document=path)


@check(
    "site-place",
    ERROR,
    "AWAS 1.0, AI Manifest and Discovery Endpoints; AWP agent.json section 3; WoA draft-00 section 9.1",
    hint="Serve it there; further places are allowed.",
)
def misplaced(site: JsonObject) -> Iterator[Finding]:
    """Every document is served where its specification wants it."""
    for kind in specifications():
        places = [path for path, _ in _of_kind(site, kind)]
        # A site below a path serves all of them below it; the alternative paths do not count.
        below = [path for path in places if path.endswith(kind.paths[0]) and path not in kind.paths[1:]]
        if places and not below:
            yield finding("", f"The document is at {places[0]} and not at {kind.paths[0]}.", document=places[0])


@check(
    "site-actions",
    ERROR,
    "AWP agent.json section 9; AWAS 1.0, Action Object Structure",
    hint="Correct the document that is wrong, or rename one of the actions.",
)
def disagreeing_actions(site: JsonObject) -> Iterator[Finding]:
    """Actions with one id have one method and endpoint in agent.json and in ai-actions.json."""
    declared = {
        identifier: action
        for _, document in _of_kind(site, AWAS)
        for _, action in objects(document, "/actions/[]")
        if isinstance(identifier := action.get("id"), str)
    }
    for path, document in _of_kind(site, AGENT_JSON):
        for pointer, action in objects(document, "/actions/[]"):
            identifier, method, endpoint = action.get("id"), action.get("method"), action.get("endpoint")
            other = declared.get(identifier) if isinstance(identifier, str) else None
            if other is None or "via" in action:
                continue
            theirs = other.get("method")
            if isinstance(method, str) and isinstance(theirs, str) and method != theirs:
                message = f"The method is {shown(method)} here and {shown(theirs)} in ai-actions.json."
                yield finding(f"{pointer}/method", message, document=path)
            places = [place for name in ("endpoint", "path") if isinstance(place := other.get(name), str)]
            if not isinstance(endpoint, str) or not places or endpoint in places:
                continue
            if _path_of(endpoint) not in map(_path_of, places):
                message = f"The endpoint is {shown(endpoint)} here and {shown(places[0])} in ai-actions.json."
                yield finding(f"{pointer}/endpoint", message, document=path)


@check("site-invoke-path", ERROR, "WoA draft-00 section 4.3.1", hint="Move the invoke_path.")
def shadowed_invoke_path(site: JsonObject) -> Iterator[Finding]:
    """No agent is invoked at the path of a document."""
    for path, document in _of_kind(site, WOA):
        for pointer, template in strings(document, "/transports/rest/invoke_path"):
            names = [name for _, name in strings(document, "/agents/[]/id")] or [""]
            urls = (_path_of(template.replace(PLACEHOLDER_TEXT, name)) for name in names)
            taken = next((url for url in urls if url in site), None)
            if taken:
                yield finding(pointer, f"{shown(taken)} is the path of a document of the site.", document=path)


# --- What is checked ---


def check_document(
    document: bytes | str | Mapping[str, object], kind: str | None = None, path: str = "", *, lenient: bool = False
) -> list[Finding]:
    """Check one document against its specification: errors first, then in document order.

    `kind` is one of "awas", "agent-json", "woa", "awas-mcp", "awas-a2a" and "actions-json"; by default it is recognised
    by the members or the path. Another kind raises `ValueError`. `path` is where the document is served. With
    `lenient`, faults that only strict readers of actions.json reject, in maps older than V1, are warnings.
    """
    wanted = next((one for one in specifications() if one.name == kind), None)
    if kind is not None and wanted is None:
        known = ", ".join(one.name for one in specifications())
        raise ValueError(f"Unknown kind of document {kind!r}. The kinds are {known}.")
    reading = text.read(document)
    return _judge(reading, wanted or _recognised(reading.document, path), path, lenient=lenient)


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
        kind = _recognised(reading.document, path)
        if kind is not None and not seen:
            findings += _judge(reading, kind, path)
    order = {path: index for index, path in enumerate(parsed)}
    for found in sorted(SITE.judge(parsed), key=lambda found: order[found.document]):
        findings.append(replace(found, subject=subject_of(parsed[found.document], found.pointer)))
    return sorted(findings, key=lambda found: LEVELS.index(found.level))


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
        if kind is AWAS and not any(one.check == awas.too_large.id for one in found):
            findings += map(awas.too_large.complete, awas.oversize(reading.size))
    return in_order(findings, document, path)
