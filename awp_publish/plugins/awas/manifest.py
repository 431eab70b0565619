"""AWAS, the AI-readable Web Action Standard: the wiki's specification 1.0 and the schema of its successor 1.1.

One manifest is the union of both, so that readers of either accept it: 1.0 requires `path` and `parameters`, 1.1
`endpoint`, `type` and `inputs`. In 1.0 `version` is the version of the specification, so it is always "1.0"; the site's
own is `x-version`, and also in the bridge manifests. A fact for which both versions have a member is in both; others
are in one place: descriptions and examples in `parameters`, `rateLimitHint` at level L3.

Parameters are what a plain HTTP client sends to `path` (`plain_request`): the action's inputs at the plain door, or
those of its own route with their wire names. Longer schemas are in a separate document, to which the manifest refers.
`x-page` is the page to which an action's selectors apply if that is not its `path`; selectors of which no page is known
are left out. What no member of a parameter can say is in members of ours: `x-encoding` (base64), `x-items` (what an
array has), `x-types` (a union of types), and an action's `x-one-of` (which parameters go together if its input is a
union of objects). Deliberately not emitted:
`error_codes` (how a route fails is not declared), `outputs.schema` (it is `outputSchema`), `openapi.$ref` (the
operationId already identifies the operation), `burst_limit` and `concurrent_requests` (there are no such limits), and
null as a parameter type (1.1 forbids it).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from typing import Final

import orjson

from awp_publish.documents.members import (
    AWAS_ALIAS_PATH,
    AWAS_PATH,
    AWAS_VERSION,
    absolute_if,
    are_schemas_published,
    credentials_of,
    extended,
    located,
    located_if,
    methods_of_schemes,
    present,
    schemas_address,
    schemes_of_routes,
    way_of,
)
from awp_publish.documents.plain_request import IDEMPOTENCY_HEADER, Field, request_fields
from awp_publish.documents.protocol import Document, Protocol, to_json
from awp_publish.model import Action, Catalog, JsonObject, RateLimit, utc_text
from awp_publish.plugins.awas.parameters import FORMAT_NAMES, INPUT_MEMBERS, TYPES_OF_1_0, describe_parameter
from awp_publish.plugins.awas.schemas import (
    MAX_AGE,
    MEDIA_TYPE,
    NAME,
    SCHEMA_PATH,
    render_schema,
    request_schema,
    schemas_by_name,
)
from awp_publish.schema.embedding import answer_schema
from awp_publish.schema.reading import branches, members, object_facts, resolved

PATH: Final = AWAS_PATH

VERSION: Final = AWAS_VERSION

VERSION_1_0: Final = "1.0"

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

MIN_SHARED: Final = 120
"""Bytes of a schema from which on a reference to it is shorter."""


def render(catalog: Catalog) -> dict[str, object]:
    """Return the manifest: 1.1's members in the order of its schema, 1.0's beside those that mean the same."""
    site, limit = catalog.site, catalog.site.rate_limit
    actions = catalog.actions
    updated = site.updated and (site.updated if site.updated.tzinfo else site.updated.replace(tzinfo=UTC))
    level = _site_level(catalog, actions)
    methods = _methods(catalog)
    shared = schemas_by_name(catalog) if are_schemas_published(catalog) else {}
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
        "baseUrl": catalog.url.removesuffix(catalog.prefix),
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
    methods = list(dict.fromkeys(METHODS[method] for method in named if method in METHODS))
    others = [method for method in named if method not in METHODS and method != NO_METHOD]
    return present({"methods": methods or None, "x-methods": others or None})


def _methods_of_route(action: Action) -> list[str]:
    """Return the methods with which callers authenticate at an action's route, from its security schemes."""
    if not action.route_authenticates:
        return []
    if action.security_schemes:
        ways = filter(None, map(way_of, action.security_schemes.values()))
        methods = ("session" if way.get("in") == "cookie" else str(way["method"]) for way in ways)
        return list(dict.fromkeys(methods))
    names = []
    for place, name in action.route_credentials:
        names.append("session" if place == "cookie" else "bearer" if name == "authorization" else "api_key")
    return list(dict.fromkeys(names))


def _action(
    catalog: Catalog, action: Action, level: str | None, methods_of_site: object, shared: Mapping[str, JsonObject]
) -> dict[str, object]:
    method, path = catalog.endpoint_of(action)
    address = located(catalog, path)
    # The site's methods apply unless an action names its own.
    methods = _methods_of_route(action)
    own_methods = methods if methods != methods_of_site else None
    preconditions = [
        *action.preconditions,
        *(f"{required} has been called successfully." for required in action.depends_on),
    ]
    limit = _rate_limit(action.rate_limit)
    fields = request_fields(catalog, action)
    page, has_selectors = selector_page(catalog, action), bool(action.selector or action.selectors or action.result)
    if has_selectors and page is None:  # they are of no use to anybody
        action = replace(action, selector=None, selectors={}, result=None)
    inputs, parameters = list[dict[str, object]](), list[dict[str, object]]()
    for field in fields:
        fact = describe_parameter(action, field)
        inputs.append({name: fact[name] for name in INPUT_MEMBERS if name in fact})
        if fact.get("format") in FORMAT_NAMES:
            inputs[-1]["format"] = FORMAT_NAMES[str(fact["format"])]
        kind, rules = str(fact["type"]), fact.get("validation")
        fact["type"] = TYPES_OF_1_0.get(kind, kind)
        if isinstance(rules, dict) and "enum" in rules:
            rules = {name: rule for name, rule in rules.items() if name != "enum"}
            fact = present(fact | {"validation": rules or None})
        parameters.append(fact)
        for part in (inputs[-1], fact) if field.marks else ():
            part.update(field.marks)
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
    for extensions in (of_awas if isinstance(of_awas, Mapping) else {}, action.extensions):
        named = extensions.get("x-page", extensions.get("page"))
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
    if len(names) < 2 or all(group == names[0] for group in names):
        return []
    return [[field.name for field in fields if field.input_name in group] for group in names]


_MANIFEST: Final = to_json(render)

PROTOCOL = Protocol(
    NAME,
    documents=(
        Document(PATH, MEDIA_TYPE, _MANIFEST, "ai-actions", "AWAS actions", MAX_AGE, HEADERS, door="plain"),
        Document(AWAS_ALIAS_PATH, MEDIA_TYPE, _MANIFEST, max_age=MAX_AGE, headers=HEADERS, door="plain"),
        # The text names no media type for the schema; JSON is what the manifest is served as.
        Document(SCHEMA_PATH, MEDIA_TYPE, to_json(render_schema), max_age=MAX_AGE, headers=HEADERS),
    ),
)
