"""auth.md: how callers identify themselves, for people and models."""

from typing import Final

from awp_publish.documents.members import PROTECTED_RESOURCE_PATH, credentials_of, own_metadata, sign_in_of
from awp_publish.documents.protocol import Document, Protocol
from awp_publish.model import Catalog
from awp_publish.plugins.discovery.prose import one_line
from awp_publish.plugins.discovery.sitemaps import MARKDOWN

AUTH_PATH: Final = "/auth.md"


def has_credentials(catalog: Catalog) -> bool:
    """Return True if it is known how callers authenticate."""
    return credentials_of(catalog) is not None


def render_auth(catalog: Catalog) -> bytes:
    """Return auth.md, which tells agents how to authenticate."""
    site, declared = catalog.site, catalog.site.authentication
    lines = ["# auth.md", "", f"How agents authenticate with {one_line(site.name)}.", ""]
    for way in credentials_of(catalog) or ():
        if way.get("in") == "header":
            scheme = f"{way['scheme']} " if "scheme" in way else ""
            source = catalog.token_source if scheme == "Bearer " else None
            token = f" The action `{source.id}` answers with the token." if source is not None else ""
            lines.append(f"- **{way['method']}**: send the header `{way['name']}: {scheme}...`.{token}")
        else:
            begins = f" Begin one with {way['sign_in']}." if "sign_in" in way else ""
            cookie = f" It sets the cookie `{way['name']}`." if "name" in way else ""
            lines.append(
                f"- **{way['method']}**: requests belong to a session.{begins}{cookie} Callers that keep "
                "no cookies send the `AWP-Session` header of its answer with each request."
            )
    if declared is not None and declared.authorization_servers:
        issuers = ", ".join(declared.authorization_servers)
        lines += ["", f"Tokens are issued by {issuers}; see {catalog.absolute(PROTECTED_RESOURCE_PATH)} (RFC 9728)."]
        if declared.is_own_server:
            server, own = own_metadata(catalog), declared.endpoints["connections"]
            lines += [
                "",
                "People sign in on this site's own pages and allow an agent to act for them; no agent ever gets their "
                f"password. {server} describes the server (RFC 8414): authorization code with PKCE (S256). Clients use "
                "a client ID metadata document, or register. People see and revoke what they have allowed at "
                f"{catalog.absolute(own)}.",
            ]
            for scope, words in declared.scopes.items():
                lines += [f"- scope `{scope}`: {one_line(words)}"]
    needing = [action for action in catalog.actions if action.auth_required]
    if needing:
        lines += ["", "## Actions that require authentication", ""]
        for action in needing:
            scopes = f" with the scopes {', '.join(action.scopes)}" if action.scopes else ""
            lines.append(f"- `{action.id}`{scopes}")
    if (begun := sign_in_of(catalog)) and not (declared is not None and declared.is_own_server):
        lines += ["", f"To sign in: {begun}."]
    return ("\n".join(lines) + "\n").encode()


AUTH_MD: Final = Protocol(
    "auth_md", documents=(Document(AUTH_PATH, MARKDOWN, render_auth, condition=has_credentials, is_fallback=True),)
)
