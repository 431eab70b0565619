"""security.txt (RFC 9116)."""

from datetime import datetime
from typing import Final

from awp_publish.documents.members import absolute_if
from awp_publish.documents.protocol import Document, Protocol
from awp_publish.model import Catalog
from awp_publish.plugins.discovery.robots import TEXT

SECURITY_PATH: Final = "/.well-known/security.txt"


def has_security(catalog: Catalog) -> bool:
    """Return True if the site says where to report vulnerabilities."""
    return catalog.site.security is not None


def render_security(catalog: Catalog) -> bytes:
    """Return security.txt, in the order of RFC 9116 section 2.5."""
    security = catalog.site.security
    if security is None or not isinstance(security.expires, datetime):
        return b""
    lines = [f"Contact: {absolute_if(catalog, contact)}" for contact in security.contact]
    lines.append(f"Expires: {security.expires.isoformat(timespec='seconds').replace('+00:00', 'Z')}")
    lines += [f"Preferred-Languages: {', '.join(security.languages)}"] if security.languages else []
    lines.append(f"Canonical: {catalog.absolute(SECURITY_PATH)}")
    lines += [f"Policy: {absolute_if(catalog, security.policy)}"] if security.policy else []
    return ("\n".join(lines) + "\n").encode()


SECURITY: Final = Protocol(
    "security_txt",
    documents=(Document(SECURITY_PATH, TEXT, render_security, condition=has_security, is_fallback=True),),
)
