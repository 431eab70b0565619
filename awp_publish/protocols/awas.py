"""AWAS, the AI-readable Web Action Standard: the wiki's specification 1.0 and the schema of its successor 1.1.

One manifest carries the union of both, so that readers of either accept it: 1.0 requires `path` and `parameters`, 1.1
`endpoint`, `type` and `inputs`. `version` is the specification's version to 1.0 and the version of the site's manifest
to 1.1; the site's version has the form both expect and starts at "1.0", the only one that 1.0 knows.

Parameters tell what a plain HTTP client sends (`plain_request.py`): names are those on the wire, and an action without
a route takes the invoke envelope. `x-invoke` is where limits, keys and the like of an action with a route hold: its
route is the application's own business. Deliberately not emitted: `error_codes` (how a route fails is not declared),
`outputs.schema` (it is `outputSchema`), `openapi.$ref` (the operationId identifies the operation already),
`burst_limit` and `concurrent_requests` (no such limits), and null as a parameter type (1.1 forbids it).
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Final

from awp_publish.model import Action, Catalog, JsonObject, RateLimit, Result, SiteFacts
from awp_publish.protocols.members import extension_members, located, located_if, origin, present
from awp_publish.protocols.plain_request import (
    IDEMPOTENCY_HEADER,
    Field,
    listed_actions,
    request_fields,
    request_schema,
)
from awp_publish.protocols.protocol import Document, Protocol, to_json
from awp_publish.protocols.schema_reading import answer_schema, guarded_endpoint, kinds, options, resolved

# --- AWAS conformance levels (1.1, CONFORMANCE_LEVELS), computed from the actions instead of typed ---
# L1: every action is a GET that is safe and reads. L2: writes have a preview or a dry run, and `security` documents
# CSRF. L3: besides, every action has scopes, preconditions, a rate limit and schemas, and every write takes
# idempotency keys.


def site_level(catalog: Catalog, actions: Sequence[Action]) -> str | None:
    """The highest level that the whole site meets, None if it meets none."""
    levels = {action_level(catalog, action) for action in actions}
    if not levels or None in levels:
        return None
    if catalog.site.allowed_origins and all(_is_transactional(action) for action in actions):
        return "L3"
    return "L2" if "L2" in levels else "L1"


def action_level(catalog: Catalog, action: Action) -> str | None:
    """The lowest level at which a site may have this action, None if no level allows it."""
    method, _ = catalog.endpoint_of(action)
    if not action.is_write:
        return "L1" if method == "GET" and action.side_effect == "safe" else None
    has_preview = action.preview_url is not None or action.dry_run
    return "L2" if has_preview and catalog.site.allowed_origins else None


def preconditions(action: Action) -> list[str]:
    """The declared conditions, then a sentence for each action that has to come first."""
    return [*action.preconditions, *(f"{earlier} has been called successfully." for earlier in action.depends_on)]


def _is_transactional(action: Action) -> bool:
    """What L3 asks of every action beyond L2."""
    is_repeatable = action.idempotency is not None or not action.is_write
    has_schemas = bool(action.inputs) and bool(action.outputs)
    return is_repeatable and has_schemas and bool(action.scopes and action.rate_limit and preconditions(action))


# --- The parameters of an AWAS action: 1.0's `parameters` and 1.1's `inputs`, picked from the same facts ---

PARAMETER_MEMBERS: Final = (
    "name",
    "type",
    "format",
    "required",
    "description",
    "selector",
    "validation",
    "default",
    "example",
    "enum",
)
"""What 1.0 says about a parameter (Parameter Object Structure)."""

INPUT_MEMBERS: Final = ("name", "type", "required", "default", "selector", "description", "examples", "validation")
"""What 1.1 says about an input (definitions/input)."""

FORMATS: Final = {"date-time": "datetime"}
"""JSON Schema formats that 1.0 (String Formats) spells otherwise."""

VALIDATION: Final[tuple[tuple[str, str, tuple[type, ...]], ...]] = (
    ("pattern", "pattern", (str,)),
    ("minimum", "min", (int, float)),
    ("maximum", "max", (int, float)),
    ("minLength", "minLength", (int,)),
    ("maxLength", "maxLength", (int,)),
)
"""JSON Schema keyword, member of `validation`, types it may have."""

EXCLUSIVE_BOUNDS: Final = (("exclusiveMinimum", "min", 1), ("exclusiveMaximum", "max", -1))
"""JSON Schema keyword, member of `validation`, and how far inside the nearest whole number is."""

BOUNDS: Final = frozenset({keyword for keyword, *_ in (*VALIDATION, *EXCLUSIVE_BOUNDS)})

FALLBACK_TYPE: Final = "string"
"""Both versions require a type. Where any value will do, a text will."""


def parameters(action: Action, fields: Sequence[Field]) -> dict[str, object]:
    """The members `parameters` and `inputs`; None without fields."""
    facts = [_facts(action, field) for field in fields]
    return {
        "parameters": [_pick(fact, PARAMETER_MEMBERS) for fact in facts] or None,
        "inputs": [_pick(fact, INPUT_MEMBERS) for fact in facts] or None,
    }


def examples_in(facts: JsonObject) -> list[object]:
    """The examples a resolved schema gives, without null."""
    examples = facts.get("examples")
    return [value for value in examples if value is not None] if isinstance(examples, list) else []


def _pick(facts: JsonObject, names: Sequence[str]) -> dict[str, object]:
    marks = facts["marks"]
    picked = {name: facts[name] for name in names if facts[name] is not None}
    return picked | marks if isinstance(marks, dict) else picked


def _facts(action: Action, field: Field) -> dict[str, object]:
    """All that either version says about a parameter, None where it has nothing to say."""
    facts = resolved(field.schema, action.inputs)
    values = options(facts, action.inputs)
    examples = [*field.examples, *examples_in(facts)]
    shape = facts.get("format")
    kind = next(iter(kinds(facts, action.inputs)), FALLBACK_TYPE)
    return {
        "name": field.name,
        "type": kind,
        "format": FORMATS.get(shape, shape) if isinstance(shape, str) else None,
        "required": field.required,
        "description": _description(facts, field),
        "selector": action.selectors.get(field.input_name),
        "validation": _validation(facts, kind, values),
        "default": facts.get("default"),
        "example": examples[0] if examples else None,
        "examples": examples or None,
        "enum": values or None,
        "marks": field.marks,
    }


def _description(facts: JsonObject, field: Field) -> str:
    """1.0 requires a description: a title or the name in words stands in for one."""
    for told in (facts.get("description"), facts.get("title"), field.description):
        if isinstance(told, str) and told:
            return told
    return field.name.replace("_", " ").replace("-", " ").strip().capitalize()


def _validation(facts: JsonObject, kind: str, values: list[object]) -> dict[str, object] | None:
    if not values and BOUNDS.isdisjoint(facts):
        return None
    rules: dict[str, object] = {}
    for keyword, name, types in VALIDATION:
        rule = facts.get(keyword)
        if isinstance(rule, types) and not isinstance(rule, bool):
            rules[name] = rule
    if kind == "integer":
        rules = _whole_bounds(facts) | rules
    if values:
        rules["enum"] = values
    return rules or None


def _whole_bounds(facts: JsonObject) -> dict[str, object]:
    """Exclusive bounds of whole numbers; of other numbers AWAS cannot say them."""
    found = ((facts.get(keyword), name, inside) for keyword, name, inside in EXCLUSIVE_BOUNDS)
    return {name: bound + inside for bound, name, inside in found if isinstance(bound, int)}


PATH: Final = "/.well-known/ai-actions.json"
ALIAS_PATH: Final = "/.well-known/awas.json"
SCHEMA_PATH: Final = "/schema/awas-schema.json"
MEDIA_TYPE: Final = "application/json; charset=utf-8"
VERSION: Final = "1.1"
MAX_AGE: Final = 3600
HEADERS: Final = (("AWAS-Version", VERSION),)

METHODS: Final = {
    "session": "session",
    "api_key": "api_key",
    "api-key": "api_key",
    "oauth": "oauth",
    "oauth2": "oauth",
    "jwt": "jwt",
    "bearer": "bearer",
}
"""Authentication methods as 1.0 and agent.json spell them, to the enum of 1.1. Others go into `x-methods`."""

NO_METHOD: Final = "none"

RATE_WINDOWS: Final = {60: "requests_per_minute", 3600: "requests_per_hour"}
"""Seconds of a window to the member of 1.1 `rate_limits` that says so."""

JSON_TYPE: Final = "application/json"


def render(catalog: Catalog) -> dict[str, object]:
    """The manifest: 1.1's members in the order of its schema, 1.0's beside those that mean the same."""
    site, actions = catalog.site, listed_actions(catalog)
    document = {
        # Clients MUST validate referenced schemas: refer to the one that is served beside this document.
        "$schema": catalog.absolute(SCHEMA_PATH),
        "specVersion": VERSION,
        "version": site.version,
        "lastUpdated": _timestamp(site.updated),
        "name": site.name,
        "description": site.description,
        # Every path below starts at the origin, so that resolving it against baseUrl (1.0), appending it to baseUrl and
        # resolving it against this document's address (1.1) all give the same URL, also for a site below a path.
        "baseUrl": origin(catalog),
        "contact": _contact(catalog),
        "conformanceLevel": site_level(catalog, actions),
        "actions": [_action(catalog, action) for action in actions],
        "workflows": _workflows(site),
        "rateLimit": _rate_limit(site.rate_limit),
        "rate_limits": _rate_limits(site.rate_limit),
        "authentication": _authentication(catalog, actions),
        "security": _security(site),
    }
    return present(document) | extension_members(site.extensions)


# --- The site --------------------------------------------------------------------------------------------------------


def _timestamp(moment: datetime | None) -> str | None:
    """RFC 3339, as 1.1's format date-time wants it. A time without zone is UTC."""
    if moment is None:
        return None
    in_utc = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    return in_utc.isoformat(timespec="seconds").replace("+00:00", "Z")


def _contact(catalog: Catalog) -> dict[str, object] | None:
    contact = catalog.site.contact
    if contact is None:
        return None
    return present({"email": contact.email, "url": located_if(catalog, contact.url)}) or None


def _workflows(site: SiteFacts) -> list[dict[str, object]] | None:
    return [
        present({"id": flow.id, "name": flow.name, "description": flow.description, "steps": list(flow.steps)})
        for flow in site.workflows
    ] or None


def _rate_limit(limit: RateLimit | None) -> dict[str, object] | None:
    """1.0 `rateLimit`."""
    if limit is None:
        return None
    return present({"requests": limit.requests, "window": limit.window, "scope": limit.scope})


def _rate_limits(limit: RateLimit | None) -> dict[str, object] | None:
    """1.1 `rate_limits`, which only knows minutes and hours."""
    if limit is None or limit.seconds not in RATE_WINDOWS:
        return None
    return {RATE_WINDOWS[limit.seconds]: limit.requests}


def _authentication(catalog: Catalog, actions: Sequence[Action]) -> dict[str, object]:
    declared = catalog.site.authentication
    required = [action.auth_required for action in actions]
    summary: dict[str, object] = {"required": bool(required) and all(required)}
    if declared is None and not any(required):
        return summary
    summary["optional_for"] = [action.id for action in actions if not action.auth_required]
    if declared is None:
        return summary
    endpoints = {name: located(catalog, address) for name, address in declared.endpoints.items()}
    return present(summary | _methods(catalog.site) | {"endpoints": endpoints or None})


def _methods(site: SiteFacts) -> dict[str, object]:
    """The methods as 1.1 spells them, else the one that the type is."""
    if site.authentication is None:
        return {}
    named = site.authentication.methods or (site.authentication.type or NO_METHOD,)
    known = list(dict.fromkeys(METHODS[method] for method in named if method in METHODS))
    others = [method for method in named if method not in METHODS and method != NO_METHOD]
    return present({"methods": known or None, "x-methods": others or None})


def _security(site: SiteFacts) -> dict[str, object] | None:
    """What holds of calls from browsers. The doors go by the origin and ask for no token."""
    return {"csrfRequired": False, "allowedOrigins": list(site.allowed_origins)} if site.allowed_origins else None


# --- An action -------------------------------------------------------------------------------------------------------


def _action(catalog: Catalog, action: Action) -> dict[str, object]:
    method, path = catalog.endpoint_of(action)
    address = located(catalog, path)
    return present(
        {
            "id": action.id,
            "type": action.type,
            "intent": action.intent,
            "sideEffect": action.side_effect,
            "name": action.name,
            "description": action.description,
            "method": method,
            "endpoint": address,
            "path": address,
            "selector": action.selector,
            **_access(catalog, action),
            **_contract(catalog, action),
            **_request(catalog, action),
            **_answer(action),
            **_references(catalog, action),
        }
    ) | extension_members(action.extensions)


def _access(catalog: Catalog, action: Action) -> dict[str, object]:
    requirement: dict[str, object] = {"required": action.auth_required}
    if action.auth_required:
        requirement |= _methods(catalog.site)
    return {
        "authentication_required": action.auth_required,
        "authentication": requirement,
        "authScopes": action.scopes or None,
    }


def _contract(catalog: Catalog, action: Action) -> dict[str, object]:
    """What a caller may rely on and has to keep to."""
    limit = _rate_limit(action.rate_limit)
    return {
        "idempotencyKeySupported": True if action.idempotency else None,
        "idempotencyKeyHeader": IDEMPOTENCY_HEADER if action.idempotency else None,
        "preconditions": preconditions(action) or None,
        "rateLimit": limit,
        "rateLimitHint": limit and {"requests": limit["requests"], "window": limit["window"]},
        "previewUrl": located_if(catalog, action.preview_url),
        "dryRunSupported": action.dry_run or None,
        "conformanceLevel": action_level(catalog, action),
    }


def _request(catalog: Catalog, action: Action) -> dict[str, object]:
    fields = request_fields(catalog, action)
    encoding = action.direct.content_type if action.direct else None
    return {
        **parameters(action, fields),
        "inputSchema": request_schema(action, fields),
        "x-encoding": encoding if encoding != JSON_TYPE else None,
    }


def _answer(action: Action) -> dict[str, object]:
    outputs = {
        "type": JSON_TYPE if action.outputs else None,
        "success_codes": [action.success_status],
        "examples": examples_in(action.outputs) or None,
    }
    return {
        "outputs": present(outputs),
        "outputSchema": dict(answer_schema(action)) or None,
        "result": _result(action.result),
    }


def _result(result: Result | None) -> dict[str, object] | None:
    if result is None:
        return None
    paging = result.pagination
    pagination = paging and present(
        {"selector": paging.selector, "nextButton": paging.next_button, "currentPage": paging.current_page}
    )
    return present(
        {
            "type": result.type,
            "selector": result.selector,
            "itemSelector": result.item_selector,
            "properties": dict(result.properties) or None,
            "pagination": pagination or None,
        }
    )


def _references(catalog: Catalog, action: Action) -> dict[str, object]:
    known = catalog.openapi is not None and action.operation_id is not None
    document = located(catalog, catalog.openapi.path) if catalog.openapi else None
    return {
        "openapi": {"documentUrl": document, "operationId": action.operation_id} if known else None,
        "x-tags": action.tags or None,
        "x-invoke": guarded_endpoint(catalog, action),
    }


# --- The schema and the documents ------------------------------------------------------------------------------------


def render_schema(catalog: Catalog) -> dict[str, object]:
    """The JSON Schema that `$schema` of the manifest names, identified by the address it is served at."""
    schema = _schema_file()
    return {"$schema": schema["$schema"], "$id": catalog.absolute(SCHEMA_PATH)} | {
        keyword: value for keyword, value in schema.items() if keyword not in ("$schema", "$id")
    }


@cache
def _schema_file() -> dict[str, object]:
    loaded: object = json.loads(files("awp_publish.protocols").joinpath("schemas/awas.json").read_text("utf-8"))
    return loaded if isinstance(loaded, dict) else {}


_MANIFEST: Final = to_json(render)

PROTOCOL = Protocol(
    "awas",
    documents=(
        Document(PATH, MEDIA_TYPE, _MANIFEST, "ai-actions", "AWAS actions", MAX_AGE, HEADERS),
        Document(ALIAS_PATH, MEDIA_TYPE, _MANIFEST, max_age=MAX_AGE, headers=HEADERS),
        # The text names no media type for the schema; JSON is what the manifest is served as.
        Document(SCHEMA_PATH, MEDIA_TYPE, to_json(render_schema), max_age=MAX_AGE, headers=HEADERS),
    ),
)
