"""Actions and agents."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from awp_publish.model.values import (
    DEFAULT_OPERATION,
    KNOWN,
    NOT_DOORS,
    PUBLIC,
    ActionType,
    Effect,
    Execution,
    Function,
    Idempotency,
    Intent,
    JsonObject,
    Location,
    RateLimit,
    Sensitivity,
    SideEffect,
    Summary,
)

QUERY_METHODS: Final = frozenset({"GET", "HEAD", "DELETE"})
"""Methods whose inputs a client puts into the query; those of others are the members of a JSON body."""


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


IN_ANOTHER_FORMAT: Final = "in another format"
"""How the reason ends for which a route is left out that gives what another one gives, as other data."""


class LeftOut(NamedTuple):
    """A route that `site.include()` saw and did not publish, and the reason."""

    method: str
    path: str
    name: str
    why: str


Asker: TypeAlias = Literal["site", "scheme", "code"]
"""Who asks the callers of an action to sign in.

The site: its owner has declared it, or its authenticators check what the route's scheme reads. Our gates refuse whoever
is not known. A security scheme of the route: it is published, and judges credentials that we do not know. Only the code
of the route, which refuses callers by itself: nobody is declared to be asked, or nobody but the route could know them.
"""

ROUTE_CALL: Final = "awp_publish.route_call"
"""The scope's key for the `RouteExchange` of a request that is a call of an action on its way to the action's route."""


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

    @property
    def takes_plain_inputs(self) -> bool:
        """True if each input goes where a client puts it that knows its name and the method: path, query or JSON."""
        assumed = "query" if self.method in QUERY_METHODS else "json"
        names = {parameter.wire_name for parameter in self.parameters}
        return len(names) == len(self.parameters) and all(
            parameter.location in ("path", assumed) for parameter in self.parameters
        )

    def pattern(self) -> re.Pattern[str]:
        """Return the pattern of the paths that the route matches, with a group for each path parameter."""
        spanning = {parameter.wire_name for parameter in self.parameters if parameter.spans_segments}
        pieces = re.split(r"{(\w+)}", self.path)  # text, name, text, name, ..., text
        expression = re.escape(pieces[0])
        for name, text in zip(pieces[1::2], pieces[2::2], strict=True):
            expression += f"(?P<{name}>{'.+' if name in spanning else '[^/]+'}){re.escape(text)}"
        return re.compile(expression, re.DOTALL)


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
    `rehearse` makes its `rehearsal`, once. The protocols' terms for an action's consequences are computed from
    `effect`. `examples` are whole inputs.

    `asker` says who asks callers to sign in, None that they need not. `route_credentials` are the headers, cookies and
    query parameters which the route's security scheme reads, optional ones too. `security` are the alternative ways to
    authenticate that the framework reports (OpenAPI, Security Requirement Object), `security_schemes` the schemes that
    they name.
    `answers_json` means that the route returns JSON whatever the request's Accept; `guards_route` that direct requests
    of the route pass the same gates as calls (None: as the site's option says); `page` is the page at its path.
    `enforces_outputs` means that other answers are failures; `outputs_vary` that nobody, the framework included, keeps
    the route from other answers.

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
    rehearse: Callable[[], object] | None = field(default=None, compare=False, repr=False)
    answer_headers: frozenset[bytes] = frozenset()
    secret_names: tuple[str, ...] = ()
    type: ActionType
    effect: Effect
    tags: tuple[str, ...] = ()
    examples: tuple[JsonObject, ...] = ()
    selector: str | None = None
    selectors: Mapping[str, str] = field(default_factory=dict)
    result: JsonObject | None = None
    asker: Asker | None = None
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
    enforces_outputs: bool = True
    outputs_vary: bool = False
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
    def auth_required(self) -> bool:
        """Return True if callers have to sign in."""
        return self.asker is not None

    @property
    def route_authenticates(self) -> bool:
        """Return True if only the route asks callers to sign in, and no gate of ours."""
        return self.asker in ("scheme", "code")

    @property
    def method(self) -> str:
        """The HTTP method of calls: the route's, or POST without a route."""
        return "POST" if self.target is None else self.target.method

    @property
    def way(self) -> Target | None:
        """The target of calls that go through the application: the route or the entry; None for a plain function."""
        return self.target or self.entry

    @property
    def rehearsal(self) -> object:
        """The endpoint of a hidden route that has the same security and does nothing; None without any security.

        The route is made when it is first asked for.
        """
        return None if self.rehearse is None else self.rehearse()

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
        """True unless it reads: then a redirect of its route is its success, and not on the way to its answer."""
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
