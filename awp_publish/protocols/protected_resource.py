"""OAuth 2.0 Protected Resource Metadata: RFC 9728, which says where tokens for the site come from.

Published where authorization servers are known, declared or by the routes' OpenID Connect, and where routes have
security schemes of their own, which it then tells as an extension (`x-security-schemes`, section 2: other members are
allowed): a password flow's token endpoint is no authorization server, and an API key has none. For sites whose callers
only show what was handed to them there is no such document. The site is one resource, its MCP endpoint another, because
MCP clients ask for tokens for the very address that they call, and take no metadata of any other (section 3.3). Section
3.1 puts the well-known part between host and path of the resource. A site below a path owns nothing above that path, so
there the documents stand below it, and challenges name their whole addresses (`resource_metadata`, section 5.1), which
is what clients follow first. Deliberately not emitted: `jwks_uri` and what is
about signed answers and metadata (nothing is signed), and policy addresses that no site has declared.
"""

from typing import Final

from awp_publish.model import Catalog, Paths
from awp_publish.protocols.members import absolute_if, extension_members, issuers_of, present, schemes_of_routes
from awp_publish.protocols.protocol import Document, Protocol, to_json

PATH: Final = "/.well-known/oauth-protected-resource"
MEDIA_TYPE: Final = "application/json"
MCP: Final = "mcp"
BEARER_METHODS: Final = ("header",)
"""Tokens in forms and in addresses (RFC 6750 sections 2.2 and 2.3) are not taken."""


def is_published(catalog: Catalog) -> bool:
    """Return True for a site with authorization servers, or with routes that know their callers themselves."""
    return bool(issuers_of(catalog) or schemes_of_routes(catalog))


def is_published_of_mcp(catalog: Catalog) -> bool:
    """Return True where the MCP endpoint has a document of its own."""
    return is_published(catalog) and catalog.door(MCP) is not None


def metadata_url(catalog: Catalog) -> str | None:
    """The address that challenges name, None where there is no document (section 5.1)."""
    return catalog.absolute(PATH) if is_published(catalog) else None


def metadata_url_of_mcp(catalog: Catalog) -> str | None:
    """The same for challenges at the MCP endpoint."""
    return catalog.absolute(path_of_mcp(catalog)) if is_published_of_mcp(catalog) else None


def path_of_mcp(catalog: Catalog) -> str:
    """The path of the MCP endpoint's document, which follows that of the endpoint."""
    return PATH + catalog.paths.mcp


def render(catalog: Catalog, resource: str | None = None) -> dict[str, object]:
    """Return the metadata of the site, or of a `resource` at another address of it (section 2)."""
    site = catalog.site
    known = site.authentication
    scopes = sorted({scope for action in catalog.actions for scope in action.scopes})
    schemes = schemes_of_routes(catalog)
    takes_tokens = any(
        one.get("type") in ("oauth2", "openIdConnect") or one.get("scheme") == "bearer" for one in schemes.values()
    )
    document = {
        "resource": resource or catalog.url,
        "authorization_servers": list(issuers_of(catalog)) or None,
        "scopes_supported": scopes or None,
        "bearer_methods_supported": list(BEARER_METHODS) if takes_tokens or issuers_of(catalog) else None,
        "resource_name": site.name,
        "resource_documentation": absolute_if(catalog, site.documentation),
        # RFC 9449 section 5.2: tokens that are bound to a key
        "dpop_signing_alg_values_supported": list(known.proof_algorithms) or None if known is not None else None,
        "dpop_bound_access_tokens_required": True if known is not None and known.proof_required else None,
        "x-security-schemes": schemes or None,
    }
    return present(document) | extension_members(site.extensions)


_OF_MCP: Final = Document(
    PATH + Paths().mcp,
    MEDIA_TYPE,
    to_json(lambda catalog: render(catalog, catalog.absolute(catalog.paths.mcp))),
    condition=is_published_of_mcp,
    moved=path_of_mcp,
    door=MCP,
)

PROTOCOL = Protocol(
    "protected_resource", documents=(Document(PATH, MEDIA_TYPE, to_json(render), condition=is_published), _OF_MCP)
)
