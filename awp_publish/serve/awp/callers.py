"""Callers of the AWP door and the handshake `awp.hello`, in which they may say who they are.

Callers are known by what the upgrade request shows, as at every other door, or by the `auth` of awp.hello. A caller
whose scopes name some of AWP's own has these and no others; everybody else has those of DEFAULT_SCOPES.
"""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from awp_publish.browsing.errors import AwpError, refuse
from awp_publish.browsing.observing import FORMATS
from awp_publish.model import Catalog, JsonObject
from awp_publish.policy.authentication import ApiKey, ApplicationUser, SessionUser, SharedSecret
from awp_publish.policy.call import Principal, Signed
from awp_publish.serve.awp.messages import MUTATION
from awp_publish.serve.credentials import read_credentials
from awp_publish.serve.doors import DoorContext
from awp_publish.serve.http import Pair, Scope, read_fields, with_header

if TYPE_CHECKING:
    from awp_publish.serve.awp.sessions import Sessions

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

METHODS: Final = ("auth.none", "auth.bearer", "auth.hmac")

_TOKEN: Final = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller, if they are known: how, and with what a call of theirs shows it again."""

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
        """Return their permissions at this door."""
        named = self.principal.scopes.intersection(SCOPES) if self.principal is not None else None
        return named or DEFAULT_SCOPES

    def need(self, scope: str, method: str) -> None:
        """Raise AwpError PERMISSION_DENIED without that scope; "" is had by everybody."""
        if scope and scope not in self.scopes:
            details = {"required_scope": scope, "method": method, "scopes": sorted(self.scopes)}
            raise AwpError("PERMISSION_DENIED", f"{method} needs the scope {scope}.", details)


class AwpCallers:
    """Identifies callers. `methods` are the ways to be known that awp.hello can take."""

    def __init__(self, door: DoorContext) -> None:
        kinds = door.guards.authenticators
        self._identify = door.guards.identify()
        self._proxies = door.admission.trusted_proxies
        # The header that a token of awp.hello stands for, None where nobody reads one.
        others = (SharedSecret, SessionUser, ApplicationUser, ApiKey)
        reads_bearer = any(not isinstance(one, others) for one in kinds)
        if reads_bearer or any(action.route_authenticates for action in door.catalog.actions):
            self._token_header: str | None = "authorization"
        else:
            self._token_header = next((one.header.lower() for one in kinds if isinstance(one, ApiKey)), None)
        signs = any(isinstance(one, SharedSecret) for one in kinds)
        taken = {"auth.none": True, "auth.bearer": self._token_header is not None, "auth.hmac": signs}
        self.methods = [method for method in METHODS if taken[method]]

    async def identify(self, scope: Scope, auth: object, challenge: str) -> Identity:
        """Identify who opened a connection: `scope` is its upgrade, `auth` that of awp.hello.

        Raises AwpError for an `auth` that cannot be read, and the Problem of an authenticator for wrong credentials.
        """
        given = {"method": "auth.none"} if auth is None else auth
        if not isinstance(given, dict):
            refuse("auth must be an object with a method.", param="auth")
        method = given.get("method", given.get("type"))
        if method not in METHODS:
            refuse(f"auth.method must be one of {', '.join(METHODS)}.", param="auth.method", methods=list(METHODS))
        if method not in self.methods:
            raise AwpError("UNSUPPORTED", f"This site does not take {method}.", {"methods": self.methods})

        def read(name: str) -> str:
            text = given.get(name)
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
        fields = read_fields(with_header(scope["headers"], header))
        credentials = read_credentials(scope, fields, self._proxies)._replace(signed=signed)
        return Identity(method, await self._identify(credentials), header, signed)


def new_challenge() -> str:
    """Return a text for a caller to sign, once."""
    return secrets.token_urlsafe(24)


# --- `awp.hello` ---
# The MVP (section 4.1) sends client_name, client_version and awp_version, and gets a list of features; the draft
# (Handshake) sends client, awp.versions and wants, and gets an object of features. Everything else is in both answers.

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
"""The features of a site that is browsed; "skills.invoke" where it has actions."""


@dataclass(frozen=True, slots=True)
class Hello:
    """A client's handshake: whether in the draft's shape, the encoding it gets, and the events it wants.

    `cursors` say where it was in those of the site.

    With `concurrency` requests of one session for different pages do not wait for one another (paper, 4.2).
    """

    is_draft: bool
    encoding: str
    events: frozenset[str]
    concurrency: bool
    cursors: Mapping[str, str] = field(default_factory=dict)


def read_hello(params: Mapping[str, object], *, is_packed: bool, known: frozenset[str] = frozenset()) -> Hello:
    """Read a handshake; `known` are the events of the site.

    Raises AwpError: INVALID_REQUEST for another version, UNSUPPORTED for other encodings.
    """
    single = params.get("awp_version")
    if single is not None and not isinstance(single, str):
        refuse("awp_version must be text.", param="awp_version")
    versions = [*_texts(_object(params, "awp"), "versions"), *([single] if single is not None else [])]
    if VERSION not in (versions or [VERSION]):
        named = ", ".join(versions)[:100]
        raise AwpError("INVALID_REQUEST", f"Unsupported AWP version: {named}", {"supported": [VERSION]})
    wants = _object(params, "wants")
    wanted = _texts(wants, "encoding") or ["msgpack" if is_packed else "json"]
    encoding = next((name for name in wanted if name in ENCODINGS), None)
    if encoding is None:
        raise AwpError("UNSUPPORTED", "None of the encodings is spoken here.", {"supported": list(ENCODINGS)})
    is_draft = any(name in params for name in ("client", "awp", "wants"))
    at_once = not _CONCURRENCY.isdisjoint(_texts(wants, "features"))
    for name in ("concurrency", "concurrent"):
        asked = wants.get(name)
        at_once = at_once or asked is True
        if not isinstance(asked, bool):
            at_once = at_once or not _PAGES.isdisjoint(_texts(wants, name))
    cursors = {name: text for name, text in _object(wants, "cursors").items() if isinstance(text, str)}
    return Hello(is_draft, encoding, frozenset(_texts(wants, "events")) & {MUTATION, *known}, at_once, cursors)


_CONCURRENCY: Final = frozenset(("concurrency", "concurrent", "pages.concurrent"))
_PAGES: Final = frozenset(("page", "pages"))


def _object(params: Mapping[str, object], name: str) -> Mapping[str, object]:
    given = params.get(name)
    if given is None:
        return {}
    if not isinstance(given, dict):
        refuse(f"{name} must be an object.", param=name)
    return given


def _texts(params: Mapping[str, object], name: str) -> list[str]:
    given = params.get(name)
    if given is None:
        return []
    if isinstance(given, str):
        return [given]
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        refuse(f"{name} must be a list of texts.", param=name)
    return given


def render_hello(
    catalog: Catalog, sessions: "Sessions", hello: Hello, auth: JsonObject, offered: list[str]
) -> JsonObject:
    """Render the result of a handshake. `offered` are the events of the site that the caller may want."""
    from awp_publish import __version__ as version

    has_skills = bool(catalog.actions)
    limits = sessions.describe_limits()
    features: object = [*FEATURES, *(["skills.invoke"] if has_skills else [])]
    if hello.is_draft:
        features = {
            "som": {"snapshot": True, "mutation": True, "formats": list(FORMATS), "max_bytes": sessions.max_page},
            "skills": {"invoke": has_skills, "registry": True},
            "network": {"proxy": False, "profiles": []},
            "limits": limits,
        }
    return {
        "awp_version": VERSION,
        "server_name": NAME,
        "server_version": version,
        "features": features,
        "awp": {"version": VERSION},
        "encoding": {"selected": hello.encoding},
        "compression": {"selected": "none"},
        "concurrency": {"selected": "pages" if hello.concurrency else "none"},
        "server": {"name": NAME, "version": version, "site": catalog.site.name, "url": catalog.url},
        "limits": limits,
        "events": sorted(hello.events),
        **({"available_events": offered} if offered else {}),
        "auth": auth,
    }
