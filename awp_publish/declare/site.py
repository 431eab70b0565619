"""`Site`: the object on which an owner declares a site. Decorators mark and collect; `freeze` makes the catalog.

site = Site(name="Bookshop", description="Find and order books.", url="https://books.example")

@app.get("/search")
@site.action("search_books")
async def search(q: str) -> SearchResults: ...
"""

import logging
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, Literal, Unpack
from urllib.parse import urlsplit

from awp_publish.calls.authenticators import read_authenticators
from awp_publish.calls.callers import Authenticator
from awp_publish.calls.guard import in_order
from awp_publish.calls.sent_secrets import ApiKey
from awp_publish.calls.workers import refuse_private_memory
from awp_publish.declare.actions import make_action
from awp_publish.declare.agents import ACTION_OPTIONS, AGENT_OPTIONS, AgentHandle, F
from awp_publish.declare.composition import called
from awp_publish.declare.discover import find_injector, find_openapi, find_routes
from awp_publish.declare.discover.functions import describe_function
from awp_publish.declare.discover.handlers import is_bound_for_a_call, mark
from awp_publish.declare.implementations import TargetApplication, describe_route_action
from awp_publish.declare.order import refuse_impossible_order
from awp_publish.declare.pages import DeclaredPages
from awp_publish.declare.plugins import (
    doors_of,
    findings_of,
    gates_of,
    problems_of,
    read_options,
    read_plugins,
    refuse_unfulfilled,
    start,
)
from awp_publish.declare.resolve import Declaration, group, resolve
from awp_publish.declare.settings.about import About, check_steps
from awp_publish.declare.settings.actions import ACTION, AGENT, ActionOptions, AgentOptions, AgentSettings
from awp_publish.declare.settings.keywords import Options, takes, takes_id
from awp_publish.declare.settings.pages import PageOptions
from awp_publish.declare.settings.site import SITE, Limits, SiteSettings
from awp_publish.declare.site_facts import facts_of, session_of
from awp_publish.model import DOORS, PUBLIC, Catalog, LeftOut, SiteFacts
from awp_publish.plugin import Door, Finding, FoundRoutes, Setup, installed, open_store
from awp_publish.problems import ALL, DeclarationError
from awp_publish.schema.options import ID, check
from awp_publish.stores import ForeignStore, Store, read_store

logger: Final = logging.getLogger("awp_publish")

METHODS: Final[dict[str, Callable[..., Any]]] = {}
"""Methods of every site that an adapter of a framework adds: functions of the site and the arguments."""

SITE_OPTIONS: Final = frozenset(field.name for field in fields(SiteSettings))
Listener = Callable[["Site"], None]


def _check_settings(given: Options) -> SiteSettings:
    """Return the options of a site. Raises DeclarationError, which says where an option belongs that is not its own."""
    if misplaced := next((name for name in given if name not in SITE_OPTIONS), None):
        places = {field.name: f"limits=Limits({field.name}=...)" for field in fields(Limits)}
        places |= {field.name: f"about=About({field.name}=...)" for field in fields(About)}
        places["doors"] = 'plugins=["mcp", "a2a"]'
        for plugin in installed().values():
            options = plugin.options
            of_plugin = () if options is None else fields(options)
            places |= {
                field.name: f"plugins=[{getattr(options, '__name__', '')}({field.name}=...)]" for field in of_plugin
            }
            places[plugin.name] = f'plugins=["{plugin.name}"]'
        if place := places.get(misplaced):
            raise DeclarationError("site", f"{misplaced}: there is no such option.", f"Write {place}.")
    return check("site", SITE, given, names=SITE_OPTIONS)


def _open_store(settings: SiteSettings, plugins: Mapping[str, Setup]) -> Store:
    store = settings.store
    if isinstance(store, str):
        return open_store(store, settings.namespace, [setup.plugin for setup in plugins.values()])
    return ForeignStore(read_store(f"store: {store!r}", store))


class Site:
    """A site that agents can use: facts about it, and the decorators that declare its actions, agents and pages.

    `url` is the public address and is never taken from a request. Of several addresses the first is the canonical one.
    Without `url` the environment variable AWP_PUBLISH_URL is read. Raises DeclarationError that names the option.
    """

    @takes(SiteSettings)
    def __init__(self, options: Options) -> None:
        self._given = options
        self.settings = _check_settings(options)
        signed_here = (secrets.token_urlsafe(32),)  # enough while no other process has to verify the tokens
        self.keys: tuple[str, ...] = tuple(self.settings.secret_keys) or signed_here
        self._own_authenticators = read_authenticators(self.settings.authenticate)
        self.authenticators: tuple[Authenticator, ...] = self._own_authenticators
        self.facts: SiteFacts = facts_of(self.settings, self.authenticators)
        self.plugins = read_plugins(self.settings.plugins, self)
        """The plug-ins of the site by name, each with its options and its state."""
        self.store: Store = _open_store(self.settings, self.plugins)
        self._declarations: dict[str, Declaration] = {}
        self._agents: dict[str, AgentSettings] = {}
        self._pages = DeclaredPages(self.refuse_when_frozen, self.plugins)
        self._catalogs: tuple[Catalog, ...] = ()
        self.included: tuple[str, ...] = ()
        """Ids of the actions and paths of the pages that `include` published. Known once the site is frozen."""
        self.left_out: tuple[LeftOut, ...] = ()
        """Routes that `include` did not publish, and the reasons. Known once the site is frozen."""
        self.findings: tuple[Finding, ...] = ()
        """Findings of declarations and of the checks of plug-ins. Known once the site is frozen."""
        self.own_actions: frozenset[str] = frozenset()
        """Ids of the actions that plug-ins have declared. Known once the site is frozen."""
        self._listeners: list[Listener] = []
        self.change_listeners: list[Callable[[], None]] = []
        """Functions that notify agents that documents or lists which they have read may have changed."""
        start(self.plugins)
        self._ask_for_authenticators()

    if TYPE_CHECKING:  # what plug-ins and adapters of this package declare, for editors and type checkers

        def model(
            self, model: type, /, *, fields: Sequence[str], search: Sequence[str] = (), read_only: bool = True
        ) -> Callable[[Callable[[], Any]], Callable[[], Any]]: ...
        def include(
            self,
            *,
            tags: Sequence[str] = (),
            paths: Sequence[str] = (),
            operations: Sequence[str] = (),
            exclude: Sequence[str] = (),
            mounts: Sequence[str] = (),
            auth_required: bool | None = None,
            rate_limit: str | None = None,
        ) -> None: ...
        def prompt(
            self, prompt_id: str, /, *, title: str | None = None, description: str | None = None, complete: Any = None
        ) -> Callable[[F], F]: ...
        def skill(
            self, skill_id: str, content: str | PathLike[str] | None = None, /, *, description: str | None = None
        ) -> Callable[[F], F]: ...
        def event(
            self, event_id: str, /, *, payload: object = None, description: str | None = None, audience: str = PUBLIC
        ) -> Callable[[F], F]: ...
        async def emit(
            self, event_id: str, payload: object, /, *, audience: Any = None, unique: str | None = None
        ) -> str: ...
        def status(self, *actions: str, every: str = "30s") -> Callable[[F], F]: ...
        def set_status(
            self, *, operational: bool | None = None, degraded_actions: Sequence[str] | None = None
        ) -> None: ...
        async def probe(self) -> None: ...
        def refresh(self) -> None: ...
        def on_call(self, listener: Callable[[Mapping[str, object]], object], /) -> None: ...

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return what a plug-in, or the adapter of a framework, declares on the site under this name."""
        plugins: Mapping[str, Setup] = self.__dict__.get("plugins", {})
        for setup in plugins.values():
            if (declare := setup.plugin.declares.get(name)) is not None:
                return partial(declare, setup.state)
        if name in METHODS:
            return partial(METHODS[name], self)
        lacking = [plugin for plugin in installed().values() if name in plugin.declares] if plugins else []
        if lacking:
            own = lacking[0].name
            way = f'take "no:{own}" out of plugins=[...]' if lacking[0].is_default else "add it to plugins=[...]"
            raise AttributeError(f"{name!r} is a method of the plug-in {own}: {way}.")
        raise AttributeError(f"A Site has no {name!r}.")

    def describe_function(self, function: Callable[..., object]) -> Any:
        """Return the schema of a function's arguments, and how it is called with them. Raises UnusableSchema."""
        return describe_function(function)

    def action_of(self, function: Callable[..., object]) -> str | None:
        """Return the id of the action that a function was declared as, None if it is none."""
        return next(
            (declaration.id for declaration in self._declarations.values() if declaration.function is function), None
        )

    def ask(self, plugin: str) -> Any:
        """Return the state of a plug-in, None if the site does not have it."""
        setup = self.plugins.get(plugin)
        return setup.state if setup is not None else None

    def override(self, options: Options) -> None:
        """Replace options of the site with those from a framework's settings, before it is frozen.

        Meant for options of the deployment: url, store, plugins, secret_keys. Raises DeclarationError.
        """
        self.refuse_when_frozen("site")
        self._given = {**self._given, **options}
        self.settings = _check_settings(self._given)
        self.keys = tuple(self.settings.secret_keys) or self.keys
        chosen = read_plugins(self.settings.plugins, self)
        if "store" in options:
            self.store = _open_store(self.settings, chosen)
        started = {name: setup for name, setup in chosen.items() if name not in self.plugins}
        start(started)
        for name, setup in chosen.items():  # what has been declared on a plug-in stays
            if (before := self.plugins.get(name)) is not None:
                setup.state = before.state
        self.plugins = chosen
        self._ask_for_authenticators()

    def _ask_for_authenticators(self) -> None:
        """Put the plug-ins' ways to identify callers before those of the site."""
        hint, setups = Collection[Authenticator], self.plugins.values()
        asked = (called(setup.plugin, "authenticators", hint, setup) for setup in setups)
        if of_plugins := [authenticator for authenticators in asked for authenticator in authenticators]:
            self.authenticators = (*of_plugins, *self._own_authenticators)
            self.facts = facts_of(self.settings, self.authenticators)

    @takes_id(ActionOptions)
    def action(self, action_id: str, options: Options) -> Callable[[F], F]:
        """Declare a route handler as an action, above or below the route decorator. Returns the function unchanged."""
        return self._declaring(f'action "{action_id}"', action_id, options, "route")

    @takes_id(AgentOptions)
    def agent(self, agent_id: str, options: Options) -> AgentHandle:
        """Declare an agent. Decorate a function with the result, or each of several with its `operation(name)`."""
        subject = f'agent "{agent_id}"'
        self.refuse_when_frozen(subject)
        _check_id("agent", subject, agent_id)
        if agent_id in self._agents:
            raise DeclarationError(subject, "is declared twice.", "Give one of the two another id.")
        self._agents[agent_id], _ = read_options(subject, AGENT, AGENT_OPTIONS, options, self.plugins)
        return AgentHandle(self._declaring, agent_id, options)

    def page(self, path: str | None = None, /, **options: Unpack[PageOptions]) -> Callable[[F], F]:
        """Declare a page: decorate its route handler, or pass its `path` if its handler cannot be decorated.

        The default title is made from the end of the path, the default description is the handler's docstring.
        """
        return self._pages.declare(path, options)

    @takes_id(ActionOptions)
    def declare(self, action_id: str, options: Options) -> None:
        """Declare an action by `method` and `path`, for handlers that cannot be decorated or are somebody else's
        code.
        """
        subject = f'action "{action_id}"'
        for needed in ("method", "path"):
            if needed not in options:
                raise DeclarationError(subject, f"{needed}: is required by site.declare().")
        self._add(self._read(subject, action_id, options, "path"), None)

    def read_action_options(self, subject: str, options: Mapping[str, object]) -> Any:
        """Return options of actions for routes that a plug-in publishes. Raises DeclarationError."""
        return check(subject, ACTION, dict(options))

    def _declaring(
        self,
        subject: str,
        action_id: str,
        options: Options,
        kind: Literal["route", "either"],
        operation: str | None = None,
        agent: str | None = None,
        /,
    ) -> Callable[[F], F]:
        declaration = replace(self._read(subject, action_id, options, kind), operation=operation, agent=agent)

        def declare(function: F) -> F:
            if action_id not in self._declarations or not is_bound_for_a_call(function):
                self._add(declaration, function)
                mark(function, action_id)
            return function

        return declare

    def _read(
        self, subject: str, action_id: str, given: Options, kind: Literal["route", "either", "path"]
    ) -> Declaration:
        """Check a declaration's options as soon as it is written, before it has a function."""
        self.refuse_when_frozen(subject)
        _check_id("action", subject, action_id)
        options, of_plugins = read_options(subject, ACTION, ACTION_OPTIONS, given, self.plugins)
        return Declaration(subject, action_id, kind, None, options, of_plugins=of_plugins)

    def _add(self, declaration: Declaration, function: Callable[..., object] | None) -> None:
        self.refuse_when_frozen(declaration.subject)
        if function is not None and not callable(getattr(function, "__func__", function)):
            raise DeclarationError(declaration.subject, f"decorates {function!r}, which is not a function.")
        if declaration.id in self._declarations:
            raise DeclarationError(
                declaration.subject, f'the id "{declaration.id}" is declared twice.', "Give one of the two another id."
            )
        self._declarations[declaration.id] = replace(declaration, function=function)

    def refuse_when_frozen(self, subject: str) -> None:
        """Raise DeclarationError if the site is published already."""
        if self._catalogs:
            raise DeclarationError(
                subject, "is declared after the site was published.", "Declare before the application starts."
            )

    def door_names(self) -> frozenset[str]:
        """Return the names of all doors of the site."""
        doors = doors_of(self.plugins, self.settings.paths).values()
        return frozenset((*DOORS, *(door.name for listed in doors for door in listed)))

    def freeze(
        self,
        app: object = None,
        doors: Sequence[Door] | None = None,
        documents: Iterable[str] = (),
        protocols: Iterable[str] | None = None,
    ) -> Catalog:
        """Resolve every declaration against the routes of `app` and make the catalog, once. Raises DeclarationError.

        `doors` are those of the site (None: any), `documents` the paths that the publisher serves, `protocols` the
        names of those that it serves (None: all). `AgentPublisher` calls it at start-up.
        """
        if not self._catalogs:
            declared = dict(self._declarations)
            try:
                self._catalogs = self._at_each_address(self._resolve(app, doors, documents, protocols))
            except BaseException:
                self._declarations = declared  # what plug-ins have declared they declare again at the next start
                raise
        return self._catalogs[0]

    def _resolve(
        self, app: object, doors: Sequence[Door] | None, documents: Iterable[str], protocols: Iterable[str] | None
    ) -> Catalog:
        setups, before = self.plugins.values(), self._declarations.keys() | set()
        for setup in setups:
            called(setup.plugin, "prepare", Any, setup)
        self.own_actions = frozenset(self._declarations.keys() - before)
        application = self._target(app)
        routes = application.routes
        found = FoundRoutes(
            routes=routes,
            hosts=application.hosts,
            declared=resolve(list(self._declarations.values()), self._agents, application),
            has_pages=self._pages.has_any,
            describe=partial(describe_route_action, application=application),
            make_action=partial(make_action, application=application),
        )
        for setup in setups:
            called(setup.plugin, "publish", Any, setup, found)
        actions, agents = group((*found.declared, *found.actions), self._agents, application)
        pages = self._pages.resolve(
            routes, self.facts.name, {action.id for action in actions}, (*found.pages.values(), *found.default_pages)
        )
        facts = self.facts
        if facts.authentication is None:
            facts = replace(facts, authentication=session_of(app, actions))
        catalog = Catalog(
            url=self.settings.urls[0],
            site=facts,
            actions=actions,
            agents=agents,
            pages=pages,
            paths=self.settings.paths,
            doors=tuple(door.facts for door in doors or () if door.facts is not None),
            open_doors=None if doors is None else frozenset(door.name for door in doors),
            documents=frozenset(documents),
            protocols=None if protocols is None else frozenset(protocols),
            openapi=find_openapi(app),
            problems=(*ALL, *problems_of(self.plugins)),
        )
        self.left_out = tuple(found.left_out.values())
        for setup in sorted(setups, key=lambda setup: setup.plugin.is_default is False):  # approval is of what is whole
            catalog = called(setup.plugin, "derive", Catalog, setup, catalog)
        self.findings = (*found.findings, *self._check(catalog))
        self.included = (*(action.id for action in found.actions), *found.pages)
        return catalog

    def _target(self, app: object) -> TargetApplication:
        return TargetApplication(
            routes=find_routes(app),
            timeout=self.settings.limits.timeout,
            authenticates=bool(self.authenticators),
            injector=find_injector(app),
            entries=self.settings.paths.actions,
            credential_headers={key.header.lower() for key in self.authenticators if isinstance(key, ApiKey)},
            hosts={urlsplit(url).hostname or "" for url in self.settings.urls},
        )

    def _check(self, catalog: Catalog) -> list[Finding]:
        """Return what plug-ins find in the whole catalog. Raises DeclarationError for what cannot be published."""
        refuse_unfulfilled(catalog, self.settings, self.plugins)
        refuse_impossible_order(catalog.actions)
        check_steps(self.facts.workflows, {action.id for action in catalog.actions})
        for gate in in_order(gates_of(self.plugins)):
            if gate.check is not None:
                gate.check(catalog, self)
        if not self.store.is_shared:
            kept = (called(setup.plugin, "keeps", str | None, setup, catalog) for setup in self.plugins.values())
            refuse_private_memory(catalog, [words for words in kept if words is not None])
        return findings_of(self.plugins, catalog)

    @property
    def is_frozen(self) -> bool:
        """Return True if the site has been published, so that nothing more can be declared."""
        return bool(self._catalogs)

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

    def derive_again(self, plugin: str) -> None:
        """Derive a plug-in's part of the catalog again, and publish the site anew if it has changed."""
        setup, catalog = self.plugins[plugin], self.catalog
        derived = called(setup.plugin, "derive", Catalog, setup, catalog)
        if derived is not catalog:
            self._catalogs = self._at_each_address(derived)
            for listener in self._listeners:
                listener(self)
            for tell in self.change_listeners:
                tell()

    def on_refresh(self, listener: Listener) -> None:
        """Call `listener(site)` whenever the site is published anew. Publishers then prepare their documents again."""
        self._listeners.append(listener)

    def _at_each_address(self, catalog: Catalog) -> tuple[Catalog, ...]:
        return tuple(_at(url, catalog) for url in self.settings.urls)


def _at(url: str, catalog: Catalog) -> Catalog:
    """Return a catalog at an address: one issuer of tokens, if the site issues them itself (RFC 8414 section 3.3)."""
    authentication = catalog.site.authentication
    if authentication is None or not authentication.is_own_server:
        return replace(catalog, url=url)
    own = replace(authentication, authorization_servers=(url,))
    return replace(catalog, url=url, site=replace(catalog.site, authentication=own))


def _check_id(kind: str, subject: str, identifier: object) -> None:
    if callable(identifier):
        raise DeclarationError(f"site.{kind}", f'needs an id: write @site.{kind}("its_id").')
    check(subject, ID, identifier, "id")
