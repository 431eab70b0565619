"""`AgentPublisher`, the ASGI middleware. It serves documents and doors; the application gets all other requests."""

import gc
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from typing import Final, Protocol as Interface, cast

from starlette.applications import Starlette
from starlette.middleware.sessions import SessionMiddleware

from awp_publish.calls.authentication import AuthenticationGate
from awp_publish.calls.call import Credentials, Label
from awp_publish.calls.guard import Guards, Tokens
from awp_publish.calls.health import count_workers, is_first_worker, root_path_of_server
from awp_publish.calls.invoke import Invoker, Observer
from awp_publish.declare.discover import find_routes, unwrap
from awp_publish.declare.site import Site
from awp_publish.documents.every import ALL, link_header
from awp_publish.documents.protocol import Protocol, published
from awp_publish.doors.plain import DOOR as PLAIN, PlainDoor, UnknownActionDoor
from awp_publish.doors.status import StatusDoor, StatusKeeper
from awp_publish.doors.woa import PROTOCOL as WOA, InvokeAddress, WoaDoor, door_of
from awp_publish.http.dispatch import ROUTE_CALL, CalledApplication, RouteCaller
from awp_publish.http.documents import Prepared, prepare, problem_documents
from awp_publish.http.doors import ENTRANCE, Answer, AnswerRest, DoorContext, LiveDoor, identify_caller
from awp_publish.http.endpoint import ProblemRenderer, read_admission_of
from awp_publish.http.exchange import (
    AsgiApp,
    Cors,
    Fields,
    Receive,
    Reply,
    Scope,
    Send,
    ask_first,
    read_fields,
    route_path,
    send_reply,
)
from awp_publish.http.forms import DIALECT
from awp_publish.http.guarded_routes import ARRIVED, GuardedRoutes
from awp_publish.http.lifespan import run_lifespan
from awp_publish.http.startup import report
from awp_publish.model import Catalog, Door, Paths, seconds_of
from awp_publish.plugins.discovery import llms_txt
from awp_publish.plugins.discovery.crawling import has_sitemap
from awp_publish.plugins.events.webhooks import Webhooks
from awp_publish.plugins.identity.botauth import WebBotAuth
from awp_publish.plugins.identity.jwt import JwtBearer
from awp_publish.plugins.identity.protected_resource import metadata_url
from awp_publish.plugins.jobs.door import BACKGROUNDS, Background, JobsDoor
from awp_publish.plugins.pages.negotiation import (
    READ_METHODS,
    Guide,
    NegotiatedPages,
    NegotiatedRequest,
    PageRenderer,
    negotiate,
)
from awp_publish.plugins.pages.reader import PageReader, SomDoor, describe_pages
from awp_publish.plugins.sessions.cookies import LIFETIME, CookieSessions, Outside, SessionCalls, has_session_callers
from awp_publish.plugins.traffic.metrics import MetricsDoor
from awp_publish.problems import DeclarationError
from awp_publish.serve.page_names import PageNames

RECEIPT_SECONDS: Final = 3600.0
"""Seconds for which a receipt is valid."""
# --- Optional doors: each has its own module and extra, and is imported only if the site enables it ---

MODULES: Final = {
    "mcp": "awp_publish.plugins.mcp.door",
    "a2a": "awp_publish.plugins.a2a.door",
    "awp": "awp_publish.plugins.awp.door",
    "bridge": "awp_publish.plugins.actions_json.bridge",
}
PACKAGES: Final = {"mcp": ("mcp",), "a2a": ("a2a",), "awp": ("selectolax", "msgpack"), "bridge": ("selectolax",)}
EXTRAS: Final = {"bridge": "actions"}
"""The doors of `Site(doors=...)`: their modules, the packages they need, and their extras if named differently."""

OVERVIEW: Final = "awp_publish.plugins.overview.door"


class DoorModule(Interface):
    """The module of a live door."""

    def describe_door(self, paths: Paths) -> Door:
        """Return the facts about this door that documents publish."""

    def open_door(self, context: DoorContext) -> LiveDoor:
        """Create the door."""


def import_door(name: str) -> DoorModule:
    """Return the module of a door. Raises DeclarationError if its extra is not installed."""
    if any(find_spec(package) is None for package in PACKAGES[name]):
        raise DeclarationError(
            "site",
            f'doors: "{name}" needs a package that is missing.',
            f'Install it: pip install "awp-publish[{EXTRAS.get(name, name)}]".',
        )
    return cast(DoorModule, import_module(MODULES[name]))


@dataclass(frozen=True, slots=True)
class Doors:
    """The doors of one public address.

    `exact` are doors at fixed paths, `below` those at every path with a given prefix, `sockets` WebSocket endpoints.
    `prefixes` are the prefixes of all our paths that are not fixed.
    """

    invoker: Invoker
    exact: Mapping[str, Answer]
    below: Mapping[str, AnswerRest]
    prefixes: tuple[str, ...]
    woa: WoaDoor
    address: InvokeAddress
    live: tuple[LiveDoor, ...]
    sockets: Mapping[str, Answer]

    def find(self, scope: Scope, path: str) -> Answer | None:
        """Return the door for a path that starts with one of `prefixes`, None if the path is the application's."""
        for head, answer in self.below.items():
            if path.startswith(head):
                rest = path.removeprefix(head)
                return lambda scope, receive, send: answer(scope, receive, send, rest)
        matched = self.address.match(path, scope["query_string"])
        if matched is None:
            return None
        return partial(self.woa, named=self.address.agent_of(matched, scope["query_string"]))


@dataclass(frozen=True, slots=True)
class _Published:
    """Everything that one public address of the site serves. It is replaced as a whole, so that requests see one state.

    `fallbacks` are documents that are served if the application answers 404. `forward` passes all other requests to the
    application. `pages` offers its pages in other formats, None if only HTML is offered. `guarded` applies the gates to
    its routes, None if no route is guarded.
    """

    host: str
    documents: Mapping[str, Prepared]
    fallbacks: Mapping[str, Prepared]
    doors: Doors
    pages: NegotiatedPages | None
    forward: Answer
    guarded: GuardedRoutes | None
    found: Mapping[str, Prepared | Answer] = field(init=False)
    prefixes: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        ours = {path: partial(_fall_back, self.forward, prepared) for path, prepared in self.fallbacks.items()}
        # One dict lookup per request.
        object.__setattr__(self, "found", {**ours, **self.doors.exact, **self.documents})
        object.__setattr__(self, "prefixes", self.doors.prefixes)


_starts: Final = count()


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Pause garbage collection during start-up: the new objects all stay alive, and each run would traverse them again.

    After the first start of a process, they are moved to the oldest generation, unless the application itself has
    called `gc.freeze()`. Later starts, as in tests, leave them to the collector: many are garbage by then.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if next(_starts) == 0 and not gc.get_freeze_count():  # O(n): it counts the frozen objects
                gc.freeze()
                gc.unfreeze()
            gc.enable()


class AgentPublisher:
    """Makes an ASGI application usable by agents.

    `app.add_middleware(AgentPublisher, site=site)` inside Starlette or FastAPI, `AgentPublisher(app, site=site)`
    around any ASGI application. `protocols` are what is published. `link_headers` adds a `Link` header (RFC 8288) that
    points at the documents to the application's HTML pages. `check` logs what the checks find in the documents when
    the server starts. Raises DeclarationError at start-up for a wrong declaration.
    """

    def __init__(
        self,
        app: AsgiApp,
        site: Site,
        protocols: Sequence[Protocol] = ALL,
        *,
        link_headers: bool = False,
        check: bool = True,
    ) -> None:
        given: object = app
        if not isinstance(site, Site) or isinstance(given, Site) or not callable(app):
            wrong = "was given the site first." if isinstance(given, Site) else "needs an application and a site."
            remedy = "Write AgentPublisher(app, site=site), or app.add_middleware(AgentPublisher, site=site)."
            raise DeclarationError("AgentPublisher", wrong, remedy)
        self.app = app
        self.site = site
        self._protocols = tuple(protocols)
        self._link_headers = link_headers
        self._check = check
        self._status = StatusKeeper(site.liveness, site.probe)
        self._observer = Observer(site.settings.log_inputs, site.call_listeners, site.traffic)
        self._background: Background | None = None
        self._webhooks: Webhooks | None = None
        self._renderer: PageRenderer | None = None
        self._page_names: PageNames | None = None
        self._whole: AsgiApp = app
        self._called = CalledApplication(app, app)
        self._outside: Outside | None = None
        self._has_sessions = False
        self._state: Mapping[str, object] = {}
        self._published: tuple[_Published, ...] = ()
        self._here: _Published | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._pass_other(scope, receive, send)
            return
        if ROUTE_CALL in scope:  # a call from one of our doors, on its way to a route of the application
            await scope[ROUTE_CALL].arrive(self.app, scope, receive, send)
            return
        here = self._here or self._of_host(scope)
        path = route_path(scope) if scope.get("root_path") else scope["path"]
        found = here.found.get(path)
        if found is None:
            forward = here.forward
            if path.startswith(here.prefixes):
                forward = here.doors.find(scope, path) or forward
            await forward(scope, receive, send)
        elif type(found) is Prepared:
            reply = found.answer(scope["method"], scope["headers"])
            # The headers are copied because outer middleware may change them in place.
            await send({"type": "http.response.start", "status": reply.status, "headers": list(reply.headers)})
            await send({"type": "http.response.body", "body": reply.body})
        else:
            await found(scope, receive, send)

    def open(self) -> None:
        """Freeze the site and prepare everything now instead of at the first request. Raises DeclarationError."""
        if not self._published:
            self._open({})

    def document(self, scope: Scope) -> Reply | None:
        """Return the reply to a request for a document, None for any other. For adapters; needs no event loop."""
        here = self._here or self._of_host(scope)
        prepared = here.documents.get(route_path(scope))
        return None if prepared is None else prepared.answer(scope["method"], scope["headers"])

    def file(self, scope: Scope) -> NegotiatedRequest | None:
        """Return the request for a page whose address was given the suffix `.md`, None for any other. For adapters.

        They call this if the application has no such file, and use the result like that of `asked`.
        """
        pages = (self._here or self._of_host(scope)).pages
        return None if pages is None else pages.read_file(scope)

    def links(self, scope: Scope, *, is_page: bool = True) -> str:
        """Return the `Link` header of an answer: the site's documents, and the page's other formats. For adapters."""
        here = self._here or self._of_host(scope)
        links = link_header(self.site.catalog, self._protocols)
        if not is_page or here.pages is None or scope["method"] not in READ_METHODS:
            return links
        return f"{links}, {here.pages.alternates(scope).decode('latin-1')}"

    def fallback(self, scope: Scope) -> Reply | None:
        """Return the document to serve if the application answers 404, None if there is none. For adapters."""
        here = self._here or self._of_host(scope)
        prepared = here.fallbacks.get(route_path(scope))
        return None if prepared is None else prepared.answer(scope["method"], scope["headers"])

    def owns(self, scope: Scope) -> bool:
        """Return True if a request is answered here and not by the application. For adapters, which pass only these on.

        This reads `path`, `root_path`, `query_string` and the header Host of the scope.
        """
        here = self._here or self._of_host(scope)
        path = route_path(scope)
        return (
            path in here.documents
            or path in here.doors.exact
            or (path.startswith(here.prefixes) and here.doors.find(scope, path) is not None)
        )

    def guards(self, scope: Scope) -> bool:
        """Return True if a request of the application's arrives at a guarded route. For adapters.

        They then pass the request to this middleware, which applies the gates. The action is noted in the scope.
        """
        guarded = (self._here or self._of_host(scope)).guarded
        action = guarded.find(scope) if guarded is not None else None
        if action is not None:
            scope[ARRIVED] = action
        return action is not None

    def asked(self, scope: Scope) -> NegotiatedRequest | None:
        """Return the request for a page in a format other than HTML, None if HTML is requested. For adapters.

        They pass its `scope` to the application, and the application's answer to its `render()`.
        """
        pages = (self._here or self._of_host(scope)).pages
        return None if pages is None else pages.read_request(scope)

    async def _pass_other(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" and not self._published:
            try:
                self._open(scope)
            except DeclarationError as error:
                await receive()
                await send({"type": "lifespan.startup.failed", "message": str(error)})
                raise
            # Only one process reports. With a reloader, each new process does: it has new code.
            if self._check and (count_workers() == 1 or is_first_worker()):
                root_path = scope.get("root_path") or root_path_of_server()
                with _collector_paused():
                    report(self.site, self._published[0].documents, find_routes(self._application(scope)), root_path)
        if scope["type"] == "lifespan":
            await run_lifespan(self.app, scope, receive, send, partial(self._running, scope))
        elif scope["type"] == "websocket":
            here = self._here or self._of_host(scope)
            await here.doors.sockets.get(route_path(scope), self.app)(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    @asynccontextmanager
    async def _running(self, scope: Scope) -> AsyncIterator[None]:
        """Run the background worker, webhooks, doors, traffic record and probes while the application runs."""
        self._state = scope.get("state", {})
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.site.store.close)
            if self._background is not None:
                scope.get("extensions", {}).get(BACKGROUNDS, []).append(self._background)
                await stack.enter_async_context(self._background.working(scope.get("state", {})))
            if self._webhooks is not None:
                await stack.enter_async_context(self._webhooks.working())
            for door in (door for published in self._published for door in published.doors.live):
                if door.running is not None:
                    await stack.enter_async_context(door.running())
            if self.site.traffic is not None:
                await stack.enter_async_context(self.site.traffic.keeping())
            if self.site.liveness.probes:
                await stack.enter_async_context(self._status.keeping())
            yield

    # --- Publishing ---

    @_collector_paused()
    def _open(self, scope: Scope) -> tuple[_Published, ...]:
        """Freeze the site against the application's routes and prepare everything that is served."""
        settings = self.site.settings
        known = {protocol.name for protocol in (*ALL, *self._protocols)}
        for name in settings.about.leave_out:
            if name not in known:
                wrong = f'about.leave_out: "{name}" is no protocol that is published.'
                raise DeclarationError("site", wrong, f"There are: {', '.join(sorted(known))}.")
        given = {protocol.name for protocol in self._protocols} - set(settings.about.leave_out)
        left_out = known - given
        documents = [document for one in self._protocols if one.name in given for document in one.documents]
        paths = [document.path for document in documents if document.condition is None]
        live = (import_door(name).describe_door(settings.paths) for name in settings.doors)
        doors = (door_of(settings.paths.invoke), *live, *describe_pages(settings))
        self.site.freeze(self._application(scope), doors, paths, left_out)
        # The outermost application: a request that we send there passes all middleware, as any other does.
        self._whole = self.app if isinstance(unwrap(self.app), Starlette) else scope.get("app") or self.app
        entrance = self._whole if self._is_enclosed(scope) else None
        routes = self._application(scope)
        cookies = _session_cookies(routes)
        outside = entrance or (self._whole if self._has_outer_middleware(scope) else None)
        self._called = CalledApplication(self.app, routes, entrance, outside, lambda: self._state, cookies)
        # The adapter of another framework (Django) names the scope members that lead back through its middleware.
        carried: tuple[str, ...] = getattr(self.app, "awp_carried", ())
        self._outside = None
        if outside is not None or carried:
            self._outside = Outside(outside or self.app, lambda: self._state, carried)
        self._has_sessions = bool(cookies) or getattr(self.app, "awp_has_sessions", False)
        if any(action.is_background for action in self.site.catalog.actions):
            catalog, application = self.site.catalog, self._application(scope)
            guards = self._guards(catalog, None)
            sessions = self._sessions(guards, catalog)
            self._background = Background(settings, catalog, guards, self._observer, self._whole, application, sessions)
        if self.site.catalog.events or "a2a" in settings.doors:
            self._webhooks = Webhooks(lambda: self.site.store, self.site.events)
            if self._background is not None:
                self._background.announce_to(self._webhooks, self.site)
        if settings.page_formats is not None:
            self._renderer = PageRenderer()
            self._renderer.on_reading = self._count_reading if self.site.traffic is not None else None
        self.site.on_refresh(self._publish)
        self._publish(self.site)
        return self._published

    def _of_host(self, scope: Scope) -> _Published:
        """Return what is published for the request's Host: that of the canonical address if the Host is unknown."""
        published = self._published or self._open(scope)
        host = read_fields(scope["headers"]).get(b"host", b"").decode("latin-1").lower()
        return next((one for one in published if one.host == host), published[0])

    def _application(self, scope: Scope) -> object:
        """Return the application that has the routes. Inside Starlette, `app` is a bare router: the scope has it."""
        wrapped = unwrap(self.app)
        if isinstance(wrapped, Starlette):
            return wrapped
        return scope.get("app") or wrapped

    def _is_enclosed(self, scope: Scope) -> bool:
        """Return True if in-process calls have to pass middleware of the application that runs outside of us.

        Unless our own position is known, all of its middleware counts as outside. Raises DeclarationError if we are
        mounted below an application with middleware, which a call of an action would not pass.
        """
        app = scope.get("app")
        listed = [one for one in getattr(app, "user_middleware", ()) if not self.site.settings.trust_outer_middleware]
        if listed and "endpoint" in scope and getattr(app, "router", None) is not unwrap(self.app):
            names = ", ".join(getattr(one.cls, "__name__", repr(one.cls)) for one in listed)
            raise DeclarationError(
                "site",
                f"is published from within another application, whose middleware no call of an action passes: {names}.",
                "Add AgentPublisher to that application; or, if none of it decides by the path of a request, "
                "write Site(trust_outer_middleware=True).",
            )
        return bool(listed) and self._has_outer_middleware(scope)

    def _has_outer_middleware(self, scope: Scope) -> bool:
        """Return True if middleware, trusted or not, runs outside of us in the same application."""
        app = scope.get("app")
        listed = getattr(app, "user_middleware", ())
        ours = (index for index, one in enumerate(listed) if getattr(one, "kwargs", {}).get("site") is self.site)
        return app is self._whole and next(ours, len(listed)) > 0

    def _entrance(self, scope: Scope) -> AsgiApp:
        """Return the outermost application for requests that a door sends itself, so that they reach our pages too."""
        if ENTRANCE in scope:
            given: AsgiApp = scope[ENTRANCE]
            return given
        app: AsgiApp | None = scope.get("app")
        if app is None:
            return self
        # Middleware inside of us may not expose what it wraps as `app`. Then the application's own list has to name us.
        listed = getattr(app, "user_middleware", ())
        lists_us = any(getattr(one, "kwargs", {}).get("site") is self.site for one in listed)
        return app if lists_us or getattr(app, "router", None) is unwrap(self.app) else self

    def _publish(self, site: Site) -> None:
        before = {published.host: published for published in self._published}
        now = datetime.now(UTC)
        published = tuple(self._prepare(catalog, before.get(_host_of(catalog)), now) for catalog in site.catalogs)
        self._published, self._page_names = published, None
        self._here = published[0] if len(published) == 1 else None

    def _prepare(self, catalog: Catalog, before: _Published | None, now: datetime) -> _Published:
        link = link_header(catalog, self._protocols, of_pages=False).encode("latin-1")
        earlier = {**before.documents, **before.fallbacks} if before else {}
        listed = [*published(self._protocols, catalog), *problem_documents(catalog)]
        documents = prepare((one for one in listed if not one.is_fallback), catalog, link, earlier, now)
        fallbacks = prepare((one for one in listed if one.is_fallback), catalog, link, earlier, now)
        if before is not None:
            before.doors.invoker.set_status(catalog.status)
            if before.guarded is not None:
                before.guarded.set_status(catalog.status)
            return replace(before, documents=documents, fallbacks=fallbacks)
        formats = self.site.settings.page_formats
        links = link_header(catalog, self._protocols).encode("latin-1") if self._link_headers else None
        pages = None
        if formats and self._renderer:
            llms = catalog.absolute(llms_txt.PATH) if catalog.publishes("llms_txt") else None
            sitemap = catalog.absolute(llms_txt.SITEMAP_MD_PATH) if has_sitemap(catalog) else None
            updated = catalog.site.updated.date().isoformat() if catalog.site.updated is not None else None
            guide = Guide(llms, sitemap, catalog.site.version, updated)
            pages = NegotiatedPages(catalog, formats, self._renderer, links, guide)
        by_site = self.site.settings.guard_routes
        actions = [one for one in catalog.actions if (by_site if one.guards_route is None else one.guards_route)]
        guarded: GuardedRoutes | None = None
        if any(action.target is not None for action in actions):
            guards, admission = self._guards(catalog, metadata_url(catalog)), read_admission_of(self.site.settings)
            routes = self._called.routes
            guarded = GuardedRoutes(self.app, routes, catalog, actions, guards, self._observer, admission)
            guarded = guarded if guarded.is_needed else None
        onward = negotiate(guarded or self.app, pages, links, self.site.settings.timeout)
        doors = self._open_doors(catalog, pages)
        return _Published(_host_of(catalog), documents, fallbacks, doors, pages, onward, guarded)

    def _open_doors(self, catalog: Catalog, pages: NegotiatedPages | None) -> Doors:
        site, settings, background, reader = self.site, self.site.settings, self._background, None
        host = _host_of(catalog)
        if self._renderer is not None:
            links = pages.links if pages is not None else lambda scope: None
            reader = PageReader(settings, catalog, self._whole, self._renderer, self.owns, lambda: self._state, links)
        guards, admission = self._guards(catalog, metadata_url(catalog)), read_admission_of(settings, catalog.actions)
        accept = background.accepting(catalog) if background is not None else None
        sessions, carry = self._sessions(guards, catalog), None
        if sessions is not None:
            carry = SessionCalls(sessions, catalog, guards, admission.trusted_proxies, self._outside)
        routes = RouteCaller(self._called, catalog)
        invoker = Invoker(catalog, routes.call, guards, accept, self._observer, carry, routes.check, routes.rehearse)
        context = DoorContext(
            settings=settings,
            catalog=catalog,
            published=lambda: next(one for one in site.catalogs if one.url == catalog.url),
            invoker=invoker,
            guards=guards,
            keys=site.keys,
            admission=admission,
            background=background,
            entrance=self._entrance,
            pages=reader,
            site=site,
            documents=lambda: next((one.documents, one.fallbacks) for one in self._published if one.host == host),
            routes=partial(find_routes, self._called.routes),
            sessions=sessions,
            carry=carry,
            webhooks=self._webhooks,
        )
        names = settings.doors
        live = [import_door(one).open_door(replace(context, catalog=catalog.exposed_at(one))) for one in names]
        if settings.has_overview:
            live.append(cast(DoorModule, import_module(OVERVIEW)).open_door(context))
        paths, origins, cors = catalog.paths, admission.own_origins, Cors(admission.allow_origins)
        below: dict[str, AnswerRest] = {}
        exact: dict[str, Answer] = {paths.status: StatusDoor(catalog, self._status, origins)}
        if background is not None:
            renderer, identify, jobs = ProblemRenderer(catalog), identify_caller(context), catalog.absolute(paths.jobs)
            below[f"{paths.jobs}/"] = JobsDoor(
                background.jobs, jobs, renderer, cors, identify, origins, sessions, catalog.actions
            )
        if reader is not None:
            exact[paths.som] = SomDoor(reader, origins)
        if site.traffic is not None and settings.traffic is not None and (who := settings.traffic.metrics):
            gate = None
            if isinstance(who, str):
                known, metadata = guards.authenticators, guards.metadata_url
                gate = AuthenticationGate(known, True, (who,), guards.realm, metadata, store=guards.store)
            exact[paths.metrics] = MetricsDoor(context, site.traffic, gate)
        said, offered = ProblemRenderer(catalog, DIALECT), catalog.exposed_at(PLAIN)
        below[f"{paths.actions}/"] = missing = UnknownActionDoor(offered, admission, said, cors)
        for action in offered.actions:
            plain = PlainDoor(action, invoker, admission, said, cors, missing.describe)
            exact[catalog.plain_path_of(action)] = plain
        woa, address = WoaDoor(catalog, invoker, admission), InvokeAddress(paths.invoke)
        for path, agent_id in address.calls(catalog.exposed_at(WOA)).items():
            if path in exact:
                remedy = "Give the agent another id, or our addresses other paths: Site(paths=...)."
                raise DeclarationError(
                    f'agent "{agent_id}"', f"is called at {path}, which is another address of ours.", remedy
                )
            exact[path] = partial(woa.answer, agent_id)
        for door in live:
            exact |= door.exact
            below |= door.below
        prefixes = (paths.invoke.partition("{")[0].partition("?")[0], *below)
        sockets = {path: answer for door in live for path, answer in door.sockets.items()}
        return Doors(invoker, exact, below, prefixes, woa, address, tuple(live), sockets)

    def _count_reading(self, url: str, requested: str, status: int, fields: Fields) -> None:
        """Count a page read as SOM or Markdown. An error has no name."""
        if (traffic := self.site.traffic) is not None:
            if self._page_names is None:
                self._page_names = PageNames(self.site.catalogs, find_routes(self._called.routes))
            label: Label = "unknown"
            for one in self.site.authenticators:
                if isinstance(one, WebBotAuth):
                    label = one.label_of(Credentials({"user-agent": fields.get(b"user-agent", b"").decode("latin-1")}))
            is_page = status < 400
            traffic.add(
                "som" if requested == "som" else "markdown",
                self._page_names.name_of(url) if is_page else "",
                "",
                label,
                "ok" if is_page else str(status),
            )

    def _sessions(self, guards: Guards, catalog: Catalog) -> CookieSessions | None:
        """Return the sessions of callers without a cookie jar, None if the site identifies nobody by cookies."""
        if not self._has_sessions and not has_session_callers(guards, catalog):
            return None
        tokens = Tokens(self.site.keys, f"session:{self.site.settings.namespace}", LIFETIME)
        return CookieSessions(self.site.store, tokens)

    def _guards(self, catalog: Catalog, metadata: str | None) -> Guards:
        """Return what the guards of a catalog share. `metadata` is the URL of the RFC 9728 metadata, if served."""
        site, settings, actions = self.site, self.site.settings, catalog.actions
        receipted = frozenset(needed for action in actions for needed in action.requires)
        confirm_within = float(seconds_of(settings.confirm_within))
        confirmations = Tokens(site.keys, f"confirmation:{settings.namespace}", confirm_within)
        receipts = Tokens(site.keys, f"receipt:{settings.namespace}", RECEIPT_SECONDS)
        # Without a secret key, processes that share a store sign with different keys.
        has_keys = bool(settings.secret_keys) or not site.store.is_shared
        fingerprints = Tokens(site.keys, f"fingerprint:{settings.namespace}", 0.0) if has_keys else None
        return Guards(
            store=site.store,
            authenticators=tuple(
                one.bound_to(settings.urls, site.store) if isinstance(one, (WebBotAuth, JwtBearer)) else one
                for one in site.authenticators
            ),
            realm=catalog.site.name,
            metadata_url=metadata,
            codes=catalog.site.errors,
            rate_limit=catalog.site.rate_limit,
            fingerprints=fingerprints,
            confirmations=confirmations if any(action.needs_confirmation for action in actions) else None,
            receipts=receipts if receipted else None,
            receipted=receipted,
            credentials=frozenset(known for action in actions for known in action.route_credentials),
        )


async def _fall_back(forward: Answer, prepared: Prepared, scope: Scope, receive: Receive, send: Send) -> None:
    """Pass a request to the application, and serve our document if it answers 404."""

    async def answer(_: Receive) -> None:
        await send_reply(prepared.answer(scope["method"], scope["headers"]), send)

    await ask_first(forward, scope, receive, send, (404,), answer)


def _session_cookies(app: object) -> frozenset[bytes]:
    """Return the cookie names of Starlette's session middleware, as far as the application lists its middleware."""
    listed = [one for one in getattr(app, "user_middleware", ()) if isinstance(one.cls, type)]
    names = (one.kwargs.get("session_cookie", "session") for one in listed if issubclass(one.cls, SessionMiddleware))
    return frozenset(str(name).encode("latin-1", "replace") for name in names)


def _host_of(catalog: Catalog) -> str:
    return catalog.url.split("://", 1)[1].split("/", 1)[0].lower()
