"""The frozen facts everything is derived from: `Action`, `Agent`, `SiteFacts`, `Catalog`, and the values they hold.

Protocol files read a `Catalog` and nothing else. Nothing here checks anything: `settings.py` refuses mistakes before a
value is made. JSON Schemas are JSON Schema 2020-12 with their own `$defs`, so that each can stand alone.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Final, Literal, NamedTuple, TypeAlias
from urllib.parse import urlsplit

# --- Small frozen values that a declaration is made of: limits, contacts, status ---

UNIT_NAMES: Final = {"s": "second", "m": "minute", "h": "hour", "d": "day"}
UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def utc_text(moment: datetime, precision: str = "auto") -> str:
    """Return a moment in UTC as RFC 3339 writes it, to the `precision` that `isoformat` calls timespec."""
    return moment.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def seconds_of(duration: str) -> int:
    """The seconds of a duration such as "24h"."""
    return int(duration[:-1]) * UNIT_SECONDS[duration[-1]]


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most `requests` calls in `count` `unit`s (s, m, h, d), counted for each `scope` (AWAS 1.0, rateLimit object).

    A scope is "ip" (each address), "user" (each caller, an address if nobody is known) or "global" (all callers
    together); None counts as "user" does, and is not published. `whom` is the label or the directory of the agents that
    it holds for, "" for everybody; it is not published either.
    """

    requests: int
    count: int = 1
    unit: Literal["s", "m", "h", "d"] = "m"
    scope: str | None = None
    whom: str = ""

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
class Authentication:
    """The ways in which callers identify themselves (agent.json section 7, AWAS `authentication`), of a site's options.

    `token_expiry` is a duration such as "24h"; `refresh_endpoint` and the values of `endpoints` are paths or URLs.
    `authorization_servers` are the issuer identifiers of those that issue tokens for this site (RFC 9728 section 2).
    `api_key_header` is the header in which API keys are sent, `session_cookie` the cookie of the site's sessions.
    `audiences` are those of the tokens that are taken, `proof_algorithms` the signatures of proofs of those that are
    bound to a key (RFC 9449), `proof_required` where no others are taken.
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


@dataclass(frozen=True, slots=True)
class Contact:
    """Whom to ask (AWAS 1.0 `contact`)."""

    email: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Robots:
    """The words of robots.txt about a site besides its sitemap.

    `disallow` are paths that no robot is to read. `bots` says of crawlers by name whether they may come. The owner's
    preferences are said only where they are given: `content_signal` by name, such as {"search": "yes", "ai-train":
    "no", "use": "reference"}, `content_usage` as AIPREF writes it, `license` the address of an RSL licence.
    """

    disallow: Sequence[str] = ()
    bots: Mapping[str, bool] = field(default_factory=dict)
    content_signal: Mapping[str, str] = field(default_factory=dict)
    content_usage: str | None = None
    license: str | None = None


@dataclass(frozen=True, slots=True)
class Security:
    """To whom weaknesses are reported (RFC 9116): mailto: and https: addresses, until when that holds, and how.

    `expires` is a datetime once it is read.
    """

    contact: Sequence[str]
    expires: datetime | date | str
    policy: str | None = None
    languages: Sequence[str] = ()


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


JsonObject: TypeAlias = Mapping[str, object]
Function: TypeAlias = Callable[[JsonObject], Awaitable[bytes]]
"""A plain function made callable with a validated input; it answers with JSON text."""

Summary: TypeAlias = str | Callable[..., str | Awaitable[str]]
"""The effect of a call in plain language: a text with the inputs in braces, or a function of the input or of the input
and the call."""

Location: TypeAlias = Literal["path", "query", "header", "cookie", "json", "form", "file", "rows", "body"]
Sensitivity: TypeAlias = Literal["standard", "destructive", "irreversible"]
Intent: TypeAlias = Literal["read", "write", "delete", "execute"]
SideEffect: TypeAlias = Literal["safe", "idempotent", "destructive"]
Effect: TypeAlias = Literal["read", "idempotent", "write", "delete", "irreversible"]
"""The change that a call makes: none; the same however often; something more each time; gone; never to be undone."""
Execution: TypeAlias = Literal["sync", "async"]
ActionType: TypeAlias = Literal[
    "form_submission", "navigation", "search", "filter", "data_retrieval", "state_change", "custom"
]

SAFE_IN_PATH: Final = "/%:@!$&'()*+,;=~"
"""Characters of a path that stay as they are when it is percent-encoded (RFC 3986 section 3.3)."""

DEFAULT_OPERATION: Final = "default"

DOORS: Final = ("woa", "plain", "mcp", "a2a", "awp", "bridge")
"""The doors at which an action may be offered."""

PUBLIC: Final = "public"
KNOWN: Final = "known"
OPERATOR: Final = "operator"
"""Audiences of an action: everybody, callers who are known, those with the scope "operator"; any other is a scope."""

EXTENDED_DOCUMENTS: Final = frozenset({"agent_json", "awas", "woa"})
"""Protocols to whose documents a site may add members under any name: names of `extensions` without `x-`."""


# --- Actions and agents ---


@dataclass(frozen=True, slots=True)
class Parameter:
    """The place of one input of an action in the HTTP request behind it.

    `wire_name` is the name there (a header's name, a form field's). `location` "body" means that this input is the
    whole JSON body; `spans_segments` that a path parameter may contain slashes.
    """

    name: str
    location: Location
    wire_name: str
    spans_segments: bool = False


class RouteCredential(NamedTuple):
    """The place of a route's own credentials: a header (its name in lower case), a cookie or a member of the query."""

    place: Literal["header", "cookie", "query"]
    name: str


class Arrival(NamedTuple):
    """The end of the application's own routing: the route's template, with its convertors, and what answers there.

    `endpoint` is None where an application keeps its routes to itself.
    """

    path: str
    endpoint: object


class LeftOut(NamedTuple):
    """A way into the application that `site.include()` saw and did not take, and why."""

    method: str
    path: str
    name: str
    why: str


ROUTE_CALL: Final = "awp_publish.route_call"
"""The member of a scope that says of a request that it is a call on its way to its route: its `RouteCall`."""


@dataclass(frozen=True, slots=True)
class Target:
    """The route behind an action: method, path template (`/books/{slug}`), where inputs go, the body's media type.

    `arrival` is the only place where a request for it may arrive; None where the application does not show it.
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

    `inputs` and `outputs` are JSON Schemas. Either `target` (a route) or `function` (a plain function) is behind it, or
    `entry`: a hidden route that resolves what a function without a route of its own has from its framework.
    `rehearsal` is the endpoint of a hidden route that has the security of either, and does nothing.
    The protocols' words for its consequences are computed from `effect`. `examples` are whole inputs.
    `route_authenticates` says that the route behind it has a security scheme of its own, `route_credentials` in which
    headers, cookies and members of the query that scheme looks. `security` are the alternatives in which its framework
    says that a caller may authenticate (OpenAPI, Security Requirement Object), `security_schemes` what they name.
    `answers_json` says that the route gives JSON whatever a request accepts, `guards_route` that direct requests of it
    meet the same gates as calls (None: as the site says); `page` is the page at its path. `depends_on` names the
    actions that come before it, `requires` those of them of which a call has to show receipts; `is_required` says that
    another one requires it. `allow_agents` are labels and directories of agents that sign (none: everybody).
    `max_body_bytes` is None where the site's holds. `audience` are those for whom it is, `expose` the DOORS at which it
    is offered (None: all); what is not `is_approved` is there for nobody.
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

    @property
    def is_public(self) -> bool:
        """Return True if everybody may know of it."""
        return self.is_approved and self.audience == PUBLIC

    def is_for(self, scopes: frozenset[str] | None) -> bool:
        """Return True if a caller with these scopes may know of it; None for nobody known."""
        if not self.is_approved or self.audience == PUBLIC:
            return self.is_approved
        return scopes is not None and (self.audience == KNOWN or self.audience in scopes)

    def is_exposed_at(self, door: str) -> bool:
        """Return True if it is offered at one of DOORS; what is none of them offers everything."""
        return self.expose is None or door in self.expose or door not in DOORS

    @property
    def method(self) -> str:
        """The HTTP method that it is called with: its route's."""
        return "POST" if self.target is None else self.target.method

    @property
    def way(self) -> Target | None:
        """The target of its calls through the application: its route or its entry; None for a plain function."""
        return self.target or self.entry

    @property
    def remembers(self) -> bool:
        """Return True if its calls leave something behind, which a store in memory forgets when its process ends."""
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
        """AWAS 1.1 `sideEffect`, whose absence means "safe": what is not known to be safe is said to be more."""
        if self.effect == "read":
            return "safe"
        if self.effect == "idempotent":
            return "idempotent"
        is_harmful = self.sensitivity in ("destructive", "irreversible")
        return "idempotent" if self.idempotency is not None and not is_harmful else "destructive"

    @property
    def sensitivity(self) -> Sensitivity | None:
        """agent.json section 9; None where it reads."""
        return _SENSITIVITIES[self.effect]

    @property
    def is_repeatable(self) -> bool:
        """Return True if a call that was cut off may be made again.

        Reads, what is idempotent, and DELETE (RFC 9110 section 9.2.2). An idempotency key alone says nothing of the
        handler: it is we who keep a second call from it.
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
"""Suggests values of an argument, given its name, what is typed so far and the other arguments; None for no idea."""


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """A value that a person fills in. `choices` are all its values, where these are few."""

    name: str
    description: str | None
    required: bool
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A text that a person picks for a model of their own.

    `write` makes it of the arguments, as JSON: a string, or a list of pairs of a role ("user", "assistant") and a text;
    of a picture, a sound or a file the text is base64, and its media type stands third. It raises InvalidInput, or what
    its function raises. `action` is the id of the action whose function it is, too.
    """

    id: str
    name: str
    description: str | None
    arguments: tuple[PromptArgument, ...]
    write: Function = field(compare=False, repr=False)
    complete: Complete | None = field(default=None, compare=False, repr=False)
    action: str | None = None


SKILL_FILE: Final = "SKILL.md"
LONGEST_SKILL_NAME: Final = 64
LONGEST_SKILL_DESCRIPTION: Final = 1024
"""The file with which a skill begins, and the characters of its name and its description (agentskills.io)."""


@dataclass(frozen=True, slots=True)
class Skill:
    """A text about how something is done on the site, for agents to read before they do it (agentskills.io).

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
    """Something that happens on the site, of which agents can be told.

    `payload` is the JSON Schema of what is told, `inputs` that of what a subscription may ask for. `audience` are those
    who may know that there is such an event; each occurrence has an audience of its own.
    """

    id: str
    description: str
    payload: JsonObject
    inputs: JsonObject
    audience: str = PUBLIC

    def is_for(self, scopes: frozenset[str] | None) -> bool:
        """Return True if a caller with these scopes may know of it; None for nobody known."""
        return self.audience == PUBLIC or (scopes is not None and (self.audience == KNOWN or self.audience in scopes))


# --- Pages, and what can be done on them (actions.json V1) ---


@dataclass(frozen=True, slots=True)
class Locator:
    """A place in a page: a CSS selector, narrowed by role, accessible name or text (V1, target).

    All that is given holds together. `fallbacks` are selectors that are tried when the first one finds nothing.
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
    """A condition of a page: it holds while everything in `where` is there. `shows` names projections to read in it."""

    description: str
    where: Place | Sequence[Place]
    shows: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Transition:
    """A way between two states of a page, moved by an `action` or observed as a `signal`.

    `every_ms` is the least time between two such moves. `do_not_use` says what has proved wrong, in sentences.
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
    """One field of a record: the text of what `css` finds in it, or an attribute or a property of that.

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
    """Elements that a projection reads: each one that `css` finds (the first alone if not `many`), and its fields."""

    css: str
    fields: Mapping[str, Value] = field(default_factory=dict)
    many: bool = True


@dataclass(frozen=True, slots=True)
class Projection:
    """The state of a page in a few facts (V1, state_projections). Expressions are JSONata, without braces around them.

    `state` is made of `records`, `url` and `title`; `schema` is its JSON Schema or its type; `summaries` are made of
    `state`. `after` has for action ids what must be true of `state` once the action has succeeded.
    """

    description: str
    records: Mapping[str, Records]
    state: str
    schema: object = None
    summaries: Mapping[str, str] = field(default_factory=dict)
    after: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Signal:
    """An event of the page that agents may be told of. `payload` is the JSON Schema or type of its detail."""

    event: str
    payload: object = None
    at: Place | None = None
    description: str | None = None
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class Attachment:
    """Something that a runtime adds to the page at a place, with a `label` for people."""

    kind: str
    at: Place
    label: str
    description: str | None = None
    placement: Literal["beforebegin", "afterbegin", "beforeend", "afterend"] = "afterend"
    opens: str | None = None


@dataclass(frozen=True, slots=True)
class PageCheck:
    """The things that must be visible in a page for its declarations to be true."""

    description: str
    visible: Sequence[Place]
    severity: Literal["info", "minor", "major", "critical"] = "major"


@dataclass(frozen=True, slots=True)
class Import:
    """Another map, whose names are taken over below a namespace (V1, imports)."""

    uri: str
    kind: Literal["website", "local", "storage", "shared", "public", "package"] = "public"
    trust: Literal["website", "private", "shared", "public", "local", "unknown"] = "unknown"
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class Page:
    """A page that a site names.

    `path` is percent-encoded, below the site's url; a page of several addresses has placeholders in it
    (`/books/{slug}`). `id` goes before the names of everything that is declared on the page. `actions` are the ids of
    the actions whose forms stand on it. `choices` are the values of its placeholders, where these are few.
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
        """The names in its path, in their order."""
        return tuple(re.findall(r"\{([A-Za-z_]\w*)\}", self.path))

    @property
    def is_template(self) -> bool:
        """Return True if the page has several addresses; such pages stand in no list of addresses."""
        return "{" in self.path


# --- The site ---


@dataclass(frozen=True, slots=True)
class Paths:
    """Addresses of ours: those below `root`, and the doors.

    `invoke` may hold `{agent_id}` and a query (WoA section 4.3.1); it is below `root` if it is left out.
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
    robots: Robots | None = None
    security: Security | None = None
    extensions: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Catalog:
    """The frozen whole, for one public address of the site. All that a protocol file may read.

    `documents` are the paths of what every such site publishes, and `left_out` the names of protocols that this one
    does not, so that no document points at one that is not there. A catalog equals itself alone.
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
    doors: tuple[Door, ...] = ()
    documents: frozenset[str] = frozenset()
    left_out: frozenset[str] = frozenset()
    openapi: OpenApi | None = None

    def publishes(self, protocol: str) -> bool:
        """Return True if the documents of a protocol are published, as far as they are fit for this site."""
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
        """The action behind the address at which sessions begin, as the site declares it; None for none."""
        known = self.site.authentication
        login = known.endpoints.get("login") if known is not None else None
        found = [one for one in self.public.actions if one.target is not None and one.target.path == login]
        return next((one for one in found if one.intent != "read"), None)

    # --- Who sees what ---

    @property
    def public(self) -> "Catalog":
        """The catalog as everybody may see it: what documents are made of that are the same for all."""
        return self.visible_to(None)

    def visible_to(self, scopes: frozenset[str] | None) -> "Catalog":
        """The catalog as a caller with these scopes may see it; None for nobody known."""
        shown = self._with(tuple(one for one in self.actions if one.is_for(scopes)))
        hidden = {one.id for one in self.actions} - {one.id for one in shown.actions}
        prompts = tuple(one for one in self.prompts if one.action not in hidden)
        return shown if prompts == self.prompts else replace(shown, prompts=prompts)

    def exposed_at(self, door: str) -> "Catalog":
        """The catalog with the actions that are offered at a door."""
        return self._with(tuple(one for one in self.actions if one.is_exposed_at(door)))

    def _with(self, actions: tuple[Action, ...]) -> "Catalog":
        """The catalog with these of its actions alone, and without a word of the others.

        What is guarded for the sake of another one stays guarded, though nobody is told which that is.
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
                    name: replace(one, after={action: said for action, said in one.after.items() if action in ids})
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

    def absolute(self, path: str) -> str:
        """The public address of a path below the site."""
        return self.url + path

    def action(self, action_id: str) -> Action:
        """The action with this id. Raises KeyError."""
        return next_by_id(self.actions, action_id)

    def door(self, protocol: str) -> Door | None:
        return next((door for door in self.doors if door.protocol == protocol), None)

    def is_guarded(self, action: Action) -> bool:
        """Return True if a gate of ours stands before an action, or hands something out that another one asks for."""
        asks_who = action.auth_required and not action.route_authenticates
        limit = self.site.rate_limit or action.rate_limit
        gates = limit, action.idempotency, action.needs_confirmation, action.requires, action.is_required, asks_who
        return any(gates) or not action.is_public

    def own_route(self, action: Action) -> Target | None:
        """The route at which the documents publish an action; None where the plain door stands in for it.

        What they promise holds at the route itself if no gate of ours guards it, it gives JSON to whoever calls, and it
        is not run in the background: only our doors make jobs of calls.
        """
        is_true = action.answers_json and not action.is_background and not self.is_guarded(action)
        return action.target if is_true else None

    def plain_path_of(self, action: Action) -> str:
        """The path below the site's url at which the plain door takes calls of an action."""
        return f"{self.paths.actions}/{action.id}"

    def endpoint_of(self, action: Action) -> tuple[str, str]:
        """Method and path (below the site's url) with which a plain HTTP client calls an action."""
        route = self.own_route(action)
        return action.method, self.plain_path_of(action) if route is None else route.path

    def invoke_path_of(self, action: Action) -> str:
        """The path below the site's url at which the WoA door takes calls of an action."""
        return self.paths.invoke.replace("{agent_id}", action.agent_id)

    def poll_endpoint_of(self, action: Action) -> str | None:
        """The path template below the site's url at which a background action's jobs are polled."""
        return f"{self.paths.jobs}/{{job_id}}" if action.is_background else None


def title_of(identifier: str) -> str:
    """A readable name of an id: `search_books` is "Search books"."""
    return identifier.replace("_", " ").strip().capitalize()


def with_addresses(scheme: JsonObject, change: Callable[[str], str]) -> dict[str, object]:
    """A security scheme as OpenAPI describes it, with its addresses changed."""
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
    """An id of words, or of a name in another spelling: `list_books` of "List books" and listBooks; "" of no words."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", words)
    return re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_")


def next_by_id(actions: tuple[Action, ...], action_id: str) -> Action:
    for action in actions:
        if action.id == action_id:
            return action
    raise KeyError(action_id)
