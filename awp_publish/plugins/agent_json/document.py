"""agent.json of the Agent Web Protocol: specification 0.2, which keeps every field of 0.1.

`inputs` are what a plain HTTP client sends to `endpoint` (`plain_request`): an action's inputs at the plain door, or
the fields of its own route with their wire names. `outputs` are the members of the answer; an answer that is not an
object is the single output "$", JSONPath's name for the whole value (RFC 9535). Deliberately not emitted: `via` and
`operation` (they would make 0.2 readers wrap the described request again), the members of synthetic files (section 14),
and `auth.type` if actions require authentication of an undeclared kind.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from awp_publish import problems
from awp_publish.documents.members import (
    AGENT_CARD_PATHS,
    AGENT_JSON_PATH,
    AWAS_PATH,
    AWAS_VERSION,
    WOA_PATH,
    credentials_of,
    extended,
    located,
    located_if,
    methods_of_schemes,
    own_recoveries,
    present,
    schemes_of_routes,
    unlinked_recoveries,
    whole,
)
from awp_publish.documents.plain_request import IDEMPOTENCY_HEADER, request_fields
from awp_publish.documents.protocol import Document, Protocol, to_json
from awp_publish.model import Action, Catalog
from awp_publish.plugins.agent_json.notation import LIMITING, LIMITS, NESTED, Entities, spelled, spelled_members
from awp_publish.schema.embedding import answer_schema
from awp_publish.schema.reading import encoding_of, kinds, members, options, resolved

NAME: Final = "agent_json"

PATH: Final = AGENT_JSON_PATH

MEDIA_TYPE: Final = "application/json"

VERSION: Final = "0.2"

REGISTERED: Final = frozenset({"a2a", "mcp", "acp", "ap2", "x402", "skyfire", "openapi", "graphql", "payment"})
"""Protocol identifiers of section 5.5. Any other is custom and marked `x-`."""

DOOR_DOCUMENTS: Final = {"woa": ("document", WOA_PATH)}
"""The document that describes each door, and the member that names it."""

SOCKETS: Final = frozenset({"awp", "bridge"})
"""Doors that speak WebSocket. (The Agent Web Protocol of that door is another than that of this document.)"""

WHOLE_ANSWER: Final = "$"


def render(catalog: Catalog) -> dict[str, object]:
    """Return the document, in the order of section 5."""
    site, actions, status = catalog.site, catalog.actions, catalog.status
    entities = Entities(site.entities, site.entity_schemas)
    described = [_action(catalog, action, entities) for action in actions]
    # Section 7.
    auth: dict[str, object] = {"type": "none"}
    declared, required = site.authentication, [action.id for action in actions if action.auth_required]
    schemes, methods = schemes_of_routes(catalog), methods_of_schemes(catalog)
    if declared is not None or required or schemes:
        auth = {
            "required_for": required,
            "optional_for": [action.id for action in actions if not action.auth_required],
            "type": (declared and declared.type)
            or next((name for method, name in _TYPES.items() if method in methods), None),
            "token_expiry": declared and declared.token_expiry,
            "refresh_endpoint": declared and located_if(catalog, declared.refresh_endpoint),
            "x-credentials": credentials_of(catalog),
            "x-security-schemes": schemes or None,
        }
    input_names = {name for action in actions if not action.is_write for name in members(action.inputs)}
    # Section 6: unknown flags are left out, because "false" would be a statement.
    capabilities = {
        "streaming": True if catalog.door("a2a") else None,
        # There are pages of results if an input has such a name.
        "pagination": next((way for way in ("cursor", "offset", "page") if way in input_names), None),
        "idempotency": True if any(action.idempotency for action in actions) else None,
    }
    # Section 10: every problem a call can meet, with the site's own words over ours.
    impossible = _impossible(catalog)
    recoveries = {
        problems.code_of(problem.slug): problems.below(catalog.prefix, problem.default_recovery)
        for problem in catalog.problems
        if not problem.slug.startswith(impossible)
    }
    own = unlinked_recoveries(catalog) | own_recoveries(catalog)
    recoveries |= {code: words for code, words in own.items() if code in recoveries}
    agent_status = {
        "operational": status.operational,
        "degraded_actions": sorted(status.degraded_actions)
        if status.operational
        else sorted(action.id for action in actions),
        "status_endpoint": located_if(catalog, status.status_endpoint),
    }
    document = {
        "awp_version": VERSION,
        # Endpoints are resolved against it, so a port that is not the usual one belongs to it.
        "domain": urlsplit(catalog.url).netloc.rpartition("@")[2],
        "intent": site.description,
        "protocols": _protocols(catalog),
        "capabilities": present(capabilities) or None,
        "auth": present(auth),
        "entities": entities.render() or None,
        "actions": described,
        "errors": {code: {"recovery": words} for code, words in (recoveries | dict(site.errors)).items()},
        "dependencies": {action.id: action.depends_on for action in actions if action.depends_on} or None,
        "agent_hints": dict(site.hints) or None,
        "agent_status": present(agent_status),
    }
    return extended(present(document), site.extensions, NAME)


def _impossible(catalog: Catalog) -> tuple[str, ...]:
    """Return prefixes of problems that no call here can meet, because no action has the gate or the jobs for them."""
    actions, site = catalog.actions, catalog.site
    asks_who = site.authentication is not None or any(
        action.auth_required or action.route_authenticates or action.security for action in actions
    )
    has_limit = site.rate_limit is not None or any(action.rate_limit for action in actions)
    reasons: tuple[tuple[bool, tuple[str, ...]], ...] = (
        (False, ("invalid-url", "page-not-found")),  # about pages as SOM, not actions
        # The addresses of this document take inputs without WoA's envelope, and belong to actions.
        (False, ("envelope-", "invalid-envelope", "missing-input", "agent-mismatch", "unknown-operation")),
        (False, ("unknown-agent",)),
        (asks_who, ("authentication-required", "invalid-credentials", "auth-expired")),
        (any(action.scopes for action in actions), ("insufficient-scope",)),
        (has_limit or asks_who, ("rate-limited",)),  # guesses of credentials are counted, too
        (
            any(action.idempotency for action in actions),
            ("idempotency-", "invalid-idempotency-", "outcome-unknown", "answer-not-kept"),
        ),
        (any(action.needs_confirmation for action in actions), ("confirmation-",)),
        (catalog.door("bridge") is not None, ("runtime-failed",)),
        (any(action.requires for action in actions), ("prerequisite-",)),
        (any(action.is_background for action in actions), ("job-", "unknown-job", "too-many-jobs")),
    )
    return tuple(slug for has_reason, slugs in reasons if not has_reason for slug in slugs)


def _protocols(catalog: Catalog) -> dict[str, object]:
    """Return the other protocols that the site supports (section 5.5)."""
    spoken: dict[str, object] = {}
    for door in catalog.doors:
        entry: dict[str, object] = {"version": door.version, "endpoint": catalog.absolute(door.path)}
        member, path = DOOR_DOCUMENTS.get(door.protocol, ("", ""))
        if path in catalog.documents:
            entry[member] = catalog.absolute(path)
        if door.protocol == "a2a" and catalog.publishes("agent_card"):
            entry["agent_card"] = catalog.absolute(AGENT_CARD_PATHS[0])
        if door.protocol in SOCKETS:
            entry |= {"endpoint": "ws" + catalog.absolute(door.path).removeprefix("http"), "transport": "websocket"}
        is_marked = door.protocol in REGISTERED or door.protocol.startswith("x-")
        spoken[door.protocol if is_marked else f"x-{door.protocol}"] = entry
    if AWAS_PATH in catalog.documents:
        spoken["x-awas"] = {"version": AWAS_VERSION, "endpoint": catalog.absolute(AWAS_PATH)}
    if catalog.openapi:
        spoken["openapi"] = {"version": catalog.openapi.version, "endpoint": catalog.absolute(catalog.openapi.path)}
    return spoken


_TYPES: Final = {"oauth": "oauth2", "api_key": "api_key", "bearer": "bearer"}
"""Section 7's names for authentication methods; the first that applies is published."""


def _action(catalog: Catalog, action: Action, entities: "Entities") -> dict[str, object]:
    """Return an action (section 9), in the order of the specification's table."""
    method, path = catalog.endpoint_of(action)
    names, inputs = entities.learn(action.inputs), dict[str, object]()
    for field in request_fields(catalog, action):
        facts = resolved(field.schema, action.inputs)
        values = options(facts, action.inputs)
        kind = "enum" if values else spelled(field.schema, action.inputs, names)
        if kind in NESTED:
            kind = entities.nested(f"{action.id}_{field.name}", kind, facts, action.inputs, names)
        entry: dict[str, object] = {"type": kind, "required": field.required}
        details = {"default": facts.get("default"), "options": values or None, "description": facts.get("description")}
        entry |= present(details)
        if not LIMITING.isdisjoint(facts):
            entry |= {word: whole(facts[word]) for word in LIMITS if isinstance(facts.get(word), (str, int, float))}
        shape, text_encoding = facts.get("format"), encoding_of(facts)
        if kind in ("string", "ISO8601") and isinstance(shape, str):
            entry["format"] = shape
        if text_encoding is not None:
            entry["x-encoding"] = text_encoding
        elif encoding := encoding_of(resolved(facts.get("items"), action.inputs)):
            entry["x-items"] = {"x-encoding": encoding}
        inputs[field.name] = entry | dict(field.marks)
    outputs: Mapping[str, str] = {}
    if answer := answer_schema(action):
        names, facts = entities.learn(answer), resolved(answer, answer)
        if kinds(facts, answer) == ["object"]:
            outputs = spelled_members(facts, answer, names)
        else:
            outputs = {WHOLE_ANSWER: spelled(answer, answer, names)}
        result = resolved(action.outputs, action.outputs)
        if action.is_background and members(result):  # the result of a job is an entity of its own
            fields = spelled_members(result, action.outputs, entities.learn(action.outputs))
            outputs = {**outputs, "result": f"object[{entities.add(f'{action.id}_result', fields)}]"}
    idempotency: dict[str, object] | None = None
    if action.idempotency is not None:
        # A field beside the inputs; the plain door also takes the header.
        idempotency = {
            "supported": True,
            "key_field": action.idempotency.key_field,
            "window": action.idempotency.window,
            "x-header": IDEMPOTENCY_HEADER,
        }
    described = present(
        {
            "id": action.id,
            "description": action.description,
            "auth_required": action.auth_required,
            "inputs": inputs,
            "outputs": outputs,
            # Endpoints are resolved against https://{domain}, where this document has to be: from the origin.
            "endpoint": located(catalog, path),
            "method": method,
            "rate_limit": str(action.rate_limit) if action.rate_limit else None,
            "idempotency": idempotency,
            "execution_model": action.execution,
            "poll_endpoint": located(catalog, f"{catalog.paths.jobs}/{{job_id}}") if action.is_background else None,
            "sensitivity": action.sensitivity,
            "requires_human_confirmation": action.needs_confirmation or None,
            "reversible": False if action.is_irreversible else None,
            "x-tags": list(action.tags) or None,
        }
    )
    return extended(described, action.extensions, NAME)


PROTOCOL = Protocol(
    NAME,
    documents=(Document(PATH, MEDIA_TYPE, to_json(render), "service-desc", "agent.json", door="plain"),),
)
