"""AWP agent.json 0.1 and 0.2: the checks of an `agent.json`."""

import re
from collections.abc import Iterator
from typing import Final

from awp_publish.checks.engine import (
    ERROR,
    WARNING,
    Finding,
    JsonObject,
    Specification,
    blank,
    finding,
    has,
    repeated,
    shown,
    unknown_names,
)
from awp_publish.checks.places import members, objects, strings
from awp_publish.checks.recognition import of_kind
from awp_publish.checks.schemas import DocumentSchema, is_number, is_type, read_schema
from awp_publish.checks.text import is_timestamp
from awp_publish.checks.urls import (
    dependent_paths,
    is_host_name,
    malformed_urls,
    path_of,
    split,
    unexplained_placeholders,
    url_fault,
)
from awp_publish.plugins.agent_json.checks.type_notation import PRIMITIVES, FieldType, read_type
from awp_publish.schema.pointers import child

PROTOCOLS: Final = "AWP agent.json 0.2 section 5.5"

SENSITIVITY: Final = "9, Sensitivity levels"

_KNOWN_MAJORS: Final = (0,)

_VERSION: Final = re.compile(r"(\d{1,9})\.(\d{1,9})", re.ASCII)

_REACHED_PROTOCOLS: Final = ("a2a", "mcp", "acp")

_ENDPOINTS: Final = ("/actions/[]/endpoint|poll_endpoint", "/auth/refresh_endpoint", "/agent_status/status_endpoint")

_RATE_LIMIT: Final = re.compile(
    r"0*[1-9]\d*\s*(?:/|per)\s*(?:\d+\s*)?(?:s|sec|second|m|min|minute|h|hr|hour|d|day|week|month)s?", re.IGNORECASE
)

# Other standards use the same file name. Each is known by members that it requires and AWP does not have.
_OTHER_STANDARDS: Final = (
    ("agent.json by FransDevelopment (agent-json 1.x)", ("version", "origin", "payout_address")),
    ("the facts file of agent-json/spec 1.0", ("schema_version", "subject", "last_reviewed")),
    ("an A2A agent card", ("skills", "protocolVersion")),
    ("an A2A agent card", ("skills", "url", "capabilities")),
    ("an A2A agent card", ("skills", "supportedInterfaces")),
)

_LIKENESSES: Final = (("domain", "intent"), *(names for _, names in _OTHER_STANDARDS))

_document_schema: Final = DocumentSchema(
    lambda: read_schema("awp_publish.plugins.agent_json.checks", "agent-json.schema.json")
)

AGENT_JSON: Final = Specification(
    "agent-json",
    "AWP agent.json",
    paths=("/agent.json", "/.well-known/agent.json"),
    marks=lambda document: "awp_version" in document or has("version", "origin", "payout_address")(document),
    resembles=lambda document: any(has(*names)(document) for names in _LIKENESSES),
    violations=_document_schema.violations,
)

check, row = AGENT_JSON.check, AGENT_JSON.row


@check(
    "agent-json-other-standard",
    ERROR,
    "5",
    hint="Serve the other document at its own place, and AWP's at /agent.json.",
    decisive=True,
)
def other_standard(document: JsonObject) -> Iterator[Finding]:
    """The document is AWP's, and not another standard's file of the same name."""
    for name, names in _OTHER_STANDARDS if "awp_version" not in document else ():
        if has(*names)(document):
            message = f"This is not an AWP document: its members {', '.join(names)} are those of {name}."
            yield finding("/awp_version", message)
            return


def version(document: JsonObject) -> tuple[int, int] | None:
    """Read `awp_version`; None where it is missing or not MAJOR.MINOR."""
    text = document.get("awp_version")
    match = _VERSION.fullmatch(text) if isinstance(text, str) else None
    return (int(match[1]), int(match[2])) if match else None


@check("agent-json-required", ERROR, "5 to 10", hint="Add the member.", violation=r"required .*")
def missing_endpoints(document: JsonObject) -> Iterator[Finding]:
    """Required members are there, at every level; since 0.2 `via` replaces endpoint and method."""
    knows_via = (version(document) or (0, 2)) >= (0, 2)
    protocols = members(document.get("protocols"))
    for pointer, action in objects(document, "/actions/[]"):
        if "endpoint" in action and "method" in action:
            continue
        via = action.get("via") if knows_via else None
        supplied: set[str] = set()
        if isinstance(via, str):
            supplied.add("method")
            # A transport without endpoint and an undeclared protocol are reported at the place where they stand.
            protocol = protocols.get(via)
            if via in _REACHED_PROTOCOLS or not isinstance(protocol, dict) or "endpoint" in protocol:
                supplied.add("endpoint")
        for name in ("endpoint", "method"):
            if name not in action and name not in supplied:
                yield finding(f"{pointer}/{name}", f'"{name}" is missing.')


row(
    "agent-json-type",
    ERROR,
    "5 to 13",
    "Members have the type that the specification gives them.",
    hint="Write a value of that type.",
    violation=r"type (?!/agent_hints/).*",
)

row(
    "agent-json-value",
    ERROR,
    "6, 7 and 9",
    "Methods, kinds of authentication and pagination, sensitivity and the like are among the listed values.",
    hint="Choose one of the values listed.",
    violation=r"enum .*",
)


@check("agent-json-empty", WARNING, "15", hint="Write a text that tells an agent what it needs to know.")
def empty_texts(document: JsonObject) -> Iterator[Finding]:
    """Required texts say something."""
    places = ("/awp_version|domain|intent", "/protocols/{}/version", "/actions/[]/id|description")
    return blank(document, *places, "/actions/[]/inputs/{}/type")


row(
    "agent-json-version",
    ERROR,
    "4",
    "awp_version is MAJOR.MINOR.",
    hint='Write "0.1" or "0.2".',
    violation=r"pattern /awp_version",
)


@check("agent-json-version-unknown", WARNING, "4", hint="Findings may be wrong for another version.")
def unknown_version(document: JsonObject) -> Iterator[Finding]:
    """The major version is one that these checks know (0)."""
    claimed = version(document)
    if claimed and claimed[0] not in _KNOWN_MAJORS:
        yield finding("/awp_version", f"Major version {claimed[0]} is not known.")


@check("agent-json-domain", ERROR, "3 and 5", hint='Write the name alone, such as "books.example".')
def bad_domain(document: JsonObject) -> Iterator[Finding]:
    """domain is a host name and not a URL."""
    for pointer, domain in strings(document, "/domain"):
        host = re.sub(r":\d{1,5}\Z", "", domain)
        if not is_host_name(host):
            yield finding(pointer, f"{shown(domain)} is not a host name.")


@check("agent-json-url", ERROR, "5.5 and 8", hint="Correct the URL; write a space as %20.")
def bad_urls(document: JsonObject) -> Iterator[Finding]:
    """Endpoints are well-formed, and those of protocols are whole URLs."""
    yield from malformed_urls(document, *_ENDPOINTS)
    for pointer, text in strings(document, "/protocols/{}/endpoint"):
        parts = split(text)
        fault = url_fault(text) or (None if parts and parts.scheme and parts.netloc else "is not a whole URL")
        if fault:
            yield finding(pointer, f"{shown(text)} {fault}.")


@check(
    "agent-json-synthetic",
    ERROR,
    "14",
    hint="Add what is missing, or remove the members if the site publishes the file itself.",
)
def undeclared_origin(document: JsonObject) -> Iterator[Finding]:
    """A synthetic file carries source, generated_by, confidence (0 to 1) and last_verified (a time)."""
    if document.get("source") != "synthetic" and not {"generated_by", "confidence"} <= document.keys():
        return
    for name in ("source", "generated_by", "confidence", "last_verified"):
        if name not in document:
            yield finding(f"/{name}", f'A synthetic file has no "{name}".')
    confidence, verified = document.get("confidence"), document.get("last_verified")
    if is_number(confidence) and not 0 <= confidence <= 1:
        yield finding("/confidence", f"The confidence {shown(confidence)} is not between 0 and 1.")
    if isinstance(verified, str) and not is_timestamp(verified):
        yield finding("/last_verified", f"{shown(verified)} is not an ISO 8601 time.")


row(
    "agent-json-hint",
    WARNING,
    "12; its schema at agent-json.org",
    "Hints are texts.",
    hint="Write a sentence.",
    violation=r"type /agent_hints/[^/]*",
)


@check("agent-json-protocol-id", WARNING, PROTOCOLS, hint="Rename the entry, and `via` where it is used.")
def bad_protocol_ids(document: JsonObject) -> Iterator[Finding]:
    """Protocol identifiers are lower case with hyphens."""
    for name in members(document.get("protocols")):
        if not re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", name):
            yield finding(child("/protocols", name), f"{shown(name)} is not lower case with hyphens.")


@check("agent-json-protocol-endpoint", ERROR, PROTOCOLS, hint="Add the endpoint.")
def unreachable_protocols(document: JsonObject) -> Iterator[Finding]:
    """Transport and tool protocols say where to reach them."""
    for pointer, protocol in objects(document, "/protocols/a2a|mcp|acp"):
        if "endpoint" not in protocol:
            yield finding(f"{pointer}/endpoint", "The protocol has no endpoint.")


@check("agent-json-via", ERROR, PROTOCOLS, hint="Declare the protocol in protocols.")
def undeclared_via(document: JsonObject) -> Iterator[Finding]:
    """`via` names a declared protocol."""
    protocols = members(document.get("protocols"))
    for pointer, via in strings(document, "/actions/[]/via"):
        if via not in protocols:
            yield finding(pointer, f"The protocol {shown(via)} is not in protocols.")


@check("agent-json-no-actions", WARNING, "9", hint="Declare what an agent can do.")
def no_actions(document: JsonObject) -> Iterator[Finding]:
    """There is at least one action."""
    if document.get("actions") == []:
        yield finding("/actions", "There are no actions.")


@check("agent-json-unique-id", ERROR, "9", hint="Rename one of the actions.")
def repeated_actions(document: JsonObject) -> Iterator[Finding]:
    """The ids of actions are unique."""
    return repeated(document, "/actions")


@check("agent-json-endpoint", WARNING, "9", hint='Begin with "/".')
def bad_endpoints(document: JsonObject) -> Iterator[Finding]:
    """Endpoints begin with "/" or are whole URLs."""
    return dependent_paths(document, *_ENDPOINTS)


@check("agent-json-endpoint-input", WARNING, "9", hint="Declare the input, or write it the same way in both places.")
def undeclared_placeholders(document: JsonObject) -> Iterator[Finding]:
    """Every placeholder in an endpoint has an input of that name."""
    for pointer, action in objects(document, "/actions/[]"):
        inputs, endpoint = action.get("inputs"), action.get("endpoint")
        if isinstance(inputs, dict) and isinstance(endpoint, str):
            yield from unexplained_placeholders(f"{pointer}/endpoint", endpoint, inputs)


@check("agent-json-poll", WARNING, "9", hint="Add the endpoint at which the result can be asked for.")
def without_polling(document: JsonObject) -> Iterator[Finding]:
    """Asynchronous actions have a poll_endpoint."""
    for pointer, action in objects(document, "/actions/[]"):
        if action.get("execution_model") == "async" and "poll_endpoint" not in action:
            yield finding(child(pointer, "poll_endpoint"), "The action is asynchronous and has no poll_endpoint.")


@check("agent-json-rate-limit", WARNING, "9", hint='Write for instance "30/minute".')
def bad_rate_limits(document: JsonObject) -> Iterator[Finding]:
    """Rate limits are a positive number per unit of time."""
    for pointer, text in strings(document, "/actions/[]/rate_limit"):
        if not _RATE_LIMIT.fullmatch(text.strip()):
            yield finding(pointer, f"The rate limit {shown(text)} is not a positive number per unit of time.")


@check("agent-json-idempotency", WARNING, "9", hint="Add the member.")
def idempotency_without_key(document: JsonObject) -> Iterator[Finding]:
    """An idempotency contract says whether it holds, and in which field the key goes."""
    for pointer, contract in objects(document, "/actions/[]/idempotency"):
        if "supported" not in contract:
            yield finding(child(pointer, "supported"), "The contract does not say whether idempotency is supported.")
        elif contract["supported"] is True and "key_field" not in contract:
            yield finding(child(pointer, "key_field"), "Idempotency is supported and key_field does not say how.")


@check(
    "agent-json-reversible",
    ERROR,
    SENSITIVITY,
    hint='Correct one of the two; what can be undone is "destructive" at most.',
)
def reversible_irreversible(document: JsonObject) -> Iterator[Finding]:
    """An irreversible action is not called reversible."""
    for pointer, action in objects(document, "/actions/[]"):
        if action.get("sensitivity") == "irreversible" and action.get("reversible") is True:
            yield finding(f"{pointer}/reversible", "The action is irreversible, and reversible is true.")


@check("agent-json-confirmation", WARNING, SENSITIVITY, hint="Set requires_human_confirmation to true.")
def unconfirmed_irreversible(document: JsonObject) -> Iterator[Finding]:
    """An irreversible action requires confirmation by a person."""
    for pointer, action in objects(document, "/actions/[]"):
        unasked = action.get("requires_human_confirmation") in (None, False)
        if action.get("sensitivity") == "irreversible" and unasked:
            message = "The action is irreversible and does not require confirmation by a person."
            yield finding(f"{pointer}/requires_human_confirmation", message)


_JSON_TYPES: Final = {"float": "number", "url": "string", "ISO8601": "string"}


def each_type(document: JsonObject) -> Iterator[tuple[str, str, FieldType]]:
    """Yield pointer and text of every type, and the parsed type."""
    outputs = ("/actions/[]/outputs/{}", "/actions/[]/outputs/{}/type")
    for pointer, text in strings(document, "/actions/[]/inputs/{}/type", *outputs, "/entities/{}/fields/{}"):
        yield pointer, text, read_type(text)


@check(
    "agent-json-type-grammar",
    ERROR,
    "8, Supported primitive types",
    hint='Write for instance "string", "enum[a, b]" or "array[flight]".',
)
def bad_types(document: JsonObject) -> Iterator[Finding]:
    """Types are names, enum[...], array[...] or object[...]."""
    for pointer, text, reading in each_type(document):
        if reading.fault:
            yield finding(pointer, f"The type {shown(text)} {reading.fault}.")


@check("agent-json-entity", ERROR, "8", hint="Declare the entity in entities.")
def unknown_entities(document: JsonObject) -> Iterator[Finding]:
    """`object[x]` refers to a declared entity."""
    entities = members(document.get("entities"))
    for pointer, text, reading in each_type(document):
        if reading.entity and reading.entity not in entities:
            message = f"{shown(text)} refers to an entity {shown(reading.entity)}, which is not declared."
            yield finding(pointer, message)


@check("agent-json-array-item", WARNING, "8", hint="Declare the entity in entities, or write a defined type.")
def unknown_items(document: JsonObject) -> Iterator[Finding]:
    """`array[x]` contains a defined type or a declared entity."""
    types = {*members(document.get("entities")), "object", "array", "enum", "any"}
    for pointer, text, reading in each_type(document):
        if reading.item and reading.item not in types:
            message = f"{shown(text)} contains {shown(reading.item)}, which is neither a type nor a declared entity."
            yield finding(pointer, message)


@check("agent-json-enum", ERROR, "8 and 9", hint="List the values in options.")
def enumerations_without_options(document: JsonObject) -> Iterator[Finding]:
    """A type of enum says which values it has."""
    for pointer, parameter in objects(document, "/actions/[]/inputs/{}"):
        if parameter.get("type") == "enum" and parameter.get("options", []) == []:
            yield finding(f"{pointer}/options", "The type is enum, but there are no options.")
    for pointer, text, _ in each_type(document):
        if text.strip() == "enum" and "/inputs/" not in pointer:
            yield finding(pointer, "The type is enum, but its values are missing.", "Write enum[a, b, c].")


@check("agent-json-default", WARNING, "9, Input parameter fields", hint="Correct the default or the rule.")
def bad_defaults(document: JsonObject) -> Iterator[Finding]:
    """Default values are of the type and among the options of their input."""
    for pointer, parameter in objects(document, "/actions/[]/inputs/{}"):
        text, default = parameter.get("type"), parameter.get("default")
        if not isinstance(text, str) or default is None:
            continue
        options = parameter.get("options") or read_type(text).options
        is_list = text.strip().startswith("array")
        values = default if is_list and isinstance(default, list) else [default]
        if not parameter.get("options"):  # in the notation of types, all options are texts
            values = [value if isinstance(value, str) else shown(value) for value in values]
        if isinstance(options, list) and options and any(value not in options for value in values):
            yield finding(f"{pointer}/default", f"The default {shown(default)} is not among the options.")
        elif text.strip() in PRIMITIVES and not is_type(default, _JSON_TYPES.get(text.strip(), text.strip())):
            yield finding(f"{pointer}/default", f"The default {shown(default)} is not of type {text}.")


def action_ids(document: JsonObject) -> set[str]:
    """Collect the ids of all actions."""
    return {identifier for _, identifier in strings(document, "/actions/[]/id")}


@check(
    "agent-json-errors",
    WARNING,
    "15",
    hint="Declare at least what happens at a rate limit, without authentication, and with bad input.",
)
def without_errors(document: JsonObject) -> Iterator[Finding]:
    """Errors with a way of recovery are declared."""
    if document.get("actions") and document.get("errors", {}) == {}:
        yield finding("/errors", "No error and no recovery is declared.")


row(
    "agent-json-recovery",
    ERROR,
    "10",
    "The recovery of an error says what to do.",
    hint="Name the action or endpoint to call, or how long to wait.",
    violation=r"pattern /errors/[^/]*/recovery",
)


@check("agent-json-auth-action", ERROR, "7", hint="Name an action by its id.")
def unknown_in_auth(document: JsonObject) -> Iterator[Finding]:
    """required_for and optional_for name actions."""
    return unknown_names(document, action_ids(document), "/auth/required_for|optional_for/[]")


@check("agent-json-auth-both", ERROR, "7", hint="Remove it from one of the two.")
def required_and_optional(document: JsonObject) -> Iterator[Finding]:
    """No action is in required_for and in optional_for."""
    required = {name for _, name in strings(document, "/auth/required_for/[]")}
    for pointer, name in strings(document, "/auth/optional_for/[]"):
        if name in required:
            yield finding(pointer, f"Authentication is optional for {shown(name)} here and required in required_for.")


@check("agent-json-auth-disagrees", ERROR, "7 and 9", hint="Correct one of the two.")
def disagreeing_auth(document: JsonObject) -> Iterator[Finding]:
    """auth_required of an action and the lists in auth agree."""
    auth = document.get("auth")
    if not isinstance(auth, dict):
        return
    required = {name for _, name in strings(auth, "/required_for/[]")}
    optional = {name for _, name in strings(auth, "/optional_for/[]")}
    for pointer, action in objects(document, "/actions/[]"):
        said, name = action.get("auth_required"), action.get("id")
        if not isinstance(name, str):
            continue
        place = f"{pointer}/auth_required"
        if said is False and name in required:
            yield finding(place, f"auth.required_for names {shown(name)}, and auth_required is false.")
        elif said is True and isinstance(auth.get("required_for"), list) and name not in required | optional:
            yield finding(place, f"auth_required is true, and auth.required_for does not name {shown(name)}.")
        elif said is True and name in optional - required:
            yield finding(place, f"auth_required is true, and auth.optional_for names {shown(name)}.")


@check(
    "agent-json-auth-kind", WARNING, "7", hint='Describe it in auth; the types are "oauth2", "api_key" and "bearer".'
)
def unexplained_auth(document: JsonObject) -> Iterator[Finding]:
    """A document with actions that require authentication has an auth section, and its type is not none."""
    auth = document.get("auth")
    # A section without a type passes: the listed types leave out, for example, cookies of a session.
    if isinstance(auth, dict) and auth.get("type") != "none":
        return
    for pointer, action in objects(document, "/actions/[]"):
        if action.get("auth_required") is True:
            state = 'auth.type is "none"' if auth else "there is no auth"
            yield finding(f"{pointer}/auth_required", f"The action requires authentication, and {state}.")
            return


@check("agent-json-dependency", ERROR, "11", hint="Name an action by its id.")
def unknown_dependencies(document: JsonObject) -> Iterator[Finding]:
    """Dependencies name actions, on both sides."""
    ids = action_ids(document)
    for name in members(document.get("dependencies")):
        if name not in ids:
            yield finding(child("/dependencies", name), f"No action has the id {shown(name)}.")
    yield from unknown_names(document, ids, "/dependencies/{}/[]")


@check(
    "agent-json-cycle",
    ERROR,
    "11",
    hint="Remove one of the dependencies: as declared, none of these actions can come first.",
)
def cycles(document: JsonObject) -> Iterator[Finding]:
    """Dependencies do not go round in a circle."""
    graph = {
        name: [(child("/dependencies", name) + place, other) for place, other in strings(needed, "/[]")]
        for name, needed in members(document.get("dependencies")).items()
    }
    done: set[str] = set()
    for start in graph:
        if start in done:
            continue
        # Depth-first search: `path` leads from `start` to the current name, `places` has the position of each name in
        # it, and `waiting` the dependencies still to follow at each step. A dependency on a name in the path is a
        # cycle.
        path, places, waiting = [start], {start: 0}, [iter(graph[start])]
        while waiting:
            pointer, needed = next(waiting[-1], ("", ""))
            if not pointer:
                waiting.pop()
                del places[path[-1]]
                done.add(path.pop())
            elif needed in places:
                at = places[needed]
                circle = path[at:] if len(path) - at < 10 else [*path[at : at + 8], "..."]
                yield finding(pointer, f"The dependencies form a cycle: {' -> '.join([*circle, needed])}.")
            elif needed in graph and needed not in done:
                places[needed] = len(path)
                path.append(needed)
                waiting.append(iter(graph[needed]))


@check("agent-json-degraded", ERROR, "13", hint="Name an action by its id.")
def unknown_degraded(document: JsonObject) -> Iterator[Finding]:
    """degraded_actions names actions."""
    return unknown_names(document, action_ids(document), "/agent_status/degraded_actions/[]")


@check(
    "site-actions",
    ERROR,
    "AWP agent.json section 9; AWAS 1.0, Action Object Structure",
    of_site=True,
    hint="Correct the document that is wrong, or rename one of the actions.",
)
def disagreeing_actions(site: JsonObject) -> Iterator[Finding]:
    """Actions with one id have one method and endpoint in agent.json and in ai-actions.json."""
    declared = {
        identifier: action
        for _, document in of_kind(site, "awas")
        for _, action in objects(document, "/actions/[]")
        if isinstance(identifier := action.get("id"), str)
    }
    for path, document in of_kind(site, AGENT_JSON.name):
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
            if path_of(endpoint) not in map(path_of, places):
                message = f"The endpoint is {shown(endpoint)} here and {shown(places[0])} in ai-actions.json."
                yield finding(f"{pointer}/endpoint", message, document=path)
