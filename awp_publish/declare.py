"""`Site`: what a site owner declares on. Decorators mark and collect; `freeze` makes the catalog of it.

site = Site(name="Bookshop", description="Find and order books.", url="https://books.example")

@app.get("/search")
@site.action("search_books")
async def search(q: str) -> SearchResults: ...
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar, Unpack
from urllib.parse import urlsplit

from awp_publish.agent_handle import AgentHandle
from awp_publish.declared_pages import DeclaredPages
from awp_publish.describe import Defaults
from awp_publish.discover import find_openapi, find_routes
from awp_publish.discover.routes import is_bound_for_a_call, mark
from awp_publish.guarding import check_guarding, published_authentication, read_guarding
from awp_publish.include import SUBJECT as INCLUDE, Inclusion
from awp_publish.liveness import Liveness
from awp_publish.model import Catalog, Door, Paths, RateLimit, SiteFacts
from awp_publish.offering import Offering, read_offering
from awp_publish.options import (
    NAMES,
    ActionOptions,
    AgentOptions,
    PageOptions,
    SiteOptions,
    check,
    check_action,
    check_agent,
    check_identifier,
    check_site,
)
from awp_publish.policy.call import CallListener
from awp_publish.problems import DeclarationError
from awp_publish.prompts import Prompts
from awp_publish.resolve import AgentDeclaration, Declaration, check_names, check_skills, resolve
from awp_publish.site_facts import read_site_facts, read_urls
from awp_publish.site_limits import Limits, read_limits

F = TypeVar("F", bound=Callable[..., Any] | type)
Listener = Callable[["Site"], None]


class Site:
    """A site that agents can use: facts about it, and the decorators that declare what can be done there.

    `url` is the public address, never taken from a request; several addresses may be listed, the first is the canonical
    one. Without `url` the environment variable AWP_PUBLISH_URL is read. Raises DeclarationError that names the field.
    """

    def __init__(
        self, name: str, description: str, url: str | Sequence[str] | None = None, **options: Unpack[SiteOptions]
    ) -> None:
        name, description, checked = check_site(name, description, options)
        self.urls = read_urls(url)
        self.guarding = read_guarding(checked, urlsplit(self.urls[0]).netloc)
        facts = read_site_facts(name, description, checked)
        self.facts: SiteFacts = replace(
            facts, authentication=published_authentication(self.guarding, facts.authentication)
        )
        self.paths = checked.get("paths", Paths())
        self.limits: Limits = read_limits(checked)
        self.offering: Offering = read_offering(checked)
        self.doors: tuple[str, ...] = tuple(dict.fromkeys(checked.get("doors", ())))
        self.liveness = Liveness(checked.get("status_endpoint", self.paths.status))
        self._declarations: dict[str, Declaration] = {}
        self._agents: dict[str, AgentDeclaration] = {}
        self._inclusions: list[Inclusion] = []
        self._prompts = Prompts()
        self._pages = DeclaredPages(self._refuse_when_frozen)
        self._catalogs: tuple[Catalog, ...] = ()
        self._listeners: list[Listener] = []
        self.call_listeners: list[CallListener] = []

    # --- Declaring ---

    def action(self, action_id: str, /, **options: Unpack[ActionOptions]) -> Callable[[F], F]:
        """Declare a route handler as an action. Stands above or below the route decorator; returns the function."""
        return self._declaring(f'action "{action_id}"', action_id, options, "route")

    def agent(self, agent_id: str, /, **options: Unpack[AgentOptions]) -> AgentHandle:
        """Declare an agent: decorate one function with it, or each of several with its `operation(name)`."""
        subject = f'agent "{agent_id}"'
        self._refuse_when_frozen(subject)
        _check_id("agent", subject, agent_id)
        if agent_id in self._agents:
            raise DeclarationError(subject, "is declared twice.", "Give one of the two another id.")
        for name in ("agent", "operation"):
            if name in options:
                raise DeclarationError(subject, f"{name}: is an option of actions, not of agents.")
        self._agents[agent_id] = AgentDeclaration.read(agent_id, check_agent(subject, options))
        return AgentHandle(self._declaring, agent_id, options)

    def prompt(
        self, prompt_id: str, /, *, title: str | None = None, description: str | None = None
    ) -> Callable[[F], F]:
        """Declare a prompt: a function that makes a text for a person's own model of what the person fills in."""
        self._refuse_when_frozen(f'prompt "{prompt_id}"')
        return self._prompts.declare(prompt_id, title, description)

    def page(self, path: str | None = None, /, **options: Unpack[PageOptions]) -> Callable[[F], F]:
        """Declare a page: decorate its route handler, or call it with the `path` of a page that was not written here.

        Without a title it is called by the end of its path; without a description by the handler's docstring.
        """
        return self._pages.declare(path, options)

    def declare(self, action_id: str, /, **options: Unpack[ActionOptions]) -> None:
        """Declare an action by `method` and `path`, for handlers that cannot be decorated or were not written here."""
        subject = f'action "{action_id}"'
        for needed in ("method", "path"):
            if needed not in options:
                raise DeclarationError(subject, f"{needed}: is required by site.declare().")
        self._add(self._read(subject, action_id, options, "path"), None)

    def include(
        self,
        *,
        tags: Sequence[str] = (),
        paths: Sequence[str] = (),
        operations: Sequence[str] = (),
        exclude: Sequence[str] = (),
        auth_required: bool | None = None,
        rate_limit: str | RateLimit | None = None,
    ) -> None:
        """Publish routes that are already there, without touching their handlers.

        A route is taken if it has one of `tags`, its path matches one of `paths` (`/books/*`), or its name or
        operation id is among `operations`; with none of the three, every listed route is. Only reading routes (GET)
        are taken, unless `operations` names them. `exclude` lists names and paths to leave out. `auth_required` and
        `rate_limit` hold for each action.
        """
        self._refuse_when_frozen(INCLUDE)
        options: ActionOptions = {}
        if auth_required is not None:
            options["auth_required"] = auth_required
        if rate_limit is not None:
            options["rate_limit"] = rate_limit
        inclusion = Inclusion(
            tags=_read_names(tags, "tags"),
            paths=_read_names(paths, "paths"),
            operations=_read_names(operations, "operations"),
            exclude=_read_names(exclude, "exclude"),
            options=check_action(INCLUDE, options),
        )
        self._inclusions.append(inclusion)

    def _declaring(
        self, subject: str, action_id: str, options: ActionOptions, kind: Literal["route", "either"]
    ) -> Callable[[F], F]:
        declaration = self._read(subject, action_id, options, kind)

        def declare(function: F) -> F:
            if action_id not in self._declarations or not is_bound_for_a_call(function):
                self._add(declaration, function)
                mark(function, action_id)
            return function

        return declare

    def _read(
        self, subject: str, action_id: str, options: ActionOptions, kind: Literal["route", "either", "path"]
    ) -> Declaration:
        """Check a declaration where it is written, before it has a function."""
        self._refuse_when_frozen(subject)
        _check_id("action", subject, action_id)
        return Declaration(subject, action_id, kind, None, check_action(subject, options))

    def _add(self, declaration: Declaration, function: Callable[..., object] | None) -> None:
        self._refuse_when_frozen(declaration.subject)
        if function is not None and not callable(getattr(function, "__func__", function)):
            raise DeclarationError(declaration.subject, f"decorates {function!r}, which is not a function.")
        if declaration.id in self._declarations:
            raise DeclarationError(
                declaration.subject,
                f'the id "{declaration.id}" is declared twice.',
                "Give one of the two another id.",
            )
        self._declarations[declaration.id] = replace(declaration, function=function)

    def _refuse_when_frozen(self, subject: str) -> None:
        if self._catalogs:
            raise DeclarationError(
                subject, "is declared after the site was published.", "Declare before the application starts."
            )

    # --- Freezing ---

    def freeze(self, app: object = None, doors: Sequence[Door] = (), documents: Iterable[str] = ()) -> Catalog:
        """Resolve every declaration against the routes of `app` and make the catalog, once. Raises DeclarationError.

        `doors` are the live endpoints and `documents` the paths that the publisher serves. Called by `AgentPublisher`
        at start-up.
        """
        if not self._catalogs:
            declared = list(self._declarations.values())
            defaults = Defaults(self.limits.timeout, self.guarding.enforce_prerequisites)
            routes = find_routes(app)
            actions, agents = resolve(declared, self._agents, self._inclusions, routes, defaults)
            check_names(self.facts, actions)
            check_skills(actions, doors)
            check_guarding(self.guarding, actions, self.facts.rate_limit, "a2a" in self.doors)
            catalog = Catalog(
                url=self.urls[0],
                site=self.facts,
                actions=actions,
                agents=agents,
                prompts=self._prompts.resolve(),
                pages=self._pages.resolve(routes, self.facts.name),
                paths=self.paths,
                doors=tuple(doors),
                documents=frozenset(documents),
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
        self.liveness.say(operational, degraded_actions)

    def status(self, *actions: str) -> Callable[[F], F]:
        """Declare a probe: a function that finds out whether `actions` work; without any, whether the site does.

        It answers False or raises where something does not work. Probes are asked every `status_interval`; what they
        find is published, and calls of an action that does not work are refused. Returns the function unchanged.
        """
        if actions and not isinstance(actions[0], str):
            raise DeclarationError("site.status", 'is called: write @site.status("action_id") or @site.status().')
        self._refuse_when_frozen("site.status()")

        def mark(function: F) -> F:
            self.liveness.add(function, actions)
            return function

        return mark

    async def probe(self) -> None:
        """Ask the probes now, and publish what they find if it is news."""
        if await self.liveness.ask():
            self.refresh()

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

    def on_call(self, listener: CallListener) -> None:
        """Call `listener(facts)` after each call, with what the record of calls says of it. It must not block."""
        self.call_listeners.append(listener)

    def _with_status(self, catalog: Catalog) -> tuple[Catalog, ...]:
        self.liveness.check(catalog.actions)
        return tuple(replace(catalog, url=url, status=self.liveness.status) for url in self.urls)


def _read_names(given: object, field: str) -> tuple[str, ...]:
    names: Sequence[str] = check(INCLUDE, NAMES, given, field)
    return tuple(names)


def _check_id(kind: str, subject: str, given: object) -> None:
    if callable(given):
        raise DeclarationError(f"site.{kind}", f'needs an id: write @site.{kind}("its_id").')
    check_identifier(subject, given)
