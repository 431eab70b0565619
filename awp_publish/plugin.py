"""The interface of features: a `Plugin` is a value, and the core knows nothing else of a feature.

A feature is a file or a folder with a `Plugin` in it. `Site(plugins=[...])` names those of a site: by the name of an
installed one, by the `Plugin` itself, or by a value of its `options`. A package announces its plug-ins as entry points
of the group `awp_publish.plugins`; those that are `is_default` serve every site whose machine has what they need.

A plug-in goes through four stages, and each hook belongs to one of them:

* the site is made: `start` returns the plug-in's state for this site, and `declares` adds methods to the site;
* the site is published: `prepare` declares actions of its own, `publish` adds those of routes that are found, `derive`
  adds facts to the catalog, `check` finds mistakes, `documents` are rendered;
* the application starts: `serve` returns what takes part in requests, `running` is open as long as the application;
* for each address of the site: `calls`, `around` and `doors` are asked.

What one plug-in wants of another it asks by name (`Setup.ask`, `Serving.ask`), and does without where there is none.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, MutableMapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from copy import copy
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import EntryPoint
from typing import Any, Final, Protocol as Interface, TypeAlias

from starlette.types import ASGIApp, Receive, Scope, Send

from awp_publish.announced import announced
from awp_publish.calls.gates.gate import Ask as Ask, Facts as Facts, Gate as Gate, GateCheck as GateCheck, Guards
from awp_publish.calls.hooks import CallHooks as CallHooks
from awp_publish.calls.invoke import Invoker
from awp_publish.calls.observe import CallCounter, CallWatcher, Observers
from awp_publish.calls.wire import Wire
from awp_publish.checks.engine import Finding as Finding
from awp_publish.documents.protocol import Document as Document, Protocol as Protocol
from awp_publish.model import Action, Catalog, DoorFacts, LeftOut, Paths, SiteFacts
from awp_publish.problems import DeclarationError, Problem as Problem, noting
from awp_publish.schema.options import listing
from awp_publish.stores import MemoryStore, read_store
from awp_publish.stores.store import Store as Store

ENTRY_POINTS: Final = "awp_publish.plugins"
"""The group of entry points with which packages announce their plug-ins, each by its name."""

OWN_COMMANDS: Final = ("call", "check", "export", "init", "markdown", "show", "som", "synthesize")
"""Verbs of the command line that are no plug-in's."""

Answer: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

AnswerRest: TypeAlias = Callable[[Scope, Receive, Send, str], Awaitable[None]]
"""An endpoint that receives the rest of the path below its prefix."""

Find: TypeAlias = Callable[[Scope, str], Answer | None]
"""Returns the endpoint of a request with this path."""

OpenStore: TypeAlias = Callable[[str, str], Store]
"""Opens the store at a URL; the second argument separates sites that share it. Raises DeclarationError."""

Running: TypeAlias = AbstractAsyncContextManager[object]


class DeclaredSite(Interface):
    """What a plug-in may use of the `Site` that it belongs to."""

    keys: tuple[str, ...]
    facts: SiteFacts
    settings: Any
    authenticators: tuple[Any, ...]
    change_listeners: list[Callable[[], None]]

    @property
    def plugins(self) -> Mapping[str, Setup]:
        """The plug-ins of the site, by name."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of plug-ins' checks, known once the site is published."""

    @property
    def own_actions(self) -> frozenset[str]:
        """Ids of the actions that plug-ins have declared, known once the site is published."""

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Routes that `include` did not publish, and the reasons, known once the site is published."""

    @property
    def agent(self) -> Callable[..., Any]:
        """Declares an agent, as owners do."""

    @property
    def store(self) -> Store: ...
    @property
    def catalog(self) -> Catalog: ...
    @property
    def catalogs(self) -> tuple[Catalog, ...]: ...
    @property
    def is_frozen(self) -> bool: ...
    def ask(self, plugin: str, /) -> Any:
        """Return the state of another plug-in of the site, None if the site does not have it."""

    def derive_again(self, plugin: str, /) -> None:
        """Derive a plug-in's part of the catalog again, and publish the site anew unless its catalog is the same one.

        Called on the event loop. Requests that are under way end with the doors at which they came in.
        """

    def refuse_when_frozen(self, subject: str, /) -> None:
        """Raise DeclarationError if the site is published already."""

    def describe_function(self, function: Callable[..., object], /) -> Any:
        """Return the schema of a function's arguments, and how it is called with them. Raises UnusableSchema."""

    def read_action_options(self, subject: str, options: Mapping[str, object], /) -> Any:
        """Return options of actions as `FoundRoutes` takes them. Raises DeclarationError."""

    def action_of(self, function: Callable[..., object], /) -> str | None:
        """Return the id of the action that a function was declared as, None if it is none."""


@dataclass(kw_only=True, eq=False)
class FoundRoutes:
    """The routes of the application when the site is published, and what plug-ins publish of them.

    `routes` are as discovery found them (`declare.discover.routes.Route`), `hosts` are those of the site's addresses.
    The owner has `declared` these actions, and pages if it `has_pages`.
    """

    routes: Sequence[Any]
    hosts: Collection[str]
    declared: Sequence[Action]
    has_pages: bool
    describe: Callable[[str, tuple[Any, str], Any], Any]
    """Returns inputs and outputs of a route and a method, for options of actions. Raises DeclarationError."""

    make_action: Callable[[str, str, str, Any, Any], Action]
    """Makes the action of a subject, an id, a description, options and what `describe` returned."""

    actions: list[Action] = field(default_factory=list)
    pages: dict[str, Any] = field(default_factory=dict)
    """Routes that become pages, by path."""

    default_pages: list[Any] = field(default_factory=list)
    """Routes that are pages although nobody has named them."""

    left_out: dict[tuple[str, str], LeftOut] = field(default_factory=dict)
    """Routes that are not published, by method and path."""

    findings: list[Finding] = field(default_factory=list)


@dataclass(slots=True)
class Setup:
    """A plug-in of one site, from its declaration on. `options` are its settings, `state` is what `start` returned.

    `is_named` is False if the site has it by default.
    """

    plugin: Plugin
    options: Any
    site: DeclaredSite
    state: Any = None
    is_named: bool = True

    def ask(self, plugin: str) -> Any:
        """Return the state of another plug-in of this site, None if the site does not have it."""
        return self.site.ask(plugin)


def refuse_unasked_lists(setup: Setup, catalog: Catalog) -> None:
    """Refuse a door's option `list_only_allowed` where only routes ask who calls. Raises DeclarationError."""
    by_routes = [action.id for action in catalog.actions if action.route_authenticates]
    if setup.options.list_only_allowed and by_routes and not setup.site.authenticators:
        raise DeclarationError(
            "site",
            f"plugins.{setup.plugin.name}.list_only_allowed: only routes authenticate callers ({listing(by_routes)}), "
            "and they are not asked for a list.",
            "Give Site(authenticate=...), or leave it out.",
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunningApplication:
    """What the plug-ins of a site share while the application runs.

    `app` is the application with all of its middleware, `called` says how its routes are called
    (`http.position.CalledApplication`). `has_sessions` says whether it is known to keep sessions in cookies. `wires`
    are the client's sides of the site's doors, by name. `plugins` are all plug-ins of the site, by name. `is_checked`
    says whether findings are reported.
    """

    observers: Observers
    app: ASGIApp
    called: Any
    has_sessions: bool
    wires: Mapping[str, Wire]
    plugins: dict[str, Serving]
    is_checked: bool
    owns: Callable[[MutableMapping[str, Any]], bool]
    """Returns True if a request is for a document or door of ours, and not for the application."""

    guards_of: Callable[[Catalog], Guards]
    """Returns what the gates of a catalog share."""

    lifespan: Callable[[], MutableMapping[str, Any]]
    """Returns the scope of the lifespan, empty without one."""

    documents: Callable[[], Mapping[str, Any]]
    """Returns the prepared documents of the site's first address, by path."""

    routes: Callable[[], Sequence[Any]]
    """Returns the routes of the application."""

    entrance: Callable[[MutableMapping[str, Any]], ASGIApp]
    """Returns the outermost application for an incoming connection, for requests that a door sends itself."""

    def lifespan_state(self) -> Mapping[str, object]:
        """Return the `state` that the application's lifespan has set up."""
        return self.lifespan().get("state", {})  # type: ignore[no-any-return]

    def extensions(self) -> Mapping[str, Any]:
        """Return the extensions of the lifespan's scope."""
        return self.lifespan().get("extensions", {})  # type: ignore[no-any-return]


@dataclass(kw_only=True, eq=False)
class Serving:
    """A plug-in of one site while the application runs."""

    setup: Setup
    application: RunningApplication

    @property
    def options(self) -> Any:
        """The plug-in's settings."""
        return self.setup.options

    @property
    def state(self) -> Any:
        """The value that the plug-in's `start` returned."""
        return self.setup.state

    @property
    def site(self) -> DeclaredSite:
        """The site."""
        return self.setup.site

    @property
    def settings(self) -> Any:
        """The settings of the site."""
        return self.setup.site.settings

    @cached_property
    def service(self) -> Any:
        """The value of the plug-in's `serve`, made when it is first asked for; its state without that hook."""
        serving = self.application.plugins[self.setup.plugin.name]
        if serving is not self:
            return serving.service
        with noting(f'serve of the plug-in "{self.setup.plugin.name}"'):
            return self.setup.plugin.serve(self)

    def ask(self, plugin: str) -> Any:
        """Return what another plug-in serves: the value of its `serve`, or its state; None without that plug-in.

        At an address it is the value of its `at`, if it has that hook.
        """
        other = self.application.plugins.get(plugin)
        return other.service if other is not None else None


@dataclass(kw_only=True, eq=False)
class Context(Serving):
    """A plug-in at one public address of a site. `catalog` has the actions that are offered at the door.

    `admission` are the limits of requests: sizes of bodies, origins, own hosts, trusted proxies
    (`http.admission.Admission`). `links` is the `Link` header for pages of the application, None if they get none, and
    `links_json` says whether its JSON gets it too.
    """

    catalog: Catalog
    guards: Guards
    admission: Any
    links: bytes | None
    links_json: bool
    invoker: Invoker = field(init=False)
    published: Callable[[], Catalog]
    """Returns the catalog as it was last published, with its current status."""

    documents: Callable[[], tuple[Mapping[str, Any], Mapping[str, Any]]]
    """Returns the prepared documents by path: ours, and those that are served if the application has none."""

    here: dict[str, Context]
    """All plug-ins at this address, by name."""

    @cached_property
    def offered(self) -> Any:
        """The value of its `at`, which other plug-ins get of this one."""
        with noting(f'at of the plug-in "{self.setup.plugin.name}"'):
            return self.setup.plugin.at(self)

    def ask(self, plugin: str) -> Any:
        """Return what another plug-in offers at this address, None without that plug-in."""
        other = self.here.get(plugin)
        return other.offered if other is not None else None

    def at_door(self, door: Door) -> Context:
        """Return what a door of the plug-in sees: of the actions those that are exposed there."""
        context = copy(self)
        if door.calls:
            context.catalog = self.catalog.exposed_at(door.name)
        return context


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """What a door answers: fixed paths, prefixes of paths, WebSockets by path.

    `find` has for a prefix what returns the answer of a request with such a path, None if that is the application's.
    `claims` are paths at which no other door may be, besides `exact`. Without a lifespan, `running` is never entered,
    and the door has to work without it.
    """

    exact: Mapping[str, Answer] = field(default_factory=dict)
    below: Mapping[str, AnswerRest] = field(default_factory=dict)
    find: Mapping[str, Find] = field(default_factory=dict)
    claims: Collection[str] = ()
    sockets: Mapping[str, Answer] = field(default_factory=dict)
    running: Callable[[], Running] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """A protocol endpoint through which calls come in, or which serves what a plug-in has.

    `name` is its name in `expose=`, logs and traffic; documents announce a door that has a `version`, with its
    `features`, and name one with a `title` as a way to call. `open` makes its endpoints for one public address of the
    site. The catalog that it sees has the actions that are exposed here; at a door that `calls` none, all of them.
    """

    name: str
    path: str
    open: Callable[[Context], Endpoints]
    version: str | None = None
    title: str = ""
    calls: bool = True
    features: frozenset[str] = frozenset()

    @property
    def facts(self) -> DoorFacts | None:
        """The facts that documents publish of this door, None if they do not name it."""
        if self.version is None:
            return None
        return DoorFacts(self.name, self.version, self.path, self.title, self.features)


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A table in the overview, for operators: what a plug-in has of a site.

    `rows` reads it by the plug-in's state: for each row its cells, and what `act` gets when the `button` of this row is
    pressed. `act` returns what has happened, in a sentence.
    """

    title: str
    heads: Sequence[str]
    rows: Callable[[Any], Awaitable[Sequence[tuple[str, Sequence[str]]]]]
    button: str
    act: Callable[[Any, str], Awaitable[str]]


class LoadedApplication(Interface):
    """The application `module:app` of a command, which is called without a server."""

    target: str
    app: ASGIApp

    @property
    def declared(self) -> DeclaredSite:
        """The site that it publishes. Raises DeclarationError."""

    @property
    def site(self) -> DeclaredSite:
        """The same, published. Raises DeclarationError."""

    @property
    def documents(self) -> Mapping[str, Any]:
        """The documents that it serves, by path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A verb of the command line: `awp-publish NAME module:app`.

    `run` gets the console (`say`, `block`, `table`, `json`, `json_lines`, `warn`), the application and the parsed
    arguments, and returns the status: 0 if nothing is wrong, 1 if something was found. `arguments` adds its arguments
    to an `argparse.ArgumentParser`; `names` is the one that takes what follows an option, too.
    """

    help: str
    run: Callable[[Any, LoadedApplication, Any], int]
    arguments: Callable[[Any], None] = lambda parser: None
    names: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Plugin:
    """A feature.

    `needs` are the packages without which it cannot run, each with the extra that has it. `options` is a frozen
    dataclass of settings; `Site(plugins=[Options(...)])` chooses the plug-in by a value of it. `is_default` plug-ins
    serve every site that has what they need; `Site(plugins=["no:name"])` leaves one out.
    """

    name: str
    needs: Mapping[str, str] = field(default_factory=dict)
    options: type | None = None
    is_default: bool | Callable[[], bool] = False

    fulfils: Sequence[str] = ()
    """Options of the site and its actions, besides `action_options`, that do nothing without it.

    Who leaves it out may not ask for them.
    """

    start: Callable[[Setup], Any] = lambda setup: None
    declares: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """Methods of the site by name: functions of the plug-in's state and the arguments."""

    prepare: Callable[[Setup], None] = lambda setup: None
    publish: Callable[[Setup, FoundRoutes], None] = lambda setup, found: None
    """Adds actions and pages for routes of the application that the owner has not declared one by one."""

    derive: Callable[[Setup, Catalog], Catalog] = lambda setup, catalog: catalog
    keeps: Callable[[Setup, Catalog], str | None] = lambda setup, catalog: None
    """What each of several workers would keep for itself if the store were in memory, in words; None for nothing."""

    check: Callable[[Setup, Catalog], Iterable[Finding]] = lambda setup, catalog: ()
    documents: Sequence[Protocol] = ()
    problems: Sequence[type[Problem]] = ()
    stores: Mapping[str, OpenStore] = field(default_factory=dict)
    """What opens a store, by the scheme of its URL."""

    authenticators: Callable[[Setup], Iterable[Any]] = lambda setup: ()
    """Ways to identify callers (`calls.callers.Authenticator`), which are asked before those of the site."""

    gates: Callable[[Setup], Iterable[Gate]] = lambda setup: ()
    """Gates of every call, which stand between those of the core by their `order`."""

    action_options: Mapping[str, Any] = field(default_factory=dict)
    """Options of actions by name, each with its type: `@site.action("pay", quota=5)`. See `Action.options`."""

    page_options: Mapping[str, Any] = field(default_factory=dict)
    """Options of pages by name, each with its type: `@site.page(map={...})`. See `Page.options`."""

    counter: Callable[[Setup], CallCounter | None] = lambda setup: None
    watcher: Callable[[Setup], CallWatcher | None] = lambda setup: None
    serve: Callable[[Serving], Any] = lambda serving: serving.state
    running: Callable[[Serving], Running] = lambda serving: nullcontext()
    at: Callable[[Context], Any] = lambda context: context.service
    """Makes what others get of the plug-in at one address: by default, what it serves."""

    calls: Callable[[Context], CallHooks] = lambda context: CallHooks()
    around: Callable[[Context, ASGIApp], ASGIApp] = lambda context, app: app
    doors: Callable[[Setup, Paths], Iterable[Door]] = lambda setup, paths: ()
    wires: Sequence[Wire] = ()
    """The client's sides of its doors, with which clients, the command line and the overview call through them."""

    commands: Mapping[str, Command] = field(default_factory=dict)
    panel: Panel | None = None


def open_store(url: str, namespace: str, plugins: Iterable[Plugin] = ()) -> Store:
    """Return the store that a URL names: that in memory, or one of an installed plug-in or of one of `plugins`.

    `namespace` separates sites that share it. Nothing is opened before the first use, because servers fork after they
    have imported the application. Raises DeclarationError, which never repeats the URL: it may contain a password.
    """
    if url in ("memory:", "memory://"):
        return MemoryStore()
    listed = [*installed().values(), *plugins]
    openers = {scheme: (plugin.name, opens) for plugin in listed for scheme, opens in plugin.stores.items()}
    scheme = url.partition(":")[0]
    if scheme not in openers:
        raise DeclarationError("site", "store= is not the URL of a store that is known here.", STORE_REMEDY)
    name, opens = openers[scheme]
    return read_store(f'store: what the plug-in "{name}" opens for {scheme}:', opens(url, namespace))


STORE_REMEDY: Final = (
    'Use store="memory:", store="sqlite:///agents.db" (a file beside the application), '
    'store="sqlite:////var/lib/agents.db" (an absolute path), store="redis://host:6379/0" '
    'or store="postgresql://user@host/database".'
)


@cache
def installed() -> Mapping[str, Plugin]:
    """Return the plug-ins that installed packages announce, by name. One whose module is gone is left out."""
    return {plugin.name: plugin for point in announced(ENTRY_POINTS) if (plugin := _load(point)) is not None}


def _load(point: EntryPoint) -> Plugin | None:
    try:
        module = import_module(point.module)
    except ModuleNotFoundError as error:
        if error.name is not None and (point.module == error.name or point.module.startswith(f"{error.name}.")):
            return None  # it was taken out
        raise
    if module.__file__ is None:
        return None  # it was taken out, but for what was compiled
    plugin = point.load()
    if not isinstance(plugin, Plugin):
        wrong = f'the plug-in "{point.name}" ({point.value}) is a {type(plugin).__name__}.'
        raise DeclarationError("site", wrong, "An entry point of awp_publish.plugins names a Plugin.")
    return plugin


def known_protocols() -> tuple[Protocol, ...]:
    """Return the protocols of every installed plug-in."""
    return tuple(protocol for plugin in installed().values() for protocol in plugin.documents)


def wires_of(plugins: Iterable[Plugin]) -> dict[str, Wire]:
    """Return the client's sides of these plug-ins' doors, by name, in their order."""
    wires = (wire for plugin in plugins for wire in plugin.wires)
    return {wire.name: wire for wire in sorted(wires, key=lambda wire: wire.order)}


def protocols_of(setups: Mapping[str, Setup]) -> tuple[Protocol, ...]:
    """Return the protocols of a site with these plug-ins."""
    return tuple(protocol for setup in setups.values() for protocol in setup.plugin.documents)
