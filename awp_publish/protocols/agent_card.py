"""The A2A agent card: Agent2Agent protocol 1.0, section "Agent Discovery: The Agent Card", as ProtoJSON.

Published only while the A2A door is open. Skills of A2A have no schemas and messages no selector, so a declared
extension (docs/a2a.md) carries the schemas, and says how a message names its skill. Deliberately not emitted: fields of
0.3 (`url`, `preferredTransport`), which the schema of a 1.0 card forbids; `signatures` (nothing is signed).
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import orjson

from awp_publish.model import Action, Authentication, Catalog, Door
from awp_publish.protocols.members import extension_members, present
from awp_publish.protocols.protocol import Document, Protocol, to_json

PATH: Final = "/.well-known/agent-card.json"
MEDIA_TYPE: Final = "application/json"
DOOR: Final = "a2a"
BINDINGS: Final = ("JSONRPC", "HTTP+JSON")
"""Both are spoken at one address: JSON-RPC at the address itself, HTTP+JSON below it. The first is preferred."""

EXTENSION: Final = "skills"
"""Where the extension is explained, below the address of the door: that is its URI."""

INPUT_MODES: Final = ("application/json", "text/plain")
OUTPUT_MODES: Final = ("application/json", "text/plain")
DEFAULT_TAG: Final = "action"


def is_published(catalog: Catalog) -> bool:
    """Whether the site has a card: one whose A2A door is open has."""
    return catalog.door(DOOR) is not None


def extension_uri(catalog: Catalog) -> str:
    """What names the extension that selects skills."""
    return f"{catalog.absolute(catalog.paths.a2a)}/{EXTENSION}"


def render(catalog: Catalog) -> dict[str, object]:
    """The card, in the order of the specification's message."""
    site, schemes = catalog.site, _security_schemes(catalog)
    card = {
        "name": site.name,
        "description": site.description,
        "supportedInterfaces": [_interface(catalog, door, binding) for door in _doors(catalog) for binding in BINDINGS],
        "provider": _provider(catalog),
        "version": site.version,
        "documentationUrl": _absolute(catalog, site.documentation),
        "capabilities": _capabilities(catalog),
        "securitySchemes": schemes or None,
        "defaultInputModes": list(INPUT_MODES),
        "defaultOutputModes": list(OUTPUT_MODES),
        "skills": [_skill(action, schemes) for action in catalog.actions],
    }
    return present(card)


def _doors(catalog: Catalog) -> list[Door]:
    return [door for door in catalog.doors if door.protocol == DOOR]


def _interface(catalog: Catalog, door: Door, binding: str) -> dict[str, object]:
    return {"url": catalog.absolute(door.path), "protocolBinding": binding, "protocolVersion": door.version}


def _provider(catalog: Catalog) -> dict[str, object] | None:
    """Both members are required of a provider, so there is one only where the contact has an address on the web."""
    contact = catalog.site.contact
    if contact is None or contact.url is None:
        return None
    return {"url": _absolute(catalog, contact.url), "organization": catalog.site.name}


def _capabilities(catalog: Catalog) -> dict[str, object]:
    return {
        "streaming": True,
        "pushNotifications": False,
        "extensions": [
            {
                "uri": extension_uri(catalog),
                "description": 'A data part {"skill": "<id>", "input": {...}} selects a skill and carries its input.',
                "required": False,
                "params": _parameters(catalog),
            }
        ],
        "extendedAgentCard": False,
    }


def _parameters(catalog: Catalog) -> dict[str, object]:
    """A card has no room for members of a site's own: they stand here."""
    skills = {action.id: _schemas(action) for action in catalog.actions}
    return {"skills": skills} | extension_members(catalog.site.extensions)


def _schemas(action: Action) -> dict[str, object]:
    """What goes in, what comes out, and what a caller has to reckon with."""
    return present(
        {
            "inputSchema": action.inputs,
            "outputSchema": action.outputs,
            "execution": action.execution,
            "confirmation": True if action.needs_confirmation else None,
            "idempotencyKey": action.idempotency.key_field if action.idempotency else None,
            "dependsOn": list(action.depends_on) or None,
        }
    )


def _skill(action: Action, schemes: Mapping[str, object]) -> dict[str, object]:
    scopes = {"list": list(action.scopes)} if action.scopes else {}
    required = [{"schemes": {name: scopes}} for name in schemes] if action.auth_required else []
    return present(
        {
            "id": action.id,
            "name": action.name,
            "description": action.description,
            "tags": list(action.tags) or [DEFAULT_TAG],
            "examples": [_example(action, given) for given in action.examples] or None,
            "inputModes": list(INPUT_MODES),
            "outputModes": list(OUTPUT_MODES),
            "securityRequirements": required or None,
        }
    )


def _example(action: Action, given: Mapping[str, object]) -> str:
    """An example is a text: the very data part that calls the skill."""
    return orjson.dumps({"skill": action.id, "input": given}).decode()


# --- How callers make themselves known ---


def _security_schemes(catalog: Catalog) -> dict[str, object]:
    declared = catalog.site.authentication
    if declared is None:
        return {}
    kinds = {declared.type, *declared.methods}
    schemes = {
        "bearer": _bearer(declared) if kinds & {"bearer", "jwt"} else None,
        "api_key": _api_key(declared) if "api_key" in kinds else None,
        "oauth2": _oauth2(catalog, declared) if kinds & {"oauth2", "oauth"} else None,
        "session": _session(declared) if "session" in kinds else None,
    }
    return present(schemes)


def _bearer(declared: Authentication) -> dict[str, object]:
    form = {"bearerFormat": "JWT"} if "jwt" in declared.methods else {}
    return {"httpAuthSecurityScheme": {"scheme": "Bearer", **form}}


def _api_key(declared: Authentication) -> dict[str, object] | None:
    """A scheme has to name the header, so a site that has not told it has none."""
    if declared.api_key_header is None:
        return None
    return {"apiKeySecurityScheme": {"location": "header", "name": declared.api_key_header}}


def _session(declared: Authentication) -> dict[str, object] | None:
    """A session is a key in a cookie, for sites that have told the cookie's name."""
    if declared.session_cookie is None:
        return None
    return {"apiKeySecurityScheme": {"location": "cookie", "name": declared.session_cookie}}


def _oauth2(catalog: Catalog, declared: Authentication) -> dict[str, object]:
    """A flow has to name its endpoints; where they are not declared, the authorization server's metadata does."""
    flows = _flows(catalog, declared)
    metadata = next((_metadata_url(issuer) for issuer in declared.authorization_servers), None)
    if flows is None:
        told = {"description": f"Tokens of {metadata}."} if metadata else {}
        return {"httpAuthSecurityScheme": {**told, "scheme": "Bearer"}}
    return {"oauth2SecurityScheme": present({"flows": flows, "oauth2MetadataUrl": metadata})}


def _flows(catalog: Catalog, declared: Authentication) -> dict[str, object] | None:
    """The one flow that the declared endpoints make: a SecurityScheme has room for no more."""
    token, authorize = (_absolute(catalog, declared.endpoints.get(name)) for name in ("token", "authorize"))
    if token is None:
        return None
    scopes = {scope: scope for action in catalog.actions for scope in action.scopes}
    refresh = _absolute(catalog, declared.refresh_endpoint)
    flow = present({"tokenUrl": token, "refreshUrl": refresh, "scopes": scopes})
    if authorize is None:
        return {"clientCredentials": flow}
    return {"authorizationCode": {"authorizationUrl": authorize, **flow}}


def _metadata_url(issuer: str) -> str:
    """Where an authorization server tells of itself (RFC 8414 section 3.1)."""
    parts = urlsplit(issuer)
    return f"{parts.scheme}://{parts.netloc}/.well-known/oauth-authorization-server{parts.path.rstrip('/')}"


def _absolute(catalog: Catalog, address: str | None) -> str | None:
    return catalog.absolute(address) if address is not None and address.startswith("/") else address


PROTOCOL = Protocol(
    "agent_card",
    documents=(Document(PATH, MEDIA_TYPE, to_json(render), "describedby", "A2A agent card", condition=is_published),),
)
