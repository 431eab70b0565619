"""Checks across the documents of one site: do they agree with each other?

The functions have the shape of all checks; the document that they are given is the site, path by path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from awp_publish.checks import agent_json, awas, manifests, text, woa
from awp_publish.checks.agent_json import OTHER_STANDARDS
from awp_publish.checks.engine import Check, Flaw, child, objects, shown, strings
from awp_publish.checks.manifests import catalogue
from awp_publish.checks.urls import is_absolute, split
from awp_publish.checks.woa import PLACEHOLDER_TEXT
from awp_publish.protocols import agent_card

Recognise = Callable[[Mapping[str, object]], bool]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of document. `marks` cannot be mistaken; `resembles` is asked when neither marks nor path decide."""

    name: str
    paths: Sequence[str]
    checks: Sequence[Check]
    marks: Recognise
    resembles: Recognise


def _has(*names: str) -> Recognise:
    return lambda document: all(name in document for name in names)


def _speaks(protocol: str) -> Recognise:
    def recognise(document: Mapping[str, object]) -> bool:
        integration = document.get("integration")
        inner = integration.get("protocol") if isinstance(integration, Mapping) else None
        return "endpoints" in document and protocol in (document.get("protocol"), inner)

    return recognise


def _is_agent_json(document: Mapping[str, object]) -> bool:
    return "awp_version" in document or _has("version", "origin", "payout_address")(document)


def _resembles_agent_json(document: Mapping[str, object]) -> bool:
    others = (_has(*members) for _, members in OTHER_STANDARDS)
    return _has("domain", "intent")(document) or any(other(document) for other in others)


KINDS = (
    Kind(
        "awas",
        ("/.well-known/ai-actions.json", "/.well-known/awas.json"),
        awas.CHECKS,
        _has("specVersion"),
        _has("actions"),
    ),
    Kind(
        "agent-json",
        ("/agent.json", "/.well-known/agent.json"),
        agent_json.CHECKS,
        _is_agent_json,
        _resembles_agent_json,
    ),
    Kind("woa", ("/.well-known/woa.json",), woa.CHECKS, _has("woa_version"), _has("agents", "transports")),
    Kind("awas-mcp", ("/.well-known/mcp-manifest.json",), manifests.MCP, _speaks("MCP"), _has("endpoints")),
    Kind("awas-a2a", ("/.well-known/a2a-manifest.json",), manifests.A2A, _speaks("A2A"), _has("interoperability")),
)

OTHERS = frozenset({agent_card.PATH})
"""Where documents are served that may resemble a kind but are of none."""

BY_NAME = {kind.name: kind for kind in KINDS}
_ASKED_IN_ORDER = tuple(BY_NAME[name] for name in ("agent-json", "woa", "awas-a2a", "awas-mcp", "awas"))
COMMON = tuple(check for check in text.CHECKS if check.id == "document-secret")


def named(name: str) -> Kind:
    """Give the kind with a name, or say which there are."""
    if name not in BY_NAME:
        raise ValueError(f"There is no kind of document {name!r}; there are {', '.join(BY_NAME)}.")
    return BY_NAME[name]


def recognised(document: Mapping[str, object], path: str = "") -> Kind | None:
    """Tell the kind of a document: by unmistakable members, else by the path, else by what it resembles."""
    for kind in _ASKED_IN_ORDER:
        if kind.marks(document):
            return kind
    if path in OTHERS:
        return None
    return at_path(path) or next((kind for kind in _ASKED_IN_ORDER if kind.resembles(document)), None)


def at_path(path: str) -> Kind | None:
    """Tell the kind that is served at a path."""
    return next((kind for kind in KINDS if path in kind.paths), None)


Site = Mapping[str, object]
Document = Mapping[str, object]


def _of_kind(site: Site, name: str) -> Iterator[tuple[str, Document]]:
    for path, document in site.items():
        if isinstance(document, Mapping):
            kind = recognised(document, path)
            if kind is not None and kind.name == name:
                yield path, document


def _path_of(url: str) -> str:
    parts = split(url)
    return parts.path if is_absolute(url) and parts is not None else url.partition("?")[0].partition("#")[0]


def _host_of(url: object) -> str | None:
    parts = split(url) if isinstance(url, str) else None
    return parts.hostname if parts is not None else None


def missing_catalogue(site: Site) -> Iterator[Flaw]:
    """Find manifests whose catalogue of actions is not among the documents of the site."""
    for name in ("awas-mcp", "awas-a2a"):
        for path, manifest in _of_kind(site, name):
            found = catalogue(manifest)
            if found and _path_of(found[1]) not in site:
                yield Flaw(found[0], f"Nothing is published at {shown(found[1])}.", document=path)


def misplaced(site: Site) -> Iterator[Flaw]:
    """Find documents of a kind of which none stands where its specification wants it."""
    for name, kind in BY_NAME.items():
        places = [path for path, _ in _of_kind(site, name)]
        if places and kind.paths[0] not in site:
            yield Flaw("", f"The document is at {places[0]} and not at {kind.paths[0]}.", document=places[0])


def disagreeing_actions(site: Site) -> Iterator[Flaw]:
    """Find actions that agent.json and ai-actions.json both declare, with another method or endpoint."""
    declared = _awas_actions(site)
    for path, document in _of_kind(site, "agent-json"):
        for pointer, action in objects(document, "/actions/[]"):
            identifier = action.get("id")
            other = declared.get(identifier) if isinstance(identifier, str) else None
            if other is not None and "via" not in action:
                yield from _disagreement(path, pointer, action, other)


def _awas_actions(site: Site) -> dict[str, Document]:
    return {
        identifier: action
        for _, document in _of_kind(site, "awas")
        for _, action in objects(document, "/actions/[]")
        if isinstance(identifier := action.get("id"), str)
    }


def _disagreement(path: str, pointer: str, action: Document, other: Document) -> Iterator[Flaw]:
    method, declared = action.get("method"), other.get("method")
    if isinstance(method, str) and isinstance(declared, str) and method != declared:
        message = f"The method is {shown(method)} here and {shown(declared)} in ai-actions.json."
        yield Flaw(child(pointer, "method"), message, document=path)
    endpoint = action.get("endpoint")
    places = [place for name in ("endpoint", "path") if isinstance(place := other.get(name), str)]
    if isinstance(endpoint, str) and places and _path_of(endpoint) not in map(_path_of, places):
        message = f"The endpoint is {shown(endpoint)} here and {shown(places[0])} in ai-actions.json."
        yield Flaw(child(pointer, "endpoint"), message, document=path)


def shadowed_invoke_path(site: Site) -> Iterator[Flaw]:
    """Find agents that are invoked at the path of a document."""
    for path, document in _of_kind(site, "woa"):
        for pointer, template in strings(document, "/transports/rest/invoke_path"):
            names = [name for _, name in strings(document, "/agents/[]/id")] or [""]
            urls = (_path_of(template.replace(PLACEHOLDER_TEXT, name)) for name in names)
            taken = next((url for url in urls if url in site), None)
            if taken:
                yield Flaw(pointer, f"{shown(taken)} is the path of a document of the site.", document=path)


def several_hosts(site: Site) -> Iterator[Flaw]:
    """Find documents that speak about another host than the domain of agent.json."""
    domains = {_bare(document.get("domain")) for _, document in _of_kind(site, "agent-json")} - {None}
    if not domains:
        return
    for name, place in (("awas", "/baseUrl"), ("woa", "/transports/rest/base")):
        for path, document in _of_kind(site, name):
            for pointer, url in strings(document, place):
                if (host := _host_of(url)) and host not in domains:
                    yield Flaw(pointer, f"The host is {shown(host)}, and agent.json has another domain.", document=path)


def _bare(domain: object) -> str | None:
    return _host_of(f"//{domain}") if isinstance(domain, str) else None


CHECKS = (
    Check(
        "site-catalogue",
        "error",
        "AWAS 1.0, Manifest Requirements",
        "The catalogue of actions that the MCP and A2A manifests refer to is published.",
        "Publish it there, or correct the endpoint.",
        missing_catalogue,
    ),
    Check(
        "site-place",
        "error",
        "AWAS 1.0, AI Manifest and Discovery Endpoints; AWP agent.json section 3; WoA draft-00 section 9.1",
        "Every document is served where its specification wants it.",
        "Serve it there; further places are allowed.",
        misplaced,
    ),
    Check(
        "site-actions",
        "error",
        "AWP agent.json section 9; AWAS 1.0, Action Object Structure",
        "Actions with one id have one method and endpoint in agent.json and in ai-actions.json.",
        "Correct the document that is wrong, or rename one of the actions.",
        disagreeing_actions,
    ),
    Check(
        "site-invoke-path",
        "error",
        "WoA draft-00 section 4.3.1",
        "No agent is invoked at the path of a document.",
        "Move the invoke_path.",
        shadowed_invoke_path,
    ),
    Check(
        "site-host",
        "info",
        "AWP agent.json section 5; AWAS 1.0, Top-Level Properties; WoA draft-00 section 4.3.1",
        "The documents speak about the host that agent.json names as its domain.",
        "Right where the interface has a host of its own.",
        several_hosts,
    ),
)
