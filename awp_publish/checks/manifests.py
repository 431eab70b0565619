"""AWAS's two bridge files, `mcp-manifest.json` and `a2a-manifest.json`.

They are AWAS's own: neither an MCP server card nor an A2A agent card. What they must have is little: a reference to
the catalogue of actions, and a few sections.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from awp_publish.checks import engine
from awp_publish.checks.engine import Check, Flaw, Shape, child, shown, strings
from awp_publish.checks.urls import is_absolute, url_fault

SOURCE = "AWAS 1.0, Manifest Requirements"
SAMPLE = "AWAS 1.0, Sample Manifests"

CATALOGUE_NAMES = ("ai-actions.json", "awas.json")
CATALOGUE_MEMBERS = ("actions", "actions_registry", "actions_catalog", "actions_catalogue")
SCHEMA_MEMBERS = ("schema", "schema_definition", "schemas")

MEMBERS = {
    "$schema": "string",
    "name": "string",
    "version": "string",
    "description": "string",
    "capabilities": "array|object",
    "endpoints": "object of string|array|object",
    "integration": "object",
    "interoperability": "object",
    "metadata": "object",
    "discovery": "object",
    "protocol": "string",
}
MCP_SHAPES = (Shape("", "The MCP manifest", SOURCE, MEMBERS, ("capabilities", "endpoints")),)
A2A_SHAPES = (Shape("", "The A2A manifest", SOURCE, MEMBERS, ("capabilities", "endpoints", "interoperability")),)
IDENTITY = (Shape("", "The manifest", SAMPLE, {}, ("name", "version")),)

FOREIGN_MEMBERS = {
    "an MCP server card": ("serverInfo", "remotes", "packages", "transport"),
    "an A2A agent card": ("skills", "protocolVersion", "defaultInputModes", "supportedInterfaces"),
}


def catalogue(document: Mapping[str, object]) -> tuple[str, str] | None:
    """Give pointer and value of the endpoint that refers to the catalogue of actions, if there is one."""
    endpoints = list(strings(document, "/endpoints/{}"))
    named = {pointer: text for pointer, text in endpoints if text.strip()}
    for member in CATALOGUE_MEMBERS:
        pointer = child("/endpoints", member)
        if pointer in named:
            return pointer, named[pointer]
    return next(((place, text) for place, text in endpoints if text.rstrip("/").endswith(CATALOGUE_NAMES)), None)


def without_catalogue(document: Mapping[str, object]) -> Iterator[Flaw]:
    """Find endpoints none of which refers to the catalogue of actions."""
    if isinstance(document.get("endpoints"), Mapping) and catalogue(document) is None:
        yield Flaw("/endpoints/actions", "No endpoint refers to the catalogue of actions.")


def without_schema(document: Mapping[str, object]) -> Iterator[Flaw]:
    """Find endpoints none of which refers to a schema."""
    endpoints = document.get("endpoints")
    if not isinstance(endpoints, Mapping) or any(name in endpoints for name in SCHEMA_MEMBERS):
        return
    if not any("schema" in text for _, text in strings(document, "/endpoints/{}")):
        yield Flaw("/endpoints/schema", "No endpoint refers to a schema.")


def bad_endpoints(document: Mapping[str, object]) -> Iterator[Flaw]:
    """Find endpoints that are neither a path nor a well-formed URL."""
    for pointer, text in strings(document, "/endpoints/{}"):
        fault = url_fault(text) or ("is empty" if not text.strip() else None)
        if not fault and not text.startswith("/") and not is_absolute(text):
            fault = 'does not begin with "/" and is no absolute URL'
        if fault:
            yield Flaw(pointer, f"{shown(text)} {fault}.")


def foreign(document: Mapping[str, object]) -> Iterator[Flaw]:
    """Find documents that are the card of the protocol itself and not AWAS's manifest about it."""
    for what, members in FOREIGN_MEMBERS.items():
        found = next((name for name in members if name in document), None)
        if found and "endpoints" not in document:
            yield Flaw(child("", found), f'The member "{found}" makes this look like {what}.')


def _sections(name: str, prefix: str, shapes: tuple[Shape, ...]) -> tuple[Check, ...]:
    """State the rows about what stands in a manifest; both have them, and differ in prefix and shape."""
    return (
        Check(
            f"{prefix}-foreign",
            "warning",
            SOURCE,
            f"The {name} manifest is AWAS's own and not a card of another standard.",
            "Serve the card where its own standard wants it, and AWAS's manifest here.",
            foreign,
        ),
        Check(
            f"{prefix}-required",
            "error",
            SOURCE,
            f"The {name} manifest has the sections it must have.",
            "Add the section.",
            partial(engine.missing, shapes),
        ),
        Check(
            f"{prefix}-type",
            "error",
            SAMPLE,
            f"The sections of the {name} manifest have the types of the samples.",
            "Write a value of that type.",
            partial(engine.mistyped, shapes),
        ),
        Check(
            f"{prefix}-identity",
            "info",
            SAMPLE,
            f"The {name} manifest says its name and version.",
            "Add the member.",
            partial(engine.missing, IDENTITY),
        ),
    )


def _references(name: str, prefix: str) -> tuple[Check, ...]:
    """State the rows about where a manifest leads."""
    return (
        Check(
            f"{prefix}-catalogue",
            "error",
            SOURCE,
            f"The {name} manifest refers to the catalogue of actions.",
            'Add an endpoint such as "actions": "/.well-known/awas.json".',
            without_catalogue,
        ),
        Check(
            f"{prefix}-endpoint",
            "error",
            SOURCE,
            f"The endpoints of the {name} manifest are paths or well-formed URLs.",
            'Write a path that begins with "/", or a whole URL.',
            bad_endpoints,
        ),
        Check(
            f"{prefix}-schema",
            "warning",
            SOURCE,
            f"The {name} manifest refers to a schema.",
            'Add an endpoint such as "schema": "/schema/awas-schema.json".',
            without_schema,
        ),
    )


MCP = (*_sections("MCP", "awas-mcp", MCP_SHAPES), *_references("MCP", "awas-mcp"))
A2A = (*_sections("A2A", "awas-a2a", A2A_SHAPES), *_references("A2A", "awas-a2a"))
CHECKS = (*MCP, *A2A)
