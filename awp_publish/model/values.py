"""Small frozen values that a declaration is made of: limits, contacts, status, names."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Final, Literal, TypeAlias

UNIT_NAMES: Final = {"s": "second", "m": "minute", "h": "hour", "d": "day"}
UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def utc_text(moment: datetime, precision: str = "auto") -> str:
    """Format a moment as RFC 3339 in UTC; `precision` is the `timespec` of `isoformat`."""
    return moment.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def seconds_of(duration: str) -> int:
    """Return the seconds of a duration such as "24h"."""
    return int(duration[:-1]) * UNIT_SECONDS[duration[-1]]


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most `requests` calls in `count` `unit`s (s, m, h, d), counted for each `scope` (AWAS 1.0, rateLimit object).

    A scope is "ip" (each address), "user" (each caller, or each address if the caller is unknown) or "global" (all
    callers together); None counts like "user" but is not published. `whom` is the label or directory of the agents to
    which the limit applies, "" for everybody; it is not published either. A limit for all callers with a `lease` is
    taken from the store by so many calls at a time.
    """

    requests: int
    count: int = 1
    unit: Literal["s", "m", "h", "d"] = "m"
    scope: str | None = None
    whom: str = ""
    lease: int = 0

    @property
    def window(self) -> str:
        """The window in AWAS's notation: "1m"."""
        return f"{self.count}{self.unit}"

    @property
    def seconds(self) -> int:
        return self.count * UNIT_SECONDS[self.unit]

    def __str__(self) -> str:
        """Return the limit in agent.json's notation: "30/minute"."""
        name = UNIT_NAMES[self.unit]
        return f"{self.requests}/{name}" if self.count == 1 else f"{self.requests}/{self.count} {name}s"


@dataclass(frozen=True, slots=True)
class Idempotency:
    """Idempotency keys are honoured for `window` ("24h"), read from the header or from the envelope's `key_field`."""

    window: str = "24h"
    key_field: str = "idempotency_key"

    @property
    def seconds(self) -> int:
        return seconds_of(self.window)


@dataclass(frozen=True, slots=True)
class Authentication:
    """The ways in which callers authenticate (agent.json section 7, AWAS `authentication`).

    `token_expiry` is a duration such as "24h"; `refresh_endpoint` and the values of `endpoints` are paths or URLs.
    `authorization_servers` are the issuer identifiers of the servers that issue tokens for this site (RFC 9728 section
    2). `api_key_header` is the header in which API keys are sent, `session_cookie` the cookie of the site's sessions.
    `audiences` are the token audiences that are accepted. `proof_algorithms` are the signature algorithms accepted for
    proofs of key-bound tokens (RFC 9449); `proof_required` means that only such tokens are accepted. `scopes` say in
    words what each of them opens. `own_server` is set if the site issues its tokens itself: the members of its metadata
    (RFC 8414) besides the issuer, with paths as endpoints.
    """

    type: Literal["oauth2", "api_key", "bearer", "none"] | None = None
    methods: tuple[str, ...] = ()
    token_expiry: str | None = None
    refresh_endpoint: str | None = None
    endpoints: Mapping[str, str] = field(default_factory=dict)
    authorization_servers: tuple[str, ...] = ()
    api_key_header: str | None = None
    session_cookie: str | None = None
    audiences: tuple[str, ...] = ()
    proof_algorithms: tuple[str, ...] = ()
    proof_required: bool = False
    scopes: Mapping[str, str] = field(default_factory=dict)
    own_server: Mapping[str, object] | None = None

    @property
    def is_own_server(self) -> bool:
        """True if the site issues its tokens itself."""
        return self.own_server is not None


@dataclass(frozen=True, slots=True)
class Contact:
    """The contact for questions about the site (AWAS 1.0 `contact`)."""

    email: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Robots:
    """The content of robots.txt besides the sitemap.

    `disallow` are paths that no robot may read. `bots` allows or disallows crawlers by name. The owner's preferences
    are published only if given: `content_signal` by name, such as {"search": "yes", "ai-train": "no", "use":
    "reference"}, `content_usage` in AIPREF's syntax, `license` as the address of an RSL licence.
    """

    disallow: Sequence[str] = ()
    bots: Mapping[str, bool] = field(default_factory=dict)
    content_signal: Mapping[str, str] = field(default_factory=dict)
    content_usage: str | None = None
    license: str | None = None


@dataclass(frozen=True, slots=True)
class Security:
    """Contacts for vulnerability reports (RFC 9116): mailto: and https: addresses, and how long they are valid.

    `expires` is a datetime once the settings are read.
    """

    contact: Sequence[str]
    expires: datetime | date | str
    policy: str | None = None
    languages: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Workflow:
    """A sequence of actions that reaches a goal (AWAS 1.1 `workflows`). `steps` are action ids."""

    id: str
    name: str
    steps: tuple[str, ...]
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """The present status of the site (agent.json section 13)."""

    operational: bool = True
    degraded_actions: frozenset[str] = frozenset()
    status_endpoint: str | None = None


JsonObject: TypeAlias = Mapping[str, object]

Function: TypeAlias = Callable[[JsonObject], Awaitable[bytes]]
"""A plain function wrapped so that it takes a validated input and returns JSON text."""

Summary: TypeAlias = str | Callable[..., str | Awaitable[str]]
"""A call's effect in plain language: a template with inputs in braces, or a function of the input (and the call)."""

Location: TypeAlias = Literal["path", "query", "header", "cookie", "json", "form", "file", "rows", "body"]
Sensitivity: TypeAlias = Literal["standard", "destructive", "irreversible"]
Intent: TypeAlias = Literal["read", "write", "delete", "execute"]
SideEffect: TypeAlias = Literal["safe", "idempotent", "destructive"]

Effect: TypeAlias = Literal["read", "idempotent", "write", "delete", "irreversible"]
"""The effect of a call: none, the same if repeated, a further change each time, a deletion, or one beyond undoing."""

Execution: TypeAlias = Literal["sync", "async"]

ActionType: TypeAlias = Literal[
    "form_submission", "navigation", "search", "filter", "data_retrieval", "state_change", "custom"
]

SAFE_IN_PATH: Final = "/%:@!$&'()*+,;=~"
"""Characters of a path that are not percent-encoded (RFC 3986 section 3.3)."""

SEGMENT_PATTERN: Final = r"^[^/\u0000]+$"
"""A path parameter that is one segment. Servers refuse the null character in addresses."""

SEGMENTS_PATTERN: Final = r"^[^\u0000]*$"
"""A path parameter that is one or more segments; that it is not empty is said by its length."""

DEFAULT_OPERATION: Final = "default"

DOORS: Final = ("woa", "plain", "mcp", "a2a", "awp", "bridge")
"""The doors at which an action can be exposed, besides those of other plug-ins."""

NOT_DOORS: Final = ("route", "job")
"""Origins of calls that no door has let in: the action's own route, and a background job, admitted before."""

PUBLIC: Final = "public"
KNOWN: Final = "known"
OPERATOR: Final = "operator"
"""Audiences of an action: everybody, known callers, callers with the scope "operator"; any other value is a scope."""

EXTENDED_DOCUMENTS: Final = frozenset({"agent_json", "awas", "woa"})
"""Protocols whose documents accept members of any name, for which names of `extensions` need no `x-`."""
