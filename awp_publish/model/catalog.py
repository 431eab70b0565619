"""The site as a whole: its facts and its catalog, which is all that a document may read."""

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from urllib.parse import urlsplit

from awp_publish.model.actions import Action, Agent, Target
from awp_publish.model.offers import Event, Prompt, Skill
from awp_publish.model.pages import Page
from awp_publish.model.values import Authentication, Contact, JsonObject, RateLimit, Robots, Security, Status, Workflow
from awp_publish.problems import ALL, Problem


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

    actions: str = field(init=False, default="/actions")
    problems: str = field(init=False, default="/problems")
    jobs: str = field(init=False, default="/jobs")
    status: str = field(init=False, default="/status")
    som: str = field(init=False, default="/som")
    metrics: str = field(init=False, default="/metrics")
    script: str = field(init=False, default="/actions.js")

    def __post_init__(self) -> None:
        object.__setattr__(self, "invoke", self.invoke or f"{self.root}/{{agent_id}}/invoke")
        for below in fields(self):
            if not below.init:
                object.__setattr__(self, below.name, f"{self.root}{below.default}")


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
    provenance: Mapping[str, str] = field(default_factory=dict)
    robots: Robots = Robots()
    security: Security | None = None
    extensions: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Catalog:
    """Everything about the site for one of its public addresses, frozen. Protocol files read nothing else.

    `doors` are those that documents announce, `open_doors` the names of all of them (None: any). `documents` are the
    paths of the documents that every such site publishes, `protocols` the names of the protocols that it publishes
    (None: all), so that no document refers to one that does not exist. `metadata_path` is that of the metadata which
    challenges name (RFC 9728), `robots_lines` make the lines that plug-ins add to robots.txt, `problems` are those that
    calls can meet. `is_observed` means that somebody has watched the site and nothing of ours answers there. A catalog
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
    open_doors: frozenset[str] | None = None
    documents: frozenset[str] = frozenset()
    protocols: frozenset[str] | None = None
    openapi: OpenApi | None = None
    metadata_path: str | None = None
    is_observed: bool = False
    robots_lines: "tuple[Callable[[Catalog], str], ...]" = ()
    problems: tuple[type[Problem], ...] = ALL

    def publishes(self, protocol: str) -> bool:
        """Return True if the documents of a protocol are published, as far as they apply to this site."""
        return self.protocols is None or protocol in self.protocols

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
        authentication = self.site.authentication
        login = authentication.endpoints.get("login") if authentication is not None else None
        actions = [
            action for action in self.public.actions if action.target is not None and action.target.path == login
        ]
        return next((action for action in actions if action.intent != "read" and action.is_exposed_at("woa")), None)

    @property
    def token_source(self) -> Action | None:
        """The action from which the tokens of the routes' security schemes come: the route of their `tokenUrl`."""
        public = self.public
        paths = public.token_addresses
        return next(
            (action for action in public.actions if action.target is not None and action.target.path in paths), None
        )

    @property
    def token_addresses(self) -> frozenset[str]:
        """Addresses that give tokens of the routes' security schemes: paths below the site's url, or other URLs."""
        schemes = [scheme for action in self.actions for scheme in action.security_schemes.values()]
        listed = [flows for scheme in schemes if isinstance(flows := scheme.get("flows"), Mapping)]
        flows = [flow for flows_of_scheme in listed for flow in flows_of_scheme.values() if isinstance(flow, Mapping)]
        addresses = {str(flow.get("tokenUrl", "")).removeprefix(self.url) for flow in flows}
        return frozenset(
            address if "://" in address or address.startswith("/") else f"/{address}"
            for address in addresses
            if address
        )

    @property
    def public(self) -> "Catalog":
        """The catalog as everybody may see it, from which documents that are the same for all callers are made."""
        return self.visible_to(None)

    def visible_to(self, scopes: frozenset[str] | None) -> "Catalog":
        """Return the catalog as a caller with these scopes may see it; None means an unknown caller."""
        catalog = self._with(tuple(action for action in self.actions if action.is_for(scopes)))
        hidden = {action.id for action in self.actions} - {action.id for action in catalog.actions}
        prompts = tuple(prompt for prompt in self.prompts if prompt.action not in hidden)
        return catalog if prompts == self.prompts else replace(catalog, prompts=prompts)

    def exposed_at(self, door: str) -> "Catalog":
        """Return the catalog with only the actions that a door offers."""
        return self._with(tuple(action for action in self.actions if self.offers(door, action)))

    def has_door(self, door: str) -> bool:
        """Return True if the site has a door of this name, announced or not."""
        return self.open_doors is None or door in self.open_doors

    def offers(self, door: str, action: Action) -> bool:
        """Return True if a door takes calls of an action, or, for plain clients, the route of the action itself."""
        is_there = door != "plain" or self.has_door(door) or self.own_route(action) is not None
        return is_there and action.is_exposed_at(door)

    def _with(self, actions: tuple[Action, ...]) -> "Catalog":
        """Return the catalog with only these of its actions, and without any mention of the others.

        An action that is guarded because of a hidden one stays guarded, although the hidden one is not named.
        """
        if len(actions) == len(self.actions):
            return self
        ids = frozenset(action.id for action in actions)
        visible = tuple(
            replace(
                action,
                depends_on=tuple(action_id for action_id in action.depends_on if action_id in ids),
                requires=tuple(action_id for action_id in action.requires if action_id in ids),
                is_required=action.is_required or bool(action.requires),
            )
            for action in actions
        )
        agents = (
            replace(
                agent, operations={name: action_id for name, action_id in agent.operations.items() if action_id in ids}
            )
            for agent in self.agents
        )
        degraded = replace(self.status, degraded_actions=self.status.degraded_actions & ids)
        workflows = tuple(flow for flow in self.site.workflows if ids.issuperset(flow.steps))
        pages = (
            replace(page, actions=tuple(action_id for action_id in page.actions if action_id in ids))
            for page in self.pages
        )
        return replace(
            self,
            site=replace(self.site, workflows=workflows),
            actions=visible,
            agents=tuple(agent for agent in agents if agent.operations),
            pages=tuple(pages),
            status=degraded,
        )

    @property
    def own_paths(self) -> frozenset[str]:
        """The paths, and path templates, at which a door or a document of ours answers."""
        paths = self.paths
        fixed = paths.status, paths.som, paths.problems, paths.invoke.partition("?")[0]
        templates = f"{paths.actions}/{{action_id}}", f"{paths.jobs}/{{job_id}}"
        return self.documents.union((*fixed, *templates), (door.path for door in self.doors))

    @property
    def metadata_url(self) -> str | None:
        """The address of the metadata that challenges name (RFC 9728 section 5.1), None if there is none."""
        return None if self.metadata_path is None else self.absolute(self.metadata_path)

    def absolute(self, path: str) -> str:
        """Return the public address of a path below the site."""
        return self.url + path

    def action(self, action_id: str) -> Action:
        """Return the action with this id. Raises KeyError."""
        for action in self.actions:
            if action.id == action_id:
                return action
        raise KeyError(action_id)

    def door(self, protocol: str) -> DoorFacts | None:
        return next((door for door in self.doors if door.protocol == protocol), None)

    def is_guarded(self, action: Action) -> bool:
        """Return True if a gate of ours applies to an action, or if other actions require its receipts."""
        limit = self.site.rate_limit or action.rate_limit
        gates = limit, action.idempotency, action.needs_confirmation, action.requires, action.is_required
        return any(gates) or action.asker == "site" or not action.is_public

    def own_route(self, action: Action) -> Target | None:
        """Return the route at which the documents publish an action, or None if they publish the plain door instead.

        The route is published if the documents are true of it: no gate of ours guards the action, the route returns
        JSON to every client, the action does not run in the background, because only our doors turn calls into jobs,
        and a client that ignores all members with `x-` (AWAS 1.0, Extensions) puts each input where the route takes it.
        """
        if self.is_observed:
            return action.target
        is_true = action.answers_json and not action.is_background and not self.is_guarded(action)
        return action.target if is_true and action.target is not None and action.target.takes_plain_inputs else None

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
                name: change(value) if name[-3:] == "Url" and isinstance(value, str) else value
                for name, value in flow.items()
            }
            for kind, flow in flows.items()
            if isinstance(flow, Mapping)
        }
    return copied


def without_accents(text: str) -> str:
    """Return a text in lower case with plain letters, "cafe muller" for "Café Müller", as names in ASCII begin."""
    return "".join(part for part in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.combining(part))


def snake_case(words: str) -> str:
    """Return an id for words or for a name in another spelling: `list_books` for "List books" and listBooks."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", words)
    return re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_")
