"""The kinds of document that can be checked: where each is served, how it is recognised, and its table of checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from awp_publish.checks import agent_json, awas, manifests, text, woa
from awp_publish.checks.agent_json_shape import OTHER_STANDARDS
from awp_publish.checks.finding import Check
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
