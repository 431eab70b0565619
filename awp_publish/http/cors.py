"""CORS for the doors: a list of origins, without credentials."""

from collections.abc import Iterable
from typing import Final

from awp_publish.http.exchange import Fields, RawHeaders, Reply

ANY_ORIGIN: Final = (b"access-control-allow-origin", b"*")

PREFLIGHT_MAX_AGE: Final = b"86400"


def preflight(methods: str, origin: bytes = b"*", extra: RawHeaders = (), headers: bytes = b"*") -> Reply:
    """Return the answer to a CORS preflight or any other OPTIONS request."""
    return Reply(
        204,
        (
            (b"allow", methods.encode()),
            (b"access-control-allow-origin", origin),
            (b"access-control-allow-methods", methods.encode()),
            (b"access-control-allow-headers", headers),
            (b"access-control-max-age", PREFLIGHT_MAX_AGE),
            *extra,
        ),
    )


_EXPOSED: Final = (
    b"access-control-expose-headers",
    b"X-Request-Id, Location, Retry-After, Link, WWW-Authenticate, RateLimit, RateLimit-Policy, "
    b"Idempotent-Replayed, AWP-Receipt, AWP-Session, AWP-Content-Type, ETag, Last-Modified, X-Total-Count, "
    b"Mcp-Session-Id",
)

_ALLOWED: Final = b"*, Authorization"
"""Any header, and Authorization, which "*" does not include (Fetch, section 3.2.3)."""


class Cors:
    """The CORS headers for a list of origins; "*" admits all."""

    def __init__(self, origins: Iterable[str]) -> None:
        self._origins = frozenset(origins)
        self.is_closed = not self._origins

    def headers(self, fields: Fields) -> RawHeaders:
        if not self._origins:
            return ()
        if "*" in self._origins:
            return ((b"access-control-allow-origin", b"*"), _EXPOSED)
        vary = ((b"vary", b"Origin"),)
        origin = fields.get(b"origin")
        if origin is None or origin.decode("latin-1") not in self._origins:
            return vary
        return ((b"access-control-allow-origin", origin), _EXPOSED, *vary)

    def preflight(self, fields: Fields, methods: str) -> Reply:
        allowed = dict(self.headers(fields)).get(b"access-control-allow-origin")
        if allowed is None:
            return Reply(204, ((b"allow", methods.encode()),))
        return preflight(methods, allowed, ((b"vary", b"Origin"),), _ALLOWED)
