"""WoA (draft-gaikwad-woa-00): the checks of a `woa.json`."""

import re
from collections.abc import Iterator
from typing import Final

from awp_publish.checks.engine import (
    ERROR,
    WARNING,
    Finding,
    JsonObject,
    SchemaViolation,
    Specification,
    blank,
    finding,
    has,
    repeated,
    shown,
)
from awp_publish.checks.inner_schemas import InnerSchemas
from awp_publish.checks.places import arrays, members, objects, strings
from awp_publish.checks.recognition import of_kind
from awp_publish.checks.schemas import DocumentSchema, Schema, read_schema
from awp_publish.checks.text import everything
from awp_publish.checks.urls import PLACEHOLDER, is_loopback, is_private, path_of, split, url_fault
from awp_publish.schema.pointers import child

PLACEHOLDER_TEXT: Final = "{agent_id}"
_INPUTS: Final = ("/agents/[]/inputs", "/agents/[]/operations/[]/inputs")
_REGISTERED: Final = ("rest", "mcp")
_REVERSE_DNS: Final = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?)+"
)
_TOKEN: Final = re.compile(r"[!#$%&'*+.^`|~0-9A-Za-z_-]+")
_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


@DocumentSchema
def _document_schema() -> Schema:
    schema = read_schema("awp_publish.plugins.woa", "woa.schema.json")
    # Schemas inside the document are checked one by one, which is faster and more informative.
    schema["$defs"]["schema"] = {"type": "object"}
    # `bad_base` says what is wrong with an address; http is right for a site in development.
    del schema["$defs"]["rest"]["properties"]["base"]["pattern"]
    return schema


_schemas: Final = InnerSchemas(*_INPUTS, "/agents/[]/outputs", "/agents/[]/operations/[]/outputs")


def violations(document: JsonObject) -> Iterator[SchemaViolation]:
    """Find violations of the document's schema, and mistakes in the schemas inside it."""
    yield from _document_schema.violations(document)
    base = next((rest.get("base") for _, rest in objects(document, "/transports/rest")), None)
    for violation in _schemas.violations(document):
        # Section 4.2: clients may validate answers, so another document of the same site may describe these.
        is_own = isinstance(base, str) and str(violation.value).startswith(f"{base}/")
        if violation.keyword != "external" or "/outputs" not in violation.pointer or not is_own:
            yield violation


WOA: Final = Specification(
    "woa",
    "WoA draft-00",
    paths=("/.well-known/woa.json",),
    marks=has("woa_version"),
    resembles=has("agents", "transports"),
    violations=violations,
)
check, row = WOA.check, WOA.row

row(
    "woa-required",
    ERROR,
    "4 to 4.3.2",
    'The document, its agents, their operations and the transports "rest" and "mcp" have their required members.',
    hint="Add the member.",
    violation=r"required .*",
)
row(
    "woa-type",
    ERROR,
    "4 to 4.3.2",
    "Members have the type that the specification gives them.",
    hint="Write a value of that type.",
    violation=r"type .*",
)


@check("woa-empty", WARNING, "4.1", hint="Write a text that tells an agent what it needs to know.")
def empty_texts(document: JsonObject) -> Iterator[Finding]:
    """Required texts say something."""
    transports = ("/transports/rest/base|invoke_path", "/transports/mcp/server|tool_namespace|tool_field")
    return blank(document, "/agents/[]/id|name|description", "/agents/[]/operations/[]/name|description", *transports)


row(
    "woa-version",
    ERROR,
    "4",
    'woa_version is the string "1".',
    hint='Write "1", with quotation marks.',
    violation=r"\w+ /woa_version",
)


@check("woa-no-agents", WARNING, "4", hint="List an agent, or do not serve the document.")
def no_agents(document: JsonObject) -> Iterator[Finding]:
    """There is at least one agent."""
    if document.get("agents") == []:
        yield finding("/agents", "There are no agents.")


row(
    "woa-agent-id",
    ERROR,
    "4.1",
    'Ids of agents consist of letters, digits, "-" and "_".',
    hint="Rename the agent; dots, slashes and spaces are not allowed.",
    violation=r"pattern /agents/\d+/id",
)


@check("woa-unique-id", ERROR, "4.1", hint="Rename one of the agents.")
def repeated_agents(document: JsonObject) -> Iterator[Finding]:
    """Ids of agents are unique."""
    return repeated(document, "/agents")


@check("woa-unique-operation", ERROR, "4.1", hint="Rename one of the operations.")
def repeated_operations(document: JsonObject) -> Iterator[Finding]:
    """The operations of one agent have different names."""
    return repeated(document, "/agents/[]/operations", "name")


@check("woa-operation-name", WARNING, "4.1", hint='Use letters, digits, "-" and "_".')
def bad_operation_names(document: JsonObject) -> Iterator[Finding]:
    """The name of an operation is a token: no spaces, no slashes."""
    for pointer, name in strings(document, "/agents/[]/operations/[]/name"):
        if name.strip() and not _TOKEN.fullmatch(name):  # Empty ones are reported as empty texts.
            yield finding(pointer, f"The name {shown(name)} is not a token.")


row(
    "woa-schema",
    ERROR,
    "4.2",
    "Inputs and outputs of agents and operations are valid JSON Schemas (2020-12).",
    hint="Correct the schema.",
    violation=r"schema .*",
)
row(
    "woa-schema-dialect",
    ERROR,
    "4.2",
    "Schemas declare no other dialect than 2020-12.",
    hint="Convert the schema, and declare https://json-schema.org/draft/2020-12/schema or nothing.",
    violation=r"dialect .*",
)
row(
    "woa-schema-reference",
    ERROR,
    "4.2",
    "References inside a schema lead somewhere; they start from the schema and not from the document.",
    hint="Put the definition into $defs of this schema.",
    violation=r"reference .*",
)
row(
    "woa-schema-external",
    WARNING,
    "4.2",
    "Inputs need no other documents, and outputs none of another site, which clients may refuse to fetch.",
    hint="Copy the definition into $defs of this schema.",
    violation=r"external .*",
)
row(
    "woa-schema-required",
    WARNING,
    "4.2",
    "Required properties are described in properties.",
    hint="Describe the property, or correct the name.",
    violation=r"undescribed .*",
)


@check("woa-schema-root", WARNING, "4.2", hint='Add "type": "object".')
def inputs_without_object_root(document: JsonObject) -> Iterator[Finding]:
    """Schemas of inputs have a root of type object, which is all that clients must support."""
    for pointer, schema in objects(document, *_INPUTS):
        if schema.get("type") != "object":
            kind = f"the type {shown(schema['type'])}" if "type" in schema else "no type"
            yield finding(child(pointer, "type"), f"The root of the input schema has {kind}.")


@check("woa-agent-transport", ERROR, "4.1", hint="Configure the transport, or remove its name.")
def unknown_transports(document: JsonObject) -> Iterator[Finding]:
    """The transports of an agent are configured in the document."""
    transports = document.get("transports")
    for pointer, name in strings(document, "/agents/[]/transports/[]") if isinstance(transports, dict) else ():
        if name not in members(transports):
            yield finding(pointer, f"The transport {shown(name)} is not in the transports of the document.")


@check("woa-unreachable", WARNING, "4.1", hint="Name a transport.")
def unreachable_agents(document: JsonObject) -> Iterator[Finding]:
    """Every agent has a transport."""
    for pointer, names in arrays(document, "/agents/[]/transports"):
        if not names:
            yield finding(pointer, "The agent has no transport.")


@check("woa-transport-name", ERROR, "4.3.3 and 9.3", hint='Name a transport of your own "com.example.mytransport".')
def bad_transport_names(document: JsonObject) -> Iterator[Finding]:
    """Transports are registered (rest, mcp), or have a private name in reverse DNS form."""
    for name in members(document.get("transports")):
        if name not in _REGISTERED and not _REVERSE_DNS.fullmatch(name):
            normalized = name.strip().lower()
            hint = f'Write "{normalized}"; names are compared exactly.' if normalized in _REGISTERED else ""
            yield finding(child("/transports", name), f"The transport name {shown(name)} is not registered.", hint)


def _is_local_http(base: str) -> bool:
    parts = split(base)
    return parts is not None and parts.scheme == "http" and bool(parts.hostname) and is_loopback(parts.hostname or "")


@check("woa-base", ERROR, "4.3.1 and 8.1", hint='Write for instance "https://api.example.com".')
def bad_base(document: JsonObject) -> Iterator[Finding]:
    """The base of the rest transport is an absolute https URL without query and fragment."""
    for pointer, base in strings(document, "/transports/rest/base"):
        fault, parts = url_fault(base), split(base)
        if parts is not None and not fault:
            if not parts.scheme or not parts.hostname:
                fault = "is not an absolute URL"
            elif parts.scheme != "https" and not _is_local_http(base):
                fault = f"has the scheme {parts.scheme} and not https"
            elif "?" in base or "#" in base:
                fault = "has a query or fragment, after which no path can follow"
            elif "@" in parts.netloc:
                fault = "contains a user name"
        if fault:
            yield finding(pointer, f"The base {shown(base)} {fault}.")


@check(
    "woa-loopback",
    WARNING,
    "8.1",
    hint="This is fine for a local trial; use https before anybody else reads the document.",
)
def loopback_base(document: JsonObject) -> Iterator[Finding]:
    """The base of the rest transport is not plain http, not even on a loopback host."""
    for pointer, base in strings(document, "/transports/rest/base"):
        if _is_local_http(base):
            yield finding(pointer, f"The base {shown(base)} is plain http on a loopback address.")


@check("woa-invoke-path", ERROR, "4.3.1", hint='Write for instance "/agents/{agent_id}/invoke".')
def bad_invoke_path(document: JsonObject) -> Iterator[Finding]:
    """invoke_path begins with "/" and can stand in a URL."""
    for pointer, path in strings(document, "/transports/rest/invoke_path"):
        fault = url_fault(PLACEHOLDER.sub("x", path))
        if not path.startswith("/"):
            fault = 'does not begin with "/"'
        elif "#" in path:
            fault = "has a fragment, which is never sent"
        if fault:
            yield finding(pointer, f"The invoke_path {shown(path)} {fault}.")


@check("woa-placeholder", ERROR, "4.3.1", hint="Write {agent_id}, in small letters.")
def bad_placeholder(document: JsonObject) -> Iterator[Finding]:
    """The placeholder is spelt {agent_id}; any other stays in the URL."""
    for pointer, path in strings(document, "/transports/rest/invoke_path"):
        rest = path.replace(PLACEHOLDER_TEXT, "")
        if "{" in rest or "}" in rest:
            placeholder = PLACEHOLDER.search(rest)
            yield finding(pointer, f"{shown(placeholder[0] if placeholder else path)} is not {PLACEHOLDER_TEXT}.")


@check("woa-double-slash", WARNING, "4.3.1", hint='Remove the "/" at the end of base.')
def double_slash(document: JsonObject) -> Iterator[Finding]:
    """The plain concatenation of base and invoke_path contains no double slash."""
    for _, base in strings(document, "/transports/rest/base"):
        for pointer, path in strings(document, "/transports/rest/invoke_path"):
            joined = (base + path).partition("?")[0]
            if "//" in joined.partition("://")[2]:
                place = "/transports/rest/base" if base.endswith("/") else pointer
                yield finding(place, f"base and invoke_path together give {shown(joined)}.")


@check("woa-private-address", WARNING, "8.2", hint="Use an address that is reachable from outside.")
def private_addresses(document: JsonObject) -> Iterator[Finding]:
    """URLs of transports do not lead to private or link-local addresses, which clients should not call."""
    for pointer, text in everything(document.get("transports")):
        if not isinstance(text, str) or not _URL.match(text):
            continue
        host = parts.hostname if (parts := split(text)) else None
        local_base = pointer == "/rest/base" and _is_local_http(text)
        if host and is_private(host) and not local_base:
            yield finding(f"/transports{pointer}", f"{shown(text)} leads to a private address.")


@check("site-invoke-path", ERROR, "WoA draft-00 section 4.3.1", hint="Move the invoke_path.", of_site=True)
def shadowed_invoke_path(site: JsonObject) -> Iterator[Finding]:
    """No agent is invoked at the path of a document."""
    for path, document in of_kind(site, WOA.name):
        for pointer, template in strings(document, "/transports/rest/invoke_path"):
            names = [name for _, name in strings(document, "/agents/[]/id")] or [""]
            urls = (path_of(template.replace(PLACEHOLDER_TEXT, name)) for name in names)
            occupied = next((url for url in urls if url in site), None)
            if occupied:
                yield finding(pointer, f"{shown(occupied)} is the path of a document of the site.", document=path)
