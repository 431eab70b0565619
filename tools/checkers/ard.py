"""The rules of the conformance suite of ARD (github.com/ards-project/ard-spec), as its source and its schema have them.

The suite is in no registry, so this is our reading of its rules and not the suite itself: those of `manifest` and of
`publisher` for version 0.91, and the closed schema of the version before, which Lighthouse still asks for.
"""

import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

IDENTIFIER: Final = re.compile(r"urn:air:[a-zA-Z0-9.-]+(:[a-zA-Z0-9._-]+)+")
TYPES: Final = frozenset(
    {
        "application/ai-catalog+json",
        "application/agent-card+json",
        "application/a2a-agent-card+json",
        "application/mcp-server-card+json",
        "application/agent-skills+zip",
        "application/agent-skills+gzip",
        'text/markdown; profile="urn:air:agent-skills"',
        "application/ai-registry",
        "application/ai-registry+json",
    }
)
MEMBERS: Final = {
    "displayName": str,
    "type": str,
    "url": str,
    "data": dict,
    "description": str,
    "tags": list,
    "capabilities": list,
    "representativeQueries": list,
    "version": str,
    "updatedAt": str,
    "metadata": dict,
    "trustManifest": dict,
}
"""Members of an entry, and what they are. The schema leaves entries open: further ones are no errors."""

OF_THE_HOST: Final = frozenset({"displayName", "identifier", "documentationUrl", "logoUrl", "trustManifest"})


def faults(manifest: Any) -> Iterator[str]:
    """Yield what the suite calls an error or a warning."""
    if not isinstance(manifest, dict):
        yield "The manifest is no object."
        return
    if unknown := set(manifest) - {"specVersion", "host", "entries"}:
        yield f"Members at the top that the schema does not have: {', '.join(sorted(unknown))}."
    if manifest.get("specVersion") != "1.0":
        yield 'specVersion is not "1.0".'
    host = manifest.get("host", {"displayName": ""})
    if not isinstance(host, dict) or "displayName" not in host or set(host) - OF_THE_HOST:
        yield "host has no displayName, or members that the schema does not have."
    entries = manifest.get("entries")
    if not isinstance(entries, list):
        yield "entries is no list."
        return
    for number, entry in enumerate(entries):
        yield from (f"entries/{number}: {fault}" for fault in _faults_of(entry))


def _faults_of(entry: Any) -> Iterator[str]:
    if not isinstance(entry, dict):
        yield "is no object."
        return
    identifier = entry.get("identifier")
    if not isinstance(identifier, str) or IDENTIFIER.fullmatch(identifier) is None:
        yield f"the identifier {identifier!r} is none."
    yield from (f"has no {name}." for name in ("displayName", "type") if not entry.get(name))
    for name, kind in MEMBERS.items():
        if name in entry and not isinstance(entry[name], kind):
            yield f"{name} is no {kind.__name__}."
    if entry.get("type") not in TYPES:
        yield f"the type {entry.get('type')!r} is none of the standard ones."
    if ("url" in entry) == ("data" in entry):
        yield "has both or neither of url and data."
    if "url" in entry and urlsplit(str(entry["url"])).scheme not in ("http", "https"):
        yield "url is no address."
    queries = entry.get("representativeQueries")
    if not isinstance(queries, list) or not 2 <= len(queries) <= 5:
        yield "representativeQueries are not two to five."
    for name in ("representativeQueries", "tags", "capabilities"):
        yield from (
            f"{name} has {item!r}, which is no text." for item in entry.get(name, ()) if not isinstance(item, str)
        )
    if "trustManifest" in entry and not dict(entry["trustManifest"]).get("identity"):
        yield "trustManifest has no identity."
