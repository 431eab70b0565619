"""Small frozen values that a declaration is made of: limits, contacts, selectors, status.

Nothing here checks anything: `options.py` refuses mistakes before a value is made.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

UNIT_NAMES: Final = {"s": "second", "m": "minute", "h": "hour", "d": "day"}
UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
RATE_SCOPES: Final = ("ip", "user", "global")
"""For whom a limit is counted: each address, each caller (an address if nobody is known), all callers together."""


def seconds_of(duration: str) -> int:
    """The seconds of a duration such as "24h"."""
    return int(duration[:-1]) * UNIT_SECONDS[duration[-1]]


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most `requests` calls in `count` `unit`s (s, m, h, d), counted for each `scope` (AWAS 1.0, rateLimit object).

    A scope is one of RATE_SCOPES; None counts for each caller, as "user" does, and is not published.
    """

    requests: int
    count: int = 1
    unit: Literal["s", "m", "h", "d"] = "m"
    scope: str | None = None

    @property
    def window(self) -> str:
        """The window as AWAS writes it: "1m"."""
        return f"{self.count}{self.unit}"

    @property
    def seconds(self) -> int:
        return self.count * UNIT_SECONDS[self.unit]

    def __str__(self) -> str:
        """The limit as agent.json writes it: "30/minute"."""
        name = UNIT_NAMES[self.unit]
        return f"{self.requests}/{name}" if self.count == 1 else f"{self.requests}/{self.count} {name}s"


@dataclass(frozen=True, slots=True)
class Idempotency:
    """Idempotency keys are honoured for `window` ("24h"), read from the header or from `key_field` of the envelope."""

    window: str = "24h"
    key_field: str = "idempotency_key"

    @property
    def seconds(self) -> int:
        return seconds_of(self.window)


@dataclass(frozen=True, slots=True)
class Pagination:
    """CSS selectors of a paginated result (AWAS 1.0, result object)."""

    selector: str | None = None
    next_button: str | None = None
    current_page: str | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """Where an action's result stands in the page (AWAS 1.0, result object). All addresses are CSS selectors."""

    type: Literal["single", "list", "table", "form"]
    selector: str
    item_selector: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    pagination: Pagination | None = None


@dataclass(frozen=True, slots=True)
class Authentication:
    """How callers identify themselves (agent.json section 7, AWAS `authentication`).

    `token_expiry` is a duration such as "24h"; `refresh_endpoint` and the values of `endpoints` are paths or URLs.
    `authorization_servers` are the issuer identifiers of those that issue tokens for this site (RFC 9728 section 2).
    `api_key_header` is the header in which API keys are sent, `session_cookie` the cookie of the site's sessions.
    """

    type: Literal["oauth2", "api_key", "bearer", "none"] | None = None
    methods: tuple[str, ...] = ()
    token_expiry: str | None = None
    refresh_endpoint: str | None = None
    endpoints: Mapping[str, str] = field(default_factory=dict)
    authorization_servers: tuple[str, ...] = ()
    api_key_header: str | None = None
    session_cookie: str | None = None


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Feature flags (agent.json section 6). Idempotency is not here: it is computed from the actions."""

    streaming: bool = False
    batch_actions: bool = False
    webhooks: bool = False
    pagination: Literal["cursor", "offset", "page", "none"] = "none"


@dataclass(frozen=True, slots=True)
class Browsing:
    """What agents that browse the site through the AWP door (`doors=["awp"]`) are held to.

    `auth_required` asks each connection who it is. `sessions` are kept at once in one process, of which one connection
    may hold `sessions_per_connection`, and all connections of one address `sessions_per_address`; each has up to
    `pages_per_session` open pages of at most `page_bytes` bytes.
    A session ends after `idle` without a message, at the latest after `lifetime`, and after `resume` without a
    connection. `export_lifetime` is how long an exported session can be imported. Durations are texts ("10m").
    """

    auth_required: bool = False
    sessions: int = 500
    sessions_per_connection: int = 8
    sessions_per_address: int = 100
    pages_per_session: int = 16
    page_bytes: int = 4_000_000
    messages_per_second: int = 50
    idle: str = "15m"
    lifetime: str = "8h"
    resume: str = "5m"
    export_lifetime: str = "24h"


@dataclass(frozen=True, slots=True)
class Contact:
    """Whom to ask (AWAS 1.0 `contact`)."""

    email: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Security:
    """What a writing request has to carry (AWAS 1.1 `security`)."""

    csrf_required: bool = False
    csrf_token_header: str | None = None
    required_headers: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    same_site: Literal["Strict", "Lax", "None"] | None = None


@dataclass(frozen=True, slots=True)
class Workflow:
    """An order of actions that reaches a goal (AWAS 1.1 `workflows`). `steps` are action ids."""

    id: str
    name: str
    steps: tuple[str, ...]
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """Liveness (agent.json section 13)."""

    operational: bool = True
    degraded_actions: frozenset[str] = frozenset()
    status_endpoint: str | None = None
