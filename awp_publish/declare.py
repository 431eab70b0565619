"""`Site`: what a site owner declares on. Decorators mark and collect; `freeze` makes the catalog of it.

site = Site(name="Bookshop", description="Find and order books.", url="https://books.example")

@app.get("/search")
@site.action("search_books")
async def search(q: str) -> SearchResults: ...
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeVar, Unpack

from awp_publish.discover import find_openapi, find_routes
from awp_publish.include import Inclusion
from awp_publish.model import Catalog, Door, Paths, RateLimit, SiteFacts, Status
from awp_publish.options import (
    ACTION_OPTIONS,
    AGENT_OPTIONS,
    IDS,
    SITE_OPTIONS,
    TEXTS,
    URLS,
    ActionOptions,
    AgentOptions,
    SiteOptions,
    check,
)
from awp_publish.problems import DeclarationError
from awp_publish.resolve import AgentDeclaration, Declaration, check_names, resolve
from awp_publish.site_facts import read_site_facts

URL_VARIABLE: Final = "AWP_PUBLISH_URL"

F = TypeVar("F", bound=Callable[..., Any] | type)
Listener = Callable[["Site"], None]


@dataclass(frozen=True)
class Limits:
    """What the doors hold every call to. `timeout` in seconds, `max_body_bytes` in bytes."""

    timeout: float = 30.0
    max_body_bytes: int = 1_048_576
    allow_origins: tuple[str, ...] = ()


class AgentHandle:
    """What `site.agent(...)` returns: a decorator for a single function, and a namespace for several operations."""

    def __init__(self, site: "Site", declaration: AgentDeclaration, shared: ActionOptions) -> None:
        self._site = site
        self._declaration = declaration
        self._shared = shared

    def __call__(self, function: F) -> F:
        """Declare `function` as the agent's default operation. Returns it unchanged."""
        return self.operation("default")(function)

    def operation(self, name: str, /, **options: Unpack[ActionOptions]) -> Callable[[F], F]:
        """Declare a function (with or without a route) as the operation `name` of this agent.

        The action behind it is called `{agent}_{name}`, and just `{agent}` for "default".
        """
        agent_id = self._declaration.id
        action_id = agent_id if name == "default" else f"{agent_id}_{name}"
        subject = f'operation "{name}" of agent "{agent_id}"'
        merged: ActionOptions = {**self._shared, **options, "agent": agent_id, "operation": name}
        return self._site._declaring(subject, action_id, merged, "either")


class Site:
    """A site that agents can use: facts about it, and the decorators that declare what can be done there.

    `url` is the public address, never taken from a request; several addresses may be listed, the first is the canonical
    one. Without `url` the environment variable AWP_PUBLISH_URL is read. Raises DeclarationError that names the field.
    """

    def __init__(
        self, name: str, description: str, url: str | Sequence[str] | None = None, **options: Unpack[SiteOptions]
    ) -> None:
        checked = check("site", SITE_OPTIONS, options)
        self.urls = _read_urls(url)
        self.facts: SiteFacts = read_site_facts(
            check("site", TEXTS, name, "name"), check("site", TEXTS, description, "description"), checked
        )
        self.paths = checked.get("paths", Paths())
        self.limits = Limits(
            checked.get("timeout", Limits.timeout),
            checked.get("max_body_bytes", Limits.max_body_bytes),
            tuple(checked.get("allow_origins", ())),
        )
        self._status = Status(status_endpoint=checked.get("status_endpoint"))
        self._declarations: list[Declaration] = []
        self._agents: dict[str, AgentDeclaration] = {}
        self._inclusions: list[Inclusion] = []
        self._catalogs: tuple[Catalog, ...] = ()
        self._listeners: list[Listener] = []

    # --- Declaring ---

    def action(self, action_id: str, /, **options: Unpack[ActionOptions]) -> Callable[[F], F]:
        """Declare a route handler as an action. Stands above or below the route decorator; returns the function."""
        return self._declaring(f'action "{action_id}"', action_id, options, "route")

    def agent(self, agent_id: str, /, **options: Unpack[AgentOptions]) -> AgentHandle:
        """Declare an agent: decorate one function with it, or each of several with its `operation(name)`."""
        subject = f'agent "{agent_id}"'
        self._refuse_when_frozen(subject)
        check(subject, IDS, agent_id, "id")
        if agent_id in self._agents:
            raise DeclarationError(subject, "is declared twice.", "Give one of the two another id.")
        checked = check(subject, AGENT_OPTIONS, options)
        self._agents[agent_id] = AgentDeclaration.read(agent_id, checked)
        own = {"name", "description", "version", "capabilities", "metadata", "agent", "operation"}
        shared: ActionOptions = {key: value for key, value in options.items() if key not in own}  # type: ignore[assignment]
        return AgentHandle(self, self._agents[agent_id], shared)

    def declare(self, action_id: str, /, **options: Unpack[ActionOptions]) -> None:
        """Declare an action by `method` and `path`, for handlers that cannot be decorated or were not written here."""
        subject = f'action "{action_id}"'
        for needed in ("method", "path"):
            if needed not in options:
                raise DeclarationError(subject, f"{needed}: is required by site.declare().")
        self._declare(subject, action_id, None, options, "path")

    def include(
        self,
        *,
        tags: Sequence[str] = (),
        paths: Sequence[str] = (),
        operations: Sequence[str] = (),
        exclude: Sequence[str] = (),
        auth_required: bool = False,
        rate_limit: str | RateLimit | None = None,
    ) -> None:
        """Publish routes that are already there, without touching their handlers.

        A route is taken if it has one of `tags`, its path matches one of `paths` (`/books/*`), or its name or
        operation id is among `operations`; with none of the three, every listed route is. Only reading routes (GET)
        are taken, unless `operations` names them. `exclude` lists names and paths to leave out. `auth_required` and
        `rate_limit` hold for each action.
        """
        self._refuse_when_frozen("site.include()")
        options: ActionOptions = {"auth_required": auth_required}
        if rate_limit is not None:
            options["rate_limit"] = rate_limit
        checked = check("site.include()", ACTION_OPTIONS, options)
        sequences = {"tags": tags, "paths": paths, "operations": operations, "exclude": exclude}
        for field_name, given in sequences.items():
            if isinstance(given, str):
                raise DeclarationError("site.include()", f"{field_name}: must be a list, not one string.")
        self._inclusions.append(Inclusion(tuple(tags), tuple(paths), tuple(operations), tuple(exclude), checked))

    def _declaring(
        self, subject: str, action_id: str, options: ActionOptions, kind: Literal["route", "either"]
    ) -> Callable[[F], F]:
        def mark(function: F) -> F:
            self._declare(subject, action_id, function, options, kind)
            return function

        return mark

    def _declare(
        self,
        subject: str,
        action_id: str,
        function: Callable[..., object] | None,
        options: ActionOptions,
        kind: Literal["route", "either", "path"],
    ) -> None:
        self._refuse_when_frozen(subject)
        check(subject, IDS, action_id, "id")
        if any(declared.id == action_id for declared in self._declarations):
            raise DeclarationError(subject, "is declared twice.", "Give one of the two another id.")
        self._declarations.append(
            Declaration(subject, action_id, kind, function, check(subject, ACTION_OPTIONS, options))
        )

    def _refuse_when_frozen(self, subject: str) -> None:
        if self._catalogs:
            raise DeclarationError(
                subject, "is declared after the site was published.", "Declare before the application starts."
            )

    # --- Freezing ---

    def freeze(self, app: object = None, doors: Sequence[Door] = ()) -> Catalog:
        """Resolve every declaration against the routes of `app` and make the catalog, once. Raises DeclarationError.

        `doors` are the live endpoints that the publisher has opened. Called by `AgentPublisher` at start-up.
        """
        if not self._catalogs:
            routes = find_routes(app)
            actions, agents = resolve(self._declarations, self._agents, self._inclusions, routes, self.limits.timeout)
            check_names(self.facts, actions)
            catalog = Catalog(
                url=self.urls[0],
                site=self.facts,
                actions=actions,
                agents=agents,
                status=self._status,
                paths=self.paths,
                doors=tuple(doors),
                openapi=find_openapi(app),
            )
            self._catalogs = self._with_status(catalog)
        return self._catalogs[0]

    @property
    def catalog(self) -> Catalog:
        """The catalog for the canonical address. Raises DeclarationError before the site is frozen."""
        return self.catalogs[0]

    @property
    def catalogs(self) -> tuple[Catalog, ...]:
        """One catalog for each address of the site."""
        if not self._catalogs:
            raise DeclarationError("site", "is not frozen yet.", "It is when the application has started.")
        return self._catalogs

    # --- Status ---

    def set_status(self, *, operational: bool | None = None, degraded_actions: Sequence[str] | None = None) -> None:
        """Say what works (agent.json section 13); what is not given stays as it is. `refresh()` publishes it."""
        self._status = Status(
            self._status.operational if operational is None else operational,
            self._status.degraded_actions if degraded_actions is None else frozenset(degraded_actions),
            self._status.status_endpoint,
        )

    def refresh(self) -> None:
        """Publish the documents again with the present status. Every request sees the old whole or the new whole.

        Holds for this process: each worker publishes its own. Raises DeclarationError for unknown degraded actions.
        """
        self._catalogs = self._with_status(self.catalog)
        for listener in self._listeners:
            listener(self)

    def on_refresh(self, listener: Listener) -> None:
        """Call `listener(site)` after each refresh; publishers prepare their documents there."""
        self._listeners.append(listener)

    def _with_status(self, catalog: Catalog) -> tuple[Catalog, ...]:
        unknown = sorted(self._status.degraded_actions - {action.id for action in catalog.actions})
        if unknown:
            raise DeclarationError("site", f'degraded_actions: there is no action "{unknown[0]}".')
        return tuple(replace(catalog, url=url, status=self._status) for url in self.urls)


def _read_urls(given: str | Sequence[str] | None) -> tuple[str, ...]:
    urls = given if given is not None else os.environ.get(URL_VARIABLE, "")
    listed = [urls] if isinstance(urls, str) else list(urls)
    if not listed or listed == [""]:
        raise DeclarationError("site", f"url: is required; give Site(url=...) or set {URL_VARIABLE}.")
    return tuple(check("site", URLS, url, "url") for url in listed)
