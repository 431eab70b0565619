"""OAuth 2.0 Protected Resource Metadata: RFC 9728, which says where tokens for the site come from.

Published if authorization servers are known (declared, or from the routes' OpenID Connect), or if routes have security
schemes of their own. These are published as an extension (`x-security-schemes`; section 2 allows other members),
because the token endpoint of a password flow is not an authorization server, and API keys have none. A site whose
callers only use credentials that were handed to them has no such document.

The site is one resource and its MCP endpoint another, because MCP clients request tokens for exactly the address that
they call, and accept no other metadata (section 3.3). Section 3.1 puts the well-known part between host and path of the
resource. A site below a path owns nothing above it, so its documents are below that path, and challenges name their
full addresses (`resource_metadata`, section 5.1), which clients follow first. Deliberately not emitted: `jwks_uri`,
members about signed answers and metadata (nothing is signed), and policy addresses that are not declared.
"""

from collections.abc import Sequence
from typing import Final, cast

from awp_publish.documents.members import (
    PROTECTED_RESOURCE_PATH,
    absolute_if,
    extension_members,
    present,
    schemes_of_routes,
)
from awp_publish.documents.protocol import Document, Protocol, to_json
from awp_publish.model import Catalog, Paths

PATH: Final = PROTECTED_RESOURCE_PATH
MEDIA_TYPE: Final = "application/json"
MCP: Final = "mcp"
TOKEN_LOCATIONS: Final = ("header",)
"""Tokens in forms and addresses (RFC 6750 sections 2.2 and 2.3) are not accepted."""


def issuers_of(catalog: Catalog) -> tuple[str, ...]:
    """Return the authorization servers: those that the site declares, else those of the routes' OpenID Connect."""
    declared = catalog.site.authentication
    if declared is not None and declared.authorization_servers:
        return declared.authorization_servers
    addresses = (scheme.get("openIdConnectUrl") for scheme in schemes_of_routes(catalog).values())
    suffix = "/.well-known/openid-configuration"  # OpenID Connect Discovery 1.0, section 4
    issuers = (
        address.removesuffix(suffix) for address in addresses if isinstance(address, str) and address.endswith(suffix)
    )
    return tuple(dict.fromkeys(issuers))


def is_published(catalog: Catalog) -> bool:
    """Return True if there are authorization servers, or routes with security schemes of their own."""
    return bool(issuers_of(catalog) or schemes_of_routes(catalog))


def is_published_of_mcp(catalog: Catalog) -> bool:
    """Return True if the MCP endpoint has a document of its own."""
    return is_published(catalog) and catalog.door(MCP) is not None


def metadata_url(catalog: Catalog) -> str | None:
    """Return the address for challenges (section 5.1), None without a document."""
    return catalog.absolute(PATH) if is_published(catalog) else None


def render(catalog: Catalog, resource: str | None = None) -> dict[str, object]:
    """Return the metadata of the site, or of a `resource` at another address of it (section 2)."""
    site = catalog.site
    authentication = site.authentication
    scopes = sorted({scope for action in catalog.actions for scope in action.scopes})
    if (
        authentication is not None and (own := authentication.own_server) is not None
    ):  # what nobody can allow, nobody should ask for
        scopes = [scope for scope in scopes if scope in cast(Sequence[str], own["scopes_supported"] or ())]
    schemes = schemes_of_routes(catalog)
    takes_tokens = any(
        scheme.get("type") in ("oauth2", "openIdConnect") or scheme.get("scheme") == "bearer"
        for scheme in schemes.values()
    )
    document = {
        "resource": resource or catalog.url,
        "authorization_servers": list(issuers_of(catalog)) or None,
        "scopes_supported": scopes or None,
        "bearer_methods_supported": list(TOKEN_LOCATIONS) if takes_tokens or issuers_of(catalog) else None,
        "resource_name": site.name,
        "resource_documentation": absolute_if(catalog, site.documentation),
        # RFC 9449 section 5.2: key-bound tokens
        "dpop_signing_alg_values_supported": list(authentication.proof_algorithms) or None
        if authentication is not None
        else None,
        "dpop_bound_access_tokens_required": True
        if authentication is not None and authentication.proof_required
        else None,
        "x-security-schemes": schemes or None,
    }
    return present(document) | extension_members(site.extensions)


_OF_MCP: Final = Document(
    PATH + Paths().mcp,
    MEDIA_TYPE,
    to_json(lambda catalog: render(catalog, catalog.absolute(catalog.paths.mcp))),
    condition=is_published_of_mcp,
    moved=lambda catalog: PATH + catalog.paths.mcp,
    door=MCP,
)

PROTOCOL = Protocol(
    "protected_resource", documents=(Document(PATH, MEDIA_TYPE, to_json(render), condition=is_published), _OF_MCP)
)
