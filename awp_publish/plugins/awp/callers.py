"""Callers of a connection: how they prove who they are, and what remains of it."""

import re
import secrets
import time
from dataclasses import dataclass, field
from typing import Final

from awp_publish.browsing.errors import AwpError, refuse
from awp_publish.calls.application_users import ApplicationUser, SessionUser
from awp_publish.calls.call import Principal, Signed, key_of
from awp_publish.calls.sent_secrets import ApiKey
from awp_publish.http.credentials import read_credentials
from awp_publish.http.exchange import Pair, Scope, read_fields, with_header
from awp_publish.plugin import Context
from awp_publish.plugins.awp.shared_secrets import SharedSecret
from awp_publish.problems import InvalidCredentials

SCOPES: Final = (
    "som:read",
    "page:act",
    "page:evaluate",
    "session:write",
    "network:configure",
    "skills:invoke",
)
"""Paper, Table 3."""

DEFAULT_SCOPES: Final = frozenset(SCOPES) - {"page:evaluate", "network:configure"}

AUTH_METHODS: Final = ("auth.none", "auth.bearer", "auth.hmac")

_TOKEN: Final = re.compile(r"[!-~]+")


VERIFY_SECONDS: Final = 60.0
"""Seconds after which a connection's caller is identified again: a token may have been revoked."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller, and how it was identified: the header or the signature that its calls repeat.

    `since` is the monotonic time at which the caller was identified.
    """

    method: str
    principal: Principal | None
    header: Pair | None = None
    signed: Signed | None = None
    since: float = field(default_factory=time.monotonic, compare=False)

    @property
    def id(self) -> str:
        """The id of the known caller, or ""."""
        return key_of(self.principal)

    @property
    def scopes(self) -> frozenset[str]:
        """Return the caller's permissions at this door."""
        scopes = self.principal.scopes.intersection(SCOPES) if self.principal is not None else None
        return scopes or DEFAULT_SCOPES

    def need(self, scope: str, method: str) -> None:
        """Raise AwpError PERMISSION_DENIED unless the caller has a scope; "" needs none."""
        if scope and scope not in self.scopes:
            details = {"required_scope": scope, "method": method, "scopes": sorted(self.scopes)}
            raise AwpError("PERMISSION_DENIED", f"{method} needs the scope {scope}.", details)


class AwpCallers:
    """Identifies callers. `methods` are the authentication methods that awp.hello accepts."""

    def __init__(self, door: Context) -> None:
        kinds = door.guards.authenticators
        self._identify = door.guards.identify()
        self._proxies = door.admission.trusted_proxies
        # The header for a token in awp.hello, or None if no authenticator reads one.
        others = (SharedSecret, SessionUser, ApplicationUser, ApiKey)
        reads_bearer = any(not isinstance(kind, others) for kind in kinds)
        if reads_bearer or any(action.route_authenticates for action in door.catalog.actions):
            self._token_header: str | None = "authorization"
        else:
            self._token_header = next((kind.header.lower() for kind in kinds if isinstance(kind, ApiKey)), None)
        signs = any(isinstance(kind, SharedSecret) for kind in kinds)
        available = {"auth.none": True, "auth.bearer": self._token_header is not None, "auth.hmac": signs}
        self.methods = [method for method in AUTH_METHODS if available[method]]

    async def identify(self, scope: Scope, auth: object, challenge: str) -> Identity:
        """Identify the caller of a connection: `scope` is its upgrade request, `auth` that of awp.hello.

        Raises AwpError for an unreadable `auth`, and the Problem of an authenticator for wrong credentials.
        """
        credentials = {"method": "auth.none"} if auth is None else auth
        if not isinstance(credentials, dict):
            refuse("auth must be an object with a method.", param="auth")
        method = credentials.get("method", credentials.get("type"))
        if method not in AUTH_METHODS:
            refuse(
                f"auth.method must be one of {', '.join(AUTH_METHODS)}.",
                param="auth.method",
                methods=list(AUTH_METHODS),
            )
        if method not in self.methods:
            raise AwpError("UNSUPPORTED", f"This site does not accept {method}.", {"methods": self.methods})

        def read(name: str) -> str:
            text = credentials.get(name)
            if not isinstance(text, str) or not 0 < len(text) <= 20_000:
                refuse(f"Missing required param: auth.{name}", param=f"auth.{name}")
            return text

        header = signed = None
        if method == "auth.bearer":
            token, name = read("token"), self._token_header or "authorization"
            if not _TOKEN.fullmatch(token):
                refuse("auth.token must be visible ASCII characters.", param="auth.token")
            header = name.encode("latin-1"), f"{'Bearer ' if name == 'authorization' else ''}{token}".encode("ascii")
        elif method == "auth.hmac":
            signed = Signed(read("key_id"), challenge, read("signature"))
        return await self._identity(scope, method, header, signed)

    async def verify(self, scope: Scope, identity: Identity) -> Identity:
        """Identify a known caller again, after VERIFY_SECONDS and when its token has expired.

        Raises the Problem of an authenticator if the credentials are no longer valid.
        """
        caller = identity.principal
        if caller is None or not (time.monotonic() - identity.since >= VERIFY_SECONDS or caller.has_expired()):
            return identity
        current = await self._identity(scope, identity.method, identity.header, identity.signed)
        if current.id != identity.id:
            raise InvalidCredentials("The credentials of this connection are no longer valid.")
        return current

    async def _identity(self, scope: Scope, method: str, header: Pair | None, signed: Signed | None) -> Identity:
        fields = read_fields(with_header(scope["headers"], header))
        credentials = read_credentials(scope, fields, self._proxies)._replace(signed=signed)
        return Identity(method, await self._identify(credentials), header, signed)


def new_challenge() -> str:
    """Return a text for a caller to sign once."""
    return secrets.token_urlsafe(24)
