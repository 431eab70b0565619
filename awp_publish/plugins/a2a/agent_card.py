"""The A2A agent card: Agent2Agent protocol 1.0, section "Agent Discovery: The Agent Card", as ProtoJSON.

Published only while the A2A door is open; clients of 0.2 and 0.3 read a card of their own, at the address of 0.2. In
A2A skills have no schemas, and messages cannot select a skill; so a declared extension (docs/a2a.md) has the schemas
and says how a message names its skill. Deliberately not emitted: fields of 0.3 (`url`, `preferredTransport`) in the
card of 1.0, whose schema forbids them; `signatures` (nothing is signed).
"""

from collections.abc import Mapping
from itertools import product
from typing import Final, cast

import orjson

from awp_publish.documents.members import (
    AGENT_CARD_PATHS,
    absolute_if,
    extension_members,
    metadata_of,
    own_metadata,
    present,
    scheme_name,
    schemes_of_routes,
    sign_in_of,
)
from awp_publish.documents.protocol import Document, Protocol, to_json
from awp_publish.model import Action, Catalog, JsonObject, Paths
from awp_publish.schema.files import file_inputs

PATH, OLDER_PATH = AGENT_CARD_PATHS
OLDER_VERSION: Final = "0.3.0"
MEDIA_TYPE: Final = "application/json"
DOOR: Final = "a2a"
PUSHES: Final = "push_notifications"
"""The feature of the door, with which it sends push notifications: that of a site with the plug-in "events"."""

BINDINGS: Final = ("JSONRPC", "HTTP+JSON")
"""Both bindings have one address: JSON-RPC at the address itself, HTTP+JSON below it. The first is preferred."""

EXTENSION: Final = "/skills"
"""The path of the page that explains the extension, below the door's address; its URL is the extension's URI."""

EXTENSION_TYPE: Final = "text/markdown; charset=utf-8"
EXTENSION_TEXT: Final = """\
# Selecting a skill

A message to this agent selects a skill with one data part:

    {"skill": "<id of a skill of the agent card>", "input": {...}}

The id may stand in the message's metadata instead; then the data part is the input. A text that is this JSON counts as
the data part. The schemas of each skill's input
and output are in the params of this extension on the agent card. Beside `input` may stand `idempotency_key`,
`confirmation` (the token that an input-required task hands out, once a person has agreed), `receipts`, and `session`
(the awp-session that metadata.headers of a task hands out). Messages of one context that the agent has named have one
session without that.
Any other text is the input where it can be nothing else.

The params of this extension may have events of the site, too. A message names one as it names a skill; its input are
the values that are wanted. Its task goes on until it is cancelled: each occurrence is an artifact of it, in its stream,
in SubscribeToTask and in push notifications.
"""

INPUT_MODES: Final = ("application/json", "text/plain")
FILE_MODE: Final = "application/octet-stream"
"""The mode of skills that take files, which may be of any type."""

OUTPUT_MODES: Final = ("application/json", "text/plain")
DEFAULT_TAG: Final = "action"


def is_published(catalog: Catalog) -> bool:
    """Return True while the A2A door is open."""
    return catalog.door(DOOR) is not None


def extension_uri(catalog: Catalog) -> str:
    return catalog.absolute(extension_path(catalog))


def extension_path(catalog: Catalog) -> str:
    """Return the path of the page that explains the extension, wherever the site has put the door."""
    return catalog.paths.a2a + EXTENSION


def render(catalog: Catalog) -> dict[str, object]:
    """Return the card, in the order of the specification's message."""
    site, contact, of_routes = catalog.site, catalog.site.contact, schemes_of_routes(catalog)
    schemes, variants = _schemes_of(of_routes)
    own = {
        name if name not in schemes else f"site_{name}": scheme for name, scheme in _security_schemes(catalog).items()
    }
    schemes |= own
    interfaces = [
        {"url": catalog.absolute(door.path), "protocolBinding": binding, "protocolVersion": door.version}
        for door in catalog.doors
        if door.protocol == DOOR
        for binding in BINDINGS
    ]
    provider = None
    if contact is not None and contact.url is not None:  # both members are required of a provider
        provider = {"url": absolute_if(catalog, contact.url), "organization": site.name}
    contracts, skills = dict[str, object](), list[object]()
    for action in catalog.actions:
        # A2A has no place for schemas and the other facts that callers need.
        contracts[action.id] = present(
            {
                "inputSchema": action.inputs,
                "outputSchema": action.outputs,
                "execution": action.execution,
                "confirmation": True if action.needs_confirmation else None,
                "idempotencyKey": action.idempotency.key_field if action.idempotency else None,
                "dependsOn": list(action.depends_on) or None,
            }
        )
        # An example is a text: the data part that calls the skill.
        examples = [orjson.dumps({"skill": action.id, "input": example}).decode() for example in action.examples]
        scopes = {"list": list(action.scopes)} if action.scopes else {}
        required = [{"schemes": {name: scopes}} for name in own] if action.auth_required else []
        if action.route_authenticates and (alternatives := requirements_of(catalog, action, of_routes)):
            required = [
                {
                    "schemes": dict(
                        zip(chosen, ({"list": scopes} if scopes else {} for scopes in way.values()), strict=True)
                    )
                }
                for way in alternatives
                for chosen in product(*(variants.get(name, ()) for name in way))
            ]
        skill = {
            "id": action.id,
            "name": action.name,
            "description": action.description,
            "tags": list(action.tags) or [DEFAULT_TAG],
            "examples": examples or None,
            "inputModes": [*INPUT_MODES, *([FILE_MODE] if next(file_inputs(action.inputs), None) else [])],
            "outputModes": list(OUTPUT_MODES),
            "securityRequirements": required or None,
        }
        skills.append(present(skill))
    # Events are named like skills, but their tasks go on until they are cancelled.
    events = {
        event.id: {"description": event.description, "inputSchema": event.inputs, "outputSchema": event.payload}
        for event in catalog.events
        if event.is_for(None) and event.id not in contracts
    }
    extension = {
        "uri": extension_uri(catalog),
        "description": 'A data part {"skill": "<id>", "input": {...}} selects a skill and carries its input.',
        "required": False,
        # A card cannot have members of the site's own, so these are here.
        "params": {"skills": contracts} | ({"events": events} if events else {}) | extension_members(site.extensions),
    }
    card = {
        "name": site.name,
        "description": site.description,
        "supportedInterfaces": interfaces,
        "provider": provider,
        "version": site.version,
        "documentationUrl": absolute_if(catalog, site.documentation),
        "capabilities": {
            "streaming": True,
            "pushNotifications": any(PUSHES in door.features for door in catalog.doors),
            "extensions": [extension],
            "extendedAgentCard": False,
        },
        "securitySchemes": schemes or None,
        "defaultInputModes": list(INPUT_MODES),
        "defaultOutputModes": list(OUTPUT_MODES),
        "skills": skills,
    }
    return present(card)


def _schemes_of(of_routes: Mapping[str, JsonObject]) -> tuple[dict[str, object], dict[str, list[str]]]:
    """Return the routes' schemes in A2A's terms, and the names that each of them has there.

    An OAuth scheme has several flows in OpenAPI but only one in A2A (a oneof), so each further flow is a scheme.
    """
    schemes: dict[str, object] = {}
    variants: dict[str, list[str]] = {}
    for name, scheme in of_routes.items():
        described = {"description": scheme.get("description")}
        match scheme.get("type"):
            case "apiKey":
                key = {**described, "location": scheme.get("in"), "name": scheme.get("name")}
                variants_of_scheme: dict[str, object] = {name: {"apiKeySecurityScheme": present(key)}}
            case "http":
                http = {**described, "scheme": scheme.get("scheme"), "bearerFormat": scheme.get("bearerFormat")}
                variants_of_scheme = {name: {"httpAuthSecurityScheme": present(http)}}
            case "openIdConnect":
                connect = {**described, "openIdConnectUrl": scheme.get("openIdConnectUrl")}
                variants_of_scheme = {name: {"openIdConnectSecurityScheme": present(connect)}}
            case "oauth2":
                flows = scheme.get("flows")
                listed = list(flows.items()) if isinstance(flows, Mapping) else []
                variants_of_scheme = {
                    name if not number else f"{name}_{kind}": {
                        "oauth2SecurityScheme": present({**described, "flows": {kind: flow}})
                    }
                    for number, (kind, flow) in enumerate(listed)
                }
            case _:
                continue
        schemes |= variants_of_scheme
        variants[name] = list(variants_of_scheme)
    return schemes, variants


def render_older(catalog: Catalog) -> dict[str, object]:
    """Return the card for clients of A2A 0.2 and 0.3 (0.3 section 5.5), which speak JSON-RPC at the same address."""
    card = render(catalog)
    schemes: dict[str, object] = {}
    for name, wrapped in cast(dict[str, object], card.get("securitySchemes", {})).items():
        for kind, scheme in cast(dict[str, dict[str, object]], wrapped).items():
            own = {_OLDER_NAMES.get(member, member): value for member, value in scheme.items()}
            schemes[name] = {"type": _OLDER_TYPES[kind], **own}
    skills = cast(list[dict[str, object]], card["skills"])
    older = {
        "protocolVersion": OLDER_VERSION,
        "name": card["name"],
        "description": card["description"],
        "url": catalog.absolute(catalog.paths.a2a),
        "preferredTransport": BINDINGS[0],
        "provider": card.get("provider"),
        "version": card["version"],
        "documentationUrl": card.get("documentationUrl"),
        "capabilities": {"streaming": True, "pushNotifications": False},
        "securitySchemes": schemes or None,
        "defaultInputModes": card["defaultInputModes"],
        "defaultOutputModes": card["defaultOutputModes"],
        "skills": [
            {name: value for name, value in skill.items() if name != "securityRequirements"} for skill in skills
        ],
    }
    return present(older)


_OLDER_TYPES: Final = {
    "httpAuthSecurityScheme": "http",
    "apiKeySecurityScheme": "apiKey",
    "oauth2SecurityScheme": "oauth2",
    "openIdConnectSecurityScheme": "openIdConnect",
    "mtlsSecurityScheme": "mutualTLS",
}
_OLDER_NAMES: Final = {"location": "in"}
"""0.3 spells security schemes as OpenAPI does."""


def _security_schemes(catalog: Catalog) -> dict[str, object]:
    """Return the declared schemes; one that needs the name of a header or cookie is left out without it."""
    declared = catalog.site.authentication
    if declared is None:
        return {}
    kinds = {declared.type, *declared.methods}
    schemes: dict[str, object] = {}
    if kinds & {"bearer", "jwt"}:
        form = {"bearerFormat": "JWT"} if "jwt" in declared.methods else {}
        schemes["bearer"] = {"httpAuthSecurityScheme": {"scheme": "Bearer", **form}}
    if "api_key" in kinds and declared.api_key_header is not None:
        schemes["api_key"] = {"apiKeySecurityScheme": {"location": "header", "name": declared.api_key_header}}
    if kinds & {"oauth2", "oauth"}:
        # The one flow that the declared endpoints allow; without a token endpoint, the authorization server's tokens.
        metadata = next((metadata_of(issuer) for issuer in declared.authorization_servers), None)
        if declared.is_own_server:
            metadata = own_metadata(catalog)
        flows = flows_of(catalog)
        if not flows:
            described = {"description": f"Tokens of {metadata}."} if metadata else {}
            schemes["oauth2"] = {"httpAuthSecurityScheme": {**described, "scheme": "Bearer"}}
        else:
            schemes["oauth2"] = {"oauth2SecurityScheme": present({"flows": flows, "oauth2MetadataUrl": metadata})}
    if "session" in kinds and declared.session_cookie is not None:
        begun = sign_in_of(catalog)
        described = {"description": f"Begin a session with {begun}, which sets this cookie."} if begun else {}
        cookie = {**described, "location": "cookie", "name": declared.session_cookie}
        schemes["session"] = {"apiKeySecurityScheme": cookie}
    return schemes


def flows_of(catalog: Catalog) -> dict[str, object]:
    """Return how tokens are got from the declared endpoints, as the flows of an OAuth scheme in OpenAPI."""
    declared = catalog.site.authentication
    endpoints = declared.endpoints if declared is not None else {}
    token, authorize = (absolute_if(catalog, endpoints.get(name)) for name in ("token", "authorize"))
    if declared is None or token is None:
        return {}
    needed = {scope: declared.scopes.get(scope, scope) for action in catalog.actions for scope in action.scopes}
    refresh = absolute_if(catalog, declared.refresh_endpoint)
    flow = present({"tokenUrl": token, "refreshUrl": refresh, "scopes": {**declared.scopes, **needed}})
    if authorize is None:
        return {"clientCredentials": flow}
    return {"authorizationCode": {"authorizationUrl": authorize, **flow}}


def requirements_of(
    catalog: Catalog, action: Action, schemes: Mapping[str, dict[str, object]]
) -> list[dict[str, list[str]]]:
    """Return the alternative ways to authenticate at an action's route, in terms of the names in `schemes`."""
    return [
        {
            scheme_name(schemes, catalog, name, action.security_schemes[name]): list(scopes)
            for name, scopes in alternative.items()
            if name in action.security_schemes
        }
        for alternative in action.security
    ]


PROTOCOL = Protocol(
    "agent_card",
    documents=(
        Document(PATH, MEDIA_TYPE, to_json(render), "describedby", "A2A agent card", condition=is_published, door=DOOR),
        Document(OLDER_PATH, MEDIA_TYPE, to_json(render_older), condition=is_published, door=DOOR),
        Document(
            Paths().a2a + EXTENSION,
            EXTENSION_TYPE,
            lambda catalog: EXTENSION_TEXT.encode(),
            title="How an A2A message selects a skill",
            condition=is_published,
            moved=extension_path,
        ),
    ),
)
