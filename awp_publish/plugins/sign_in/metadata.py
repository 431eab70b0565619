"""OAuth 2.0 Authorization Server Metadata (RFC 8414), from which clients learn where people sign in.

A site below a path owns nothing above it, so its metadata is below that path; clients find it there at the address of
OpenID Connect Discovery, whose well-known part is appended. Deliberately not emitted: `jwks_uri` (tokens are opaque),
`userinfo_endpoint` and ID tokens (nobody learns who the person is).
"""

from collections.abc import Mapping, Sequence
from typing import Final

from awp_publish.documents.members import absolute_if, extension_members, present
from awp_publish.documents.protocol import Document, Protocol, to_json
from awp_publish.model import Authentication, Catalog
from awp_publish.plugins.sign_in.options import Client, SignIn
from awp_publish.plugins.sign_in.paths import SignInPaths

PATH: Final = "/.well-known/oauth-authorization-server"
APPENDED: Final = "/.well-known/openid-configuration"
MEDIA_TYPE: Final = "application/json"

AUTHORIZE: Final = "authorize"
TOKEN: Final = "token"
CONNECTIONS: Final = "connections"
"""Names of our endpoints among those of `Authentication`."""


def is_published(catalog: Catalog) -> bool:
    """Return True if the site is its own authorization server."""
    authentication = catalog.site.authentication
    return authentication is not None and authentication.is_own_server


def is_below_a_path(catalog: Catalog) -> bool:
    """Return True for such a site whose address has a path."""
    return is_published(catalog) and bool(catalog.prefix)


def members_of(
    options: SignIn, paths: SignInPaths, algorithms: Sequence[str], scopes: Sequence[str]
) -> Mapping[str, object]:
    """Return the members that depend on the options. Keys of clients sign with these `algorithms`, if any."""
    clients = [client for client in options.clients if isinstance(client, Client)]
    own = ["client_credentials"] if any(client.scopes and (client.secret or client.key) for client in clients) else []
    methods = [
        "none",
        *(("client_secret_basic", "client_secret_post") if any(client.secret for client in clients) else ()),
        *(("private_key_jwt",) if algorithms else ()),
    ]
    signed = list(algorithms) or None
    grants = ["authorization_code", "refresh_token", *own]
    return {
        "authorization_endpoint": paths.authorize,
        "token_endpoint": paths.token,
        "registration_endpoint": paths.register if options.register else None,
        "revocation_endpoint": paths.revoke,
        "scopes_supported": scopes or None,
        "grant_types_supported": grants,
        "token_endpoint_auth_methods_supported": methods,
        "token_endpoint_auth_signing_alg_values_supported": signed,
        "revocation_endpoint_auth_methods_supported": methods,
        "revocation_endpoint_auth_signing_alg_values_supported": signed,
        "dpop_signing_alg_values_supported": signed,  # RFC 9449 section 5.1
    }


def render(catalog: Catalog) -> dict[str, object]:
    """Return the metadata (section 2)."""
    authentication = catalog.site.authentication or Authentication()
    own = authentication.own_server or {}
    document = {
        "issuer": next(iter(authentication.authorization_servers), catalog.url),
        **{
            name: catalog.absolute(value) if name.endswith("_endpoint") and isinstance(value, str) else value
            for name, value in own.items()
        },
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,  # RFC 9207 section 3
        "client_id_metadata_document_supported": True,
        "service_documentation": absolute_if(catalog, catalog.site.documentation),
    }
    return present(document) | extension_members(catalog.site.extensions)


PROTOCOL = Protocol(
    "authorization_server",
    documents=(
        Document(PATH, MEDIA_TYPE, to_json(render), condition=is_published),
        Document(APPENDED, MEDIA_TYPE, to_json(render), condition=is_below_a_path),
    ),
)
