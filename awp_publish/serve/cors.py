"""CORS for the doors: an explicit list of origins, never credentials."""

from collections.abc import Iterable
from typing import Final

from awp_publish.serve.reply import Fields, RawHeaders, Reply, preflight

_EXPOSED: Final = (
    b"access-control-expose-headers",
    b"X-Request-Id, Location, Retry-After, Link, WWW-Authenticate, RateLimit, RateLimit-Policy, "
    b"Idempotent-Replayed, AWP-Receipt",
)


_ALLOWED: Final = b"*, Authorization"
"""Any header, and the one that "*" does not mean (Fetch, section 3.2.3)."""


class Cors:
    """Which origins' pages may call from a browser; "*" for all."""

    def __init__(self, origins: Iterable[str]) -> None:
        self._origins = frozenset(origins)

    def headers(self, fields: Fields) -> RawHeaders:
        """What an answer to this request carries."""
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
        """The answer to OPTIONS."""
        allowed = dict(self.headers(fields)).get(b"access-control-allow-origin")
        if allowed is None:
            return Reply(204, ((b"allow", methods.encode()),))
        return preflight(methods, allowed, ((b"vary", b"Origin"),), _ALLOWED)
