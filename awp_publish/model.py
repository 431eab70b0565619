"""The frozen facts from which everything is derived: `Action`, `Agent`, `SiteFacts`, `Catalog`, and their values.

Protocol files read a `Catalog` and nothing else. Nothing is validated here: `settings.py` refuses mistakes before these
values are made. JSON Schemas are JSON Schema 2020-12 with their own `$defs`, so that each can stand alone.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any, Final, Literal, NamedTuple, TypeAlias
from urllib.parse import urlsplit

__version__ = "0.1.0"

# --- Small frozen values that a declaration is made of: limits, contacts, status ---

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


# --- Actions and agents ---


@dataclass(frozen=True, slots=True)
class Parameter:
    """The place of one input of an action in the HTTP request to its route.

    `wire_name` is the name used there (of a header or form field, for instance). `location` "body" means that the input
    is the whole JSON body; `spans_segments` means that a path parameter may contain slashes. A checkbox, `is_box`, is
    not sent unless it is checked (HTML, constructing the entry list).
    """

    name: str
    location: Location
    wire_name: str
    spans_segments: bool = False
    is_box: bool = False


class RouteCredential(NamedTuple):
    """The place where a route reads its credentials: a header (its name in lower case), cookie or query parameter."""

    place: Literal["header", "cookie", "query"]
    name: str


class Arrival(NamedTuple):
    """The destination of a request within the application: the route's template, with its convertors, and its endpoint.

    `endpoint` is None if the application does not expose its routes.
    """

    path: str
    endpoint: object


class LeftOut(NamedTuple):
    """A route that `site.include()` saw and did not publish, and the reason."""

    method: str
    path: str
    name: str
    why: str


ROUTE_CALL: Final = "awp_publish.route_call"
"""The scope's key for the `RouteCall` of a request that is a call of an action on its way to the action's route."""


@dataclass(frozen=True, slots=True)
class Target:
    """The route of an action: method, path template (`/books/{slug}`), where inputs go, the body's media type.

    `arrival` is the only destination that a request for it may reach, or None if the application does not expose it.
    """

    method: str
    path: str
    parameters: tuple[Parameter, ...] = ()
    content_type: str | None = None
    arrival: Arrival | None = field(default=None, compare=False, repr=False)


_SENSITIVITIES: Final[Mapping[Effect, Sensitivity | None]] = {
    "read": None,
    "idempotent": "standard",
    "write": "standard",
    "delete": "destructive",
    "irreversible": "irreversible",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One thing an agent can do.

    `inputs` and `outputs` are JSON Schemas. An action has a `target` (a route) or a `function` (a plain function), or
    an `entry`: a hidden route that resolves the framework's dependencies of a function without a route of its own.
    `rehearsal` is the endpoint of a hidden route that has the same security and does nothing. The protocols' terms for
    an action's consequences are computed from `effect`. `examples` are whole inputs.

    `route_authenticates` means that the route has a security scheme of its own; `route_credentials` are the headers,
    cookies and query parameters which that scheme reads. `security` are the alternative ways to authenticate that the
    framework reports (OpenAPI, Security Requirement Object), `security_schemes` the schemes that they name.
    `answers_json` means that the route returns JSON whatever the request's Accept; `guards_route` that direct requests
    of the route pass the same gates as calls (None: as the site's option says); `page` is the page at its path.

    `depends_on` names the actions that come before this one, `requires` those of them whose receipts a call has to
    present; `is_required` means that another action requires this one. `allow_agents` are labels and directories of
    agents that sign requests (empty: everybody). `max_body_bytes` is None if the site's limit applies. `audience` are
    those who may see the action, `expose` the doors that offer it (None: all). Nobody sees an action that is not
    `is_approved`. `answer_headers` are headers of the route's answer, in lower case, that belong to the answer.
    `secret_names` are members of the inputs that are secret by their names alone. `options` are those that plug-ins
    read, by their names.
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
    entry: Target | None = field(default=None, compare=False, repr=False)
    rehearsal: object = field(default=None, compare=False, repr=False)
    answer_headers: frozenset[bytes] = frozenset()
    secret_names: tuple[str, ...] = ()
    type: ActionType
    effect: Effect
    tags: tuple[str, ...] = ()
    examples: tuple[JsonObject, ...] = ()
    selector: str | None = None
    selectors: Mapping[str, str] = field(default_factory=dict)
    result: JsonObject | None = None
    auth_required: bool = False
    route_authenticates: bool = False
    route_credentials: tuple[RouteCredential, ...] = ()
    security: tuple[Mapping[str, tuple[str, ...]], ...] = ()
    security_schemes: Mapping[str, JsonObject] = field(default_factory=dict)
    scopes: tuple[str, ...] = ()
    rate_limit: RateLimit | None = None
    allow_agents: tuple[str, ...] = ()
    idempotency: Idempotency | None = None
    needs_confirmation: bool = False
    confirmation_summary: Summary | None = field(default=None, compare=False)
    preconditions: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    is_required: bool = False
    answers_json: bool = True
    guards_route: bool | None = None
    page: str | None = None
    preview_url: str | None = None
    dry_run: bool = False
    execution: Execution = "sync"
    success_status: int = 200
    timeout: float = 30.0
    max_body_bytes: int | None = None
    operation_id: str | None = None
    audience: str = PUBLIC
    expose: frozenset[str] | None = None
    is_approved: bool = True
    extensions: JsonObject = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_public(self) -> bool:
        """Return True if everybody may see the action."""
        return self.is_approved and self.audience == PUBLIC

    def is_for(self, scopes: frozenset[str] | None) -> bool:
        """Return True if a caller with these scopes may see the action; None means an unknown caller."""
        if not self.is_approved or self.audience == PUBLIC:
            return self.is_approved
        return scopes is not None and (self.audience == KNOWN or self.audience in scopes)

    def is_exposed_at(self, door: str) -> bool:
        """Return True if a door offers the action."""
        return self.expose is None or door in self.expose or door in NOT_DOORS

    @property
    def method(self) -> str:
        """The HTTP method of calls: the route's, or POST without a route."""
        return "POST" if self.target is None else self.target.method

    @property
    def way(self) -> Target | None:
        """The target of calls that go through the application: the route or the entry; None for a plain function."""
        return self.target or self.entry

    @property
    def remembers(self) -> bool:
        """Return True if calls leave records in the store, which a store in memory loses when its process ends."""
        return self.is_background or self.needs_confirmation or self.idempotency is not None

    @property
    def intent(self) -> Intent:
        """AWAS 1.1 `intent`."""
        if self.effect == "read":
            return "read"
        if self.effect == "delete" or (self.target is not None and self.target.method == "DELETE"):
            return "delete"
        return "execute" if self.target is None else "write"

    @property
    def side_effect(self) -> SideEffect:
        """AWAS 1.1 `sideEffect`. A missing one means "safe", so an action that is not known to be safe has another."""
        if self.effect == "read":
            return "safe"
        if self.effect == "idempotent":
            return "idempotent"
        is_harmful = self.sensitivity in ("destructive", "irreversible")
        return "idempotent" if self.idempotency is not None and not is_harmful else "destructive"

    @property
    def sensitivity(self) -> Sensitivity | None:
        """agent.json section 9; None for an action that only reads."""
        return _SENSITIVITIES[self.effect]

    @property
    def is_repeatable(self) -> bool:
        """Return True if a call that was interrupted may be made again.

        True for reads, idempotent actions and DELETE (RFC 9110 section 9.2.2). An idempotency key alone does not make
        the handler idempotent: it only lets us keep a second call from the handler.
        """
        deletes = self.effect == "delete" and self.target is not None and self.target.method == "DELETE"
        return deletes or self.effect in ("read", "idempotent")

    @property
    def is_irreversible(self) -> bool:
        return self.effect == "irreversible"

    @property
    def is_background(self) -> bool:
        return self.execution == "async"

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
    version: str | None = None
    capabilities: tuple[str, ...] = ()
    extensions: JsonObject = field(default_factory=dict)


# --- Prompts ---


Complete: TypeAlias = Callable[[str, str, Mapping[str, str]], Awaitable[Sequence[str] | None]]
"""Suggests values of an argument from its name, the text typed so far and the other arguments. None: unsupported."""


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """A value that a person fills in. `choices` are all allowed values, if the schema lists them."""

    name: str
    description: str | None
    required: bool
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A text that a person selects for their own model.

    `write` makes it from the arguments, as JSON: a string, or a list of pairs of a role ("user", "assistant") and a
    text. For an image, a sound or a file the text is base64 and the pair has the media type as a third item. It raises
    InvalidInput, or what its function raises. `action` is the id of the action that has the same function, if any.
    """

    id: str
    name: str
    description: str | None
    arguments: tuple[PromptArgument, ...]
    write: Function = field(compare=False, repr=False)
    complete: Complete | None = field(default=None, compare=False, repr=False)
    action: str | None = None


SKILL_FILE: Final = "SKILL.md"
MAX_SKILL_NAME: Final = 64
MAX_SKILL_DESCRIPTION: Final = 1024
"""The main file of a skill, and the maximal length of its name and its description (agentskills.io)."""


@dataclass(frozen=True, slots=True)
class Skill:
    """Instructions for a task on the site, which agents read before they do it (agentskills.io).

    `facts` are the front matter of its SKILL.md. `files` are the bytes of all its files by their path in the skill,
    SKILL.md first.
    """

    name: str
    description: str
    facts: JsonObject
    files: Mapping[str, bytes] = field(repr=False)


# --- Events ---


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens on the site and to which agents can subscribe.

    `payload` is the JSON Schema of an occurrence's data, `inputs` that of a subscription's filters. `audience` are
    those who may see that the event exists; each occurrence has an audience of its own.
    """

    id: str
    description: str
    payload: JsonObject
    inputs: JsonObject
    audience: str = PUBLIC

    def is_for(self, scopes: frozenset[str] | None) -> bool:
        """Return True if a caller with these scopes may see the event; None means an unknown caller."""
        return self.audience == PUBLIC or (scopes is not None and (self.audience == KNOWN or self.audience in scopes))


# --- Pages, and what can be done on them (actions.json V1) ---


@dataclass(frozen=True, slots=True)
class Locator:
    """A place in a page: a CSS selector, narrowed by role, accessible name or text (V1, target).

    An element has to match everything that is given. `fallbacks` are selectors that are tried if the first finds
    nothing.
    """

    css: str
    role: str | None = None
    name: str | None = None
    text_equals: str | None = None
    text_contains: str | None = None
    fallbacks: Sequence[str] = ()


Place: TypeAlias = Locator | str
"""A locator, the name of one of the page's `locators`, or a CSS selector."""


@dataclass(frozen=True, slots=True)
class State:
    """A condition of a page: it holds while every place in `where` exists. `shows` names projections to read in it."""

    description: str
    where: Place | Sequence[Place]
    shows: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Transition:
    """A transition between two states of a page, caused by an `action` or observed as a `signal`.

    `every_ms` is the minimal interval between two such transitions. `do_not_use` lists known mistakes, in sentences.
    """

    start: str
    end: str
    action: str | None = None
    signal: str | None = None
    every_ms: int | None = None
    preconditions: Sequence[str] = ()
    do_not_use: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Value:
    """One field of a record: the text, an attribute or a property of the element that `css` finds in it.

    Without `css` it is read from the record's own element. Properties are those of V1: innerText, textContent, value,
    checked, ariaLabel, boundingClientRect.
    """

    css: str | None = None
    attribute: str | None = None
    property: str | None = None
    required: bool = False
    many: bool = False


@dataclass(frozen=True, slots=True)
class Records:
    """Elements that a projection reads: all that `css` finds (only the first if not `many`), and their fields."""

    css: str
    fields: Mapping[str, Value] = field(default_factory=dict)
    many: bool = True


@dataclass(frozen=True, slots=True)
class Projection:
    """The state of a page as a few facts (V1, state_projections). Expressions are JSONata, without enclosing braces.

    `state` is computed from `records`, `url` and `title`; `schema` is its JSON Schema or its type; `summaries` are
    computed from `state`. `after` maps action ids to a condition on `state` that has to hold once the action has
    succeeded.
    """

    description: str
    records: Mapping[str, Records]
    state: str
    schema: object = None
    summaries: Mapping[str, str] = field(default_factory=dict)
    after: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Signal:
    """An event of the page that agents can observe. `payload` is the JSON Schema or type of its detail."""

    event: str
    payload: object = None
    at: Place | None = None
    description: str | None = None
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class Attachment:
    """An element that a runtime adds to the page at a place, with a `label` for people."""

    kind: str
    at: Place
    label: str
    description: str | None = None
    placement: Literal["beforebegin", "afterbegin", "beforeend", "afterend"] = "afterend"
    opens: str | None = None


@dataclass(frozen=True, slots=True)
class PageCheck:
    """Places that have to be visible in a page for its declarations to be valid."""

    description: str
    visible: Sequence[Place]
    severity: Literal["info", "minor", "major", "critical"] = "major"


@dataclass(frozen=True, slots=True)
class Import:
    """Another map whose names are imported under a namespace (V1, imports)."""

    uri: str
    kind: Literal["website", "local", "storage", "shared", "public", "package"] = "public"
    trust: Literal["website", "private", "shared", "public", "local", "unknown"] = "unknown"
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the site.

    `path` is percent-encoded, below the site's url; if it has placeholders (`/books/{slug}`), the page stands for
    several addresses. `id` is the prefix of the names of everything declared on the page. `actions` are the ids of the
    actions whose forms are on the page. `choices` are the allowed values of its placeholders, if they are listed.
    """

    path: str
    title: str
    description: str | None = None
    id: str = ""
    guide: str | None = None
    actions: tuple[str, ...] = ()
    locators: Mapping[str, Locator] = field(default_factory=dict)
    states: Mapping[str, State] = field(default_factory=dict)
    transitions: Mapping[str, Transition] = field(default_factory=dict)
    projections: Mapping[str, Projection] = field(default_factory=dict)
    signals: Mapping[str, Signal] = field(default_factory=dict)
    attachments: Mapping[str, Attachment] = field(default_factory=dict)
    checks: Mapping[str, PageCheck] = field(default_factory=dict)
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    complete: Complete | None = field(default=None, compare=False, repr=False)

    @property
    def placeholders(self) -> tuple[str, ...]:
        """The names of the placeholders in the path, in order."""
        return tuple(re.findall(r"\{([A-Za-z_]\w*)\}", self.path))

    @property
    def is_template(self) -> bool:
        """Return True if the page stands for several addresses. Such pages are not listed in sitemaps and the like."""
        return "{" in self.path


# --- The site ---


@dataclass(frozen=True, slots=True)
class Paths:
    """The paths of our endpoints: those below `root`, and the doors.

    `invoke` may contain `{agent_id}` and a query (WoA section 4.3.1); the default is below `root`.
    """

    root: str = "/agents"
    invoke: str = ""
    mcp: str = "/mcp"
    a2a: str = "/a2a"
    awp: str = "/awp"
    bridge: str = "/actions-bridge"

    def __post_init__(self) -> None:
        object.__setattr__(self, "invoke", self.invoke or f"{self.root}/{{agent_id}}/invoke")

    @property
    def actions(self) -> str:
        return f"{self.root}/actions"

    @property
    def problems(self) -> str:
        return f"{self.root}/problems"

    @property
    def jobs(self) -> str:
        return f"{self.root}/jobs"

    @property
    def status(self) -> str:
        return f"{self.root}/status"

    @property
    def som(self) -> str:
        return f"{self.root}/som"

    @property
    def metrics(self) -> str:
        return f"{self.root}/metrics"

    @property
    def script(self) -> str:
        return f"{self.root}/actions.js"


@dataclass(frozen=True, slots=True)
class DoorFacts:
    """A live protocol endpoint that documents may announce. `path` is a path template below the site's url.

    A door with a `title` is named to readers as a way to call. `features` are optional parts of its protocol.
    """

    protocol: str
    version: str
    path: str
    title: str = ""
    features: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class OpenApi:
    """The OpenAPI document that the application itself serves."""

    path: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteFacts:
    """The facts that a site declares about itself."""

    name: str
    description: str
    version: str = "1.0"
    contact: Contact | None = None
    authentication: Authentication | None = None
    rate_limit: RateLimit | None = None
    entities: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    entity_schemas: Mapping[str, JsonObject] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    hints: Mapping[str, str] = field(default_factory=dict)
    allowed_origins: tuple[str, ...] = ()
    workflows: tuple[Workflow, ...] = ()
    documentation: str | None = None
    license: str | None = None
    updated: datetime | None = None
    imports: Mapping[str, Import] = field(default_factory=dict)
    provenance: Mapping[str, str] = field(default_factory=dict)
    robots: Robots = Robots()
    security: Security | None = None
    extensions: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Catalog:
    """Everything about the site for one of its public addresses, frozen. Protocol files read nothing else.

    `documents` are the paths of the documents that every such site publishes, `left_out` the names of protocols that
    this site does not publish, so that no document refers to one that does not exist. `metadata_path` is that of the
    metadata which challenges name (RFC 9728), `robots_lines` make the lines that plug-ins add to robots.txt. A catalog
    is equal only to itself.
    """

    url: str
    site: SiteFacts
    actions: tuple[Action, ...]
    agents: tuple[Agent, ...]
    prompts: tuple[Prompt, ...] = ()
    skills: tuple[Skill, ...] = ()
    events: tuple[Event, ...] = ()
    pages: tuple[Page, ...] = ()
    status: Status = Status()
    paths: Paths = Paths()
    doors: tuple[DoorFacts, ...] = ()
    documents: frozenset[str] = frozenset()
    left_out: frozenset[str] = frozenset()
    openapi: OpenApi | None = None
    metadata_path: str | None = None
    robots_lines: "tuple[Callable[[Catalog], str], ...]" = ()

    def publishes(self, protocol: str) -> bool:
        """Return True if the documents of a protocol are published, as far as they apply to this site."""
        return protocol not in self.left_out

    @property
    def domain(self) -> str:
        return urlsplit(self.url).hostname or ""

    @property
    def prefix(self) -> str:
        """The path of the site's url: "" or "/shop"."""
        return urlsplit(self.url).path

    @property
    def sign_in(self) -> Action | None:
        """The action at the address where sessions begin, as the site declares it, or None."""
        known = self.site.authentication
        login = known.endpoints.get("login") if known is not None else None
        found = [one for one in self.public.actions if one.target is not None and one.target.path == login]
        return next((one for one in found if one.intent != "read" and one.is_exposed_at("woa")), None)

    @property
    def token_source(self) -> Action | None:
        """The action from which the tokens of the routes' security schemes come: the route of their `tokenUrl`."""
        schemes = [scheme for action in self.public.actions for scheme in action.security_schemes.values()]
        listed = [flows for scheme in schemes if isinstance(flows := scheme.get("flows"), Mapping)]
        flows = [flow for one in listed for flow in one.values() if isinstance(flow, Mapping)]
        addresses = {str(flow.get("tokenUrl", "")).removeprefix(self.url) for flow in flows}
        paths = {address if address.startswith("/") else f"/{address}" for address in addresses if address}
        found = (one for one in self.public.actions if one.target is not None and one.target.path in paths)
        return next(found, None)

    # --- Visibility ---

    @property
    def public(self) -> "Catalog":
        """The catalog as everybody may see it, from which documents that are the same for all callers are made."""
        return self.visible_to(None)

    def visible_to(self, scopes: frozenset[str] | None) -> "Catalog":
        """Return the catalog as a caller with these scopes may see it; None means an unknown caller."""
        shown = self._with(tuple(one for one in self.actions if one.is_for(scopes)))
        hidden = {one.id for one in self.actions} - {one.id for one in shown.actions}
        prompts = tuple(one for one in self.prompts if one.action not in hidden)
        return shown if prompts == self.prompts else replace(shown, prompts=prompts)

    def exposed_at(self, door: str) -> "Catalog":
        """Return the catalog with only the actions that a door offers."""
        return self._with(tuple(one for one in self.actions if one.is_exposed_at(door)))

    def _with(self, actions: tuple[Action, ...]) -> "Catalog":
        """Return the catalog with only these of its actions, and without any mention of the others.

        An action that is guarded because of a hidden one stays guarded, although the hidden one is not named.
        """
        if len(actions) == len(self.actions):
            return self
        ids = frozenset(action.id for action in actions)
        shown = tuple(
            replace(
                action,
                depends_on=tuple(one for one in action.depends_on if one in ids),
                requires=tuple(one for one in action.requires if one in ids),
                is_required=action.is_required or bool(action.requires),
            )
            for action in actions
        )
        agents = (
            replace(agent, operations={name: one for name, one in agent.operations.items() if one in ids})
            for agent in self.agents
        )
        degraded = replace(self.status, degraded_actions=self.status.degraded_actions & ids)
        workflows = tuple(flow for flow in self.site.workflows if ids.issuperset(flow.steps))
        pages = (
            replace(
                page,
                actions=tuple(one for one in page.actions if one in ids),
                transitions={
                    name: one for name, one in page.transitions.items() if one.action is None or one.action in ids
                },
                projections={
                    name: replace(one, after={action: text for action, text in one.after.items() if action in ids})
                    for name, one in page.projections.items()
                },
                attachments={
                    name: one for name, one in page.attachments.items() if one.opens is None or one.opens in ids
                },
            )
            for page in self.pages
        )
        return replace(
            self,
            site=replace(self.site, workflows=workflows),
            actions=shown,
            agents=tuple(agent for agent in agents if agent.operations),
            pages=tuple(pages),
            status=degraded,
        )

    @property
    def metadata_url(self) -> str | None:
        """The address of the metadata that challenges name (RFC 9728 section 5.1), None if there is none."""
        return None if self.metadata_path is None else self.absolute(self.metadata_path)

    def absolute(self, path: str) -> str:
        """Return the public address of a path below the site."""
        return self.url + path

    def action(self, action_id: str) -> Action:
        """Return the action with this id. Raises KeyError."""
        return next_by_id(self.actions, action_id)

    def door(self, protocol: str) -> DoorFacts | None:
        return next((door for door in self.doors if door.protocol == protocol), None)

    def is_guarded(self, action: Action) -> bool:
        """Return True if a gate of ours applies to an action, or if other actions require its receipts."""
        asks_who = action.auth_required and not action.route_authenticates
        limit = self.site.rate_limit or action.rate_limit
        gates = limit, action.idempotency, action.needs_confirmation, action.requires, action.is_required, asks_who
        return any(gates) or not action.is_public

    def own_route(self, action: Action) -> Target | None:
        """Return the route at which the documents publish an action, or None if they publish the plain door instead.

        The route is published if the documents are true of it: no gate of ours guards the action, the route returns
        JSON to every client, and the action does not run in the background, because only our doors turn calls into
        jobs.
        """
        is_true = action.answers_json and not action.is_background and not self.is_guarded(action)
        return action.target if is_true else None

    def plain_path_of(self, action: Action) -> str:
        """Return the path below the site's url at which the plain door takes calls of an action."""
        return f"{self.paths.actions}/{action.id}"

    def endpoint_of(self, action: Action) -> tuple[str, str]:
        """Return the method and the path (below the site's url) with which a plain HTTP client calls an action."""
        route = self.own_route(action)
        return action.method, self.plain_path_of(action) if route is None else route.path

    def invoke_path_of(self, action: Action) -> str:
        """Return the path below the site's url at which the WoA door takes calls of an action."""
        return self.paths.invoke.replace("{agent_id}", action.agent_id)

    def poll_endpoint_of(self, action: Action) -> str | None:
        """Return the path template below the site's url at which a background action's jobs are polled."""
        return f"{self.paths.jobs}/{{job_id}}" if action.is_background else None


def title_of(identifier: str) -> str:
    """Return a readable name for an id: "Search books" for `search_books`."""
    return identifier.replace("_", " ").strip().capitalize()


def with_addresses(scheme: JsonObject, change: Callable[[str], str]) -> dict[str, object]:
    """Return a security scheme of OpenAPI with `change` applied to each of its addresses."""
    copied = dict(scheme)
    if isinstance(address := copied.get("openIdConnectUrl"), str):
        copied["openIdConnectUrl"] = change(address)
    if isinstance(flows := copied.get("flows"), Mapping):
        copied["flows"] = {
            kind: {
                name: change(one) if name[-3:] == "Url" and isinstance(one, str) else one for name, one in flow.items()
            }
            for kind, flow in flows.items()
            if isinstance(flow, Mapping)
        }
    return copied


def snake_case(words: str) -> str:
    """Return an id for words or for a name in another spelling: `list_books` for "List books" and listBooks."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", words)
    return re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_")


def next_by_id(actions: tuple[Action, ...], action_id: str) -> Action:
    for action in actions:
        if action.id == action_id:
            return action
    raise KeyError(action_id)
