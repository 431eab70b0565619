"""AWP agent.json 0.1 and 0.2: the checks of an `agent.json`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial

from awp_publish.checks import engine
from awp_publish.checks.engine import Check, Enumeration, Flaw, Shape, child, is_type, objects, shown, strings
from awp_publish.checks.text import grave_word, is_timestamp
from awp_publish.checks.urls import PLACEHOLDER, is_absolute, is_host_name, split, url_fault

SPEC = "AWP agent.json"
KNOWN_MAJORS = (0,)
METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH")
_VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})", re.ASCII)


def version(document: Mapping[str, object]) -> tuple[int, int] | None:
    """Read `awp_version`; None where it is missing or not MAJOR.MINOR."""
    text = document.get("awp_version")
    match = _VERSION.fullmatch(text) if isinstance(text, str) else None
    return (int(match[1]), int(match[2])) if match else None


def knows_protocols(document: Mapping[str, object]) -> bool:
    """Say whether the version claimed has `protocols` and `via`: 0.2 and later, or none that can be read."""
    claimed = version(document)
    return claimed is None or claimed >= (0, 2)


SHAPES = (
    Shape(
        "",
        "The document",
        f"{SPEC} section 5",
        {
            "awp_version": "string",
            "domain": "string",
            "intent": "string",
            "protocols": "object of object",
            "capabilities": "object",
            "auth": "object",
            "entities": "object of object",
            "actions": "array of object",
            "errors": "object of object",
            "dependencies": "object of array of string",
            "agent_hints": "object",
            "agent_status": "object",
            "source": "string",
            "generated_by": "string",
            "confidence": "number",
            "last_verified": "string",
        },
        ("awp_version", "domain", "intent", "actions"),
    ),
    Shape(
        "/protocols/{}",
        "A protocol",
        f"{SPEC} 0.2 section 5.5",
        {"version": "string", "endpoint": "string"},
        ("version",),
        knows_protocols,
    ),
    Shape(
        "/capabilities",
        "The capabilities",
        f"{SPEC} section 6",
        {
            "streaming": "boolean",
            "batch_actions": "boolean",
            "webhooks": "boolean",
            "pagination": "string",
            "idempotency": "boolean",
        },
    ),
    Shape(
        "/auth",
        "The authentication contract",
        f"{SPEC} section 7",
        {
            "required_for": "array of string",
            "optional_for": "array of string",
            "type": "string",
            "token_expiry": "string",
            "refresh_endpoint": "string",
        },
    ),
    Shape("/entities/{}", "An entity", f"{SPEC} section 8", {"fields": "object of string"}),
    Shape(
        "/actions/[]",
        "An action",
        f"{SPEC} section 9",
        {
            "id": "string",
            "description": "string",
            "auth_required": "boolean",
            "inputs": "object of object",
            "outputs": "object of string|object",
            "endpoint": "string",
            "method": "string",
            "via": "string",
            "operation": "string",
            "rate_limit": "string",
            "idempotency": "object",
            "execution_model": "string",
            "poll_endpoint": "string",
            "sensitivity": "string",
            "requires_human_confirmation": "boolean",
            "reversible": "boolean",
        },
        ("id", "description", "auth_required", "inputs", "outputs"),
    ),
    Shape(
        "/actions/[]/inputs/{}",
        "An input",
        f"{SPEC} section 9, Input parameter fields",
        {"type": "string", "required": "boolean", "default": "any", "options": "array", "description": "string"},
        ("type",),
    ),
    Shape(
        "/actions/[]/idempotency",
        "The idempotency contract",
        f"{SPEC} section 9",
        {"supported": "boolean", "key_field": "string", "window": "string"},
    ),
    Shape("/errors/{}", "An error", f"{SPEC} section 10", {"recovery": "string"}, ("recovery",)),
    Shape(
        "/agent_status",
        "The status",
        f"{SPEC} section 13",
        {"operational": "boolean", "degraded_actions": "array of string", "status_endpoint": "string"},
    ),
)

ENUMERATIONS = (
    Enumeration("/capabilities/pagination", ("cursor", "offset", "page", "none"), f"{SPEC} section 6"),
    Enumeration("/auth/type", ("oauth2", "api_key", "bearer", "none"), f"{SPEC} section 7"),
    Enumeration("/actions/[]/method", METHODS, f"{SPEC} section 9"),
    Enumeration("/actions/[]/execution_model", ("sync", "async"), f"{SPEC} section 9"),
    Enumeration(
        "/actions/[]/sensitivity",
        ("standard", "destructive", "irreversible"),
        f"{SPEC} section 9, Sensitivity levels",
    ),
)

REGISTERED_PROTOCOLS = ("a2a", "mcp", "acp", "ap2", "x402", "skyfire", "openapi", "graphql", "payment")
REACHED_PROTOCOLS = ("a2a", "mcp", "acp")

# Other standards use the same file name. Each is known by members that it requires and AWP does not have.
OTHER_STANDARDS = (
    ("agent.json by FransDevelopment (agent-json 1.x)", ("version", "origin", "payout_address")),
    ("the facts file of agent-json/spec 1.0", ("schema_version", "subject", "last_reviewed")),
    ("an A2A agent card", ("skills", "protocolVersion")),
    ("an A2A agent card", ("skills", "url", "capabilities")),
    ("an A2A agent card", ("skills", "supportedInterfaces")),
)


Document = Mapping[str, object]

SYNTHETIC = {"source": "synthetic", "generated_by": "who made it", "confidence": "0 to 1", "last_verified": "a time"}
ENDPOINTS = (
    "/actions/[]/endpoint",
    "/actions/[]/poll_endpoint",
    "/auth/refresh_endpoint",
    "/agent_status/status_endpoint",
)
_RATE_LIMIT = re.compile(
    r"0*[1-9]\d*\s*(?:/|per)\s*(?:\d*\s*)(?:s|sec|second|m|min|minute|h|hr|hour|d|day|week|month)s?", re.IGNORECASE
)
_DURATION = re.compile(
    r"0*[1-9]\d*\s*(?:ms|[smhdwy]|(?:sec|min|hr|second|minute|hour|day|week|month|year)s?)|P\S+|never"
)


def other_standard(document: Document) -> Iterator[Flaw]:
    """Recognise another standard's file of the same name."""
    if "awp_version" in document:
        return
    for name, members in OTHER_STANDARDS:
        if all(member in document for member in members):
            told = ", ".join(members)
            yield Flaw("/awp_version", f"This is not an AWP document: its members {told} are those of {name}.")
            return


def missing(document: Document) -> Iterator[Flaw]:
    """Find required members that are not there; endpoint and method may be replaced by `via` since 0.2."""
    yield from engine.missing(SHAPES, document)
    for pointer, action in objects(document, "/actions/[]"):
        via = action.get("via") if knows_protocols(document) else None
        for name in ("endpoint", "method"):
            if name not in action and not _supplied(document, via, name):
                yield Flaw(child(pointer, name), f'An action has no "{name}".', source=f"{SPEC} section 9")


def _supplied(document: Document, via: object, name: str) -> bool:
    if not isinstance(via, str):
        return False
    protocol = _protocols(document).get(via)
    # A transport without endpoint and an undeclared protocol are reported at the place where they stand.
    known_elsewhere = via in REACHED_PROTOCOLS or not isinstance(protocol, Mapping)
    return name == "method" or known_elsewhere or (isinstance(protocol, Mapping) and "endpoint" in protocol)


def _protocols(document: Document) -> Mapping[str, object]:
    protocols = document.get("protocols")
    return protocols if isinstance(protocols, Mapping) else {}


def bad_version(document: Document) -> Iterator[Flaw]:
    """Find an awp_version that is not MAJOR.MINOR."""
    claimed = document.get("awp_version")
    if isinstance(claimed, str) and version(document) is None:
        yield Flaw("/awp_version", f"{shown(claimed)} is not MAJOR.MINOR.")


def unknown_version(document: Document) -> Iterator[Flaw]:
    """Find a major version that these checks do not know."""
    claimed = version(document)
    if claimed and claimed[0] not in KNOWN_MAJORS:
        yield Flaw("/awp_version", f"Major version {claimed[0]} is not known here.")


def newer_members(document: Document) -> Iterator[Flaw]:
    """Find members of 0.2 in a document that claims 0.1."""
    if knows_protocols(document):
        return
    if "protocols" in document:
        yield Flaw("/protocols", "protocols is not part of version 0.1.")
    for pointer, action in objects(document, "/actions/[]"):
        if "via" in action:
            yield Flaw(child(pointer, "via"), "via is not part of version 0.1.")


def bad_domain(document: Document) -> Iterator[Flaw]:
    """Find a domain that is a URL or otherwise no host name."""
    for pointer, domain in strings(document, "/domain"):
        host = re.sub(r":\d{1,5}\Z", "", domain)
        if not is_host_name(host):
            yield Flaw(pointer, f"{shown(domain)} is not a host name.")


def repeated_ids(document: Document) -> Iterator[Flaw]:
    """Find action ids that are given more than once."""
    known: dict[str, str] = {}
    for pointer, identifier in strings(document, "/actions/[]/id"):
        if identifier in known:
            yield Flaw(pointer, f"The id {shown(identifier)} is also that of {known[identifier]}.")
        known.setdefault(identifier, pointer.rpartition("/")[0])


def no_actions(document: Document) -> Iterator[Flaw]:
    """Find a document that declares nothing to do."""
    if document.get("actions") == []:
        yield Flaw("/actions", "There are no actions.")


def bad_urls(document: Document) -> Iterator[Flaw]:
    """Find malformed endpoints, and protocol endpoints that are not whole URLs."""
    for pointer, text in strings(document, *ENDPOINTS, "/protocols/{}/endpoint"):
        fault = url_fault(text)
        if not fault and pointer.startswith("/protocols/"):
            parts = split(text)
            fault = None if parts and parts.scheme and parts.netloc else "is not a whole URL"
        if fault:
            yield Flaw(pointer, f"{shown(text)} {fault}.")


def odd_endpoints(document: Document) -> Iterator[Flaw]:
    """Find endpoints that neither begin with "/" nor are whole URLs."""
    for pointer, text in strings(document, *ENDPOINTS):
        if not text.startswith("/") and not is_absolute(text):
            yield Flaw(pointer, f'{shown(text)} does not begin with "/".')


def unexplained_placeholders(document: Document) -> Iterator[Flaw]:
    """Find `{name}` in an endpoint where no input has that name."""
    for pointer, action in objects(document, "/actions/[]"):
        inputs, endpoint = action.get("inputs"), action.get("endpoint")
        if isinstance(inputs, Mapping) and isinstance(endpoint, str):
            for name in PLACEHOLDER.findall(endpoint):
                if name not in inputs:
                    yield Flaw(child(pointer, "endpoint"), f"No input gives a value for {{{name}}}.")


def bad_protocol_ids(document: Document) -> Iterator[Flaw]:
    """Find protocol identifiers that are not lower case and hyphenated."""
    for name in _protocols(document):
        if not re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", name):
            yield Flaw(child("/protocols", name), f"{shown(name)} is not lower case with hyphens.")


def unregistered_protocols(document: Document) -> Iterator[Flaw]:
    """Name the protocols that the specification does not list and that do not begin with `x-`."""
    for name in _protocols(document):
        if name not in REGISTERED_PROTOCOLS and not name.startswith("x-"):
            yield Flaw(child("/protocols", name), f"{shown(name)} is not among the registered protocols.")


def unreachable_protocols(document: Document) -> Iterator[Flaw]:
    """Find transport and tool protocols that do not say where to reach them."""
    for name, protocol in _protocols(document).items():
        if name in REACHED_PROTOCOLS and isinstance(protocol, Mapping) and "endpoint" not in protocol:
            yield Flaw(child(child("/protocols", name), "endpoint"), f"The protocol {name} has no endpoint.")


def undeclared_via(document: Document) -> Iterator[Flaw]:
    """Find actions whose protocol is not declared."""
    for pointer, via in strings(document, "/actions/[]/via"):
        if via not in _protocols(document):
            yield Flaw(pointer, f"The protocol {shown(via)} is not in protocols.")


def without_polling(document: Document) -> Iterator[Flaw]:
    """Find asynchronous actions that do not say where to ask for the result."""
    for pointer, action in objects(document, "/actions/[]"):
        if action.get("execution_model") == "async" and "poll_endpoint" not in action:
            yield Flaw(child(pointer, "poll_endpoint"), "The action is asynchronous and has no poll_endpoint.")


def bad_rate_limits(document: Document) -> Iterator[Flaw]:
    """Find rate limits that cannot be read."""
    for pointer, text in strings(document, "/actions/[]/rate_limit"):
        if not _RATE_LIMIT.fullmatch(text.strip()):
            yield Flaw(pointer, f"The rate limit {shown(text)} is not a positive number per unit of time.")


def bad_durations(document: Document) -> Iterator[Flaw]:
    """Find lifetimes that cannot be read."""
    for pointer, text in strings(document, "/auth/token_expiry", "/actions/[]/idempotency/window"):
        if not _DURATION.fullmatch(text.strip()):
            yield Flaw(pointer, f"{shown(text)} is not a number followed by a unit of time.")


def idempotency_without_key(document: Document) -> Iterator[Flaw]:
    """Find idempotency contracts that do not name the field of the key, or do not say whether they hold."""
    for pointer, contract in objects(document, "/actions/[]/idempotency"):
        if "supported" not in contract:
            yield Flaw(child(pointer, "supported"), "The contract does not say whether idempotency is supported.")
        elif contract["supported"] is True and "key_field" not in contract:
            yield Flaw(child(pointer, "key_field"), "Idempotency is supported and key_field does not say how.")


def unstated_sensitivity(document: Document) -> Iterator[Flaw]:
    """Find actions that seem to have consequences and declare no sensitivity."""
    for pointer, action in objects(document, "/actions/[]"):
        word = grave_word(action.get("id"), action.get("description"), action.get("method"))
        if word and "sensitivity" not in action:
            yield Flaw(child(pointer, "sensitivity"), f"The action seems to {shown(word)} and declares no sensitivity.")


def reversible_irreversible(document: Document) -> Iterator[Flaw]:
    """Find actions that can and cannot be undone."""
    for pointer, action in objects(document, "/actions/[]"):
        if action.get("sensitivity") == "irreversible" and action.get("reversible") is True:
            yield Flaw(child(pointer, "reversible"), "The action is irreversible, and reversible is true.")


def unconfirmed_irreversible(document: Document) -> Iterator[Flaw]:
    """Find irreversible actions that do not ask for confirmation."""
    for pointer, action in objects(document, "/actions/[]"):
        unasked = action.get("requires_human_confirmation") in (None, False)
        if action.get("sensitivity") == "irreversible" and unasked:
            place = child(pointer, "requires_human_confirmation")
            yield Flaw(place, "The action is irreversible and does not require confirmation by a person.")


def vague_hints(document: Document) -> Iterator[Flaw]:
    """Find hints that are no texts."""
    hints = document.get("agent_hints")
    for name, hint in hints.items() if isinstance(hints, Mapping) else ():
        if not isinstance(hint, str):
            yield Flaw(child("/agent_hints", name), f"The hint is {shown(hint)} and not a text.")


def undeclared_origin(document: Document) -> Iterator[Flaw]:
    """Find synthetic files that do not say all of where they come from."""
    if document.get("source") != "synthetic" and not {"generated_by", "confidence"} <= document.keys():
        return
    for name, wanted in SYNTHETIC.items():
        if name not in document:
            yield Flaw(child("", name), f'A synthetic file has no "{name}" ({wanted}).')
    confidence, verified = document.get("confidence"), document.get("last_verified")
    if isinstance(confidence, (int, float)) and not isinstance(confidence, bool) and not 0 <= confidence <= 1:
        yield Flaw("/confidence", f"The confidence {shown(confidence)} is not between 0 and 1.")
    if isinstance(verified, str) and not is_timestamp(verified):
        yield Flaw("/last_verified", f"{shown(verified)} is not an ISO 8601 time.")


PRIMITIVES = ("string", "integer", "float", "boolean", "ISO8601", "url")
DEEPEST_TYPE = 10
TYPE_PLACES = (
    "/actions/[]/inputs/{}/type",
    "/actions/[]/outputs/{}",
    "/actions/[]/outputs/{}/type",
    "/entities/{}/fields/{}",
)
JSON_TYPES = {"string": "string", "url": "string", "ISO8601": "string", "integer": "integer", "float": "number"}
JSON_TYPES |= {"boolean": "boolean", "enum": "any"}
_CONTAINER = re.compile(r"(enum|array|object)\s*\[(.*)\]", re.DOTALL)
_NAME = re.compile(r"[^\W\d][\w.:-]*")


@dataclass(slots=True)
class Type:
    """What a type text says: why it cannot be read, and the names that occur in it."""

    fault: str | None = None
    options: list[str] = field(default_factory=list)
    entities: list[str] = field(default_factory=list)
    items: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


@lru_cache(maxsize=1024)
def read_type(text: str) -> Type:
    """Read a type; the answer is shared, so it is not to be changed."""
    result = Type()
    _read(text.strip(), result, DEEPEST_TYPE)
    return result


def _read(text: str, result: Type, depth: int) -> None:
    match = _CONTAINER.fullmatch(text)
    if match is None:
        _read_name(text, result)
    elif depth == 0:
        result.fault = "is nested too deeply"
    elif not match[2].strip():
        result.fault = f"has nothing between the brackets of {match[1]}[]"
    else:
        _read_container(match[1], match[2].strip(), result, depth - 1)


def _read_container(kind: str, inner: str, result: Type, depth: int) -> None:
    if kind == "enum":
        result.options = [option.strip() for option in inner.split(",")]
        if "" in result.options:
            result.fault = "has an empty value between its commas"
    elif kind == "object":
        result.entities.append(inner)
    elif _NAME.fullmatch(inner) and inner not in PRIMITIVES:
        result.items.append(inner)
    else:
        _read(inner, result, depth)


def _read_name(text: str, result: Type) -> None:
    if not _NAME.fullmatch(text):
        result.fault = "is neither the name of a type nor enum[...], array[...] or object[...]" if text else "is empty"
    elif text not in PRIMITIVES and text != "enum":
        result.names.append(text)


def each_type(document: Document) -> Iterator[tuple[str, str, Type]]:
    """Yield every type text with its pointer and its reading."""
    for pointer, text in strings(document, *TYPE_PLACES):
        yield pointer, text, read_type(text)


def bad_types(document: Document) -> Iterator[Flaw]:
    """Find types that cannot be read."""
    for pointer, text, reading in each_type(document):
        if reading.fault:
            yield Flaw(pointer, f"The type {shown(text)} {reading.fault}.")


def own_types(document: Document) -> Iterator[Flaw]:
    """Name the types that the specification does not define, each once."""
    known: set[str] = set()
    for pointer, _, reading in each_type(document):
        for name in (*reading.names, *(item for item in reading.items if item in ("object", "array"))):
            if name not in known:
                yield Flaw(pointer, f"The type {shown(name)} is not one that the specification defines.")
            known.add(name)


def unknown_entities(document: Document) -> Iterator[Flaw]:
    """Find `object[x]` where x is no entity."""
    entities = _entities(document)
    for pointer, text, reading in each_type(document):
        for name in reading.entities:
            if name not in entities:
                yield Flaw(pointer, f"{shown(text)} refers to an entity {shown(name)}, which is not declared.")


def unknown_items(document: Document) -> Iterator[Flaw]:
    """Find `array[x]` where x is neither a defined type nor an entity. `array[object]` is common and passes."""
    known = {*_entities(document), "object", "array", "enum"}
    for pointer, text, reading in each_type(document):
        for name in reading.items:
            if name not in known:
                yield Flaw(pointer, f"{shown(text)} contains {shown(name)}, which is no type and no declared entity.")


def _entities(document: Document) -> Mapping[str, object]:
    entities = document.get("entities")
    return entities if isinstance(entities, Mapping) else {}


def enumerations_without_options(document: Document) -> Iterator[Flaw]:
    """Find the type `enum` where nothing says what is allowed."""
    for pointer, parameter in objects(document, "/actions/[]/inputs/{}"):
        options = parameter.get("options", [])
        if parameter.get("type") == "enum" and options == []:
            yield Flaw(child(pointer, "options"), "The type is enum and there are no options.")
    for pointer, text, _ in each_type(document):
        if text.strip() == "enum" and "/inputs/" not in pointer:
            yield Flaw(pointer, "The type is enum and nothing says which values it has.", "Write enum[a, b, c].")


def bad_defaults(document: Document) -> Iterator[Flaw]:
    """Find default values that are not of the input's type or not among its options."""
    for pointer, parameter in objects(document, "/actions/[]/inputs/{}"):
        text, default = parameter.get("type"), parameter.get("default")
        if not isinstance(text, str) or default is None:
            continue
        options = parameter.get("options") or read_type(text).options
        if isinstance(options, list) and options and default not in options:
            yield Flaw(child(pointer, "default"), f"The default {shown(default)} is not among the options.")
        elif not is_type(default, JSON_TYPES.get(text.strip(), "any")):
            yield Flaw(child(pointer, "default"), f"The default {shown(default)} is not of type {text}.")


TYPE_CHECKS = (
    Check(
        "agent-json-type-grammar",
        "error",
        f"{SPEC} section 8, Supported primitive types",
        "Types are names, enum[...], array[...] or object[...].",
        'Write for instance "string", "enum[a, b]" or "array[flight]".',
        bad_types,
    ),
    Check(
        "agent-json-own-type",
        "info",
        f"{SPEC} section 8, Supported primitive types",
        "Types are defined by the specification.",
        "Agents may not know the type; a description helps.",
        own_types,
    ),
    Check(
        "agent-json-entity",
        "error",
        f"{SPEC} section 8",
        "`object[x]` refers to a declared entity.",
        "Declare the entity in entities.",
        unknown_entities,
    ),
    Check(
        "agent-json-array-item",
        "warning",
        f"{SPEC} section 8",
        "`array[x]` contains a defined type or a declared entity.",
        "Declare the entity in entities, or write a defined type.",
        unknown_items,
    ),
    Check(
        "agent-json-enum",
        "error",
        f"{SPEC} sections 8 and 9",
        "A type of enum says which values it has.",
        "List the values in options.",
        enumerations_without_options,
    ),
    Check(
        "agent-json-default",
        "warning",
        f"{SPEC} section 9, Input parameter fields",
        "Default values are of the type and among the options of their input.",
        "Correct the default or the rule.",
        bad_defaults,
    ),
)


Graph = dict[str, list[tuple[str, str]]]


def _action_ids(document: Document) -> set[str]:
    return {identifier for _, identifier in strings(document, "/actions/[]/id")}


def _unknown(document: Document, *places: str) -> Iterator[Flaw]:
    known = _action_ids(document)
    for pointer, name in strings(document, *places):
        if name not in known:
            yield Flaw(pointer, f"No action has the id {shown(name)}.")


def unknown_in_auth(document: Document) -> Iterator[Flaw]:
    """Find names in the authentication contract that no action has."""
    return _unknown(document, "/auth/required_for/[]", "/auth/optional_for/[]")


def unknown_degraded(document: Document) -> Iterator[Flaw]:
    """Find names among the degraded actions that no action has."""
    return _unknown(document, "/agent_status/degraded_actions/[]")


def unknown_dependencies(document: Document) -> Iterator[Flaw]:
    """Find names in the dependencies that no action has, on either side."""
    known, dependencies = _action_ids(document), document.get("dependencies")
    for name in dependencies if isinstance(dependencies, Mapping) else ():
        if name not in known:
            yield Flaw(child("/dependencies", name), f"No action has the id {shown(name)}.")
    yield from _unknown(document, "/dependencies/{}/[]")


def required_and_optional(document: Document) -> Iterator[Flaw]:
    """Find actions for which authentication is both required and optional."""
    required = {name for _, name in strings(document, "/auth/required_for/[]")}
    for pointer, name in strings(document, "/auth/optional_for/[]"):
        if name in required:
            yield Flaw(pointer, f"Authentication is optional for {shown(name)} here and required in required_for.")


def disagreeing_auth(document: Document) -> Iterator[Flaw]:
    """Find actions whose auth_required says another thing than the authentication contract."""
    auth = document.get("auth")
    if not isinstance(auth, Mapping):
        return
    required = {name for _, name in strings(auth, "/required_for/[]")}
    optional = {name for _, name in strings(auth, "/optional_for/[]")}
    for pointer, action in objects(document, "/actions/[]"):
        said, name = action.get("auth_required"), action.get("id")
        if not isinstance(name, str):
            continue
        place = child(pointer, "auth_required")
        if said is False and name in required:
            yield Flaw(place, f"auth.required_for names {shown(name)}, and auth_required is false.")
        elif said is True and isinstance(auth.get("required_for"), list) and name not in required | optional:
            yield Flaw(place, f"auth_required is true, and auth.required_for does not name {shown(name)}.")
        elif said is True and name in optional - required:
            yield Flaw(place, f"auth_required is true, and auth.optional_for names {shown(name)}.")


def unexplained_auth(document: Document) -> Iterator[Flaw]:
    """Find actions that require authentication in a document that says there is none, or nothing about it.

    An auth section without a type passes: the listed types leave out, for example, cookies of a session.
    """
    auth = document.get("auth")
    if isinstance(auth, Mapping) and auth.get("type") != "none":
        return
    for pointer, action in objects(document, "/actions/[]"):
        if action.get("auth_required") is True:
            said = 'auth.type is "none"' if auth else "there is no auth"
            yield Flaw(child(pointer, "auth_required"), f"The action requires authentication, and {said}.")
            return


def cycles(document: Document) -> Iterator[Flaw]:
    """Find dependencies that lead back to where they began; each is reported where it closes."""
    dependencies = document.get("dependencies")
    graph: Graph = {}
    for name, needed in dependencies.items() if isinstance(dependencies, Mapping) else ():
        place = child("/dependencies", name)
        graph[name] = [(place + index, other) for index, other in strings(needed, "/[]")]
    done: set[str] = set()
    for name in graph:
        if name not in done:
            yield from _cycles_from(name, graph, done)


def _cycles_from(start: str, graph: Graph, done: set[str]) -> Iterator[Flaw]:
    path, waiting = [start], [iter(graph[start])]
    while waiting:
        pointer, needed = next(waiting[-1], (None, ""))
        if pointer is None:
            waiting.pop()
            done.add(path.pop())
        elif needed in path:
            circle = " -> ".join([*path[path.index(needed) :], needed])
            yield Flaw(pointer, f"The dependencies go round in a circle: {circle}.")
        elif needed in graph and needed not in done:
            path.append(needed)
            waiting.append(iter(graph[needed]))


def empty_recovery(document: Document) -> Iterator[Flaw]:
    """Find errors whose recovery says nothing."""
    for pointer, text in strings(document, "/errors/{}/recovery"):
        if not text.strip():
            yield Flaw(pointer, "The recovery is empty.")


def without_errors(document: Document) -> Iterator[Flaw]:
    """Find documents with actions that declare no errors at all."""
    if document.get("actions") and document.get("errors", {}) == {}:
        yield Flaw("/errors", "No error and no recovery is declared.")


REFERENCE_CHECKS = (
    Check(
        "agent-json-errors",
        "warning",
        f"{SPEC} section 15",
        "Errors with a way of recovery are declared.",
        "Declare at least what happens at a rate limit, without authentication, and with bad input.",
        without_errors,
    ),
    Check(
        "agent-json-recovery",
        "error",
        f"{SPEC} section 10",
        "The recovery of an error says what to do.",
        "Name the action or endpoint to call, or how long to wait.",
        empty_recovery,
    ),
    Check(
        "agent-json-auth-action",
        "error",
        f"{SPEC} section 7",
        "required_for and optional_for name actions.",
        "Name an action by its id.",
        unknown_in_auth,
    ),
    Check(
        "agent-json-auth-both",
        "error",
        f"{SPEC} section 7",
        "No action is in required_for and in optional_for.",
        "Remove it from one of the two.",
        required_and_optional,
    ),
    Check(
        "agent-json-auth-disagrees",
        "error",
        f"{SPEC} sections 7 and 9",
        "auth_required of an action and the lists in auth agree.",
        "Correct one of the two.",
        disagreeing_auth,
    ),
    Check(
        "agent-json-auth-kind",
        "warning",
        f"{SPEC} section 7",
        "Where authentication is required, there is an auth section, and its type is not none.",
        'Describe it in auth; the types are "oauth2", "api_key" and "bearer".',
        unexplained_auth,
    ),
    Check(
        "agent-json-dependency",
        "error",
        f"{SPEC} section 11",
        "Dependencies name actions, on both sides.",
        "Name an action by its id.",
        unknown_dependencies,
    ),
    Check(
        "agent-json-cycle",
        "error",
        f"{SPEC} section 11",
        "Dependencies do not go round in a circle.",
        "Remove one of the dependencies: now none of these actions can be the first.",
        cycles,
    ),
    Check(
        "agent-json-degraded",
        "error",
        f"{SPEC} section 13",
        "degraded_actions names actions.",
        "Name an action by its id.",
        unknown_degraded,
    ),
)


ACTIONS = f"{SPEC} section 9"
TEXTS = tuple(one for one in SHAPES if one.at != "/errors/{}")

CHECKS = (
    Check(
        "agent-json-other-standard",
        "error",
        f"{SPEC} section 5",
        "The document is AWP's, and not another standard's file of the same name.",
        "Serve the other document at its own place, and AWP's at /agent.json.",
        other_standard,
        decisive=True,
    ),
    # What must be there, and of which type.
    Check(
        "agent-json-required",
        "error",
        f"{SPEC} sections 5 to 10",
        "Required members are there, at every level; since 0.2 `via` replaces endpoint and method.",
        "Add the member.",
        missing,
    ),
    Check(
        "agent-json-type",
        "error",
        f"{SPEC} sections 5 to 13",
        "Members have the type that the specification gives them.",
        "Write a value of that type.",
        partial(engine.mistyped, SHAPES),
    ),
    Check(
        "agent-json-value",
        "error",
        f"{SPEC} sections 6, 7 and 9",
        "Methods, kinds of authentication and pagination, sensitivity and the like are among the listed values.",
        "Choose one of the values listed.",
        partial(engine.unlisted, ENUMERATIONS),
    ),
    Check(
        "agent-json-empty",
        "warning",
        f"{SPEC} section 15",
        "Required texts say something.",
        "Write a text that tells an agent what it needs to know.",
        partial(engine.empty, TEXTS),
    ),
    Check(
        "agent-json-misspelt",
        "info",
        f"{SPEC} section 15",
        "No unknown member has nearly the name of a known one.",
        "Correct the name.",
        partial(engine.misspelt, SHAPES),
    ),
    # The document as a whole.
    Check(
        "agent-json-version",
        "error",
        f"{SPEC} section 4",
        "awp_version is MAJOR.MINOR.",
        'Write "0.1" or "0.2".',
        bad_version,
    ),
    Check(
        "agent-json-version-unknown",
        "warning",
        f"{SPEC} section 4",
        "The major version is one that these checks know (0).",
        "Findings may be wrong for another version.",
        unknown_version,
    ),
    Check(
        "agent-json-newer-member",
        "info",
        f"{SPEC} 0.2 section 16",
        "Members of 0.2 are used only in a document that claims 0.2.",
        'Write awp_version "0.2"; 0.2 allows everything that 0.1 does.',
        newer_members,
    ),
    Check(
        "agent-json-domain",
        "error",
        f"{SPEC} sections 3 and 5",
        "domain is a host name and not a URL.",
        'Write the name alone, such as "books.example".',
        bad_domain,
    ),
    Check(
        "agent-json-url",
        "error",
        f"{SPEC} sections 5.5 and 8",
        "Endpoints are well-formed, and those of protocols are whole URLs.",
        "Repair the URL; spaces and the like are written as %20.",
        bad_urls,
    ),
    Check(
        "agent-json-synthetic",
        "error",
        f"{SPEC} section 14",
        "A synthetic file carries source, generated_by, confidence (0 to 1) and last_verified (a time).",
        "Add what is missing, or remove the members if the site publishes the file itself.",
        undeclared_origin,
    ),
    Check(
        "agent-json-hint",
        "warning",
        f"{SPEC} section 12; its schema at agent-json.org",
        "Hints are texts.",
        "Write a sentence.",
        vague_hints,
    ),
    # Protocols (0.2).
    Check(
        "agent-json-protocol-id",
        "warning",
        f"{SPEC} 0.2 section 5.5",
        "Protocol identifiers are lower case with hyphens.",
        "Rename the entry, and `via` where it is used.",
        bad_protocol_ids,
    ),
    Check(
        "agent-json-protocol-unregistered",
        "info",
        f"{SPEC} 0.2 section 5.5",
        'Protocols are registered, or begin with "x-".',
        'Put "x-" before a name of your own.',
        unregistered_protocols,
    ),
    Check(
        "agent-json-protocol-endpoint",
        "error",
        f"{SPEC} 0.2 section 5.5",
        "Transport and tool protocols say where to reach them.",
        "Add the endpoint.",
        unreachable_protocols,
    ),
    Check(
        "agent-json-via",
        "error",
        f"{SPEC} 0.2 section 5.5",
        "`via` names a declared protocol.",
        "Declare the protocol in protocols.",
        undeclared_via,
    ),
    # Actions.
    Check(
        "agent-json-no-actions",
        "warning",
        ACTIONS,
        "There is at least one action.",
        "Declare what an agent can do.",
        no_actions,
    ),
    Check(
        "agent-json-unique-id",
        "error",
        ACTIONS,
        "The ids of actions are unique.",
        "Rename one of the actions.",
        repeated_ids,
    ),
    Check(
        "agent-json-endpoint",
        "warning",
        ACTIONS,
        'Endpoints begin with "/" or are whole URLs.',
        'Begin with "/".',
        odd_endpoints,
    ),
    Check(
        "agent-json-endpoint-input",
        "warning",
        ACTIONS,
        "Every placeholder in an endpoint has an input of that name.",
        "Declare the input, or write it the same way in both places.",
        unexplained_placeholders,
    ),
    Check(
        "agent-json-poll",
        "warning",
        ACTIONS,
        "Asynchronous actions have a poll_endpoint.",
        "Add the endpoint at which the result can be asked for.",
        without_polling,
    ),
    Check(
        "agent-json-rate-limit",
        "warning",
        ACTIONS,
        "Rate limits are a positive number per unit of time.",
        'Write for instance "30/minute".',
        bad_rate_limits,
    ),
    Check(
        "agent-json-duration",
        "info",
        f"{SPEC} sections 7 and 9",
        "Lifetimes are a positive number followed by a unit of time.",
        'Write for instance "24h" or "7d".',
        bad_durations,
    ),
    Check(
        "agent-json-idempotency",
        "warning",
        ACTIONS,
        "An idempotency contract says whether it holds, and in which field the key goes.",
        "Add the member.",
        idempotency_without_key,
    ),
    Check(
        "agent-json-sensitivity",
        "warning",
        f"{SPEC} section 9, Sensitivity levels; section 15",
        "Actions that seem to have consequences declare their sensitivity.",
        'Declare "destructive" or "irreversible", or "standard" if it is harmless.',
        unstated_sensitivity,
    ),
    Check(
        "agent-json-reversible",
        "error",
        f"{SPEC} section 9, Sensitivity levels",
        "An irreversible action is not called reversible.",
        'Correct one of the two; what can be undone is "destructive" at most.',
        reversible_irreversible,
    ),
    Check(
        "agent-json-confirmation",
        "warning",
        f"{SPEC} section 9, Sensitivity levels",
        "An irreversible action requires confirmation by a person.",
        "Set requires_human_confirmation to true.",
        unconfirmed_irreversible,
    ),
    *TYPE_CHECKS,
    *REFERENCE_CHECKS,
)
