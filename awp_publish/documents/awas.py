"""AWAS, the AI-readable Web Action Standard: the wiki's specification 1.0 and the schema of its successor 1.1.

One manifest is the union of both, so that readers of either accept it: 1.0 requires `path` and `parameters`, 1.1
`endpoint`, `type` and `inputs`. In 1.0 `version` is the version of the specification, so it is always "1.0"; the site's
own is `x-version`, and also in the bridge manifests. A fact for which both versions have a member is in both; others
are in one place: descriptions and examples in `parameters`, `rateLimitHint` at level L3.

Parameters are what a plain HTTP client sends to `path` (`plain_request.py`): the action's inputs at the plain door, or
those of its own route with their wire names. Longer schemas are in a separate document, to which the manifest refers.
`x-page` is the page to which an action's selectors apply if that is not its `path`; selectors of which no page is known
are left out. What no member of a parameter can say is in members of ours: `x-encoding` (base64), `x-items` (what an
array has), `x-types` (a union of types), and an action's `x-one-of` (which parameters go together if its input is a
union of objects). Deliberately not emitted:
`error_codes` (how a route fails is not declared), `outputs.schema` (it is `outputSchema`), `openapi.$ref` (the
operationId already identifies the operation), `burst_limit` and `concurrent_requests` (there are no such limits), and
null as a parameter type (1.1 forbids it).
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC
from importlib.resources import files
from typing import Final

import orjson

from awp_publish.documents.members import (
    AGENT_CARD_PATHS,
    AWAS_PATH,
    AWAS_VERSION,
    SCHEMAS,
    SITE_ACTION,
    absolute_if,
    are_schemas_published,
    credentials_of,
    extended,
    extension_members,
    located,
    located_if,
    methods_of_route,
    methods_of_schemes,
    origin,
    present,
    schemas_address,
    schemes_of_routes,
    whole,
)
from awp_publish.documents.plain_request import IDEMPOTENCY_HEADER, Field, request_fields, request_schema
from awp_publish.documents.protocol import Document, Protocol, to_json
from awp_publish.model import Action, Catalog, JsonObject, RateLimit, utc_text
from awp_publish.schema.embedding import answer_schema
from awp_publish.schema.reading import (
    DIALECT,
    branches,
    encoding_of,
    kinds,
    members,
    object_facts,
    options,
    references,
    required_members,
    resolved,
)

NAME: Final = "awas"
PATH: Final = AWAS_PATH
ALIAS_PATH: Final = "/.well-known/awas.json"
SCHEMA_PATH: Final = "/schema/awas-schema.json"
MEDIA_TYPE: Final = "application/json; charset=utf-8"
VERSION: Final = AWAS_VERSION
VERSION_1_0: Final = "1.0"
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
"""Authentication methods of 1.0 and agent.json to the enum of 1.1. Others go into `x-methods`."""

NO_METHOD: Final = "none"

FLOW_MEMBERS: Final = (("token", "tokenUrl"), ("authorize", "authorizationUrl"), ("refresh", "refreshUrl"))
"""Names of endpoints, and their members in OpenAPI's OAuth flows."""

RATE_WINDOWS: Final = {60: "requests_per_minute", 3600: "requests_per_hour"}
"""Seconds of a window to the member of 1.1 `rate_limits`."""

JSON_TYPE: Final = "application/json"

SCHEMAS_TYPE: Final = "application/schema+json"
MIN_SHARED: Final = 120
"""Bytes of a schema from which on a reference to it is shorter."""

# --- Parameters: 1.0's `parameters` and 1.1's `inputs`, made from the same facts ---

INPUT_MEMBERS: Final = ("name", "type", "format", "required", "default", "selector", "validation")
"""The members of an input in 1.1 (definitions/input), without description and examples, which are in `parameters`.

`format` is no member of 1.1, which allows others, and has the name that JSON Schema gives it.
"""

TYPES_OF_1_0: Final = {"integer": "number"}
"""1.0 (Data Types) has one type for integers and floats."""

FORMATS: Final = {"date-time": "datetime"}
"""JSON Schema formats that have another name in 1.0 (String Formats)."""

_FORMAT_NAMES: Final = {name: shape for shape, name in FORMATS.items()}

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
"""Both versions require a type; if any value is valid, a text is."""


def is_published(catalog: Catalog) -> bool:
    """Return True if the catalogue of actions is among a site's documents."""
    return ALIAS_PATH in catalog.documents


def render(catalog: Catalog) -> dict[str, object]:
    """Return the manifest: 1.1's members in the order of its schema, 1.0's beside those that mean the same."""
    site, limit = catalog.site, catalog.site.rate_limit
    actions = [action for action in catalog.actions if action.id != SITE_ACTION]
    updated = site.updated and (site.updated if site.updated.tzinfo else site.updated.replace(tzinfo=UTC))
    level = _site_level(catalog, actions)
    methods = _methods(catalog)
    shared = _schemas(catalog) if are_schemas_published(catalog) else {}
    described = [_action(catalog, action, level, methods.get("methods"), shared) for action in actions]
    workflows = [
        present({"id": flow.id, "name": flow.name, "description": flow.description, "steps": list(flow.steps)})
        for flow in site.workflows
    ]
    required = [action.auth_required for action in actions]
    authentication: dict[str, object] = {"required": bool(required) and all(required)}
    schemes = schemes_of_routes(catalog)
    if site.authentication is not None or any(required) or schemes:
        authentication["optional_for"] = [action.id for action in actions if not action.auth_required]
    if site.authentication is not None or schemes:
        # The first of each kind from the routes' OAuth flows; the site's own take precedence.
        endpoints: dict[str, str] = {}
        for scheme in schemes.values():
            flows = scheme.get("flows")
            for flow in flows.values() if isinstance(flows, Mapping) else ():
                for name, member in FLOW_MEMBERS:
                    if isinstance(address := flow.get(member), str) and address:
                        endpoints.setdefault(name, address)
        given = site.authentication.endpoints if site.authentication is not None else {}
        endpoints |= {name: located(catalog, address) for name, address in given.items()}
        authentication |= _methods(catalog) | present({"endpoints": endpoints or None})
        authentication |= present({"x-credentials": credentials_of(catalog), "x-security-schemes": schemes or None})
    # The doors check the origin of a browser's call and need no CSRF token.
    origins = list(site.allowed_origins)
    security = {"csrfRequired": False, "allowedOrigins": origins} if origins else None
    contact = site.contact and present({"email": site.contact.email, "url": absolute_if(catalog, site.contact.url)})
    document = {
        # Clients MUST validate referenced schemas, so refer to the one that we serve.
        "$schema": catalog.absolute(SCHEMA_PATH),
        "specVersion": VERSION,
        "version": VERSION_1_0,
        "x-version": site.version if site.version != VERSION_1_0 else None,
        # RFC 3339, as required by 1.1's format date-time. A time without zone is UTC.
        "lastUpdated": updated and utc_text(updated, "seconds"),
        "name": site.name,
        "description": site.description,
        # Every path below starts at the origin, so that resolving it against baseUrl (1.0), appending it to baseUrl and
        # resolving it against this document's address (1.1) all give the same URL, also for a site below a path.
        "baseUrl": origin(catalog),
        "contact": contact or None,
        "conformanceLevel": level,
        "actions": described,
        "workflows": workflows or None,
        "rateLimit": _rate_limit(limit),
        # 1.1 only has minutes and hours.
        "rate_limits": {RATE_WINDOWS[limit.seconds]: limit.requests}
        if limit and limit.seconds in RATE_WINDOWS
        else None,
        "authentication": authentication,
        "security": security,
    }
    return extended(present(document), site.extensions, NAME)


def _site_level(catalog: Catalog, actions: Sequence[Action]) -> str | None:
    """Return the highest of 1.1's conformance levels that the whole site meets, None for none.

    L1: every action is a safe GET that reads. L2: writes have a preview or a dry run, and `security` documents CSRF.
    L3: in addition, every action has scopes, preconditions, a rate limit and schemas, and every write takes idempotency
    keys.
    """
    levels = {_action_level(catalog, action) for action in actions}
    if not levels or None in levels:
        return None
    is_transactional = all(
        (action.idempotency is not None or not action.is_write)
        and action.inputs
        and action.outputs
        and action.scopes
        and action.rate_limit
        and (action.preconditions or action.depends_on)
        for action in actions
    )
    if catalog.site.allowed_origins and is_transactional:
        return "L3"
    return "L2" if "L2" in levels else "L1"


def _action_level(catalog: Catalog, action: Action) -> str | None:
    """Return the lowest level at which a site may have this action, None if no level allows it."""
    method, _ = catalog.endpoint_of(action)
    if not action.is_write:
        return "L1" if method == "GET" and action.side_effect == "safe" else None
    has_preview = action.preview_url is not None or action.dry_run
    return "L2" if has_preview and catalog.site.allowed_origins else None


def _rate_limit(limit: RateLimit | None) -> dict[str, object] | None:
    """Return 1.0's `rateLimit`."""
    if limit is None:
        return None
    return present({"requests": limit.requests, "window": limit.window, "scope": limit.scope})


def _methods(catalog: Catalog) -> dict[str, object]:
    """Return the authentication methods in 1.1's terms."""
    declared, of_routes = catalog.site.authentication, methods_of_schemes(catalog)
    if declared is None and not of_routes:
        return {}
    named = (declared.methods or (declared.type or NO_METHOD,)) if declared is not None else ()
    named = tuple(dict.fromkeys((*named, *of_routes)))
    known = list(dict.fromkeys(METHODS[method] for method in named if method in METHODS))
    others = [method for method in named if method not in METHODS and method != NO_METHOD]
    return present({"methods": known or None, "x-methods": others or None})


def _action(
    catalog: Catalog, action: Action, level: str | None, methods_of_site: object, shared: Mapping[str, JsonObject]
) -> dict[str, object]:
    method, path = catalog.endpoint_of(action)
    address = located(catalog, path)
    # The site's methods apply unless an action names its own.
    methods = methods_of_route(action)
    own_methods = methods if methods != methods_of_site else None
    preconditions = [*action.preconditions, *(f"{one} has been called successfully." for one in action.depends_on)]
    limit = _rate_limit(action.rate_limit)
    fields = request_fields(catalog, action)
    page, has_selectors = selector_page(catalog, action), bool(action.selector or action.selectors or action.result)
    if has_selectors and page is None:  # they are of no use to anybody
        action = replace(action, selector=None, selectors={}, result=None)
    inputs, parameters = list[dict[str, object]](), list[dict[str, object]]()
    for field in fields:
        fact = _parameter(action, field)
        inputs.append({name: fact[name] for name in INPUT_MEMBERS if name in fact})
        if fact.get("format") in _FORMAT_NAMES:
            inputs[-1]["format"] = _FORMAT_NAMES[str(fact["format"])]
        kind, rules = str(fact["type"]), fact.get("validation")
        fact["type"] = TYPES_OF_1_0.get(kind, kind)
        if isinstance(rules, dict) and "enum" in rules:
            rules = {name: rule for name, rule in rules.items() if name != "enum"}
            fact = present(fact | {"validation": rules or None})
        parameters.append(fact)
        for one in (inputs[-1], fact) if field.marks else ():
            one.update(field.marks)
    route = catalog.own_route(action)
    encoding = route.content_type if route is not None else None
    # The default, 200 for a success, is left out.
    outputs = {
        "type": action.outputs.get("contentMediaType", JSON_TYPE) if action.outputs else None,
        "success_codes": [action.success_status] if action.success_status != 200 else None,
    }
    operation = None
    target = action.target
    is_route = target is not None and (method, path) == (target.method, target.path)  # OpenAPI only describes routes
    if catalog.openapi is not None and action.operation_id is not None and is_route:
        operation = {"documentUrl": located(catalog, catalog.openapi.path), "operationId": action.operation_id}
    schemas = {"in": request_schema(catalog, action, fields), "out": dict(answer_schema(action))}
    for member, schema in schemas.items():
        name = f"{action.id}.{member}"
        if shared.get(name) == schema and len(orjson.dumps(schema)) > MIN_SHARED:
            schemas[member] = {"$ref": f"{catalog.prefix}{schemas_address(catalog)}#/$defs/{name}"}
    described = present(
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
            "authentication_required": action.auth_required,
            "authentication": present({"required": True, "methods": own_methods or None})
            if action.auth_required
            else None,
            "authScopes": action.scopes or None,
            "idempotencyKeySupported": True if action.idempotency else None,
            "idempotencyKeyHeader": IDEMPOTENCY_HEADER if action.idempotency else None,
            "preconditions": preconditions or None,
            "rateLimit": limit,
            "rateLimitHint": {"requests": limit["requests"], "window": limit["window"]}
            if limit and level == "L3"
            else None,
            "previewUrl": located_if(catalog, action.preview_url),
            "dryRunSupported": action.dry_run or None,
            "conformanceLevel": _action_level(catalog, action),
            "parameters": parameters or None,
            "inputs": inputs or None,
            "x-one-of": _alternatives(action, fields) or None,
            "inputSchema": schemas["in"],
            "x-encoding": encoding if encoding != JSON_TYPE else None,
            "outputs": present(outputs) or None,
            "outputSchema": schemas["out"] or None,
            "result": action.result,
            "openapi": operation,
            "x-tags": action.tags or None,
            "x-page": located_if(catalog, page) if has_selectors and page != path else None,
        }
    )
    return extended(described, action.extensions, NAME)


def selector_page(catalog: Catalog, action: Action) -> str | None:
    """Return the page to which an action's selectors apply, None if nothing says which it is.

    That is the page that the owner names, the action's own, or the first that declares the action.
    """
    of_awas = action.extensions.get(NAME)
    for given in (of_awas if isinstance(of_awas, Mapping) else {}, action.extensions):
        named = given.get("x-page", given.get("page"))
        if isinstance(named, str):
            return named
    if action.page is not None:
        return action.page
    declaring = [page.path for page in catalog.pages if action.id in page.actions]
    return declaring[0] if declaring else None


def _alternatives(action: Action, fields: Sequence[Field]) -> list[list[str]]:
    """Return the parameters of each branch if an action's input is a union of objects, an empty list for any other."""
    facts = resolved(action.inputs, action.inputs)
    shapes = [object_facts(branch, action.inputs) for branch in branches(facts) if isinstance(branch, Mapping)]
    names = [{*members(shape), *members(facts)} for shape in shapes]
    if len(names) < 2 or all(one == names[0] for one in names):
        return []
    return [[field.name for field in fields if field.input_name in one] for one in names]


# --- Schemas: each once, in a separate document ---


def has_schemas(catalog: Catalog) -> bool:
    """Return True if the manifest may refer to schemas."""
    return catalog.publishes(NAME) and bool(catalog.actions)


def render_schemas(catalog: Catalog) -> dict[str, object]:
    """Return the schemas of all actions' inputs and answers.

    One with references into itself is a schema resource of its own (JSON Schema core 2020-12, section 8.2.1).
    """
    definitions = dict[str, object]()
    for name, schema in _schemas(catalog).items():
        is_resource = b'"$ref"' in orjson.dumps(schema) and any(references(schema)) and "$id" not in schema
        definitions[name] = {"$id": f"{SCHEMAS[1:]}?{name}", **schema} if is_resource else schema
    return {"$schema": DIALECT, "$id": catalog.absolute(schemas_address(catalog)), "$defs": definitions}


def _schemas(catalog: Catalog) -> dict[str, JsonObject]:
    both = ((action, {"in": action.inputs, "out": answer_schema(action)}) for action in catalog.actions)
    return {f"{action.id}.{member}": schema for action, schemas in both for member, schema in schemas.items() if schema}


# --- Parameters ---


def _parameter(action: Action, field: Field) -> dict[str, object]:
    """Return all facts about a parameter for both versions, in the order of 1.0 (Parameter Object)."""
    facts = resolved(field.schema, action.inputs)
    values = options(facts, action.inputs)
    kind = next(iter(kinds(facts, action.inputs)), FALLBACK_TYPE)
    rules: dict[str, object] = {}
    if not BOUNDS.isdisjoint(facts):
        if kind == "integer":  # for other numbers AWAS cannot express exclusive bounds
            for keyword, name, inside in EXCLUSIVE_BOUNDS:
                if isinstance(bound := facts.get(keyword), int):
                    rules[name] = bound + inside
        for keyword, name, types in VALIDATION:
            rule = facts.get(keyword)
            if isinstance(rule, types) and not isinstance(rule, bool):
                rules[name] = whole(rule)
    if values:
        rules["enum"] = values
    described = facts.get("description")
    if not isinstance(described, str) or not described:  # 1.0 requires one: use the title or the name in words
        title = facts.get("title")
        in_words = field.name.replace("_", " ").replace("-", " ").strip().capitalize()
        described = title if isinstance(title, str) and title else in_words
    shape, examples = facts.get("format"), field.examples or examples_in(facts)
    return present(
        {
            "name": field.name,
            "type": kind,
            "format": FORMATS.get(shape, shape) if isinstance(shape, str) else None,
            "required": field.required,
            "description": described,
            "selector": action.selectors.get(field.input_name),
            "validation": rules or None,
            "default": _as_kind(facts.get("default"), kind),
            "example": _as_kind(examples[0], kind) if examples else None,
            "enum": values or None,
            "x-types": union if len(union := kinds(facts, action.inputs)) > 1 else None,
            "x-encoding": encoding_of(facts),
            "x-items": _items(facts, action.inputs) if kind == "array" else None,
        }
    )


def _items(facts: JsonObject, root: JsonObject) -> dict[str, object] | None:
    """Return what the items of an array are: their type, format, encoding and values, and the members of objects."""
    item = resolved(facts.get("items"), root)
    found, shape = kinds(item, root), item.get("format")
    inside = object_facts(item, root)
    shown = {name: next(iter(kinds(resolved(one, root), root)), FALLBACK_TYPE) for name, one in members(inside).items()}
    described: dict[str, object] = {
        "type": found[0] if len(found) == 1 else found or None,
        "format": FORMATS.get(shape, shape) if isinstance(shape, str) else None,
        "x-encoding": encoding_of(item),
        "enum": options(item, root) or None,
        "properties": shown or None,
        "required": sorted(required_members(inside)) or None,
    }
    return present(described) or None


def _as_kind(value: object, kind: str) -> object:
    """Return a number for a text if the published type is numeric; models write Decimals as texts."""
    if isinstance(value, str) and kind in ("number", "integer"):
        with suppress(ValueError):
            number = float(value)
            return whole(number) if math.isfinite(number) else value
    return value


def examples_in(facts: JsonObject) -> list[object]:
    """Return the examples of a resolved schema, without null."""
    examples = facts.get("examples")
    return [value for value in examples if value is not None] if isinstance(examples, list) else []


def render_schema(catalog: Catalog) -> dict[str, object]:
    """Return the JSON Schema that the manifest's `$schema` names, with its own address as `$id`."""
    schema: dict[str, object] = orjson.loads(files("awp_publish.documents").joinpath("schemas/awas.json").read_bytes())
    dialect = schema.pop("$schema")
    schema.pop("$id", None)
    return {"$schema": dialect, "$id": catalog.absolute(SCHEMA_PATH), **schema}


# --- The manifests for MCP and A2A clients: AWAS 1.0, section "MCP and A2A Integration" ---
# They lead those clients to the catalogue of actions, which they MUST reference, and to the open doors; they are
# neither an MCP server card nor an A2A agent card. Deliberately not emitted: the samples' `$schema` (its address
# belongs to nobody, and clients MUST validate referenced schemas), "state_management" and "100% interoperability"
# (nothing measures them), `supported_agents`, and `protocol` and `integration` without such a door.

MCP_PATH: Final = "/.well-known/mcp-manifest.json"
A2A_PATH: Final = "/.well-known/a2a-manifest.json"

PARTNERS: Final = {"mcp": "MCP", "woa": "WoA", "awp": "AWP"}
"""Doors to the A2A sample's names for other protocols. A2A is compatible with itself."""


def render_mcp_manifest(catalog: Catalog) -> dict[str, object]:
    """Return the manifest for MCP clients, in the order of the sample."""
    site, door = catalog.site, catalog.door("mcp")
    capabilities = {
        "actions": bool(catalog.actions),
        "workflows": bool(site.workflows),
        "resources": door is not None,  # documents and pages
        "prompts": bool(catalog.prompts) and door is not None,
    }
    manifest = {
        "name": site.name,
        "version": site.version,
        "description": site.description,
        "capabilities": [name for name, is_on in capabilities.items() if is_on],
        # The catalogue MUST be referenced, the schema SHOULD be; then come all open doors.
        "endpoints": {
            "actions": located(catalog, ALIAS_PATH),
            "schema": located(catalog, SCHEMA_PATH),
            **_door_addresses(catalog),
        },
        "metadata": _metadata(catalog),
        "integration": {"protocol": "MCP", "version": door.version} if door else None,
    }
    return present(manifest) | extension_members(site.extensions)


def render_a2a_manifest(catalog: Catalog) -> dict[str, object]:
    """Return the manifest for A2A clients, in the order of the sample."""
    site, actions, door = catalog.site, catalog.actions, catalog.door("a2a")
    compatible = [name for partner, name in PARTNERS.items() if catalog.door(partner)]
    compatible += ["OpenAPI"] if catalog.openapi else []
    has_card = catalog.door("a2a") is not None and catalog.publishes("agent_card")
    card = {"agent_card": located(catalog, AGENT_CARD_PATHS[0])} if has_card else {}
    manifest = {
        "name": site.name,
        "version": site.version,
        "description": site.description,
        "protocol": "A2A" if door else None,
        "capabilities": {
            "actions": bool(actions),
            "workflows": bool(site.workflows),
            "authentication": any(action.auth_required for action in actions),
        },
        # The catalogue MUST be referenced, the schema SHOULD be; then come all open doors.
        "endpoints": {
            "actions_registry": located(catalog, ALIAS_PATH),
            "schema_definition": located(catalog, SCHEMA_PATH),
            "api_base": origin(catalog),
            **_door_addresses(catalog),
            **card,
        },
        "discovery": {"auto_discoverable": True, "discovery_endpoint": located(catalog, A2A_PATH)},
        "integration": {"a2a_version": door.version} if door else None,
        "metadata": _metadata(catalog),
        "interoperability": {"cross_protocol": bool(compatible), "compatible_with": compatible},
    }
    return present(manifest) | extension_members(site.extensions)


def _metadata(catalog: Catalog) -> dict[str, object]:
    """Return the `metadata` object of both manifests, with what the site declares."""
    site = catalog.site
    return present(
        {
            "homepage": catalog.url,
            "documentation": located_if(catalog, site.documentation),
            "license": site.license,
        }
    )


def _door_addresses(catalog: Catalog) -> dict[str, object]:
    """Return the live endpoints and the OpenAPI document by name, for `endpoints` of both manifests."""
    addresses: dict[str, object] = {door.protocol: located(catalog, door.path) for door in catalog.doors}
    if catalog.openapi:
        addresses["openapi"] = located(catalog, catalog.openapi.path)
    return addresses


# --- The documents ---

_MANIFEST: Final = to_json(render)

PROTOCOL = Protocol(
    NAME,
    documents=(
        Document(PATH, MEDIA_TYPE, _MANIFEST, "ai-actions", "AWAS actions", MAX_AGE, HEADERS, door="plain"),
        Document(ALIAS_PATH, MEDIA_TYPE, _MANIFEST, max_age=MAX_AGE, headers=HEADERS, door="plain"),
        # The text names no media type for the schema; JSON is what the manifest is served as.
        Document(SCHEMA_PATH, MEDIA_TYPE, to_json(render_schema), max_age=MAX_AGE, headers=HEADERS),
    ),
)

SCHEMAS_PROTOCOL = Protocol(
    "schemas",
    documents=(
        Document(
            "/agents" + SCHEMAS,
            SCHEMAS_TYPE,
            to_json(render_schemas),
            max_age=MAX_AGE,
            condition=has_schemas,
            moved=schemas_address,
            door="plain",
        ),
    ),
)

MCP_MANIFEST = Protocol(
    "mcp",
    documents=(
        Document(
            MCP_PATH, MEDIA_TYPE, to_json(render_mcp_manifest), max_age=MAX_AGE, condition=is_published, door="mcp"
        ),
    ),
)

A2A_MANIFEST = Protocol(
    "a2a",
    documents=(
        Document(
            A2A_PATH, MEDIA_TYPE, to_json(render_a2a_manifest), max_age=MAX_AGE, condition=is_published, door="a2a"
        ),
    ),
)
