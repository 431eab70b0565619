"""The frozen facts everything is derived from: policy values, `Action`, `Agent`, `SiteFacts`, `Catalog`.

Protocol files read a `Catalog` and nothing else. Nothing here checks anything: `declare.py` refuses mistakes before a
value is made. JSON Schemas are JSON Schema 2020-12 with their own `$defs`, so that each can stand alone.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

JsonObject: TypeAlias = Mapping[str, object]
Function: TypeAlias = Callable[[JsonObject], Awaitable[bytes]]
"""A plain function made callable with a validated input; it answers with JSON text."""

Location: TypeAlias = Literal["path", "query", "header", "cookie", "json", "form", "file", "body"]
Sensitivity: TypeAlias = Literal["standard", "destructive", "irreversible"]
Intent: TypeAlias = Literal["read", "write", "delete", "execute"]
SideEffect: TypeAlias = Literal["safe", "idempotent", "destructive"]
Execution: TypeAlias = Literal["sync", "async"]
ActionType: TypeAlias = Literal[
    "form_submission", "navigation", "search", "filter", "data_retrieval", "state_change", "custom"
]

UNIT_NAMES: Final = {"s": "second", "m": "minute", "h": "hour", "d": "day"}
UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
DEFAULT_OPERATION: Final = "default"


# --- Policy values ---


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most `requests` calls in `count` `unit`s (s, m, h, d), counted for each `scope` (AWAS: "ip", "user", ...)."""

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
    """

    type: Literal["oauth2", "api_key", "bearer", "none"] | None = None
    methods: tuple[str, ...] = ()
    token_expiry: str | None = None
    refresh_endpoint: str | None = None
    endpoints: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Feature flags (agent.json section 6). Idempotency is not here: it is computed from the actions."""

    streaming: bool = False
    batch_actions: bool = False
    webhooks: bool = False
    pagination: Literal["cursor", "offset", "page", "none"] = "none"


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


# --- Actions and agents ---


@dataclass(frozen=True, slots=True)
class Parameter:
    """Where one input of an action travels in the HTTP request behind it.

    `wire_name` is the name there (a header's name, a form field's). `location` "body" means that this input is the
    whole JSON body; `spans_segments` that a path parameter may contain slashes.
    """

    name: str
    location: Location
    wire_name: str
    spans_segments: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """The route behind an action: method, path template (`/books/{slug}`), where inputs go, the body's media type."""

    method: str
    path: str
    parameters: tuple[Parameter, ...] = ()
    content_type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One thing an agent can do.

    `inputs` and `outputs` are JSON Schemas. Either `target` (a route) or `function` (a plain function) is behind it.
    `sensitivity` is None where nobody declared one. `examples` are whole inputs.
    """

    id: str
    name: str
    description: str
    inputs: JsonObject
    outputs: JsonObject
    agent_id: str
    operation: str = DEFAULT_OPERATION
    target: Target | None = None
    function: Function | None = field(default=None, compare=False, repr=False)
    type: ActionType
    intent: Intent
    side_effect: SideEffect
    tags: tuple[str, ...] = ()
    examples: tuple[JsonObject, ...] = ()
    selector: str | None = None
    selectors: Mapping[str, str] = field(default_factory=dict)
    result: Result | None = None
    auth_required: bool = False
    scopes: tuple[str, ...] = ()
    rate_limit: RateLimit | None = None
    idempotency: Idempotency | None = None
    sensitivity: Sensitivity | None = None
    reversible: bool | None = None
    requires_human_confirmation: bool = False
    preconditions: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    preview_url: str | None = None
    dry_run: bool = False
    execution: Execution = "sync"
    poll_endpoint: str | None = None
    success_status: int = 200
    timeout: float = 30.0
    operation_id: str | None = None
    extensions: JsonObject = field(default_factory=dict)

    @property
    def is_write(self) -> bool:
        return self.intent != "read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """A WoA agent: one or several actions under one id. `operations` maps operation names to action ids, in order."""

    id: str
    name: str
    description: str
    operations: Mapping[str, str]
    operation_descriptions: Mapping[str, str] = field(default_factory=dict)
    version: str | None = None
    capabilities: tuple[str, ...] = ()
    extensions: JsonObject = field(default_factory=dict)


# --- The site ---


@dataclass(frozen=True, slots=True)
class Paths:
    """Where things of ours live. `invoke` may hold `{agent_id}` and a query (WoA section 4.3.1)."""

    invoke: str = "/agents/{agent_id}/invoke"
    problems: str = "/agents/problems"


@dataclass(frozen=True, slots=True)
class Door:
    """A live protocol endpoint: what the documents may say is on. `path` is a path template below the site's url."""

    protocol: str
    version: str
    path: str


@dataclass(frozen=True, slots=True)
class OpenApi:
    """The OpenAPI document that the application itself serves."""

    path: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteFacts:
    """What a site says about itself, as declared."""

    name: str
    description: str
    version: str = "1.0"
    contact: Contact | None = None
    authentication: Authentication | None = None
    rate_limit: RateLimit | None = None
    capabilities: Capabilities = Capabilities()
    entities: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    entity_schemas: Mapping[str, JsonObject] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    hints: Mapping[str, str] = field(default_factory=dict)
    security: Security | None = None
    workflows: tuple[Workflow, ...] = ()
    documentation: str | None = None
    license: str | None = None
    updated: datetime | None = None
    extensions: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """The frozen whole, for one public address of the site. All that a protocol file may read."""

    url: str
    site: SiteFacts
    actions: tuple[Action, ...]
    agents: tuple[Agent, ...]
    status: Status = Status()
    paths: Paths = Paths()
    doors: tuple[Door, ...] = ()
    openapi: OpenApi | None = None

    @property
    def domain(self) -> str:
        return urlsplit(self.url).hostname or ""

    @property
    def prefix(self) -> str:
        """The path of the site's url: "" or "/shop"."""
        return urlsplit(self.url).path

    def absolute(self, path: str) -> str:
        """The public address of a path below the site."""
        return self.url + path

    def action(self, action_id: str) -> Action:
        """The action with this id. Raises KeyError."""
        return next_by_id(self.actions, action_id)

    def door(self, protocol: str) -> Door | None:
        return next((door for door in self.doors if door.protocol == protocol), None)

    def endpoint_of(self, action: Action) -> tuple[str, str]:
        """Method and path (below the site's url) with which a plain HTTP client calls an action."""
        if action.target is not None:
            return action.target.method, action.target.path
        return "POST", self.paths.invoke.replace("{agent_id}", action.agent_id)


def next_by_id(actions: tuple[Action, ...], action_id: str) -> Action:
    for action in actions:
        if action.id == action_id:
            return action
    raise KeyError(action_id)
