"""OAuth 2.0 Protected Resource Metadata: RFC 9728, which says where tokens for the site come from.

Published only where authorization servers are declared: for other sites it would say nothing. Section 3.1 puts the
well-known part between host and path of the resource. A site below a path owns nothing above that path, so there the
document stands below it, and challenges name its whole address (`resource_metadata`, section 5.1), which is what
clients follow first. Deliberately not emitted: `jwks_uri` and what is about signed answers and metadata (nothing is
signed), and policy addresses that no site has declared.
"""

from typing import Final

from awp_publish.model import Catalog
from awp_publish.protocols.members import extension_members, present
from awp_publish.protocols.protocol import Document, Protocol, to_json

PATH: Final = "/.well-known/oauth-protected-resource"
MEDIA_TYPE: Final = "application/json"
BEARER_METHODS: Final = ("header",)
"""Tokens in forms and in addresses (RFC 6750 sections 2.2 and 2.3) are not taken."""


def is_published(catalog: Catalog) -> bool:
    """Whether the site has a document of this kind: one with authorization servers has."""
    return bool(_authorization_servers(catalog))


def metadata_url(catalog: Catalog) -> str | None:
    """The address that challenges name, None where there is no document (section 5.1)."""
    return catalog.absolute(PATH) if is_published(catalog) else None


def render(catalog: Catalog) -> dict[str, object]:
    """The metadata (section 2)."""
    site = catalog.site
    scopes = sorted({scope for action in catalog.actions for scope in action.scopes})
    document = {
        "resource": catalog.url,
        "authorization_servers": list(_authorization_servers(catalog)) or None,
        "scopes_supported": scopes or None,
        "bearer_methods_supported": list(BEARER_METHODS),
        "resource_name": site.name,
        "resource_documentation": _absolute(catalog, site.documentation),
    }
    return present(document) | extension_members(site.extensions)


def _authorization_servers(catalog: Catalog) -> tuple[str, ...]:
    authentication = catalog.site.authentication
    return authentication.authorization_servers if authentication else ()


def _absolute(catalog: Catalog, address: str | None) -> str | None:
    return catalog.absolute(address) if address is not None and address.startswith("/") else address


PROTOCOL = Protocol(
    "protected_resource", documents=(Document(PATH, MEDIA_TYPE, to_json(render), condition=is_published),)
)
