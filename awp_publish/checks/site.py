"""Checks that the documents of one site (path to document) agree with each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from awp_publish.checks.agent_json import AGENT_JSON
from awp_publish.checks.awas import AWAS
from awp_publish.checks.awas_manifests import A2A, MCP, catalogue
from awp_publish.checks.engine import ERROR, Finding, JsonObject, Specification, finding, shown
from awp_publish.checks.places import objects, strings
from awp_publish.checks.recognition import recognise, specifications
from awp_publish.checks.urls import is_absolute, split
from awp_publish.checks.woa import PLACEHOLDER_TEXT, WOA

SITE: Final = Specification("site", "awp_publish")

check = SITE.check


def _of_kind(site: JsonObject, wanted: Specification) -> Iterator[tuple[str, JsonObject]]:
    for path, document in site.items():
        if isinstance(document, dict) and recognise(document, path) is wanted:
            yield path, document


def _path_of(url: str) -> str:
    parts = split(url)
    return parts.path if is_absolute(url) and parts is not None else url.partition("?")[0].partition("#")[0]


@check("site-catalogue", ERROR, "AWAS 1.0, Manifest Requirements", hint="Publish it there, or correct the endpoint.")
def missing_catalogue(site: JsonObject) -> Iterator[Finding]:
    """The catalogue of actions that the MCP and A2A manifests refer to is published."""
    for kind in (MCP, A2A):
        for path, manifest in _of_kind(site, kind):
            if (entries := catalogue(manifest)) is None:
                continue
            at = _path_of(entries[1])  # or there below a path, if the whole site is below it
            if at not in site and not any(path in site and at.endswith(path) for path in AWAS.paths):
                yield finding(entries[0], f"Nothing is published at {shown(entries[1])}.", document=path)


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
