"""WoA rules about agents and their schemas. `woa.py` holds the table that names them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from awp_publish.checks import schemas
from awp_publish.checks.finding import Flaw, shown
from awp_publish.checks.pointer import arrays, child, objects, strings
from awp_publish.checks.shape import Shape

Document = Mapping[str, object]

SPEC = "WoA draft-00"
VERSION = "1"

SHAPES = (
    Shape(
        "",
        "The document",
        f"{SPEC} section 4",
        {"woa_version": "any", "agents": "array of object", "transports": "object of object"},
        ("woa_version", "agents", "transports"),
    ),
    Shape(
        "/agents/[]",
        "An agent",
        f"{SPEC} section 4.1",
        {
            "id": "string",
            "name": "string",
            "description": "string",
            "version": "string",
            "capabilities": "array of string",
            "inputs": "object",
            "outputs": "object",
            "transports": "array of string",
            "operations": "array of object",
        },
        ("id", "name", "description", "inputs", "outputs", "transports"),
    ),
    Shape(
        "/agents/[]/operations/[]",
        "An operation",
        f"{SPEC} section 4.1",
        {"name": "string", "description": "string", "inputs": "object", "outputs": "object"},
        ("name", "description"),
    ),
    Shape(
        "/transports/rest",
        "The rest transport",
        f"{SPEC} section 4.3.1",
        {"base": "string", "invoke_path": "string"},
        ("base", "invoke_path"),
    ),
    Shape(
        "/transports/mcp",
        "The mcp transport",
        f"{SPEC} section 4.3.2",
        {"server": "string", "tool_namespace": "string", "tool_field": "string"},
        ("server", "tool_namespace", "tool_field"),
    ),
)

AGENT_ID = re.compile(r"[A-Za-z0-9_-]+")
TOKEN = re.compile(r"[!#$%&'*+.^`|~0-9A-Za-z_-]+")
INPUTS = ("/agents/[]/inputs", "/agents/[]/operations/[]/inputs")
SCHEMAS = (*INPUTS, "/agents/[]/outputs", "/agents/[]/operations/[]/outputs")
IMPLIED_OPERATION = "default"


def wrong_version(document: Document) -> Iterator[Flaw]:
    """Find a woa_version that is not the string "1"."""
    if "woa_version" in document and document["woa_version"] != VERSION:
        yield Flaw("/woa_version", f"woa_version is {shown(document['woa_version'])}.")


def no_agents(document: Document) -> Iterator[Flaw]:
    """Find a document that advertises nothing."""
    if document.get("agents") == []:
        yield Flaw("/agents", "There are no agents.")


def bad_agent_ids(document: Document) -> Iterator[Flaw]:
    """Find agent ids that do not match the ABNF."""
    for pointer, identifier in strings(document, "/agents/[]/id"):
        if not AGENT_ID.fullmatch(identifier):
            yield Flaw(pointer, f'The id {shown(identifier)} is not made of letters A-Z, digits, "-" and "_".')


def repeated_agent_ids(document: Document) -> Iterator[Flaw]:
    """Find agent ids that are given more than once."""
    known: dict[str, str] = {}
    for pointer, identifier in strings(document, "/agents/[]/id"):
        if identifier in known:
            yield Flaw(pointer, f"The id {shown(identifier)} is also that of {known[identifier]}.")
        known.setdefault(identifier, pointer.rpartition("/")[0])


def repeated_operations(document: Document) -> Iterator[Flaw]:
    """Find operations of one agent that share a name."""
    for place, operations in arrays(document, "/agents/[]/operations"):
        known: set[str] = set()
        for pointer, name in strings(operations, "/[]/name"):
            if name in known:
                yield Flaw(place + pointer, f"The agent has two operations named {shown(name)}.")
            known.add(name)


def bad_operation_names(document: Document) -> Iterator[Flaw]:
    """Find operation names that are no tokens; empty ones are reported as empty texts."""
    for pointer, name in strings(document, "/agents/[]/operations/[]/name"):
        if name.strip() and not TOKEN.fullmatch(name):
            yield Flaw(pointer, f"The name {shown(name)} is not a token.")


def no_implied_operation(document: Document) -> Iterator[Flaw]:
    """Find agents with operations of which none is the one implied when a call names none."""
    for pointer, operations in arrays(document, "/agents/[]/operations"):
        names = {name for _, name in strings(operations, "/[]/name")}
        if names and IMPLIED_OPERATION not in names:
            yield Flaw(pointer, f'None of the operations is named "{IMPLIED_OPERATION}".')


def _each_schema(find: Callable[[Mapping[str, object], str], Iterator[Flaw]], document: Document) -> Iterator[Flaw]:
    for place in SCHEMAS:
        for pointer, schema in objects(document, place):
            yield from find(schema, pointer)


bad_schemas = partial(_each_schema, schemas.invalid)
other_dialects = partial(_each_schema, schemas.other_dialect)
unresolved_references = partial(_each_schema, schemas.unresolved)
external_references = partial(_each_schema, schemas.external)
unknown_required = partial(_each_schema, schemas.unknown_required)


def inputs_without_object_root(document: Document) -> Iterator[Flaw]:
    """Find input schemas whose root is not of type object, which is all that clients must support."""
    for pointer, schema in (found for place in INPUTS for found in objects(document, place)):
        if "type" not in schema:
            yield Flaw(child(pointer, "type"), "The root of the input schema has no type.")
        elif schema["type"] != "object":
            yield Flaw(child(pointer, "type"), f"The root of the input schema has the type {shown(schema['type'])}.")


def unknown_transports(document: Document) -> Iterator[Flaw]:
    """Find transports of agents that are not configured."""
    transports = document.get("transports")
    if not isinstance(transports, Mapping):
        return
    for pointer, name in strings(document, "/agents/[]/transports/[]"):
        if name not in transports:
            yield Flaw(pointer, f"The transport {shown(name)} is not in the transports of the document.")


def unreachable_agents(document: Document) -> Iterator[Flaw]:
    """Find agents that no transport reaches."""
    for pointer, names in arrays(document, "/agents/[]/transports"):
        if not names:
            yield Flaw(pointer, "The agent has no transport.")


def unused_transports(document: Document) -> Iterator[Flaw]:
    """Find transports that no agent uses."""
    used = {name for _, name in strings(document, "/agents/[]/transports/[]")}
    transports = document.get("transports")
    for name in transports if isinstance(transports, Mapping) and document.get("agents") else ():
        if name not in used:
            yield Flaw(child("/transports", name), f"No agent uses the transport {shown(name)}.")
