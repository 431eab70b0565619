"""Rules and members that our manifests share.

Unknown facts are absent members; paths that a client resolves against the origin include the path of the site's url;
members that a site adds are marked `x-`, or given for one document by name, and never replace our own.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlsplit

from awp_publish.model import EXTENDED_DOCUMENTS, Catalog, JsonObject, Page, with_addresses
from awp_publish.problems import AuthenticationRequired, InvalidCredentials, code_of
from awp_publish.schema.large_numbers import EXACT

SESSION_HEADER: Final = "AWP-Session"
"""The header of a session's id, in answers that begin one and in the calls of callers without cookies."""

EXTENSION_PREFIX: Final = "x-"

AGENT_JSON_PATH: Final = "/agent.json"
AI_CATALOG_PATH: Final = "/.well-known/ai-catalog.json"
ARD_PATH: Final = "/.well-known/ard.json"
AWAS_PATH: Final = "/.well-known/ai-actions.json"
AWAS_ALIAS_PATH: Final = "/.well-known/awas.json"
AWAS_VERSION: Final = "1.1"
LLMS_TXT_PATH: Final = "/llms.txt"
MCP_CARD_TYPE: Final = "application/mcp-server-card+json"
PROTECTED_RESOURCE_PATH: Final = "/.well-known/oauth-protected-resource"
WOA_PATH: Final = "/.well-known/woa.json"
WOA_TYPE: Final = "application/woa+json"
"""Paths and types of documents to which other documents refer."""

AGENT_CARD_PATHS: Final = ("/.well-known/agent-card.json", "/.well-known/agent.json")
"""The paths of the A2A agent card: of version 1.0, and of earlier versions."""

MCP_CARD_SUFFIX: Final = "/server-card"
"""What follows the path of the MCP endpoint in that of its card."""

SITE_ACTION: Final = "actions_site"
"""The action that calls others through the map of the site's pages: of no use to callers who can call them directly."""

SOM_TYPE: Final = "application/som+json"


def unlinked_recoveries(catalog: Catalog) -> dict[str, str]:
    """Return the recoveries, by code, that name no document, of problems whose own names one that is left out."""
    left_out = [path for path in (AGENT_JSON_PATH, WOA_PATH) if catalog.documents and path not in catalog.documents]
    if not left_out:
        return {}
    return {
        code_of(kind.slug): kind.unlinked_recovery
        for kind in catalog.problems
        if kind.unlinked_recovery and any(path in kind.default_recovery for path in left_out)
    }


def present(members: Mapping[str, object]) -> dict[str, object]:
    """Return the members that have a value: an unknown fact is an absent member, not null."""
    return {name: value for name, value in members.items() if value is not None}


def whole(value: object) -> object:
    """Return a whole number as an integer: 20, not 20.0; as it is where doubles are no longer exact."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < EXACT else value


def extension_members(extensions: JsonObject) -> dict[str, object]:
    """Return a site's own members, marked with `x-` as AWAS requires (section Extensions)."""
    return {
        EXTENSION_PREFIX + name.removeprefix(EXTENSION_PREFIX): value
        for name, value in extensions.items()
        if name not in EXTENDED_DOCUMENTS
    }


def extended(document: Mapping[str, object], extensions: JsonObject, name: str) -> dict[str, object]:
    """Add a site's own members to a document or an action: those marked `x-`, and those for this document."""
    own = extensions.get(name)
    marked = completed(document, extension_members(extensions))
    return completed(marked, own) if isinstance(own, Mapping) else marked


def completed(document: JsonObject, own: JsonObject) -> dict[str, object]:
    """Add members to an object and the objects in it, without replacing any."""
    result = dict(document)
    for name, value in own.items():
        ours = result.get(name)
        if name not in result:
            result[name] = value
        elif isinstance(ours, Mapping) and isinstance(value, Mapping):
            result[name] = completed(ours, value)
    return result


SIGN_IN: Final = ("login", "sign_in", "sign-in", "signin")
"""Names of the endpoint at which sessions begin."""

BEARER_METHODS: Final = frozenset({"bearer", "jwt", "oauth", "oauth2"})
"""Methods whose credentials are sent in the header Authorization."""

_WITHOUT_COOKIES: Final = {"or_header": SESSION_HEADER}
"""How callers that keep no cookies go on: with the value that this header has in the answer of the sign-in."""


def sign_in_of(catalog: Catalog) -> str | None:
    """Return the action that begins a session, or the address at which one begins; None if unknown."""
    declared = catalog.site.authentication
    endpoints = declared.endpoints if declared else {}
    address = next((endpoints[name] for name in SIGN_IN if name in endpoints), None)
    for action in catalog.actions:
        is_there = address is not None and action.target is not None and action.target.path == address
        if is_there and action.is_write and action.is_exposed_at("woa"):
            return action.id
    return located_if(catalog, address)


def credentials_of(catalog: Catalog) -> list[dict[str, object]] | None:
    """Return how callers authenticate: method, header or cookie, and how to get the credentials; None if unknown."""
    declared = catalog.site.authentication
    ways: list[dict[str, object]] = []
    methods = (declared.methods or ((declared.type,) if declared.type else ())) if declared is not None else ()
    for method in methods:
        assert declared is not None
        way: dict[str, object | None] = {"method": method}
        if method in BEARER_METHODS:
            way |= {"in": "header", "name": "Authorization", "scheme": "Bearer"}
            if declared.is_own_server and method == "oauth":
                way |= {"metadata": own_metadata(catalog), "scopes": dict(declared.scopes) or None}
        elif method == "api_key":
            way |= {"in": "header", "name": declared.api_key_header}
        elif method == "session":
            if declared.is_own_server and catalog.sign_in is None:
                continue  # it is begun by people in their browsers, and agents have tokens
            way |= {"in": "cookie", "name": declared.session_cookie, "sign_in": sign_in_of(catalog)}
            way |= _WITHOUT_COOKIES
        if way.get("name") or way.get("sign_in"):  # otherwise it is of no use
            ways.append(present(way))
    ways += [way for scheme in schemes_of_routes(catalog).values() if (way := way_of(scheme)) and way not in ways]
    return ways or None


def own_recoveries(catalog: Catalog) -> dict[str, str]:
    """Return what a caller does whom a site with tokens or sessions of its own refuses, by code."""
    required, invalid = code_of(AuthenticationRequired.slug), code_of(InvalidCredentials.slug)
    own, authentication = dict[str, str](), catalog.site.authentication
    if (source := catalog.token_source) is not None:
        recovery = f"Call {source.id}, then call again with the token of its answer: Authorization: Bearer ..."
        own = {required: recovery, invalid: recovery}
    if authentication is not None and authentication.is_own_server:
        recovery = (
            "Let the person you act for sign in: get a token from the server that resource_metadata in "
            "WWW-Authenticate names (OAuth 2 with PKCE), then call again with Authorization: Bearer ..."
        )
        own = {required: recovery, invalid: recovery}
    elif (action := catalog.sign_in) is not None:
        own[required] = (
            f"Call {action.id}, then call again with the cookies that its answer sets. If you keep no cookies, send "
            f"its {SESSION_HEADER} instead: in the header {SESSION_HEADER}, or as session beside the input."
        )
    return own


def metadata_of(issuer: str) -> str:
    """Return the address of an authorization server's metadata: its well-known part stands between host and path
    (RFC 8414 section 3.1).
    """
    parts = urlsplit(issuer)
    return f"{parts.scheme}://{parts.netloc}/.well-known/oauth-authorization-server{parts.path.rstrip('/')}"


def own_metadata(catalog: Catalog) -> str:
    """Return the address of the metadata of the site's own authorization server.

    A site below a path owns nothing above it; its metadata is where OpenID Connect Discovery has it (section 4).
    """
    declared = catalog.site.authentication
    issuer = declared.authorization_servers[0] if declared is not None else catalog.url
    return f"{issuer}/.well-known/openid-configuration" if urlsplit(issuer).path else metadata_of(issuer)


def schemes_of_routes(catalog: Catalog) -> dict[str, dict[str, object]]:
    """Return the security schemes of the actions' routes, as in OpenAPI, with absolute addresses.

    Different schemes with the same name, as in mounted applications, are numbered.
    """
    schemes: dict[str, dict[str, object]] = {}
    for action in (action for action in catalog.actions if action.security_schemes):
        for name, scheme in action.security_schemes.items():
            schemes.setdefault(scheme_name(schemes, catalog, name, scheme), _absolute(catalog, scheme))
    return schemes


def scheme_name(schemes: Mapping[str, object], catalog: Catalog, name: str, scheme: JsonObject) -> str:
    """Return the name that a route's scheme has, or gets, among those in `schemes`."""
    number, candidate, described = 1, name, _absolute(catalog, scheme)
    while candidate in schemes and schemes[candidate] != described:
        number += 1
        candidate = f"{name}_{number}"
    return candidate


def _absolute(catalog: Catalog, scheme: JsonObject) -> dict[str, object]:
    return with_addresses(scheme, lambda address: catalog.absolute(address) if address[:1] == "/" else address)


def way_of(scheme: JsonObject) -> dict[str, object]:
    """Return how callers authenticate with a route's security scheme."""
    authorization = {"in": "header", "name": "Authorization"}
    match scheme.get("type"):
        case "apiKey":
            way = {"method": "api_key", "in": scheme.get("in"), "name": scheme.get("name")}
            return way | _WITHOUT_COOKIES if scheme.get("in") == "cookie" else way
        case "http":
            kind = str(scheme.get("scheme", "")).capitalize()
            facts = {
                "method": kind.lower(),
                **authorization,
                "scheme": kind,
                "bearerFormat": scheme.get("bearerFormat"),
            }
        case "oauth2":
            facts = {"method": "oauth", **authorization, "scheme": "Bearer", "flows": scheme.get("flows")}
        case "openIdConnect":
            address = scheme.get("openIdConnectUrl")
            facts = {"method": "oauth", **authorization, "scheme": "Bearer", "openIdConnectUrl": address}
        case _:
            return {}
    return present(facts)


def methods_of_schemes(catalog: Catalog) -> list[str]:
    """Return the methods of the routes' schemes in the terms of AWAS and agent.json, without duplicates."""
    ways = filter(None, map(way_of, schemes_of_routes(catalog).values()))
    return list(dict.fromkeys(str(way["method"]) for way in ways))


def located(catalog: Catalog, address: str) -> str:
    """Return an address below the site as an origin-relative path; an absolute URL is unchanged."""
    return catalog.prefix + address if address.startswith("/") else address


def located_if(catalog: Catalog, address: str | None) -> str | None:
    return None if address is None else located(catalog, address)


def absolute_if(catalog: Catalog, address: str | None) -> str | None:
    """Return the absolute URL of an address below the site; an absolute URL is unchanged."""
    return catalog.absolute(address) if address is not None and address.startswith("/") else address


def markdown_address(catalog: Catalog, page: Page) -> str:
    """Return the address of a page's Markdown: that of the page followed by `.md` or `index.md`."""
    path, mark, query = page.path.partition("?")
    return catalog.absolute(f"{path}{'index' if path.endswith('/') else ''}.md{mark}{query}")


def som_address(catalog: Catalog, path: str) -> str:
    """Return the address of the SOM of the page at a path below the site."""
    return f"{catalog.absolute(catalog.paths.som)}?url={quote(urlsplit(catalog.url).path + path)}"


SCHEMAS: Final = "/schemas.json"


def schemas_address(catalog: Catalog) -> str:
    """Return the path of the document with the schemas to which manifests refer."""
    return catalog.paths.root + SCHEMAS


def are_schemas_published(catalog: Catalog) -> bool:
    """Return True if manifests may refer to that document."""
    return bool(catalog.documents) and catalog.publishes("awas") and catalog.publishes("schemas")
