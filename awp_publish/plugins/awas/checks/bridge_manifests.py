"""Checks for AWAS's manifests for other clients, `mcp-manifest.json` and `a2a-manifest.json`.

These are AWAS's own formats: neither an MCP server card nor an A2A agent card. They require little: a reference to
the catalogue of actions, and a few sections.
"""

from collections.abc import Callable, Iterator
from typing import Final

from awp_publish.checks.engine import ERROR, WARNING, Finding, JsonObject, Specification, finding, has, shown
from awp_publish.checks.places import members, strings
from awp_publish.checks.recognition import of_kind
from awp_publish.checks.schemas import DocumentSchema
from awp_publish.checks.urls import is_absolute, path_of, url_fault
from awp_publish.plugins.awas.checks.manifest import SPECIFICATION
from awp_publish.schema.pointers import child

BRIDGES: Final = "AWAS 1.0, Manifest Requirements"

SAMPLES: Final = "AWAS 1.0, Sample Manifests"

_CATALOGUE_NAMES: Final = ("ai-actions.json", "awas.json")

_CATALOGUE_MEMBERS: Final = ("actions", "actions_registry", "actions_catalog", "actions_catalogue")

_SCHEMA_MEMBERS: Final = ("schema", "schema_definition", "schemas")

_FOREIGN_MEMBERS: Final = {
    "an MCP server card": ("serverInfo", "remotes", "packages", "transport"),
    "an A2A agent card": ("skills", "protocolVersion", "defaultInputModes", "supportedInterfaces"),
}

_MEMBERS: Final = {
    **{name: {"type": "string"} for name in ("$schema", "name", "version", "description", "protocol")},
    **{name: {"type": "object"} for name in ("integration", "interoperability", "metadata", "discovery")},
    "capabilities": {"type": ["array", "object"]},
    "endpoints": {"type": "object", "additionalProperties": {"type": ["string", "array", "object"]}},
}


def catalogue(document: JsonObject) -> tuple[str, str] | None:
    """Return pointer and value of the endpoint that refers to the catalogue of actions, if there is one."""
    endpoints = list(strings(document, "/endpoints/{}"))
    named = {pointer: text for pointer, text in endpoints if text.strip()}
    for member in _CATALOGUE_MEMBERS:
        pointer = child("/endpoints", member)
        if pointer in named:
            return pointer, named[pointer]
    return next(((place, text) for place, text in endpoints if text.rstrip("/").endswith(_CATALOGUE_NAMES)), None)


def foreign(document: JsonObject) -> Iterator[Finding]:
    """Find documents that are the protocol's own card instead of AWAS's manifest about it."""
    for card, names in _FOREIGN_MEMBERS.items():
        found = next((name for name in names if name in document), None)
        if found and "endpoints" not in document:
            yield finding(child("", found), f'The member "{found}" makes this look like {card}.')


def without_catalogue(document: JsonObject) -> Iterator[Finding]:
    """Find manifests in which no endpoint refers to the catalogue of actions."""
    if isinstance(document.get("endpoints"), dict) and catalogue(document) is None:
        yield finding("/endpoints/actions", "No endpoint refers to the catalogue of actions.")


def bad_endpoints(document: JsonObject) -> Iterator[Finding]:
    """Find endpoints that are neither a path nor a well-formed URL."""
    for pointer, text in strings(document, "/endpoints/{}"):
        fault = url_fault(text) or ("is empty" if not text.strip() else None)
        if not fault and not text.startswith("/") and not is_absolute(text):
            fault = 'is neither a path that begins with "/" nor an absolute URL'
        if fault:
            yield finding(pointer, f"{shown(text)} {fault}.")


def without_schema(document: JsonObject) -> Iterator[Finding]:
    """Find manifests in which no endpoint refers to a schema."""
    endpoints = document.get("endpoints")
    texts = [text for _, text in strings(document, "/endpoints/{}")]
    named = any(name in members(endpoints) for name in _SCHEMA_MEMBERS) or any("schema" in text for text in texts)
    if isinstance(endpoints, dict) and not named:
        yield finding("/endpoints/schema", "No endpoint refers to a schema.")


def _bridge(name: str, required: list[str], resembles: Callable[[JsonObject], bool]) -> Specification:
    """Make one of the two kinds, which differ in their name and required sections."""

    def marks(document: JsonObject) -> bool:
        protocols = (document.get("protocol"), members(document.get("integration")).get("protocol"))
        return "endpoints" in document and name in protocols

    code, title = f"awas-{name.lower()}", f"The {name} manifest"
    schema = DocumentSchema(lambda: {"type": "object", "required": required, "properties": _MEMBERS})
    path = f"/.well-known/{name.lower()}-manifest.json"
    kind = Specification(code, BRIDGES, (path,), marks, resembles, schema.violations, rank=1)
    kind.check(
        f"{code}-foreign",
        WARNING,
        BRIDGES,
        about=f"{title} is AWAS's own and not a card of another standard.",
        hint="Serve the card where its own standard wants it, and AWAS's manifest here.",
    )(foreign)
    kind.row(
        f"{code}-required",
        ERROR,
        BRIDGES,
        f"{title} has the sections it must have.",
        hint="Add the section.",
        violation="required .*",
    )
    kind.row(
        f"{code}-type",
        ERROR,
        SAMPLES,
        f"The sections of the {name} manifest have the types of the samples.",
        hint="Write a value of that type.",
        violation="type .*",
    )
    kind.check(
        f"{code}-catalogue",
        ERROR,
        BRIDGES,
        about=f"{title} refers to the catalogue of actions.",
        hint='Add an endpoint such as "actions": "/.well-known/awas.json".',
    )(without_catalogue)
    kind.check(
        f"{code}-endpoint",
        ERROR,
        BRIDGES,
        about=f"The endpoints of the {name} manifest are paths or well-formed URLs.",
        hint='Write a path that begins with "/", or a whole URL.',
    )(bad_endpoints)
    kind.check(
        f"{code}-schema",
        WARNING,
        BRIDGES,
        about=f"{title} refers to a schema.",
        hint='Add an endpoint such as "schema": "/schema/awas-schema.json".',
    )(without_schema)
    return kind


MCP: Final = _bridge("MCP", ["capabilities", "endpoints"], has("endpoints"))

A2A: Final = _bridge("A2A", ["capabilities", "endpoints", "interoperability"], has("interoperability"))


@MCP.check("site-catalogue", ERROR, BRIDGES, hint="Publish it there, or correct the endpoint.", of_site=True)
def missing_catalogue(site: JsonObject) -> Iterator[Finding]:
    """The catalogue of actions that the MCP and A2A manifests refer to is published."""
    for kind in (MCP, A2A):
        for path, manifest in of_kind(site, kind.name):
            if (entries := catalogue(manifest)) is None:
                continue
            at = path_of(entries[1])  # or there below a path, if the whole site is below it
            if at not in site and not any(path in site and at.endswith(path) for path in SPECIFICATION.paths):
                yield finding(entries[0], f"Nothing is published at {shown(entries[1])}.", document=path)
