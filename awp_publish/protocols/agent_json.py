"""agent.json of the Agent Web Protocol: specification 0.2, which keeps every field of 0.1.

`inputs` tell what a plain HTTP client sends to `endpoint` (`plain_request.py`): fields under their names on the wire,
and the WoA envelope for actions without a route, whose `input` is an entity of its own. `outputs` name the members of
the answer; an answer that is no object is the one output "$", which is how JSONPath (RFC 9535) names a whole value.
`x-invoke` is where limits, keys, confirmations and receipts of an action with a route hold (`answers.py`).
Deliberately not emitted: `via` and `operation` (they would make 0.2 readers wrap the described request once more), the
members of synthetic files (section 14), an `auth.type` where actions require authentication of an undeclared kind.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from awp_publish import problems
from awp_publish.model import Action, Catalog, Door, SiteFacts
from awp_publish.protocols import agent_card, awas, woa
from awp_publish.protocols.answers import guarded_endpoint
from awp_publish.protocols.members import extension_members, located, located_if, present
from awp_publish.protocols.notation import Entities, Names, spelled, spelled_members
from awp_publish.protocols.plain_request import IDEMPOTENCY_HEADER, Field, listed_actions, request_fields
from awp_publish.protocols.protocol import Document, Protocol, to_json
from awp_publish.protocols.schema_reading import kinds, members, options, required_members, resolved

PATH: Final = "/agent.json"
MEDIA_TYPE: Final = "application/json"
VERSION: Final = "0.2"

REGISTERED: Final = frozenset({"a2a", "mcp", "acp", "ap2", "x402", "skyfire", "openapi", "graphql", "payment"})
"""Protocol identifiers of section 5.5. Any other is custom and marked `x-`."""

DOOR_DOCUMENTS: Final = {"woa": ("document", woa.PATH)}
"""Doors to the document that describes what is behind them, and the member that names it."""

SOCKETS: Final = frozenset({"awp"})
"""Doors that speak WebSocket. (The Agent Web Protocol of that door is another than that of this document.)"""

WHOLE_ANSWER: Final = "$"


def render(catalog: Catalog) -> dict[str, object]:
    """The document, in the order of section 5."""
    site, actions = catalog.site, listed_actions(catalog)
    entities = Entities(site.entities, site.entity_schemas)
    described = [_action(catalog, action, entities) for action in actions]
    document = {
        "awp_version": VERSION,
        "domain": catalog.domain,
        "intent": site.description,
        "protocols": _protocols(catalog),
        "capabilities": _capabilities(site, actions),
        "auth": _auth(catalog, actions),
        "entities": entities.render() or None,
        "actions": described,
        "errors": _errors(site),
        "dependencies": {action.id: action.depends_on for action in actions if action.depends_on} or None,
        "agent_hints": dict(site.hints) or None,
        "agent_status": _agent_status(catalog),
    }
    return present(document) | extension_members(site.extensions)


# --- The site --------------------------------------------------------------------------------------------------------


def _protocols(catalog: Catalog) -> dict[str, object]:
    """Section 5.5: what else the site speaks."""
    spoken: dict[str, object] = {_protocol_id(door.protocol): _door(catalog, door) for door in catalog.doors}
    if awas.PATH in catalog.documents:
        spoken["x-awas"] = {"version": awas.VERSION, "endpoint": catalog.absolute(awas.PATH)}
    if catalog.openapi:
        spoken["openapi"] = {"version": catalog.openapi.version, "endpoint": catalog.absolute(catalog.openapi.path)}
    return spoken


def _protocol_id(door: str) -> str:
    return door if door in REGISTERED or door.startswith("x-") else f"x-{door}"


def _door(catalog: Catalog, door: Door) -> dict[str, object]:
    entry: dict[str, object] = {"version": door.version, "endpoint": catalog.absolute(door.path)}
    member, path = DOOR_DOCUMENTS.get(door.protocol, ("", ""))
    if path in catalog.documents:
        entry[member] = catalog.absolute(path)
    if door.protocol == agent_card.DOOR:
        entry["agent_card"] = catalog.absolute(agent_card.PATH)
    if door.protocol in SOCKETS:
        entry |= {"endpoint": "ws" + catalog.absolute(door.path).removeprefix("http"), "transport": "websocket"}
    return entry


def _capabilities(site: SiteFacts, actions: Sequence[Action]) -> dict[str, object]:
    """Section 6."""
    return {
        "streaming": site.capabilities.streaming,
        "batch_actions": site.capabilities.batch_actions,
        "webhooks": site.capabilities.webhooks,
        "pagination": site.capabilities.pagination,
        "idempotency": any(action.idempotency for action in actions),
    }


def _auth(catalog: Catalog, actions: Sequence[Action]) -> dict[str, object]:
    """Section 7."""
    declared = catalog.site.authentication
    required = [action.id for action in actions if action.auth_required]
    if declared is None and not required:
        return {"type": "none"}
    return present(
        {
            "required_for": required,
            "optional_for": [action.id for action in actions if not action.auth_required],
            "type": declared and declared.type,
            "token_expiry": declared and declared.token_expiry,
            "refresh_endpoint": declared and located_if(catalog, declared.refresh_endpoint),
        }
    )


def _errors(site: SiteFacts) -> dict[str, object]:
    """Section 10: every problem a call can meet, with the site's own words over ours."""
    built_in = {problems.code_of(problem.slug): problem.default_recovery for problem in problems.ALL}
    return {code: {"recovery": recovery} for code, recovery in (built_in | dict(site.errors)).items()}


def _agent_status(catalog: Catalog) -> dict[str, object]:
    """Section 13."""
    return present(
        {
            "operational": catalog.status.operational,
            "degraded_actions": sorted(catalog.status.degraded_actions),
            "status_endpoint": located_if(catalog, catalog.status.status_endpoint),
        }
    )


# --- An action -------------------------------------------------------------------------------------------------------


def _action(catalog: Catalog, action: Action, entities: Entities) -> dict[str, object]:
    """Section 9, in the order of its table."""
    method, path = catalog.endpoint_of(action)
    return present(
        {
            "id": action.id,
            "description": action.description,
            "auth_required": action.auth_required,
            "inputs": _inputs(catalog, action, entities),
            "outputs": _outputs(action, entities),
            # Endpoints are resolved against https://{domain}, where this document has to be: from the origin.
            "endpoint": located(catalog, path),
            "method": method,
            "rate_limit": str(action.rate_limit) if action.rate_limit else None,
            "idempotency": _idempotency(action),
            "execution_model": action.execution,
            "poll_endpoint": located_if(catalog, catalog.poll_endpoint_of(action)),
            "sensitivity": action.sensitivity,
            "requires_human_confirmation": action.needs_confirmation or None,
            "reversible": action.reversible,
            "x-encoding": _encoding(action),
            "x-invoke": guarded_endpoint(catalog, action),
        }
    ) | extension_members(action.extensions)


def _encoding(action: Action) -> str | None:
    content_type = action.direct.content_type if action.direct else None
    return content_type if content_type != awas.JSON_TYPE else None


def _idempotency(action: Action) -> dict[str, object] | None:
    """The key is a field of the envelope; a request to a route has no envelope, there it is a header."""
    if action.idempotency is None:
        return None
    field = {"key_field": action.idempotency.key_field}
    if action.direct is not None:
        field = {"key_field": IDEMPOTENCY_HEADER, "x-in": "header"}
    return {"supported": True, **field, "window": action.idempotency.window}


def _inputs(catalog: Catalog, action: Action, entities: Entities) -> dict[str, object]:
    names = entities.learn(action.inputs)
    return {field.name: _input(action, field, names, entities) for field in request_fields(catalog, action)}


def _input(action: Action, field: Field, names: Names, entities: Entities) -> dict[str, object]:
    if field.schema is action.inputs:
        return _envelope_input(action, names, entities)
    facts = resolved(field.schema, action.inputs)
    values = options(facts, action.inputs)
    return present(
        {
            "type": "enum" if values else spelled(field.schema, action.inputs, names),
            "required": field.required,
            "default": facts.get("default"),
            "options": values or None,
            "description": facts.get("description"),
            **field.marks,
        }
    )


def _envelope_input(action: Action, names: Names, entities: Entities) -> dict[str, object]:
    """The envelope's `input`. An entity has no required fields, so the description names them."""
    facts = resolved(action.inputs, action.inputs)
    fields = spelled_members(facts, action.inputs, names)
    entity = entities.add(f"{action.id}_input", fields) if fields else None
    required = [name for name in members(facts) if name in required_members(facts)]
    return present(
        {
            "type": f"object[{entity}]" if entity else "object",
            "required": True,
            "description": f"Required: {', '.join(required)}." if required else None,
        }
    )


def _outputs(action: Action, entities: Entities) -> Mapping[str, str]:
    if not action.outputs:
        return {}
    names = entities.learn(action.outputs)
    facts = resolved(action.outputs, action.outputs)
    if kinds(facts, action.outputs) == ["object"]:
        return spelled_members(facts, action.outputs, names)
    return {WHOLE_ANSWER: spelled(action.outputs, action.outputs, names)}


PROTOCOL = Protocol(
    "agent_json",
    documents=(Document(PATH, MEDIA_TYPE, to_json(render), "service-desc", "agent.json"),),
)
