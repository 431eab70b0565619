"""Who speaks at the AWP door, what they may do, and the handshake `awp.hello`."""

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import awp_publish
from awp_publish.browsing.errors import AwpError, refuse
from awp_publish.browsing.observing import FORMATS
from awp_publish.model import Browsing, Catalog, JsonObject
from awp_publish.policy.authentication import (
    ApiKey,
    ApplicationUser,
    Authenticator,
    Credentials,
    Principal,
    SessionUser,
    SharedSecret,
    Signed,
)
from awp_publish.policy.guard import Enforcement
from awp_publish.serve.awp.messages import MUTATION
from awp_publish.serve.credentials import (
    TrustedProxies,
    read_credentials,
)
from awp_publish.serve.http import Scope, read_fields

# --- Who speaks at the AWP door, and what they may do ---
# Callers are known by what the upgrade request shows, as at every other door, or by the `auth` of awp.hello. A caller
# whose scopes name some of AWP's own has these and no others; everybody else has those of DEFAULT.

SCOPES: Final = (
    "som:read",
    "page:act",
    "page:evaluate",
    "session:write",
    "network:configure",
    "skills:invoke",
)
"""Paper, Table 3."""

DEFAULT: Final = frozenset(SCOPES) - {"page:evaluate", "network:configure"}

_TOKEN: Final = re.compile(r"[!-~]+")

METHODS: Final = ("auth.none", "auth.bearer", "auth.hmac")

Pair: TypeAlias = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Identity:
    """Who speaks: the caller if they are known, how, and with what a call of theirs shows it again."""

    method: str
    principal: Principal | None
    header: Pair | None = None
    signed: Signed | None = None

    @property
    def id(self) -> str:
        """The known caller's id, "" for nobody."""
        return self.principal.id if self.principal is not None else ""

    @property
    def scopes(self) -> frozenset[str]:
        """What they may do at this door."""
        named = self.principal.scopes.intersection(SCOPES) if self.principal is not None else None
        return named or DEFAULT

    def need(self, scope: str, method: str) -> None:
        """Raises AwpError PERMISSION_DENIED without that scope; "" is had by everybody."""
        if scope and scope not in self.scopes:
            details = {"required_scope": scope, "method": method, "scopes": sorted(self.scopes)}
            raise AwpError("PERMISSION_DENIED", f"{method} needs the scope {scope}.", details)


class Callers:
    """Tells who a caller is. Raises what AuthenticationGate raises for credentials that are wrong."""

    def __init__(self, catalog: Catalog, enforcement: Enforcement, proxies: TrustedProxies) -> None:
        kinds = enforcement.authenticators
        self._token_header = _token_header(catalog, kinds)
        self._proxies = proxies
        self._gate = enforcement.identify()
        signs = any(isinstance(one, SharedSecret) for one in kinds)
        taken = {"auth.none": True, "auth.bearer": self._token_header is not None, "auth.hmac": signs}
        self.methods = [method for method in METHODS if taken[method]]
        """The ways to be known that awp.hello can take."""

    async def identify(self, scope: Scope, auth: object, challenge: str) -> Identity:
        """Who opens a connection: `scope` is its upgrade, `auth` that of awp.hello. Raises a Problem, AwpError."""
        method, given = _read_auth(auth)
        if method not in self.methods:
            raise AwpError("UNSUPPORTED", f"This site does not take {method}.", {"methods": self.methods})
        header = signed = None
        if method == "auth.bearer":
            header = _header_of(self._token_header or "authorization", given)
        elif method == "auth.hmac":
            signed = Signed(_read_text(given, "key_id"), challenge, _read_text(given, "signature"))
        headers = with_header(scope["headers"], header)
        shown: Credentials = read_credentials(scope, read_fields(headers), self._proxies)._replace(signed=signed)
        return Identity(method, await self._gate(shown), header, signed)


def _token_header(catalog: Catalog, kinds: Sequence[Authenticator]) -> str | None:
    """The header that a token of awp.hello stands for, None where nobody reads one."""
    unread = (SharedSecret, SessionUser, ApplicationUser, ApiKey)
    if any(not isinstance(one, unread) for one in kinds) or any(one.route_authenticates for one in catalog.actions):
        return "authorization"
    return next((one.header.lower() for one in kinds if isinstance(one, ApiKey)), None)


def new_challenge() -> str:
    """What a caller signs, once."""
    return secrets.token_urlsafe(24)


def with_header(headers: list[Pair], header: Pair | None) -> list[Pair]:
    """Headers with another one in place of those of its name, if there is one."""
    if header is None:
        return headers
    return [*(pair for pair in headers if pair[0] != header[0]), header]


def _header_of(name: str, given: Mapping[str, object]) -> Pair:
    token = _read_text(given, "token")
    if not _TOKEN.fullmatch(token):
        refuse("auth.token must be visible ASCII characters.", param="auth.token")
    scheme = "Bearer " if name == "authorization" else ""
    return name.encode("latin-1"), f"{scheme}{token}".encode("ascii")


def _read_auth(auth: object) -> tuple[str, Mapping[str, object]]:
    """The `auth` of awp.hello: its method, and the rest. Raises AwpError."""
    given = {"method": "auth.none"} if auth is None else auth
    if not isinstance(given, dict):
        refuse("auth must be an object with a method.", param="auth")
    method = given.get("method", given.get("type"))
    if method not in METHODS:
        refuse(f"auth.method must be one of {', '.join(METHODS)}.", param="auth.method", methods=list(METHODS))
    return method, given


def _read_text(given: Mapping[str, object], name: str) -> str:
    text = given.get(name)
    if not isinstance(text, str) or not 0 < len(text) <= 20_000:
        refuse(f"Missing required param: auth.{name}", param=f"auth.{name}")
    return text


# --- `awp.hello` ---
# The MVP (section 4.1) sends client_name, client_version and awp_version, and is told a list of features; the draft
# (Handshake) sends client, awp.versions and wants, and is told an object of features. Everything else is in both
# answers.

VERSION: Final = "0.1"
ENCODINGS: Final = ("json", "msgpack")
NAME: Final = "awp-publish"
FEATURES: Final = (
    "som.snapshot",
    "som.mutations",
    "act.primitive",
    "extract",
    "pages",
    "history",
    "cookies",
    "sessions.list",
    "sessions.resume",
    "sessions.export",
    "idempotency",
    "encoding.msgpack",
)
"""What a site has that browses; "skills.invoke" where it has actions."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a client asked for: its shape of the handshake, the encoding, and the events that it wants to be told."""

    is_draft: bool
    encoding: str
    events: frozenset[str]


def read_hello(params: Mapping[str, object], *, is_packed: bool) -> Wishes:
    """What a client asks for. Raises AwpError: INVALID_REQUEST for another version, UNSUPPORTED for other encodings."""
    is_draft = any(name in params for name in ("client", "awp", "wants"))
    _check_version(_read_versions(params))
    wants = _read_object(params, "wants")
    return Wishes(is_draft, _choose_encoding(wants, is_packed), frozenset(_read_texts(wants, "events")) & {MUTATION})


def _read_versions(params: Mapping[str, object]) -> list[str]:
    """What is missing is taken for 0.1."""
    single = params.get("awp_version")
    if single is not None and not isinstance(single, str):
        refuse("awp_version must be text.", param="awp_version")
    listed = _read_texts(_read_object(params, "awp"), "versions")
    return [*listed, *([single] if single is not None else [])] or [VERSION]


def _check_version(versions: list[str]) -> None:
    if VERSION not in versions:
        named = ", ".join(versions)[:100]
        raise AwpError("INVALID_REQUEST", f"Unsupported AWP version: {named}", {"supported": [VERSION]})


def _choose_encoding(wants: Mapping[str, object], is_packed: bool) -> str:
    """The first that a client names and we speak; without any, the one it speaks already."""
    wanted = _read_texts(wants, "encoding")
    for name in wanted:
        if name in ENCODINGS:
            return name
    if wanted:
        raise AwpError("UNSUPPORTED", "None of the encodings is spoken here.", {"supported": list(ENCODINGS)})
    return "msgpack" if is_packed else "json"


def _read_object(params: Mapping[str, object], name: str) -> Mapping[str, object]:
    given = params.get(name)
    if given is None:
        return {}
    if not isinstance(given, dict):
        refuse(f"{name} must be an object.", param=name)
    return given


def _read_texts(params: Mapping[str, object], name: str) -> list[str]:
    given = params.get(name)
    if given is None:
        return []
    if isinstance(given, str):
        return [given]
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        refuse(f"{name} must be a list of texts.", param=name)
    return given


# --- The answer ---


def tell_hello(catalog: Catalog, browsing: Browsing, wishes: Wishes, auth: JsonObject) -> dict[str, object]:
    """The result of a handshake."""
    limits = _limits(browsing)
    features = _features(catalog, browsing, limits) if wishes.is_draft else _feature_names(catalog)
    return {
        "awp_version": VERSION,
        "server_name": NAME,
        "server_version": awp_publish.__version__,
        "features": features,
        "awp": {"version": VERSION},
        "encoding": {"selected": wishes.encoding},
        "compression": {"selected": "none"},
        "server": {"name": NAME, "version": awp_publish.__version__, "site": catalog.site.name, "url": catalog.url},
        "limits": limits,
        "events": sorted(wishes.events),
        "auth": auth,
    }


def _limits(browsing: Browsing) -> dict[str, object]:
    return {
        "max_sessions": min(browsing.sessions, browsing.sessions_per_address, browsing.sessions_per_connection),
        "max_pages_per_session": browsing.pages_per_session,
        "max_messages_per_second": browsing.messages_per_second,
    }


def _feature_names(catalog: Catalog) -> list[str]:
    return [*FEATURES, *(["skills.invoke"] if catalog.actions else [])]


def _features(catalog: Catalog, browsing: Browsing, limits: JsonObject) -> dict[str, object]:
    return {
        "som": {"snapshot": True, "mutation": True, "formats": list(FORMATS), "max_bytes": browsing.page_bytes},
        "skills": {"invoke": bool(catalog.actions), "registry": True},
        "network": {"proxy": False, "profiles": []},
        "limits": limits,
    }
