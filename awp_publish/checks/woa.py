"""WoA (draft-gaikwad-woa-00): the checks of a `woa.json`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from awp_publish.checks import engine, schemas
from awp_publish.checks.engine import Check, Flaw, Shape, arrays, child, objects, shown, strings
from awp_publish.checks.text import everything
from awp_publish.checks.urls import PLACEHOLDER, is_loopback, is_private, split, url_fault

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


REGISTERED = ("rest", "mcp")
PLACEHOLDER_TEXT = "{agent_id}"
_REVERSE_DNS = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?)+")
_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def bad_transport_names(document: Document) -> Iterator[Flaw]:
    """Find names that are neither registered nor in reverse DNS form."""
    transports = document.get("transports")
    for name in transports if isinstance(transports, Mapping) else ():
        if name in REGISTERED or _REVERSE_DNS.fullmatch(name):
            continue
        place, message = child("/transports", name), f"The transport name {shown(name)} is not registered."
        if name.strip().lower() in REGISTERED:
            yield Flaw(place, message, f'Write "{name.strip().lower()}"; names are compared exactly.')
        else:
            yield Flaw(place, message)


def bad_base(document: Document) -> Iterator[Flaw]:
    """Find a rest base that is not an absolute https URL without query and fragment."""
    for pointer, base in strings(document, "/transports/rest/base"):
        fault = _base_fault(base)
        if fault:
            yield Flaw(pointer, f"The base {shown(base)} {fault}.")


def _base_fault(base: str) -> str | None:
    fault, parts = url_fault(base), split(base)
    if fault or parts is None:
        return fault
    if not parts.scheme or not parts.hostname:
        return "is not an absolute URL"
    if parts.scheme != "https" and not _is_local_http(base):
        return f"has the scheme {parts.scheme} and not https"
    if "?" in base or "#" in base:
        return "has a query or fragment, after which no path can follow"
    return "contains a user name" if "@" in parts.netloc else None


def _is_local_http(base: str) -> bool:
    parts = split(base)
    return parts is not None and parts.scheme == "http" and bool(parts.hostname) and is_loopback(parts.hostname or "")


def loopback_base(document: Document) -> Iterator[Flaw]:
    """Find a rest base that is plain http on this machine: good for trying out only."""
    for pointer, base in strings(document, "/transports/rest/base"):
        if _is_local_http(base):
            yield Flaw(pointer, f"The base {shown(base)} is plain http on the machine itself.")


def bad_invoke_path(document: Document) -> Iterator[Flaw]:
    """Find an invoke_path that does not begin with "/" or cannot stand in a URL."""
    for pointer, path in strings(document, "/transports/rest/invoke_path"):
        fault = url_fault(PLACEHOLDER.sub("x", path))
        if not path.startswith("/"):
            fault = 'does not begin with "/"'
        elif "#" in path:
            fault = "has a fragment, which is never sent"
        if fault:
            yield Flaw(pointer, f"The invoke_path {shown(path)} {fault}.")


def bad_placeholder(document: Document) -> Iterator[Flaw]:
    """Find braces in the invoke_path that are not `{agent_id}` and so stay where they are."""
    for pointer, path in strings(document, "/transports/rest/invoke_path"):
        rest = path.replace(PLACEHOLDER_TEXT, "")
        if "{" in rest or "}" in rest:
            found = PLACEHOLDER.search(rest)
            yield Flaw(pointer, f"{shown(found[0] if found else path)} is not {PLACEHOLDER_TEXT}.")


def double_slash(document: Document) -> Iterator[Flaw]:
    """Find a base and a path whose concatenation contains "//"."""
    for _, base in strings(document, "/transports/rest/base"):
        for pointer, path in strings(document, "/transports/rest/invoke_path"):
            joined = (base + path).partition("?")[0]
            if "//" in joined.partition("://")[2]:
                place = "/transports/rest/base" if base.endswith("/") else pointer
                yield Flaw(place, f"base and invoke_path together give {shown(joined)}.")


def private_addresses(document: Document) -> Iterator[Flaw]:
    """Find URLs of transports that lead to private or link-local addresses."""
    for pointer, text in everything(document.get("transports")):
        if not isinstance(text, str) or not _URL.match(text):
            continue
        host = parts.hostname if (parts := split(text)) else None
        local_base = pointer == "/rest/base" and _is_local_http(text)
        if host and is_private(host) and not local_base:
            yield Flaw(f"/transports{pointer}", f"{shown(text)} leads to a private address.")


CHECKS = (
    # What must be there, and of which type.
    Check(
        "woa-required",
        "error",
        f"{SPEC} sections 4 to 4.3.2",
        "Required members are there: of the document, agents, operations and the rest and mcp transports.",
        "Add the member.",
        partial(engine.missing, SHAPES),
    ),
    Check(
        "woa-type",
        "error",
        f"{SPEC} sections 4 to 4.3.2",
        "Members have the type that the specification gives them.",
        "Write a value of that type.",
        partial(engine.mistyped, SHAPES),
    ),
    Check(
        "woa-empty",
        "warning",
        f"{SPEC} section 4.1",
        "Required texts say something.",
        "Write a text that tells an agent what it needs to know.",
        partial(engine.empty, SHAPES),
    ),
    Check(
        "woa-misspelt",
        "info",
        f"{SPEC} section 4",
        "No unknown member has nearly the name of a known one.",
        "Correct the name.",
        partial(engine.misspelt, SHAPES),
    ),
    Check(
        "woa-version",
        "error",
        f"{SPEC} section 4",
        'woa_version is the string "1".',
        'Write "1", with quotation marks.',
        wrong_version,
    ),
    # Agents and operations.
    Check(
        "woa-no-agents",
        "warning",
        f"{SPEC} section 4",
        "There is at least one agent.",
        "List an agent, or do not serve the document.",
        no_agents,
    ),
    Check(
        "woa-agent-id",
        "error",
        f"{SPEC} section 4.1",
        'Ids of agents consist of letters, digits, "-" and "_".',
        "Rename the agent; dots, slashes and spaces are not allowed.",
        bad_agent_ids,
    ),
    Check(
        "woa-unique-id",
        "error",
        f"{SPEC} section 4.1",
        "Ids of agents are unique.",
        "Rename one of the agents.",
        repeated_agent_ids,
    ),
    Check(
        "woa-unique-operation",
        "error",
        f"{SPEC} section 4.1",
        "The operations of one agent have different names.",
        "Rename one of the operations.",
        repeated_operations,
    ),
    Check(
        "woa-operation-name",
        "warning",
        f"{SPEC} section 4.1",
        "The name of an operation is a token: no spaces, no slashes.",
        'Use letters, digits, "-" and "_".',
        bad_operation_names,
    ),
    Check(
        "woa-default-operation",
        "info",
        f"{SPEC} section 5.1",
        'One of the operations is "default", which is implied where a call names none.',
        'Name the usual operation "default".',
        no_implied_operation,
    ),
    # Schemas.
    Check(
        "woa-schema",
        "error",
        f"{SPEC} section 4.2",
        "Inputs and outputs of agents and operations are valid JSON Schemas (2020-12).",
        "Repair the schema.",
        bad_schemas,
    ),
    Check(
        "woa-schema-dialect",
        "error",
        f"{SPEC} section 4.2",
        "Schemas declare no other dialect than 2020-12.",
        "Convert the schema, and declare https://json-schema.org/draft/2020-12/schema or nothing.",
        other_dialects,
    ),
    Check(
        "woa-schema-reference",
        "error",
        f"{SPEC} section 4.2",
        "References inside a schema lead somewhere; they start from the schema and not from the document.",
        "Put the definition into $defs of this schema.",
        unresolved_references,
    ),
    Check(
        "woa-schema-external",
        "warning",
        f"{SPEC} section 4.2",
        "Schemas do not need other documents, which clients may refuse to fetch.",
        "Copy the definition into $defs of this schema.",
        external_references,
    ),
    Check(
        "woa-schema-required",
        "warning",
        f"{SPEC} section 4.2",
        "Required properties are described in properties.",
        "Describe the property, or correct the name.",
        unknown_required,
    ),
    Check(
        "woa-schema-root",
        "warning",
        f"{SPEC} section 4.2",
        "Schemas of inputs have a root of type object, which is all that clients must support.",
        'Add "type": "object".',
        inputs_without_object_root,
    ),
    # Transports.
    Check(
        "woa-agent-transport",
        "error",
        f"{SPEC} section 4.1",
        "The transports of an agent are configured in the document.",
        "Configure the transport, or remove its name.",
        unknown_transports,
    ),
    Check(
        "woa-unreachable",
        "warning",
        f"{SPEC} section 4.1",
        "Every agent has a transport.",
        "Name a transport.",
        unreachable_agents,
    ),
    Check(
        "woa-unused-transport",
        "info",
        f"{SPEC} section 4.3",
        "Every transport is used by an agent.",
        "Remove the transport, or name it in an agent.",
        unused_transports,
    ),
    Check(
        "woa-transport-name",
        "error",
        f"{SPEC} sections 4.3.3 and 9.3",
        "Transports are registered (rest, mcp), or have a private name in reverse DNS form.",
        'Name a transport of your own "com.example.mytransport".',
        bad_transport_names,
    ),
    Check(
        "woa-base",
        "error",
        f"{SPEC} sections 4.3.1 and 8.1",
        "The base of the rest transport is an absolute https URL without query and fragment.",
        'Write for instance "https://api.example.com".',
        bad_base,
    ),
    Check(
        "woa-loopback",
        "warning",
        f"{SPEC} section 8.1",
        "The base of the rest transport is not plain http, not even on a loopback host.",
        "Good for trying out; use https before anybody else reads the document.",
        loopback_base,
    ),
    Check(
        "woa-invoke-path",
        "error",
        f"{SPEC} section 4.3.1",
        'invoke_path begins with "/" and can stand in a URL.',
        'Write for instance "/agents/{agent_id}/invoke".',
        bad_invoke_path,
    ),
    Check(
        "woa-placeholder",
        "error",
        f"{SPEC} section 4.3.1",
        "The placeholder is spelt {agent_id}; any other stays in the URL.",
        "Write {agent_id}, in small letters.",
        bad_placeholder,
    ),
    Check(
        "woa-double-slash",
        "warning",
        f"{SPEC} section 4.3.1",
        "The plain concatenation of base and invoke_path contains no double slash.",
        'Remove the "/" at the end of base.',
        double_slash,
    ),
    Check(
        "woa-private-address",
        "warning",
        f"{SPEC} section 8.2",
        "URLs of transports do not lead to private or link-local addresses, which clients should not call.",
        "Use an address that is reachable from outside.",
        private_addresses,
    ),
)
